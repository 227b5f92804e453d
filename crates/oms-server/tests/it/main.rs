//! An OMS as a server, through real sockets: sessions, their reports after each kind of crash, hostile clients, and the
//! configuration files.

mod acceptor;
mod admin_commands;
mod archived_days;
mod conditional;
mod denials;
mod drop_copies;
mod full_disk;
mod hostile;
mod lanes;
mod reload;
mod sessions;
mod settings;
mod tls;
mod trader;
mod venue_lines;
mod versions;

use std::path::Path;

use tempfile::TempDir;
use tickpath_clock::{Clock, Priority, Wait};
use tickpath_log::{Config as LogConfig, LogPath, OverflowPolicy, Reader, ReaderStart, Registration, Writer};
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, Kind, NewOrder, Notional, OrdStatus, OrderDenied, OrderType,
    Price, Quantity, Request, Side, SymbolId, TopOfBook, VenueId,
};
use tickpath_oms_core::{ALL_ACCOUNTS, AccountLimits, Instrument, VenueRules};
use tickpath_oms_runtime::{AckLevel, Config, LanesConfig, Layout, RequestRate, SessionConfig, TradingDefinitions};
use tickpath_venue_sim::{Config as VenueConfig, SimVenue, VenueEngine};
use zerocopy::{FromBytes, IntoBytes};

/// An account far below its limits in every test.
const WIDE: AccountId = AccountId(1);
/// An account with a limit for every check.
const TIGHT: AccountId = AccountId(2);
/// An account that may send one message a second.
const SLOW: AccountId = AccountId(3);

/// The venue.
const VENUE: VenueId = VenueId(1);

const SECOND: u64 = 1_000_000_000;

/// A message to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReceivedMessage {
    Report(ExecutionReport),
    Denied(OrderDenied),
}

impl ReceivedMessage {
    fn word(&self) -> (u64, ExecType, OrdStatus) {
        let Self::Report(report) = self else { panic!("a report was expected: {self:?}") };
        let exec_type = ExecType::from_code(report.exec_type).expect("a known code");
        (report.client_order_id.0, exec_type, OrdStatus::from_code(report.status).expect("a known code"))
    }
}

/// A request, or an order that is converted to a request.
struct AnyRequest(Request);

impl From<Request> for AnyRequest {
    fn from(request: Request) -> Self {
        Self(request)
    }
}

impl From<NewOrder> for AnyRequest {
    fn from(order: NewOrder) -> Self {
        Self(Request::New(order))
    }
}

/// Returns the configuration of an OMS with two sessions.
fn config(name: &str, folder: &Path) -> Config {
    let journal = LogConfig::journal(LogPath::folder(folder.join("journal")));
    Config {
        lanes: LanesConfig { report_bytes: 4 << 20, ..LanesConfig::new(name, 0, &[VENUE]) },
        journal: LogConfig { segment_bytes: 1 << 16, ..journal },
        trading: desk(),
        expected_orders: 1_024,
        layout: Layout::Inline,
        wait: Wait::Yield,
        cpu: None,
        other_cpu: None,
        priority: Priority::Normal,
        snapshot_every: 0,
        warm_up: true,
        history: true,
        seed: Some(0x5eed),
    }
}

/// Returns a desk with two instruments, of which only the first has a market, and the three accounts.
fn desk() -> TradingDefinitions {
    let instrument = |symbol: u32, name: &str| Instrument {
        symbol: SymbolId(symbol),
        venue: VENUE,
        reserved: 0,
        name: name.parse().expect("a good name"),
        multiplier: 1,
        ..Instrument::default()
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
        // Longer than any test takes, on any machine.
        max_reference_age_ns: 3_600 * SECOND,
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

fn top(bid: i64, ask: i64) -> TopOfBook {
    TopOfBook {
        bid: Price::from_whole(bid),
        bid_quantity: Quantity::from_whole(10),
        ask: Price::from_whole(ask),
        ask_quantity: Quantity::from_whole(10),
        ..TopOfBook::default()
    }
}

/// Returns a day limit order of the wide account.
fn limit(side: Side, id: u64, price: i64, quantity: i64) -> NewOrder {
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
