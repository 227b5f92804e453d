//! Requests and their answers.
//!
//! Everything but the page's own files and `/health` needs a login. A request that changes something must also come
//! from the page itself: its `HostOrigin` is the requested `Host`, and that host is a name of ours.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tickpath_oms_core::{CancelScope, KILL_ALL, KILL_SYMBOL, KillSwitch, scope_by_name};
use tickpath_oms_text::parse::order_id;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::admin::{PageCommand, ScopeTarget};
use crate::guard::{self, HttpRefusal, refuse};
use crate::logins::{NewLogin, RequestLogin};
use crate::metrics;
use crate::origin::HostOrigin;
use crate::page_state::PageState;
use crate::rights::PageUser;
use crate::tls::{PageCertificate, PageStream};
use crate::view::OmsView;

/// Max passwords that are checked at once: each takes a thread for several milliseconds. More wait for their turn.
const MAX_CHECKS: usize = 2;
/// Max simultaneous logons of admins: each takes a thread, and some work of the OMS.
const MAX_LOGONS: usize = 8;
/// Max time for a request to arrive, and max lifetime of a connection.
const REQUEST: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(120);
const MAX_BODY_BYTES: usize = 4096;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

static CHECKS: Semaphore = Semaphore::const_new(MAX_CHECKS);
static LOGONS: Semaphore = Semaphore::const_new(MAX_LOGONS);

pub(crate) struct Port {
    /// Whether the page is served, and not only the metrics.
    pub is_page: bool,
    pub number: u16,
    /// The certificate for TLS; plain HTTP if there is none.
    pub certificate: Option<PageCertificate>,
}

type HttpResponse = Response<Full<Bytes>>;

impl Port {
    pub fn title(&self) -> &'static str {
        if self.is_page { "the page" } else { "the port of the metrics" }
    }

    pub fn scheme(&self) -> &'static str {
        if self.certificate.is_some() { "https" } else { "http" }
    }

    /// Returns the cookie's name, with the port's number: cookies go to every port of a host.
    fn cookie_name(&self) -> String {
        let prefix = if self.certificate.is_some() { "__Host-" } else { "" };
        format!("{prefix}tickpath-{}", self.number)
    }

    /// Returns a cookie that no script can read and no other site's request carries.
    fn cookie(&self, value: &str) -> String {
        let secure = if self.certificate.is_some() { "; Secure" } else { "" };
        format!("{}={value}; HttpOnly; SameSite=Strict; Path=/{secure}", self.cookie_name())
    }
}

pub(crate) async fn serve_requests(stream: PageStream, origin: HostOrigin, port: &Arc<Port>, shown: &Arc<PageState>) {
    let service = service_fn(|request| {
        let (port, shown) = (port.clone(), shown.clone());
        async move { Ok::<_, Infallible>(respond(request, origin, &port, &shown).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(REQUEST).max_buf_size(16 << 10);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A peer that breaks the connection needs no error.
    if timeout(CONNECTION, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(REQUEST, connection).await;
    }
}

async fn respond(request: Request<Incoming>, origin: HostOrigin, port: &Port, shown: &Arc<PageState>) -> HttpResponse {
    let path = request.uri().path().to_owned();
    let answered = match guard::host(request.headers(), &shown.hosts, port.certificate.as_ref()) {
        Ok(host) => route(request, &host, origin, port, shown).await,
        Err(refused) => Err(refused),
    };
    let mut answer = answered.unwrap_or_else(|(status, why)| {
        let mut answer = plain("text/plain; charset=utf-8", why + "\n");
        *answer.status_mut() = status;
        answer
    });
    let mut set = |name: HeaderName, value: &'static str| {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    };
    set(CACHE_CONTROL, "no-store");
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(REFERRER_POLICY, "no-referrer");
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    match (answer.status(), path.as_str()) {
        (StatusCode::UNAUTHORIZED, "/metrics") => {
            let basic = HeaderValue::from_static("Basic realm=\"tickpath\", charset=\"UTF-8\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, basic);
        }
        (StatusCode::METHOD_NOT_ALLOWED, path) => {
            let allowed = if is_post_path(path) { "POST" } else { "GET, HEAD" };
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        }
        _ => {}
    }
    answer
}

async fn route(
    request: Request<Incoming>,
    host: &str,
    origin: HostOrigin,
    port: &Port,
    shown: &Arc<PageState>,
) -> Result<HttpResponse, HttpRefusal> {
    let path = request.uri().path().to_owned();
    // HEAD is answered like GET, without the body.
    let is_get = matches!(request.method(), &Method::GET | &Method::HEAD);
    match (path.as_str(), port.is_page) {
        ("/health", _) if is_get => health(shown),
        ("/metrics", _) if is_get => all_metrics(guard::credentials(request.headers()), origin, shown).await,
        ("/", true) if is_get => Ok(plain("text/html; charset=utf-8", PAGE)),
        ("/page.css", true) if is_get => Ok(plain("text/css; charset=utf-8", STYLE)),
        ("/page.js", true) if is_get => Ok(plain("text/javascript; charset=utf-8", SCRIPT)),
        ("/frame", true) if is_get => {
            let (_, login) = guard::login(request.headers(), &port.cookie_name(), shown)?;
            Ok(frame(login, shown).await)
        }
        (path, true) if is_post_path(path) && *request.method() == Method::POST => {
            guard::check_same_origin(request.headers(), host, port.scheme())?;
            handle_post(request, origin, port, shown).await
        }
        ("/health" | "/metrics", _)
        | ("/" | "/page.css" | "/page.js" | "/frame" | "/login" | "/logout" | "/kill" | "/cancel", true) => {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "not with this method")
        }
        (_, true) => refuse(StatusCode::NOT_FOUND, "not found; the page is at /"),
        (_, false) => refuse(StatusCode::NOT_FOUND, "not found; this port has /metrics and /health"),
    }
}

fn is_post_path(path: &str) -> bool {
    matches!(path, "/login" | "/logout" | "/kill" | "/cancel")
}

async fn handle_post(
    request: Request<Incoming>,
    origin: HostOrigin,
    port: &Port,
    shown: &Arc<PageState>,
) -> Result<HttpResponse, HttpRefusal> {
    let path = request.uri().path().to_owned();
    if path == "/login" {
        return login(body(request).await?, origin, port, shown).await;
    }
    let (proof, _) = guard::login(request.headers(), &port.cookie_name(), shown)?;
    let command = match path.as_str() {
        "/logout" => {
            shown.logins.logout(&proof.cookie, &proof.token);
            return Ok(with_cookie("{}".to_owned(), &(port.cookie("") + "; Max-Age=0")));
        }
        "/kill" => kill(&body(request).await?),
        _ => cancel(&body(request).await?),
    };
    let command = command.map_err(|why| (StatusCode::BAD_REQUEST, why))?;
    let sent = shown.logins.command(&proof.cookie, &proof.token, command);
    sent.map_err(|why| (StatusCode::CONFLICT, why))?;
    Ok(plain("application/json", "{}"))
}

/// Reports whether the OMS runs, for a supervisor that restarts it: the only answer without a login.
fn health(shown: &PageState) -> Result<HttpResponse, HttpRefusal> {
    if shown.reading().is_some_and(|reading| reading.pid.is_some()) {
        return Ok(plain("text/plain; charset=utf-8", "ok\n"));
    }
    refuse(StatusCode::SERVICE_UNAVAILABLE, "the OMS does not run")
}

/// Returns the metrics, for any user of the OMS by basic authentication.
async fn all_metrics(
    credentials: Option<(String, String)>,
    origin: HostOrigin,
    shown: &Arc<PageState>,
) -> Result<HttpResponse, HttpRefusal> {
    let Some((user, password)) = credentials else {
        return refuse(StatusCode::UNAUTHORIZED, "log in as a user of the OMS, by basic authentication");
    };
    match check(user, password, origin, shown).await {
        Ok(_) => Ok(plain(metrics::MEDIA_TYPE, metrics::render(shown.reading().as_ref()))),
        Err(PasswordRefusal::Wrong) => refuse(StatusCode::UNAUTHORIZED, WRONG),
        Err(PasswordRefusal::Wait(seconds)) => Ok(too_many(seconds)),
        Err(PasswordRefusal::Busy) => refuse(StatusCode::SERVICE_UNAVAILABLE, BUSY),
    }
}

const WRONG: &str = "the user or the password is wrong";
const BUSY: &str = "too many passwords are being checked; try again";

enum PasswordRefusal {
    Wrong,
    /// The origin sent too many wrong passwords: it may try again after this number of seconds.
    Wait(i64),
    Busy,
}

/// Checks a password. Each origin has several tries; further tries wait without delaying other origins.
async fn check(
    user: String,
    password: String,
    origin: HostOrigin,
    shown: &Arc<PageState>,
) -> Result<PageUser, PasswordRefusal> {
    let mut begun = PasswordAttempt::begin(shown, origin)?;
    let Ok(Ok(_turn)) = timeout(REQUEST, CHECKS.acquire()).await else { return Err(PasswordRefusal::Busy) };
    begun.is_wrong = true;
    let with = shown.clone();
    let found = tokio::task::spawn_blocking(move || with.logins.check(&user, &password)).await;
    let found = found.ok().flatten();
    begun.is_wrong = found.is_none();
    found.ok_or(PasswordRefusal::Wrong)
}

/// A password try of an origin. The origin gets the try back if the password was right or never checked; a client that
/// closes the connection during the check pays for the hashing.
struct PasswordAttempt<'a> {
    shown: &'a PageState,
    origin: HostOrigin,
    is_wrong: bool,
}

impl<'a> PasswordAttempt<'a> {
    fn begin(shown: &'a PageState, origin: HostOrigin) -> Result<Self, PasswordRefusal> {
        shown.begin_try(origin).map_err(|many| PasswordRefusal::Wait(many.wait_s))?;
        Ok(Self { shown, origin, is_wrong: false })
    }
}

impl Drop for PasswordAttempt<'_> {
    fn drop(&mut self) {
        if !self.is_wrong {
            self.shown.give_back_try(self.origin);
        }
    }
}

fn too_many(seconds: i64) -> HttpResponse {
    let why = format!("too many wrong passwords were sent from this address; try again in {seconds} s\n");
    let mut answer = plain("text/plain; charset=utf-8", why);
    *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

async fn frame(login: RequestLogin, shown: &PageState) -> HttpResponse {
    #[derive(Serialize)]
    struct FrameBody<'a> {
        #[serde(flatten)]
        view: &'a OmsView,
        user: &'a str,
        admin: Option<serde_json::Value>,
    }
    let RequestLogin { user, rights, denied } = login;
    let viewer = if denied.is_some() { "" } else { user.as_str() };
    let view = shown.frame(viewer, &rights).await;
    let admin = denied.map(|denied| json!({ "denied": denied }));
    plain("application/json", serde_json::to_string(&FrameBody { view: &view, user: &user, admin }).unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginBody {
    user: String,
    password: String,
}

/// Logs in. Only the answer's body contains the token: an attacker with the cookie alone cannot obtain it.
async fn login(
    body: LoginBody,
    origin: HostOrigin,
    port: &Port,
    shown: &Arc<PageState>,
) -> Result<HttpResponse, HttpRefusal> {
    let LoginBody { user, password } = body;
    let found = match check(user.clone(), password.clone(), origin, shown).await {
        Ok(found) => found,
        Err(PasswordRefusal::Wrong) => return refuse(StatusCode::FORBIDDEN, WRONG),
        Err(PasswordRefusal::Wait(seconds)) => return Ok(too_many(seconds)),
        Err(PasswordRefusal::Busy) => return refuse(StatusCode::SERVICE_UNAVAILABLE, BUSY),
    };
    // Only right passwords get this far.
    let Ok(Ok(_turn)) = timeout(REQUEST, LOGONS.acquire()).await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    };
    let (with, name) = (shown.clone(), user.clone());
    let begun = tokio::task::spawn_blocking(move || with.logins.begin(&name, &password, found)).await;
    let begun = begun.unwrap_or_else(|e| Err(e.to_string())).map_err(|why| (StatusCode::FORBIDDEN, why))?;
    let NewLogin { cookie, token, is_admin } = begun;
    let text = json!({ "user": user, "token": token, "admin": is_admin }).to_string();
    Ok(with_cookie(text, &port.cookie(&cookie)))
}

fn with_cookie(text: String, cookie: &str) -> HttpResponse {
    let mut answer = plain("application/json", text);
    if let Ok(value) = HeaderValue::from_str(cookie) {
        answer.headers_mut().insert(SET_COOKIE, value);
    }
    answer
}

/// Turns a switch on or off; `cancel` also cancels the working orders in its scope, and without `on` does only that.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KillBody {
    scope: String,
    target: String,
    on: bool,
    cancel: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelBody {
    /// In the page's form: epoch, point, sequence.
    order: String,
}

fn kill(body: &KillBody) -> Result<PageCommand, String> {
    let (scope, target) = scope(body)?;
    if body.cancel && !body.on {
        return Ok(PageCommand::CancelScope(CancelScope { scope, ..CancelScope::default() }, target));
    }
    let (on, cancel) = (body.on.into(), body.cancel.into());
    Ok(PageCommand::Kill(KillSwitch { scope, on, cancel, ..KillSwitch::default() }, target))
}

fn cancel(body: &CancelBody) -> Result<PageCommand, String> {
    order_id(&body.order).map(PageCommand::Cancel).map_err(|_| format!("'{}' is no order's id", body.order))
}

fn scope(body: &KillBody) -> Result<(u8, ScopeTarget), String> {
    let target = body.target.trim();
    let name = &body.scope;
    match scope_by_name(name) {
        Some(KILL_ALL) => Ok((KILL_ALL, ScopeTarget::Number(0))),
        Some(KILL_SYMBOL) if target.is_empty() => Err("no instrument is named; write its name".to_owned()),
        Some(KILL_SYMBOL) => Ok((KILL_SYMBOL, ScopeTarget::Symbol(target.to_owned()))),
        Some(scope) => match target.parse() {
            Ok(number) => Ok((scope, ScopeTarget::Number(number))),
            Err(_) => Err(format!("'{target}' is no {name}; write its number")),
        },
        None => Err(format!("'{name}' is no scope; use firm, account, session or symbol")),
    }
}

/// Reads a body of JSON, limited in size and time.
async fn body<T: for<'a> Deserialize<'a>>(request: Request<Incoming>) -> Result<T, HttpRefusal> {
    let body = timeout(REQUEST, Limited::new(request.into_body(), MAX_BODY_BYTES).collect()).await;
    let Ok(Ok(body)) = body else {
        return refuse(StatusCode::BAD_REQUEST, "the body is too long, too slow, or cut short");
    };
    serde_json::from_slice(&body.to_bytes()).map_err(|e| (StatusCode::BAD_REQUEST, format!("the body is wrong: {e}")))
}

fn plain(media: &'static str, text: impl Into<Bytes>) -> HttpResponse {
    let mut answer = Response::new(Full::new(text.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    answer
}
