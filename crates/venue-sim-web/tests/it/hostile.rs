//! Clients that break the rules: each ends its own connection, and no other.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::thread;

use tickpath_venue_sim_web::WebServerConfig;
use tungstenite::{Message, WebSocket};

use crate::raw::{UPGRADE, connect, frame, read_answer, read_to_end, upgrade};
use crate::running::{Deadline, Notice, Running, config};

/// A client that is served whatever the others do.
struct Witness(WebSocket<TcpStream>);

impl Witness {
    fn connect(server: &Running) -> Self {
        let url = format!("ws://127.0.0.1:{}/ws", server.port);
        let witness = Self(tungstenite::client(url, connect(server)).expect("the server accepts").0);
        server.wait_for(|notice| matches!(notice, Notice::Opened(_)));
        witness
    }

    fn check(&mut self) {
        self.0.send(Message::text("served?")).expect("the server reads");
        assert_eq!(self.0.read().expect("the server answers"), Message::text("served?"));
    }
}

#[test]
fn broken_requests_are_refused_with_their_reason() {
    let server = Running::start(false);
    let mut witness = Witness::connect(&server);
    let long = format!("GET / HTTP/1.1\r\nX-Long: {}\r\n\r\n", "x".repeat(17 << 10));
    let endless = format!("GET / HTTP/1.1\r\nX-Long: {}", "x".repeat(40 << 10));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: 1\r\n".repeat(101));
    for (request, status) in [
        ("\0\u{1}garbage\r\n\r\n", 400),
        ("GET\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\n\r\n", 400),
        ("GET http://localhost/ HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nbad header: 1\r\n\r\n", 400),
        (long.as_str(), 431),
        (endless.as_str(), 431),
        (many.as_str(), 431),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 411),
        ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", 400),
        ("POST / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413),
    ] {
        let mut tcp = connect(&server);
        // The server may refuse the request before it has read all of it.
        let _ = tcp.write_all(request.as_bytes());
        let answer = String::from_utf8_lossy(&read_to_end(&mut tcp)).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {answer}", request.escape_debug());
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        witness.check();
    }
}

#[test]
fn broken_handshakes_are_refused_and_the_connection_is_kept() {
    let server = Running::start(false);
    let mut tcp = connect(&server);
    for (from, to, status) in [
        ("GET", "POST", 400),
        ("keep-alive, Upgrade", "keep-alive", 400),
        ("dGhlIHNhbXBsZSBub25jZQ==", "short", 400),
        ("Version: 13", "Version: 8", 426),
        ("/ws", "/other", 404),
        ("Upgrade: WebSocket", "Upgrade: h2c", 200),
    ] {
        tcp.write_all(UPGRADE.replace(from, to).as_bytes()).expect("the server reads");
        let (head, _) = read_answer(&mut tcp);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{to}: {head}");
    }
}

#[test]
fn broken_frames_end_the_connection_with_their_code() {
    let config = WebServerConfig { max_message_bytes: 1_000, ..config(false) };
    let server = Running::start_with(config, |_| {});
    let mut witness = Witness::connect(&server);
    let halves = [frame(0x01, &[b'x'; 600]), frame(0x80, &[b'x'; 600])].concat();
    for (bytes, code) in [
        (b"\x81\x02hi".to_vec(), 1002),
        (frame(0xc1, b"reserved bit"), 1002),
        (frame(0x83, b"reserved kind"), 1002),
        (frame(0x80, b"continues nothing"), 1002),
        ([frame(0x01, b"begins"), frame(0x81, b"again")].concat(), 1002),
        (frame(0x09, b"a ping in fragments"), 1002),
        (frame(0x89, &[0; 126]), 1002),
        (frame(0x88, &[3]), 1002),
        (frame(0x88, &[3, 0xed]), 1002),
        (frame(0x88, &[3, 0xe8, 0xff]), 1007),
        (frame(0x81, b"\xc3\x28"), 1007),
        ([frame(0x01, b"\xc3"), frame(0x80, b"\x28")].concat(), 1007),
        (frame(0x82, &[0; 1_001]), 1009),
        (halves, 1009),
    ] {
        let mut tcp = upgrade(&server);
        let Notice::Opened(id) = server.wait_for(|notice| matches!(notice, Notice::Opened(_))) else {
            panic!("the service learns of the connection");
        };
        tcp.write_all(&bytes).expect("the server reads");
        let answer = read_to_end(&mut tcp);
        let expected = u16::to_be_bytes(code);
        assert!(answer.len() >= 4 && answer[0] == 0x88 && answer[2..4] == expected, "{bytes:?}: {answer:?}");
        assert_eq!(server.wait_for(|_| true), Notice::Closed(id));
        witness.check();
    }
}

#[test]
fn a_client_that_breaks_off_is_forgotten() {
    for bytes in ["", "GET / HT", UPGRADE] {
        for tls in [true, false] {
            let server = Running::start_with(WebServerConfig { max_connections: 1, ..config(tls) }, |_| {});
            let mut tcp = connect(&server);
            tcp.write_all(bytes.as_bytes()).expect("the server reads");
            tcp.shutdown(Shutdown::Write).expect("it is connected");
            read_to_end(&mut tcp);
            // The only place is free again.
            if !tls {
                wait_for_place(&server);
            }
        }
    }
}

#[test]
fn connections_beyond_the_limit_are_closed_at_once() {
    let server = Running::start_with(WebServerConfig { max_connections: 2, ..config(false) }, |_| {});
    let (mut first, second) = (Witness::connect(&server), upgrade(&server));
    for _ in 0..3 {
        assert_eq!(read_to_end(&mut connect(&server)), b"", "there is no place");
        first.check();
    }
    drop(second);
    server.wait_for(|notice| matches!(notice, Notice::Closed(_)));
    wait_for_place(&server);
    first.check();
}

#[test]
fn handshakes_that_stop_are_ended() {
    let cases: [(bool, &[u8]); 6] = [
        (true, b""),
        (true, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        (false, b""),
        (false, b"GET / HTTP/1.1\r\n"),
        (false, b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhal"),
        (false, b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n"),
    ];
    for (tls, bytes) in cases {
        let server = Running::start_with(config(tls), |server| server.limit_handshakes(20_000_000));
        let mut tcp = connect(&server);
        // On a busy host, the time is over before the bytes are written.
        let _ = tcp.write_all(bytes);
        read_to_end(&mut tcp);
    }
}

#[test]
fn bytes_that_are_no_tls_end_their_connection_only() {
    let server = Running::start(true);
    let cases: [&[u8]; 3] = [b"GET / HTTP/1.1\r\n\r\n", &[0; 4096], b"\x16\x03\x01\x00\x05garbage that is no hello"];
    for bytes in cases {
        let mut tcp = connect(&server);
        // The server may end the connection before it has read all.
        let _ = tcp.write_all(bytes);
        assert!(read_to_end(&mut tcp).len() < 100, "at most an alert is sent");
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_and_the_service_learns_of_it() {
    let server = Running::start(false);
    let mut witness = Witness::connect(&server);
    let mut slow = upgrade(&server);
    let Notice::Opened(id) = server.wait_for(|notice| matches!(notice, Notice::Opened(_))) else {
        panic!("the service learns of the connection");
    };
    slow.write_all(&frame(0x81, b"flood")).expect("the server reads");
    witness.check();
    assert_eq!(server.wait_for(|_| true), Notice::Closed(id));
    witness.check();
}

#[test]
fn clients_that_never_stop_delay_no_other() {
    let server = Running::start(false);
    let mut witness = Witness::connect(&server);
    let floods =
        [(frame(0x01, b"begin"), frame(0x00, b"")), (vec![], frame(0x89, b"ping")), (vec![], frame(0x81, b""))];
    let floods = floods.map(|(begin, endless)| {
        let mut tcp = upgrade(&server);
        thread::spawn(move || {
            let mut is_written = tcp.write_all(&begin).is_ok();
            // Until the server cuts the connection, or ends.
            while is_written {
                is_written = tcp.write_all(&endless.repeat(1_000)).is_ok();
            }
        })
    });
    for _ in 0..100 {
        witness.check();
    }
    drop((witness, server));
    for flood in floods {
        flood.join().expect("a flood only writes");
    }
}

/// Connects until the server has a place.
fn wait_for_place(server: &Running) {
    let deadline = Deadline::start();
    loop {
        let mut tcp = connect(server);
        // Without a place, the connection is closed at some time during these calls.
        let _ = tcp.write_all(b"GET / HTTP/1.0\r\n\r\n");
        if read_to_end(&mut tcp).starts_with(b"HTTP/1.1 200 ") {
            return;
        }
        deadline.pause(0);
    }
}
