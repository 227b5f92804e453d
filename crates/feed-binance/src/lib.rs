//! Market data of Binance: spot, as JSON or SBE, and USDⓈ-M futures.
//!
//! ```text
//!   streams (WebSocket) ──> connection ──┐
//!   depth, time (REST)  ──> rest ────────┴──> BinanceFeed ── frames ──> BinanceParser ── MarketEvent ──> carrier
//!                                                            hot: scan · any JSON: json · binary: sbe
//! ```
//!
//! [`BinanceFeed`] keeps the contract of [`tickpath_feed`], and [`BinanceParser`] reads frames without I/O, so that a
//! file of recorded frames gives the same messages again. [`read_instruments`] reads the exchange's list of
//! instruments.
//!
//! # Connections
//!
//! | market | path | streams |
//! |---|---|---|
//! | spot, JSON | `/stream` | `bookTicker`, `depth@100ms`, `trade` |
//! | spot, SBE: with an API key | `/stream` | `bestBidAsk`, `depth`, `trade` |
//! | USDⓈ-M futures | `/public/stream` | `bookTicker`, `depth@100ms` |
//! | USDⓈ-M futures | `/market/stream` | `aggTrade` |
//!
//! * Streams are named in the URL as far as it has room, and by SUBSCRIBE requests otherwise. A URL is acknowledged by
//!   the upgrade: the exchange ignores an unknown stream in it, so names come from the exchange's list.
//! * A futures feed with books or quotes and trades has two connections. It is up when both are up, and lost when one
//!   is lost. Frames that arrive before are dropped.
//! * [`BinanceFeed::socket`](tickpath_feed::Feed::socket) is the connection with quotes and books. The other connection
//!   and the REST interface have no descriptor, so a carrier that sleeps on it polls at least every 10 ms.
//! * The exchange ends a connection after 24 hours: ten minutes before, the feed reports `Maintenance`, once.
//!
//! # Books
//!
//! After `Up` the feed requests the snapshot of each instrument's book by REST, and passes the answer on as the frame
//! `{"stream":"btcusdt@depthSnapshot","data":ANSWER}`, the answer unchanged, so that a file of raw frames has the name
//! of its instrument. A bare answer is read, too, if the parser has a single instrument.
//!
//! A snapshot has a chosen number of levels on each side ([`SnapshotDepth`]). A book is complete to this depth only: a
//! level beyond is unknown until an update names it.
//!
//! Feeds of the same market data ([`BinanceFeed::several`]) share the requests. A snapshot is requested once for all,
//! and a feed that comes up while another one is up requests none: its books are complete by the other feed. Where the
//! raw frames of each connection are kept, `snapshots_per_connection` makes each of them complete by itself.
//!
//! Requests are at most two at a time, and use half of the weight that the exchange allows an address. A failed request
//! is reported as a bad frame and repeated after a pause of its own, which grows up to a minute. A refusal of the
//! address pauses all requests, for the time of its `Retry-After` header.
//!
//! # Times and numbers
//!
//! * Times are milliseconds, or microseconds with [`TimeUnit::Microsecond`], which the configuration decides and no
//!   number of digits. SBE has microseconds always. The time of a message is that of the matching engine (`T`) where
//!   there is one, otherwise that of the message (`E`); a spot quote has none in JSON.
//! * The offset of the exchange's clock is measured against the time that the host's calibration gives to stamps.
//! * Prices and quantities are in the units of their instrument; a number that does not fit is an error, never rounded.
//! * A futures trade of quantity zero (`"X":"NA"`) is no trade, and passed over.
//!
//! # Invariants
//!
//! * A frame is read completely before its first message is passed on.
//! * Reading a hot message allocates nothing once the buffers have grown.
//! * The in-place reader and the complete reader agree on each frame that the first accepts.

mod api_key;
mod config;
mod connection;
mod feed;
mod feed_warm_up;
mod instrument_table;
mod instruments;
mod json;
mod market;
mod message;
mod parser;
mod request_weight;
mod rest;
mod sbe;
mod scan;
mod streams;

pub use api_key::{ApiKey, ApiKeyError};
pub use config::{BinanceFeedConfig, FUTURES_REST, FUTURES_STREAMS, SPOT_REST, SPOT_SBE_STREAMS, SPOT_STREAMS};
pub use feed::{BinanceFeed, BinanceFeedError};
pub use instruments::read_instruments;
pub use market::BinanceMarket;
pub use message::TimeUnit;
pub use parser::BinanceParser;
pub use request_weight::{SnapshotDepth, SnapshotDepthError};
