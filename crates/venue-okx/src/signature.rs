//! Signatures of the API: the login of a WebSocket connection, and the headers of a REST request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tickpath_clock::rfc3339;
use tickpath_web_client::HttpRequest;
use zeroize::Zeroizing;

use crate::credentials::ApiCredentials;

/// Path that the login of a WebSocket connection signs.
const LOGIN_PATH: &str = "/users/self/verify";

/// Returns the signature of a request: HMAC-SHA256 over the time, the method, the path with its query and the body, in
/// base64.
///
/// ```
/// let secret = "22582BD0CFF14C41EDBF1AB98506286D";
/// let signed = tickpath_venue_okx::signature(secret, "1704876947", "GET", "/users/self/verify", "");
/// assert_eq!(signed, "5/36BgGV6m/6pmdc20zdqk0mzF5ZalmzzPD2fo3wavU=");
/// ```
pub fn signature(secret: &str, timestamp: &str, method: &str, path_and_query: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    for part in [timestamp, method, path_and_query, body] {
        mac.update(part.as_bytes());
    }
    STANDARD.encode(mac.finalize().into_bytes())
}

/// Returns the login of a WebSocket connection at this time.
pub(crate) fn login_request(credentials: &ApiCredentials, utc_ns: u64) -> Zeroizing<String> {
    let timestamp = (utc_ns / 1_000_000_000).to_string();
    let sign = signature(&credentials.secret, &timestamp, "GET", LOGIN_PATH, "");
    let quoted = |text: &String| Zeroizing::new(serde_json::to_string(text).expect("any text can be written"));
    let (key, passphrase) = (quoted(&credentials.key), quoted(&credentials.passphrase));
    let (key, passphrase) = (key.as_str(), passphrase.as_str());
    Zeroizing::new(format!(
        r#"{{"op":"login","args":[{{"apiKey":{key},"passphrase":{passphrase},"timestamp":"{timestamp}","sign":"{sign}"}}]}}"#
    ))
}

/// Returns the request with the headers of OKX's authentication at this time.
pub(crate) fn signed(
    mut request: HttpRequest,
    credentials: &ApiCredentials,
    utc_ns: u64,
    is_demo: bool,
) -> HttpRequest {
    let timestamp = iso_milliseconds(utc_ns);
    let HttpRequest { method, path_and_query, body, .. } = &request;
    let sign = signature(&credentials.secret, &timestamp, method, path_and_query, body);
    let headers = [
        ("OK-ACCESS-KEY", credentials.key.clone()),
        ("OK-ACCESS-SIGN", sign),
        ("OK-ACCESS-TIMESTAMP", timestamp),
        ("OK-ACCESS-PASSPHRASE", credentials.passphrase.clone()),
        ("Content-Type", "application/json".to_owned()),
    ];
    request.headers.extend(headers.map(|(name, value)| (name.to_owned(), value)));
    if is_demo {
        request.headers.push(("x-simulated-trading".to_owned(), "1".to_owned()));
    }
    request
}

/// Returns a time as `2020-12-08T09:08:57.715Z`.
fn iso_milliseconds(utc_ns: u64) -> String {
    let seconds = rfc3339(utc_ns);
    let ms = utc_ns / 1_000_000 % 1000;
    format!("{}.{ms:03}Z", seconds.trim_end_matches('Z'))
}
