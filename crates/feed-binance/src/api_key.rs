//! The API key that the SBE streams require, read from a file that only its owner can read, or from the environment.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tickpath_settings::Mistakes;

/// Permissions that a file with a key must not give to others.
const OTHERS: u32 = 0o077;

/// Key of an API user, which the SBE streams require. Its debug text hides the key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Errors of an API key.
#[derive(Debug, thiserror::Error)]
pub enum ApiKeyError {
    /// The file cannot be read.
    #[error("{file}: the key cannot be read ({reason}); name a file that this user may read", file = file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// Other users may read the file.
    #[error("{file}: other users may read or change it (mode {mode:o}); run chmod 600 on it", file = file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file has mistakes.
    #[error(transparent)]
    Invalid(#[from] Mistakes),
    /// The variable of the environment is missing.
    #[error("the variable {0} is not set; set it to the API key, or name a file")]
    Variable(String),
    /// The text is no API key.
    #[error("an API key has letters and digits only; copy it from the exchange's page of API keys, without spaces")]
    Form,
}

impl ApiKey {
    /// Reads a TOML file with `key`, which only its owner may read and write (mode 0600). The `secret` of a file for
    /// orders is passed over.
    pub fn read(file: &Path) -> Result<Self, ApiKeyError> {
        let unreadable = |reason| ApiKeyError::Unreadable { file: file.to_owned(), reason };
        let mut opened = File::open(file).map_err(unreadable)?;
        let mode = opened.metadata().map_err(unreadable)?.mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(ApiKeyError::Exposed { file: file.to_owned(), mode });
        }
        let mut text = String::new();
        opened.read_to_string(&mut text).map_err(unreadable)?;
        let key = tickpath_settings::parse(&text, file, |top| {
            for unused in ["secret", "passphrase"] {
                top.has(unused);
            }
            top.require_text("key")
        });
        key?.parse()
    }

    /// Reads a variable of the environment.
    pub fn from_variable(name: &str) -> Result<Self, ApiKeyError> {
        std::env::var(name).map_err(|_| ApiKeyError::Variable(name.to_owned()))?.parse()
    }

    /// Returns the key as text, for the header of the upgrade.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ApiKey {
    type Err = ApiKeyError;

    fn from_str(text: &str) -> Result<Self, ApiKeyError> {
        let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_key { Ok(Self(text.to_owned())) } else { Err(ApiKeyError::Form) }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}
