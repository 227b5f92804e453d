//! Forms of the values, by the type of a field.

use crate::dictionary::FieldType;
use crate::values::{
    is_decimal, is_int, is_month_year, is_tz_time, is_tz_timestamp, is_utc_date, is_utc_time, is_utc_timestamp,
    parse_unsigned,
};

/// Returns whether a value, which is not empty, has the form of a type.
///
/// Codes of currencies, countries, markets and languages may be any text: venues have their own.
#[inline]
pub(crate) fn has_format(kind: FieldType, value: &[u8]) -> bool {
    match kind {
        FieldType::String
        | FieldType::Currency
        | FieldType::Country
        | FieldType::Exchange
        | FieldType::Language
        | FieldType::MultipleStringValue
        | FieldType::Data
        | FieldType::XmlData => true,
        FieldType::Char => value.len() == 1,
        FieldType::Boolean => matches!(value, b"Y" | b"N"),
        FieldType::Int => is_int(value),
        FieldType::Length | FieldType::NumInGroup | FieldType::SeqNum => parse_unsigned(value).is_some(),
        FieldType::DayOfMonth => parse_unsigned(value).is_some_and(|day| (1..=31).contains(&day)),
        FieldType::Float
        | FieldType::Price
        | FieldType::PriceOffset
        | FieldType::Amt
        | FieldType::Qty
        | FieldType::Percentage => is_decimal(value),
        FieldType::MultipleCharValue => value.split(|byte| *byte == b' ').all(|one| one.len() == 1),
        FieldType::MonthYear => is_month_year(value),
        FieldType::LocalMktDate | FieldType::UtcDateOnly => is_utc_date(value),
        FieldType::UtcTimeOnly => is_utc_time(value),
        FieldType::UtcTimestamp => is_utc_timestamp(value),
        FieldType::TzTimeOnly => is_tz_time(value),
        FieldType::TzTimestamp => is_tz_timestamp(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kinds: &[FieldType], valid: &[&str], invalid: &[&str]) {
        for (texts, expected) in [(valid, true), (invalid, false)] {
            for (text, kind) in texts.iter().flat_map(|text| kinds.iter().map(move |kind| (text, *kind))) {
                assert_eq!(has_format(kind, text.as_bytes()), expected, "'{text}' as {kind:?}");
            }
        }
    }

    #[test]
    fn each_type_has_its_form() {
        use FieldType::*;
        check(&[Char], &["1", " "], &["12"]);
        check(&[Boolean], &["Y", "N"], &["y", "1", "YES"]);
        check(&[Int], &["0", "-10", "007", "99999999999999999999"], &["+1", "1.0", "-", "1e3", " 1"]);
        check(&[Length, NumInGroup, SeqNum], &["0", "007", "18446744073709551615"], &["-1", "+1", "1.", "x"]);
        check(&[DayOfMonth], &["1", "07", "31"], &["0", "32", "-1"]);
        let decimals = [Float, Price, PriceOffset, Amt, Qty, Percentage];
        check(&decimals, &["002000.00", "-.5", "5.", "0"], &["+200.00", "1,000", ".", "1e5", "NaN"]);
        check(&[MultipleCharValue], &["1", "1 G"], &["12", "1  G", "1 "]);
        check(&[LocalMktDate, UtcDateOnly], &["20240229"], &["20230229", "2024-02-29", "202402"]);
        check(&[MonthYear], &["202402", "202402w1", "20240229"], &["2024", "202413"]);
        check(&[UtcTimeOnly], &["23:59:60.123"], &["24:00:00", "12:00"]);
        check(&[UtcTimestamp], &["20240229-12:00:00", "20240229-12:00:00.123456"], &["20040415", "20240229-12:00"]);
        check(&[TzTimeOnly], &["07:39+05:30"], &["7:39"]);
        check(&[TzTimestamp], &["20060901-02:39-05"], &["20060901"]);
        let texts = [String, Currency, Country, Exchange, Language, MultipleStringValue, Data, XmlData];
        check(&texts, &["USDT", " ", "\u{e9}"], &[]);
    }
}
