//! HTTPS requests: on a thread each, whose response a caller polls for, or waiting.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tickpath_clock::{Clock, HostClock, Priority, set_priority};
use tickpath_tls::{ALL_VERSIONS, client_config, describe_error, tls_failure};
use ureq::http;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Error};

use crate::target::{HTTPS, WebTarget, without_secrets};
use crate::{HttpError, WebClientError};

/// Max time of a request in seconds, from the name lookup to the last byte of the response.
const TIMEOUT_S: u64 = 10;
/// Max bytes of a response's body.
const MAX_BODY_BYTES: u64 = 16 << 20;
const USER_AGENT: &str = concat!("tickpath/", env!("CARGO_PKG_VERSION"));

/// A client of one HTTPS server. Redirects are not followed, and no proxy is used.
#[derive(Clone)]
pub struct HttpsClient {
    agent: Agent,
    /// `https://HOST[:PORT]`
    base: Arc<str>,
    host: Arc<str>,
    clock: HostClock,
}

/// A request.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Method: `GET`, `POST`, `PUT`, `DELETE`.
    pub method: &'static str,
    /// Path, which begins with a slash, and query.
    pub path_and_query: String,
    /// Headers, names and values.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: String,
}

/// A response of any status.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// Status.
    pub status: u16,
    /// Headers: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// Body, 16 MiB at most.
    pub body: Vec<u8>,
    /// Begin of the request, in ticks of the host's clock. It comes before the connect, where one is needed.
    pub sent: u64,
    /// Arrival of the whole response, in ticks.
    pub received: u64,
}

/// A response that may not have arrived yet.
pub struct PendingResponse {
    /// None after the response is taken.
    answer: Option<Receiver<Result<HttpResponse, HttpError>>>,
    base: Arc<str>,
}

impl HttpsClient {
    /// Creates a client for a server: `https://HOST[:PORT]`, or `http://` for this host's own loopback. The authorities
    /// are those of a PEM file, or those that this host trusts. No connection is made yet.
    pub fn new(base_url: &str, ca: Option<&Path>) -> Result<Self, WebClientError> {
        let target = WebTarget::parse(base_url, &HTTPS)?;
        if target.uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
            let why = "it has a path or a query, which only requests have";
            return Err(WebClientError::Url { url: target.shown, why, form: "https://HOST[:PORT]" });
        }
        Ok(Self {
            agent: agent(&target, ca)?,
            base: target.shown.trim_end_matches('/').into(),
            host: target.host.into(),
            clock: HostClock::get()?,
        })
    }

    /// Starts a request on a thread of its own, on the processors of the calling thread, and returns at once.
    pub fn start(&self, request: HttpRequest) -> PendingResponse {
        let (sender, receiver) = channel();
        let client = self.clone();
        let work = move || {
            // At its parent's priority, this thread could be starved by a spinning thread that waits for it.
            let _ = set_priority(Priority::Normal);
            // The caller may have dropped the response.
            let _ = sender.send(client.fetch(request));
        };
        // Without a thread the sender is dropped, which `try_take` reports.
        let _ = thread::Builder::new().name("https-request".to_owned()).spawn(work);
        PendingResponse { answer: Some(receiver), base: self.base.clone() }
    }

    /// Sends a request, and waits for the response, ten seconds at most.
    pub fn fetch(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let place = format!("{} {}{}", request.method, self.base, without_secrets(&request.path_and_query));
        self.exchange(request).map_err(|why| HttpError(format!("{place}: {why}")))
    }

    fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, String> {
        let HttpRequest { method, path_and_query, headers, body } = request;
        if !path_and_query.starts_with('/') {
            return Err("the path does not begin with '/'; correct it".to_owned());
        }
        let mut builder = http::Request::builder().method(method).uri(format!("{}{path_and_query}", self.base));
        for (name, value) in &headers {
            builder = builder.header(name, value);
        }
        let forbidden = |_| "the path or a header has a character that HTTP forbids; correct it".to_owned();
        let sent = self.clock.ticks();
        // A request that creates something has a length, also if its body is empty.
        let response = if body.is_empty() && !matches!(method, "POST" | "PUT" | "PATCH") {
            self.agent.run(builder.body(()).map_err(forbidden)?)
        } else {
            self.agent.run(builder.body(body).map_err(forbidden)?)
        };
        response.and_then(|response| self.read(response, sent)).map_err(|e| describe(&e, &self.host))
    }

    fn read(&self, mut response: http::Response<Body>, sent: u64) -> Result<HttpResponse, Error> {
        let body = response.body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec()?;
        let received = self.clock.ticks();
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Ok(HttpResponse { status: response.status().as_u16(), headers, body, sent, received })
    }
}

impl fmt::Debug for HttpsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpsClient").field("base", &self.base).finish_non_exhaustive()
    }
}

impl HttpRequest {
    /// Returns a request for a resource, without headers.
    pub fn get(path_and_query: &str) -> Self {
        let path_and_query = path_and_query.to_owned();
        Self { method: "GET", path_and_query, headers: Vec::new(), body: String::new() }
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("path", &without_secrets(&self.path_and_query))
            .field("headers", &header_names(&self.headers))
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("headers", &header_names(&self.headers))
            .field("body_bytes", &self.body.len())
            .field("sent", &self.sent)
            .field("received", &self.received)
            .finish()
    }
}

impl PendingResponse {
    /// Returns the response or the failure once it is there, and nothing after that.
    pub fn try_take(&mut self) -> Option<Result<HttpResponse, HttpError>> {
        let answer = match self.answer.as_ref()?.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                let base = &self.base;
                Err(HttpError(format!(
                    "{base}: this host has no thread left for the request; raise its limit of threads"
                )))
            }
        };
        self.answer = None;
        Some(answer)
    }
}

impl fmt::Debug for PendingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingResponse").field("base", &self.base).finish_non_exhaustive()
    }
}

fn header_names(headers: &[(String, String)]) -> Vec<&str> {
    headers.iter().map(|(name, _)| name.as_str()).collect()
}

fn agent(target: &WebTarget, ca: Option<&Path>) -> Result<Agent, WebClientError> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(TIMEOUT_S)))
        .user_agent(USER_AGENT);
    if !target.is_secure {
        return Ok(Agent::new_with_config(config.build()));
    }
    let roots = authorities(ca).map_err(|why| WebClientError::Tls { url: target.shown.clone(), why })?;
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build();
    Ok(Agent::new_with_config(config.tls_config(tls).build()))
}

/// Reads the certificates of the trusted authorities, at least one.
fn authorities(ca: Option<&Path>) -> Result<Vec<Certificate<'static>>, String> {
    // Reads the same certificates, and words what is wrong with them.
    client_config(ca, None, ALL_VERSIONS)?;
    let found: Vec<CertificateDer<'static>> = match ca {
        Some(file) => {
            let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
            certificates.map_err(|e| format!("{}: {e}; it must be a PEM file with certificates", file.display()))?
        }
        None => rustls_native_certs::load_native_certs().certs,
    };
    Ok(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}

/// Returns the reason why a request to this host failed.
fn describe(error: &Error, host: &str) -> String {
    match error {
        Error::Timeout(_) => format!("no response within {TIMEOUT_S} s; check the address"),
        Error::HostNotFound => "the name has no address; check it".to_owned(),
        Error::BodyExceedsLimit(limit) => format!("the response is longer than {limit} bytes; request less at once"),
        Error::Rustls(e) => describe_error(e, host),
        Error::Io(e) => tls_failure(e, host).unwrap_or_else(|| format!("{e}; does the server listen there?")),
        // Their texts have the whole URL.
        Error::BadUri(_) | Error::RequireHttpsOnly(_) => "the URL cannot be used; correct it".to_owned(),
        other => other.to_string(),
    }
}
