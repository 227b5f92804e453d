//! Fills that are busted or corrected: in order, before the fill itself arrives, and twice.

use tickpath_market::{ExecId, ExecType, ExecutionReport, OrdStatus, Price, Side};
use tickpath_oms_core::LOST_REPORTS;

use crate::scene::{Scene, amended, fill, reported};

use ExecType::{TradeCancel, TradeCorrect};

/// Applies reports on a buy of 10, and checks status, cumulative quantity, net position and exposure.
#[track_caller]
fn check(
    name: &str,
    reports: &[fn(u64) -> ExecutionReport],
    status: OrdStatus,
    cumulative: i64,
    exposed: i128,
) -> Scene {
    for numbered in [true, false] {
        let mut scene = Scene::numbered(numbered);
        let id = scene.order(1, Side::Buy, 100, 10);
        for report in reports {
            let report = report(id);
            let venue_sequence = if numbered { report.venue_sequence } else { 0 };
            scene.report(ExecutionReport { venue_sequence, ..report });
        }
        let view = scene.view(id);
        let shown = (view.status, view.cumulative.0, scene.bought());
        assert_eq!(shown, (status, cumulative, (cumulative.into(), exposed)), "{name}, numbered {numbered}");
        assert_eq!(scene.counts().contradictions, 0, "{name}, numbered {numbered}");
    }
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    reports.iter().for_each(|report| {
        scene.report(report(id));
    });
    scene
}

const NEW: fn(u64) -> ExecutionReport = |i| reported(i, ExecType::New, i, 1, 0, 10);
const FILL: fn(u64) -> ExecutionReport = |i| fill(i, 2, 4, 4, 6);
/// The busted quantity returns to the book.
const BUST: fn(u64) -> ExecutionReport = |i| amended(i, TradeCancel, 4, 3, 4, 0, 10);
const CORRECT: fn(u64) -> ExecutionReport = |i| amended(i, TradeCorrect, 4, 3, 1, 1, 9);

#[test]
fn a_bust_takes_its_fill_back() {
    let scene = check("bust", &[NEW, FILL, BUST], OrdStatus::New, 0, 10);
    let report = scene.client_reports()[0];
    assert_eq!((report.exec_type, report.exec_id, report.last_quantity.0), (TradeCancel.code(), ExecId(4), 4));
    check(
        "bust of the last fill",
        &[NEW, FILL, |i| fill(i, 3, 6, 10, 0), |i| amended(i, TradeCancel, 10, 4, 6, 4, 6)],
        OrdStatus::PartiallyFilled,
        4,
        6,
    );
}

#[test]
fn a_correction_gives_its_fill_another_quantity() {
    check("less", &[NEW, FILL, CORRECT], OrdStatus::PartiallyFilled, 1, 9);
    check("more", &[NEW, FILL, |i| amended(i, TradeCorrect, 4, 3, 7, 7, 3)], OrdStatus::PartiallyFilled, 7, 3);
    check("all", &[NEW, FILL, |i| amended(i, TradeCorrect, 4, 3, 10, 10, 0)], OrdStatus::Filled, 10, 0);
    check(
        "another price only",
        &[NEW, FILL, |i| ExecutionReport { last_price: Price(99), ..amended(i, TradeCorrect, 4, 3, 4, 4, 6) }],
        OrdStatus::PartiallyFilled,
        4,
        6,
    );
}

#[test]
fn a_duplicate_amendment_is_booked_and_reported_once() {
    for (name, amendment, cumulative) in [("bust", BUST, 0), ("correction", CORRECT, 1)] {
        let status = if cumulative == 0 { OrdStatus::New } else { OrdStatus::PartiallyFilled };
        let scene = check(name, &[NEW, FILL, amendment, amendment], status, cumulative, 10 - i128::from(cumulative));
        assert_eq!((scene.out.len(), scene.counts().duplicates), (0, 1), "{name}");
        let scene = check(name, &[NEW, FILL, amendment, FILL], status, cumulative, 10 - i128::from(cumulative));
        assert_eq!((scene.out.len(), scene.counts().duplicates), (0, 1), "{name}: its fill comes again");
    }
}

#[test]
fn an_amendment_before_its_fill_stands_in_for_it() {
    check("bust", &[NEW, BUST, FILL], OrdStatus::New, 0, 10);
    check("correction", &[NEW, CORRECT, FILL], OrdStatus::PartiallyFilled, 1, 9);
    check("bust, nothing else", &[BUST], OrdStatus::PendingNew, 0, 10);
}

#[test]
fn the_amendment_with_the_higher_sequence_holds() {
    let second: fn(u64) -> ExecutionReport = |i| amended(i, TradeCorrect, 4, 4, 6, 6, 4);
    for reports in [[NEW, FILL, CORRECT, second], [second, CORRECT, FILL, NEW], [CORRECT, second, NEW, FILL]] {
        let mut scene = Scene::new();
        let id = scene.order(1, Side::Buy, 100, 10);
        reports.iter().for_each(|report| {
            scene.report(report(id));
        });
        assert_eq!((scene.state(id), scene.bought()), (OrdStatus::PartiallyFilled, (6, 4)));
    }
}

#[test]
fn a_busted_quantity_that_is_not_working_is_no_exposure() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    for report in [NEW(id), fill(id, 2, 10, 10, 0), amended(id, TradeCancel, 10, 3, 10, 0, 0)] {
        scene.report(report);
    }
    assert_eq!((scene.bought(), scene.core.open_orders().count(), scene.counts().done), ((0, 0), 0, 1));
}

#[test]
fn both_sides_of_a_trade_may_share_an_execution_id() {
    let mut scene = Scene::new();
    let (buy, sell) = (scene.order(1, Side::Buy, 100, 4), scene.order(2, Side::Sell, 100, 4));
    for id in [buy, sell] {
        scene.report(reported(id, ExecType::New, id, 1, 0, 4));
        assert_eq!(scene.report(fill(id, 2, 4, 4, 0)), Some(OrdStatus::Filled));
    }
    scene.report(amended(sell, TradeCancel, 4, 3, 4, 0, 4));
    assert_eq!((scene.state(buy), scene.state(sell)), (OrdStatus::Filled, OrdStatus::New));
    assert_eq!((scene.position().net, scene.position().working_sell), (4, 4));
}

#[test]
fn an_amendment_without_an_id_or_a_quantity_is_malformed() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    for what in [TradeCancel, TradeCorrect] {
        for (exec, last) in [(0, 4), (4, 0), (4, -1)] {
            assert_eq!(scene.report(amended(id, what, exec, 1, last, 0, 10)), None);
        }
    }
    assert_eq!((scene.counts().malformed, scene.bought()), (6, (0, 10)));
}

/// Returns a buy of 10 whose fill of 4 was received or not, after an operator has resolved it to another state.
fn resolved(was_reported: bool, status: OrdStatus, cumulative: i64) -> (Scene, u64) {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(NEW(id));
    if was_reported {
        scene.report(FILL(id));
    }
    scene.doubt(LOST_REPORTS);
    scene.resolve(id, status, cumulative, "the venue's desk");
    assert_eq!(scene.bought().0, cumulative.into());
    (scene, id)
}

#[test]
fn an_amendment_changes_a_fill_that_an_operator_booked() {
    use OrdStatus::{Canceled, New, PartiallyFilled};
    for (name, what, last, after, bought) in [
        ("bust", TradeCancel, 4, New, 0),
        ("correction to less", TradeCorrect, 1, PartiallyFilled, 1),
        ("correction to more", TradeCorrect, 6, PartiallyFilled, 6),
    ] {
        let (mut scene, id) = resolved(false, PartiallyFilled, 4);
        let report = amended(id, what, 4, 3, last, bought, 10 - bought);
        assert_eq!(scene.report(report), Some(after), "{name}");
        assert_eq!((scene.view(id).cumulative.0, scene.bought()), (bought, (bought.into(), 10 - i128::from(bought))));
        assert_eq!((scene.report(report), scene.counts().contradictions), (None, 0), "{name}: it counts once");
    }
    let (mut scene, id) = resolved(false, Canceled, 4);
    let bust = amended(id, TradeCancel, 4, 3, 4, 0, 0);
    let bust = ExecutionReport { status: Canceled.code(), ..bust };
    assert_eq!((scene.report(bust), scene.bought()), (Some(Canceled), (0, 0)), "it is done, and stays so");
}

#[test]
fn a_bust_does_not_repeat_an_operators_bust() {
    let (mut scene, id) = resolved(true, OrdStatus::New, 0);
    assert_eq!((scene.report(BUST(id)), scene.bought()), (Some(OrdStatus::New), (0, 10)));
    scene.report(ExecutionReport { exec_id: ExecId(5), ..fill(id, 4, 3, 3, 7) });
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::PartiallyFilled, (3, 7)));
}

#[test]
fn an_operators_quantity_covers_earlier_fills() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(NEW(id));
    scene.report(fill(id, 3, 2, 6, 4));
    scene.doubt(LOST_REPORTS);
    scene.resolve(id, OrdStatus::PartiallyFilled, 6, "the venue's desk");
    assert_eq!((scene.report(FILL(id)), scene.bought()), (Some(OrdStatus::PartiallyFilled), (6, 4)));
    assert_eq!((scene.counts().contradictions, scene.report(FILL(id))), (0, None));
    scene.report(fill(id, 4, 4, 10, 0));
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Filled, (10, 0)), "what comes later is news");
}
