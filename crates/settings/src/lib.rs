//! Settings from a TOML file; all mistakes of a file are reported at once, each with its line.
//!
//! ```
//! # use std::path::Path;
//! let text = "[listen]\nport = 80\nprot = 81\nwait = 'sometimes'\n";
//! let mistakes = tickpath_settings::parse(text, Path::new("oms.toml"), |file| {
//!     file.section("listen", |listen| {
//!         let port: u16 = listen.require_number("port", 1024..=65535);
//!         let is_busy = listen.one_of("wait", &[("busy", true), ("block", false)]).unwrap_or(false);
//!         (port, is_busy)
//!     })
//! });
//! let mistakes = mistakes.expect_err("three are wrong").to_string();
//! assert_eq!(
//!     mistakes,
//!     "oms.toml:2: [listen] port: 80 is out of range; use 1024 to 65535\n\
//!      oms.toml:3: [listen] unknown key 'prot'; did you mean 'port'?\n\
//!      oms.toml:4: [listen] wait: 'sometimes' is not allowed; use busy or block"
//! );
//! ```
//!
//! A program reads the keys of a [`Section`]; a key that it does not read is a mistake. A wrong value is returned as if
//! it were missing and its mistake is recorded, so that the program continues and finds the next mistake. The settings
//! are returned only if there was no mistake. [`table_lines`] and [`table_cells`] read the tables beside such a file,
//! and [`read_secret_text`] a file that only its owner may use. [`bind_account`] keeps the account of a journal in a file.

mod account_file;
mod mistakes;
mod secret_file;
mod section;
mod table;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use account_file::{AccountFileError, bind_account};
pub use mistakes::Mistakes;
pub use secret_file::{SecretFileError, read_secret_text};
pub use section::{Section, parse};
pub use table::{TORN_CELL, table_cells, table_lines};

/// Errors of a settings file.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file does not exist.
    #[error("{file}: there is no such file; create it, or name another", file = file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file cannot be read.
    #[error("{file}: cannot be read ({reason}); it must be a text file that this user may read", file = file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The file has mistakes.
    #[error(transparent)]
    Invalid(#[from] Mistakes),
}

/// Reads a file and returns the result of `take`, if the file has no mistake.
pub fn read<T>(path: &Path, take: impl FnOnce(&mut Section<'_>) -> T) -> Result<T, SettingsError> {
    Ok(parse(&read_text(path)?, path, take)?)
}

/// Reads the text of a file.
pub fn read_text(path: &Path) -> Result<String, SettingsError> {
    fs::read_to_string(path).map_err(|reason| match reason.kind() {
        io::ErrorKind::NotFound => SettingsError::Missing { file: path.to_owned() },
        _ => SettingsError::Unreadable { file: path.to_owned(), reason },
    })
}
