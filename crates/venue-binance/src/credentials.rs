//! The key of an API user and its secret: read from a file that only its owner can read, or from the environment.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tickpath_settings::Mistakes;
use zeroize::{Zeroize, Zeroizing};

/// Permissions that a file with a secret must not give to others.
const OTHERS: u32 = 0o077;

/// Key of an API user and its secret. They are overwritten when they are dropped, and their debug text hides them.
///
/// The form of the secret decides how requests are authenticated: a private key in PEM (`-----BEGIN PRIVATE KEY-----`,
/// Ed25519) logs the connection on once; any other text is a key of HMAC-SHA-256, which signs each request.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiCredentials {
    /// The API key.
    pub key: String,
    /// The secret key, or the private key in PEM.
    pub secret: String,
    /// Not used by this exchange; empty.
    pub passphrase: String,
}

/// Errors of credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("{file}: the credentials cannot be read ({reason}); name a file that this user may read", file = file.display())]
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
    /// A variable of the environment is missing.
    #[error("the variable {0} is not set; set it, or name a file with the credentials")]
    Variable(&'static str),
    /// The key is no API key.
    #[error("an API key has letters and digits only; copy it from the exchange's page of API keys, without spaces")]
    Key,
    /// The secret is empty.
    #[error("the secret of the API key is empty; copy it from the exchange's page of API keys")]
    NoSecret,
    /// The secret begins like a private key, and is none that can sign.
    #[error("the private key cannot be used; it must be an unencrypted Ed25519 key in PKCS#8, as PEM")]
    PrivateKey,
}

impl ApiCredentials {
    /// Reads a TOML file with `key` and `secret`, which only its owner may read and write (mode 0600). A private key
    /// stands between three quotation marks.
    pub fn read(file: &Path) -> Result<Self, CredentialsError> {
        let unreadable = |reason| CredentialsError::Unreadable { file: file.to_owned(), reason };
        let mut opened = File::open(file).map_err(unreadable)?;
        let mode = opened.metadata().map_err(unreadable)?.mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(CredentialsError::Exposed { file: file.to_owned(), mode });
        }
        let mut text = Zeroizing::new(String::new());
        opened.read_to_string(&mut text).map_err(unreadable)?;
        let read = tickpath_settings::parse(&text, file, |top| Self {
            key: top.require_text("key"),
            secret: top.require_text("secret"),
            passphrase: top.text("passphrase").unwrap_or_default(),
        });
        read?.checked()
    }

    /// Reads the variables `BINANCE_API_KEY` and `BINANCE_API_SECRET` of the environment.
    pub fn from_environment() -> Result<Self, CredentialsError> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    /// Does as [`Self::from_environment`], with these variables.
    pub fn from_variables(variable: &dyn Fn(&'static str) -> Option<String>) -> Result<Self, CredentialsError> {
        let require = |name| variable(name).ok_or(CredentialsError::Variable(name));
        let key = require("BINANCE_API_KEY")?;
        let secret = require("BINANCE_API_SECRET")?;
        Self { key, secret, passphrase: String::new() }.checked()
    }

    fn checked(self) -> Result<Self, CredentialsError> {
        if self.key.is_empty() || !self.key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(CredentialsError::Key);
        }
        if self.secret.trim().is_empty() {
            return Err(CredentialsError::NoSecret);
        }
        Ok(self)
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
        f.write_str("ApiCredentials(hidden)")
    }
}
