//! Requests about an account: its orders, fills, balances, fee rates and limits.

use std::collections::BTreeSet;

use tickpath_market::{Notional, Quantity, Side};
use tickpath_venue_sim_web::DeskFill;

use crate::codes::{ApiError, Code};
use crate::commissions;
use crate::decimals::{eight_decimals, price_text, quantity_text, value_text};
use crate::json::{OrderedObject, array};
use crate::ledger::SpotOrder;
use crate::order_views;
use crate::orders::{ORDER_NAMES, OrderReference};
use crate::params::RequestParams;
use crate::spot::{CallContext, SpotMarket};
use crate::stamps::{StampUnit, stamp_ns};

/// Orders or fills of an answer, without the parameter `limit` and at most.
const DEFAULT_ITEMS: usize = 500;
const MAX_ITEMS: usize = 1_000;
/// Units of a fee rate in a basis point.
const BASIS_POINT_E6: i64 = 100;

/// Part of an account's history that a request selects.
struct HistoryRange {
    from_ns: u64,
    to_ns: u64,
    limit: usize,
    /// Whether the oldest items of the part are selected, and not the newest.
    is_oldest: bool,
}

/// Answers `order.status`.
pub(crate) fn order_status(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let order = OrderReference::read(spot, params, ORDER_NAMES)?;
    params.finish()?;
    let record = order.find(spot, account).ok_or_else(|| Code::NoSuchOrder.error())?;
    Ok(order_text(spot, record, context.unit))
}

/// Answers `openOrders.status`.
pub(crate) fn open_orders(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let instrument = match params.optional("symbol")? {
        Some(symbol) => Some(spot.find(&symbol)?),
        None => None,
    };
    params.finish()?;
    let open = spot.ledger.open(account);
    let open = open.filter(|record| instrument.is_none_or(|instrument| record.instrument == instrument));
    Ok(array(open.map(|record| order_text(spot, record, context.unit))))
}

/// Answers `allOrders`.
pub(crate) fn all_orders(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let instrument = required_symbol(spot, params)?;
    let first = params.number("orderId")?;
    let range = HistoryRange::read(params, first.is_some())?;
    params.finish()?;
    let orders = spot.ledger.records(account).filter(|record| {
        record.instrument == instrument && range.has(record.created_ns) && first.is_none_or(|first| record.id >= first)
    });
    let orders = range.cut(orders.collect());
    Ok(array(orders.into_iter().map(|record| order_text(spot, record, context.unit))))
}

/// Answers `myTrades`.
pub(crate) fn my_trades(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let instrument = required_symbol(spot, params)?;
    let order = params.number("orderId")?;
    let first = params.number("fromId")?;
    let range = HistoryRange::read(params, first.is_some())?;
    params.finish()?;
    let fills = spot.ledger.fills(account).iter().filter(|fill| {
        fill.instrument == instrument
            && range.has(fill.at_ns)
            && order.is_none_or(|order| fill.order == order)
            && first.is_none_or(|first| fill.trade_id >= first)
    });
    let fills = range.cut(fills.collect());
    let symbol = &spot.instrument(instrument).name;
    Ok(array(fills.into_iter().map(|fill| fill_text(fill, symbol, context.unit))))
}

/// Answers `account.status`.
pub(crate) fn status(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let omits_zero = params.flag("omitZeroBalances")? == Some(true);
    params.finish()?;
    let balances = spot.desk.balance(account).filter(|(_, total, _)| !omits_zero || *total != Quantity::ZERO);
    let balances = array(balances.map(|(asset, total, available)| {
        amounts(OrderedObject::new().text("asset", asset), total, available).finish()
    }));
    let updated_ns = spot.ledger.records(account).map(|record| record.updated_ns).max().unwrap_or(0);
    Ok(OrderedObject::new()
        .plain("makerCommission", spot.fees.maker_e6 / BASIS_POINT_E6)
        .plain("takerCommission", spot.fees.taker_e6 / BASIS_POINT_E6)
        .plain("buyerCommission", 0)
        .plain("sellerCommission", 0)
        .plain("canTrade", true)
        .plain("canWithdraw", false)
        .plain("canDeposit", false)
        .raw("commissionRates", &commissions::by_role(spot.fees))
        .plain("brokered", false)
        .plain("requireSelfTradePrevention", false)
        .plain("preventSor", false)
        .plain("updateTime", context.unit.of(updated_ns))
        .text("accountType", "SPOT")
        .raw("balances", &balances)
        .raw("permissions", "[\"SPOT\"]")
        .plain("uid", account + 1)
        .finish())
}

/// Answers `account.commission`.
pub(crate) fn commission(
    spot: &mut SpotMarket,
    _: CallContext,
    _: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let instrument = required_symbol(spot, params)?;
    params.finish()?;
    Ok(commissions::for_symbol(spot.fees, &spot.instrument(instrument).name))
}

/// Answers `account.rateLimits.orders`.
pub(crate) fn order_limits(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    params.finish()?;
    Ok(array(spot.limits.order_usage(context.now_ns, account)))
}

/// Answers `capital/config/getall`, the list of all coins with the balances of the account.
pub(crate) fn coins(
    spot: &mut SpotMarket,
    _: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    params.finish()?;
    let instruments = spot.desk.instruments().iter();
    let mut coins: BTreeSet<&str> =
        instruments.flat_map(|listed| [listed.base.as_str(), listed.quote.as_str()]).collect();
    coins.extend(spot.desk.balance(account).map(|(asset, ..)| asset));
    Ok(array(coins.into_iter().map(|coin| {
        let held = spot.desk.balance(account).find(|(asset, ..)| *asset == coin);
        let (_, total, available) = held.unwrap_or((coin, Quantity::ZERO, Quantity::ZERO));
        amounts(OrderedObject::new().text("coin", coin).text("name", coin), total, available)
            .text("freeze", &eight_decimals(0))
            .plain("depositAllEnable", false)
            .plain("withdrawAllEnable", false)
            .plain("isLegalMoney", false)
            .plain("trading", true)
            .raw("networkList", "[]")
            .finish()
    })))
}

impl HistoryRange {
    fn read(params: &mut RequestParams, begins_at_id: bool) -> Result<Self, ApiError> {
        let (from, to) = (params.number("startTime")?, params.number("endTime")?);
        Ok(Self {
            from_ns: from.map_or(0, stamp_ns),
            to_ns: to.map_or(u64::MAX, stamp_ns),
            limit: params.limit(DEFAULT_ITEMS, MAX_ITEMS)?,
            is_oldest: begins_at_id || from.is_some(),
        })
    }

    fn has(&self, at_ns: u64) -> bool {
        (self.from_ns..=self.to_ns).contains(&at_ns)
    }

    /// Returns as many items as the request asks for, of those in the range.
    fn cut<T>(&self, mut items: Vec<T>) -> Vec<T> {
        if self.is_oldest {
            items.truncate(self.limit);
        } else {
            items.drain(..items.len().saturating_sub(self.limit));
        }
        items
    }
}

fn required_symbol(spot: &SpotMarket, params: &mut RequestParams) -> Result<usize, ApiError> {
    let symbol = params.required("symbol")?;
    spot.find(&symbol)
}

fn order_text(spot: &SpotMarket, record: &SpotOrder, unit: StampUnit) -> String {
    order_views::status(record, &spot.instrument(record.instrument).name, unit)
}

fn fill_text(fill: &DeskFill, symbol: &str, unit: StampUnit) -> String {
    OrderedObject::new()
        .text("symbol", symbol)
        .plain("id", fill.trade_id)
        .plain("orderId", fill.order)
        .plain("orderListId", -1)
        .text("price", &price_text(fill.price))
        .text("qty", &quantity_text(fill.quantity))
        .text("quoteQty", &value_text(Notional::of(fill.price, fill.quantity).0))
        .text("commission", &eight_decimals(fill.fee.into()))
        .text("commissionAsset", &fill.fee_currency)
        .plain("time", unit.of(fill.at_ns))
        .plain("isBuyer", fill.side == Side::Buy)
        .plain("isMaker", fill.is_maker)
        .plain("isBestMatch", true)
        .finish()
}

fn amounts(object: OrderedObject, total: Quantity, available: Quantity) -> OrderedObject {
    object.text("free", &quantity_text(available)).text("locked", &quantity_text(Quantity(total.0 - available.0)))
}
