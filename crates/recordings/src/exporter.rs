//! Export of messages to files: a file a kind, each complete before it gets its name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::csv_table::CsvTable;
use crate::message::MarketMessage;
use crate::npz_file::NpzFile;
#[cfg(feature = "formats")]
use crate::parquet_table::ParquetTable;
use crate::table_kind::{ExportError, SinkFault, TableFormat, TableKind, TableSink};

/// Writer of messages to the files of an export.
///
/// A table holds one kind of message. Without a requested kind, each kind goes to a file of its own, whose name has the
/// kind before the ending: `ticks.csv` becomes `ticks.quotes.csv`, `ticks.trades.csv` and `ticks.book.csv`, as far as
/// there are messages. A numpy archive takes all kinds.
pub struct Exporter {
    target: PathBuf,
    format: TableFormat,
    kind: Option<TableKind>,
    /// Files by the number of their kind; a file of all kinds is the first.
    files: [Option<TableFile>; TableKind::ALL.len()],
}

/// A complete file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Messages in it.
    pub messages: u64,
    /// Prices and quantities that floating point numbers have rounded.
    pub inexact: u64,
    /// Messages that the format cannot hold.
    pub left_out: u64,
}

impl Exporter {
    /// Creates an export to this path, whose ending names the format. No file is created before its first message.
    pub fn new(target: &Path, kind: Option<TableKind>) -> Result<Self, ExportError> {
        let (format, _) = TableFormat::of(target)?;
        #[cfg(not(feature = "formats"))]
        if format == TableFormat::Parquet {
            return Err(ExportError::LeftOut(target.to_owned()));
        }
        let exporter = Self { target: target.to_owned(), format, kind, files: Default::default() };
        match TableKind::ALL.into_iter().map(|kind| exporter.path_of(kind)).find(|path| path.exists()) {
            Some(path) => Err(ExportError::Exists(path)),
            None => Ok(exporter),
        }
    }

    /// Returns true if messages of this kind are exported.
    pub fn takes(&self, message: &MarketMessage) -> bool {
        self.kind.is_none_or(|kind| kind == TableKind::of(message))
    }

    /// Appends a message that [is taken](Self::takes), with its receive time in nanoseconds since the Unix epoch.
    pub fn write(&mut self, utc_ns: u64, message: &MarketMessage) -> Result<(), ExportError> {
        let kind = TableKind::of(message);
        let place = if self.format == TableFormat::Npz { 0 } else { kind as usize };
        if self.files[place].is_none() {
            self.files[place] = Some(TableFile::create(self.path_of(kind), self.format, kind)?);
        }
        let file = self.files[place].as_mut().expect("it was created above");
        file.write(utc_ns, message)
    }

    /// Completes the files, and gives them their names; an export without messages has none.
    pub fn finish(self) -> Result<Vec<ExportedFile>, ExportError> {
        let files: Result<Vec<_>, _> = self.files.into_iter().flatten().map(TableFile::complete).collect();
        files?.into_iter().map(NamedFile::publish).collect()
    }

    fn path_of(&self, kind: TableKind) -> PathBuf {
        match TableFormat::of(&self.target) {
            Ok((format, stem)) if self.kind.is_none() && format != TableFormat::Npz => {
                self.target.with_file_name(format!("{stem}.{kind}{}", format.ending()))
            }
            _ => self.target.clone(),
        }
    }
}

/// A file that is written under another name until it is complete.
struct TableFile {
    named: NamedFile,
    sink: Box<dyn TableSink>,
}

/// The names of a file, and its counts.
struct NamedFile {
    exported: ExportedFile,
    part: PathBuf,
    is_published: bool,
}

impl TableFile {
    fn create(path: PathBuf, format: TableFormat, kind: TableKind) -> Result<Self, ExportError> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let fail = |error| ExportError::Write(path.clone(), error);
        let file = File::create(&part).map_err(fail)?;
        let sink = new_sink(file, &part, format, kind);
        let exported = ExportedFile { path: path.clone(), messages: 0, inexact: 0, left_out: 0 };
        let named = NamedFile { exported, part, is_published: false };
        Ok(Self { named, sink: sink.map_err(fail)? })
    }

    fn write(&mut self, utc_ns: u64, message: &MarketMessage) -> Result<(), ExportError> {
        self.named.exported.messages += 1;
        self.sink.write(utc_ns, message).map_err(|fault| self.named.error(fault))
    }

    fn complete(self) -> Result<NamedFile, ExportError> {
        let Self { mut named, sink } = self;
        let loss = sink.finish().map_err(|fault| named.error(fault))?;
        (named.exported.inexact, named.exported.left_out) = (loss.inexact, loss.left_out);
        Ok(named)
    }
}

impl NamedFile {
    fn publish(mut self) -> Result<ExportedFile, ExportError> {
        fs::rename(&self.part, &self.exported.path).map_err(|error| self.error(SinkFault::Io(error)))?;
        self.is_published = true;
        Ok(self.exported.clone())
    }

    fn error(&self, fault: SinkFault) -> ExportError {
        match fault {
            SinkFault::Io(error) => ExportError::Write(self.exported.path.clone(), error),
            SinkFault::Instruments(first, other) => ExportError::SeveralInstruments(first, other),
        }
    }
}

impl Drop for NamedFile {
    fn drop(&mut self) {
        if !self.is_published {
            // A file that stays is replaced by the next export to this name.
            let _ = fs::remove_file(&self.part);
        }
    }
}

fn new_sink(file: File, part: &Path, format: TableFormat, kind: TableKind) -> io::Result<Box<dyn TableSink>> {
    let sink: Box<dyn TableSink> = match format {
        TableFormat::Csv => Box::new(CsvTable::create(file, kind, false)?),
        TableFormat::CsvGzip => Box::new(CsvTable::create(file, kind, true)?),
        #[cfg(feature = "formats")]
        TableFormat::Parquet => Box::new(ParquetTable::create(file, kind)?),
        #[cfg(not(feature = "formats"))]
        TableFormat::Parquet => unreachable!("the exporter refuses it"),
        TableFormat::Npz => Box::new(NpzFile::create(file, part)?),
    };
    Ok(sink)
}
