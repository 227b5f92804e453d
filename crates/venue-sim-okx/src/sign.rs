//! Signatures: base64 of HMAC-SHA256, over REST requests and WebSocket logins.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Text that a WebSocket login signs behind its timestamp.
pub(crate) const LOGIN_TEXT: &str = "GET/users/self/verify";

/// Returns whether a signature is the one of these parts, joined. A comparison takes the same time for each signature.
pub(crate) fn is_signed(secret: &str, parts: &[&[u8]], signature: &str) -> bool {
    let Ok(signature) = STANDARD.decode(signature) else { return false };
    let mut code = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key may have any length");
    for part in parts {
        code.update(part);
    }
    code.verify_slice(&signature).is_ok()
}
