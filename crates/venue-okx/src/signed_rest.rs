//! OKX's REST interface: signed requests on threads of their own, within its rate limits, few at a time.
//!
//! A request that fails for a reason that may pass is tried again by its owner, after a pause that grows. After too
//! many failures in a row the line is lost: without REST it could not end any doubt.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tickpath_clock::{Clock, HostClock};
use tickpath_web_client::{HttpError, HttpRequest, HttpResponse, HttpsClient, PendingResponse};

use crate::config::{OkxLineConfig, OkxLineError};
use crate::credentials::ApiCredentials;
use crate::reasons::{NO_SUCH_ORDER, is_too_frequent, read_code};
use crate::request_window::RequestWindow;
use crate::signature::signed;

/// Requests of a kind in two seconds.
const MAX_REQUESTS: usize = 60;
const MAX_HISTORY_REQUESTS: usize = 10;
/// Requests at a time.
const MAX_IN_FLIGHT: usize = 4;
/// Pauses after a failure: the first, and the longest.
const MIN_PAUSE_NS: u64 = 250_000_000;
const MAX_PAUSE_NS: u64 = 4_000_000_000;
/// Failures in a row, over some 15 s, after which the line is lost.
const MAX_FAILURES: u32 = 8;
/// Codes that mean: later, or once more. OKX may send them with any status.
const PASSING: [u32; 8] = [50001, 50004, 50011, 50013, 50026, 50040, 50061, 51054];

/// Kind of a request. OKX limits the rate of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestLimit {
    /// State of an order in this instrument, by index.
    Order(usize),
    /// Open orders.
    OpenOrders,
    /// Fills of three days.
    Fills,
    /// Fills of three months.
    FillsHistory,
    /// A request that the line sends so rarely that it needs no limit.
    Rare,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct RestCall(PendingResponse);

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RestFailure {
    /// OKX does not have the order.
    Absent,
    /// OKX refuses the request, and will refuse it again.
    Refused { code: u32, text: String },
    /// The request may be tried again.
    Passing(String),
}

/// The interface of an account.
#[derive(Debug)]
pub(crate) struct SignedRest {
    client: HttpsClient,
    credentials: ApiCredentials,
    is_demo: bool,
    clock: HostClock,
    /// OKX's clock minus this host's, in nanoseconds.
    offset_ns: i64,
    in_flight: usize,
    failures: u32,
    /// OKX has refused the last request of this connection for its rate or for its own load.
    is_throttled: bool,
    /// Time until which no request is started, in ticks.
    paused_until: u64,
    orders: Vec<RequestWindow>,
    open_orders: RequestWindow,
    fills: RequestWindow,
    fills_history: RequestWindow,
}

#[derive(Deserialize)]
struct RestAnswer<'a, T> {
    #[serde(borrow)]
    code: Cow<'a, str>,
    #[serde(borrow, default)]
    msg: Cow<'a, str>,
    data: Option<Vec<T>>,
}

impl SignedRest {
    /// Makes the interface. No connection is made yet.
    pub fn new(config: &OkxLineConfig, instruments: usize, clock: HostClock) -> Result<Self, OkxLineError> {
        let window = |max_requests| RequestWindow::new(max_requests, clock.calibration());
        Ok(Self {
            client: HttpsClient::new(&config.rest_url, config.ca.as_deref())?,
            credentials: config.credentials.clone(),
            is_demo: config.is_demo,
            clock,
            offset_ns: 0,
            in_flight: 0,
            failures: 0,
            is_throttled: false,
            paused_until: 0,
            orders: (0..instruments).map(|_| window(MAX_REQUESTS)).collect(),
            open_orders: window(MAX_REQUESTS),
            fills: window(MAX_REQUESTS),
            fills_history: window(MAX_HISTORY_REQUESTS),
        })
    }

    /// Forgets the requests of the last connection. A pause after a failure lasts.
    pub fn begin(&mut self) {
        (self.in_flight, self.failures, self.is_throttled) = (0, 0, false);
    }

    /// Notes whether OKX refuses a request for its rate or for its own load.
    pub fn note_throttling(&mut self, answer: &Result<HttpResponse, HttpError>) {
        self.is_throttled = answer.as_ref().is_ok_and(is_throttling);
    }

    /// Returns whether OKX has refused the last request of this connection for its rate or for its own load.
    pub fn is_throttled(&self) -> bool {
        self.is_throttled
    }

    /// Sets the offset of OKX's clock.
    pub fn set_offset(&mut self, offset_ns: i64) {
        self.offset_ns = offset_ns;
    }

    /// Returns whether the account is one of demo trading.
    pub fn is_demo(&self) -> bool {
        self.is_demo
    }

    /// Returns OKX's time at a time of this host, in nanoseconds since the Unix epoch.
    #[inline]
    pub fn venue_ns(&self, ticks: u64) -> u64 {
        self.clock.calibration().utc_ns_of(ticks).saturating_add_signed(self.offset_ns)
    }

    /// Starts a request without a signature.
    pub fn start_public(&self, path: &str) -> PendingResponse {
        self.client.start(HttpRequest::get(path))
    }

    /// Returns whether a request may start now. It must not wait for others, for a limit or for a pause.
    pub fn has_room(&mut self, limit: RestLimit) -> bool {
        let now = self.clock.ticks();
        let may_start = self.in_flight < MAX_IN_FLIGHT && now >= self.paused_until;
        may_start && self.window(limit).is_none_or(|window| window.has_room(now))
    }

    /// Starts a request; none if there is no room for it.
    pub fn start(&mut self, limit: RestLimit, request: HttpRequest) -> Option<RestCall> {
        if !self.has_room(limit) {
            return None;
        }
        let now = self.clock.ticks();
        if let Some(window) = self.window(limit) {
            window.count_request(now);
        }
        self.in_flight += 1;
        let request = signed(request, &self.credentials, self.venue_ns(now), self.is_demo);
        Some(RestCall(self.client.start(request)))
    }

    /// Returns the answer to a request once it is there. An answer that is no answer of OKX is a failure that may pass.
    pub fn finish(&mut self, call: &mut RestCall) -> Option<Result<HttpResponse, RestFailure>> {
        let answer = call.0.try_take()?;
        self.in_flight = self.in_flight.saturating_sub(1);
        Some(self.judge(answer))
    }

    /// Returns the reason why the line is lost, if the last requests have all failed.
    pub fn give_up(&self, failure: &RestFailure) -> Option<String> {
        match failure {
            RestFailure::Passing(why) if self.failures >= MAX_FAILURES => {
                Some(format!("{} requests to OKX's REST interface have failed, the last one: {why}", self.failures))
            }
            _ => None,
        }
    }

    fn judge(&mut self, answer: Result<HttpResponse, HttpError>) -> Result<HttpResponse, RestFailure> {
        self.note_throttling(&answer);
        let judged = match answer {
            Err(error) => Err(RestFailure::Passing(error.0)),
            Ok(response) => match read_rows::<IgnoredAny>(&response) {
                Ok(_) => Ok(response),
                Err(failure) => Err(self.without_secrets(failure)),
            },
        };
        match &judged {
            Err(RestFailure::Passing(_)) => self.note_failure(),
            _ => self.failures = 0,
        }
        judged
    }

    fn note_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let pause_ns = MIN_PAUSE_NS.saturating_mul(1 << self.failures.saturating_sub(1).min(16)).min(MAX_PAUSE_NS);
        self.paused_until = self.clock.ticks() + self.clock.calibration().ticks_of_ns(pause_ns);
    }

    fn without_secrets(&self, failure: RestFailure) -> RestFailure {
        match failure {
            RestFailure::Refused { code, text } => RestFailure::Refused { code, text: self.credentials.hide_in(&text) },
            RestFailure::Passing(why) => RestFailure::Passing(self.credentials.hide_in(&why)),
            RestFailure::Absent => RestFailure::Absent,
        }
    }

    fn window(&mut self, limit: RestLimit) -> Option<&mut RequestWindow> {
        match limit {
            RestLimit::Order(instrument) => self.orders.get_mut(instrument),
            RestLimit::OpenOrders => Some(&mut self.open_orders),
            RestLimit::Fills => Some(&mut self.fills),
            RestLimit::FillsHistory => Some(&mut self.fills_history),
            RestLimit::Rare => None,
        }
    }
}

fn is_throttling(response: &HttpResponse) -> bool {
    let answer = serde_json::from_slice::<RestAnswer<'_, IgnoredAny>>(&response.body);
    matches!(response.status, 429 | 503) || answer.is_ok_and(|answer| is_too_frequent(read_code(&answer.code)))
}

/// Reads the rows of an answer.
pub(crate) fn read_rows<'a, T: Deserialize<'a>>(response: &'a HttpResponse) -> Result<Vec<T>, RestFailure> {
    let status = response.status;
    let answer: RestAnswer<'a, T> = match serde_json::from_slice(&response.body) {
        Ok(answer) => answer,
        Err(_) => return Err(RestFailure::Passing(format!("status {status} without an answer of OKX's form"))),
    };
    let (code, text) = (read_code(&answer.code), format!("{}: {}", answer.code, answer.msg));
    match code {
        0 => Ok(answer.data.unwrap_or_default()),
        NO_SUCH_ORDER => Err(RestFailure::Absent),
        code if PASSING.contains(&code) || status == 429 || status >= 500 => Err(RestFailure::Passing(text)),
        code => Err(RestFailure::Refused { code, text }),
    }
}
