//! Random bytes and extreme values never panic.

use tickpath_market::{ExecType, Side};
use tickpath_orders::{At, Config, Core, Envelope, Input, Outputs, RecordKind};

use crate::dice::{Dice, seed};
use crate::scene::{Scene, fill, order, said};

const LENGTHS: &[usize] = &[0, 1, 8, 16, 24, 32, 64, 80, 88, 96, 104, 127];

#[test]
fn random_records_are_read_or_refused() {
    let mut dice = Dice::new(seed());
    let mut core = Core::new(Config { expected_orders: usize::MAX });
    let mut out = Outputs::new();
    for _ in 0..100_000 {
        let kind = if dice.once_in(10) { dice.below(256) as u8 } else { dice.pick(RecordKind::ALL).code() };
        let small = dice.once_in(2);
        let bytes: Vec<u8> =
            (0..dice.pick(LENGTHS)).map(|_| if small { dice.below(3) as u8 } else { dice.draw() as u8 }).collect();
        if let Ok(Some(input)) = Input::read(kind, &bytes) {
            let mut buffer = [0; 128];
            assert_eq!(input.kind().code(), kind);
            assert_eq!(input.write(&mut buffer), bytes);
            core.apply(At { sequence: dice.below(1 << 20), stamp: dice.draw() }, &input, &mut out);
        }
    }
    assert_eq!(core.digest().outputs > 0, core.digest().digest != 0);
}

#[test]
fn unchecked_codes_are_denied_or_counted() {
    let mut scene = Scene::new();
    let new = tickpath_market::NewOrder { side: 9, ..order(1, Side::Buy, 100, 1) };
    let input = Input::Request { envelope: Envelope::default(), request: tickpath_market::Request::New(new) };
    scene.say(input);
    assert!(scene.denial().is_some());
    let id = scene.order(2, Side::Buy, 100, 1);
    for bad in [
        tickpath_market::ExecutionReport { exec_type: 99, ..said(id, ExecType::New, id, 1, 0, 1) },
        tickpath_market::ExecutionReport { status: 99, ..said(id, ExecType::New, id, 1, 0, 1) },
        said(id, ExecType::New, id, 1, -1, 1),
        said(id, ExecType::New, id, 1, 0, i64::MIN),
        fill(id, 1, 0, 1, 0),
        fill(id, 1, 1, 0, 1),
    ] {
        assert_eq!(scene.hear(bad), None, "{bad:?}");
    }
    assert_eq!(scene.core.counts().malformed, 6);
}

#[test]
fn sums_of_the_largest_quantities_hold() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, i64::MAX);
    assert_eq!(scene.denial(), None);
    for (sequence, exec) in [(1, 11), (2, 12), (3, 13)] {
        let report = tickpath_market::ExecutionReport {
            exec_id: tickpath_market::ExecId(exec),
            ..fill(id, sequence, i64::MAX, i64::MAX, i64::MAX)
        };
        assert!(scene.hear(report).is_some());
    }
    assert_eq!(scene.position().net, 3 * i128::from(i64::MAX));
    assert_eq!(scene.position().working_buy, 0);
    scene.order(2, Side::Buy, 100, i64::MAX);
    assert!(scene.denial().is_some());
}
