//! Instruments as OKX lists them, and how requests name them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tickpath_venue_sim_web::{SimDesk, SimInstrument};

use crate::codes::{OkxRefusal, PARAMETER, UNKNOWN_INSTRUMENT};
use crate::fields::{Row, fill_row, row, text_field};

/// Hour of a delivery, in UTC.
const DELIVERY_HOUR: i8 = 8;
/// Listing time of all instruments: any time in the past.
const LISTED_MS: &str = "1606468572000";
/// Leverage of all derivatives.
pub(crate) const LEVERAGE: &str = "10";

/// Fields that are empty for all of our instruments.
const EMPTY: &[&str] = &[
    "alias",
    "auctionEndTime",
    "contTdSwTime",
    "maxMktAmt",
    "maxLmtAmt",
    "openType",
    "optType",
    "preMktSwTime",
    "seriesId",
    "stk",
];
/// Sizes without a limit of ours.
const UNLIMITED: &[&str] = &["maxIcebergSz", "maxLmtSz", "maxMktSz", "maxStopSz", "maxTriggerSz", "maxTwapSz"];

/// Returns the index of the instrument that a request names, by `instIdCode` or by `instId`.
pub(crate) fn find_instrument(sim: &SimDesk, request: &Value) -> Result<usize, OkxRefusal> {
    let found = match (text_field(request, "instIdCode"), text_field(request, "instId")) {
        (Some(code), _) => {
            let code: u64 = code.parse().map_err(|_| PARAMETER.about("instIdCode"))?;
            sim.instruments().iter().position(|instrument| instrument.code == code)
        }
        (None, Some(name)) => instrument_named(sim, &name),
        (None, None) => return Err(PARAMETER.about("instId")),
    };
    found.ok_or_else(|| UNKNOWN_INSTRUMENT.refusal())
}

/// Returns the index of the instrument with this name.
pub(crate) fn instrument_named(sim: &SimDesk, name: &str) -> Option<usize> {
    sim.instruments().iter().position(|instrument| instrument.name == name)
}

/// Returns OKX's type of an instrument. A derivative is a swap if its name ends so, and otherwise has a delivery.
pub(crate) fn instrument_type(instrument: &SimInstrument) -> &'static str {
    match instrument.is_derivative {
        false => "SPOT",
        true if instrument.name.ends_with("-SWAP") => "SWAP",
        true => "FUTURES",
    }
}

/// Returns the family of an instrument, which is also its underlying: BTC-USDT. Spot instruments have none.
pub(crate) fn instrument_family(instrument: &SimInstrument) -> String {
    match instrument.is_derivative {
        false => String::new(),
        true => format!("{}-{}", instrument.base, instrument.quote),
    }
}

/// Returns an instrument as a row of OKX's list.
pub(crate) fn instrument_row(instrument: &SimInstrument, is_suspended: bool) -> Value {
    let kind = instrument_type(instrument);
    let (family, derivative) = (instrument_family(instrument), instrument.is_derivative);
    let of = |is_there: bool, text: &str| if is_there { text.to_owned() } else { String::new() };
    let mut row: Row = row([
        ("instType", kind),
        ("instId", &instrument.name),
        ("uly", &family),
        ("instFamily", &family),
        ("baseCcy", &of(!derivative, &instrument.base)),
        ("quoteCcy", &of(!derivative, &instrument.quote)),
        ("settleCcy", &of(derivative, &instrument.quote)),
        ("ctVal", &of(derivative, &instrument.contract_value.to_string())),
        ("ctMult", &of(derivative, "1")),
        ("ctValCcy", &of(derivative, &instrument.base)),
        ("ctType", &of(derivative, "linear")),
        ("lever", &of(derivative, LEVERAGE)),
        ("expTime", &delivery_ms(instrument).map(|ms| ms.to_string()).unwrap_or_default()),
        ("tickSz", &instrument.tick.to_string()),
        ("lotSz", &instrument.lot.to_string()),
        ("minSz", &instrument.minimum.to_string()),
        ("state", if is_suspended { "suspend" } else { "live" }),
        ("listTime", LISTED_MS),
        ("category", "1"),
        ("groupId", "1"),
        ("instCategory", "1"),
        ("ruleType", "normal"),
        ("initPxLmtPct", "0.05"),
        ("floatPxLmtPct", "0.03"),
        ("maxPxLmtPct", "0.15"),
    ]);
    fill_row(&mut row, "", EMPTY);
    fill_row(&mut row, "9999999999", UNLIMITED);
    row.insert("instIdCode".to_owned(), json!(instrument.code));
    row.insert("futureSettlement".to_owned(), json!(false));
    row.insert("tradeQuoteCcyList".to_owned(), if derivative { json!([]) } else { json!([instrument.quote]) });
    row.insert("upcChg".to_owned(), json!([]));
    Value::Object(row)
}

/// Returns the currencies of all instruments, each once.
pub(crate) fn currencies(sim: &SimDesk) -> Vec<String> {
    let mut names: Vec<String> =
        sim.instruments().iter().flat_map(|instrument| [instrument.base.clone(), instrument.quote.clone()]).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns a currency as a row of OKX's list.
pub(crate) fn currency_row(name: &str) -> Value {
    let mut row: Row = row([
        ("ccy", name),
        ("name", name),
        ("chain", &format!("{name}-Simulated")),
        ("fee", "0.0001"),
        ("minFee", "0.0001"),
        ("maxFee", "0.0001"),
        ("maxWd", "1000000"),
        ("minDep", "0.0001"),
        ("minWd", "0.0001"),
        ("minInternal", "0.0001"),
        ("minDepArrivalConfirm", "1"),
        ("minWdUnlockConfirm", "2"),
        ("usedWdQuota", "0"),
        ("wdQuota", "10000000"),
        ("wdTickSz", "8"),
    ]);
    fill_row(
        &mut row,
        "",
        &["burningFeeRate", "ctAddr", "depEstOpenTime", "depQuotaFixed", "depQuoteDailyLayer2", "logoLink"],
    );
    fill_row(&mut row, "", &["maxFeeForCtAddr", "minFeeForCtAddr", "usedDepQuotaFixed", "wdEstOpenTime"]);
    for (name, is_so) in
        [("canDep", true), ("canInternal", true), ("canWd", true), ("mainNet", true), ("needTag", false)]
    {
        row.insert(name.to_owned(), json!(is_so));
    }
    Value::Object(row)
}

/// Returns the delivery of a futures contract from its name, which ends with a date: BTC-USDT-261225.
fn delivery_ms(instrument: &SimInstrument) -> Option<i64> {
    if instrument_type(instrument) != "FUTURES" {
        return None;
    }
    let digits: u32 = instrument.name.rsplit('-').next()?.parse().ok()?;
    let (year, month, day) = (2_000 + digits / 10_000, digits / 100 % 100, digits % 100);
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    Some(date.at(DELIVERY_HOUR, 0, 0, 0).to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}
