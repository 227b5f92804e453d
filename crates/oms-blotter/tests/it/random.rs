//! Random days of a real OMS: orders that cross, busts and corrections in any order, checked against the core and the
//! cash flow.

use tickpath_oms_blotter::FillState;
use tickpath_oms_core::{Config as CoreConfig, Core};
use tickpath_oms_runtime::journal;

use super::*;

/// Days of a run, and steps of each day.
const DAYS: u32 = 3;
const STEPS: u64 = 120;
const SEEDS: u64 = 6;

/// A xorshift generator: the same seed gives the same days.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }

    fn price(&mut self) -> i64 {
        95 + self.below(11) as i64
    }
}

#[test]
fn every_day_agrees_with_the_core_and_the_cash_flow() {
    let first = std::env::var("TICKPATH_SEED").map_or(1, |text| text.parse().expect("TICKPATH_SEED is a number"));
    for seed in first..first + SEEDS {
        eprintln!("TICKPATH_SEED={seed}");
        run(seed);
    }
}

fn run(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut scene = Scene::new();
    let (mut busts, mut corrections) = (0, 0);
    for day in 0..DAYS {
        for id in 1..=STEPS {
            match dice.below(10) {
                0 => {
                    let bid = dice.price();
                    scene.tick(bid, bid + 2);
                }
                1 => busts += u32::from(amend(&mut scene, &mut dice, true)),
                2 => corrections += u32::from(amend(&mut scene, &mut dice, false)),
                _ => {
                    let side = if dice.below(2) == 0 { Side::Buy } else { Side::Sell };
                    let kept = if dice.below(4) == 0 { TimeInForce::GoodTillCancel } else { TimeInForce::Day };
                    let order = limit(side, id, dice.price(), 1 + dice.below(9) as i64);
                    scene.send(Request::New(NewOrder { time_in_force: kept.code(), ..order }));
                }
            }
        }
        check(&scene, DayChoice::Today, seed);
        scene.end_day(20_261_101 + day);
        // The core is beyond the ended day, so the day's own numbers must agree with each other.
        balance(&scene.read(DayChoice::Date(20_261_101 + day)), seed);
    }
    assert!(busts > 0 && corrections > 0, "seed {seed}: {busts} busts, {corrections} corrections");
}

/// Busts or corrects a fill of the day that holds; returns false if there is none.
fn amend(scene: &mut Scene, dice: &mut Dice, bust: bool) -> bool {
    let mut held = fills(&scene.read(DayChoice::Today));
    held.retain(|fill| fill.state != FillState::Busted && fill.exec_id.0 != 0);
    if held.is_empty() {
        return false;
    }
    let exec_id = held[dice.below(held.len() as u64) as usize].exec_id;
    let done = match bust {
        true => scene.venue.bust(exec_id),
        false => {
            let (price, quantity) = (Price::from_whole(dice.price()), Quantity::from_whole(1 + dice.below(9) as i64));
            scene.venue.correct(exec_id, price, quantity)
        }
    };
    done.unwrap_or_else(|e| panic!("execution {exec_id}: {e}"));
    scene.settle();
    true
}

/// Checks the current day against the core.
fn check(scene: &Scene, which: DayChoice, seed: u64) {
    let mut core = Core::new(CoreConfig::default());
    journal::replay(scene.journal(), &mut core, |_, _| {}).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let blotter = scene.read(which);
    for row in orders(&blotter, &BlotterView::default()) {
        let Some(order) = core.order(row.id) else { continue };
        assert_eq!((row.filled, row.leaves), (order.cumulative, order.leaves), "seed {seed}: {row:?}");
        let of_order = |fill: &&BlotterFill| fill.order_id == row.id;
        let counted: i64 = blotter.fills(&BlotterView::default()).filter(of_order).map(|fill| fill.counted.0).sum();
        assert_eq!(counted, row.filled_on_day.0, "seed {seed}: {row:?}");
    }
    for row in blotter.positions(&BlotterView::default()) {
        let position = core.position(row.account, row.symbol);
        assert_eq!(row.end_quantity, position.net, "seed {seed}: {row:?}");
    }
    balance(&blotter, seed);
}

/// Checks that realised plus open profit is the cash flow plus the change of the position's value, to the last digit.
fn balance(blotter: &DayBlotter, seed: u64) {
    let (start, mark) = (Price::from_whole(97).0, Price::from_whole(103).0);
    let name = || "FIRST".to_owned();
    let view =
        BlotterView { starts: [(name(), start)].into(), marks: [(name(), mark)].into(), ..BlotterView::default() };
    let mut cash = 0;
    for fill in fills(blotter) {
        cash -= fill.signed() * i128::from(fill.price.expect("nobody has resolved anything").0);
    }
    let row = position(blotter, &view);
    let value = row.end_quantity * i128::from(mark) - row.start_quantity * i128::from(start);
    let profit = row.realised.zip(row.open).map(|(realised, open)| realised + open);
    assert_eq!(profit, Some((cash + value) * i128::from(MULTIPLIER)), "seed {seed}: {row:?}");
    assert_eq!(row.end_quantity, row.start_quantity + row.bought_quantity - row.sold_quantity, "seed {seed}: {row:?}");
}
