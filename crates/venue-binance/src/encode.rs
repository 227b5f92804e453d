//! Requests as the exchange reads them, written into a buffer that is used again: no allocation once it has grown.
//!
//! ```text
//!   {"id":7,"method":"order.place","params":{"newClientOrderId":"t…","newOrderRespType":"ACK",…,"timestamp":…}}
//! ```
//!
//! Parameters stand in the order of their names, because a signature covers them in this order: with a key that signs
//! each request, the API key comes first, and the signature last.

use tickpath_market::{push_decimal, push_unsigned};

use crate::json::{LIST_LIMIT, QUERY_PREFIX};
use crate::signer::RequestSigner;
use crate::terms::OrderTerms;

/// Id of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestId {
    /// Number of a request of the OMS.
    Number(u64),
    /// Number of a query of the line itself.
    Query(u64),
}

/// Name of an order in a request: the exchange's own id is found fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderRef<'a> {
    /// The exchange's id.
    Id(u64),
    /// The order's text.
    Text(&'a str),
}

/// Begin of a list of fills or orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFrom {
    /// Time in milliseconds since the Unix epoch.
    Time(u64),
    /// Id of a fill or an order.
    Id(u64),
}

/// An order to place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedOrder<'a> {
    pub(crate) symbol: &'a str,
    pub(crate) text: &'a str,
    pub(crate) terms: &'a OrderTerms,
}

/// Writer of requests.
pub(crate) struct RequestEncoder {
    signer: RequestSigner,
    recv_window_ms: u32,
    text: String,
    /// Parameters as a signature covers them.
    payload: String,
    is_signed: bool,
    has_params: bool,
}

impl RequestEncoder {
    pub(crate) fn new(signer: RequestSigner, recv_window_ms: u32) -> Self {
        let (text, payload) = (String::with_capacity(1024), String::with_capacity(1024));
        Self { signer, recv_window_ms, text, payload, is_signed: false, has_params: false }
    }

    /// Returns whether a connection is logged on once.
    pub(crate) fn has_session(&self) -> bool {
        self.signer.has_session()
    }

    /// Returns the last request.
    #[inline]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Writes a query of the exchange's time.
    pub(crate) fn time(&mut self, id: RequestId) {
        self.begin(id, "time", false);
        self.end();
    }

    /// Writes the logon of a session.
    pub(crate) fn logon(&mut self, id: RequestId, timestamp_ms: u64) {
        self.begin(id, "session.logon", true);
        self.window_param();
        self.number_param("timestamp", timestamp_ms);
        self.end();
    }

    /// Writes a query of the account.
    pub(crate) fn account(&mut self, id: RequestId, timestamp_ms: u64) {
        self.begin(id, "account.status", !self.has_session());
        self.window_param();
        self.number_param("timestamp", timestamp_ms);
        self.end();
    }

    /// Writes the subscription to user events.
    pub(crate) fn subscribe(&mut self, id: RequestId, timestamp_ms: u64) {
        if self.has_session() {
            self.begin(id, "userDataStream.subscribe", false);
        } else {
            self.begin(id, "userDataStream.subscribe.signature", true);
            self.window_param();
            self.number_param("timestamp", timestamp_ms);
        }
        self.end();
    }

    /// Writes a new order.
    #[inline]
    pub(crate) fn place(&mut self, id: RequestId, order: &PlacedOrder<'_>, timestamp_ms: u64) {
        self.begin(id, "order.place", !self.has_session());
        self.order_params(order, timestamp_ms);
        self.end();
    }

    /// Writes a cancel; `text` becomes the order's text.
    pub(crate) fn cancel(&mut self, id: RequestId, symbol: &str, order: OrderRef<'_>, text: &str, timestamp_ms: u64) {
        self.begin(id, "order.cancel", !self.has_session());
        self.text_param("newClientOrderId", text);
        self.order_param(order);
        self.window_param();
        self.text_param("symbol", symbol);
        self.number_param("timestamp", timestamp_ms);
        self.end();
    }

    /// Writes the cancel of an order without fills, whose text becomes `canceled`, and a new order instead of it.
    pub(crate) fn cancel_replace(
        &mut self,
        id: RequestId,
        order: OrderRef<'_>,
        canceled: &str,
        placed: &PlacedOrder<'_>,
        timestamp_ms: u64,
    ) {
        self.begin(id, "order.cancelReplace", !self.has_session());
        self.text_param("cancelNewClientOrderId", canceled);
        match order {
            OrderRef::Id(order_id) => self.number_param("cancelOrderId", order_id),
            OrderRef::Text(text) => self.text_param("cancelOrigClientOrderId", text),
        }
        self.text_param("cancelReplaceMode", "STOP_ON_FAILURE");
        self.text_param("cancelRestrictions", "ONLY_NEW");
        self.order_params(placed, timestamp_ms);
        self.end();
    }

    /// Writes a reduction of an order's quantity, which keeps its text and its place in the book.
    pub(crate) fn amend(
        &mut self,
        id: RequestId,
        symbol: &str,
        order: OrderRef<'_>,
        (text, quantity): (&str, i64),
        timestamp_ms: u64,
    ) {
        self.begin(id, "order.amend.keepPriority", !self.has_session());
        self.text_param("newClientOrderId", text);
        self.decimal_param("newQty", quantity);
        self.order_param(order);
        self.window_param();
        self.text_param("symbol", symbol);
        self.number_param("timestamp", timestamp_ms);
        self.end();
    }

    /// Writes a query of an order.
    pub(crate) fn status(&mut self, id: RequestId, symbol: &str, order: OrderRef<'_>, timestamp_ms: u64) {
        self.begin(id, "order.status", !self.has_session());
        self.order_param(order);
        self.window_param();
        self.text_param("symbol", symbol);
        self.number_param("timestamp", timestamp_ms);
        self.end();
    }

    /// Writes a query of the open orders of an instrument.
    pub(crate) fn open_orders(&mut self, id: RequestId, symbol: &str, timestamp_ms: u64) {
        self.begin(id, "openOrders.status", !self.has_session());
        self.window_param();
        self.text_param("symbol", symbol);
        self.number_param("timestamp", timestamp_ms);
        self.end();
    }

    /// Writes a query of the orders of an instrument, in the order of their ids.
    pub(crate) fn all_orders(&mut self, id: RequestId, symbol: &str, from: ListFrom, timestamp_ms: u64) {
        self.begin(id, "allOrders", !self.has_session());
        self.number_param("limit", LIST_LIMIT as u64);
        if let ListFrom::Id(order_id) = from {
            self.number_param("orderId", order_id);
        }
        self.window_param();
        if let ListFrom::Time(ms) = from {
            self.number_param("startTime", ms);
        }
        self.text_param("symbol", symbol);
        self.number_param("timestamp", timestamp_ms);
        self.end();
    }

    /// Writes a query of the fills of an instrument, in the order of their ids; of one order if it is named.
    pub(crate) fn trades(
        &mut self,
        id: RequestId,
        symbol: &str,
        order_id: Option<u64>,
        from: Option<ListFrom>,
        timestamp_ms: u64,
    ) {
        self.begin(id, "myTrades", !self.has_session());
        if let Some(ListFrom::Id(trade_id)) = from {
            self.number_param("fromId", trade_id);
        }
        self.number_param("limit", LIST_LIMIT as u64);
        if let Some(order_id) = order_id {
            self.number_param("orderId", order_id);
        }
        self.window_param();
        if let Some(ListFrom::Time(ms)) = from {
            self.number_param("startTime", ms);
        }
        self.text_param("symbol", symbol);
        self.number_param("timestamp", timestamp_ms);
        self.end();
    }

    /// Writes the parameters of a new order.
    #[inline]
    fn order_params(&mut self, order: &PlacedOrder<'_>, timestamp_ms: u64) {
        let terms = order.terms;
        self.text_param("newClientOrderId", order.text);
        self.text_param("newOrderRespType", "ACK");
        if terms.is_limit() {
            self.decimal_param("price", terms.price);
        }
        self.decimal_param("quantity", terms.quantity);
        self.window_param();
        if !terms.self_trade.is_empty() {
            self.text_param("selfTradePreventionMode", terms.self_trade);
        }
        self.text_param("side", terms.side_word());
        self.text_param("symbol", order.symbol);
        if !terms.time_in_force.is_empty() {
            self.text_param("timeInForce", terms.time_in_force);
        }
        self.number_param("timestamp", timestamp_ms);
        self.text_param("type", terms.order_type);
    }

    fn order_param(&mut self, order: OrderRef<'_>) {
        match order {
            OrderRef::Id(order_id) => self.number_param("orderId", order_id),
            OrderRef::Text(text) => self.text_param("origClientOrderId", text),
        }
    }

    fn window_param(&mut self) {
        self.number_param("recvWindow", self.recv_window_ms.into());
    }

    /// Begins a request; a signed one has the API key, whose name comes before all others.
    #[inline]
    fn begin(&mut self, id: RequestId, method: &str, is_signed: bool) {
        self.text.clear();
        self.payload.clear();
        (self.is_signed, self.has_params) = (is_signed, false);
        self.text.push_str("{\"id\":");
        match id {
            RequestId::Number(number) => push_unsigned(&mut self.text, number),
            RequestId::Query(number) => {
                self.text.push('"');
                self.text.push(QUERY_PREFIX);
                push_unsigned(&mut self.text, number);
                self.text.push('"');
            }
        }
        self.text.push_str(",\"method\":\"");
        self.text.push_str(method);
        self.text.push('"');
        if is_signed {
            self.name("apiKey");
            self.value(true, |signer, text| text.push_str(signer.api_key()));
        }
    }

    /// Ends a request, with its signature if it is signed.
    #[inline]
    fn end(&mut self) {
        if self.is_signed {
            self.text.push_str(",\"signature\":\"");
            self.signer.sign(&self.payload, &mut self.text);
            self.text.push('"');
        }
        self.text.push_str(if self.has_params { "}}" } else { "}" });
    }

    #[inline]
    fn text_param(&mut self, name: &str, value: &str) {
        self.name(name);
        self.value(true, |_, text| text.push_str(value));
    }

    #[inline]
    fn number_param(&mut self, name: &str, value: u64) {
        self.name(name);
        self.value(false, |_, text| push_unsigned(text, value));
    }

    #[inline]
    fn decimal_param(&mut self, name: &str, units: i64) {
        self.name(name);
        self.value(true, |_, text| push_decimal(text, units));
    }

    #[inline]
    fn name(&mut self, name: &str) {
        self.text.push_str(if self.has_params { ",\"" } else { ",\"params\":{\"" });
        self.text.push_str(name);
        self.text.push_str("\":");
        if self.is_signed {
            self.payload.push_str(if self.has_params { "&" } else { "" });
            self.payload.push_str(name);
            self.payload.push('=');
        }
        self.has_params = true;
    }

    #[inline]
    fn value(&mut self, is_text: bool, write: impl FnOnce(&RequestSigner, &mut String)) {
        let quote = if is_text { "\"" } else { "" };
        self.text.push_str(quote);
        let begin = self.text.len();
        write(&self.signer, &mut self.text);
        if self.is_signed {
            self.payload.push_str(&self.text[begin..]);
        }
        self.text.push_str(quote);
    }
}
