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
    ConnectError, Event, OriginTracker, Pauses, PublisherState, ReceiveError, ResumeToken, Start, Subscriber,
};
use tickpath_clock::Wait;

use crate::error::ServerError;
use crate::reconnect::{PAUSE, State};
use crate::server::Server;
use crate::stream_feed::Feed;
use crate::stream_progress::Progress;

/// Subscription that outlives its connections.
pub(crate) struct StreamSubscriber {
    server: Arc<Server>,
    topic: String,
    wait: Wait,
    /// Position in the stream, as of the last lost connection.
    progress: Progress,
    tracker: OriginTracker,
    state: State<Feed>,
    /// True if the connection is being replaced though it may not be lost.
    is_renewed: bool,
    reconnects: u64,
    pauses: Pauses,
}

impl StreamSubscriber {
    /// Connects, fixes the start of the subscription, and sends the first `XREAD`.
    pub fn open(server: Arc<Server>, topic: &str, start: Start, wait: Wait) -> Result<Self, ConnectError> {
        let (feed, tracker) = match start {
            Start::After(token) => {
                let (before, tracker) = Progress::after(&token)?;
                (Feed::resume(&server, topic, &before, &tracker, false), tracker)
            }
            start => (Feed::begin(&server, topic, start), OriginTracker::default()),
        };
        let feed = feed.map_err(|e| server.error(&e))?;
        let (topic, progress, pauses) = (topic.to_owned(), feed.progress.clone(), Pauses::new(PAUSE, server.clock()));
        let (state, is_renewed, reconnects) = (State::Connected(feed), false, 0);
        Ok(Self { server, topic, wait, progress, tracker, state, is_renewed, reconnects, pauses })
    }

    fn reconnect(&mut self, why: &ServerError) {
        let (topic, before, seen) = (self.topic.clone(), self.progress.clone(), self.tracker.clone());
        let looks_rarely = matches!(why, ServerError::Unproven);
        let open = Box::new(move |server: &Server| Feed::resume(server, &topic, &before, &seen, looks_rarely));
        // An unproven connection is no outage, as long as the server accepts the next one.
        self.is_renewed = looks_rarely;
        let why = Some(why).filter(|_| !self.is_renewed);
        self.state.renew_after(self.pauses.next_pause(), &self.server, why, open);
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
        self.reconnect(&e);
        // An error that does not pass by itself would recur on every connection, without a report.
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
                None
            }
            // An error line of the server is still there for the next poll.
            State::Connected(feed) => {
                let lost = feed.sleep(timeout).err().filter(ServerError::may_pass);
                if lost.is_some() {
                    self.progress = feed.progress.clone();
                }
                lost
            }
        };
        if let Some(e) = lost {
            self.reconnect(&e);
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

    fn duplicates(&self) -> Option<u64> {
        Some(self.tracker.again())
    }

    fn late(&self) -> Option<u64> {
        Some(self.tracker.late())
    }

    fn outage(&self) -> Option<String> {
        self.state.outage()
    }
}
