//! Ended days, the current day, and a journal that lacks its beginning.

use std::fs;

use tickpath_oms_blotter::{BlotterError, BlotterStep, TradingDay, days};
use tickpath_oms_runtime::snapshot;

use super::*;

const FIRST: u32 = 20_261_126;
const SECOND_DAY: u32 = 20_261_127;

fn whole(units: i128) -> i128 {
    units * 100_000_000
}

/// Creates two ended days, of which the second begins with a position and an open order, and a third that has not
/// ended.
fn three_days() -> Scene {
    let mut scene = Scene::new();
    scene.order(Side::Buy, 1, 101, 4);
    let rests = NewOrder { time_in_force: TimeInForce::GoodTillCancel.code(), ..limit(Side::Buy, 2, 95, 5) };
    scene.send(Request::New(rests));
    scene.end_day(FIRST);
    scene.tick(103, 105);
    scene.order(Side::Sell, 1, 103, 1);
    scene.tick(93, 94);
    scene.end_day(SECOND_DAY);
    scene.tick(109, 111);
    scene.order(Side::Sell, 1, 109, 2);
    scene
}

#[test]
fn an_ended_day_is_found_by_its_date_and_by_its_first_record() {
    let scene = three_days();
    let found = days(scene.journal()).expect("the journal is sound");
    let dates: Vec<_> = found.iter().map(|day| day.date).collect();
    assert_eq!(dates, [Some(FIRST), Some(SECOND_DAY), None]);
    let archived = scene.journal().dir().join("archive");
    for TradingDay { first, end: before, .. } in &found[..2] {
        assert!(archived.join(format!("{first:020}")).is_dir(), "{first} is the name of a log of the archive");
        assert!(before.is_some_and(|before| before > *first));
    }
    let blotter = scene.read(DayChoice::Date(FIRST));
    let rows = orders(&blotter, &BlotterView::default());
    let summaries: Vec<_> = rows.iter().map(|row| (row.client_order_id.0, row.status.word())).collect();
    assert_eq!(summaries, [(1, "filled".to_owned()), (2, "new".to_owned())]);
    assert_eq!(position(&blotter, &BlotterView::default()).end_quantity, whole(4));
    let by_record = scene.read(DayChoice::FirstRecord(found[0].first));
    assert_eq!(orders(&by_record, &BlotterView::default()), rows);
    assert_eq!(by_record.day(), blotter.day());
}

#[test]
fn the_next_day_begins_with_the_position_its_cost_and_the_open_orders() {
    let scene = three_days();
    let blotter = scene.read(DayChoice::Date(SECOND_DAY));
    let row = position(&blotter, &BlotterView::default());
    assert_eq!((row.start_quantity, row.start_price), (whole(4), Some(whole(101))));
    assert_eq!((row.sold_quantity, row.bought_quantity, row.end_quantity), (whole(1), whole(5), whole(8)));
    assert_eq!(row.realised, Some(2 * MONEY * i128::from(MULTIPLIER)));
    let rows = orders(&blotter, &BlotterView::default());
    let carried = rows.iter().find(|row| row.client_order_id.0 == 2).expect("it was open");
    assert_eq!((carried.filled, carried.filled_on_day), (Quantity::from_whole(5), Quantity::from_whole(5)));
    assert_eq!(rows.len(), 2, "what ended the day before is not the day's: {rows:?}");
    // Valued at the settlement of the day before instead.
    let view =
        BlotterView { starts: [("FIRST".to_owned(), Price::from_whole(102).0)].into(), ..BlotterView::default() };
    assert_eq!(position(&blotter, &view).realised, Some(MONEY * i128::from(MULTIPLIER)));
    let today = scene.read(DayChoice::Today);
    assert_eq!(today.day().date, None);
    let row = position(&today, &BlotterView::default());
    assert_eq!((row.start_quantity, row.end_quantity), (whole(8), whole(6)));
    assert_eq!(orders(&today, &BlotterView::default()).len(), 1);
}

#[test]
fn an_unknown_day_is_refused_with_a_list_of_the_existing_days() {
    let scene = three_days();
    let refused = |which| DayBlotter::open(scene.journal(), which).err().expect("there is no such day");
    let error = refused(DayChoice::Date(20_261_231));
    assert!(error.is_usage() && error.to_string().ends_with("these have: 20261126, 20261127"), "{error}");
    let error = refused(DayChoice::FirstRecord(7));
    assert!(error.is_usage() && error.to_string().contains("days begin with 0 (20261126), "), "{error}");
}

#[test]
fn a_date_of_two_days_is_refused_with_their_first_records() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (place, clock) = (LogPath::folder(folder.path().join("journal")), SimulatedClock::at(MORNING));
    let mut log = Writer::open(&LogConfig::journal(place.clone()), clock.calibration()).expect("the folder is ours");
    for day in [FIRST, FIRST, SECOND_DAY] {
        let end = DayEnd { day, ..DayEnd::default() };
        log.publish(clock.ticks(), RecordKind::DayEnd.code(), end.as_bytes()).expect("the disk has room");
    }
    let error = DayChoice::Date(FIRST).find(&place).expect_err("two days have this date");
    assert!(matches!(error, BlotterError::SeveralDays { .. }), "{error}");
    assert!(error.to_string().ends_with("name one by its first record: 0, 1"), "{error}");
    let found = DayChoice::FirstRecord(1).find(&place).expect("it is one of the two");
    assert_eq!(found, TradingDay { date: Some(FIRST), first: 1, end: Some(2) });
    assert_eq!(DayChoice::Today.find(&place).expect("it is the last"), TradingDay { date: None, first: 3, end: None });
}

#[test]
fn without_an_archive_positions_come_from_a_snapshot_without_cost() {
    let mut scene = three_days();
    let whole_day = orders(&scene.read(DayChoice::Today), &BlotterView::default());
    scene.oms = None;
    let made = snapshot::make(scene.journal()).expect("the disk has room");
    fs::rename(scene.journal().dir().join("archive"), scene.journal().dir().join("away")).expect("it is there");
    let blotter = scene.read(DayChoice::Today);
    assert_eq!(blotter.replayed_from(), Some(made.next), "the day began before its snapshot");
    let row = position(&blotter, &BlotterView::default());
    assert_eq!((row.start_quantity, row.start_price, row.realised, row.open), (whole(6), None, None, None));
    let view =
        BlotterView { starts: [("FIRST".to_owned(), Price::from_whole(100).0)].into(), ..BlotterView::default() };
    assert_eq!(position(&blotter, &view).realised, Some(0));
    assert_eq!(orders(&blotter, &BlotterView::default()), [], "what was done before the snapshot is gone");
    assert_eq!(whole_day.len(), 1);
}

#[test]
fn a_blotter_follows_the_journal_into_the_next_day() {
    let mut scene = Scene::new();
    let mut blotter = scene.read(DayChoice::Today);
    scene.order(Side::Buy, 1, 101, 4);
    let (view, mut counts) = (BlotterView::default(), Vec::new());
    while blotter.step().expect("the journal is sound") != BlotterStep::Nothing {
        let changes = view.changes(&mut blotter);
        counts.push((changes.orders.rows.len(), changes.fills.rows.len(), changes.positions.rows.len()));
    }
    let sum = counts.iter().fold((0, 0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1, sum.2 + row.2));
    assert_eq!((sum.1, sum.2), (1, 1), "one fill, and its position: {counts:?}");
    assert!(sum.0 >= 3, "entered, taken by the venue, filled: {counts:?}");
    scene.end_day(FIRST);
    let mut ended = Vec::new();
    loop {
        match blotter.step().expect("the journal is sound") {
            BlotterStep::Nothing => break,
            BlotterStep::DayEnd(day) => ended.push(day),
            BlotterStep::Input => {}
        }
    }
    assert_eq!(ended, [FIRST]);
    scene.order(Side::Sell, 1, 99, 1);
    while blotter.step().expect("the journal is sound") != BlotterStep::Nothing {}
    let row = position(&blotter, &view);
    assert_eq!((row.start_quantity, row.sold_quantity, row.bought_quantity), (whole(4), whole(1), 0));
    assert_eq!(row, position(&scene.read(DayChoice::Today), &view), "as one who begins now reads it");
    assert_eq!(orders(&blotter, &view), orders(&scene.read(DayChoice::Today), &view));
}
