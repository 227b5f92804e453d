//! Output that is pending for a client.

use std::io::{self, Write};

use tickpath_oms_protocol::{write_frame, write_frame_with_text};
use tickpath_oms_runtime::history::SessionReport;

use super::stream::ClientStream;

/// Max bytes pending for a client that does not read. A client that lags further catches up from the history.
const MAX_PENDING_BYTES: usize = 1 << 20;
/// Pending bytes below which a client that catches up is sent more.
const REFILL_BELOW: usize = 64 << 10;

/// Frames for a client, of which the socket has taken the first bytes.
#[derive(Debug, Default)]
pub(crate) struct OutputBuffer {
    bytes: Vec<u8>,
    sent: usize,
}

impl OutputBuffer {
    #[inline]
    pub fn write_report(&mut self, report: &SessionReport<'_>) {
        self.write_frame(report.kind, report.number, report.stamp, report.message);
    }

    #[inline]
    pub fn write_frame(&mut self, kind: u8, sequence: u64, stamp: u64, message: &[u8]) {
        write_frame(&mut self.bytes, kind, sequence, stamp, message);
    }

    pub fn write_frame_with_text(&mut self, kind: u8, sequence: u64, stamp: u64, message: &[u8], text: &[u8]) {
        write_frame_with_text(&mut self.bytes, kind, sequence, stamp, message, text);
    }

    pub fn write_frames(&mut self, frames: &[u8]) {
        self.bytes.extend_from_slice(frames);
    }

    #[inline]
    pub fn pending_bytes(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Returns whether so much output is pending that the client must catch up from the history.
    #[inline]
    pub fn is_lagging(&self) -> bool {
        self.pending_bytes() > MAX_PENDING_BYTES
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        self.pending_bytes() < REFILL_BELOW
    }

    /// Writes pending output to the socket. Returns the number of bytes written; fails with
    /// [`io::ErrorKind::WriteZero`] if the socket takes nothing more.
    #[inline]
    pub fn flush(&mut self, stream: &mut ClientStream) -> io::Result<usize> {
        let before = self.sent;
        while self.sent < self.bytes.len() {
            match stream.write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        // The socket may not have taken all that TLS has.
        stream.flush()?;
        let written = self.sent - before;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        } else if self.sent > MAX_PENDING_BYTES {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        Ok(written)
    }
}
