//! Reports with venue sequences, in any order and with duplicates, end where the order in time ends.

use proptest::prelude::*;
use tickpath_market::{ExecType, ExecutionReport, OrdStatus, Price, Side};
use tickpath_orders::{OrderView, PositionView};

use crate::dice::{Dice, seed};
use crate::scene::{Scene, fill, said};

/// Client ids of the order, the replace, the cancel.
const ORDER: u64 = 1;
const REPLACE: u64 = 2;
const CANCEL: u64 = 3;

/// What an order and its requests are called in a story.
#[derive(Clone, Copy)]
struct Ids {
    order: u64,
    replace: u64,
    cancel: u64,
}

type Story = fn(Ids) -> Vec<ExecutionReport>;

/// What a venue says of an order of 10 at 100 that is asked to be 8 at 101 and then to be canceled, told in time.
const STORIES: &[(&str, Story)] = &[
    ("filled before both", |i| {
        vec![
            said(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 10, 10, 0),
            said(i.order, ExecType::CancelRejected, i.replace, 3, 10, 0),
            said(i.order, ExecType::CancelRejected, i.cancel, 4, 10, 0),
        ]
    }),
    ("replaced, filled in parts, cancel too late", |i| {
        vec![
            said(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 3, 3, 7),
            replaced(i, 3, 3, 5),
            fill(i.order, 4, 4, 7, 1),
            fill(i.order, 5, 1, 8, 0),
            said(i.order, ExecType::CancelRejected, i.cancel, 6, 8, 0),
        ]
    }),
    ("replaced, then canceled with 3 filled", |i| {
        vec![
            said(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 3, 3, 7),
            replaced(i, 3, 3, 5),
            said(i.order, ExecType::Canceled, i.cancel, 4, 3, 0),
        ]
    }),
    ("fill after the cancel", |i| {
        vec![
            said(i.order, ExecType::New, i.order, 1, 0, 10),
            said(i.order, ExecType::CancelRejected, i.replace, 2, 0, 10),
            said(i.order, ExecType::Canceled, i.cancel, 3, 0, 0),
            fill(i.order, 4, 2, 2, 0),
        ]
    }),
    ("rejected", |i| vec![said(i.order, ExecType::Rejected, i.order, 1, 0, 0)]),
    ("expired in parts", |i| {
        vec![
            said(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 1, 1, 9),
            fill(i.order, 3, 1, 2, 8),
            fill(i.order, 4, 1, 3, 7),
            said(i.order, ExecType::Expired, 0, 5, 3, 0),
        ]
    }),
    ("restated twice by the venue", |i| {
        vec![
            said(i.order, ExecType::New, i.order, 1, 0, 10),
            said(i.order, ExecType::Replaced, 0, 2, 0, 9),
            said(i.order, ExecType::CancelRejected, i.replace, 3, 0, 9),
            said(i.order, ExecType::Replaced, 0, 4, 0, 6),
            said(i.order, ExecType::CancelRejected, i.cancel, 5, 0, 6),
            fill(i.order, 6, 6, 6, 0),
        ]
    }),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_arrival_ends_the_same(shuffle in any::<u64>(), duplicates in 0_usize..6) {
        for (name, story) in STORIES {
            check(name, *story, shuffle, duplicates);
        }
    }
}

#[test]
fn many_orders_of_arrival_end_the_same() {
    let mut dice = Dice::new(seed());
    for _ in 0..1000 {
        let (name, story) = dice.pick(STORIES);
        check(name, story, dice.draw(), dice.below(20) as usize);
    }
}

fn check(name: &str, story: Story, shuffle: u64, duplicates: usize) {
    let in_time = end(story, |_| {});
    assert_ne!(in_time.0.status, OrdStatus::Unknown, "{name}");
    let mut dice = Dice::new(shuffle);
    let arrived = end(story, |reports| {
        for _ in 0..duplicates {
            let again = dice.pick(&reports[..]);
            reports.push(again);
        }
        for place in (1..reports.len()).rev() {
            reports.swap(place, dice.below(place as u64 + 1) as usize);
        }
    });
    assert_eq!(arrived, in_time, "{name}, shuffle {shuffle}, duplicates {duplicates}");
}

/// The state and the position when all reports have arrived.
fn end(story: Story, arrange: impl FnOnce(&mut Vec<ExecutionReport>)) -> (OrderView, PositionView) {
    let mut scene = Scene::new();
    let order = scene.order(ORDER, Side::Buy, 100, 10);
    let replace = scene.replace(REPLACE, ORDER, 101, 8);
    let cancel = scene.cancel(CANCEL, ORDER);
    assert_eq!(scene.denial(), None);
    let mut reports = story(Ids { order, replace, cancel });
    arrange(&mut reports);
    for report in reports {
        scene.hear(report);
    }
    (scene.view(order), scene.position())
}

fn replaced(ids: Ids, sequence: u64, cumulative: i64, leaves: i64) -> ExecutionReport {
    let report = said(ids.order, ExecType::Replaced, ids.replace, sequence, cumulative, leaves);
    ExecutionReport { price: Price(101), ..report }
}
