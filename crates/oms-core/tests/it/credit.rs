//! Caps on an account's open orders: their number, and their value together with the traded value.

use tickpath_market::{ExecType, NewOrder, OrdStatus, OrderType, Price, Request, Side};
use tickpath_oms_core::{AccountLimits, DayEnd, Denial, Input};

use crate::scene::{Scene, VENUE, amended, fill, instrument, order, reported, wide};

fn credit(credit: i128) -> AccountLimits {
    AccountLimits { credit: credit.to_le_bytes(), ..wide() }
}

#[test]
fn open_orders_are_limited() {
    let mut scene = Scene::with(AccountLimits { max_open_orders: 2, ..wide() });
    let first = scene.order(1, Side::Buy, 100, 10);
    assert_eq!(scene.denial(), None);
    scene.order(2, Side::Sell, 100, 10);
    assert_eq!(scene.denial(), None, "at the limit");
    scene.order(3, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::OpenOrders, 2, 3)));
    scene.replace(4, 2, 101, 12);
    assert_eq!(scene.denial(), None, "a replace opens no order");
    scene.report(reported(first, ExecType::New, first, 1, 0, 10));
    scene.report(fill(first, 2, 10, 10, 0));
    scene.order(5, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None, "one is filled");
    scene.report(amended(first, ExecType::TradeCancel, 10, 3, 10, 0, 10));
    scene.order(6, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::OpenOrders, 2, 4)), "and is open again");
}

#[test]
fn credit_is_limited() {
    for (limit, expected) in [
        (999, Some((Denial::Credit, 999, 1000))),
        (1000, None),
        (1001, None),
        (0, None),
        (-1, Some((Denial::Credit, -1, 1000))),
    ] {
        let mut scene = Scene::with(credit(limit));
        scene.order(1, Side::Buy, 100, 10);
        assert_eq!(scene.denial(), expected, "limit {limit}");
    }
}

#[test]
fn credit_sums_both_sides_and_the_traded_value() {
    let mut scene = Scene::with(credit(2000));
    let buy = scene.order(1, Side::Buy, 100, 10);
    scene.order(2, Side::Sell, -50, 10);
    scene.order(3, Side::Buy, 100, 6);
    assert_eq!(scene.denial(), Some((Denial::Credit, 2000, 2100)), "a negative price is no credit");
    scene.report(reported(buy, ExecType::New, buy, 1, 0, 10));
    scene.report(fill(buy, 2, 10, 10, 0));
    scene.order(4, Side::Sell, 100, 6);
    assert_eq!(scene.denial(), Some((Denial::Credit, 2000, 2100)), "a fill moves value, it does not free it");
    scene.cancel(5, 2);
    scene.report(reported(buy + 1, ExecType::Canceled, scene.sequence, 1, 0, 0));
    scene.order(6, Side::Sell, 100, 6);
    assert_eq!(scene.denial(), None, "a cancel frees it");
    scene.report(amended(buy, ExecType::TradeCancel, 10, 3, 10, 0, 0));
    scene.order(7, Side::Sell, 100, 14);
    assert_eq!(scene.denial(), None, "a bust too");
}

#[test]
fn a_replace_is_valued_at_the_larger_of_both_until_it_is_answered() {
    let mut scene = Scene::with(credit(1500));
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    scene.replace(2, 1, 100, 16);
    assert_eq!(scene.denial(), Some((Denial::Credit, 1500, 1600)), "above");
    scene.replace(3, 1, 151, 10);
    assert_eq!(scene.denial(), Some((Denial::Credit, 1500, 1510)), "at another price");
    let replace = scene.replace(4, 1, 150, 10);
    assert_eq!(scene.denial(), None, "at the limit");
    scene.order(5, Side::Buy, 1, 1);
    assert_eq!(scene.denial(), Some((Denial::Credit, 1500, 1501)));
    scene.report(reported(id, ExecType::CancelRejected, replace, 2, 0, 10));
    scene.order(6, Side::Buy, 100, 5);
    assert_eq!(scene.denial(), None, "it was refused");
    scene.apply(Input::Account(credit(10)));
    scene.replace(7, 1, 100, 9);
    assert_eq!(scene.denial(), None, "one that takes no more passes, however the account stands");
}

#[test]
fn market_orders_are_valued_at_the_reference_of_their_admission() {
    let mut scene = Scene::with(credit(1000));
    let market = |client, quantity| {
        Request::New(NewOrder { order_type: OrderType::Market.code(), ..order(client, Side::Buy, 0, quantity) })
    };
    scene.request(market(1, 11));
    assert_eq!(scene.denial(), Some((Denial::Credit, 1000, 1100)));
    scene.request(market(2, 6));
    scene.reference = Price(1);
    scene.request(market(3, 401));
    assert_eq!(scene.denial(), Some((Denial::Credit, 1000, 1001)), "the first keeps its value");
}

#[test]
fn a_new_multiplier_revalues_open_orders() {
    let mut scene = Scene::with(credit(10_000));
    let traded = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(traded, ExecType::New, traded, 1, 0, 10));
    scene.report(fill(traded, 2, 10, 10, 0));
    let open = scene.order(2, Side::Buy, 100, 10);
    scene.apply(Input::Instrument(instrument(5)));
    scene.order(3, Side::Buy, 100, 9);
    assert_eq!(scene.denial(), Some((Denial::Credit, 10_000, 1000 + 5000 + 4500)), "traded at 1, open at 5");
    scene.order(4, Side::Buy, 100, 8);
    assert_eq!(scene.denial(), None, "at the limit");
    scene.apply(Input::Instrument(instrument(1)));
    scene.order(5, Side::Buy, 100, 72);
    assert_eq!(scene.denial(), None, "and back");
    scene.report(reported(open, ExecType::Canceled, 0, 1, 0, 0));
    scene.order(6, Side::Buy, 100, 10);
    assert_eq!(scene.denial(), None, "what leaves is counted as it was held");
    scene.order(7, Side::Buy, 1, 1);
    assert_eq!(scene.denial(), Some((Denial::Credit, 10_000, 10_001)));
}

#[test]
fn credit_and_open_orders_begin_anew_with_the_day() {
    let mut scene = Scene::with(AccountLimits { max_open_orders: 1, ..credit(1000) });
    let id = scene.order(1, Side::Buy, 100, 10);
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    scene.report(fill(id, 2, 10, 10, 0));
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::Credit, 1000, 1100)));
    scene.apply(Input::DayEnd(DayEnd::default()));
    let id = scene.order(2, Side::Buy, 100, 10);
    assert_eq!((scene.denial(), scene.state(id)), (None, OrdStatus::PendingNew));
    scene.order(3, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::OpenOrders, 1, 2)));
}

#[test]
fn waiting_orders_count_for_credit() {
    let mut scene = Scene::with(AccountLimits { max_open_orders: 1, ..credit(1000) });
    scene.line(false);
    scene.order(1, Side::Buy, 100, 10);
    scene.order(2, Side::Buy, 100, 10);
    assert_eq!((scene.denial(), scene.core.waiting(VENUE)), (Some((Denial::OpenOrders, 1, 2)), 1));
    scene.cancel(3, 1);
    scene.order(4, Side::Buy, 100, 10);
    assert_eq!(scene.denial(), None);
}
