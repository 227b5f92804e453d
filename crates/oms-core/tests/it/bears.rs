//! References to an id (orders, positions, triggers, foreign reports, requests, kill switches), each until it is gone.

use tickpath_market::{AccountId, ExecutionReport, OrderId, Side, SymbolId, VenueId};
use tickpath_oms_core::{Bearer, DayEnd, Input, KILL_SESSION, KILL_SYMBOL, Kill, ReportRecord};

use crate::scene::{ACCOUNT, SYMBOL, Scene, VENUE, fill};

/// Returns the holders of a reference to the symbol, the account, the venue and the session of a scene.
fn bearers(scene: &Scene) -> [Option<Bearer>; 4] {
    let core = &scene.core;
    [
        core.bearer_of_symbol(SYMBOL),
        core.bearer_of_account(ACCOUNT),
        core.bearer_of_venue(VENUE),
        core.bearer_of_session(1),
    ]
}

#[test]
fn an_order_bears_all_its_numbers_until_its_day_has_ended_and_no_others() {
    let mut scene = Scene::new();
    assert_eq!(bearers(&scene), [None; 4], "definitions bear nothing");
    let id = OrderId(scene.order(1, Side::Buy, 100, 10));
    assert_eq!(bearers(&scene), [Some(Bearer::Open(id)); 4]);
    let core = &scene.core;
    let others = [
        core.bearer_of_symbol(SymbolId(SYMBOL.0 + 1)),
        core.bearer_of_account(AccountId(ACCOUNT.0 + 1)),
        core.bearer_of_venue(VenueId(VENUE.0 + 1)),
        core.bearer_of_session(2),
    ];
    assert_eq!(others, [None; 4]);
}

#[test]
fn a_request_that_was_denied_bears_its_session_and_nothing_else() {
    let mut scene = Scene::new();
    scene.cancel(5, 99);
    assert!(scene.denial().is_some());
    assert_eq!(bearers(&scene), [None, None, None, Some(Bearer::Request(5))]);
    scene.say(Input::DayEnd(DayEnd::default()));
    assert_eq!(bearers(&scene), [None; 4]);
}

#[test]
fn a_foreign_report_bears_its_symbol_and_a_kill_switch_what_it_kills() {
    let mut scene = Scene::new();
    let report = ExecutionReport { symbol: SYMBOL, account: ACCOUNT, side: Side::Buy.code(), ..fill(77, 1, 4, 4, 6) };
    scene.say(Input::Report(ReportRecord { report, source: VENUE, line: 0, lane_sequence: 0 }));
    assert_eq!(scene.core.foreign_count(), 1);
    let foreign = Some(Bearer::Foreign(scene.sequence));
    assert_eq!(bearers(&scene), [foreign, foreign, foreign, None]);
    let mut scene = Scene::new();
    let kill = |scope: u8, target: u32| Input::Kill(Kill { scope, target, on: 1, ..Kill::default() });
    scene.say(kill(KILL_SYMBOL, SYMBOL.0));
    scene.say(kill(KILL_SESSION, 1));
    assert_eq!(bearers(&scene), [Some(Bearer::Killed), None, None, Some(Bearer::Killed)]);
}
