//! Shared parts of the trading workloads: the order, the trading configuration, and the OMS and venue processes.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, HostClock, IdleAction, Wait};
use tickpath_log::{Config as LogConfig, LogPath, Reader, ReaderStart, Registration, Writer};
use tickpath_market::{
    AccountId, ClientOrderId, NewOrder, OrderType, PositionEffect, Price, Quantity, Side, Symbol, SymbolId,
    TimeInForce, VenueId,
};
use tickpath_oms_core::{AccountLimits, Instrument, VenueRules};
use tickpath_oms_runtime::{
    AckLevel, Config, LanesConfig, LineFactory, LineId, Notice, OmsLineConfig, RequestRate, SessionConfig,
    SessionLanes, SessionLimits, TradingDefinitions, VenueLanes,
};
use tickpath_oms_server::settings::{SessionDefaults, Users};
use tickpath_oms_server::{ServerConfig, ServerEvent};
use tickpath_venue_native::{LineAddress, ParseAddressError, TcpLine};
use tickpath_venue_sim::{SimVenue, VenueEngine};

use crate::send_log::{SendLog, StampedLine};
use tickpath_lab_harness::samples::save_gaps;
use tickpath_lab_harness::{LabError, Parent, ProcessRole, ThreadConfig};

/// The user of the client beside.
pub(crate) const SIDE_USER: &str = "beside";

/// Role of the simulated venue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExchangeRole {
    /// The prefix of the lanes' names.
    pub lanes: String,
    /// Bytes of request lanes.
    pub request_bytes: usize,
    /// Bytes of report lanes.
    pub report_bytes: usize,
    /// The topic in shared memory whose ticks make its market.
    pub market: Option<String>,
    /// The number of orders expected.
    pub expected_orders: usize,
    /// The folder of its journal if lines connect by sockets, and no lanes are joined.
    pub sockets: Option<PathBuf>,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
}

impl ProcessRole for ExchangeRole {
    const NAME: &'static str = "exchange";

    /// Runs the venue's process. The OMS has made the lanes, unless it connects by a socket: then the first result is
    /// its address.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        if let Some(journal) = &self.sockets {
            return exchange_by_sockets(self, journal, clock, parent);
        }
        let mut exchange = BenchVenue::open(self, clock)?;
        self.thread.apply()?;
        parent.ready();
        exchange.serve(self.thread.wait()?, &parent.stop_flag())?;
        parent.result(&());
        Ok(())
    }
}

/// Role of an OMS in a process of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OmsRole {
    /// The prefix of the lanes' names.
    pub lanes: String,
    /// Bytes of request lanes.
    pub request_bytes: usize,
    /// Bytes of report lanes.
    pub report_bytes: usize,
    /// The journal's folder.
    pub journal: PathBuf,
    /// Bytes of the journal that are reserved at the start.
    pub reserve_bytes: u64,
    /// The traded instrument.
    pub symbol: String,
    /// The account that trades.
    pub account: u32,
    /// The number of orders expected.
    pub expected_orders: usize,
    /// `inline`, `split` or `mutex`.
    pub layout: String,
    /// The core thread's CPU and priority.
    pub thread: ThreadConfig,
    /// The CPU that its other threads share.
    pub other_cpu: Option<usize>,
    /// The topic in shared memory whose ticks give reference prices.
    pub market: Option<String>,
    /// The durability that a request needs before it is forwarded or acknowledged: `os` or `disk`.
    pub level: String,
    /// Inputs between two snapshots; zero for none.
    pub snapshot_every: u64,
    /// The address of its venue; the venue uses lanes if there is none.
    pub line: Option<String>,
    /// The sockets of its clients; clients use lanes if there is none.
    pub server: Option<ServerRole>,
    /// The file of its gaps.
    pub out: PathBuf,
}

impl ProcessRole for OmsRole {
    const NAME: &'static str = "OMS";

    /// Runs the OMS's process. Its first result is its listening address, the last result its messages to an operator.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let sends = SendLog::with_capacity(self.line.as_ref().map_or(0, |_| self.expected_orders));
        let config = oms_config(self, &sends)?;
        let ticks = market(&self.market, &clock)?;
        let stop = parent.stop_flag();
        let (events, event_receiver) = sync_channel(MAX_EVENTS);
        let (address_sender, addresses) = channel();
        let server = self.server.as_ref().map(|server| server_config(server, &config, events));
        let listener = std::thread::spawn(move || collect_events(&event_receiver, &address_sender));
        let ready = || {
            parent.ready();
            let address: Option<String> = self.server.as_ref().and_then(|_| addresses.recv().ok());
            parent.result(&address);
        };
        let gaps = match &server {
            Some(server) => tickpath_oms_server::run(clock, &config, server, ticks, &stop, ready),
            None => tickpath_oms_runtime::layout::run(clock, &config, ticks, &stop, ready),
        };
        // With it the last sender is dropped, and the listener ends.
        drop(server);
        let messages = listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        save_gaps(&self.out, &gaps.map_err(LabError::other)?)?;
        sends.save(&SendLog::file(&self.out))?;
        parent.result(&messages);
        Ok(())
    }
}

/// Listening sockets and users of an OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerRole {
    /// The Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// The address to listen on.
    pub tcp: Option<SocketAddr>,
    /// The file of its users.
    pub users: PathBuf,
}

pub(crate) const SYMBOL: SymbolId = SymbolId(0);

/// The venue of all orders.
pub const VENUE: VenueId = VenueId(1);

/// Silence after which a client is considered gone: the default of an OMS's settings.
const HEARTBEAT_MS: u32 = 10_000;

/// Max simultaneous connections.
const MAX_CLIENTS: u32 = 65_000;

/// Max queued events of an OMS.
const MAX_EVENTS: usize = 4096;

/// An order in the form of the command line: `symbol=XJFL9,side=buy,qty=33,price=8000,tif=rod,position=open,account=1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderSpec {
    /// The instrument's name.
    pub symbol: String,
    /// `buy` or `sell`.
    pub side: String,
    /// The quantity.
    pub qty: String,
    /// The limit.
    pub price: String,
    /// `rod` (the day), `gtc`, `ioc` or `fok`.
    pub tif: String,
    /// `open`, `close` or `default`.
    pub position: String,
    /// The account's number.
    pub account: u32,
}

impl Default for OrderSpec {
    /// Returns the order of the f9omstw benchmark.
    fn default() -> Self {
        Self {
            symbol: "XJFL9".to_owned(),
            side: "buy".to_owned(),
            qty: "33".to_owned(),
            price: "8000".to_owned(),
            tif: "rod".to_owned(),
            position: "open".to_owned(),
            account: 1,
        }
    }
}

impl FromStr for OrderSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut spec = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is no KEY=VALUE"))?;
            let value = value.trim().to_owned();
            match key.trim() {
                "symbol" => spec.symbol = value,
                "side" => spec.side = value,
                "qty" => spec.qty = value,
                "price" => spec.price = value,
                "tif" => spec.tif = value,
                "position" => spec.position = value,
                "account" => {
                    spec.account =
                        value.parse().map_err(|_| format!("'{value}' is no account number; use 0 to 65535"))?;
                }
                other => {
                    return Err(format!(
                        "'{other}' is no field of an order; use symbol, side, qty, price, tif, position, account"
                    ));
                }
            }
        }
        spec.order().map(|_| spec)
    }
}

impl fmt::Display for OrderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { symbol, side, qty, price, tif, position, account } = self;
        write!(f, "symbol={symbol},side={side},qty={qty},price={price},tif={tif},position={position},account={account}")
    }
}

impl OrderSpec {
    /// Returns the order as a message, without an id.
    pub fn order(&self) -> Result<NewOrder, String> {
        self.symbol()?;
        let positive = |name: &str, text: &str| -> Result<i64, String> {
            let number: Price = text.parse().map_err(|e| format!("{name} '{text}': {e}"))?;
            if number.0 <= 0 { Err(format!("{name} '{text}' is not above zero")) } else { Ok(number.0) }
        };
        let unknown = |name: &str, text: &str, words: &str| format!("'{text}' is no {name}; use {words}");
        let side = match self.side.as_str() {
            "buy" => Side::Buy,
            "sell" => Side::Sell,
            other => return Err(unknown("side", other, "buy or sell")),
        };
        let tif = match self.tif.as_str() {
            "rod" | "day" => TimeInForce::Day,
            "gtc" => TimeInForce::GoodTillCancel,
            "ioc" => TimeInForce::ImmediateOrCancel,
            "fok" => TimeInForce::FillOrKill,
            other => return Err(unknown("time in force", other, "rod, gtc, ioc or fok")),
        };
        let position = match self.position.as_str() {
            "default" => PositionEffect::Default,
            "open" => PositionEffect::Open,
            "close" => PositionEffect::Close,
            other => return Err(unknown("position effect", other, "open, close or default")),
        };
        if self.account >= 1 << 16 {
            return Err(format!("account {} is too large; use 0 to 65535", self.account));
        }
        Ok(NewOrder {
            client_order_id: ClientOrderId(0),
            price: Price(positive("price", &self.price)?),
            quantity: Quantity(positive("qty", &self.qty)?),
            symbol: SYMBOL,
            account: AccountId(self.account),
            side: side.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: tif.code(),
            position_effect: position.code(),
            ..NewOrder::default()
        })
    }

    /// Returns the instrument's name.
    pub fn symbol(&self) -> Result<Symbol, String> {
        self.symbol.parse().map_err(|e: tickpath_market::SymbolError| e.to_string())
    }
}

/// Returns the lanes of a run; its clients have lanes if they do not use sockets.
pub(crate) fn lanes(name: &str, clients: u16, request_bytes: usize, report_bytes: usize) -> LanesConfig {
    LanesConfig { request_bytes, report_bytes, ..LanesConfig::new(name, clients, &[VENUE]) }
}

/// Returns a trading configuration with a single instrument and account, whose limits no benchmark order breaks
/// although every check runs.
fn trading_config(role: &OmsRole) -> Result<TradingDefinitions, LabError> {
    const SECOND_NS: u64 = 1_000_000_000;
    let name: Symbol =
        role.symbol.parse().map_err(|e: tickpath_market::SymbolError| LabError::Setting(e.to_string()))?;
    let instrument = Instrument { symbol: SYMBOL, venue: VENUE, multiplier: 1, ..Instrument::named(name) };
    let account = AccountLimits {
        account: AccountId(role.account),
        rate_limit: u32::MAX,
        rate_window_ns: SECOND_NS,
        max_order_quantity: Quantity::from_whole(1_000_000),
        max_notional: tickpath_market::Notional::from_whole(1_000_000_000_000).0.to_le_bytes(),
        credit: (i128::MAX >> 1).to_le_bytes(),
        collar: 1_000,
        max_open_orders: u32::MAX,
        max_reference_age_ns: 3_600 * SECOND_NS,
        max_request_age_ns: 60 * SECOND_NS,
        max_position: Quantity(i64::MAX),
        ..AccountLimits::default()
    };
    // Clients send at the requested speed without a limit; the longest wait for the venue is part of the measurement.
    let (level, rate) = (parse_ack_level(&role.level)?, RequestRate::UNLIMITED);
    let sessions = match &role.server {
        Some(server) => {
            let users = Users::read(&server.users).map_err(|e| LabError::Setting(e.to_string()))?;
            let all = SessionDefaults {
                heartbeat_ms: HEARTBEAT_MS,
                level,
                cancel_on_disconnect: false,
                rate,
                max_sessions: MAX_CLIENTS,
                keep_days: 1,
            };
            users.sessions(&all, &[account])
        }
        None => {
            let accounts = vec![account.account];
            let (limits, cancel_on_disconnect) = (SessionLimits::default(), false);
            vec![SessionConfig { session: 0, level, cancel_on_disconnect, accounts, withheld: 0, limits, rate }]
        }
    };
    let venue = VenueRules { max_queued: u32::MAX, ..VenueRules::of(VENUE) };
    let (instruments, accounts, venues) = (vec![instrument], vec![account], vec![venue]);
    Ok(TradingDefinitions { instruments, accounts, venues, sessions, ..TradingDefinitions::default() })
}

pub(crate) fn parse_ack_level(word: &str) -> Result<AckLevel, LabError> {
    match word {
        "os" => Ok(AckLevel::Os),
        "disk" => Ok(AckLevel::Disk),
        _ => Err(LabError::Setting(format!("'{word}' is no ack level; use os or disk"))),
    }
}

pub(crate) fn oms_config(role: &OmsRole, sends: &SendLog) -> Result<Config, LabError> {
    let journal = LogConfig { reserve_bytes: role.reserve_bytes, ..LogConfig::journal(LogPath::folder(&role.journal)) };
    let layout =
        role.layout.parse().map_err(|e: tickpath_oms_runtime::ParseLayoutError| LabError::Setting(e.to_string()))?;
    let mut lanes = lanes(&role.lanes, u16::from(role.server.is_none()), role.request_bytes, role.report_bytes);
    if let Some(address) = &role.line {
        lanes.venues.clear();
        lanes.lines.push(line(address, sends.clone())?);
    }
    Ok(Config {
        lanes,
        journal,
        trading: trading_config(role)?,
        expected_orders: role.expected_orders,
        layout,
        wait: role.thread.wait()?,
        cpu: role.thread.cpu,
        other_cpu: role.other_cpu,
        snapshot_every: role.snapshot_every,
        warm_up: role.thread.warm,
        history: false,
        priority: role.thread.priority()?,
        seed: None,
    })
}

impl OmsRole {
    /// Returns the configuration of an OMS that reaches its venue by this line alone.
    pub fn config_over(&self, line: OmsLineConfig) -> Result<Config, LabError> {
        let mut config = oms_config(self, &SendLog::default())?;
        config.lanes.venues.clear();
        config.lanes.lines = vec![line];
        Ok(config)
    }

    /// Joins the lanes of its only strategy.
    pub fn strategy_lanes(&self, clock: &HostClock) -> Result<SessionLanes, LabError> {
        let lanes = lanes(&self.lanes, 1, self.request_bytes, self.report_bytes);
        Ok(lanes.join_session(0, clock.calibration())?)
    }
}

/// Returns the line to a venue at this address, with a limit that no run's orders reach.
fn line(address: &str, sends: SendLog) -> Result<OmsLineConfig, LabError> {
    let address: LineAddress = address.parse().map_err(|e: ParseAddressError| LabError::Setting(e.to_string()))?;
    let open = LineFactory::new(move || {
        let line = TcpLine::new(address.clone(), "bench").map_err(|e| e.to_string())?;
        let clock = HostClock::get().map_err(|e| e.to_string())?;
        Ok(Box::new(StampedLine { line, clock, sends: sends.clone() }) as Box<dyn tickpath_venue::Line>)
    });
    Ok(OmsLineConfig {
        id: LineId { venue: VENUE, line: 0 },
        open,
        rate_per_second: 0,
        window: u32::MAX,
        lost_after_ns: 10_000_000_000,
    })
}

/// Opens a registered reader of a tick topic, which is made here if the feed has not made it yet.
pub(crate) fn market(name: &Option<String>, clock: &HostClock) -> Result<Option<Reader>, LabError> {
    let Some(name) = name else { return Ok(None) };
    let config = market_config(name)?;
    if !config.path.exists() {
        drop(Writer::open(&config, clock.calibration()));
    }
    Ok(Some(Reader::open(&config.path, ReaderStart::Oldest, Registration::Registered)?))
}

/// Returns the configuration of a tick topic in shared memory, as the bus makes it.
pub(crate) fn market_config(name: &str) -> Result<LogConfig, LabError> {
    let path = LogPath::shared_memory(name).map_err(tickpath_log::LogOpenError::from)?;
    Ok(LogConfig::topic(path, tickpath_log::OverflowPolicy::Overwrite))
}

fn server_config(role: &ServerRole, config: &Config, events: SyncSender<ServerEvent>) -> ServerConfig {
    ServerConfig {
        unix: role.unix.clone(),
        tcp: role.tcp,
        tls: None,
        users: role.users.clone(),
        heartbeat_ms: HEARTBEAT_MS,
        max_sessions: MAX_CLIENTS as usize,
        keep_days: 1,
        settings: None,
        reload: std::sync::Arc::default(),
        sessions: config.trading.sessions.clone(),
        events,
    }
}

/// Forwards the OMS's listening address, and returns the events that no run should have.
fn collect_events(events: &Receiver<ServerEvent>, addresses: &Sender<String>) -> Vec<String> {
    const MAX_EVENTS_KEPT: usize = 10;
    let (mut messages, mut more, mut has_clients) = (Vec::new(), 0, false);
    for event in events {
        match &event {
            ServerEvent::Listening(address) => drop(addresses.send(address.clone())),
            ServerEvent::LoggedIn { .. } => has_clients = true,
            // The OMS makes the venue's lanes, so it is up before the venue.
            ServerEvent::Notice(Notice::VenueDown(_) | Notice::VenueUp(_) | Notice::LineUp(_)) if !has_clients => {}
            ServerEvent::Disconnected { why, user, .. } if why == "the client logged out" || user == SIDE_USER => {}
            _ if messages.len() == MAX_EVENTS_KEPT => more += 1,
            _ => messages.push(format!("the OMS reported: {event}")),
        }
    }
    messages.extend((more > 0).then(|| format!("the OMS reported {more} more events")));
    messages
}

/// The venue on lanes that the OMS has made, polled by the thread that owns it.
pub(crate) struct BenchVenue(VenueEngine<HostClock>);

impl BenchVenue {
    /// Joins the lanes, with empty books.
    pub fn open(role: &ExchangeRole, clock: HostClock) -> Result<Self, LabError> {
        let lanes = lanes(&role.lanes, 0, role.request_bytes, role.report_bytes);
        let VenueLanes { requests, reports } = lanes.join_venue(VENUE, clock.calibration())?;
        let venue = SimVenue::new(tickpath_venue_sim::Config {
            venue: VENUE,
            symbols: 1,
            expected_orders: role.expected_orders.max(1024),
        });
        Ok(Self(VenueEngine::new(clock, venue, requests, reports, market(&role.market, &clock)?)))
    }

    /// Runs a turn. Returns true if there was work; else it rests as `rest` says.
    #[inline]
    pub fn poll(&mut self, rest: IdleAction) -> Result<bool, LabError> {
        let done = self.0.poll().map_err(|e| LabError::Failed(format!("the venue stopped: {e}")))?;
        match rest {
            _ if done > 0 => {}
            IdleAction::Sleep(ns) => self.0.sleep(ns),
            rest => rest.perform(),
        }
        Ok(done > 0)
    }

    pub fn serve(&mut self, wait: Wait, stop: &AtomicBool) -> Result<(), LabError> {
        let rest = match wait {
            Wait::Busy => IdleAction::Spin,
            Wait::Yield => IdleAction::Yield,
            Wait::Block | Wait::Adaptive => IdleAction::Sleep(10_000_000),
        };
        while !stop.load(Ordering::Relaxed) {
            self.poll(rest)?;
        }
        Ok(())
    }
}

fn exchange_by_sockets(
    role: &ExchangeRole,
    journal: &std::path::Path,
    clock: HostClock,
    parent: &Parent,
) -> Result<(), LabError> {
    let symbol: Symbol = "BENCH".parse().expect("a short name");
    let settings = tickpath_venue_sim::Settings {
        file: journal.to_owned(),
        venue: VENUE,
        oms: String::new(),
        listen: vec![LineAddress::Tcp { host: "127.0.0.1".to_owned(), port: 0 }],
        password: None,
        most_lines: 64,
        journal: journal.to_owned(),
        instruments_file: journal.to_owned(),
        instruments: vec![(symbol, SYMBOL)],
        ticks: None,
        quotes: Vec::new(),
        publish: None,
        faults: tickpath_venue_sim::InjectedFaults::default(),
        expected_orders: role.expected_orders.max(1024),
        thread: tickpath_venue_sim::ThreadSettings {
            wait: role.thread.wait()?,
            cpu: role.thread.cpu,
            priority: role.thread.priority()?,
        },
    };
    let orders =
        tickpath_venue_sim::VenueControl { stop: parent.stop_flag(), ..tickpath_venue_sim::VenueControl::default() };
    let mut tell = |event| {
        if let tickpath_venue_sim::VenueEvent::Listening(address) = event {
            parent.ready();
            parent.result(&address.to_string());
        }
    };
    let served = tickpath_venue_sim::run(clock, settings, &orders, &mut tell);
    served.map_err(|e| LabError::Failed(format!("the venue stopped: {e}")))?;
    parent.result(&());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_spec_round_trips_through_its_text() {
        let spec = OrderSpec::default();
        assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
        assert_eq!(spec.order().unwrap().quantity, Quantity::from_whole(33));
    }

    #[test]
    fn bad_order_specs_are_refused_with_the_reason() {
        for (text, word) in [
            ("side=up", "buy or sell"),
            ("qty=0", "above zero"),
            ("price=-1", "above zero"),
            ("tif=never", "rod, gtc"),
            ("colour=red", "no field"),
            ("symbol=", "symbol"),
            ("account=70000", "65535"),
            ("qty", "KEY=VALUE"),
        ] {
            let error = text.parse::<OrderSpec>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
