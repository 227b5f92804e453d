//! Orders with a trigger: checks while they are armed, when they fire, and after.

use tickpath_market::{
    AccountId, ClientOrderId, Condition, ConditionalOrder, ExecId, ExecType, ExecutionReport, NewOrder, OrdStatus,
    OrderId, OrderType, Price, Quantity, ReplaceConditional, Request, Side, SymbolId, TimeInForce, Trigger,
    TriggerDirection, TriggerJoin, TriggerPriceType,
};
use tickpath_oms_core::{
    ALL_ACCOUNTS, AccountLimits, AdminCommandError, DayEnd, DefinitionEnd, Denial, EnterFill, Envelope, Input,
    KILL_ALL, KILL_DISK, KillSwitch, LOST_REPORTS, LOST_REQUESTS, RETRY, RecordKind, RejectRule, SessionConnection,
    SessionRules, TriggerFired, VenueRules,
};

use crate::scene::{ACCOUNT, SYMBOL, Scene, fill, order, reported, wide};

fn last_reaches(price: i64) -> Condition {
    Condition {
        price: Price(price),
        symbol: SYMBOL,
        price_type: TriggerPriceType::Last.code(),
        direction: TriggerDirection::Up.code(),
        reserved: [0; 2],
    }
}

impl Scene {
    fn arm(&mut self, client: u64, price: i64, quantity: i64) -> u64 {
        self.arm_as(order(client, Side::Buy, price, quantity))
    }

    fn arm_as(&mut self, order: NewOrder) -> u64 {
        self.request(Request::Conditional(ConditionalOrder { order, trigger: Trigger::on(last_reaches(105)) }))
    }

    fn rearm(&mut self, client: u64, original: u64, price: i64, quantity: i64, at: i64) {
        self.request(Request::ReplaceConditional(ReplaceConditional {
            client_order_id: ClientOrderId(client),
            original: ClientOrderId(original),
            price: Price(price),
            quantity: Quantity(quantity),
            account: ACCOUNT,
            trigger: Trigger::on(last_reaches(at)),
            ..ReplaceConditional::default()
        }));
    }

    fn fire(&mut self, id: u64) {
        let reference_price = self.reference;
        self.apply(Input::TriggerFired(TriggerFired {
            order: id,
            tick: 77,
            price: Price(105),
            reference_price,
            reference_age_ns: 1,
            symbol: SYMBOL,
            price_type: TriggerPriceType::Last.code(),
            reserved: [0; 3],
        }));
    }

    #[track_caller]
    fn assert_reports(&self, expected: &[(ExecType, OrdStatus)]) {
        let reports: Vec<_> = self.client_reports().iter().map(|report| (report.exec_type, report.status)).collect();
        let expected: Vec<_> = expected.iter().map(|(what, status)| (what.code(), status.code())).collect();
        assert_eq!(reports, expected, "{:?}", self.out);
    }

    fn is_armed(&self, id: u64) -> bool {
        self.core.armed_order(OrderId(id)).is_some()
    }
}

#[test]
fn an_armed_order_has_no_exposure_and_fires_as_a_new_order() {
    let mut scene = Scene::new();
    let id = scene.arm_as(NewOrder { position_effect: 1, ..order(1, Side::Buy, 100, 10) });
    scene.assert_reports(&[(ExecType::PendingNew, OrdStatus::Armed)]);
    assert!(scene.venue_requests().is_empty() && scene.is_armed(id));
    assert_eq!((scene.bought(), scene.counts().queued, scene.view(id).leaves.0), ((0, 0), 1, 10));
    scene.fire(id);
    scene.assert_reports(&[(ExecType::Triggered, OrdStatus::PendingNew)]);
    let expected =
        NewOrder { client_order_id: ClientOrderId(id), cause: 77, position_effect: 1, ..order(1, Side::Buy, 100, 10) };
    assert_eq!(scene.venue_requests(), [Request::New(expected)]);
    assert_eq!((scene.bought(), scene.counts().queued, scene.is_armed(id)), ((0, 10), 0, false));
    scene.fire(id);
    assert!(scene.out.is_empty(), "it fires once");
    assert_eq!(scene.counts().ignored, 1);
    assert_eq!(scene.report(reported(id, ExecType::New, id, 1, 0, 10)), Some(OrdStatus::New));
    assert_eq!(scene.report(fill(id, 2, 10, 10, 0)), Some(OrdStatus::Filled));
    assert_eq!(scene.bought(), (10, 0));
}

#[test]
fn a_fired_order_keeps_its_clients_cause() {
    let mut scene = Scene::new();
    let id = scene.arm_as(NewOrder { cause: 5, ..order(1, Side::Buy, 100, 10) });
    scene.fire(id);
    assert!(matches!(scene.venue_requests()[..], [Request::New(new)] if new.cause == 5));
}

#[test]
fn a_conditional_market_order_is_valued_when_it_fires() {
    let mut scene = Scene::with(AccountLimits { credit: 5_000_i128.to_le_bytes(), ..wide() });
    let market = NewOrder { order_type: OrderType::Market.code(), ..order(1, Side::Buy, 0, 10) };
    let id = scene.arm_as(market);
    assert!(scene.is_armed(id));
    scene.reference = Price(600);
    scene.fire(id);
    assert_eq!(scene.denial(), Some((Denial::Credit, 5_000, 6_000)));
    let again = scene.arm_as(NewOrder { client_order_id: ClientOrderId(2), ..market });
    scene.reference = Price(400);
    scene.fire(again);
    scene.assert_reports(&[(ExecType::Triggered, OrdStatus::PendingNew)]);
}

#[test]
fn a_conditional_order_is_denied_on_arrival_by_rights_and_form_alone() {
    let limits = AccountLimits {
        max_order_quantity: Quantity(10),
        max_notional: 2_000_i128.to_le_bytes(),
        max_open_orders: 2,
        max_position: Quantity(5),
        credit: 300_i128.to_le_bytes(),
        collar: 100,
        max_request_age_ns: 50,
        ..wide()
    };
    let mut scene = Scene::with(limits);
    for (order, why) in [
        (order(1, Side::Buy, 100, 0), (Denial::MinimumQuantity, 1, 0)),
        (order(2, Side::Buy, 100, 11), (Denial::MaximumQuantity, 10, 11)),
        (order(3, Side::Buy, 250, 10), (Denial::Notional, 2_000, 2_500)),
        (NewOrder { symbol: SymbolId(9), ..order(4, Side::Buy, 100, 1) }, (Denial::UnknownSymbol, 0, 9)),
        (NewOrder { account: AccountId(9), ..order(5, Side::Buy, 100, 1) }, (Denial::UnknownAccount, 0, 9)),
        (NewOrder { side: 9, ..order(6, Side::Buy, 100, 1) }, (Denial::Malformed, 0, 0)),
    ] {
        scene.arm_as(order);
        assert_eq!(scene.denial(), Some(why), "{order:?}");
    }
    scene.sent = Some(0);
    scene.stamp = 100;
    scene.arm(7, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::RequestAge, 50, 101)));
    scene.sent = None;
    // Far from the market, and over the limits of position and credit: these checks run when the order fires.
    let first = scene.arm(8, 180, 9);
    let second = scene.arm(9, 101, 2);
    scene.arm(10, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::OpenOrders, 2, 3)), "an armed order is an open one");
    scene.fire(first);
    assert_eq!(scene.denial(), Some((Denial::PriceCollar, 1, 80)));
    assert_eq!((scene.state(first), scene.counts().withdrawn), (OrdStatus::Rejected, 1));
    scene.fire(second);
    scene.assert_reports(&[(ExecType::Triggered, OrdStatus::PendingNew)]);
    let third = scene.arm(11, 100, 4);
    scene.fire(third);
    assert_eq!(scene.denial(), Some((Denial::Position, 5, 6)));
}

#[test]
fn a_trigger_that_cannot_fire_is_denied() {
    let mut scene = Scene::new();
    let strange = Condition { symbol: SymbolId(9), ..last_reaches(1) };
    let trigger = Trigger::joined(last_reaches(1), TriggerJoin::Or, strange);
    scene.request(Request::Conditional(ConditionalOrder { order: order(1, Side::Buy, 100, 1), trigger }));
    assert_eq!(scene.denial(), Some((Denial::UnknownSymbol, 0, 9)));
    let new = ConditionalOrder { order: order(2, Side::Buy, 100, 1), trigger: Trigger::on(last_reaches(1)) };
    let envelope = Envelope { session: 1, sent: scene.stamp, no_ticks: 1, ..Envelope::default() };
    scene.apply(Input::Request { envelope, request: Request::Conditional(new) });
    assert_eq!(scene.denial(), Some((Denial::NoTicks, 0, 0)));
    let trigger = Trigger { join: 9, ..Trigger::on(last_reaches(1)) };
    scene.request(Request::Conditional(ConditionalOrder { order: order(3, Side::Buy, 100, 1), trigger }));
    assert_eq!(scene.denial(), Some((Denial::Malformed, 0, 0)));
    scene.arm(2, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)), "what is denied uses its id up");
}

#[test]
fn a_fired_order_needs_the_rights_at_that_moment() {
    for (what, why) in [
        (
            Input::DefinitionEnd(DefinitionEnd {
                id: u32::MAX,
                session: 1,
                kind: RecordKind::Grant.code(),
                reserved: 0,
            }),
            Denial::NotEntitled,
        ),
        (
            Input::Session(SessionRules { session: 1, withheld: tickpath_oms_core::MAY_NEW, ..Default::default() }),
            Denial::NotPermitted,
        ),
        (Input::Kill(KillSwitch { scope: KILL_ALL, on: 1, ..KillSwitch::default() }), Denial::KillSwitch),
        (
            Input::DefinitionEnd(DefinitionEnd {
                id: ACCOUNT.0,
                session: 0,
                kind: RecordKind::Account.code(),
                reserved: 0,
            }),
            Denial::UnknownAccount,
        ),
    ] {
        let mut scene = Scene::new();
        let id = scene.arm(1, 100, 10);
        scene.apply(what);
        assert!(scene.is_armed(id), "{why:?}");
        scene.fire(id);
        assert_eq!(scene.denial().map(|denial| denial.0), Some(why));
        assert_eq!((scene.bought(), scene.is_armed(id)), ((0, 0), false), "{why:?}");
    }
    assert_eq!(ALL_ACCOUNTS.0, u32::MAX);
}

#[test]
fn a_replace_of_an_armed_order_applies_at_once() {
    let mut scene = Scene::with(AccountLimits { max_order_quantity: Quantity(20), ..wide() });
    let id = scene.arm(1, 100, 10);
    scene.replace(2, 1, 102, 12);
    scene.assert_reports(&[(ExecType::Replaced, OrdStatus::Armed)]);
    assert_eq!(scene.client_reports()[0].client_order_id.0, 2);
    assert_eq!((scene.view(id).price.0, scene.view(id).quantity.0), (102, 12));
    let before = scene.core.armed_order(OrderId(id)).unwrap();
    scene.rearm(3, 1, 103, 13, 200);
    scene.assert_reports(&[(ExecType::Replaced, OrdStatus::Armed)]);
    let after = scene.core.armed_order(OrderId(id)).unwrap();
    assert_eq!(after.trigger, Trigger::on(last_reaches(200)));
    assert!(after.request_id > before.request_id && after.since > before.since);
    scene.replace(4, 1, 103, 21);
    assert_eq!(scene.denial(), Some((Denial::MaximumQuantity, 20, 21)));
    scene.replace(2, 1, 103, 1);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)));
    scene.fire(id);
    assert!(matches!(scene.venue_requests()[..], [Request::New(new)] if (new.price.0, new.quantity.0) == (103, 13)));
    scene.rearm(5, 1, 103, 14, 300);
    assert_eq!(scene.denial(), Some((Denial::NotArmed, 0, 0)));
    scene.replace(6, 1, 103, 14);
    assert!(matches!(scene.venue_requests()[..], [Request::Replace(_)]), "it is an order like any");
}

#[test]
fn an_armed_order_is_canceled_like_any_order() {
    type Cancel = fn(&mut Scene, u64);
    let ways: [(&str, Cancel); 5] = [
        ("by its client", |scene, _| _ = scene.cancel(9, 1)),
        ("by id, from another session", |scene, id| {
            scene.session = 2;
            let (client_order_id, order_id) = (ClientOrderId(9), OrderId(id));
            let cancel = tickpath_market::CancelOrder { client_order_id, order_id, ..Default::default() };
            scene.request(Request::Cancel(cancel));
        }),
        ("with all others", |scene, _| _ = scene.mass_cancel(9, ACCOUNT, Some(SYMBOL))),
        ("by a kill switch", |scene, _| {
            _ = scene.apply(Input::Kill(KillSwitch { scope: KILL_ALL, on: 1, cancel: 1, ..KillSwitch::default() }));
        }),
        ("with its session", |scene, _| {
            scene.apply(Input::Session(SessionRules { session: 1, cancel_on_disconnect: 1, ..Default::default() }));
            scene.apply(Input::SessionConnection(SessionConnection { session: 1, up: 0, reserved: [0; 5] }));
        }),
    ];
    for (how, cancel) in ways {
        let mut scene = Scene::new();
        let id = scene.arm(1, 100, 10);
        cancel(&mut scene, id);
        let canceled = (ExecType::Canceled.code(), OrdStatus::Canceled.code());
        assert!(
            scene.client_reports().iter().all(|report| (report.exec_type, report.status) == canceled),
            "{how}: {:?}",
            scene.out
        );
        assert!(!scene.client_reports().is_empty() && scene.venue_requests().is_empty(), "{how}: {:?}", scene.out);
        assert_eq!(
            (scene.state(id), scene.is_armed(id), scene.core.armed_upper_bound()),
            (OrdStatus::Canceled, false, 0)
        );
        scene.fire(id);
        assert!(scene.out.is_empty(), "{how}: what is canceled never fires");
    }
}

#[test]
fn an_armed_day_order_expires_and_an_armed_gtc_order_stays() {
    let mut scene = Scene::new();
    let day = scene.arm(1, 100, 10);
    let kept =
        scene.arm_as(NewOrder { time_in_force: TimeInForce::GoodTillCancel.code(), ..order(2, Side::Buy, 100, 10) });
    scene.apply(Input::DayEnd(DayEnd::default()));
    scene.assert_reports(&[(ExecType::Expired, OrdStatus::Canceled)]);
    assert!(!scene.is_armed(day) && scene.is_armed(kept));
    assert_eq!(scene.core.armed_orders().count(), 1);
    scene.arm(1, 100, 10);
    assert_eq!(scene.denial(), None, "ids begin anew");
    scene.fire(kept);
    scene.assert_reports(&[(ExecType::Triggered, OrdStatus::PendingNew)]);
}

#[test]
fn a_fired_order_waits_for_a_venue_that_is_down() {
    let mut scene = Scene::new();
    let id = scene.arm(1, 100, 10);
    scene.line(false);
    scene.fire(id);
    scene.assert_reports(&[(ExecType::Triggered, OrdStatus::PendingNew)]);
    assert!(scene.venue_requests().is_empty());
    assert_eq!(scene.bought(), (0, 10));
    scene.line(true);
    assert!(scene.release());
    assert!(matches!(scene.venue_requests()[..], [Request::New(_)]));
}

#[test]
fn a_disk_failure_denies_armed_orders() {
    let mut scene = Scene::new();
    let id = scene.arm(1, 100, 10);
    scene.apply(Input::Kill(KillSwitch { scope: KILL_DISK, on: 1, ..KillSwitch::default() }));
    assert_eq!(scene.denial(), Some((Denial::DiskFailed, 0, 1)));
    assert!(!scene.is_armed(id));
    scene.arm(2, 100, 10);
    assert_eq!(scene.denial(), Some((Denial::DiskFailed, 0, 1)));
}

/// Returns a core with an armed order after a restart of the OMS, with or without a reboot of the host.
fn restarted(boot: u8, level: u8) -> (Scene, u64) {
    let mut scene = Scene::new();
    scene.apply(Input::Session(SessionRules { session: 1, level, ..Default::default() }));
    scene.boot(1, 1);
    let id = scene.arm(1, 100, 10);
    scene.boot(2, boot);
    (scene, id)
}

#[test]
fn an_armed_order_stays_armed_after_a_start() {
    let (mut scene, id) = restarted(1, 0);
    assert!(scene.is_armed(id) && scene.core.armed_orders().next().is_some_and(|armed| armed.since > 0));
    scene.doubt(LOST_REQUESTS);
    scene.doubt(LOST_REPORTS);
    assert!(scene.is_armed(id) && scene.out.is_empty(), "no venue has received it");
    scene.fire(id);
    scene.assert_reports(&[(ExecType::Triggered, OrdStatus::PendingNew)]);
}

#[test]
fn after_a_host_boot_the_venue_is_asked_for_an_armed_order() {
    let (mut scene, id) = restarted(2, 0);
    assert!(!scene.is_armed(id));
    assert_eq!(scene.bought(), (0, 10), "it may be working");
    scene.doubt(LOST_REPORTS);
    assert_eq!(scene.status_requests(), [id]);
    scene.fire(id);
    assert!(scene.out.is_empty(), "what may have fired fires no more");
    // An answer from before the loss.
    let record = scene.agreeing(crate::scene::status_of(id, OrdStatus::Rejected, 1, 0, 0, 0));
    let report = tickpath_market::ExecutionReport { side: 0, ..record.report };
    scene.report_exactly(tickpath_oms_core::ReportRecord { report, ..record });
    assert!(!scene.is_armed(id) && scene.out.is_empty());
    scene.doubt(LOST_REPORTS);
    let question = OrderId::new(scene.core.epoch(), scene.sequence).0;
    let record = scene.agreeing(crate::scene::status_of(id, OrdStatus::Rejected, question, 0, 0, 0));
    let report = tickpath_market::ExecutionReport { side: 0, ..record.report };
    scene.report_exactly(tickpath_oms_core::ReportRecord { report, ..record });
    scene.assert_reports(&[(ExecType::OrderStatus, OrdStatus::Armed)]);
    assert_eq!((scene.bought(), scene.is_armed(id)), ((0, 0), true));
    assert_eq!(scene.core.armed_order(OrderId(id)).unwrap().since, 0, "the clock is another one");
    scene.fire(id);
    scene.assert_reports(&[(ExecType::Triggered, OrdStatus::PendingNew)]);
}

#[test]
fn an_order_fired_in_a_lost_tail_is_found_at_its_venue() {
    let (mut scene, id) = restarted(2, 0);
    scene.doubt(LOST_REPORTS);
    assert_eq!(scene.answer(id, OrdStatus::New, 1, 0, 10), Some(OrdStatus::New));
    assert_eq!((scene.core.armed_upper_bound(), scene.bought()), (0, (0, 10)));
    let (mut scene, id) = restarted(2, 0);
    scene.doubt(LOST_REPORTS);
    scene.report(fill(id, 2, 10, 10, 0));
    assert_eq!((scene.core.armed_upper_bound(), scene.bought().0), (0, 10));
}

#[test]
fn an_armed_order_of_a_disk_session_is_not_in_doubt() {
    let (mut scene, id) = restarted(2, 1);
    scene.doubt(LOST_REPORTS);
    assert!(scene.is_armed(id) && scene.out.is_empty());
}

#[test]
fn a_cancel_during_the_doubt_ends_an_armed_order() {
    let (mut scene, id) = restarted(2, 0);
    scene.doubt(LOST_REPORTS);
    scene.cancel(2, 1);
    assert_eq!(scene.canceled(), [id]);
    let question = scene.status(3, 1);
    let record = scene.agreeing(crate::scene::status_of(id, OrdStatus::Rejected, question, 0, 0, 0));
    let report = tickpath_market::ExecutionReport { side: 0, ..record.report };
    scene.report_exactly(tickpath_oms_core::ReportRecord { report, ..record });
    assert_eq!((scene.state(id), scene.core.armed_upper_bound()), (OrdStatus::Rejected, 0));
}

#[test]
fn a_venue_report_on_an_armed_order_is_a_contradiction() {
    let mut scene = Scene::new();
    let id = scene.arm(1, 100, 10);
    assert_eq!(scene.report(reported(id, ExecType::New, id, 1, 0, 10)), Some(OrdStatus::Unknown));
    assert_eq!((scene.bought(), scene.is_armed(id), scene.counts().contradictions), ((0, 10), false, 1));
    scene.fire(id);
    assert!(scene.out.is_empty(), "what may be working never fires");
}

/// A fired order is a new order like any other: the retry rules of its venue apply.
#[test]
fn a_fired_order_that_its_venue_rejects_is_retried() {
    let mut scene = Scene::new();
    let venue = crate::scene::VENUE;
    scene.apply(Input::Reject(RejectRule { venue, code: 77, action: RETRY, times: 1, reserved: 0 }));
    let id = scene.arm(1, 100, 10);
    scene.fire(id);
    let status = OrdStatus::Rejected.code();
    scene.report(ExecutionReport { reason: 77, status, ..reported(id, ExecType::Rejected, id, 1, 0, 0) });
    assert_eq!((scene.state(id), scene.core.waiting(venue)), (OrdStatus::PendingNew, 1));
    assert!(scene.release());
    let [Request::New(new)] = scene.venue_requests()[..] else { panic!("no new order left: {:?}", scene.out) };
    assert_ne!(new.client_order_id.0, id);
}

/// In the lost tail of the journal the order may have fired, been rejected, and left again.
#[test]
fn a_rejection_is_no_end_of_an_order_that_may_have_fired_and_retried() {
    let check = |numbered: u8, status: Option<u64>, expected: OrdStatus| {
        let mut scene = Scene::new();
        let venue = crate::scene::VENUE;
        scene.apply(Input::Reject(RejectRule { venue, code: 77, action: RETRY, times: 1, reserved: 0 }));
        scene.apply(Input::Venue(VenueRules { numbered, ..VenueRules::of(venue) }));
        scene.boot(1, 1);
        let id = scene.arm(1, 100, 10);
        scene.boot(2, 2);
        scene.doubt(LOST_REPORTS);
        let question = OrderId::new(scene.core.epoch(), scene.sequence).0;
        let answer = crate::scene::status_of(id, OrdStatus::Rejected, question, status.unwrap_or(0), 0, 0);
        let record = scene.agreeing(answer);
        let side = if status.is_some() { record.report.side } else { 0 };
        let report = ExecutionReport { side, ..record.report };
        scene.report_exactly(tickpath_oms_core::ReportRecord { report, ..record });
        assert_eq!(scene.state(id), expected, "numbered {numbered}, {status:?}");
        assert_eq!(scene.bought().1, if expected == OrdStatus::Armed { 0 } else { 10 });
    };
    check(1, Some(1), OrdStatus::Unknown);
    check(1, None, OrdStatus::Armed);
    check(0, None, OrdStatus::Unknown);
}

#[test]
fn a_fill_of_an_unsent_order_cannot_be_entered() {
    let mut scene = Scene::new();
    let id = scene.arm(1, 100, 10);
    let enter = EnterFill {
        order: id,
        exec_id: ExecId(4),
        price: Price(99),
        quantity: Quantity(4),
        reason: [b'?'; 32],
        ..EnterFill::default()
    };
    assert_eq!(scene.core.validate(&Input::EnterFill(enter)), Err(AdminCommandError::NotSent));
    scene.apply(Input::EnterFill(enter));
    assert!(scene.is_armed(id) && scene.out.is_empty());
}

/// The order may have fired before the power loss, and its venue reports only after the day's end that it never had the
/// order.
#[test]
fn an_order_in_doubt_over_its_days_end_is_not_armed_again() {
    let (mut scene, id) = restarted(2, 0);
    scene.doubt(LOST_REPORTS);
    assert_eq!((scene.state(id), scene.status_requests()), (OrdStatus::Unknown, vec![id]));
    let question = OrderId::new(scene.core.epoch(), scene.sequence).0;
    scene.apply(Input::DayEnd(DayEnd::default()));
    let record = scene.agreeing(crate::scene::status_of(id, OrdStatus::Rejected, question, 0, 0, 0));
    let report = ExecutionReport { side: 0, ..record.report };
    scene.report_exactly(tickpath_oms_core::ReportRecord { report, ..record });
    assert!(!scene.is_armed(id));
    assert_eq!(scene.state(id), OrdStatus::Rejected);
}
