//! Public facts of an exchange, by REST: its time, its instruments, its rate limits, a price.

use std::path::Path;

use serde_json::Value;
use tickpath_clock::{Clock, HostClock};
use tickpath_feed::{ListedInstrument, Listing};
use tickpath_lab_report::duration;
use tickpath_market::Price;
use tickpath_web_client::{HttpRequest, HttpResponse, HttpsClient};

use tickpath_cli_terminal::args::CliUsageError;
use tickpath_exchanges::{ListingType, OrderExchange};

/// Largest offset of the exchange's clock, in nanoseconds: Binance refuses a request from the future beyond it.
const MAX_OFFSET_NS: i64 = 1_000_000_000;
/// Requests for the time; the one with the shortest round trip counts, because the first opens the connection.
const TIME_REQUESTS: usize = 3;
const NS_PER_MS: i64 = 1_000_000;
/// Max characters of an exchange's answer in a sentence.
const MAX_ANSWER_CHARS: usize = 200;

/// REST interface of an exchange, without keys.
pub struct PublicFacts {
    pub client: HttpsClient,
    protocol: OrderExchange,
    clock: HostClock,
}

/// Offset of the exchange's clock, exchange minus host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockLead {
    pub ns: i64,
    round_trip_ns: i64,
}

impl PublicFacts {
    pub fn new(protocol: OrderExchange, rest_url: &str, ca: Option<&Path>) -> Result<Self, CliUsageError> {
        let client = HttpsClient::new(rest_url, ca).map_err(|e| CliUsageError(e.to_string()))?;
        let clock = HostClock::get().map_err(|e| CliUsageError(e.to_string()))?;
        Ok(Self { client, protocol, clock })
    }

    /// Measures the exchange's clock, and checks it.
    pub fn clock(&self) -> Result<(ClockLead, String), String> {
        let mut best: Option<ClockLead> = None;
        for _ in 0..TIME_REQUESTS {
            let lead = self.measure_clock()?;
            if best.is_none_or(|best| lead.round_trip_ns < best.round_trip_ns) {
                best = Some(lead);
            }
        }
        let lead = best.ok_or("the exchange has not answered")?;
        let sign = if lead.ns < 0 { "-" } else { "+" };
        let [offset, error] = [lead.ns.unsigned_abs() as f64, lead.round_trip_ns as f64 / 2.0].map(duration);
        let text = format!("the exchange's clock is {sign}{offset} ± {error} from this host's");
        if lead.ns.abs() > MAX_OFFSET_NS {
            return Err(format!("{text}; synchronise this host's clock, requests would be refused"));
        }
        Ok((lead, text))
    }

    fn measure_clock(&self) -> Result<ClockLead, String> {
        let path = match self.protocol {
            OrderExchange::Okx => "/api/v5/public/time",
            OrderExchange::Binance => "/api/v3/time",
        };
        let response = self.response(path)?;
        let answer = json(&response)?;
        let exchange_ms = match self.protocol {
            OrderExchange::Okx => answer["data"][0]["ts"].as_str().and_then(|text| text.parse::<i64>().ok()),
            OrderExchange::Binance => answer["serverTime"].as_i64(),
        };
        let exchange_ms = exchange_ms.ok_or_else(|| format!("GET {path} has no time: {}", shown(&response)))?;
        let calibration = self.clock.calibration();
        let [sent, received] = [response.sent, response.received].map(|ticks| calibration.utc_ns_of(ticks) as i64);
        // The exchange cuts its time to a millisecond, so that the middle of that millisecond counts.
        let exchange_ns = exchange_ms.saturating_mul(NS_PER_MS).saturating_add(NS_PER_MS / 2);
        let host_ns = sent + (received - sent) / 2;
        Ok(ClockLead { ns: exchange_ns.saturating_sub(host_ns), round_trip_ns: (received - sent).max(0) })
    }

    /// Returns the exchange's list, as far as it has instruments of the types of these names.
    pub fn listing(&self, names: &[&str]) -> Result<Listing, String> {
        let feed = self.protocol.feed();
        let mut types: Vec<ListingType> = Vec::new();
        for kind in names.iter().filter_map(|name| feed.listing_type(name)) {
            if !types.contains(&kind) {
                types.push(kind);
            }
        }
        let mut whole = Listing::default();
        for path in feed.listing_paths(&types) {
            let listing = feed.read_listing(&self.response(&path)?.body).map_err(|e| format!("GET {path}: {e}"))?;
            whole.instruments.extend(listing.instruments);
            whole.refused.extend(listing.refused);
        }
        Ok(whole)
    }

    /// Returns the best bid of an instrument.
    pub fn bid(&self, instrument: &ListedInstrument) -> Result<Price, String> {
        let name = &instrument.name;
        let path = match self.protocol {
            OrderExchange::Okx => format!("/api/v5/market/ticker?instId={name}"),
            OrderExchange::Binance => format!("/api/v3/ticker/bookTicker?symbol={name}"),
        };
        let answer = json(&self.response(&path)?)?;
        let bid = match self.protocol {
            OrderExchange::Okx => &answer["data"][0]["bidPx"],
            OrderExchange::Binance => &answer["bidPrice"],
        };
        let price = bid.as_str().and_then(|text| text.parse::<Price>().ok());
        let price = price.filter(|price| *price > Price::ZERO);
        price.ok_or_else(|| format!("{name} has no bid now, by GET {path}; check another --instrument, or later"))
    }

    /// Returns the rate limits, as the exchange lists them with an instrument, or documents them.
    pub fn rate_limits(&self, instrument: &str) -> Result<((), String), String> {
        if self.protocol == OrderExchange::Okx {
            let text = "by OKX's documentation 60 of new, amend and cancel in 2 s each for an instrument, 1000 new and \
                        amend in 2 s for a sub-account";
            return Ok(((), text.to_owned()));
        }
        let path = format!("/api/v3/exchangeInfo?symbol={instrument}");
        let answer = json(&self.response(&path)?)?;
        let limits = answer["rateLimits"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |limit: &Value| {
            let [kind, interval] = ["rateLimitType", "interval"].map(|key| limit[key].as_str().unwrap_or_default());
            format!("{kind} {} in {} {interval}", limit["limit"], limit["intervalNum"]).to_lowercase()
        };
        match limits {
            [] => Err(format!("GET {path} lists no limits")),
            limits => Ok(((), limits.iter().map(text).collect::<Vec<_>>().join(", "))),
        }
    }

    fn response(&self, path: &str) -> Result<HttpResponse, String> {
        let response = self.client.fetch(HttpRequest::get(path)).map_err(|e| e.to_string())?;
        if response.status == 200 {
            return Ok(response);
        }
        Err(format!("GET {path} answers with status {}: {}; check --rest-url", response.status, shown(&response)))
    }
}

/// Reads an answer as JSON.
pub fn json(response: &HttpResponse) -> Result<Value, String> {
    serde_json::from_slice(&response.body).map_err(|_| format!("the answer is no JSON: {}", shown(response)))
}

/// Returns the begin of an answer for a sentence, without control characters.
pub fn shown(response: &HttpResponse) -> String {
    let text = String::from_utf8_lossy(&response.body);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_ANSWER_CHARS).collect()
}
