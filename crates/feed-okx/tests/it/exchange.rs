//! An exchange on loopback that speaks OKX's protocol. Its test polls it, so that each step happens when the test wants
//! it, and no thread has to be ended.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::Value;
use tungstenite::handshake::MidHandshake;
use tungstenite::handshake::server::NoCallback;
use tungstenite::{Error, HandshakeError, Message, ServerHandshake, WebSocket};

/// Channels of a subscription to everything, of the three instruments of the tests.
const CHANNELS: usize = 9;

/// Behaviour of the exchange.
#[derive(Debug, Clone)]
pub struct ExchangeScript {
    /// Acknowledges each argument of a request.
    pub acknowledges: bool,
    /// Sends this text instead of an acknowledgement.
    pub refusal: Option<String>,
    /// Sends a snapshot behind each acknowledgement of a book.
    pub sends_snapshots: bool,
    /// Answers `ping` with `pong`.
    pub answers_pings: bool,
    /// Neither accepts, reads nor answers.
    pub is_silent: bool,
}

/// An exchange with one connection at a time.
pub struct ScriptedExchange {
    address: SocketAddr,
    /// None after connects are refused.
    listener: Option<TcpListener>,
    link: ExchangeLink,
    script: ExchangeScript,
    requests: Vec<String>,
    pings: usize,
    /// Sequence number of the last snapshot.
    sequence: u64,
    /// Data of the snapshots that a test has set, by instrument.
    snapshots: HashMap<String, String>,
    /// Channels that the connection has subscribed to, and the number of connections that have subscribed to all.
    subscribed: HashSet<String>,
    acknowledged: usize,
}

enum ExchangeLink {
    Down,
    Shaking(Box<MidHandshake<ServerHandshake<TcpStream, NoCallback>>>),
    Open(Box<WebSocket<TcpStream>>),
}

impl ScriptedExchange {
    /// Listens on a free port, and acknowledges and answers everything.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a listener can be polled");
        let script = ExchangeScript {
            acknowledges: true,
            refusal: None,
            sends_snapshots: true,
            answers_pings: true,
            is_silent: false,
        };
        Self {
            address: listener.local_addr().expect("a listener has an address"),
            listener: Some(listener),
            link: ExchangeLink::Down,
            script,
            requests: Vec::new(),
            pings: 0,
            sequence: 0,
            snapshots: HashMap::new(),
            subscribed: HashSet::new(),
            acknowledged: 0,
        }
    }

    /// Returns the address for a feed.
    pub fn url(&self) -> String {
        format!("ws://{}/ws/v5/public", self.address)
    }

    /// Returns the behaviour, which can be changed at any time.
    pub fn script(&mut self) -> &mut ExchangeScript {
        &mut self.script
    }

    /// Returns the requests of all connections, in their order.
    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    /// Returns the number of pings of all connections.
    pub fn pings(&self) -> usize {
        self.pings
    }

    /// Returns the number of connections whose subscriptions to all channels were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// Sets the data of the snapshots of an instrument's book.
    pub fn set_snapshot(&mut self, instrument: &str, data: &str) {
        self.snapshots.insert(instrument.to_owned(), data.to_owned());
    }

    /// Refuses connects from now on.
    pub fn refuse_connects(&mut self) {
        self.listener = None;
    }

    /// Accepts a connection, and answers all that has arrived.
    pub fn work(&mut self) {
        if self.script.is_silent {
            return;
        }
        if let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
            stream.set_nonblocking(true).expect("a socket can be polled");
            self.subscribed.clear();
            self.link = ExchangeLink::Shaking(Box::new(ServerHandshake::start(stream, NoCallback, None)));
        }
        self.link = match std::mem::replace(&mut self.link, ExchangeLink::Down) {
            ExchangeLink::Shaking(shaking) => match shaking.handshake() {
                Ok(socket) => ExchangeLink::Open(Box::new(socket)),
                Err(HandshakeError::Interrupted(shaking)) => ExchangeLink::Shaking(Box::new(shaking)),
                Err(HandshakeError::Failure(_)) => ExchangeLink::Down,
            },
            link => link,
        };
        while let Some(text) = self.receive() {
            self.answer(&text);
        }
    }

    /// Sends a text frame.
    pub fn send(&mut self, text: &str) {
        self.send_message(Message::text(text));
    }

    /// Sends a binary frame.
    pub fn send_binary(&mut self, bytes: &[u8]) {
        self.send_message(Message::from(bytes));
    }

    /// Sends bytes as they are: whole frames, or parts of them.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let ExchangeLink::Open(socket) = &mut self.link else { return };
        let _ = socket.flush();
        // The bytes fit any socket's buffer, and the feed reports a connection that has ended.
        let _ = socket.get_mut().write_all(bytes);
    }

    /// Acknowledges a subscription.
    pub fn acknowledge(&mut self, channel: &str, instrument: &str) {
        self.send(&format!(
            r#"{{"event":"subscribe","arg":{{"channel":"{channel}","instId":"{instrument}"}},"connId":"a4d3ae55"}}"#
        ));
    }

    /// Ends the connection without a close frame.
    pub fn cut(&mut self) {
        self.link = ExchangeLink::Down;
    }

    fn send_message(&mut self, message: Message) {
        let ExchangeLink::Open(socket) = &mut self.link else { return };
        match socket.send(message) {
            Ok(()) => {}
            // The rest waits in the socket's buffer.
            Err(Error::Io(why)) if why.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.link = ExchangeLink::Down,
        }
    }

    fn receive(&mut self) -> Option<String> {
        let ExchangeLink::Open(socket) = &mut self.link else { return None };
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
                Ok(_) => {}
                Err(Error::Io(why)) if why.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.link = ExchangeLink::Down;
                    return None;
                }
            }
        }
        let _ = socket.flush();
        None
    }

    fn answer(&mut self, text: &str) {
        if text == "ping" {
            self.pings += 1;
            if self.script.answers_pings {
                self.send("pong");
            }
            return;
        }
        self.requests.push(text.to_owned());
        let request: Value = serde_json::from_str(text).expect("a request is JSON");
        let operation = request["op"].as_str().expect("a request has an operation");
        for argument in request["args"].as_array().expect("a request has arguments") {
            match self.script.refusal.clone() {
                Some(refusal) => self.send(&refusal),
                None if self.script.acknowledges => self.fulfil(operation, argument),
                None => {}
            }
        }
    }

    /// Acknowledges an argument of a request, and sends the snapshot that a subscription to a book brings.
    fn fulfil(&mut self, operation: &str, argument: &Value) {
        self.send(&format!(r#"{{"event":"{operation}","arg":{argument},"connId":"a4d3ae55"}}"#));
        if operation != "subscribe" {
            return;
        }
        let is_new = self.subscribed.insert(argument.to_string());
        if is_new && self.subscribed.len() == CHANNELS {
            self.acknowledged += 1;
        }
        if argument["channel"] == "books" && self.script.sends_snapshots {
            self.sequence += 10;
            let sequence = self.sequence;
            let set = argument["instId"].as_str().and_then(|name| self.snapshots.get(name));
            let data = set.cloned().unwrap_or_else(|| format!(
                r#"{{"asks":[["2","1","0","1"]],"bids":[["1","3","0","1"]],"ts":"1597026383085","checksum":0,"seqId":{sequence},"prevSeqId":-1}}"#
            ));
            self.send(&format!(r#"{{"arg":{argument},"action":"snapshot","data":[{data}]}}"#));
        }
    }
}
