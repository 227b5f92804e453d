//! Credentials of a Logon: the fields that a venue asks for, signed at the moment of the logon.
//!
//! ```text
//!   LogonRecipe (configured) ── LogonSigner::new ──> LogonSigner ── write(LogonHeader) ──> fields of the body
//!
//!   Password    553, 554
//!   Signed      553, 554, and base64 of a signature over values of the Logon, in 96 behind 95, or in another tag
//!               binance:                 Ed25519,      35, 49, 56, 34, 52 joined by SOH           -> 96
//!               coinbase:                HMAC-SHA256,  52, 35, 34, 49, 56, 554 joined by SOH      -> 96
//!               coinbase_international:  HMAC-SHA256,  52, 553, 56, 554 without a separator       -> 58
//!   Deribit     96 = milliseconds "." base64(nonce), 554 = base64(SHA256(96 and the secret))
//!   Kraken      5025 = milliseconds, 554 = base64(HMAC-SHA512(secret, SHA256(fields 35, 34, 49, 56, 553, then 5025)))
//!   Twse        96 = three digits that differ from the last five, and the thousands and hundreds of them × password
//! ```
//!
//! Fixed fields of a dialect, such as 25035 or 9001, are fields of the session's configuration. No source of random
//! numbers is needed: the nonces derive from the secret and the time.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac};

use crate::message_writer::MessageWriter;
use crate::soh::SOH;
use crate::tags::{self, Tag};
use crate::values::{TimePrecision, write_utc_timestamp};

pub use recipe::{LogonRecipe, LogonRecipeError, LogonSecret, SignatureAlgorithm, SignedLogon};

use nonces::{AppendNumbers, IncreasingMs};
use signing_key::SigningKey;

mod nonces;
mod recipe;
mod signing_key;

/// Nonce of Kraken, in milliseconds since the Unix epoch.
const KRAKEN_NONCE: Tag = 5025;
/// Greatest password of TWSE and TPEx: four digits.
const MAX_TWSE_PASSWORD: u16 = 9_999;
/// Fields of the header that a signature can cover.
const HEADER_TAGS: [Tag; 5] =
    [tags::MSG_TYPE, tags::SENDER_COMP_ID, tags::TARGET_COMP_ID, tags::MSG_SEQ_NUM, tags::SENDING_TIME];

/// Header of the Logon that is signed.
#[derive(Debug, Clone, Copy)]
pub struct LogonHeader<'a> {
    /// SenderCompID (49).
    pub sender: &'a str,
    /// TargetCompID (56).
    pub target: &'a str,
    /// MsgSeqNum (34).
    pub number: u64,
    /// SendingTime (52), in nanoseconds since the Unix epoch.
    pub sending_time_ns: u64,
    /// Precision in which SendingTime is written.
    pub precision: TimePrecision,
}

/// Writer of a recipe's fields. It holds the keys and the last nonces; its debug text hides them.
pub struct LogonSigner {
    scheme: Scheme,
}

enum Scheme {
    Plain,
    Password { username: String, password: LogonSecret },
    Signed { logon: SignedLogon, key: SigningKey },
    Deribit { client_id: String, client_secret: LogonSecret, timestamps: IncreasingMs },
    Kraken { api_key: String, key: SigningKey, timestamps: IncreasingMs },
    Twse { password: u16, numbers: AppendNumbers },
}

impl LogonSigner {
    /// Reads the keys of a recipe.
    pub fn new(recipe: LogonRecipe) -> Result<Self, LogonRecipeError> {
        let scheme = match recipe {
            LogonRecipe::Plain => Scheme::Plain,
            LogonRecipe::Password { username, password } => {
                check_text("username", &username)?;
                check_text("password", password.expose())?;
                Scheme::Password { username, password }
            }
            LogonRecipe::Signed(logon) => {
                check_signed(&logon)?;
                let key = SigningKey::read(logon.algorithm, &logon.key)?;
                Scheme::Signed { logon, key }
            }
            LogonRecipe::Deribit { client_id, client_secret } => {
                check_text("client id", &client_id)?;
                check_text("client secret", client_secret.expose())?;
                Scheme::Deribit { client_id, client_secret, timestamps: IncreasingMs::default() }
            }
            LogonRecipe::Kraken { api_key, api_secret } => {
                check_text("API key", &api_key)?;
                let key = SigningKey::read(SignatureAlgorithm::HmacSha512, &api_secret)?;
                Scheme::Kraken { api_key, key, timestamps: IncreasingMs::default() }
            }
            LogonRecipe::Twse { password } if password > MAX_TWSE_PASSWORD => {
                return Err(LogonRecipeError::TwsePassword);
            }
            LogonRecipe::Twse { password } => Scheme::Twse { password, numbers: AppendNumbers::default() },
        };
        Ok(Self { scheme })
    }

    /// Writes the fields of the recipe into the body of a Logon. Each call makes a new nonce.
    pub fn write(&mut self, header: &LogonHeader<'_>, body: &mut MessageWriter) {
        for (tag, value) in self.fields(header) {
            body.bytes(tag, &value);
        }
    }

    /// Returns the fields of the recipe, in the order in which a Logon has them.
    fn fields(&mut self, header: &LogonHeader<'_>) -> Vec<(Tag, Vec<u8>)> {
        match &mut self.scheme {
            Scheme::Plain => Vec::new(),
            Scheme::Password { username, password } => credentials(username, password.expose()),
            Scheme::Signed { logon, key } => signed_fields(logon, key, header),
            Scheme::Deribit { client_id, client_secret, timestamps } => {
                let (data, password) = deribit_credentials(client_secret, timestamps.take(header.sending_time_ns));
                [raw_data(data), credentials(client_id, &password)].concat()
            }
            Scheme::Kraken { api_key, key, timestamps } => {
                let nonce = timestamps.take(header.sending_time_ns);
                let mut fields = credentials(api_key, &kraken_password(api_key, key, header, nonce));
                fields.push((KRAKEN_NONCE, nonce.to_string().into_bytes()));
                fields
            }
            Scheme::Twse { password, numbers } => {
                let number = u32::from(numbers.take(header.sending_time_ns));
                let key = number * u32::from(*password) / 100 % 100;
                raw_data(format!("{number:03}{key:02}"))
            }
        }
    }
}

impl fmt::Debug for LogonSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogonSigner(hidden)")
    }
}

/// Checks that a text can be the value of a field.
fn check_text(name: &'static str, text: &str) -> Result<(), LogonRecipeError> {
    let is_value = !text.is_empty() && !text.bytes().any(|byte| byte.is_ascii_control());
    if is_value { Ok(()) } else { Err(LogonRecipeError::Text(name)) }
}

fn check_signed(logon: &SignedLogon) -> Result<(), LogonRecipeError> {
    if let Some(username) = &logon.username {
        check_text("username", username)?;
    }
    if let Some(password) = &logon.password {
        check_text("password", password.expose())?;
    }
    let is_known = |tag: Tag| match tag {
        tags::USERNAME => logon.username.is_some(),
        tags::PASSWORD => logon.password.is_some(),
        tag => HEADER_TAGS.contains(&tag),
    };
    let unknown = logon.signed_tags.iter().copied().find(|&tag| !is_known(tag));
    unknown.map_or(Ok(()), |tag| Err(LogonRecipeError::SignedTag(tag)))
}

/// Returns username and password.
fn credentials(username: &str, password: &str) -> Vec<(Tag, Vec<u8>)> {
    vec![(tags::USERNAME, username.as_bytes().to_vec()), (tags::PASSWORD, password.as_bytes().to_vec())]
}

/// Returns RawData behind its length.
fn raw_data(data: String) -> Vec<(Tag, Vec<u8>)> {
    vec![(tags::RAW_DATA_LENGTH, data.len().to_string().into_bytes()), (tags::RAW_DATA, data.into_bytes())]
}

fn signed_fields(logon: &SignedLogon, key: &SigningKey, header: &LogonHeader<'_>) -> Vec<(Tag, Vec<u8>)> {
    let mut payload = Vec::new();
    for (index, tag) in logon.signed_tags.iter().enumerate() {
        if index > 0 && logon.is_separated {
            payload.push(SOH);
        }
        append_value(&mut payload, *tag, logon, header);
    }
    let signature = key.sign(&payload);
    let mut fields = match logon.signature_tag {
        tags::RAW_DATA => raw_data(signature),
        tag => vec![(tag, signature.into_bytes())],
    };
    let username = logon.username.as_ref().map(|username| (tags::USERNAME, username.as_bytes().to_vec()));
    let password = logon.password.as_ref().map(|password| (tags::PASSWORD, password.expose().as_bytes().to_vec()));
    fields.extend(username.into_iter().chain(password));
    fields
}

/// Appends the value of a field, as the Logon has it.
fn append_value(payload: &mut Vec<u8>, tag: Tag, logon: &SignedLogon, header: &LogonHeader<'_>) {
    match tag {
        tags::MSG_TYPE => payload.push(b'A'),
        tags::SENDER_COMP_ID => payload.extend_from_slice(header.sender.as_bytes()),
        tags::TARGET_COMP_ID => payload.extend_from_slice(header.target.as_bytes()),
        tags::MSG_SEQ_NUM => payload.extend_from_slice(header.number.to_string().as_bytes()),
        tags::SENDING_TIME => write_utc_timestamp(payload, header.sending_time_ns, header.precision),
        tags::USERNAME => payload.extend_from_slice(logon.username.as_deref().unwrap_or_default().as_bytes()),
        tags::PASSWORD => {
            let password = logon.password.as_ref().map(LogonSecret::expose).unwrap_or_default();
            payload.extend_from_slice(password.as_bytes());
        }
        _ => {}
    }
}

/// Returns RawData and the password of Deribit. The nonce is an HMAC of the timestamp, which nobody without the secret
/// can foresee.
fn deribit_credentials(client_secret: &LogonSecret, timestamp_ms: u64) -> (String, String) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, client_secret.expose().as_bytes());
    let nonce = hmac::sign(&key, timestamp_ms.to_string().as_bytes());
    let raw_data = format!("{timestamp_ms}.{}", STANDARD.encode(nonce));
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(raw_data.as_bytes());
    hash.update(client_secret.expose().as_bytes());
    let password = STANDARD.encode(hash.finish());
    (raw_data, password)
}

fn kraken_password(api_key: &str, key: &SigningKey, header: &LogonHeader<'_>, nonce: u64) -> String {
    let LogonHeader { sender, target, number, .. } = header;
    let fields = format!("35=A\x0134={number}\x0149={sender}\x0156={target}\x01553={api_key}\x01{nonce}");
    key.sign(digest::digest(&digest::SHA256, fields.as_bytes()).as_ref())
}
