//! Reports with venue sequences, in any order and with duplicates, end where the order in time ends.

use proptest::prelude::*;
use tickpath_market::{ExecId, ExecType, ExecutionReport, OrdStatus, Price, Side};
use tickpath_oms_core::{OrderView, PositionView};

use crate::dice::{Dice, seed};
use crate::scene::{Scene, amended, fill, reported};

/// Client ids of the order, the replace and the cancel.
const ORDER: u64 = 1;
const REPLACE: u64 = 2;
const CANCEL: u64 = 3;

/// Ids of an order and of its requests in a story.
#[derive(Clone, Copy)]
struct Ids {
    order: u64,
    replace: u64,
    cancel: u64,
}

type Story = fn(Ids) -> Vec<ExecutionReport>;

/// Stories: a name, the final status, and a venue's reports in the order of time. In each the order is 10 at 100, its
/// replace asks for 8 at 101, and its cancel follows.
const STORIES: &[(&str, OrdStatus, Story)] = &[
    ("filled before both", OrdStatus::Filled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 10, 10, 0),
            reported(i.order, ExecType::CancelRejected, i.replace, 3, 10, 0),
            reported(i.order, ExecType::CancelRejected, i.cancel, 4, 10, 0),
        ]
    }),
    ("replaced, filled in parts, cancel too late", OrdStatus::Filled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 3, 3, 7),
            replaced(i, 3, 3, 5),
            fill(i.order, 4, 4, 7, 1),
            fill(i.order, 5, 1, 8, 0),
            reported(i.order, ExecType::CancelRejected, i.cancel, 6, 8, 0),
        ]
    }),
    ("replaced, then canceled with 3 filled", OrdStatus::Canceled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 3, 3, 7),
            replaced(i, 3, 3, 5),
            reported(i.order, ExecType::Canceled, i.cancel, 4, 3, 0),
        ]
    }),
    ("fill after the cancel", OrdStatus::Canceled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            reported(i.order, ExecType::CancelRejected, i.replace, 2, 0, 10),
            reported(i.order, ExecType::Canceled, i.cancel, 3, 0, 0),
            fill(i.order, 4, 2, 2, 0),
        ]
    }),
    ("rejected", OrdStatus::Rejected, |i| vec![reported(i.order, ExecType::Rejected, i.order, 1, 0, 0)]),
    ("expired in parts", OrdStatus::Expired, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 1, 1, 9),
            fill(i.order, 3, 1, 2, 8),
            fill(i.order, 4, 1, 3, 7),
            reported(i.order, ExecType::Expired, 0, 5, 3, 0),
        ]
    }),
    ("restated twice by the venue", OrdStatus::Filled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            reported(i.order, ExecType::Replaced, 0, 2, 0, 9),
            reported(i.order, ExecType::CancelRejected, i.replace, 3, 0, 9),
            reported(i.order, ExecType::Replaced, 0, 4, 0, 6),
            reported(i.order, ExecType::CancelRejected, i.cancel, 5, 0, 6),
            fill(i.order, 6, 6, 6, 0),
        ]
    }),
    ("a bust of the first of two fills, what it took back works no more", OrdStatus::Canceled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 3, 3, 7),
            named(71, fill(i.order, 3, 4, 7, 3)),
            amended(i.order, ExecType::TradeCancel, 3, 4, 3, 4, 3),
            reported(i.order, ExecType::Canceled, i.cancel, 5, 4, 0),
        ]
    }),
    ("a bust that comes to the book again and is filled", OrdStatus::Filled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 10, 10, 0),
            amended(i.order, ExecType::TradeCancel, 10, 3, 10, 0, 10),
            named(72, fill(i.order, 4, 10, 10, 0)),
            reported(i.order, ExecType::CancelRejected, i.replace, 5, 10, 0),
            reported(i.order, ExecType::CancelRejected, i.cancel, 6, 10, 0),
        ]
    }),
    ("a fill corrected twice, the first way and back", OrdStatus::Filled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 4, 4, 6),
            amended(i.order, ExecType::TradeCorrect, 4, 3, 1, 1, 6),
            amended(i.order, ExecType::TradeCorrect, 4, 4, 4, 4, 6),
            named(73, fill(i.order, 5, 6, 10, 0)),
        ]
    }),
    ("all taken back", OrdStatus::Filled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 10, 10, 0),
            reported(i.order, ExecType::CancelRejected, i.replace, 3, 10, 0),
            reported(i.order, ExecType::CancelRejected, i.cancel, 4, 10, 0),
            amended(i.order, ExecType::TradeCancel, 10, 5, 10, 0, 0),
        ]
    }),
    ("corrected, then busted, after the end", OrdStatus::Canceled, |i| {
        vec![
            reported(i.order, ExecType::New, i.order, 1, 0, 10),
            fill(i.order, 2, 5, 5, 5),
            reported(i.order, ExecType::Canceled, i.cancel, 3, 5, 0),
            canceled(amended(i.order, ExecType::TradeCorrect, 5, 4, 4, 4, 0)),
            canceled(amended(i.order, ExecType::TradeCancel, 5, 5, 4, 0, 0)),
        ]
    }),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_arrival_converges(shuffle in any::<u64>(), duplicates in 0_usize..6) {
        for &(name, _, story) in STORIES {
            check(name, story, shuffle, duplicates);
        }
    }
}

#[test]
fn many_orders_of_arrival_converge() {
    let mut dice = Dice::new(seed());
    for _ in 0..2000 {
        let (name, _, story) = dice.pick(STORIES);
        check(name, story, dice.draw(), dice.below(20) as usize);
    }
}

#[test]
fn consistent_reports_end_in_the_venues_state_without_contradiction() {
    for &(name, status, story) in STORIES {
        let scene = scene_of(story, |_| {});
        let order = scene.core.order(tickpath_market::OrderId(ids(&scene).order)).unwrap();
        // Requests of the client that no report of the story answers are still outstanding.
        let shown = if order.status == OrdStatus::PendingCancel { OrdStatus::Filled } else { order.status };
        assert_eq!(shown, status, "{name}");
        let counts = scene.counts();
        assert_eq!((counts.contradictions, counts.mismatched, counts.malformed), (0, 0, 0), "{name}");
    }
}

fn check(name: &str, story: Story, shuffle: u64, duplicates: usize) {
    let in_time = end(&scene_of(story, |_| {}));
    let mut dice = Dice::new(shuffle);
    let scene = scene_of(story, |reports| {
        for _ in 0..duplicates {
            let again = dice.pick(&reports[..]);
            reports.push(again);
        }
        for place in (1..reports.len()).rev() {
            reports.swap(place, dice.below(place as u64 + 1) as usize);
        }
    });
    assert_eq!(end(&scene), in_time, "{name}, shuffle {shuffle}, duplicates {duplicates}");
    assert_eq!(scene.counts().contradictions, 0, "{name}, shuffle {shuffle}, duplicates {duplicates}");
}

/// Returns a scene in which all reports of a story have arrived, in the order that `arrange` gives them.
fn scene_of(story: Story, arrange: impl FnOnce(&mut Vec<ExecutionReport>)) -> Scene {
    let mut scene = Scene::new();
    scene.order(ORDER, Side::Buy, 100, 10);
    scene.replace(REPLACE, ORDER, 101, 8);
    scene.cancel(CANCEL, ORDER);
    assert_eq!(scene.denial(), None);
    let mut reports = story(ids(&scene));
    arrange(&mut reports);
    for report in reports {
        scene.report(report);
    }
    scene
}

/// Returns the ids of the first three requests after a scene's definitions.
fn ids(scene: &Scene) -> Ids {
    let order = (1..).find(|&id| scene.core.order(tickpath_market::OrderId(id)).is_some()).unwrap();
    Ids { order, replace: order + 1, cancel: order + 2 }
}

fn end(scene: &Scene) -> (OrderView, PositionView) {
    (scene.view(ids(scene).order), scene.position())
}

fn named(exec: u64, fill: ExecutionReport) -> ExecutionReport {
    ExecutionReport { exec_id: ExecId(exec), ..fill }
}

/// Returns the amendment with the status of an ended order.
fn canceled(amendment: ExecutionReport) -> ExecutionReport {
    ExecutionReport { status: OrdStatus::Canceled.code(), ..amendment }
}

fn replaced(ids: Ids, sequence: u64, cumulative: i64, leaves: i64) -> ExecutionReport {
    let report = reported(ids.order, ExecType::Replaced, ids.replace, sequence, cumulative, leaves);
    ExecutionReport { price: Price(101), ..report }
}
