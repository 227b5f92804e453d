//! Events of an account, as a User Data Stream sends them.

use tickpath_market::{Notional, Quantity};

use crate::decimals::{eight_decimals, price_text, quantity_text, value_text};
use crate::json::{OrderedObject, array};
use crate::ledger::{Execution, OrderStatus, SpotOrder};
use crate::order_views::side_name;
use crate::stamps::StampUnit;

/// Returns the event `executionReport` of an order as it stands after an execution.
pub(crate) fn execution_report(
    execution: &Execution,
    record: &SpotOrder,
    symbol: &str,
    now_ns: u64,
    unit: StampUnit,
) -> String {
    let (name, former) = names(execution, record);
    let object = OrderedObject::new()
        .text("e", "executionReport")
        .plain("E", unit.of(now_ns))
        .text("s", symbol)
        .text("c", name)
        .text("S", side_name(record.side))
        .text("o", record.terms.kind.name())
        .text("f", record.terms.time_in_force)
        .text("q", &quantity_text(record.quantity))
        .text("p", &price_text(record.terms.price))
        .text("P", &eight_decimals(0))
        .text("F", &eight_decimals(0))
        .plain("g", -1)
        .text("C", former)
        .text("x", execution_name(execution))
        .text("X", record.status.name())
        .text("r", "NONE")
        .plain("i", record.id);
    let object = last_fill(object, execution, record, unit)
        .plain("I", record.execution_id)
        .plain("w", is_on_book(record))
        .plain("m", matches!(execution, Execution::Trade(fill) if fill.is_maker))
        .plain("M", false)
        .plain("O", unit.of(record.created_ns))
        .text("Z", &value_text(record.value))
        .text("Y", &last_value(execution))
        .text("Q", &quantity_text(record.terms.quote_quantity))
        .plain("W", unit.of(record.created_ns))
        .text("V", record.terms.self_trade);
    conditional(object, execution, record).finish()
}

/// Returns the event `outboundAccountPosition` with the balances of some assets: name, total and available amount.
pub(crate) fn account_position<'a>(
    balances: impl Iterator<Item = (&'a str, Quantity, Quantity)>,
    now_ns: u64,
    unit: StampUnit,
) -> String {
    let balances = array(balances.map(|(asset, total, available)| {
        OrderedObject::new()
            .text("a", asset)
            .text("f", &quantity_text(available))
            .text("l", &quantity_text(Quantity(total.0 - available.0)))
            .finish()
    }));
    OrderedObject::new()
        .text("e", "outboundAccountPosition")
        .plain("E", unit.of(now_ns))
        .plain("u", unit.of(now_ns))
        .raw("B", &balances)
        .finish()
}

/// Returns an event that has only its name and its time.
pub(crate) fn bare_event(name: &str, now_ns: u64, unit: StampUnit) -> String {
    OrderedObject::new().text("e", name).plain("E", unit.of(now_ns)).finish()
}

/// Returns the client id of an event, and the one that the order had before.
fn names<'a>(execution: &'a Execution, record: &'a SpotOrder) -> (&'a str, &'a str) {
    let own = record.terms.client_id.as_str();
    match execution {
        Execution::Canceled(name) => (name, own),
        Execution::Replaced(former) => (own, former),
        Execution::New | Execution::Trade(_) | Execution::Expired | Execution::Prevented => (own, ""),
    }
}

fn execution_name(execution: &Execution) -> &'static str {
    match execution {
        Execution::New => "NEW",
        Execution::Trade(_) => "TRADE",
        Execution::Canceled(_) => "CANCELED",
        Execution::Expired => "EXPIRED",
        Execution::Prevented => "TRADE_PREVENTION",
        Execution::Replaced(_) => "REPLACED",
    }
}

fn last_fill(object: OrderedObject, execution: &Execution, record: &SpotOrder, unit: StampUnit) -> OrderedObject {
    let fill = match execution {
        Execution::Trade(fill) => Some(fill),
        _ => None,
    };
    let object = object
        .text("l", &quantity_text(fill.map_or(Quantity::ZERO, |fill| fill.quantity)))
        .text("z", &quantity_text(record.filled))
        .text("L", &fill.map_or_else(|| eight_decimals(0), |fill| price_text(fill.price)))
        .text("n", &fill.map_or_else(|| "0".to_owned(), |fill| eight_decimals(fill.fee.into())));
    let object = match fill {
        Some(fill) => object.text("N", &fill.fee_currency),
        None => object.raw("N", "null"),
    };
    let object = object.plain("T", unit.of(record.updated_ns));
    let object = match fill {
        Some(fill) => object.plain("t", fill.trade_id),
        None => object.plain("t", -1),
    };
    match record.prevented {
        Some(prevented) if record.status == OrderStatus::ExpiredInMatch => object.plain("v", prevented.id),
        _ => object,
    }
}

fn last_value(execution: &Execution) -> String {
    match execution {
        Execution::Trade(fill) => value_text(Notional::of(fill.price, fill.quantity).0),
        _ => eight_decimals(0),
    }
}

/// Adds the fields of orders with a strategy, of prevented matches and of expired orders.
fn conditional(object: OrderedObject, execution: &Execution, record: &SpotOrder) -> OrderedObject {
    let mut object = object;
    if let Some(id) = record.terms.strategy_id {
        object = object.plain("j", id);
    }
    if let Some(kind) = record.terms.strategy_type {
        object = object.plain("J", kind);
    }
    if let (Execution::Prevented, Some(prevented)) = (execution, record.prevented) {
        let quantity = quantity_text(record.prevented_quantity());
        object = object.text("A", &quantity).text("B", &quantity).plain("u", -1);
        if let Some(counter) = prevented.counter_order {
            object = object.plain("U", counter);
        }
    }
    match record.expiry_reason() {
        Some(reason) => object.text("eR", reason),
        None => object,
    }
}

/// Returns whether the order is in the book: one that does not rest leaves the book with its first trade.
fn is_on_book(record: &SpotOrder) -> bool {
    record.is_open() && (record.rests() || record.status == OrderStatus::New)
}
