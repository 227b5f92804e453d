//! A file of market data: opened, recognised and read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use zip::ZipArchive;

use crate::binance_vision::{BinanceBookTicker, BinanceTrades};
use crate::cells::{Header, read_table};
use crate::counts::ImportCounts;
#[cfg(feature = "formats")]
use crate::databento::read_dbn;
use crate::format::{DataFormat, has_names, instrument_of};
use crate::hft_events::read_events;
use crate::intake::Intake;
use crate::json_lines::read_json_lines;
use crate::lines::LineReader;
use crate::message::MarketMessage;
use crate::npy::NPY_MAGIC;
use crate::read_fault::ReadFault;
use crate::tardis::{TardisBook, TardisQuotes, TardisTrades};
use crate::tick_table::TickTable;

/// First bytes of compressed and binary files.
const GZIP_MAGIC: &[u8] = b"\x1f\x8b";
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
const DBN_MAGIC: &[u8] = b"DBN";
/// Member of a numpy archive that holds the events.
const EVENTS_MEMBER: &str = "data.npy";
/// Bytes of a file that are read at once. Readers of plain files have larger buffers, and read past this one.
const FILE_BUFFER_BYTES: usize = 64 << 10;
/// Bytes of the buffer behind the decompressor of an archive.
const BUFFER_BYTES: usize = 256 << 10;
/// Max length of a line that an error quotes.
const QUOTED_CHARS: usize = 60;

/// Errors of a file that cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum MarketFileError {
    /// The file cannot be opened.
    #[error("cannot open {}: {}; give the path of a file of market data that this user may read", .0.display(), .1)]
    Open(PathBuf, #[source] io::Error),
    /// The file is in no known format; the text is its first line.
    #[error(
        "{} is in no known format: it begins with '{}'. Name its format with --format: {}",
        .0.display(), .1, DataFormat::names()
    )]
    Unknown(PathBuf, String),
    /// The file is not as its format requires.
    #[error("{} cannot be read as {}: {}; fetch it anew, or name another format with --format", .0.display(), .1, .2)]
    Damaged(PathBuf, &'static str, String),
    /// This build leaves the format out.
    #[cfg(not(feature = "formats"))]
    #[error("{} is of format {}, which {}", .0.display(), .1, crate::format::LEFT_OUT)]
    LeftOut(PathBuf, DataFormat),
    /// Reading failed midway.
    #[error(
        "cannot read {} at {unit} {row}: {source}; test it with `gzip -t` or `unzip -t`, or fetch it anew",
        .path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Noun for a row of the file.
        unit: &'static str,
        /// The unreadable row, from 1.
        row: u64,
        /// The error of the operating system or the decompressor.
        source: io::Error,
    },
    /// No row of the file is a message.
    #[error("{} has no best bid and offer, trade or level that can be read as {format} ({counts})", .path.display())]
    NoMessage {
        /// The file.
        path: PathBuf,
        /// The format.
        format: DataFormat,
        /// Counts of the rows found instead.
        counts: Box<ImportCounts>,
    },
}

/// A file of market data whose format is known.
pub struct MarketFile {
    path: PathBuf,
    format: DataFormat,
    /// Name by which the instrument is known where no row names it: that of the file, or of an archive's member.
    name: String,
    content: Content,
}

/// Content of a file behind its compression.
enum Content {
    Text(LineReader<Box<dyn Read + Send>>),
    Binary(Box<dyn BufRead + Send>),
    /// A member of an archive, by its index.
    Archived(ZipArchive<BufReader<File>>, usize),
}

impl MarketFile {
    /// Opens a file, and recognises its format by its content and name if none is given.
    pub fn open(path: &Path, format: Option<DataFormat>) -> Result<Self, MarketFileError> {
        let fail = |error| MarketFileError::Open(path.to_owned(), error);
        let file = File::open(path).map_err(fail)?;
        let mut input = BufReader::with_capacity(FILE_BUFFER_BYTES, file);
        let buffered = input.fill_buf().map_err(fail)?;
        let head = buffered[..buffered.len().min(NPY_MAGIC.len())].to_owned();
        let name = file_name(path);
        if head.starts_with(ZIP_MAGIC) {
            return Self::open_archive(path, input, format);
        }
        let is_dbn = head.starts_with(DBN_MAGIC) || head.starts_with(ZSTD_MAGIC);
        let is_array = head.starts_with(NPY_MAGIC);
        let binary = is_dbn.then_some(DataFormat::Dbn).or(is_array.then_some(DataFormat::Npz));
        if let Some(format) = format.or(binary).filter(|format| format.is_binary()) {
            #[cfg(not(feature = "formats"))]
            if format == DataFormat::Dbn {
                return Err(MarketFileError::LeftOut(path.to_owned(), format));
            }
            return Ok(Self { path: path.to_owned(), format, name, content: Content::Binary(Box::new(input)) });
        }
        let plain: Box<dyn Read + Send> =
            if head.starts_with(GZIP_MAGIC) { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) };
        let mut lines = LineReader::new(plain);
        let format = format.map_or_else(|| recognize(path, &mut lines, &name), Ok)?;
        Ok(Self { path: path.to_owned(), format, name, content: Content::Text(lines) })
    }

    fn open_archive(path: &Path, input: BufReader<File>, format: Option<DataFormat>) -> Result<Self, MarketFileError> {
        let damaged = |why: String| MarketFileError::Damaged(path.to_owned(), "a zip archive", why);
        let mut archive = ZipArchive::new(input).map_err(|error| damaged(error.to_string()))?;
        let (index, member) = only_member(&archive).map_err(damaged)?;
        // A table has the instrument in its name; the name of an array is the same in each archive.
        let is_array = member.ends_with(".npy");
        let name = if is_array { file_name(path) } else { file_name(Path::new(&member)) };
        let format = match format {
            Some(format) => format,
            None if is_array => DataFormat::Npz,
            None => {
                let input = archive.by_index(index).map_err(|error| damaged(error.to_string()))?;
                recognize(path, &mut LineReader::new(input), &name)?
            }
        };
        Ok(Self { path: path.to_owned(), format, name, content: Content::Archived(archive, index) })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the format of the file.
    pub fn format(&self) -> DataFormat {
        self.format
    }

    /// Reads the file to its end, and passes on each message with its receive time, in nanoseconds since the Unix
    /// epoch, and the name of its instrument. The `symbol` of a message is the number of that name, from 0 on in the
    /// order of the first messages. Times never decrease. A break of the taker ends the reading.
    pub fn read(
        self,
        take: &mut dyn FnMut(u64, &str, MarketMessage) -> ControlFlow<()>,
    ) -> Result<ImportCounts, MarketFileError> {
        let Self { path, format, name, content } = self;
        let mut intake = Intake::new(format.unit(), take);
        let read = match content {
            Content::Text(lines) => read_text(format, lines, &name, &mut intake),
            Content::Binary(input) => read_binary(format, input, &name, &mut intake),
            Content::Archived(mut archive, index) => match archive.by_index(index) {
                Ok(input) if format.is_binary() => {
                    read_binary(format, BufReader::with_capacity(BUFFER_BYTES, input), &name, &mut intake)
                }
                Ok(input) => read_text(format, LineReader::new(input), &name, &mut intake),
                Err(error) => Err(ReadFault::Io(error.into())),
            },
        };
        let is_stopped = intake.is_stopped();
        let counts = intake.counts;
        match read {
            Ok(()) if counts.messages() > 0 || is_stopped => Ok(counts),
            Ok(()) => Err(MarketFileError::NoMessage { path, format, counts: Box::new(counts) }),
            Err(ReadFault::Form(why)) => Err(MarketFileError::Damaged(path, format.name(), why)),
            Err(ReadFault::Io(source)) => {
                Err(MarketFileError::Read { path, unit: counts.unit, row: counts.rows + 1, source })
            }
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the index and the name of the one file in an archive, or of the events among several.
fn only_member<R: Read + Seek>(archive: &ZipArchive<R>) -> Result<(usize, String), String> {
    let names: Result<Vec<String>, _> = archive.file_names().map(|name| name.map(|name| name.into_owned())).collect();
    let names = names.map_err(|error| error.to_string())?;
    let files: Vec<(usize, String)> = (0..).zip(names).filter(|(_, name)| !name.ends_with('/')).collect();
    let count = files.len();
    let chosen = files.into_iter().find(|(_, name)| count == 1 || name == EVENTS_MEMBER);
    chosen.ok_or_else(|| format!("it holds {count} files; unpack it, and import them one by one"))
}

fn recognize<R: Read>(path: &Path, lines: &mut LineReader<R>, name: &str) -> Result<DataFormat, MarketFileError> {
    let first_line = lines.peek().map_err(|error| MarketFileError::Open(path.to_owned(), error))?;
    DataFormat::of_text(first_line, name).ok_or_else(|| {
        let begin = String::from_utf8_lossy(first_line).chars().take(QUOTED_CHARS).collect::<String>();
        MarketFileError::Unknown(path.to_owned(), begin.escape_debug().to_string())
    })
}

fn read_text<R: Read>(
    format: DataFormat,
    mut lines: LineReader<R>,
    name: &str,
    intake: &mut Intake<'_>,
) -> Result<(), ReadFault> {
    let first_line = lines.peek()?;
    let (header, has_names) = (Header::read(first_line), has_names(first_line));
    let instrument = || instrument_of(name);
    let lines = &mut lines;
    let read = match format {
        DataFormat::JsonLines => read_json_lines(lines, intake),
        DataFormat::Csv => read_table(lines, true, &mut TickTable::find(&header)?, intake),
        DataFormat::TardisQuotes => read_table(lines, true, &mut TardisQuotes::find(&header)?, intake),
        DataFormat::TardisTrades => read_table(lines, true, &mut TardisTrades::find(&header)?, intake),
        DataFormat::TardisBook => read_table(lines, true, &mut TardisBook::find(&header)?, intake),
        DataFormat::BinanceTrades => read_table(lines, has_names, &mut BinanceTrades::single(instrument()), intake),
        DataFormat::BinanceAggTrades => {
            read_table(lines, has_names, &mut BinanceTrades::aggregated(instrument()), intake)
        }
        DataFormat::BinanceBookTicker => {
            read_table(lines, has_names, &mut BinanceBookTicker::new(instrument()), intake)
        }
        DataFormat::Npz | DataFormat::Dbn => return Err(ReadFault::Form("it is a text".to_owned())),
    };
    read.map_err(ReadFault::Io)
}

fn read_binary<R: BufRead>(format: DataFormat, input: R, name: &str, intake: &mut Intake<'_>) -> Result<(), ReadFault> {
    match format {
        #[cfg(feature = "formats")]
        DataFormat::Dbn => read_dbn(input, intake),
        _ => read_events(input, &instrument_of(name), intake),
    }
}
