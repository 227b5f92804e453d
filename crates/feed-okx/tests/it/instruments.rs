//! The list of instruments, with rows as OKX writes them.

use tickpath_feed::{ContractKind, ListedInstrument, Listing, ListingError};
use tickpath_feed_okx::read_instruments;

/// The row of the page, without some of the fields that are not read.
const SPOT: &str = r#"{"alias":"","baseCcy":"BTC","category":"1","ctMult":"","ctType":"","ctVal":"","ctValCcy":"","expTime":"",
    "futureSettlement":false,"instFamily":"","instId":"BTC-USDT","instType":"SPOT","lever":"10","listTime":"1606468572000",
    "lotSz":"0.00000001","maxLmtSz":"9999999999","minSz":"0.00001","optType":"","quoteCcy":"USDT",
    "tradeQuoteCcyList":["USDT"],"settleCcy":"","state":"live","stk":"","tickSz":"0.1","uly":"","instIdCode":1000000000,
    "upcChg":[{"param":"tickSz","newValue":"0.0001","effTime":"1704876947000"}]}"#;
const LINEAR: &str = r#"{"instType":"SWAP","instId":"BTC-USDT-SWAP","uly":"BTC-USDT","instFamily":"BTC-USDT","baseCcy":"",
    "quoteCcy":"","settleCcy":"USDT","ctVal":"0.01","ctMult":"1","ctValCcy":"BTC","ctType":"linear","tickSz":"0.1",
    "lotSz":"0.01","minSz":"0.01","state":"live","instIdCode":10459}"#;
const INVERSE: &str = r#"{"instType":"SWAP","instId":"BTC-USD-SWAP","uly":"BTC-USD","instFamily":"BTC-USD","baseCcy":"",
    "quoteCcy":"","settleCcy":"BTC","ctVal":"100","ctMult":"1","ctValCcy":"USD","ctType":"inverse","tickSz":"0.1",
    "lotSz":"1","minSz":"1","state":"suspend","instIdCode":null}"#;
const OPTION: &str = r#"{"instType":"OPTION","instId":"BTC-USD-260928-79000-C","uly":"BTC-USD","instFamily":"BTC-USD",
    "settleCcy":"BTC","ctVal":"1","ctMult":"0.01","ctValCcy":"BTC","ctType":"","optType":"C","stk":"79000",
    "expTime":"1790582400000","tickSz":"0.0001","lotSz":"1","minSz":"1","state":"live","instIdCode":5}"#;

fn read(rows: &[&str]) -> Listing {
    let answer = format!(r#"{{"code":"0","msg":"","data":[{}]}}"#, rows.join(","));
    read_instruments(answer.as_bytes()).expect("the answer is a list")
}

fn linear() -> ListedInstrument {
    ListedInstrument {
        name: "BTC-USDT-SWAP".to_owned(),
        code: 10_459,
        contract: ContractKind::Linear,
        is_live: true,
        tick_size: "0.1".to_owned(),
        lot: "0.01".to_owned(),
        minimum_quantity: "0.01".to_owned(),
        minimum_notional: String::new(),
        contract_value: "0.01".to_owned(),
        value_currency: "BTC".to_owned(),
        quote_currency: "USDT".to_owned(),
        settle_currency: "USDT".to_owned(),
    }
}

fn inverse() -> ListedInstrument {
    ListedInstrument {
        name: "BTC-USD-SWAP".to_owned(),
        code: 0,
        contract: ContractKind::Inverse,
        is_live: false,
        lot: "1".to_owned(),
        minimum_quantity: "1".to_owned(),
        contract_value: "100".to_owned(),
        value_currency: "USD".to_owned(),
        quote_currency: "USD".to_owned(),
        settle_currency: "BTC".to_owned(),
        ..linear()
    }
}

#[test]
fn each_type_of_instrument_has_its_value_and_currencies() {
    let spot = ListedInstrument {
        name: "BTC-USDT".to_owned(),
        code: 1_000_000_000,
        lot: "0.00000001".to_owned(),
        minimum_quantity: "0.00001".to_owned(),
        contract_value: "1".to_owned(),
        ..linear()
    };
    let option = ListedInstrument {
        name: "BTC-USD-260928-79000-C".to_owned(),
        code: 5,
        tick_size: "0.0001".to_owned(),
        lot: "1".to_owned(),
        minimum_quantity: "1".to_owned(),
        contract_value: "0.01".to_owned(),
        value_currency: "BTC".to_owned(),
        quote_currency: "BTC".to_owned(),
        settle_currency: "BTC".to_owned(),
        ..linear()
    };
    let listing = read(&[SPOT, LINEAR, INVERSE, OPTION]);
    assert_eq!(listing.instruments, [spot, linear(), inverse(), option]);
    assert!(listing.refused.is_empty(), "{:?}", listing.refused);
}

#[test]
fn an_empty_underlying_leaves_the_currency_of_the_contract() {
    let rows =
        [LINEAR.replace(r#""uly":"BTC-USDT""#, r#""uly":"""#), INVERSE.replace(r#""uly":"BTC-USD""#, r#""uly":"""#)];
    let listing = read(&rows.each_ref().map(String::as_str));
    assert_eq!(listing.instruments, [linear(), inverse()]);
}

#[test]
fn a_contract_value_is_an_exact_product() {
    for (value, multiplier, product) in
        [("0.1", "0.1", "0.01"), ("10", "0.10", "1"), ("0.00000001", "0.0000000001", "0.000000000000000001")]
    {
        let row =
            LINEAR.replace(r#""ctVal":"0.01","ctMult":"1""#, &format!(r#""ctVal":"{value}","ctMult":"{multiplier}""#));
        assert_eq!(read(&[row.as_str()]).instruments[0].contract_value, product, "{value} times {multiplier}");
    }
}

#[test]
fn rows_that_cannot_be_used_are_refused_by_name_and_the_rest_is_read() {
    let preopen = LINEAR.replace(r#""tickSz":"0.1""#, r#""tickSz":"""#).replace("live", "preopen");
    for (row, name, sentence) in [
        (preopen, "BTC-USDT-SWAP", "its tickSz '' is no positive number; its state is 'preopen'"),
        (
            LINEAR.replace(r#""lotSz":"0.01""#, r#""lotSz":"-1""#),
            "BTC-USDT-SWAP",
            "its lotSz '-1' is no positive number; its state is 'live'",
        ),
        (
            LINEAR.replace(r#""ctVal":"0.01""#, r#""ctVal":"0""#),
            "BTC-USDT-SWAP",
            "its ctVal '0' times ctMult '1' is no positive number",
        ),
        (LINEAR.replace("linear", "cubic"), "BTC-USDT-SWAP", "its ctType 'cubic' is unknown"),
        (
            LINEAR.replace(r#""instType":"SWAP""#, r#""instType":"EVENTS""#),
            "BTC-USDT-SWAP",
            "instruments of the type 'EVENTS' are not read",
        ),
        (SPOT.replace(r#""quoteCcy":"USDT""#, r#""quoteCcy":"""#), "BTC-USDT", "it has no baseCcy or no quoteCcy"),
        (
            r#"{"instId":"X","tickSz":1}"#.to_owned(),
            "X",
            "its fields are wrong: invalid type: integer `1`, expected a string",
        ),
        ("{}".to_owned(), "row 1", "it has no instId"),
    ] {
        let listing = read(&[row.as_str(), LINEAR]);
        assert_eq!(listing.refused, [(name.to_owned(), sentence.to_owned())]);
        assert_eq!(listing.instruments, [linear()], "the other row");
    }
}

#[test]
fn an_answer_that_is_no_list_is_an_error_with_a_remedy() {
    for (answer, sentence) in [
        (
            r#"{"code":"50011","msg":"Too Many Requests","data":[]}"#,
            "the exchange answers with an error: 50011: Too Many Requests",
        ),
        (
            "\n<!DOCTYPE html><html></html>",
            "the answer is no list of instruments: it is a page of HTML; save the exchange's answer unchanged, or check \
             the address",
        ),
        (
            r#"{"code":"0","msg":""}"#,
            "the answer is no list of instruments: it has no data; save the exchange's answer unchanged, or check the \
             address",
        ),
        (
            "",
            "the answer is no list of instruments: EOF while parsing a value at line 1 column 0; save the exchange's \
             answer unchanged, or check the address",
        ),
    ] {
        let error: ListingError = read_instruments(answer.as_bytes()).expect_err(answer);
        assert_eq!(error.to_string(), sentence);
    }
}
