//! Requests of the REST interface: the exchange's time, and snapshots of books, within the exchange's limits.
//!
//! ```text
//!   feed 0 ──┐                                                                    ┌──> feed 0
//!            ├──> waiting ── budget, no pause, two at most ──> in flight ── answer ┤
//!   feed 1 ──┘       ^                                             │              └──> feed 1
//!                    └───── pause of this request, which grows ────┴── failure
//! ```
//!
//! Feeds of the same market data share the requests: a snapshot is requested once, and its answer goes to each feed
//! that waits for it. A failure pauses its own request only. Limits are those of an IP address, so a refusal of the
//! address (status 403, 418 or 429, or a `Retry-After` header) pauses all requests, and outlasts a connection.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickpath_clock::{Clock, HostClock};
use tickpath_web_client::{HttpError, HttpRequest, HttpResponse, HttpsClient, PendingResponse};

use crate::json::{read_error, read_server_time};
use crate::market::BinanceMarket;
use crate::request_weight::{SnapshotDepth, WeightBudget};
use crate::streams::percent_encoded;

/// Max requests in flight.
const MAX_IN_FLIGHT: usize = 2;
/// Weight of a request for the exchange's time.
const TIME_WEIGHT: u32 = 1;
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
const RETRY_HEADER: &str = "retry-after";
const UNREADABLE: &str = "the answer cannot be read";

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestRequest {
    /// The exchange's time.
    Time,
    /// The book of the instrument with this index.
    Snapshot(usize),
}

/// An answer, or the report of a failed request.
#[derive(Clone)]
pub(crate) enum RestAnswer {
    /// The exchange's time in milliseconds since the Unix epoch, and the ticks of request and answer.
    Time { server_ms: u64, sent: u64, received: u64 },
    /// The book of an instrument, as the exchange sent it.
    Snapshot { instrument: usize, response: Arc<HttpResponse> },
    /// A failed request, as a sentence.
    Failed(String),
}

/// The market of the requests, and the snapshots that are requested from it.
pub(crate) struct SnapshotOffer {
    pub(crate) market: BinanceMarket,
    pub(crate) depth: SnapshotDepth,
    pub(crate) weight: u32,
    /// Each connect requests them, also while another feed is up.
    pub(crate) is_per_connection: bool,
}

/// A feed's share of the requests. A dropped feed waits for no answer.
pub(crate) struct RestQueue {
    shared: Arc<Mutex<SharedRequests>>,
    /// Place among the feeds that share the requests.
    feed: usize,
}

impl RestQueue {
    /// Makes the queues of feeds that share their requests; `names` are those of their instruments.
    pub(crate) fn sharing(
        client: HttpsClient,
        clock: HostClock,
        offer: SnapshotOffer,
        names: Vec<String>,
        feeds: usize,
    ) -> Vec<Self> {
        let now = clock.ticks();
        let shared = Arc::new(Mutex::new(SharedRequests {
            client,
            clock,
            budget: WeightBudget::new(offer.market, clock, now),
            offer,
            rows: (0..=names.len()).map(|_| RequestRow::default()).collect(),
            names,
            waiting: VecDeque::new(),
            in_flight: Vec::new(),
            not_before: now,
            refusals: 0,
            feeds: (0..feeds).map(|_| FeedShare::default()).collect(),
        }));
        (0..feeds).map(|feed| Self { shared: shared.clone(), feed }).collect()
    }

    /// Notes that the feed is up: requests the exchange's time and, with books, each snapshot. While another feed is
    /// up, the books may have their snapshots by that feed, and this feed waits for those that are pending.
    pub(crate) fn join(&self, has_books: bool) {
        let mut shared = self.lock();
        let is_alone = !shared.feeds.iter().any(|share| share.is_up);
        let is_per_connection = shared.offer.is_per_connection;
        shared.feeds[self.feed].is_up = true;
        shared.request(self.feed, RestRequest::Time);
        let instruments = if has_books { shared.names.len() } else { 0 };
        for request in (0..instruments).map(RestRequest::Snapshot) {
            if is_per_connection && shared.is_in_flight(request) {
                // The answer may be older than this connection.
                shared.rows[request.row()].late_feeds.push(self.feed);
            } else if is_per_connection || is_alone || shared.rows[request.row()].is_pending {
                shared.request(self.feed, request);
            }
        }
    }

    /// Notes that the feed is down. Requests for which no other feed waits are dropped.
    pub(crate) fn leave(&self) {
        self.lock().leave(self.feed);
    }

    /// Requests a snapshot. If the same request is pending, this feed gets its answer, too.
    pub(crate) fn request_snapshot(&self, instrument: usize) {
        self.lock().request(self.feed, RestRequest::Snapshot(instrument));
    }

    /// Takes arrived responses and begins requests. Returns the amount of work done, and the answers for this feed.
    pub(crate) fn poll(&self, now: u64) -> (usize, VecDeque<RestAnswer>) {
        let mut shared = self.lock();
        let done = shared.poll(self.feed, now);
        let answers = mem::take(&mut shared.feeds[self.feed].answers);
        (done + answers.len(), answers)
    }

    /// Notes whether the answer with a snapshot could be read. If not, the snapshot is requested again.
    pub(crate) fn note_read(&self, instrument: usize, is_read: bool, now: u64) {
        let (mut shared, request) = (self.lock(), RestRequest::Snapshot(instrument));
        if is_read {
            shared.rows[request.row()].failures = 0;
            return;
        }
        // The feeds that waited have the same answer, and the first of them reports the failure.
        let is_reported = shared.rows[request.row()].is_pending;
        shared.wait(self.feed, request);
        if !is_reported {
            shared.fail(self.feed, request, UNREADABLE, None, now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SharedRequests> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RestQueue {
    fn drop(&mut self) {
        self.leave();
    }
}

impl RestRequest {
    /// Returns the place of the request's row.
    fn row(self) -> usize {
        match self {
            Self::Time => 0,
            Self::Snapshot(instrument) => instrument + 1,
        }
    }
}

struct SharedRequests {
    client: HttpsClient,
    clock: HostClock,
    offer: SnapshotOffer,
    /// Names of the instruments.
    names: Vec<String>,
    /// The request for the time, and those for the snapshots of the instruments.
    rows: Vec<RequestRow>,
    /// Requests that have not begun, some of them with the ticks before which they do not begin.
    waiting: VecDeque<(RestRequest, Option<u64>)>,
    in_flight: Vec<(RestRequest, PendingResponse)>,
    budget: WeightBudget,
    /// No request begins before these ticks.
    not_before: u64,
    /// Refusals of this address since the last good response.
    refusals: u32,
    feeds: Vec<FeedShare>,
}

#[derive(Default)]
struct RequestRow {
    /// The request is waiting or in flight.
    is_pending: bool,
    /// Feeds that wait for the answer.
    feeds: Vec<usize>,
    /// Feeds that wait for an answer to a later request than the one in flight.
    late_feeds: Vec<usize>,
    /// Failures since the last good answer.
    failures: u32,
}

#[derive(Default)]
struct FeedShare {
    is_up: bool,
    answers: VecDeque<RestAnswer>,
}

impl SharedRequests {
    fn request(&mut self, feed: usize, request: RestRequest) {
        self.wait(feed, request);
        if !mem::replace(&mut self.rows[request.row()].is_pending, true) {
            self.waiting.push_back((request, None));
        }
    }

    fn is_in_flight(&self, request: RestRequest) -> bool {
        self.in_flight.iter().any(|(begun, _)| *begun == request)
    }

    /// Notes that a feed waits for an answer.
    fn wait(&mut self, feed: usize, request: RestRequest) {
        let feeds = &mut self.rows[request.row()].feeds;
        if !feeds.contains(&feed) {
            feeds.push(feed);
        }
    }

    fn leave(&mut self, feed: usize) {
        self.feeds[feed] = FeedShare::default();
        for row in &mut self.rows {
            row.feeds.retain(|waiting| *waiting != feed);
            row.late_feeds.retain(|waiting| *waiting != feed);
            row.is_pending &= !(row.feeds.is_empty() && row.late_feeds.is_empty());
        }
        let rows = &self.rows;
        self.waiting.retain(|(request, _)| rows[request.row()].is_pending);
        self.in_flight.retain(|(request, _)| rows[request.row()].is_pending);
    }

    fn poll(&mut self, feed: usize, now: u64) -> usize {
        let mut done = 0;
        let mut place = 0;
        while place < self.in_flight.len() {
            let Some(response) = self.in_flight[place].1.try_take() else {
                place += 1;
                continue;
            };
            let (request, _) = self.in_flight.remove(place);
            self.finish(feed, request, response, now);
            done += 1;
        }
        while let Some(request) = self.next_due(now) {
            let pending = self.client.start(HttpRequest::get(&self.path(request)));
            self.in_flight.push((request, pending));
            done += 1;
        }
        done
    }

    /// Takes the next request that may begin now, and spends its weight.
    fn next_due(&mut self, now: u64) -> Option<RestRequest> {
        let is_paused = self.clock.ns_between(self.not_before, now) < 0;
        if self.in_flight.len() == MAX_IN_FLIGHT || is_paused || !self.budget.has_room(now) {
            return None;
        }
        let is_due = |at: Option<u64>| at.is_none_or(|at| self.clock.ns_between(at, now) >= 0);
        let place = self.waiting.iter().position(|(_, at)| is_due(*at))?;
        let (request, _) = self.waiting.remove(place)?;
        let weight = match request {
            RestRequest::Time => TIME_WEIGHT,
            RestRequest::Snapshot(_) => self.offer.weight,
        };
        self.budget.spend(weight, now);
        Some(request)
    }

    fn finish(&mut self, feed: usize, request: RestRequest, response: Result<HttpResponse, HttpError>, now: u64) {
        match response {
            Ok(response) if response.status == 200 => {
                self.note_weight(&response, now);
                self.refusals = 0;
                match answer_of(request, response) {
                    Some(answer) => self.deliver(request, &answer),
                    None => self.fail(feed, request, UNREADABLE, None, now),
                }
            }
            Ok(response) => {
                let error = read_error(&response.body).map(|error| format!(", {error}")).unwrap_or_default();
                self.fail(feed, request, &format!("status {}{error}", response.status), Some(&response), now);
            }
            Err(error) => self.fail(feed, request, &error.to_string(), None, now),
        }
    }

    fn deliver(&mut self, request: RestRequest, answer: &RestAnswer) {
        let row = &mut self.rows[request.row()];
        row.is_pending = false;
        if request == RestRequest::Time {
            row.failures = 0;
        }
        let late_feeds = mem::take(&mut row.late_feeds);
        for feed in mem::take(&mut row.feeds) {
            self.feeds[feed].answers.push_back(answer.clone());
        }
        late_feeds.into_iter().for_each(|feed| self.request(feed, request));
    }

    /// Reports a failure to the feed that polls, and requests the same again after a pause.
    fn fail(&mut self, feed: usize, request: RestRequest, why: &str, response: Option<&HttpResponse>, now: u64) {
        let row = &mut self.rows[request.row()];
        row.is_pending = true;
        row.feeds.append(&mut row.late_feeds);
        let (pause_ns, not_before) = match response.filter(|response| is_of_address(response)) {
            Some(refusal) => {
                let pause_ns = demanded_pause_ns(refusal).max(growing_pause_ns(self.refusals));
                self.refusals = self.refusals.saturating_add(1);
                self.pause(pause_ns, now);
                (pause_ns, None)
            }
            None => {
                let pause_ns = growing_pause_ns(row.failures);
                row.failures = row.failures.saturating_add(1);
                (pause_ns, Some(self.ticks_after(now, pause_ns)))
            }
        };
        self.waiting.push_back((request, not_before));
        let is_wrong = response.is_some_and(|response| response.status == 400);
        let remedy = if is_wrong { "; check the name of the instrument" } else { "" };
        let (name, seconds) = (self.describe(request), pause_ns / SECOND_NS);
        let report = format!("{name}: {why}{remedy}; it is requested again in {seconds} s");
        self.feeds[feed].answers.push_back(RestAnswer::Failed(report));
    }

    /// Pauses if the used weight is near the limit, which other programs of this address may have used.
    fn note_weight(&mut self, response: &HttpResponse, now: u64) {
        let used = header(response, WEIGHT_HEADER).and_then(|text| text.trim().parse::<u64>().ok());
        if used.is_some_and(|used| self.budget.is_near_limit(used)) {
            self.pause(WEIGHT_PAUSE_NS, now);
        }
    }

    fn pause(&mut self, pause_ns: u64, now: u64) {
        let until = self.ticks_after(now, pause_ns);
        if self.clock.ns_between(self.not_before, until) > 0 {
            self.not_before = until;
        }
    }

    fn ticks_after(&self, now: u64, ns: u64) -> u64 {
        now.wrapping_add(self.clock.calibration().ticks_of_ns(ns))
    }

    fn path(&self, request: RestRequest) -> String {
        let root = match self.offer.market {
            BinanceMarket::Spot => "/api/v3",
            BinanceMarket::UsdFutures => "/fapi/v1",
        };
        match request {
            RestRequest::Time => format!("{root}/time"),
            RestRequest::Snapshot(instrument) => {
                let (name, depth) = (percent_encoded(&self.names[instrument]), self.offer.depth);
                format!("{root}/depth?symbol={name}&limit={depth}")
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

/// Returns the answer in a good response; none if it cannot be read. A snapshot is read by the feed's parser.
fn answer_of(request: RestRequest, response: HttpResponse) -> Option<RestAnswer> {
    match request {
        RestRequest::Time => {
            let HttpResponse { sent, received, .. } = response;
            read_server_time(&response.body).map(|server_ms| RestAnswer::Time { server_ms, sent, received })
        }
        RestRequest::Snapshot(instrument) => Some(RestAnswer::Snapshot { instrument, response: Arc::new(response) }),
    }
}

/// Returns whether a refusal concerns all requests of this address.
fn is_of_address(response: &HttpResponse) -> bool {
    matches!(response.status, 403 | 418 | 429) || header(response, RETRY_HEADER).is_some()
}

/// Returns the pause that a refusal demands; zero if it names none and is no ban.
fn demanded_pause_ns(response: &HttpResponse) -> u64 {
    let demanded = header(response, RETRY_HEADER).and_then(|text| text.trim().parse::<u64>().ok());
    let ban = if response.status == 418 { BAN_NS } else { 0 };
    demanded.map_or(ban, |seconds| seconds.min(MAX_BAN_SECONDS) * SECOND_NS)
}

/// Returns the pause after this many failures in a row before.
fn growing_pause_ns(failures: u32) -> u64 {
    (MIN_PAUSE_NS << failures.min(6)).min(MAX_PAUSE_NS)
}

fn header<'a>(response: &'a HttpResponse, name: &str) -> Option<&'a str> {
    let found = response.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}
