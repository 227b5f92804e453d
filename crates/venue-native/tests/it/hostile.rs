//! Peers that are not an exchange: a line reports the mistake, and never hangs.

use std::io::Write;
use std::net::TcpListener;

use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_oms_protocol::write_frame_with_text;
use tickpath_venue::{Line, ResumeState};
use tickpath_venue_native::wire::REFUSED;
use tickpath_venue_native::{LineAddress, TcpLine};

/// Connects to a peer that first sends these bytes; returns the reason of the loss.
fn answered_by(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it listens").port();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the line connects");
        stream.write_all(&bytes).expect("the line reads");
        stream
    });
    let lost = lost(port);
    drop(other.join().expect("the peer only writes"));
    lost
}

fn lost(port: u16) -> String {
    let clock = HostClock::get().expect("this host has a clock");
    let mut line = TcpLine::new(LineAddress::Tcp { host: "127.0.0.1".to_owned(), port }, "test").expect("a clock");
    line.connect(&ResumeState::default());
    let began = clock.ticks();
    loop {
        match line.poll(&mut |event| panic!("no event is valid: {event:?}")) {
            Ok(_) => sleep_ns(50_000),
            Err(lost) => return lost.to_string(),
        }
        assert!(clock.ns_between(began, clock.ticks()) < 30_000_000_000, "it hangs");
    }
}

#[test]
fn a_peer_that_is_no_exchange_is_reported() {
    let mut refused = Vec::new();
    write_frame_with_text(&mut refused, REFUSED, 0, 0, &[], b"not today");
    let mut drawn = Vec::new();
    write_frame_with_text(&mut drawn, REFUSED, 0, 0, &[], "not\u{1b}[2J\n\u{202e}today".as_bytes());
    for (bytes, words) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n and so on".to_vec(), "is not of this protocol"),
        (vec![0xff; 4096], "is not of this protocol"),
        (refused, "the exchange refuses: not today"),
        // The refusal's text changes no terminal, and no line of a log.
        (drawn, r"the exchange refuses: not\u{1b}[2J\n\u{202e}today"),
    ] {
        let lost = answered_by(bytes);
        assert!(lost.contains("tcp://127.0.0.1:") && lost.contains(words), "{lost}");
    }
}

#[test]
fn an_address_without_a_listener_is_reported() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("it listens").port();
    let lost = lost(port);
    assert!(lost.contains("refused"), "{lost}");
}
