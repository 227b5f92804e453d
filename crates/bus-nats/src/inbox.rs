//! The inbox of a JetStream consumer: messages are requested as they are wanted.
//!
//! A standing request lies at the server until it is met, so that each message comes at once. While it lies there the
//! server sends heartbeats; if they stop, the consumer or its stream is gone, which the server does not report.
//! Messages that wait at the server are fetched by a request that ends at once, and leaves nothing at the server.

use std::pin::pin;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{Message, StatusCode, Subject, Subscriber};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tokio::time::timeout;

use crate::connection::{NatsConnection, TIMEOUT};
use crate::demand::Demand;
use crate::error::{NatsServerError, ServerResult, printable_server_text};

/// The lifetime of a standing request at the server, after which it is made again.
const STANDING_EXPIRY: Duration = Duration::from_secs(30);

/// The interval of the server's heartbeats; two of them fit into [`TIMEOUT`].
const HEARTBEAT: Duration = Duration::from_secs(2);

/// The lifetime of a fetch at the server; a fetch lives that long only if other pullers took its messages first.
const FETCH_EXPIRES: Duration = Duration::from_millis(50);

/// Max bytes of one request. A prime, because a request that is met to the byte ends without a status message.
const MAX_FETCH_BYTES: usize = (8 << 20) - 15;

/// The time without any message after which a fetch counts as ended.
const FETCH_SILENCE: Duration = Duration::from_millis(500);

pub(crate) struct ConsumerInbox {
    consumer: PullConsumer,
    address: String,
    subscription: Subscriber,
    demand: Demand,
    /// The number of messages outstanding from standing requests.
    outstanding: usize,
    /// True until a message comes after the last standing request.
    is_fresh: bool,
    /// True if the next message has more bytes than a standing request allows.
    is_next_oversized: bool,
    /// The number of fetches so far: each has an address of its own, to which the server reports its end.
    fetches: u64,
}

pub(crate) struct InboxFetch {
    address: String,
    /// The number of messages that may still come.
    missing: usize,
    has_received: bool,
    /// True if it ended because the next message has too many bytes.
    is_size_limited: bool,
}

impl InboxFetch {
    /// Returns true if it ended with no message, because the first message alone has too many bytes.
    pub fn is_too_small(&self) -> bool {
        self.is_size_limited && !self.has_received
    }
}

impl ConsumerInbox {
    /// Subscribes. The first call of [`Self::next`] sends the first request.
    pub async fn open(connected: &NatsConnection, consumer: PullConsumer, demand: Demand) -> ServerResult<Self> {
        let address = connected.client.new_inbox();
        let subscription = connected.client.subscribe(format!("{address}.*")).await.map_err(NatsServerError::closed)?;
        Ok(Self {
            consumer,
            address,
            subscription,
            demand,
            outstanding: 0,
            is_fresh: false,
            is_next_oversized: false,
            fetches: 0,
        })
    }

    /// Returns the consumer's name at the server.
    pub fn consumer(&self) -> &str {
        &self.consumer.cached_info().name
    }

    /// Returns the next message. Cancel-safe: no message is lost if the future is dropped.
    pub async fn next(&mut self) -> ServerResult<Message> {
        loop {
            self.send_standing_request().await?;
            let silence = if self.outstanding > 0 { TIMEOUT } else { Duration::MAX };
            let received = {
                let coming = pin!(timeout(silence, self.subscription.next()));
                let grown = pin!(self.demand.wait_for_growth());
                match select(coming, grown).await {
                    Either::Left((received, _)) => received,
                    Either::Right(_) => continue,
                }
            };
            let message = received.map_err(|_elapsed| NatsServerError::StreamGone)?.ok_or(NatsServerError::Closed)?;
            if self.is_message(&message)? {
                return Ok(message);
            }
        }
    }

    /// Requests at most this many messages that wait at the server; [`Self::next_fetched`] returns them.
    pub async fn fetch(&mut self, messages: usize) -> ServerResult<InboxFetch> {
        self.send_fetch(messages, MAX_FETCH_BYTES).await
    }

    /// Requests one message that waits at the server, of any length.
    pub async fn fetch_long(&mut self) -> ServerResult<InboxFetch> {
        self.send_fetch(1, 0).await
    }

    /// Returns the next message of a fetch; none when the fetch has ended.
    pub async fn next_fetched(&mut self, fetch: &mut InboxFetch) -> ServerResult<Option<Message>> {
        while fetch.missing > 0 {
            let Ok(received) = timeout(FETCH_SILENCE, self.subscription.next()).await else { break };
            let message = received.ok_or(NatsServerError::Closed)?;
            if matches!(message.status, None | Some(StatusCode::OK)) {
                fetch.missing -= 1;
                fetch.has_received = true;
                return Ok(Some(message));
            }
            // The status of another request may come late.
            if message.subject.as_str() != fetch.address {
                self.is_message(&message)?;
            } else if is_end(&message)? {
                fetch.is_size_limited = is_too_long(&message);
                break;
            }
        }
        fetch.missing = 0;
        Ok(None)
    }

    /// Ends the subscription; returns the messages that had come by then.
    pub async fn close(mut self) -> Vec<Message> {
        let mut left = Vec::new();
        if self.subscription.drain().await.is_ok() {
            while let Some(message) = self.subscription.next().await {
                if message.status.is_none() {
                    left.push(message);
                }
            }
        }
        left
    }

    /// Sends a standing request for the demand that no outstanding request covers, if there is room for it.
    async fn send_standing_request(&mut self) -> ServerResult {
        let missing = self.demand.wanted().saturating_sub(self.outstanding);
        if missing == 0 || !self.demand.has_room() {
            return Ok(());
        }
        let batch = if self.is_next_oversized { 1 } else { missing };
        let request = BatchConfig {
            batch,
            expires: Some(STANDING_EXPIRY),
            idle_heartbeat: HEARTBEAT,
            // A single message may have any length.
            max_bytes: if batch == 1 { 0 } else { MAX_FETCH_BYTES },
            ..BatchConfig::default()
        };
        let address = Subject::from(format!("{}.standing", self.address));
        self.consumer.request_batch(request, address).await.map_err(NatsServerError::closed)?;
        self.outstanding += batch;
        (self.is_fresh, self.is_next_oversized) = (true, false);
        Ok(())
    }

    async fn send_fetch(&mut self, messages: usize, max_bytes: usize) -> ServerResult<InboxFetch> {
        self.fetches += 1;
        let address = format!("{}.{}", self.address, self.fetches);
        let request = BatchConfig {
            batch: messages,
            // The request ends when nothing is left; the expiry ends it if other pullers were quicker.
            no_wait: true,
            expires: Some(FETCH_EXPIRES),
            max_bytes,
            ..BatchConfig::default()
        };
        self.consumer.request_batch(request, Subject::from(address.as_str())).await.map_err(NatsServerError::closed)?;
        Ok(InboxFetch { address, missing: messages, has_received: false, is_size_limited: false })
    }

    /// Reports whether this is a message. A status lowers the number outstanding, or fails if the consumer is gone.
    fn is_message(&mut self, message: &Message) -> ServerResult<bool> {
        let is_standing = || message.subject.ends_with(".standing");
        match message.status {
            // A fetch that has already ended here: all its messages have come, or go to another puller.
            Some(StatusCode::TIMEOUT) if !is_standing() => {}
            Some(StatusCode::REQUEST_TERMINATED)
                if !is_standing() && (is_too_long(message) || unfulfilled(message).is_some()) => {}
            None | Some(StatusCode::OK) => {
                self.outstanding = self.outstanding.saturating_sub(1);
                self.is_fresh = false;
                return Ok(true);
            }
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            Some(StatusCode::TIMEOUT) => self.subtract_outstanding(unfulfilled(message).unwrap_or(self.outstanding)),
            // The request has brought as many messages as fit, perhaps none.
            Some(StatusCode::REQUEST_TERMINATED) if is_too_long(message) => {
                self.is_next_oversized = self.is_fresh;
                self.subtract_outstanding(unfulfilled(message).unwrap_or(self.outstanding));
            }
            Some(StatusCode::REQUEST_TERMINATED) => {
                self.subtract_outstanding(unfulfilled(message).ok_or(NatsServerError::StreamGone)?)
            }
            Some(StatusCode::NO_RESPONDERS) => return Err(NatsServerError::StreamGone),
            // The late end of a fetch.
            Some(StatusCode::NOT_FOUND) => {}
            Some(_) => return Err(status_error(message)),
        }
        Ok(false)
    }

    /// Subtracts messages that a request which has ended will not bring.
    fn subtract_outstanding(&mut self, messages: usize) {
        self.outstanding = self.outstanding.saturating_sub(messages);
    }
}

/// Reports whether the status of a fetch ends it.
fn is_end(message: &Message) -> ServerResult<bool> {
    match message.status {
        Some(StatusCode::IDLE_HEARTBEAT) => Ok(false),
        Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => Ok(true),
        // This reason has no status code of its own.
        Some(StatusCode::REQUEST_TERMINATED) if is_too_long(message) => Ok(true),
        Some(StatusCode::REQUEST_TERMINATED) => {
            unfulfilled(message).map(|_unmet| true).ok_or(NatsServerError::StreamGone)
        }
        Some(StatusCode::NO_RESPONDERS) => Err(NatsServerError::StreamGone),
        _ => Err(status_error(message)),
    }
}

/// Returns true if the next message has more bytes than the request allows.
fn is_too_long(message: &Message) -> bool {
    message.description.as_deref().is_some_and(|text| text.starts_with("Message Size Exceeds"))
}

fn status_error(message: &Message) -> NatsServerError {
    let status = message.status.map(|status| status.to_string()).unwrap_or_default();
    let description = message.description.as_deref().unwrap_or_default();
    NatsServerError::Refused(printable_server_text(&format!("{status} {description}")))
}

/// Returns the number of messages that a request was still to bring when it ended.
fn unfulfilled(message: &Message) -> Option<usize> {
    message.headers.as_ref()?.get("Nats-Pending-Messages")?.as_str().parse().ok()
}
