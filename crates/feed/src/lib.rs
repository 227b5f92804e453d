//! The contract of a market data feed: what a carrier of ticks requires of an exchange adapter.
//!
//! ```text
//!   exchange ── frames ──> Feed::poll ── FeedEvent ──> carrier ──> Race ──> BookOrder ──> bus
//!                              │ uses the same
//!   file of raw frames ──> FrameParser ── MarketEvent ──> carrier
//! ```
//!
//! Design: `docs/design/market-data-feeds.md`. An adapter is two parts: a [`FrameParser`], which turns a frame of the exchange into typed messages and does no I/O,
//! and a [`Feed`], which keeps a connection and passes each frame to its parser. `examples/text_feed.rs` is an adapter for a
//! plain protocol in some 200 lines, and its test runs [`conformance`] against it. A carrier drives a feed by
//! [`Feed::poll`], lets the connections of one exchange [`Race`], and publishes the steps of [`BookOrder`]:
//!
//! ```
//! use tickpath_feed::{BookOrder, BookStep, Feed, FeedEvent, FeedLost, MarketEvent};
//!
//! fn poll_once(feed: &mut dyn Feed, books: &mut BookOrder) -> Result<usize, FeedLost> {
//!     feed.poll(&mut |event| match event {
//!         FeedEvent::Market(MarketEvent::Book(update)) => books.take(update, &mut |step| match step {
//!             BookStep::Apply(update) => println!("{} levels at {}", update.levels.len(), update.sequence),
//!             BookStep::Gap { expected, found } => println!("{found} does not follow {expected}: resynchronize"),
//!             BookStep::Valid => println!("the book is valid"),
//!             BookStep::Hold | BookStep::Drop => {}
//!         }),
//!         FeedEvent::Market(message) => println!("{message:?}"),
//!         FeedEvent::BadFrame(error) => println!("{error}"),
//!         FeedEvent::Up | FeedEvent::Frame(..) | FeedEvent::ClockOffset { .. } => {}
//!     })
//! }
//! ```
//!
//! | module           | content                                                                        |
//! |------------------|--------------------------------------------------------------------------------|
//! | this page        | the traits of an adapter, their events and errors                              |
//! | `book_update`    | [`BookUpdate`]: a snapshot or an update of an order book                       |
//! | [`race`]         | [`Race`]: several connections carry the same messages, and the first one wins  |
//! | [`book_order`]   | [`BookOrder`]: whether a book is valid, by the sequence numbers of its updates |
//! | [`conformance`]  | the suite that checks an adapter against this contract                         |
//!
//! # The contract
//!
//! * **No call waits.** Each call returns at once. A name lookup in [`Feed::connect`] is the only wait that is allowed.
//! * **Connect.** [`Feed::connect`] begins a connect and ends any earlier connection, whose end is not reported.
//!   [`FeedEvent::Up`] ends the connect when the exchange has acknowledged all subscriptions. It comes once, and before
//!   any message of the connection.
//! * **Loss.** [`Feed::poll`] returns [`FeedLost`] once, when the connection has ended for any reason: refused, closed,
//!   silent or unreadable. From then on the feed reports no event until it is connected again. A feed never connects by
//!   itself.
//! * **Silence.** The feed sends the exchange's heartbeats, and ends a connection on which nothing arrives for as long
//!   as the exchange allows, also during a connect.
//! * **Raw frames.** Each frame is passed on as [`FeedEvent::Frame`] before its messages, and so are the answers of the
//!   exchange's REST interface that the books need: a new parser makes the same messages from a file of these frames.
//! * **Order.** Messages of a connection are passed on in the order of their arrival, each once.
//! * **Books.** A snapshot of each book follows the connect. The parser passes on each update with the sequence number
//!   that it follows, and judges nothing: only [`BookOrder`] finds gaps. After a gap the carrier calls
//!   [`Feed::resynchronize`], and the adapter brings another snapshot. The adapter requests a snapshot that does not
//!   arrive, or that it cannot read, again and again, at its own pace.
//! * **Channels.** A channel that the exchange ends by itself is a [`FrameError::Ended`], and is subscribed again.
//! * **Bad input.** A frame that cannot be read is an error with a sentence, [`FeedEvent::BadFrame`], and changes
//!   nothing: the next frame is read as if it had not come. The carrier counts such frames. If the error names an
//!   instrument ([`FrameError::outdated`]), the carrier publishes a gap of it.

pub mod book_order;
mod book_update;
pub mod conformance;
pub mod race;

mod listing;

use std::os::fd::BorrowedFd;

use tickpath_market::{SymbolId, TopOfBook, Trade};

pub use book_order::{BookOrder, BookStep, MAX_HELD_UPDATES};
pub use book_update::{BookUpdate, LevelChange};
pub use race::{MessageKey, MessageStream, RECENT_MESSAGES, Race, RaceCounts};

pub use listing::{ContractKind, ListedInstrument, Listing, ListingError};

/// A connection to the market data of an exchange. The head of this crate is its contract.
pub trait Feed: Send {
    /// Returns the address of the feed, for messages.
    fn address(&self) -> String;

    /// Begins to connect and ends any earlier connection. [`Self::poll`] then brings [`FeedEvent::Up`] or [`FeedLost`].
    fn connect(&mut self);

    /// Takes arrived frames and does pending work: heartbeats, subscriptions. Returns the amount of work done.
    fn poll(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, FeedLost>;

    /// Requests another snapshot of an instrument's book, because an update is missing. Does nothing while the feed is
    /// down, because a connect brings snapshots.
    fn resynchronize(&mut self, symbol: SymbolId);

    /// Takes a frame of its own through the code that the next frame takes, on private memory: called now and then by an
    /// idle thread, so that a frame after a silence does not run cold. No event is passed on. A feed that wraps another
    /// one passes the call on; a feed with nothing to warm does nothing.
    fn warm_up(&mut self);

    /// Returns the descriptor that a sleeping thread polls for readability; none if there is nothing to wait on now.
    fn socket(&self) -> Option<BorrowedFd<'_>>;
}

/// Reader of an exchange's frames, without I/O.
pub trait FrameParser: Send {
    /// Reads a frame and passes on its messages in their order.
    fn parse(&mut self, frame: Frame<'_>, take: &mut dyn FnMut(MarketEvent<'_>)) -> Result<(), FrameError>;
}

/// A frame of an exchange, or an answer of its REST interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Text, as a rule JSON. It need not be valid UTF-8.
    Text(&'a [u8]),
    /// Binary data, as a rule SBE.
    Binary(&'a [u8]),
}

/// An event of a feed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FeedEvent<'a> {
    /// The exchange has acknowledged all subscriptions.
    Up,
    /// A frame has arrived. Its messages follow.
    Frame(Frame<'a>, Arrival),
    /// A message of the last frame.
    Market(MarketEvent<'a>),
    /// The last frame could not be read.
    BadFrame(&'a FrameError),
    /// Measured offset of the exchange's clock, exchange minus local, in nanoseconds; half the round trip is its error.
    ClockOffset {
        /// Offset.
        offset_ns: i64,
        /// Time from the request to the answer.
        round_trip_ns: u64,
    },
}

/// Stamps of a frame's arrival, in ticks of the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// Receive time of the frame's last packet in the kernel; zero if the kernel gives none.
    pub wire: u64,
    /// Return of the call that read the frame's last byte.
    pub read: u64,
}

/// A message of an exchange.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MarketEvent<'a> {
    /// Best bid and offer.
    Quote {
        /// The exchange's sequence number; it rises with each quote of an instrument.
        sequence: u64,
        /// The quote.
        quote: &'a TopOfBook,
    },
    /// A trade. Its id is its sequence number.
    Trade(&'a Trade),
    /// A snapshot or an update of an order book.
    Book(BookUpdate<'a>),
    /// The exchange announces maintenance, or the end of this connection: the carrier opens another one first.
    Maintenance,
}

/// An instrument of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedInstrument {
    /// The exchange's name of the instrument.
    pub name: String,
    /// Number of the instrument in our messages.
    pub symbol: SymbolId,
    /// Decimals of a [`Price`](tickpath_market::Price) of this instrument: a price is in units of 10 to the power of
    /// minus this number.
    pub price_decimals: u8,
    /// Decimals of a [`Quantity`](tickpath_market::Quantity) of this instrument.
    pub quantity_decimals: u8,
    /// The exchange's number of the instrument, where its binary protocol uses one; zero if unknown.
    pub code: u64,
}

/// Instruments and kinds of messages to which a feed subscribes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    /// Instruments.
    pub instruments: Vec<FeedInstrument>,
    /// Best bids and offers.
    pub quotes: bool,
    /// Trades.
    pub trades: bool,
    /// Order books.
    pub books: bool,
}

/// The end of a connection, with its reason as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FeedLost(pub String);

/// A frame that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame is no message of the exchange's protocol.
    #[error("a frame of {bytes} bytes cannot be read: {why}; it is skipped")]
    Malformed {
        /// Length of the frame.
        bytes: usize,
        /// Reason, with the place in the frame where there is one.
        why: String,
    },
    /// A number does not fit its instrument.
    #[error("{instrument}: {field} '{text}' does not fit {decimals} decimals in 64 bits; fetch the instruments again")]
    Number {
        /// Name of the instrument.
        instrument: String,
        /// Number of the instrument in our messages.
        symbol: SymbolId,
        /// Field of the number.
        field: &'static str,
        /// Text of the number.
        text: String,
        /// Decimals of the instrument's numbers.
        decimals: u8,
    },
    /// A channel of an instrument brings nothing more.
    #[error("{instrument}: the channel '{channel}' {why}; it is subscribed again")]
    Ended {
        /// Name of the instrument.
        instrument: String,
        /// Number of the instrument in our messages.
        symbol: SymbolId,
        /// Name of the channel.
        channel: String,
        /// Predicate of the sentence: the reason.
        why: String,
    },
    /// The message is of an instrument that was not subscribed.
    #[error("a message of the instrument '{0}', which is not subscribed; it is skipped")]
    UnknownInstrument(String),
    /// The exchange reports an error.
    #[error("the exchange reports an error: {0}")]
    Exchange(String),
}

impl FrameError {
    /// Returns the instrument whose last quote and book are out of date because of this error, if it is known.
    pub fn outdated(&self) -> Option<SymbolId> {
        match self {
            Self::Number { symbol, .. } | Self::Ended { symbol, .. } => Some(*symbol),
            Self::Malformed { .. } | Self::UnknownInstrument(_) | Self::Exchange(_) => None,
        }
    }
}

/// Returns `mantissa` times ten to the power of `exponent`, in units of ten to the power of minus `decimals`; none if it
/// does not fit exactly.
#[inline]
pub fn units_of(mantissa: i64, exponent: i8, decimals: u8) -> Option<i64> {
    let shift = i32::from(exponent) + i32::from(decimals);
    if mantissa == 0 {
        return Some(0);
    }
    let power = 10_i64.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 {
        return mantissa.checked_mul(power);
    }
    (mantissa % power == 0).then(|| mantissa / power)
}
