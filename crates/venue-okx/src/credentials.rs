//! Keys of the API. No error, no `Debug` form and no URL shows them.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tickpath_settings::{SecretFileError, read_secret_text};
use zeroize::{Zeroize, Zeroizing};

/// Variables of the environment: key, secret and passphrase.
const VARIABLES: [&str; 3] = ["OKX_API_KEY", "OKX_API_SECRET", "OKX_API_PASSPHRASE"];
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
    /// The file cannot be read, or other users may use it.
    #[error(transparent)]
    File(#[from] SecretFileError),
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
        let text = read_secret_text(file)?;
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
