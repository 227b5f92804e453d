//! Channels of OKX, and the requests that subscribe to them.

use tickpath_feed::Subscription;

/// Channel of quotes.
pub(crate) const QUOTES: &str = "bbo-tbt";
/// Channel of trades.
pub(crate) const TRADES: &str = "trades";
/// Channel of books, every 100 ms.
pub(crate) const BOOKS: &str = "books";
/// Channel of books, every 10 ms, for accounts of a high fee tier.
pub(crate) const FAST_BOOKS: &str = "books-l2-tbt";

/// Max bytes of a request. OKX refuses more than 64 KB, and does not define a KB.
const MAX_REQUEST_BYTES: usize = 60_000;

/// A channel of an instrument: what one subscription is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChannelKey {
    pub(crate) channel: String,
    pub(crate) instrument: String,
}

impl ChannelKey {
    pub(crate) fn new(channel: &str, instrument: &str) -> Self {
        Self { channel: channel.to_owned(), instrument: instrument.to_owned() }
    }
}

/// Returns the channels of a subscription.
pub(crate) fn channels_of(subscription: &Subscription) -> Vec<ChannelKey> {
    let wanted = [(subscription.quotes, QUOTES), (subscription.trades, TRADES), (subscription.books, BOOKS)];
    let of_one = |name: &str| wanted.map(|(is_wanted, channel)| is_wanted.then(|| ChannelKey::new(channel, name)));
    subscription.instruments.iter().flat_map(|instrument| of_one(&instrument.name)).flatten().collect()
}

/// Returns as few requests as the channels need. A name stands in a request as it is: the instrument table refuses
/// names with characters that JSON escapes.
pub(crate) fn requests(operation: &str, keys: &[ChannelKey]) -> Vec<String> {
    let begin = format!(r#"{{"op":"{operation}","args":["#);
    let (mut requests, mut request) = (Vec::new(), String::new());
    for ChannelKey { channel, instrument } in keys {
        let argument = format!(r#"{{"channel":"{channel}","instId":"{instrument}"}}"#);
        if !request.is_empty() && request.len() + argument.len() > MAX_REQUEST_BYTES {
            requests.push(std::mem::take(&mut request) + "]}");
        }
        let joint = if request.is_empty() { begin.as_str() } else { "," };
        request.push_str(joint);
        request.push_str(&argument);
    }
    if !request.is_empty() {
        requests.push(request + "]}");
    }
    requests
}
