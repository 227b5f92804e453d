//! Recipes as they are configured, and their mistakes.

use std::fmt;

use zeroize::Zeroizing;

use crate::tags::{self, Tag};

/// Credentials that a venue asks for at the logon. The debug text hides them.
#[derive(Clone, PartialEq, Eq)]
pub enum LogonRecipe {
    /// No credentials: CompIDs, addresses or certificates identify the session.
    Plain,
    /// Username (553) and password (554) in plain text.
    Password {
        /// Username (553).
        username: String,
        /// Password (554).
        password: LogonSecret,
    },
    /// A signature over values of the Logon.
    Signed(SignedLogon),
    /// Deribit: a hash over a nonce and the secret.
    Deribit {
        /// Client id (553).
        client_id: String,
        /// Client secret.
        client_secret: LogonSecret,
    },
    /// Kraken: an HMAC over the header and a nonce.
    Kraken {
        /// API key (553).
        api_key: String,
        /// API secret in base64, as Kraken issues it.
        api_secret: LogonSecret,
    },
    /// TWSE and TPEx: a number and two digits of its product with the password.
    Twse {
        /// Password of the socket, 0 to 9999.
        password: u16,
    },
}

/// Fields and signature of a Logon. The debug text hides them.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedLogon {
    /// Username (553), if the Logon has one.
    pub username: Option<String>,
    /// Password (554), if the Logon has one.
    pub password: Option<LogonSecret>,
    /// Algorithm of the signature.
    pub algorithm: SignatureAlgorithm,
    /// Key of the signature, in the form that its algorithm asks for.
    pub key: LogonSecret,
    /// Fields whose values are signed, in this order: some of 35, 49, 56, 34, 52, 553 and 554.
    pub signed_tags: Vec<Tag>,
    /// Whether SOH stands between the values.
    pub is_separated: bool,
    /// Field of the signature, which is base64. RawData (96) has its length in 95.
    pub signature_tag: Tag,
}

/// Algorithm of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// The key is an unencrypted PKCS#8 key in PEM.
    Ed25519,
    /// PKCS#1 v1.5 with SHA-256; the key is an unencrypted PKCS#8 key in PEM.
    RsaSha256,
    /// The key is base64.
    HmacSha256,
    /// The key is base64.
    HmacSha512,
}

/// Mistakes of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogonRecipeError {
    /// A text cannot be the value of a field.
    #[error("the {0} of the logon is empty or has a control character; copy it again from the venue's page")]
    Text(&'static str),
    /// The private key is no key of this algorithm.
    #[error("the private key of the logon cannot be used; it must be an unencrypted {0} key in PKCS#8, as PEM")]
    PrivateKey(&'static str),
    /// The key of an HMAC is not base64.
    #[error("the secret of the logon is not base64; copy it again from the venue's page of API keys, without spaces")]
    HmacKey,
    /// The signature cannot cover this field.
    #[error("the signature of the logon cannot cover {0}; sign 35, 49, 56, 34, 52, and 553 or 554 if they are set")]
    SignedTag(Tag),
    /// The password of TWSE has more than four digits.
    #[error("the password of TWSE and TPEx is a number from 0 to 9999; correct it")]
    TwsePassword,
}

/// A secret of a logon. It is erased from memory when it is dropped, and its debug text hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct LogonSecret(Zeroizing<String>);

impl LogonRecipe {
    /// Returns the recipe of Binance: an Ed25519 signature, for which the private key is PKCS#8 in PEM.
    pub fn binance(api_key: &str, private_key: LogonSecret) -> Self {
        Self::Signed(SignedLogon {
            username: Some(api_key.to_owned()),
            password: None,
            algorithm: SignatureAlgorithm::Ed25519,
            key: private_key,
            signed_tags: vec![
                tags::MSG_TYPE,
                tags::SENDER_COMP_ID,
                tags::TARGET_COMP_ID,
                tags::MSG_SEQ_NUM,
                tags::SENDING_TIME,
            ],
            is_separated: true,
            signature_tag: tags::RAW_DATA,
        })
    }

    /// Returns the recipe of Coinbase Exchange, whose SenderCompID is the API key. The secret is base64.
    pub fn coinbase(api_key: &str, api_secret: LogonSecret, passphrase: LogonSecret) -> Self {
        Self::Signed(SignedLogon {
            username: Some(api_key.to_owned()),
            password: Some(passphrase),
            algorithm: SignatureAlgorithm::HmacSha256,
            key: api_secret,
            signed_tags: vec![
                tags::SENDING_TIME,
                tags::MSG_TYPE,
                tags::MSG_SEQ_NUM,
                tags::SENDER_COMP_ID,
                tags::TARGET_COMP_ID,
                tags::PASSWORD,
            ],
            is_separated: true,
            signature_tag: tags::RAW_DATA,
        })
    }

    /// Returns the recipe of Coinbase International Exchange. The secret is base64.
    pub fn coinbase_international(api_key: &str, api_secret: LogonSecret, passphrase: LogonSecret) -> Self {
        Self::Signed(SignedLogon {
            username: Some(api_key.to_owned()),
            password: Some(passphrase),
            algorithm: SignatureAlgorithm::HmacSha256,
            key: api_secret,
            signed_tags: vec![tags::SENDING_TIME, tags::USERNAME, tags::TARGET_COMP_ID, tags::PASSWORD],
            is_separated: false,
            signature_tag: tags::TEXT,
        })
    }
}

impl LogonSecret {
    /// Returns the secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for LogonSecret {
    fn from(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }
}

impl From<Zeroizing<String>> for LogonSecret {
    fn from(text: Zeroizing<String>) -> Self {
        Self(text)
    }
}

impl fmt::Debug for LogonRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogonRecipe(hidden)")
    }
}

impl fmt::Debug for SignedLogon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedLogon(hidden)")
    }
}

impl fmt::Debug for LogonSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogonSecret(hidden)")
    }
}
