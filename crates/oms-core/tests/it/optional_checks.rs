//! The optional checks: at the limit, above it, and with another account, symbol or session, to which they do not
//! apply.

use tickpath_market::{
    AccountId, Currency, ExecutionReport, NewOrder, OrderType, Price, Quantity, Request, Side, SymbolId,
};
use tickpath_oms_core::{
    AccountLimits, Boot, DefinitionEnd, Denial, FirmLimits, Input, Instrument, RecordKind, SessionRules, SymbolLimits,
    TradingHours,
};

use crate::scene::{ACCOUNT, SYMBOL, Scene, fill, instrument, order, wide};

type Denied = Option<(Denial, i128, i128)>;

fn own() -> SymbolLimits {
    SymbolLimits { account: ACCOUNT, symbol: SYMBOL, ..SymbolLimits::default() }
}

fn session() -> SessionRules {
    SessionRules { session: 1, ..SessionRules::default() }
}

fn money(units: i128) -> [u8; 16] {
    units.to_le_bytes()
}

/// Results of an order of 6 at 103 under each of these definitions.
#[test]
fn each_optional_limit_denies_an_order_above_it() {
    let bare = instrument(1);
    let cases: &[(Input, Denied)] = &[
        (Input::Instrument(Instrument { tick_size: Price(1), ..bare }), None),
        (Input::Instrument(Instrument { tick_size: Price(5), ..bare }), Some((Denial::TickSize, 5, 103))),
        (Input::Instrument(Instrument { lot: Quantity(3), ..bare }), None),
        (Input::Instrument(Instrument { lot: Quantity(4), ..bare }), Some((Denial::Lot, 4, 6))),
        (Input::Instrument(Instrument { lowest_price: Price(103), highest_price: Price(103), ..bare }), None),
        (
            Input::Instrument(Instrument { lowest_price: Price(104), highest_price: Price(105), ..bare }),
            Some((Denial::LowestPrice, 104, 103)),
        ),
        (
            Input::Instrument(Instrument { lowest_price: Price(0), highest_price: Price(102), ..bare }),
            Some((Denial::HighestPrice, 102, 103)),
        ),
        (Input::Instrument(Instrument { restricted: 1, ..bare }), Some((Denial::Restricted, 0, 1))),
        (Input::Instrument(bare.with_currency(Currency::constant("USD"))), None),
        (Input::Account(wide().with_currency(Currency::constant("USD"))), Some((Denial::Currency, 0, 1))),
        (Input::SymbolLimits(SymbolLimits { max_order_quantity: Quantity(6), ..own() }), None),
        (
            Input::SymbolLimits(SymbolLimits { max_order_quantity: Quantity(5), ..own() }),
            Some((Denial::SymbolQuantity, 5, 6)),
        ),
        (Input::SymbolLimits(SymbolLimits { max_position: Quantity(6), ..own() }), None),
        (
            Input::SymbolLimits(SymbolLimits { max_position: Quantity(5), ..own() }),
            Some((Denial::SymbolPosition, 5, 6)),
        ),
        (Input::SymbolLimits(SymbolLimits { restricted: 1, ..own() }), Some((Denial::Restricted, 0, 1))),
        (Input::SymbolLimits(SymbolLimits { restricted: 1, account: AccountId(8), ..own() }), None),
        (Input::SymbolLimits(SymbolLimits { restricted: 1, symbol: SymbolId(4), ..own() }), None),
        (Input::Session(SessionRules { max_order_quantity: Quantity(6), ..session() }), None),
        (
            Input::Session(SessionRules { max_order_quantity: Quantity(5), ..session() }),
            Some((Denial::SessionQuantity, 5, 6)),
        ),
        (
            Input::Session(SessionRules { max_notional: money(617), ..session() }),
            Some((Denial::SessionNotional, 617, 618)),
        ),
        (Input::Session(SessionRules { session: 2, max_notional: money(617), ..session() }), None),
        (
            Input::Firm(FirmLimits { max_order_quantity: Quantity(5), ..FirmLimits::default() }),
            Some((Denial::FirmQuantity, 5, 6)),
        ),
        (
            Input::Firm(FirmLimits { max_notional: money(617), ..FirmLimits::default() }),
            Some((Denial::FirmNotional, 617, 618)),
        ),
        (Input::Firm(FirmLimits { credit: money(618), ..FirmLimits::default() }), None),
        (Input::Firm(FirmLimits { credit: money(617), ..FirmLimits::default() }), Some((Denial::FirmCredit, 617, 618))),
    ];
    for (definition, expected) in cases {
        let mut scene = Scene::new();
        scene.apply(*definition);
        scene.order(1, Side::Buy, 103, 6);
        assert_eq!(scene.denial(), *expected, "{definition:?}");
        assert_eq!(scene.counts().ignored, 0);
    }
}

#[test]
fn a_market_order_has_no_price_to_check() {
    let mut scene = Scene::new();
    let limits = Instrument { tick_size: Price(7), lowest_price: Price(1), highest_price: Price(2), ..instrument(1) };
    scene.apply(Input::Instrument(limits));
    let market = NewOrder { order_type: OrderType::Market.code(), ..order(1, Side::Buy, 0, 1) };
    scene.request(Request::New(market));
    assert_eq!(scene.denial(), None);
}

#[test]
fn an_instrument_trades_in_its_hours_also_over_midnight() {
    let hours = |opens_s, closes_s| TradingHours { opens_s, closes_s };
    let closed = Some((Denial::TradingHours, 1, 0));
    for (hours, second, expected) in [
        ([hours(100, 200), hours(0, 0)], 99, closed),
        ([hours(100, 200), hours(0, 0)], 100, None),
        ([hours(100, 200), hours(0, 0)], 199, None),
        ([hours(100, 200), hours(0, 0)], 200, closed),
        ([hours(100, 200), hours(300, 400)], 350, None),
        ([hours(86_000, 50), hours(0, 0)], 86_399, None),
        ([hours(86_000, 50), hours(0, 0)], 86_400 + 49, None),
        ([hours(86_000, 50), hours(0, 0)], 86_400 + 50, closed),
        ([hours(0, 0), hours(0, 0)], 5, None),
    ] {
        let mut scene = Scene::new();
        scene.apply(Input::Instrument(Instrument { hours, ..instrument(1) }));
        let boot = Boot { epoch: 1, boot_id: [1; 16], ticks_per_second: 1_000_000_000, utc_ns: 0 };
        scene.apply(Input::Boot(boot));
        scene.stamp += second * 1_000_000_000;
        scene.order(1, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), expected, "{hours:?} at {second}");
    }
}

#[test]
fn a_short_sale_is_denied() {
    let mut scene = Scene::new();
    scene.apply(Input::SymbolLimits(SymbolLimits { no_short: 1, ..own() }));
    scene.order(1, Side::Sell, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::ShortSale, 0, 1)));
    let id = scene.order(2, Side::Buy, 100, 5);
    scene.report(fill(id, 1, 5, 5, 0));
    scene.order(3, Side::Sell, 100, 3);
    assert_eq!(scene.denial(), None);
    scene.order(4, Side::Sell, 100, 3);
    assert_eq!(scene.denial(), Some((Denial::ShortSale, 0, 1)), "three are being sold already");
    scene.order(5, Side::Sell, 100, 2);
    assert_eq!(scene.denial(), None);
    scene.apply(Input::DefinitionEnd(DefinitionEnd {
        id: SYMBOL.0,
        session: ACCOUNT.0 as u16,
        kind: RecordKind::SymbolLimits.code(),
        reserved: 0,
    }));
    scene.order(6, Side::Sell, 100, 9);
    assert_eq!(scene.denial(), None, "the limit has ended");
}

#[test]
fn a_duplicate_order_is_denied_within_its_window() {
    let mut scene = Scene::with(AccountLimits { duplicate_window_ns: 100, ..wide() });
    scene.stamp = 1000;
    scene.order(1, Side::Buy, 100, 5);
    assert_eq!(scene.denial(), None);
    scene.order(2, Side::Buy, 100, 5);
    assert_eq!(scene.denial(), Some((Denial::DuplicateOrder, 100, 1)));
    for (client, side, price, quantity) in [(3, Side::Sell, 100, 5), (4, Side::Buy, 101, 5), (5, Side::Buy, 100, 6)] {
        scene.order(client, side, price, quantity);
        assert_eq!(scene.denial(), None, "order {client} is another one");
    }
    scene.stamp = 1099;
    scene.order(6, Side::Buy, 100, 5);
    assert_eq!(scene.denial(), Some((Denial::DuplicateOrder, 100, 99)), "what was denied does not count");
    scene.order(7, Side::Buy, 100, 5);
    assert_eq!(scene.denial(), None, "the time is over");
}

#[test]
fn sessions_symbols_and_the_firm_have_message_rates() {
    let window = 1_000;
    for (definition, denial) in [
        (Input::Session(SessionRules { rate_limit: 2, rate_window_ns: window, ..session() }), Denial::SessionRate),
        (Input::Instrument(Instrument { rate_limit: 2, rate_window_ns: window, ..instrument(1) }), Denial::SymbolRate),
        (Input::Firm(FirmLimits { rate_limit: 2, rate_window_ns: window, ..FirmLimits::default() }), Denial::FirmRate),
    ] {
        let mut scene = Scene::new();
        scene.apply(definition);
        for client in 1..=2 {
            scene.order(client, Side::Buy, 100, 1);
            assert_eq!(scene.denial(), None, "{definition:?}");
        }
        scene.order(3, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), Some((denial, 2, 3)));
        scene.cancel(4, 1);
        assert_eq!(scene.denial(), None, "a cancel passes");
        scene.stamp += window;
        scene.order(5, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), None, "a new window");
    }
}

#[test]
fn messages_are_limited_by_fills() {
    let limits = AccountLimits { order_trade_free: 2, order_trade_ratio: 3, ..wide() };
    let mut scene = Scene::with(limits);
    let id = scene.order(1, Side::Buy, 100, 5);
    scene.order(2, Side::Buy, 100, 5);
    scene.order(3, Side::Buy, 100, 5);
    assert_eq!(scene.denial(), Some((Denial::OrderToTrade, 2, 3)));
    scene.report(fill(id, 1, 1, 1, 4));
    for client in 4..=5 {
        scene.order(client, Side::Buy, 100, 5);
        assert_eq!(scene.denial(), None, "order {client}");
    }
    scene.order(6, Side::Buy, 100, 5);
    assert_eq!(scene.denial(), Some((Denial::OrderToTrade, 5, 6)));
    scene.apply(Input::DayEnd(Default::default()));
    scene.order(7, Side::Buy, 100, 5);
    assert_eq!(scene.denial(), None, "a new day");
}

#[test]
fn the_firms_limits_count_orders_that_were_open_before() {
    let mut scene = Scene::new();
    let other = AccountId(8);
    scene.apply(Input::Account(AccountLimits { account: other, ..wide() }));
    scene.order(1, Side::Buy, 100, 1);
    scene.request(Request::New(NewOrder { account: other, ..order(2, Side::Buy, 100, 1) }));
    scene.apply(Input::Firm(FirmLimits { max_open_orders: 3, credit: money(10_000), ..FirmLimits::default() }));
    scene.order(3, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None);
    scene.request(Request::New(NewOrder { account: other, ..order(4, Side::Buy, 100, 1) }));
    assert_eq!(scene.denial(), Some((Denial::FirmOpenOrders, 3, 4)));
    scene.apply(Input::Firm(FirmLimits { credit: money(500), ..FirmLimits::default() }));
    scene.order(5, Side::Buy, 100, 3);
    assert_eq!(scene.denial(), Some((Denial::FirmCredit, 500, 600)));
    scene.order(6, Side::Buy, 100, 2);
    assert_eq!(scene.denial(), None);
}

#[test]
fn an_account_does_not_match_its_own_orders() {
    let mut scene = Scene::with(AccountLimits { no_self_match: 1, ..wide() });
    let buy = scene.order(1, Side::Buy, 100, 5);
    scene.order(2, Side::Sell, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::SelfMatch, 100, 100)));
    scene.order(3, Side::Sell, 99, 1);
    assert_eq!(scene.denial(), Some((Denial::SelfMatch, 100, 99)));
    scene.order(4, Side::Sell, 101, 1);
    assert_eq!(scene.denial(), None, "they do not meet");
    let market = NewOrder { order_type: OrderType::Market.code(), ..order(5, Side::Buy, 0, 1) };
    scene.request(Request::New(market));
    assert_eq!(scene.denial(), Some((Denial::SelfMatch, 101, 100)), "a market order takes any price");
    // An ended order is no match.
    scene.report(fill(buy, 1, 5, 5, 0));
    scene.order(6, Side::Sell, 100, 1);
    assert_eq!(scene.denial(), None);
    // An account without the limit may match itself. Once the limit is back it may not, for all its open orders.
    scene.apply(Input::Account(wide()));
    scene.order(7, Side::Buy, 105, 1);
    assert_eq!(scene.denial(), None);
    scene.apply(Input::Account(AccountLimits { no_self_match: 1, ..wide() }));
    scene.order(8, Side::Sell, 104, 1);
    assert_eq!(scene.denial(), Some((Denial::SelfMatch, 105, 104)));
    scene.apply(Input::DayEnd(Default::default()));
    scene.order(9, Side::Sell, 104, 1);
    assert_eq!(scene.denial(), None, "day orders have ended with the day");
}

#[test]
fn the_gross_value_of_all_positions_is_limited() {
    let mut scene = Scene::with(AccountLimits { max_gross_value: money(1_000), ..wide() });
    scene.order(1, Side::Buy, 100, 4);
    scene.order(2, Side::Sell, 100, 4);
    assert_eq!(scene.denial(), None, "one side of a symbol counts, the larger one");
    scene.order(3, Side::Buy, 90, 7);
    assert_eq!(
        scene.denial(),
        Some((Denial::GrossValue, 1_000, 1_100)),
        "valued at the reference, not at its own price"
    );
    scene.order(4, Side::Buy, 100, 6);
    assert_eq!(scene.denial(), None);
    scene.order(5, Side::Sell, 100, 6);
    assert_eq!(scene.denial(), None, "it makes the value no more");
    scene.order(6, Side::Sell, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::GrossValue, 1_000, 1_100)));
}

#[test]
fn an_account_at_its_daily_loss_limit_may_only_close() {
    let mut scene = Scene::with(AccountLimits { max_loss: money(50), ..wide() });
    let buy = scene.order(1, Side::Buy, 110, 10);
    scene.report(ExecutionReport { last_price: Price(110), ..fill(buy, 1, 10, 10, 0) });
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::DailyLoss, 50, 100)), "ten were bought at 110 and are worth 100 each");
    scene.order(3, Side::Sell, 100, 11);
    assert_eq!(scene.denial(), Some((Denial::DailyLoss, 50, 100)), "one more than it has opens a position");
    scene.order(4, Side::Sell, 100, 10);
    assert_eq!(scene.denial(), None, "it closes");
    scene.reference = Price(105);
    scene.order(5, Side::Buy, 105, 1);
    assert_eq!(scene.denial(), None, "the price has come back");
    scene.reference = Price(90);
    scene.order(6, Side::Buy, 90, 1);
    assert_eq!(scene.denial(), Some((Denial::DailyLoss, 50, 200)));
    scene.apply(Input::DayEnd(Default::default()));
    scene.order(7, Side::Buy, 90, 1);
    assert_eq!(scene.denial(), None, "a new day begins with what it has");
}
