//! Orders in doubt: they are `Unknown`, keep their exposure, and the core asks the venue for them instead of guessing.

use tickpath_market::{ExecType, ExecutionReport, OrdStatus, Request, Side};
use tickpath_oms_core::{Denial, GapTimer, Input, LOST_REPORTS, LOST_REQUESTS, VenueRules};

use crate::scene::{Scene, VENUE, amended, fill, reported, status_of};

use OrdStatus::{Canceled, Expired, Filled, New, PartiallyFilled, PendingNew, Rejected, Unknown};

fn refused(id: u64) -> ExecutionReport {
    reported(id, ExecType::Rejected, id, 0, 0, 0)
}

fn accepted(id: u64, number: u64) -> ExecutionReport {
    reported(id, ExecType::New, id, number, 0, 10)
}

type Said = fn(u64) -> ExecutionReport;

/// Applies reports on a buy of 10, of which the last contradicts the ones before it.
#[track_caller]
fn check_contradiction(name: &str, numbered: bool, reports: &[Said], bought: i128, exposed: i128) {
    let mut scene = Scene::numbered(numbered);
    let id = scene.order(1, Side::Buy, 100, 10);
    let (last, before) = reports.split_last().unwrap();
    for report in before {
        scene.report(report(id));
        assert_ne!(scene.state(id), Unknown, "{name}");
    }
    assert_eq!(scene.report(last(id)), Some(Unknown), "{name}");
    assert_eq!(scene.status_requests(), [id], "{name}: the venue is asked");
    assert_eq!(scene.bought(), (bought, exposed), "{name}: it keeps its exposure");
    assert_eq!((scene.counts().contradictions, scene.counts().unknown), (1, 1), "{name}");
}

#[test]
fn an_unsequenced_rejection_contradicts_a_live_order() {
    check_contradiction("it works", true, &[|i| accepted(i, 1), refused], 0, 10);
    check_contradiction("filled in parts", true, &[|i| accepted(i, 1), |i| fill(i, 2, 4, 4, 6), refused], 4, 6);
    check_contradiction("all filled", true, &[|i| accepted(i, 1), |i| fill(i, 2, 10, 10, 0), refused], 10, 0);
    check_contradiction("in flight to a venue that numbers", true, &[refused], 0, 10);
    check_contradiction("it works at a venue without numbers", false, &[|i| accepted(i, 0), refused], 0, 10);
    check_contradiction("accepted after it", false, &[refused, |i| accepted(i, 0)], 0, 10);
    check_contradiction("filled after it", false, &[refused, |i| fill(i, 0, 4, 4, 6)], 4, 6);
}

#[test]
fn an_unsequenced_rejection_leaves_an_ended_order_unchanged() {
    let mut scene = Scene::numbered(true);
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(id, ExecType::Rejected, id, 1, 0, 0));
    assert_eq!(scene.report(refused(id)), None);
    assert_eq!((scene.state(id), scene.counts().duplicates), (Rejected, 1));
}

#[test]
fn fills_that_do_not_add_up_are_a_contradiction() {
    const NEW: Said = |i| accepted(i, 1);
    check_contradiction("more than was asked for", true, &[NEW, |i| fill(i, 2, 12, 12, 0)], 12, 0);
    check_contradiction("the venue counts more", true, &[NEW, |i| fill(i, 2, 3, 5, 5)], 3, 7);
    check_contradiction("the venue counts less", true, &[NEW, |i| fill(i, 2, 3, 1, 9)], 3, 7);
    check_contradiction(
        "canceled with less than is filled",
        true,
        &[NEW, |i| fill(i, 2, 3, 3, 7), |i| reported(i, ExecType::Canceled, 0, 3, 0, 0)],
        3,
        7,
    );
    check_contradiction(
        "canceled with more than is filled",
        true,
        &[NEW, |i| reported(i, ExecType::Canceled, 0, 2, 4, 0)],
        0,
        10,
    );
    check_contradiction(
        "a bust that takes too much",
        true,
        &[NEW, |i| fill(i, 2, 3, 3, 7), |i| amended(i, ExecType::TradeCancel, 3, 3, 3, 2, 8)],
        0,
        10,
    );
}

#[test]
fn a_sequence_shared_by_two_fills_is_a_contradiction() {
    check_contradiction(
        "number 2 twice",
        true,
        &[|i| accepted(i, 1), |i| fill(i, 2, 3, 3, 7), |i| fill(i, 2, 3, 6, 4)],
        6,
        4,
    );
}

#[test]
fn fills_may_be_missing_while_a_sequence_is() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    assert_eq!(scene.report(fill(id, 3, 2, 6, 4)), Some(PartiallyFilled));
    assert_eq!(scene.report(accepted(id, 1)), None);
    assert_eq!(scene.report(fill(id, 2, 4, 4, 6)), Some(PartiallyFilled));
    assert_eq!((scene.bought(), scene.counts().contradictions), ((6, 4), 0));
}

#[test]
fn a_sequence_gap_that_lasts_too_long_is_a_doubt() {
    let mut scene = Scene::new();
    scene.apply(Input::Venue(VenueRules { max_gap_ns: 100, ..VenueRules::of(VENUE) }));
    let id = scene.order(1, Side::Buy, 100, 10);
    let other = scene.order(2, Side::Buy, 100, 10);
    scene.report(accepted(other, 1));
    scene.report(fill(id, 2, 4, 4, 6));
    let since = scene.stamp;
    assert!(!scene.core.needs_gap_timer(since + 99) && scene.core.needs_gap_timer(since + 100));
    scene.stamp = since + 98;
    scene.apply(Input::GapTimer(GapTimer::default()));
    assert_eq!((scene.state(id), scene.out.len()), (PartiallyFilled, 0), "not yet");
    scene.apply(Input::GapTimer(GapTimer::default()));
    assert_eq!((scene.state(id), scene.state(other)), (Unknown, New));
    assert_eq!((scene.status_requests(), scene.client_reports().len()), (vec![id], 1));
    assert!(!scene.core.needs_gap_timer(u64::MAX), "it is reported once");
    // The missing number arrives late, and the next event decides the status.
    scene.report(accepted(id, 1));
    assert_eq!(scene.report(fill(id, 3, 1, 5, 5)), Some(PartiallyFilled));
}

#[test]
fn a_sequence_older_than_the_window_is_never_seen() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 100);
    for number in 2..=80_i64 {
        scene.report(fill(id, number as u64, 1, number - 1, 101 - number));
    }
    scene.report(accepted(id, 1));
    scene.stamp += 2_000_000_000;
    scene.apply(Input::GapTimer(GapTimer::default()));
    assert_eq!(
        (scene.state(id), scene.status_requests()),
        (Unknown, vec![id]),
        "the window no longer shows whether it was seen"
    );
    assert_eq!(scene.answer(id, PartiallyFilled, 80, 79, 21), Some(PartiallyFilled));
    assert_eq!(scene.report(fill(id, 81, 1, 80, 20)), Some(PartiallyFilled), "from here on all is known again");
}

#[test]
fn a_sequence_that_arrives_in_time_ends_the_gap() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(fill(id, 2, 4, 4, 6));
    scene.report(accepted(id, 1));
    scene.stamp = u64::MAX - 10;
    scene.apply(Input::GapTimer(GapTimer::default()));
    assert_eq!(scene.state(id), PartiallyFilled);
}

/// Returns orders of every kind: in flight, working, with a cancel in flight, with a replace in flight, filled,
/// rejected.
fn one_of_each(scene: &mut Scene) -> [u64; 6] {
    let ids = [1, 2, 3, 4, 5, 6].map(|client| scene.order(client, Side::Buy, 100, 10));
    ids[1..5].iter().for_each(|&id| {
        scene.report(accepted(id, 1));
    });
    scene.cancel(13, 3);
    scene.replace(14, 4, 100, 12);
    scene.report(fill(ids[4], 2, 10, 10, 0));
    scene.report(reported(ids[5], ExecType::Rejected, ids[5], 1, 0, 0));
    ids
}

#[test]
fn lost_requests_doubt_unanswered_orders_lost_reports_all_live_ones() {
    for (lost, doubted) in [(LOST_REQUESTS, &[0, 2, 3][..]), (LOST_REPORTS, &[0, 1, 2, 3])] {
        let mut scene = Scene::new();
        let ids = one_of_each(&mut scene);
        let before = scene.position();
        let expected: Vec<u64> = doubted.iter().map(|&place| ids[place]).collect();
        scene.doubt(lost);
        assert_eq!(scene.status_requests(), expected, "lost {lost}");
        let unknown: Vec<u64> = ids.into_iter().filter(|&id| scene.state(id) == Unknown).collect();
        assert_eq!((unknown, scene.client_reports().len()), (expected.clone(), expected.len()), "lost {lost}");
        assert_eq!(scene.position(), before, "lost {lost}: the exposure stays");
        let views = ids.map(|id| scene.view(id));
        scene.doubt(lost);
        assert_eq!(ids.map(|id| scene.view(id)), views, "lost {lost}: twice is the same as once");
        assert_eq!(
            (scene.status_requests(), scene.client_reports().len()),
            (expected, 0),
            "lost {lost}: asked again, reported once"
        );
    }
}

/// A report of the order's arrival ends a doubt about lost requests, and leaves one about lost reports.
#[test]
fn the_kind_of_loss_decides_which_report_ends_the_doubt() {
    for (lost, expected) in [(LOST_REQUESTS, New), (LOST_REPORTS, Unknown)] {
        for numbered in [true, false] {
            let mut scene = Scene::numbered(numbered);
            let id = scene.order(1, Side::Buy, 100, 10);
            scene.doubt(lost);
            scene.report(accepted(id, u64::from(numbered)));
            assert_eq!(scene.state(id), expected, "numbered {numbered}, lost {lost}");
        }
    }
}

/// The fill was sent before the cancel, whose report is lost, and arrives after the loss.
#[test]
fn a_report_from_before_a_loss_does_not_end_the_doubt() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.line(false);
    scene.doubt(LOST_REPORTS);
    assert_eq!((scene.report(fill(id, 2, 4, 4, 6)), scene.status_requests()), (Some(Unknown), vec![]));
    scene.line(true);
    assert_eq!(scene.status_requests(), [id], "a venue that is back is asked");
    assert_eq!(scene.answer(id, Canceled, 3, 4, 0), Some(Canceled));
    assert_eq!(scene.bought(), (4, 0));
}

#[test]
fn an_answer_from_before_a_loss_does_not_end_the_doubt() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.inquire(id);
    let old = scene.sequence;
    scene.doubt(LOST_REPORTS);
    let new = scene.sequence;
    assert_eq!(scene.report(status_of(id, New, old, 1, 0, 10)), None);
    assert_eq!(scene.report(status_of(id, New, old, 2, 0, 8)), Some(Unknown), "its terms are taken");
    assert_eq!((scene.state(id), scene.view(id).quantity.0), (Unknown, 8));
    assert_eq!(scene.report(status_of(id, Canceled, new, 3, 0, 0)), Some(Canceled));
}

#[test]
fn an_overtaken_status_answer_is_requested_again() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.doubt(LOST_REPORTS);
    let question = scene.sequence;
    assert_eq!(scene.report(fill(id, 3, 4, 4, 6)), Some(Unknown));
    assert_eq!((scene.report(status_of(id, New, question, 2, 0, 10)), scene.status_requests()), (None, vec![id]));
    assert_eq!((scene.report(status_of(id, New, question, 2, 0, 10)), scene.status_requests()), (None, vec![]), "once");
    assert_eq!(scene.answer(id, PartiallyFilled, 3, 4, 6), Some(PartiallyFilled));
}

/// The venue has the order, and the core does not know whether the venue has the cancel, too.
#[test]
fn a_reconnected_venue_is_asked_for_orders_with_requests_before_a_loss() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.cancel(2, 1);
    scene.line(false);
    scene.doubt(LOST_REQUESTS);
    assert_eq!(scene.report(accepted(id, 1)), Some(OrdStatus::PendingCancel));
    scene.line(true);
    assert_eq!(scene.status_requests(), [id]);
    assert_eq!(scene.answer(id, New, 1, 0, 10), Some(New), "the cancel never came");
    scene.line(false);
    scene.line(true);
    assert!(scene.status_requests().is_empty(), "there is no doubt any more");
}

#[test]
fn a_filled_order_with_an_unanswered_cancel_is_in_doubt() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.cancel(2, 1);
    assert_eq!(scene.report(fill(id, 2, 10, 10, 0)), Some(OrdStatus::PendingCancel));
    scene.doubt(LOST_REPORTS);
    assert_eq!(scene.status_requests(), [id]);
    assert_eq!(scene.answer(id, Filled, 3, 10, 0), Some(Filled));
    assert_eq!((scene.bought(), scene.core.open_orders().count()), ((10, 0), 0));
}

#[test]
fn an_operator_ends_a_doubt_for_good() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.doubt(LOST_REPORTS);
    scene.resolve(id, New, 0, "x");
    let lost = ExecutionReport { status: Unknown.code(), ..reported(id, ExecType::New, 0, 0, 0, 0) };
    assert_eq!(scene.report(lost), Some(Unknown));
    assert_eq!(scene.report(fill(id, 2, 4, 4, 6)), Some(PartiallyFilled), "another doubt, which this report ends");
}

#[test]
fn a_loss_at_another_venue_puts_no_order_in_doubt() {
    let mut scene = Scene::new();
    one_of_each(&mut scene);
    scene.apply(Input::MessageLoss(tickpath_oms_core::MessageLoss { lost: LOST_REPORTS, ..Default::default() }));
    assert_eq!((scene.counts().unknown, scene.out.len()), (0, 0));
}

#[test]
fn a_waiting_order_is_not_in_doubt() {
    let mut scene = Scene::new();
    scene.line(false);
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.doubt(LOST_REQUESTS);
    scene.doubt(LOST_REPORTS);
    assert_eq!((scene.state(id), scene.out.len()), (PendingNew, 0));
}

/// Every answer of a venue to the status request for an order of 10 with 4 filled, and the resulting status.
#[test]
fn a_status_answer_decides_once_no_fill_is_missing() {
    for (status, number, cumulative, leaves, expected, bought) in [
        (PartiallyFilled, 2, 4, 6, PartiallyFilled, (4, 6)),
        (PartiallyFilled, 3, 4, 3, PartiallyFilled, (4, 3)),
        (Filled, 3, 4, 0, Filled, (4, 0)),
        (Canceled, 3, 4, 0, Canceled, (4, 0)),
        (Expired, 3, 4, 0, Expired, (4, 0)),
        (PartiallyFilled, 3, 6, 4, Unknown, (4, 6)),
        (Canceled, 4, 6, 0, Unknown, (4, 6)),
        (Filled, 4, 10, 0, Unknown, (4, 6)),
        // A lost bust.
        (New, 3, 0, 10, Unknown, (4, 6)),
        // An answer older than the known state.
        (Canceled, 1, 0, 0, Unknown, (4, 6)),
        // A status without a meaning in an answer.
        (OrdStatus::PendingReplace, 3, 4, 6, Unknown, (4, 6)),
    ] {
        let mut scene = Scene::new();
        let id = scene.order(1, Side::Buy, 100, 10);
        scene.report(accepted(id, 1));
        scene.report(fill(id, 2, 4, 4, 6));
        scene.doubt(LOST_REPORTS);
        scene.answer(id, status, number, cumulative, leaves);
        assert_eq!((scene.state(id), scene.bought()), (expected, bought), "{status:?} {number} {cumulative} {leaves}");
    }
}

/// The report of a replace to a larger quantity is lost, and the larger order is filled and canceled.
#[test]
fn an_order_larger_than_known_ends_as_its_venue_reports() {
    for status in [Canceled, Expired] {
        let mut scene = Scene::new();
        let id = scene.order(1, Side::Buy, 100, 10);
        scene.report(accepted(id, 1));
        scene.replace(2, 1, 99, 20);
        scene.report(fill(id, 3, 14, 14, 6));
        scene.stamp += 2_000_000_000;
        scene.apply(Input::GapTimer(GapTimer::default()));
        assert_eq!(scene.state(id), Unknown);
        scene.answer(id, status, 4, 14, 0);
        assert_eq!((scene.state(id), scene.bought()), (status, (14, 0)));
    }
}

/// A venue counts less filled than the core has booked: a lost bust may have moved the position back.
#[test]
fn a_possible_bust_is_exposure_on_the_other_side() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.report(fill(id, 2, 7, 7, 3));
    scene.doubt(LOST_REPORTS);
    assert_eq!((scene.bought(), scene.position().working_sell), ((7, 3), 0));
    assert_eq!(scene.answer(id, PartiallyFilled, 3, 2, 3), Some(Unknown));
    assert_eq!((scene.bought(), scene.position().working_sell), ((7, 0), 5));
    scene.report(amended(id, ExecType::TradeCorrect, 7, 3, 2, 2, 3));
    scene.inquire(id);
    scene.answer(id, PartiallyFilled, 3, 2, 3);
    assert_eq!((scene.state(id), scene.bought(), scene.position().working_sell), (PartiallyFilled, (2, 3), 0));
}

#[test]
fn only_an_unreported_order_is_rejected_as_never_arrived() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    assert_eq!(scene.answer_unknown(id), None, "an order in flight is not in doubt");
    scene.doubt(LOST_REQUESTS);
    assert_eq!(scene.answer_unknown(id), Some(Rejected));
    assert_eq!(scene.bought(), (0, 0));
    assert_eq!(scene.report(accepted(id, 1)), Some(Unknown), "it was there after all");
    assert_eq!((scene.bought(), scene.status_requests()), ((0, 10), vec![id]));

    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    assert_eq!(scene.answer_unknown(id), Some(Unknown));
    assert_eq!(scene.bought(), (0, 10));
    assert_eq!(scene.report(fill(id, 2, 1, 1, 9)), Some(PartiallyFilled), "the venue works it");
}

#[test]
fn a_status_answer_decides_requests_sent_before_its_query() {
    let mut scene = Scene::new();
    let ids = one_of_each(&mut scene);
    scene.doubt(LOST_REQUESTS);
    for (id, status) in [(ids[2], New), (ids[3], New)] {
        assert_eq!(scene.answer(id, New, 1, 0, 10), Some(status), "neither its cancel nor its replace has come");
    }
    assert_eq!(scene.view(ids[3]).quantity.0, 10);
}

#[test]
fn late_fills_are_booked_and_the_venue_is_asked_again() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.doubt(LOST_REPORTS);
    assert_eq!(scene.answer(id, Canceled, 4, 7, 0), Some(Unknown), "two fills are missing");
    assert_eq!((scene.report(fill(id, 2, 3, 3, 7)), scene.status_requests()), (Some(Unknown), vec![]));
    assert_eq!((scene.report(fill(id, 3, 4, 7, 3)), scene.status_requests()), (Some(Unknown), vec![id]));
    assert_eq!(scene.answer(id, Canceled, 4, 7, 0), Some(Canceled));
    assert_eq!(scene.bought(), (7, 0));
}

#[test]
fn a_venue_that_cannot_be_asked_is_not_asked() {
    let mut scene = Scene::new();
    scene.apply(Input::Venue(VenueRules { answers_status: 0, ..VenueRules::of(VENUE) }));
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.doubt(LOST_REQUESTS);
    assert_eq!((scene.state(id), scene.status_requests()), (Unknown, vec![]));
    scene.apply(Input::Venue(VenueRules::of(VENUE)));
    scene.line(false);
    scene.inquire(id);
    assert_eq!((scene.status_requests(), scene.counts().ignored), (vec![], 1));
    scene.line(true);
    assert_eq!(scene.status_requests(), [id], "a venue that is back is asked after all that is unknown");
    scene.line(true);
    assert!(scene.status_requests().is_empty(), "it was there before");
    scene.status(5, 1);
    assert_eq!(
        (scene.status_requests(), scene.client_reports()[0].status),
        (vec![id], Unknown.code()),
        "a client's question is passed on"
    );
    scene.inquire(id);
    assert_eq!(scene.status_requests(), [id], "an operator's too");
}

#[test]
fn an_unknown_order_may_be_canceled_again_but_not_replaced() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.doubt(LOST_REQUESTS);
    scene.replace(2, 1, 100, 11);
    assert_eq!(scene.denial(), Some((Denial::StateUnknown, 0, 0)));
    for client in [3, 4] {
        let cancel = scene.cancel(client, 1);
        assert_eq!(scene.canceled(), [id]);
        assert!(matches!(scene.venue_requests()[..], [Request::Cancel(c)] if c.client_order_id.0 == cancel));
    }
    scene.line(false);
    scene.cancel(5, 1);
    assert_eq!((scene.denial(), scene.core.waiting(VENUE)), (None, 1));
    scene.cancel(6, 1);
    assert_eq!(scene.denial(), Some((Denial::AlreadyPending, 0, 0)), "one that still waits here is not lost");
}

#[test]
fn an_operator_resolves_with_a_reason_and_is_ignored_without() {
    for (status, cumulative, reason, expected, bought) in [
        (Canceled, 4, "", Unknown, (4, 6)),
        (Canceled, 4, "venue's desk", Canceled, (4, 0)),
        (Canceled, 7, "venue's desk", Canceled, (7, 0)),
        (Canceled, 0, "busted by phone", Canceled, (0, 0)),
        (Expired, 4, "x", Expired, (4, 0)),
        (Rejected, 0, "x", Rejected, (0, 0)),
        (New, 5, "it works", PartiallyFilled, (5, 5)),
        (Filled, 10, "x", Filled, (10, 0)),
        (Filled, 9, "x", Unknown, (4, 6)),
        (Canceled, -1, "x", Unknown, (4, 6)),
        (Canceled, 11, "x", Unknown, (4, 6)),
        (OrdStatus::Suspended, 4, "x", Unknown, (4, 6)),
    ] {
        let mut scene = Scene::new();
        let id = scene.order(1, Side::Buy, 100, 10);
        scene.report(accepted(id, 1));
        scene.report(fill(id, 2, 4, 4, 6));
        scene.doubt(LOST_REPORTS);
        scene.resolve(id, status, cumulative, reason);
        let name = format!("{status:?} {cumulative} '{reason}'");
        assert_eq!((scene.state(id), scene.bought()), (expected, bought), "{name}");
        let is_taken = expected != Unknown;
        assert_eq!(
            (scene.counts().ignored, scene.client_reports().len()),
            (u64::from(!is_taken), usize::from(is_taken)),
            "{name}"
        );
    }
}

#[test]
fn only_an_unknown_order_can_be_resolved() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.resolve(id, Canceled, 0, "x");
    scene.resolve(4711, Canceled, 0, "x");
    assert_eq!((scene.state(id), scene.counts().ignored), (New, 2));
}

#[test]
fn an_overfill_can_be_resolved() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.report(fill(id, 2, 12, 12, 0));
    scene.resolve(id, Filled, 12, "the venue stands by it");
    assert_eq!((scene.state(id), scene.bought()), (Filled, (12, 0)));
}

/// The reports are lost and the venue counts more than the order's quantity: an operator may enter exactly that total.
#[test]
fn an_overfill_known_to_its_venue_alone_can_be_resolved() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(accepted(id, 1));
    scene.doubt(LOST_REPORTS);
    scene.answer(id, Canceled, 4, 12, 0);
    assert_eq!((scene.state(id), scene.bought()), (Unknown, (0, 12)));
    scene.resolve(id, Canceled, 13, "the venue's desk");
    assert_eq!((scene.state(id), scene.bought()), (Unknown, (0, 12)));
    // A live order would count as filled, and its open quantity as nothing.
    for works_on in [New, PartiallyFilled] {
        scene.resolve(id, works_on, 12, "the venue's desk");
        assert_eq!((scene.state(id), scene.bought()), (Unknown, (0, 12)));
    }
    scene.resolve(id, Canceled, 12, "the venue's desk");
    assert_eq!((scene.state(id), scene.bought()), (Filled, (12, 0)));
}

#[test]
fn a_venue_that_contradicts_the_operator_puts_the_order_in_doubt_again() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.doubt(LOST_REQUESTS);
    scene.resolve(id, Canceled, 0, "never arrived");
    assert_eq!(scene.report(accepted(id, 1)), Some(Unknown));
    assert_eq!((scene.bought(), scene.counts().contradictions), ((0, 10), 1));
    scene.resolve(id, New, 0, "it works");
    assert_eq!(scene.report(fill(id, 2, 1, 1, 9)), Some(PartiallyFilled), "nothing contradicts that");
}

#[test]
fn a_report_of_a_loss_by_a_line_is_a_doubt_and_asks_the_venue() {
    for is_accepted in [false, true] {
        let mut scene = Scene::new();
        let id = scene.order(1, Side::Buy, 100, 10);
        if is_accepted {
            scene.report(accepted(id, 1));
        }
        let lost = ExecutionReport { status: Unknown.code(), ..reported(id, ExecType::New, 0, 0, 0, 0) };
        assert_eq!((scene.report(lost), scene.status_requests()), (Some(Unknown), vec![id]));
        assert_eq!((scene.counts().contradictions, scene.bought()), (0, (0, 10)));
    }
}

/// An algorithm that scans all waiting requests for each order would not finish this test.
#[test]
fn a_days_orders_in_doubt_twice_are_queried_once_each() {
    const ORDERS: u64 = 50_000;
    let mut scene = Scene::numbered(true);
    let ids: Vec<u64> = (1..=ORDERS).map(|client| scene.order(client, Side::Buy, 100, 1)).collect();
    for doubt in 1..=2 {
        scene.doubt(LOST_REQUESTS);
        let questions = scene.venue_requests();
        // The status requests of the first doubt wait here, so those of the second doubt replace them.
        assert_eq!(questions.len() as u64, if doubt == 1 { ORDERS } else { 0 });
        questions.iter().for_each(|question| scene.returned(question));
        assert_eq!(scene.core.waiting(VENUE) as u64, ORDERS, "doubt {doubt}");
    }
    let mut asked = Vec::new();
    while scene.release() {
        asked.extend(scene.status_requests());
    }
    assert_eq!(asked, ids);
    assert_eq!(scene.counts().unknown, ORDERS);
}
