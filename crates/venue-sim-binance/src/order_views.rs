//! Orders in the answers to requests: after a placement, a cancel, an amendment, and as their status.

use tickpath_market::Side;

use crate::decimals::{eight_decimals, price_text, quantity_text, value_text};
use crate::json::{OrderedObject, array};
use crate::ledger::{OrderStatus, SpotOrder};
use crate::stamps::StampUnit;

/// Extent of the answer to a placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseForm {
    Ack,
    Result,
    Full,
}

/// Returns the answer to a placement.
pub(crate) fn placed(record: &SpotOrder, symbol: &str, form: ResponseForm, unit: StampUnit) -> String {
    let object = OrderedObject::new()
        .text("symbol", symbol)
        .plain("orderId", record.id)
        .plain("orderListId", -1)
        .text("clientOrderId", &record.terms.client_id)
        .plain("transactTime", unit.of(record.updated_ns));
    if form == ResponseForm::Ack {
        return object.finish();
    }
    let object = terms(sizes(object, record, Some("origQuoteOrderQty")), record);
    let object = strategy(object, record).plain("workingTime", unit.of(record.created_ns));
    let object = match form {
        ResponseForm::Full => object.raw("fills", &fills(record)),
        ResponseForm::Ack | ResponseForm::Result => object,
    };
    outcome(object.text("selfTradePreventionMode", record.terms.self_trade), record).finish()
}

/// Returns the answer to a cancel under a new client id.
pub(crate) fn canceled(record: &SpotOrder, symbol: &str, name: &str, unit: StampUnit) -> String {
    let object = OrderedObject::new()
        .text("symbol", symbol)
        .text("origClientOrderId", &record.terms.client_id)
        .plain("orderId", record.id)
        .plain("orderListId", -1)
        .text("clientOrderId", name)
        .plain("transactTime", unit.of(record.updated_ns));
    let object = terms(sizes(object, record, Some("origQuoteOrderQty")), record);
    strategy(object, record).text("selfTradePreventionMode", record.terms.self_trade).finish()
}

/// Returns the answer to an amendment of an order that had another client id until then.
pub(crate) fn amended(record: &SpotOrder, symbol: &str, former: &str, unit: StampUnit) -> String {
    let order = OrderedObject::new()
        .text("symbol", symbol)
        .plain("orderId", record.id)
        .plain("orderListId", -1)
        .text("origClientOrderId", former)
        .text("clientOrderId", &record.terms.client_id)
        .text("price", &price_text(record.terms.price))
        .text("qty", &quantity_text(record.quantity))
        .text("executedQty", &quantity_text(record.filled))
        .text("preventedQty", &quantity_text(record.prevented_quantity()))
        .text("quoteOrderQty", &quantity_text(record.terms.quote_quantity))
        .text("cumulativeQuoteQty", &value_text(record.value));
    let order = terms(order, record)
        .plain("workingTime", unit.of(record.created_ns))
        .text("selfTradePreventionMode", record.terms.self_trade)
        .finish();
    OrderedObject::new()
        .plain("transactTime", unit.of(record.updated_ns))
        .plain("executionId", record.execution_id)
        .raw("amendedOrder", &order)
        .finish()
}

/// Returns an order's status.
pub(crate) fn status(record: &SpotOrder, symbol: &str, unit: StampUnit) -> String {
    let object = OrderedObject::new()
        .text("symbol", symbol)
        .plain("orderId", record.id)
        .plain("orderListId", -1)
        .text("clientOrderId", &record.terms.client_id);
    let object = terms(sizes(object, record, None), record)
        .text("stopPrice", &eight_decimals(0))
        .text("icebergQty", &eight_decimals(0))
        .plain("time", unit.of(record.created_ns))
        .plain("updateTime", unit.of(record.updated_ns))
        .plain("isWorking", true)
        .plain("workingTime", unit.of(record.created_ns))
        .text("origQuoteOrderQty", &quantity_text(record.terms.quote_quantity));
    let object = strategy(object, record).text("selfTradePreventionMode", record.terms.self_trade);
    outcome(object, record).finish()
}

/// Returns the exchange's name of a side.
pub(crate) fn side_name(side: Side) -> &'static str {
    match side {
        Side::Buy => "BUY",
        Side::Sell => "SELL",
    }
}

/// Adds price and quantities, with the amount of quote currency under this key.
fn sizes(object: OrderedObject, record: &SpotOrder, quote_key: Option<&str>) -> OrderedObject {
    let object = object
        .text("price", &price_text(record.terms.price))
        .text("origQty", &quantity_text(record.quantity))
        .text("executedQty", &quantity_text(record.filled));
    let object = match quote_key {
        Some(key) => object.text(key, &quantity_text(record.terms.quote_quantity)),
        None => object,
    };
    object.text("cummulativeQuoteQty", &value_text(record.value))
}

fn terms(object: OrderedObject, record: &SpotOrder) -> OrderedObject {
    object
        .text("status", record.status.name())
        .text("timeInForce", record.terms.time_in_force)
        .text("type", record.terms.kind.name())
        .text("side", side_name(record.side))
}

fn strategy(object: OrderedObject, record: &SpotOrder) -> OrderedObject {
    let object = match record.terms.strategy_id {
        Some(id) => object.plain("strategyId", id),
        None => object,
    };
    match record.terms.strategy_type {
        Some(kind) => object.plain("strategyType", kind),
        None => object,
    }
}

/// Adds why the order has ended, if the exchange has ended it.
fn outcome(object: OrderedObject, record: &SpotOrder) -> OrderedObject {
    let object = match record.prevented {
        Some(prevented) if record.status == OrderStatus::ExpiredInMatch => object
            .plain("preventedMatchId", prevented.id)
            .text("preventedQuantity", &quantity_text(record.prevented_quantity())),
        _ => object,
    };
    match record.expiry_reason() {
        Some(reason) => object.text("expiryReason", reason),
        None => object,
    }
}

fn fills(record: &SpotOrder) -> String {
    array(record.fills.iter().map(|fill| {
        OrderedObject::new()
            .text("price", &price_text(fill.price))
            .text("qty", &quantity_text(fill.quantity))
            .text("commission", &eight_decimals(fill.fee.into()))
            .text("commissionAsset", &fill.fee_currency)
            .plain("tradeId", fill.trade_id)
            .finish()
    }))
}
