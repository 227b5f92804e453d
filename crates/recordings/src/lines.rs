//! Lines of a text, handed out in place: no line takes an allocation or a copy of its own.

use std::io::{self, ErrorKind, Read};

use memchr::memchr;

use crate::intake::Intake;

/// Bytes of the buffer, unless a line is longer.
const BUFFER_BYTES: usize = 256 << 10;
/// Max length of a line without its end. Longer lines are bad lines, so that memory stays bounded.
const LINE_LIMIT_BYTES: usize = 16 << 20;
/// A file from Windows may begin with these bytes.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reader of a text by lines.
pub(crate) struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// Begin and end of the bytes in the buffer that were not handed out.
    start: usize,
    end: usize,
    is_at_end: bool,
    /// The input ended before its compressed stream did.
    is_cut: bool,
}

/// A line of a text.
enum Line<'a> {
    /// A line without its end.
    Whole(&'a [u8]),
    /// A line that is too long.
    TooLong,
    /// The begin of a line, where a compressed stream is cut off. Its last number may have lost digits.
    Cut,
}

/// Place of the next line's end.
enum LineEnd {
    At(usize),
    TooLong,
    /// The input ends without an end of line.
    Rest,
    /// There are no more lines.
    None,
}

impl<R: Read> LineReader<R> {
    pub fn new(input: R) -> Self {
        Self { input, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, is_at_end: false, is_cut: false }
    }

    /// Returns the first line, and leaves it to be handed out; it is empty if it is too long.
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        let found = self.find_end()?;
        if self.buffer[self.start..self.end].starts_with(BYTE_ORDER_MARK) {
            self.start += BYTE_ORDER_MARK.len();
        }
        let end = match found {
            LineEnd::At(end) => end,
            LineEnd::TooLong => self.start,
            LineEnd::Rest | LineEnd::None => self.end,
        };
        Ok(without_return(&self.buffer[self.start..end]))
    }

    /// Passes over the first line, and counts it.
    pub fn skip_first(&mut self, intake: &mut Intake<'_>) -> io::Result<()> {
        intake.begin_row();
        self.next_line().map(drop)
    }

    /// Reads all further lines, until the taker of the messages wants no more. Returns true if the input was cut off.
    pub fn for_each(
        &mut self,
        intake: &mut Intake<'_>,
        mut read: impl FnMut(&[u8], &mut Intake<'_>) -> Result<(), String>,
    ) -> io::Result<bool> {
        while !intake.is_stopped()
            && let Some(line) = self.next_line()?
        {
            intake.begin_row();
            let result = match line {
                Line::Whole(line) => read(without_return(line), intake),
                Line::TooLong => Err(format!("longer than {} MiB", LINE_LIMIT_BYTES >> 20)),
                Line::Cut => Err("cut off".to_owned()),
            };
            intake.end_row(result);
        }
        intake.counts.truncated |= self.is_cut;
        Ok(self.is_cut)
    }

    fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        match self.find_end()? {
            LineEnd::At(end) => {
                let start = std::mem::replace(&mut self.start, end + 1);
                Ok(Some(Line::Whole(&self.buffer[start..end])))
            }
            LineEnd::Rest => {
                let start = std::mem::replace(&mut self.start, self.end);
                Ok(Some(if self.is_cut { Line::Cut } else { Line::Whole(&self.buffer[start..self.end]) }))
            }
            LineEnd::TooLong => {
                self.drop_line()?;
                Ok(Some(Line::TooLong))
            }
            LineEnd::None => Ok(None),
        }
    }

    fn find_end(&mut self) -> io::Result<LineEnd> {
        let mut scanned = self.start;
        loop {
            let found = memchr(b'\n', &self.buffer[scanned..self.end]).map(|at| scanned + at);
            if found.unwrap_or(self.end) - self.start > LINE_LIMIT_BYTES {
                return Ok(LineEnd::TooLong);
            }
            if let Some(end) = found {
                return Ok(LineEnd::At(end));
            }
            if self.is_at_end {
                return Ok(if self.start == self.end { LineEnd::None } else { LineEnd::Rest });
            }
            scanned = self.fill()?;
        }
    }

    /// Reads further bytes into the buffer; returns where they begin.
    fn fill(&mut self) -> io::Result<usize> {
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            } else {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        let begin = self.end;
        match self.input.read(&mut self.buffer[begin..]) {
            Ok(0) => self.is_at_end = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => (self.is_at_end, self.is_cut) = (true, true),
            Err(error) => return Err(error),
        }
        Ok(begin)
    }

    /// Drops the rest of a line that is too long.
    fn drop_line(&mut self) -> io::Result<()> {
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                return Ok(());
            }
            (self.start, self.end) = (0, 0);
            if self.is_at_end {
                return Ok(());
            }
            self.fill()?;
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
