//! The streams of a subscription: their names, the paths that serve them, and the requests that open them.

use crate::config::BinanceFeedConfig;
use crate::market::BinanceMarket;
use crate::message::TimeUnit;

/// Max streams of a connection.
pub(crate) const MAX_STREAMS: usize = 1_024;
/// Max bytes of a URL; servers refuse longer ones from 8 KiB on.
const MAX_URL_BYTES: usize = 8_000;
/// Max streams of a SUBSCRIBE request.
const MAX_REQUESTED: usize = 200;

/// A path of the exchange, with the names of its streams.
pub(crate) struct StreamPath {
    path: &'static str,
    names: Vec<String>,
}

/// The URL of a connection, and a SUBSCRIBE request for the streams that it has no room for. The id of a request is its
/// place, from 1.
pub(crate) struct StreamPlan {
    pub(crate) url: String,
    pub(crate) requests: Vec<String>,
}

impl StreamPath {
    /// Returns the paths that a feed needs: that of quotes and books first.
    pub(crate) fn of_config(config: &BinanceFeedConfig) -> Vec<Self> {
        let quotes = if config.api_key.is_some() { "bestBidAsk" } else { "bookTicker" };
        let (book_path, trade_path, trades) = match config.market {
            BinanceMarket::Spot => ("/stream", "/stream", "trade"),
            BinanceMarket::UsdFutures => ("/public/stream", "/market/stream", "aggTrade"),
        };
        let subscription = &config.subscription;
        let kinds = [
            (subscription.quotes, book_path, quotes),
            (subscription.books, book_path, config.book_stream.as_str()),
            (subscription.trades, trade_path, trades),
        ];
        let mut paths: Vec<Self> = Vec::new();
        for (_, path, kind) in kinds.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
            let symbols = subscription.instruments.iter().map(|instrument| instrument.name.to_lowercase());
            let names = symbols.map(|symbol| format!("{symbol}@{kind}"));
            match paths.iter_mut().find(|known| known.path == path) {
                Some(known) => known.names.extend(names),
                None => paths.push(Self { path, names: names.collect() }),
            }
        }
        paths.retain(|path| !path.names.is_empty());
        paths
    }

    /// Returns the number of streams.
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    /// Returns the way to open all streams at an address.
    pub(crate) fn plan(&self, address: &str, unit: TimeUnit) -> StreamPlan {
        let unit = match unit {
            TimeUnit::Millisecond => "",
            TimeUnit::Microsecond => "&timeUnit=MICROSECOND",
        };
        let mut url = format!("{address}{}?streams=", self.path);
        let mut in_url = 0;
        for name in &self.names {
            let name = percent_encoded(name);
            if url.len() + 1 + name.len() + unit.len() > MAX_URL_BYTES {
                break;
            }
            if in_url > 0 {
                url.push('/');
            }
            url += &name;
            in_url += 1;
        }
        url += unit;
        let rest = self.names[in_url..].chunks(MAX_REQUESTED);
        StreamPlan { url, requests: (1..).zip(rest).map(|(id, names)| subscribe_request(id, names)).collect() }
    }
}

/// Returns a text as it can stand in a URL: some symbols have letters outside ASCII.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}

fn subscribe_request(id: u64, names: &[String]) -> String {
    serde_json::json!({ "method": "SUBSCRIBE", "params": names, "id": id }).to_string()
}
