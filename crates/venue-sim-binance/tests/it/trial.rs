//! An exchange and its clients on one thread: each wait polls all of them until something is a fact.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_market::{Price, Quantity, SymbolId};
use tickpath_venue_sim_binance::BinanceExchange;
use tickpath_venue_sim_web::{SimDesk, SimDeskConfig, SimInstrument, WebFaults, WebServer, WebServerConfig};
use tickpath_web_client::{HttpRequest, HttpResponse, HttpsClient, WebSocketClient, WebSocketConfig, WebSocketEvent};

use crate::traders::{Trader, now_ms};

pub const API: &str = "/ws-api/v3";
/// Bound of each wait.
const DEADLINE_NS: i64 = 60_000_000_000;

/// An exchange with its clients.
pub struct Trial {
    server: WebServer,
    pub exchange: BinanceExchange,
    sockets: Vec<TestSocket>,
    clock: HostClock,
    requests: u64,
}

/// A client of a WebSocket.
struct TestSocket {
    client: WebSocketClient,
    /// Messages that the test has not taken.
    inbox: VecDeque<Value>,
    is_up: bool,
    pings: usize,
    lost: Option<String>,
}

impl Trial {
    pub fn open() -> Self {
        Self::with(WebFaults::none())
    }

    pub fn with(faults: WebFaults) -> Self {
        let config = SimDeskConfig {
            instruments: instruments(),
            accounts: Trader::accounts(),
            maker_fee_e6: 1_000,
            taker_fee_e6: 1_000,
        };
        let listen = "127.0.0.1:0".parse().expect("an address");
        let server = WebServerConfig { listen, tls: false, max_connections: 64, max_message_bytes: 1 << 20 };
        Self {
            server: WebServer::open(&server).expect("a server"),
            exchange: BinanceExchange::new(SimDesk::new(config), faults),
            sockets: Vec::new(),
            clock: HostClock::get().expect("a clock"),
            requests: 0,
        }
    }

    /// Returns the exchange's address with this scheme.
    pub fn base(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.server.address())
    }

    /// Moves the market of BTCUSDT.
    pub fn quote(&mut self, bid: &str, ask: &str) {
        let at_ns = tickpath_clock::utc_ns();
        let size = Quantity::from_whole(2);
        self.exchange.desk().quote(at_ns, "BTCUSDT", price(bid), size, price(ask), size);
    }

    /// Polls everything once.
    pub fn poll(&mut self) {
        let mut done = self.server.poll(0, &mut self.exchange);
        for socket in &mut self.sockets {
            done += socket.poll();
        }
        if done == 0 {
            sleep_ns(50_000);
        }
    }

    /// Polls until something is found.
    pub fn until<T>(&mut self, what: &str, mut find: impl FnMut(&mut Self) -> Option<T>) -> T {
        let began = self.clock.ticks();
        loop {
            if let Some(found) = find(self) {
                return found;
            }
            self.poll();
            let waited_ns = self.clock.ns_between(began, self.clock.ticks());
            assert!(waited_ns < DEADLINE_NS, "no {what}: {:?}", self.inboxes());
        }
    }

    /// Opens a WebSocket, or returns why the exchange refuses it.
    pub fn attempt(&mut self, path: &str) -> Result<usize, String> {
        let url = format!("{}{path}", self.base("ws"));
        let mut client = WebSocketClient::new(WebSocketConfig::new(&url)).expect("a client");
        client.connect();
        let socket = self.sockets.len();
        self.sockets.push(TestSocket { client, inbox: VecDeque::new(), is_up: false, pings: 0, lost: None });
        self.until("connection", |trial| {
            let TestSocket { is_up, lost, .. } = &trial.sockets[socket];
            match lost {
                Some(why) => Some(Err(why.clone())),
                None => is_up.then_some(Ok(socket)),
            }
        })
    }

    pub fn connect(&mut self, path: &str) -> usize {
        self.attempt(path).expect("the exchange accepts the connection")
    }

    /// Sends a text.
    pub fn send(&mut self, socket: usize, text: &str) {
        self.sockets[socket].client.send_text(text).expect("the connection is up");
    }

    /// Sends a request of the WebSocket API, and waits for its answer.
    pub fn call(&mut self, socket: usize, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(socket, &json!({ "id": id, "method": method, "params": params }).to_string());
        self.message(socket, method, |message| message["id"] == json!(id))
    }

    /// As [`Self::call`], and returns the result.
    pub fn result(&mut self, socket: usize, method: &str, params: Value) -> Value {
        let answer = self.call(socket, method, params);
        assert_eq!(answer["status"], 200, "{method}: {answer}");
        answer["result"].clone()
    }

    /// As [`Self::call`], and returns status and code of the error.
    pub fn refusal(&mut self, socket: usize, method: &str, params: Value) -> (u64, i64) {
        let answer = self.call(socket, method, params);
        let (status, code) = (answer["status"].as_u64(), answer["error"]["code"].as_i64());
        (status.unwrap_or_default(), code.unwrap_or_else(|| panic!("{method} is not refused: {answer}")))
    }

    /// Waits for a message, and takes it.
    pub fn message(&mut self, socket: usize, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        self.until(what, |trial| {
            let TestSocket { inbox, lost, .. } = &mut trial.sockets[socket];
            let place = inbox.iter().position(&is_it);
            assert!(place.is_some() || lost.is_none(), "no {what}: {lost:?}");
            place.and_then(|place| inbox.remove(place))
        })
    }

    /// Waits for the next event of an account with this name, and takes it without its envelope.
    pub fn event(&mut self, socket: usize, name: &str) -> Value {
        self.message(socket, name, |message| message["event"]["e"] == json!(name))["event"].clone()
    }

    /// Waits for the next message of a stream, and takes it without its envelope.
    pub fn stream(&mut self, socket: usize, name: &str) -> Value {
        self.message(socket, name, |message| message["stream"] == json!(name))["data"].clone()
    }

    /// Takes all messages that have arrived.
    pub fn take_inbox(&mut self, socket: usize) -> Vec<Value> {
        self.sockets[socket].inbox.drain(..).collect()
    }

    /// Waits for the end of a connection, and returns its reason.
    pub fn until_lost(&mut self, socket: usize) -> String {
        self.until("end of the connection", |trial| trial.sockets[socket].lost.clone())
    }

    /// Returns the number of pings so far.
    pub fn pings(&self, socket: usize) -> usize {
        self.sockets[socket].pings
    }

    /// Sends an HTTP request, and waits for its response.
    pub fn http(&mut self, request: HttpRequest) -> HttpResponse {
        let client = HttpsClient::new(&self.base("http"), None).expect("a client");
        let mut pending = client.start(request);
        self.until("response", |_| pending.try_take()).expect("a response")
    }

    /// Sends a signed request of the REST API. Returns its status and its answer.
    pub fn rest(&mut self, trader: Trader, method: &'static str, path: &str, params: &[(&str, &str)]) -> (u16, Value) {
        let mut query: String = params.iter().map(|(name, value)| format!("{name}={value}&")).collect();
        query += &format!("timestamp={}", now_ms());
        let signature = trader.sign(&query).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let response = self.http(HttpRequest {
            method,
            path_and_query: format!("{path}?{query}&signature={signature}"),
            headers: vec![("X-MBX-APIKEY".to_owned(), trader.api_key().to_owned())],
            body: String::new(),
        });
        (response.status, serde_json::from_slice(&response.body).expect("JSON"))
    }

    fn inboxes(&self) -> Vec<&VecDeque<Value>> {
        self.sockets.iter().map(|socket| &socket.inbox).collect()
    }
}

impl TestSocket {
    fn poll(&mut self) -> usize {
        let Self { client, inbox, is_up, pings, lost } = self;
        let polled = client.poll(&mut |event| match event {
            WebSocketEvent::Up => *is_up = true,
            WebSocketEvent::Text(text, _) => inbox.push_back(serde_json::from_slice(text).expect("JSON")),
            WebSocketEvent::Ping => *pings += 1,
            WebSocketEvent::Binary(..) | WebSocketEvent::Pong => {}
        });
        polled.unwrap_or_else(|why| {
            *lost = Some(why.to_string());
            1
        })
    }
}

/// Returns the parameters of a limit order of BTCUSDT.
pub fn limit(side: &str, price: &str, quantity: &str) -> Value {
    json!({
        "symbol": "BTCUSDT", "side": side, "type": "LIMIT", "timeInForce": "GTC", "price": price, "quantity": quantity,
    })
}

/// Returns parameters with others added or replaced.
pub fn with(mut params: Value, more: &[(&str, &str)]) -> Value {
    for (name, value) in more {
        params[*name] = json!(value);
    }
    params
}

/// Returns parameters without one of them.
pub fn without(mut params: Value, name: &str) -> Value {
    params.as_object_mut().expect("parameters are an object").remove(name);
    params
}

/// Asserts that an object has these fields.
pub fn assert_fields(object: &Value, fields: &Value) {
    for (name, value) in fields.as_object().expect("fields") {
        assert_eq!(&object[name], value, "{name} of {object}");
    }
}

pub fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

pub fn instruments() -> Vec<SimInstrument> {
    let instrument = |name: &str, code, base: &str, bid: &str, ask: &str| SimInstrument {
        name: name.to_owned(),
        symbol: SymbolId(code),
        code: code.into(),
        base: base.to_owned(),
        quote: "USDT".to_owned(),
        tick: price("0.01"),
        lot: "0.00001".parse().expect("a quantity"),
        minimum: "0.00001".parse().expect("a quantity"),
        is_derivative: false,
        contract_value: Quantity::from_whole(1),
        bid: price(bid),
        ask: price(ask),
        size: Quantity::from_whole(2),
    };
    vec![instrument("BTCUSDT", 1, "BTC", "60000", "60001"), instrument("ETHUSDT", 2, "ETH", "3000", "3000.5")]
}
