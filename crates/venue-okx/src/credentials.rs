//! Keys of the API. No error, no `Debug` form and no URL shows them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use zeroize::{Zeroize, Zeroizing};

/// Variables of the environment: key, secret and passphrase.
const VARIABLES: [&str; 3] = ["OKX_API_KEY", "OKX_API_SECRET", "OKX_API_PASSPHRASE"];
/// Permissions of other users, which the file must not have.
const OTHER_USERS: u32 = 0o077;
/// Stands for a secret in a text of OKX.
const HIDDEN: &str = "***";

/// Key, secret and passphrase of an account's API, erased from memory when they are dropped.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiCredentials {
    /// Key.
    pub key: String,
    /// Secret, which signs.
    pub secret: String,
    /// Passphrase that was chosen with the key.
    pub passphrase: String,
}

/// Errors of credentials that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
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
    /// The file does not hold exactly the three texts.
    #[error(
        "{file}:{line}: these are no credentials; write key, secret and passphrase, each as a text in quotes",
        file = file.display()
    )]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Line of the mistake, from 1.
        line: usize,
    },
    /// A variable of the environment is missing.
    #[error("the environment has no {0}; set it, or name a file with the credentials")]
    Variable(&'static str),
}

impl ApiCredentials {
    /// Reads a TOML file with the texts `key`, `secret` and `passphrase`, which only its owner may use.
    pub fn read(file: &Path) -> Result<Self, CredentialsError> {
        let unreadable = |reason| CredentialsError::Unreadable { file: file.to_owned(), reason };
        let mut opened = File::open(file).map_err(unreadable)?;
        let metadata = opened.metadata().map_err(unreadable)?;
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & OTHER_USERS != 0 {
            return Err(CredentialsError::Exposed { file: file.to_owned(), mode });
        }
        // With enough room from the start, no copy of the text is left behind in memory.
        let room = usize::try_from(metadata.len()).unwrap_or(0).saturating_add(1);
        let mut text = Zeroizing::new(String::with_capacity(room));
        opened.read_to_string(&mut text).map_err(unreadable)?;
        toml::from_str(&text).map_err(|e| {
            // The parser's own sentence may quote a secret.
            let mistake = e.span().and_then(|span| text.get(..span.start));
            let line = mistake.map_or(1, |before| before.matches('\n').count() + 1);
            CredentialsError::Malformed { file: file.to_owned(), line }
        })
    }

    /// Reads the variables `OKX_API_KEY`, `OKX_API_SECRET` and `OKX_API_PASSPHRASE` of the environment.
    pub fn from_environment() -> Result<Self, CredentialsError> {
        let variable = |name| std::env::var(name).map_err(|_| CredentialsError::Variable(name));
        let [key, secret, passphrase] = VARIABLES.map(variable);
        Ok(Self { key: key?, secret: secret?, passphrase: passphrase? })
    }

    /// Returns a text without these secrets, for messages: OKX quotes requests in some of its errors.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        let secrets = [&self.key, &self.secret, &self.passphrase];
        secrets.into_iter().filter(|secret| !secret.is_empty()).fold(text.to_owned(), |text, secret| {
            let text = Zeroizing::new(text);
            text.replace(secret.as_str(), HIDDEN)
        })
    }
}

impl Drop for ApiCredentials {
    fn drop(&mut self) {
        self.key.zeroize();
        self.secret.zeroize();
        self.passphrase.zeroize();
    }
}

impl fmt::Debug for ApiCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiCredentials")
    }
}
