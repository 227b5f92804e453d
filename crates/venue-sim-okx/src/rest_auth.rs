//! Signatures of REST requests: over the time, the method, the path with its query, and the body.

use jiff::Timestamp;
use tickpath_venue_sim_web::{SimAccount, WebRequest};

use crate::codes::{
    BAD_TIMESTAMP, NO_KEY, NO_PASSPHRASE, NO_SIGN, NO_TIMESTAMP, OkxCode, OkxRefusal, REQUEST_EXPIRED, UNKNOWN_KEY,
    WRONG_PASSPHRASE, WRONG_SIGN,
};
use crate::sign::is_signed;

/// Max age of a request's timestamp, and max time that it may be ahead.
const MAX_AGE_MS: u64 = 30_000;

/// Returns the index of the account that has signed a request.
pub(crate) fn authenticate(
    accounts: &[SimAccount],
    request: &WebRequest<'_>,
    now_ns: u64,
) -> Result<usize, OkxRefusal> {
    let header = |name: &str, missing: OkxCode| {
        request.header(name).filter(|text| !text.is_empty()).ok_or_else(|| missing.refusal())
    };
    let key = header("OK-ACCESS-KEY", NO_KEY)?;
    let sign = header("OK-ACCESS-SIGN", NO_SIGN)?;
    let timestamp = header("OK-ACCESS-TIMESTAMP", NO_TIMESTAMP)?;
    let passphrase = header("OK-ACCESS-PASSPHRASE", NO_PASSPHRASE)?;
    let signed_ms = timestamp.parse::<Timestamp>().map_err(|_| BAD_TIMESTAMP.refusal())?.as_millisecond();
    let now_ms = i64::try_from(now_ns / 1_000_000).unwrap_or(i64::MAX);
    if signed_ms.abs_diff(now_ms) > MAX_AGE_MS {
        return Err(REQUEST_EXPIRED.refusal());
    }
    let account = accounts.iter().position(|account| account.api_key == key).ok_or_else(|| UNKNOWN_KEY.refusal())?;
    if accounts[account].passphrase != passphrase {
        return Err(WRONG_PASSPHRASE.refusal());
    }
    let mark = if request.query.is_empty() { "" } else { "?" };
    let head = [timestamp, request.method, request.path, mark, request.query];
    let mut parts = head.map(str::as_bytes).to_vec();
    parts.push(request.body);
    match is_signed(&accounts[account].secret, &parts, sign) {
        true => Ok(account),
        false => Err(WRONG_SIGN.refusal()),
    }
}
