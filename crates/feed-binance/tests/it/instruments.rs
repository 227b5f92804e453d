//! The exchange's lists of instruments, in their documented form.

use tickpath_feed::{ContractKind, ListedInstrument, Listing, ListingError};
use tickpath_feed_binance::BinanceMarket::{Spot, UsdFutures};
use tickpath_feed_binance::{BinanceMarket, read_instruments};

const SPOT: &str = r#"{
  "timezone": "UTC", "serverTime": 1565246363776, "rateLimits": [], "exchangeFilters": [],
  "symbols": [
    {
      "symbol": "ETHBTC", "status": "TRADING", "baseAsset": "ETH", "baseAssetPrecision": 8, "quoteAsset": "BTC",
      "quotePrecision": 8, "quoteAssetPrecision": 8, "orderTypes": ["LIMIT", "MARKET"], "icebergAllowed": true,
      "isSpotTradingAllowed": true, "isMarginTradingAllowed": true,
      "filters": [
        {"filterType": "PRICE_FILTER", "minPrice": "0.00000100", "maxPrice": "100000.0", "tickSize": "0.00000100"},
        {"filterType": "LOT_SIZE", "minQty": "0.00100000", "maxQty": "100000.00000000", "stepSize": "0.00100000"},
        {"filterType": "ICEBERG_PARTS", "limit": 10},
        {"filterType": "MARKET_LOT_SIZE", "minQty": "0.00000000", "maxQty": "1000.00000000", "stepSize": "0.00000000"},
        {"filterType": "NOTIONAL", "minNotional": "10.00000000", "applyMinToMarket": false, "avgPriceMins": 5}
      ],
      "permissions": [], "defaultSelfTradePreventionMode": "NONE"
    },
    {
      "symbol": "OLDBTC", "status": "BREAK", "baseAsset": "OLD", "quoteAsset": "BTC", "isSpotTradingAllowed": true,
      "filters": [
        {"filterType": "LOT_SIZE", "minQty": "1", "maxQty": "9", "stepSize": "1"},
        {"filterType": "PRICE_FILTER", "minPrice": "0", "maxPrice": "0", "tickSize": "0.1"},
        {"filterType": "MIN_NOTIONAL", "minNotional": "0.00100000", "applyToMarket": true, "avgPriceMins": 5}
      ]
    }
  ]
}"#;

const FUTURES: &str = r#"{
  "exchangeFilters": [], "rateLimits": [], "serverTime": 1565613908500,
  "assets": [{"asset": "BTC", "marginAvailable": true, "autoAssetExchange": "-0.10"}],
  "symbols": [
    {
      "symbol": "BLZUSDT", "pair": "BLZUSDT", "contractType": "PERPETUAL", "deliveryDate": 4133404800000,
      "onboardDate": 1598252400000, "status": "TRADING", "maintMarginPercent": "2.5000", "baseAsset": "BLZ",
      "quoteAsset": "USDT", "marginAsset": "USDT", "pricePrecision": 5, "quantityPrecision": 0,
      "underlyingType": "COIN", "underlyingSubType": ["STORAGE"], "triggerProtect": "0.15",
      "filters": [
        {"filterType": "PRICE_FILTER", "maxPrice": "300", "minPrice": "0.0001", "tickSize": "0.0001"},
        {"filterType": "LOT_SIZE", "maxQty": "10000000", "minQty": "1", "stepSize": "1"},
        {"filterType": "MARKET_LOT_SIZE", "maxQty": "590119", "minQty": "1", "stepSize": "1"},
        {"filterType": "MAX_NUM_ORDERS", "limit": 200},
        {"filterType": "MIN_NOTIONAL", "notional": "5.0"},
        {"filterType": "PERCENT_PRICE", "multiplierUp": "1.1500", "multiplierDown": "0.8500", "multiplierDecimal": "4"}
      ],
      "OrderType": ["LIMIT"], "timeInForce": ["GTC"], "liquidationFee": "0.010000", "marketTakeBound": "0.30"
    }
  ]
}"#;

/// Returns an answer with one spot instrument of these filters.
fn with_filters(filters: &str) -> String {
    format!(
        r#"{{"symbols":[{{"symbol":"AB","status":"TRADING","baseAsset":"A","quoteAsset":"B","filters":[{filters}]}}]}}"#
    )
}

fn refusal(market: BinanceMarket, answer: &str) -> String {
    let listing = read_instruments(market, answer.as_bytes()).expect("a list");
    assert!(listing.instruments.is_empty(), "{answer}");
    listing.refused.into_iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn spot_instruments_are_in_the_base_currency() {
    let listing = read_instruments(Spot, SPOT.as_bytes()).expect("a list");
    let ethbtc = ListedInstrument {
        name: "ETHBTC".to_owned(),
        code: 0,
        contract: ContractKind::Linear,
        is_live: true,
        tick_size: "0.00000100".to_owned(),
        lot: "0.00100000".to_owned(),
        minimum_quantity: "0.00100000".to_owned(),
        minimum_notional: "10.00000000".to_owned(),
        contract_value: "1".to_owned(),
        value_currency: "ETH".to_owned(),
        quote_currency: "BTC".to_owned(),
        settle_currency: "BTC".to_owned(),
    };
    let oldbtc = ListedInstrument {
        name: "OLDBTC".to_owned(),
        is_live: false,
        tick_size: "0.1".to_owned(),
        lot: "1".to_owned(),
        minimum_quantity: "1".to_owned(),
        minimum_notional: "0.00100000".to_owned(),
        value_currency: "OLD".to_owned(),
        ..ethbtc.clone()
    };
    assert_eq!(listing, Listing { instruments: vec![ethbtc, oldbtc], refused: Vec::new() });
}

#[test]
fn futures_are_settled_in_their_margin_asset() {
    let listing = read_instruments(UsdFutures, FUTURES.as_bytes()).expect("a list");
    let blz = ListedInstrument {
        name: "BLZUSDT".to_owned(),
        code: 0,
        contract: ContractKind::Linear,
        is_live: true,
        tick_size: "0.0001".to_owned(),
        lot: "1".to_owned(),
        minimum_quantity: "1".to_owned(),
        minimum_notional: "5.0".to_owned(),
        contract_value: "1".to_owned(),
        value_currency: "BLZ".to_owned(),
        quote_currency: "USDT".to_owned(),
        settle_currency: "USDT".to_owned(),
    };
    assert_eq!(listing, Listing { instruments: vec![blz], refused: Vec::new() });
}

#[test]
fn instruments_that_cannot_be_used_are_refused_one_by_one() {
    for (filters, words) in [
        ("", "AB: it has no PRICE_FILTER"),
        (r#"{"filterType":"PRICE_FILTER","tickSize":"0.1"}"#, "AB: it has no LOT_SIZE"),
        (
            r#"{"filterType":"PRICE_FILTER","tickSize":"0.000"},{"filterType":"LOT_SIZE","stepSize":"1"}"#,
            "AB: its step of prices is '0.000', and not above zero",
        ),
        (
            r#"{"filterType":"PRICE_FILTER","tickSize":"0.1"},{"filterType":"LOT_SIZE","stepSize":"x"}"#,
            "AB: its step of quantities is 'x'",
        ),
        (
            r#"{"filterType":"PRICE_FILTER"},{"filterType":"LOT_SIZE","stepSize":"1"}"#,
            "AB: its step of prices is missing",
        ),
    ] {
        let refused = refusal(Spot, &with_filters(filters));
        assert!(refused.contains(words), "{filters}: {refused}");
    }
    let refused = refusal(Spot, r#"{"symbols":[{"symbol":"AB"},7]}"#);
    assert!(refused.contains("AB: its entry cannot be read: missing field") && refused.contains("\n?: "), "{refused}");
    let quanto = FUTURES.replace(r#""marginAsset": "USDT""#, r#""marginAsset": "BTC""#);
    let refused = refusal(UsdFutures, &quanto);
    assert!(refused.contains("PERPETUAL with prices in USDT and profit in BTC"), "{refused}");
}

#[test]
fn a_list_of_the_other_market_is_refused() {
    let refused = refusal(UsdFutures, SPOT);
    assert!(refused.contains("ETHBTC: it has no margin asset") && refused.contains("OLDBTC: "), "{refused}");
    assert!(refusal(Spot, FUTURES).contains("BLZUSDT: it is a futures contract"));
}

#[test]
fn answers_that_are_no_list_are_errors() {
    let check = |answer: &str, expected: Result<(), &str>| match read_instruments(Spot, answer.as_bytes()) {
        Err(error) => assert!(expected.is_err_and(|words| error.to_string().contains(words)), "{answer}: {error}"),
        Ok(listing) => assert!(expected.is_ok(), "{answer}: {listing:?}"),
    };
    check(r#"{"symbols":[]}"#, Ok(()));
    check("", Err("no list of instruments: EOF"));
    check("\n <!DOCTYPE html><html></html>", Err("it is a page in HTML"));
    check(r#"{"serverTime":1}"#, Err("missing field `symbols`"));
    check(r#"{"symbols":7}"#, Err("invalid type"));
    let limited = r#"{"code":-1003,"msg":"Too many requests."}"#;
    let expected = ListingError::Exchange("-1003: Too many requests.".to_owned());
    assert_eq!(read_instruments(Spot, limited.as_bytes()), Err(expected));
}
