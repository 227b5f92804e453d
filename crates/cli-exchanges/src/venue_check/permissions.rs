//! The permissions of an API key, by a signed request for the account.

use std::path::Path;

use serde_json::Value;
use tickpath_clock::{rfc3339, utc_ns};
use tickpath_exchanges::OrderExchange;
use tickpath_venue_binance::RequestSigner;
use tickpath_web_client::{HttpRequest, HttpResponse, HttpsClient};

use super::public_facts::{json, shown};
use tickpath_cli_terminal::args::CliUsageError;

const OKX_PATH: &str = "/api/v5/account/config";
const BINANCE_PATH: &str = "/api/v3/account";
/// Validity of the request to Binance, in milliseconds.
const WINDOW_MS: u32 = 5_000;
/// OKX's names of the modes of an account, by their numbers from 1.
const OKX_MODES: [&str; 4] = ["spot", "futures", "multi-currency margin", "portfolio margin"];

/// Keys of an account.
pub enum AccountKeys {
    Okx(tickpath_venue_okx::ApiCredentials),
    Binance(tickpath_venue_binance::ApiCredentials, Box<RequestSigner>),
}

impl AccountKeys {
    /// Reads the file of an exchange's credentials.
    pub fn read(exchange: OrderExchange, file: &Path) -> Result<Self, CliUsageError> {
        match exchange {
            OrderExchange::Okx => {
                tickpath_venue_okx::ApiCredentials::read(file).map(Self::Okx).map_err(|e| CliUsageError(e.to_string()))
            }
            OrderExchange::Binance => {
                let read = tickpath_venue_binance::ApiCredentials::read(file);
                let credentials = read.map_err(|e| CliUsageError(e.to_string()))?;
                let signer = RequestSigner::new(credentials.clone()).map_err(|e| CliUsageError(e.to_string()))?;
                Ok(Self::Binance(credentials, Box::new(signer)))
            }
        }
    }

    /// Asks for the account, and checks that the key may trade. `lead_ns` is the lead of the exchange's clock, and
    /// `has_positions` whether the instrument is one with positions.
    pub fn check(
        &self,
        client: &HttpsClient,
        lead_ns: i64,
        is_demo: bool,
        has_positions: bool,
    ) -> Result<((), String), String> {
        let at_ns = utc_ns().saturating_add_signed(lead_ns);
        let request = match self {
            Self::Okx(credentials) => okx_request(credentials, at_ns, is_demo),
            Self::Binance(credentials, signer) => binance_request(&credentials.key, signer, at_ns),
        };
        let response = client.fetch(request).map_err(|e| e.to_string())?;
        let answer = json(&response)?;
        let found = match self {
            Self::Okx(_) => okx_permissions(&answer, &response, has_positions),
            Self::Binance(..) => binance_permissions(&answer, &response),
        };
        found.map(|text| ((), text)).map_err(|why| self.without_secrets(why))
    }

    /// Returns a text without the keys, which an exchange may quote.
    fn without_secrets(&self, text: String) -> String {
        let secrets = match self {
            Self::Okx(keys) => [&keys.key, &keys.secret, &keys.passphrase],
            Self::Binance(keys, _) => [&keys.key, &keys.secret, &keys.passphrase],
        };
        let secrets = secrets.into_iter().filter(|secret| !secret.is_empty());
        secrets.fold(text, |text, secret| text.replace(secret.as_str(), "***"))
    }
}

fn okx_request(credentials: &tickpath_venue_okx::ApiCredentials, at_ns: u64, is_demo: bool) -> HttpRequest {
    let ms = at_ns / 1_000_000 % 1_000;
    let timestamp = format!("{}.{ms:03}Z", rfc3339(at_ns).trim_end_matches('Z'));
    let sign = tickpath_venue_okx::signature(&credentials.secret, &timestamp, "GET", OKX_PATH, "");
    let mut request = HttpRequest::get(OKX_PATH);
    let headers = [
        ("OK-ACCESS-KEY", credentials.key.clone()),
        ("OK-ACCESS-SIGN", sign),
        ("OK-ACCESS-TIMESTAMP", timestamp),
        ("OK-ACCESS-PASSPHRASE", credentials.passphrase.clone()),
    ];
    request.headers.extend(headers.map(|(name, value)| (name.to_owned(), value)));
    if is_demo {
        request.headers.push(("x-simulated-trading".to_owned(), "1".to_owned()));
    }
    request
}

fn binance_request(key: &str, signer: &RequestSigner, at_ns: u64) -> HttpRequest {
    let query = format!("recvWindow={WINDOW_MS}&timestamp={}", at_ns / 1_000_000);
    let mut signature = String::new();
    signer.sign(&query, &mut signature);
    // Base64 has three characters that a query does not.
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let mut request = HttpRequest::get(&format!("{BINANCE_PATH}?{query}&signature={signature}"));
    request.headers.push(("X-MBX-APIKEY".to_owned(), key.to_owned()));
    request
}

fn okx_permissions(answer: &Value, response: &HttpResponse, has_positions: bool) -> Result<String, String> {
    let account = &answer["data"][0];
    if answer["code"] != "0" || !account.is_object() {
        return Err(format!("OKX refuses the key: {}; check the file, the addresses and --demo", shown(response)));
    }
    let field = |name: &str| account[name].as_str().unwrap_or_default();
    let (permissions, positions, ip) = (field("perm"), field("posMode"), field("ip"));
    if !permissions.split(',').any(|permission| permission == "trade") {
        return Err(format!("the key has the permissions '{permissions}'; add 'trade' to them"));
    }
    if has_positions && positions != "net_mode" {
        return Err(format!("the positions are in {positions}, and orders name no side of them; set net_mode at OKX"));
    }
    let mode = field("acctLv").parse::<usize>().ok().and_then(|level| OKX_MODES.get(level.checked_sub(1)?));
    let bound = if ip.is_empty() { "no IP address".to_owned() } else { format!("the IP addresses {ip}") };
    let mode = mode.copied().unwrap_or("another");
    Ok(format!("permissions {permissions}, {mode} mode, positions in {positions}, bound to {bound}"))
}

fn binance_permissions(answer: &Value, response: &HttpResponse) -> Result<String, String> {
    let Some(can_trade) = answer["canTrade"].as_bool() else {
        return Err(format!("Binance refuses the key: {}; check the file and the addresses", shown(response)));
    };
    if !can_trade {
        return Err("the account may not trade; allow spot trading for it, and for the key".to_owned());
    }
    let rates = &answer["commissionRates"];
    let rate = |name: &str| rates[name].as_str().unwrap_or("?");
    Ok(format!("the account may trade, fee of makers {}, of takers {}", rate("maker"), rate("taker")))
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    fn response(answer: &Value) -> HttpResponse {
        let body = answer.to_string().into_bytes();
        HttpResponse { status: 200, headers: Vec::new(), body, sent: 0, received: 0 }
    }

    #[test]
    fn a_key_needs_the_permission_to_trade_and_net_positions() {
        let account = |perm: &str, mode: &str| value!({ "code": "0", "data": [{ "perm": perm, "posMode": mode, "acctLv": "2", "ip": "" }] });
        for (answer, has_positions, words) in [
            (account("read_only,trade", "net_mode"), true, "futures mode, positions in net_mode, bound to no IP"),
            (account("read_only,trade", "long_short_mode"), false, "positions in long_short_mode"),
            (account("read_only,trade", "long_short_mode"), true, "set net_mode"),
            (account("read_only", "net_mode"), false, "add 'trade'"),
            (value!({ "code": "50111", "msg": "Invalid OK-ACCESS-KEY", "data": [] }), false, "refuses the key"),
        ] {
            let found = okx_permissions(&answer, &response(&answer), has_positions).unwrap_or_else(|why| why);
            assert!(found.contains(words), "no '{words}' in {found}");
        }
        for (answer, words) in [
            (value!({ "canTrade": true, "commissionRates": { "maker": "0.001", "taker": "0.002" } }), "takers 0.002"),
            (value!({ "canTrade": false }), "may not trade"),
            (value!({ "code": -2015, "msg": "Invalid API-key" }), "-2015"),
        ] {
            let found = binance_permissions(&answer, &response(&answer)).unwrap_or_else(|why| why);
            assert!(found.contains(words), "no '{words}' in {found}");
        }
    }
}
