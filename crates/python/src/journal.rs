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

use arrow_array::builder::{BooleanBuilder, StringBuilder, UInt16Builder, UInt32Builder, UInt64Builder};
use pyo3::prelude::*;
use tickpath_clock::Calibration;
use tickpath_log::{LogOpenError, LogPath};
use tickpath_market::{
    ExecType, ExecutionReport, NewOrder, OrdStatus, OrderDenied, OrderId, OrderType, PositionEffect, Request,
    SelfTradeMode, Side, TextId, TimeInForce, TradeMode, VenueId,
};
use tickpath_oms_core::{At, Config, Core, Denial, Departure, Envelope, Input, Output};
use tickpath_oms_journal::JournalError;
use tickpath_oms_journal::journal::{Replay, logs};

use crate::column::{
    CodeColumn, ColumnSet, Decimals, Nullable, StampColumn, TableRows, WideDecimals, columns, nonzero,
};
use crate::error::connect_error;
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
    let place = py.detach(look).map_err(|e| connect_error(py, &e))?;
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

    fn name(self) -> &'static str {
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

impl UnreleasedRequest {
    /// Returns the outcome after this departure: a request that waited for its venue left later.
    fn final_outcome(&self, left: Departure) -> RequestOutcome {
        match self.outcome {
            RequestOutcome::Released if left.queued => RequestOutcome::Held,
            RequestOutcome::Released if left.handed_over => RequestOutcome::HandedOver,
            outcome => outcome,
        }
    }

    /// Returns the reference price of the checks and its age, if there was one.
    fn reference(&self) -> Option<(i64, u64)> {
        let Envelope { reference_price, reference_age_ns, .. } = self.envelope;
        (reference_price.0 != 0).then_some((reference_price.0, reference_age_ns))
    }
}

/// Terms of a request, as far as the request states them.
#[derive(Default)]
struct RequestTerms {
    name: &'static str,
    order: Option<NewOrder>,
    /// The client's id of the order that the request refers to, or the OMS's id.
    original: u64,
    original_order_id: u64,
    price: Option<i64>,
    quantity: Option<i64>,
    /// Text id of the order.
    text_id: Option<TextId>,
    /// End time of a good-till-date order; zero for any other request.
    expire_ns: u64,
}

impl RequestTerms {
    fn of(request: &Request) -> Self {
        let about = |name, original: u64| Self { name, original, ..Self::default() };
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
            Request::Extended(extended) => {
                let text_id = Some(extended.text_id).filter(|text_id| !text_id.is_none());
                Self { text_id, expire_ns: extended.expire_ns, ..Self::of_order("new", &extended.order) }
            }
            Request::ByTextId(named) => {
                let name = if named.is_status() { "status" } else { "cancel" };
                Self { text_id: Some(named.text_id), ..about(name, 0) }
            }
        }
    }

    fn of_order(name: &'static str, order: &NewOrder) -> Self {
        let is_priced = order.order_type != OrderType::Market.code();
        let (price, quantity) = (is_priced.then_some(order.price.0), Some(order.quantity.0));
        Self { name, order: Some(*order), price, quantity, ..Self::default() }
    }

    /// Returns whether an order has this instruction.
    fn instruction(&self, flag: u8) -> Option<bool> {
        self.order.map(|order| order.instructions & flag != 0)
    }

    fn to(self, price: i64, quantity: i64) -> Self {
        Self { price: Some(price), quantity: Some(quantity), ..self }
    }
}

columns! {
    struct RequestColumns(pending: &UnreleasedRequest, terms: &RequestTerms, left: Departure) {
        request: StringBuilder = append_value(terms.name),
        order_id: UInt64Builder = append_value(OrderId::new(pending.epoch, pending.at.sequence).0),
        session: UInt16Builder = append_value(pending.envelope.session),
        client_order_id: UInt64Builder = append_value(pending.request.client_order_id().0),
        original: Nullable<UInt64Builder> = append_option(nonzero(terms.original)),
        original_order_id: Nullable<UInt64Builder> = append_option(nonzero(terms.original_order_id)),
        client_id: Nullable<StringBuilder> = append_option(terms.text_id.map(|text_id| text_id.to_string())),
        symbol: UInt32Builder = append_value(pending.request.symbol().0),
        account: UInt32Builder = append_value(pending.request.account().0),
        side: CodeColumn<Side> = push(terms.order.map(|order| order.side)),
        quantity: Nullable<Decimals> = push_known(terms.quantity),
        price: Nullable<Decimals> = push_known(terms.price),
        order_type: CodeColumn<OrderType> = push(terms.order.map(|order| order.order_type)),
        time_in_force: CodeColumn<TimeInForce> = push(terms.order.map(|order| order.time_in_force)),
        expire_ns: Nullable<UInt64Builder> = append_option(nonzero(terms.expire_ns)),
        position_effect: CodeColumn<PositionEffect> = push(terms.order.map(|order| order.position_effect)),
        post_only: Nullable<BooleanBuilder> = append_option(terms.instruction(NewOrder::POST_ONLY)),
        reduce_only: Nullable<BooleanBuilder> = append_option(terms.instruction(NewOrder::REDUCE_ONLY)),
        self_trade_mode: CodeColumn<SelfTradeMode> = push(terms.order.map(|order| order.self_trade_mode)),
        trade_mode: CodeColumn<TradeMode> = push(terms.order.map(|order| order.trade_mode)),
        reference_price: Nullable<Decimals> = push_known(pending.reference().map(|(price, _)| price)),
        reference_age_ns: Nullable<UInt64Builder> = append_option(pending.reference().map(|(_, age_ns)| age_ns)),
        outcome: StringBuilder = append_value(pending.final_outcome(left).name()),
        cause: StampColumn = push(pending.request.cause(), &pending.clock),
        sent: StampColumn = push(pending.envelope.sent, &pending.clock),
        // An older time belongs to an earlier request, for example after a crash.
        released: StampColumn = push(if left.at < pending.at.stamp { 0 } else { left.at }, &pending.clock),
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
            rows.columns.push(&pending, &RequestTerms::of(&pending.request), left);
        }
    }
}

columns! {
    struct ReportColumns(source: VenueId, report: &ExecutionReport, clock: &Calibration) {
        venue: UInt16Builder = append_value(source.0),
        order_id: UInt64Builder = append_value(report.order_id.0),
        client_order_id: Nullable<UInt64Builder> = append_option(nonzero(report.client_order_id.0)),
        exec_type: CodeColumn<ExecType> = push(Some(report.exec_type)),
        status: CodeColumn<OrdStatus> = push(Some(report.status)),
        symbol: UInt32Builder = append_value(report.symbol.0),
        account: UInt32Builder = append_value(report.account.0),
        side: CodeColumn<Side> = push(Some(report.side)),
        last_quantity: Nullable<Decimals> = push_known((report.exec_id.0 != 0).then_some(report.last_quantity.0)),
        last_price: Nullable<Decimals> = push_known((report.exec_id.0 != 0).then_some(report.last_price.0)),
        cumulative_quantity: Decimals = push(report.cumulative_quantity.0),
        leaves_quantity: Decimals = push(report.leaves_quantity.0),
        price: Decimals = push(report.price.0),
        reason: Nullable<UInt16Builder> = append_option((report.reason != 0).then_some(report.reason)),
        venue_order_id: Nullable<UInt64Builder> = append_option(nonzero(report.venue_order_id.0)),
        exec_id: Nullable<UInt64Builder> = append_option(nonzero(report.exec_id.0)),
        venue_sequence: Nullable<UInt64Builder> = append_option(nonzero(report.venue_sequence)),
        arrived: StampColumn = push(report.venue_stamp, clock),
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

columns! {
    struct DenialColumns(session: u16, denied: &OrderDenied) {
        order_id: UInt64Builder = append_value(denied.order_id.0),
        session: UInt16Builder = append_value(session),
        client_order_id: UInt64Builder = append_value(denied.client_order_id.0),
        account: UInt32Builder = append_value(denied.account.0),
        code: UInt16Builder = append_value(denied.code),
        check: Nullable<StringBuilder> = append_option(Denial::from_code(denied.code).map(|name| format!("{name:?}"))),
        limit: Nullable<WideDecimals<0>> = push(Some(i128::from_le_bytes(denied.limit))),
        value: Nullable<WideDecimals<0>> = push(Some(i128::from_le_bytes(denied.value))),
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
