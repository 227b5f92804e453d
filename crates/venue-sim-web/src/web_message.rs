//! HTTP requests as a service reads them, and its answers.

/// An HTTP request.
#[derive(Clone, Copy)]
pub struct WebRequest<'a> {
    /// Method, as sent.
    pub method: &'a str,
    /// Path without the query, as sent.
    pub path: &'a str,
    /// Query without the question mark; empty for none.
    pub query: &'a str,
    /// Headers as sent, names and values.
    pub headers: &'a [(String, String)],
    /// Body; empty for none.
    pub body: &'a [u8],
}

impl WebRequest<'_> {
    /// Returns the value of the first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// An HTTP answer. A header `Connection: close` ends the connection behind it; the server itself adds the length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAnswer {
    /// Status code.
    pub status: u16,
    /// Headers, names and values. A header with characters that HTTP forbids is left out.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl WebAnswer {
    /// Returns an answer of status 200 with a JSON body.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self { status: 200, headers, body: body.into() }
    }

    /// Returns an answer of this status, without headers.
    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// Returns whether the service asks for the end of the connection.
    pub(crate) fn ends_connection(&self) -> bool {
        self.headers
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("connection") && value.trim().eq_ignore_ascii_case("close"))
    }

    /// Returns the bytes of the answer: without the body for a HEAD request.
    pub(crate) fn to_bytes(&self, is_head: bool, ends_connection: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in self.headers.iter().filter(|(name, value)| is_sent(name, value)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if ends_connection {
            head.push_str("Connection: close\r\n");
        }
        let has_body = !matches!(self.status, 100..=199 | 204 | 304);
        if has_body {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        if has_body && !is_head {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// Returns whether a header of a service is sent: it is valid, and none of those that the server writes.
fn is_sent(name: &str, value: &str) -> bool {
    let is_token = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let is_own = ["connection", "content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own));
    is_token && !is_own && !value.chars().any(char::is_control)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        418 => "I'm a teapot",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unnamed",
    }
}
