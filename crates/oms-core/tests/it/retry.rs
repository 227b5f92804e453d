//! New orders that a venue rejects with a code for which the retry rules resend them.

use tickpath_market::{ExecId, ExecType, ExecutionReport, OrdStatus, OrderId, Price, Request, Side, TimeInForce};
use tickpath_oms_core::{
    Core, DayEnd, DefinitionEnd, Denial, GIVE_UP, Input, KILL_ALL, KillSwitch, LOST_REPORTS, LOST_REQUESTS, OTHER_LINE,
    Output, RETRY, RecordKind, RejectRule, ReportRecord, SessionRules, VenueRules,
};

use crate::scene::{Scene, VENUE, amended, fill, order, reported};

const BUSY: u16 = 77;
const WRONG: u16 = 78;

/// Returns a scene with one retry rule: code [`BUSY`], this action, and a max number of retries.
fn scene(action: u8, times: u8) -> Scene {
    let mut scene = Scene::new();
    scene.apply(Input::Reject(RejectRule { venue: VENUE, code: BUSY, action, times, reserved: 0 }));
    assert_eq!(scene.counts().ignored, 0);
    scene
}

fn refused(id: u64, reason: u16) -> ExecutionReport {
    let status = OrdStatus::Rejected.code();
    ExecutionReport { reason, status, ..reported(id, ExecType::Rejected, id, 1, 0, 0) }
}

/// Releases the request that waits longest, and returns the id under which the venue knows the new order.
#[track_caller]
fn left(scene: &mut Scene) -> u64 {
    assert!(scene.release(), "something waits");
    let [Request::New(new)] = scene.venue_requests()[..] else { panic!("no new order left: {:?}", scene.out) };
    new.client_order_id.0
}

#[test]
fn a_rejected_order_is_checked_and_retried_under_another_id() {
    let mut scene = scene(RETRY, 3);
    let id = scene.order(1, Side::Buy, 100, 10);
    let first = scene.venue_requests();
    scene.report(refused(id, BUSY));
    let reports = scene.client_reports();
    assert_eq!((reports.len(), reports[0].status, reports[0].reason), (1, OrdStatus::PendingNew.code(), BUSY));
    assert_eq!((reports[0].order_id.0, reports[0].client_order_id.0, scene.venue_requests().len()), (id, 1, 0));
    assert_eq!((scene.counts().queued, scene.counts().rejected, scene.bought()), (1, 0, (0, 10)));
    let again = left(&mut scene);
    assert_ne!(again, id);
    let [Request::New(before), Request::New(after)] = [first[0], scene.venue_requests()[0]] else {
        panic!("new orders")
    };
    assert_eq!(tickpath_market::NewOrder { client_order_id: before.client_order_id, ..after }, before, "all else");
    // From now on the venue uses the id of the retry, and the client its own.
    scene.report(reported(again, ExecType::New, again, 1, 0, 10));
    assert_eq!((scene.client_reports()[0].order_id.0, scene.state(id)), (id, OrdStatus::New));
    scene.replace(2, 1, 101, 12);
    let [Request::Replace(replace)] = scene.venue_requests()[..] else { panic!("a replace") };
    assert_eq!(replace.original.0, again);
    let asked = replace.client_order_id.0;
    scene.report(ExecutionReport { price: Price(101), ..reported(again, ExecType::Replaced, asked, 2, 0, 12) });
    scene.report(fill(again, 3, 4, 4, 8));
    assert_eq!((scene.client_reports()[0].order_id.0, scene.bought()), (id, (4, 8)));
    scene.cancel(3, 1);
    assert_eq!(scene.canceled(), [again]);
    scene.inquire(id);
    assert_eq!(scene.status_requests(), [again]);
    let cancel = scene.sequence;
    scene.report(reported(again, ExecType::Canceled, cancel, 4, 4, 0));
    assert_eq!((scene.state(id), scene.bought(), scene.counts().done), (OrdStatus::Canceled, (4, 0), 1));
}

#[test]
fn a_live_rejected_retry_is_a_contradiction_a_duplicate_is_none() {
    let mut scene = scene(RETRY, 3);
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(refused(id, BUSY));
    let duplicates = scene.counts().duplicates;
    for _ in 0..2 {
        scene.report(refused(id, BUSY));
        assert_eq!(scene.client_reports().len() + scene.venue_requests().len(), 0);
    }
    assert_eq!((scene.counts().duplicates, scene.counts().queued), (duplicates + 2, 1));
    let again = left(&mut scene);
    scene.report(refused(id, BUSY));
    assert_eq!((scene.client_reports().len(), scene.counts().sending), (0, 1), "of the first try, which is over");
    scene.report(reported(again, ExecType::New, again, 1, 0, 10));
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    assert_eq!((scene.state(id), scene.counts().contradictions), (OrdStatus::Unknown, 1));
    assert_eq!(scene.bought(), (0, 10), "it keeps its exposure");
}

#[test]
fn the_last_rejection_and_any_other_code_end_the_order() {
    let mut scene = scene(RETRY, 2);
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(refused(id, BUSY));
    let second = left(&mut scene);
    scene.report(refused(second, BUSY));
    let third = left(&mut scene);
    scene.report(refused(third, BUSY));
    assert_eq!(
        (scene.state(id), scene.client_reports()[0].reason, scene.client_reports()[0].order_id.0),
        (OrdStatus::Rejected, BUSY, id)
    );
    assert!(!scene.release());
    let other = scene.order(2, Side::Buy, 100, 10);
    scene.report(refused(other, WRONG));
    assert_eq!((scene.state(other), scene.counts().rejected, scene.bought()), (OrdStatus::Rejected, 2, (0, 0)));
    // A retry rule that has ended no longer applies.
    scene.apply(Input::DefinitionEnd(DefinitionEnd {
        kind: RecordKind::Reject.code(),
        id: VENUE.0.into(),
        session: BUSY,
        reserved: 0,
    }));
    let last = scene.order(3, Side::Buy, 100, 10);
    scene.report(refused(last, BUSY));
    assert_eq!((scene.state(last), scene.counts().ignored), (OrdStatus::Rejected, 0));
}

#[test]
fn a_canceled_or_reported_order_is_not_retried() {
    let check = |name: &str, rejects: fn(&mut Scene, u64)| {
        let mut scene = scene(RETRY, 9);
        let id = scene.order(1, Side::Buy, 100, 10);
        rejects(&mut scene, id);
        assert!(!scene.release(), "{name}");
        assert_ne!(scene.state(id), OrdStatus::PendingNew, "{name}");
    };
    check("a cancel was asked for", |scene, id| {
        scene.cancel(2, 1);
        scene.report(refused(id, BUSY));
        assert_eq!(scene.state(id), OrdStatus::Rejected);
    });
    check("a replace was asked for", |scene, id| {
        scene.replace(2, 1, 101, 11);
        scene.report(refused(id, BUSY));
    });
    check("it was taken", |scene, id| {
        scene.report(reported(id, ExecType::New, id, 1, 0, 10));
        scene.report(ExecutionReport { venue_sequence: 2, ..refused(id, BUSY) });
    });
    check("it was filled", |scene, id| {
        scene.report(fill(id, 2, 4, 4, 6));
        scene.report(refused(id, BUSY));
    });
    check("the refusal is none of this order", |scene, id| {
        scene.report(ExecutionReport { venue_sequence: 0, ..refused(id, BUSY) });
    });
    check("give up", |scene, id| {
        scene.apply(Input::Reject(RejectRule { venue: VENUE, code: BUSY, action: GIVE_UP, times: 9, reserved: 0 }));
        scene.report(refused(id, BUSY));
    });
    // A rejection from a venue without sequence numbers carries none.
    let mut plain = scene(RETRY, 9);
    plain.apply(Input::Venue(VenueRules { numbered: 0, ..VenueRules::of(VENUE) }));
    let id = plain.order(1, Side::Buy, 100, 10);
    plain.report(ExecutionReport { venue_sequence: 0, ..refused(id, BUSY) });
    assert_ne!(left(&mut plain), id);
}

#[test]
fn a_waiting_retry_can_be_canceled_and_is_checked_like_a_new_order() {
    let mut scene = scene(RETRY, 9);
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(refused(id, BUSY));
    scene.cancel(2, 1);
    assert_eq!((scene.state(id), scene.venue_requests().len(), scene.bought()), (OrdStatus::Canceled, 0, (0, 0)));
    assert!(!scene.release());
    let next = scene.order(3, Side::Buy, 100, 10);
    scene.report(refused(next, BUSY));
    scene.apply(Input::Kill(KillSwitch { scope: KILL_ALL, on: 1, ..KillSwitch::default() }));
    assert!(scene.release());
    assert_eq!(scene.denial().map(|denial| denial.0), Some(Denial::KillSwitch));
    assert_eq!((scene.state(next), scene.bought()), (OrdStatus::Rejected, (0, 0)));
}

#[test]
fn a_denied_retry_is_reported_under_the_clients_id() {
    let mut scene = scene(RETRY, 3);
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(refused(id, BUSY));
    scene.apply(Input::Kill(KillSwitch { scope: KILL_ALL, on: 1, ..KillSwitch::default() }));
    assert!(scene.release());
    let denied: Vec<u64> = scene.out.iter().filter_map(denied_id).collect();
    assert_eq!(denied, [id]);
    // The venue knows the first try, so a report about that id is of a known order.
    let duplicates = scene.counts().duplicates;
    scene.report(refused(id, BUSY));
    assert_eq!((scene.core.unknown_order_report_count(), scene.counts().duplicates), (0, duplicates + 1));
    scene.report(fill(id, 2, 4, 4, 6));
    assert_eq!(
        (scene.core.unknown_order_report_count(), scene.state(id), scene.bought().0),
        (0, OrdStatus::Unknown, 4)
    );
}

fn denied_id(output: &Output) -> Option<u64> {
    match output {
        Output::Denied { denied, .. } => Some(denied.order_id.0),
        _ => None,
    }
}

#[test]
fn the_shell_is_given_the_line_to_avoid() {
    for (action, expected) in [(OTHER_LINE, Some(4)), (RETRY, None)] {
        let mut scene = scene(action, 3);
        let id = scene.order(1, Side::Buy, 100, 10);
        let record = scene.agreeing(refused(id, BUSY));
        assert_eq!(scene.core.avoided_line(VENUE), None);
        scene.report_exactly(ReportRecord { line: 5, ..record });
        assert_eq!(scene.core.avoided_line(VENUE), expected, "one below the record's number");
        left(&mut scene);
        assert_eq!(scene.core.avoided_line(VENUE), None, "nothing waits");
    }
}

#[test]
fn retry_ids_outlive_a_snapshot_and_a_days_end() {
    let mut scene = scene(RETRY, 3);
    let kept =
        tickpath_market::NewOrder { time_in_force: TimeInForce::GoodTillCancel.code(), ..order(1, Side::Buy, 100, 10) };
    // An earlier order, so that the index of the retried order changes with the day.
    let other = scene.order(9, Side::Sell, 100, 1);
    scene.report(reported(other, ExecType::New, other, 1, 0, 1));
    let id = scene.request(Request::New(kept));
    scene.report(refused(id, BUSY));
    let again = left(&mut scene);
    let mut bytes = Vec::new();
    scene.core.save(&mut |piece| bytes.extend_from_slice(piece));
    let mut rest = &bytes[..];
    let loaded = Core::load(0, &mut |piece| {
        let (taken, left) = rest.split_at(piece.len());
        piece.copy_from_slice(taken);
        rest = left;
        true
    });
    scene.core = loaded.expect("it was just saved");
    scene.report(reported(again, ExecType::New, again, 1, 0, 10));
    assert_eq!(scene.state(id), OrdStatus::New);
    scene.apply(Input::DayEnd(DayEnd::default()));
    assert!(scene.core.order(OrderId(other)).is_some(), "known for one more day");
    scene.apply(Input::DayEnd(DayEnd::default()));
    assert!(scene.core.order(OrderId(other)).is_none());
    scene.report(fill(again, 2, 4, 4, 6));
    assert_eq!((scene.state(id), scene.client_reports()[0].order_id.0), (OrdStatus::PartiallyFilled, id));
    scene.cancel(2, 1);
    assert_eq!(scene.denial().map(|denial| denial.0), None);
    assert_eq!(scene.canceled(), [again]);
}

/// A reported fill counts, whatever the venue reported before.
#[test]
fn a_fill_of_a_rejected_retry_is_booked_once_and_is_a_doubt() {
    let check = |name: &str, has_left: bool| {
        let mut scene = scene(RETRY, 3);
        let id = scene.order(1, Side::Buy, 100, 10);
        scene.report(refused(id, BUSY));
        let again = if has_left { left(&mut scene) } else { 0 };
        if has_left {
            scene.report(reported(again, ExecType::New, again, 1, 0, 10));
        }
        scene.report(fill(id, 2, 4, 4, 6));
        let reports: Vec<_> =
            scene.client_reports().iter().map(|report| (report.status, report.last_quantity.0)).collect();
        let unknown = OrdStatus::Unknown.code();
        assert_eq!(reports, [(unknown, 0), (unknown, 4)], "{name}");
        assert_eq!((scene.bought().0, scene.counts().contradictions), (4, 1), "{name}");
        let duplicates = scene.counts().duplicates;
        scene.report(fill(id, 2, 4, 4, 6));
        assert_eq!((scene.bought().0, scene.counts().contradictions), (4, 1), "{name}, twice");
        assert_eq!(scene.counts().duplicates, duplicates + 1, "{name}, twice");
        if has_left {
            scene.report(ExecutionReport { exec_id: ExecId(99), ..fill(again, 2, 10, 10, 0) });
            assert_eq!((scene.bought().0, scene.state(id)), (14, OrdStatus::Unknown), "both tries have traded");
        } else {
            scene.release();
            assert_eq!(scene.venue_requests().len(), 0, "what lives is not tried again");
        }
    };
    check("the later try works", true);
    check("the later try waits here", false);
}

/// Sends a new order once, then starts the OMS again on the host's boot `boot` (1 is the boot that sent the order).
fn restarted(level: u8, boot: u8) -> (Scene, u64) {
    restarted_with(level, boot, |_| {})
}

fn restarted_with(level: u8, boot: u8, before: impl FnOnce(&mut Scene)) -> (Scene, u64) {
    let mut scene = scene(RETRY, 3);
    scene.apply(Input::Session(SessionRules { session: 1, level, ..SessionRules::default() }));
    scene.boot(1, 1);
    before(&mut scene);
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.boot(2, boot);
    (scene, id)
}

/// The journal may have lost both the rejection and the retry; then the core does not know the retry's id.
#[test]
fn a_rejection_is_no_end_of_a_possible_retry_in_a_lost_tail() {
    type Action = fn(&mut Scene, u64);
    let check = |name: &str, act: Action| {
        let (mut scene, id) = restarted(0, 2);
        scene.doubt(LOST_REQUESTS);
        assert_eq!((scene.state(id), scene.status_requests()), (OrdStatus::Unknown, vec![id]), "{name}");
        act(&mut scene, id);
        assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Unknown, (0, 10)), "{name}");
        assert!(scene.client_reports().iter().all(|report| report.status == OrdStatus::Unknown.code()), "{name}");
        assert!(!scene.release(), "{name}: nothing is tried again beside what may work");
        scene.resolve(id, OrdStatus::Rejected, 0, "their desk: none works");
        assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Rejected, (0, 0)), "{name}");
    };
    check("the answer", |scene, id| {
        scene.answer(id, OrdStatus::Rejected, 1, 0, 0);
    });
    check("the report, once more", |scene, id| {
        scene.report(refused(id, BUSY));
    });
    check("any code", |scene, id| {
        scene.report(refused(id, WRONG));
    });
    check("both, and a fill that is foreign", |scene, id| {
        scene.answer(id, OrdStatus::Rejected, 1, 0, 0);
        scene.report(refused(id, BUSY));
        let lost = OrderId::new(1, scene.sequence).0;
        scene.report_exactly(ReportRecord { source: VENUE, ..scene.agreeing(fill(lost, 1, 10, 10, 0)) });
        assert_eq!((scene.bought(), scene.counts().unknown_order_reports), ((0, 10), 1));
        // The fill belongs to no known order, so its correction to three times the quantity changes no exposure.
        let corrected = amended(lost, ExecType::TradeCorrect, 10, 2, 30, 30, 0);
        scene.report_exactly(ReportRecord { source: VENUE, ..scene.agreeing(corrected) });
        assert_eq!((scene.bought(), scene.counts().unknown_order_reports), ((0, 10), 2));
    });
    // An order that is not in doubt yet.
    let (mut scene, id) = restarted(0, 2);
    assert_eq!(scene.report(refused(id, BUSY)), Some(OrdStatus::Unknown));
    assert_eq!(
        (scene.client_reports()[0].exec_type, scene.status_requests()),
        (ExecType::OrderStatus.code(), vec![id])
    );
    assert!(!scene.release());
}

#[test]
fn waiting_and_retried_orders_may_be_retried_in_a_lost_tail() {
    let mut waited = scene(RETRY, 3);
    waited.boot(1, 1);
    waited.line(false);
    let id = waited.order(1, Side::Buy, 100, 10);
    waited.boot(2, 2);
    assert_eq!(waited.report(refused(id, BUSY)), Some(OrdStatus::Unknown));
    let mut twice = scene(RETRY, 3);
    twice.boot(1, 1);
    let id = twice.order(1, Side::Buy, 100, 10);
    twice.report(refused(id, BUSY));
    let again = left(&mut twice);
    twice.boot(2, 2);
    twice.doubt(LOST_REQUESTS);
    assert_eq!(twice.status_requests(), [again]);
    twice.report(refused(id, BUSY));
    assert_eq!((twice.client_reports().len(), twice.state(id)), (0, OrdStatus::Unknown), "that was known");
    twice.answer(again, OrdStatus::Rejected, 1, 0, 0);
    assert_eq!(twice.state(id), OrdStatus::Unknown);
}

#[test]
fn a_rejection_is_the_end_if_no_later_retry_can_have_left() {
    // Nothing is lost in a restart on the same boot of the host, or by a session whose orders wait for the disk.
    for (level, boot) in [(0, 1), (1, 2)] {
        let (mut scene, id) = restarted(level, boot);
        scene.report(refused(id, BUSY));
        assert_eq!((scene.state(id), scene.core.waiting(VENUE)), (OrdStatus::PendingNew, 1), "level {level}");
        let (mut scene, id) = restarted(level, boot);
        scene.doubt(LOST_REQUESTS);
        assert_eq!(scene.answer(id, OrdStatus::Rejected, 1, 0, 0), Some(OrdStatus::Rejected), "level {level}");
    }
    // The retry rule of the venue allows no retry.
    let (mut scene, id) = restarted_with(0, 2, |scene| {
        scene.apply(Input::Reject(RejectRule { venue: VENUE, code: BUSY, action: GIVE_UP, times: 9, reserved: 0 }));
    });
    assert_eq!(scene.report(refused(id, BUSY)), Some(OrdStatus::Rejected));
    // The venue reported the order before the restart.
    let mut reported_first = self::scene(RETRY, 3);
    reported_first.boot(1, 1);
    let id = reported_first.order(1, Side::Buy, 100, 10);
    reported_first.report(reported(id, ExecType::New, id, 1, 0, 10));
    reported_first.boot(2, 2);
    reported_first.doubt(LOST_REPORTS);
    assert_eq!(reported_first.answer(id, OrdStatus::Rejected, 2, 0, 0), Some(OrdStatus::Rejected));
}

#[test]
fn an_order_that_its_venue_works_was_not_retried() {
    type Action = fn(&mut Scene, u64) -> Option<OrdStatus>;
    let lives: [(Action, OrdStatus); 4] = [
        (|scene, id| scene.answer(id, OrdStatus::New, 1, 0, 10), OrdStatus::New),
        (|scene, id| scene.report(reported(id, ExecType::New, id, 1, 0, 10)), OrdStatus::New),
        (|scene, id| scene.report(fill(id, 2, 4, 4, 6)), OrdStatus::PartiallyFilled),
        (|scene, id| scene.answer(id, OrdStatus::Canceled, 2, 0, 0), OrdStatus::Canceled),
    ];
    for (act, status) in lives {
        let (mut scene, id) = restarted(0, 2);
        scene.doubt(LOST_REQUESTS);
        assert_eq!(act(&mut scene, id), Some(status));
        if status != OrdStatus::Canceled {
            let refused = ExecutionReport { venue_sequence: 3, ..refused(id, WRONG) };
            assert_eq!(
                scene.report(refused),
                Some(OrdStatus::Rejected),
                "from now on a rejection of its venue ends it"
            );
        }
    }
}

/// A venue with sequence numbers would have numbered its rejection; another venue may have forgotten the rejected
/// order.
#[test]
fn a_numbering_venue_without_the_order_ends_it() {
    for (numbered, expected) in [(1, OrdStatus::Rejected), (0, OrdStatus::Unknown)] {
        let (mut scene, id) = restarted_with(0, 2, |scene| {
            scene.apply(Input::Venue(VenueRules { numbered, ..VenueRules::of(VENUE) }));
        });
        scene.doubt(LOST_REQUESTS);
        scene.answer_unknown(id);
        assert_eq!(scene.state(id), expected, "numbered: {numbered}");
    }
}

/// The journal resumes where the lost tail began, and the records there have ids of a new epoch.
#[test]
fn the_id_of_a_lost_retry_is_not_reused() {
    let (mut scene, id) = restarted(0, 2);
    let mut lost = self::scene(RETRY, 3);
    lost.apply(Input::Session(SessionRules { session: 1, ..SessionRules::default() }));
    lost.boot(1, 1);
    assert_eq!(lost.order(1, Side::Buy, 100, 10), id, "the same journal up to here");
    lost.report(refused(id, BUSY));
    let again = left(&mut lost);
    while OrderId(id).sequence() + 9 > scene.sequence {
        let next = scene.order(scene.sequence, Side::Buy, 100, 1);
        assert_ne!(next, again);
        scene.report(refused(next, BUSY));
        assert_ne!(left(&mut scene), again);
    }
    assert!(OrderId(again).sequence() < scene.sequence, "that place in the journal is taken again");
    scene.report_exactly(lost.agreeing(reported(again, ExecType::New, again, 1, 0, 10)));
    assert_eq!((scene.counts().unknown_order_reports, scene.out.len()), (1, 0));
}
