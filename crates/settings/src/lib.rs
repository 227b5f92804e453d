//! Settings from a TOML file, with every mistake of the file told at once, each with its line.
//!
//! ```
//! # use std::path::Path;
//! let text = "[listen]\nport = 80\nprot = 81\nwait = 'sometimes'\n";
//! let mistakes = tickpath_settings::parse(text, Path::new("oms.toml"), |file| {
//!     file.section("listen", |listen| {
//!         let port: u16 = listen.need_number("port", 1024..=65535);
//!         let is_busy = listen.one_of("wait", &[("busy", true), ("block", false)]).unwrap_or(false);
//!         (port, is_busy)
//!     })
//! });
//! let told = mistakes.expect_err("three are wrong").to_string();
//! assert_eq!(
//!     told,
//!     "oms.toml:2: [listen] port: 80 is out of range; use 1024 to 65535\n\
//!      oms.toml:3: [listen] unknown key 'prot'; did you mean 'port'?\n\
//!      oms.toml:4: [listen] wait: 'sometimes' is none of its words; use busy or block"
//! );
//! ```
//!
//! A program asks a [`Section`] for its keys; what nobody asked for is a mistake. A value that is wrong comes back as
//! if it were not there, and its mistake is kept, so that the program goes on and finds the next one. Whatever it makes
//! of the file is handed over only if there was no mistake.

mod mistakes;
mod section;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use mistakes::Mistakes;
pub use section::Section;

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// There is no such file.
    #[error("{file}: there is no such file; name one that is there", file = file.display())]
    Missing {
        /// Which.
        file: PathBuf,
    },
    /// It cannot be read.
    #[error("{file}: cannot be read ({reason}); it must be a text file that this user may read", file = file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// It says what it must not.
    #[error(transparent)]
    Wrong(#[from] Mistakes),
}

/// Reads a file: what `take` makes of it, if there is no mistake in it.
pub fn read<T>(path: &Path, take: impl FnOnce(&mut Section<'_>) -> T) -> Result<T, SettingsError> {
    Ok(parse(&read_text(path)?, path, take)?)
}

/// The text of a file, or why there is none.
pub fn read_text(path: &Path) -> Result<String, SettingsError> {
    fs::read_to_string(path).map_err(|reason| match reason.kind() {
        io::ErrorKind::NotFound => SettingsError::Missing { file: path.to_owned() },
        _ => SettingsError::Unreadable { file: path.to_owned(), reason },
    })
}

/// Takes a file's text as [`read`] does; `file` is what its mistakes and its relative paths begin with.
pub fn parse<T>(text: &str, file: &Path, take: impl FnOnce(&mut Section<'_>) -> T) -> Result<T, Mistakes> {
    section::take(text, file, take)
}
