//! Payloads to publish or push, with their kinds: single messages, and batches grouped by kind.

use std::fmt::Display;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tickpath_bus::BatchError;
use tickpath_bus::wire::FIRST_KIND;
use tickpath_market::Kind;
use zerocopy::IntoBytes;

use crate::book_event::{PyBookLevel, PyFeedStatus};
use crate::event::{PyForeign, PyMessage, PyTopOfBook, PyTrade};
use crate::record::kind_of_records;

/// Kind of a message, as given by Python.
#[derive(Clone, Copy)]
pub struct GivenKind(u8);

impl<'a, 'py> FromPyObject<'a, 'py> for GivenKind {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<u8>() {
            Ok(kind) => Ok(Self(kind)),
            Err(e) if e.is_instance_of::<PyOverflowError>(given.py()) => Err(invalid_kind(&*given)),
            Err(_) => Err(PyTypeError::new_err(
                "a kind is a number from 16 to 255, after the data: publish(data, kind); the topic or queue was named when it \
                 was opened",
            )),
        }
    }
}

/// Creates the exception for a kind that messages may not have.
pub fn invalid_kind(kind: impl Display) -> PyErr {
    PyValueError::new_err(format!("the kind {kind} is invalid; use 16 to 255"))
}

/// Returns the kind to publish with: the given kind, else the message's own.
pub fn kind_of(given: Option<GivenKind>, own: Option<u8>) -> PyResult<u8> {
    match given.map(|given| given.0).or(own) {
        Some(kind) if kind >= FIRST_KIND => Ok(kind),
        Some(kind) => Err(invalid_kind(kind)),
        None => Err(PyTypeError::new_err("bytes have no kind of their own; give kind=16 to 255")),
    }
}

/// Passes the payload to `act`, with the kind of an event; raw bytes have none.
pub fn with_payload<R>(data: &Bound<'_, PyAny>, act: impl FnOnce(&[u8], Option<u8>) -> PyResult<R>) -> PyResult<R> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return act(bytes.as_bytes(), None);
    }
    if let Ok(tick) = data.cast::<PyTopOfBook>() {
        return act(tick.get().message().as_bytes(), Some(Kind::TopOfBook.code()));
    }
    if let Ok(trade) = data.cast::<PyTrade>() {
        return act(trade.get().message().as_bytes(), Some(Kind::Trade.code()));
    }
    if let Ok(level) = data.cast::<PyBookLevel>() {
        return act(level.get().message().as_bytes(), Some(Kind::BookLevel.code()));
    }
    if let Ok(status) = data.cast::<PyFeedStatus>() {
        return act(status.get().message().as_bytes(), Some(Kind::FeedStatus.code()));
    }
    if let Ok(message) = data.cast::<PyMessage>() {
        let message = message.get();
        return act(message.payload.as_bytes(data.py()), Some(message.kind));
    }
    if let Ok(foreign) = data.cast::<PyForeign>() {
        return act(foreign.get().payload.as_bytes(data.py()), None);
    }
    if data.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("text is not bytes; publish text.encode()"));
    }
    // Any other object with a buffer.
    let view = data.py().import("builtins")?.getattr("memoryview")?.call1((data,)).map_err(|_| {
        let found = data.get_type().name().map_or_else(|_| "the object".to_owned(), |name| format!("a {name}"));
        PyTypeError::new_err(format!("{found} has no bytes; give bytes with a kind, or an event such as a TopOfBook"))
    })?;
    let copy = view.call_method0("tobytes")?;
    act(copy.cast::<PyBytes>()?.as_bytes(), None)
}

/// Consecutive messages of one kind: the kind, and copies of their payloads.
pub type KindBatch = (u8, Vec<Vec<u8>>);

/// Copies the payloads of a batch, grouped by kind: from a list, from any other iterable, or from an array of records.
pub fn payloads(batch: &Bound<'_, PyAny>, kind: Option<GivenKind>) -> PyResult<Vec<KindBatch>> {
    if let Some((own, records)) = records(batch)? {
        return Ok(vec![(kind_of(kind, Some(own))?, records)]);
    }
    let mut runs: Vec<KindBatch> = Vec::new();
    for data in batch.try_iter()? {
        let (bytes, own) = with_payload(&data?, |payload, own| Ok((payload.to_vec(), own)))?;
        let kind = kind_of(kind, own)?;
        match runs.last_mut() {
            Some((last, payloads)) if *last == kind => payloads.push(bytes),
            _ => runs.push((kind, vec![bytes])),
        }
    }
    Ok(runs)
}

/// Sends the messages of each kind with one call per change of kind. The counts of an error refer to the whole batch.
pub fn send_by_kind(
    runs: &[KindBatch],
    mut send: impl FnMut(u8, &[&[u8]]) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    let mut before = 0;
    for (kind, copies) in runs {
        let payloads: Vec<&[u8]> = copies.iter().map(Vec::as_slice).collect();
        send(*kind, &payloads).map_err(|error| BatchError { done: before + error.done, ..error })?;
        before += copies.len();
    }
    Ok(())
}

/// Copies the records of a numpy array; returns None for anything else.
fn records(batch: &Bound<'_, PyAny>) -> PyResult<Option<(u8, Vec<Vec<u8>>)>> {
    if !batch.hasattr("dtype")? {
        return Ok(None);
    }
    let view = batch.py().import("builtins")?.getattr("memoryview")?.call1((batch,))?;
    let Some(kind) = kind_of_records(&view)? else { return Ok(None) };
    let item = view.getattr("itemsize")?.extract()?;
    let bytes = view.call_method0("tobytes")?;
    let records = bytes.cast::<PyBytes>()?.as_bytes().chunks_exact(item).map(<[u8]>::to_vec).collect();
    Ok(Some((kind, records)))
}
