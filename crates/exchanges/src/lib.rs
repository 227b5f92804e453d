//! The exchanges by name: the one place that knows which adapters there are.
//!
//! ```text
//!   a name ── FeedExchange ──┬── open_feeds ─> feed-okx, feed-binance
//!                            ├── parser ─────> frames of a raw file
//!                            └── read_listing ──> merge_table ──> instruments.csv ──> read_feed_table
//!            └─ OrderExchange ── rest_url ──> lines of the OMS, simulated exchanges
//! ```
//!
//! `feeds.rs` names the adapters, `order_exchange.rs` the exchanges that take orders. `instrument_table.rs` writes an
//! exchange's list of instruments into a table that the OMS reads as well, and `feed_table.rs` reads the instruments of a
//! feed from it.
//!
//! Invariant: a name in a table keeps its number for ever, because orders and journals name it by that number.

mod error;
mod feed_table;
mod feeds;
mod instrument_table;
mod order_exchange;

pub use error::ExchangeUsageError;
pub use feed_table::{number_instruments, read_feed_table};
pub use feeds::{FeedChoices, FeedEndpoints, FeedExchange, FeedFormat, KeySource, ListingType};
pub use instrument_table::{MergedTable, TableMergeError, merge_table};
pub use order_exchange::OrderExchange;
pub use tickpath_feed_binance::SnapshotDepth;
