//! Rights of sessions, rate limits, and the lifetime of definitions.

use tickpath_market::{AccountId, NewOrder, Request, Side};
use tickpath_oms_core::{
    ALL_ACCOUNTS, AccountLimits, DefinitionEnd, Denial, Grant, Input, MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW,
    MAY_REPLACE, MAY_STATUS, RecordKind, SessionRules, VenueRules,
};

use crate::scene::{ACCOUNT, SYMBOL, Scene, VENUE, instrument, order, wide};

fn grant(account: AccountId, session: u16) -> Input {
    Input::Grant(Grant { account, session, reserved: 0 })
}

fn ended(kind: RecordKind, id: u32, session: u16) -> Input {
    Input::DefinitionEnd(DefinitionEnd { id, session, kind: kind.code(), reserved: 0 })
}

const NOT_ENTITLED: Option<(Denial, i128, i128)> = Some((Denial::NotEntitled, 0, ACCOUNT.0 as i128));

#[test]
fn a_session_trades_only_for_granted_accounts() {
    let mut scene = Scene::empty();
    scene.apply(Input::Instrument(instrument(1)));
    for account in [ACCOUNT, AccountId(8), AccountId(70)] {
        scene.apply(Input::Account(AccountLimits { account, ..wide() }));
    }
    scene.apply(grant(ACCOUNT, 1));
    scene.apply(grant(AccountId(70), 1));
    scene.apply(grant(ALL_ACCOUNTS, 2));
    let entitled = [(1, 7, true), (1, 8, false), (1, 70, true), (2, 7, true), (2, 8, true), (3, 7, false)];
    for (client, (session, account, may)) in (1..).zip(entitled) {
        scene.session = session;
        let account = AccountId(account);
        scene.request(Request::New(NewOrder { account, ..order(client, Side::Buy, 100, 1) }));
        let expected = (!may).then_some((Denial::NotEntitled, 0, i128::from(account.0)));
        assert_eq!(scene.denial(), expected, "session {session}, account {account}");
    }
}

#[test]
fn a_denied_session_uses_up_no_message_and_no_client_id_of_an_account() {
    let mut scene = Scene::with(AccountLimits { rate_limit: 2, rate_window_ns: u64::MAX, ..wide() });
    scene.session = 3;
    for client in 1..=50 {
        scene.order(client, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), NOT_ENTITLED);
    }
    scene.order(1, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), NOT_ENTITLED, "no id is used up, or an unauthorized client could fill the memory");
    scene.cancel(1, 1);
    assert_eq!(scene.denial(), Some((Denial::UnknownOrder, 0, 0)), "it owns nothing to cancel");
    scene.session = 1;
    for client in 1..=2 {
        scene.order(client, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), None);
    }
    scene.order(3, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::MessageRate, 2, 3)));
}

#[test]
fn an_ended_definition_denies_orders_and_lets_cancels_pass() {
    let all = ALL_ACCOUNTS.0;
    for (what, expected) in [
        (ended(RecordKind::Instrument, SYMBOL.0, 0), Some((Denial::UnknownSymbol, 0, SYMBOL.0.into()))),
        (ended(RecordKind::Account, ACCOUNT.0, 0), Some((Denial::UnknownAccount, 0, ACCOUNT.0.into()))),
        (ended(RecordKind::Grant, all, 1), NOT_ENTITLED),
        (ended(RecordKind::Session, 0, 1), NOT_ENTITLED),
        (ended(RecordKind::Grant, all, 2), None),
        (ended(RecordKind::Session, 0, 2), None),
        (ended(RecordKind::Venue, VENUE.0.into(), 0), None),
    ] {
        let mut scene = Scene::new();
        let id = scene.order(1, Side::Buy, 100, 10);
        scene.apply(what);
        assert_eq!(scene.counts().ignored, 0, "{what:?}");
        scene.order(2, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), expected, "{what:?}");
        scene.replace(3, 1, 100, 11);
        assert_eq!(scene.denial(), expected, "a replace after {what:?}");
        scene.cancel(4, 1);
        assert_eq!((scene.denial(), scene.canceled()), (None, vec![id]), "a cancel after {what:?}");
        assert_eq!(scene.bought(), if expected.is_some() { (0, 10) } else { (0, 12) }, "{what:?}");
    }
}

#[test]
fn the_end_of_an_undefined_definition_is_ignored() {
    let mut scene = Scene::new();
    let grants = scene.counts().ignored;
    for what in [
        ended(RecordKind::Instrument, SYMBOL.0, 0),
        ended(RecordKind::Account, ACCOUNT.0, 0),
        ended(RecordKind::Grant, ALL_ACCOUNTS.0, 1),
        ended(RecordKind::Session, 0, 2),
    ] {
        scene.apply(what);
        assert_eq!(scene.counts().ignored, grants, "{what:?}");
    }
    for (count, what) in (grants + 1..).zip([
        ended(RecordKind::Instrument, SYMBOL.0, 0),
        ended(RecordKind::Account, ACCOUNT.0, 0),
        ended(RecordKind::Grant, ALL_ACCOUNTS.0, 1),
        ended(RecordKind::Session, 0, 2),
        ended(RecordKind::Session, 0, 1),
        ended(RecordKind::Grant, 12, 1),
    ]) {
        scene.apply(what);
        assert_eq!(scene.counts().ignored, count, "{what:?}");
    }
}

#[test]
fn a_repeated_definition_holds_again() {
    let mut scene = Scene::new();
    scene.apply(ended(RecordKind::Account, ACCOUNT.0, 0));
    scene.apply(ended(RecordKind::Instrument, SYMBOL.0, 0));
    scene.apply(ended(RecordKind::Session, 0, 1));
    scene.apply(Input::Account(wide()));
    scene.apply(Input::Instrument(instrument(1)));
    scene.apply(grant(ACCOUNT, 1));
    scene.order(1, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None);
}

#[test]
fn a_sessions_durability_level_holds_until_its_definition_ends() {
    let mut scene = Scene::new();
    scene.apply(Input::Session(SessionRules { session: 5, level: 2, ..SessionRules::default() }));
    assert_eq!([4, 5, 6].map(|session| scene.core.durability_level(session)), [0, 2, 0]);
    scene.apply(ended(RecordKind::Session, 0, 5));
    assert_eq!(scene.core.durability_level(5), 0);
}

#[test]
fn a_venue_without_a_definition_gets_the_default_rules() {
    let mut scene = Scene::numbered(false);
    scene.apply(Input::Venue(VenueRules { max_queued: 0, ..VenueRules::of(VENUE) }));
    scene.line(false);
    scene.order(1, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::VenueQueue, 0, 0)));
    scene.apply(ended(RecordKind::Venue, VENUE.0.into(), 0));
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!((scene.denial(), scene.core.is_up(VENUE)), (None, false));
}

#[test]
fn a_host_boot_but_no_restart_resets_rate_windows() {
    for (boot, expected) in [(1, Some((Denial::MessageRate, 2, 3))), (2, None)] {
        let mut scene = Scene::with(AccountLimits { rate_limit: 2, rate_window_ns: 1_000_000, ..wide() });
        scene.boot(1, 1);
        (1..=2).for_each(|client| {
            scene.order(client, Side::Buy, 100, 1);
        });
        scene.boot(2, boot);
        scene.order(3, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), expected, "boot {boot}");
    }
}

#[test]
fn windows_and_ages_are_nanoseconds_at_any_tick_rate() {
    for (ticks_per_second, ticks) in [(1_000_000_000, 1000), (3_000_000_000, 3000), (1_000_000, 1)] {
        let limits = AccountLimits { rate_limit: 1, rate_window_ns: 1000, max_request_age_ns: 1000, ..wide() };
        let mut scene = Scene::with(limits);
        scene.apply(Input::Boot(tickpath_oms_core::Boot { epoch: 1, ticks_per_second, ..Default::default() }));
        scene.stamp = 1_000_000;
        scene.order(1, Side::Buy, 100, 1);
        scene.stamp += ticks;
        scene.order(2, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), None, "a window later, {ticks_per_second} ticks a second");
        scene.stamp += 2 * ticks;
        scene.sent = Some(scene.stamp + 1 - 2 * ticks);
        scene.order(3, Side::Buy, 100, 1);
        let (denial, limit, age) = scene.denial().unwrap();
        assert_eq!((denial, limit), (Denial::RequestAge, 1000));
        assert!((1999..=2000).contains(&age), "{age} ns, {ticks_per_second} ticks a second");
    }
}

#[test]
fn only_withheld_request_kinds_are_denied() {
    let kinds = [MAY_NEW, MAY_CANCEL, MAY_REPLACE, MAY_MASS_CANCEL, MAY_STATUS];
    for withheld in kinds {
        let mut scene = Scene::new();
        scene.order(1, Side::Buy, 100, 5);
        scene.apply(Input::Session(SessionRules { session: 1, withheld, ..SessionRules::default() }));
        for (client, kind) in (2..).zip(kinds) {
            match kind {
                MAY_NEW => scene.order(client, Side::Buy, 100, 1),
                MAY_CANCEL => scene.cancel(client, 1),
                MAY_REPLACE => scene.replace(client, 1, 101, 5),
                MAY_MASS_CANCEL => scene.mass_cancel(client, ACCOUNT, None),
                _ => scene.status(client, 1),
            };
            let denial = scene.denial().map(|(denial, ..)| denial);
            assert_eq!(
                denial == Some(Denial::NotPermitted),
                kind == withheld,
                "{withheld} is withheld, {kind} is asked"
            );
        }
        scene.session = 2;
        scene.order(9, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), None, "another session");
    }
}

#[test]
fn a_withheld_request_kind_denies_waiting_requests() {
    let mut scene = Scene::new();
    scene.line(false);
    let id = scene.order(1, Side::Buy, 100, 5);
    scene.apply(Input::Session(SessionRules { session: 1, withheld: MAY_NEW, ..SessionRules::default() }));
    scene.line(true);
    assert!(scene.release());
    assert_eq!(scene.denial(), Some((Denial::NotPermitted, 0, i128::from(MAY_NEW))));
    assert_eq!(scene.state(id), tickpath_market::OrdStatus::Rejected);
}
