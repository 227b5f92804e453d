//! Requests of C to an OMS: structs that begin with their size, and their conversion to the client's requests.

use std::ffi::c_char;

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExtendedOrder, NewOrder, OrderId, OrderType, PositionEffect, Price,
    Quantity, ReplaceOrder, Request, SelfTradeMode, Side, StatusRequest, SymbolId, TextId, TextIdAction, TextIdError,
    TextIdRequest, TimeInForce, TradeMode,
};

use crate::config::{SizedStruct, find_value, sized_struct};
use crate::status::CallFailure;

/// Side of an order or a trade.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_side {
    /// Buy.
    TP_BUY = 1,
    /// Sell.
    TP_SELL = 2,
}

/// Pricing of an order.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_order_type {
    /// At the limit price or better.
    TP_ORDER_TYPE_LIMIT = 0,
    /// At any price. The price of the order must be 0.
    TP_ORDER_TYPE_MARKET = 1,
}

/// Time for which an order works.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_time_in_force {
    /// Until the day ends.
    TP_DAY = 0,
    /// Until the order is canceled.
    TP_GOOD_TILL_CANCEL = 1,
    /// Fills immediately as far as possible; the rest is canceled.
    TP_IMMEDIATE_OR_CANCEL = 3,
    /// Fills immediately and completely, or not at all.
    TP_FILL_OR_KILL = 4,
    /// Until the order's expire_ns, when the OMS cancels it and reports it as expired.
    TP_GOOD_TILL_DATE = 6,
}

/// Effect of an order on the position.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_position_effect {
    /// The venue decides.
    TP_POSITION_DEFAULT = 0,
    /// The order opens a position.
    TP_POSITION_OPEN = 1,
    /// The order closes a position.
    TP_POSITION_CLOSE = 2,
}

/// Instructions of an order to its venue. A sum of several is allowed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_order_instructions {
    /// The order rests, or is rejected if it would trade at once.
    TP_POST_ONLY = 1,
    /// The order only reduces a position.
    TP_REDUCE_ONLY = 2,
}

/// Action of the venue when an order would trade with another order of its owner.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_self_trade_mode {
    /// As the account is set at the venue.
    TP_SELF_TRADE_DEFAULT = 0,
    /// Cancels the resting order.
    TP_SELF_TRADE_CANCEL_MAKER = 1,
    /// Cancels the arriving order.
    TP_SELF_TRADE_CANCEL_TAKER = 2,
    /// Cancels both.
    TP_SELF_TRADE_CANCEL_BOTH = 3,
}

/// Margin of an order at a venue with several.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_trade_mode {
    /// As the instrument requires: cash for spot, cross for derivatives.
    TP_TRADE_MODE_DEFAULT = 0,
    /// Without margin.
    TP_TRADE_MODE_CASH = 1,
    /// With the margin of the whole account.
    TP_TRADE_MODE_CROSS = 2,
    /// With the margin of its position alone.
    TP_TRADE_MODE_ISOLATED = 3,
}

/// New order. Zero is the default of every field except size, price, quantity, symbol and side.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_new_order {
    /// sizeof(tp_new_order), as in this header.
    pub size: usize,
    /// Id of this request, chosen by the program and not used by another request of this session today; 0 lets the
    /// library assign its next id.
    pub id: u64,
    /// Limit price, in 10^-8; 0 for a market order.
    pub price: i64,
    /// Quantity, in 10^-8.
    pub quantity: i64,
    /// Stamp of the event that the request reacts to, in ticks of this host's clock, as in a tp_event; 0 if it reacts
    /// to no event.
    pub cause: u64,
    /// Number of the instrument in the OMS's table, as in ticks.
    pub symbol: u32,
    /// Account of the order; 0 means the account of the config.
    pub account: u32,
    /// Side: a tp_side.
    pub side: u32,
    /// Pricing: a tp_order_type.
    pub order_type: u32,
    /// Time for which the order works: a tp_time_in_force.
    pub time_in_force: u32,
    /// Effect on the position: a tp_position_effect.
    pub position_effect: u32,
    /// Instructions: a sum of tp_order_instructions; 0 for none.
    pub instructions: u32,
    /// Self-trade prevention: a tp_self_trade_mode.
    pub self_trade_mode: u32,
    /// Margin: a tp_trade_mode.
    pub trade_mode: u32,
    /// Reserved: 0.
    pub reserved: u32,
    /// The program's own text id of the order, up to 36 printable ASCII characters, then zeros: no open order of the
    /// account has it. Empty for none.
    pub client_id: [c_char; 40],
    /// End of an order that is TP_GOOD_TILL_DATE, in nanoseconds since the Unix epoch; 0 for any other order.
    pub expire_ns: u64,
}

/// Request to cancel an order. Exactly one of original, order_id and client_id names the order; the others are 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_cancel_order {
    /// sizeof(tp_cancel_order), as in this header.
    pub size: usize,
    /// Id of this request, chosen by the program, as in a tp_new_order; 0 lets the library assign an id.
    pub id: u64,
    /// Id of the new order in this session, also after replaces.
    pub original: u64,
    /// The OMS's id of the order, sent by any session, for an account that this session may trade for.
    pub order_id: u64,
    /// Stamp of the event that the request reacts to, as in a tp_new_order.
    pub cause: u64,
    /// Account of the order; 0 means the account of the config.
    pub account: u32,
    /// Reserved: 0.
    pub reserved: u32,
    /// Text id of the order, sent by any session for the account, then zeros: the latest order with this text id.
    pub client_id: [c_char; 40],
}

/// Request for the state of an order. Exactly one of original and client_id names the order; the other is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_order_query {
    /// sizeof(tp_order_query), as in this header.
    pub size: usize,
    /// Id of this request, chosen by the program, as in a tp_new_order; 0 lets the library assign an id.
    pub id: u64,
    /// Id of the new order in this session, also after replaces.
    pub original: u64,
    /// Account of the order; 0 means the account of the config.
    pub account: u32,
    /// Reserved: 0.
    pub reserved: u32,
    /// Text id of the order, as in a tp_cancel_order.
    pub client_id: [c_char; 40],
}

/// Request to change the price and the total quantity of an order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_replace_order {
    /// sizeof(tp_replace_order), as in this header.
    pub size: usize,
    /// Id of this request, chosen by the program, as in a tp_new_order; 0 lets the library assign an id.
    pub id: u64,
    /// Id of the new order in this session, also after earlier replaces.
    pub original: u64,
    /// New limit price, in 10^-8.
    pub price: i64,
    /// New total quantity, the filled quantity included, in 10^-8.
    pub quantity: i64,
    /// Stamp of the event that the request reacts to, as in a tp_new_order.
    pub cause: u64,
    /// Account of the order; 0 means the account of the config.
    pub account: u32,
    /// Reserved: 0.
    pub reserved: u32,
}

/// A struct that describes a request to an OMS.
pub trait RequestStruct: SizedStruct {
    /// The id given by C; zero if the library should choose one.
    fn id(&self) -> u64;

    /// Converts to a request with this id, for account `usual` if the struct names none.
    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, CallFailure>;
}

sized_struct!(tp_new_order: 64 to position_effect: u32, 5 * 8 + 10 * 4 + 40 + 8);
sized_struct!(tp_cancel_order: 48 to reserved: u32, 5 * 8 + 2 * 4 + 40);
sized_struct!(tp_order_query: 72 to client_id: [c_char; 40], 3 * 8 + 2 * 4 + 40);
sized_struct!(tp_replace_order: 56 to reserved: u32, 6 * 8 + 2 * 4);

impl RequestStruct for tp_new_order {
    fn id(&self) -> u64 {
        self.id
    }

    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, CallFailure> {
        const SIDES: [(u32, Side); 2] = [(tp_side::TP_BUY as u32, Side::Buy), (tp_side::TP_SELL as u32, Side::Sell)];
        const ORDER_TYPES: [(u32, OrderType); 2] = [
            (tp_order_type::TP_ORDER_TYPE_LIMIT as u32, OrderType::Limit),
            (tp_order_type::TP_ORDER_TYPE_MARKET as u32, OrderType::Market),
        ];
        const TIMES_IN_FORCE: [(u32, TimeInForce); 5] = [
            (tp_time_in_force::TP_DAY as u32, TimeInForce::Day),
            (tp_time_in_force::TP_GOOD_TILL_CANCEL as u32, TimeInForce::GoodTillCancel),
            (tp_time_in_force::TP_IMMEDIATE_OR_CANCEL as u32, TimeInForce::ImmediateOrCancel),
            (tp_time_in_force::TP_FILL_OR_KILL as u32, TimeInForce::FillOrKill),
            (tp_time_in_force::TP_GOOD_TILL_DATE as u32, TimeInForce::GoodTillDate),
        ];
        const POSITION_EFFECTS: [(u32, PositionEffect); 3] = [
            (tp_position_effect::TP_POSITION_DEFAULT as u32, PositionEffect::Default),
            (tp_position_effect::TP_POSITION_OPEN as u32, PositionEffect::Open),
            (tp_position_effect::TP_POSITION_CLOSE as u32, PositionEffect::Close),
        ];
        const SELF_TRADE_MODES: [(u32, SelfTradeMode); 4] = [
            (tp_self_trade_mode::TP_SELF_TRADE_DEFAULT as u32, SelfTradeMode::Default),
            (tp_self_trade_mode::TP_SELF_TRADE_CANCEL_MAKER as u32, SelfTradeMode::CancelMaker),
            (tp_self_trade_mode::TP_SELF_TRADE_CANCEL_TAKER as u32, SelfTradeMode::CancelTaker),
            (tp_self_trade_mode::TP_SELF_TRADE_CANCEL_BOTH as u32, SelfTradeMode::CancelBoth),
        ];
        const TRADE_MODES: [(u32, TradeMode); 4] = [
            (tp_trade_mode::TP_TRADE_MODE_DEFAULT as u32, TradeMode::Default),
            (tp_trade_mode::TP_TRADE_MODE_CASH as u32, TradeMode::Cash),
            (tp_trade_mode::TP_TRADE_MODE_CROSS as u32, TradeMode::Cross),
            (tp_trade_mode::TP_TRADE_MODE_ISOLATED as u32, TradeMode::Isolated),
        ];
        let order_type = find_value("tp_order_type", self.order_type, &ORDER_TYPES)?;
        if order_type == OrderType::Market && self.price != 0 {
            let sentence = "a market order has no price; leave it 0, or make the order_type TP_ORDER_TYPE_LIMIT";
            return Err(CallFailure::invalid(sentence));
        }
        let order = NewOrder {
            client_order_id: id,
            price: Price(self.price),
            quantity: Quantity(self.quantity),
            cause: self.cause,
            symbol: SymbolId(self.symbol),
            account: account_or(self.account, usual),
            side: find_value("tp_side", self.side, &SIDES)?.code(),
            order_type: order_type.code(),
            time_in_force: find_value("tp_time_in_force", self.time_in_force, &TIMES_IN_FORCE)?.code(),
            position_effect: find_value("tp_position_effect", self.position_effect, &POSITION_EFFECTS)?.code(),
            instructions: instructions(self.instructions)?,
            self_trade_mode: find_value("tp_self_trade_mode", self.self_trade_mode, &SELF_TRADE_MODES)?.code(),
            trade_mode: find_value("tp_trade_mode", self.trade_mode, &TRADE_MODES)?.code(),
            reserved: 0,
        };
        extended(order, text_id(&self.client_id)?, self.expire_ns)
    }
}

impl RequestStruct for tp_cancel_order {
    fn id(&self) -> u64 {
        self.id
    }

    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, CallFailure> {
        let text_id = text_id(&self.client_id)?;
        if [self.original != 0, self.order_id != 0, text_id.is_some()].iter().filter(|is_given| **is_given).count() != 1
        {
            let sentence = "a cancel names one order; set its original to the id of the new order, its order_id to the \
                            OMS's id, or its client_id, and leave the others 0";
            return Err(CallFailure::invalid(sentence));
        }
        if let Some(text_id) = text_id {
            let account = account_or(self.account, usual);
            return Ok(by_text_id(id, account, text_id, TextIdAction::Cancel, self.cause));
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

impl RequestStruct for tp_order_query {
    fn id(&self) -> u64 {
        self.id
    }

    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, CallFailure> {
        let (original, account) = (ClientOrderId(self.original), account_or(self.account, usual));
        match (self.original, text_id(&self.client_id)?) {
            (0, Some(text_id)) => Ok(by_text_id(id, account, text_id, TextIdAction::Status, 0)),
            (1.., None) => Ok(Request::Status(StatusRequest {
                client_order_id: id,
                original,
                account,
                ..StatusRequest::default()
            })),
            _ => Err(CallFailure::invalid(
                "a query names one order; set its original to the id of the new order, or its client_id",
            )),
        }
    }
}

impl RequestStruct for tp_replace_order {
    fn id(&self) -> u64 {
        self.id
    }

    fn request(&self, id: ClientOrderId, usual: AccountId) -> Result<Request, CallFailure> {
        if self.original == 0 {
            return Err(CallFailure::invalid("a replace names one order; set its original to the id of the new order"));
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

/// Converts the sum of a new order's instructions.
fn instructions(sum: u32) -> Result<u8, CallFailure> {
    const INSTRUCTIONS: [(tp_order_instructions, u8); 2] = [
        (tp_order_instructions::TP_POST_ONLY, NewOrder::POST_ONLY),
        (tp_order_instructions::TP_REDUCE_ONLY, NewOrder::REDUCE_ONLY),
    ];
    let known = INSTRUCTIONS.iter().fold(0_u32, |known, (instruction, _)| known | *instruction as u32);
    if sum & !known != 0 {
        return Err(CallFailure::invalid(format!(
            "{sum} is no sum of tp_order_instructions; add the header's names, which are 1, 2, or leave it 0"
        )));
    }
    let given = INSTRUCTIONS.iter().filter(|(instruction, _)| sum & *instruction as u32 != 0);
    Ok(given.fold(0_u8, |flags, (_, flag)| flags | *flag))
}

/// Returns the request for a new order, with its text id and its end time if it has them.
fn extended(order: NewOrder, text_id: Option<TextId>, expire_ns: u64) -> Result<Request, CallFailure> {
    if (order.time_in_force == TimeInForce::GoodTillDate.code()) != (expire_ns != 0) {
        let sentence = "an order that is TP_GOOD_TILL_DATE has an expire_ns, and no other order has one";
        return Err(CallFailure::invalid(sentence));
    }
    Ok(match (text_id, expire_ns) {
        (None, 0) => Request::New(order),
        _ => {
            let text_id = text_id.unwrap_or_default();
            Request::Extended(ExtendedOrder { order, expire_ns, text_id, ..ExtendedOrder::default() })
        }
    })
}

/// Reads a text id; none if it is empty.
fn text_id(given: &[c_char; 40]) -> Result<Option<TextId>, CallFailure> {
    let bytes = given.map(|byte| byte as u8);
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(text);
    text.parse().map(Some).map_err(|e: TextIdError| CallFailure::invalid(e.to_string()))
}

fn by_text_id(
    client_order_id: ClientOrderId,
    account: AccountId,
    text_id: TextId,
    action: TextIdAction,
    cause: u64,
) -> Request {
    let action = action.code();
    Request::ByTextId(TextIdRequest { client_order_id, cause, account, text_id, action, ..TextIdRequest::default() })
}

/// Returns the account of a request, or the session's account.
fn account_or(named: u32, usual: AccountId) -> AccountId {
    if named == 0 { usual } else { AccountId(named) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read_struct;

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
            instructions: tp_order_instructions::TP_REDUCE_ONLY as u32,
            self_trade_mode: tp_self_trade_mode::TP_SELF_TRADE_CANCEL_TAKER as u32,
            trade_mode: tp_trade_mode::TP_TRADE_MODE_ISOLATED as u32,
            reserved: 0,
            client_id: [0; 40],
            expire_ns: 0,
        }
    }

    fn client_id(text: &str) -> [c_char; 40] {
        let mut client_id = [0; 40];
        client_id.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
        client_id
    }

    #[test]
    fn a_client_id_makes_an_extended_order_and_names_it() {
        let request = |text: &str| {
            let order = tp_new_order { client_id: client_id(text), ..new_order() };
            order.request(ClientOrderId(3), USUAL).ok()
        };
        let Some(Request::Extended(extended)) = request("grid-7") else { panic!("it has a client id") };
        assert_eq!((extended.text_id.as_str(), extended.order.client_order_id), ("grid-7", ClientOrderId(3)));
        assert!(matches!(request(""), Some(Request::New(_))));
        assert!(request(&"x".repeat(36)).is_some() && request(&"x".repeat(37)).is_none());
        assert!(request("a b").is_none() && request("é").is_none());
        let size = size_of::<tp_order_query>();
        let query = |original, text: &str| {
            let client_id = client_id(text);
            let query = tp_order_query { size, id: 0, original, account: 0, reserved: 0, client_id };
            query.request(ClientOrderId(4), USUAL).ok()
        };
        let Some(Request::ByTextId(named)) = query(0, "grid-7") else { panic!("it names an order by its client id") };
        assert!(named.is_status() && named.account == USUAL && named.text_id.as_str() == "grid-7");
        assert!(matches!(query(5, ""), Some(Request::Status(status)) if status.original == ClientOrderId(5)));
        assert_eq!((query(0, ""), query(5, "grid-7")), (None, None));
    }

    #[test]
    fn an_order_has_the_values_set_by_c() {
        let expected = NewOrder {
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
            instructions: NewOrder::REDUCE_ONLY,
            self_trade_mode: SelfTradeMode::CancelTaker.code(),
            trade_mode: TradeMode::Isolated.code(),
            reserved: 0,
        };
        assert_eq!(new_order().request(ClientOrderId(3), USUAL).unwrap(), Request::New(expected));
        let other = tp_new_order { account: 8, ..new_order() };
        assert_eq!(other.request(ClientOrderId(3), USUAL).unwrap().account(), AccountId(8));
        assert_eq!(expected.check(), Ok(()));
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
            let time_in_force = TimeInForce::from_code(code);
            let expire_ns = u64::from(time_in_force == Some(TimeInForce::GoodTillDate));
            let timed = tp_new_order { time_in_force: number, expire_ns, ..new_order() };
            assert_eq!(order(timed), time_in_force.is_some());
            assert!(!order(tp_new_order { expire_ns: 1 - expire_ns, ..timed }), "an end time belongs to one alone");
            let position_effect = PositionEffect::from_code(code).is_some();
            assert_eq!(order(tp_new_order { position_effect: number, ..new_order() }), position_effect);
            let self_trade_mode = SelfTradeMode::from_code(code).is_some();
            assert_eq!(order(tp_new_order { self_trade_mode: number, ..new_order() }), self_trade_mode);
            let trade_mode = TradeMode::from_code(code).is_some();
            assert_eq!(order(tp_new_order { trade_mode: number, ..new_order() }), trade_mode);
            // A market order has no price.
            assert_eq!(order(tp_new_order { order_type: number, price: 0, ..new_order() }), number < 2);
        }
        let market = tp_new_order { order_type: tp_order_type::TP_ORDER_TYPE_MARKET as u32, ..new_order() };
        assert!(market.request(ClientOrderId(1), USUAL).is_err());
    }

    #[test]
    fn instructions_add_up_to_the_flags_of_the_message() {
        let flags = |instructions| {
            let order = tp_new_order { instructions, ..new_order() };
            match order.request(ClientOrderId(1), USUAL) {
                Ok(Request::New(new)) => Some(new.instructions),
                _ => None,
            }
        };
        let (post_only, reduce_only) =
            (tp_order_instructions::TP_POST_ONLY as u32, tp_order_instructions::TP_REDUCE_ONLY as u32);
        assert_eq!((flags(0), flags(post_only)), (Some(0), Some(NewOrder::POST_ONLY)));
        assert_eq!(flags(post_only + reduce_only), Some(NewOrder::POST_ONLY | NewOrder::REDUCE_ONLY));
        for unknown in [4, 5, 256, 1 << 31, u32::MAX] {
            assert_eq!(flags(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn an_order_of_the_first_version_has_no_instructions() {
        let first = tp_new_order { size: tp_new_order::first_bytes(), ..new_order() };
        // SAFETY: the struct begins with its size, and has more bytes than that.
        let read = unsafe { read_struct(&raw const first) }.expect("the first version's size");
        let Ok(Request::New(new)) = read.request(ClientOrderId(1), USUAL) else { panic!("it is a new order") };
        assert_eq!((new.instructions, new.self_trade_mode, new.trade_mode), (0, 0, 0));
        assert_eq!(new.position_effect, PositionEffect::Close.code(), "its last field");
    }

    #[test]
    fn a_cancel_names_one_order() {
        let cancel = |original, order_id| {
            let size = size_of::<tp_cancel_order>();
            let client_id = [0; 40];
            let cancel =
                tp_cancel_order { size, id: 0, original, order_id, cause: 2, account: 0, reserved: 0, client_id };
            cancel.request(ClientOrderId(4), USUAL).ok()
        };
        assert_eq!((cancel(0, 0), cancel(1, 1)), (None, None));
        for (original, order_id) in [(5, 0), (0, 6)] {
            let expected = CancelOrder {
                client_order_id: ClientOrderId(4),
                original: ClientOrderId(original),
                order_id: OrderId(order_id),
                cause: 2,
                account: USUAL,
                ..CancelOrder::default()
            };
            assert_eq!(cancel(original, order_id), Some(Request::Cancel(expected)));
        }
    }

    #[test]
    fn a_replace_has_the_values_set_by_c() {
        let size = size_of::<tp_replace_order>();
        let replace =
            tp_replace_order { size, id: 0, original: 5, price: 6, quantity: 7, cause: 8, account: 9, reserved: 0 };
        let expected = ReplaceOrder {
            client_order_id: ClientOrderId(4),
            original: ClientOrderId(5),
            price: Price(6),
            quantity: Quantity(7),
            cause: 8,
            account: AccountId(9),
            ..ReplaceOrder::default()
        };
        assert_eq!(replace.request(ClientOrderId(4), USUAL).unwrap(), Request::Replace(expected));
        let nothing = tp_replace_order { original: 0, ..replace };
        assert!(nothing.request(ClientOrderId(4), USUAL).is_err());
    }
}
