//! Reports and their details, from OKX's rows and answers. OKX does not count the events of an order: the sequence of
//! each report is zero.

use tickpath_market::{
    AccountId, ClientOrderId, Currency, ExecId, ExecType, ExecutionReport, Liquidity, OrdStatus, OrderId, Quantity,
    ReportDetail, SymbolId, VenueId, VenueOrderId,
};

use crate::order_update::{OrderFill, OrderUpdate};
use crate::outstanding::SentRequest;

/// Names of an order in its reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderIdentity {
    pub order: u64,
    pub symbol: SymbolId,
    pub account: AccountId,
    /// Code of the side; zero if unknown.
    pub side: u8,
}

/// Returns the report of an order as a row has it.
pub(crate) fn update_report(
    venue: VenueId,
    symbol: SymbolId,
    update: &OrderUpdate,
    exec_type: ExecType,
) -> ExecutionReport {
    let identity = OrderIdentity { order: update.order, symbol, account: update.account, side: update.side.code() };
    ExecutionReport {
        venue_order_id: VenueOrderId(update.venue_id),
        cumulative_quantity: update.cumulative,
        leaves_quantity: update.leaves(),
        price: update.price,
        ..bare_report(venue, identity, exec_type, update.status())
    }
}

/// Returns a report with an order's names alone.
pub(crate) fn bare_report(
    venue: VenueId,
    identity: OrderIdentity,
    exec_type: ExecType,
    status: OrdStatus,
) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(identity.order),
        symbol: identity.symbol,
        account: identity.account,
        side: identity.side,
        venue,
        exec_type: exec_type.code(),
        status: status.code(),
        ..ExecutionReport::default()
    }
}

/// Returns the report of a fill, from a report of its order. A total of zero is unknown.
pub(crate) fn fill_report(order: ExecutionReport, fill: &OrderFill, total: Quantity) -> ExecutionReport {
    let is_filled = total.0 > 0 && order.cumulative_quantity >= total;
    let status = if is_filled { OrdStatus::Filled } else { OrdStatus::PartiallyFilled };
    ExecutionReport {
        exec_id: fill.execution,
        last_price: fill.price,
        last_quantity: fill.quantity,
        leaves_quantity: Quantity((total.0 - order.cumulative_quantity.0).max(0)),
        exec_type: ExecType::Trade.code(),
        status: status.code(),
        ..order
    }
}

/// Returns the detail of a fill. It has the time of the fill alone, on which the orders channel and REST agree, so that
/// a repeated detail is the same.
pub(crate) fn fill_detail(order: u64, fill: &OrderFill) -> ReportDetail {
    ReportDetail {
        exec_id: fill.execution,
        fee: fill.fee.to_le_bytes(),
        venue_received_ns: fill.at_ns,
        fee_currency: fill.fee_currency,
        liquidity: fill.liquidity.code(),
        ..text_detail(order, "", [0, 0])
    }
}

/// Returns a detail with OKX's text, and the times at which OKX had the request and sent its answer.
pub(crate) fn text_detail(order: u64, text: &str, [received_ns, sent_ns]: [u64; 2]) -> ReportDetail {
    ReportDetail {
        order_id: OrderId(order),
        exec_id: ExecId(0),
        fee: [0; 16],
        venue_received_ns: received_ns,
        venue_sent_ns: sent_ns,
        fee_currency: Currency::default(),
        liquidity: Liquidity::Unknown.code(),
        reserved: [0; 3],
        text: fixed_text(text),
    }
}

impl SentRequest {
    /// Returns the names of the request's order.
    pub fn identity(&self) -> OrderIdentity {
        let Self { order, symbol, account, side, .. } = *self;
        OrderIdentity { order, symbol, account, side }
    }
}

/// Adds the request that a report answers, and its reason.
pub(crate) fn answering(report: ExecutionReport, request: u64, reason: u16) -> ExecutionReport {
    ExecutionReport { client_order_id: ClientOrderId(request), reason, ..report }
}

/// Returns the begin of a text in 64 bytes, without control characters.
fn fixed_text(text: &str) -> [u8; 64] {
    let (mut bytes, mut end) = ([0; 64], 0);
    for c in text.chars() {
        let c = if c.is_control() { ' ' } else { c };
        let Some(room) = bytes.get_mut(end..end + c.len_utf8()) else { break };
        c.encode_utf8(room);
        end += c.len_utf8();
    }
    bytes
}
