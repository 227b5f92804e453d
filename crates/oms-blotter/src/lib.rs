//! Orders, fills and profit of a trading day, from the journal of an order management system.
//!
//! ```text
//!   journal ── replay ──> Reading ── View ──┬──> orders      a row an order
//!              of a day                     ├──> fills       a row a fill: good, corrected, busted, resolved
//!                                           └──> positions   a row an account and instrument, with its profit
//! ```
//! A [`Reading`] replays the journal up to the end of a day ([`Which`]), or follows the current day. A [`View`] selects
//! rows and sets the prices at which positions are valued. Profit is by the average cost method; every sum is an
//! integer.
//!
//! | file         | contents                                                |
//! |--------------|---------------------------------------------------------|
//! | `day.rs`     | the days of a journal                                   |
//! | `reading.rs` | the start and the progress of a replay                  |
//! | `tape.rs`    | the rows, and their changes by an input                 |
//! | `book.rs`    | position and cost of an account in an instrument        |
//! | `cost.rs`    | profit by average cost, and its rounding                |
//! | `row.rs`     | the fields of a row                                     |
//! | `denial.rs`  | reasons of denials and rejections                       |
//! | `view.rs`    | the columns, and the selection of rows                  |
//! | `table.rs`   | text for people, CSV, JSON                              |
//! | `command.rs` | `tickpath blotter`                                      |
//!
//! Invariant: only the journal is read, so the OMS is not disturbed. Invariant: the fills of an order add up to the
//! core's filled quantity, so a position here is the core's position. Invariant: realised plus open profit is the cash
//! flow plus the value of the position, to the last digit.

mod book;
#[cfg(feature = "command")]
pub mod command;
mod cost;
mod day;
mod denial;
mod error;
mod reading;
mod row;
mod table;
mod tape;
mod view;

pub use cost::{Cost, average};
pub use day::{Day, Which, days};
pub use error::BlotterError;
pub use reading::{Reading, Step};
pub use row::{FillRow, FillState, OrderRow, PositionRow, Status, word};
pub use table::{Cell, Column, Table, decimal};
pub use view::{FILLS, ORDERS, POSITIONS, Tables, View, document};
