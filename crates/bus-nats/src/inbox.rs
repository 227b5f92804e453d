//! Messages of a JetStream consumer, asked for as they are wanted.
//!
//! A standing request for so many messages lies at the server until it is met, so that each message comes at once.
//! While it lies there the server gives signs of life; where they stay out, the consumer or its stream is gone, which
//! nobody says. What is known to be there is fetched by a request that ends at once, and leaves nothing at the server.

use std::pin::pin;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{Message, StatusCode, Subject, Subscriber};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tokio::time::timeout;

use crate::connected::{Connected, TIMEOUT};
use crate::demand::Demand;
use crate::error::{ServerError, said};

/// How long a request lies at the server before it is made again.
const EXPIRES: Duration = Duration::from_secs(30);

/// The server's signs of life; two of them fit into [`TIMEOUT`].
const HEARTBEAT: Duration = Duration::from_secs(2);

/// How long the server keeps a request for what is there: only if others were quicker nothing ends it before.
const FETCH_EXPIRES: Duration = Duration::from_millis(50);

/// The most bytes that a request is for. It is a prime: a request that is met to the byte ends without a word.
const MOST_FETCHED_BYTES: usize = (8 << 20) - 15;

/// After so long without a word a request for what is there has ended all the same.
const FETCH_SILENCE: Duration = Duration::from_millis(500);

/// Where a consumer's messages come to.
pub(crate) struct Inbox {
    consumer: PullConsumer,
    address: String,
    subscription: Subscriber,
    demand: Demand,
    /// Messages that the server was asked for by standing requests and has not sent.
    asked: usize,
    /// None has come since the last of these requests.
    is_fresh: bool,
    /// The next message has more bytes than such a request is for.
    is_long: bool,
    /// Requests for what is there: each has an address of its own, to which the server says that it has ended.
    fetches: u64,
}

/// A request for what is there.
pub(crate) struct Fetch {
    address: String,
    /// Messages that may still come.
    missing: usize,
    has_come: bool,
    /// It ended because the next message has too many bytes.
    is_cut: bool,
}

impl Fetch {
    /// True if it ended with nothing, because the first message alone has too many bytes.
    pub fn is_too_small(&self) -> bool {
        self.is_cut && !self.has_come
    }
}

impl Inbox {
    /// Subscribes. The first request goes out with the first call of [`Self::next`].
    pub async fn open(connected: &Connected, consumer: PullConsumer, demand: Demand) -> Result<Self, ServerError> {
        let address = connected.client.new_inbox();
        let subscription = connected.client.subscribe(format!("{address}.*")).await.map_err(ServerError::closed)?;
        Ok(Self { consumer, address, subscription, demand, asked: 0, is_fresh: false, is_long: false, fetches: 0 })
    }

    /// The consumer's name at the server.
    pub fn consumer(&self) -> &str {
        &self.consumer.cached_info().name
    }

    /// The next message. Nothing is lost if this is dropped before it is done.
    pub async fn next(&mut self) -> Result<Message, ServerError> {
        loop {
            self.ask().await?;
            let silence = if self.asked > 0 { TIMEOUT } else { Duration::MAX };
            let came = {
                let coming = pin!(timeout(silence, self.subscription.next()));
                let grown = pin!(self.demand.grown());
                match select(coming, grown).await {
                    Either::Left((came, _)) => came,
                    Either::Right(_) => continue,
                }
            };
            let message = came.map_err(|_elapsed| ServerError::StreamGone)?.ok_or(ServerError::Closed)?;
            if self.is_message(&message)? {
                return Ok(message);
            }
        }
    }

    /// Asks for up to so many messages that are there now. They come by [`Self::fetched`].
    pub async fn fetch(&mut self, messages: usize) -> Result<Fetch, ServerError> {
        self.fetch_by(messages, MOST_FETCHED_BYTES).await
    }

    /// Asks for one message that is there now, however long.
    pub async fn fetch_long(&mut self) -> Result<Fetch, ServerError> {
        self.fetch_by(1, 0).await
    }

    /// The next message that was asked for so; none when there is no more.
    pub async fn fetched(&mut self, fetch: &mut Fetch) -> Result<Option<Message>, ServerError> {
        while fetch.missing > 0 {
            let Ok(came) = timeout(FETCH_SILENCE, self.subscription.next()).await else { break };
            let message = came.ok_or(ServerError::Closed)?;
            if matches!(message.status, None | Some(StatusCode::OK)) {
                fetch.missing -= 1;
                fetch.has_come = true;
                return Ok(Some(message));
            }
            // What is said of another request may come late.
            if message.subject.as_str() != fetch.address {
                self.is_message(&message)?;
            } else if is_end(&message)? {
                fetch.is_cut = is_too_long(&message);
                break;
            }
        }
        fetch.missing = 0;
        Ok(None)
    }

    /// Ends the subscription; gives the messages that had come by then.
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

    /// Asks for what is wanted beyond what was asked for, if there is room for it.
    async fn ask(&mut self) -> Result<(), ServerError> {
        let missing = self.demand.wanted().saturating_sub(self.asked);
        if missing == 0 || !self.demand.has_room() {
            return Ok(());
        }
        let batch = if self.is_long { 1 } else { missing };
        let request = BatchConfig {
            batch,
            expires: Some(EXPIRES),
            idle_heartbeat: HEARTBEAT,
            // One message comes alone, however long.
            max_bytes: if batch == 1 { 0 } else { MOST_FETCHED_BYTES },
            ..BatchConfig::default()
        };
        let address = Subject::from(format!("{}.standing", self.address));
        self.consumer.request_batch(request, address).await.map_err(ServerError::closed)?;
        self.asked += batch;
        (self.is_fresh, self.is_long) = (true, false);
        Ok(())
    }

    async fn fetch_by(&mut self, messages: usize, most_bytes: usize) -> Result<Fetch, ServerError> {
        self.fetches += 1;
        let address = format!("{}.{}", self.address, self.fetches);
        let request = BatchConfig {
            batch: messages,
            // It ends when nothing is left. Without a limit it would stay if others were quicker.
            no_wait: true,
            expires: Some(FETCH_EXPIRES),
            max_bytes: most_bytes,
            ..BatchConfig::default()
        };
        self.consumer.request_batch(request, Subject::from(address.as_str())).await.map_err(ServerError::closed)?;
        Ok(Fetch { address, missing: messages, has_come: false, is_cut: false })
    }

    /// Whether this is a message, and not a word about a request.
    fn is_message(&mut self, message: &Message) -> Result<bool, ServerError> {
        let is_standing = || message.subject.ends_with(".standing");
        match message.status {
            // A request for what was there, which ended without us: all of it has come, or comes to somebody else.
            Some(StatusCode::TIMEOUT) if !is_standing() => {}
            Some(StatusCode::REQUEST_TERMINATED)
                if !is_standing() && (is_too_long(message) || unmet(message).is_some()) => {}
            None | Some(StatusCode::OK) => {
                self.asked = self.asked.saturating_sub(1);
                self.is_fresh = false;
                return Ok(true);
            }
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            Some(StatusCode::TIMEOUT) => self.forget(unmet(message).unwrap_or(self.asked)),
            // It has brought what fits, or nothing.
            Some(StatusCode::REQUEST_TERMINATED) if is_too_long(message) => {
                self.is_long = self.is_fresh;
                self.forget(unmet(message).unwrap_or(self.asked));
            }
            Some(StatusCode::REQUEST_TERMINATED) => self.forget(unmet(message).ok_or(ServerError::StreamGone)?),
            Some(StatusCode::NO_RESPONDERS) => return Err(ServerError::StreamGone),
            // Of a request for what was there, late.
            Some(StatusCode::NOT_FOUND) => {}
            Some(_) => return Err(refused(message)),
        }
        Ok(false)
    }

    /// A request has ended; so many messages will not come by it.
    fn forget(&mut self, messages: usize) {
        self.asked = self.asked.saturating_sub(messages);
    }
}

/// Whether a word about a request for what is there says that it has ended.
fn is_end(message: &Message) -> Result<bool, ServerError> {
    match message.status {
        Some(StatusCode::IDLE_HEARTBEAT) => Ok(false),
        Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => Ok(true),
        // There is no code for it.
        Some(StatusCode::REQUEST_TERMINATED) if is_too_long(message) => Ok(true),
        Some(StatusCode::REQUEST_TERMINATED) => unmet(message).map(|_unmet| true).ok_or(ServerError::StreamGone),
        Some(StatusCode::NO_RESPONDERS) => Err(ServerError::StreamGone),
        _ => Err(refused(message)),
    }
}

/// Whether the next message has more bytes than were asked for.
fn is_too_long(message: &Message) -> bool {
    message.description.as_deref().is_some_and(|text| text.starts_with("Message Size Exceeds"))
}

fn refused(message: &Message) -> ServerError {
    let status = message.status.map(|status| status.to_string()).unwrap_or_default();
    let description = message.description.as_deref().unwrap_or_default();
    ServerError::Refused(said(&format!("{status} {description}")))
}

/// How many messages a request that has ended was still to bring.
fn unmet(message: &Message) -> Option<usize> {
    message.headers.as_ref()?.get("Nats-Pending-Messages")?.as_str().parse().ok()
}
