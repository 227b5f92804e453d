//! Subscriber of one stream.
//!
//! ```text
//!   XREAD BLOCK 1000 … behind id 5 ──>  server: blocks the request until there is an entry, or for a second
//!   6, 7, 8                        <──
//!   XREAD BLOCK 1000 … behind id 8 ──>
//! ```
//! So one request is always in flight, an entry comes the moment that it is added, and a poll costs no more than with
//! publish and subscribe. The end after a second lets losses be found that nothing else shows (see `stream_feed`).

use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{
    ConnectError, MessageIdTracker, PublisherState, ReceiveError, ReconnectBackoff, ResumeToken, StartPosition,
    Subscriber, SubscriptionEvent,
};
use tickpath_clock::Wait;

use crate::error::RedisServerError;
use crate::reconnect::{PAUSE, RedisConnectionState};
use crate::server::RedisEndpoint;
use crate::stream_feed::StreamFeed;
use crate::stream_position::StreamPosition;

/// Subscription that outlives its connections.
pub(crate) struct StreamSubscriber {
    server: Arc<RedisEndpoint>,
    topic: String,
    wait: Wait,
    /// Position in the stream, as of the last lost connection.
    position: StreamPosition,
    tracker: MessageIdTracker,
    state: RedisConnectionState<StreamFeed>,
    /// True if the connection is being replaced though it may not be lost.
    is_renewed: bool,
    reconnects: u64,
    pauses: ReconnectBackoff,
}

impl StreamSubscriber {
    /// Connects, fixes the start of the subscription, and sends the first `XREAD`.
    pub fn open(
        server: Arc<RedisEndpoint>,
        topic: &str,
        start: StartPosition,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let (feed, tracker) = match start {
            StartPosition::After(token) => {
                let (before, tracker) = StreamPosition::from_token(&token)?;
                (StreamFeed::resume(&server, topic, &before, &tracker, false), tracker)
            }
            start => (StreamFeed::begin(&server, topic, start), MessageIdTracker::default()),
        };
        let feed = feed.map_err(|e| server.error(&e))?;
        let (topic, progress, pauses) =
            (topic.to_owned(), feed.progress.clone(), ReconnectBackoff::new(PAUSE, server.clock));
        let (state, is_renewed, reconnects) = (RedisConnectionState::Connected(feed), false, 0);
        Ok(Self { server, topic, wait, position: progress, tracker, state, is_renewed, reconnects, pauses })
    }

    fn reconnect(&mut self, why: &RedisServerError) {
        let (topic, before, seen) = (self.topic.clone(), self.position.clone(), self.tracker.clone());
        let polls_rarely = matches!(why, RedisServerError::LivenessUnknown);
        let open =
            Box::new(move |server: &RedisEndpoint| StreamFeed::resume(server, &topic, &before, &seen, polls_rarely));
        // An unproven connection is no outage, as long as the server accepts the next one.
        self.is_renewed = polls_rarely;
        let why = Some(why).filter(|_| !self.is_renewed);
        self.state.reconnect_after(self.pauses.next_backoff(), &self.server, why, open);
    }

    /// Returns true if the connection has been restored.
    #[cold]
    fn is_reconnected(&mut self) -> Result<bool, ReceiveError> {
        // A renewal counts as a reconnect only if an attempt failed.
        let is_lost = self.state.outage().is_some();
        match self.state.outcome() {
            None => Ok(false),
            Some(Ok(())) => {
                self.reconnects += u64::from(!self.is_renewed || is_lost);
                Ok(true)
            }
            Some(Err(e)) => {
                self.reconnect(&e);
                Err(self.server.receive_error(&e))
            }
        }
    }
}

impl Subscriber for StreamSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        if matches!(self.state, RedisConnectionState::Lost(_)) && !self.is_reconnected()? {
            return Ok(0);
        }
        let RedisConnectionState::Connected(feed) = &mut self.state else { return Ok(0) };
        let mut handed_over = 0;
        let drained = feed.drain(&self.topic, &mut self.tracker, limit, &mut |event| {
            handed_over += 1;
            handler(event);
        });
        let Err(e) = drained else { return Ok(handed_over) };
        self.position = feed.progress.clone();
        self.reconnect(&e);
        // An error that does not pass by itself would recur on every connection, without a report.
        if e.is_transient() || handed_over > 0 { Ok(handed_over) } else { Err(self.server.receive_error(&e)) }
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        let timeout = Duration::from_nanos(timeout_ns);
        let lost = match &mut self.state {
            RedisConnectionState::Lost(reconnect) => {
                reconnect.wait(timeout);
                None
            }
            // An error line of the server is still there for the next poll.
            RedisConnectionState::Connected(feed) => {
                let lost = feed.sleep(timeout).err().filter(RedisServerError::is_transient);
                if lost.is_some() {
                    self.position = feed.progress.clone();
                }
                lost
            }
        };
        if let Some(e) = lost {
            self.reconnect(&e);
        }
    }

    fn resume_token(&self) -> Option<ResumeToken> {
        let progress = match &self.state {
            RedisConnectionState::Connected(feed) => &feed.progress,
            RedisConnectionState::Lost(_) => &self.position,
        };
        Some(progress.token(&self.tracker))
    }

    fn enable_bridge_mode(&mut self) {
        self.tracker.enable_bridge_mode();
    }

    fn publisher_state(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.tracker.duplicates())
    }

    fn out_of_order(&self) -> Option<u64> {
        Some(self.tracker.out_of_order())
    }

    fn outage(&self) -> Option<String> {
        self.state.outage()
    }
}
