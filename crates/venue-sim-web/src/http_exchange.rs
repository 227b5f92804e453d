//! A connection that speaks HTTP: requests come in, and wait until they are complete.

use std::io::{ErrorKind, Read, Write};
use std::mem;

use crate::WebAnswer;
use crate::peer_stream::PeerStream;
use crate::received_request::{ReceivedRequest, RequestProgress};

/// Size of the buffer of a read.
const READ_BYTES: usize = 16 << 10;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// An HTTP connection with the bytes of requests that are not answered.
pub(crate) struct HttpExchange {
    pub(crate) stream: PeerStream,
    input: Vec<u8>,
    /// Whether the client was asked to send the body of the present request.
    is_continued: bool,
}

/// Result of reading a connection.
pub(crate) enum HttpProgress {
    /// A complete request.
    Request(ReceivedRequest),
    /// A request that is refused with this answer, which ends the connection.
    Refused(WebAnswer),
    /// The rest has not arrived.
    Waiting,
    /// The client sends no more.
    Ended,
    /// The connection has failed.
    Failed,
}

impl HttpExchange {
    pub(crate) fn new(stream: PeerStream) -> Self {
        Self { stream, input: Vec::new(), is_continued: false }
    }

    /// Returns whether a part of a request has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        !self.input.is_empty()
    }

    /// Reads the next request, as far as it has arrived.
    pub(crate) fn next_request(&mut self) -> HttpProgress {
        loop {
            let wants_continue = match ReceivedRequest::read(&self.input) {
                Ok(RequestProgress::Complete(request, length)) => {
                    self.input.drain(..length);
                    self.is_continued = false;
                    return HttpProgress::Request(request);
                }
                Ok(RequestProgress::Incomplete { wants_continue }) => wants_continue,
                Err(answer) => return HttpProgress::Refused(answer),
            };
            if wants_continue && !mem::replace(&mut self.is_continued, true) && self.write(CONTINUE).is_none() {
                return HttpProgress::Failed;
            }
            let mut room = [0; READ_BYTES];
            match self.stream.read(&mut room) {
                Ok(0) => return HttpProgress::Ended,
                Ok(bytes) => self.input.extend_from_slice(&room[..bytes]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return HttpProgress::Waiting,
                Err(_) => return HttpProgress::Failed,
            }
        }
    }

    /// Sends bytes. None if the connection has failed.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).ok()
    }

    /// Returns the stream, and the bytes behind the last request.
    pub(crate) fn into_parts(self) -> (PeerStream, Vec<u8>) {
        (self.stream, self.input)
    }
}
