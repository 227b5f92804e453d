//! Orders, fills and profit of a trading day, from the journal of an order management system: `tickpath blotter` and
//! Python's `tickpath.blotter`.
//!
//! ```text
//!   journal ── replay ──> DayBlotter ── BlotterView ──┬──> orders      a row an order
//!              of a day                               ├──> fills       a row a fill: good, corrected, busted, resolved
//!                                                     └──> positions   a row an account and instrument, with profit
//! ```
//! A [`DayBlotter`] replays the journal up to the end of a day ([`DayChoice`]), or follows the current day. A
//! [`BlotterView`] selects rows and sets the prices at which positions are valued. Profit is by the average cost
//! method.
//!
//! | file             | contents                                                |
//! |------------------|---------------------------------------------------------|
//! | `day.rs`         | the days of a journal                                   |
//! | `day_blotter.rs` | the start and the progress of a replay                  |
//! | `day_rows.rs`    | the rows, and their changes by an input                 |
//! | `book.rs`        | position and cost of an account in an instrument        |
//! | `cost.rs`        | profit by average cost, and its rounding                |
//! | `row.rs`         | the fields of a row                                     |
//! | `denial.rs`      | reasons of denials and rejections                       |
//! | `view.rs`        | the columns, and the selection of rows                  |
//! | `table.rs`       | text for people, CSV, JSON                              |
//! | `command.rs`     | `tickpath blotter`, behind the feature `command`        |
//!
//! # Invariants
//!
//! * Only the journal is read, so the OMS is not disturbed.
//! * The fills of an order add up to the core's filled quantity, so a position here is the core's position.
//! * Realised plus open profit is the cash flow plus the value of the position, to the last digit; every sum is an
//!   integer.

mod book;
#[cfg(feature = "command")]
pub mod command;
mod cost;
mod day;
mod day_blotter;
mod day_rows;
mod denial;
mod error;
mod row;
mod table;
mod view;

pub use cost::{PositionCost, average};
pub use day::{DayChoice, TradingDay, days};
pub use day_blotter::{BlotterStep, DayBlotter};
pub use error::BlotterError;
pub use row::{BlotterFill, BlotterOrder, BlotterPosition, BlotterStatus, FillState, snake_case};
pub use table::{BlotterCell, BlotterColumn, BlotterTable, decimal};
pub use view::{BlotterTables, BlotterView, FILLS, ORDERS, POSITIONS, json_document};
