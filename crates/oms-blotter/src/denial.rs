//! Reasons of denials and rejections, in words.

use tickpath_market::{DECIMALS, ExecutionReport, Notional, OrderDenied, decimal_text};
use tickpath_oms_core::{Denial, MeasureUnit};

/// Returns the OMS's denial in words, with the limit and the value that broke it where the check has them.
pub(crate) fn denial_text(denied: &OrderDenied) -> String {
    let Some(denial) = Denial::from_code(denied.code) else { return format!("denied with code {}", denied.code) };
    let (limit, value) = (i128::from_le_bytes(denied.limit), i128::from_le_bytes(denied.value));
    match measure_text(denial, limit, denied).zip(measure_text(denial, value, denied)) {
        Some((limit, value)) => format!("{denial} (limit {limit}, value {value})"),
        None => denial.to_string(),
    }
}

/// Returns a venue's rejection in words.
pub(crate) fn rejection_text(report: &ExecutionReport) -> String {
    match report.reason {
        0 => format!("rejected by venue {}", report.venue.0),
        code => format!("rejected by venue {} with code {code}", report.venue.0),
    }
}

fn measure_text(denial: Denial, number: i128, denied: &OrderDenied) -> Option<String> {
    Some(match denial.measure() {
        MeasureUnit::Nothing => return None,
        MeasureUnit::Count => number.to_string(),
        MeasureUnit::Decimal => decimal_text(number, DECIMALS),
        MeasureUnit::Price => decimal_text(number, denied.price_decimals()),
        MeasureUnit::Money => Notional(number).to_string(),
        MeasureUnit::Nanoseconds if number == u64::MAX.into() => "never".to_owned(),
        MeasureUnit::Nanoseconds => format!("{number} ns"),
    })
}
