//! Servers that fail, refuse or break the protocol: each is one clear sentence that begins with the address.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::ServerConfig;
use tickpath_web_client::{UpgradeRefusal, WebSocketConfig};

use crate::server::{Certificates, NAMES, Peer, closed_port, read_head, serve, upgrade, wait_for_end};
use crate::session::{Seen, Session};

const MAX_MESSAGE_BYTES: usize = 65_536;

/// Checks that a client of this server reports a loss with these words.
fn check(
    scheme: &str,
    tls: Option<Arc<ServerConfig>>,
    change: impl FnOnce(&mut WebSocketConfig),
    work: impl FnOnce(Peer) + Send + 'static,
    words: &[&str],
) -> Session {
    let (port, server) = serve(tls, work);
    let mut session = Session::connect(&format!("{scheme}://127.0.0.1:{port}/ws?key=SECRET"), change);
    let lost = session.wait_for_loss();
    assert!(lost.starts_with(&format!("{scheme}://127.0.0.1:{port}/ws: ")), "{lost}");
    for word in words {
        assert!(lost.contains(word), "'{word}' is missing: {lost}");
    }
    assert!(!lost.contains("SECRET") && !lost.contains(char::is_control), "{lost:?}");
    assert_eq!(session.poll(), Ok(0), "a loss is reported once");
    // The server ends when the client has ended the connection.
    server.join().expect("the server has no expectation");
    session
}

#[test]
fn bytes_that_are_no_message_end_the_connection_with_their_reason() {
    let certificates = Certificates::make();
    let large = |opcode: u8, fin: u8, bytes: u64| [&[fin | opcode, 127][..], &bytes.to_be_bytes()].concat();
    let half_each = [large(2, 0, 40_000), vec![0; 40_000], large(0, 0x80, 40_000), vec![0; 40_000]].concat();
    for (bytes, word) in [
        (large(2, 0x80, 16 << 20), "longer than the limit of 65536 bytes"),
        (half_each, "longer than the limit of 65536 bytes"),
        (b"\x81\x0ahal".to_vec(), "without a close frame"),
        (Vec::new(), "without a close frame"),
        (b"\x81\x02\xc3\x28".to_vec(), "not valid UTF-8"),
        (b"\x81\x80\x00\x00\x00\x00".to_vec(), "breaks the WebSocket protocol"),
        (b"\x83\x00".to_vec(), "breaks the WebSocket protocol"),
        (b"\x80\x00".to_vec(), "breaks the WebSocket protocol"),
        (b"\xc1\x00".to_vec(), "breaks the WebSocket protocol"),
        (b"\x88\x00".to_vec(), "closed the connection without a code"),
        (b"\x88\x0a\x0f\xa4no \x1b[2Jx".to_vec(), "closed the connection with code 4004: no [2Jx"),
    ] {
        for tls in [None, Some(certificates.server(&NAMES))] {
            let scheme = if tls.is_some() { "wss" } else { "ws" };
            let (bytes, ca) = (bytes.clone(), certificates.ca());
            let change = |config: &mut WebSocketConfig| {
                (config.ca, config.max_message_bytes) = (Some(ca), MAX_MESSAGE_BYTES);
            };
            let work = move |peer| {
                let mut peer = upgrade(peer).into_inner();
                // The client may end the connection before it has read all.
                let _ = peer.write_all(&bytes).and_then(|()| peer.flush());
            };
            assert_eq!(check(scheme, tls, change, work, &[word]).seen, [Seen::Up]);
        }
    }
}

#[test]
fn an_answer_that_is_no_upgrade_is_shown() {
    let page = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nContent-Length: 60\r\n\r\n\
                <html>\n<h1>In maintenance</h1>\t<p>until\x1b[2J 10:00</p></html>";
    let long = format!("HTTP/1.1 403 Forbidden\r\n\r\n{}", "x".repeat(1_000));
    let shown = format!(": it refuses the WebSocket with status 403 Forbidden: {}", "x".repeat(200));
    let cases: [(&str, &[&str]); 8] = [
        (page, &["status 503 Service Unavailable: <html> <h1>In maintenance</h1> <p>until [2J 10:00</p></html>"]),
        ("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", &["status 401 Unauthorized"]),
        ("HTTP/1.1 302 Found\r\nLocation: https://elsewhere\r\n\r\n", &["status 302 Found"]),
        ("HTTP/1.1 200 OK\r\n\r\n{}", &["status 200 OK: {}"]),
        (&long, &[shown.as_str()]),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", &["no WebSocket server answers"]),
        ("SSH-2.0-OpenSSH_10.0\r\n", &["no WebSocket server answers"]),
        ("", &["before it answered"]),
    ];
    for (answer, words) in cases {
        let answer = answer.to_owned();
        let work = move |mut peer: Peer| {
            read_head(&mut peer);
            peer.write_all(answer.as_bytes()).expect("the client reads");
        };
        let session = check("ws", None, |_| {}, work, words);
        assert!(session.seen.is_empty(), "the connection was never up");
    }
}

#[test]
fn the_pause_that_a_server_demands_is_kept() {
    for (answer, retry_after_s) in [
        ("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n", Some(17)),
        ("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", None),
        ("HTTP/1.1 429 Too Many Requests\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n", None),
    ] {
        let work = move |mut peer: Peer| {
            read_head(&mut peer);
            peer.write_all(answer.as_bytes()).expect("the client reads");
        };
        let mut session = check("ws", None, |_| {}, work, &["status 429 Too Many Requests"]);
        assert_eq!(session.client.refusal(), Some(UpgradeRefusal { status: 429, retry_after_s }));
        session.client.connect();
        assert_eq!(session.client.refusal(), None, "the next connect is not answered yet");
    }
}

#[test]
fn a_server_without_the_expected_certificate_is_refused() {
    let (certificates, other) = (Certificates::make(), Certificates::make());
    for (names, ca, word) in [
        (&["exchange.example"][..], certificates.ca(), "its certificate is not for '127.0.0.1'"),
        (&NAMES[..], other.ca(), "of no authority that is trusted here"),
    ] {
        // The handshake fails, as the server learns by the first read.
        let work = |mut peer: Peer| wait_for_end(&mut peer);
        let session = check("wss", Some(certificates.server(names)), |config| config.ca = Some(ca), work, &[word]);
        assert!(session.seen.is_empty(), "the connection was never up");
    }
}

#[test]
fn a_server_without_tls_is_reported() {
    let certificates = Certificates::make();
    for (answer, word) in [("HTTP/1.1 400 Bad Request\r\n\r\n", "does not use TLS"), ("", "during the TLS handshake")] {
        let work = move |mut peer: Peer| {
            // The greeting of TLS is shorter than this.
            let _ = peer.read(&mut [0; 8192]);
            peer.write_all(answer.as_bytes()).expect("the client reads");
        };
        check("wss", None, |config| config.ca = Some(certificates.ca()), work, &[word]);
    }
}

#[test]
fn a_silent_server_ends_the_connect_at_its_time_limit() {
    let certificates = Certificates::make();
    for (scheme, step) in [("ws", "WebSocket handshake"), ("wss", "TLS handshake")] {
        let change = |config: &mut WebSocketConfig| {
            (config.ca, config.connect_timeout_ns) = (Some(certificates.ca()), 200_000_000);
        };
        let word = format!("no answer in the {step} within 0.2 s");
        check(scheme, None, change, |mut peer| wait_for_end(&mut peer), &[word.as_str()]);
    }
}

#[test]
fn a_port_without_a_listener_is_reported() {
    let port = closed_port();
    let mut session = Session::connect(&format!("ws://127.0.0.1:{port}/"), |_| {});
    let lost = session.wait_for_loss();
    assert!(lost.contains("refused") && lost.contains("does the server listen there?"), "{lost}");
}
