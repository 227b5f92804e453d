//! What C asks an OMS for: structs that begin with their size, and the requests that become of them.

use std::mem::offset_of;

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, NewOrder, OrderId, OrderType, PositionEffect, Price, Quantity, ReplaceOrder,
    Request, Side, SymbolId, TimeInForce,
};

use crate::config::{Config, chosen};
use crate::status::Failure;

/// The side of an order, or of a trade.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_side {
    /// Buys.
    TP_BUY = 1,
    /// Sells.
    TP_SELL = 2,
}

/// How an order is priced.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_order_type {
    /// At its price or better.
    TP_ORDER_TYPE_LIMIT = 0,
    /// At any price. Its own is 0.
    TP_ORDER_TYPE_MARKET = 1,
}

/// How long an order works.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_time_in_force {
    /// Until the day ends.
    TP_DAY = 0,
    /// Until it is canceled.
    TP_GOOD_TILL_CANCEL = 1,
    /// It fills what it can at once; the rest is canceled.
    TP_IMMEDIATE_OR_CANCEL = 3,
    /// It fills whole at once, or not at all.
    TP_FILL_OR_KILL = 4,
}

/// What an order does to a position.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_position_effect {
    /// The venue decides.
    TP_POSITION_DEFAULT = 0,
    /// It opens.
    TP_POSITION_OPEN = 1,
    /// It closes.
    TP_POSITION_CLOSE = 2,
}

/// A new order. Zero is the usual in every field but size, price, quantity, symbol and side.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_new_order {
    /// sizeof(tp_new_order), as this header has it.
    pub size: usize,
    /// The program's own id of this request, which no other one of this session has had today; 0 is that the library gives the
    /// next of its own.
    pub id: u64,
    /// The limit, in 10^-8; 0 of a market order.
    pub price: i64,
    /// How much, in 10^-8.
    pub quantity: i64,
    /// The stamp of the event to which this is the answer, in ticks of this host's clock, as a tp_event has it; 0 if it is to
    /// none.
    pub cause: u64,
    /// The instrument's number in the OMS's table, as a tick has it.
    pub symbol: u32,
    /// For whom; 0 is the account of the config.
    pub account: u32,
    /// What it does: a tp_side.
    pub side: u32,
    /// How it is priced: a tp_order_type.
    pub order_type: u32,
    /// How long it works: a tp_time_in_force.
    pub time_in_force: u32,
    /// What it does to the position: a tp_position_effect.
    pub position_effect: u32,
}

/// Asks to cancel an order. Either original or order_id names it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_cancel_order {
    /// sizeof(tp_cancel_order), as this header has it.
    pub size: usize,
    /// The program's own id of this request, as in a tp_new_order; 0 is that the library gives it one.
    pub id: u64,
    /// The id of the new order in this session, whatever replaces came after.
    pub original: u64,
    /// The OMS's id of the order, whatever session has sent it: any for an account that this session may trade for.
    pub order_id: u64,
    /// The stamp of the event to which this is the answer, as in a tp_new_order.
    pub cause: u64,
    /// For whom; 0 is the account of the config.
    pub account: u32,
    /// Zero.
    pub reserved: u32,
}

/// Asks for another price and another total quantity of an order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_replace_order {
    /// sizeof(tp_replace_order), as this header has it.
    pub size: usize,
    /// The program's own id of this request, as in a tp_new_order; 0 is that the library gives it one.
    pub id: u64,
    /// The id of the new order in this session, whatever replaces came before.
    pub original: u64,
    /// The new limit, in 10^-8.
    pub price: i64,
    /// The new total quantity, what is filled already included, in 10^-8.
    pub quantity: i64,
    /// The stamp of the event to which this is the answer, as in a tp_new_order.
    pub cause: u64,
    /// For whom; 0 is the account of the config.
    pub account: u32,
    /// Zero.
    pub reserved: u32,
}

/// A struct that asks an OMS for something.
pub trait Asks: Config {
    /// What C calls it, for sentences.
    fn name() -> &'static str;

    /// The id that C gives the request; zero if the library is to.
    fn id(&self) -> u64;

    /// The request under this id, and for this account if it names none itself.
    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, Failure>;
}

// As of the configs: what the first version had.
const NEW_FIRST_BYTES: usize = 64;
const CANCEL_FIRST_BYTES: usize = 48;
const REPLACE_FIRST_BYTES: usize = 56;

// SAFETY: its fields are numbers, and fill it.
unsafe impl Config for tp_new_order {
    fn first_bytes() -> usize {
        NEW_FIRST_BYTES
    }
}
const _: () = assert!(NEW_FIRST_BYTES == offset_of!(tp_new_order, position_effect) + size_of::<u32>());
const _: () = assert!(size_of::<tp_new_order>() == 5 * 8 + 6 * 4);
// SAFETY: its fields are numbers, and fill it.
unsafe impl Config for tp_cancel_order {
    fn first_bytes() -> usize {
        CANCEL_FIRST_BYTES
    }
}
const _: () = assert!(CANCEL_FIRST_BYTES == offset_of!(tp_cancel_order, reserved) + size_of::<u32>());
const _: () = assert!(size_of::<tp_cancel_order>() == 5 * 8 + 2 * 4);
// SAFETY: its fields are numbers, and fill it.
unsafe impl Config for tp_replace_order {
    fn first_bytes() -> usize {
        REPLACE_FIRST_BYTES
    }
}
const _: () = assert!(REPLACE_FIRST_BYTES == offset_of!(tp_replace_order, reserved) + size_of::<u32>());
const _: () = assert!(size_of::<tp_replace_order>() == 6 * 8 + 2 * 4);

impl Asks for tp_new_order {
    fn name() -> &'static str {
        "tp_new_order"
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, Failure> {
        const SIDES: [(u32, Side); 2] = [(tp_side::TP_BUY as u32, Side::Buy), (tp_side::TP_SELL as u32, Side::Sell)];
        const ORDER_TYPES: [(u32, OrderType); 2] = [
            (tp_order_type::TP_ORDER_TYPE_LIMIT as u32, OrderType::Limit),
            (tp_order_type::TP_ORDER_TYPE_MARKET as u32, OrderType::Market),
        ];
        const TIMES_IN_FORCE: [(u32, TimeInForce); 4] = [
            (tp_time_in_force::TP_DAY as u32, TimeInForce::Day),
            (tp_time_in_force::TP_GOOD_TILL_CANCEL as u32, TimeInForce::GoodTillCancel),
            (tp_time_in_force::TP_IMMEDIATE_OR_CANCEL as u32, TimeInForce::ImmediateOrCancel),
            (tp_time_in_force::TP_FILL_OR_KILL as u32, TimeInForce::FillOrKill),
        ];
        const POSITION_EFFECTS: [(u32, PositionEffect); 3] = [
            (tp_position_effect::TP_POSITION_DEFAULT as u32, PositionEffect::Default),
            (tp_position_effect::TP_POSITION_OPEN as u32, PositionEffect::Open),
            (tp_position_effect::TP_POSITION_CLOSE as u32, PositionEffect::Close),
        ];
        let order_type = chosen("tp_order_type", self.order_type, &ORDER_TYPES)?;
        if order_type == OrderType::Market && self.price != 0 {
            let sentence = "a market order has no price; leave it 0, or make the order_type TP_ORDER_TYPE_LIMIT";
            return Err(Failure::invalid(sentence));
        }
        Ok(Request::New(NewOrder {
            client_order_id: id,
            price: Price(self.price),
            quantity: Quantity(self.quantity),
            cause: self.cause,
            symbol: SymbolId(self.symbol),
            account: account_or(self.account, usual),
            side: chosen("tp_side", self.side, &SIDES)?.code(),
            order_type: order_type.code(),
            time_in_force: chosen("tp_time_in_force", self.time_in_force, &TIMES_IN_FORCE)?.code(),
            position_effect: chosen("tp_position_effect", self.position_effect, &POSITION_EFFECTS)?.code(),
            ..NewOrder::default()
        }))
    }
}

impl Asks for tp_cancel_order {
    fn name() -> &'static str {
        "tp_cancel_order"
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, Failure> {
        if (self.original == 0) == (self.order_id == 0) {
            let sentence = "a cancel names one order; set its original to the id of the new order, or its order_id to the \
                            OMS's id, and leave the other 0";
            return Err(Failure::invalid(sentence));
        }
        Ok(Request::Cancel(CancelOrder {
            client_order_id: id,
            original: ClientOrderId(self.original),
            cause: self.cause,
            account: account_or(self.account, usual),
            order_id: OrderId(self.order_id),
            ..CancelOrder::default()
        }))
    }
}

impl Asks for tp_replace_order {
    fn name() -> &'static str {
        "tp_replace_order"
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, Failure> {
        if self.original == 0 {
            return Err(Failure::invalid("a replace names one order; set its original to the id of the new order"));
        }
        Ok(Request::Replace(ReplaceOrder {
            client_order_id: id,
            original: ClientOrderId(self.original),
            price: Price(self.price),
            quantity: Quantity(self.quantity),
            cause: self.cause,
            account: account_or(self.account, usual),
            ..ReplaceOrder::default()
        }))
    }
}

/// The account that a request names, or the session's.
fn account_or(named: u32, usual: AccountId) -> AccountId {
    if named == 0 { usual } else { AccountId(named) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: AccountId = AccountId(7);

    fn new_order() -> tp_new_order {
        tp_new_order {
            size: size_of::<tp_new_order>(),
            id: 0,
            price: 5,
            quantity: 6,
            cause: 9,
            symbol: 1,
            account: 0,
            side: tp_side::TP_SELL as u32,
            order_type: tp_order_type::TP_ORDER_TYPE_LIMIT as u32,
            time_in_force: tp_time_in_force::TP_FILL_OR_KILL as u32,
            position_effect: tp_position_effect::TP_POSITION_CLOSE as u32,
        }
    }

    #[test]
    fn an_order_says_what_c_has_set() {
        let told = NewOrder {
            client_order_id: ClientOrderId(3),
            price: Price(5),
            quantity: Quantity(6),
            cause: 9,
            symbol: SymbolId(1),
            account: USUAL,
            side: Side::Sell.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::FillOrKill.code(),
            position_effect: PositionEffect::Close.code(),
            ..NewOrder::default()
        };
        assert_eq!(new_order().request(ClientOrderId(3), USUAL).unwrap(), Request::New(told));
        let other = tp_new_order { account: 8, ..new_order() };
        assert_eq!(other.request(ClientOrderId(3), USUAL).unwrap().account(), AccountId(8));
        assert_eq!(told.check(), Ok(()));
    }

    #[test]
    fn the_header_has_a_name_for_every_code() {
        for side in [tp_side::TP_BUY, tp_side::TP_SELL] {
            assert_eq!(Side::from_code(side as u8).map(Side::code), Some(side as u8));
        }
        for number in 0..10 {
            let order = |order: tp_new_order| order.request(ClientOrderId(1), USUAL).is_ok();
            let code = number as u8;
            assert_eq!(order(tp_new_order { side: number, ..new_order() }), Side::from_code(code).is_some());
            let time_in_force = TimeInForce::from_code(code).is_some();
            assert_eq!(order(tp_new_order { time_in_force: number, ..new_order() }), time_in_force);
            let position_effect = PositionEffect::from_code(code).is_some();
            assert_eq!(order(tp_new_order { position_effect: number, ..new_order() }), position_effect);
            // A market order has no price.
            assert_eq!(order(tp_new_order { order_type: number, price: 0, ..new_order() }), number < 2);
        }
        let market = tp_new_order { order_type: tp_order_type::TP_ORDER_TYPE_MARKET as u32, ..new_order() };
        assert!(market.request(ClientOrderId(1), USUAL).is_err());
    }

    #[test]
    fn a_cancel_names_one_order() {
        let cancel = |original, order_id| {
            let size = size_of::<tp_cancel_order>();
            let cancel = tp_cancel_order { size, id: 0, original, order_id, cause: 2, account: 0, reserved: 0 };
            cancel.request(ClientOrderId(4), USUAL).ok()
        };
        assert_eq!((cancel(0, 0), cancel(1, 1)), (None, None));
        for (original, order_id) in [(5, 0), (0, 6)] {
            let told = CancelOrder {
                client_order_id: ClientOrderId(4),
                original: ClientOrderId(original),
                order_id: OrderId(order_id),
                cause: 2,
                account: USUAL,
                ..CancelOrder::default()
            };
            assert_eq!(cancel(original, order_id), Some(Request::Cancel(told)));
        }
    }

    #[test]
    fn a_replace_says_what_c_has_set() {
        let size = size_of::<tp_replace_order>();
        let replace =
            tp_replace_order { size, id: 0, original: 5, price: 6, quantity: 7, cause: 8, account: 9, reserved: 0 };
        let told = ReplaceOrder {
            client_order_id: ClientOrderId(4),
            original: ClientOrderId(5),
            price: Price(6),
            quantity: Quantity(7),
            cause: 8,
            account: AccountId(9),
            ..ReplaceOrder::default()
        };
        assert_eq!(replace.request(ClientOrderId(4), USUAL).unwrap(), Request::Replace(told));
        let nothing = tp_replace_order { original: 0, ..replace };
        assert!(nothing.request(ClientOrderId(4), USUAL).is_err());
    }
}
