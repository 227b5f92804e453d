//! Errors of a connection and of a send.

use std::io;
use std::sync::Arc;

use tickpath_clock::CalibrationError;
use tickpath_market::MessageError;
use tickpath_oms_protocol::{FrameError, LogonRejectReason, ScramError};

/// Errors of a connection that cannot be made, or was lost.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The text is not an address.
    #[error(
        "'{0}' is no address of an OMS; write unix:///path/oms.sock, shm+unix:///path/oms.sock, tcp://HOST:PORT or \
         tls://HOST:PORT?ca=FILE, where a path begins with /"
    )]
    Address(String),
    /// The clock to stamp requests with is missing.
    #[error(transparent)]
    Clock(Arc<CalibrationError>),
    /// No process accepts the connection.
    #[error("no OMS answers at {place}: {reason}; start it with `tickpath oms`, or give its address")]
    Unreachable {
        /// The address.
        place: String,
        /// The operating system's error.
        reason: Arc<io::Error>,
    },
    /// The connection cannot be encrypted, or the other end has the wrong identity.
    #[error("there is no TLS with the OMS at {place}: {reason}")]
    Tls {
        /// The address.
        place: String,
        /// Reason and remedy.
        reason: String,
    },
    /// The logon took too long.
    #[error("the OMS at {place} did not finish the logon within {ms} ms; is it busy, or is this another's address?")]
    LogonTimeout {
        /// The address.
        place: String,
        /// Timeout, in milliseconds.
        ms: u32,
    },
    /// One side could not prove its identity.
    #[error(transparent)]
    Logon(#[from] ScramError),
    /// The OMS rejects the client, or ends its session.
    #[error("the OMS refused: {sentence}")]
    Refused {
        /// Reason, if this version knows it.
        refusal: Option<LogonRejectReason>,
        /// The OMS's own text.
        sentence: String,
    },
    /// The OMS has ended the connection.
    #[error("the OMS ended the connection: {0}")]
    LoggedOut(String),
    /// The bytes received are not frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The frame received is not allowed here.
    #[error("the OMS {0}; are both of the same version?")]
    Protocol(&'static str),
    /// The operating system lost the connection.
    #[error("the connection to the OMS was lost: {0}")]
    Lost(Arc<io::Error>),
    /// The other side closed the connection.
    #[error("the OMS closed the connection without a reason; its log may have it")]
    Closed,
    /// No answer arrived in time.
    #[error("the OMS has not listed its instruments within {0} ms; is it busy? try again")]
    Unanswered(u32),
    /// No frame arrived for too long.
    #[error("the OMS sent nothing for {0} ms and is considered dead")]
    Silent(u32),
}

/// Errors of a request that was not sent. Each returns the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClientSendError<T> {
    /// The output buffer is full: the OMS takes requests too slowly.
    #[error("the OMS does not take the requests as fast as they come; poll, and send this one again")]
    Full(T),
    /// The request is malformed; the OMS would end the connection for it.
    #[error("this is no request: {reason}; set the field, and send it again")]
    Malformed {
        /// The request.
        given: T,
        /// The mistake in it.
        reason: MessageError,
    },
    /// The OMS is too old for the request, and would end the connection for it.
    #[error(
        "this OMS is of an older version, which supports no triggers or no client ids; send an order without, or \
         update the OMS"
    )]
    Unsupported(T),
    /// There is no connection now.
    #[error("there is no connection to the OMS; poll until it is made again, and send this request if it still holds")]
    Disconnected(T),
}

impl ClientError {
    /// Returns true if a retry cannot help, or would take the session from the client that has it now.
    pub(crate) fn is_final(&self) -> bool {
        self.is_session_taken() || matches!(self, Self::Refused { refusal: Some(LogonRejectReason::Password), .. })
    }

    /// Returns true if another client has the session.
    pub fn is_session_taken(&self) -> bool {
        matches!(self, Self::Refused { refusal: Some(LogonRejectReason::InUse), .. })
    }

    /// Returns the error of an established connection that the operating system reports.
    pub(crate) fn lost(reason: io::Error) -> Self {
        Self::Lost(Arc::new(reason))
    }

    /// Returns a peer's text in a printable form.
    pub(crate) fn sentence(text: &[u8]) -> String {
        const MAX_CHARS: usize = 300;
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        String::from_utf8_lossy(text).chars().map(printable).take(MAX_CHARS).collect()
    }
}

impl<T> ClientSendError<T> {
    /// Returns the request that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(given)
            | Self::Disconnected(given)
            | Self::Unsupported(given)
            | Self::Malformed { given, .. } => given,
        }
    }
}
