//! Reads HTTP requests from the bytes of a client.

use httparse::{EMPTY_HEADER, Error, Header, Status};

use crate::{WebAnswer, WebRequest};

/// Max bytes of a request's first line and headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Max bytes of a request's body.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Max headers of a request.
const MAX_HEADERS: usize = 100;
/// Length of a key of 16 bytes in base64.
const KEY_LENGTH: usize = 24;

/// A request that has arrived completely.
pub(crate) struct ReceivedRequest {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Whether the client speaks HTTP/1.1, and not HTTP/1.0.
    is_current: bool,
}

/// Result of reading the bytes that have arrived.
pub(crate) enum RequestProgress {
    /// More bytes must arrive. Some clients wait for a `100 Continue` before they send the body.
    Incomplete { wants_continue: bool },
    /// A request, and its length in bytes.
    Complete(ReceivedRequest, usize),
}

impl ReceivedRequest {
    /// Reads the first request of the input. The error is the answer to a request that is refused; the connection must
    /// end then, because the begin of the next request is unknown.
    pub(crate) fn read(input: &[u8]) -> Result<RequestProgress, WebAnswer> {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        let head_bytes = match head.parse(input) {
            Ok(Status::Complete(bytes)) if bytes <= MAX_HEAD_BYTES => bytes,
            Ok(Status::Partial) if input.len() <= MAX_HEAD_BYTES => {
                return Ok(RequestProgress::Incomplete { wants_continue: false });
            }
            Ok(_) | Err(Error::TooManyHeaders) => return Err(refusal(431, "the headers are too long, or too many")),
            Err(e) => return Err(refusal(400, &format!("this is no HTTP request: {e}"))),
        };
        let target = head.path.unwrap_or_default();
        if !target.starts_with('/') {
            return Err(refusal(400, "the target does not begin with '/'"));
        }
        let headers: Vec<(String, String)> = head.headers.iter().map(owned).collect();
        let length = head_bytes + body_length(&headers)?;
        if input.len() < length {
            let wants_continue = has_token(&headers, "expect", "100-continue");
            return Ok(RequestProgress::Incomplete { wants_continue });
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Self {
            method: head.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: input[head_bytes..length].to_vec(),
            is_current: head.version == Some(1),
        };
        Ok(RequestProgress::Complete(request, length))
    }

    /// Returns the request as the service reads it.
    pub(crate) fn view(&self) -> WebRequest<'_> {
        let Self { method, path, query, headers, body, .. } = self;
        WebRequest { method, path, query, headers, body }
    }

    /// Returns whether the client asks for the headers of the answer alone.
    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Returns whether the connection ends behind the answer.
    pub(crate) fn ends_connection(&self) -> bool {
        !self.is_current || has_token(&self.headers, "connection", "close")
    }

    /// Returns the key of a request for a WebSocket, or the answer that refuses it. None for any other request.
    pub(crate) fn socket_key(&self) -> Option<Result<&str, WebAnswer>> {
        if !has_token(&self.headers, "upgrade", "websocket") {
            return None;
        }
        let view_header = |name: &str| self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        let key = view_header("sec-websocket-key").map_or("", |(_, key)| key.as_str());
        let is_handshake = self.is_current && self.method == "GET" && has_token(&self.headers, "connection", "upgrade");
        Some(match view_header("sec-websocket-version").map(|(_, version)| version.as_str()) {
            Some("13") if is_handshake && key.len() == KEY_LENGTH => Ok(key),
            Some("13") => Err(refusal(400, "this is no WebSocket handshake")),
            _ => {
                let mut answer = refusal(426, "WebSocket version 13 is required");
                answer.headers.push(("Sec-WebSocket-Version".to_owned(), "13".to_owned()));
                Err(answer)
            }
        })
    }
}

/// Returns the length of a body that is announced by its length.
fn body_length(headers: &[(String, String)]) -> Result<usize, WebAnswer> {
    let values = |name: &'static str| headers.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name));
    if values("transfer-encoding").next().is_some() {
        return Err(refusal(411, "chunked bodies are not accepted; send the length"));
    }
    let mut lengths = values("content-length").map(|(_, length)| length.as_str());
    let Some(length) = lengths.next() else { return Ok(0) };
    if length.is_empty() || !length.bytes().all(|b| b.is_ascii_digit()) || lengths.any(|other| other != length) {
        return Err(refusal(400, "the length of the body is no number"));
    }
    // A number that does not fit is too large as well.
    let bytes = length.parse().unwrap_or(usize::MAX);
    if bytes > MAX_BODY_BYTES { Err(refusal(413, "the body is longer than 1 MiB")) } else { Ok(bytes) }
}

/// Returns whether a list of tokens in headers of this name has a token, in any case.
fn has_token(headers: &[(String, String)], name: &str, token: &str) -> bool {
    let values = headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
    values.flat_map(|(_, value)| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(token))
}

fn owned(header: &Header<'_>) -> (String, String) {
    (header.name.to_owned(), String::from_utf8_lossy(header.value).trim().to_owned())
}

fn refusal(status: u16, why: &str) -> WebAnswer {
    WebAnswer::status(status, why)
}
