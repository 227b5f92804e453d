//! Requests on their way to the exchange: their time, their cost, and the queries of the line itself in flight.

use serde_json::Value;
use tickpath_clock::{Clock, HostClock};
use tickpath_venue::{LineSendError, SendStamps};
use tickpath_web_client::{UpgradeRefusal, WebSocketClient, WebSocketSendError};

use crate::budget::{RequestBudget, RequestCost};
use crate::connect_steps::ConnectStep;
use crate::encode::{RequestEncoder, RequestId};
use crate::exchange_clock::ExchangeClock;
use crate::message::{BANNED, Refusal, TOO_MANY_ORDERS, is_rate_limit};

const MS_NS: u64 = 1_000_000;
/// Pauses after a refusal that names none, by its kind: orders, weight, and a ban.
const ORDERS_PAUSE_MS: u64 = 10_000;
const WEIGHT_PAUSE_MS: u64 = 60_000;
const BAN_PAUSE_MS: u64 = 120_000;
/// Longest ban of the exchange.
const MAX_PAUSE_MS: u64 = 3 * 24 * 3_600_000;

/// Purpose of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryPurpose {
    Connect(ConnectStep),
    /// The exchange's time, once more.
    Time,
    /// The next query of the status job with this id.
    Job(u64),
    /// The second step of the replace of this order.
    Place(u64),
}

/// A query in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentQuery {
    id: u64,
    pub(crate) purpose: QueryPurpose,
    /// Ticks of its send.
    pub(crate) sent: u64,
}

/// Sender of requests.
pub(crate) struct Outgoing {
    pub(crate) clock: HostClock,
    pub(crate) encoder: RequestEncoder,
    pub(crate) budget: RequestBudget,
    pub(crate) exchange: ExchangeClock,
    queries: Vec<SentQuery>,
    next_query: u64,
}

impl Outgoing {
    pub(crate) fn new(clock: HostClock, encoder: RequestEncoder, budget: RequestBudget) -> Self {
        let exchange = ExchangeClock::new(clock);
        Self { clock, encoder, budget, exchange, queries: Vec::new(), next_query: 1 }
    }

    /// Sends the last written request, which has this cost. Without room nothing is sent.
    #[inline]
    pub(crate) fn send(
        &mut self,
        client: &mut WebSocketClient,
        cost: RequestCost,
        now: u64,
    ) -> Result<SendStamps, LineSendError> {
        let encoded = self.clock.ticks();
        client.send_text(self.encoder.text()).map_err(|error| match error {
            WebSocketSendError::Full => LineSendError::Full,
            WebSocketSendError::Down => LineSendError::Down,
        })?;
        self.budget.spend(cost, now);
        Ok(SendStamps { encoded, ready: client.last_ready(), written: self.clock.ticks() })
    }

    /// Sends a query of the line itself; `write` gets its id and the exchange's time. Returns false if there is no room
    /// for it now.
    pub(crate) fn send_query(
        &mut self,
        client: &mut WebSocketClient,
        cost: RequestCost,
        purpose: QueryPurpose,
        now: u64,
        write: impl FnOnce(&mut RequestEncoder, RequestId, u64),
    ) -> bool {
        if !self.budget.has_room(cost, now) {
            return false;
        }
        let id = self.next_query;
        write(&mut self.encoder, RequestId::Query(id), self.exchange.ms(now));
        // The next poll reports a lost connection.
        if self.send(client, cost, now).is_err() {
            return false;
        }
        self.next_query += 1;
        self.queries.push(SentQuery { id, purpose, sent: now });
        true
    }

    /// Removes and returns an answered query.
    pub(crate) fn take_query(&mut self, id: u64) -> Option<SentQuery> {
        let place = self.queries.iter().position(|query| query.id == id)?;
        Some(self.queries.remove(place))
    }

    /// Returns the time of the oldest query in flight, in ticks.
    pub(crate) fn oldest_query(&self) -> Option<u64> {
        self.queries.first().map(|query| query.sent)
    }

    /// Returns whether a query of this purpose is in flight.
    pub(crate) fn is_asking(&self, purpose: QueryPurpose) -> bool {
        self.queries.iter().any(|query| query.purpose == purpose)
    }

    /// Drops the queries in flight: the connection is lost.
    pub(crate) fn clear(&mut self) {
        self.queries.clear();
    }

    /// Keeps requests back after a refusal for their number: as long as the exchange demands.
    pub(crate) fn note_rate_limit(&mut self, refusal: &Refusal, now: u64) {
        let number = |key: &str| refusal.data.get(key).and_then(Value::as_u64);
        let server_ms = number("serverTime").unwrap_or_else(|| self.exchange.ms(now));
        let demanded_ms = number("retryAfter").map(|until_ms| until_ms.saturating_sub(server_ms));
        match refusal.code {
            TOO_MANY_ORDERS => {
                let until = self.end_of_pause(demanded_ms.unwrap_or(ORDERS_PAUSE_MS), now);
                self.budget.block_orders(until);
            }
            _ => self.block(refusal.status, demanded_ms, now),
        }
    }

    /// Keeps all requests and the next connects back after a refused connect, if the exchange has refused it for the
    /// number of requests.
    pub(crate) fn note_refused_connect(&mut self, refusal: UpgradeRefusal) {
        let status = u64::from(refusal.status);
        if is_rate_limit(status) {
            let demanded_ms = refusal.retry_after_s.map(|seconds| seconds.saturating_mul(1_000));
            self.block(status, demanded_ms, self.clock.ticks());
        }
    }

    fn block(&mut self, status: u64, demanded_ms: Option<u64>, now: u64) {
        let usual_ms = if status == BANNED { BAN_PAUSE_MS } else { WEIGHT_PAUSE_MS };
        let until = self.end_of_pause(demanded_ms.unwrap_or(usual_ms), now);
        self.budget.block(until);
    }

    fn end_of_pause(&self, pause_ms: u64, now: u64) -> u64 {
        now + self.clock.calibration().ticks_of_ns(pause_ms.min(MAX_PAUSE_MS) * MS_NS)
    }
}
