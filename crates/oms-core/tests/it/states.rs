//! The life of an order at a venue without sequence numbers, as the venue's events and the status reported to the
//! client.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, OrdStatus, OrderId, Price, Request, Side};
use tickpath_oms_core::{Denial, Output};

use crate::scene::{Scene, VENUE, fill, order, reported};

/// An event of an order of 10 at 100, and the status after it. `None` marks a report that changes nothing.
enum Step {
    Hear(fn(u64) -> ExecutionReport, Option<OrdStatus>),
    Cancel(OrdStatus),
    Replace(i64, OrdStatus),
    Denied(Request, Denial),
}
use Step::{Cancel, Denied, Hear, Replace};

#[track_caller]
fn check(name: &str, steps: &[Step]) -> Scene {
    let mut scene = Scene::numbered(false);
    let id = scene.order(1, Side::Buy, 100, 10);
    for (place, step) in steps.iter().enumerate() {
        let client = 10 + place as u64;
        match step {
            Hear(report, expected) => {
                let answered = report(id);
                // The answered id 1 stands for the last request.
                let last = ClientOrderId(scene.sequence);
                let answers = if answered.client_order_id.0 == 1 { last } else { answered.client_order_id };
                let report = ExecutionReport { client_order_id: answers, ..answered };
                assert_eq!(scene.report(report), *expected, "{name}, step {place}");
            }
            Cancel(expected) => {
                scene.cancel(client, 1);
                assert_eq!((scene.denial(), scene.view(id).status), (None, *expected), "{name}, step {place}");
            }
            Replace(quantity, expected) => {
                scene.replace(client, 1, 101, *quantity);
                assert_eq!((scene.denial(), scene.view(id).status), (None, *expected), "{name}, step {place}");
            }
            Denied(request, expected) => {
                scene.request(*request);
                assert_eq!(scene.denial(), Some((*expected, 0, 0)), "{name}, step {place}");
            }
        }
    }
    scene
}

fn cancel_again() -> Request {
    let account = crate::scene::ACCOUNT;
    let (client_order_id, original) = (ClientOrderId(999), ClientOrderId(1));
    Request::Cancel(tickpath_market::CancelOrder { client_order_id, original, account, ..Default::default() })
}

fn replace_again() -> Request {
    let account = crate::scene::ACCOUNT;
    let (client_order_id, original) = (ClientOrderId(998), ClientOrderId(1));
    let quantity = tickpath_market::Quantity(11);
    let price = Price(100);
    let replace =
        tickpath_market::ReplaceOrder { client_order_id, original, account, price, quantity, ..Default::default() };
    Request::Replace(replace)
}

fn accepted(id: u64) -> ExecutionReport {
    reported(id, ExecType::New, id, 0, 0, 10)
}

fn lost(id: u64) -> ExecutionReport {
    ExecutionReport { status: OrdStatus::Unknown.code(), ..reported(id, ExecType::New, 0, 0, 0, 0) }
}

#[test]
fn an_order_is_filled_in_parts() {
    let scene = check(
        "in parts",
        &[
            Hear(accepted, Some(OrdStatus::New)),
            Hear(accepted, None),
            Hear(|id| fill(id, 0, 4, 4, 6), Some(OrdStatus::PartiallyFilled)),
            Hear(|id| fill(id, 0, 4, 4, 6), None),
            Hear(|id| fill(id, 0, 6, 10, 0), Some(OrdStatus::Filled)),
            Denied(cancel_again(), Denial::TooLate),
            Denied(replace_again(), Denial::TooLate),
        ],
    );
    assert_eq!((scene.position().net, scene.position().working_buy), (10, 0));
    assert_eq!((scene.counts().done, scene.counts().duplicates), (1, 2));
}

#[test]
fn a_fill_may_arrive_before_the_acceptance() {
    check("fill first", &[Hear(|id| fill(id, 0, 4, 4, 6), Some(OrdStatus::PartiallyFilled)), Hear(accepted, None)]);
}

#[test]
fn an_order_is_canceled_on_request_and_unsolicited() {
    let scene = check(
        "on request",
        &[
            Hear(accepted, Some(OrdStatus::New)),
            Cancel(OrdStatus::PendingCancel),
            Denied(cancel_again(), Denial::AlreadyPending),
            Denied(replace_again(), Denial::AlreadyPending),
            Hear(|id| fill(id, 0, 4, 4, 6), Some(OrdStatus::PendingCancel)),
            Hear(|id| reported(id, ExecType::Canceled, 0, 0, 4, 0), Some(OrdStatus::Canceled)),
            Hear(|id| reported(id, ExecType::Canceled, 0, 0, 4, 0), None),
        ],
    );
    assert_eq!((scene.position().net, scene.position().working_buy), (4, 0));
}

#[test]
fn a_rejected_cancel_restores_the_state_before() {
    check(
        "refused cancel",
        &[
            Hear(accepted, Some(OrdStatus::New)),
            Cancel(OrdStatus::PendingCancel),
            Hear(|id| reported(id, ExecType::CancelRejected, 1, 0, 0, 10), Some(OrdStatus::New)),
            Hear(|id| reported(id, ExecType::CancelRejected, 3, 0, 0, 10), None),
        ],
    );
}

#[test]
fn a_replace_takes_its_terms_from_the_report() {
    let scene = check(
        "replace",
        &[
            Hear(accepted, Some(OrdStatus::New)),
            Replace(8, OrdStatus::PendingReplace),
            Hear(|id| reported(id, ExecType::Replaced, 1, 0, 0, 8), Some(OrdStatus::New)),
            Replace(12, OrdStatus::PendingReplace),
            Cancel(OrdStatus::PendingCancel),
        ],
    );
    assert_eq!(scene.position().working_buy, 12, "the larger counts while the replace is in flight");
}

#[test]
fn fills_may_be_missing_when_an_order_ends() {
    let scene = check(
        "three missing",
        &[
            Hear(accepted, Some(OrdStatus::New)),
            Hear(|id| reported(id, ExecType::Canceled, 0, 0, 3, 0), Some(OrdStatus::Canceled)),
        ],
    );
    assert_eq!((scene.position().net, scene.position().working_buy), (0, 3), "what is missing stays exposure");
    let scene = check(
        "three missing, then reported",
        &[
            Hear(|id| reported(id, ExecType::Canceled, 0, 0, 3, 0), Some(OrdStatus::Canceled)),
            Hear(|id| fill(id, 0, 3, 3, 7), Some(OrdStatus::Canceled)),
        ],
    );
    assert_eq!((scene.position().net, scene.position().working_buy), (3, 0));
}

#[test]
fn contradictions_without_a_sequence_end_in_unknown() {
    let unknown = Some(OrdStatus::Unknown);
    for (name, steps) in [
        (
            "fill after a cancel that knew none",
            [
                Hear(|id| reported(id, ExecType::Canceled, 0, 0, 0, 0), Some(OrdStatus::Canceled)),
                Hear(|id| fill(id, 0, 3, 3, 7), unknown),
            ],
        ),
        (
            "cancel that reports less than is filled",
            [
                Hear(|id| fill(id, 0, 3, 3, 7), Some(OrdStatus::PartiallyFilled)),
                Hear(|id| reported(id, ExecType::Canceled, 0, 0, 0, 0), unknown),
            ],
        ),
        (
            "fill after a rejection",
            [
                Hear(|id| reported(id, ExecType::Rejected, id, 0, 0, 0), Some(OrdStatus::Rejected)),
                Hear(|id| fill(id, 0, 3, 3, 7), unknown),
            ],
        ),
        (
            "filled over the quantity",
            [
                Hear(|id| fill(id, 0, 6, 6, 4), Some(OrdStatus::PartiallyFilled)),
                Hear(|id| fill(id, 0, 5, 11, 0), unknown),
            ],
        ),
        (
            "replaced without a request",
            [Hear(accepted, Some(OrdStatus::New)), Hear(|id| reported(id, ExecType::Replaced, 0, 0, 0, 7), unknown)],
        ),
    ] {
        let scene = check(name, &steps);
        assert_eq!(scene.counts().unknown, 1, "{name}");
    }
}

#[test]
fn a_lost_order_keeps_its_exposure_and_may_be_canceled() {
    let scene = check(
        "lost, then found",
        &[
            Hear(lost, Some(OrdStatus::Unknown)),
            Denied(replace_again(), Denial::StateUnknown),
            Cancel(OrdStatus::Unknown),
            Cancel(OrdStatus::Unknown),
            Hear(|id| reported(id, ExecType::CancelRejected, 1, 0, 0, 10), Some(OrdStatus::Unknown)),
            Hear(accepted, Some(OrdStatus::New)),
        ],
    );
    assert_eq!(scene.position().working_buy, 10);
    check(
        "lost while working",
        &[
            Hear(accepted, Some(OrdStatus::New)),
            Hear(lost, Some(OrdStatus::Unknown)),
            Hear(accepted, None),
            Hear(|id| reported(id, ExecType::New, id, 5, 0, 10), Some(OrdStatus::New)),
        ],
    );
}

#[test]
fn clients_and_venues_get_their_own_ids() {
    let mut scene = Scene::new();
    let id = scene.order(77, Side::Sell, 100, 10);
    let [Output::Venue { venue: VENUE, session: 1, request: Request::New(new) }, Output::Report { session: 1, report }] =
        scene.out.as_slice()
    else {
        panic!("{:?}", scene.out)
    };
    assert_eq!(
        (new.client_order_id, *new),
        (
            ClientOrderId(id),
            tickpath_market::NewOrder { client_order_id: ClientOrderId(id), ..order(77, Side::Sell, 100, 10) }
        )
    );
    assert_eq!((report.order_id, report.client_order_id, report.venue), (OrderId(id), ClientOrderId(77), VENUE));
    assert_eq!(report.exec_type, ExecType::PendingNew.code());
    let cancel = scene.cancel(78, 77);
    let [Output::Venue { request: Request::Cancel(sent), .. }, Output::Report { report, .. }] = scene.out.as_slice()
    else {
        panic!("{:?}", scene.out)
    };
    assert_eq!((sent.client_order_id, sent.original), (ClientOrderId(cancel), ClientOrderId(id)));
    assert_eq!((report.client_order_id, report.exec_type), (ClientOrderId(78), ExecType::PendingCancel.code()));
    for (answers, client) in [(cancel, 78), (0, 77)] {
        let mut scene = Scene::new();
        scene.order(77, Side::Sell, 100, 10);
        scene.cancel(78, 77);
        scene.report(reported(id, ExecType::Canceled, answers, 1, 0, 0));
        let [Output::Report { report, .. }] = scene.out.as_slice() else { panic!("{:?}", scene.out) };
        assert_eq!((report.order_id, report.client_order_id), (OrderId(id), ClientOrderId(client)));
    }
}

#[test]
fn reports_of_unknown_orders_are_counted() {
    let mut scene = Scene::new();
    let denied = scene.order(1, Side::Buy, 100, 0);
    assert_eq!(scene.report(accepted(denied)), None);
    assert_eq!(scene.report(accepted(4711)), None);
    assert_eq!(scene.counts().unknown_order_reports, 2);
    assert_eq!(scene.core.order(OrderId(denied)), None, "of a denied request only its id is kept");
}
