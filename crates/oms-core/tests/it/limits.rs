//! Every check at its limit, below and above it; and the denials that have no measured value.

use tickpath_market::{
    AccountId, ExecType, NewOrder, Notional, OrderType, Price, Quantity, Request, SCALE, Side, SymbolId, VenueId,
};
use tickpath_oms_core::{
    AccountLimits, Boot, DefinitionEnd, Denial, Grant, Input, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_DISK,
    KILL_SYMBOL, KillSwitch, MessageLoss, Output, RecordKind, VenueConnection, VenueRules,
};

use crate::scene::{ACCOUNT, SYMBOL, Scene, fill, instrument, order, reported, wide};

/// Checks the denial, limit and value of an order of `quantity` at `price` under these limits.
#[track_caller]
fn check(limits: AccountLimits, side: Side, price: i64, quantity: i64, expected: Option<(Denial, i128, i128)>) {
    let mut scene = Scene::with(limits);
    scene.order(1, side, price, quantity);
    assert_eq!(scene.denial(), expected, "{side:?} {quantity} at {price}");
}

#[test]
fn order_quantity() {
    let limits = AccountLimits { max_order_quantity: Quantity(10), ..wide() };
    for (quantity, expected) in [
        (i64::MIN, Some((Denial::MinimumQuantity, 1, i128::from(i64::MIN)))),
        (-1, Some((Denial::MinimumQuantity, 1, -1))),
        (0, Some((Denial::MinimumQuantity, 1, 0))),
        (1, None),
        (9, None),
        (10, None),
        (11, Some((Denial::MaximumQuantity, 10, 11))),
        (i64::MAX, Some((Denial::MaximumQuantity, 10, i128::from(i64::MAX)))),
    ] {
        check(limits, Side::Buy, 100, quantity, expected);
        check(limits, Side::Sell, 100, quantity, expected);
    }
}

#[test]
fn notional() {
    let limits = AccountLimits { max_notional: 1000_i128.to_le_bytes(), ..wide() };
    for (price, quantity, expected) in [
        (100, 9, None),
        (100, 10, None),
        (1000, 1, None),
        (-1000, 1, None),
        (100, 11, Some((Denial::Notional, 1000, 1100))),
        (1001, 1, Some((Denial::Notional, 1000, 1001))),
        (-1001, 1, Some((Denial::Notional, 1000, 1001))),
        (100, i64::MAX, Some((Denial::Notional, 1000, 100 * i128::from(i64::MAX)))),
    ] {
        check(limits, Side::Buy, price, quantity, expected);
    }
}

#[test]
fn notional_counts_the_multiplier_and_values_market_orders_at_the_reference() {
    for (multiplier, quantity, expected) in [
        (10, 1, None),
        (11, 1, Some((Denial::Notional, 1000, 1100))),
        (1, 10, None),
        (1, 11, Some((Denial::Notional, 1000, 1100))),
        (i64::MAX, i64::MAX, Some((Denial::Notional, 1000, i128::MAX))),
    ] {
        let mut scene = Scene::with(AccountLimits { max_notional: 1000_i128.to_le_bytes(), ..wide() });
        scene.apply(Input::Instrument(instrument(multiplier)));
        let market = NewOrder { order_type: OrderType::Market.code(), ..order(1, Side::Buy, 0, quantity) };
        scene.request(Request::New(market));
        assert_eq!(scene.denial(), expected, "{quantity} times {multiplier}");
    }
}

#[test]
fn a_denial_names_the_decimals_of_a_price_of_its_instrument() {
    let mut scene = Scene::with(wide());
    scene.apply(Input::Instrument(Instrument { tick_size: Price(5), ..instrument(1) }.with_decimals(12, 8)));
    scene.order(1, Side::Buy, 103, 1);
    let [Output::Denied { denied, .. }] = scene.out.as_slice() else { panic!("one denial") };
    assert_eq!((denied.code, denied.more_decimals), (Denial::TickSize.code(), 4));
}

#[test]
fn orders_below_the_instruments_minimum_are_denied() {
    let own = Instrument { minimum_quantity: Quantity(5), minimum_notional: 600_i128.to_le_bytes(), ..instrument(1) };
    for (price, quantity, expected) in [
        (100, 4, Some((Denial::SmallestQuantity, 5, 4))),
        (99, 6, Some((Denial::SmallestNotional, 600, 594))),
        (100, 6, None),
    ] {
        let mut scene = Scene::with(wide());
        scene.apply(Input::Instrument(own));
        scene.order(1, Side::Buy, price, quantity);
        assert_eq!(scene.denial(), expected, "{quantity} at {price}");
    }
}

#[test]
fn an_instrument_has_decimals_of_its_own() {
    // A contract of 0.01 coins; its prices have 10 decimals, its quantities none: 250 contracts at 4 are worth 10.
    let own = Instrument { multiplier: 1, multiplier_decimals: 2, ..instrument(1) }.with_decimals(10, 0);
    let whole_price = 10_i64.pow(10);
    let limits = AccountLimits {
        max_notional: Notional::from_whole(10).0.to_le_bytes(),
        max_order_quantity: Quantity::from_whole(300),
        ..wide()
    };
    let money = |units: i128| Notional::from_whole(1).0 * units / 100;
    for (price, quantity, expected) in [
        (4 * whole_price, 250, None),
        (4 * whole_price, 251, Some((Denial::Notional, money(1_000), money(1_004)))),
        (4, 301, Some((Denial::MaximumQuantity, 300 * i128::from(SCALE), 301 * i128::from(SCALE)))),
    ] {
        let mut scene = Scene::with(limits);
        scene.apply(Input::Instrument(own));
        scene.reference = Price(price);
        scene.order(1, Side::Buy, price, quantity);
        assert_eq!(scene.denial(), expected, "{quantity} at {price}");
    }
}

#[test]
fn price_collar() {
    // 500 basis points of the reference price 100 are 5.
    let limits = AccountLimits { collar: 500, ..wide() };
    for (price, expected) in [
        (94, Some((Denial::PriceCollar, 5, 6))),
        (95, None),
        (100, None),
        (105, None),
        (106, Some((Denial::PriceCollar, 5, 6))),
        (i64::MIN, Some((Denial::PriceCollar, 5, 100 - i128::from(i64::MIN)))),
    ] {
        check(limits, Side::Buy, price, 1, expected);
        check(limits, Side::Sell, price, 1, expected);
    }
}

#[test]
fn a_missing_or_old_reference_fails_closed() {
    let limits = AccountLimits { max_reference_age_ns: 50, ..wide() };
    for (reference, age, expected) in [
        (100, 49, None),
        (100, 50, None),
        (100, 51, Some((Denial::StaleReference, 50, 51))),
        (100, u64::MAX, Some((Denial::StaleReference, 50, i128::from(u64::MAX)))),
        (0, 0, Some((Denial::NoReference, 1, 0))),
    ] {
        let mut scene = Scene::with(limits);
        (scene.reference, scene.reference_age_ns) = (Price(reference), age);
        scene.order(1, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), expected, "{reference} of age {age}");
        let market = NewOrder { order_type: OrderType::Market.code(), ..order(2, Side::Sell, 0, 1) };
        scene.request(Request::New(market));
        assert_eq!(scene.denial(), expected, "market, {reference} of age {age}");
    }
}

#[test]
fn request_age() {
    for (sent, expected) in [
        (980, None),
        (951, None),
        (950, Some((Denial::RequestAge, 50, 51))),
        (0, Some((Denial::RequestAge, 50, 1001))),
        (5000, None),
    ] {
        let mut scene = Scene::with(AccountLimits { max_request_age_ns: 50, ..wide() });
        (scene.stamp, scene.sent) = (1000, Some(sent));
        scene.order(1, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), expected, "sent at {sent}, taken at 1001");
    }
}

#[test]
fn position_with_working_orders() {
    for side in [Side::Buy, Side::Sell] {
        let mut scene = Scene::with(AccountLimits { max_position: Quantity(10), ..wide() });
        let first = scene.order(1, side, 100, 6);
        assert_eq!(scene.denial(), None);
        scene.order(2, side, 100, 5);
        assert_eq!(scene.denial(), Some((Denial::Position, 10, 11)));
        scene.order(3, side, 100, 4);
        assert_eq!(scene.denial(), None, "exactly at the limit");
        scene.order(4, side.opposite(), 100, 11);
        assert_eq!(scene.denial(), Some((Denial::Position, 10, 11)), "working orders of the other side do not help");
        scene.order(5, side.opposite(), 100, 10);
        assert_eq!(scene.denial(), None);
        scene.report(fill(first, 1, 6, 6, 0));
        scene.order(6, side, 100, 1);
        assert_eq!(scene.denial(), Some((Denial::Position, 10, 11)), "a fill moves exposure, it does not free it");
    }
}

#[test]
fn a_replace_is_checked_on_what_it_adds() {
    let mut scene = Scene::with(AccountLimits { max_position: Quantity(10), ..wide() });
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.replace(2, 1, 100, 11);
    assert_eq!(scene.denial(), Some((Denial::Position, 10, 11)));
    scene.apply(Input::Account(AccountLimits { max_position: Quantity(5), ..wide() }));
    scene.replace(3, 1, 100, 10);
    assert_eq!(scene.denial(), None, "another price adds nothing");
    let replace = scene.sequence;
    scene.report(reported(id, ExecType::CancelRejected, replace, 1, 0, 10));
    scene.replace(4, 1, 100, 8);
    assert_eq!(scene.denial(), None, "less adds nothing");
    assert_eq!(scene.position().working_buy, 10, "the larger counts while the replace is in flight");
    scene.report(fill(id, 2, 3, 3, 7));
    scene.replace(5, 1, 100, 3);
    assert_eq!(scene.denial(), Some((Denial::AlreadyPending, 0, 0)));
}

#[test]
fn a_replace_needs_more_than_the_filled_quantity() {
    let mut scene = Scene::new();
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(fill(id, 1, 3, 3, 7));
    scene.replace(2, 1, 100, 3);
    assert_eq!(scene.denial(), Some((Denial::MinimumQuantity, 4, 3)));
    scene.replace(3, 1, 100, 4);
    assert_eq!(scene.denial(), None);
}

#[test]
fn message_rate() {
    let mut scene = Scene::with(AccountLimits { rate_limit: 3, rate_window_ns: 100, ..wide() });
    scene.stamp = 1000;
    for client in 1..=3 {
        scene.order(client, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), None, "message {client}");
    }
    scene.order(4, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::MessageRate, 3, 4)));
    scene.cancel(5, 1);
    assert_eq!(scene.denial(), None, "a cancel passes");
    scene.replace(6, 2, 101, 1);
    assert_eq!(scene.denial(), Some((Denial::MessageRate, 3, 6)), "the cancel was counted");
    // The window began at 1001, so its last tick is 1100.
    scene.stamp = 1099;
    scene.order(7, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::MessageRate, 3, 7)));
    scene.order(8, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None, "a new window");
}

#[test]
fn kill_switches() {
    for (scope, target, covers) in [
        (KILL_ALL, 0, true),
        (KILL_ACCOUNT, ACCOUNT.0, true),
        (KILL_ACCOUNT, ACCOUNT.0 + 1, false),
        (KILL_SYMBOL, SYMBOL.0, true),
        (KILL_SYMBOL, SYMBOL.0 + 1, false),
    ] {
        let mut scene = Scene::new();
        let kill = |on| Input::Kill(KillSwitch { scope, on, target, ..KillSwitch::default() });
        let denied = covers.then_some((Denial::KillSwitch, 0, 1));
        scene.order(1, Side::Buy, 100, 1);
        scene.apply(kill(1));
        scene.order(2, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), denied, "scope {scope}, target {target}");
        scene.replace(3, 1, 100, 2);
        assert_eq!(scene.denial(), denied, "a replace, scope {scope}, target {target}");
        scene.cancel(4, 1);
        assert_eq!(scene.denial(), None, "a cancel passes");
        scene.apply(kill(0));
        scene.order(5, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), None, "off again");
    }
}

#[test]
fn a_disk_failure_denies_until_a_start() {
    let mut scene = Scene::new();
    scene.order(1, Side::Buy, 100, 1);
    scene.apply(Input::Kill(KillSwitch { scope: KILL_DISK, on: 1, ..KillSwitch::default() }));
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::DiskFailed, 0, 1)));
    scene.apply(Input::Kill(KillSwitch { scope: KILL_DISK, on: 0, ..KillSwitch::default() }));
    scene.replace(3, 1, 100, 2);
    assert_eq!(scene.denial(), Some((Denial::DiskFailed, 0, 1)), "no command makes a disk sound");
    scene.cancel(4, 1);
    assert_eq!(scene.denial(), None, "a cancel passes");
    scene.boot(1, 0);
    scene.order(5, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None);
}

#[test]
fn a_kill_switch_holds_for_later_definitions() {
    let mut scene = Scene::new();
    let account = AccountId(40);
    scene.apply(Input::Kill(KillSwitch { scope: KILL_ACCOUNT, on: 1, target: 40, ..KillSwitch::default() }));
    scene.apply(Input::Account(AccountLimits { account, ..wide() }));
    scene.request(Request::New(NewOrder { account, ..order(1, Side::Buy, 100, 1) }));
    assert_eq!(scene.denial(), Some((Denial::KillSwitch, 0, 1)));
}

#[test]
fn client_ids_are_used_up_per_session() {
    let mut scene = Scene::new();
    scene.order(1, Side::Buy, 100, 1);
    scene.order(1, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)));
    scene.cancel(1, 1);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)));
    scene.cancel(2, 1);
    assert_eq!(scene.denial(), None);
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)), "used by a cancel");
    scene.order(3, Side::Buy, 100, 0);
    scene.order(3, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::DuplicateClientOrderId, 0, 0)), "used by a denied order");
    scene.order(0, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::MissingClientOrderId, 0, 0)));
    scene.session = 2;
    scene.order(1, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None, "another session");
}

#[test]
fn unknown_accounts_and_symbols_are_denied() {
    let mut scene = Scene::new();
    for (account, symbol, expected) in [
        (ACCOUNT.0, SYMBOL.0 + 1, (Denial::UnknownSymbol, 0, i128::from(SYMBOL.0 + 1))),
        (ACCOUNT.0, u32::MAX, (Denial::UnknownSymbol, 0, i128::from(u32::MAX))),
        (ACCOUNT.0 + 1, SYMBOL.0, (Denial::UnknownAccount, 0, i128::from(ACCOUNT.0 + 1))),
        (u32::MAX, u32::MAX, (Denial::UnknownAccount, 0, i128::from(u32::MAX))),
    ] {
        let new = order(scene.sequence, Side::Buy, 100, 1);
        let (account, symbol) = (AccountId(account), SymbolId(symbol));
        scene.request(Request::New(NewOrder { account, symbol, ..new }));
        assert_eq!(scene.denial(), Some(expected));
    }
    scene.cancel(100, 99);
    assert_eq!(scene.denial(), Some((Denial::UnknownOrder, 0, 0)));
    scene.order(101, Side::Buy, 100, 1);
    scene.session = 2;
    scene.cancel(102, 101);
    assert_eq!(scene.denial(), Some((Denial::UnknownOrder, 0, 0)), "an order of another session");
}

#[test]
fn invalid_definitions_are_counted() {
    let mut scene = Scene::new();
    let instrument = instrument(1);
    let bad = [
        Input::Instrument(Instrument { multiplier: 0, ..instrument }),
        Input::Instrument(Instrument { symbol: SymbolId(65_536), ..instrument }),
        Input::Instrument(Instrument { venue: VenueId(4096), ..instrument }),
        Input::Venue(VenueRules::of(VenueId(4096))),
        Input::Grant(Grant { account: AccountId(65_536), session: 1, reserved: 0 }),
        Input::DefinitionEnd(DefinitionEnd { kind: RecordKind::New.code(), ..DefinitionEnd::default() }),
        Input::DefinitionEnd(DefinitionEnd { kind: RecordKind::Account.code(), id: 40, ..DefinitionEnd::default() }),
        Input::DefinitionEnd(DefinitionEnd {
            kind: RecordKind::Session.code(),
            session: 40,
            ..DefinitionEnd::default()
        }),
        Input::VenueConnection(VenueConnection { venue: VenueId(4096), ..VenueConnection::default() }),
        Input::MessageLoss(MessageLoss { lost: 3, ..MessageLoss::default() }),
        Input::Boot(Boot { epoch: 0, ticks_per_second: 1, ..Boot::default() }),
        Input::Boot(Boot { epoch: 1 << 24, ticks_per_second: 1, ..Boot::default() }),
        Input::Boot(Boot { epoch: 1, ..Boot::default() }),
        Input::Kill(KillSwitch { scope: KILL_DISK, ..KillSwitch::default() }),
        Input::Account(AccountLimits { account: AccountId(65_536), ..wide() }),
        Input::Kill(KillSwitch { scope: 0, on: 1, ..KillSwitch::default() }),
        Input::Kill(KillSwitch { scope: KILL_SYMBOL, on: 1, target: 65_536, ..KillSwitch::default() }),
    ];
    for input in bad {
        let before = scene.counts().ignored;
        scene.apply(input);
        assert_eq!((scene.counts().ignored, scene.out.len()), (before + 1, 0), "{input:?}");
    }
    scene.order(1, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None);
}

#[test]
fn denials_have_unique_codes_and_texts() {
    for (place, denial) in Denial::ALL.iter().enumerate() {
        assert_eq!(Denial::from_code(denial.code()), Some(*denial));
        assert!(Denial::ALL[..place].iter().all(|other| other.code() < denial.code()), "{denial:?}");
        assert!(denial.to_string().len() > 20, "{denial:?}");
    }
    assert_eq!(Denial::from_code(0), None);
}
