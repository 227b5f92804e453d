//! HTTPS requests against a small server.

use std::io::{Read, Write};
use std::sync::Arc;
use std::thread;

use rustls::ServerConfig;
use tickpath_clock::{Clock, HostClock};
use tickpath_web_client::{HttpRequest, HttpsClient};

use crate::server::{Certificates, NAMES, Peer, accept_tcp, closed_port, listen, read_head, wait_for_end};
use crate::session::Deadline;

/// Serves this many requests, and returns the port.
fn serve_requests(tls: Option<Arc<ServerConfig>>, requests: usize) -> u16 {
    let (listener, port) = listen();
    thread::spawn(move || {
        for _ in 0..requests {
            answer(accept_tcp(&listener, tls.clone()));
        }
    });
    port
}

/// Answers a request: a path that is a status with this status, all else with the request itself.
fn answer(mut peer: Peer) {
    let head = read_head(&mut peer);
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    peer.read_exact(&mut body).expect("the client sends its body");
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, answer) = match path {
        "/404" => ("404 Not Found", b"no such symbol".to_vec()),
        "/503" => ("503 Service Unavailable", b"<html></html>".to_vec()),
        "/302" => ("302 Found", Vec::new()),
        "/large" => ("200 OK", vec![b'x'; (16 << 20) + 1]),
        _ => ("200 OK", [head.as_bytes(), &body].concat()),
    };
    let length = answer.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nX-Limit: 7\r\nLocation: /404\r\nConnection: close\r\n\r\n"
    );
    // The client may end the connection before it has read all.
    let _ = peer.write_all(head.as_bytes()).and_then(|()| peer.write_all(&answer)).and_then(|()| peer.flush());
}

#[test]
fn responses_of_every_status_are_returned_with_their_bodies() {
    let certificates = Certificates::make();
    let clock = HostClock::get().expect("this host has a clock");
    let port = serve_requests(Some(certificates.server(&NAMES)), 8);
    let client = HttpsClient::new(&format!("https://localhost:{port}"), Some(&certificates.ca())).expect("a good URL");
    for (path, status, body) in [
        ("/depth?symbol=BTCUSDT", 200, "GET /depth?symbol=BTCUSDT HTTP/1.1\r\n"),
        ("/404", 404, "no such symbol"),
        ("/503", 503, "<html></html>"),
        ("/302", 302, ""),
    ] {
        let before = clock.ticks();
        let waited = client.fetch(HttpRequest::get(path)).expect("the server answers");
        assert!(before <= waited.sent && waited.sent <= waited.received && waited.received <= clock.ticks());
        let mut pending = client.start(HttpRequest::get(path));
        let deadline = Deadline::start();
        let polled = loop {
            match pending.try_take() {
                Some(answer) => break answer.expect("the server answers"),
                None => deadline.pause(0),
            }
        };
        assert_eq!(pending.try_take(), None, "a response is returned once");
        for response in [waited, polled] {
            assert_eq!(response.status, status, "{path}");
            assert!(response.headers.contains(&("x-limit".to_owned(), "7".to_owned())), "{path}");
            assert!(response.body.starts_with(body.as_bytes()), "{path}: {}", response.body.escape_ascii());
        }
    }
}

#[test]
fn headers_and_bodies_reach_the_server() {
    let port = serve_requests(None, 3);
    let client = HttpsClient::new(&format!("http://127.0.0.1:{port}/"), None).expect("a good URL");
    for (method, sent, length) in [
        ("POST", "{\"a\":1}", "\r\ncontent-length: 7\r\n"),
        ("POST", "", "\r\ncontent-length: 0\r\n"),
        ("DELETE", "{}", "\r\ncontent-length: 2\r\n"),
    ] {
        let headers = vec![("X-Key".to_owned(), "secret".to_owned())];
        let path_and_query = "/order?signature=7".to_owned();
        let response = client.fetch(HttpRequest { method, path_and_query, headers, body: sent.to_owned() });
        let echo = String::from_utf8(response.expect("the server answers").body).expect("a request is text");
        let (head, body) = echo.split_once("\r\n\r\n").expect("a request has a head");
        let head = format!("{}\r\n", head.to_ascii_lowercase());
        assert!(
            head.starts_with(&format!("{} /order?signature=7 http/1.1\r\n", method.to_ascii_lowercase())),
            "{echo}"
        );
        assert!(head.contains("\r\nx-key: secret\r\n") && head.contains(length) && body == sent, "{echo}");
    }
}

#[test]
fn a_request_that_fails_is_a_sentence_without_its_query() {
    let (certificates, other) = (Certificates::make(), Certificates::make());
    let closed = format!("https://127.0.0.1:{}", closed_port());
    let misnamed =
        format!("https://127.0.0.1:{}", serve_requests_until_end(certificates.server(&["exchange.example"])));
    let unknown = format!("https://127.0.0.1:{}", serve_requests_until_end(other.server(&NAMES)));
    let large = format!("https://127.0.0.1:{}", serve_requests(Some(certificates.server(&NAMES)), 1));
    for (base, path, word) in [
        (&closed, "/time?key=SECRET", "refused"),
        (&misnamed, "/time?key=SECRET", "its certificate is not for '127.0.0.1'"),
        (&unknown, "/time?key=SECRET", "of no authority that is trusted here"),
        (&large, "/large", "longer than 16777216 bytes"),
        (&closed, "time?key=SECRET", "does not begin with '/'"),
        (&closed, "/ti me?key=SECRET", "a character that HTTP forbids"),
    ] {
        let client = HttpsClient::new(base, Some(&certificates.ca())).expect("a good URL");
        let failed = client.fetch(HttpRequest::get(path)).expect_err("it fails").to_string();
        assert!(failed.starts_with(&format!("GET {base}")) && failed.contains(word), "{failed}");
        assert!(!failed.contains("SECRET"), "{failed}");
    }
}

/// Serves a connection whose handshake fails, and returns the port.
fn serve_requests_until_end(tls: Arc<ServerConfig>) -> u16 {
    let (listener, port) = listen();
    thread::spawn(move || wait_for_end(&mut accept_tcp(&listener, Some(tls))));
    port
}
