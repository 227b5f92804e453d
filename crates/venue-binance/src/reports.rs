//! Reports of orders, and their details. The exchange counts no events, so each report has the sequence zero.

use tickpath_market::{
    AccountId, ClientOrderId, Currency, ExecId, ExecType, ExecutionReport, Liquidity, OrdStatus, OrderId, Price,
    Quantity, ReportDetail, Side, SymbolId, VenueOrderId,
};
use tickpath_venue::TOO_LATE;

use crate::identity::OrderIdentity;
use crate::message::{OrderEvent, OrderRecord, OrderState, TradeRecord};
use crate::orders::{LineOrder, LineOrders, insert_new};

/// Bytes of the text in a detail.
const TEXT_BYTES: usize = 64;
const MS_NS: u64 = 1_000_000;
/// Units of a fee in a detail for a unit of 10⁻⁸.
const FEE_UNITS: i128 = 100_000_000;

/// State of an order that a report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderSnapshot {
    pub(crate) identity: OrderIdentity,
    /// Place of the instrument.
    pub(crate) instrument: usize,
    pub(crate) side: Side,
    pub(crate) venue_id: u64,
    pub(crate) price: i64,
    /// Filled and open quantity of the generation.
    pub(crate) executed: i64,
    pub(crate) leaves: i64,
    pub(crate) state: OrderState,
}

/// A fill, with the state of its order after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderFill {
    pub(crate) after: OrderSnapshot,
    pub(crate) trade_id: u64,
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    /// Units of 10⁻⁸.
    pub(crate) fee: i64,
    pub(crate) fee_currency: Currency,
    pub(crate) is_maker: bool,
    pub(crate) transact_ms: u64,
    /// Time of the event; zero in an answer.
    pub(crate) event_ms: u64,
}

/// A request and its order as a refusal names them, whether or not the exchange knows the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RefusedRequest {
    pub(crate) order: u64,
    pub(crate) request: u64,
    pub(crate) symbol: SymbolId,
    pub(crate) account: AccountId,
}

impl OrderSnapshot {
    /// Returns the state that an event shows.
    #[inline]
    pub(crate) fn of_event(
        event: &OrderEvent<'_>,
        state: OrderState,
        identity: OrderIdentity,
        instrument: usize,
    ) -> Self {
        let open = event.terms.quantity.saturating_sub(event.cumulative).saturating_sub(event.prevented);
        Self {
            identity,
            instrument,
            side: event.terms.side,
            venue_id: event.order_id,
            price: event.terms.price,
            executed: event.cumulative,
            leaves: if state.is_working() { open.max(0) } else { 0 },
            state,
        }
    }

    /// Returns the state of an order in an answer.
    pub(crate) fn of_record(
        record: &OrderRecord,
        state: OrderState,
        identity: OrderIdentity,
        instrument: usize,
    ) -> Self {
        let open = record.terms.quantity.saturating_sub(record.executed).saturating_sub(record.prevented);
        Self {
            identity,
            instrument,
            side: record.terms.side,
            venue_id: record.order_id,
            price: record.terms.price,
            executed: record.executed,
            leaves: if state.is_working() { open.max(0) } else { 0 },
            state,
        }
    }

    /// Returns the state of a known order as far as its events were passed on.
    pub(crate) fn of_order(order: &LineOrder, state: OrderState) -> Self {
        let open = order.terms.quantity.saturating_sub(order.filled);
        Self {
            identity: order.identity,
            instrument: order.instrument,
            side: order.terms.side,
            venue_id: order.venue_id,
            price: order.terms.price,
            executed: order.filled,
            leaves: if state.is_working() { open.max(0) } else { 0 },
            state,
        }
    }

    /// Returns the filled quantity of all generations.
    pub(crate) fn cumulative(&self) -> i64 {
        self.identity.base.saturating_add(self.executed)
    }

    fn status(&self) -> OrdStatus {
        match self.state {
            OrderState::Working if self.cumulative() > 0 => OrdStatus::PartiallyFilled,
            OrderState::Working => OrdStatus::New,
            OrderState::Filled => OrdStatus::Filled,
            OrderState::Canceled => OrdStatus::Canceled,
            OrderState::Expired => OrdStatus::Expired,
            OrderState::Rejected => OrdStatus::Rejected,
        }
    }
}

impl OrderFill {
    /// Returns the fill of a trade in an answer, after which `executed` of the generation is filled.
    pub(crate) fn of_trade(trade: &TradeRecord, record: OrderSnapshot, executed: i64, quantity: i64) -> Self {
        let leaves = quantity.saturating_sub(executed).max(0);
        let state = if leaves == 0 { OrderState::Filled } else { OrderState::Working };
        Self {
            after: OrderSnapshot { executed, leaves, state, ..record },
            trade_id: trade.id,
            price: trade.price,
            quantity: trade.quantity,
            fee: trade.fee,
            fee_currency: trade.fee_currency,
            is_maker: trade.is_maker,
            transact_ms: trade.time_ms,
            event_ms: 0,
        }
    }
}

impl LineOrders {
    /// Returns a report of an order in this state; `request` is the request that it answers, zero for none.
    #[inline]
    pub(crate) fn report(&self, snapshot: &OrderSnapshot, exec_type: ExecType, request: u64) -> ExecutionReport {
        ExecutionReport {
            venue_order_id: VenueOrderId(snapshot.venue_id),
            cumulative_quantity: Quantity(snapshot.cumulative()),
            leaves_quantity: Quantity(snapshot.leaves),
            price: Price(snapshot.price),
            status: snapshot.status().code(),
            side: snapshot.side.code(),
            ..self.bare_report(&snapshot.identity, snapshot.instrument, exec_type, request)
        }
    }

    /// Adds the report of a fill with its detail. A fill that was passed on is left out, unless it may be repeated.
    pub(crate) fn push_fill(&mut self, fill: &OrderFill, request: u64, may_repeat: bool) {
        let OrderSnapshot { identity, instrument, side, venue_id, .. } = fill.after;
        let Some(exec_id) = self.instruments.exec_id(instrument, fill.trade_id, side) else {
            let name = format!("trade {}", fill.trade_id);
            return self.push_unreadable(&identity, instrument, &name, "its id is too large for this line");
        };
        if let Some(order) = self.get_mut(identity.order) {
            if insert_new(&mut order.fills, exec_id.0) {
                order.add_filled(&identity, venue_id, fill.quantity);
            } else if !may_repeat {
                return;
            }
        }
        let report = ExecutionReport {
            exec_id,
            last_price: Price(fill.price),
            last_quantity: Quantity(fill.quantity),
            ..self.report(&fill.after, ExecType::Trade, request)
        };
        self.outbox.report(report);
        let liquidity = if fill.is_maker { Liquidity::Maker } else { Liquidity::Taker };
        self.outbox.detail(ReportDetail {
            exec_id,
            fee: (i128::from(fill.fee) * FEE_UNITS).to_le_bytes(),
            fee_currency: fill.fee_currency,
            liquidity: liquidity.code(),
            ..detail(identity.order, (fill.transact_ms, fill.event_ms), "")
        });
    }

    /// Puts an order in doubt of which an event or a fill cannot be read, once for each; the detail has the reason.
    #[cold]
    pub(crate) fn push_unreadable(&mut self, identity: &OrderIdentity, instrument: usize, name: &str, why: &str) {
        if let Some(order) = self.get_mut(identity.order) {
            if order.unreadable.iter().any(|known| known == name) {
                return;
            }
            order.unreadable.push(name.to_owned());
        }
        let report = self.doubt(identity, instrument);
        self.outbox.lasting(report, detail(identity.order, (0, 0), &format!("{name}: {why}")));
    }

    /// Puts an order in doubt: the OMS then asks for it.
    pub(crate) fn push_doubt(&mut self, identity: &OrderIdentity, instrument: usize) {
        let report = self.doubt(identity, instrument);
        self.outbox.report(report);
    }

    fn doubt(&self, identity: &OrderIdentity, instrument: usize) -> ExecutionReport {
        let report = self.bare_report(identity, instrument, ExecType::OrderStatus, 0);
        ExecutionReport { status: OrdStatus::Unknown.code(), ..report }
    }

    /// Puts the order of a request in doubt, whether it is known or not.
    pub(crate) fn push_doubt_of(&mut self, asked: &RefusedRequest) {
        let report = self.refusal(asked, ExecType::OrderStatus);
        let (status, client_order_id) = (OrdStatus::Unknown.code(), ClientOrderId(0));
        self.outbox.report(ExecutionReport { status, client_order_id, ..report });
    }

    /// Adds the refusal of a cancel or a replace, with its reason as text.
    pub(crate) fn push_cancel_rejected(&mut self, refused: &RefusedRequest, reason: u16, text: &str) {
        let known = self.get(refused.order).filter(|order| !order.has_ended);
        let report = match known.map(|order| OrderSnapshot::of_order(order, OrderState::Working)) {
            Some(snapshot) => self.report(&snapshot, ExecType::CancelRejected, refused.request),
            None => self.refusal(refused, ExecType::CancelRejected),
        };
        self.outbox.report(ExecutionReport { reason, ..report });
        self.outbox.detail(detail(refused.order, (0, 0), text));
    }

    /// Refuses a cancel or a replace of an order that has ended.
    pub(crate) fn push_too_late(&mut self, order: u64, request: u64) {
        let Some(known) = self.get(order) else { return };
        let symbol = self.instruments.get(known.instrument).symbol;
        let refused = RefusedRequest { order, request, symbol, account: known.identity.account };
        self.push_cancel_rejected(&refused, TOO_LATE, "the order has ended");
    }

    /// Returns the refusal of a request whose order is not known, or has ended.
    pub(crate) fn refusal(&self, refused: &RefusedRequest, exec_type: ExecType) -> ExecutionReport {
        ExecutionReport {
            order_id: OrderId(refused.order),
            client_order_id: ClientOrderId(refused.request),
            symbol: refused.symbol,
            account: refused.account,
            venue: self.venue,
            exec_type: exec_type.code(),
            status: OrdStatus::Rejected.code(),
            ..ExecutionReport::default()
        }
    }

    fn bare_report(
        &self,
        identity: &OrderIdentity,
        instrument: usize,
        exec_type: ExecType,
        request: u64,
    ) -> ExecutionReport {
        ExecutionReport {
            order_id: OrderId(identity.order),
            client_order_id: ClientOrderId(request),
            symbol: self.instruments.get(instrument).symbol,
            account: identity.account,
            venue: self.venue,
            exec_type: exec_type.code(),
            ..ExecutionReport::default()
        }
    }
}

/// Returns the detail of a report that is no fill; the times are those of the transaction and of the event, in
/// milliseconds since the Unix epoch.
pub(crate) fn detail(order: u64, (transact_ms, event_ms): (u64, u64), text: &str) -> ReportDetail {
    let mut bytes = [0; TEXT_BYTES];
    let text = &text[..text.floor_char_boundary(TEXT_BYTES)];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    ReportDetail {
        order_id: OrderId(order),
        exec_id: ExecId(0),
        fee: [0; 16],
        venue_received_ns: transact_ms.saturating_mul(MS_NS),
        venue_sent_ns: event_ms.saturating_mul(MS_NS),
        fee_currency: Currency::default(),
        liquidity: Liquidity::Unknown.code(),
        reserved: [0; 3],
        text: bytes,
    }
}
