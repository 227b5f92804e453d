//! Tables that others take as Arrow's streams, by the PyCapsule interface: polars, pyarrow, pandas, duckdb.
//!
//! ```text
//!   polars.DataFrame(table) ── __arrow_c_stream__ ──> opens its log ──> a capsule that holds the stream
//!                           <── a batch of 65,536 rows, again and again ── read on whoever's thread asks
//! ```
//! A stream never touches Python, so whoever reads it may have let go of the interpreter. It is let go of by who has taken it
//! out of its capsule, or with the capsule.

use std::error::Error as StdError;
use std::io;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::column::{Columns, Rows};
use crate::error::Error;

/// Rows of a batch, at most.
pub const MOST_ROWS: usize = 1 << 16;

/// Why a table cannot be read: a sentence.
pub type Failure = Box<dyn StdError + Send + Sync>;

/// Where a table's rows come from.
pub trait Source: Send + 'static {
    /// What they hold.
    type Columns: Columns;

    /// Reads on until there are enough rows for a batch; false at the end.
    fn fill(&mut self, rows: &mut Rows<Self::Columns>) -> Result<bool, Failure>;
}

type Stream = Box<dyn RecordBatchReader + Send>;

/// Rows of one kind, for whatever takes Arrow's streams: polars.DataFrame(table), pyarrow.table(table). Whoever takes it reads
/// its log anew, from the oldest row to the last one that is there.
#[pyclass(frozen, module = "tickpath")]
pub struct Table {
    /// What it holds, for people.
    what: String,
    schema: SchemaRef,
    open: Box<dyn Fn() -> Result<Stream, Failure> + Send + Sync>,
}

impl Table {
    /// Of what is opened whenever somebody takes it.
    pub fn new<S: Source>(what: String, open: impl Fn() -> Result<S, Failure> + Send + Sync + 'static) -> Self {
        let schema = Rows::<S::Columns>::schema();
        let batches_of = schema.clone();
        let open = move || -> Result<Stream, Failure> {
            let (source, rows, schema) = (open()?, Rows::default(), batches_of.clone());
            Ok(Box::new(Batches { source, rows, schema, is_over: false, failed: None }))
        };
        Self { what, schema, open: Box::new(open) }
    }

    /// Of rows that are there already.
    pub fn of_batch(what: String, batch: RecordBatch) -> Self {
        let schema = batch.schema();
        let open = move || -> Result<Stream, Failure> {
            Ok(Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema())))
        };
        Self { what, schema, open: Box::new(open) }
    }
}

#[pymethods]
impl Table {
    /// The columns' names and types, as Arrow's PyCapsule interface has them.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(|e| PyValueError::new_err(e.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, as Arrow's PyCapsule interface has them. Other types than its own it does not give, whatever is requested.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let opened = py.detach(|| (self.open)()).map_err(|e| Error::Connect.raise(py, &e.to_string()))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(opened), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("Table({})", self.what)
    }
}

/// A table's rows, a batch at a time.
struct Batches<S: Source> {
    source: S,
    rows: Rows<S::Columns>,
    schema: SchemaRef,
    /// There are no more.
    is_over: bool,
    /// Why, if that is no end; what was read before it comes first.
    failed: Option<Failure>,
}

impl<S: Source> Iterator for Batches<S> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_over {
            match self.source.fill(&mut self.rows) {
                Ok(goes_on) => self.is_over = !goes_on,
                Err(failure) => (self.is_over, self.failed) = (true, Some(failure)),
            }
        }
        if self.rows.len() > 0 {
            return Some(self.rows.batch(&self.schema));
        }
        let failure = self.failed.take()?;
        Some(Err(ArrowError::IoError(failure.to_string(), io::Error::other(failure))))
    }
}

impl<S: Source> RecordBatchReader for Batches<S> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
