//! Keys of signatures, and signatures in base64.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use zeroize::Zeroizing;

use super::recipe::{LogonRecipeError, LogonSecret, SignatureAlgorithm};

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// A key that can sign.
pub(crate) enum SigningKey {
    Ed25519(Box<Ed25519KeyPair>),
    Rsa(Box<RsaKeyPair>),
    Hmac(Box<hmac::Key>),
}

impl SigningKey {
    /// Reads a key in the form of its algorithm.
    pub(crate) fn read(algorithm: SignatureAlgorithm, key: &LogonSecret) -> Result<Self, LogonRecipeError> {
        let text = key.expose().trim();
        match algorithm {
            SignatureAlgorithm::Ed25519 => {
                let wrong = LogonRecipeError::PrivateKey("Ed25519");
                let pair = pem_body(text).and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok());
                pair.map(|pair| Self::Ed25519(Box::new(pair))).ok_or(wrong)
            }
            SignatureAlgorithm::RsaSha256 => {
                let wrong = LogonRecipeError::PrivateKey("RSA");
                let pair = pem_body(text).and_then(|der| RsaKeyPair::from_pkcs8(&der).ok());
                pair.map(|pair| Self::Rsa(Box::new(pair))).ok_or(wrong)
            }
            SignatureAlgorithm::HmacSha256 => hmac_key(hmac::HMAC_SHA256, text),
            SignatureAlgorithm::HmacSha512 => hmac_key(hmac::HMAC_SHA512, text),
        }
    }

    /// Returns the signature of a payload in base64. An RSA signature is empty if the system has no random numbers, its
    /// protection against timing attacks; the venue then refuses the logon.
    pub(crate) fn sign(&self, payload: &[u8]) -> String {
        match self {
            Self::Ed25519(pair) => STANDARD.encode(pair.sign(payload)),
            Self::Hmac(key) => STANDARD.encode(hmac::sign(key, payload)),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), payload, &mut signature);
                signed.map(|()| STANDARD.encode(&signature)).unwrap_or_default()
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(hidden)")
    }
}

fn hmac_key(algorithm: hmac::Algorithm, text: &str) -> Result<SigningKey, LogonRecipeError> {
    let secret = STANDARD.decode(text).map(Zeroizing::new).map_err(|_| LogonRecipeError::HmacKey)?;
    if secret.is_empty() {
        return Err(LogonRecipeError::HmacKey);
    }
    Ok(SigningKey::Hmac(Box::new(hmac::Key::new(algorithm, &secret))))
}

/// Returns the bytes of a private key in PEM.
fn pem_body(pem: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (body, _) = pem.strip_prefix(PEM_BEGIN)?.split_once(PEM_END)?;
    let body: Zeroizing<String> = Zeroizing::new(body.chars().filter(|c| !c.is_whitespace()).collect());
    STANDARD.decode(body.as_bytes()).map(Zeroizing::new).ok()
}
