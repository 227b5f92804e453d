//! A file that names the account to which the orders of a journal belong.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Errors of [`bind_account`].
#[derive(Debug, thiserror::Error)]
pub enum AccountFileError {
    /// The orders of the journal belong to another account.
    // Short, because the reason of a line that is down has little room.
    #[error("key of {account}, journal of {bound}: use its key")]
    OtherAccount {
        /// Account of the key.
        account: String,
        /// Account that the file names.
        bound: String,
    },
    /// The file cannot be read or written.
    #[error("{}: cannot be kept ({reason}); it names the account of the journal, in a folder that this user may write to", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
}

/// Compares an account with the one that the file names. A missing file is written, and synced.
pub fn bind_account(file: &Path, account: &str) -> Result<(), AccountFileError> {
    let failed = |reason| AccountFileError::Io { file: file.to_owned(), reason };
    match fs::read_to_string(file) {
        Ok(text) if text.trim() == account => Ok(()),
        // A file without a name was cut off before it was synced, so that no order depended on it.
        Ok(text) if text.trim().is_empty() => write(file, account).map_err(failed),
        Ok(text) => Err(AccountFileError::OtherAccount { account: account.to_owned(), bound: text.trim().to_owned() }),
        Err(e) if e.kind() == ErrorKind::NotFound => write(file, account).map_err(failed),
        Err(e) => Err(failed(e)),
    }
}

fn write(file: &Path, account: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    written.write_all(format!("{account}\n").as_bytes())?;
    written.sync_all()?;
    fs::rename(&new, file)?;
    match file.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_account_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("venue-1.account");
        bind_account(&file, "okx 7").unwrap();
        bind_account(&file, "okx 7").unwrap();
        let sentence = bind_account(&file, "okx 8").unwrap_err().to_string();
        assert!(sentence.contains("okx 8") && sentence.contains("okx 7"), "{sentence}");
        fs::write(&file, "").unwrap();
        bind_account(&file, "okx 8").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "okx 8\n");
        let nowhere = folder.path().join("none/venue-1.account");
        assert!(matches!(bind_account(&nowhere, "okx 8"), Err(AccountFileError::Io { .. })));
    }
}
