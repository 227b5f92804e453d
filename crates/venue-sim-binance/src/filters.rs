//! Filters of the symbols: steps and bounds of prices, quantities and values. The bounds are constants of this
//! exchange, the steps are those of the instrument.

use tickpath_market::{Notional, Price, Quantity};
use tickpath_venue_sim_web::SimInstrument;

use crate::codes::{ApiError, Code};
use crate::decimals::{price_text, quantity_text, value_text};
use crate::json::{OrderedObject, array};

/// Types of orders that each symbol allows.
pub(crate) const ORDER_TYPES: [&str; 3] = ["LIMIT", "LIMIT_MAKER", "MARKET"];
/// Self-trade prevention modes that each symbol allows.
pub(crate) const SELF_TRADE_MODES: [&str; 4] = ["NONE", "EXPIRE_TAKER", "EXPIRE_MAKER", "EXPIRE_BOTH"];

const MAX_PRICE: Price = Price::from_whole(1_000_000_000);
const MAX_QUANTITY: Quantity = Quantity::from_whole(1_000_000_000);
const MAX_NOTIONAL: Notional = Notional::from_whole(9_000_000_000);
/// Units of a notional in one unit of 10⁻⁸.
const NOTIONAL_UNITS: i128 = 100_000_000;

/// Checks a limit price.
pub(crate) fn check_price(instrument: &SimInstrument, price: Price) -> Result<(), ApiError> {
    let step = instrument.tick.0.max(1);
    let is_good = price.0 >= step && price <= MAX_PRICE && price.0 % step == 0;
    if is_good { Ok(()) } else { Err(Code::PriceFilter.error()) }
}

/// Checks a quantity.
pub(crate) fn check_quantity(instrument: &SimInstrument, quantity: Quantity) -> Result<(), ApiError> {
    let step = instrument.lot.0.max(1);
    let is_good = quantity >= least_quantity(instrument) && quantity <= MAX_QUANTITY && quantity.0 % step == 0;
    if is_good { Ok(()) } else { Err(Code::LotSize.error()) }
}

/// Checks the value of an order.
pub(crate) fn check_notional(instrument: &SimInstrument, price: Price, quantity: Quantity) -> Result<(), ApiError> {
    let value = Notional::of(price, quantity);
    let is_good = value >= least_notional(instrument) && value <= MAX_NOTIONAL;
    if is_good { Ok(()) } else { Err(Code::Notional.error()) }
}

/// Returns the filters of a symbol as the exchange lists them.
pub(crate) fn listed(instrument: &SimInstrument) -> String {
    let price = OrderedObject::new()
        .text("filterType", "PRICE_FILTER")
        .text("minPrice", &price_text(Price(instrument.tick.0.max(1))))
        .text("maxPrice", &price_text(MAX_PRICE))
        .text("tickSize", &price_text(Price(instrument.tick.0.max(1))))
        .finish();
    let lot = OrderedObject::new()
        .text("filterType", "LOT_SIZE")
        .text("minQty", &quantity_text(least_quantity(instrument)))
        .text("maxQty", &quantity_text(MAX_QUANTITY))
        .text("stepSize", &quantity_text(Quantity(instrument.lot.0.max(1))))
        .finish();
    let notional = OrderedObject::new()
        .text("filterType", "NOTIONAL")
        .text("minNotional", &value_text(least_notional(instrument).0))
        .plain("applyMinToMarket", true)
        .text("maxNotional", &value_text(MAX_NOTIONAL.0))
        .plain("applyMaxToMarket", false)
        .plain("avgPriceMins", 5)
        .finish();
    array([price, lot, notional])
}

/// Returns the quantity of the nearest whole number of lots that is not above this one.
pub(crate) fn whole_lots(instrument: &SimInstrument, quantity: Quantity) -> Quantity {
    let step = instrument.lot.0.max(1);
    Quantity(quantity.0 / step * step)
}

fn least_quantity(instrument: &SimInstrument) -> Quantity {
    instrument.minimum.max(Quantity(instrument.lot.0.max(1)))
}

/// Returns the least value of an order, which depends on what a unit of the quote asset is worth.
fn least_notional(instrument: &SimInstrument) -> Notional {
    let units = match instrument.quote.as_str() {
        "BTC" => 10_000,
        "ETH" => 100_000,
        "BNB" => 1_000_000,
        _ => 500_000_000,
    };
    Notional(units * NOTIONAL_UNITS)
}
