//! OKX on loopback: its private channels and its REST interface, by a script. Its test polls it, so that each step
//! happens when the test wants it, and no thread has to be ended.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;
use tickpath_clock::utc_ns;
use tungstenite::handshake::MidHandshake;
use tungstenite::handshake::server::NoCallback;
use tungstenite::{Error, HandshakeError, Message, ServerHandshake, WebSocket};

/// Path of the exchange's time.
pub const TIME: &str = "/api/v5/public/time";
/// An empty answer of REST.
pub const NO_ROWS: &str = r#"{"code":"0","msg":"","data":[]}"#;
/// The answer of REST for an order that OKX does not have.
pub const NO_SUCH_ORDER: &str = r#"{"code":"51603","msg":"Order does not exist","data":[]}"#;

/// Behaviour of the exchange.
#[derive(Debug, Clone)]
pub struct OkxScript {
    /// Sends this text instead of an acknowledgement of the login.
    pub login_refusal: Option<String>,
    /// Acknowledges the subscription.
    pub acknowledges: bool,
    /// Answers orders, amendments and cancels: with this code and text, or not at all.
    pub answer: Option<(&'static str, &'static str)>,
    /// Answers `ping` with `pong`.
    pub answers_pings: bool,
    /// Difference of the exchange's clock, in milliseconds.
    pub clock_ms: i64,
    /// Refuses the WebSocket's handshake with this status.
    pub handshake_refusal: Option<u16>,
    /// Answers of REST: begin of the path, status and body. The last fitting one counts.
    pub rest: Vec<(&'static str, u16, String)>,
    /// Answers of REST before all others, by the path and its query.
    pub list: fn(&str) -> Option<String>,
}

/// A request over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpCall {
    pub method: String,
    pub target: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl HttpCall {
    /// Returns the value of a header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }
}

/// An exchange with one connection at a time.
pub struct ScriptedOkx {
    web: TcpListener,
    http: TcpListener,
    link: OkxLink,
    peers: Vec<(TcpStream, Vec<u8>)>,
    script: OkxScript,
    texts: Vec<String>,
    calls: Vec<HttpCall>,
    pings: usize,
}

enum OkxLink {
    Down,
    Refusing(TcpStream, u16),
    Shaking(Box<MidHandshake<ServerHandshake<TcpStream, NoCallback>>>),
    Open(Box<WebSocket<TcpStream>>),
}

impl ScriptedOkx {
    /// Listens on free ports, acknowledges and accepts everything, and has no orders.
    pub fn start() -> Self {
        let [web, http] = [(); 2].map(|()| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
            listener.set_nonblocking(true).expect("a listener can be polled");
            listener
        });
        let script = OkxScript {
            login_refusal: None,
            acknowledges: true,
            answer: Some(("0", "")),
            answers_pings: true,
            clock_ms: 0,
            handshake_refusal: None,
            rest: vec![
                ("/api/v5/trade/", 200, NO_ROWS.to_owned()),
                ("/api/v5/trade/order?", 200, NO_SUCH_ORDER.to_owned()),
            ],
            list: |_| None,
        };
        let (link, peers, texts, calls) = (OkxLink::Down, Vec::new(), Vec::new(), Vec::new());
        Self { web, http, link, peers, script, texts, calls, pings: 0 }
    }

    /// Returns the addresses of the private channels and of REST.
    pub fn urls(&self) -> (String, String) {
        let [web, http] = [&self.web, &self.http].map(|listener| listener.local_addr().expect("it listens"));
        (format!("ws://{web}/ws/v5/private"), format!("http://{http}"))
    }

    /// Returns the behaviour, which can be changed at any time.
    pub fn script(&mut self) -> &mut OkxScript {
        &mut self.script
    }

    /// Sets the answer of REST to paths with this begin.
    pub fn answer_rest(&mut self, path: &'static str, body: &str) {
        self.script.rest.push((path, 200, body.to_owned()));
    }

    /// Returns the texts of all connections but pings, in their order.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the texts about orders.
    pub fn requests(&self) -> Vec<Value> {
        let all = self.texts.iter().map(|text| serde_json::from_str(text).expect("a text is JSON"));
        all.filter(|request: &Value| !matches!(request["op"].as_str(), Some("login" | "subscribe"))).collect()
    }

    /// Returns the requests over HTTP to paths with this begin.
    pub fn calls(&self, path: &str) -> Vec<HttpCall> {
        self.calls.iter().filter(|call| call.target.starts_with(path)).cloned().collect()
    }

    /// Returns the number of pings of all connections.
    pub fn pings(&self) -> usize {
        self.pings
    }

    /// Accepts connections, and answers all that has arrived.
    pub fn work(&mut self) {
        self.work_over_http();
        if let Ok((stream, _)) = self.web.accept() {
            stream.set_nonblocking(true).expect("a socket can be polled");
            self.link = match self.script.handshake_refusal {
                Some(status) => OkxLink::Refusing(stream, status),
                None => OkxLink::Shaking(Box::new(ServerHandshake::start(stream, NoCallback, None))),
            };
        }
        self.link = match std::mem::replace(&mut self.link, OkxLink::Down) {
            OkxLink::Refusing(stream, status) => refuse_handshake(stream, status),
            OkxLink::Shaking(shaking) => match shaking.handshake() {
                Ok(socket) => OkxLink::Open(Box::new(socket)),
                Err(HandshakeError::Interrupted(shaking)) => OkxLink::Shaking(Box::new(shaking)),
                Err(HandshakeError::Failure(_)) => OkxLink::Down,
            },
            link => link,
        };
        while let Some(text) = self.receive() {
            self.answer(&text);
        }
    }

    /// Sends a text frame.
    pub fn send(&mut self, text: &str) {
        let OkxLink::Open(socket) = &mut self.link else { return };
        match socket.send(Message::text(text)) {
            Ok(()) => {}
            // The rest waits in the socket's buffer.
            Err(Error::Io(why)) if why.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.link = OkxLink::Down,
        }
    }

    /// Answers a request about an order.
    pub fn answer_request(&mut self, id: &str, operation: &str, code: &str, text: &str) {
        let whole = if code == "0" { "0" } else { "1" };
        self.send(&format!(
            r#"{{"id":"{id}","op":"{operation}","data":[{{"clOrdId":"","ordId":"12345689","tag":"","ts":"1695190491421","sCode":"{code}","sMsg":"{text}","subCode":""}}],"code":"{whole}","msg":"","inTime":"1695190491421339","outTime":"1695190491423240"}}"#
        ));
    }

    /// Acknowledges the subscription.
    pub fn acknowledge(&mut self) {
        self.send(r#"{"event":"subscribe","arg":{"channel":"orders","instType":"ANY"},"connId":"a4d3ae55"}"#);
    }

    /// Ends the connection without a close frame.
    pub fn cut(&mut self) {
        self.link = OkxLink::Down;
    }

    fn receive(&mut self) -> Option<String> {
        let OkxLink::Open(socket) = &mut self.link else { return None };
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
                Ok(_) => {}
                Err(Error::Io(why)) if why.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.link = OkxLink::Down;
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
        self.texts.push(text.to_owned());
        let request: Value = serde_json::from_str(text).expect("a text is JSON");
        match (request["op"].as_str().expect("a request has an operation"), self.script.login_refusal.clone()) {
            ("login", Some(refusal)) => self.send(&refusal),
            ("login", None) => self.send(r#"{"event":"login","code":"0","msg":"","connId":"a4d3ae55"}"#),
            ("subscribe", _) if self.script.acknowledges => self.acknowledge(),
            ("subscribe", _) => {}
            (operation, _) => {
                if let Some((code, text)) = self.script.answer {
                    let id = request["id"].as_str().expect("a request has an id").to_owned();
                    self.answer_request(&id, operation, code, text);
                }
            }
        }
    }

    fn work_over_http(&mut self) {
        while let Ok((stream, _)) = self.http.accept() {
            stream.set_nonblocking(true).expect("a socket can be polled");
            self.peers.push((stream, Vec::new()));
        }
        for (mut stream, mut received) in std::mem::take(&mut self.peers) {
            let mut room = [0; 4096];
            let is_open = match stream.read(&mut room) {
                Ok(0) => false,
                Ok(bytes) => {
                    received.extend_from_slice(&room[..bytes]);
                    true
                }
                Err(why) => why.kind() == ErrorKind::WouldBlock,
            };
            match read_call(&received) {
                Some(call) => self.answer_call(&mut stream, call),
                None if is_open => self.peers.push((stream, received)),
                None => {}
            }
        }
    }

    fn answer_call(&mut self, stream: &mut TcpStream, call: HttpCall) {
        let fitting = self.script.rest.iter().rev().find(|(path, ..)| call.target.starts_with(path));
        let (status, body) = match ((self.script.list)(&call.target), fitting) {
            (Some(body), _) => (200, body),
            (None, Some((_, status, body))) => (*status, body.clone()),
            (None, None) if call.target == TIME => {
                let ms = (utc_ns() / 1_000_000).saturating_add_signed(self.script.clock_ms);
                (200, format!(r#"{{"code":"0","msg":"","data":[{{"ts":"{ms}"}}]}}"#))
            }
            (None, None) => (404, "<html>".to_owned()),
        };
        self.calls.push(call);
        let length = body.len();
        // The client reads on a thread of its own.
        stream.set_nonblocking(false).expect("a socket can be waited for");
        let _ = write!(
            stream,
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
    }
}

/// Refuses a handshake once it has arrived.
fn refuse_handshake(mut stream: TcpStream, status: u16) -> OkxLink {
    match stream.read(&mut [0; 4096]) {
        Err(why) if why.kind() == ErrorKind::WouldBlock => OkxLink::Refusing(stream, status),
        _ => {
            let _ = write!(stream, "HTTP/1.1 {status} Refused\r\ncontent-length: 0\r\n\r\n");
            OkxLink::Down
        }
    }
}

/// Reads a request; none if it is not complete.
fn read_call(received: &[u8]) -> Option<HttpCall> {
    let text = std::str::from_utf8(received).expect("a request is text");
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let call = HttpCall { method, target, headers: lines.filter_map(header).collect(), body: body.to_owned() };
    let length: usize = call.header("content-length").parse().unwrap_or(0);
    (body.len() >= length).then_some(call)
}
