//! Faults that end the reading of a file.

use std::io;

/// Reason why a file cannot be read any further.
pub(crate) enum ReadFault {
    /// The operating system or a decompressor cannot read the bytes.
    Io(io::Error),
    /// The bytes are not as the format requires.
    Form(String),
}

impl From<io::Error> for ReadFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<String> for ReadFault {
    fn from(why: String) -> Self {
        Self::Form(why)
    }
}
