//! Orders and fills as rows of OKX: of the `orders` channel, and of REST.

use serde_json::{Value, json};
use tickpath_market::{OrderType, Price, Quantity, SCALE, Side, TimeInForce};
use tickpath_venue_sim_web::{DeskFill, DeskRefusal, DeskState, SimInstrument};

use crate::fields::{Row, amount_text, fill_row, ms_text, row, side_text};
use crate::instruments::{LEVERAGE, instrument_type};
use crate::positions::{notional, units};
use crate::records::OrderRecord;

/// Fields of both forms that are empty for our orders.
const EMPTY: &[&str] = &[
    "algoClOrdId",
    "algoId",
    "attachAlgoClOrdId",
    "pxType",
    "pxUsd",
    "pxVol",
    "quickMgnType",
    "slOrdPx",
    "slTriggerPx",
    "slTriggerPxType",
    "source",
    "stpId",
    "tpOrdPx",
    "tpTriggerPx",
    "tpTriggerPxType",
];
/// Fields of the channel that are empty for our orders.
const EMPTY_IN_PUSH: &[&str] = &["fillFwdPx", "fillIdxPx", "fillMarkPx", "fillMarkVol", "fillPxUsd", "fillPxVol"];
/// Fields of fills that are empty for ours.
const EMPTY_IN_FILL: &[&str] = &["fillFwdPx", "fillIdxPx", "fillMarkPx", "fillMarkVol", "fillPxUsd", "fillPxVol"];

/// Subject of a message of the `orders` channel, beside the order itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OrderChange<'a> {
    pub(crate) fill: Option<&'a DeskFill>,
    /// `amendResult`; empty if no amendment is the cause.
    pub(crate) amend_result: &'static str,
    /// Code and text of a failure.
    pub(crate) failure: Option<(&'static str, &'static str)>,
}

/// Returns OKX's name of an order's state.
pub(crate) fn state_text(state: DeskState) -> &'static str {
    match state {
        DeskState::Live => "live",
        DeskState::PartlyFilled => "partially_filled",
        DeskState::Filled => "filled",
        DeskState::Canceled => "canceled",
    }
}

/// Returns an order as the `orders` channel has it.
pub(crate) fn push_row(
    record: &OrderRecord,
    instrument: &SimInstrument,
    change: &OrderChange<'_>,
    last: Price,
) -> Value {
    let mut row = order_row(record, instrument);
    let is_amendment = !change.amend_result.is_empty();
    let (code, text) = change.failure.unwrap_or(("0", ""));
    let price = if record.order.price == Price::ZERO { last } else { record.order.price };
    row.extend(fill_fields(instrument, change.fill));
    row.extend(self::row([
        ("amendResult", change.amend_result),
        ("amendSource", if is_amendment { "1" } else { "" }),
        ("reqId", if is_amendment { record.request_id.as_str() } else { "" }),
        ("code", code),
        ("msg", text),
        ("lastPx", &last.to_string()),
        ("notionalUsd", &amount_text(notional(instrument, price, units(record.order.quantity)))),
    ]));
    if record.order.filled == Quantity::ZERO {
        row.insert("avgPx".to_owned(), json!("0"));
    }
    fill_row(&mut row, "", EMPTY_IN_PUSH);
    Value::Object(row)
}

/// Returns an order as REST has it.
pub(crate) fn rest_row(record: &OrderRecord, instrument: &SimInstrument) -> Value {
    let mut row = order_row(record, instrument);
    let last = record.last_fill.map(|fill| {
        [fill.price.to_string(), fill.quantity.to_string(), ms_text(fill.at_ns), fill.trade_id.to_string()]
    });
    let [price, quantity, time, trade_id] =
        last.unwrap_or_else(|| [String::new(), "0".to_owned(), String::new(), String::new()]);
    row.extend(self::row([
        ("fillPx", &price),
        ("fillSz", &quantity),
        ("fillTime", &time),
        ("tradeId", &trade_id),
        ("cancelSourceReason", ""),
    ]));
    Value::Object(row)
}

/// Returns a fill as REST has it. `number` counts the fills of the account.
pub(crate) fn rest_fill_row(
    fill: &DeskFill,
    record: Option<&OrderRecord>,
    instrument: &SimInstrument,
    number: u64,
) -> Value {
    let value = match fill.side {
        Side::Buy if !instrument.is_derivative => units(fill.quantity),
        _ => notional(instrument, fill.price, units(fill.quantity)),
    };
    let rate = i128::from(fill.fee) * i128::from(SCALE) / value.max(1);
    let is_derivative = instrument.is_derivative;
    let mut row: Row = row([
        ("instType", instrument_type(instrument)),
        ("instId", &instrument.name),
        ("tradeId", &fill.trade_id.to_string()),
        ("ordId", &fill.order.to_string()),
        ("clOrdId", record.map_or("", |record| record.order.client_id.as_str())),
        ("tag", record.map_or("", |record| record.note.tag.as_str())),
        ("billId", &number.to_string()),
        ("subType", if fill.side == Side::Buy { "1" } else { "2" }),
        ("fillPx", &fill.price.to_string()),
        ("fillSz", &fill.quantity.to_string()),
        ("fillPnl", "0"),
        ("side", side_text(fill.side)),
        ("posSide", "net"),
        ("execType", liquidity_text(fill)),
        ("feeCcy", &fill.fee_currency),
        ("fee", &amount_text(-i128::from(fill.fee))),
        ("feeRate", &if is_derivative { String::new() } else { amount_text(-rate) }),
        ("ts", &ms_text(fill.at_ns)),
        ("fillTime", &ms_text(fill.at_ns)),
        ("tradeQuoteCcy", if is_derivative { "" } else { instrument.quote.as_str() }),
    ]);
    fill_row(&mut row, "", EMPTY_IN_FILL);
    Value::Object(row)
}

/// Returns a fill as the `fills` channel has it, where only a number is a client's id.
pub(crate) fn push_fill_row(fill: &DeskFill, record: &OrderRecord, instrument: &SimInstrument) -> Value {
    let client_id = &record.order.client_id;
    let is_number = client_id.parse::<i64>().is_ok_and(|number| number > 0);
    Value::Object(row([
        ("instId", &instrument.name),
        ("fillSz", &fill.quantity.to_string()),
        ("fillPx", &fill.price.to_string()),
        ("side", side_text(fill.side)),
        ("ts", &ms_text(fill.at_ns)),
        ("ordId", &fill.order.to_string()),
        ("clOrdId", if is_number { client_id.as_str() } else { "0" }),
        ("tradeId", &fill.trade_id.to_string()),
        ("execType", liquidity_text(fill)),
        ("count", "1"),
    ]))
}

/// Returns the fields that both forms of an order share.
fn order_row(record: &OrderRecord, instrument: &SimInstrument) -> Row {
    let (order, note) = (&record.order, &record.note);
    let is_market = order.order_type == OrderType::Market;
    let or_empty = |is_there: bool, text: String| if is_there { text } else { String::new() };
    let is_derivative = instrument.is_derivative;
    let mut row = row([
        ("instType", instrument_type(instrument)),
        ("instId", &instrument.name),
        ("ordId", &order.id.to_string()),
        ("clOrdId", &order.client_id),
        ("tag", &note.tag),
        ("px", &or_empty(!is_market, order.price.to_string())),
        ("sz", &note.quote_quantity.clone().unwrap_or_else(|| order.quantity.to_string())),
        ("tgtCcy", &note.quantity_currency),
        ("ordType", &note.order_type),
        ("side", side_text(order.side)),
        ("posSide", if is_derivative { "net" } else { "" }),
        ("tdMode", &note.trade_mode),
        ("ccy", &note.margin_currency),
        ("accFillSz", &order.filled.to_string()),
        ("avgPx", &or_empty(order.filled > Quantity::ZERO, order.average_price.to_string())),
        ("state", state_text(order.state)),
        ("lever", if is_derivative { LEVERAGE } else { "" }),
        ("fee", &amount_text(-i128::from(record.fee))),
        ("feeCcy", fee_currency(record, instrument)),
        ("rebate", "0"),
        ("rebateCcy", if order.side == Side::Buy { &instrument.quote } else { &instrument.base }),
        ("pnl", "0"),
        ("category", "normal"),
        ("reduceOnly", if order.reduce_only { "true" } else { "false" }),
        ("isTpLimit", "false"),
        ("stpMode", &note.self_trade_mode),
        ("tradeQuoteCcy", if is_derivative { "" } else { instrument.quote.as_str() }),
        ("cancelSource", cancel_source(record)),
        ("cTime", &ms_text(order.created_ns)),
        ("uTime", &ms_text(order.updated_ns)),
    ]);
    fill_row(&mut row, "", EMPTY);
    row.insert("attachAlgoOrds".to_owned(), json!([]));
    row.insert("linkedAlgoOrd".to_owned(), json!({"algoId": ""}));
    row
}

/// Returns the fields of the fill that a message is about; of none they are empty.
fn fill_fields(instrument: &SimInstrument, fill: Option<&DeskFill>) -> Row {
    let Some(fill) = fill else {
        let mut row = row([("fillSz", "0"), ("fillFee", "0"), ("fillPnl", "0")]);
        fill_row(&mut row, "", &["fillPx", "tradeId", "execType", "fillFeeCcy", "fillTime", "fillNotionalUsd"]);
        return row;
    };
    row([
        ("fillSz", &fill.quantity.to_string()),
        ("fillPx", &fill.price.to_string()),
        ("tradeId", &fill.trade_id.to_string()),
        ("execType", liquidity_text(fill)),
        ("fillFee", &amount_text(-i128::from(fill.fee))),
        ("fillFeeCcy", &fill.fee_currency),
        ("fillPnl", "0"),
        ("fillTime", &ms_text(fill.at_ns)),
        ("fillNotionalUsd", &amount_text(notional(instrument, fill.price, units(fill.quantity)))),
    ])
}

/// Returns the currency of an order's fee, also before its first fill: spot pays in the received currency.
fn fee_currency<'a>(record: &'a OrderRecord, instrument: &'a SimInstrument) -> &'a str {
    match record.order.side {
        _ if !record.fee_currency.is_empty() => &record.fee_currency,
        Side::Buy if !instrument.is_derivative => &instrument.base,
        Side::Buy | Side::Sell => &instrument.quote,
    }
}

fn liquidity_text(fill: &DeskFill) -> &'static str {
    if fill.is_maker { "M" } else { "T" }
}

/// Returns OKX's code of the reason why an order is canceled; empty for an order that is not.
fn cancel_source(record: &OrderRecord) -> &'static str {
    let order = &record.order;
    if order.state != DeskState::Canceled {
        return "";
    }
    match order.cancel_reason {
        Some(DeskRefusal::PostOnlyWouldTrade) => "31",
        Some(DeskRefusal::FokUnfillable) => "13",
        Some(DeskRefusal::ReduceOnly) => "2",
        Some(_) => "0",
        None if order.time_in_force == TimeInForce::FillOrKill => "13",
        None if order.time_in_force == TimeInForce::ImmediateOrCancel => "14",
        None => record.cancel_source,
    }
}
