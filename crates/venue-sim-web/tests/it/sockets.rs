//! WebSockets: messages both ways, pings, and the ends of a connection.

use std::net::TcpStream;

use tickpath_venue_sim_web::{ConnectionId, WebServer};
use tickpath_web_client::{WebSocketClient, WebSocketConfig, WebSocketEvent};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::{Message, WebSocket};

use crate::raw::connect;
use crate::running::{Deadline, Notice, Recorder, Running, config};

/// A client that is polled, with all that it has received.
struct Session {
    client: WebSocketClient,
    seen: Vec<String>,
}

impl Session {
    fn connect(server: &Running, host: &str, tls: bool, path: &str) -> Self {
        let scheme = if tls { "wss" } else { "ws" };
        let mut config = WebSocketConfig::new(&format!("{scheme}://{host}:{}{path}", server.port));
        config.ca = tls.then(|| server.ca());
        let mut client = WebSocketClient::new(config).expect("a good URL");
        client.connect();
        Self { client, seen: Vec::new() }
    }

    /// Polls once. The error is the reason of the loss.
    fn poll(&mut self) -> Result<usize, String> {
        let Self { client, seen } = self;
        let polled = client.poll(&mut |event| {
            seen.push(match event {
                WebSocketEvent::Up => "up".to_owned(),
                WebSocketEvent::Text(text, _) => String::from_utf8(text.to_vec()).expect("a text is valid UTF-8"),
                WebSocketEvent::Binary(bytes, _) => format!("{bytes:?}"),
                WebSocketEvent::Ping => "ping".to_owned(),
                WebSocketEvent::Pong => "pong".to_owned(),
            });
        });
        polled.map_err(|lost| lost.to_string())
    }

    fn wait_for(&mut self, last: &str) {
        let deadline = Deadline::start();
        while self.seen.last().is_none_or(|seen| seen != last) {
            let work = self.poll().unwrap_or_else(|lost| panic!("{lost}; seen: {:?}", self.seen));
            deadline.pause(work);
        }
    }

    fn wait_for_loss(&mut self) -> String {
        let deadline = Deadline::start();
        loop {
            match self.poll() {
                Ok(work) => deadline.pause(work),
                Err(lost) => return lost,
            }
        }
    }
}

/// Connects as a client that waits.
fn blocking(server: &Running) -> WebSocket<TcpStream> {
    let url = format!("ws://127.0.0.1:{}/ws", server.port);
    tungstenite::client(url, connect(server)).expect("the server accepts").0
}

#[test]
fn messages_pass_both_ways_until_the_service_closes() {
    for tls in [true, false] {
        let server = Running::start(tls);
        for host in ["localhost", "127.0.0.1"] {
            let mut session = Session::connect(&server, host, tls, "/ws?key=7");
            session.wait_for("up");
            for text in ["first", "ünbroken", "ping"] {
                session.client.send_text(text).expect("it is up");
                session.wait_for(text);
            }
            let Notice::Pong(id) = server.wait_for(|notice| matches!(notice, Notice::Pong(_))) else {
                panic!("the service learns of pongs");
            };
            session.client.send_ping().expect("it is up");
            session.wait_for("pong");
            session.client.send_text("close").expect("it is up");
            let lost = session.wait_for_loss();
            assert!(lost.contains("4001") && lost.contains("enough"), "{lost}");
            assert_eq!(server.wait_for(|_| true), Notice::Closed(id));
        }
    }
}

#[test]
fn a_cut_ends_the_connection_without_a_close_frame() {
    for tls in [true, false] {
        let server = Running::start(tls);
        let mut session = Session::connect(&server, "localhost", tls, "/ws");
        session.wait_for("up");
        session.client.send_text("cut").expect("it is up");
        let lost = session.wait_for_loss();
        assert!(lost.contains("without a close frame"), "{lost}");
        server.wait_for(|notice| matches!(notice, Notice::Closed(_)));
    }
}

#[test]
fn an_upgrade_is_refused_by_the_service() {
    let server = Running::start(true);
    let mut session = Session::connect(&server, "localhost", true, "/other");
    let lost = session.wait_for_loss();
    assert!(lost.contains("404") && lost.contains("no such stream"), "{lost}");
}

#[test]
fn the_server_echoes_close_frames_and_ends_the_connection() {
    let server = Running::start(false);
    let reason = |code, reason: &str| Some(CloseFrame { code, reason: reason.into() });
    for (sent, echoed) in [
        (None, None),
        (reason(CloseCode::Normal, "bye"), reason(CloseCode::Normal, "bye")),
        (reason(CloseCode::Library(4123), ""), reason(CloseCode::Library(4123), "")),
        (reason(CloseCode::Status, ""), reason(CloseCode::Protocol, "Protocol violation")),
    ] {
        let mut socket = blocking(&server);
        socket.close(sent).expect("the server reads");
        assert_eq!(socket.read().expect("the server answers"), Message::Close(echoed));
        assert!(matches!(socket.read(), Err(tungstenite::Error::ConnectionClosed)), "the server ends the connection");
        server.wait_for(|notice| matches!(notice, Notice::Closed(_)));
    }
}

#[test]
fn pings_are_answered_with_their_content_between_the_fragments_of_a_message() {
    let server = Running::start(false);
    let mut socket = blocking(&server);
    let begin = Frame::message("frag".as_bytes().to_vec(), OpCode::Data(Data::Text), false);
    let end = Frame::message("ments".as_bytes().to_vec(), OpCode::Data(Data::Continue), true);
    socket.send(Message::Frame(begin)).expect("the server reads");
    for content in ["one", "two"] {
        socket.send(Message::Ping(content.into())).expect("the server reads");
    }
    socket.send(Message::Frame(end)).expect("the server reads");
    for expected in [Message::Pong("one".into()), Message::Pong("two".into()), Message::text("fragments")] {
        assert_eq!(socket.read().expect("the server answers"), expected);
    }
}

#[test]
fn messages_up_to_the_limit_pass_whole() {
    let server = Running::start(false);
    let mut socket = blocking(&server);
    for bytes in [0, 125, 126, 65_535, 65_536, 12 << 20] {
        let sent: Vec<u8> = (0..bytes).map(|index: usize| index as u8).collect();
        socket.send(Message::binary(sent.clone())).expect("the server reads");
        let echo = socket.read().expect("the server answers").into_data();
        assert!(echo == sent, "{bytes} bytes were sent, {} received", echo.len());
    }
}

#[test]
fn the_owner_of_a_server_sends_outside_of_its_callbacks() {
    let mut server = WebServer::open(&config(false)).expect("a port is free");
    let (mut service, notices) = Recorder::new();
    let url = format!("ws://{}/ws", server.address());
    let mut client = WebSocketClient::new(WebSocketConfig::new(&url)).expect("a good URL");
    client.connect();
    let deadline = Deadline::start();
    let (mut seen, mut texts) = (Vec::new(), Vec::new());
    let lost = loop {
        let mut work = server.poll(0, &mut service);
        for notice in notices.try_iter() {
            if let Notice::Opened(id) = notice {
                server.sender().text(id, "news");
                server.sender().text(ConnectionId(id.0 + 1), "for no connection");
            }
            seen.push(notice);
        }
        let polled = client.poll(&mut |event| {
            if let WebSocketEvent::Text(text, _) = event {
                texts.push(text.to_vec());
            }
        });
        match polled {
            Ok(done) => work += done,
            Err(lost) => break lost.to_string(),
        }
        if texts.len() == 1 {
            server.sender().close(ConnectionId(1), 1012, "restart");
        }
        deadline.pause(work);
    };
    assert!(lost.contains("1012"), "{lost}");
    assert_eq!(texts, [b"news".to_vec()]);
    server.poll(0, &mut service);
    seen.extend(notices.try_iter());
    assert_eq!(seen, [Notice::Opened(ConnectionId(1)), Notice::Closed(ConnectionId(1))]);
}
