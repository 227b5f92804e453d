//! Files of market data: readers of the formats that people have, and writers of tables.
//!
//! ```text
//!   file ── MarketFile ── (receive time, instrument, MarketMessage) ──> recording
//!   recording ── (receive time, MarketMessage) ── Exporter ──> tables
//! ```
//!
//! * [`MarketFile`] recognises a [`DataFormat`] by the content and the name of a file, and passes the messages on one
//!   by one: memory does not grow with the file.
//! * [`ImportCounts`] has every row that became no message, and the number and the fault of the first bad rows.
//! * [`Exporter`] writes CSV, Parquet and the events of hftbacktest, a file a kind of message ([`TableKind`]).
//!
//! | file | formats | module |
//! |---|---|---|
//! | CSV; plain, gzip or zip | our own | `tick_table.rs` |
//! | | tardis.dev | `tardis.rs` |
//! | | data.binance.vision | `binance_vision.rs` |
//! | lines of JSON; plain, gzip or zip | hftbacktest's collector | `json_lines.rs` |
//! | numpy archive or array | events of hftbacktest | `hft_events.rs`, `npy.rs` |
//! | DBN, plain or zstd | Databento | `databento.rs` |
//!
//! `lines.rs` and `cells.rs` split a text in place, and `decimal.rs` reads numbers from bytes: the hot formats take no
//! allocation a row.
//!
//! ```
//! use std::ops::ControlFlow;
//! use tickpath_recordings::{DataFormat, MarketFile};
//!
//! let path = std::env::temp_dir().join(format!("recordings-doc-{}.csv", std::process::id()));
//! std::fs::write(&path, "utc_ns,symbol,price,quantity\n1704067200000000001,BTCUSDT,61800.1,2\nlater,BTCUSDT,1,1\n")?;
//! let file = MarketFile::open(&path, None)?;
//! assert_eq!(file.format(), DataFormat::Csv);
//! let counts = file.read(&mut |utc_ns, instrument, _message| {
//!     assert_eq!((utc_ns, instrument), (1_704_067_200_000_000_001, "BTCUSDT"));
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!((counts.trades, counts.bad, counts.bad_rows[0].0), (1, 1, 3));
//! std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! * `formats`, on by default: Databento's files and Parquet, whose libraries take longest to build. Without this feature
//!   they are refused with the remedy.
//!
//! # Invariants
//!
//! * Each row becomes messages, or is counted: as skipped by its kind, or as bad.
//! * Times that are passed on never decrease; a time that went back is counted, and becomes the latest time before it.
//! * A file that ends early is never taken for whole: what was read is reported as cut off, its last row is not used,
//!   and the book is left incomplete. An archive that is cut off cannot be read at all.
//! * An exported file has its name only when it is complete.
//! * Prices and quantities have eight decimals. Values that a format holds as floating point numbers are rounded, and
//!   counted where that changes them.

mod binance_vision;
mod cells;
mod counts;
mod csv_table;
#[cfg(feature = "formats")]
mod databento;
mod decimal;
mod exporter;
mod format;
mod hft_events;
mod intake;
mod json_lines;
mod lines;
mod market_file;
mod message;
mod npy;
mod npz_file;
#[cfg(feature = "formats")]
mod parquet_table;
mod read_fault;
mod table_kind;
mod tardis;
mod tick_table;

pub use counts::ImportCounts;
pub use exporter::{ExportedFile, Exporter};
pub use format::{DataFormat, DataFormatError};
pub use market_file::{MarketFile, MarketFileError};
pub use message::MarketMessage;
pub use table_kind::{ExportError, TableKind, TableKindError};
