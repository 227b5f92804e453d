//! Balances, the configuration and the fees of an account, as rows of OKX.

use serde_json::{Value, json};
use tickpath_market::{Quantity, SCALE};
use tickpath_venue_sim_web::{SimDesk, SimInstrument};

use crate::fields::{Row, amount_text, fill_row, ms_text, row};
use crate::positions::{middle_price, units};

/// Currencies that are worth a dollar each.
const DOLLARS: [&str; 3] = ["USDT", "USDC", "USD"];

/// Fields of an account that are zero here.
const ZERO: &[&str] = &[
    "borrowFroz",
    "delta",
    "deltaLever",
    "deltaNeutralStatus",
    "imr",
    "isoEq",
    "mmr",
    "notionalUsd",
    "notionalUsdForBorrow",
    "notionalUsdForFutures",
    "notionalUsdForOption",
    "notionalUsdForSwap",
    "ordFroz",
    "upl",
];
/// Fields of a currency that are zero here.
const ZERO_OF_CURRENCY: &[&str] = &[
    "autoLendAmt",
    "autoLendMtAmt",
    "borrowFroz",
    "colBorrAutoConversion",
    "colRes",
    "crossLiab",
    "fixedBal",
    "frpType",
    "interest",
    "isoEq",
    "isoLiab",
    "isoUpl",
    "liab",
    "maxLoan",
    "rewardBal",
    "smtSyncEq",
    "spotCopyTradingEq",
    "spotIsoBal",
    "stgyEq",
    "twap",
    "upl",
    "uplLiab",
];
/// Fields of a currency that are empty here.
const EMPTY_OF_CURRENCY: &[&str] = &[
    "accAvgPx",
    "clSpotInUseAmt",
    "imr",
    "maxSpotInUse",
    "maxSpotInUseAmt",
    "mgnRatio",
    "mmr",
    "notionalLever",
    "openAvgPx",
    "spotBal",
    "spotInUseAmt",
    "spotUpl",
    "spotUplRatio",
    "totalPnl",
    "totalPnlRatio",
];

/// Returns the balances of an account: of these currencies, or of all that are not zero.
pub(crate) fn balance_row(sim: &SimDesk, account: usize, currencies: &[&str], now_ns: u64) -> Value {
    let is_wanted = |name: &str, total: Quantity| match currencies {
        [] => total != Quantity::ZERO,
        named => named.contains(&name),
    };
    let (mut details, mut all_dollars) = (Vec::new(), 0);
    for (name, total, available) in sim.balance(account) {
        let dollars = dollars(sim, name, total);
        all_dollars += dollars;
        if is_wanted(name, total) {
            details.push(currency_row(name, total, available, dollars, now_ns));
        }
    }
    let all = amount_text(all_dollars);
    let mut row: Row =
        row([("adjEq", &all), ("availEq", &all), ("totalEq", &all), ("mgnRatio", ""), ("uTime", &ms_text(now_ns))]);
    fill_row(&mut row, "0", ZERO);
    row.insert("details".to_owned(), Value::Array(details));
    Value::Object(row)
}

/// Returns the cash of an account as the channel of balances and positions has it.
pub(crate) fn cash_rows(sim: &SimDesk, account: usize, now_ns: u64) -> Vec<Value> {
    let ms = ms_text(now_ns);
    let of = |(name, total, _): (&str, Quantity, Quantity)| {
        Value::Object(row([("ccy", name), ("cashBal", &total.to_string()), ("uTime", &ms)]))
    };
    sim.balance(account).filter(|(_, total, _)| *total != Quantity::ZERO).map(of).collect()
}

/// Returns the configuration of an account: futures mode with net positions.
pub(crate) fn configuration_row(user: &str, label: &str) -> Value {
    let mut row: Row = row([
        ("uid", user),
        ("mainUid", user),
        ("label", label),
        ("acctLv", "2"),
        ("acctStpMode", "cancel_maker"),
        ("posMode", "net_mode"),
        ("ctIsoMode", "automatic"),
        ("mgnIsoMode", "automatic"),
        ("greeksType", "PA"),
        ("feeType", "0"),
        ("type", "0"),
        ("kycLv", "3"),
        ("level", "Lv1"),
        ("liquidationGear", "-1"),
        ("opAuth", "0"),
        ("perm", "read_only,trade"),
        ("roleType", "0"),
        ("spotRoleType", "0"),
        ("stgyType", "0"),
        ("settleCcy", "USDT"),
    ]);
    fill_row(&mut row, "", &["ip", "levelTmp", "spotOffsetType"]);
    for name in ["autoLoan", "enableSpotBorrow", "spotBorrowAutoRepay"] {
        row.insert(name.to_owned(), json!(false));
    }
    for name in ["spotTraderInsts", "traderInsts", "settleCcyList"] {
        row.insert(name.to_owned(), json!([]));
    }
    Value::Object(row)
}

/// Returns the fee rates of a type of instruments, given in 10⁻⁶ and positive if paid.
pub(crate) fn fee_row(kind: &str, maker_e6: i64, taker_e6: i64, now_ns: u64) -> Value {
    let rate = |e6: i64| amount_text(-i128::from(e6) * i128::from(SCALE) / 1_000_000);
    let (maker, taker) = (rate(maker_e6), rate(taker_e6));
    let is_spot = kind == "SPOT";
    let only = |is_there: bool, text: &str| if is_there { text.to_owned() } else { String::new() };
    let mut row: Row = row([
        ("category", "1"),
        ("instType", kind),
        ("level", "Lv1"),
        ("maker", &maker),
        ("taker", &taker),
        ("makerU", &only(!is_spot, &maker)),
        ("takerU", &only(!is_spot, &taker)),
        ("makerUSDC", &maker),
        ("takerUSDC", &taker),
        ("ruleType", "normal"),
        ("ts", &ms_text(now_ns)),
    ]);
    fill_row(&mut row, "", &["delivery", "exercise", "settle"]);
    row.insert("fiat".to_owned(), json!([]));
    row.insert("feeGroup".to_owned(), json!([{"groupId": "1", "maker": maker, "taker": taker}]));
    Value::Object(row)
}

fn currency_row(name: &str, total: Quantity, available: Quantity, dollars: i128, now_ns: u64) -> Value {
    let (all, free) = (total.to_string(), available.to_string());
    let frozen = amount_text(units(total) - units(available));
    let mut row: Row = row([
        ("ccy", name),
        ("cashBal", &all),
        ("eq", &all),
        ("availBal", &free),
        ("availEq", &free),
        ("frozenBal", &frozen),
        ("ordFrozen", &frozen),
        ("eqUsd", &amount_text(dollars)),
        ("disEq", &amount_text(dollars)),
        ("autoLendStatus", "unsupported"),
        ("uTime", &ms_text(now_ns)),
    ]);
    fill_row(&mut row, "0", ZERO_OF_CURRENCY);
    fill_row(&mut row, "", EMPTY_OF_CURRENCY);
    row.insert("collateralEnabled".to_owned(), json!(false));
    row.insert("collateralRestrict".to_owned(), json!(false));
    Value::Object(row)
}

/// Returns the value of an amount in dollars, in units of 10⁻⁸; zero for a currency without a market for dollars.
fn dollars(sim: &SimDesk, name: &str, amount: Quantity) -> i128 {
    if DOLLARS.contains(&name) {
        return units(amount);
    }
    let is_market = |instrument: &SimInstrument| {
        !instrument.is_derivative && instrument.base == name && DOLLARS.contains(&instrument.quote.as_str())
    };
    let market = sim.instruments().iter().position(is_market);
    market.map_or(0, |index| units(amount) * i128::from(middle_price(sim, index).0) / i128::from(SCALE))
}
