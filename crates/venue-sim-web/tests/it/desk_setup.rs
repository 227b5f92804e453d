//! A desk with a spot instrument, a derivative and two accounts.

use tickpath_market::{OrderType, Price, Quantity, Side, SymbolId, TimeInForce};
use tickpath_venue_sim_web::desk::{
    DeskEvent, DeskOrder, NewDeskOrder, OrderName, SimAccount, SimDesk, SimDeskConfig, SimInstrument,
};

pub const SPOT: &str = "BTC-USDT";
pub const SWAP: &str = "BTC-USDT-SWAP";

/// Returns the configuration: quotes of 99.9 and 100.1, 5 of spot and 1,000 contracts of 0.01.
pub fn config() -> SimDeskConfig {
    let spot = SimInstrument {
        name: SPOT.to_owned(),
        symbol: SymbolId(7),
        code: 70,
        base: "BTC".to_owned(),
        quote: "USDT".to_owned(),
        tick: price("0.1"),
        lot: quantity("0.001"),
        minimum: quantity("0.002"),
        is_derivative: false,
        contract_value: quantity("1"),
        bid: price("99.9"),
        ask: price("100.1"),
        size: quantity("5"),
    };
    let swap = SimInstrument {
        name: SWAP.to_owned(),
        symbol: SymbolId(8),
        code: 80,
        lot: quantity("1"),
        minimum: quantity("1"),
        is_derivative: true,
        contract_value: quantity("0.01"),
        size: quantity("1000"),
        ..spot.clone()
    };
    let account = |name: &str| SimAccount {
        name: name.to_owned(),
        api_key: format!("key-{name}"),
        secret: "secret".to_owned(),
        passphrase: "phrase".to_owned(),
        balances: vec![("BTC".to_owned(), quantity("10")), ("USDT".to_owned(), quantity("10000"))],
    };
    SimDeskConfig {
        instruments: vec![spot, swap],
        accounts: vec![account("first"), account("second")],
        maker_fee_e6: -100,
        taker_fee_e6: 1_000,
    }
}

pub fn desk() -> SimDesk {
    SimDesk::new(config())
}

/// Returns a limit order of the first account for spot, good till canceled.
pub fn limit(side: Side, limit: &str, amount: &str) -> NewDeskOrder<'static> {
    NewDeskOrder {
        account: 0,
        instrument: SPOT,
        client_id: "",
        side,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::GoodTillCancel,
        post_only: false,
        reduce_only: false,
        price: price(limit),
        quantity: quantity(amount),
    }
}

/// Returns a market order of the first account for spot.
pub fn market(side: Side, amount: &str) -> NewDeskOrder<'static> {
    let time_in_force = TimeInForce::ImmediateOrCancel;
    NewDeskOrder { order_type: OrderType::Market, time_in_force, ..limit(side, "0", amount) }
}

/// Places an order that is accepted, and returns it as it stands.
pub fn place(desk: &mut SimDesk, order: NewDeskOrder<'_>) -> DeskOrder {
    let id = desk.place(1, &order).unwrap_or_else(|refusal| panic!("{refusal}: {order:?}"));
    desk.order(order.account, OrderName::Exchange(id)).expect("it was placed").clone()
}

/// Returns the total and the available amount of a currency.
pub fn balance(desk: &SimDesk, account: usize, currency: &str) -> (Quantity, Quantity) {
    let found = desk.balance(account).find(|(found, ..)| *found == currency);
    found.map_or((Quantity::ZERO, Quantity::ZERO), |(_, total, available)| (total, available))
}

/// Returns a word for each event since the last call.
pub fn events(desk: &mut SimDesk) -> Vec<String> {
    let describe = |event: &DeskEvent| match event {
        DeskEvent::Order(order, account, fill) => {
            let fill = fill.as_ref().map_or("", |fill| if fill.is_maker { " maker" } else { " taker" });
            format!("{account} {:?}{fill}", order.state)
        }
        DeskEvent::Quote(instrument) => format!("quote {instrument}"),
        DeskEvent::Trade(trade) => {
            format!("trade {} {:?} {}@{}", trade.trade_id, trade.side, trade.quantity, trade.price)
        }
        DeskEvent::Book(instrument) => format!("book {instrument}"),
    };
    desk.take_events().iter().map(describe).collect()
}

pub fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

pub fn quantity(text: &str) -> Quantity {
    text.parse().expect("a quantity")
}
