//! A scripted exchange on loopback. By itself it answers the steps of a connect; a test sets the answers to all other
//! requests, or sends each frame.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tickpath_clock::utc_ns;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tungstenite::http::{HeaderValue, StatusCode};
use tungstenite::{Error, Message, WebSocket, accept_hdr};

/// Time for which a connection waits for the client before it looks for frames of the test.
const TURN: Duration = Duration::from_millis(1);

/// An exchange. Its threads end with it.
pub struct ScriptedExchange {
    address: SocketAddr,
    state: Arc<Mutex<ExchangeState>>,
}

/// Answer to a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Success, with this result.
    Ok(Value),
    /// Refusal with a status and an error.
    Refused(u64, Value),
    /// No answer.
    Silence,
}

/// A request as the exchange received it.
#[derive(Debug, Clone)]
pub struct Received {
    /// The text of the request.
    pub text: String,
    /// The request as JSON.
    pub json: Value,
}

#[derive(Default)]
struct ExchangeState {
    /// Connections in the order of their upgrades, ended ones too.
    connections: Vec<Sender<Order>>,
    received: Vec<Received>,
    /// Answers by method: each is given once.
    replies: HashMap<String, VecDeque<Reply>>,
    clock_lead_ms: i64,
    /// Refusals of the next upgrades: status, and the pause that is demanded.
    upgrade_refusals: VecDeque<(StatusCode, &'static str)>,
    /// Upgrades that were refused.
    refused_upgrades: usize,
    is_stopped: bool,
}

enum Order {
    Send(String),
    Cut,
}

impl Reply {
    /// Makes a refusal with a code and a text.
    pub fn refused(status: u64, code: i64, text: &str) -> Self {
        Self::Refused(status, json!({ "code": code, "msg": text }))
    }
}

impl Received {
    /// Returns the method.
    pub fn method(&self) -> &str {
        self.json["method"].as_str().unwrap_or_default()
    }

    /// Returns a parameter as text.
    pub fn param(&self, name: &str) -> String {
        match &self.json["params"][name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl ScriptedExchange {
    /// Starts an exchange on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(Mutex::new(ExchangeState::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                if lock(&shared).is_stopped {
                    return;
                }
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }

    /// Returns the address of the WebSocket API.
    pub fn url(&self) -> String {
        format!("ws://{}/ws-api/v3?returnRateLimits=false", self.address)
    }

    /// Adds an answer for a method. Each answer is given once; without one the steps of a connect are answered with
    /// nothing to report, and other requests not at all.
    pub fn reply(&self, method: &str, reply: Reply) {
        self.state().replies.entry(method.to_owned()).or_default().push_back(reply);
    }

    /// Sets the lead of the exchange's clock over this host's.
    pub fn set_clock_lead_ms(&self, lead_ms: i64) {
        self.state().clock_lead_ms = lead_ms;
    }

    /// Refuses the next connection with a status and this `Retry-After`.
    pub fn refuse_upgrade(&self, status: u16, retry_after: &'static str) {
        let status = StatusCode::from_u16(status).expect("a status of HTTP");
        self.state().upgrade_refusals.push_back((status, retry_after));
    }

    /// Returns the number of connections that were refused so far.
    pub fn refused_upgrades(&self) -> usize {
        self.state().refused_upgrades
    }

    /// Sends a text to the newest connection.
    pub fn send(&self, text: &str) {
        self.order(Order::Send(text.to_owned()));
    }

    /// Answers a request with success.
    pub fn answer(&self, request: &Received, result: Value) {
        self.send(&json!({ "id": request.json["id"], "status": 200, "result": result }).to_string());
    }

    /// Answers a request with a refusal.
    pub fn refuse(&self, request: &Received, status: u64, code: i64, text: &str) {
        let error = json!({ "code": code, "msg": text });
        self.send(&json!({ "id": request.json["id"], "status": status, "error": error }).to_string());
    }

    /// Cuts the newest connection.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    /// Returns all requests so far, of all connections.
    pub fn received(&self) -> Vec<Received> {
        self.state().received.clone()
    }

    /// Returns the requests of a method so far.
    pub fn of_method(&self, method: &str) -> Vec<Received> {
        self.received().into_iter().filter(|request| request.method() == method).collect()
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.state().connections.len()
    }

    fn order(&self, order: Order) {
        if let Some(newest) = self.state().connections.last() {
            // A connection that has ended takes no order.
            let _ = newest.send(order);
        }
    }

    fn state(&self) -> MutexGuard<'_, ExchangeState> {
        lock(&self.state)
    }
}

impl Drop for ScriptedExchange {
    fn drop(&mut self) {
        let mut state = self.state();
        state.is_stopped = true;
        for connection in &state.connections {
            // A connection that has ended takes no order.
            let _ = connection.send(Order::Cut);
        }
        drop(state);
        // The listener sees one more connection, and ends.
        let _ = TcpStream::connect(self.address);
    }
}

/// Upgrades a connection, and serves it until it ends.
fn serve(stream: TcpStream, state: &Mutex<ExchangeState>) {
    let Ok(mut socket) = accept_hdr(stream, UpgradeCheck { state }) else { return };
    socket.get_ref().set_read_timeout(Some(TURN)).expect("a time above zero");
    let (orders, taken) = channel();
    lock(state).connections.push(orders);
    while take_request(&mut socket, state) && follow_orders(&mut socket, &taken) {}
}

/// Refuses an upgrade, if the test has asked for that.
struct UpgradeCheck<'a> {
    state: &'a Mutex<ExchangeState>,
}

impl Callback for UpgradeCheck<'_> {
    fn on_request(self, _request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        let mut state = lock(self.state);
        let Some((status, retry_after)) = state.upgrade_refusals.pop_front() else { return Ok(response) };
        state.refused_upgrades += 1;
        let mut refusal = ErrorResponse::new(None);
        *refusal.status_mut() = status;
        refusal.headers_mut().insert("retry-after", HeaderValue::from_static(retry_after));
        Err(refusal)
    }
}

/// Takes a request of the client, if there is one; returns false if the connection has ended.
fn take_request(socket: &mut WebSocket<TcpStream>, state: &Mutex<ExchangeState>) -> bool {
    let text = match socket.read() {
        Ok(Message::Text(text)) => text.to_string(),
        Ok(_) => return true,
        Err(Error::Io(error)) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        Err(_) => return false,
    };
    let json: Value = serde_json::from_str(&text).expect("a request is JSON");
    let request = Received { text, json };
    let reply = lock(state).reply_to(&request);
    let answer = match reply {
        Reply::Ok(result) => json!({ "id": request.json["id"], "status": 200, "result": result }),
        Reply::Refused(status, error) => json!({ "id": request.json["id"], "status": status, "error": error }),
        Reply::Silence => return true,
    };
    socket.send(Message::text(answer.to_string())).is_ok()
}

/// Sends the frames of the test; returns false if the connection has ended.
fn follow_orders(socket: &mut WebSocket<TcpStream>, orders: &Receiver<Order>) -> bool {
    orders.try_iter().all(|order| match order {
        Order::Send(text) => socket.send(Message::text(text)).is_ok(),
        Order::Cut => false,
    })
}

impl ExchangeState {
    fn reply_to(&mut self, request: &Received) -> Reply {
        self.received.push(request.clone());
        if let Some(reply) = self.replies.get_mut(request.method()).and_then(VecDeque::pop_front) {
            return reply;
        }
        match request.method() {
            "time" => {
                let host_ms = i64::try_from(utc_ns() / 1_000_000).expect("a time of this age");
                Reply::Ok(json!({ "serverTime": host_ms + self.clock_lead_ms }))
            }
            "session.logon" => {
                Reply::Ok(json!({ "apiKey": request.json["params"]["apiKey"], "userDataStream": false }))
            }
            "userDataStream.subscribe" | "userDataStream.subscribe.signature" => {
                Reply::Ok(json!({ "subscriptionId": 0 }))
            }
            "openOrders.status" | "myTrades" | "allOrders" => Reply::Ok(json!([])),
            _ => Reply::Silence,
        }
    }
}

fn lock(state: &Mutex<ExchangeState>) -> MutexGuard<'_, ExchangeState> {
    state.lock().expect("no thread panics with the lock")
}
