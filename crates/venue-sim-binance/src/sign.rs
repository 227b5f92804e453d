//! Keys of the accounts, and the signatures and timestamps of their requests.
//!
//! ```text
//!   WebSocket API   apiKey=…&price=…&symbol=…      all parameters but the signature, sorted, not percent-encoded
//!   REST            symbol=…&timestamp=…quantity=…  query and body as they were sent, without the signature
//! ```
//!
//! An HMAC-SHA256 signature is hexadecimal in either case, an Ed25519 signature is base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Map, Value};
use sha2::Sha256;
use tickpath_market::parse_decimal;
use tickpath_venue_sim_web::SimAccount;

use crate::codes::{ApiError, Code};
use crate::params::{RequestParams, percent_decoded, value_text};
use crate::stamps::stamp_ns;

const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";
/// SubjectPublicKeyInfo of an Ed25519 key up to the 32 bytes of the key.
const ED25519_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const ED25519_BYTES: usize = 32;
/// Validity of a request that names none.
const DEFAULT_WINDOW_NS: u64 = 5_000_000_000;
/// Greatest validity that a request may name, in microseconds.
const MAX_WINDOW_US: u64 = 60_000_000;
/// Time by which a timestamp may be ahead of the exchange's clock.
const MAX_AHEAD_NS: u64 = 1_000_000_000;

/// Keys of all accounts; an account is its place.
pub(crate) struct KeyRing {
    keys: Vec<(String, SigningKey)>,
}

/// Key that verifies an account's signatures.
enum SigningKey {
    Hmac(Vec<u8>),
    Ed25519(Vec<u8>),
    /// A PEM text that holds no Ed25519 key. No signature is valid.
    Unreadable,
}

impl KeyRing {
    /// Reads the keys of the accounts.
    pub(crate) fn new(accounts: &[SimAccount]) -> Self {
        let key = |account: &SimAccount| (account.api_key.clone(), SigningKey::read(&account.secret));
        Self { keys: accounts.iter().map(key).collect() }
    }

    /// Returns the account of an API key.
    pub(crate) fn account(&self, api_key: &str) -> Result<usize, ApiError> {
        if let Some(account) = self.keys.iter().position(|(known, _)| known == api_key) {
            return Ok(account);
        }
        let is_key = !api_key.is_empty() && api_key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        Err(if is_key { Code::KeyRejected.error() } else { Code::KeyFormat.error() })
    }

    /// Returns whether an account may log on to a session, for which the exchange accepts Ed25519 keys only.
    pub(crate) fn may_log_on(&self, account: usize) -> bool {
        self.keys.get(account).is_some_and(|(_, key)| !matches!(key, SigningKey::Hmac(_)))
    }

    /// Checks the signature of an account.
    pub(crate) fn verify(&self, account: usize, payload: &str, signature: &str) -> Result<(), ApiError> {
        let is_valid = self.keys.get(account).is_some_and(|(_, key)| key.verifies(payload.as_bytes(), signature));
        if is_valid { Ok(()) } else { Err(Code::Signature.error()) }
    }
}

impl SigningKey {
    fn read(secret: &str) -> Self {
        let Some(pem) = secret.trim_start().strip_prefix(PEM_BEGIN) else {
            return Self::Hmac(secret.as_bytes().to_vec());
        };
        let text: String = pem.split(PEM_END).next().unwrap_or_default().split_ascii_whitespace().collect();
        let der = STANDARD.decode(text).unwrap_or_default();
        match der.strip_prefix(&ED25519_HEAD) {
            Some(key) if key.len() == ED25519_BYTES => Self::Ed25519(key.to_vec()),
            _ => Self::Unreadable,
        }
    }

    fn verifies(&self, payload: &[u8], signature: &str) -> bool {
        match self {
            Self::Hmac(secret) => hmac_hex(secret, payload).eq_ignore_ascii_case(signature),
            Self::Ed25519(key) => STANDARD
                .decode(signature)
                .is_ok_and(|bytes| UnparsedPublicKey::new(&ED25519, key).verify(payload, &bytes).is_ok()),
            Self::Unreadable => false,
        }
    }
}

/// Returns the payload that a request on the WebSocket API signs.
pub(crate) fn json_payload(params: &Map<String, Value>) -> String {
    let mut pairs: Vec<(&String, &Value)> = params.iter().filter(|(name, _)| *name != "signature").collect();
    pairs.sort_by_key(|(name, _)| *name);
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={}", value_text(value))).collect();
    pairs.join("&")
}

/// Returns the payload that an HTTP request signs, and its signature.
pub(crate) fn form_payload(query: &str, body: &str) -> (String, Option<String>) {
    let mut signature = None;
    let mut payload = String::with_capacity(query.len() + body.len());
    for part in [query, body] {
        let mut is_first = true;
        for pair in part.split('&') {
            if let Some(value) = pair.strip_prefix("signature=") {
                signature = percent_decoded(value);
                continue;
            }
            if !is_first {
                payload.push('&');
            }
            payload.push_str(pair);
            is_first = false;
        }
    }
    (payload, signature)
}

/// Checks that a request is neither older than its window nor ahead of the exchange's clock.
pub(crate) fn check_time(params: &mut RequestParams, now_ns: u64) -> Result<(), ApiError> {
    params.required("timestamp")?;
    let stamp = params.number("timestamp")?.map_or(0, stamp_ns);
    let window_ns = match params.optional("recvWindow")? {
        None => DEFAULT_WINDOW_NS,
        Some(text) => window_us(&text)?.saturating_mul(1_000),
    };
    if stamp >= now_ns.saturating_add(MAX_AHEAD_NS) {
        return Err(Code::AheadOfServer.error());
    }
    if now_ns.saturating_sub(stamp) > window_ns {
        return Err(Code::OutsideWindow.error());
    }
    Ok(())
}

/// Reads a window in milliseconds with up to three decimals, in microseconds.
fn window_us(text: &str) -> Result<u64, ApiError> {
    let malformed = || Code::BadValue.about(&["recvWindow"]);
    let units = parse_decimal(text, 3).map_err(|_| malformed())?;
    let window_us = u64::try_from(units).map_err(|_| malformed())?;
    if window_us > MAX_WINDOW_US { Err(Code::TooGreat.about(&["recvWindow", "60000"])) } else { Ok(window_us) }
}

fn hmac_hex(secret: &[u8], payload: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length is valid");
    mac.update(payload);
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key, the payload and the signature of the exchange's page about its FIX API.
    #[test]
    fn the_documented_ed25519_signature_is_valid_and_no_other() {
        let pem = format!("{PEM_BEGIN}\nMCowBQYDK2VwAyEAGUIKv9dSpWXBViXp2m6vAIb8QMFJYBgyFEQsFJlqgA0=\n{PEM_END}\n");
        let key = SigningKey::read(&pem);
        let payload = b"A\x01EXAMPLE\x01SPOT\x011\x0120240627-11:17:25.223";
        let signature = "4MHXelVVcpkdwuLbl6n73HQUXUf1dse2PCgT1DYqW9w8AVZ1RACFGM+5UdlGPrQHrgtS3CvsRURC1oj73j8gCA==";
        assert!(key.verifies(payload, signature));
        assert!(!key.verifies(&payload[1..], signature));
        assert!(!key.verifies(payload, &signature.replacen("4M", "4N", 1)));
        assert!(!SigningKey::read(&pem.replacen("MCow", "MCox", 1)).verifies(payload, signature));
    }
}
