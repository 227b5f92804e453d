//! Configuration, orders and messages of tests that run a whole OMS. The tests of `oms-server` and `oms-blotter`
//! include this file.

use std::path::Path;

use tickpath_clock::{Priority, Wait};
use tickpath_log::{Config as LogConfig, LogPath};
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, NewOrder, Notional, OrdStatus, OrderDenied, OrderType, Price,
    Quantity, Request, Side, SymbolId, TopOfBook, VenueId,
};
use tickpath_oms_core::{ALL_ACCOUNTS, AccountLimits, Instrument, VenueRules};
use tickpath_oms_runtime::{AckLevel, Config, LanesConfig, Layout, RequestRate, SessionConfig, TradingDefinitions};

/// An account far below its limits in every test.
pub const WIDE: AccountId = AccountId(1);
/// An account with a limit for every check.
pub const TIGHT: AccountId = AccountId(2);
/// An account that may send one message a second.
pub const SLOW: AccountId = AccountId(3);

/// The venue.
pub const VENUE: VenueId = VenueId(1);

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// A message to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivedMessage {
    Report(ExecutionReport),
    Denied(OrderDenied),
}

impl ReceivedMessage {
    /// Returns a report's request, report type, and the order's status.
    pub fn summary(&self) -> (u64, ExecType, OrdStatus) {
        let Self::Report(report) = self else { panic!("a report was expected: {self:?}") };
        let exec_type = ExecType::from_code(report.exec_type).expect("a known code");
        (report.client_order_id.0, exec_type, OrdStatus::from_code(report.status).expect("a known code"))
    }
}

/// A request, or an order that is converted to a request.
pub struct ClientRequest(pub Request);

impl From<Request> for ClientRequest {
    fn from(request: Request) -> Self {
        Self(request)
    }
}

impl From<NewOrder> for ClientRequest {
    fn from(order: NewOrder) -> Self {
        Self(Request::New(order))
    }
}

/// Returns the configuration of an OMS with two sessions on one thread. The sessions below `laned_sessions` use lanes.
pub fn config(name: &str, folder: &Path, laned_sessions: u16) -> Config {
    let journal = LogConfig::journal(LogPath::folder(folder.join("journal")));
    Config {
        lanes: LanesConfig { report_bytes: 4 << 20, ..LanesConfig::new(name, laned_sessions, &[VENUE]) },
        journal: LogConfig { segment_bytes: 1 << 16, ..journal },
        trading: trading_config(),
        expected_orders: 1_024,
        layout: Layout::Inline,
        wait: Wait::Yield,
        cpu: None,
        other_cpu: None,
        priority: Priority::Normal,
        snapshot_every: 0,
        warm_up: true,
        history: false,
        seed: Some(0x5eed),
    }
}

/// Returns two instruments, of which only the first has a market, the three accounts, and two sessions.
fn trading_config() -> TradingDefinitions {
    let instrument = |symbol: u32, name: &str| Instrument {
        symbol: SymbolId(symbol),
        venue: VENUE,
        reserved: 0,

        multiplier: 1,
        ..Instrument::named(name.parse().expect("a good name"))
    };
    let wide = AccountLimits {
        account: WIDE,
        rate_limit: 0,
        rate_window_ns: SECOND,
        max_order_quantity: Quantity::from_whole(1_000_000),
        max_notional: Notional::from_whole(1_000_000_000).0.to_le_bytes(),
        credit: [0; 16],
        collar: 2_000,
        max_open_orders: 0,
        max_reference_age_ns: 60 * SECOND,
        max_request_age_ns: 0,
        max_position: Quantity(i64::MAX),
        ..AccountLimits::default()
    };
    let tight = AccountLimits {
        account: TIGHT,
        max_order_quantity: Quantity::from_whole(1_000),
        max_notional: Notional::from_whole(50_000).0.to_le_bytes(),
        max_position: Quantity::from_whole(700),
        ..wide
    };
    let slow = AccountLimits { account: SLOW, rate_limit: 1, ..wide };
    let session = |session: u16| SessionConfig {
        session,
        level: AckLevel::Os,
        cancel_on_disconnect: false,
        accounts: vec![ALL_ACCOUNTS],
        withheld: 0,
        limits: Default::default(),
        rate: RequestRate::UNLIMITED,
    };
    TradingDefinitions {
        instruments: vec![instrument(0, "FIRST"), instrument(1, "SECOND")],
        accounts: vec![wide, tight, slow],
        venues: vec![VenueRules::of(VENUE)],
        sessions: vec![session(0), session(1)],
        ..TradingDefinitions::default()
    }
}

/// Returns a top of book of the first symbol: ten at each side.
pub fn top(bid: i64, ask: i64) -> TopOfBook {
    TopOfBook {
        bid: Price::from_whole(bid),
        bid_quantity: Quantity::from_whole(10),
        ask: Price::from_whole(ask),
        ask_quantity: Quantity::from_whole(10),
        ..TopOfBook::default()
    }
}

/// Returns a day limit order of the wide account.
pub fn limit(side: Side, id: u64, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(id),
        price: Price::from_whole(price),
        quantity: Quantity::from_whole(quantity),
        account: WIDE,
        side: side.code(),
        order_type: OrderType::Limit.code(),
        ..NewOrder::default()
    }
}
