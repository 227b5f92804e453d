//! The end of a day: finished orders are forgotten, and everything that still matters is kept.

use tickpath_market::{ExecType, NewOrder, OrdStatus, OrderId, Request, Side, TimeInForce};
use tickpath_oms_core::{DayEnd, Denial, Input, KILL_ALL, KillSwitch, LOST_REPORTS};

use crate::scene::{ACCOUNT, Scene, VENUE, amended, fill, order, reported};

fn end_day(scene: &mut Scene) {
    scene.apply(Input::DayEnd(DayEnd { day: 20261122, lane_sequence: 0 }));
}

fn good_till_cancel(scene: &mut Scene, client: u64) -> u64 {
    let time_in_force = TimeInForce::GoodTillCancel.code();
    let id = scene.request(Request::New(NewOrder { time_in_force, ..order(client, Side::Buy, 100, 10) }));
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    id
}

fn is_known(scene: &Scene, id: u64) -> bool {
    scene.core.order(OrderId(id)).is_some()
}

#[test]
fn day_orders_expire_with_requests_in_flight_and_clients_get_reports() {
    let mut scene = Scene::new();
    let working = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(working, ExecType::New, working, 1, 0, 10));
    scene.report(fill(working, 2, 4, 4, 6));
    scene.cancel(11, 1);
    let sent = scene.order(2, Side::Buy, 100, 10);
    scene.line(false);
    let queued = scene.order(3, Side::Buy, 100, 10);
    end_day(&mut scene);
    let reports: Vec<_> = scene
        .client_reports()
        .iter()
        .map(|report| (report.order_id.0, report.exec_type, report.leaves_quantity.0))
        .collect();
    let expired = ExecType::Expired.code();
    assert_eq!(reports, [(working, expired, 0), (sent, expired, 0), (queued, expired, 0)]);
    assert_eq!((scene.bought(), scene.core.waiting(VENUE), scene.core.open_orders().count()), ((4, 0), 0, 0));
    assert_eq!([working, sent, queued].map(|id| is_known(&scene, id)), [true, true, false], "a venue may know the two");
    scene.report(fill(working, 3, 1, 5, 5));
    assert_eq!(
        (scene.counts().unknown_order_reports, scene.bought()),
        (0, (5, 0)),
        "a report in flight still finds its order"
    );
    let again = scene.order(1, Side::Buy, 100, 10);
    assert!(is_known(&scene, again), "the client's id is free again");
    end_day(&mut scene);
    assert!(!is_known(&scene, working), "it is forgotten one day later");
    scene.report(fill(working, 4, 1, 6, 4));
    assert_eq!(
        (scene.counts().unknown_order_reports, scene.bought()),
        (1, (5, 0)),
        "a later report is of an unknown order"
    );
}

#[test]
fn gtc_and_unknown_orders_keep_their_fills_and_requests() {
    let mut scene = Scene::new();
    let resting = good_till_cancel(&mut scene, 1);
    scene.report(fill(resting, 2, 3, 3, 7));
    scene.replace(11, 1, 101, 12);
    let unknown = scene.order(2, Side::Buy, 100, 10);
    scene.apply(Input::MessageLoss(tickpath_oms_core::MessageLoss {
        lost: LOST_REPORTS,
        venue: VENUE,
        ..Default::default()
    }));
    scene.answer(resting, OrdStatus::PartiallyFilled, 2, 3, 7);
    let before = (scene.view(resting), scene.view(unknown), scene.position());
    end_day(&mut scene);
    assert_eq!((scene.view(resting), scene.view(unknown), scene.position()), before);
    assert_eq!((scene.out.len(), scene.counts().unknown, scene.counts().working), (0, 1, 1));
    assert_eq!(scene.report(fill(resting, 2, 3, 3, 7)), None, "its fills are still known");
    let cancel = scene.cancel(12, 1);
    assert_eq!(scene.canceled(), [resting]);
    end_day(&mut scene);
    assert_eq!(scene.state(resting), OrdStatus::PendingCancel, "so are its requests");
    assert_eq!(scene.report(reported(resting, ExecType::Canceled, cancel, 3, 3, 0)), Some(OrdStatus::Canceled));
    assert_eq!(scene.client_reports()[0].client_order_id.0, 12);
}

#[test]
fn a_replace_in_flight_is_answered_on_the_next_day() {
    let mut scene = Scene::new();
    let id = good_till_cancel(&mut scene, 1);
    let replace = scene.replace(2, 1, 101, 12);
    end_day(&mut scene);
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::PendingReplace, (0, 12)));
    scene.report(reported(id, ExecType::CancelRejected, replace, 2, 0, 10));
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::New, (0, 10)));
}

#[test]
fn an_order_with_missing_fills_stays_until_they_arrive() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    scene.report(reported(id, ExecType::Canceled, 0, 3, 4, 0));
    end_day(&mut scene);
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Canceled, (0, 4)), "its exposure is not forgotten");
    assert_eq!((scene.counts().done, scene.core.open_orders().count()), (1, 0));
    scene.report(fill(id, 2, 4, 4, 6));
    assert_eq!(scene.bought(), (4, 0));
    end_day(&mut scene);
    assert!(!is_known(&scene, id));
    assert_eq!(scene.bought(), (4, 0));
}

#[test]
fn client_ids_of_ended_orders_alone_may_be_used_again() {
    let mut scene = Scene::new();
    good_till_cancel(&mut scene, 1);
    scene.order(2, Side::Buy, 100, 10);
    scene.cancel(3, 2);
    scene.order(4, Side::Buy, 100, 0);
    scene.cancel(5, 1);
    end_day(&mut scene);
    for (client, expected) in [(1, true), (2, false), (3, false), (4, false), (5, true)] {
        scene.order(client, Side::Buy, 100, 1);
        let denial = expected.then_some((Denial::DuplicateClientOrderId, 0, 0));
        assert_eq!(scene.denial(), denial, "id {client}");
    }
}

#[test]
fn an_order_under_an_admin_cancel_keeps_its_client_id_the_next_day() {
    for padding in [0, 1, 5, 30, 200] {
        let mut scene = Scene::new();
        let ids: Vec<u64> = (1..=padding + 1).map(|client| good_till_cancel(&mut scene, client)).collect();
        scene.apply(Input::Kill(KillSwitch { scope: KILL_ALL, on: 1, cancel: 1, ..KillSwitch::default() }));
        end_day(&mut scene);
        for (&id, client) in ids.iter().zip(1..) {
            scene.status(1000 + client, client);
            assert_eq!(
                scene.client_reports().first().map(|report| report.order_id.0),
                Some(id),
                "of {} orders",
                padding + 1
            );
        }
    }
}

#[test]
fn kill_switches_limits_lines_and_windows_outlive_the_day() {
    let mut scene = Scene::new();
    scene.apply(Input::Kill(KillSwitch { scope: KILL_ALL, on: 1, ..KillSwitch::default() }));
    scene.line(false);
    end_day(&mut scene);
    assert!(!scene.core.is_up(VENUE));
    scene.order(1, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::KillSwitch, 0, 1)));
}

#[test]
fn waiting_requests_of_a_kept_order_still_leave() {
    let mut scene = Scene::new();
    let id = good_till_cancel(&mut scene, 1);
    scene.line(false);
    scene.order(2, Side::Buy, 100, 10);
    scene.cancel(3, 1);
    end_day(&mut scene);
    scene.line(true);
    assert!(scene.release());
    assert_eq!((scene.canceled(), scene.core.waiting(VENUE)), (vec![id], 0));
}

/// Ten days of 10,000 orders: a third filled, a third canceled, a third expired (known for one more day), and one order
/// a day that is good till canceled. Finished orders neither slow nor fill the next day, so the same client ids work
/// each day.
#[test]
fn ten_days_leave_only_open_orders_and_correct_positions() {
    let mut scene = Scene::new();
    let mut kept = Vec::new();
    for day in 0..10_u64 {
        for client in 1..=10_000 {
            let id = scene.order(client, Side::Buy, 100, 2);
            assert_eq!(scene.denial(), None, "day {day}, order {client}");
            match client % 3 {
                0 => {
                    scene.report(fill(id, 1, 2, 2, 0));
                }
                1 => {
                    scene.report(reported(id, ExecType::Canceled, 0, 1, 0, 0));
                }
                _ => {}
            }
        }
        let resting = good_till_cancel(&mut scene, 20_000 + day);
        scene.report(fill(resting, 2, 1, 1, 9));
        kept.push(resting);
        end_day(&mut scene);
        let (counts, days) = (scene.counts(), day + 1);
        assert_eq!(scene.client_reports().len(), 3333, "day {day}");
        assert_eq!((counts.working, counts.done, counts.sending, counts.rejected), (days, 3333, 0, 0), "day {day}");
        assert_eq!(scene.bought(), (i128::from(days) * (2 * 3333 + 1), i128::from(days) * 9), "day {day}");
    }
    let live: Vec<u64> = scene.core.open_orders().map(|view| view.id.0).collect();
    assert_eq!(live, kept);
    assert_eq!(scene.core.position(ACCOUNT, crate::scene::SYMBOL).working_sell, 0);
    scene.report(amended(kept[0], ExecType::TradeCancel, 1, 3, 1, 0, 10));
    assert_eq!(scene.bought(), (10 * 6667 - 1, 91), "a fill of the first day can still be taken back");
}
