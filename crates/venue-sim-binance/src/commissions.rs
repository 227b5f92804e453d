//! Fee rates as the exchange answers them: the standard rates, no special or tax rates, and no discount.

use crate::decimals::eight_decimals;
use crate::json::OrderedObject;
use crate::spot::FeeRates;

/// Units of 10⁻⁸ in a rate's unit of 10⁻⁶.
const RATE_UNITS: i64 = 100;

/// Returns the rates of a tested order.
pub(crate) fn for_order(fees: FeeRates) -> String {
    rates(OrderedObject::new(), fees, "ForOrder").finish()
}

/// Returns the rates of an account for a symbol.
pub(crate) fn for_symbol(fees: FeeRates, symbol: &str) -> String {
    rates(OrderedObject::new().text("symbol", symbol), fees, "").finish()
}

/// Returns the standard rates, each of them as a maker's, taker's, buyer's and seller's.
pub(crate) fn by_role(fees: FeeRates) -> String {
    object(fees.maker_e6, fees.taker_e6, true)
}

fn rates(object_before: OrderedObject, fees: FeeRates, suffix: &str) -> OrderedObject {
    let has_sides = suffix.is_empty();
    let discount = OrderedObject::new()
        .plain("enabledForAccount", false)
        .plain("enabledForSymbol", false)
        .text("discountAsset", "BNB")
        .text("discount", &eight_decimals(0))
        .finish();
    object_before
        .raw(&format!("standardCommission{suffix}"), &object(fees.maker_e6, fees.taker_e6, has_sides))
        .raw(&format!("specialCommission{suffix}"), &object(0, 0, has_sides))
        .raw(&format!("taxCommission{suffix}"), &object(0, 0, has_sides))
        .raw("discount", &discount)
}

fn object(maker_e6: i64, taker_e6: i64, has_sides: bool) -> String {
    let rate = |e6: i64| eight_decimals((e6 * RATE_UNITS).into());
    let object = OrderedObject::new().text("maker", &rate(maker_e6)).text("taker", &rate(taker_e6));
    let object = if has_sides { object.text("buyer", &rate(0)).text("seller", &rate(0)) } else { object };
    object.finish()
}
