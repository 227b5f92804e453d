//! The error of opening a server.

use tickpath_oms_runtime::OmsError;

use crate::tls::TlsError;

/// Reason why an OMS cannot become a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerOpenError {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}; name another address, or stop the program that listens on it")]
    Listen(String, std::io::Error),
    /// The system gives no more sockets.
    #[error("the system gives no sockets ({0}); raise the limit of open files")]
    Sockets(#[source] std::io::Error),
    /// The users' file cannot be read.
    #[error("{0}")]
    Users(String),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The history of reports cannot be read.
    #[error(transparent)]
    History(#[from] tickpath_log::LogOpenError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

impl From<ServerOpenError> for OmsError {
    fn from(e: ServerOpenError) -> Self {
        Self::Front(Box::new(e))
    }
}
