//! Order operations, as WebSocket and REST share them: each takes the fields of an order, and gives a row of an answer.

use serde_json::{Value, json};
use tickpath_venue_sim_web::{DeskRefusal, OrderName};

use crate::codes::{
    AMEND_BALANCE, AMEND_POST_ONLY, BELOW_MINIMUM, INVALID_ARGUMENTS, NO_ORDER_ID, NOT_A_LOT, NOT_A_TICK, NOT_AMENDED,
    NOT_CANCELED, NOTHING_TO_AMEND, OkxCode, OkxRefusal, PARAMETER, RATE_LIMIT, SUSPENDED, TIMED_OUT,
};
use crate::fields::{is_true, ms_text, row, text_field};
use crate::instruments::{find_instrument, instrument_family};
use crate::limits::OrderOperation;
use crate::place_terms::{MAX_ID_BYTES, PlaceTerms, client_text, read_price, read_quantity};
use crate::trading_desk::{FailedAmend, TradingDesk};

/// Max orders of a batch.
pub(crate) const MAX_BATCH: usize = 20;
/// OKX's code of a mass cancellation.
const MASS_CANCELED: &str = "38";
/// Text of an order that was placed.
const PLACED: &str = "Order successfully placed.";

/// The caller of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderCaller {
    /// Index of the account.
    pub(crate) account: usize,
    pub(crate) now_ns: u64,
    /// The request has several orders.
    pub(crate) is_batch: bool,
}

/// Answer about an order.
#[derive(Debug)]
pub(crate) struct OrderReply {
    client_id: String,
    order_id: String,
    /// Tag of a new order.
    tag: Option<String>,
    /// Client's id of an amendment.
    request_id: Option<String>,
    created_ns: u64,
    /// Text of the success, or the refusal.
    pub(crate) outcome: Result<&'static str, OkxRefusal>,
}

/// Applies an operation to each order of a request.
pub(crate) fn operate(
    desk: &mut TradingDesk,
    caller: OrderCaller,
    operation: OrderOperation,
    orders: &[Value],
) -> Vec<OrderReply> {
    let of = |order: &Value| match operation {
        OrderOperation::Place => place(desk, &caller, order),
        OrderOperation::Amend => amend(desk, &caller, order),
        OrderOperation::Cancel => cancel(desk, &caller, order),
    };
    orders.iter().map(of).collect()
}

/// Returns OKX's code of an answer with these rows: all succeeded, all failed, or some.
pub(crate) fn summary_code(replies: &[OrderReply]) -> &'static str {
    let succeeded = replies.iter().filter(|reply| reply.outcome.is_ok()).count();
    match succeeded {
        all if all == replies.len() => "0",
        0 => "1",
        _ => "2",
    }
}

/// Cancels the orders of a family of derivatives.
pub(crate) fn mass_cancel(desk: &mut TradingDesk, caller: &OrderCaller, request: &Value) -> Result<Value, OkxRefusal> {
    let family = text_field(request, "instFamily").ok_or_else(|| INVALID_ARGUMENTS.refusal())?;
    let kind = text_field(request, "instType").ok_or_else(|| INVALID_ARGUMENTS.refusal())?;
    if !["OPTION", "FUTURES", "SWAP"].contains(&kind.as_str()) {
        return Err(INVALID_ARGUMENTS.refusal());
    }
    desk.cancel_orders(caller.now_ns, caller.account, MASS_CANCELED, |desk, order| {
        instrument_family(&desk.sim.instruments()[order.instrument]) == family
    });
    Ok(json!([{"result": true}]))
}

impl OrderReply {
    /// Returns the row of the answer.
    pub(crate) fn row(&self) -> Value {
        let (number, text, sub_code) = match &self.outcome {
            Ok(text) => ("0", *text, ""),
            Err(refusal) => (refusal.code.number, refusal.text.as_str(), refusal.code.sub_code),
        };
        let mut row = row([
            ("clOrdId", &self.client_id),
            ("ordId", &self.order_id),
            ("ts", &ms_text(self.created_ns)),
            ("sCode", number),
            ("sMsg", text),
            ("subCode", sub_code),
        ]);
        for (name, text) in [("tag", &self.tag), ("reqId", &self.request_id)] {
            if let Some(text) = text {
                row.insert(name.to_owned(), json!(text));
            }
        }
        Value::Object(row)
    }
}

fn place(desk: &mut TradingDesk, caller: &OrderCaller, request: &Value) -> OrderReply {
    let placed = try_place(desk, caller, request);
    let of = |name| text_field(request, name).unwrap_or_default();
    OrderReply {
        client_id: of("clOrdId"),
        order_id: placed.as_ref().map(u64::to_string).unwrap_or_default(),
        tag: Some(of("tag")),
        request_id: None,
        created_ns: caller.now_ns,
        outcome: placed.map(|_| PLACED),
    }
}

fn try_place(desk: &mut TradingDesk, caller: &OrderCaller, request: &Value) -> Result<u64, OkxRefusal> {
    let index = find_instrument(&desk.sim, request)?;
    admit(desk, caller, index, OrderOperation::Place)?;
    let terms = PlaceTerms::read(request, &desk.sim, index)?;
    let is_ambiguous = desk.dice.happens(desk.faults.ambiguous);
    if is_ambiguous && !desk.faults.ambiguous_placed {
        return Err(TIMED_OUT.refusal());
    }
    let placed = desk.enter(caller.now_ns, caller.account, index, terms);
    if is_ambiguous { Err(TIMED_OUT.refusal()) } else { placed }
}

fn amend(desk: &mut TradingDesk, caller: &OrderCaller, request: &Value) -> OrderReply {
    let amended = try_amend(desk, caller, request);
    let of = |name| text_field(request, name).unwrap_or_default();
    if amended.is_err() && is_true(request, "cxlOnFail") {
        // The answer is about the amendment alone.
        let _ = try_cancel(desk, caller, request);
    }
    reply(desk, caller, request, Some(of("reqId")), amended)
}

fn try_amend(desk: &mut TradingDesk, caller: &OrderCaller, request: &Value) -> Result<(), OkxRefusal> {
    let index = find_instrument(&desk.sim, request)?;
    admit(desk, caller, index, OrderOperation::Amend)?;
    let id = find_order(desk, caller, request)?.ok_or_else(|| NOT_AMENDED.refusal())?;
    let request_id = client_text(request, "reqId", MAX_ID_BYTES)?;
    let price = text_field(request, "newPx").map(|text| read_price(&text, "newPx")).transpose()?;
    let total = text_field(request, "newSz").map(|text| read_quantity(&text, "newSz")).transpose()?;
    if price.is_none() && total.is_none() {
        return Err(NOTHING_TO_AMEND.refusal());
    }
    let is_open = desk.records.get(id).is_some_and(|record| record.order.is_open());
    if is_open && desk.dice.happens(desk.faults.amend_fails_later) {
        let cancels = is_true(request, "cxlOnFail");
        desk.failed_amends.push(FailedAmend { order: id, request_id, cancels });
        return Ok(());
    }
    if let Some(record) = desk.records.get_mut(id) {
        record.request_id = request_id;
    }
    let amended = desk.sim.amend(caller.now_ns, caller.account, OrderName::Exchange(id), price, total);
    amended.map(|_| ()).map_err(|reason| amend_code(reason).refusal())
}

fn cancel(desk: &mut TradingDesk, caller: &OrderCaller, request: &Value) -> OrderReply {
    let canceled = try_cancel_counted(desk, caller, request);
    reply(desk, caller, request, None, canceled)
}

fn try_cancel_counted(desk: &mut TradingDesk, caller: &OrderCaller, request: &Value) -> Result<(), OkxRefusal> {
    let index = find_instrument(&desk.sim, request)?;
    admit(desk, caller, index, OrderOperation::Cancel)?;
    try_cancel(desk, caller, request)
}

fn try_cancel(desk: &mut TradingDesk, caller: &OrderCaller, request: &Value) -> Result<(), OkxRefusal> {
    let id = find_order(desk, caller, request)?.ok_or_else(|| NOT_CANCELED.refusal())?;
    let canceled = desk.sim.cancel(caller.now_ns, caller.account, OrderName::Exchange(id));
    canceled.map(|_| ()).map_err(|_| NOT_CANCELED.refusal())
}

/// Counts a request, and refuses those beyond the limits.
fn admit(
    desk: &mut TradingDesk,
    caller: &OrderCaller,
    index: usize,
    operation: OrderOperation,
) -> Result<(), OkxRefusal> {
    if desk.dice.happens(desk.faults.rate_limited) {
        return Err(RATE_LIMIT.refusal());
    }
    let counted = desk.limits.count(caller.now_ns, (caller.account, index), operation, caller.is_batch);
    counted.map_err(OkxCode::refusal)
}

/// Returns the id of the order that a request names, by `ordId` or by `clOrdId`; none if the account has no such order.
fn find_order(desk: &TradingDesk, caller: &OrderCaller, request: &Value) -> Result<Option<u64>, OkxRefusal> {
    match (text_field(request, "ordId"), text_field(request, "clOrdId")) {
        (Some(id), _) => {
            let id: u64 = id.parse().map_err(|_| PARAMETER.about("ordId"))?;
            let record = desk.records.get(id).filter(|record| record.order.account == caller.account);
            Ok(record.map(|record| record.order.id))
        }
        (None, Some(client_id)) => Ok(desk.records.find_client_id(caller.account, &client_id)),
        (None, None) => Err(NO_ORDER_ID.refusal()),
    }
}

/// Returns the answer about an order that exists or not.
fn reply(
    desk: &TradingDesk,
    caller: &OrderCaller,
    request: &Value,
    request_id: Option<String>,
    done: Result<(), OkxRefusal>,
) -> OrderReply {
    let found = find_order(desk, caller, request).ok().flatten();
    let record = found.and_then(|id| desk.records.get(id));
    let of = |name| text_field(request, name).unwrap_or_default();
    OrderReply {
        client_id: record.map_or_else(|| of("clOrdId"), |record| record.order.client_id.clone()),
        order_id: record.map_or_else(|| of("ordId"), |record| record.order.id.to_string()),
        tag: None,
        request_id,
        created_ns: record.map_or(caller.now_ns, |record| record.order.created_ns),
        outcome: done.map(|()| ""),
    }
}

fn amend_code(reason: DeskRefusal) -> OkxCode {
    match reason {
        DeskRefusal::InsufficientBalance => AMEND_BALANCE,
        DeskRefusal::Tick => NOT_A_TICK,
        DeskRefusal::Lot => NOT_A_LOT,
        DeskRefusal::Minimum => BELOW_MINIMUM,
        DeskRefusal::Suspended => SUSPENDED,
        DeskRefusal::PostOnlyWouldTrade => AMEND_POST_ONLY,
        DeskRefusal::UnknownInstrument
        | DeskRefusal::DuplicateClientId
        | DeskRefusal::UnknownOrder
        | DeskRefusal::OrderEnded
        | DeskRefusal::ReduceOnly
        | DeskRefusal::FokUnfillable
        | DeskRefusal::Other(_) => NOT_AMENDED,
    }
}
