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

use tickpath_bus_api::{ConnectError, Event, Foreign, Gap, PublisherState, ReceiveError, Start, Subscriber, wire};
use tickpath_clock::Wait;

use crate::link::Link;
use crate::reconnect::State;
use crate::resp::{self, Items};
use crate::server::{Server, ServerError};
use crate::stream::{Entry, Id, extent};

/// The most entries in one answer.
const MOST_ENTRIES: &str = "64";

/// A subscription, which outlives its connections.
pub(crate) struct StreamSubscriber {
    server: Arc<Server>,
    topic: String,
    wait: Wait,
    /// The last entry that came.
    place: Id,
    state: State<Feed>,
    reconnects: u64,
}

/// A connection on which the question for more entries is out, or an answer is coming in.
struct Feed {
    link: Link,
    /// The last entry that came, or where the subscription begins.
    place: Id,
    /// Entries of the answer that are still to come.
    left: usize,
    /// This is not the stream that was there before, or nobody can tell.
    is_new: bool,
}

impl StreamSubscriber {
    /// Connects, fixes where the subscription begins, and asks.
    pub fn open(server: Arc<Server>, topic: &str, start: Start, wait: Wait) -> Result<Self, ConnectError> {
        let feed = Feed::begin(&server, topic, start).map_err(|e| server.error(&e))?;
        let (topic, place) = (topic.to_owned(), feed.place);
        Ok(Self { server, topic, wait, place, state: State::Connected(feed), reconnects: 0 })
    }

    fn reconnect(&mut self) {
        let (topic, place) = (self.topic.clone(), self.place);
        self.state.renew(&self.server, Box::new(move |server: &Server| Feed::resume(server, &topic, place)));
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
                self.place = feed.place;
                self.reconnects += 1;
                Ok(feed.is_new.then_some(Gap::Reconnected))
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
                handler(Event::Gap(gap));
                return Ok(1);
            }
        };
        let mut handed_over = 0;
        let drained = feed.drain(&self.topic, limit, &mut |event| {
            handed_over += 1;
            handler(event);
        });
        self.place = feed.place;
        let Err(e) = drained else { return Ok(handed_over) };
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
            State::Connected(feed) => feed.sleep(timeout).is_err_and(|e| e.may_pass()),
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

impl Feed {
    /// Connects; what is published when this returns is not missed.
    fn begin(server: &Server, topic: &str, start: Start) -> Result<Self, ServerError> {
        let mut link = Link::open_ready(server)?;
        let extent = extent(&mut link, topic)?;
        let place = match start {
            Start::Now => extent.map_or(Id::START, |extent| extent.last),
            Start::Oldest | Start::Sequence(_) => Id::START,
        };
        Self::asking(link, topic, place, false)
    }

    /// Connects again. The stream is the one that was there before if it still holds something up to this place, and
    /// reaches up to it; else it is begun anew.
    fn resume(server: &Server, topic: &str, place: Id) -> Result<Self, ServerError> {
        let mut link = Link::open_ready(server)?;
        let extent = extent(&mut link, topic)?;
        let first = extent.and_then(|extent| extent.first);
        let is_same = first.is_some_and(|first| first <= place) && extent.is_some_and(|extent| place <= extent.last);
        Self::asking(link, topic, if is_same { place } else { Id::START }, !is_same)
    }

    fn asking(link: Link, topic: &str, place: Id, is_new: bool) -> Result<Self, ServerError> {
        let mut feed = Self { link, place, left: 0, is_new };
        feed.ask(topic)?;
        Ok(feed)
    }

    fn ask(&mut self, topic: &str) -> Result<(), ServerError> {
        let place = self.place.to_string();
        let mut command = Vec::with_capacity(128 + topic.len());
        resp::command(&mut command, &["XREAD", "COUNT", MOST_ENTRIES, "BLOCK", "0", "STREAMS", topic, &place]);
        self.link.send(&command)
    }

    /// Hands over what has come. Looks at no more than `limit` entries, also where they are null.
    fn drain(&mut self, topic: &str, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<(), ServerError> {
        for _ in 0..limit {
            if !self.has_answer(topic)? {
                return Ok(());
            }
            let Some(length) = self.entry_length()? else { return Ok(()) };
            if let Some(entry) = Entry::read(&mut Items::of(self.link.reply(length)))? {
                self.place = entry.id;
                match wire::decode(entry.bytes) {
                    Some(message) => handler(Event::Message(message)),
                    None => handler(Event::Foreign(Foreign { sequence: None, bytes: &entry.foreign()? })),
                }
            }
            self.link.consume(length);
            self.left -= 1;
            if self.left == 0 {
                self.ask(topic)?;
            }
        }
        Ok(())
    }

    /// True if an answer is coming in.
    fn has_answer(&mut self, topic: &str) -> Result<bool, ServerError> {
        while self.left == 0 {
            match self.link.entries()? {
                Some((entries, bytes)) => {
                    self.link.consume(bytes);
                    self.left = entries;
                    if entries == 0 {
                        self.ask(topic)?;
                    }
                }
                None => {
                    if !self.link.receive()? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// How many bytes the next entry of the answer has; none if it has not come.
    fn entry_length(&mut self) -> Result<Option<usize>, ServerError> {
        loop {
            if let Some(length) = self.link.length()? {
                return Ok(Some(length));
            }
            if !self.link.receive()? {
                return Ok(None);
            }
        }
    }

    /// Sleeps until bytes come, unless there is something to hand over already.
    fn sleep(&mut self, timeout: Duration) -> Result<(), ServerError> {
        let has_more = if self.left == 0 { self.link.entries()?.is_some() } else { self.link.length()?.is_some() };
        if !has_more && !timeout.is_zero() {
            self.link.receive_within(timeout)?;
        }
        Ok(())
    }
}
