//! A file of an exchange's frames as they arrived, one a line, plain or gzip.
//!
//! ```text
//!   1704067200001234567 {"stream":"synusdt@bookTicker","data":{…}}     text: receive time (UTC, ns), then the frame
//!   1704067200001250000 #AAECAw==                                      binary: the frame as Base64
//!   1704067200001260000 #connect                                       the next frames are of another connection
//! ```
//! Line ends inside a text frame become spaces. Lines of text frames have the form of a recording
//! ([`tickpath_market::replay`]).
//!
//! A thread of its own writes the file. The carrier copies each frame into a chunk of memory, and hands the chunk over
//! when it has nothing else to do or when the chunk is full. The number of chunks is bounded: while the disk is slower
//! than the exchange, frames are left out of the file, and counted.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use tickpath_feed::Frame;

use crate::RelayError;

/// Bytes after which a chunk is full.
const CHUNK_BYTES: usize = 256 << 10;

/// Max chunks that wait for the disk.
const MAX_CHUNKS: usize = 32;

/// Bytes before a frame in a chunk: receive time, length, and kind.
const HEADER_BYTES: usize = 8 + 4 + 1;

/// Max length of a line, with its end: a frame of 16 MiB as Base64, and its receive time.
const MAX_LINE_BYTES: u64 = 24 << 20;

/// Every gzip stream starts with these bytes, and no receive time does.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Sign before a binary frame in its line.
const BINARY_SIGN: u8 = b'#';

/// Text of a connect in its line.
const CONNECT: &[u8] = b"#connect";

/// Kinds of entries in a chunk.
const TEXT_ENTRY: u8 = 0;
const BINARY_ENTRY: u8 = 1;
const CONNECT_ENTRY: u8 = 2;

/// Writer of a new file of frames.
pub(crate) struct RawFrameWriter {
    path: PathBuf,
    /// Frames that the thread does not have yet.
    chunk: Vec<u8>,
    /// None when the thread is to end.
    full: Option<SyncSender<Vec<u8>>>,
    /// Chunks that the thread has written, to be filled again.
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<(u64, io::Result<()>)>>,
    offered: u64,
    dropped: u64,
}

impl RawFrameWriter {
    /// Creates the file, gzip if its name ends in `.gz`, and starts the thread.
    pub fn create(path: &Path) -> Result<Self, RelayError> {
        let failed = |reason: io::Error| match reason.kind() {
            io::ErrorKind::AlreadyExists => RelayError::RawFileExists(path.to_owned()),
            _ => RelayError::RawFile(path.to_owned(), reason),
        };
        let file = File::create_new(path).map_err(failed)?;
        let mut file = match path.extension().is_some_and(|end| end == "gz") {
            true => FrameFile::Gzip(Box::new(GzEncoder::new(file, Compression::fast()))),
            false => FrameFile::Plain(file),
        };
        let (full, chunks) = sync_channel::<Vec<u8>>(MAX_CHUNKS);
        let (written, empty) = channel();
        let work = move || {
            let (mut frames, mut text) = (0, Vec::new());
            for mut chunk in chunks {
                text.clear();
                let count = append_lines(&chunk, &mut text);
                if let Err(reason) = file.write_whole(&text) {
                    return (frames, Err(reason));
                }
                frames += count;
                chunk.clear();
                // The writer may have ended meanwhile, and needs no chunk then.
                let _ = written.send(chunk);
            }
            (frames, file.finish())
        };
        let thread = std::thread::Builder::new().name("raw-frames".to_owned()).spawn(work).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            chunk: Vec::with_capacity(CHUNK_BYTES),
            full: Some(full),
            empty,
            thread: Some(thread),
            offered: 0,
            dropped: 0,
        })
    }

    /// Adds a frame, without waiting. If the disk is too slow, the frame is dropped and counted.
    pub fn add(&mut self, utc_ns: u64, frame: Frame<'_>) {
        let (bytes, kind) = match frame {
            Frame::Text(bytes) => (bytes, TEXT_ENTRY),
            Frame::Binary(bytes) => (bytes, BINARY_ENTRY),
        };
        self.offered += 1;
        let is_full = !self.chunk.is_empty() && self.chunk.len() + HEADER_BYTES + bytes.len() > CHUNK_BYTES;
        let Ok(length) = u32::try_from(bytes.len()) else {
            self.dropped += 1;
            return;
        };
        if is_full && !self.hand_over() {
            self.dropped += 1;
            return;
        }
        self.add_header(utc_ns, length, kind);
        self.chunk.extend_from_slice(bytes);
    }

    /// Adds a connect. A full chunk has room for it, because connects are rare and small.
    pub fn add_connect(&mut self, utc_ns: u64) {
        self.add_header(utc_ns, 0, CONNECT_ENTRY);
    }

    fn add_header(&mut self, utc_ns: u64, length: u32, kind: u8) {
        self.chunk.extend_from_slice(&utc_ns.to_le_bytes());
        self.chunk.extend_from_slice(&length.to_le_bytes());
        self.chunk.push(kind);
    }

    /// Hands the frames over to the thread, without waiting. Returns false if the thread has no room for them.
    pub fn hand_over(&mut self) -> bool {
        let Some(full) = self.full.as_ref().filter(|_| !self.chunk.is_empty()) else { return true };
        let next = self.empty.try_recv().unwrap_or_default();
        match full.try_send(std::mem::replace(&mut self.chunk, next)) {
            Ok(()) => true,
            // The thread of a failed file has ended; the number of frames that it has written is known at the end.
            Err(TrySendError::Full(chunk) | TrySendError::Disconnected(chunk)) => {
                self.chunk = chunk;
                false
            }
        }
    }

    /// Returns the number of frames that were dropped so far because the disk is too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns whether the thread has ended: the file can take no more frames.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the file is complete. Returns its path, the numbers of frames in it and missing from it, and the
    /// error that has ended it.
    pub fn finish(mut self) -> (PathBuf, RawFrameCounts, Option<io::Error>) {
        if let Some(full) = self.full.take().filter(|_| !self.chunk.is_empty()) {
            // A thread that has ended takes nothing more, which its number of frames shows.
            let _ = full.send(std::mem::take(&mut self.chunk));
        }
        let thread = self.thread.take().expect("it is joined once");
        let (written, ended) = thread.join().unwrap_or_else(|_| (0, Err(io::Error::other("its thread has died"))));
        (self.path, RawFrameCounts { written, missing: self.offered - written }, ended.err())
    }
}

/// Numbers of frames of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RawFrameCounts {
    /// Frames in the file.
    pub written: u64,
    /// Frames that arrived and are not in the file.
    pub missing: u64,
}

enum FrameFile {
    Plain(File),
    Gzip(Box<GzEncoder<File>>),
}

impl FrameFile {
    /// Writes lines so that a reader of the file finds all of them.
    fn write_whole(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(text),
            Self::Gzip(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(encoder) => encoder.finish().map(|_| ()),
        }
    }
}

/// Appends the lines of a chunk, and returns the number of frames.
fn append_lines(mut chunk: &[u8], text: &mut Vec<u8>) -> u64 {
    let mut count = 0;
    while let Some((utc_ns, rest)) = chunk.split_first_chunk::<8>() {
        let (length, rest) = rest.split_first_chunk::<4>().expect("a header is whole");
        let (kind, rest) = rest.split_first().expect("a header is whole");
        let (frame, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        text.extend_from_slice(u64::from_le_bytes(*utc_ns).to_string().as_bytes());
        text.push(b' ');
        match *kind {
            CONNECT_ENTRY => text.extend_from_slice(CONNECT),
            BINARY_ENTRY => {
                text.push(BINARY_SIGN);
                text.extend_from_slice(STANDARD.encode(frame).as_bytes());
            }
            _ => text.extend(frame.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte })),
        }
        text.push(b'\n');
        count += u64::from(*kind != CONNECT_ENTRY);
        chunk = rest;
    }
    count
}

/// Reader of a file of frames.
pub(crate) struct RawFrameReader {
    path: PathBuf,
    input: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Bytes of the last binary frame.
    binary: Vec<u8>,
    /// Number of the last line, from 1.
    pub line_number: u64,
}

/// A line of a file of frames.
pub(crate) enum RawLine<'a> {
    /// Receive time in nanoseconds since the Unix epoch, and the frame.
    Frame(u64, Frame<'a>),
    /// The next frames are of another connection.
    Connect,
    /// Reason why the line is no frame.
    Bad(&'static str),
    /// The file's last gzip stream is cut off; frames before are read.
    Truncated,
    /// The end of the file.
    End,
}

impl RawFrameReader {
    /// Opens a file, plain or gzip.
    pub fn open(path: &Path) -> Result<Self, RelayError> {
        let failed = |reason| RelayError::RawFrames(path.to_owned(), reason);
        let mut file = File::open(path).map_err(failed)?;
        let mut head = Vec::new();
        Read::by_ref(&mut file).take(GZIP_MAGIC.len() as u64).read_to_end(&mut head).map_err(failed)?;
        let is_gzip = head == GZIP_MAGIC;
        let whole = Cursor::new(head).chain(file);
        let input: Box<dyn BufRead> = match is_gzip {
            true => Box::new(BufReader::new(MultiGzDecoder::new(whole))),
            false => Box::new(BufReader::new(whole)),
        };
        Ok(Self { path: path.to_owned(), input, line: Vec::new(), binary: Vec::new(), line_number: 0 })
    }

    /// Reads the next line.
    pub fn read(&mut self) -> Result<RawLine<'_>, RelayError> {
        let Self { path, input, line, binary, line_number } = self;
        line.clear();
        match input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', line) {
            Ok(0) => return Ok(RawLine::End),
            Ok(_) => {}
            Err(reason) if reason.kind() == io::ErrorKind::UnexpectedEof => return Ok(RawLine::Truncated),
            Err(reason) => return Err(RelayError::RawFrames(path.clone(), reason)),
        }
        *line_number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 == MAX_LINE_BYTES {
            input.skip_until(b'\n').map_err(|reason| RelayError::RawFrames(path.clone(), reason))?;
            return Ok(RawLine::Bad("it is longer than 24 MiB"));
        }
        Ok(parse_line(line, binary).unwrap_or_else(RawLine::Bad))
    }
}

fn parse_line<'a>(line: &'a [u8], binary: &'a mut Vec<u8>) -> Result<RawLine<'a>, &'static str> {
    let space = line.iter().position(|&byte| byte == b' ').ok_or("it has no space after a receive time")?;
    let (time, frame) = (&line[..space], &line[space + 1..]);
    let time = std::str::from_utf8(time).ok().and_then(|time| time.parse().ok());
    let utc_ns = time.ok_or("it does not start with a receive time in nanoseconds")?;
    if frame == CONNECT {
        return Ok(RawLine::Connect);
    }
    let Some(text) = frame.strip_prefix(&[BINARY_SIGN]) else {
        return Ok(RawLine::Frame(utc_ns, Frame::Text(frame)));
    };
    binary.clear();
    STANDARD.decode_vec(text, binary).map_err(|_| "its binary frame is no Base64")?;
    Ok(RawLine::Frame(utc_ns, Frame::Binary(binary)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frame as it is compared: receive time, whether it is binary, bytes.
    type Kept = (u64, bool, Vec<u8>);

    fn write(path: &Path, frames: &[Kept]) -> (RawFrameCounts, Option<io::Error>) {
        let mut writer = RawFrameWriter::create(path).unwrap();
        for (utc_ns, is_binary, bytes) in frames {
            writer.add(*utc_ns, if *is_binary { Frame::Binary(bytes) } else { Frame::Text(bytes) });
        }
        let (_, counts, failed) = writer.finish();
        (counts, failed)
    }

    /// Returns the frames of a file, and the reasons of its bad lines.
    fn read(path: &Path) -> (Vec<Kept>, Vec<String>) {
        let (mut frames, mut bad) = (Vec::new(), Vec::new());
        let mut reader = RawFrameReader::open(path).unwrap();
        loop {
            match reader.read().unwrap() {
                RawLine::Frame(utc_ns, Frame::Text(bytes)) => frames.push((utc_ns, false, bytes.to_vec())),
                RawLine::Frame(utc_ns, Frame::Binary(bytes)) => frames.push((utc_ns, true, bytes.to_vec())),
                RawLine::Connect => frames.push((0, false, CONNECT.to_vec())),
                RawLine::Bad(why) => bad.push(why.to_owned()),
                RawLine::Truncated => bad.push("truncated".to_owned()),
                RawLine::End => return (frames, bad),
            }
            if bad.last().is_some_and(|why| why == "truncated") {
                return (frames, bad);
            }
        }
    }

    #[test]
    fn frames_are_written_and_read_unchanged() {
        let frames: Vec<Kept> = (0..3_000u64)
            .map(|number| (number, number % 3 == 0, (0..number % 400).map(|byte| byte as u8 | 1).collect()))
            .map(|(number, is_binary, bytes): Kept| {
                let plain = |byte: u8| if matches!(byte, b'\n' | b'\r') { b'.' } else { byte };
                (number, is_binary, if is_binary { bytes } else { bytes.into_iter().map(plain).collect() })
            })
            .collect();
        for name in ["frames.txt", "frames.gz"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            let (counts, failed) = write(&path, &frames);
            assert!(failed.is_none(), "{failed:?}");
            // A slow disk may leave out frames at any place, but counts them.
            assert_eq!(counts.written + counts.missing, frames.len() as u64);
            let (kept, bad) = read(&path);
            assert_eq!((kept.len() as u64, bad.len()), (counts.written, 0), "{name}: {bad:?}");
            assert!(kept.iter().all(|frame| frames[frame.0 as usize] == *frame), "{name}");
        }
    }

    #[test]
    fn line_ends_inside_a_text_become_spaces_and_an_old_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        write(&path, &[(7, false, b"{\r\n \"a\": 1\n}".to_vec()), (8, true, vec![0, 1, 2, 3])]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "7 {   \"a\": 1 }\n8 #AAECAw==\n");
        let again = RawFrameWriter::create(&path).err().expect("it exists");
        assert!(again.is_usage() && again.to_string().contains("exists already"), "{again}");
    }

    #[test]
    fn connects_are_kept_and_are_no_frames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        let mut writer = RawFrameWriter::create(&path).unwrap();
        writer.add_connect(5);
        writer.add(6, Frame::Text(b"{}"));
        writer.add_connect(7);
        let (_, counts, failed) = writer.finish();
        assert!(failed.is_none() && counts == RawFrameCounts { written: 1, missing: 0 }, "{counts:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "5 #connect\n6 {}\n7 #connect\n");
        let connect = (0, false, CONNECT.to_vec());
        assert_eq!(read(&path), (vec![connect.clone(), (6, false, b"{}".to_vec()), connect], Vec::new()));
    }

    #[test]
    fn bad_lines_and_a_cut_gzip_stream_are_reported_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        std::fs::write(&path, "x\nabc {}\n5 #?\n6 {}\n\n7 #AA==").unwrap();
        let (kept, bad) = read(&path);
        assert_eq!(kept, [(6, false, b"{}".to_vec()), (7, true, vec![0])]);
        assert_eq!(bad.len(), 4, "{bad:?}");

        let path = folder.path().join("frames.gz");
        write(&path, &[(1, false, b"{}".to_vec()), (2, false, vec![b'x'; 100])]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 6]).unwrap();
        let (kept, bad) = read(&path);
        assert_eq!((kept.len(), bad), (2, vec!["truncated".to_owned()]));
    }
}
