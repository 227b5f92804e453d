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
use tickpath_log::{OpenError, Place};
use tickpath_market::{
    ExecType, ExecutionReport, NewOrder, OrdStatus, OrderDenied, OrderId, OrderType, PositionEffect, Request, Side,
    TimeInForce, VenueId,
};
use tickpath_oms_core::{At, Config, Core, Denial, Departure, Envelope, Input, Output};
use tickpath_oms_journal::JournalError;
use tickpath_oms_journal::journal::{Replay, logs};

use crate::column::{Codes, Columns, Decimals, Integers, OrNull, Rows, Stamps, columns};
use crate::error::Error;
use crate::table::{Failure, MOST_ROWS, Source, Table};

/// Opens the journal of an OMS as tables, by its folder or its URL, file:///FOLDER.
#[pyfunction]
#[pyo3(name = "journal")]
pub fn open_journal(py: Python<'_>, folder: PathBuf) -> PyResult<Journal> {
    let look = || -> Result<Place, Failure> {
        let place = place_of(&folder)?;
        if logs(&place)?.is_empty() {
            return Err(OpenError::NotFound(place).into());
        }
        // The first record shows whether the folder holds a journal.
        Replay::open(&place)?.step(&mut new_core(), |_, _, _| ())?;
        Ok(place)
    };
    let place = py.detach(look).map_err(|e| Error::Connect.raise(py, &e.to_string()))?;
    Ok(Journal { place })
}

/// Returns the place of the journal in a folder, or at its URL.
pub fn place_of(folder: &Path) -> Result<Place, Failure> {
    match folder.to_str().filter(|text| text.contains("://")) {
        Some(url) if url.starts_with("file://") => Ok(url.parse::<Place>()?),
        Some(_) => Err("a journal lies on a disk; give its folder, or file:///FOLDER".into()),
        None => Ok(Place::folder(std::path::absolute(folder)?)),
    }
}

fn new_core() -> Core {
    Core::new(Config { expected_orders: 0, key: 0 })
}

/// The tables of the journal of an OMS. Each table replays the journal when a consumer takes its rows.
#[pyclass(frozen, module = "tickpath")]
pub struct Journal {
    place: Place,
}

#[pymethods]
impl Journal {
    /// The place of the journal.
    #[getter]
    fn place(&self) -> String {
        self.place.to_string()
    }

    /// The requests that the OMS received, each with its immediate outcome.
    #[getter]
    fn requests(&self) -> Table {
        self.table::<OfRequests>("requests")
    }

    /// The reports of the OMS's venues.
    #[getter]
    fn reports(&self) -> Table {
        self.table::<OfReports>("reports")
    }

    /// The requests that the OMS's checks denied, with the reasons.
    #[getter]
    fn denials(&self) -> Table {
        self.table::<OfDenials>("denials")
    }

    fn __repr__(&self) -> String {
        format!("Journal({})", self.place)
    }
}

impl Journal {
    fn table<H: Hearing>(&self, what: &str) -> Table {
        let place = self.place.clone();
        Table::new(format!("{what} of {place}"), move || Reading::<H>::open(&place))
    }
}

/// An input, with the outputs that the core returned for it.
struct Heard {
    at: At,
    input: Input,
    outputs: Vec<Output>,
    /// Epoch of the OMS start that received the input.
    epoch: u64,
    clock: Calibration,
}

/// Converter from inputs to rows.
trait Hearing: Default + Send + 'static {
    /// The columns of the rows.
    type Columns: Columns;

    /// Converts an input.
    fn hear(&mut self, rows: &mut Rows<Self::Columns>, heard: &Heard);

    /// Marks an orderly stop of the OMS, or the end of the journal: `_last` is the departure of the last request, zero
    /// if unknown.
    fn stop(&mut self, _rows: &mut Rows<Self::Columns>, _last: Departure) {}
}

/// Replay of a journal into rows.
struct Reading<H> {
    place: Place,
    replay: Replay,
    core: Core,
    /// The departure recorded at the last stop.
    last: Departure,
    hearing: H,
}

impl<H: Hearing> Reading<H> {
    fn open(place: &Place) -> Result<Self, Failure> {
        let (place, replay) = (place.clone(), Replay::open(place)?);
        Ok(Self { place, replay, core: new_core(), last: Departure::default(), hearing: H::default() })
    }

    /// Reads the next input; returns false at the end.
    fn turn(&mut self, rows: &mut Rows<H::Columns>) -> Result<bool, JournalError> {
        let (epoch, mut found) = (self.core.epoch(), None);
        self.replay.step(&mut self.core, |at, input, outputs| found = Some((at, *input, outputs.to_vec())))?;
        // A stop is no input; a stop found here precedes the input that was read.
        let done = self.replay.done();
        if done.departure != std::mem::replace(&mut self.last, done.departure) {
            self.hearing.stop(rows, done.departure);
        }
        let Some((at, input, outputs)) = found else {
            self.replay.check_end()?;
            self.hearing.stop(rows, Departure::default());
            return Ok(false);
        };
        let clock = self.replay.calibration();
        self.hearing.hear(rows, &Heard { at, input, outputs, epoch, clock });
        Ok(true)
    }
}

impl<H: Hearing> Source for Reading<H> {
    type Columns = H::Columns;

    fn fill(&mut self, rows: &mut Rows<H::Columns>) -> Result<bool, Failure> {
        while rows.len() < MOST_ROWS {
            if !self.turn(rows).map_err(|error| format!("{}: {error}", self.place))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Meaning of a request's T2.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Sent to its venue.
    Released,
    /// Handed to the thread of its venue's line, which sends it later.
    HandedOver,
    /// Denied by the OMS.
    Denied,
    /// Held in the OMS for its venue or its trigger, or answered by the OMS alone.
    Kept,
}

impl Outcome {
    fn of(outputs: &[Output]) -> Self {
        let any = |of: fn(&Output) -> bool| outputs.iter().any(of);
        if any(|output| matches!(output, Output::Denied { .. })) {
            return Self::Denied;
        }
        if any(|output| matches!(output, Output::Venue { .. })) { Self::Released } else { Self::Kept }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::HandedOver => "handed_over",
            Self::Denied => "denied",
            Self::Kept => "kept",
        }
    }
}

/// A request whose T2 is unknown until the next request's record, which contains it.
struct Pending {
    at: At,
    envelope: Envelope,
    request: Request,
    outcome: Outcome,
    epoch: u64,
    clock: Calibration,
}

/// Terms of a request, as far as the request states them.
#[derive(Default)]
struct Terms {
    word: &'static str,
    order: Option<NewOrder>,
    /// The client's id of the order that the request refers to, or the OMS's id.
    original: u64,
    original_order_id: u64,
    price: Option<i64>,
    quantity: Option<i64>,
}

impl Terms {
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
    struct Requests {
        request: StringBuilder,
        order_id: UInt64Builder,
        session: UInt16Builder,
        client_order_id: UInt64Builder,
        original: OrNull<UInt64Builder>,
        original_order_id: OrNull<UInt64Builder>,
        symbol: UInt32Builder,
        account: UInt32Builder,
        side: Codes<Side>,
        quantity: OrNull<Decimals>,
        price: OrNull<Decimals>,
        order_type: Codes<OrderType>,
        time_in_force: Codes<TimeInForce>,
        position_effect: Codes<PositionEffect>,
        reference_price: OrNull<Decimals>,
        reference_age_ns: OrNull<UInt64Builder>,
        outcome: StringBuilder,
        cause: Stamps,
        sent: Stamps,
        released: Stamps,
    }
}

/// Converter of requests.
#[derive(Default)]
struct OfRequests {
    pending: Option<Pending>,
}

impl Hearing for OfRequests {
    type Columns = Requests;

    fn hear(&mut self, rows: &mut Rows<Requests>, heard: &Heard) {
        let Heard { at, input: Input::Request { envelope, request }, outputs, epoch, clock } = heard else { return };
        self.stop(rows, envelope.departure_before());
        let (at, envelope, request, outcome) = (*at, *envelope, *request, Outcome::of(outputs));
        self.pending = Some(Pending { at, envelope, request, outcome, epoch: *epoch, clock: *clock });
    }

    fn stop(&mut self, rows: &mut Rows<Requests>, left: Departure) {
        if let Some(pending) = self.pending.take() {
            rows.heads.push(pending.at.sequence, pending.at.stamp, &pending.clock);
            rows.columns.push(&pending, left);
        }
    }
}

impl Requests {
    fn push(&mut self, pending: &Pending, left: Departure) {
        let Pending { at, envelope, request, outcome, epoch, clock } = pending;
        let Terms { word, order, original, original_order_id, price, quantity } = Terms::of(request);
        let code = |of: fn(&NewOrder) -> u8| order.as_ref().map(of);
        self.request.append_value(word);
        self.order_id.append_value(OrderId::new(*epoch, at.sequence).0);
        self.session.append_value(envelope.session);
        self.client_order_id.append_value(request.client_order_id().0);
        self.original.append_option(known(original));
        self.original_order_id.append_option(known(original_order_id));
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
            Outcome::Released if left.queued => Outcome::Kept,
            Outcome::Released if left.handed_over => Outcome::HandedOver,
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
    struct Reports {
        venue: UInt16Builder,
        order_id: UInt64Builder,
        client_order_id: OrNull<UInt64Builder>,
        exec_type: Codes<ExecType>,
        status: Codes<OrdStatus>,
        symbol: UInt32Builder,
        account: UInt32Builder,
        side: Codes<Side>,
        last_quantity: OrNull<Decimals>,
        last_price: OrNull<Decimals>,
        cumulative_quantity: Decimals,
        leaves_quantity: Decimals,
        price: Decimals,
        reason: OrNull<UInt16Builder>,
        venue_order_id: OrNull<UInt64Builder>,
        exec_id: OrNull<UInt64Builder>,
        venue_sequence: OrNull<UInt64Builder>,
        arrived: Stamps,
    }
}

/// Converter of reports.
#[derive(Default)]
struct OfReports;

impl Hearing for OfReports {
    type Columns = Reports;

    fn hear(&mut self, rows: &mut Rows<Reports>, heard: &Heard) {
        let Heard { at, input: Input::Report(record), clock, .. } = heard else { return };
        rows.heads.push(at.sequence, at.stamp, clock);
        rows.columns.push(record.source, &record.report, clock);
    }
}

impl Reports {
    fn push(&mut self, source: VenueId, report: &ExecutionReport, clock: &Calibration) {
        let is_fill = report.exec_id.0 != 0;
        self.venue.append_value(source.0);
        self.order_id.append_value(report.order_id.0);
        self.client_order_id.append_option(known(report.client_order_id.0));
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
        self.venue_order_id.append_option(known(report.venue_order_id.0));
        self.exec_id.append_option(known(report.exec_id.0));
        self.venue_sequence.append_option(known(report.venue_sequence));
        self.arrived.push(report.venue_stamp, clock);
    }
}

columns! {
    struct Denials {
        order_id: UInt64Builder,
        session: UInt16Builder,
        client_order_id: UInt64Builder,
        account: UInt32Builder,
        code: UInt16Builder,
        check: OrNull<StringBuilder>,
        limit: OrNull<Integers>,
        value: OrNull<Integers>,
    }
}

/// Converter of denials.
#[derive(Default)]
struct OfDenials;

impl Hearing for OfDenials {
    type Columns = Denials;

    fn hear(&mut self, rows: &mut Rows<Denials>, heard: &Heard) {
        for output in &heard.outputs {
            if let Output::Denied { session, denied } = output {
                rows.heads.push(heard.at.sequence, heard.at.stamp, &heard.clock);
                rows.columns.push(*session, denied);
            }
        }
    }
}

impl Denials {
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
fn known(id: u64) -> Option<u64> {
    (id != 0).then_some(id)
}
