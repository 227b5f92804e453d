//! The venue on its lanes: waiting, lost and rejected messages, and the records of the journal.

use tickpath_log::Writer;
use tickpath_market::{
    CancelOrder, ClientOrderId, ExecId, ExecType, ExecutionReport, OrderId, Price, Quantity, Request, Side,
    StatusRequest, SymbolId, TopOfBook,
};
use tickpath_venue_sim::{OperatorError, RecoverError};

use tickpath_clock::Clock;

use crate::random_commands::Command;
use crate::script::order;
use crate::world::{MORNING, Step, World, settle};

#[test]
fn reports_wait_for_the_oms_across_a_restart() {
    let mut world = World::new();
    world.reports = None;
    send(&mut world, buy(1, 5));
    let mut line = world.open();
    settle(&mut line);
    assert_eq!(world.reports(), []);
    drop(line);
    send(&mut world, cancel(9, 1));
    world.attach_oms();
    world.clock.advance(50);
    settle(&mut world.open());
    let reports: Vec<(u8, u64)> = world.reports().iter().map(|report| (report.exec_type, report.venue_stamp)).collect();
    assert_eq!(reports, [(ExecType::New.code(), MORNING), (ExecType::Canceled.code(), MORNING + 50)]);
}

#[test]
fn recreated_lanes_start_at_their_first_message() {
    let mut world = World::new();
    for id in 1..=3 {
        send(&mut world, buy(id, 5));
    }
    let mut line = world.open();
    settle(&mut line);
    // The OMS is down: reports from now on are never read.
    world.reports = None;
    send(&mut world, cancel(9, 1));
    settle(&mut line);
    drop(line);
    world.lose_lanes(2);
    // Request numbers restart from zero and name other requests than before, however many there are.
    for id in 10..20 {
        send(&mut world, status(id, 1));
    }
    send(&mut world, buy(4, 5));
    let mut expected = vec![(1, ExecType::OrderStatus); 10];
    expected.push((4, ExecType::New));
    for _ in 0..3 {
        settle(&mut world.open());
        assert_eq!(types(&world.reports()), expected);
    }
    let answer = world.reports()[0];
    assert_eq!((answer.venue_sequence, answer.leaves_quantity), (2, Quantity(0)));
}

#[test]
fn lanes_are_journaled_once_and_known_after_each_restart() {
    let mut world = World::new();
    let mut expected = Vec::new();
    for incarnation in 2..6 {
        send(&mut world, buy(incarnation, 1));
        settle(&mut world.open());
        expected.push((incarnation, ExecType::New));
        settle(&mut world.open());
        assert_eq!(types(&world.reports()), expected[expected.len() - 1..]);
        world.lose_lanes(incarnation);
        settle(&mut world.open());
        assert_eq!(world.reports(), [], "reports of earlier lanes are not sent on this one");
    }
    assert_eq!(world.open().venue().resting_orders(), expected.len());
}

#[test]
fn garbage_is_counted_and_a_duplicate_delivery_is_not_applied() {
    let mut world = World::new();
    send(&mut world, buy(1, 5));
    world.feed(&Step::Garbage, MORNING);
    send(&mut world, buy(2, 5));
    let mut line = world.open();
    settle(&mut line);
    assert_eq!((line.refused(), line.missed(), line.venue().resting_orders()), (1, 0, 2));
    drop(line);
    // The line starts at the oldest message of the lane, and all of them are in the journal.
    let mut line = world.open();
    settle(&mut line);
    assert_eq!((line.refused(), line.venue().resting_orders()), (0, 2));
    assert_eq!(types(&world.reports()), [(1, ExecType::New), (2, ExecType::New)]);
}

#[test]
fn an_operator_gets_an_error_for_an_impossible_change() {
    let mut world = World::new();
    send(&mut world, buy(1, 5));
    send(&mut world, Request::New(order(Side::Sell, 2, 5, 100)));
    let mut line = world.open();
    settle(&mut line);
    line.correct(ExecId(1), Price(101), Quantity(4)).expect("the fill is there");
    line.bust(ExecId(1)).expect("the fill is there");
    assert!(matches!(line.bust(ExecId(1)), Err(OperatorError::Fill(_))));
    drop(line);
    let mut line = world.open();
    assert!(matches!(line.bust(ExecId(1)), Err(OperatorError::Fill(_))), "a restart does not forget it");
    line.end_of_day().expect("the day ends");
    assert!(matches!(line.bust(ExecId(2)), Err(OperatorError::Fill(_))));
    let changed = [(2, ExecType::TradeCorrect), (2, ExecType::TradeCancel)];
    assert_eq!(types(&world.reports())[4..], changed);
}

#[test]
fn the_journal_holds_only_the_changes_of_each_tick() {
    let mut world = World::new();
    let tick = TopOfBook {
        bid: Price(99),
        bid_quantity: Quantity(5),
        ask: Price(101),
        ask_quantity: Quantity(5),
        ..TopOfBook::default()
    };
    let stranger = TopOfBook { symbol: SymbolId(u32::MAX), ..tick };
    let ticks =
        [tick, TopOfBook { ask_quantity: Quantity(6), ..tick }, stranger, TopOfBook { symbol: SymbolId(1), ..tick }];
    let mut line = world.open();
    let before = world.frames("journal").len();
    for tick in &ticks {
        world.feed(&Step::Command(Command::Tick(*tick)), MORNING);
    }
    settle(&mut line);
    let depth: Vec<_> = line.venue().depth(SymbolId(0), Side::Sell).collect();
    drop(line);
    let lengths: Vec<usize> = world.frames("journal")[before..].iter().map(|frame| frame.2.len()).collect();
    assert_eq!(lengths, [16 + 4 * 8, 16 + 8, 16 + 4 * 8]);
    let again: Vec<_> = world.open().venue().depth(SymbolId(0), Side::Sell).collect();
    assert_eq!((again, depth.len()), (depth, 1));
}

#[test]
fn a_foreign_journal_is_refused() {
    let mut world = World::new();
    settle(&mut world.open());
    let venue = world.config.venue;
    world.config.venue.venue = tickpath_market::VenueId(4);
    assert!(matches!(world.try_open(), Err(RecoverError::OtherVenue { venue: 3, .. })));
    world.config.venue = venue;
    // The capacity for orders may change between starts.
    world.config.venue.expected_orders *= 2;
    settle(&mut world.open());
    let mut journal = Writer::open(&world.config.journal, world.clock.calibration()).expect("nobody writes it");
    journal.publish(MORNING, 200, b"no record").expect("there is room");
    let sequence = journal.sequence() - 1;
    drop(journal);
    assert!(matches!(world.try_open(), Err(RecoverError::Record(at)) if at == sequence));
}

#[test]
fn a_journal_that_lost_its_end_is_refused() {
    let mut world = World::new();
    send(&mut world, buy(1, 5));
    settle(&mut world.open());
    let frames = world.frames("journal");
    world.config.journal.path.remove().expect("it is there");
    let mut journal = Writer::open(&world.config.journal, world.clock.calibration()).expect("it is new");
    for (stamp, kind, payload) in &frames[..frames.len() - 1] {
        journal.publish(*stamp, *kind, payload).expect("there is room");
    }
    drop(journal);
    let e = world.try_open().err().expect("the lane holds more");
    assert!(matches!(e, RecoverError::LaneAhead { held: 1, produced: 0 }), "{e}");
}

fn send(world: &mut World, request: Request) {
    world.feed(&Step::Command(Command::Request(request)), MORNING);
}

fn buy(id: u64, quantity: i64) -> Request {
    Request::New(order(Side::Buy, id, quantity, 100))
}

fn cancel(id: u64, original: u64) -> Request {
    let (client_order_id, original) = (ClientOrderId(id), ClientOrderId(original));
    Request::Cancel(CancelOrder { client_order_id, original, ..CancelOrder::default() })
}

fn status(id: u64, original: u64) -> Request {
    let (client_order_id, original) = (ClientOrderId(id), ClientOrderId(original));
    Request::Status(StatusRequest { client_order_id, original, ..StatusRequest::default() })
}

/// Returns the order and the type of each report.
fn types(reports: &[ExecutionReport]) -> Vec<(u64, ExecType)> {
    let of = |report: &ExecutionReport| {
        let OrderId(id) = report.order_id;
        (id, ExecType::from_code(report.exec_type).expect("a known type"))
    };
    reports.iter().map(of).collect()
}
