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
use crate::error::Error;
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
    read.map_err(|e| Error::Connect.raise(py, &e.to_string()))
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
    struct OrderColumns {
        entered_utc: Nullable<Times>,
        order_id: UInt64Builder,
        client_order_id: UInt64Builder,
        session: UInt16Builder,
        account: UInt32Builder,
        symbol: StringBuilder,
        venue: Nullable<UInt16Builder>,
        side: Nullable<StringBuilder>,
        order_type: Nullable<StringBuilder>,
        time_in_force: Nullable<StringBuilder>,
        price: Nullable<Decimals>,
        quantity: Decimals,
        filled: Decimals,
        filled_on_day: Decimals,
        leaves: Decimals,
        average_price: Nullable<WideDecimals<8>>,
        status: StringBuilder,
        updated_utc: Nullable<Times>,
        reason: Nullable<StringBuilder>,
    }
}

impl OrderColumns {
    fn push(&mut self, row: &BlotterOrder, symbol: String) {
        let is_priced = row.order_type != Some(OrderType::Market);
        self.entered_utc.push_known(row.entered_ns);
        self.order_id.append_value(row.id.0);
        self.client_order_id.append_value(row.client_order_id.0);
        self.session.append_value(row.session);
        self.account.append_value(row.account.0);
        self.symbol.append_value(symbol);
        self.venue.append_option(row.venue.map(|venue| venue.0));
        self.side.append_option(row.side.map(snake_case));
        self.order_type.append_option(row.order_type.map(snake_case));
        self.time_in_force.append_option(row.time_in_force.map(snake_case));
        self.price.push_known(is_priced.then_some(row.price.0));
        self.quantity.push(row.quantity.0);
        self.filled.push(row.filled.0);
        self.filled_on_day.push(row.filled_on_day.0);
        self.leaves.push(row.leaves.0);
        self.average_price.push(row.average_price);
        self.status.append_value(row.status.word());
        self.updated_utc.push_known(row.updated_ns);
        self.reason.append_option(row.reason.as_deref());
    }
}

columns! {
    struct FillColumns {
        time_utc: Times,
        exec_id: UInt64Builder,
        order_id: UInt64Builder,
        client_order_id: UInt64Builder,
        session: UInt16Builder,
        account: UInt32Builder,
        symbol: StringBuilder,
        venue: Nullable<UInt16Builder>,
        side: StringBuilder,
        quantity: Decimals,
        price: Nullable<Decimals>,
        state: StringBuilder,
        counted_quantity: Decimals,
        updated_utc: Nullable<Times>,
    }
}

impl FillColumns {
    fn push(&mut self, row: &BlotterFill, symbol: String) {
        self.time_utc.push(row.time_ns);
        self.exec_id.append_value(row.exec_id.0);
        self.order_id.append_value(row.order_id.0);
        self.client_order_id.append_value(row.client_order_id.0);
        self.session.append_value(row.session);
        self.account.append_value(row.account.0);
        self.symbol.append_value(symbol);
        self.venue.append_option(row.venue.map(|venue| venue.0));
        self.side.append_value(snake_case(row.side));
        self.quantity.push(row.quantity.0);
        self.price.push_known(row.price.map(|price| price.0));
        self.state.append_value(snake_case(row.state));
        self.counted_quantity.push(row.counted.0);
        self.updated_utc.push_known(row.updated_ns);
    }
}

columns! {
    struct PositionColumns {
        account: UInt32Builder,
        symbol: StringBuilder,
        multiplier: UInt64Builder,
        start_quantity: Nullable<WideDecimals<8>>,
        start_price: Nullable<WideDecimals<8>>,
        bought_quantity: Nullable<WideDecimals<8>>,
        bought_price: Nullable<WideDecimals<8>>,
        sold_quantity: Nullable<WideDecimals<8>>,
        sold_price: Nullable<WideDecimals<8>>,
        end_quantity: Nullable<WideDecimals<8>>,
        average_price: Nullable<WideDecimals<8>>,
        mark_price: Nullable<WideDecimals<8>>,
        realised_profit: Nullable<WideDecimals<16>>,
        open_profit: Nullable<WideDecimals<16>>,
    }
}

impl PositionColumns {
    fn push(&mut self, row: &BlotterPosition, symbol: String) {
        self.account.append_value(row.account.0);
        self.symbol.append_value(symbol);
        self.multiplier.append_value(row.multiplier.unsigned_abs());
        self.start_quantity.push(Some(row.start_quantity));
        self.start_price.push(row.start_price);
        self.bought_quantity.push(Some(row.bought_quantity));
        self.bought_price.push(row.bought_price);
        self.sold_quantity.push(Some(row.sold_quantity));
        self.sold_price.push(row.sold_price);
        self.end_quantity.push(Some(row.end_quantity));
        self.average_price.push(row.average_price);
        self.mark_price.push(row.mark.map(i128::from));
        self.realised_profit.push(row.realised);
        self.open_profit.push(row.open);
    }
}
