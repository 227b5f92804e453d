//! Tables exported as Arrow streams by the PyCapsule interface: polars, pyarrow, pandas, duckdb.
//!
//! ```text
//!   polars.DataFrame(table) ── __arrow_c_stream__ ──> opens its log ──> a capsule that holds the stream
//!                           <── a batch of 65,536 rows, again and again ── read on the caller's thread
//! ```
//! A stream never touches Python, so its reader may have released the interpreter. The stream is dropped by the
//! consumer that took it out of its capsule, or with the capsule.

use std::error::Error as StdError;
use std::io;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::column::{ColumnSet, TableRows};
use crate::error::connect_error;

pub const MAX_ROWS: usize = 1 << 16;

/// Error of a table that cannot be read, as a sentence.
pub type TableError = Box<dyn StdError + Send + Sync>;

/// Source of a table's rows.
pub trait RowSource: Send + 'static {
    /// The columns of the rows.
    type Columns: ColumnSet;

    /// Reads rows until a batch is full; returns false at the end.
    fn fill(&mut self, rows: &mut TableRows<Self::Columns>) -> Result<bool, TableError>;
}

type BatchStream = Box<dyn RecordBatchReader + Send>;

/// Rows of one kind, for any consumer of Arrow streams: polars.DataFrame(table), pyarrow.table(table). Each consumer
/// reads the log anew, from the oldest row to the last one available.
#[pyclass(name = "Table", frozen, module = "tickpath")]
pub struct PyTable {
    /// Description of the content, for `repr`.
    what: String,
    schema: SchemaRef,
    open: Box<dyn Fn() -> Result<BatchStream, TableError> + Send + Sync>,
}

impl PyTable {
    /// Creates a table whose source is opened for each export.
    pub fn new<S: RowSource>(what: String, open: impl Fn() -> Result<S, TableError> + Send + Sync + 'static) -> Self {
        let schema = TableRows::<S::Columns>::schema();
        let batches_of = schema.clone();
        let open = move || -> Result<BatchStream, TableError> {
            let (source, rows, schema) = (open()?, TableRows::default(), batches_of.clone());
            Ok(Box::new(Batches { source, rows, schema, is_over: false, failed: None }))
        };
        Self { what, schema, open: Box::new(open) }
    }

    /// Creates a table of rows that are there already.
    pub fn of_batch(what: String, batch: RecordBatch) -> Self {
        let schema = batch.schema();
        let open = move || -> Result<BatchStream, TableError> {
            Ok(Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema())))
        };
        Self { what, schema, open: Box::new(open) }
    }
}

#[pymethods]
impl PyTable {
    /// Exports the columns' names and types, by Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(|e| PyValueError::new_err(e.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Exports the rows, by Arrow's PyCapsule interface. A requested schema is ignored.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let opened = py.detach(|| (self.open)()).map_err(|e| connect_error(py, &e))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(opened), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("Table({})", self.what)
    }
}

/// Iterator over a table's rows in batches.
struct Batches<S: RowSource> {
    source: S,
    rows: TableRows<S::Columns>,
    schema: SchemaRef,
    is_over: bool,
    /// Error that ended the source; returned after the rows read before it.
    failed: Option<TableError>,
}

impl<S: RowSource> Iterator for Batches<S> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_over {
            match self.source.fill(&mut self.rows) {
                Ok(has_more) => self.is_over = !has_more,
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

impl<S: RowSource> RecordBatchReader for Batches<S> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
