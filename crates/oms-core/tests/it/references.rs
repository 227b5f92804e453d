//! References to an id (orders, positions, triggers, foreign reports, requests, kill switches), each until it is gone.

use tickpath_market::{AccountId, ExecutionReport, OrderId, Side, SymbolId, VenueId};
use tickpath_oms_core::{DayEnd, IdReference, Input, KILL_SESSION, KILL_SYMBOL, KillSwitch, ReportRecord};

use crate::scene::{ACCOUNT, SYMBOL, Scene, VENUE, fill};

/// Returns the holders of a reference to the symbol, the account, the venue and the session of a scene.
fn bearers(scene: &Scene) -> [Option<IdReference>; 4] {
    let core = &scene.core;
    [
        core.reference_to_symbol(SYMBOL),
        core.reference_to_account(ACCOUNT),
        core.reference_to_venue(VENUE),
        core.reference_to_session(1),
    ]
}

#[test]
fn an_order_references_only_its_own_ids_until_its_day_ends() {
    let mut scene = Scene::new();
    assert_eq!(bearers(&scene), [None; 4], "definitions bear nothing");
    let id = OrderId(scene.order(1, Side::Buy, 100, 10));
    assert_eq!(bearers(&scene), [Some(IdReference::OpenOrder(id)); 4]);
    let core = &scene.core;
    let others = [
        core.reference_to_symbol(SymbolId(SYMBOL.0 + 1)),
        core.reference_to_account(AccountId(ACCOUNT.0 + 1)),
        core.reference_to_venue(VenueId(VENUE.0 + 1)),
        core.reference_to_session(2),
    ];
    assert_eq!(others, [None; 4]);
}

#[test]
fn a_denied_request_references_its_session_alone() {
    let mut scene = Scene::new();
    scene.cancel(5, 99);
    assert!(scene.denial().is_some());
    assert_eq!(bearers(&scene), [None, None, None, Some(IdReference::UsedClientId(5))]);
    scene.apply(Input::DayEnd(DayEnd::default()));
    assert_eq!(bearers(&scene), [None; 4]);
}

#[test]
fn unknown_order_reports_and_kill_switches_reference_their_ids() {
    let mut scene = Scene::new();
    let report = ExecutionReport { symbol: SYMBOL, account: ACCOUNT, side: Side::Buy.code(), ..fill(77, 1, 4, 4, 6) };
    scene.apply(Input::Report(ReportRecord { report, source: VENUE, line: 0, lane_sequence: 0 }));
    assert_eq!(scene.core.unknown_order_report_count(), 1);
    let foreign = Some(IdReference::UnknownOrderReport(scene.sequence));
    assert_eq!(bearers(&scene), [foreign, foreign, foreign, None]);
    let mut scene = Scene::new();
    let kill = |scope: u8, target: u32| Input::Kill(KillSwitch { scope, target, on: 1, ..KillSwitch::default() });
    scene.apply(kill(KILL_SYMBOL, SYMBOL.0));
    scene.apply(kill(KILL_SESSION, 1));
    assert_eq!(bearers(&scene), [Some(IdReference::KillSwitch), None, None, Some(IdReference::KillSwitch)]);
}
