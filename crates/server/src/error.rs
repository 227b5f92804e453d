//! Why there is no server.

use tickpath_oms::OmsError;

use crate::tls::TlsError;

/// Why an OMS does not become a server.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody can be listened for there.
    #[error("cannot listen on {place}: {reason}; name another place, or end who listens there")]
    Listen {
        /// Where.
        place: String,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The system gives no more sockets.
    #[error("the system gives no sockets ({0}); raise the limit of open files")]
    Sockets(#[source] std::io::Error),
    /// The users' file cannot be read.
    #[error("{0}")]
    Users(String),
    /// There is no certificate to show.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The history of what was said cannot be read.
    #[error(transparent)]
    History(#[from] tickpath_log::OpenError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

impl From<OpenError> for OmsError {
    fn from(e: OpenError) -> Self {
        Self::Front(Box::new(e))
    }
}
