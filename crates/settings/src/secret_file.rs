//! A file with secrets, which only its owner may use.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Permissions of other users, which the file must not have.
const OTHER_USERS: u32 = 0o077;

/// Errors of a file with secrets.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The file cannot be read.
    #[error(
        "{file}: the credentials cannot be read ({reason}); name a file that this user may read",
        file = file.display()
    )]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// Other users may read or write the file.
    #[error("{file}: other users may use this file (mode {mode:04o}); run chmod 600 on it", file = file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// Reads the text of a file that only its owner may use (mode 0600). The text is erased from memory when it is dropped.
pub fn read_secret_text(file: &Path) -> Result<Zeroizing<String>, SecretFileError> {
    let unreadable = |reason| SecretFileError::Unreadable { file: file.to_owned(), reason };
    let mut opened = File::open(file).map_err(unreadable)?;
    let metadata = opened.metadata().map_err(unreadable)?;
    let mode = metadata.mode() & 0o7777;
    if mode & OTHER_USERS != 0 {
        return Err(SecretFileError::Exposed { file: file.to_owned(), mode });
    }
    // With enough room from the start, no copy of the text is left behind in memory.
    let room = usize::try_from(metadata.len()).unwrap_or(0).saturating_add(1);
    let mut text = Zeroizing::new(String::with_capacity(room));
    opened.read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}
