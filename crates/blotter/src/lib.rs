//! Orders, fills and profit of a trading day, from the journal of an order management system.
//!
//! ```text
//!   journal ── replay ──> Reading ── View ──┬──> orders      a row an order
//!              of a day                     ├──> fills       a row a fill: good, corrected, busted, resolved
//!                                           └──> positions   a row an account and instrument, with its profit
//! ```
//! A [`Reading`] replays the journal up to the end of a day ([`Which`]), or follows the day that goes on. A [`View`] chooses
//! rows and gives the prices at which positions are valued. Profit is by the average cost method; every sum is an integer.
//!
//! | file         | what it answers                                         |
//! |--------------|---------------------------------------------------------|
//! | `day.rs`     | which records are a day                                 |
//! | `reading.rs` | where the replay begins, and how it goes on             |
//! | `tape.rs`    | what an input changes in the rows                       |
//! | `book.rs`    | what the fills of an account and instrument come to     |
//! | `cost.rs`    | profit by average cost, and how it rounds               |
//! | `row.rs`     | what a row holds                                        |
//! | `denial.rs`  | why an order was denied or rejected                     |
//! | `view.rs`    | the columns, and which rows are shown                   |
//! | `table.rs`   | text for people, CSV, JSON                              |
//! | `command.rs` | `tickpath blotter`                                      |
//!
//! Invariant: the journal is read and nothing else; its OMS does not notice.
//! Invariant: the fills of an order count what the core counts as filled, so a position here is the core's position.
//! Invariant: realised plus open profit is the cash flow plus the value of the position, to the last digit.

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
