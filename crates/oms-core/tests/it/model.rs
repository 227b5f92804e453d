//! The core against the naive model: 300,000 random inputs, every output, order, position and count.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{AccountId, OrderId, SymbolId, VenueId};
use tickpath_oms_core::{Denial, Input, Output};

use crate::dice::seed;
use crate::naive::Naive;
use crate::random_inputs::World;

/// Rounds of a test run, and of a long run (`TICKPATH_SOAK`).
const ROUNDS: u64 = 300;
const SOAK_ROUNDS: u64 = 3_000;
const INPUTS: u64 = 1000;

/// Denials of inputs that are not drawn here: `text_ids` and `expiry` have a model of their own.
const MODELLED_ELSEWHERE: [Denial; 2] = [Denial::DuplicateTextId, Denial::EndTimePassed];

#[test]
fn the_core_equals_the_naive_model() {
    let seed = seed();
    let rounds = if std::env::var_os("TICKPATH_SOAK").is_some() { SOAK_ROUNDS } else { ROUNDS };
    let mut denials = BTreeSet::new();
    let outputs: u64 = (0..rounds).map(|round| compare(seed.wrapping_add(round), &mut denials)).sum();
    assert!(outputs > rounds * INPUTS / 3, "the inputs are worth a test: {outputs} outputs");
    let drawn = Denial::ALL.iter().filter(|denial| !MODELLED_ELSEWHERE.contains(denial));
    let never: Vec<&Denial> = drawn.filter(|denial| !denials.contains(&denial.code())).collect();
    assert!(never.is_empty(), "nothing was denied for {never:?}");
}

/// Compares core and model over one seed, collects the denial codes, and returns the number of outputs.
fn compare(seed: u64, denials: &mut BTreeSet<u16>) -> u64 {
    let (mut world, mut naive, mut outputs) = (World::new(seed), Naive::new(), 0);
    for step in 0..INPUTS {
        let (at, input) = world.step();
        let context = format!("seed {seed}, step {step}, {at:?}: {input:?}");
        let expected = naive.apply(at, &input);
        assert_eq!(world.out.as_slice(), expected, "{context}");
        outputs += expected.len() as u64;
        denials.extend(expected.iter().filter_map(|output| match output {
            Output::Denied { denied, .. } => Some(denied.code),
            _ => None,
        }));
        if let Input::Report(record) = input {
            let id = record.report.order_id;
            assert_eq!(world.core.order(id), naive.view(id.0), "{context}");
        }
        let is_all = step % 50 == 49 || matches!(input, Input::DayEnd(_));
        check_sums(&world, &naive, is_all, &context);
    }
    outputs
}

/// Checks the pages of open orders of each account.
fn check_pages(world: &World, naive: &Naive, context: &str) {
    for account in [1, 2] {
        let (mut after, mut listed) = (None, Vec::new());
        loop {
            let page = world.core.open_page(after, 2, |seen| seen.0 == account);
            listed.extend(page.orders);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let open = naive.lives.values().filter(|life| life.is_open()).filter_map(|life| naive.view(life.id));
        let expected: Vec<_> = open.filter(|view| view.account.0 == account).collect();
        assert_eq!(listed, expected, "{context}: account {account}");
    }
}

fn check_sums(world: &World, naive: &Naive, is_all: bool, context: &str) {
    assert_eq!(world.core.counts(), naive.counts(), "{context}");
    for (account, symbol) in [(1, 1), (2, 1), (1, 2), (3, 3)] {
        let position = world.core.position(AccountId(account), SymbolId(symbol));
        assert_eq!(position, naive.position(account, symbol), "{context}: account {account}, symbol {symbol}");
    }
    if !is_all {
        return;
    }
    for &id in naive.lives.keys() {
        assert_eq!(world.core.order(OrderId(id)), naive.view(id), "{context}: order {id}");
    }
    let mut live: Vec<_> = world.core.open_orders().map(|view| view.id.0).collect();
    live.sort_unstable();
    let open = naive.lives.values().filter(|life| life.is_open()).map(|life| life.id);
    assert_eq!(live, open.collect::<Vec<_>>(), "{context}");
    check_pages(world, naive, context);
    let armed = world.core.armed_orders().map(|armed| (armed.order.0, (armed.trigger, armed.request_id, armed.since)));
    let waits = naive.armed().into_iter().map(|(id, waits)| (id, (waits.trigger, waits.by, waits.since)));
    assert_eq!(armed.collect::<BTreeMap<_, _>>(), waits.collect(), "{context}");
    for venue in [1, 2, 3].map(VenueId) {
        assert_eq!(world.core.waiting(venue), naive.waits(venue), "{context}: {venue}");
    }
}
