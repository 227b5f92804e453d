//! A journal with planted stamps.

use std::path::Path;

use tickpath_clock::Calibration;
use tickpath_lab_path::analyse;
use tickpath_lab_result::Run;
use tickpath_log::{Config, LogPath};
use tickpath_market::{
    AccountId, ClientOrderId, NewOrder, OrderType, Price, Quantity, Request, Side, SymbolId, TimeInForce, VenueId,
};
use tickpath_oms_core::{
    ALL_ACCOUNTS, AccountLimits, Boot, Departure, Envelope, Grant, Input, Instrument, VenueConnection,
};
use tickpath_oms_runtime::journal::Journal;

const VENUE: VenueId = VenueId(1);
const SYMBOL: SymbolId = SymbolId(0);
const ACCOUNT: AccountId = AccountId(1);

/// The fate of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Sent to the venue.
    Leaves,
    /// Sent by the thread of a line.
    HandedOver,
    /// Denied: its account is unknown.
    Denied,
    /// Kept: the venue's lane is full.
    LaneIsFull,
    /// Kept: the venue is down.
    VenueIsDown,
}

/// Runs orders a microsecond apart: seen 100 ns after T0, and T2 at the given nanoseconds after T0.
fn run(orders: &[(Fate, u64)]) -> Run {
    let folder = tempfile::tempdir().expect("a temporary folder");
    plant(folder.path(), orders);
    let mut runs = analyse::runs(folder.path()).expect("the journal is whole");
    assert_eq!(runs.len(), 1, "all orders are of one group");
    runs.remove(0)
}

fn plant(folder: &Path, orders: &[(Fate, u64)]) {
    let config = Config::journal(LogPath::folder(folder));
    let mut journal = Journal::open(&config, &Calibration::nanoseconds(), 1).expect("the folder is empty");
    let mut say = |stamp, input: &Input| {
        journal.append(stamp, input).expect("the disk has room");
    };
    let account = AccountLimits {
        account: ACCOUNT,
        max_order_quantity: Quantity(i64::MAX),
        max_notional: i128::MAX.to_le_bytes(),
        credit: (i128::MAX >> 1).to_le_bytes(),
        rate_limit: u32::MAX,
        rate_window_ns: 1,
        collar: 1_000,
        max_open_orders: u32::MAX,
        max_reference_age_ns: u64::MAX,
        max_request_age_ns: u64::MAX,
        max_position: Quantity(i64::MAX),
        ..AccountLimits::default()
    };
    let instrument = Instrument { symbol: SYMBOL, venue: VENUE, multiplier: 1, ..Instrument::default() };
    say(1, &Input::Boot(Boot { epoch: 1, boot_id: [1; 16], ticks_per_second: 1_000_000_000, utc_ns: 0 }));
    say(1, &Input::Instrument(instrument));
    say(1, &Input::Account(account));
    say(1, &Input::Grant(Grant { account: ALL_ACCOUNTS, session: 0, reserved: 0 }));
    let mut left = Departure::default();
    for (number, (fate, takes_ns)) in (1..).zip(orders) {
        let sent = 10_000 + 1_000 * number;
        let up = u8::from(*fate != Fate::VenueIsDown);
        say(sent, &Input::VenueConnection(VenueConnection { venue: VENUE, up, reserved: [0; 5] }));
        let envelope = Envelope {
            sent,
            released_before: left.at,
            flags_before: left.flags(),
            reference_price: Price::from_whole(100),
            reference_age_ns: 1,
            ..Envelope::default()
        };
        let request = Request::New(NewOrder {
            client_order_id: ClientOrderId(7 << 32 | number),
            price: Price::from_whole(100),
            quantity: Quantity::from_whole(1),
            cause: sent - 50,
            symbol: SYMBOL,
            account: if *fate == Fate::Denied { AccountId(9) } else { ACCOUNT },
            side: Side::Buy.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::Day.code(),
            ..NewOrder::default()
        });
        say(sent + 100, &Input::Request { envelope, request });
        left = Departure {
            at: sent + takes_ns,
            queued: *fate == Fate::LaneIsFull,
            handed_over: *fate == Fate::HandedOver,
        };
    }
    journal.stop(1_000_000, left).expect("the disk has room");
}

/// Returns the count, the smallest and the largest value of a hop.
fn hop(run: &Run, name: &str) -> (u64, u64, u64) {
    let Some(hop) = run.hops.get(name) else { return (0, 0, 0) };
    let all = hop.histogram().expect("the run keeps it");
    (hop.count, all.min(), hop.worst_ns[2])
}

fn figure(run: &Run, name: &str) -> Option<f64> {
    run.figures.get(name).copied()
}

#[test]
fn unreleased_requests_are_in_no_release_hop() {
    let slow = (Fate::Leaves, 900);
    let run = run(&[slow, (Fate::Denied, 110), (Fate::LaneIsFull, 120), slow, (Fate::VenueIsDown, 130)]);
    for (name, expected) in [
        ("t0_t1", (5, 100, 100)),
        ("t0_t2", (2, 900, 900)),
        ("t1_t2", (2, 800, 800)),
        ("tick_to_order", (2, 950, 950)),
        ("t2_gap", (1, 3_000, 3_000)),
        ("t0_gap", (4, 1_000, 1_000)),
        ("t0_t2_denied", (1, 110, 110)),
        ("t0_t2_kept", (2, 120, 130)),
    ] {
        assert_eq!(hop(&run, name), expected, "{name}");
    }
    for (name, expected) in
        [("orders_sending", 2.0), ("orders_queued", 2.0), ("orders_rejected", 1.0), ("orders_denied", 1.0)]
    {
        assert_eq!(figure(&run, name), Some(expected), "{name}");
    }
}

#[test]
fn a_hand_over_to_a_line_thread_is_no_release() {
    let run = run(&[(Fate::HandedOver, 300), (Fate::Leaves, 900), (Fate::HandedOver, 400)]);
    for (name, expected) in [
        ("t0_handed", (2, 300, 400)),
        ("t1_handed", (2, 200, 300)),
        ("t0_t2", (1, 900, 900)),
        ("t1_t2", (1, 800, 800)),
        ("tick_to_order", (1, 950, 950)),
        ("handed_t2", (0, 0, 0)),
    ] {
        assert_eq!(hop(&run, name), expected, "{name}");
    }
}

#[test]
fn unanswered_requests_are_noted_without_a_host_share() {
    for (fate, valid, note) in [
        (Fate::Leaves, false, Some("3 requests had no answer of the venue")),
        (Fate::VenueIsDown, true, Some("3 requests wait in the OMS")),
        (Fate::Denied, true, None),
    ] {
        let run = run(&[(fate, 110); 3]);
        assert_eq!((run.valid, run.notes.len()), (valid, usize::from(note.is_some())), "{fate:?}: {:?}", run.notes);
        assert!(note.is_none_or(|note| run.notes[0].contains(note)), "{fate:?}: {:?}", run.notes);
        assert!(run.hops.values().all(|hop| hop.unstalled.is_none() && hop.host_stall_share_p999.is_none()));
    }
}

#[test]
fn a_group_without_releases_has_no_release_time() {
    for fate in [Fate::Denied, Fate::LaneIsFull, Fate::VenueIsDown] {
        let run = run(&[(fate, 110); 3]);
        for name in ["t0_t2", "t1_t2", "tick_to_order", "t2_gap"] {
            assert_eq!(hop(&run, name), (0, 0, 0), "{fate:?}: {name}");
        }
        assert_eq!(hop(&run, "t0_t1").0, 3);
    }
}
