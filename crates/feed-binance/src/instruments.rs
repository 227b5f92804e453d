//! The exchange's list of instruments: the answer of `GET /api/v3/exchangeInfo` or `GET /fapi/v1/exchangeInfo`.

use serde::Deserialize;
use serde_json::Value;
use tickpath_feed::{ContractKind, ListedInstrument, Listing, ListingError};

use crate::json::read_error;
use crate::market::BinanceMarket;
use crate::message::printable;

/// Reads the exchange's list of instruments. Quantities of both markets are in the base currency, so that the contract
/// value is 1.
pub fn read_instruments(market: BinanceMarket, answer: &[u8]) -> Result<Listing, ListingError> {
    if answer.trim_ascii_start().starts_with(b"<") {
        return Err(ListingError::Malformed("it is a page in HTML".to_owned()));
    }
    if let Some(error) = read_error(answer) {
        return Err(ListingError::Exchange(error));
    }
    let info: ExchangeInfo = serde_json::from_slice(answer).map_err(|e| ListingError::Malformed(e.to_string()))?;
    let mut listing = Listing::default();
    for symbol in info.symbols {
        match read_instrument(market, &symbol) {
            Ok(instrument) => listing.instruments.push(instrument),
            Err(why) => listing.refused.push((name_of(&symbol), why)),
        }
    }
    Ok(listing)
}

#[derive(Deserialize)]
struct ExchangeInfo {
    symbols: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedSymbol {
    symbol: String,
    status: String,
    base_asset: String,
    quote_asset: String,
    /// Only of futures, as is the kind of the contract.
    margin_asset: Option<String>,
    contract_type: Option<String>,
    /// Only of spot.
    is_spot_trading_allowed: Option<bool>,
    filters: Vec<SymbolFilter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SymbolFilter {
    filter_type: String,
    tick_size: Option<String>,
    step_size: Option<String>,
    min_qty: Option<String>,
    /// Name of the bound in both filters of the spot market.
    min_notional: Option<String>,
    /// Name of the bound in the futures market.
    notional: Option<String>,
}

fn read_instrument(market: BinanceMarket, symbol: &Value) -> Result<ListedInstrument, String> {
    let listed = ListedSymbol::deserialize(symbol).map_err(|e| format!("its entry cannot be read: {e}"))?;
    let settle_currency = settle_currency(market, &listed)?;
    let price = listed.filter("PRICE_FILTER").ok_or("it has no PRICE_FILTER, and so no step of prices")?;
    let quantity = listed.filter("LOT_SIZE").ok_or("it has no LOT_SIZE, and so no step of quantities")?;
    let notional = listed.filter("NOTIONAL").or_else(|| listed.filter("MIN_NOTIONAL"));
    let minimum_notional = notional.and_then(|filter| filter.min_notional.as_ref().or(filter.notional.as_ref()));
    Ok(ListedInstrument {
        code: 0,
        contract: ContractKind::Linear,
        is_live: listed.status == "TRADING" && listed.is_spot_trading_allowed != Some(false),
        tick_size: step(price.tick_size.as_ref(), "prices")?,
        lot: step(quantity.step_size.as_ref(), "quantities")?,
        minimum_quantity: quantity.min_qty.clone().unwrap_or_default(),
        minimum_notional: minimum_notional.cloned().unwrap_or_default(),
        contract_value: "1".to_owned(),
        settle_currency,
        name: listed.symbol,
        value_currency: listed.base_asset,
        quote_currency: listed.quote_asset,
    })
}

/// Returns the currency of profit, and refuses an entry of the other market.
fn settle_currency(market: BinanceMarket, listed: &ListedSymbol) -> Result<String, String> {
    match (market, &listed.margin_asset) {
        (BinanceMarket::Spot, None) => Ok(listed.quote_asset.clone()),
        (BinanceMarket::Spot, Some(_)) => Err("it is a futures contract; read this list as one of futures".to_owned()),
        (BinanceMarket::UsdFutures, None) => {
            Err("it has no margin asset; read this list as one of the spot market".to_owned())
        }
        (BinanceMarket::UsdFutures, Some(margin)) if *margin == listed.quote_asset => Ok(margin.clone()),
        (BinanceMarket::UsdFutures, Some(margin)) => {
            let kind = listed.contract_type.as_deref().unwrap_or("contract");
            Err(format!("a {kind} with prices in {} and profit in {margin} is not supported", listed.quote_asset))
        }
    }
}

impl ListedSymbol {
    fn filter(&self, kind: &str) -> Option<&SymbolFilter> {
        self.filters.iter().find(|filter| filter.filter_type == kind)
    }
}

/// Returns a step as the exchange writes it; a step of zero means that the exchange checks none.
fn step(text: Option<&String>, of: &str) -> Result<String, String> {
    let text = text.ok_or_else(|| format!("its step of {of} is missing"))?;
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_decimal || !text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
        return Err(format!("its step of {of} is '{}', and not above zero", printable(text)));
    }
    Ok(text.clone())
}

fn name_of(symbol: &Value) -> String {
    printable(symbol.get("symbol").and_then(Value::as_str).unwrap_or("?"))
}
