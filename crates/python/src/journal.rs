//! `journal(folder)`: the records of an OMS, as tables.
//!
//! ```text
//!   requests   a row a request:  cause, sent (T0), stamp (T1), released (T2)        order_id ─┐
//!   reports    a row a report:   arrived, stamp (reported)                   client_order_id ─┤ joins them
//!   denials    a row a denial                                                       order_id ─┘
//! ```
//! Each table replays the whole journal, including days that have ended: denials and the outcome of a request are in no
//! record, so the core computes them again. The last request's T2 is known once the OMS stops in order or receives
//! another request.

use std::path::{Path, PathBuf};

use arrow_array::builder::{StringBuilder, UInt16Builder, UInt32Builder, UInt64Builder};
use pyo3::prelude::*;
use tickpath_clock::Calibration;
use tickpath_log::{LogOpenError, LogPath};
use tickpath_market::{
    ExecType, ExecutionReport, NewOrder, OrdStatus, OrderDenied, OrderId, OrderType, PositionEffect, Request, Side,
    TimeInForce, VenueId,
};
use tickpath_oms_core::{At, Config, Core, Denial, Departure, Envelope, Input, Output};
use tickpath_oms_journal::JournalError;
use tickpath_oms_journal::journal::{Replay, logs};

use crate::column::{CodeColumn, ColumnSet, Decimals, Integers, Nullable, StampColumn, TableRows, columns};
use crate::error::Error;
use crate::table::{MAX_ROWS, PyTable, RowSource, TableError};

/// Opens the journal of an OMS as tables, by its folder or its URL, file:///FOLDER.
#[pyfunction]
#[pyo3(name = "journal")]
pub fn open_journal(py: Python<'_>, folder: PathBuf) -> PyResult<PyJournal> {
    let look = || -> Result<LogPath, TableError> {
        let place = place_of(&folder)?;
        if logs(&place)?.is_empty() {
            return Err(LogOpenError::NotFound(place).into());
        }
        // The first record shows whether the folder holds a journal.
        Replay::open(&place)?.step(&mut new_core(), |_, _, _| ())?;
        Ok(place)
    };
    let place = py.detach(look).map_err(|e| Error::Connect.raise(py, &e.to_string()))?;
    Ok(PyJournal { place })
}

/// Returns the place of the journal in a folder, or at its URL.
pub fn place_of(folder: &Path) -> Result<LogPath, TableError> {
    match folder.to_str().filter(|text| text.contains("://")) {
        Some(url) if url.starts_with("file://") => Ok(url.parse::<LogPath>()?),
        Some(_) => Err("a journal is on a disk; give its folder, or file:///FOLDER".into()),
        None => Ok(LogPath::folder(std::path::absolute(folder)?)),
    }
}

fn new_core() -> Core {
    Core::new(Config { expected_orders: 0, key: 0 })
}

/// The tables of the journal of an OMS. Each table replays the journal when a consumer takes its rows.
#[pyclass(name = "Journal", frozen, module = "tickpath")]
pub struct PyJournal {
    place: LogPath,
}

#[pymethods]
impl PyJournal {
    /// The place of the journal.
    #[getter]
    fn place(&self) -> String {
        self.place.to_string()
    }

    /// The requests that the OMS received, each with its immediate outcome.
    #[getter]
    fn requests(&self) -> PyTable {
        self.table::<RequestConverter>("requests")
    }

    /// The reports of the OMS's venues.
    #[getter]
    fn reports(&self) -> PyTable {
        self.table::<ReportConverter>("reports")
    }

    /// The requests that the OMS's checks denied, with the reasons.
    #[getter]
    fn denials(&self) -> PyTable {
        self.table::<DenialConverter>("denials")
    }

    fn __repr__(&self) -> String {
        format!("Journal({})", self.place)
    }
}

impl PyJournal {
    fn table<H: RowConverter>(&self, what: &str) -> PyTable {
        let place = self.place.clone();
        PyTable::new(format!("{what} of {place}"), move || JournalSource::<H>::open(&place))
    }
}

/// An input, with the outputs that the core returned for it.
struct ReplayedInput {
    at: At,
    input: Input,
    outputs: Vec<Output>,
    /// Epoch of the OMS start that received the input.
    epoch: u64,
    clock: Calibration,
}

/// Converter from inputs to rows.
trait RowConverter: Default + Send + 'static {
    /// The columns of the rows.
    type Columns: ColumnSet;

    /// Converts an input.
    fn convert(&mut self, rows: &mut TableRows<Self::Columns>, replayed: &ReplayedInput);

    /// Marks an orderly stop of the OMS, or the end of the journal: `_last` is the departure of the last request, zero
    /// if unknown.
    fn stop(&mut self, _rows: &mut TableRows<Self::Columns>, _last: Departure) {}
}

/// Replay of a journal into rows.
struct JournalSource<H> {
    place: LogPath,
    replay: Replay,
    core: Core,
    /// The departure recorded at the last stop.
    last: Departure,
    converter: H,
}

impl<H: RowConverter> JournalSource<H> {
    fn open(place: &LogPath) -> Result<Self, TableError> {
        let (place, replay) = (place.clone(), Replay::open(place)?);
        Ok(Self { place, replay, core: new_core(), last: Departure::default(), converter: H::default() })
    }

    /// Reads the next input; returns false at the end.
    fn convert_next(&mut self, rows: &mut TableRows<H::Columns>) -> Result<bool, JournalError> {
        let (epoch, mut found) = (self.core.epoch(), None);
        self.replay.step(&mut self.core, |at, input, outputs| found = Some((at, *input, outputs.to_vec())))?;
        // A stop is no input; a stop found here precedes the input that was read.
        let done = self.replay.totals();
        if done.departure != std::mem::replace(&mut self.last, done.departure) {
            self.converter.stop(rows, done.departure);
        }
        let Some((at, input, outputs)) = found else {
            self.replay.check_end()?;
            self.converter.stop(rows, Departure::default());
            return Ok(false);
        };
        let clock = self.replay.calibration();
        self.converter.convert(rows, &ReplayedInput { at, input, outputs, epoch, clock });
        Ok(true)
    }
}

impl<H: RowConverter> RowSource for JournalSource<H> {
    type Columns = H::Columns;

    fn fill(&mut self, rows: &mut TableRows<H::Columns>) -> Result<bool, TableError> {
        while rows.len() < MAX_ROWS {
            if !self.convert_next(rows).map_err(|error| format!("{}: {error}", self.place))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Meaning of a request's T2.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestOutcome {
    /// Sent to its venue.
    Released,
    /// Handed to the thread of its venue's line, which sends it later.
    HandedOver,
    /// Denied by the OMS.
    Denied,
    /// Held in the OMS for its venue or its trigger, or answered by the OMS alone.
    Held,
}

impl RequestOutcome {
    fn of(outputs: &[Output]) -> Self {
        let any = |of: fn(&Output) -> bool| outputs.iter().any(of);
        if any(|output| matches!(output, Output::Denied { .. })) {
            return Self::Denied;
        }
        if any(|output| matches!(output, Output::Venue { .. })) { Self::Released } else { Self::Held }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::HandedOver => "handed_over",
            Self::Denied => "denied",
            Self::Held => "kept",
        }
    }
}

/// A request whose T2 is unknown until the next request's record, which contains it.
struct UnreleasedRequest {
    at: At,
    envelope: Envelope,
    request: Request,
    outcome: RequestOutcome,
    epoch: u64,
    clock: Calibration,
}

/// Terms of a request, as far as the request states them.
#[derive(Default)]
struct RequestTerms {
    word: &'static str,
    order: Option<NewOrder>,
    /// The client's id of the order that the request refers to, or the OMS's id.
    original: u64,
    original_order_id: u64,
    price: Option<i64>,
    quantity: Option<i64>,
}

impl RequestTerms {
    fn of(request: &Request) -> Self {
        let about = |word, original: u64| Self { word, original, ..Self::default() };
        match request {
            Request::New(order) => Self::of_order("new", order),
            Request::Conditional(conditional) => Self::of_order("conditional", &conditional.order),
            Request::Cancel(cancel) => {
                Self { original_order_id: cancel.order_id.0, ..about("cancel", cancel.original.0) }
            }
            Request::Replace(replace) => about("replace", replace.original.0).to(replace.price.0, replace.quantity.0),
            Request::ReplaceConditional(replace) => {
                about("replace_conditional", replace.original.0).to(replace.price.0, replace.quantity.0)
            }
            Request::Status(status) => about("status", status.original.0),
            Request::MassCancel(_) => about("mass_cancel", 0),
        }
    }

    fn of_order(word: &'static str, order: &NewOrder) -> Self {
        let is_priced = order.order_type != OrderType::Market.code();
        let (price, quantity) = (is_priced.then_some(order.price.0), Some(order.quantity.0));
        Self { word, order: Some(*order), price, quantity, ..Self::default() }
    }

    fn to(self, price: i64, quantity: i64) -> Self {
        Self { price: Some(price), quantity: Some(quantity), ..self }
    }
}

columns! {
    struct RequestColumns {
        request: StringBuilder,
        order_id: UInt64Builder,
        session: UInt16Builder,
        client_order_id: UInt64Builder,
        original: Nullable<UInt64Builder>,
        original_order_id: Nullable<UInt64Builder>,
        symbol: UInt32Builder,
        account: UInt32Builder,
        side: CodeColumn<Side>,
        quantity: Nullable<Decimals>,
        price: Nullable<Decimals>,
        order_type: CodeColumn<OrderType>,
        time_in_force: CodeColumn<TimeInForce>,
        position_effect: CodeColumn<PositionEffect>,
        reference_price: Nullable<Decimals>,
        reference_age_ns: Nullable<UInt64Builder>,
        outcome: StringBuilder,
        cause: StampColumn,
        sent: StampColumn,
        released: StampColumn,
    }
}

/// Converter of requests.
#[derive(Default)]
struct RequestConverter {
    pending: Option<UnreleasedRequest>,
}

impl RowConverter for RequestConverter {
    type Columns = RequestColumns;

    fn convert(&mut self, rows: &mut TableRows<RequestColumns>, replayed: &ReplayedInput) {
        let ReplayedInput { at, input: Input::Request { envelope, request }, outputs, epoch, clock } = replayed else {
            return;
        };
        self.stop(rows, envelope.departure_before());
        let (at, envelope, request, outcome) = (*at, *envelope, *request, RequestOutcome::of(outputs));
        self.pending = Some(UnreleasedRequest { at, envelope, request, outcome, epoch: *epoch, clock: *clock });
    }

    fn stop(&mut self, rows: &mut TableRows<RequestColumns>, left: Departure) {
        if let Some(pending) = self.pending.take() {
            rows.leading.push(pending.at.sequence, pending.at.stamp, &pending.clock);
            rows.columns.push(&pending, left);
        }
    }
}

impl RequestColumns {
    fn push(&mut self, pending: &UnreleasedRequest, left: Departure) {
        let UnreleasedRequest { at, envelope, request, outcome, epoch, clock } = pending;
        let RequestTerms { word, order, original, original_order_id, price, quantity } = RequestTerms::of(request);
        let code = |of: fn(&NewOrder) -> u8| order.as_ref().map(of);
        self.request.append_value(word);
        self.order_id.append_value(OrderId::new(*epoch, at.sequence).0);
        self.session.append_value(envelope.session);
        self.client_order_id.append_value(request.client_order_id().0);
        self.original.append_option(nonzero_id(original));
        self.original_order_id.append_option(nonzero_id(original_order_id));
        self.symbol.append_value(request.symbol().0);
        self.account.append_value(request.account().0);
        self.side.push(code(|order| order.side));
        self.quantity.push_known(quantity);
        self.price.push_known(price);
        self.order_type.push(code(|order| order.order_type));
        self.time_in_force.push(code(|order| order.time_in_force));
        self.position_effect.push(code(|order| order.position_effect));
        let has_reference = envelope.reference_price.0 != 0;
        self.reference_price.push_known(has_reference.then_some(envelope.reference_price.0));
        self.reference_age_ns.append_option(has_reference.then_some(envelope.reference_age_ns));
        // A request that waited for its venue left after this time.
        let outcome = match *outcome {
            RequestOutcome::Released if left.queued => RequestOutcome::Held,
            RequestOutcome::Released if left.handed_over => RequestOutcome::HandedOver,
            outcome => outcome,
        };
        self.outcome.append_value(outcome.word());
        self.cause.push(request.cause(), clock);
        self.sent.push(envelope.sent, clock);
        // An older time belongs to an earlier request, for example after a crash.
        self.released.push(if left.at < at.stamp { 0 } else { left.at }, clock);
    }
}

columns! {
    struct ReportColumns {
        venue: UInt16Builder,
        order_id: UInt64Builder,
        client_order_id: Nullable<UInt64Builder>,
        exec_type: CodeColumn<ExecType>,
        status: CodeColumn<OrdStatus>,
        symbol: UInt32Builder,
        account: UInt32Builder,
        side: CodeColumn<Side>,
        last_quantity: Nullable<Decimals>,
        last_price: Nullable<Decimals>,
        cumulative_quantity: Decimals,
        leaves_quantity: Decimals,
        price: Decimals,
        reason: Nullable<UInt16Builder>,
        venue_order_id: Nullable<UInt64Builder>,
        exec_id: Nullable<UInt64Builder>,
        venue_sequence: Nullable<UInt64Builder>,
        arrived: StampColumn,
    }
}

/// Converter of reports.
#[derive(Default)]
struct ReportConverter;

impl RowConverter for ReportConverter {
    type Columns = ReportColumns;

    fn convert(&mut self, rows: &mut TableRows<ReportColumns>, replayed: &ReplayedInput) {
        let ReplayedInput { at, input: Input::Report(record), clock, .. } = replayed else { return };
        rows.leading.push(at.sequence, at.stamp, clock);
        rows.columns.push(record.source, &record.report, clock);
    }
}

impl ReportColumns {
    fn push(&mut self, source: VenueId, report: &ExecutionReport, clock: &Calibration) {
        let is_fill = report.exec_id.0 != 0;
        self.venue.append_value(source.0);
        self.order_id.append_value(report.order_id.0);
        self.client_order_id.append_option(nonzero_id(report.client_order_id.0));
        self.exec_type.push(Some(report.exec_type));
        self.status.push(Some(report.status));
        self.symbol.append_value(report.symbol.0);
        self.account.append_value(report.account.0);
        self.side.push(Some(report.side));
        self.last_quantity.push_known(is_fill.then_some(report.last_quantity.0));
        self.last_price.push_known(is_fill.then_some(report.last_price.0));
        self.cumulative_quantity.push(report.cumulative_quantity.0);
        self.leaves_quantity.push(report.leaves_quantity.0);
        self.price.push(report.price.0);
        self.reason.append_option((report.reason != 0).then_some(report.reason));
        self.venue_order_id.append_option(nonzero_id(report.venue_order_id.0));
        self.exec_id.append_option(nonzero_id(report.exec_id.0));
        self.venue_sequence.append_option(nonzero_id(report.venue_sequence));
        self.arrived.push(report.venue_stamp, clock);
    }
}

columns! {
    struct DenialColumns {
        order_id: UInt64Builder,
        session: UInt16Builder,
        client_order_id: UInt64Builder,
        account: UInt32Builder,
        code: UInt16Builder,
        check: Nullable<StringBuilder>,
        limit: Nullable<Integers>,
        value: Nullable<Integers>,
    }
}

/// Converter of denials.
#[derive(Default)]
struct DenialConverter;

impl RowConverter for DenialConverter {
    type Columns = DenialColumns;

    fn convert(&mut self, rows: &mut TableRows<DenialColumns>, replayed: &ReplayedInput) {
        for output in &replayed.outputs {
            if let Output::Denied { session, denied } = output {
                rows.leading.push(replayed.at.sequence, replayed.at.stamp, &replayed.clock);
                rows.columns.push(*session, denied);
            }
        }
    }
}

impl DenialColumns {
    fn push(&mut self, session: u16, denied: &OrderDenied) {
        self.order_id.append_value(denied.order_id.0);
        self.session.append_value(session);
        self.client_order_id.append_value(denied.client_order_id.0);
        self.account.append_value(denied.account.0);
        self.code.append_value(denied.code);
        self.check.append_option(Denial::from_code(denied.code).map(|denial| format!("{denial:?}")));
        self.limit.push(i128::from_le_bytes(denied.limit));
        self.value.push(i128::from_le_bytes(denied.value));
    }
}

/// Returns an id, or None for zero.
fn nonzero_id(id: u64) -> Option<u64> {
    (id != 0).then_some(id)
}
