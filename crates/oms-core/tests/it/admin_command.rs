//! Admin commands: switches and cancels by scope, and entries by hand.

use tickpath_market::{
    AccountId, ClientOrderId, ExecId, ExecType, ExecutionReport, OrdStatus, OrderId, Price, Quantity, Request, Side,
    StatusRequest, VenueId, VenueOrderId,
};
use tickpath_oms_core::{
    AdminCommandError, CancelScope, Core, DayEnd, Denial, EnterFill, EnterOrder, Input, KILL_ACCOUNT, KILL_ALL,
    KILL_DISK, KILL_SESSION, KILL_SYMBOL, KillSwitch, LOST_REPORTS, QueryStatus, Reconcile, ReportRecord, VenueRules,
};

use crate::dice::{Dice, seed};
use crate::scene::{ACCOUNT, SYMBOL, Scene, VENUE, fill, reported, status_of};

/// Venue-side id of the lost order: from an earlier epoch.
const LOST: u64 = 77 << 40 | 5;
const REASON: [u8; 32] = *b"anna: the desk has rung us up...";

/// Returns the lost order, a buy of ten.
fn lost() -> EnterOrder {
    EnterOrder {
        client_order_id: ClientOrderId(9),
        sent_as: OrderId(LOST),
        price: Price(100),
        quantity: Quantity(10),
        symbol: SYMBOL,
        account: ACCOUNT,
        venue: VENUE,
        session: 1,
        side: Side::Buy.code(),
        order_type: 2,
        reason: REASON,
        ..Default::default()
    }
}

/// Returns a report on the lost order.
fn of_lost(report: ExecutionReport) -> ReportRecord {
    let report = ExecutionReport {
        order_id: OrderId(LOST),
        symbol: SYMBOL,
        account: ACCOUNT,
        side: Side::Buy.code(),
        venue_order_id: VenueOrderId(4),
        ..report
    };
    ReportRecord { report, source: VENUE, line: 0, lane_sequence: 0 }
}

/// Returns the core loaded from its own snapshot.
pub(crate) fn loaded(core: &Core) -> Core {
    let mut bytes = Vec::new();
    core.save(&mut |piece| bytes.extend_from_slice(piece));
    let mut bytes = &bytes[..];
    let mut fill =
        |piece: &mut [u8]| bytes.split_off(..piece.len()).map(|taken| piece.copy_from_slice(taken)).is_some();
    Core::load(0, &mut fill).expect("it was just saved")
}

#[test]
fn a_killed_session_may_only_cancel_until_the_switch_is_off() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 1);
    scene.session = 2;
    let others = scene.order(1, Side::Buy, 100, 1);
    let kill = |on| Input::Kill(KillSwitch { scope: KILL_SESSION, on, cancel: on, target: 1, ..KillSwitch::default() });
    scene.apply(kill(1));
    assert_eq!(scene.canceled(), [id], "another session's order works on");
    assert_eq!(scene.core.kills().collect::<Vec<_>>(), [(KILL_SESSION, 1)]);
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None);
    scene.session = 1;
    scene.core = loaded(&scene.core);
    assert_eq!(scene.core.kills().collect::<Vec<_>>(), [(KILL_SESSION, 1)], "a snapshot has it");
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::KillSwitch, 0, 1)), "also after a restart");
    scene.status(3, 1);
    assert_eq!(scene.denial(), None, "questions pass");
    scene.apply(kill(0));
    scene.order(4, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None);
    assert_eq!(scene.state(others), OrdStatus::PendingNew);
}

#[test]
fn a_cancel_by_scope_covers_all_sessions_and_kills_none() {
    for (scope, target, meant) in [
        (KILL_ALL, 0, [true, true]),
        (KILL_ACCOUNT, ACCOUNT.0, [true, true]),
        (KILL_ACCOUNT, 99, [false, false]),
        (KILL_SYMBOL, SYMBOL.0, [true, true]),
        (KILL_SESSION, 2, [false, true]),
    ] {
        let mut scene = Scene::new();
        let first = scene.order(1, Side::Buy, 100, 1);
        scene.session = 2;
        let second = scene.order(1, Side::Sell, 100, 1);
        let command = Input::CancelScope(CancelScope { scope, target, ..Default::default() });
        assert_eq!(scene.core.validate(&command), Ok(()));
        let concerned: Vec<u64> = scene.core.affected_orders(&command).iter().map(|order| order.id.0).collect();
        scene.apply(command);
        let expected: Vec<u64> =
            [first, second].into_iter().zip(meant).filter(|(_, meant)| *meant).map(|x| x.0).collect();
        assert_eq!((scene.canceled(), concerned), (expected.clone(), expected), "scope {scope}, target {target}");
        scene.order(2, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), None);
    }
    let mut scene = Scene::new();
    for (scope, target) in [(0, 0), (KILL_DISK, 0), (6, 0), (KILL_ACCOUNT, 1 << 16)] {
        let command = Input::CancelScope(CancelScope { scope, target, ..Default::default() });
        assert_eq!(scene.core.validate(&command), Err(AdminCommandError::Scope { scope, target }));
        scene.apply(command);
    }
    assert_eq!(scene.counts().ignored, 4);
}

#[test]
fn kept_reports_of_a_lost_order_are_applied_when_it_is_entered() {
    let mut scene = Scene::new();
    scene.boot(78, 1);
    for _ in 0..2 {
        scene.report_exactly(of_lost(reported(0, ExecType::New, 0, 1, 0, 10)));
        scene.report_exactly(of_lost(fill(0, 2, 4, 4, 6)));
    }
    assert_eq!(
        (scene.core.unknown_order_report_count(), scene.counts().unknown_order_reports),
        (2, 4),
        "each is kept once"
    );
    scene.core = loaded(&scene.core);
    let id = scene.apply(Input::EnterOrder(lost()));
    let reports: Vec<(u8, OrdStatus)> = scene
        .client_reports()
        .iter()
        .map(|report| (report.manual, OrdStatus::from_code(report.status).unwrap()))
        .collect();
    assert_eq!(reports, [(1, OrdStatus::New), (0, OrdStatus::PartiallyFilled)]);
    assert_eq!(
        (scene.state(id), scene.bought(), scene.core.unknown_order_report_count()),
        (OrdStatus::PartiallyFilled, (4, 6), 0)
    );
    assert_eq!(scene.status_requests(), [LOST], "the venue is asked under the id that it knows");
    // A later report of the venue finds the order, and a request to the venue names the order by the venue's id.
    scene.core = loaded(&scene.core);
    scene.report_exactly(of_lost(fill(0, 3, 1, 5, 5)));
    assert_eq!(scene.bought(), (5, 5));
    scene.cancel(10, 9);
    assert_eq!(scene.canceled(), [LOST]);
    let [Request::Cancel(cancel)] = scene.venue_requests()[..] else { panic!("{:?}", scene.out) };
    scene.returned(&Request::Cancel(cancel));
    assert!(scene.release(), "what did not leave waits, and leaves later");
    assert_eq!(scene.canceled(), [LOST]);
    scene.report_exactly(of_lost(reported(0, ExecType::Canceled, cancel.client_order_id.0, 4, 5, 0)));
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Canceled, (5, 0)));
    assert_eq!(scene.counts().unknown_order_reports, 4);
}

/// Expects the state of an order that was never lost.
#[test]
fn an_entered_order_equals_one_that_was_never_lost() {
    let mut dice = Dice::new(seed());
    for round in 0..300 {
        let mut scene = Scene::new();
        let mut other = Scene::new();
        scene.boot(78, 1);
        other.boot(78, 1);
        let kept = other.order(9, Side::Buy, 100, 10);
        let (mut reports, mut filled) = (vec![reported(0, ExecType::New, 0, 1, 0, 10)], 0);
        for number in 2..2 + dice.below(5) {
            let last = (1 + dice.below(3) as i64).min(10 - filled);
            if last == 0 {
                break;
            }
            filled += last;
            reports.push(fill(0, number, last, filled, 10 - filled));
        }
        if filled < 10 && dice.once_in(3) {
            let number = reports.len() as u64 + 1;
            reports.push(reported(0, ExecType::Canceled, 0, number, filled, 0));
        }
        // In any order, some reports twice.
        for _ in 0..reports.len() {
            let (a, b) = (dice.below(reports.len() as u64) as usize, dice.below(reports.len() as u64) as usize);
            reports.swap(a, b);
        }
        let twice: Vec<ExecutionReport> = reports.iter().copied().filter(|_| dice.once_in(4)).collect();
        reports.extend(twice);
        let entered_behind = dice.below(reports.len() as u64 + 1) as usize;
        let mut id = 0;
        for (place, report) in reports.iter().enumerate() {
            if place == entered_behind {
                id = scene.apply(Input::EnterOrder(lost()));
            }
            let record = of_lost(*report);
            scene.report_exactly(record);
            let report = ExecutionReport { order_id: OrderId(kept), ..record.report };
            other.report_exactly(ReportRecord { report, ..record });
        }
        if entered_behind == reports.len() {
            id = scene.apply(Input::EnterOrder(lost()));
        }
        let (entered, never_lost) = (scene.view(id), other.view(kept));
        let state = |view: tickpath_oms_core::OrderView| {
            (view.status, view.cumulative, view.leaves, view.price, view.quantity, view.venue_sequence)
        };
        assert_eq!(state(entered), state(never_lost), "round {round}: {reports:?}, entered behind {entered_behind}");
        assert_eq!(scene.bought(), other.bought(), "round {round}");
        assert_eq!(scene.core.unknown_order_report_count(), 0, "round {round}");
    }
}

#[test]
fn a_reconcile_answer_settles_every_order() {
    let mut scene = Scene::numbered(true);
    let [works, lost, doubted] = [1, 2, 3].map(|client| scene.order(client, Side::Buy, 100, 10));
    for id in [works, lost, doubted] {
        scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    }
    scene.doubt(LOST_REPORTS);
    assert_eq!(scene.state(doubted), OrdStatus::Unknown);
    let reconcile = Input::Reconcile(Reconcile { venue: VENUE, reason: REASON, ..Reconcile::default() });
    assert_eq!(scene.core.validate(&reconcile), Ok(()));
    let question = scene.apply(reconcile);
    let asks = StatusRequest { client_order_id: ClientOrderId(question), fills: 1, ..StatusRequest::default() };
    assert_eq!((scene.venue_requests(), scene.client_reports().len()), (vec![Request::Status(asks)], 0));
    // The fill of one order was lost; the other orders are unchanged.
    for (id, cumulative) in [(works, 0), (lost, 10), (doubted, 0)] {
        let (number, leaves) = if cumulative == 0 { (1, 10) } else { (2, 0) };
        if cumulative != 0 {
            scene.report(fill(id, 2, 10, 10, 0));
        }
        let status = if cumulative == 0 { OrdStatus::New } else { OrdStatus::Filled };
        scene.report(status_of(id, status, question, number, cumulative, leaves));
    }
    let states = [works, lost, doubted].map(|id| scene.state(id));
    assert_eq!(states, [OrdStatus::New, OrdStatus::Filled, OrdStatus::New]);
    assert_eq!(scene.bought(), (10, 20));
    let before = scene.counts();
    scene.report(status_of(0, OrdStatus::New, question, 0, 0, 0));
    assert_eq!(scene.counts(), before, "it ends the answer and reports no order");
    assert_eq!(scene.venue_requests().len() + scene.client_reports().len(), 0);
    // A report of an unknown order counts as such, as any other report.
    scene.report(ExecutionReport { side: Side::Buy.code(), ..status_of(LOST, OrdStatus::New, question, 1, 0, 10) });
    assert_eq!(
        (scene.counts().unknown_order_reports, scene.core.unknown_order_report_count()),
        (before.unknown_order_reports + 1, 1)
    );
}

#[test]
fn a_venue_that_cannot_be_asked_for_all_orders_is_not_asked() {
    let mut scene = Scene::new();
    let ask = |venue, reason| Input::Reconcile(Reconcile { venue, reason, ..Reconcile::default() });
    let is_refused = |scene: &mut Scene, input: Input, why: AdminCommandError| {
        assert_eq!(scene.core.validate(&input), Err(why));
        let ignored = scene.counts().ignored;
        scene.apply(input);
        assert_eq!((scene.venue_requests().len(), scene.counts().ignored), (0, ignored + 1));
    };
    is_refused(&mut scene, ask(VENUE, [0; 32]), AdminCommandError::Reason);
    is_refused(&mut scene, ask(VenueId(u16::MAX), REASON), AdminCommandError::CannotReconcile(u16::MAX));
    scene.apply(Input::Venue(VenueRules { answers_status: 0, ..VenueRules::of(VENUE) }));
    is_refused(&mut scene, ask(VENUE, REASON), AdminCommandError::CannotReconcile(VENUE.0));
    scene.apply(Input::Venue(VenueRules::of(VENUE)));
    scene.line(false);
    is_refused(&mut scene, ask(VENUE, REASON), AdminCommandError::CannotReconcile(VENUE.0));
    // While an order waits, the answer would seem to include it.
    scene.order(1, Side::Buy, 100, 10);
    scene.line(true);
    is_refused(&mut scene, ask(VENUE, REASON), AdminCommandError::CannotReconcile(VENUE.0));
    assert!(scene.release());
    assert_eq!(scene.core.validate(&ask(VENUE, REASON)), Ok(()));
}

/// Returns the lost order when only the venue's own id of it is known.
fn by_own_id() -> EnterOrder {
    EnterOrder { sent_as: OrderId(0), venue_order_id: VenueOrderId(4), ..lost() }
}

#[test]
fn an_order_known_by_its_venues_id_alone_is_not_queried() {
    let mut scene = Scene::new();
    scene.boot(78, 1);
    let id = scene.apply(Input::EnterOrder(by_own_id()));
    assert_eq!((scene.state(id), scene.bought(), scene.venue_requests().len()), (OrdStatus::New, (0, 10), 0));
    let inquire = QueryStatus { order: id, ..QueryStatus::default() };
    assert_eq!(scene.core.validate(&Input::QueryStatus(inquire)), Err(AdminCommandError::CannotQuery));
    scene.inquire(id);
    assert_eq!(scene.venue_requests().len(), 0, "a question under our id would be answered: no such order");
    // The venue sends only its own id.
    let nameless = |report| {
        let record = of_lost(report);
        ReportRecord { report: ExecutionReport { order_id: OrderId(0), ..record.report }, ..record }
    };
    scene.report_exactly(nameless(fill(0, 1, 4, 4, 6)));
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::PartiallyFilled, (4, 6)));
    scene.core = loaded(&scene.core);
    scene.doubt(LOST_REPORTS);
    assert_eq!((scene.state(id), scene.venue_requests().len()), (OrdStatus::Unknown, 0), "no venue can be asked");
    // Once the venue sends the id that it was sent, the order goes by that id.
    scene.report_exactly(of_lost(fill(0, 2, 1, 5, 5)));
    assert_eq!(scene.bought(), (5, 5));
    for _ in 0..2 {
        scene.inquire(id);
        assert_eq!(scene.status_requests(), [LOST]);
        scene.core = loaded(&scene.core);
    }
    let report = of_lost(fill(0, 3, 5, 10, 0));
    let report =
        ReportRecord { report: ExecutionReport { venue_order_id: VenueOrderId(0), ..report.report }, ..report };
    scene.report_exactly(report);
    assert_eq!(scene.bought(), (10, 0));
    scene.apply(Input::DayEnd(DayEnd::default()));
}

#[test]
fn an_order_entered_by_its_venues_id_matches_its_kept_reports() {
    let mut scene = Scene::new();
    scene.boot(78, 1);
    scene.report_exactly(of_lost(reported(0, ExecType::New, 0, 1, 0, 10)));
    // A report on the same order, without the venue's own id.
    let record = of_lost(fill(0, 2, 4, 4, 6));
    let report = ExecutionReport { venue_order_id: VenueOrderId(0), ..record.report };
    scene.report_exactly(ReportRecord { report, ..record });
    let id = scene.apply(Input::EnterOrder(by_own_id()));
    assert_eq!((scene.status_requests(), scene.bought()), (vec![LOST], (4, 6)));
    assert_eq!((scene.state(id), scene.core.unknown_order_report_count()), (OrdStatus::PartiallyFilled, 0));
    scene.cancel(10, 9);
    assert_eq!(scene.canceled(), [LOST]);
    let again = EnterOrder { client_order_id: ClientOrderId(10), ..lost() };
    assert_eq!(scene.core.validate(&Input::EnterOrder(again)), Err(AdminCommandError::KnownOrder));
}

#[test]
fn unmatched_reports_are_listed_for_five_days() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report_exactly(of_lost(fill(0, 1, 4, 4, 6)));
    assert_eq!((scene.bought(), scene.state(id)), ((0, 10), OrdStatus::PendingNew));
    let [foreign] = scene.core.unknown_order_reports()[..] else { panic!("one is kept") };
    assert_eq!((foreign.sequence, foreign.record.report.order_id.0), (scene.sequence, LOST));
    for _ in 0..4 {
        scene.apply(Input::DayEnd(DayEnd::default()));
    }
    assert_eq!(scene.core.unknown_order_report_count(), 1);
    scene.apply(Input::DayEnd(DayEnd::default()));
    assert_eq!(scene.core.unknown_order_report_count(), 0);
}

#[test]
fn a_refused_entry_changes_nothing_and_has_a_reason() {
    let mut scene = Scene::new();
    scene.boot(78, 1);
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report_exactly(of_lost(fill(0, 1, 4, 4, 6)));
    let known = |order: EnterOrder| EnterOrder { sent_as: OrderId(id), ..order };
    for (enter, why) in [
        (EnterOrder { reason: [0; 32], ..lost() }, AdminCommandError::Reason),
        (EnterOrder { quantity: Quantity(0), ..lost() }, AdminCommandError::Terms),
        (EnterOrder { order_type: 1, ..lost() }, AdminCommandError::Terms),
        (EnterOrder { side: 9, ..lost() }, AdminCommandError::Terms),
        (EnterOrder { sent_as: OrderId(0), ..lost() }, AdminCommandError::MissingVenueId),
        (known(lost()), AdminCommandError::KnownOrder),
        (EnterOrder { account: AccountId(8), ..lost() }, AdminCommandError::Undefined { account: 8, symbol: SYMBOL.0 }),
        (EnterOrder { session: 3, ..lost() }, AdminCommandError::NotEntitled { session: 3, account: ACCOUNT.0 }),
        (
            EnterOrder { client_order_id: ClientOrderId(1), ..lost() },
            AdminCommandError::ClientId { session: 1, client: 1 },
        ),
        (EnterOrder { side: Side::Sell.code(), ..lost() }, AdminCommandError::Disagrees),
    ] {
        assert_eq!(scene.core.validate(&Input::EnterOrder(enter)), Err(why));
        let ignored = scene.counts().ignored;
        scene.apply(Input::EnterOrder(enter));
        assert_eq!((scene.out.len(), scene.counts().ignored), (0, ignored + 1), "{why}");
    }
    scene.apply(Input::EnterOrder(lost()));
    let again = EnterOrder { client_order_id: ClientOrderId(10), ..lost() };
    assert_eq!(scene.core.validate(&Input::EnterOrder(again)), Err(AdminCommandError::KnownOrder));
}

#[test]
fn an_entered_fill_is_booked_once_even_if_reported_later() {
    for number in [0, 2] {
        let mut scene = Scene::numbered(number != 0);
        let id = scene.order(1, Side::Buy, 100, 10);
        scene.report(reported(id, ExecType::New, 0, number / 2, 0, 10));
        let enter = |quantity, exec| EnterFill {
            order: id,
            exec_id: ExecId(exec),
            venue_sequence: number,
            price: Price(99),
            quantity: Quantity(quantity),
            reason: REASON,
            ..Default::default()
        };
        scene.apply(Input::EnterFill(enter(4, 4)));
        let [report] = scene.client_reports()[..] else { panic!("one report: {:?}", scene.out) };
        assert_eq!((report.manual, report.last_quantity, report.last_price), (1, Quantity(4), Price(99)));
        assert_eq!((scene.state(id), scene.bought()), (OrdStatus::PartiallyFilled, (4, 6)));
        scene.report(fill(id, number, 4, 4, 6));
        assert_eq!(
            (scene.client_reports().len(), scene.bought()),
            (0, (4, 6)),
            "the venue's own report changes nothing"
        );
        for (enter, why) in [
            (EnterFill { venue_sequence: 0, ..enter(4, 4) }, AdminCommandError::FillKnown(4)),
            (EnterFill { exec_id: ExecId(0), ..enter(4, 5) }, AdminCommandError::Fill),
            (EnterFill { order: 1 << 39, ..enter(4, 5) }, AdminCommandError::NoOrder(OrderId(1 << 39))),
            (
                EnterFill { venue_sequence: 0, ..enter(7, 5) },
                AdminCommandError::OverFilled { filled: Quantity(4), max: Quantity(10) },
            ),
        ] {
            assert_eq!(scene.core.validate(&Input::EnterFill(enter)), Err(why));
            scene.apply(Input::EnterFill(enter));
            assert_eq!(scene.out.len(), 0, "{why}");
        }
        if number != 0 {
            assert_eq!(scene.core.validate(&Input::EnterFill(enter(1, 5))), Err(AdminCommandError::SeenSequence(2)));
        }
    }
}

/// The venue counts more filled than the core has booked; the missing fill is entered, and the doubt ends.
#[test]
fn an_entered_fill_ends_the_doubt_that_it_completes() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(id, ExecType::New, 0, 1, 0, 10));
    scene.report(reported(id, ExecType::Canceled, 0, 3, 4, 0));
    scene.doubt(tickpath_oms_core::LOST_REPORTS);
    scene.answer(id, OrdStatus::Canceled, 3, 4, 0);
    assert_eq!(scene.bought().0, 0);
    let exec_id = ExecId(8);
    let enter = EnterFill {
        order: id,
        exec_id,
        price: Price(100),
        quantity: Quantity(4),
        reason: REASON,
        ..Default::default()
    };
    assert_eq!(scene.core.validate(&Input::EnterFill(enter)), Ok(()));
    scene.apply(Input::EnterFill(enter));
    assert_eq!(
        (scene.bought().0, scene.status_requests()),
        (4, vec![id]),
        "all is there, so the venue is asked once more"
    );
    scene.answer(id, OrdStatus::Canceled, 3, 4, 0);
    assert_eq!((scene.state(id), scene.bought()), (OrdStatus::Canceled, (4, 0)));
}
