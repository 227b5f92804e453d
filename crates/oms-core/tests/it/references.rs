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
fn an_order_bears_all_its_numbers_until_its_day_has_ended_and_no_others() {
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
fn a_request_that_was_denied_bears_its_session_and_nothing_else() {
    let mut scene = Scene::new();
    scene.cancel(5, 99);
    assert!(scene.denial().is_some());
    assert_eq!(bearers(&scene), [None, None, None, Some(IdReference::UsedClientId(5))]);
    scene.apply(Input::DayEnd(DayEnd::default()));
    assert_eq!(bearers(&scene), [None; 4]);
}

#[test]
fn a_foreign_report_bears_its_symbol_and_a_kill_switch_what_it_kills() {
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
