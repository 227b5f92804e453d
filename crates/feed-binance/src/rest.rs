//! Requests of the REST interface: the exchange's time, and snapshots of books, within the exchange's limits.
//!
//! ```text
//!   request ──> waiting ── a token, no pause, less than two in flight ──> in flight ──> answer
//!                  ^                                                          │
//!                  └────────── pause: Retry-After, or 1 s doubled ────────────┴── failure
//! ```
//!
//! A snapshot of 1,000 levels costs 50 of 6,000 units a minute (spot), or 20 of 2,400 (futures): one a second uses half
//! of the limit, and leaves the rest to orders. Limits are those of an IP address, so a pause holds for all requests
//! and outlasts a connection.

use std::collections::VecDeque;

use tickpath_clock::{Clock, HostClock, RequestRate, TokenBucket};
use tickpath_web_client::{HttpError, HttpRequest, HttpResponse, HttpsClient, PendingResponse};

use crate::config::BinanceMarket;
use crate::json::{read_error, read_server_time};
use crate::streams::percent_encoded;

/// Max requests in flight.
const MAX_IN_FLIGHT: usize = 2;
/// Rate of requests.
const RATE: RequestRate = RequestRate { per_second: 1, burst: 20 };
const SECOND_NS: u64 = 1_000_000_000;
/// Bounds of the pause after a failure without a `Retry-After` header.
const MIN_PAUSE_NS: u64 = SECOND_NS;
const MAX_PAUSE_NS: u64 = 60 * SECOND_NS;
/// Shortest ban, for an answer with status 418 that names none.
const BAN_NS: u64 = 120 * SECOND_NS;
/// Longest ban of the exchange, in seconds.
const MAX_BAN_SECONDS: u64 = 3 * 24 * 3600;
/// Header with the used weight of the last minute, and the pause if it is near the limit.
const WEIGHT_HEADER: &str = "x-mbx-used-weight-1m";
const WEIGHT_PAUSE_NS: u64 = 60 * SECOND_NS;

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestRequest {
    /// The exchange's time.
    Time,
    /// The book of the instrument with this index.
    Snapshot(usize),
}

/// An answer, or the report of a failed request.
pub(crate) enum RestAnswer<'a> {
    /// The exchange's time in milliseconds since the Unix epoch, and the ticks of request and answer.
    Time { server_ms: u64, sent: u64, received: u64 },
    /// The book of an instrument, as the exchange sent it.
    Snapshot { instrument: usize, body: &'a [u8], received: u64 },
    /// A failed request, as a sentence.
    Failed(String),
}

/// The requests of a feed.
pub(crate) struct RestQueue {
    client: HttpsClient,
    clock: HostClock,
    market: BinanceMarket,
    /// Names of the instruments.
    names: Vec<String>,
    waiting: VecDeque<RestRequest>,
    in_flight: Vec<(RestRequest, PendingResponse)>,
    bucket: TokenBucket,
    /// No request begins before these ticks.
    not_before: u64,
    /// Failures since the last good answer.
    failures: u32,
}

impl RestQueue {
    pub(crate) fn new(client: HttpsClient, clock: HostClock, market: BinanceMarket, names: Vec<String>) -> Self {
        let now = clock.ticks();
        let bucket = TokenBucket::new(RATE, clock.calibration(), now);
        let (waiting, in_flight) = (VecDeque::new(), Vec::new());
        Self { client, clock, market, names, waiting, in_flight, bucket, not_before: now, failures: 0 }
    }

    /// Forgets all requests.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.in_flight.clear();
    }

    /// Adds a request, unless the same one waits. A request in flight may be answered with an older book.
    pub(crate) fn request(&mut self, request: RestRequest) {
        if !self.waiting.contains(&request) {
            self.waiting.push_back(request);
        }
    }

    /// Passes on answers and begins requests; `take` returns false for an answer that it cannot read. Returns the
    /// amount of work done.
    pub(crate) fn poll(&mut self, now: u64, take: &mut dyn FnMut(RestAnswer<'_>) -> bool) -> usize {
        let mut done = 0;
        let mut place = 0;
        while place < self.in_flight.len() {
            let Some(response) = self.in_flight[place].1.try_take() else {
                place += 1;
                continue;
            };
            let (request, _) = self.in_flight.remove(place);
            self.handle(request, &response, now, take);
            done += 1;
        }
        while self.in_flight.len() < MAX_IN_FLIGHT
            && let Some(request) = self.waiting.front().copied()
            && self.clock.ns_between(self.not_before, now) >= 0
            && self.bucket.try_take(|| now)
        {
            self.waiting.pop_front();
            let pending = self.client.start(HttpRequest::get(&self.path(request)));
            self.in_flight.push((request, pending));
            done += 1;
        }
        done
    }

    fn handle(
        &mut self,
        request: RestRequest,
        response: &Result<HttpResponse, HttpError>,
        now: u64,
        take: &mut dyn FnMut(RestAnswer<'_>) -> bool,
    ) {
        let why = match response {
            Ok(response) if response.status == 200 => {
                self.note_weight(response, now);
                if pass_on(request, response, take) {
                    self.failures = 0;
                    return;
                }
                "the answer cannot be read".to_owned()
            }
            Ok(response) => {
                let error = read_error(&response.body).map(|error| format!(", {error}")).unwrap_or_default();
                format!("status {}{error}", response.status)
            }
            Err(error) => error.to_string(),
        };
        let response = response.as_ref().ok();
        let pause_ns = self.pause_ns(response);
        self.pause(pause_ns, now);
        self.failures = self.failures.saturating_add(1);
        let name = self.describe(request);
        // A request that the exchange does not understand fails again.
        if response.is_some_and(|response| response.status == 400) {
            take(RestAnswer::Failed(format!("{name}: {why}; check the name of the instrument")));
            return;
        }
        take(RestAnswer::Failed(format!("{name}: {why}; it is requested again in {} s", pause_ns / SECOND_NS)));
        self.request(request);
    }

    /// Returns the pause after a failure: as long as the exchange demands, and at least the growing pause.
    fn pause_ns(&self, response: Option<&HttpResponse>) -> u64 {
        let growing = (MIN_PAUSE_NS << self.failures.min(6)).min(MAX_PAUSE_NS);
        let Some(response) = response else { return growing };
        let demanded = header(response, "retry-after").and_then(|text| text.trim().parse::<u64>().ok());
        let ban = if response.status == 418 { BAN_NS } else { 0 };
        demanded.map_or(ban, |seconds| seconds.min(MAX_BAN_SECONDS) * SECOND_NS).max(growing)
    }

    /// Pauses if the used weight is near the limit, which other programs of this address may have used.
    fn note_weight(&mut self, response: &HttpResponse, now: u64) {
        let limit: u64 = match self.market {
            BinanceMarket::Spot => 6_000,
            BinanceMarket::UsdFutures => 2_400,
        };
        let used = header(response, WEIGHT_HEADER).and_then(|text| text.trim().parse::<u64>().ok());
        if used.is_some_and(|used| used > limit / 10 * 9) {
            self.pause(WEIGHT_PAUSE_NS, now);
        }
    }

    fn pause(&mut self, pause_ns: u64, now: u64) {
        let until = now.wrapping_add(self.clock.calibration().ticks_of_ns(pause_ns));
        if self.clock.ns_between(self.not_before, until) > 0 {
            self.not_before = until;
        }
    }

    fn path(&self, request: RestRequest) -> String {
        let root = match self.market {
            BinanceMarket::Spot => "/api/v3",
            BinanceMarket::UsdFutures => "/fapi/v1",
        };
        match request {
            RestRequest::Time => format!("{root}/time"),
            RestRequest::Snapshot(instrument) => {
                format!("{root}/depth?symbol={}&limit=1000", percent_encoded(&self.names[instrument]))
            }
        }
    }

    fn describe(&self, request: RestRequest) -> String {
        match request {
            RestRequest::Time => "the exchange's time".to_owned(),
            RestRequest::Snapshot(instrument) => format!("the snapshot of {}", self.names[instrument]),
        }
    }
}

/// Passes on a good answer; returns false if it cannot be read.
fn pass_on(request: RestRequest, response: &HttpResponse, take: &mut dyn FnMut(RestAnswer<'_>) -> bool) -> bool {
    let HttpResponse { sent, received, .. } = *response;
    match request {
        RestRequest::Time => {
            let Some(server_ms) = read_server_time(&response.body) else { return false };
            take(RestAnswer::Time { server_ms, sent, received })
        }
        RestRequest::Snapshot(instrument) => take(RestAnswer::Snapshot { instrument, body: &response.body, received }),
    }
}

fn header<'a>(response: &'a HttpResponse, name: &str) -> Option<&'a str> {
    let found = response.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}
