//! Cancels of many orders at once: by a kill switch, by a lost session, by a mass cancel.

use tickpath_market::{AccountId, ExecType, NewOrder, OrdStatus, OrderId, Request, Side, SymbolId};
use tickpath_oms_core::{
    AccountLimits, Denial, Input, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_DISK, KILL_SYMBOL, KillSwitch, LOST_REPORTS,
    SessionConnection, SessionRules,
};

use crate::scene::{ACCOUNT, SYMBOL, Scene, VENUE, fill, instrument, order, reported, wide};

const OTHER_ACCOUNT: AccountId = AccountId(8);
const OTHER_SYMBOL: SymbolId = SymbolId(4);

/// Returns eight orders over two accounts, two symbols and two sessions, one bit of the index each. All rest at the
/// venue but the last, which is in flight.
fn eight() -> (Scene, Vec<u64>) {
    let mut scene = Scene::new();
    scene.apply(Input::Account(AccountLimits { account: OTHER_ACCOUNT, ..wide() }));
    scene.apply(Input::Instrument(Instrument { symbol: OTHER_SYMBOL, ..instrument(1) }));
    let mut ids = Vec::new();
    for bits in 0..8 {
        let account = if bits & 1 == 0 { ACCOUNT } else { OTHER_ACCOUNT };
        let symbol = if bits & 2 == 0 { SYMBOL } else { OTHER_SYMBOL };
        scene.session = if bits & 4 == 0 { 1 } else { 2 };
        let id = scene.request(Request::New(NewOrder { account, symbol, ..order(1 + bits, Side::Buy, 100, 10) }));
        if bits < 7 {
            scene.report(reported(id, ExecType::New, id, 1, 0, 10));
        }
        ids.push(id);
    }
    scene.session = 1;
    (scene, ids)
}

/// Applies an input and checks that it cancels exactly the orders that `is_in_scope` selects, by ascending id.
#[track_caller]
fn check(name: &str, act: impl Fn(&mut Scene), is_in_scope: fn(usize) -> bool) {
    let (mut scene, ids) = eight();
    act(&mut scene);
    let expected: Vec<u64> = (0..8).filter(|&bits| is_in_scope(bits)).map(|bits| ids[bits]).collect();
    assert_eq!(scene.canceled(), expected, "{name}");
    for (bits, &id) in ids.iter().enumerate() {
        assert_eq!(scene.state(id) == OrdStatus::PendingCancel, is_in_scope(bits), "{name}: order {bits}");
    }
    let reported: Vec<u64> = scene.client_reports().iter().map(|report| report.order_id.0).collect();
    assert_eq!(reported, expected, "{name}: each client gets a report");
    act(&mut scene);
    assert_eq!(
        scene.out.iter().filter(|out| !matches!(out, tickpath_oms_core::Output::Denied { .. })).count(),
        0,
        "{name}"
    );
}

#[test]
fn a_kill_with_cancel_cancels_exactly_its_scope() {
    let kill = |scope, target, on, cancel| {
        move |scene: &mut Scene| {
            scene.apply(Input::Kill(KillSwitch { scope, target, on, cancel, ..KillSwitch::default() }));
        }
    };
    check("all", kill(KILL_ALL, 0, 1, 1), |_| true);
    check("an account", kill(KILL_ACCOUNT, OTHER_ACCOUNT.0, 1, 1), |bits| bits & 1 != 0);
    check("a symbol", kill(KILL_SYMBOL, SYMBOL.0, 1, 1), |bits| bits & 2 == 0);
    check("an account without orders", kill(KILL_ACCOUNT, 99, 1, 1), |_| false);
    check("the disk", kill(KILL_DISK, 0, 1, 1), |_| true);
    check("without cancel", kill(KILL_ALL, 0, 1, 0), |_| false);
    check("off", kill(KILL_ALL, 0, 0, 1), |_| false);
    check("no scope that exists", kill(9, 0, 1, 1), |_| false);
}

#[test]
fn a_lost_sessions_orders_are_canceled_if_it_is_so_configured() {
    let lost = |session, up| {
        move |scene: &mut Scene| {
            scene.apply(Input::SessionConnection(SessionConnection { session, up, reserved: [0; 5] }));
        }
    };
    let asks = |session, act: fn(&mut Scene)| {
        move |scene: &mut Scene| {
            let rules = SessionRules { session, cancel_on_disconnect: 1, ..SessionRules::default() };
            scene.apply(Input::Session(rules));
            act(scene);
        }
    };
    check("did not ask", lost(2, 0), |_| false);
    check(
        "asked",
        asks(2, |scene| {
            scene.apply(Input::SessionConnection(SessionConnection { session: 2, ..SessionConnection::default() }));
        }),
        |b| b & 4 != 0,
    );
    check(
        "another asked",
        asks(1, |scene| {
            scene.apply(Input::SessionConnection(SessionConnection { session: 2, ..SessionConnection::default() }));
        }),
        |_| false,
    );
    check(
        "it came",
        asks(2, |scene| {
            scene.apply(Input::SessionConnection(SessionConnection {
                session: 2,
                up: 1,
                ..SessionConnection::default()
            }));
        }),
        |_| false,
    );
}

#[test]
fn a_mass_cancel_cancels_by_session_account_and_symbol() {
    let mass = |account, symbol| {
        move |scene: &mut Scene| {
            scene.mass_cancel(50, account, symbol);
        }
    };
    check("an account", mass(ACCOUNT, None), |bits| bits & 5 == 0);
    check("the other account", mass(OTHER_ACCOUNT, None), |bits| bits & 5 == 1);
    check("an account and a symbol", mass(ACCOUNT, Some(OTHER_SYMBOL)), |bits| bits & 7 == 2);
}

#[test]
fn a_mass_cancel_is_reported_under_its_id_and_uses_it_up() {
    let (mut scene, ids) = eight();
    let mass = scene.mass_cancel(50, ACCOUNT, None);
    assert!(scene.client_reports().iter().all(|report| report.client_order_id.0 == 50));
    assert!(scene.venue_requests().iter().all(|request| request.client_order_id().0 == mass));
    assert_eq!(scene.report(reported(ids[0], ExecType::Canceled, mass, 2, 0, 0)), Some(OrdStatus::Canceled));
    assert_eq!(scene.client_reports()[0].client_order_id.0, 50);
    assert_eq!(scene.report(reported(ids[2], ExecType::CancelRejected, mass, 2, 0, 10)), Some(OrdStatus::New));
    scene.mass_cancel(50, ACCOUNT, None);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)));
    scene.mass_cancel(51, ACCOUNT, None);
    assert_eq!(scene.canceled(), [ids[2]], "the order without a cancel in flight");
}

#[test]
fn a_mass_cancel_without_open_orders_is_denied() {
    let mut scene = Scene::new();
    scene.mass_cancel(50, ACCOUNT, None);
    assert_eq!(scene.denial(), Some((Denial::UnknownOrder, 0, 0)));
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.mass_cancel(50, ACCOUNT, None);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)), "its id is used up");
    scene.mass_cancel(51, ACCOUNT, None);
    assert_eq!((scene.denial(), scene.canceled()), (None, vec![id]));
    scene.mass_cancel(52, ACCOUNT, None);
    assert_eq!(scene.denial(), Some((Denial::AlreadyPending, 0, 0)), "all that it meets is being canceled");
}

#[test]
fn a_mass_cancel_of_unknown_type_is_denied_and_uses_no_id() {
    let (mut scene, ids) = eight();
    let unknown = tickpath_market::MassCancel {
        client_order_id: tickpath_market::ClientOrderId(50),
        account: ACCOUNT,
        cancel_type: 2,
        ..Default::default()
    };
    scene.request(Request::MassCancel(unknown));
    assert_eq!(scene.denial(), Some((Denial::Malformed, 0, 0)));
    scene.mass_cancel(50, ACCOUNT, Some(SYMBOL));
    assert_eq!(scene.canceled(), [ids[0]]);
}

#[test]
fn a_mass_cancel_covers_waiting_unknown_and_partly_filled_orders() {
    let mut scene = Scene::new();
    let partly = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(partly, ExecType::New, partly, 1, 0, 10));
    scene.report(fill(partly, 2, 4, 4, 6));
    let filled = scene.order(2, Side::Buy, 100, 10);
    scene.report(reported(filled, ExecType::New, filled, 1, 0, 10));
    scene.report(fill(filled, 2, 10, 10, 0));
    let unknown = scene.order(3, Side::Buy, 100, 10);
    scene.doubt(LOST_REPORTS);
    scene.line(false);
    let queued = scene.order(4, Side::Buy, 100, 10);
    scene.mass_cancel(9, ACCOUNT, None);
    let states = [partly, filled, unknown, queued].map(|id| scene.state(id));
    assert_eq!(states, [OrdStatus::Unknown, OrdStatus::Filled, OrdStatus::Unknown, OrdStatus::Canceled]);
    assert_eq!((scene.client_reports().len(), scene.core.waiting(VENUE)), (3, 2));
    assert!(scene.core.order(OrderId(queued)).is_some_and(|view| view.leaves.0 == 0));
}

mod by_order_id {
    use tickpath_market::{AccountId, CancelOrder, ClientOrderId, ExecType, OrdStatus, OrderId, Request, Side};
    use tickpath_oms_core::{DefinitionEnd, Denial, Grant, Input, MAY_CANCEL, Output, RecordKind, SessionRules};

    use crate::scene::{ACCOUNT, Scene, fill, reported};

    fn cancel(scene: &mut Scene, client: u64, id: u64) -> u64 {
        let (client_order_id, order_id) = (ClientOrderId(client), OrderId(id));
        scene.request(Request::Cancel(CancelOrder { client_order_id, order_id, ..Default::default() }))
    }

    /// Returns the reports of the last input: session, order id, exec type and status.
    fn reports_by_session(scene: &Scene) -> Vec<(u16, u64, ExecType, OrdStatus)> {
        let of = |output: &Output| match output {
            Output::Report { session, report } => Some((
                *session,
                report.client_order_id.0,
                ExecType::from_code(report.exec_type).unwrap(),
                OrdStatus::from_code(report.status).unwrap(),
            )),
            Output::Venue { .. } | Output::Denied { .. } | Output::Extension { .. } => None,
        };
        scene.out.iter().filter_map(of).collect()
    }

    #[test]
    fn a_cancel_by_another_session_is_reported_to_both_sessions() {
        let mut scene = Scene::new();
        let id = scene.order(11, Side::Buy, 100, 5);
        scene.session = 2;
        let asked = cancel(&mut scene, 77, id);
        let Some(Request::Cancel(sent)) = scene.venue_requests().first().copied() else { panic!("{:?}", scene.out) };
        assert_eq!((sent.client_order_id.0, sent.original.0, sent.order_id.0), (asked, id, 0));
        let pending = (ExecType::PendingCancel, OrdStatus::PendingCancel);
        assert_eq!(reports_by_session(&scene), [(1, 11, pending.0, pending.1), (2, 77, pending.0, pending.1)]);
        scene.report(fill(id, 1, 2, 2, 3));
        assert_eq!(
            reports_by_session(&scene),
            [(1, 11, ExecType::Trade, OrdStatus::PendingCancel)],
            "a fill is the owner's"
        );
        scene.report(reported(id, ExecType::Canceled, asked, 2, 2, 0));
        let done = (ExecType::Canceled, OrdStatus::Canceled);
        assert_eq!(reports_by_session(&scene), [(1, 11, done.0, done.1), (2, 77, done.0, done.1)]);
    }

    #[test]
    fn the_canceling_session_gets_a_report_of_any_outcome() {
        let answers = |id, asked| {
            [
                (
                    reported(id, ExecType::CancelRejected, asked, 1, 0, 5),
                    ExecType::CancelRejected,
                    OrdStatus::PendingNew,
                ),
                (reported(id, ExecType::Expired, 0, 1, 0, 0), ExecType::Expired, OrdStatus::Expired),
                (reported(id, ExecType::Rejected, 0, 1, 0, 0), ExecType::Rejected, OrdStatus::Rejected),
            ]
        };
        for place in 0..3 {
            let mut scene = Scene::new();
            let id = scene.order(11, Side::Buy, 100, 5);
            scene.session = 2;
            let asked = cancel(&mut scene, 77, id);
            let (report, exec_type, status) = answers(id, asked)[place];
            scene.report(report);
            assert_eq!(reports_by_session(&scene), [(1, 11, exec_type, status), (2, 77, exec_type, status)]);
        }
        let mut scene = Scene::new();
        let id = scene.order(11, Side::Buy, 100, 5);
        scene.session = 2;
        cancel(&mut scene, 77, id);
        scene.apply(Input::DayEnd(Default::default()));
        let expired = (ExecType::Expired, OrdStatus::Expired);
        assert_eq!(reports_by_session(&scene), [(1, 11, expired.0, expired.1), (2, 77, expired.0, expired.1)]);
    }

    #[test]
    fn the_cancel_of_a_waiting_order_is_reported_to_both_sessions() {
        let mut scene = Scene::new();
        scene.line(false);
        let id = scene.order(11, Side::Buy, 100, 5);
        scene.session = 2;
        cancel(&mut scene, 77, id);
        let done = (ExecType::Canceled, OrdStatus::Canceled);
        assert_eq!(reports_by_session(&scene), [(1, 11, done.0, done.1), (2, 77, done.0, done.1)]);
        assert!(scene.venue_requests().is_empty());
    }

    #[test]
    fn a_cancel_of_an_own_order_by_its_id_is_reported_once() {
        let mut scene = Scene::new();
        let id = scene.order(11, Side::Buy, 100, 5);
        scene.apply(Input::DefinitionEnd(DefinitionEnd {
            id: u32::MAX,
            session: 1,
            kind: RecordKind::Grant.code(),
            reserved: 0,
        }));
        cancel(&mut scene, 12, id);
        assert_eq!(
            reports_by_session(&scene),
            [(1, 12, ExecType::PendingCancel, OrdStatus::PendingCancel)],
            "it is its own"
        );
    }

    #[test]
    fn a_cancel_without_the_right_gets_unknown_order() {
        let mut scene = Scene::new();
        let id = scene.order(11, Side::Buy, 100, 5);
        let unknown = Some((Denial::UnknownOrder, 0, 0));
        scene.session = 5;
        cancel(&mut scene, 1, id);
        assert_eq!(scene.denial(), unknown, "no right at all");
        scene.apply(Input::Grant(Grant { account: AccountId(ACCOUNT.0 + 1), session: 5, reserved: 0 }));
        cancel(&mut scene, 2, id);
        assert_eq!(scene.denial(), unknown, "for another account");
        cancel(&mut scene, 3, id + 1);
        assert_eq!(scene.denial(), unknown, "no such id");
        scene.apply(Input::Grant(Grant { account: ACCOUNT, session: 5, reserved: 0 }));
        scene.apply(Input::Session(SessionRules { session: 5, withheld: MAY_CANCEL, ..Default::default() }));
        cancel(&mut scene, 4, id);
        assert_eq!(scene.denial(), Some((Denial::NotPermitted, 0, i128::from(MAY_CANCEL))));
        scene.apply(Input::Session(SessionRules { session: 5, ..Default::default() }));
        cancel(&mut scene, 5, id);
        assert_eq!(scene.denial(), None);
    }
}
