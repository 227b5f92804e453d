//! Requests as JSON, in a buffer that is used again.
//!
//! ```text
//!   {"id":"7","op":"order","expTime":"1597026383085","args":[{"instIdCode":123456,"tdMode":"cash","side":"buy",
//!       "ordType":"limit","px":"61800.25","sz":"0.5","clOrdId":"tp…"}]}
//!   {"id":"8","op":"amend-order","expTime":"1597026383085","args":[{"instIdCode":123456,"clOrdId":"tp…",
//!       "reqId":"0000000000000009","newSz":"0.4","newPx":"61800"}]}
//!   {"id":"9","op":"cancel-order","args":[{"instIdCode":123456,"clOrdId":"tp…"}]}
//! ```

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, NewOrder, OrderType, ReplaceOrder, Request, SelfTradeMode, Side,
    TimeInForce, TradeMode, push_decimal, push_unsigned,
};

use crate::order_naming::{OrderNaming, push_request};
use crate::reasons::{NO_MULTIPLE, NOT_SUPPORTED};
use crate::traded_instruments::TradedInstrument;

/// Room of the buffer from the begin on, in bytes: the longest request of OKX's longest names fits.
const ROOM: usize = 512;

/// Refusal of a request that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalRefusal {
    pub reason: u16,
    /// Text for the report's detail, 64 bytes at most.
    pub text: &'static str,
}

/// The quantity is no size of OKX.
const BETWEEN_LOTS: LocalRefusal =
    LocalRefusal { reason: NO_MULTIPLE, text: "the quantity is no whole multiple of the lot; round it" };
/// OKX has no such combination.
const NO_SUCH_TYPE: LocalRefusal =
    LocalRefusal { reason: NOT_SUPPORTED, text: "OKX has no order of this type, time in force and post-only" };
const NOT_AT_OKX: LocalRefusal =
    LocalRefusal { reason: NOT_SUPPORTED, text: "the line to OKX cannot send this kind of request" };

/// Writer of requests.
#[derive(Debug)]
pub(crate) struct RequestWriter {
    text: String,
    naming: OrderNaming,
}

impl Default for RequestWriter {
    fn default() -> Self {
        Self { text: String::with_capacity(ROOM), naming: OrderNaming::default() }
    }
}

impl RequestWriter {
    /// Sets the names of the orders.
    pub fn set_naming(&mut self, naming: OrderNaming) {
        self.naming = naming;
    }

    /// Returns the request that was written last.
    #[inline]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes a request. OKX drops a new order and an amendment that arrive after `expires_ms`.
    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    pub fn write(
        &mut self,
        number: u64,
        request: &Request,
        instrument: &TradedInstrument,
        expires_ms: u64,
    ) -> Result<(), LocalRefusal> {
        match request {
            Request::New(new) => self.write_new(number, new, instrument, expires_ms),
            Request::Replace(replace) => self.write_replace(number, replace, instrument, expires_ms),
            Request::Cancel(cancel) => {
                self.write_cancel(number, cancel, instrument);
                Ok(())
            }
            Request::Conditional(_)
            | Request::ReplaceConditional(_)
            | Request::MassCancel(_)
            | Request::Status(_)
            | Request::Extended(_)
            | Request::ByTextId(_) => Err(NOT_AT_OKX),
        }
    }

    /// Writes a new order.
    #[inline]
    fn write_new(
        &mut self,
        number: u64,
        new: &NewOrder,
        instrument: &TradedInstrument,
        expires_ms: u64,
    ) -> Result<(), LocalRefusal> {
        let order_type = order_type(new).ok_or(NO_SUCH_TYPE)?;
        let size = instrument.size_of(new.quantity).ok_or(BETWEEN_LOTS)?;
        let (is_market, is_buy) = (order_type == MARKET, new.side == Side::Buy.code());
        self.begin(number, r#"","op":"order""#, Some(expires_ms), instrument);
        self.text.push_str(trade_mode(new, instrument));
        self.text.push_str(if is_buy { r#","side":"buy""# } else { r#","side":"sell""# });
        self.text.push_str(order_type);
        if !is_market {
            self.decimal_field(r#","px":""#, new.price.0);
        }
        self.decimal_field(r#","sz":""#, size);
        self.order_field(new.account, new.client_order_id);
        if new.instructions & NewOrder::REDUCE_ONLY != 0 {
            self.text.push_str(r#","reduceOnly":true"#);
        }
        if is_market && is_buy && !instrument.is_derivative {
            self.text_field(r#","tgtCcy":""#, "base_ccy");
        }
        if let Some(mode) = self_trade_mode(new) {
            self.text_field(r#","stpMode":""#, mode);
        }
        self.text.push_str("}]}");
        Ok(())
    }

    /// Writes an amendment. OKX's new size is the total, as that of the request.
    #[inline]
    fn write_replace(
        &mut self,
        number: u64,
        replace: &ReplaceOrder,
        instrument: &TradedInstrument,
        expires_ms: u64,
    ) -> Result<(), LocalRefusal> {
        let size = instrument.size_of(replace.quantity).ok_or(BETWEEN_LOTS)?;
        self.begin(number, r#"","op":"amend-order""#, Some(expires_ms), instrument);
        self.order_field(replace.account, replace.original);
        self.text.push_str(r#","reqId":""#);
        push_request(&mut self.text, replace.client_order_id.0);
        self.text.push('"');
        self.decimal_field(r#","newSz":""#, size);
        self.decimal_field(r#","newPx":""#, replace.price.0);
        self.text.push_str("}]}");
        Ok(())
    }

    /// Writes a cancel.
    #[inline]
    fn write_cancel(&mut self, number: u64, cancel: &CancelOrder, instrument: &TradedInstrument) {
        self.begin(number, r#"","op":"cancel-order""#, None, instrument);
        self.order_field(cancel.account, cancel.original);
        self.text.push_str("}]}");
    }

    /// Writes the begin of a request, up to the instrument; the operation with its key.
    fn begin(&mut self, number: u64, operation: &str, expires_ms: Option<u64>, instrument: &TradedInstrument) {
        self.text.clear();
        self.text.push_str(r#"{"id":""#);
        push_unsigned(&mut self.text, number);
        self.text.push_str(operation);
        if let Some(expires_ms) = expires_ms {
            self.text.push_str(r#","expTime":""#);
            push_unsigned(&mut self.text, expires_ms);
            self.text.push('"');
        }
        if instrument.code == 0 {
            self.text_field(r#","args":[{"instId":""#, &instrument.name);
        } else {
            self.text.push_str(r#","args":[{"instIdCode":"#);
            push_unsigned(&mut self.text, instrument.code);
        }
    }

    /// Writes a field: its key as far as the quote before its value, the value, and a quote.
    #[inline]
    fn text_field(&mut self, key: &str, value: &str) {
        self.text.push_str(key);
        self.text.push_str(value);
        self.text.push('"');
    }

    #[inline]
    fn decimal_field(&mut self, key: &str, units: i64) {
        self.text.push_str(key);
        push_decimal(&mut self.text, units);
        self.text.push('"');
    }

    #[inline]
    fn order_field(&mut self, account: AccountId, order: ClientOrderId) {
        self.text.push_str(r#","clOrdId":""#);
        self.naming.push_order(&mut self.text, account, order.0);
        self.text.push('"');
    }
}

const MARKET: &str = r#","ordType":"market""#;

/// Returns OKX's type of an order, with its key; none if it has no such combination. OKX has no day: an order for the day works until
/// it is canceled.
fn order_type(new: &NewOrder) -> Option<&'static str> {
    let is_post_only = new.instructions & NewOrder::POST_ONLY != 0;
    let (order_type, lifetime) = (OrderType::from_code(new.order_type)?, TimeInForce::from_code(new.time_in_force)?);
    match (order_type, lifetime, is_post_only) {
        (OrderType::Limit, TimeInForce::Day | TimeInForce::GoodTillCancel, false) => Some(r#","ordType":"limit""#),
        (OrderType::Limit, TimeInForce::Day | TimeInForce::GoodTillCancel, true) => Some(r#","ordType":"post_only""#),
        (OrderType::Limit, TimeInForce::ImmediateOrCancel, false) => Some(r#","ordType":"ioc""#),
        (OrderType::Limit, TimeInForce::FillOrKill, false) => Some(r#","ordType":"fok""#),
        (OrderType::Market, TimeInForce::Day | TimeInForce::GoodTillCancel | TimeInForce::ImmediateOrCancel, false) => {
            Some(MARKET)
        }
        (OrderType::Market, TimeInForce::FillOrKill, false) | (_, _, true) => None,
        // OKX has no end times: the OMS cancels a good-till-date order, and sends none as such.
        (_, TimeInForce::GoodTillDate, false) => None,
    }
}

/// Returns the trade mode, with its key.
fn trade_mode(new: &NewOrder, instrument: &TradedInstrument) -> &'static str {
    const CASH: &str = r#","tdMode":"cash""#;
    const CROSS: &str = r#","tdMode":"cross""#;
    match TradeMode::from_code(new.trade_mode) {
        Some(TradeMode::Cash) => CASH,
        Some(TradeMode::Cross) => CROSS,
        Some(TradeMode::Isolated) => r#","tdMode":"isolated""#,
        Some(TradeMode::Default) | None if instrument.is_derivative => CROSS,
        Some(TradeMode::Default) | None => CASH,
    }
}

fn self_trade_mode(new: &NewOrder) -> Option<&'static str> {
    match SelfTradeMode::from_code(new.self_trade_mode)? {
        SelfTradeMode::Default => None,
        SelfTradeMode::CancelMaker => Some("cancel_maker"),
        SelfTradeMode::CancelTaker => Some("cancel_taker"),
        SelfTradeMode::CancelBoth => Some("cancel_both"),
    }
}
