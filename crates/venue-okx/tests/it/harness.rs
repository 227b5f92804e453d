//! A line, its exchange, and the events that the line has reported.

use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderType, Quantity,
    ReplaceOrder, ReportDetail, Request, Side, StatusRequest, SymbolId, VenueId,
};
use tickpath_venue::{Line, LineEvent, ResumeState};
use tickpath_venue_okx::{ApiCredentials, LineInstrument, OkxLine, OkxLineConfig};

use crate::exchange::ScriptedOkx;
use crate::rows::{ACCOUNT, OMS};

/// Timeout of every wait.
const TIMEOUT_NS: i64 = 60_000_000_000;
/// Number of the venue.
pub const VENUE: VenueId = VenueId(3);

/// An event that owns its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OwnedLineEvent {
    Up(Option<u64>, Option<u64>),
    Acknowledged(u64),
    Report(u64, ExecutionReport),
    Detail(u64, ReportDetail),
}

impl From<LineEvent<'_>> for OwnedLineEvent {
    fn from(event: LineEvent<'_>) -> Self {
        match event {
            LineEvent::Up { next_request, next_report } => Self::Up(next_request, next_report),
            LineEvent::Acknowledged(next) => Self::Acknowledged(next),
            LineEvent::Report { number, report, .. } => Self::Report(number, *report),
            LineEvent::Detail { number, detail, .. } => Self::Detail(number, *detail),
        }
    }
}

pub struct LineUnderTest {
    clock: HostClock,
    pub okx: ScriptedOkx,
    pub line: OkxLine,
    pub events: Vec<OwnedLineEvent>,
    pub losses: Vec<String>,
}

impl LineUnderTest {
    /// Makes a line that is down.
    pub fn new(change: impl FnOnce(&mut OkxLineConfig)) -> Self {
        let okx = ScriptedOkx::start();
        let mut config = config(&okx);
        change(&mut config);
        let line = OkxLine::new(config).expect("the configuration is in order");
        let clock = HostClock::get().expect("this host has a clock");
        Self { clock, okx, line, events: Vec::new(), losses: Vec::new() }
    }

    /// Makes a line that is up.
    pub fn connected() -> Self {
        let mut test = Self::new(|_| {});
        test.connect(0);
        test
    }

    /// Connects, and waits until the line is up.
    pub fn connect(&mut self, next_report: u64) {
        let ups = self.ups();
        self.begin_connect(next_report);
        self.wait_until("the line is up", |test| test.ups() > ups);
    }

    pub fn begin_connect(&mut self, next_report: u64) {
        self.line.connect(&ResumeState { journal: 9, oms: OMS, incarnation: 1, next_request: 0, next_report });
    }

    pub fn ups(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, OwnedLineEvent::Up(..))).count()
    }

    pub fn turn(&mut self) {
        self.okx.work();
        let Self { line, events, losses, .. } = self;
        if let Err(lost) = line.poll(&mut |event| events.push(event.into())) {
            losses.push(lost.to_string());
        }
    }

    pub fn wait_until(&mut self, fact: &str, holds: impl Fn(&Self) -> bool) {
        let began = self.clock.ticks();
        while !holds(self) {
            self.turn();
            let waited = self.clock.ns_between(began, self.clock.ticks());
            assert!(waited < TIMEOUT_NS, "timed out waiting until {fact}; {:?}, {:?}", self.losses, self.events);
            sleep_ns(20_000);
        }
    }

    /// Waits for the next loss, and returns its reason without the address.
    pub fn wait_for_loss(&mut self) -> String {
        let losses = self.losses.len();
        self.wait_until("the line is lost", |test| test.losses.len() > losses);
        let why = self.losses[losses].strip_prefix(&self.line.address()).unwrap_or(&self.losses[losses]);
        why.strip_prefix(": ").unwrap_or(why).to_owned()
    }

    /// Sends a request, and waits until the exchange has it.
    pub fn send(&mut self, number: u64, request: &Request) {
        let requests = self.okx.requests().len();
        self.line.send(number, 0, request).expect("the line is up and has room");
        self.wait_until("the request has arrived", |test| test.okx.requests().len() > requests);
    }

    /// Sends a request that does not go over the socket.
    pub fn ask(&mut self, number: u64, request: &Request) {
        self.line.send(number, 0, request).expect("the line is up");
    }

    /// Waits for so many reports in all, and returns them.
    pub fn wait_for_reports(&mut self, count: usize) -> Vec<ExecutionReport> {
        self.wait_until("the reports have arrived", |test| test.reports().len() >= count);
        self.reports()
    }

    /// Returns all reports.
    pub fn reports(&self) -> Vec<ExecutionReport> {
        let report = |event: &OwnedLineEvent| match event {
            OwnedLineEvent::Report(_, report) => Some(*report),
            _ => None,
        };
        self.events.iter().filter_map(report).collect()
    }

    /// Returns all details.
    pub fn details(&self) -> Vec<ReportDetail> {
        let detail = |event: &OwnedLineEvent| match event {
            OwnedLineEvent::Detail(_, detail) => Some(*detail),
            _ => None,
        };
        self.events.iter().filter_map(detail).collect()
    }

    /// Returns the last acknowledged number; zero if there is none.
    pub fn acknowledged(&self) -> u64 {
        let number = |event: &OwnedLineEvent| match event {
            OwnedLineEvent::Acknowledged(next) => Some(*next),
            _ => None,
        };
        self.events.iter().rev().find_map(number).unwrap_or(0)
    }
}

/// Returns a configuration for the exchange, with spot and a swap of 0.01 a contract.
pub fn config(okx: &ScriptedOkx) -> OkxLineConfig {
    let instrument = |name: &str, symbol, code, contract: &str, is_derivative| LineInstrument {
        name: name.to_owned(),
        symbol: SymbolId(symbol),
        code,
        lot: Quantity::ZERO,
        contract: contract.parse().expect("it is a quantity"),
        is_derivative,
    };
    let instruments = vec![
        instrument("BTC-USDT", 0, 0, "1", false),
        instrument("BTC-USDT-SWAP", 1, 193, "0.01", true),
        instrument("ETH-USDT", 2, 77, "1", false),
    ];
    let (url, rest_url) = okx.urls();
    let refused_pause_ns = 100_000_000;
    OkxLineConfig { url, rest_url, refused_pause_ns, ..OkxLineConfig::new(VENUE, credentials(), instruments) }
}

/// Returns credentials that no text of a test contains by chance.
pub fn credentials() -> ApiCredentials {
    let [key, secret, passphrase] = ["kkkk-1111", "ssss-2222", "pppp-\"3333"].map(str::to_owned);
    ApiCredentials { key, secret, passphrase }
}

/// Returns an order to buy 2 at 100 in BTC-USDT.
pub fn new_order(order: u64) -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(order),
        price: "100".parse().expect("it is a price"),
        quantity: Quantity::from_whole(2),
        symbol: SymbolId(0),
        account: AccountId(ACCOUNT),
        side: Side::Buy.code(),
        order_type: OrderType::Limit.code(),
        ..NewOrder::default()
    }
}

/// Returns a cancel of an order in BTC-USDT.
pub fn cancel(id: u64, order: u64) -> Request {
    let (client_order_id, original) = (ClientOrderId(id), ClientOrderId(order));
    Request::Cancel(CancelOrder { client_order_id, original, account: AccountId(ACCOUNT), ..CancelOrder::default() })
}

/// Returns a replace of an order in BTC-USDT, to a total of 1 at 101.
pub fn replace(id: u64, order: u64) -> Request {
    Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(order),
        price: "101".parse().expect("it is a price"),
        quantity: Quantity::from_whole(1),
        account: AccountId(ACCOUNT),
        ..ReplaceOrder::default()
    })
}

/// Returns a status request about an order in BTC-USDT.
pub fn status(id: u64, order: u64) -> Request {
    Request::Status(StatusRequest {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(order),
        account: AccountId(ACCOUNT),
        ..StatusRequest::default()
    })
}

/// Returns the parts of a report that tests compare: type, status, order, request, reason, cumulative, leaves.
pub fn essence(report: &ExecutionReport) -> (ExecType, OrdStatus, u64, u64, u16, String, String) {
    (
        ExecType::from_code(report.exec_type).expect("a report has a type"),
        OrdStatus::from_code(report.status).expect("a report has a status"),
        report.order_id.0,
        report.client_order_id.0,
        report.reason,
        report.cumulative_quantity.to_string(),
        report.leaves_quantity.to_string(),
    )
}
