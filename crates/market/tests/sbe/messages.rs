//! Messages of every kind with random values, extremes among them, and the expected output of a codec for each.

use std::fmt::{Debug, Display, Write as _};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tickpath_market::{
    BookLevel, CancelOrder, Condition, ConditionalOrder, ExecType, ExecutionReport, ExtendedOrder, FeedCondition,
    FeedStatus, Kind, Liquidity, ManualOrderIndicator, MassCancel, MassCancelType, NewOrder, OrdStatus, OrderDenied,
    OrderExtension, OrderType, PositionEffect, Price, Quantity, ReplaceConditional, ReplaceOrder, ReportDetail, SCALE,
    SelfTradeMode, Side, StatusRequest, TextIdAction, TextIdRequest, TimeInForce, TopOfBook, Trade, TradeMode, Trigger,
    TriggerDirection, TriggerJoin, TriggerPriceType,
};
use zerocopy::{FromBytes, IntoBytes};

/// Messages per kind.
const ROUNDS: usize = 200;

/// The first messages of a kind consist of one of these values only: zero, the nulls of unsigned and signed numbers,
/// the greatest signed number, and 1.
const EXTREMES: [u64; 5] = [0, u64::MAX, 1 << 63, (1 << 63) - 1, 1];

/// Null code where zero is one of the codes, and the schema's null where it is zero.
const NULL: u8 = 255;
const ZERO: u8 = 0;

/// Id and version of the schema.
const SCHEMA_ID: u16 = 1;
const SCHEMA_VERSION: u16 = 1;

/// A message after SBE's header, and its expected line.
pub struct ExpectedMessage {
    pub bytes: Vec<u8>,
    pub line: String,
}

pub fn of_every_kind() -> Vec<ExpectedMessage> {
    let mut dice = ValueSource { runner: TestRunner::default(), extreme: None };
    let mut all = Vec::with_capacity(ROUNDS * Kind::ALL.len());
    for round in 0..ROUNDS {
        dice.extreme = EXTREMES.get(round).copied();
        all.extend(Kind::ALL.iter().map(|&kind| drawn(kind, &mut dice)));
    }
    all
}

/// The match has no wildcard, so a new message does not compile until it is listed here.
fn drawn(kind: Kind, dice: &mut ValueSource) -> ExpectedMessage {
    match kind {
        Kind::TopOfBook => top_of_book(dice),
        Kind::Trade => trade(dice),
        Kind::BookLevel => book_level(dice),
        Kind::FeedStatus => feed_status(dice),
        Kind::NewOrder => {
            let m = dice.order();
            order(ExpectedText::of(kind), &m).ends(m.as_bytes())
        }
        Kind::CancelOrder => cancel_order(dice),
        Kind::ReplaceOrder => replace_order(dice),
        Kind::StatusRequest => status_request(dice),
        Kind::MassCancel => mass_cancel(dice),
        Kind::ConditionalOrder => {
            let m = ConditionalOrder { order: dice.order(), trigger: dice.trigger() };
            trigger(order(ExpectedText::of(kind), &m.order), &m.trigger).ends(m.as_bytes())
        }
        Kind::ReplaceConditional => replace_conditional(dice),
        Kind::ExtendedOrder => extended_order(dice),
        Kind::TextIdRequest => text_id_request(dice),
        Kind::ExecutionReport => execution_report(dice),
        Kind::OrderDenied => order_denied(dice),
        Kind::ReportDetail => report_detail(dice),
        Kind::OrderExtension => order_extension(dice),
    }
}

fn top_of_book(dice: &mut ValueSource) -> ExpectedMessage {
    let m: TopOfBook = dice.message();
    ExpectedText::of(Kind::TopOfBook)
        .price("bid", m.bid)
        .quantity("bid_quantity", m.bid_quantity)
        .price("ask", m.ask)
        .quantity("ask_quantity", m.ask_quantity)
        .number("event_ns", m.event_ns)
        .number("symbol", m.symbol)
        .number("wire_age_ns", m.wire_age_ns)
        .ends(m.as_bytes())
}

fn trade(dice: &mut ValueSource) -> ExpectedMessage {
    let m = Trade { aggressor: dice.code(Side::ALL, Side::code, ZERO), ..dice.message() };
    ExpectedText::of(Kind::Trade)
        .price("price", m.price)
        .quantity("quantity", m.quantity)
        .number("trade_id", m.trade_id)
        .number("event_ns", m.event_ns)
        .number("symbol", m.symbol)
        .code("aggressor", Side::from_code(m.aggressor))
        .bytes("reserved", &m.reserved)
        .ends(m.as_bytes())
}

fn book_level(dice: &mut ValueSource) -> ExpectedMessage {
    let m = BookLevel { side: dice.code(Side::ALL, Side::code, ZERO), ..dice.message() };
    ExpectedText::of(Kind::BookLevel)
        .price("price", m.price)
        .quantity("quantity", m.quantity)
        .number("event_ns", m.event_ns)
        .number("sequence", m.sequence)
        .number("symbol", m.symbol)
        .number("wire_age_ns", m.wire_age_ns)
        .code("side", Side::from_code(m.side))
        .number("flags", m.flags)
        .bytes("reserved", &m.reserved)
        .ends(m.as_bytes())
}

fn feed_status(dice: &mut ValueSource) -> ExpectedMessage {
    let condition = dice.code(FeedCondition::ALL, FeedCondition::code, NULL);
    let m = FeedStatus { condition, ..dice.message() };
    ExpectedText::of(Kind::FeedStatus)
        .number("event_ns", m.event_ns)
        .number("value", m.value)
        .number("expected", m.expected)
        .number("found", m.found)
        .number("symbol", m.symbol)
        .code("condition", FeedCondition::from_code(m.condition))
        .number("connection", m.connection)
        .bytes("reserved", &m.reserved)
        .ends(m.as_bytes())
}

fn cancel_order(dice: &mut ValueSource) -> ExpectedMessage {
    let m: CancelOrder = dice.message();
    ExpectedText::of(Kind::CancelOrder)
        .number("client_order_id", m.client_order_id)
        .number("original", m.original)
        .number("cause", m.cause)
        .number("symbol", m.symbol)
        .number("account", m.account)
        .number("order_id", m.order_id)
        .ends(m.as_bytes())
}

fn replace_order(dice: &mut ValueSource) -> ExpectedMessage {
    let m: ReplaceOrder = dice.message();
    ExpectedText::of(Kind::ReplaceOrder)
        .number("client_order_id", m.client_order_id)
        .number("original", m.original)
        .price("price", m.price)
        .quantity("quantity", m.quantity)
        .number("cause", m.cause)
        .number("symbol", m.symbol)
        .number("account", m.account)
        .bytes("reserved", &m.reserved)
        .ends(m.as_bytes())
}

fn status_request(dice: &mut ValueSource) -> ExpectedMessage {
    let m: StatusRequest = dice.message();
    ExpectedText::of(Kind::StatusRequest)
        .number("client_order_id", m.client_order_id)
        .number("original", m.original)
        .number("cause", m.cause)
        .number("symbol", m.symbol)
        .number("account", m.account)
        .number("fills", m.fills)
        .bytes("reserved", &m.reserved)
        .ends(m.as_bytes())
}

fn mass_cancel(dice: &mut ValueSource) -> ExpectedMessage {
    let cancel_type = dice.code(MassCancelType::ALL, MassCancelType::code, NULL);
    let m = MassCancel { cancel_type, ..dice.message() };
    ExpectedText::of(Kind::MassCancel)
        .number("client_order_id", m.client_order_id)
        .number("cause", m.cause)
        .number("symbol", m.symbol)
        .number("account", m.account)
        .code("cancel_type", MassCancelType::from_code(m.cancel_type))
        .bytes("reserved", &m.reserved)
        .ends(m.as_bytes())
}

fn replace_conditional(dice: &mut ValueSource) -> ExpectedMessage {
    let m = ReplaceConditional { trigger: dice.trigger(), ..dice.message() };
    let line = ExpectedText::of(Kind::ReplaceConditional)
        .number("client_order_id", m.client_order_id)
        .number("original", m.original)
        .price("price", m.price)
        .quantity("quantity", m.quantity)
        .number("cause", m.cause)
        .number("symbol", m.symbol)
        .number("account", m.account);
    trigger(line, &m.trigger).ends(m.as_bytes())
}

fn extended_order(dice: &mut ValueSource) -> ExpectedMessage {
    let m = ExtendedOrder { order: dice.order(), ..dice.message() };
    order(ExpectedText::of(Kind::ExtendedOrder), &m.order)
        .number("expire_ns", m.expire_ns)
        .bytes("text_id", &m.text_id.0)
        .bytes("reserved_end", &m.reserved_end)
        .ends(m.as_bytes())
}

fn text_id_request(dice: &mut ValueSource) -> ExpectedMessage {
    let m = TextIdRequest { action: dice.code(TextIdAction::ALL, TextIdAction::code, NULL), ..dice.message() };
    ExpectedText::of(Kind::TextIdRequest)
        .number("client_order_id", m.client_order_id)
        .number("cause", m.cause)
        .number("symbol", m.symbol)
        .number("account", m.account)
        .bytes("text_id", &m.text_id.0)
        .code("action", TextIdAction::from_code(m.action))
        .bytes("reserved", &m.reserved)
        .ends(m.as_bytes())
}

fn execution_report(dice: &mut ValueSource) -> ExpectedMessage {
    let m = ExecutionReport {
        exec_type: dice.code(ExecType::ALL, ExecType::code, NULL),
        status: dice.code(OrdStatus::ALL, OrdStatus::code, NULL),
        side: dice.code(Side::ALL, Side::code, ZERO),
        manual: dice.code(ManualOrderIndicator::ALL, ManualOrderIndicator::code, NULL),
        ..dice.message()
    };
    ExpectedText::of(Kind::ExecutionReport)
        .number("order_id", m.order_id)
        .number("client_order_id", m.client_order_id)
        .number("venue_order_id", m.venue_order_id)
        .number("exec_id", m.exec_id)
        .number("venue_sequence", m.venue_sequence)
        .price("last_price", m.last_price)
        .quantity("last_quantity", m.last_quantity)
        .quantity("cumulative_quantity", m.cumulative_quantity)
        .quantity("leaves_quantity", m.leaves_quantity)
        .price("price", m.price)
        .number("venue_stamp", m.venue_stamp)
        .number("symbol", m.symbol)
        .number("account", m.account)
        .number("reason", m.reason)
        .number("venue", m.venue)
        .code("exec_type", ExecType::from_code(m.exec_type))
        .code("status", OrdStatus::from_code(m.status))
        .code("side", Side::from_code(m.side))
        .code("manual", ManualOrderIndicator::from_code(m.manual))
        .ends(m.as_bytes())
}

fn order_denied(dice: &mut ValueSource) -> ExpectedMessage {
    let m: OrderDenied = dice.message();
    ExpectedText::of(Kind::OrderDenied)
        .number("order_id", m.order_id)
        .number("client_order_id", m.client_order_id)
        .int128("risk_limit", m.limit)
        .int128("value", m.value)
        .number("account", m.account)
        .number("code", m.code)
        .number("more_decimals", m.more_decimals)
        .ends(m.as_bytes())
}

fn report_detail(dice: &mut ValueSource) -> ExpectedMessage {
    let m = ReportDetail { liquidity: dice.code(Liquidity::ALL, Liquidity::code, NULL), ..dice.message() };
    ExpectedText::of(Kind::ReportDetail)
        .number("order_id", m.order_id)
        .number("exec_id", m.exec_id)
        .int128("fee", m.fee)
        .number("venue_received_ns", m.venue_received_ns)
        .number("venue_sent_ns", m.venue_sent_ns)
        .bytes("fee_currency", &m.fee_currency.0)
        .code("liquidity", m.liquidity())
        .bytes("reserved", &m.reserved)
        .bytes("text", &m.text)
        .ends(m.as_bytes())
}

fn order_extension(dice: &mut ValueSource) -> ExpectedMessage {
    let m: OrderExtension = dice.message();
    ExpectedText::of(Kind::OrderExtension)
        .number("order_id", m.order_id)
        .number("client_order_id", m.client_order_id)
        .number("expire_ns", m.expire_ns)
        .number("account", m.account)
        .bytes("text_id", &m.text_id.0)
        .ends(m.as_bytes())
}

fn order(line: ExpectedText, m: &NewOrder) -> ExpectedText {
    line.number("client_order_id", m.client_order_id)
        .price("price", m.price)
        .quantity("quantity", m.quantity)
        .number("cause", m.cause)
        .number("symbol", m.symbol)
        .number("account", m.account)
        .code("side", Side::from_code(m.side))
        .code("order_type", OrderType::from_code(m.order_type))
        .code("time_in_force", TimeInForce::from_code(m.time_in_force))
        .code("position_effect", PositionEffect::from_code(m.position_effect))
        .number("instructions", m.instructions)
        .code("self_trade_mode", SelfTradeMode::from_code(m.self_trade_mode))
        .code("trade_mode", TradeMode::from_code(m.trade_mode))
        .number("reserved", m.reserved)
}

fn trigger(line: ExpectedText, m: &Trigger) -> ExpectedText {
    condition(condition(line, "first", &m.first), "second", &m.second)
        .code("join", TriggerJoin::from_code(m.join))
        .bytes("trigger", &m.reserved)
}

fn condition(line: ExpectedText, name: &str, m: &Condition) -> ExpectedText {
    line.price(&format!("{name}.price"), m.price)
        .number(&format!("{name}.symbol"), m.symbol)
        .code(&format!("{name}.price_type"), TriggerPriceType::from_code(m.price_type))
        .code(&format!("{name}.direction"), TriggerDirection::from_code(m.direction))
        .bytes(name, &m.reserved)
}

/// Source of the values.
struct ValueSource {
    runner: TestRunner,
    /// Value of all numbers, if set.
    extreme: Option<u64>,
}

impl ValueSource {
    /// Draws a message: any bytes are valid, except for its codes.
    fn message<M: FromBytes + IntoBytes>(&mut self) -> M {
        let mut message = M::new_zeroed();
        for chunk in message.as_mut_bytes().chunks_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        message
    }

    fn order(&mut self) -> NewOrder {
        NewOrder {
            side: self.code(Side::ALL, Side::code, ZERO),
            order_type: self.code(OrderType::ALL, OrderType::code, NULL),
            time_in_force: self.code(TimeInForce::ALL, TimeInForce::code, NULL),
            position_effect: self.code(PositionEffect::ALL, PositionEffect::code, NULL),
            self_trade_mode: self.code(SelfTradeMode::ALL, SelfTradeMode::code, NULL),
            trade_mode: self.code(TradeMode::ALL, TradeMode::code, NULL),
            ..self.message()
        }
    }

    fn trigger(&mut self) -> Trigger {
        let (first, second) = (self.condition(), self.condition());
        let join = self.code(TriggerJoin::ALL, TriggerJoin::code, NULL);
        Trigger { first, second, join, ..self.message() }
    }

    fn condition(&mut self) -> Condition {
        Condition {
            price_type: self.code(TriggerPriceType::ALL, TriggerPriceType::code, ZERO),
            direction: self.code(TriggerDirection::ALL, TriggerDirection::code, ZERO),
            ..self.message()
        }
    }

    /// Draws one of the codes, or null.
    fn code<C: Copy>(&mut self, all: &[C], code: fn(C) -> u8, none: u8) -> u8 {
        let index = self.draw(&(0..=all.len()));
        all.get(index).map_or(none, |&one| code(one))
    }

    fn word(&mut self) -> u64 {
        let words = prop_oneof![prop::sample::select(EXTREMES.to_vec()), any::<u64>()];
        self.extreme.unwrap_or_else(|| self.draw(&words))
    }

    fn draw<S: Strategy>(&mut self, from: &S) -> S::Value {
        from.new_tree(&mut self.runner).expect("it refuses no value").current()
    }
}

/// Expected output of a codec for a message.
struct ExpectedText {
    kind: Kind,
    text: String,
}

impl ExpectedText {
    fn of(kind: Kind) -> Self {
        Self { kind, text: format!("{kind:?}") }
    }

    fn number(mut self, name: &str, value: impl Display) -> Self {
        let _ = write!(self.text, " {name}={value}");
        self
    }

    fn price(self, name: &str, value: Price) -> Self {
        self.number(name, format_args!("{}e-{}", value.0, SCALE.ilog10()))
    }

    fn quantity(self, name: &str, value: Quantity) -> Self {
        self.number(name, format_args!("{}e-{}", value.0, SCALE.ilog10()))
    }

    /// Appends the upper half, signed, then the lower half.
    fn int128(self, name: &str, value: [u8; 16]) -> Self {
        let value = i128::from_le_bytes(value);
        self.number(name, format_args!("{}:{}", (value >> 64) as i64, value as u64))
    }

    fn code(self, name: &str, value: Option<impl Debug>) -> Self {
        match value {
            Some(value) => self.number(name, format_args!("{value:?}")),
            None => self.number(name, "none"),
        }
    }

    fn bytes(self, name: &str, value: &[u8]) -> Self {
        self.number(name, hex(value))
    }

    /// Ends the line with the bytes that the codec must write back.
    fn ends(mut self, block: &[u8]) -> ExpectedMessage {
        let length = u16::try_from(block.len()).expect("a message is short");
        let header = [length, u16::from(self.kind.code()), SCHEMA_ID, SCHEMA_VERSION];
        let mut bytes: Vec<u8> = header.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend_from_slice(block);
        let _ = write!(self.text, " {}", hex(&bytes));
        ExpectedMessage { bytes, line: self.text }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
