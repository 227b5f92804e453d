//! `blotter(folder)`: orders, fills and profit of a day, as tables.
//!
//! ```text
//!   journal ── one replay, at the call ──> orders, fills, positions ──> one batch each, exported by a Table
//! ```
//! The three tables show the same moment. Their columns are those of `tickpath blotter`; ids are numbers, so that the
//! tables can be joined with those of a journal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_array::builder::{StringBuilder, UInt16Builder, UInt32Builder, UInt64Builder};
use pyo3::prelude::*;
use tickpath_market::OrderType;
use tickpath_oms_blotter::{
    BlotterFill, BlotterOrder, BlotterPosition, BlotterView, DayBlotter, DayChoice, snake_case,
};

use crate::column::{Decimals, Nullable, Times, WideDecimals, batch_of, columns};
use crate::error::connect_error;
use crate::journal::place_of;
use crate::table::{PyTable, TableError};

/// Returns the orders, fills and positions of a day of an OMS's journal: of the present day, of the day that ended with
/// the date `day`, like 20261128, or of the day that begins with the record `first_record`. `marks` are the prices at
/// which positions are valued, and `starts` the prices of positions held at the start of the day, by instrument name,
/// in units of 10⁻⁸.
#[pyfunction]
#[pyo3(name = "blotter", signature = (folder, *, day = None, first_record = None, marks = None, starts = None))]
pub fn open_blotter(
    py: Python<'_>,
    folder: PathBuf,
    day: Option<u32>,
    first_record: Option<u64>,
    marks: Option<BTreeMap<String, i64>>,
    starts: Option<BTreeMap<String, i64>>,
) -> PyResult<Blotter> {
    let which = match (day, first_record) {
        (Some(day), _) => DayChoice::Date(day),
        (None, Some(first)) => DayChoice::FirstRecord(first),
        (None, None) => DayChoice::Today,
    };
    let (marks, starts) = (marks.unwrap_or_default(), starts.unwrap_or_default());
    let view = BlotterView { marks, starts, ..BlotterView::default() };
    let read = py.detach(|| Blotter::read(folder, which, &view));
    read.map_err(|e| connect_error(py, &e))
}

/// The orders, fills and positions of a day, at the time of the call to `blotter`. Profit is computed by the average
/// cost method.
#[pyclass(frozen, module = "tickpath")]
pub struct Blotter {
    place: String,
    /// The date that the day ended with; None if the day has not ended.
    #[pyo3(get)]
    day: Option<u32>,
    /// The first record of the day.
    #[pyo3(get)]
    first_record: u64,
    /// The record after the last one that was read.
    #[pyo3(get)]
    before_record: u64,
    orders: RecordBatch,
    fills: RecordBatch,
    positions: RecordBatch,
}

#[pymethods]
impl Blotter {
    /// The place of the journal.
    #[getter]
    fn place(&self) -> &str {
        &self.place
    }

    /// The orders, by time of entry.
    #[getter]
    fn orders(&self) -> PyTable {
        self.table("orders", &self.orders)
    }

    /// The fills, in the order of their first reports.
    #[getter]
    fn fills(&self) -> PyTable {
        self.table("fills", &self.fills)
    }

    /// The positions and their profit, by account and instrument.
    #[getter]
    fn positions(&self) -> PyTable {
        self.table("positions", &self.positions)
    }

    fn __repr__(&self) -> String {
        format!("Blotter({})", self.place)
    }
}

impl Blotter {
    fn read(folder: PathBuf, which: DayChoice, view: &BlotterView) -> Result<Self, TableError> {
        let place = place_of(&folder)?;
        let reading = DayBlotter::open(&place, which)?;
        view.check(&reading)?;
        let (mut orders, mut fills, mut positions) =
            (OrderColumns::default(), FillColumns::default(), PositionColumns::default());
        reading.orders(view).for_each(|row| orders.push(row, reading.symbol(row.symbol)));
        reading.fills(view).for_each(|row| fills.push(row, reading.symbol(row.symbol)));
        reading.positions(view).for_each(|row| positions.push(&row, reading.symbol(row.symbol)));
        Ok(Self {
            place: place.to_string(),
            day: reading.day().date,
            first_record: reading.day().first,
            before_record: reading.next_record(),
            orders: batch_of(&mut orders)?,
            fills: batch_of(&mut fills)?,
            positions: batch_of(&mut positions)?,
        })
    }

    fn table(&self, what: &str, batch: &RecordBatch) -> PyTable {
        PyTable::of_batch(format!("{what} of {}", self.place), batch.clone())
    }
}

columns! {
    struct OrderColumns(row: &BlotterOrder, symbol: String) {
        entered_utc: Nullable<Times> = push_known(row.entered_ns),
        order_id: UInt64Builder = append_value(row.id.0),
        client_order_id: UInt64Builder = append_value(row.client_order_id.0),
        session: UInt16Builder = append_value(row.session),
        account: UInt32Builder = append_value(row.account.0),
        symbol: StringBuilder = append_value(symbol),
        venue: Nullable<UInt16Builder> = append_option(row.venue.map(|venue| venue.0)),
        side: Nullable<StringBuilder> = append_option(row.side.map(snake_case)),
        order_type: Nullable<StringBuilder> = append_option(row.order_type.map(snake_case)),
        time_in_force: Nullable<StringBuilder> = append_option(row.time_in_force.map(snake_case)),
        price: Nullable<Decimals> = push_known((row.order_type != Some(OrderType::Market)).then_some(row.price.0)),
        quantity: Decimals = push(row.quantity.0),
        filled: Decimals = push(row.filled.0),
        filled_on_day: Decimals = push(row.filled_on_day.0),
        leaves: Decimals = push(row.leaves.0),
        average_price: Nullable<WideDecimals<8>> = push(row.average_price),
        status: StringBuilder = append_value(row.status.word()),
        updated_utc: Nullable<Times> = push_known(row.updated_ns),
        reason: Nullable<StringBuilder> = append_option(row.reason.as_deref()),
        expires_utc: Nullable<Times> = push_known(row.expires_ns),
        client_id: Nullable<StringBuilder> = append_option(row.text_id.map(|text_id| text_id.to_string())),
    }
}

columns! {
    struct FillColumns(row: &BlotterFill, symbol: String) {
        time_utc: Times = push(row.time_ns),
        exec_id: UInt64Builder = append_value(row.exec_id.0),
        order_id: UInt64Builder = append_value(row.order_id.0),
        client_order_id: UInt64Builder = append_value(row.client_order_id.0),
        session: UInt16Builder = append_value(row.session),
        account: UInt32Builder = append_value(row.account.0),
        symbol: StringBuilder = append_value(symbol),
        venue: Nullable<UInt16Builder> = append_option(row.venue.map(|venue| venue.0)),
        side: StringBuilder = append_value(snake_case(row.side)),
        quantity: Decimals = push(row.quantity.0),
        price: Nullable<Decimals> = push_known(row.price.map(|price| price.0)),
        state: StringBuilder = append_value(snake_case(row.state)),
        counted_quantity: Decimals = push(row.counted.0),
        updated_utc: Nullable<Times> = push_known(row.updated_ns),
    }
}

columns! {
    struct PositionColumns(row: &BlotterPosition, symbol: String) {
        account: UInt32Builder = append_value(row.account.0),
        symbol: StringBuilder = append_value(symbol),
        multiplier: Nullable<WideDecimals<18>> = push(Some(contract_size(row.multiplier))),
        start_quantity: Nullable<WideDecimals<8>> = push(Some(row.start_quantity)),
        start_price: Nullable<WideDecimals<8>> = push(row.start_price),
        bought_quantity: Nullable<WideDecimals<8>> = push(Some(row.bought_quantity)),
        bought_price: Nullable<WideDecimals<8>> = push(row.bought_price),
        sold_quantity: Nullable<WideDecimals<8>> = push(Some(row.sold_quantity)),
        sold_price: Nullable<WideDecimals<8>> = push(row.sold_price),
        end_quantity: Nullable<WideDecimals<8>> = push(Some(row.end_quantity)),
        average_price: Nullable<WideDecimals<8>> = push(row.average_price),
        mark_price: Nullable<WideDecimals<8>> = push(row.mark.map(i128::from)),
        realised_profit: Nullable<WideDecimals<16>> = push(row.realised),
        open_profit: Nullable<WideDecimals<16>> = push(row.open),
    }
}

/// Returns a contract size in units of 10⁻¹⁸.
fn contract_size((number, decimals): (i64, u8)) -> i128 {
    i128::from(number) * 10_i128.pow(18_u32.saturating_sub(decimals.into()))
}
