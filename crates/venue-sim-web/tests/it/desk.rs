//! Orders of the desk: refusals, states, amends, fees, positions and events.

use tickpath_market::{Price, Quantity, Side, TimeInForce};
use tickpath_venue_sim::RejectReason;
use tickpath_venue_sim_web::desk::{DeskRefusal, DeskState, NewDeskOrder, OrderName, SimDesk};

use crate::desk_setup::{SPOT, SWAP, balance, config, desk, events, limit, market, place, price, quantity};

use Side::{Buy, Sell};

#[test]
fn orders_that_break_a_rule_are_refused_and_change_nothing() {
    let buy = |at, amount| limit(Buy, at, amount);
    let good = buy("100", "1");
    let largest = Price(i64::MAX - i64::MAX % price("0.1").0);
    for (order, refusal) in [
        (NewDeskOrder { instrument: "ETH-USDT", ..good }, DeskRefusal::UnknownInstrument),
        (buy("100.05", "1"), DeskRefusal::Tick),
        (buy("100", "1.0005"), DeskRefusal::Lot),
        (buy("100", "0.001"), DeskRefusal::Minimum),
        (buy("0", "1"), DeskRefusal::Other(RejectReason::Price)),
        (buy("-1", "1"), DeskRefusal::Other(RejectReason::Price)),
        (buy("100", "0"), DeskRefusal::Other(RejectReason::Quantity)),
        (buy("100", "-1"), DeskRefusal::Other(RejectReason::Quantity)),
        (NewDeskOrder { price: largest, ..buy("100", "90000000000") }, DeskRefusal::Other(RejectReason::Quantity)),
        (NewDeskOrder { price: price("100"), ..market(Buy, "1") }, DeskRefusal::Other(RejectReason::Price)),
        (NewDeskOrder { post_only: true, ..market(Buy, "1") }, DeskRefusal::Other(RejectReason::UnknownCode)),
        (NewDeskOrder { post_only: true, ..buy("100.1", "1") }, DeskRefusal::PostOnlyWouldTrade),
        (NewDeskOrder { post_only: true, ..limit(Sell, "99.9", "1") }, DeskRefusal::PostOnlyWouldTrade),
        (NewDeskOrder { reduce_only: true, ..good }, DeskRefusal::ReduceOnly),
        (NewDeskOrder { reduce_only: true, instrument: SWAP, ..good }, DeskRefusal::ReduceOnly),
        (buy("100", "100.001"), DeskRefusal::InsufficientBalance),
        (limit(Sell, "100", "10.001"), DeskRefusal::InsufficientBalance),
        (market(Sell, "10.001"), DeskRefusal::InsufficientBalance),
        (NewDeskOrder { account: 9, ..good }, DeskRefusal::InsufficientBalance),
    ] {
        let mut desk = desk();
        assert_eq!(desk.place(1, &order), Err(refusal), "{order:?}");
        assert_eq!((events(&mut desk).len(), desk.open_orders(0).count(), desk.fills(0).len()), (0, 0, 0));
        assert_eq!(balance(&desk, 0, "USDT"), (quantity("10000"), quantity("10000")));
    }
}

#[test]
fn an_order_ends_in_the_state_of_its_type() {
    let with = |time_in_force, amount| NewDeskOrder { time_in_force, ..limit(Buy, "100.1", amount) };
    let post_only = NewDeskOrder { post_only: true, ..limit(Buy, "100", "1") };
    let killed = Some(DeskRefusal::FokUnfillable);
    for (order, state, filled, reason) in [
        (limit(Buy, "100", "1"), DeskState::Live, "0", None),
        (post_only, DeskState::Live, "0", None),
        (limit(Buy, "100.1", "5"), DeskState::Filled, "5", None),
        (limit(Buy, "200", "5"), DeskState::Filled, "5", None),
        (limit(Buy, "100.1", "7"), DeskState::PartlyFilled, "5", None),
        (with(TimeInForce::Day, "7"), DeskState::PartlyFilled, "5", None),
        (with(TimeInForce::ImmediateOrCancel, "7"), DeskState::Canceled, "5", None),
        (with(TimeInForce::FillOrKill, "7"), DeskState::Canceled, "0", killed),
        (with(TimeInForce::FillOrKill, "5"), DeskState::Filled, "5", None),
        (market(Buy, "5"), DeskState::Filled, "5", None),
        (market(Buy, "90000"), DeskState::Canceled, "5", None),
        (market(Sell, "7"), DeskState::Canceled, "5", None),
    ] {
        let mut desk = desk();
        let placed = place(&mut desk, order);
        assert_eq!((placed.state, placed.filled, placed.cancel_reason), (state, quantity(filled), reason), "{order:?}");
        let average = match (filled, order.side) {
            ("0", _) => Price::ZERO,
            (_, Buy) => price("100.1"),
            (_, Sell) => price("99.9"),
        };
        assert_eq!(placed.average_price, average, "{order:?}");
        assert_eq!(desk.open_orders(0).count(), usize::from(placed.is_open()), "{order:?}");
    }
}

#[test]
fn a_client_id_is_free_again_once_its_order_has_ended() {
    let mut desk = desk();
    let named = |side, at| NewDeskOrder { client_id: "mine", ..limit(side, at, "1") };
    let first = place(&mut desk, named(Buy, "99"));
    assert_eq!(desk.place(2, &named(Buy, "98")), Err(DeskRefusal::DuplicateClientId));
    assert_eq!(desk.order(1, OrderName::Client("mine")), None, "another account has ids of its own");
    place(&mut desk, NewDeskOrder { account: 1, ..named(Buy, "99") });
    assert_eq!(desk.cancel(3, 0, OrderName::Client("mine")), Ok(first.id));
    assert_eq!(desk.cancel(4, 0, OrderName::Client("mine")), Err(DeskRefusal::OrderEnded));
    let second = place(&mut desk, named(Sell, "101"));
    assert_eq!(desk.order(0, OrderName::Client("mine")).map(|order| order.id), Some(second.id));
    let ended = desk.order(0, OrderName::Exchange(first.id)).expect("it is kept");
    assert_eq!((ended.state, ended.cancel_reason, ended.updated_ns), (DeskState::Canceled, None, 3));
    for name in [OrderName::Client(""), OrderName::Client("other"), OrderName::Exchange(1)] {
        assert_eq!(desk.cancel(5, 0, name), Err(DeskRefusal::UnknownOrder), "{name:?}");
    }
    assert_eq!(desk.cancel(5, 1, OrderName::Exchange(second.id)), Err(DeskRefusal::UnknownOrder), "it is another's");
}

#[test]
fn amends_change_price_and_total_or_are_refused() {
    let (none, at) = (None::<Price>, |text| Some(price(text)));
    let total = |text| Some(quantity(text));
    for (post_only, price, total, expected) in [
        (false, at("98"), None, Ok((DeskState::Live, "0", "1"))),
        (false, none, total("3"), Ok((DeskState::Live, "0", "3"))),
        (false, at("100.1"), total("2"), Ok((DeskState::Filled, "2", "2"))),
        (false, at("100.1"), total("8"), Ok((DeskState::PartlyFilled, "5", "8"))),
        (true, at("100.1"), None, Err(DeskRefusal::PostOnlyWouldTrade)),
        (false, at("99.05"), None, Err(DeskRefusal::Tick)),
        (false, none, total("1.0001"), Err(DeskRefusal::Lot)),
        (false, none, total("0.001"), Err(DeskRefusal::Minimum)),
        (false, none, total("102"), Err(DeskRefusal::InsufficientBalance)),
        (false, none, total("101"), Ok((DeskState::Live, "0", "101"))),
    ] {
        let mut desk = desk();
        let placed = place(&mut desk, NewDeskOrder { post_only, ..limit(Buy, "99", "1") });
        let amended = desk.amend(2, 0, OrderName::Exchange(placed.id), price, total);
        let order = desk.order(0, OrderName::Exchange(placed.id)).expect("it was placed").clone();
        match expected {
            Ok((state, filled, total)) => {
                assert_eq!(amended, Ok(placed.id));
                let found = (order.state, order.filled, order.quantity, order.amends);
                assert_eq!(found, (state, quantity(filled), quantity(total), 1));
            }
            Err(refusal) => {
                assert_eq!(amended, Err(refusal));
                assert_eq!(order, placed, "a refused amend changes nothing");
            }
        }
    }
}

#[test]
fn an_amend_to_the_filled_quantity_ends_the_order() {
    let mut desk = desk();
    let placed = place(&mut desk, limit(Buy, "100.1", "7"));
    desk.amend(2, 0, OrderName::Exchange(placed.id), None, Some(quantity("4"))).expect("it is open");
    let order = desk.order(0, OrderName::Exchange(placed.id)).expect("it was placed");
    assert_eq!((order.state, order.quantity, order.filled), (DeskState::Filled, quantity("5"), quantity("5")));
    assert_eq!(balance(&desk, 0, "USDT"), (quantity("9499.5"), quantity("9499.5")), "nothing is reserved");
    assert_eq!(desk.amend(3, 0, OrderName::Exchange(placed.id), None, None), Err(DeskRefusal::OrderEnded));
}

#[test]
fn fees_are_taken_from_what_the_account_receives() {
    let mut desk = desk();
    place(&mut desk, limit(Buy, "100", "2"));
    assert_eq!(balance(&desk, 0, "USDT"), (quantity("10000"), quantity("9800")), "the value is reserved");
    place(&mut desk, NewDeskOrder { account: 1, ..limit(Sell, "100", "2") });
    let fills = [&desk.fills(0)[0], &desk.fills(1)[0]];
    let fees = fills.map(|fill| (fill.is_maker, Quantity(fill.fee), fill.fee_currency.as_str()));
    assert_eq!(fees, [(true, quantity("-0.0002"), "BTC"), (false, quantity("0.2"), "USDT")]);
    assert_eq!((fills[0].trade_id, fills[0].price), (fills[1].trade_id, fills[1].price));
    for (account, currency, total) in
        [(0, "BTC", "12.0002"), (0, "USDT", "9800"), (1, "BTC", "8"), (1, "USDT", "10199.8")]
    {
        assert_eq!(balance(&desk, account, currency), (quantity(total), quantity(total)), "{account} {currency}");
    }
}

#[test]
fn derivatives_change_a_position_and_cost_their_fee() {
    let mut desk = desk();
    place(&mut desk, NewDeskOrder { instrument: SWAP, ..limit(Buy, "100.1", "3") });
    assert_eq!(desk.position(0, SWAP), quantity("3").0);
    // 3 contracts of 0.01 at 100.1, one thousandth of it.
    assert_eq!(balance(&desk, 0, "USDT").0, quantity("9999.996997"));
    assert_eq!(balance(&desk, 0, "BTC").0, quantity("10"), "only spot moves the base currency");
    place(&mut desk, NewDeskOrder { instrument: SWAP, ..market(Sell, "10") });
    assert_eq!((desk.position(0, SWAP), desk.position(1, SWAP), desk.position(0, SPOT)), (-quantity("7").0, 0, 0));
}

#[test]
fn reduce_only_orders_never_open_a_position() {
    let mut desk = desk();
    let swap = |side, at, amount| NewDeskOrder { instrument: SWAP, ..limit(side, at, amount) };
    let reducing = |side, at, amount| NewDeskOrder { reduce_only: true, ..swap(side, at, amount) };
    place(&mut desk, swap(Buy, "100.1", "5"));
    assert_eq!(desk.place(2, &reducing(Buy, "99", "1")), Err(DeskRefusal::ReduceOnly), "it would enlarge it");
    let first = place(&mut desk, reducing(Sell, "101", "2"));
    let second = place(&mut desk, reducing(Sell, "102", "9"));
    assert_eq!(second.quantity, quantity("3"), "it is cut to the rest of the position");
    assert_eq!(desk.place(3, &reducing(Sell, "101", "1")), Err(DeskRefusal::ReduceOnly), "nothing is left");
    let larger = desk.amend(4, 0, OrderName::Exchange(second.id), None, Some(quantity("4")));
    assert_eq!(larger, Err(DeskRefusal::ReduceOnly));
    place(&mut desk, swap(Sell, "99.9", "2"));
    let state =
        |desk: &SimDesk, id| desk.order(0, OrderName::Exchange(id)).map(|order| (order.state, order.cancel_reason));
    assert_eq!(state(&desk, first.id), Some((DeskState::Live, None)), "the older one still fits");
    assert_eq!(state(&desk, second.id), Some((DeskState::Canceled, Some(DeskRefusal::ReduceOnly))));
    desk.quote(5, SWAP, price("101.5"), quantity("9"), price("103"), quantity("9"));
    assert_eq!((state(&desk, first.id), desk.position(0, SWAP)), (Some((DeskState::Filled, None)), quantity("1").0));
}

#[test]
fn a_suspended_instrument_takes_cancels_only() {
    let mut desk = desk();
    let placed = place(&mut desk, limit(Buy, "99", "1"));
    desk.suspend(SPOT, true);
    let name = OrderName::Exchange(placed.id);
    assert_eq!(desk.place(2, &limit(Buy, "99", "1")), Err(DeskRefusal::Suspended));
    assert_eq!(desk.amend(2, 0, name, Some(price("98")), None), Err(DeskRefusal::Suspended));
    let before = desk.best(0);
    desk.quote(3, SPOT, price("90"), quantity("1"), price("91"), quantity("1"));
    assert_eq!(desk.best(0), before, "the market stands still");
    place(&mut desk, NewDeskOrder { instrument: SWAP, ..limit(Buy, "99", "1") });
    assert_eq!(desk.cancel(4, 0, name), Ok(placed.id));
    desk.suspend(SPOT, false);
    place(&mut desk, limit(Buy, "99", "1"));
}

#[test]
fn all_orders_of_an_account_or_an_instrument_are_canceled() {
    let mut desk = desk();
    for order in [limit(Buy, "99", "1"), NewDeskOrder { instrument: SWAP, ..limit(Buy, "99", "1") }].repeat(2) {
        place(&mut desk, order);
        place(&mut desk, NewDeskOrder { account: 1, ..order });
    }
    assert_eq!(desk.cancel_all(2, 0, Some("ETH-USDT")), 0);
    assert_eq!(desk.cancel_all(2, 0, Some(SWAP)), 2);
    assert_eq!(desk.cancel_all(3, 0, None), 2);
    assert_eq!((desk.open_orders(0).count(), desk.open_orders(1).count()), (0, 4));
    assert_eq!(balance(&desk, 0, "USDT"), (quantity("10000"), quantity("10000")));
}

#[test]
fn events_come_in_their_order() {
    let mut desk = desk();
    let second = |order: NewDeskOrder<'static>| NewDeskOrder { account: 1, ..order };
    let mut check = |work: &dyn Fn(&mut SimDesk), expected: &[&str]| {
        work(&mut desk);
        assert_eq!(events(&mut desk), expected);
    };
    let at = |desk: &mut SimDesk, order: NewDeskOrder<'_>| {
        place(desk, order);
    };
    check(&|desk| at(desk, limit(Buy, "100", "1")), &["0 Live", "book 0", "quote 0"]);
    check(&|desk| at(desk, limit(Buy, "90", "2")), &["0 Live", "book 0"]);
    let sold = ["1 Live", "trade 1 Sell 1@100", "1 PartlyFilled taker", "0 Filled maker"];
    let rest = ["trade 2 Sell 2@99.9", "1 Filled taker", "book 0", "quote 0"];
    check(&|desk| at(desk, second(limit(Sell, "99", "3"))), &[&sold[..], &rest].concat());
    check(
        &|desk| at(desk, market(Buy, "1")),
        &["0 Live", "trade 3 Buy 1@100.1", "0 Filled taker", "book 0", "quote 0"],
    );
    let kill = NewDeskOrder { time_in_force: TimeInForce::FillOrKill, ..limit(Buy, "100.1", "9") };
    check(&|desk| at(desk, kill), &["0 Live", "0 Canceled"]);
    let quote =
        |desk: &mut SimDesk, bid, ask| desk.quote(2, SPOT, price(bid), quantity("3"), price(ask), quantity("3"));
    let crossed = ["trade 4 Sell 2@90", "0 Filled maker", "book 0", "quote 0"];
    check(&|desk| quote(desk, "80", "89"), &crossed);
    check(&|desk| quote(desk, "80", "89"), &["book 0", "quote 0"]);
    check(&|desk| quote(desk, "80", "89"), &[]);
    assert_eq!(desk.book_sequence(0), 7, "the start is the first change");
    let best = desk.best(0);
    assert_eq!((best.bid, best.ask, best.symbol.0, best.event_ns), (price("80"), price("89"), 7, 2));
}

#[test]
fn a_desk_survives_indices_and_quotes_that_make_no_sense() {
    let mut desk = SimDesk::new(config());
    desk.quote(1, "ETH-USDT", price("1"), quantity("1"), price("2"), quantity("1"));
    desk.quote(1, SPOT, Price(i64::MAX), Quantity(i64::MAX), Price(i64::MIN), Quantity(-1));
    desk.suspend("ETH-USDT", true);
    assert_eq!((desk.book(9, Buy).count(), desk.book_sequence(9), desk.best(9).bid), (0, 0, Price::ZERO));
    assert_eq!((desk.fills(9).len(), desk.open_orders(9).count(), desk.balance(9).count()), (0, 0, 0));
    assert_eq!((desk.position(9, SWAP), desk.position(0, "ETH-USDT"), desk.is_suspended(9)), (0, 0, false));
    assert_eq!(desk.cancel_all(2, 9, None), 0);
    assert_eq!(desk.best(0).ask_quantity, Quantity::ZERO, "quotes beyond the range are none");
    assert_eq!(place(&mut desk, market(Buy, "5")).state, DeskState::Canceled);
}
