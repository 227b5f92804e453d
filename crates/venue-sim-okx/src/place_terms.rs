//! Terms of a new order, read from a request of either interface.

use serde_json::Value;
use tickpath_market::{DecimalError, OrderType, Price, Quantity, SCALE, Side, TimeInForce};
use tickpath_venue_sim_web::{SimDesk, SimInstrument};

use crate::codes::{BELOW_MINIMUM, NO_MARGIN_TRADING, NO_QUOTATION, NOT_A_LOT, NOT_A_TICK, OkxRefusal, PARAMETER};
use crate::fields::{is_client_text, is_true, text_field};
use crate::records::OrderNote;

/// Max letters and digits of a client's id.
pub(crate) const MAX_ID_BYTES: usize = 32;
/// Max letters and digits of a tag.
const MAX_TAG_BYTES: usize = 16;

/// Terms of a new order.
#[derive(Debug)]
pub(crate) struct PlaceTerms {
    pub(crate) client_id: String,
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) post_only: bool,
    pub(crate) reduce_only: bool,
    /// Zero for a market order.
    pub(crate) price: Price,
    pub(crate) quantity: Quantity,
    pub(crate) note: OrderNote,
}

impl PlaceTerms {
    /// Reads the terms of a new order.
    pub(crate) fn read(request: &Value, sim: &SimDesk, index: usize) -> Result<Self, OkxRefusal> {
        let instrument = &sim.instruments()[index];
        let needed = |name: &str| text_field(request, name).ok_or_else(|| PARAMETER.about(name));
        let (client_id, tag) =
            (client_text(request, "clOrdId", MAX_ID_BYTES)?, client_text(request, "tag", MAX_TAG_BYTES)?);
        let trade_mode = read_trade_mode(needed("tdMode")?, instrument)?;
        let side = match needed("side")?.as_str() {
            "buy" => Side::Buy,
            "sell" => Side::Sell,
            _ => return Err(PARAMETER.about("side")),
        };
        check_absent(request, instrument)?;
        let name = needed("ordType")?;
        let (order_type, time_in_force) = read_order_type(&name, instrument)?;
        let post_only = name == "post_only";
        let price = match order_type {
            OrderType::Market => Price::ZERO,
            OrderType::Limit => read_price(&needed("px")?, "px")?,
        };
        let mut note = OrderNote {
            order_type: name,
            trade_mode,
            tag,
            margin_currency: text_field(request, "ccy").unwrap_or_default(),
            self_trade_mode: text_field(request, "stpMode").unwrap_or_else(|| "cancel_maker".to_owned()),
            ..OrderNote::default()
        };
        let size = needed("sz")?;
        let mut quantity = read_quantity(&size, "sz")?;
        if order_type == OrderType::Market && !instrument.is_derivative {
            note.quantity_currency = quantity_currency(request, side)?;
            if note.quantity_currency == QUOTE {
                quantity = base_quantity(quantity, side, sim, index)?;
                note.quote_quantity = Some(size);
            }
        }
        let reduce_only = is_true(request, "reduceOnly") && instrument.is_derivative;
        Ok(Self { client_id, side, order_type, time_in_force, post_only, reduce_only, price, quantity, note })
    }
}

/// Reads a price above zero.
pub(crate) fn read_price(text: &str, name: &str) -> Result<Price, OkxRefusal> {
    match text.parse::<Price>() {
        Ok(price) if price > Price::ZERO => Ok(price),
        Err(DecimalError::TooPrecise) => Err(NOT_A_TICK.refusal()),
        _ => Err(PARAMETER.about(name)),
    }
}

/// Reads a quantity above zero.
pub(crate) fn read_quantity(text: &str, name: &str) -> Result<Quantity, OkxRefusal> {
    match text.parse::<Quantity>() {
        Ok(quantity) if quantity > Quantity::ZERO => Ok(quantity),
        Err(DecimalError::TooPrecise) => Err(NOT_A_LOT.refusal()),
        _ => Err(PARAMETER.about(name)),
    }
}

/// Reads a text that a client chooses; an absent one is empty.
pub(crate) fn client_text(request: &Value, name: &str, max_bytes: usize) -> Result<String, OkxRefusal> {
    let text = text_field(request, name).unwrap_or_default();
    match text.is_empty() || is_client_text(&text, max_bytes) {
        true => Ok(text),
        false => Err(PARAMETER.about(name)),
    }
}

const BASE: &str = "base_ccy";
const QUOTE: &str = "quote_ccy";

/// Reads the trade mode: spot without margin, derivatives with it, as in OKX's futures mode.
fn read_trade_mode(mode: String, instrument: &SimInstrument) -> Result<String, OkxRefusal> {
    match (mode.as_str(), instrument.is_derivative) {
        ("cash", false) | ("cross" | "isolated", true) => Ok(mode),
        ("cross" | "isolated", false) => Err(NO_MARGIN_TRADING.refusal()),
        _ => Err(PARAMETER.about("tdMode")),
    }
}

/// Checks that the request asks for nothing that the exchange has not: a position side, or an attached order.
fn check_absent(request: &Value, instrument: &SimInstrument) -> Result<(), OkxRefusal> {
    let position_side = text_field(request, "posSide");
    if instrument.is_derivative && position_side.is_some_and(|side| side != "net") {
        return Err(PARAMETER.about("posSide"));
    }
    match request.get("attachAlgoOrds").and_then(Value::as_array) {
        Some(orders) if !orders.is_empty() => Err(PARAMETER.about("attachAlgoOrds")),
        _ => Ok(()),
    }
}

fn read_order_type(name: &str, instrument: &SimInstrument) -> Result<(OrderType, TimeInForce), OkxRefusal> {
    Ok(match name {
        "limit" | "post_only" => (OrderType::Limit, TimeInForce::GoodTillCancel),
        "ioc" => (OrderType::Limit, TimeInForce::ImmediateOrCancel),
        "fok" => (OrderType::Limit, TimeInForce::FillOrKill),
        "market" => (OrderType::Market, TimeInForce::ImmediateOrCancel),
        "optimal_limit_ioc" if instrument.is_derivative => (OrderType::Market, TimeInForce::ImmediateOrCancel),
        _ => return Err(PARAMETER.about("ordType")),
    })
}

/// Returns the currency of the quantity of a spot market order.
fn quantity_currency(request: &Value, side: Side) -> Result<String, OkxRefusal> {
    let usual = if side == Side::Buy { QUOTE } else { BASE };
    let currency = text_field(request, "tgtCcy").unwrap_or_else(|| usual.to_owned());
    match currency.as_str() {
        BASE | QUOTE => Ok(currency),
        _ => Err(PARAMETER.about("tgtCcy")),
    }
}

/// Returns the quantity, in whole lots, that an amount of the quote currency is worth at the best price.
fn base_quantity(amount: Quantity, side: Side, sim: &SimDesk, index: usize) -> Result<Quantity, OkxRefusal> {
    let best = sim.best(index);
    let price = if side == Side::Buy { best.ask } else { best.bid };
    if price <= Price::ZERO {
        return Err(NO_QUOTATION.refusal());
    }
    let units = i128::from(amount.0) * i128::from(SCALE) / i128::from(price.0);
    let lot = i128::from(sim.instruments()[index].lot.0.max(1));
    match i64::try_from(units / lot * lot) {
        Ok(units) if units > 0 => Ok(Quantity(units)),
        _ => Err(BELOW_MINIMUM.refusal()),
    }
}
