//! Recordings of market data, and their replay.
//!
//! A recording is text, plain or gzip, one message per line: `LOCAL_NS JSON`, the local receive time in nanoseconds
//! since the Unix epoch, then the exchange's unchanged message in the form of the Binance futures streams:
//!
//! ```text
//! 1704067200001234567 {"stream":"synusdt@bookTicker","data":{"e":"bookTicker","s":"SYNUSDT","b":"61800.20",…}}
//! ```
//!
//! Or it is CSV, with a row of names first: `utc_ns`, `symbol`, `bid`, `bid_quantity`, `ask`, `ask_quantity` of a best
//! bid and offer, `price`, `quantity`, `aggressor` of a trade.
//!
//! `bookTicker` and `trade` messages become ticks, depth messages are skipped and counted, and bad lines are counted
//! and reported with their line numbers. Parsing is complete before the first tick is handed out, so a replay measures
//! no parsing. [`read_line`] reads a single line, for programs that take a recording line by line.

mod csv;
mod json_line;
mod recording;
mod schedule;
mod synthetic;
mod tick;

pub use json_line::{LineContent, read_line};
pub use recording::{RecordedTick, Recording, RecordingCounts, RecordingError};
pub use schedule::{ReplaySchedule, ReplaySpeed, ReplaySpeedError};
pub use tick::MarketTick;
