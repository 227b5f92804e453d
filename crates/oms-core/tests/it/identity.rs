//! An id belongs to one order for ever, and a report applies to an order only if all its identifying fields agree.

use std::collections::HashSet;

use tickpath_market::{AccountId, ExecType, ExecutionReport, OrdStatus, OrderId, Side, SymbolId, VenueId};
use tickpath_oms_core::{Denial, ReportRecord};

use crate::dice::{Dice, seed};
use crate::scene::{Scene, fill, reported};

/// Returns a core that has replayed the rest of the journal and was started again.
fn started(epoch: u64, orders: u64) -> Scene {
    let mut scene = Scene::new();
    scene.boot(1, 1);
    (1..=orders).for_each(|client| {
        scene.order(client, Side::Buy, 100, 10);
    });
    if epoch > 1 {
        scene.boot(epoch, 1);
    }
    scene
}

#[test]
fn an_id_carries_the_epoch_of_its_start_and_the_sequence_in_the_journal() {
    let mut scene = Scene::new();
    for (epoch, client) in [(0, 1), (1, 2), (2, 3), ((1 << 24) - 1, 4)] {
        scene.boot(epoch, 1);
        let id = OrderId(scene.order(client, Side::Buy, 100, 1));
        assert_eq!((id.epoch(), id.sequence()), (epoch, scene.sequence));
        assert_eq!(scene.view(id.0).client_order_id.0, client);
    }
}

#[test]
fn a_sequence_that_fits_no_id_is_denied() {
    let mut scene = Scene::new();
    scene.sequence = (1 << 40) - 2;
    let last = scene.order(1, Side::Buy, 100, 1);
    assert_eq!((scene.denial(), OrderId(last).sequence()), (None, (1 << 40) - 1));
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::Sequence, 0, 0)));
}

#[test]
fn fills_of_lost_orders_are_not_booked_on_their_successors() {
    let mut before = started(1, 2);
    let lost = before.order(3, Side::Buy, 100, 10);
    // A power loss takes the third order from the journal, though the venue has it. The start's own record and the next
    // order take its place in the journal.
    let mut after = started(2, 1);
    let fresh = after.order(2, Side::Buy, 100, 10);
    assert_eq!(OrderId(fresh).sequence(), OrderId(lost).sequence(), "the same place in the journal");
    assert_ne!(fresh, lost);
    let agreeing = before.agreeing(fill(lost, 2, 4, 4, 6));
    assert_eq!(after.report_exactly(agreeing), None);
    assert_eq!(after.report_exactly(before.agreeing(reported(lost, ExecType::New, lost, 1, 0, 10))), None);
    assert_eq!((after.counts().unknown_order_reports, after.bought()), (2, (0, 20)));
    assert_eq!(after.state(fresh), OrdStatus::PendingNew);
}

#[test]
fn no_id_is_assigned_twice_after_lost_tails() {
    let mut dice = Dice::new(seed());
    let (mut kept, mut seen) = (0, HashSet::new());
    for epoch in 2..200 {
        let mut scene = started(epoch, kept);
        let fresh = dice.below(6);
        for client in 1..=fresh {
            let id = scene.order(kept + client, Side::Sell, 100, 1);
            assert_eq!(scene.denial(), None);
            assert!(seen.insert(id), "epoch {epoch}: id {id} was given before");
        }
        kept = dice.below(kept.min(20) + fresh + 1);
    }
    assert!(seen.len() > 300, "{} ids", seen.len());
}

#[test]
fn a_report_that_mismatches_its_order_is_only_counted() {
    type Spoil = fn(&mut ReportRecord);
    const SPOILS: &[(&str, Spoil)] = &[
        ("symbol", |record| record.report.symbol = SymbolId(99)),
        ("account", |record| record.report.account = AccountId(99)),
        ("other side", |record| record.report.side = Side::Sell.code()),
        ("no side", |record| record.report.side = 0),
        ("venue", |record| record.report.venue = VenueId(99)),
        ("another venue's lane", |record| record.source = VenueId(99)),
    ];
    for what in [ExecType::New, ExecType::Trade, ExecType::Canceled, ExecType::Rejected, ExecType::TradeCancel] {
        for (name, spoil) in SPOILS {
            let mut scene = Scene::new();
            let id = scene.order(1, Side::Buy, 100, 10);
            let mut record = scene.agreeing(ExecutionReport { exec_type: what.code(), ..fill(id, 1, 4, 4, 6) });
            let before = (scene.view(id), scene.position());
            spoil(&mut record);
            assert_eq!(scene.report_exactly(record), None, "{what:?}, {name}");
            assert_eq!((scene.view(id), scene.position()), before, "{what:?}, {name}");
            assert_eq!(scene.counts().mismatched, 1, "{what:?}, {name}");
        }
    }
}

#[test]
fn a_cancel_rejection_and_a_status_answer_may_lack_the_side() {
    for what in [ExecType::CancelRejected, ExecType::OrderStatus] {
        let mut scene = Scene::new();
        let id = scene.order(1, Side::Buy, 100, 10);
        let record = scene.agreeing(reported(id, what, 0, 0, 0, 0));
        scene.report_exactly(ReportRecord { report: ExecutionReport { side: 0, ..record.report }, ..record });
        assert_eq!(scene.counts().mismatched, 0, "{what:?}");
    }
}

#[test]
fn a_denied_request_leaves_only_its_client_id() {
    let mut scene = Scene::new();
    let denied = scene.order(1, Side::Buy, 100, 0);
    assert_eq!(scene.core.order(OrderId(denied)), None);
    scene.order(1, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)), "the id is used up");
    scene.cancel(2, 1);
    assert_eq!(scene.denial(), Some((Denial::UnknownOrder, 0, 0)), "there is nothing to cancel");
    assert_eq!(scene.report(reported(denied, ExecType::New, denied, 1, 0, 1)), None);
    let counts = scene.counts();
    assert_eq!((counts.denied_requests, counts.unknown_order_reports, scene.core.open_orders().count()), (3, 1, 0));
}
