//! An exchange behind a server on loopback, with clients. The test drives all of them on its own thread.

use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::Sha256;
use tickpath_clock::{Clock, HostClock, sleep_ns, utc_ns};
use tickpath_market::{Price, Quantity, SymbolId};
use tickpath_venue_sim::Chance;
use tickpath_venue_sim_okx::OkxExchange;
use tickpath_venue_sim_web::{
    SimAccount, SimDesk, SimDeskConfig, SimInstrument, WebFaults, WebServer, WebServerConfig,
};
use tickpath_web_client::{HttpRequest, HttpResponse, HttpsClient, WebSocketClient, WebSocketConfig, WebSocketEvent};

pub const SPOT: &str = "BTC-USDT";
pub const SWAP: &str = "BTC-USDT-SWAP";
pub const FUTURES: &str = "BTC-USDT-270326";
pub const KEY: &str = "key-first";
pub const SECRET: &str = "22582BD0CFF14C41EDBF1AB98506286D";
pub const PASSPHRASE: &str = "phrase";
/// A fault that always happens.
pub const ALWAYS: Chance = Chance(1_000_000);
pub const SECOND_NS: u64 = 1_000_000_000;

/// Bound of each wait.
const TIMEOUT_NS: i64 = 30_000_000_000;

/// An exchange, its server and its clients.
pub struct Stage {
    clock: HostClock,
    server: WebServer,
    pub exchange: OkxExchange,
    sockets: Vec<Socket>,
    rest: HttpsClient,
    /// Lead of the exchange's clock.
    lead_ns: i64,
    /// Number of requests so far, for their ids.
    requests: u64,
}

/// Number of a socket.
#[derive(Debug, Clone, Copy)]
pub struct SocketId(usize);

struct Socket {
    client: WebSocketClient,
    is_up: bool,
    texts: VecDeque<String>,
    lost: Option<String>,
}

impl Stage {
    /// Opens an exchange without faults.
    pub fn open() -> Self {
        Self::with(|_| {})
    }

    /// Opens an exchange with faults.
    pub fn with(change: impl FnOnce(&mut WebFaults)) -> Self {
        let mut faults = WebFaults::none();
        change(&mut faults);
        let lead_ns = faults.clock_drift_ms * 1_000_000;
        let listen = "127.0.0.1:0".parse().expect("it is an address");
        let config = WebServerConfig { listen, tls: false, max_connections: 64, max_message_bytes: 1 << 20 };
        let server = WebServer::open(&config).expect("loopback has a free port");
        let rest = HttpsClient::new(&format!("http://{}", server.address()), None).expect("it is loopback");
        let clock = HostClock::get().expect("this host has a clock");
        let exchange = OkxExchange::new(SimDesk::new(desk_config()), faults);
        Self { clock, server, exchange, sockets: Vec::new(), rest, lead_ns, requests: 0 }
    }

    /// Returns the address of a WebSocket, or of REST.
    pub fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}{path}", self.server.address())
    }

    /// Returns the exchange's time.
    pub fn now_ns(&self) -> u64 {
        utc_ns().saturating_add_signed(self.lead_ns)
    }

    /// Moves the exchange's clock forward.
    pub fn advance(&mut self, ns: u64) {
        self.exchange.advance(ns);
        self.lead_ns += i64::try_from(ns).expect("it is a short time");
    }

    /// Moves the market of an instrument to these prices, five units each.
    pub fn quote(&mut self, instrument: &str, bid: &str, ask: &str) {
        let (at_ns, size) = (self.now_ns(), quantity("5"));
        self.exchange.desk().quote(at_ns, instrument, price(bid), size, price(ask), size);
    }

    /// Lets each part work once, and returns the amount of work.
    pub fn turn(&mut self) -> usize {
        let mut work = self.server.poll(0, &mut self.exchange);
        for Socket { client, is_up, texts, lost } in &mut self.sockets {
            let polled = client.poll(&mut |event| match event {
                WebSocketEvent::Up => *is_up = true,
                WebSocketEvent::Text(bytes, _) => texts.push_back(String::from_utf8_lossy(bytes).into_owned()),
                _ => {}
            });
            match polled {
                Ok(done) => work += done,
                Err(reason) => *lost = Some(reason.to_string()),
            }
        }
        work
    }

    /// Works until something holds, and returns it.
    pub fn wait<T>(&mut self, fact: &str, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        let began = self.clock.ticks();
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            if self.turn() == 0 {
                sleep_ns(20_000);
            }
            let waited = self.clock.ns_between(began, self.clock.ticks());
            let texts = || self.sockets.iter().map(|socket| (&socket.lost, &socket.texts)).collect::<Vec<_>>();
            assert!(waited < TIMEOUT_NS, "timed out waiting for {fact}; {:?}", texts());
        }
    }

    /// Opens a WebSocket, and waits until it is up.
    pub fn socket(&mut self, path: &str) -> SocketId {
        let config = WebSocketConfig::new(&self.url("ws", path));
        let mut client = WebSocketClient::new(config).expect("the address is in order");
        client.connect();
        self.sockets.push(Socket { client, is_up: false, texts: VecDeque::new(), lost: None });
        let id = SocketId(self.sockets.len() - 1);
        self.wait("a connection", |stage| stage.sockets[id.0].is_up.then_some(()));
        id
    }

    /// Opens a private WebSocket of the first account, and logs it in.
    pub fn private(&mut self) -> SocketId {
        let socket = self.socket("/ws/v5/private");
        self.log_in(socket);
        socket
    }

    /// Opens a private WebSocket with the channel of orders.
    pub fn trader(&mut self) -> SocketId {
        let socket = self.private();
        self.subscribe(socket, json!({"channel": "orders", "instType": "ANY"}));
        self.take(socket, |message| message["event"] == "channel-conn-count");
        socket
    }

    /// Logs the first account in.
    pub fn log_in(&mut self, socket: SocketId) {
        let argument = self.login_argument();
        self.send(socket, &json!({"op": "login", "args": [argument]}));
        self.take(socket, |message| message["event"] == "login" && message["code"] == "0");
    }

    /// Returns a login of the first account.
    pub fn login_argument(&self) -> Value {
        let timestamp = (self.now_ns() / SECOND_NS).to_string();
        let sign = sign(&format!("{timestamp}GET/users/self/verify"));
        json!({"apiKey": KEY, "passphrase": PASSPHRASE, "timestamp": timestamp, "sign": sign})
    }

    /// Subscribes to a channel, and returns the acknowledgement.
    pub fn subscribe(&mut self, socket: SocketId, argument: Value) -> Value {
        self.send(socket, &json!({"op": "subscribe", "args": [argument]}));
        self.take(socket, |message| message["event"] == "subscribe" && message["arg"] == argument)
    }

    /// Sends an operation, and returns its answer.
    pub fn operate(&mut self, socket: SocketId, operation: &str, orders: Value) -> Value {
        self.operate_with(socket, json!({"op": operation, "args": orders}))
    }

    /// Sends an operation with further fields, and returns its answer.
    pub fn operate_with(&mut self, socket: SocketId, mut request: Value) -> Value {
        self.requests += 1;
        let id = format!("r{}", self.requests);
        request["id"] = json!(id);
        self.send(socket, &request);
        self.take(socket, |message| message["id"] == id)
    }

    /// Places an order, and returns its id.
    pub fn place(&mut self, socket: SocketId, order: Value) -> String {
        let answer = self.operate(socket, "order", json!([order]));
        assert_eq!(answer["code"], "0", "{answer}");
        text(&answer["data"][0]["ordId"])
    }

    /// Returns the next row of the channel of orders.
    pub fn order_push(&mut self, socket: SocketId) -> Value {
        let message = self.take(socket, |message| message["arg"]["channel"] == "orders" && message["data"].is_array());
        message["data"][0].clone()
    }

    pub fn send(&mut self, socket: SocketId, message: &Value) {
        self.send_text(socket, &message.to_string());
    }

    pub fn send_text(&mut self, socket: SocketId, text: &str) {
        self.sockets[socket.0].client.send_text(text).expect("the connection is up");
    }

    /// Waits for a text.
    pub fn take_text(&mut self, socket: SocketId, is_wanted: impl Fn(&str) -> bool) -> String {
        self.wait("a text", |stage| {
            let texts = &mut stage.sockets[socket.0].texts;
            texts.iter().position(|text| is_wanted(text)).and_then(|index| texts.remove(index))
        })
    }

    /// Waits for a message, and leaves all others.
    pub fn take(&mut self, socket: SocketId, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let text = self.take_text(socket, |text| serde_json::from_str(text).is_ok_and(|message| is_wanted(&message)));
        serde_json::from_str(&text).expect("it was read before")
    }

    /// Returns the messages that have arrived and that nothing has taken.
    pub fn left(&self, socket: SocketId) -> Vec<Value> {
        self.sockets[socket.0].texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
    }

    /// Waits for the end of a connection, and returns its reason.
    pub fn lost(&mut self, socket: SocketId) -> String {
        self.wait("the end of a connection", |stage| stage.sockets[socket.0].lost.clone())
    }

    /// Sends a public request, and returns the rows of its answer.
    pub fn public(&mut self, path: &str) -> Value {
        let response = self.fetch(HttpRequest::get(path));
        rows(&response)
    }

    /// Sends a signed request, and returns its answer.
    pub fn signed(&mut self, method: &'static str, path: &str, body: &str) -> HttpResponse {
        let request = self.signed_request(method, path, body);
        self.fetch(request)
    }

    /// Sends a signed request that reads, and returns the rows of its answer.
    pub fn get(&mut self, path: &str) -> Value {
        let response = self.signed("GET", path, "");
        rows(&response)
    }

    /// Sends a signed request with a body, and returns its answer.
    pub fn post(&mut self, path: &str, body: &Value) -> Value {
        let response = self.signed("POST", path, &body.to_string());
        body_of(&response)
    }

    /// Returns a signed request of the first account.
    pub fn signed_request(&self, method: &'static str, path: &str, body: &str) -> HttpRequest {
        let ms = i64::try_from(self.now_ns() / 1_000_000).expect("it is a time of this age");
        let timestamp = Timestamp::from_millisecond(ms).expect("it is a time of this age").to_string();
        let sign = sign(&format!("{timestamp}{method}{path}{body}"));
        let headers = [
            ("OK-ACCESS-KEY", KEY),
            ("OK-ACCESS-SIGN", &sign),
            ("OK-ACCESS-TIMESTAMP", &timestamp),
            ("OK-ACCESS-PASSPHRASE", PASSPHRASE),
            ("x-simulated-trading", "1"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        HttpRequest { method, path_and_query: path.to_owned(), headers, body: body.to_owned() }
    }

    /// Sends a request, and returns its answer.
    pub fn fetch(&mut self, request: HttpRequest) -> HttpResponse {
        let mut pending = self.rest.start(request);
        self.wait("an HTTP answer", |_| pending.try_take()).expect("the server answers")
    }
}

/// Returns the configuration of the desk: quotes of 99.9 and 100.1, with five units each.
pub fn desk_config() -> SimDeskConfig {
    let spot = SimInstrument {
        name: SPOT.to_owned(),
        symbol: SymbolId(1),
        code: 70,
        base: "BTC".to_owned(),
        quote: "USDT".to_owned(),
        tick: price("0.1"),
        lot: quantity("0.001"),
        minimum: quantity("0.002"),
        is_derivative: false,
        contract_value: quantity("1"),
        bid: price("99.9"),
        ask: price("100.1"),
        size: quantity("5"),
    };
    let derivative = |name: &str, symbol, code| SimInstrument {
        name: name.to_owned(),
        symbol: SymbolId(symbol),
        code,
        lot: quantity("1"),
        minimum: quantity("1"),
        is_derivative: true,
        contract_value: quantity("0.01"),
        ..spot.clone()
    };
    let account = |name: &str| SimAccount {
        name: name.to_owned(),
        api_key: format!("key-{name}"),
        secret: SECRET.to_owned(),
        passphrase: PASSPHRASE.to_owned(),
        balances: vec![("BTC".to_owned(), quantity("10")), ("USDT".to_owned(), quantity("10000"))],
    };
    SimDeskConfig {
        instruments: vec![spot.clone(), derivative(SWAP, 2, 80), derivative(FUTURES, 3, 90)],
        accounts: vec![account("first"), account("second")],
        maker_fee_e6: 800,
        taker_fee_e6: 1_000,
    }
}

/// Returns a limit order for spot.
pub fn limit(side: &str, price: &str, size: &str) -> Value {
    json!({"instId": SPOT, "tdMode": "cash", "side": side, "ordType": "limit", "px": price, "sz": size})
}

/// Returns an object with further fields, or with others of the same names.
pub fn with(mut fields: Value, further: &Value) -> Value {
    for (name, value) in further.as_object().expect("it is an object") {
        fields[name] = value.clone();
    }
    fields
}

/// Returns a text of an answer.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Returns these fields of an object.
pub fn fields<const N: usize>(object: &Value, names: [&str; N]) -> [String; N] {
    names.map(|name| text(&object[name]))
}

pub fn price(text: &str) -> Price {
    text.parse().expect("it is a decimal")
}

pub fn quantity(text: &str) -> Quantity {
    text.parse().expect("it is a decimal")
}

/// Returns the signature of a text of the first account.
pub fn sign(text: &str) -> String {
    let mut code = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key may have any length");
    code.update(text.as_bytes());
    STANDARD.encode(code.finalize().into_bytes())
}

/// Returns the body of an answer.
pub fn body_of(response: &HttpResponse) -> Value {
    let text = String::from_utf8_lossy(&response.body);
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

fn rows(response: &HttpResponse) -> Value {
    let body = body_of(response);
    assert_eq!((response.status, &body["code"]), (200, &json!("0")), "{body}");
    body["data"].clone()
}
