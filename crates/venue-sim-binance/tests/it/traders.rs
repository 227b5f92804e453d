//! Accounts of the tests, and the signatures of their requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};
use sha2::Sha256;
use tickpath_clock::utc_ns;
use tickpath_market::Quantity;
use tickpath_venue_sim_web::SimAccount;

/// Key and secret of the examples in the exchange's documentation.
const HMAC_KEY: &str = "vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A";
const HMAC_SECRET: &str = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";
/// Key pair of an example in the exchange's documentation.
const ED25519_PRIVATE: &str = "MC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u";
const ED25519_PUBLIC: &str = "MCowBQYDK2VwAyEAGUIKv9dSpWXBViXp2m6vAIb8QMFJYBgyFEQsFJlqgA0=";
const ED25519_KEY: &str = "bobHasAnEd25519Key";

/// An account of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trader {
    /// With an HMAC secret.
    Alice,
    /// With an Ed25519 key.
    Bob,
}

impl Trader {
    pub const ALL: [Self; 2] = [Self::Alice, Self::Bob];

    pub fn api_key(self) -> &'static str {
        match self {
            Self::Alice => HMAC_KEY,
            Self::Bob => ED25519_KEY,
        }
    }

    pub fn sign(self, payload: &str) -> String {
        match self {
            Self::Alice => hmac_hex(payload),
            Self::Bob => {
                let der = STANDARD.decode(ED25519_PRIVATE).expect("base64");
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).expect("a private key");
                STANDARD.encode(pair.sign(payload.as_bytes()))
            }
        }
    }

    /// Adds the key, the present time unless there is one, and the signature to parameters of the WebSocket API.
    pub fn signed(self, params: Value) -> Value {
        let mut params = stamped(params);
        params["apiKey"] = json!(self.api_key());
        let object = params.as_object().expect("parameters are an object");
        let mut pairs: Vec<String> = object.iter().map(|(name, value)| format!("{name}={}", text_of(value))).collect();
        pairs.sort_unstable();
        params["signature"] = json!(self.sign(&pairs.join("&")));
        params
    }

    /// Returns the accounts as the desk knows them.
    pub fn accounts() -> Vec<SimAccount> {
        let balances =
            [("USDT", 1_000_000), ("BTC", 10)].map(|(name, whole)| (name.to_owned(), Quantity::from_whole(whole)));
        let account = |name: &str, trader: Self, secret: String| SimAccount {
            name: name.to_owned(),
            api_key: trader.api_key().to_owned(),
            secret,
            passphrase: String::new(),
            balances: balances.to_vec(),
        };
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{ED25519_PUBLIC}\n-----END PUBLIC KEY-----\n");
        vec![account("alice", Self::Alice, HMAC_SECRET.to_owned()), account("bob", Self::Bob, pem)]
    }
}

/// Adds the present time, unless there is one.
pub fn stamped(mut params: Value) -> Value {
    if params.get("timestamp").is_none() {
        params["timestamp"] = json!(now_ms());
    }
    params
}

pub fn now_ms() -> u64 {
    utc_ns() / 1_000_000
}

fn hmac_hex(payload: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(HMAC_SECRET.as_bytes()).expect("any length");
    mac.update(payload.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
