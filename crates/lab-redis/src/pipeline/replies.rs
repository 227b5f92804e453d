//! Replies as they arrive: counted and checked, never stored.

use std::io;

/// Max accepted payload in bytes: the server's limit for a value.
const MAX_PAYLOAD_BYTES: i64 = 512 << 20;

/// Max stored bytes of the first error.
const ERROR_BYTES: usize = 200;

#[derive(Debug)]
pub(super) enum ReplyReceiver {
    /// Parses the replies.
    Replies(Replies),
    /// Counts replies of a fixed length, without parsing them.
    Bytes { of_reply: u64, seen: u64 },
}

/// Parser of replies that arrive in pieces of any size. It scans each piece once, byte by byte, and allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Replies {
    state: ParserState,
    /// The number of the current line.
    digits: i64,
    is_negative: bool,
    /// The expected number of the next reply.
    next: Option<i64>,
    received: u64,
    errors: u64,
    disordered: u64,
    first_error: Vec<u8>,
}

/// The parser's position at the end of the last piece.
#[derive(Debug, Clone, Copy, Default)]
enum ParserState {
    /// Before the first byte of a reply.
    #[default]
    Start,
    /// In the line that begins with this byte.
    Line(u8),
    /// This many bytes before the end of a payload.
    Payload(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an unexpected reply")]
pub(super) struct InvalidReply;

impl From<InvalidReply> for io::Error {
    fn from(error: InvalidReply) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

impl ReplyReceiver {
    #[inline]
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), InvalidReply> {
        match self {
            Self::Replies(replies) => replies.parse(bytes),
            Self::Bytes { seen, .. } => {
                *seen += bytes.len() as u64;
                Ok(())
            }
        }
    }

    #[inline]
    pub fn received(&self) -> u64 {
        match self {
            Self::Replies(replies) => replies.received,
            Self::Bytes { of_reply, seen } => seen / of_reply,
        }
    }

    /// Returns the number of replies that were errors, or null.
    pub fn errors(&self) -> u64 {
        match self {
            Self::Replies(replies) => replies.errors,
            // Errors have another length: then the total is not a multiple of the length.
            Self::Bytes { of_reply, seen } => u64::from(seen % of_reply != 0),
        }
    }

    /// Returns the number of counting replies that were not the previous number plus 1.
    pub fn disordered(&self) -> u64 {
        match self {
            Self::Replies(replies) => replies.disordered,
            Self::Bytes { .. } => 0,
        }
    }

    pub fn first_error(&self) -> Option<String> {
        match self {
            Self::Replies(replies) if !replies.first_error.is_empty() => {
                Some(String::from_utf8_lossy(&replies.first_error).trim_end().to_owned())
            }
            _ => None,
        }
    }

    /// Counts a reply that was read elsewhere.
    pub fn count(&mut self, is_good: bool) {
        if let Self::Replies(replies) = self {
            replies.received += 1;
            replies.errors += u64::from(!is_good);
        }
    }
}

impl Replies {
    /// Starts a parser of replies of any kind, or of numbers that count up from `first`.
    pub fn new(first: Option<i64>) -> Self {
        Self { next: first, ..Self::default() }
    }

    fn parse(&mut self, mut bytes: &[u8]) -> Result<(), InvalidReply> {
        while let Some((&first, rest)) = bytes.split_first() {
            bytes = match self.state {
                ParserState::Start => {
                    self.begin(first)?;
                    rest
                }
                ParserState::Line(mark) => self.line(mark, bytes)?,
                ParserState::Payload(left) => {
                    let passed = left.min(bytes.len());
                    self.state = ParserState::Payload(left - passed);
                    if passed == left {
                        self.end();
                    }
                    &bytes[passed..]
                }
            };
        }
        Ok(())
    }

    fn begin(&mut self, mark: u8) -> Result<(), InvalidReply> {
        if !b"+-:$".contains(&mark) {
            return Err(InvalidReply);
        }
        (self.digits, self.is_negative) = (0, false);
        self.state = ParserState::Line(mark);
        Ok(())
    }

    /// Parses more of a line, and returns the bytes behind it.
    fn line<'a>(&mut self, mark: u8, bytes: &'a [u8]) -> Result<&'a [u8], InvalidReply> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (text, rest) = match end {
            Some(end) => (&bytes[..end], &bytes[end + 1..]),
            None => (bytes, &bytes[bytes.len()..]),
        };
        match mark {
            b':' | b'$' => self.number(text)?,
            b'-' if self.errors == 0 => {
                let room = ERROR_BYTES.saturating_sub(self.first_error.len());
                self.first_error.extend(text.iter().take(room));
            }
            _ => {}
        }
        if end.is_some() {
            self.end_of_line(mark)?;
        }
        Ok(rest)
    }

    fn number(&mut self, text: &[u8]) -> Result<(), InvalidReply> {
        for byte in text {
            match byte {
                b'0'..=b'9' => {
                    self.digits = self.digits.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
                }
                b'-' => self.is_negative = true,
                b'\r' => {}
                _ => return Err(InvalidReply),
            }
        }
        Ok(())
    }

    fn end_of_line(&mut self, mark: u8) -> Result<(), InvalidReply> {
        match mark {
            b'$' if !self.is_negative => {
                if !(0..=MAX_PAYLOAD_BYTES).contains(&self.digits) {
                    return Err(InvalidReply);
                }
                self.state = ParserState::Payload(self.digits as usize + 2);
                return Ok(());
            }
            b':' => {
                let number = if self.is_negative { -self.digits } else { self.digits };
                if let Some(next) = self.next {
                    self.disordered += u64::from(number != next);
                    self.next = Some(number.wrapping_add(1));
                }
            }
            // An error; or a null, although no command here reads a missing value.
            b'-' | b'$' => self.errors += 1,
            _ => {}
        }
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        self.received += 1;
        self.state = ParserState::Start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_across_any_split() {
        for (stream, received, errors, disordered) in [
            ("", 0, 0, 0),
            ("+PONG\r\n+PONG\r\n", 2, 0, 0),
            ("+OK\r\n-ERR no\r\n+OK\r\n", 3, 1, 0),
            ("$3\r\nxxx\r\n$0\r\n\r\n$-1\r\n", 3, 1, 0),
            ("$12\r\n+\r\n-\r\n$3\r\n:1\r\n+O", 1, 0, 0),
            (":7\r\n:8\r\n:9\r\n", 3, 0, 0),
            (":7\r\n:9\r\n:10\r\n:10\r\n", 4, 0, 2),
            (":7\r\n:8\r", 1, 0, 0),
        ] {
            check(stream, received, errors, disordered);
        }
    }

    #[test]
    fn bytes_that_are_no_reply_are_an_error() {
        for stream in ["PONG\r\n", "*1\r\n", ":x\r\n", "$99999999999\r\n", "$x\r\n", "+OK\r\n\r\n"] {
            assert_eq!(Replies::new(None).parse(stream.as_bytes()), Err(InvalidReply), "{stream:?}");
        }
    }

    #[test]
    fn the_first_error_reply_is_kept() {
        let mut intake = ReplyReceiver::Replies(Replies::new(None));
        for piece in ["+OK\r\n-NOPE", "RM no\r", "\n-ERR other\r\n"] {
            assert_eq!(intake.receive(piece.as_bytes()), Ok(()));
        }
        assert_eq!((intake.errors(), intake.first_error()), (2, Some("NOPERM no".to_owned())));
    }

    /// Feeds a stream in pieces of each size.
    fn check(stream: &str, received: u64, errors: u64, disordered: u64) {
        for size in 1..=stream.len().max(1) {
            let mut intake = ReplyReceiver::Replies(Replies::new(Some(7)));
            for piece in stream.as_bytes().chunks(size) {
                intake.receive(piece).unwrap();
            }
            let found = (intake.received(), intake.errors(), intake.disordered());
            assert_eq!(found, (received, errors, disordered), "{stream:?} in pieces of {size}");
        }
    }
}
