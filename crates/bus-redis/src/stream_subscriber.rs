//! Receives one stream.
//!
//! ```text
//!   XREAD BLOCK 0 … behind id 5 ──>  server: sleeps with the question until there is something
//!   6, 7, 8                     <──
//!   XREAD BLOCK 0 … behind id 8 ──>
//! ```
//! So one question is always out, its answer comes the moment that something is published, and looking for it costs
//! no more than with publish and subscribe.

use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{ConnectError, Event, Gap, OriginTracker, PublisherState, ReceiveError, Start, Subscriber};
use tickpath_clock::Wait;

use crate::error::ServerError;
use crate::reconnect::State;
use crate::server::Server;
use crate::stream_feed::{Feed, Progress};

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
}

impl StreamSubscriber {
    /// Connects, fixes where the subscription begins, and asks.
    pub fn open(server: Arc<Server>, topic: &str, start: Start, wait: Wait) -> Result<Self, ConnectError> {
        let feed = Feed::begin(&server, topic, start).map_err(|e| server.error(&e))?;
        let (topic, progress) = (topic.to_owned(), feed.progress.clone());
        let tracker = OriginTracker::default();
        Ok(Self { server, topic, wait, progress, tracker, state: State::Connected(feed), reconnects: 0 })
    }

    fn reconnect(&mut self) {
        let (topic, before) = (self.topic.clone(), self.progress.clone());
        self.state.renew(&self.server, Box::new(move |server: &Server| Feed::resume(server, &topic, &before)));
    }

    /// Looks whether the connection is there again; gives what is to be told then.
    #[cold]
    fn reconnected(&mut self) -> Result<Option<Gap>, ReceiveError> {
        if let Some(Err(e)) = self.state.outcome() {
            self.reconnect();
            return Err(self.server.receive_error(&e));
        }
        match &mut self.state {
            State::Connected(feed) => {
                self.progress = feed.progress.clone();
                self.reconnects += 1;
                Ok(feed.gap.take())
            }
            State::Lost(_) => Ok(None),
        }
    }
}

impl Subscriber for StreamSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        let feed = match &mut self.state {
            State::Connected(feed) => feed,
            State::Lost(_) => {
                let Some(gap) = self.reconnected()? else { return Ok(0) };
                self.tracker.told();
                handler(Event::Gap(gap));
                return Ok(1);
            }
        };
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

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}
