//! Public requests: the exchange's information, books, trades and tickers.

use tickpath_market::{Price, Quantity, Side};
use tickpath_venue_sim_web::{PublicTrade, SimInstrument};

use crate::codes::{ApiError, Code};
use crate::decimals::{eight_decimals, price_text, quantity_text, value_text};
use crate::filters::{self, ORDER_TYPES, SELF_TRADE_MODES};
use crate::json::{OrderedObject, array, quoted};
use crate::limits::listed_limits;
use crate::params::RequestParams;
use crate::spot::{CallContext, SpotMarket};
use crate::stamps::StampUnit;
use crate::tape::TradeTape;

/// Levels of a book, and trades, without the parameter `limit`.
const DEFAULT_LEVELS: usize = 100;
const DEFAULT_TRADES: usize = 500;
const MAX_LEVELS: usize = 5_000;
const MAX_TRADES: usize = 1_000;

/// Symbols that a request names.
enum Selection {
    One(usize),
    Many(Vec<usize>),
}

/// Answers `ping`.
pub(crate) fn ping(_: &mut SpotMarket, _: CallContext, params: &mut RequestParams) -> Result<String, ApiError> {
    params.finish()?;
    Ok("{}".to_owned())
}

/// Answers `time`.
pub(crate) fn time(_: &mut SpotMarket, context: CallContext, params: &mut RequestParams) -> Result<String, ApiError> {
    params.finish()?;
    Ok(OrderedObject::new().plain("serverTime", context.unit.of(context.now_ns)).finish())
}

/// Answers `exchangeInfo`.
pub(crate) fn exchange_info(
    spot: &mut SpotMarket,
    context: CallContext,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    params.ignore(&["permissions", "showPermissionSets", "symbolStatus"]);
    let indexes = match selection(spot, params)? {
        Selection::One(index) => vec![index],
        Selection::Many(indexes) => indexes,
    };
    params.finish()?;
    let info = |index| symbol_info(spot.instrument(index), spot.desk.is_suspended(index));
    let symbols = array(indexes.into_iter().map(info));
    Ok(OrderedObject::new()
        .text("timezone", "UTC")
        .plain("serverTime", context.unit.of(context.now_ns))
        .raw("rateLimits", &listed_limits())
        .raw("exchangeFilters", "[]")
        .raw("symbols", &symbols)
        .finish())
}

/// Answers `depth`.
pub(crate) fn depth(spot: &mut SpotMarket, _: CallContext, params: &mut RequestParams) -> Result<String, ApiError> {
    let index = one_symbol(spot, params)?;
    let limit = params.limit(DEFAULT_LEVELS, MAX_LEVELS)?;
    params.ignore(&["symbolStatus"]);
    params.finish()?;
    Ok(book(spot, index, limit))
}

/// Answers `trades.recent`.
pub(crate) fn recent_trades(
    spot: &mut SpotMarket,
    context: CallContext,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let trades = newest_trades(spot, params)?;
    Ok(array(trades.iter().map(|trade| {
        OrderedObject::new()
            .plain("id", trade.trade_id)
            .text("price", &price_text(trade.price))
            .text("qty", &quantity_text(trade.quantity))
            .text("quoteQty", &eight_decimals(TradeTape::value_of(trade)))
            .plain("time", context.unit.of(trade.at_ns))
            .plain("isBuyerMaker", trade.side == Side::Sell)
            .plain("isBestMatch", true)
            .finish()
    })))
}

/// Answers `trades.aggregate`. Each trade is a group of its own.
pub(crate) fn aggregated_trades(
    spot: &mut SpotMarket,
    context: CallContext,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    params.ignore(&["fromId", "startTime", "endTime"]);
    let trades = newest_trades(spot, params)?;
    Ok(array(trades.iter().map(|trade| {
        OrderedObject::new()
            .plain("a", trade.trade_id)
            .text("p", &price_text(trade.price))
            .text("q", &quantity_text(trade.quantity))
            .plain("f", trade.trade_id)
            .plain("l", trade.trade_id)
            .plain("T", context.unit.of(trade.at_ns))
            .plain("m", trade.side == Side::Sell)
            .plain("M", true)
            .finish()
    })))
}

/// Answers `ticker.price`.
pub(crate) fn price_ticker(
    spot: &mut SpotMarket,
    _: CallContext,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    tickers(spot, params, |spot, index| {
        OrderedObject::new()
            .text("symbol", &spot.instrument(index).name)
            .text("price", &price_text(spot.tapes[index].last))
            .finish()
    })
}

/// Answers `ticker.book`.
pub(crate) fn book_ticker(
    spot: &mut SpotMarket,
    _: CallContext,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    tickers(spot, params, |spot, index| {
        let object = OrderedObject::new().text("symbol", &spot.instrument(index).name);
        best_quote(object, spot, index).finish()
    })
}

/// Answers `ticker.24hr`.
pub(crate) fn day_ticker(
    spot: &mut SpotMarket,
    context: CallContext,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let is_mini = match params.optional("type")?.as_deref() {
        None | Some("FULL") => false,
        Some("MINI") => true,
        Some(_) => return Err(Code::BadValue.about(&["type"])),
    };
    tickers(spot, params, |spot, index| day_statistics(spot, index, is_mini, context))
}

/// Returns a book with its sequence number.
pub(crate) fn book(spot: &SpotMarket, index: usize, limit: usize) -> String {
    OrderedObject::new()
        .plain("lastUpdateId", spot.desk.book_sequence(index))
        .raw("bids", &levels(spot.levels(index, Side::Buy, limit)))
        .raw("asks", &levels(spot.levels(index, Side::Sell, limit)))
        .finish()
}

/// Returns levels as pairs of price and quantity.
pub(crate) fn levels(levels: impl IntoIterator<Item = (Price, Quantity)>) -> String {
    array(
        levels
            .into_iter()
            .map(|(price, quantity)| format!("[{},{}]", quoted(&price_text(price)), quoted(&quantity_text(quantity)))),
    )
}

fn symbol_info(instrument: &SimInstrument, is_halted: bool) -> String {
    let SimInstrument { name, base, quote, .. } = instrument;
    OrderedObject::new()
        .text("symbol", name)
        .text("status", if is_halted { "HALT" } else { "TRADING" })
        .text("baseAsset", base)
        .plain("baseAssetPrecision", 8)
        .text("quoteAsset", quote)
        .plain("quotePrecision", 8)
        .plain("quoteAssetPrecision", 8)
        .plain("baseCommissionPrecision", 8)
        .plain("quoteCommissionPrecision", 8)
        .raw("orderTypes", &array(ORDER_TYPES.map(quoted)))
        .plain("icebergAllowed", false)
        .plain("ocoAllowed", false)
        .plain("otoAllowed", false)
        .plain("opoAllowed", false)
        .plain("quoteOrderQtyMarketAllowed", true)
        .plain("allowTrailingStop", false)
        .plain("cancelReplaceAllowed", true)
        .plain("amendAllowed", true)
        .plain("pegInstructionsAllowed", false)
        .plain("isSpotTradingAllowed", true)
        .plain("isMarginTradingAllowed", false)
        .raw("filters", &filters::listed(instrument))
        .raw("permissions", "[]")
        .raw("permissionSets", "[[\"SPOT\"]]")
        .text("defaultSelfTradePreventionMode", "NONE")
        .raw("allowedSelfTradePreventionModes", &array(SELF_TRADE_MODES.map(quoted)))
        .finish()
}

fn one_symbol(spot: &SpotMarket, params: &mut RequestParams) -> Result<usize, ApiError> {
    let symbol = params.required("symbol")?;
    spot.find(&symbol)
}

/// Reads `symbol` or `symbols`; without either, all symbols are selected.
fn selection(spot: &SpotMarket, params: &mut RequestParams) -> Result<Selection, ApiError> {
    let (one, many) = (params.optional("symbol")?, params.optional("symbols")?);
    match (one, many) {
        (Some(_), Some(_)) => Err(Code::BadCombination.error()),
        (Some(symbol), None) => Ok(Selection::One(spot.find(&symbol)?)),
        (None, Some(symbols)) => {
            let names: Vec<String> = serde_json::from_str(&symbols).map_err(|_| Code::BadValue.about(&["symbols"]))?;
            Ok(Selection::Many(names.iter().map(|name| spot.find(name)).collect::<Result<_, _>>()?))
        }
        (None, None) => Ok(Selection::Many((0..spot.tapes.len()).collect())),
    }
}

/// Answers with an object for one symbol, and an array for several.
fn tickers(
    spot: &SpotMarket,
    params: &mut RequestParams,
    ticker: impl Fn(&SpotMarket, usize) -> String,
) -> Result<String, ApiError> {
    let selected = selection(spot, params)?;
    params.ignore(&["symbolStatus"]);
    params.finish()?;
    Ok(match selected {
        Selection::One(index) => ticker(spot, index),
        Selection::Many(indexes) => array(indexes.into_iter().map(|index| ticker(spot, index))),
    })
}

/// Reads `symbol` and `limit`, and returns the newest trades, the oldest of them first.
fn newest_trades(spot: &SpotMarket, params: &mut RequestParams) -> Result<Vec<PublicTrade>, ApiError> {
    let index = one_symbol(spot, params)?;
    let limit = params.limit(DEFAULT_TRADES, MAX_TRADES)?;
    params.finish()?;
    let trades = &spot.tapes[index].trades;
    Ok(trades.iter().skip(trades.len().saturating_sub(limit)).copied().collect())
}

fn best_quote(object: OrderedObject, spot: &SpotMarket, index: usize) -> OrderedObject {
    let best = spot.best(index);
    object
        .text("bidPrice", &price_text(best.bid))
        .text("bidQty", &quantity_text(best.bid_quantity))
        .text("askPrice", &price_text(best.ask))
        .text("askQty", &quantity_text(best.ask_quantity))
}

fn day_statistics(spot: &SpotMarket, index: usize, is_mini: bool, context: CallContext) -> String {
    let tape = &spot.tapes[index];
    let mut object = OrderedObject::new().text("symbol", &spot.instrument(index).name);
    if !is_mini {
        object = object
            .text("priceChange", &eight_decimals(tape.change()))
            .text("priceChangePercent", &tape.change_percent())
            .text("weightedAvgPrice", &eight_decimals(tape.average()))
            .text("prevClosePrice", &price_text(tape.open))
            .text("lastPrice", &price_text(tape.last))
            .text("lastQty", &quantity_text(tape.last_quantity));
        object = best_quote(object, spot, index);
    }
    object = object
        .text("openPrice", &price_text(tape.open))
        .text("highPrice", &price_text(tape.high))
        .text("lowPrice", &price_text(tape.low));
    if is_mini {
        object = object.text("lastPrice", &price_text(tape.last));
    }
    day_totals(object, tape, context.now_ns, context.unit).finish()
}

fn day_totals(object: OrderedObject, tape: &TradeTape, now_ns: u64, unit: StampUnit) -> OrderedObject {
    let object = object
        .text("volume", &eight_decimals(tape.volume))
        .text("quoteVolume", &value_text(tape.value))
        .plain("openTime", unit.of(tape.opened_ns))
        .plain("closeTime", unit.of(now_ns));
    let object = match tape.ids {
        Some((first, last)) => object.plain("firstId", first).plain("lastId", last),
        None => object.plain("firstId", -1).plain("lastId", -1),
    };
    object.plain("count", tape.count)
}
