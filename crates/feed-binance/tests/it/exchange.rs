//! A scripted exchange on loopback: streams over WebSocket, and answers over HTTP. By itself it only acknowledges
//! SUBSCRIBE requests; a test sends each frame, and sets the answer of each request.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tungstenite::{Bytes, Error, Message, WebSocket, accept_hdr};

/// Time for which a stream waits for the client before it looks for frames of the test.
const TURN: Duration = Duration::from_millis(1);

/// An exchange. Its threads end with it.
pub struct ScriptedExchange {
    streams: SocketAddr,
    rest: SocketAddr,
    state: Arc<Mutex<ExchangeState>>,
}

/// Answer of the REST interface.
#[derive(Debug, Clone)]
pub struct RestReply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

#[derive(Default)]
struct ExchangeState {
    /// Connections in the order of their upgrades, ended ones too.
    connections: Vec<StreamPeer>,
    /// Targets of the REST requests.
    requests: Vec<String>,
    /// Answers for each target; the last one of a target stays.
    replies: Vec<(String, VecDeque<RestReply>)>,
    refuses_streams: bool,
    is_stopped: bool,
}

/// The exchange's end of a stream connection.
struct StreamPeer {
    target: String,
    api_key: Option<String>,
    /// Text messages of the client.
    received: Vec<String>,
    orders: Sender<StreamOrder>,
}

enum StreamOrder {
    Send(Message),
    Cut,
}

impl RestReply {
    /// Makes a good answer.
    pub fn ok(body: &str) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.to_owned() }
    }

    /// Makes a refusal.
    pub fn refused(status: u16, body: &str) -> Self {
        Self { status, ..Self::ok(body) }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl ScriptedExchange {
    /// Starts an exchange on free ports.
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(ExchangeState::default()));
        let streams = serve(&state, open_stream);
        let rest = serve(&state, answer_request);
        Self { streams, rest, state }
    }

    /// Returns the address of the streams.
    pub fn streams_url(&self) -> String {
        format!("ws://{}", self.streams)
    }

    /// Returns the address of the REST interface.
    pub fn rest_url(&self) -> String {
        format!("http://{}", self.rest)
    }

    /// Adds an answer for a target, path and query. Each answer is given once, the last one again and again; a target
    /// without an answer is unknown.
    pub fn reply(&self, target: &str, reply: RestReply) {
        let mut state = self.state();
        match state.replies.iter_mut().find(|(known, _)| known == target) {
            Some((_, replies)) => replies.push_back(reply),
            None => state.replies.push((target.to_owned(), VecDeque::from([reply]))),
        }
    }

    /// Refuses all later SUBSCRIBE requests.
    pub fn refuse_streams(&self) {
        self.state().refuses_streams = true;
    }

    /// Sends a text to the newest connection of a path.
    pub fn send(&self, path: &str, text: &str) {
        self.order(path, StreamOrder::Send(Message::text(text)));
    }

    /// Sends binary data to the newest connection of a path.
    pub fn send_binary(&self, path: &str, bytes: &[u8]) {
        self.order(path, StreamOrder::Send(Message::Binary(Bytes::copy_from_slice(bytes))));
    }

    /// Cuts the newest connection of a path.
    pub fn cut(&self, path: &str) {
        self.order(path, StreamOrder::Cut);
    }

    /// Returns the targets of all stream connections so far.
    pub fn targets(&self) -> Vec<String> {
        self.state().connections.iter().map(|peer| peer.target.clone()).collect()
    }

    /// Returns the API keys of all stream connections so far.
    pub fn api_keys(&self) -> Vec<Option<String>> {
        self.state().connections.iter().map(|peer| peer.api_key.clone()).collect()
    }

    /// Returns the text messages that clients have sent, of all connections.
    pub fn received(&self) -> Vec<String> {
        self.state().connections.iter().flat_map(|peer| peer.received.clone()).collect()
    }

    /// Returns the number of REST requests for a target.
    pub fn requests(&self, target: &str) -> usize {
        self.state().requests.iter().filter(|known| *known == target).count()
    }

    fn order(&self, path: &str, order: StreamOrder) {
        let state = self.state();
        let mut newest_first = state.connections.iter().rev();
        let peer = newest_first.find(|peer| peer.target.split('?').next() == Some(path)).expect("a connection");
        // A connection that has ended takes no order.
        let _ = peer.orders.send(order);
    }

    fn state(&self) -> MutexGuard<'_, ExchangeState> {
        lock(&self.state)
    }
}

impl Drop for ScriptedExchange {
    fn drop(&mut self) {
        let mut state = self.state();
        state.is_stopped = true;
        for peer in &state.connections {
            // A connection that has ended takes no order.
            let _ = peer.orders.send(StreamOrder::Cut);
        }
        drop(state);
        for address in [self.streams, self.rest] {
            // The listener sees one more connection, and ends.
            let _ = TcpStream::connect(address);
        }
    }
}

/// Listens on a free port, and handles each connection on a thread of its own.
fn serve(state: &Arc<Mutex<ExchangeState>>, handle: fn(TcpStream, &Mutex<ExchangeState>)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            if lock(&state).is_stopped {
                return;
            }
            let state = Arc::clone(&state);
            std::thread::spawn(move || handle(stream, &state));
        }
    });
    address
}

/// Upgrades a connection, and serves it until it ends.
fn open_stream(stream: TcpStream, state: &Mutex<ExchangeState>) {
    let (orders, taken) = channel();
    let mut number = 0;
    let Ok(mut socket) = accept_hdr(stream, UpgradeRecorder { state, orders, number: &mut number }) else { return };
    socket.get_ref().set_read_timeout(Some(TURN)).expect("a time above zero");
    while take_message(&mut socket, number, state) && follow_orders(&mut socket, &taken) {}
}

/// Takes a message of the client, if there is one; returns false if the connection has ended.
fn take_message(socket: &mut WebSocket<TcpStream>, number: usize, state: &Mutex<ExchangeState>) -> bool {
    let text = match socket.read() {
        Ok(Message::Text(text)) => text,
        Ok(_) => return true,
        Err(Error::Io(error)) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        Err(_) => return false,
    };
    let refuses_streams = {
        let mut state = lock(state);
        state.connections[number].received.push(text.to_string());
        state.refuses_streams
    };
    let request: Value = serde_json::from_str(&text).expect("a request is JSON");
    let answer = match refuses_streams {
        true => json!({ "error": { "code": 2, "msg": "Invalid request: no such stream" }, "id": request["id"] }),
        false => json!({ "result": null, "id": request["id"] }),
    };
    socket.send(Message::text(answer.to_string())).is_ok()
}

/// Sends the frames of the test; returns false if the connection has ended.
fn follow_orders(socket: &mut WebSocket<TcpStream>, orders: &Receiver<StreamOrder>) -> bool {
    orders.try_iter().all(|order| match order {
        StreamOrder::Send(message) => socket.send(message).is_ok(),
        StreamOrder::Cut => false,
    })
}

/// Answers a single request, and closes the connection.
fn answer_request(mut stream: TcpStream, state: &Mutex<ExchangeState>) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let reply = next_reply(&mut lock(state), target);
    let mut answer = format!("HTTP/1.1 {} Scripted\r\nContent-Length: {}\r\n", reply.status, reply.body.len());
    for (name, value) in &reply.headers {
        answer += &format!("{name}: {value}\r\n");
    }
    answer += &format!("Content-Type: application/json\r\nConnection: close\r\n\r\n{}", reply.body);
    // A client that has lost interest takes no answer.
    let _ = stream.write_all(answer.as_bytes());
}

fn next_reply(state: &mut ExchangeState, target: String) -> RestReply {
    let found = state.replies.iter_mut().find(|(known, _)| *known == target);
    let reply =
        found.and_then(|(_, replies)| if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() });
    state.requests.push(target);
    reply.unwrap_or_else(|| RestReply::refused(404, "unknown"))
}

fn lock(state: &Mutex<ExchangeState>) -> MutexGuard<'_, ExchangeState> {
    state.lock().expect("no thread panics with the lock")
}

/// Notes a connection before the client learns that it is open, so that a test finds the connection of a feed that is
/// up.
struct UpgradeRecorder<'a> {
    state: &'a Mutex<ExchangeState>,
    orders: Sender<StreamOrder>,
    /// Place of the connection in the exchange's state.
    number: &'a mut usize,
}

impl Callback for UpgradeRecorder<'_> {
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        let target = request.uri().to_string();
        let key = request.headers().get("X-MBX-APIKEY");
        let api_key = key.and_then(|key| key.to_str().ok()).map(str::to_owned);
        let mut state = lock(self.state);
        *self.number = state.connections.len();
        state.connections.push(StreamPeer { target, api_key, received: Vec::new(), orders: self.orders });
        Ok(response)
    }
}
