//! Market data of OKX (API v5): frames as typed messages, a connection that subscribes, and the list of instruments.
//!
//! ```text
//!   frame ──> scan: the usual spelling, in place ──┐
//!               │ other spelling                   ├──> batch ──> MarketEvent
//!               ├──> envelope, push: any JSON ─────┤
//!   SBE ──────────> sbe: fields at fixed offsets ──┘
//!
//!   OkxFeed ──> WebSocketClient ──> session: acknowledgements, heartbeats, resubscriptions ──> OkxParser
//! ```
//!
//! [`OkxParser`] reads frames and does no I/O; [`OkxFeed`] keeps a connection; [`read_instruments`] reads the answer of
//! `GET /api/v5/public/instruments`.
//!
//! | channel        | message                                                                       |
//! |----------------|-------------------------------------------------------------------------------|
//! | `bbo-tbt`      | a quote; a side without orders has price 0 and quantity 0                     |
//! | `trades`       | a trade for each price that a taker order has filled                          |
//! | `books`        | 400 levels: a snapshot after the subscription, then changes each 100 ms       |
//! | `books-l2-tbt` | as `books`, each 10 ms; read by the parser, and not subscribed: needs a login |
//!
//! ```
//! use tickpath_feed::{FeedInstrument, Frame, FrameParser, MarketEvent};
//! use tickpath_feed_okx::OkxParser;
//! use tickpath_market::SymbolId;
//!
//! let name = "BTC-USDT".to_owned();
//! let instrument = FeedInstrument { name, symbol: SymbolId(1), price_decimals: 1, quantity_decimals: 8, code: 0 };
//! let mut parser = OkxParser::new(&[instrument])?;
//! let frame = br#"{"arg":{"channel":"bbo-tbt","instId":"BTC-USDT"},"data":[{"asks":[["105252.6","0.16271274","0","5"]],
//!     "bids":[["105252.5","1.1133491","0","19"]],"ts":"1749044565306","seqId":55729075884}]}"#;
//! let mut bid = 0;
//! parser.parse(Frame::Text(frame), &mut |event| {
//!     if let MarketEvent::Quote { quote, .. } = event {
//!         bid = quote.bid.0;
//!     }
//! })?;
//! assert_eq!(bid, 1_052_525, "in units of one decimal");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//!
//! * A frame gives all of its messages or none: they are kept in a batch until its last byte is read.
//! * The scan in place accepts only the spelling that OKX sends, and gives the same messages as the complete reader.
//! * Nothing is passed on before every subscription is acknowledged: earlier frames are kept, and follow
//!   [`FeedEvent::Up`](tickpath_feed::FeedEvent::Up) in their order.
//! * A connection stays below OKX's hourly limit of requests. A token bucket delays resubscriptions, not heartbeats,
//!   which do not count.
//! * A book whose snapshot does not come, and a channel that ends or is silent without a reason, are subscribed again,
//!   at a pause that grows.
//! * OKX's checksum of a book has been 0 since June 2026: sequence numbers alone show a gap.

mod batch;
mod channels;
mod complaint;
mod envelope;
mod feed;
mod feed_warm_up;
mod heartbeat;
mod instrument_table;
mod instruments;
mod parser;
mod push;
mod resubscribe;
mod sbe;
mod scan;
mod server_time;
mod session;

pub use feed::{DEMO_PUBLIC_URL, OkxFeed, OkxFeedConfig, OkxFeedError, PUBLIC_URL, REST_URL};
pub use instrument_table::OkxInstrumentError;
pub use instruments::read_instruments;
pub use parser::OkxParser;
