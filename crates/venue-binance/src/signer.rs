//! Signatures of requests, by the form of the secret: Ed25519 for a session, HMAC-SHA-256 for each request.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::signature::Ed25519KeyPair;
use zeroize::Zeroizing;

use crate::{ApiCredentials, CredentialsError};

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Signer of requests with an API user's credentials.
///
/// ```
/// use tickpath_venue_binance::{ApiCredentials, RequestSigner};
///
/// let (key, secret) = ("vmPUZE6mv9SD5VNH".to_owned(), "NhqPtmdSJYdKjVHj".to_owned());
/// let signer = RequestSigner::new(ApiCredentials { key, secret, passphrase: String::new() })?;
/// let mut signature = String::new();
/// signer.sign("apiKey=vmPUZE6mv9SD5VNH&timestamp=1645423376532", &mut signature);
/// assert_eq!((signature.len(), signer.has_session()), (64, false));
/// # Ok::<(), tickpath_venue_binance::CredentialsError>(())
/// ```
pub struct RequestSigner {
    credentials: ApiCredentials,
    secret: SigningKey,
}

enum SigningKey {
    Session(Ed25519KeyPair),
    EachRequest(hmac::Key),
}

impl RequestSigner {
    /// Makes a signer, with the algorithm that the form of the secret selects.
    pub fn new(credentials: ApiCredentials) -> Result<Self, CredentialsError> {
        if credentials.key.is_empty() || !credentials.key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(CredentialsError::Key);
        }
        let secret = match credentials.secret.trim() {
            "" => return Err(CredentialsError::NoSecret),
            pem if pem.starts_with("-----BEGIN ") => SigningKey::Session(private_key(pem)?),
            text => SigningKey::EachRequest(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())),
        };
        Ok(Self { credentials, secret })
    }

    /// Returns whether a connection is logged on once, so that its requests need no signature.
    pub fn has_session(&self) -> bool {
        matches!(self.secret, SigningKey::Session(_))
    }

    /// Appends the signature of a payload: the parameters of a request in the order of their names, `name=value`, with
    /// `&` between them.
    pub fn sign(&self, payload: &str, signature: &mut String) {
        match &self.secret {
            SigningKey::Session(pair) => STANDARD.encode_string(pair.sign(payload.as_bytes()), signature),
            SigningKey::EachRequest(key) => {
                let tag = hmac::sign(key, payload.as_bytes());
                let bytes: &[u8] = tag.as_ref();
                for byte in bytes {
                    signature.push(hex_digit(byte >> 4));
                    signature.push(hex_digit(byte & 15));
                }
            }
        }
    }

    /// Returns the API key.
    pub(crate) fn api_key(&self) -> &str {
        &self.credentials.key
    }
}

impl fmt::Debug for RequestSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestSigner(hidden)")
    }
}

fn hex_digit(value: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(value)])
}

/// Reads a private key from its PEM.
fn private_key(pem: &str) -> Result<Ed25519KeyPair, CredentialsError> {
    let body = pem.strip_prefix(PEM_BEGIN).and_then(|rest| rest.split_once(PEM_END));
    let (body, _) = body.ok_or(CredentialsError::PrivateKey)?;
    let body: Zeroizing<String> = Zeroizing::new(body.chars().filter(|c| !c.is_whitespace()).collect());
    let der = STANDARD.decode(body.as_bytes()).map(Zeroizing::new).map_err(|_| CredentialsError::PrivateKey)?;
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| CredentialsError::PrivateKey)
}
