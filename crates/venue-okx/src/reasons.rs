//! Reasons of reports: OKX's codes as numbers of 16 bits, as the crate's front page lists them, and the effect of each
//! code on its order.

use tickpath_venue::{TOO_LATE, UNKNOWN_ORDER};

/// Reason: this line cannot send such a request to OKX.
pub const NOT_SUPPORTED: u16 = 3;
/// Reason: the line does not have the instrument.
pub const UNKNOWN_INSTRUMENT: u16 = 4;
/// Reason: the quantity is no multiple of the instrument's lot.
pub const NO_MULTIPLE: u16 = 5;
/// Reason: OKX's code is out of range.
pub const OTHER_CODE: u16 = 99;
/// Reason of an order that OKX has canceled, without its `cancelSource`.
pub const CANCELED_BY_OKX: u16 = 30_000;

/// Code of OKX: the order does not exist.
pub(crate) const NO_SUCH_ORDER: u32 = 51603;

/// Codes that do not show whether the request took effect: timeouts, overload, and ids that are taken already.
const IN_DOUBT: [u32; 11] = [50001, 50004, 50013, 50026, 50042, 50071, 51011, 51016, 51054, 51149, 64007];
/// Codes of a cancel or an amendment whose order has ended, or is about to.
const ENDED: [u32; 10] = [51400, 51401, 51402, 51405, 51410, 51412, 51416, 51503, 51509, 51510];
/// Codes of a request that names an order or an instrument that OKX does not have.
const UNKNOWN: [u32; 3] = [51001, 51063, NO_SUCH_ORDER];
/// Codes of a request, a subscription or a login that comes too soon after others.
const TOO_FREQUENT: [u32; 5] = [50011, 50040, 50061, 60014, 60023];

/// Effect of a refused request on its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalEffect {
    /// Nothing has changed.
    Refused,
    /// The order may have changed.
    InDoubt,
}

/// Returns the effect of a code other than zero. A code that is no refusal of a known range proves nothing.
pub(crate) fn effect_of(code: u32) -> RefusalEffect {
    let is_refusal = matches!(code, 50_000..=60_999) && !IN_DOUBT.contains(&code);
    if is_refusal { RefusalEffect::Refused } else { RefusalEffect::InDoubt }
}

/// Returns whether a code asks for a slower pace.
pub(crate) fn is_too_frequent(code: u32) -> bool {
    TOO_FREQUENT.contains(&code)
}

/// Returns the reason of a new order that OKX refuses.
pub(crate) fn reason_of(code: u32) -> u16 {
    let distance = match code {
        50_000..=50_099 | 60_000..=64_999 => 40_000,
        50_100..=59_999 => 50_000,
        _ => return OTHER_CODE,
    };
    u16::try_from(code - distance).unwrap_or(OTHER_CODE)
}

/// Returns the reason of a cancel or an amendment that OKX refuses.
pub(crate) fn reason_of_change(code: u32) -> u16 {
    match code {
        code if ENDED.contains(&code) => TOO_LATE,
        code if UNKNOWN.contains(&code) => UNKNOWN_ORDER,
        code => reason_of(code),
    }
}

/// Reads a code; `u32::MAX` if the text has none. A subordinate code behind an underscore is left out.
pub(crate) fn read_code(text: &str) -> u32 {
    text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_reasons_of_their_own() {
        for (text, reason, of_change, effect) in [
            ("51008", 1008, 1008, RefusalEffect::Refused),
            ("51008_1000", 1008, 1008, RefusalEffect::Refused),
            ("50011", 10011, 10011, RefusalEffect::Refused),
            ("50007", 10007, 10007, RefusalEffect::Refused),
            ("60013", 20013, 20013, RefusalEffect::Refused),
            ("51400", 1400, TOO_LATE, RefusalEffect::Refused),
            ("51403", 1403, 1403, RefusalEffect::Refused),
            ("51603", 1603, UNKNOWN_ORDER, RefusalEffect::Refused),
            ("50004", 10004, 10004, RefusalEffect::InDoubt),
            ("51016", 1016, 1016, RefusalEffect::InDoubt),
            ("64007", 24007, 24007, RefusalEffect::InDoubt),
            ("1", OTHER_CODE, OTHER_CODE, RefusalEffect::InDoubt),
            ("", OTHER_CODE, OTHER_CODE, RefusalEffect::InDoubt),
        ] {
            let code = read_code(text);
            assert_eq!(
                (reason_of(code), reason_of_change(code), effect_of(code)),
                (reason, of_change, effect),
                "{text}"
            );
        }
    }

    #[test]
    fn no_two_codes_of_orders_share_a_reason() {
        let mut reasons: Vec<u16> = (50_000..60_000).chain(60_000..65_000).map(reason_of).collect();
        reasons.sort_unstable();
        assert!(reasons.windows(2).all(|two| two[0] < two[1]) && reasons[0] >= 100);
    }
}
