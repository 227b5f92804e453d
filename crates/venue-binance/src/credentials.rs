//! The key of an API user and its secret: read from a file that only its owner can read, or from the environment.

use std::fmt;
use std::path::Path;

use tickpath_settings::{Mistakes, SecretFileError, read_secret_text};
use zeroize::Zeroize;

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
    /// The file cannot be read, or other users may.
    #[error(transparent)]
    File(#[from] SecretFileError),
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
        let text = read_secret_text(file)?;
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
