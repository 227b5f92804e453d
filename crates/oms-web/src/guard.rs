//! Checks of a request before it is answered: a host name that is ours, the page's own origin, a login.

use std::net::IpAddr;

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, StatusCode};

use crate::logins::RequestLogin;
use crate::page_state::PageState;
use crate::tls::PageCertificate;

const TOKEN: HeaderName = HeaderName::from_static("x-tickpath-token");
/// Max bytes of an `Authorization` header's credentials.
const MAX_CREDENTIALS_BYTES: usize = 1_024;

pub(crate) type HttpRefusal = (StatusCode, String);

#[derive(Debug)]
pub(crate) struct LoginProof {
    pub cookie: String,
    pub token: String,
}

/// Returns the requested host, if it is an address, `localhost`, a configured name or, over TLS, a name of the
/// certificate. Any other name could belong to another site that points it here.
pub(crate) fn host(
    headers: &HeaderMap,
    names: &[String],
    certificate: Option<&PageCertificate>,
) -> Result<String, HttpRefusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let text = hosts.next().filter(|_| hosts.next().is_none()).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => text.split(':').next().unwrap_or_default(),
    };
    let is_ours = bare == "localhost"
        || bare.parse::<IpAddr>().is_ok()
        || names.iter().any(|name| name.eq_ignore_ascii_case(bare))
        || certificate.is_some_and(|certificate| certificate.is_for(bare));
    if is_ours {
        return Ok(text.to_owned());
    }
    refuse(
        StatusCode::MISDIRECTED_REQUEST,
        "request this by address, as localhost, or by a name in 'hosts' of oms.toml; other names are refused",
    )
}

/// Checks that the page itself sent a request, with JSON: no form of another site can send that.
pub(crate) fn check_same_origin(headers: &HeaderMap, host: &str, scheme: &str) -> Result<(), HttpRefusal> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_ours = text(ORIGIN) == Some(&format!("{scheme}://{host}"))
        && text(HeaderName::from_static("sec-fetch-site")).is_none_or(|site| site == "same-origin");
    if !is_ours {
        return refuse(StatusCode::FORBIDDEN, "only the page itself may ask for this");
    }
    match text(CONTENT_TYPE) {
        Some("application/json") => Ok(()),
        _ => refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send JSON"),
    }
}

/// Returns the login of a request that contains both its cookie and its token.
pub(crate) fn login(
    headers: &HeaderMap,
    cookie_name: &str,
    shown: &PageState,
) -> Result<(LoginProof, RequestLogin), HttpRefusal> {
    let token = headers.get(TOKEN).and_then(|token| token.to_str().ok()).unwrap_or_default().to_owned();
    let proof = cookie(headers, cookie_name).map(|cookie| LoginProof { cookie, token });
    let login = proof.and_then(|proof| {
        let login = shown.logins.find(&proof.cookie, &proof.token)?;
        Some((proof, login))
    });
    login.ok_or_else(|| (StatusCode::UNAUTHORIZED, "log in first".to_owned()))
}

fn cookie(headers: &HeaderMap, wanted: &str) -> Option<String> {
    let all = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = all.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())
}

pub(crate) fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    let decoded = Some(rest.trim()).filter(|rest| rest.len() <= MAX_CREDENTIALS_BYTES).and_then(from_base64)?;
    let decoded = String::from_utf8(decoded).ok()?;
    let (user, password) = decoded.split_once(':')?;
    scheme.eq_ignore_ascii_case("basic").then(|| (user.to_owned(), password.to_owned()))
}

/// Reads base64 with its padding (RFC 4648, section 4).
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in digits.as_bytes().chunks(4) {
        let mut sum = 0_u32;
        for index in 0..4 {
            let digit = match four.get(index).copied() {
                Some(letter @ b'A'..=b'Z') => letter - b'A',
                Some(letter @ b'a'..=b'z') => letter - b'a' + 26,
                Some(digit @ b'0'..=b'9') => digit - b'0' + 52,
                Some(b'+') => 62,
                Some(b'/') => 63,
                Some(_) => return None,
                None => 0,
            };
            sum = (sum << 6) | u32::from(digit);
        }
        bytes.extend_from_slice(&sum.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}

pub(crate) fn refuse<T>(status: StatusCode, why: &str) -> Result<T, HttpRefusal> {
    Err((status, why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_by_rfc_7617() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            credentials(&headers)
        };
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(of("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), pair("Aladdin", "open sesame"));
        assert_eq!(of("basic YTpiOmM="), pair("a", "b:c"));
        assert_eq!(of("Basic dGVzdDoxMjPCow=="), pair("test", "123£"));
        assert_eq!(of("Basic YTpi"), pair("a", "b"));
        for wrong in ["Basic", "Basic YTpi=", "Basic YTp", "Basic ====", "Basic YT*i", "Basic YQ==", "Bearer YTpi"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
