//! The core against the naive model: 100,000 random inputs, every output, order and position.

use tickpath_market::{AccountId, OrderId, SymbolId};
use tickpath_orders::{At, Config, Core, Input, Outputs};

use crate::dice::{Dice, input, seed};
use crate::naive::{Naive, prelude};

/// Rounds of a test run, and of a long one (`TICKPATH_SOAK`).
const ROUNDS: u64 = 100;
const SOAK_ROUNDS: u64 = 3_000;
const INPUTS: u64 = 1000;

#[test]
fn the_core_is_the_model() {
    let seed = seed();
    let rounds = if std::env::var_os("TICKPATH_SOAK").is_some() { SOAK_ROUNDS } else { ROUNDS };
    let passed: u64 = (0..rounds).map(|round| compare(seed.wrapping_add(round))).sum();
    assert!(passed > rounds * 20, "the inputs are worth a test: {passed} requests passed");
}

/// Returns how many requests passed.
fn compare(seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let (mut core, mut naive, mut out) = (Core::new(Config::default()), Naive::default(), Outputs::new());
    let (mut at, mut passed) = (At { sequence: 0, stamp: 0 }, 0);
    for step in 0..INPUTS {
        let input = prelude().get(step as usize).copied().unwrap_or_else(|| input(&mut dice, at.sequence));
        at.sequence += if dice.once_in(200) { 0 } else { 1 };
        at.stamp += dice.below(10);
        core.apply(at, &input, &mut out);
        let expected = naive.apply(at, &input);
        assert_eq!(out.as_slice(), expected, "seed {seed}, step {step}: {input:?}");
        passed += u64::from(out.len() == 2);
        check_touched(&core, &naive, &input, at, &format!("seed {seed}, step {step}: {input:?}"));
    }
    for &id in naive.lives.keys() {
        assert_eq!(core.order(OrderId(id)), naive.view(id), "seed {seed}, order {id}");
    }
    let counts = core.counts();
    let orders = counts.sending + counts.working + counts.done + counts.rejected + counts.denied + counts.unknown;
    assert_eq!(orders, naive.lives.len() as u64, "seed {seed}: {counts:?}");
    passed
}

fn check_touched(core: &Core, naive: &Naive, input: &Input, at: At, context: &str) {
    let id = match input {
        Input::Report(report) => report.order_id.0,
        Input::Request { .. } => at.sequence,
        Input::Instrument(_) | Input::Account(_) | Input::Kill(_) => return,
    };
    assert_eq!(core.order(OrderId(id)), naive.view(id), "{context}");
    for (account, symbol) in [(1, 1), (2, 1), (1, 2), (3, 3)] {
        let position = core.position(AccountId(account), SymbolId(symbol));
        assert_eq!(position, naive.position(account, symbol), "{context}: account {account}, symbol {symbol}");
    }
}
