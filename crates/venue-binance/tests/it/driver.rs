//! A line with the events that it has reported, and orders to send.

use serde_json::{Value, json};
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderType, Price, Quantity,
    ReplaceOrder, ReportDetail, Request, Side, StatusRequest, SymbolId, TimeInForce, VenueId,
};
use tickpath_venue::{Line, LineEvent, LineSendError, ResumeState};
use tickpath_venue_binance::{ApiCredentials, BinanceLine, BinanceLineConfig, LineInstrument};

use crate::exchange::{Received, ScriptedExchange};
use crate::frames::{EventFrame, text_of};

/// Bound of each wait.
const DEADLINE_NS: i64 = 60_000_000_000;
pub const BTCUSDT: SymbolId = SymbolId(3);
pub const ETHUSDT: SymbolId = SymbolId(4);
pub const ACCOUNT: AccountId = AccountId(7);
pub const VENUE: VenueId = VenueId(2);
/// Private key of the exchange's documentation.
pub const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
                               MC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u\n\
                               -----END PRIVATE KEY-----\n";
pub const API_KEY: &str = "vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A";
pub const SECRET_KEY: &str = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";

/// An event of a line, which owns its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Up(Option<u64>, Option<u64>),
    Acknowledged(u64),
    Report(u64, ExecutionReport),
    Detail(u64, ReportDetail),
}

/// A line with the events that it has reported.
pub struct Driver {
    pub line: BinanceLine,
    pub seen: Vec<Seen>,
    pub losses: Vec<String>,
    clock: HostClock,
}

impl Driver {
    /// Makes a line that is down.
    pub fn new(config: BinanceLineConfig) -> Self {
        let line = BinanceLine::new(config).unwrap_or_else(|error| panic!("a line: {error}"));
        Self { line, seen: Vec::new(), losses: Vec::new(), clock: HostClock::get().expect("a clock") }
    }

    /// Makes a line that is up.
    pub fn connected(exchange: &ScriptedExchange) -> Self {
        let mut driver = Self::new(config(exchange));
        driver.connect();
        driver
    }

    /// Connects, and waits until the line is up.
    pub fn connect(&mut self) {
        self.begin_connect();
        let ups = self.ups();
        self.until("Up", |driver| driver.ups() > ups);
    }

    /// Begins a connect.
    pub fn begin_connect(&mut self) {
        let next_report = self.numbers().last().map_or(0, |last| last + 1);
        self.line.connect(&ResumeState { journal: 9, oms: 5, incarnation: 1, next_request: 0, next_report });
    }

    pub fn poll(&mut self) {
        let Self { line, seen, losses, .. } = self;
        let polled = line.poll(&mut |event| {
            seen.push(match event {
                LineEvent::Up { next_request, next_report } => Seen::Up(next_request, next_report),
                LineEvent::Acknowledged(next) => Seen::Acknowledged(next),
                LineEvent::Report { number, report, .. } => Seen::Report(number, *report),
                LineEvent::Detail { number, detail, .. } => Seen::Detail(number, *detail),
            });
        });
        losses.extend(polled.err().map(|lost| lost.0));
    }

    /// Polls until something holds.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let began = self.clock.ticks();
        while !holds(self) {
            self.poll();
            sleep_ns(50_000);
            let waited = self.clock.ns_between(began, self.clock.ticks());
            assert!(waited < DEADLINE_NS, "no {what}: {:?} {:?}", self.seen, self.losses);
        }
    }

    /// Polls until the line is lost once more, and returns the reason.
    pub fn until_lost(&mut self) -> String {
        let losses = self.losses.len();
        self.until("loss", |driver| driver.losses.len() > losses);
        self.losses.last().cloned().expect("a loss")
    }

    /// Sends a request, which the line takes.
    pub fn send(&mut self, number: u64, request: &Request) {
        assert_eq!(self.line.send(number, 1, request), Ok(()), "request {number}");
    }

    /// Sends a request, and returns whether the line takes it.
    pub fn try_send(&mut self, number: u64, request: &Request) -> Result<(), LineSendError> {
        self.line.send(number, 1, request)
    }

    /// Polls until the line takes a request.
    pub fn send_when_taken(&mut self, number: u64, request: &Request) {
        let began = self.clock.ticks();
        while self.line.send(number, 1, request).is_err() {
            self.poll();
            sleep_ns(50_000);
            let waited = self.clock.ns_between(began, self.clock.ticks());
            assert!(waited < DEADLINE_NS, "request {number} is not taken: {:?}", self.losses);
        }
    }

    /// Places an order, waits until the exchange has it, and accepts it under this id of the exchange. Returns the
    /// request.
    pub fn place(&mut self, exchange: &ScriptedExchange, number: u64, order: &NewOrder, venue_id: u64) -> Received {
        let before = exchange.of_method("order.place").len();
        self.send(number, &Request::New(*order));
        self.until("place", |_| exchange.of_method("order.place").len() > before);
        let request = exchange.of_method("order.place").pop().expect("a request");
        exchange.answer(&request, placed(&request, venue_id));
        let id = order.client_order_id.0;
        self.until_report(id, ExecType::New);
        request
    }

    /// Waits for the next request of a method, and returns it.
    pub fn until_request(&mut self, exchange: &ScriptedExchange, method: &str, count: usize) -> Received {
        self.until(method, |_| exchange.of_method(method).len() >= count);
        exchange.of_method(method).swap_remove(count - 1)
    }

    /// Polls until an order has a report of this type, and returns the last one.
    pub fn until_report(&mut self, order: u64, exec_type: ExecType) -> ExecutionReport {
        self.until(&format!("{exec_type:?} of {order}"), |driver| driver.report(order, exec_type).is_some());
        self.report(order, exec_type).expect("a report")
    }

    /// Polls until the requests below this number are acknowledged.
    pub fn until_acknowledged(&mut self, next: u64) {
        self.until(&format!("acknowledgement of {next}"), |driver| driver.seen.contains(&Seen::Acknowledged(next)));
    }

    /// Polls until the line has handled all frames so far: an event of another order comes behind them.
    pub fn settle(&mut self, exchange: &ScriptedExchange) {
        let marker = 1_000_000 + self.seen.len() as u64;
        exchange.send(&EventFrame::new(&text_of(marker), marker).text());
        self.until_report(marker, ExecType::New);
    }

    /// Returns the last report of this type of an order.
    pub fn report(&self, order: u64, exec_type: ExecType) -> Option<ExecutionReport> {
        let mut reports = self.reports().into_iter().rev();
        reports.find(|report| report.order_id.0 == order && report.exec_type == exec_type.code())
    }

    /// Returns all reports.
    pub fn reports(&self) -> Vec<ExecutionReport> {
        let report = |seen: &Seen| if let Seen::Report(_, report) = seen { Some(*report) } else { None };
        self.seen.iter().filter_map(report).collect()
    }

    /// Returns types and states of an order's reports.
    pub fn story(&self, order: u64) -> Vec<(ExecType, OrdStatus)> {
        let of_order = self.reports().into_iter().filter(|report| report.order_id.0 == order);
        let code = |report: ExecutionReport| {
            let exec_type = ExecType::from_code(report.exec_type).expect("a type");
            (exec_type, OrdStatus::from_code(report.status).expect("a state"))
        };
        of_order.map(code).collect()
    }

    /// Returns the last detail of an order.
    pub fn detail(&self, order: u64) -> ReportDetail {
        let detail = |seen: &Seen| if let Seen::Detail(_, detail) = seen { Some(*detail) } else { None };
        let mut details = self.seen.iter().rev().filter_map(detail);
        details.find(|detail| detail.order_id.0 == order).expect("a detail")
    }

    /// Returns the text of the last detail of an order.
    pub fn text(&self, order: u64) -> String {
        String::from_utf8_lossy(&self.detail(order).text).trim_end_matches('\0').to_owned()
    }

    /// Returns the numbers of reports and details.
    pub fn numbers(&self) -> Vec<u64> {
        let number = |seen: &Seen| match seen {
            Seen::Report(number, _) | Seen::Detail(number, _) => Some(*number),
            Seen::Up(..) | Seen::Acknowledged(_) => None,
        };
        self.seen.iter().filter_map(number).collect()
    }

    fn ups(&self) -> usize {
        self.seen.iter().filter(|seen| matches!(seen, Seen::Up(..))).count()
    }
}

/// Returns credentials with this secret.
pub fn credentials(secret: &str) -> ApiCredentials {
    ApiCredentials { key: API_KEY.to_owned(), secret: secret.to_owned(), passphrase: String::new() }
}

/// Returns an instrument of spot.
pub fn instrument(name: &str, symbol: SymbolId) -> LineInstrument {
    LineInstrument {
        name: name.to_owned(),
        symbol,
        code: 0,
        lot: Quantity(1_000),
        contract: Quantity::from_whole(1),
        is_derivative: false,
    }
}

/// Returns the configuration of a line to a scripted exchange.
pub fn config(exchange: &ScriptedExchange) -> BinanceLineConfig {
    let instruments = vec![instrument("BTCUSDT", BTCUSDT), instrument("ETHUSDT", ETHUSDT)];
    let config = BinanceLineConfig::new(credentials(PRIVATE_KEY), VENUE, instruments);
    BinanceLineConfig { url: exchange.url(), ..config }
}

/// Returns a limit order that buys 0.5 at 60,000.
pub fn buy(id: u64) -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(id),
        price: Price::from_whole(60_000),
        quantity: Quantity(50_000_000),
        symbol: BTCUSDT,
        account: ACCOUNT,
        side: Side::Buy.code(),
        order_type: OrderType::Limit.code(),
        time_in_force: TimeInForce::GoodTillCancel.code(),
        ..NewOrder::default()
    }
}

/// Returns the cancel of an order.
pub fn cancel(id: u64, original: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(original),
        symbol: BTCUSDT,
        account: ACCOUNT,
        ..CancelOrder::default()
    })
}

/// Returns the replace of an order by a price in whole units and a total quantity in units of 10⁻⁸.
pub fn replace(id: u64, original: u64, price: i64, quantity: i64) -> Request {
    Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(original),
        price: Price::from_whole(price),
        quantity: Quantity(quantity),
        symbol: BTCUSDT,
        account: ACCOUNT,
        ..ReplaceOrder::default()
    })
}

/// Returns a status request for an order.
pub fn status(id: u64, original: u64, fills: u8) -> Request {
    Request::Status(StatusRequest {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(original),
        symbol: BTCUSDT,
        account: ACCOUNT,
        fills,
        ..StatusRequest::default()
    })
}

/// Returns the short answer to a new order.
pub fn placed(request: &Received, venue_id: u64) -> Value {
    json!({
        "symbol": request.param("symbol"),
        "orderId": venue_id,
        "orderListId": -1,
        "clientOrderId": request.param("newClientOrderId"),
        "transactTime": 1_700_000_000_000_u64,
    })
}
