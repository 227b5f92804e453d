//! OKX's list of instruments: the answer of `GET /api/v5/public/instruments?instType=SPOT`, `SWAP`, `FUTURES` or
//! `OPTION`.
//!
//! | type          | quantity          | contract value     | currency of prices                                        |
//! |---------------|-------------------|--------------------|-----------------------------------------------------------|
//! | spot, margin  | the base currency | 1                  | `quoteCcy`                                                |
//! | swap, futures | contracts         | `ctVal` × `ctMult` | second part of `uly`; without it `settleCcy`, or          |
//! |               |                   |                    | `ctValCcy` of an inverse contract                         |
//! | option        | contracts         | `ctVal` × `ctMult` | `settleCcy`, the currency of a premium                    |

use serde::Deserialize;
use serde_json::Value;
use tickpath_feed::{ContractKind, ListedInstrument, Listing, ListingError};
use tickpath_market::decimal_text;

use crate::complaint::shown;

/// Max decimals of a contract value: with more, ten to their power does not fit 128 bits.
const MAX_VALUE_DECIMALS: u8 = 38;

/// Reads OKX's answer. An instrument that is not traded now is listed as not live; an instrument without a tick size,
/// as before its listing, is refused by name.
pub fn read_instruments(answer: &[u8]) -> Result<Listing, ListingError> {
    if answer.trim_ascii_start().starts_with(b"<") {
        return Err(ListingError::Malformed("it is a page of HTML".to_owned()));
    }
    let read: Result<InstrumentsAnswer, _> = serde_json::from_slice(answer);
    let InstrumentsAnswer { code, msg, data } = read.map_err(|e| ListingError::Malformed(shown(&e.to_string())))?;
    if code != "0" {
        return Err(ListingError::Exchange(shown(&format!("{code}: {msg}"))));
    }
    let rows = data.ok_or_else(|| ListingError::Malformed("it has no data".to_owned()))?;
    let mut listing = Listing::default();
    for (number, row) in (1..).zip(rows) {
        let name = row["instId"].as_str().filter(|name| !name.is_empty()).map(shown);
        let fields = serde_json::from_value::<ListedFields>(row).map_err(|e| format!("its fields are wrong: {e}"));
        match fields.and_then(ListedFields::listed) {
            Ok(instrument) => listing.instruments.push(instrument),
            Err(why) => listing.refused.push((name.unwrap_or_else(|| format!("row {number}")), shown(&why))),
        }
    }
    Ok(listing)
}

#[derive(Deserialize)]
struct InstrumentsAnswer {
    code: String,
    #[serde(default)]
    msg: String,
    data: Option<Vec<Value>>,
}

/// Fields of a row. OKX leaves a field empty where it does not apply, and before a listing.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedFields {
    inst_id: String,
    inst_id_code: Option<u64>,
    inst_type: String,
    state: String,
    tick_sz: String,
    lot_sz: String,
    min_sz: String,
    base_ccy: String,
    quote_ccy: String,
    settle_ccy: String,
    ct_type: String,
    ct_val: String,
    ct_mult: String,
    ct_val_ccy: String,
    uly: String,
}

impl ListedFields {
    /// Returns the instrument, or the reason why it cannot be used.
    fn listed(self) -> Result<ListedInstrument, String> {
        if self.inst_id.is_empty() {
            return Err("it has no instId".to_owned());
        }
        for (field, text) in [("tickSz", &self.tick_sz), ("lotSz", &self.lot_sz)] {
            if positive_decimal(text).is_none() {
                return Err(format!("its {field} '{text}' is no positive number; its state is '{}'", self.state));
            }
        }
        let (contract, quote_currency) = match (self.inst_type.as_str(), self.ct_type.as_str()) {
            ("SPOT" | "MARGIN", _) => return self.listed_spot(),
            ("SWAP" | "FUTURES", "linear") => (ContractKind::Linear, self.quote_of_underlying(&self.settle_ccy)),
            ("SWAP" | "FUTURES", "inverse") => (ContractKind::Inverse, self.quote_of_underlying(&self.ct_val_ccy)),
            ("SWAP" | "FUTURES", other) => return Err(format!("its ctType '{other}' is unknown")),
            ("OPTION", _) => (ContractKind::Linear, self.settle_ccy.clone()),
            (other, _) => return Err(format!("instruments of the type '{other}' are not read")),
        };
        let no_value = || format!("its ctVal '{}' times ctMult '{}' is no positive number", self.ct_val, self.ct_mult);
        let contract_value = product(&self.ct_val, &self.ct_mult).ok_or_else(no_value)?;
        if self.settle_ccy.is_empty() || self.ct_val_ccy.is_empty() {
            return Err("it has no settleCcy or no ctValCcy".to_owned());
        }
        let (value_currency, settle_currency) = (self.ct_val_ccy.clone(), self.settle_ccy.clone());
        let currencies = ListedInstrument { value_currency, quote_currency, settle_currency, ..Default::default() };
        Ok(ListedInstrument { contract, contract_value, ..self.with_steps(currencies) })
    }

    fn listed_spot(self) -> Result<ListedInstrument, String> {
        if self.base_ccy.is_empty() || self.quote_ccy.is_empty() {
            return Err("it has no baseCcy or no quoteCcy".to_owned());
        }
        let (value_currency, quote_currency) = (self.base_ccy.clone(), self.quote_ccy.clone());
        let (settle_currency, contract_value) = (self.quote_ccy.clone(), "1".to_owned());
        Ok(self.with_steps(ListedInstrument {
            contract_value,
            value_currency,
            quote_currency,
            settle_currency,
            ..Default::default()
        }))
    }

    /// Adds the fields that all types of instruments share.
    fn with_steps(self, instrument: ListedInstrument) -> ListedInstrument {
        ListedInstrument {
            name: self.inst_id,
            code: self.inst_id_code.unwrap_or(0),
            is_live: self.state == "live",
            tick_size: self.tick_sz,
            lot: self.lot_sz,
            minimum_quantity: self.min_sz,
            ..instrument
        }
    }

    /// Returns the currency of prices: USDT of the underlying BTC-USDT.
    fn quote_of_underlying(&self, otherwise: &str) -> String {
        self.uly.split_once('-').map_or(otherwise, |(_, quote)| quote).to_owned()
    }
}

/// Returns the product of two decimals as text, exactly; an empty second one is 1.
fn product(a: &str, b: &str) -> Option<String> {
    let (a, a_decimals) = positive_decimal(a)?;
    let (b, b_decimals) = if b.is_empty() { (1, 0) } else { positive_decimal(b)? };
    let decimals = a_decimals.checked_add(b_decimals).filter(|decimals| *decimals <= MAX_VALUE_DECIMALS)?;
    Some(decimal_text(a.checked_mul(b)?, decimals))
}

/// Reads a decimal above zero into its digits and the number of those behind the point.
fn positive_decimal(text: &str) -> Option<(i128, u8)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let units: i128 = digits.parse().ok()?;
    (units > 0).then_some((units, u8::try_from(fraction.len()).ok()?))
}
