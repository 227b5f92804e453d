//! Messages of the exchange as the readers return them, whichever way a frame is written.

use serde_json::Value;
use tickpath_market::{Currency, Side};

use crate::terms::OrderTerms;

/// Max characters of a text of the exchange in an error.
const MAX_SHOWN: usize = 200;

/// Status of one request too many.
const TOO_MANY_REQUESTS: u64 = 429;
/// Status of a request from an address that is banned.
pub(crate) const BANNED: u64 = 418;

/// Code of a cancel whose order is not there.
pub(crate) const CANCEL_REJECTED: i64 = -2011;
/// Code of a query whose order is not there.
pub(crate) const NO_SUCH_ORDER: i64 = -2013;
/// Code of a time that is outside of the time window.
pub(crate) const INVALID_TIMESTAMP: i64 = -1021;
/// Code of too many new orders; other requests may leave.
pub(crate) const TOO_MANY_ORDERS: i64 = -1015;
/// Codes after which the exchange may have carried out the request.
const AMBIGUOUS: [i64; 4] = [-1000, -1001, -1006, -1007];

/// A frame of the exchange. An answer may hold the API key, so neither has a debug text.
pub(crate) enum LineFrame<'a> {
    /// An order was placed: the short answer to the request with this number.
    Placed { number: u64, order_id: u64 },
    /// An event of an order.
    Event(OrderEvent<'a>),
    /// An event of an order that cannot be read.
    Unreadable(UnreadableEvent<'a>),
    /// Any other answer.
    Answer(RequestAnswer),
    /// The server is about to shut down.
    Shutdown,
    /// The stream of user events has ended.
    StreamEnded,
    /// A frame without a meaning for orders.
    Other,
}

/// Kind of an event of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    New,
    Canceled,
    /// The quantity was reduced.
    Replaced,
    Rejected,
    Trade,
    Expired,
    /// Self-trade prevention has expired the order, or a part of it.
    Prevented,
}

/// State of an order at the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderState {
    Working,
    Filled,
    Canceled,
    Expired,
    Rejected,
}

/// An event of an order (`executionReport`). Quantities, prices and the fee are in units of 10⁻⁸.
pub(crate) struct OrderEvent<'a> {
    pub(crate) event_ms: u64,
    pub(crate) transact_ms: u64,
    pub(crate) symbol: &'a [u8],
    /// Text of the order; in the event of a cancel the text that the cancel gave it.
    pub(crate) client: &'a [u8],
    /// Text of the order before a cancel; empty in other events.
    pub(crate) original: &'a [u8],
    pub(crate) terms: OrderTerms,
    /// None for a kind that this line does not know.
    pub(crate) kind: Option<EventKind>,
    pub(crate) state: Option<OrderState>,
    pub(crate) order_id: u64,
    pub(crate) execution_id: u64,
    pub(crate) trade_id: Option<u64>,
    pub(crate) last_price: i64,
    pub(crate) last_quantity: i64,
    pub(crate) cumulative: i64,
    /// Quantity that self-trade prevention has taken off.
    pub(crate) prevented: i64,
    pub(crate) fee: i64,
    pub(crate) fee_currency: Currency,
    pub(crate) is_maker: bool,
    /// Reason of a rejection or an expiry; empty or `NONE` without one.
    pub(crate) reason: &'a [u8],
}

/// The state of an order in an answer. Quantities and prices are in units of 10⁻⁸.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderRecord {
    pub(crate) order_id: u64,
    pub(crate) client: String,
    pub(crate) terms: OrderTerms,
    pub(crate) executed: i64,
    pub(crate) prevented: i64,
    /// None for a state that this line does not know.
    pub(crate) state: Option<OrderState>,
}

/// A fill in an answer. Quantities, prices and the fee are in units of 10⁻⁸.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TradeRecord {
    pub(crate) id: u64,
    pub(crate) order_id: u64,
    pub(crate) side: Side,
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    pub(crate) fee: i64,
    pub(crate) fee_currency: Currency,
    pub(crate) time_ms: u64,
    pub(crate) is_maker: bool,
}

/// An event that cannot be read, such as one with a number out of range.
pub(crate) struct UnreadableEvent<'a> {
    pub(crate) symbol: &'a [u8],
    /// Text of the order, before a cancel.
    pub(crate) client: &'a [u8],
    /// The trade or the event, with its id as the exchange has written it.
    pub(crate) name: String,
    /// Reason, as a sentence.
    pub(crate) why: String,
}

/// An entry of a list that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreadableEntry {
    /// The trade or the order, with its id as the exchange has written it.
    pub(crate) name: String,
    /// The exchange's id of the order, if that can be read.
    pub(crate) order_id: Option<u64>,
    /// Text of the order; empty for a fill.
    pub(crate) client: String,
    /// Reason, as a sentence.
    pub(crate) why: String,
}

/// Id of a request in its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerId {
    /// Number of a request of the OMS.
    Number(u64),
    /// Number of a query of the line itself.
    Query(u64),
    /// The exchange could not assign the answer to a request.
    Unassigned,
}

/// An answer to a request.
pub(crate) struct RequestAnswer {
    pub(crate) id: AnswerId,
    pub(crate) outcome: Result<Value, Refusal>,
}

/// The exchange's refusal of a request.
#[derive(Clone)]
pub(crate) struct Refusal {
    /// Status, as in HTTP.
    pub(crate) status: u64,
    pub(crate) code: i64,
    pub(crate) text: String,
    pub(crate) data: Value,
}

impl EventKind {
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"NEW" => Self::New,
            b"CANCELED" => Self::Canceled,
            b"REPLACED" => Self::Replaced,
            b"REJECTED" => Self::Rejected,
            b"TRADE" => Self::Trade,
            b"EXPIRED" => Self::Expired,
            b"TRADE_PREVENTION" => Self::Prevented,
            _ => return None,
        })
    }
}

impl OrderState {
    /// Returns whether the order can still be filled.
    pub(crate) fn is_working(self) -> bool {
        self == Self::Working
    }

    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"NEW" | b"PENDING_NEW" | b"PARTIALLY_FILLED" | b"PENDING_CANCEL" => Self::Working,
            b"FILLED" => Self::Filled,
            b"CANCELED" => Self::Canceled,
            b"EXPIRED" | b"EXPIRED_IN_MATCH" => Self::Expired,
            b"REJECTED" => Self::Rejected,
            _ => return None,
        })
    }
}

impl Refusal {
    /// Returns whether the exchange may have carried out the request all the same.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.status >= 500 || AMBIGUOUS.contains(&self.code)
    }

    /// Returns whether the request was one too many.
    pub(crate) fn is_rate_limit(&self) -> bool {
        is_rate_limit(self.status)
    }

    /// Returns the reason of a report: minus the exchange's code.
    pub(crate) fn reason(&self) -> u16 {
        u16::try_from(self.code.unsigned_abs()).unwrap_or(u16::MAX)
    }

    /// Returns the code and the text for a message.
    pub(crate) fn sentence(&self) -> String {
        format!("{}: {}", self.code, printable(&self.text))
    }
}

/// Returns whether a status, as in HTTP, refuses one request too many, or bans the address.
pub(crate) fn is_rate_limit(status: u64) -> bool {
    matches!(status, TOO_MANY_REQUESTS | BANNED)
}

/// Returns a text of the exchange as a message can show it: bounded, and without control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(MAX_SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect()
}
