//! Errors of the server.

use std::io;
use std::net::SocketAddr;

use tickpath_clock::CalibrationError;

/// Errors of opening a server.
#[derive(Debug, thiserror::Error)]
pub enum WebServerError {
    /// The server cannot listen at its address.
    #[error(
        "the simulated exchange cannot listen at {address}: {reason}; choose an address of this host and a free port"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The certificate cannot be made.
    #[error("no certificate can be made in the folder of temporary files: {0}; make room there, or set TMPDIR")]
    Certificate(io::Error),
    /// This host's clock cannot be read.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
}
