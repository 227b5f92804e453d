//! Requests that wait here for a venue whose line is down.

use tickpath_market::{ExecType, OrdStatus, Price, Quantity, Request, Side, VenueId};
use tickpath_oms_core::{
    AccountLimits, DefinitionEnd, Denial, Input, KILL_ALL, KILL_DISK, KillSwitch, LOST_ORDER, LOST_REPORTS,
    LOST_REQUESTS, MessageLoss, RecordKind, Release, UnsentRequest, VenueRules,
};

use crate::scene::{ACCOUNT, SYMBOL, Scene, VENUE, fill, reported, wide};

/// Creates a scene whose venue is down.
fn down() -> Scene {
    let mut scene = Scene::new();
    scene.line(false);
    scene
}

/// Releases all waiting requests and returns the sent ones.
fn drained(scene: &mut Scene) -> Vec<Request> {
    let mut sent = Vec::new();
    while scene.release() {
        sent.extend(scene.venue_requests());
    }
    sent
}

#[test]
fn an_order_waits_for_a_venue_that_is_down_until_its_release() {
    let mut scene = down();
    let id = scene.order(1, Side::Buy, 100, 10);
    assert_eq!((scene.denial(), scene.venue_requests().len(), scene.client_reports().len()), (None, 0, 1));
    assert_eq!((scene.state(id), scene.counts().queued, scene.bought()), (OrdStatus::PendingNew, 1, (0, 10)));
    assert!(!scene.core.is_up(VENUE) && !scene.release(), "nothing leaves for a venue that is down");
    scene.line(true);
    assert_eq!(scene.out.len(), 0, "nothing leaves by itself");
    assert!(scene.release());
    assert!(matches!(scene.venue_requests()[..], [Request::New(new)] if new.client_order_id.0 == id));
    assert_eq!((scene.state(id), scene.counts().queued, scene.counts().sending), (OrdStatus::PendingNew, 0, 1));
    assert!(!scene.release());
}

#[test]
fn later_requests_wait_behind_waiting_ones() {
    let mut scene = down();
    let first = scene.order(1, Side::Buy, 100, 10);
    scene.line(true);
    let second = scene.order(2, Side::Buy, 100, 10);
    assert_eq!((scene.venue_requests().len(), scene.core.waiting(VENUE)), (0, 2));
    let ids: Vec<u64> = drained(&mut scene).iter().map(|request| request.client_order_id().0).collect();
    assert_eq!(ids, [first, second]);
    scene.order(3, Side::Buy, 100, 10);
    assert_eq!(scene.venue_requests().len(), 1, "the way is clear again");
}

#[test]
fn the_cancel_of_a_waiting_order_never_reaches_the_venue() {
    let mut scene = down();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.cancel(2, 1);
    assert_eq!((scene.venue_requests().len(), scene.client_reports()[0].exec_type), (0, ExecType::Canceled.code()));
    assert_eq!(scene.client_reports()[0].client_order_id.0, 2, "reported under the cancel's id");
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Canceled, (0, 0)));
    scene.line(true);
    assert_eq!(drained(&mut scene), []);
}

#[test]
fn cancels_and_replaces_of_sent_orders_wait_in_the_queue() {
    let mut scene = Scene::new();
    let old = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(old, ExecType::New, old, 1, 0, 10));
    scene.line(false);
    scene.order(2, Side::Buy, 100, 10);
    scene.cancel(3, 1);
    assert_eq!((scene.denial(), scene.state(old)), (None, OrdStatus::PendingCancel));
    scene.replace(4, 2, 100, 11);
    assert_eq!(scene.denial(), Some((Denial::StillQueued, 0, 0)));
    scene.line(true);
    let kinds: Vec<_> = drained(&mut scene).iter().map(Request::kind).collect();
    assert_eq!(kinds, [tickpath_market::Kind::NewOrder, tickpath_market::Kind::CancelOrder]);
}

#[test]
fn the_queue_is_bounded_and_cancels_pass() {
    let mut scene = down();
    let working = {
        scene.line(true);
        let id = scene.order(90, Side::Buy, 100, 1);
        scene.line(false);
        id
    };
    scene.apply(Input::Venue(VenueRules { max_queued: 3, ..VenueRules::of(VENUE) }));
    for client in 1..=3 {
        scene.order(client, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), None);
    }
    scene.order(4, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::VenueQueue, 3, 3)));
    scene.replace(5, 90, 101, 1);
    assert_eq!(scene.denial(), Some((Denial::VenueQueue, 3, 3)));
    scene.cancel(6, 90);
    assert_eq!((scene.denial(), scene.state(working)), (None, OrdStatus::PendingCancel));
    scene.cancel(7, 1);
    scene.cancel(8, 2);
    scene.order(9, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None, "there is room again");
}

/// Checks the denial of an order of 10 at 100 on its release, after `meanwhile` has happened.
#[track_caller]
fn check_release(name: &str, meanwhile: impl Fn(&mut Scene), expected: Option<(Denial, i128, i128)>) {
    let mut scene = down();
    let id = scene.order(1, Side::Buy, 100, 10);
    meanwhile(&mut scene);
    scene.line(true);
    assert!(scene.release(), "{name}");
    assert_eq!(scene.denial(), expected, "{name}");
    let (state, exposed) = if expected.is_some() { (OrdStatus::Rejected, 0) } else { (OrdStatus::PendingNew, 10) };
    assert_eq!((scene.state(id), scene.bought()), (state, (0, exposed)), "{name}");
    assert_eq!(scene.counts().withdrawn, u64::from(expected.is_some()), "{name}");
}

#[test]
fn a_waiting_order_is_checked_again_like_a_new_one() {
    let limit = |limits: AccountLimits| {
        move |scene: &mut Scene| {
            scene.apply(Input::Account(limits));
        }
    };
    check_release("nothing happened", |_| {}, None);
    check_release("a kill", kill, Some((Denial::KillSwitch, 0, 1)));
    check_release(
        "old",
        |scene| {
            scene.apply(Input::Account(AccountLimits { max_request_age_ns: 50, ..wide() }));
            scene.stamp += 100;
        },
        Some((Denial::RequestAge, 50, 103)),
    );
    check_release("another start of the OMS", |scene| scene.boot(1, 0), None);
    check_release(
        "the market moved",
        |scene| {
            scene.apply(Input::Account(AccountLimits { collar: 500, ..wide() }));
            scene.reference = Price(120);
        },
        Some((Denial::PriceCollar, 6, 20)),
    );
    check_release("no market", |scene| scene.reference = Price(0), Some((Denial::NoReference, 1, 0)));
    check_release(
        "credit of exactly this order",
        limit(AccountLimits { credit: 1000_i128.to_le_bytes(), ..wide() }),
        None,
    );
    check_release(
        "less credit",
        limit(AccountLimits { credit: 999_i128.to_le_bytes(), ..wide() }),
        Some((Denial::Credit, 999, 1000)),
    );
    check_release(
        "a position of exactly this order",
        limit(AccountLimits { max_position: Quantity(10), ..wide() }),
        None,
    );
    check_release(
        "a smaller position",
        limit(AccountLimits { max_position: Quantity(9), ..wide() }),
        Some((Denial::Position, 9, 10)),
    );
    check_release("one open order, this one", limit(AccountLimits { max_open_orders: 1, ..wide() }), None);
    check_release(
        "many messages meanwhile",
        |scene| {
            scene.apply(Input::Account(AccountLimits { rate_limit: 1, rate_window_ns: u64::MAX, ..wide() }));
            (2..5).for_each(|client| {
                scene.status(client, 1);
            });
        },
        None,
    );
    check_release(
        "the account ended",
        |scene| {
            scene.apply(Input::DefinitionEnd(DefinitionEnd {
                kind: RecordKind::Account.code(),
                id: ACCOUNT.0,
                ..DefinitionEnd::default()
            }));
        },
        Some((Denial::UnknownAccount, 0, ACCOUNT.0.into())),
    );
    check_release(
        "the right ended",
        |scene| {
            scene.apply(Input::DefinitionEnd(DefinitionEnd {
                kind: RecordKind::Session.code(),
                session: 1,
                ..DefinitionEnd::default()
            }));
        },
        Some((Denial::NotEntitled, 0, ACCOUNT.0.into())),
    );
}

fn kill(scene: &mut Scene) {
    scene.apply(Input::Kill(KillSwitch { scope: KILL_ALL, on: 1, ..KillSwitch::default() }));
}

/// Checks the denial of a replace from 6 to 10 on its release, after `meanwhile` has happened.
#[track_caller]
fn check_change(name: &str, meanwhile: impl Fn(&mut Scene, u64), expected: Option<(Denial, i128, i128)>) {
    let mut scene = Scene::with(AccountLimits {
        max_position: Quantity(10),
        credit: 1000_i128.to_le_bytes(),
        rate_limit: 2,
        rate_window_ns: u64::MAX,
        ..wide()
    });
    let id = scene.order(1, Side::Buy, 100, 6);
    scene.report(reported(id, ExecType::New, id, 1, 0, 6));
    scene.line(false);
    scene.replace(2, 1, 100, 10);
    assert_eq!((scene.denial(), scene.bought()), (None, (0, 10)));
    meanwhile(&mut scene, id);
    scene.line(true);
    assert!(scene.release(), "{name}");
    assert_eq!(scene.denial(), expected, "{name}");
}

#[test]
fn a_waiting_replace_is_rechecked_without_its_own_share() {
    check_change("nothing happened", |_, _| {}, None);
    check_change(
        "messages",
        |scene, _| {
            (3..9).for_each(|client| {
                scene.status(client, 1);
            })
        },
        None,
    );
    check_change("a kill", |scene, _| kill(scene), Some((Denial::KillSwitch, 0, 1)));
    check_change(
        "filled",
        |scene, id| {
            scene.report(fill(id, 2, 6, 6, 0));
        },
        Some((Denial::TooLate, 0, 0)),
    );
    check_change(
        "filled in parts",
        |scene, id| {
            scene.report(fill(id, 2, 5, 5, 1));
        },
        None,
    );
    check_change("lost", |scene, _| scene.doubt(LOST_REPORTS), Some((Denial::StateUnknown, 0, 0)));
    let limits = AccountLimits { max_position: Quantity(10), ..wide() };
    check_change(
        "less credit",
        |scene, _| {
            scene.apply(Input::Account(AccountLimits { credit: 999_i128.to_le_bytes(), ..limits }));
        },
        Some((Denial::Credit, 999, 1000)),
    );
    check_change(
        "less position",
        |scene, _| {
            scene.apply(Input::Account(AccountLimits { max_position: Quantity(9), ..limits }));
        },
        Some((Denial::Position, 9, 10)),
    );
}

#[test]
fn a_replace_denied_at_its_release_leaves_the_order_unchanged() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 6);
    scene.report(reported(id, ExecType::New, id, 1, 0, 6));
    scene.line(false);
    scene.replace(2, 1, 100, 10);
    kill(&mut scene);
    scene.line(true);
    scene.release();
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::New, (0, 6)));
    scene.cancel(3, 1);
    assert_eq!(scene.canceled(), [id]);
}

#[test]
fn a_returned_order_waits_before_later_requests_for_it() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    let sent = scene.venue_requests()[0];
    scene.line(false);
    let other = scene.order(2, Side::Buy, 100, 10);
    let replace = scene.replace(3, 1, 101, 11);
    scene.returned(&sent);
    assert_eq!((scene.counts().queued, scene.counts().ignored), (2, 0));
    scene.returned(&sent);
    assert_eq!(scene.counts().ignored, 1, "it came back once");
    scene.line(true);
    let ids: Vec<u64> = drained(&mut scene).iter().map(|request| request.client_order_id().0).collect();
    assert_eq!(ids, [other, id, replace]);
}

#[test]
fn a_denied_unsent_order_gets_no_requests() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    let new = scene.venue_requests()[0];
    scene.replace(2, 1, 101, 11);
    let replace = scene.venue_requests()[0];
    scene.line(false);
    scene.returned(&new);
    scene.returned(&replace);
    kill(&mut scene);
    scene.line(true);
    assert_eq!(drained(&mut scene), []);
    assert_eq!((scene.state(id), scene.counts().withdrawn, scene.core.waiting(VENUE)), (OrdStatus::Rejected, 1, 0));
}

#[test]
fn only_a_sent_request_can_be_returned() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    let new = scene.venue_requests()[0];
    scene.apply(Input::UnsentRequest(UnsentRequest::new(VenueId(9), 0, &new)));
    assert_eq!(scene.counts().ignored, 1, "another venue");
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    scene.returned(&new);
    assert_eq!((scene.counts().ignored, scene.state(id)), (2, OrdStatus::New), "the venue has it");
    scene.apply(Input::UnsentRequest(UnsentRequest { kind: 99, ..UnsentRequest::new(VENUE, 0, &new) }));
    assert_eq!((scene.counts().ignored, scene.core.waiting(VENUE)), (3, 0), "it is no request");
}

#[test]
fn a_report_on_a_waiting_order_makes_it_unknown_and_unsent() {
    let mut scene = down();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.line(true);
    assert_eq!(scene.report(reported(id, ExecType::New, id, 1, 0, 10)), Some(OrdStatus::Unknown));
    assert!(matches!(drained(&mut scene)[..], [Request::Status(status)] if status.original.0 == id));
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Unknown, (0, 10)));
}

/// The release may be in the tail of the journal that the reboot lost.
#[test]
fn a_host_boot_treats_waiting_requests_as_sent() {
    let mut scene = Scene::new();
    let [works, changes] = [1, 2].map(|client| scene.order(client, Side::Buy, 100, 10));
    for id in [works, changes] {
        scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    }
    scene.line(false);
    let new = scene.order(3, Side::Buy, 100, 10);
    scene.cancel(4, 1);
    scene.replace(5, 2, 100, 12);
    scene.boot(1, 0);
    assert_eq!((scene.core.waiting(VENUE), scene.counts().queued), (3, 1), "the host is the same");
    scene.boot(2, 1);
    assert_eq!((scene.core.waiting(VENUE), scene.counts().queued, scene.counts().sending), (0, 0, 1));
    scene.line(true);
    assert_eq!(drained(&mut scene), []);
    scene.doubt(LOST_REQUESTS);
    assert_eq!(scene.status_requests(), [works, changes, new]);
    assert_eq!(scene.bought(), (0, 10 + 12 + 10));
    assert_eq!(scene.report(reported(new, ExecType::New, new, 1, 0, 10)), Some(OrdStatus::New), "it had left");
}

#[test]
fn a_disk_failure_denies_waiting_requests_at_once() {
    let mut scene = Scene::new();
    let [works, changes] = [1, 2].map(|client| scene.order(client, Side::Buy, 100, 10));
    for id in [works, changes] {
        scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    }
    let sent = scene.order(3, Side::Buy, 100, 10);
    let new = scene.venue_requests()[0];
    scene.line(false);
    let waits = scene.order(4, Side::Buy, 100, 10);
    let cancel = scene.cancel(5, 1);
    let replace = scene.replace(6, 2, 100, 12);
    scene.apply(Input::Kill(KillSwitch { scope: KILL_DISK, on: 1, ..KillSwitch::default() }));
    assert_eq!(refused(&scene), [(waits, 4), (replace, 6)]);
    assert_eq!((scene.state(waits), scene.state(changes)), (OrdStatus::Rejected, OrdStatus::New));
    scene.returned(&new);
    assert_eq!(refused(&scene), [(sent, 3)], "and so is what comes back");
    assert_eq!((scene.state(sent), scene.bought()), (OrdStatus::Rejected, (0, 20)));
    scene.line(true);
    let ids: Vec<u64> = drained(&mut scene).iter().map(|request| request.client_order_id().0).collect();
    assert_eq!(ids, [cancel], "cancels pass");
}

/// Returns the ids of the requests that the last input denied because of the disk: the core's id and the client's.
fn refused(scene: &Scene) -> Vec<(u64, u64)> {
    let denied = scene.out.iter().filter_map(|out| match out {
        tickpath_oms_core::Output::Denied { denied, .. } => Some(denied),
        _ => None,
    });
    let of_disk = denied.filter(|denied| denied.code == Denial::DiskFailed.code());
    of_disk.map(|denied| (denied.order_id.0, denied.client_order_id.0)).collect()
}

#[test]
fn only_the_latest_waiting_status_request_is_sent() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    scene.line(false);
    let cancel = scene.cancel(2, 1);
    scene.line(true);
    scene.inquire(id);
    scene.inquire(id);
    let question = scene.sequence;
    assert_eq!((scene.venue_requests(), scene.counts().ignored, scene.core.waiting(VENUE)), (vec![], 0, 2));
    let ids: Vec<u64> = drained(&mut scene).iter().map(|request| request.client_order_id().0).collect();
    assert_eq!(ids, [cancel, question]);
    scene.inquire(id);
    assert_eq!(scene.status_requests(), [id], "the way is clear again");
}

#[test]
fn a_returned_status_request_waits_while_its_answer_is_needed() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    scene.doubt(LOST_REPORTS);
    let first = scene.venue_requests()[0];
    scene.inquire(id);
    let second = scene.venue_requests()[0];
    scene.returned(&second);
    scene.returned(&first);
    assert_eq!(scene.core.waiting(VENUE), 1, "the latest one");
    assert_eq!(drained(&mut scene), [second]);
    scene.returned(&second);
    scene.report(reported(id, ExecType::Canceled, 0, 2, 0, 0));
    assert_eq!(drained(&mut scene), []);
    scene.returned(&second);
    assert_eq!((scene.core.waiting(VENUE), scene.counts().ignored), (0, 0));
}

#[test]
fn a_report_on_a_withdrawn_order_makes_it_unknown() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    let sent = scene.venue_requests()[0];
    scene.line(false);
    scene.returned(&sent);
    scene.cancel(2, 1);
    assert_eq!(scene.state(id), OrdStatus::Canceled);
    scene.line(true);
    assert_eq!(scene.report(reported(id, ExecType::New, id, 1, 0, 10)), Some(OrdStatus::Unknown), "it did leave");
    assert_eq!((scene.status_requests(), scene.bought()), (vec![id], (0, 10)));
}

#[test]
fn a_release_of_anything_but_the_next_is_ignored() {
    let mut scene = down();
    let id = scene.order(1, Side::Buy, 100, 10);
    let second = scene.order(2, Side::Buy, 100, 10);
    scene.line(true);
    let release = Release { order: id, request: id, venue: VENUE, reference_price: Price(100), ..Release::default() };
    for wrong in [
        Release { order: second, request: second, ..release },
        Release { order: second, ..release },
        Release { request: second, ..release },
        Release { venue: VenueId(9), ..release },
        Release { venue: VenueId(u16::MAX), ..release },
    ] {
        scene.apply(Input::Release(wrong));
        assert_eq!((scene.out.len(), scene.core.waiting(VENUE)), (0, 2), "{wrong:?}");
    }
    assert_eq!(scene.counts().ignored, 5);
    scene.apply(Input::Release(release));
    assert_eq!(scene.venue_requests().len(), 1);
}

#[test]
fn an_order_goes_to_the_venue_that_it_was_admitted_for() {
    let mut scene = down();
    scene.order(1, Side::Buy, 100, 10);
    let elsewhere = tickpath_oms_core::Instrument { venue: VenueId(9), ..crate::scene::instrument(1) };
    scene.apply(Input::Instrument(elsewhere));
    assert_eq!(elsewhere.symbol, SYMBOL);
    let moved = scene.order(2, Side::Buy, 100, 10);
    assert_eq!((scene.venue_requests().len(), scene.view(moved).venue), (1, VenueId(9)));
    scene.line(true);
    scene.release();
    assert!(matches!(scene.out.as_slice(), [tickpath_oms_core::Output::Venue { venue: VENUE, .. }]));
}

#[test]
fn a_cancel_returned_with_its_order_cancels_it_in_the_oms() {
    for by in [1, 2] {
        let mut scene = Scene::new();
        let id = scene.order(1, Side::Buy, 100, 10);
        let [new] = scene.venue_requests()[..] else { panic!("it left") };
        scene.session = by;
        match by {
            1 => scene.cancel(2, 1),
            _ => scene.cancel_by_id(2, id),
        };
        let [cancel] = scene.venue_requests()[..] else { panic!("it left") };
        scene.returned(&new);
        let reports: Vec<_> =
            scene.client_reports().iter().map(|report| (report.client_order_id.0, report.status)).collect();
        let canceled = OrdStatus::Canceled.code();
        let expected = if by == 1 { vec![(2, canceled)] } else { vec![(1, canceled), (2, canceled)] };
        assert_eq!((reports, scene.venue_requests().len()), (expected, 0), "each under its own id");
        assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Canceled, (0, 0)));
        scene.returned(&cancel);
        assert_eq!((scene.out.len(), scene.counts().ignored, scene.core.waiting(VENUE)), (0, 0, 0));
        // A venue that reports the order after all contradicts the known state.
        scene.report(reported(id, ExecType::New, id, 1, 0, 10));
        assert_eq!(scene.state(id), OrdStatus::Unknown);
    }
}

#[test]
fn a_loss_of_one_order_ignores_its_later_returned_requests() {
    let mut scene = Scene::new();
    let (first, second) = (scene.order(1, Side::Buy, 100, 10), scene.order(2, Side::Buy, 100, 10));
    let [new] = scene.venue_requests()[..] else { panic!("it left") };
    let doubt = |messages| MessageLoss { messages, venue: VENUE, lost: LOST_ORDER, reserved: [0; 5] };
    scene.apply(Input::MessageLoss(doubt(second)));
    assert_eq!((scene.status_requests(), scene.client_reports()[0].status), (vec![second], OrdStatus::Unknown.code()));
    assert_eq!((scene.state(first), scene.state(second)), (OrdStatus::PendingNew, OrdStatus::Unknown));
    scene.returned(&new);
    assert_eq!((scene.state(second), scene.counts().ignored, scene.core.waiting(VENUE)), (OrdStatus::Unknown, 0, 0));
    scene.answer_unknown(second);
    assert_eq!((scene.state(second), scene.bought()), (OrdStatus::Rejected, (0, 10)));
    for wrong in [MessageLoss { venue: VenueId(9), ..doubt(first) }, doubt(12345)] {
        let ignored = scene.counts().ignored;
        scene.apply(Input::MessageLoss(wrong));
        assert_eq!((scene.state(first), scene.counts().ignored), (OrdStatus::PendingNew, ignored + 1));
    }
}
