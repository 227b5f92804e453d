//! Messages both ways: whole, in pieces, faster than the peer reads, and across a reconnect.

use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_clock::{Clock, HostClock};
use tickpath_web_client::{FrameArrival, WebSocketSendError};
use tungstenite::Message;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

use crate::server::{Certificates, NAMES, accept_tcp, listen, read_head, serve, upgrade};
use crate::session::{Deadline, Seen, Session};

#[test]
fn text_and_binary_messages_pass_both_ways_until_the_client_closes() {
    let certificates = Certificates::make();
    for (scheme, host) in [("wss", NAMES[0]), ("wss", NAMES[1]), ("ws", NAMES[0]), ("ws", NAMES[1])] {
        let tls = (scheme == "wss").then(|| certificates.server(&NAMES));
        let (port, server) = serve(tls, |peer| {
            let mut socket = upgrade(peer);
            assert_eq!(socket.read().expect("the client sends"), Message::text("subscribe"));
            socket.send(Message::text("subscribed ✓")).expect("the client reads");
            socket.send(Message::binary(vec![0, 255, 7])).expect("the client reads");
            socket.read().expect("the client closes")
        });
        let mut session = Session::connect(&format!("{scheme}://{host}:{port}/ws"), |config| {
            config.ca = Some(certificates.ca());
        });
        session.wait_for(1);
        session.client.send_text("subscribe").expect("it is up");
        session.wait_for(3);
        let expected = [Seen::Up, Seen::Text("subscribed ✓".to_owned()), Seen::Binary(vec![0, 255, 7])];
        assert_eq!(session.seen, expected);
        session.client.set_url("ws://127.0.0.1/other").expect("a good URL");
        assert!(session.client.address().ends_with("/ws"), "a connection keeps its URL");
        session.client.close();
        assert_eq!(session.poll(), Ok(0), "a client that was closed is not lost");
        assert_eq!(session.client.send_text("late"), Err(WebSocketSendError::Down));
        let Message::Close(Some(frame)) = server.join().expect("the server has what it expects") else {
            panic!("the client sends no close frame");
        };
        assert_eq!(frame.code, CloseCode::Normal);
    }
}

#[test]
fn headers_and_the_whole_url_reach_the_server() {
    let (port, server) = serve(None, |mut peer| read_head(&mut peer));
    let mut session = Session::connect(&format!("ws://127.0.0.1:{port}/ws?key=7"), |config| {
        config.headers = vec![("X-Key".to_owned(), "secret".to_owned())];
    });
    session.wait_for_loss();
    let head = server.join().expect("the server reads a request");
    let host = format!("\r\nHost: 127.0.0.1:{port}\r\n");
    for line in ["GET /ws?key=7 HTTP/1.1\r\n", "\r\nx-key: secret\r\n", host.as_str()] {
        assert!(head.contains(line), "{head}");
    }
}

#[test]
fn pings_are_answered_in_the_poll_that_reports_them() {
    let (confirm, answered) = channel();
    let (port, server) = serve(None, move |peer| {
        let mut socket = upgrade(peer);
        socket.send(Message::Ping("beat".into())).expect("the client reads");
        assert_eq!(socket.read().expect("the client answers"), Message::Pong("beat".into()));
        confirm.send(()).expect("the test waits");
        assert!(socket.read().expect("the client pings").is_ping());
        socket.flush().expect("the client reads");
        // Until the client ends the connection.
        let _ = socket.read();
    });
    let mut session = Session::connect(&format!("ws://127.0.0.1:{port}/"), |_| {});
    session.wait_for(2);
    answered.recv_timeout(Duration::from_secs(60)).expect("the answer needs no further poll");
    session.client.send_ping().expect("it is up");
    session.wait_for(3);
    assert_eq!(session.seen, [Seen::Up, Seen::Ping, Seen::Pong]);
    session.client.close();
    server.join().expect("the server has what it expects");
}

#[test]
fn a_message_that_arrives_byte_by_byte_over_tls_is_whole() {
    let certificates = Certificates::make();
    let (port, server) = serve(Some(certificates.server(&NAMES)), |peer| {
        let mut peer = upgrade(peer).into_inner();
        for byte in frames(true, "an ünbroken text".as_bytes(), 3) {
            peer.write_all(&[byte]).and_then(|()| peer.flush()).expect("the client reads");
        }
    });
    let mut session =
        Session::connect(&format!("wss://127.0.0.1:{port}/"), |config| config.ca = Some(certificates.ca()));
    session.wait_for(2);
    assert_eq!(session.seen, [Seen::Up, Seen::Text("an ünbroken text".to_owned())]);
    server.join().expect("the server only writes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn messages_are_whole_and_in_order_in_whatever_pieces_they_arrive(
        messages in vec((any::<bool>(), ".{0,200}", 1_usize..5), 0..12),
        step in 1_usize..400,
    ) {
        let bytes: Vec<u8> =
            messages.iter().flat_map(|(is_text, text, pieces)| frames(*is_text, text.as_bytes(), *pieces)).collect();
        let (port, server) = serve(None, move |peer| {
            let mut peer = upgrade(peer).into_inner();
            for piece in bytes.chunks(step) {
                peer.write_all(piece).expect("the client reads");
            }
        });
        let mut session = Session::connect(&format!("ws://127.0.0.1:{port}/"), |_| {});
        session.wait_for(1 + messages.len());
        let expected = messages.into_iter().map(|(is_text, text, _)| match is_text {
            true => Seen::Text(text),
            false => Seen::Binary(text.into_bytes()),
        });
        prop_assert_eq!(&session.seen[1..], expected.collect::<Vec<_>>());
        server.join().expect("the server only writes");
    }
}

/// Returns a message as a server sends it in this many frames.
fn frames(is_text: bool, content: &[u8], pieces: usize) -> Vec<u8> {
    let size = content.len().div_ceil(pieces).max(1);
    let mut parts: Vec<&[u8]> = content.chunks(size).collect();
    if parts.is_empty() {
        parts.push(&[]);
    }
    let mut bytes = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let data = match (number, is_text) {
            (0, true) => Data::Text,
            (0, false) => Data::Binary,
            _ => Data::Continue,
        };
        let frame = Frame::message(part.to_vec(), OpCode::Data(data), number + 1 == parts.len());
        frame.format(&mut bytes).expect("a vector has room");
    }
    bytes
}

#[test]
fn a_client_connects_again_after_a_loss_also_to_another_url() {
    let (listener, port) = listen();
    let server = thread::spawn(move || {
        for name in ["first", "second", "third"] {
            let mut socket = upgrade(accept_tcp(&listener, None));
            socket.send(Message::text(name)).expect("the client reads");
        }
    });
    let mut session = Session::connect(&format!("ws://127.0.0.1:{port}/ws?key=first"), |_| {});
    let mut expected = Vec::new();
    for name in ["first", "second", "third"] {
        let lost = session.wait_for_loss();
        assert!(lost.contains("without a close frame"), "{lost}");
        assert_eq!(session.poll(), Ok(0), "a loss is reported once");
        assert!(session.client.socket().is_none(), "there is no connection");
        expected.extend([Seen::Up, Seen::Text(name.to_owned())]);
        assert_eq!(session.seen, expected);
        if name != "third" {
            session.client.set_url(&format!("ws://127.0.0.1:{port}/{name}?key=next")).expect("a good URL");
            assert_eq!(session.client.address(), format!("ws://127.0.0.1:{port}/{name}"));
            session.client.connect();
        }
    }
    server.join().expect("the server only writes");
}

#[test]
fn frames_have_the_receive_times_of_the_kernel_and_of_the_read() {
    let clock = HostClock::get().expect("this host has a clock");
    let certificates = Certificates::make();
    for tls in [None, Some(certificates.server(&NAMES))] {
        let scheme = if tls.is_some() { "wss" } else { "ws" };
        let (port, server) = serve(tls, |peer| {
            let mut socket = upgrade(peer);
            while let Ok(message) = socket.read() {
                // The client may have ended the connection meanwhile.
                let _ = socket.send(message);
            }
        });
        let mut session = Session::connect(&format!("{scheme}://127.0.0.1:{port}/"), |config| {
            config.ca = Some(certificates.ca());
        });
        session.wait_for(1);
        // The kernel begins to stamp some time after it is asked to.
        let deadline = Deadline::start();
        while session.arrivals.last().is_none_or(|arrival| arrival.wire == 0) {
            deadline.pause(1);
            let sent = clock.ticks();
            session.client.send_text("echo").expect("it is up");
            session.wait_for(session.seen.len() + 1);
            let FrameArrival { wire, read } = session.arrivals[session.arrivals.len() - 1];
            assert!(wire <= read, "a packet arrives before it is read: {wire} and {read}");
            assert!((sent..=clock.ticks()).contains(&read), "the read is between the request and now");
        }
        session.client.close();
        server.join().expect("the server only echoes");
    }
}

#[test]
fn a_message_that_has_no_room_is_refused_whole() {
    const BYTES: usize = 16 << 10;
    let certificates = Certificates::make();
    for tls in [None, Some(certificates.server(&NAMES))] {
        let scheme = if tls.is_some() { "wss" } else { "ws" };
        let (begin, may_read) = channel();
        let (port, server) = serve(tls, move |peer| {
            let mut socket = upgrade(peer);
            may_read.recv_timeout(Duration::from_secs(60)).expect("the client is full at some time");
            let mut received: Vec<String> = Vec::new();
            while received.last().is_none_or(|text| text != "last") {
                let message = socket.read().expect("the client sends until its last message");
                received.push(message.to_text().expect("the client sends texts").trim().to_owned());
            }
            received
        });
        let mut session = Session::connect(&format!("{scheme}://127.0.0.1:{port}/"), |config| {
            config.ca = Some(certificates.ca());
        });
        session.wait_for(1);
        // No kernel buffers this much.
        let accepted = (0..(1 << 30) / BYTES)
            .take_while(|number| match session.client.send_text(&format!("{number:BYTES$}")) {
                Ok(()) => true,
                Err(WebSocketSendError::Full) => false,
                Err(WebSocketSendError::Down) => panic!("the connection is up"),
            })
            .count();
        begin.send(()).expect("the server waits");
        let deadline = Deadline::start();
        while session.client.send_text("last") == Err(WebSocketSendError::Full) {
            deadline.pause(session.poll().expect("it is up"));
        }
        while !server.is_finished() {
            // The server ends the connection after the last message.
            deadline.pause(session.poll().unwrap_or(0));
        }
        let received = server.join().expect("the server only reads");
        let expected: Vec<String> = (0..accepted).map(|number| number.to_string()).chain(["last".to_owned()]).collect();
        assert!(received == expected, "{accepted} messages are accepted, {} received", received.len());
    }
}
