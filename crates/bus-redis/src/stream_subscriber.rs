//! Receives one stream.
//!
//! ```text
//!   XREAD BLOCK 1000 … behind id 5 ──>  server: sleeps with the question until there is something, or for a second
//!   6, 7, 8                        <──
//!   XREAD BLOCK 1000 … behind id 8 ──>
//! ```
//! So one question is always out, its answer comes the moment that something is published, and looking for it costs
//! no more than with publish and subscribe. That it ends is for losses that nobody would see else (see `stream_feed`).

use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{
    ConnectError, Event, OriginTracker, Pauses, PublisherState, ReceiveError, ResumeToken, Start, Subscriber,
};
use tickpath_clock::Wait;

use crate::error::ServerError;
use crate::reconnect::{PAUSE, State};
use crate::server::Server;
use crate::stream_feed::Feed;
use crate::stream_progress::Progress;

/// A subscription, which outlives its connections.
pub(crate) struct StreamSubscriber {
    server: Arc<Server>,
    topic: String,
    wait: Wait,
    /// How far it has come.
    progress: Progress,
    tracker: OriginTracker,
    state: State<Feed>,
    reconnects: u64,
    pauses: Pauses,
}

impl StreamSubscriber {
    /// Connects, fixes where the subscription begins, and asks.
    pub fn open(server: Arc<Server>, topic: &str, start: Start, wait: Wait) -> Result<Self, ConnectError> {
        let (feed, tracker) = match start {
            Start::After(token) => {
                let (before, tracker) = Progress::after(&token)?;
                (Feed::resume(&server, topic, &before, &tracker), tracker)
            }
            start => (Feed::begin(&server, topic, start), OriginTracker::default()),
        };
        let feed = feed.map_err(|e| server.error(&e))?;
        let (topic, progress, pauses) = (topic.to_owned(), feed.progress.clone(), Pauses::new(PAUSE, server.clock()));
        Ok(Self { server, topic, wait, progress, tracker, state: State::Connected(feed), reconnects: 0, pauses })
    }

    fn reconnect(&mut self) {
        let (topic, before, seen) = (self.topic.clone(), self.progress.clone(), self.tracker.clone());
        let open = Box::new(move |server: &Server| Feed::resume(server, &topic, &before, &seen));
        self.state.renew_after(self.pauses.next_pause(), &self.server, open);
    }

    /// True if the connection is there again by now.
    #[cold]
    fn is_reconnected(&mut self) -> Result<bool, ReceiveError> {
        match self.state.outcome() {
            None => Ok(false),
            Some(Ok(())) => {
                self.reconnects += 1;
                Ok(true)
            }
            Some(Err(e)) => {
                self.reconnect();
                Err(self.server.receive_error(&e))
            }
        }
    }
}

impl Subscriber for StreamSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        if matches!(self.state, State::Lost(_)) && !self.is_reconnected()? {
            return Ok(0);
        }
        let State::Connected(feed) = &mut self.state else { return Ok(0) };
        let mut handed_over = 0;
        let drained = feed.drain(&self.topic, &mut self.tracker, limit, &mut |event| {
            handed_over += 1;
            handler(event);
        });
        let Err(e) = drained else { return Ok(handed_over) };
        self.progress = feed.progress.clone();
        self.reconnect();
        // What does not pass by itself would come again and again, and nobody would know.
        if e.may_pass() || handed_over > 0 { Ok(handed_over) } else { Err(self.server.receive_error(&e)) }
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        let timeout = Duration::from_nanos(timeout_ns);
        let lost = match &mut self.state {
            State::Lost(reconnect) => {
                reconnect.wait(timeout);
                false
            }
            // An error that the server sent is still there for the next look.
            State::Connected(feed) => {
                let lost = feed.sleep(timeout).is_err_and(|e: ServerError| e.may_pass());
                if lost {
                    self.progress = feed.progress.clone();
                }
                lost
            }
        };
        if lost {
            self.reconnect();
        }
    }

    fn token(&self) -> Option<ResumeToken> {
        let progress = match &self.state {
            State::Connected(feed) => &feed.progress,
            State::Lost(_) => &self.progress,
        };
        Some(progress.token(&self.tracker))
    }

    fn carry_on(&mut self) {
        self.tracker.carry_on();
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}
