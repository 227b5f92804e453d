//! A desk at an exchange whose faults never stop, while its OMS, its connections and the exchange's servers are killed in
//! turn. The orders of the exchange survive, as those of a real one do, so that its list shows in the end which fill the
//! OMS has lost or booked twice, and which order was sent twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use serde_json::Value;
use tickpath_clock::{Clock, HostClock, sleep_ns, utc_ns};
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, NewOrder, OrdStatus, OrderType, Price, Quantity, ReplaceOrder,
    Request, Side, SymbolId,
};
use tickpath_oms_client::{Client, ClientError, ClientEvent, Config, Since};
use tickpath_oms_protocol::LogonRejectReason;
use tickpath_venue_sim_binance::BinanceExchange;
use tickpath_venue_sim_okx::OkxExchange;
use tickpath_venue_sim_web::{
    ConnectionId, DeskFill, SimAccount, SimDesk, SimDeskConfig, SimInstrument, WebFaults, WebServer, WebServerConfig,
    WebService,
};

use crate::desk::{Desk, connect};
use crate::exchange_as::PriceTopic;
use crate::logs::until;

/// Number of kills at each exchange, and in a long run.
const KILLS: u64 = 9;
const SOAK_KILLS: u64 = 200;
/// Orders of the trader that are open at once.
const OPEN: usize = 6;
/// Time limit for the end of all orders, in nanoseconds.
const PATIENCE_NS: i64 = 600_000_000_000;
/// Pause between two cancels of an order that stays open, in nanoseconds.
const CANCEL_NS: i64 = 300_000_000;
const SYMBOL: SymbolId = SymbolId(1);
const QUOTES: [&str; 2] = ["61799", "61800"];
const API_KEY: &str = "TickpathTestKey00000000000000001";
const SECRET: &str = "TickpathTestSecret00000000000001";
const PASSPHRASE: &str = "TickpathTest1";

#[test]
fn kills_at_okx_lose_no_fill_and_send_nothing_twice() {
    check_kills(Protocol::Okx);
}

#[test]
fn kills_at_binance_lose_no_fill_and_send_nothing_twice() {
    check_kills(Protocol::Binance);
}

#[test]
fn a_line_stays_down_with_another_account_or_another_code() {
    for protocol in [Protocol::Okx, Protocol::Binance] {
        let exchange = RunningExchange::start(protocol);
        let desk = exchange.desk();
        let (journal, table) = (desk.path().join("journal"), desk.path().join("instruments.csv"));
        let account = journal.join("venue-1.account");
        let oms = desk.oms();
        oms.await_words("line 0 of venue 1 is up");
        let own = fs::read_to_string(&account).expect("the first connect has written it");
        assert!(own.starts_with(protocol.name()), "{own}");
        drop(oms);
        fs::write(&account, "okx 1\n").expect("the folder is ours");
        let oms = desk.oms();
        oms.await_words("journal of okx 1: use its key");
        fs::write(&account, own).expect("the folder is ours");
        oms.await_words("line 0 of venue 1 is up");
        if protocol == Protocol::Okx {
            drop(oms);
            let text = fs::read_to_string(&table).expect("it was fetched");
            assert!(text.contains("10001"), "{text}");
            fs::write(&table, text.replace("10001", "10002")).expect("the folder is ours");
            let oms = desk.oms();
            oms.await_words("BTC-USDT has code 10001 at OKX, 10002 in the table: fetch it anew");
        }
        exchange.stop();
    }
}

fn check_kills(protocol: Protocol) {
    let kills = if std::env::var_os("TICKPATH_SOAK").is_some() { SOAK_KILLS } else { KILLS };
    let exchange = RunningExchange::start(protocol);
    let desk = exchange.desk();
    let mut prices = PriceTopic::new(&desk.ticks());
    prices.publish(QUOTES);
    let mut oms = desk.oms();
    let (stop, config) = (Arc::new(AtomicBool::new(false)), desk.config(0));
    let trader = std::thread::spawn({
        let stop = stop.clone();
        move || ExchangeTrader::new(config).trade(&stop)
    });
    let mut dice = Dice(protocol as u64);
    for kill in 0..kills {
        sleep_ns(dice.up_to(400_000_000));
        prices.publish(QUOTES);
        match kill % 3 {
            0 => {
                drop(oms);
                oms = desk.oms();
            }
            1 => exchange.command(ServerCommand::Cut),
            _ => exchange.command(ServerCommand::Restart { away_ns: dice.up_to(300_000_000) }),
        }
    }
    stop.store(true, Ordering::Release);
    let told = trader.join().expect("the trader's list is right");
    let summary = || desk.tickpath("orders --config @/oms.toml").out;
    until(|| summary().contains("0 open (0 waiting, 0 in flight, 0 unknown)"), summary);
    let day = desk.tickpath("blotter --config @/oms.toml --json").out;
    assert_eq!(oms.interrupt().code, Some(0));
    let (orders, fills) = exchange.stop();
    let day: Value = serde_json::from_str(&day).unwrap_or_else(|e| panic!("{e}: {day}"));

    let distinct: BTreeSet<&String> = orders.iter().collect();
    assert_eq!(distinct.len(), orders.len(), "an order was sent twice: {orders:?}");
    let booked = day["fills"].as_array().expect("the blotter has a table of fills");
    let text = |fill: &Value, key: &str| fill[key].as_str().unwrap_or_default().to_owned();
    let ids: BTreeSet<[String; 2]> =
        booked.iter().map(|fill| ["order_id", "exec_id"].map(|key| fill[key].to_string())).collect();
    assert_eq!(ids.len(), booked.len(), "a fill was booked twice");
    let mut of_oms: Vec<[String; 2]> =
        booked.iter().map(|fill| ["quantity", "price"].map(|key| text(fill, key))).collect();
    let mut of_exchange: Vec<[String; 2]> =
        fills.iter().map(|fill| [fill.quantity.to_string(), fill.price.to_string()]).collect();
    of_oms.sort();
    of_exchange.sort();
    assert_eq!(of_oms, of_exchange, "fills of the OMS, and of the exchange");
    let signed = |fill: &DeskFill| if fill.side == Side::Buy { fill.quantity.0 } else { -fill.quantity.0 };
    let net = Quantity(fills.iter().map(signed).sum());
    assert_eq!(day["positions"][0]["end_quantity"], net.to_string(), "{}", day["positions"]);
    assert_eq!(told, booked.len(), "fills that the client was told");
    assert!(fills.len() as u64 > kills / 8, "too little was traded: {}", fills.len());
}

/// An exchange, by its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Okx,
    Binance,
}

impl Protocol {
    fn name(self) -> &'static str {
        if self == Self::Okx { "okx" } else { "binance" }
    }

    fn instrument(self) -> &'static str {
        if self == Self::Okx { "BTC-USDT" } else { "BTCUSDT" }
    }

    fn line(self, address: SocketAddr) -> String {
        match self {
            Self::Okx => format!("okx+ws://{address}/ws/v5/private"),
            Self::Binance => format!("binance+ws://{address}/ws-api/v3?returnRateLimits=false"),
        }
    }

    /// Returns the faults. An ambiguous answer of OKX has placed the order, one of Binance has not.
    fn faults(self) -> WebFaults {
        let chance = |text: &str| text.parse().expect("it is a chance");
        WebFaults {
            cut_after_ack: chance("0.03"),
            duplicate_push: chance("0.2"),
            late_push_ms: 15,
            ambiguous: chance("0.05"),
            ambiguous_placed: self == Self::Okx,
            zero_fill_push: chance("0.2"),
            amend_fails_later: chance("0.3"),
            // Behind each one of Binance no order leaves for ten seconds.
            rate_limited: chance(if self == Self::Okx { "0.05" } else { "0.005" }),
            html_answers: chance("0.05"),
            seed: 31,
            ..WebFaults::none()
        }
    }

    fn exchange(self) -> SimExchange {
        let instrument = SimInstrument {
            name: self.instrument().to_owned(),
            symbol: SYMBOL,
            code: 10_001,
            base: "BTC".to_owned(),
            quote: "USDT".to_owned(),
            tick: Price(10_000_000),
            lot: Quantity(1_000),
            minimum: Quantity(1_000),
            is_derivative: false,
            contract_value: Quantity::from_whole(1),
            bid: price(QUOTES[0]),
            ask: price(QUOTES[1]),
            size: Quantity::from_whole(1),
        };
        let balance = |currency: &str| (currency.to_owned(), Quantity::from_whole(1_000_000_000));
        let account = SimAccount {
            name: "test".to_owned(),
            api_key: API_KEY.to_owned(),
            secret: SECRET.to_owned(),
            passphrase: PASSPHRASE.to_owned(),
            balances: vec![balance("BTC"), balance("USDT")],
        };
        let (instruments, accounts) = (vec![instrument], vec![account]);
        let desk = SimDesk::new(SimDeskConfig { instruments, accounts, maker_fee_e6: 800, taker_fee_e6: 1_000 });
        match self {
            Self::Okx => SimExchange::Okx(Box::new(OkxExchange::new(desk, self.faults()))),
            Self::Binance => SimExchange::Binance(Box::new(BinanceExchange::new(desk, self.faults()))),
        }
    }
}

enum SimExchange {
    Okx(Box<OkxExchange>),
    Binance(Box<BinanceExchange>),
}

impl SimExchange {
    fn desk(&mut self) -> &mut SimDesk {
        match self {
            Self::Okx(exchange) => exchange.desk(),
            Self::Binance(exchange) => exchange.desk(),
        }
    }

    fn service(&mut self) -> &mut dyn WebService {
        match self {
            Self::Okx(exchange) => &mut **exchange,
            Self::Binance(exchange) => &mut **exchange,
        }
    }
}

enum ServerCommand {
    /// All connections are cut.
    Cut,
    /// All connections are cut, and nobody listens for this time.
    Restart { away_ns: u64 },
}

/// The exchange on a thread of its own, with quotes that move.
struct RunningExchange {
    protocol: Protocol,
    address: SocketAddr,
    commands: Sender<ServerCommand>,
    thread: JoinHandle<(Vec<String>, Vec<DeskFill>)>,
}

impl RunningExchange {
    fn start(protocol: Protocol) -> Self {
        let mut server = open_server(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let address = server.address();
        let (commands, received) = channel();
        let thread = std::thread::spawn(move || {
            let (mut exchange, mut dice, mut turn) = (protocol.exchange(), Dice(7), 0_u64);
            loop {
                match received.try_recv() {
                    Ok(command) => {
                        cut_all(&mut server, exchange.service());
                        if let ServerCommand::Restart { away_ns } = command {
                            drop(server);
                            sleep_ns(away_ns);
                            server = open_server(address);
                        }
                    }
                    Err(std::sync::mpsc::TryRecvError::Empty) => {}
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => break,
                }
                if turn.is_multiple_of(16) {
                    move_quotes(exchange.desk(), protocol.instrument(), &mut dice);
                }
                turn += 1;
                server.poll(1, exchange.service());
            }
            let desk = exchange.desk();
            (desk.orders(0).map(|order| order.client_id.clone()).collect(), desk.fills(0).to_vec())
        });
        Self { protocol, address, commands, thread }
    }

    fn command(&self, command: ServerCommand) {
        self.commands.send(command).expect("the exchange runs");
    }

    /// Ends the exchange. Returns the client's ids of all its orders, and its fills.
    fn stop(self) -> (Vec<String>, Vec<DeskFill>) {
        drop(self.commands);
        self.thread.join().expect("the exchange has not panicked")
    }

    /// Returns the files of a desk that trades at the exchange.
    fn desk(&self) -> Desk {
        let (desk, name) = (Desk::new(), self.protocol.name());
        let secrets = format!("key = \"{API_KEY}\"\nsecret = \"{SECRET}\"\npassphrase = \"{PASSPHRASE}\"\n");
        let file = desk.path().join("api.toml");
        fs::write(&file, secrets.replace("passphrase", if name == "okx" { "passphrase" } else { "#" }))
            .expect("the folder is ours");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
        fs::remove_file(desk.path().join("instruments.csv")).expect("init has written it");
        let table = || {
            let address = self.address;
            desk.tickpath(&format!(
                "instruments fetch {name} --url http://{address} --venue SIM --to @/instruments.csv"
            ))
        };
        // The exchange answers some requests by a page of HTML.
        let mut last = table();
        until(
            || {
                let is_there = last.code == Some(0);
                if !is_there {
                    last = table();
                }
                is_there
            },
            || "the table of instruments".to_owned(),
        );
        let line =
            format!("\nlines = [{{ url = \"{}\", credentials = \"api.toml\" }}]\n", self.protocol.line(self.address));
        desk.change("oms.toml", "\n#lines = [{ url = \"tcp://", &format!("{line}#lines = [{{ url = \"tcp://"));
        desk.change("oms.toml", "#numbered = true", "numbered = false");
        desk
    }
}

fn open_server(listen: SocketAddr) -> WebServer {
    let config = WebServerConfig { listen, tls: false, max_connections: 64, max_message_bytes: 1 << 20 };
    WebServer::open(&config).expect("the address is free")
}

/// Cuts all connections of a server, and waits until their sessions have ended.
fn cut_all(server: &mut WebServer, service: &mut dyn WebService) {
    for id in 1..=10_000 {
        server.sender().cut(ConnectionId(id));
    }
    server.poll(0, service);
}

/// Moves the quotes by up to 100 dollars, with sizes that fill most orders in parts.
fn move_quotes(desk: &mut SimDesk, instrument: &str, dice: &mut Dice) {
    let bid = Price(price("61700").0 + dice.up_to(2_000) as i64 * 10_000_000);
    let ask = Price(bid.0 + 10_000_000 * (1 + dice.up_to(20) as i64));
    let [bid_size, ask_size] = [(); 2].map(|()| Quantity(500_000 * (1 + dice.up_to(6) as i64)));
    desk.quote(utc_ns(), instrument, bid, bid_size, ask, ask_size);
}

fn price(text: &str) -> Price {
    text.parse().expect("it is a price")
}

/// A client that places, replaces and cancels orders, and counts its fills.
struct ExchangeTrader {
    clock: HostClock,
    client: Client,
    config: Config,
    next_id: u64,
    /// Orders that have not ended, with the time of their last cancel.
    open: BTreeMap<u64, Option<u64>>,
    /// The client's ids by the ids of the OMS.
    ids: BTreeMap<u64, u64>,
    /// Orders and executions of the fills: both orders of a trade have its id.
    fills: BTreeSet<(u64, u64)>,
    next_report: u64,
    dice: Dice,
}

impl ExchangeTrader {
    fn new(config: Config) -> Self {
        let config = Config { since: Since::Start, ..config };
        let client = connect(&config);
        Self {
            clock: HostClock::get().expect("this host has a clock"),
            client,
            config,
            next_id: 1,
            open: BTreeMap::new(),
            ids: BTreeMap::new(),
            fills: BTreeSet::new(),
            next_report: 0,
            dice: Dice(3),
        }
    }

    /// Trades until it is stopped and all its orders have ended. Returns the number of fills.
    fn trade(mut self, stop: &AtomicBool) -> usize {
        let mut stopped_at = None;
        loop {
            if stop.load(Ordering::Acquire) {
                if self.open.is_empty() {
                    return self.fills.len();
                }
                let since = *stopped_at.get_or_insert_with(|| self.clock.ticks());
                let waited = self.clock.ns_between(since, self.clock.ticks());
                assert!(waited < PATIENCE_NS, "orders that never end: {:?}", self.open);
                self.cancel_open();
            } else {
                self.act();
            }
            self.receive();
        }
    }

    /// Sends a request: mostly a new order, sometimes a replace or a cancel of an open one.
    fn act(&mut self) {
        let nth = self.dice.up_to(self.open.len().max(1) as u64) as usize;
        let (original, id) = (self.open.keys().copied().nth(nth).map(ClientOrderId), ClientOrderId(self.next_id));
        let (price, quantity) = (self.price(), Quantity(1_000_000 * (1 + self.dice.up_to(5) as i64)));
        let (symbol, account) = (SYMBOL, AccountId(1));
        let request = match (self.dice.up_to(10), original) {
            (0..=1, Some(original)) => {
                Request::Cancel(CancelOrder { client_order_id: id, original, account, ..CancelOrder::default() })
            }
            (2..=3, Some(original)) => {
                let replace =
                    ReplaceOrder { client_order_id: id, original, price, quantity, account, ..Default::default() };
                Request::Replace(ReplaceOrder { symbol, ..replace })
            }
            _ if self.open.len() < OPEN => {
                let side = if self.dice.up_to(2) == 0 { Side::Buy } else { Side::Sell };
                let limit = OrderType::Limit.code();
                let new = NewOrder { client_order_id: id, price, quantity, symbol, account, ..NewOrder::default() };
                Request::New(NewOrder { side: side.code(), order_type: limit, ..new })
            }
            _ => return,
        };
        if self.client.send(&request).is_ok() {
            self.next_id += 1;
            if matches!(request, Request::New(_)) {
                self.open.insert(id.0, None);
            }
        }
    }

    /// Returns a price near the quotes, on either side of them.
    fn price(&mut self) -> Price {
        Price(price("61650").0 + self.dice.up_to(3_000) as i64 * 10_000_000)
    }

    fn cancel_open(&mut self) {
        let now = self.clock.ticks();
        for (&id, canceled) in &mut self.open {
            if canceled.is_some_and(|at| self.clock.ns_between(at, now) < CANCEL_NS) {
                continue;
            }
            let (client_order_id, original) = (ClientOrderId(self.next_id), ClientOrderId(id));
            let cancel = CancelOrder { client_order_id, original, account: AccountId(1), ..CancelOrder::default() };
            if self.client.send(&Request::Cancel(cancel)).is_ok() {
                self.next_id += 1;
                *canceled = Some(now);
            }
        }
    }

    fn receive(&mut self) {
        self.client.wait(2_000_000);
        let Self { client, open, ids, fills, next_report, .. } = self;
        let polled = client.poll(|event| match event {
            ClientEvent::Report { number, report, .. } => {
                assert_eq!(number, *next_report, "reports come once, and in order");
                *next_report += 1;
                if report.exec_type == ExecType::Trade.code() {
                    let fill = (report.order_id.0, report.exec_id.0);
                    assert!(fills.insert(fill), "fill {fill:?} came twice");
                }
                if open.contains_key(&report.client_order_id.0) {
                    ids.insert(report.order_id.0, report.client_order_id.0);
                }
                let ended = [OrdStatus::Filled, OrdStatus::Canceled, OrdStatus::Rejected, OrdStatus::Expired];
                if ended.iter().any(|status| status.code() == report.status)
                    && let Some(id) = ids.get(&report.order_id.0)
                {
                    open.remove(id);
                }
            }
            ClientEvent::Denied { number, denial, .. } => {
                assert_eq!(number, *next_report, "reports come once, and in order");
                *next_report += 1;
                open.remove(&denial.client_order_id.0);
            }
            ClientEvent::NotTaken { request: Request::New(order), .. } => {
                open.remove(&order.client_order_id.0);
            }
            ClientEvent::Connected(_) | ClientEvent::Disconnected { .. } | ClientEvent::Failed { .. } => {}
            ClientEvent::NotTaken { .. } | ClientEvent::InDoubt { .. } | ClientEvent::Detail { .. } => {}
            other => panic!("this is not right: {other:?}"),
        });
        match polled {
            Ok(_) => {}
            Err(ClientError::Refused { refusal: Some(LogonRejectReason::InUse), .. }) => {
                let since = self.client.since();
                self.client = connect(&Config { since, ..self.config.clone() });
            }
            Err(e) => panic!("it does not come back: {e}"),
        }
    }
}

/// Random numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    /// Returns a number below the bound.
    fn up_to(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
