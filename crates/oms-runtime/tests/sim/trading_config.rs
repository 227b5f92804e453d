//! The simulation's trading configuration: instruments, accounts, sessions and venues.

use tickpath_market::{AccountId, Notional, Price, Quantity, SymbolId, TopOfBook, VenueId};
use tickpath_oms_core::{AccountLimits, Instrument, OTHER_LINE, RETRY, RejectRule, VenueRules};
use tickpath_oms_runtime::{AckLevel, RequestRate, SessionConfig, TradingDefinitions};
use tickpath_venue_sim::RejectReason;

/// Sessions with lanes: one with immediate reports, one with disk durability, one with cancel on disconnect.
pub const LANE_SESSIONS: u16 = 3;
/// All sessions: the last two use a session front end, one of each durability level.
pub const SESSIONS: u16 = 5;

/// Returns whether a session's requests need disk durability.
pub fn is_for_disk(session: u16) -> bool {
    session == 1 || session == 4
}

/// Venues, each with one symbol: symbol 0 trades at the first.
pub const VENUES: [VenueId; 2] = [VenueId(1), VenueId(2)];

const SECOND: u64 = 1_000_000_000;

/// Returns the session's own account, so that losses of each durability level can be distinguished.
pub fn account_of(session: u16) -> AccountId {
    AccountId(u32::from(session) + 1)
}

/// Returns the accounts of a session; the first session may also cancel for the last one with lanes.
pub fn accounts_of(session: u16) -> Vec<AccountId> {
    let others = (session == 0).then(|| account_of(LANE_SESSIONS - 1));
    others.into_iter().chain([account_of(session)]).collect()
}

/// Returns the configuration of the OMS; one of the venues may be reached by lines.
pub fn trading_config(lined: Option<VenueId>) -> TradingDefinitions {
    let instrument = |(symbol, venue): (u32, VenueId)| Instrument {
        symbol: SymbolId(symbol),
        venue,
        multiplier: 1,
        ..Instrument::named(format!("SYMBOL{symbol}").parse().expect("a good name"))
    };
    let limits = |session: u16| AccountLimits {
        account: account_of(session),
        rate_limit: 0,
        rate_window_ns: SECOND,
        max_order_quantity: Quantity::from_whole(1_000),
        max_notional: Notional::from_whole(1_000_000).0.to_le_bytes(),
        credit: [0; 16],
        collar: 2_000,
        max_open_orders: 0,
        max_reference_age_ns: 3_600 * SECOND,
        max_request_age_ns: 0,
        max_position: Quantity::from_whole(100_000),
        ..AccountLimits::default()
    };
    let session = |session: u16| SessionConfig {
        session,
        level: if is_for_disk(session) { AckLevel::Disk } else { AckLevel::Os },
        cancel_on_disconnect: session == LANE_SESSIONS - 1,
        accounts: accounts_of(session),
        withheld: 0,
        limits: Default::default(),
        rate: RequestRate::UNLIMITED,
    };
    let again = |venue| {
        let action = if Some(venue) == lined { OTHER_LINE } else { RETRY };
        RejectRule { venue, code: RejectReason::OnOrder.code(), action, times: 2, reserved: 0 }
    };
    TradingDefinitions {
        instruments: (0..).zip(VENUES).map(instrument).collect(),
        accounts: (0..SESSIONS).map(limits).collect(),
        venues: VENUES.into_iter().map(VenueRules::of).collect(),
        sessions: (0..SESSIONS).map(session).collect(),
        rejects: VENUES.into_iter().map(again).collect(),
        ..TradingDefinitions::default()
    }
}

/// Returns a top of book of one symbol.
pub fn top(symbol: u32, middle: i64) -> TopOfBook {
    TopOfBook {
        bid: Price::from_whole(middle - 1),
        bid_quantity: Quantity::from_whole(3),
        ask: Price::from_whole(middle + 1),
        ask_quantity: Quantity::from_whole(3),
        symbol: SymbolId(symbol),
        ..TopOfBook::default()
    }
}
