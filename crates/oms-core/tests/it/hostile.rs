//! Random bytes and extreme values never panic.

use tickpath_market::{ExecId, ExecType, ExecutionReport, NewOrder, OrdStatus, Price, Request, Side};
use tickpath_oms_core::{
    At, Boot, Config, Core, DayEnd, Denial, Input, LOST_REPORTS, Outputs, RECORD_BYTES, RecordKind, VenueRules,
};

use crate::dice::{Dice, seed};
use crate::random_inputs::World;
use crate::scene::{Scene, VENUE, fill, instrument, order, reported};

#[test]
fn random_records_of_every_kind_are_read_or_refused() {
    let mut dice = Dice::new(seed());
    let mut core = Core::new(Config { expected_orders: usize::MAX, key: dice.draw() });
    let (mut out, mut read) = (Outputs::new(), 0);
    for _ in 0..100_000 {
        let kind = if dice.once_in(10) { dice.below(256) as u8 } else { dice.pick(RecordKind::ALL).code() };
        let is_small = dice.once_in(2);
        let bytes: Vec<u8> =
            (0..8 * dice.below(17)).map(|_| if is_small { dice.below(3) as u8 } else { dice.draw() as u8 }).collect();
        let Ok(Some(input)) = Input::read(kind, &bytes) else { continue };
        let mut buffer = [0; RECORD_BYTES];
        // A definition of an older version is written with zeros appended.
        let written = input.write(&mut buffer);
        let (same, more) = written.split_at(bytes.len());
        assert_eq!((input.kind().code(), same), (kind, &bytes[..]));
        assert!(more.iter().all(|&byte| byte == 0));
        core.apply(At { sequence: dice.below(1 << 20), stamp: dice.draw() }, &input, &mut out);
        read += 1;
    }
    assert!(read > 3_000, "the records are worth a test: {read}");
}

/// Valid records with one 8-byte word overwritten by an extreme value.
#[test]
fn records_with_extreme_numbers_are_applied_or_ignored() {
    let mut world = World::new(seed());
    let mut dice = Dice::new(seed());
    let mut out = Outputs::new();
    for _ in 0..50_000 {
        let (at, input) = world.step();
        let mut buffer = [0; RECORD_BYTES];
        let mut bytes = input.write(&mut buffer).to_vec();
        let word = 8 * dice.below(bytes.len() as u64 / 8) as usize;
        let extreme = dice.pick(&[0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, 1 << 32, (1 << 40) - 1]);
        bytes[word..word + 8].copy_from_slice(&extreme.to_le_bytes());
        let spoiled = Input::read(input.kind().code(), &bytes).expect("the length is right");
        // An end of the day would leave few orders to spoil.
        if let Some(spoiled) = spoiled.filter(|spoiled| !matches!(spoiled, Input::DayEnd(_))) {
            world.core.apply(at, &spoiled, &mut out);
        }
    }
}

#[test]
fn unknown_codes_are_denied_or_counted() {
    let mut scene = Scene::new();
    scene.request(Request::New(NewOrder { side: 9, ..order(1, Side::Buy, 100, 1) }));
    assert_eq!(scene.denial(), Some((Denial::Malformed, 0, 0)));
    let id = scene.order(2, Side::Buy, 100, 1);
    for bad in [
        ExecutionReport { exec_type: 99, ..reported(id, ExecType::New, id, 1, 0, 1) },
        ExecutionReport { status: 99, ..reported(id, ExecType::New, id, 1, 0, 1) },
        reported(id, ExecType::New, id, 1, -1, 1),
        reported(id, ExecType::New, id, 1, 0, i64::MIN),
        fill(id, 1, 0, 1, 0),
        fill(id, 1, 1, 0, 1),
    ] {
        assert_eq!(scene.report(bad), None, "{bad:?}");
    }
    assert_eq!(scene.counts().malformed, 6);
}

#[test]
fn sums_of_the_largest_quantities_hold() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, i64::MAX);
    assert_eq!(scene.denial(), None);
    for (sequence, exec) in [(1, 11), (2, 12), (3, 13)] {
        let report = fill(id, sequence, i64::MAX, i64::MAX, i64::MAX);
        scene.report(ExecutionReport { exec_id: ExecId(exec), ..report });
    }
    assert_eq!(scene.bought(), (3 * i128::from(i64::MAX), 0));
    scene.order(2, Side::Buy, 100, i64::MAX);
    assert_eq!(scene.denial(), Some((Denial::Position, i64::MAX.into(), 4 * i128::from(i64::MAX))));
}

#[test]
fn the_largest_values_of_many_orders_add_up() {
    let mut scene = Scene::new();
    scene.apply(Input::Instrument(instrument(i64::MAX)));
    scene.reference = Price(i64::MAX);
    for client in 1..=100 {
        scene.order(client, if client % 2 == 0 { Side::Buy } else { Side::Sell }, i64::MIN, i64::MAX / 200);
        assert_eq!(scene.denial(), None);
    }
    scene.doubt(LOST_REPORTS);
    scene.apply(Input::DayEnd(DayEnd::default()));
    scene.apply(Input::Instrument(instrument(1)));
    assert_eq!(scene.counts().unknown, 100);
}

#[test]
fn the_largest_stamps_rates_and_gaps_hold() {
    let mut scene = Scene::new();
    scene.apply(Input::Venue(VenueRules { max_gap_ns: u64::MAX, ..VenueRules::of(VENUE) }));
    scene.apply(Input::Boot(Boot { epoch: (1 << 24) - 1, ticks_per_second: 1, ..Default::default() }));
    let id = scene.order(1, Side::Buy, 100, 1);
    scene.report(reported(id, ExecType::New, id, u64::MAX, 0, 1));
    scene.stamp = u64::MAX - 2;
    assert!(scene.core.needs_gap_timer(u64::MAX));
    scene.apply(Input::GapTimer(tickpath_oms_core::GapTimer::default()));
    assert_eq!(scene.state(id), OrdStatus::Unknown);
}
