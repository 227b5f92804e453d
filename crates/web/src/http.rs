//! Requests and their answers.
//!
//! What changes something must come from the page itself: its `Origin` is the `Host` that was asked, the host is an address
//! or `localhost` (so that no name of somebody else's can be made to mean us), its cookie is one that no other site's
//! request carries, and the token beside it is one that no other site can read.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use tickpath_market::OrderId;
use tickpath_orders::{CancelScope, KILL_ALL, KILL_SYMBOL, Kill, scope_named};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::admin::{Known, Word, is_same};
use crate::metrics;
use crate::shown::Shown;
use crate::view::{self, Names, View};

/// Connections at once.
const MOST_CONNECTIONS: usize = 64;
/// Logons that are checked at once: each takes a thread, and the OMS some work.
const MOST_LOGONS: usize = 2;
/// How long somebody may take for a request, and keep a connection.
const REQUEST: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(120);
/// Bytes of a request's body.
const MOST_BODY: usize = 4096;
/// After the system refused a connection: until it may have some again.
const PAUSE: Duration = Duration::from_millis(100);

const TOKEN: HeaderName = HeaderName::from_static("x-tickpath-token");
const COOKIE_NAME: &str = "tickpath";
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

static LOGONS: Semaphore = Semaphore::const_new(MOST_LOGONS);

type Answer = Response<Full<Bytes>>;
type Refused = (StatusCode, String);

/// Answers whoever comes, until the runtime ends.
pub(crate) async fn accept(listener: TcpListener, is_page: bool, shown: Arc<Shown>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while let Ok(place) = room.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let shown = shown.clone();
                tokio::spawn(async move {
                    converse(stream, is_page, shown).await;
                    drop(place);
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn converse(stream: TcpStream, is_page: bool, shown: Arc<Shown>) {
    let service = service_fn(|request| {
        let shown = shown.clone();
        async move { Ok::<_, Infallible>(answer(request, is_page, &shown).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(REQUEST).max_buf_size(16 << 10);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Whoever breaks the connection does not want to hear of it.
    if timeout(CONNECTION, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(REQUEST, connection).await;
    }
}

async fn answer(request: Request<Incoming>, is_page: bool, shown: &Arc<Shown>) -> Answer {
    let answered = match is_page {
        true => page(request, shown).await,
        false => alone(&request, shown),
    };
    let mut answer = answered.unwrap_or_else(|(status, why)| {
        let mut answer = plain("text/plain; charset=utf-8", why + "\n");
        *answer.status_mut() = status;
        answer
    });
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// The endpoint that has metrics alone.
fn alone(request: &Request<Incoming>, shown: &Shown) -> Result<Answer, Refused> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => Ok(all_metrics(shown)),
        _ => refuse(StatusCode::NOT_FOUND, "here is /metrics, and nothing else"),
    }
}

async fn page(request: Request<Incoming>, shown: &Arc<Shown>) -> Result<Answer, Refused> {
    let host = host(request.headers())?;
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => Ok(plain("text/html; charset=utf-8", PAGE)),
        (&Method::GET, "/page.css") => Ok(plain("text/css; charset=utf-8", STYLE)),
        (&Method::GET, "/page.js") => Ok(plain("text/javascript; charset=utf-8", SCRIPT)),
        (&Method::GET, "/metrics") => Ok(all_metrics(shown)),
        (&Method::GET, "/frame") => Ok(frame(request.headers(), shown).await),
        (&Method::POST, path @ ("/login" | "/logout" | "/kill" | "/cancel")) => {
            is_from_here(request.headers(), &host)?;
            match path {
                "/login" => login(body(request).await?, shown).await,
                "/logout" => Ok(logout(&allowed(request.headers(), shown)?.0, shown)),
                _ => {
                    let (cookie, _) = allowed(request.headers(), shown)?;
                    let word = match path {
                        "/kill" => kill(&body(request).await?, &shown.names),
                        _ => cancel(&body(request).await?),
                    };
                    let word = word.map_err(|why| (StatusCode::BAD_REQUEST, why))?;
                    shown.admins.say(&cookie, word).map_err(|why| (StatusCode::CONFLICT, why))?;
                    Ok(plain("application/json", "{}"))
                }
            }
        }
        (_, "/" | "/page.css" | "/page.js" | "/metrics" | "/frame" | "/login" | "/logout" | "/kill" | "/cancel") => {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "not with this method")
        }
        _ => refuse(StatusCode::NOT_FOUND, "there is nothing here; the page is at /"),
    }
}

fn all_metrics(shown: &Shown) -> Answer {
    plain(metrics::MEDIA_TYPE, metrics::render(shown.reading().as_ref()))
}

/// The last frame, and who asks, if it is an admin.
async fn frame(headers: &HeaderMap, shown: &Shown) -> Answer {
    #[derive(Serialize)]
    struct Frame<'a> {
        #[serde(flatten)]
        view: &'a View,
        admin: Option<Admin>,
    }
    #[derive(Serialize)]
    struct Admin {
        user: String,
        token: String,
        denied: String,
    }
    let known = cookie(headers).and_then(|cookie| shown.admins.find(&cookie));
    let admin = known.map(|Known { user, token, denied }| Admin { user, token, denied });
    let view = shown.frame().await;
    let text = serde_json::to_string(&Frame { view: &view, admin });
    plain("application/json", text.unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginBody {
    user: String,
    password: String,
}

async fn login(body: LoginBody, shown: &Arc<Shown>) -> Result<Answer, Refused> {
    let Ok(_place) = LOGONS.try_acquire() else {
        return refuse(StatusCode::TOO_MANY_REQUESTS, "others are logging in; try again");
    };
    let shown = shown.clone();
    let logged_in = tokio::task::spawn_blocking(move || shown.admins.login(&body.user, &body.password)).await;
    let cookie = logged_in.unwrap_or_else(|e| Err(e.to_string())).map_err(|why| (StatusCode::FORBIDDEN, why))?;
    Ok(with_cookie(&format!("{COOKIE_NAME}={cookie}; HttpOnly; SameSite=Strict; Path=/")))
}

fn logout(cookie: &str, shown: &Shown) -> Answer {
    shown.admins.logout(cookie);
    with_cookie(&format!("{COOKIE_NAME}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"))
}

fn with_cookie(cookie: &str) -> Answer {
    let mut answer = plain("application/json", "{}");
    if let Ok(value) = HeaderValue::from_str(cookie) {
        answer.headers_mut().insert(SET_COOKIE, value);
    }
    answer
}

/// Turns a switch on or off; `cancel` cancels what works in its scope, too, and without `on` does that alone.
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
    /// As the page shows it: epoch, point, sequence.
    order: String,
}

fn kill(body: &KillBody, names: &Names) -> Result<Word, String> {
    let (scope, target) = scope(body, names)?;
    Ok(match (body.on, body.cancel) {
        (false, true) => Word::CancelScope(CancelScope { scope, target, ..CancelScope::default() }),
        (on, cancel) => Word::Kill(Kill { scope, on: on.into(), cancel: cancel.into(), target, ..Kill::default() }),
    })
}

fn cancel(body: &CancelBody) -> Result<Word, String> {
    let parts = body.order.split_once('.').and_then(|(epoch, rest)| Some((epoch.parse().ok()?, rest.parse().ok()?)));
    let id = parts.map(|(epoch, sequence)| OrderId::new(epoch, sequence));
    // Numbers that do not fit would name another order.
    let is_same = |id: &OrderId| view::id(*id) == body.order && id.0 != 0;
    id.filter(is_same).map(Word::Cancel).ok_or_else(|| format!("'{}' is no order's id", body.order))
}

fn scope(body: &KillBody, names: &Names) -> Result<(u8, u32), String> {
    let target = body.target.trim();
    let name = &body.scope;
    match scope_named(name) {
        Some(KILL_ALL) => Ok((KILL_ALL, 0)),
        Some(KILL_SYMBOL) => match names.symbols.iter().find(|(_, name)| *name == target) {
            Some((symbol, _)) => Ok((KILL_SYMBOL, *symbol)),
            None => Err(format!("'{target}' is no instrument; write its name")),
        },
        Some(scope) => match target.parse() {
            Ok(number) => Ok((scope, number)),
            Err(_) => Err(format!("'{target}' is no {name}; write its number")),
        },
        None => Err(format!("'{name}' is no scope; use firm, account, session or symbol")),
    }
}

/// The host that was asked: an address or `localhost`. A name could be another site's that was made to point here.
fn host(headers: &HeaderMap) -> Result<String, Refused> {
    let text = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => text.split(':').next().unwrap_or_default(),
    };
    if bare == "localhost" || bare.parse::<IpAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    refuse(
        StatusCode::MISDIRECTED_REQUEST,
        "ask for this page by its address, or as localhost; other names are refused",
    )
}

/// A request of the page itself, with JSON: no form of another site's can send that.
fn is_from_here(headers: &HeaderMap, host: &str) -> Result<(), Refused> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_ours = text(ORIGIN) == Some(&format!("http://{host}"))
        && text(HeaderName::from_static("sec-fetch-site")).is_none_or(|site| site == "same-origin");
    if !is_ours {
        return refuse(StatusCode::FORBIDDEN, "only the page itself may ask for this");
    }
    match text(CONTENT_TYPE) {
        Some("application/json") => Ok(()),
        _ => refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send JSON"),
    }
}

/// The cookie of who is logged in and has brought its token.
fn allowed(headers: &HeaderMap, shown: &Shown) -> Result<(String, Known), Refused> {
    let given = headers.get(TOKEN).and_then(|token| token.to_str().ok()).unwrap_or_default();
    let found = cookie(headers).and_then(|cookie| shown.admins.find(&cookie).map(|known| (cookie, known)));
    match found {
        Some((cookie, known)) if is_same(&known.token, given) => Ok((cookie, known)),
        _ => refuse(StatusCode::UNAUTHORIZED, "log in first"),
    }
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = all.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.to_owned())
}

/// A body of JSON, small and soon.
async fn body<T: for<'a> Deserialize<'a>>(request: Request<Incoming>) -> Result<T, Refused> {
    let body = timeout(REQUEST, Limited::new(request.into_body(), MOST_BODY).collect()).await;
    let Ok(Ok(body)) = body else {
        return refuse(StatusCode::BAD_REQUEST, "the body is too long, too slow, or cut short");
    };
    serde_json::from_slice(&body.to_bytes()).map_err(|e| (StatusCode::BAD_REQUEST, format!("the body is wrong: {e}")))
}

fn plain(media: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    answer
}

fn refuse<T>(status: StatusCode, why: &str) -> Result<T, Refused> {
    Err((status, why.to_owned()))
}
