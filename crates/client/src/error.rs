//! Why there is no connection, or no more.

use std::io;
use std::sync::Arc;

use tickpath_clock::CalibrationError;
use tickpath_market::MessageError;
use tickpath_session::{FrameError, Refusal, ScramError};

/// Why a connection cannot be made, or was lost.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error(
        "'{0}' is no address of an OMS; write unix:///path/oms.sock, shm+unix:///path/oms.sock, tcp://HOST:PORT or \
         tls://HOST:PORT?ca=FILE, where a path begins with /"
    )]
    Address(String),
    /// There is no clock to stamp requests with.
    #[error(transparent)]
    Clock(Arc<CalibrationError>),
    /// Nobody takes the connection.
    #[error("no OMS answers at {place}: {reason}; is it running, and is this its address?")]
    Unreachable {
        /// Where it should be.
        place: String,
        /// What the operating system says.
        reason: Arc<io::Error>,
    },
    /// The connection cannot be encrypted, or its other end is not who it should be.
    #[error("there is no TLS with the OMS at {place}: {reason}")]
    Tls {
        /// Where it is.
        place: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The logon takes too long.
    #[error("the OMS at {place} did not finish the logon within {ms} ms; is it busy, or is this another's address?")]
    Late {
        /// Where it is.
        place: String,
        /// How long it had, in milliseconds.
        ms: u32,
    },
    /// One side could not prove who it is.
    #[error(transparent)]
    Logon(#[from] ScramError),
    /// The OMS does not let the client in, or not any more.
    #[error("the OMS refused: {sentence}")]
    Refused {
        /// Why, if this version knows the reason.
        refusal: Option<Refusal>,
        /// The OMS's own words.
        sentence: String,
    },
    /// The OMS ends the connection.
    #[error("the OMS ended the connection: {0}")]
    LoggedOut(String),
    /// What came are no frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// What came makes no sense here.
    #[error("the OMS {0}; are both of the same version?")]
    Protocol(&'static str),
    /// The operating system lost the connection.
    #[error("the connection to the OMS was lost: {0}")]
    Lost(Arc<io::Error>),
    /// The other side closed the connection.
    #[error("the OMS closed the connection without a word; its log tells why")]
    Closed,
    /// An answer has not come in time.
    #[error("the OMS has not listed its instruments within {0} ms; is it busy? try again")]
    Unanswered(u32),
    /// Nothing came for too long.
    #[error("the OMS said nothing for {0} ms and is taken as gone")]
    Silent(u32),
}

/// A request that did not leave. It is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError<T> {
    /// More is on its way than the OMS takes.
    #[error("the OMS does not take the requests as fast as they come; poll, and send this one again")]
    Full(T),
    /// The OMS would end the connection for it.
    #[error("this is no request: {reason}; set the field, and send it again")]
    Malformed {
        /// The request.
        given: T,
        /// What is wrong with it.
        reason: MessageError,
    },
    /// The OMS would end the connection for it.
    #[error("this OMS is of an older version, which knows no triggers; send an order without one, or have it updated")]
    Older(T),
    /// There is no connection now.
    #[error("there is no connection to the OMS; poll until it is made again, and send this request if it still holds")]
    Disconnected(T),
}

impl ClientError {
    /// True if trying again cannot help, or would take the session from another client that has it now.
    pub(crate) fn is_final(&self) -> bool {
        self.is_of_another() || matches!(self, Self::Refused { refusal: Some(Refusal::Password), .. })
    }

    /// True if another client has the session.
    pub fn is_of_another(&self) -> bool {
        matches!(self, Self::Refused { refusal: Some(Refusal::InUse), .. })
    }

    /// What the operating system says of a connection that was there.
    pub(crate) fn lost(reason: io::Error) -> Self {
        Self::Lost(Arc::new(reason))
    }

    /// What a peer says in its own words, made fit to be printed.
    pub(crate) fn sentence(text: &[u8]) -> String {
        const MOST_CHARS: usize = 300;
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        String::from_utf8_lossy(text).chars().map(printable).take(MOST_CHARS).collect()
    }
}

impl<T> SendError<T> {
    /// What did not leave.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(given) | Self::Disconnected(given) | Self::Older(given) | Self::Malformed { given, .. } => given,
        }
    }
}
