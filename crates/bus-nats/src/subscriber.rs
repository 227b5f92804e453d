//! The subscriber of a topic, over core NATS or JetStream.

use std::sync::{Arc, OnceLock};

use async_nats::HeaderMap;
use tickpath_bus_api::details::{self, Object};
use tickpath_bus_api::{
    Event, Mailbox, OriginTracker, PublisherState, ReceiveError, ResumeToken, Start, Subscriber, wire,
};
use tickpath_clock::Wait;

use crate::arrivals::{Arrival, Arrivals, Arrived};
use crate::background::Background;
use crate::backlog::{self, Backlog};
use crate::core_feed::CoreFeed;
use crate::demand::{Demand, WINDOW};
use crate::error::ServerError;
use crate::name;
use crate::place::Place;
use crate::receipt::Receipt;
use crate::server::Server;
use crate::topic_feed::{Beginning, TopicFeed};

/// A subscription, which outlives its connections.
pub(crate) struct NatsSubscriber {
    arrivals: Arrivals<Arrival>,
    flow: Flow,
    /// The messages of each publisher that have come.
    tracker: OriginTracker,
    /// The place where the subscription began, once the topic exists; never set with core NATS.
    begun: Arc<OnceLock<Place>>,
    /// The place behind all that was handed over, once anything was, or the place of a token.
    place: Option<Place>,
    wait: Wait,
    background: Background,
}

/// The bound on unread messages.
enum Flow {
    /// JetStream: the demand is requested, and the server keeps the rest.
    Asked(Demand),
    /// Core NATS, which sends everything: a subscriber too far behind is cut off.
    Sent(Backlog),
}

impl NatsSubscriber {
    /// Subscribes to a subject of core NATS.
    pub fn to_subject(server: Arc<Server>, topic: &str, wait: Wait) -> Result<Self, ServerError> {
        let (mailbox, backlog) = (Mailbox::new(), Backlog::default());
        let feed = CoreFeed::new(name::topic_subject(topic), None, Arrived::new(mailbox.clone()), backlog.clone());
        let background = Background::start(server, feed)?;
        Ok(Self::new(Arrivals::new(mailbox), Flow::Sent(backlog), wait, background))
    }

    /// Follows a stream of JetStream from `start`, or behind a place with its known publishers.
    pub fn of_stream(
        server: Arc<Server>,
        topic: &str,
        start: Start,
        behind: Option<(Place, OriginTracker)>,
        wait: Wait,
    ) -> Result<Self, ServerError> {
        let (mailbox, demand, begun) = (Mailbox::new(), Demand::default(), Arc::default());
        let (place, tracker) = behind.map_or_else(Default::default, |(place, tracker)| (Some(place), tracker));
        demand.raise(WINDOW);
        let beginning = Beginning { start, behind: place, begun: Arc::clone(&begun) };
        let feed = TopicFeed::new(name::topic_stream(topic), beginning, Arrived::new(mailbox.clone()), demand.clone());
        let background = Background::start(server, feed)?;
        Ok(Self { tracker, begun, place, ..Self::new(Arrivals::new(mailbox), Flow::Asked(demand), wait, background) })
    }

    fn new(arrivals: Arrivals<Arrival>, flow: Flow, wait: Wait, background: Background) -> Self {
        let (tracker, begun) = (OriginTracker::default(), Arc::default());
        Self { arrivals, flow, tracker, begun, place: None, wait, background }
    }
}

impl Subscriber for NatsSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        let Self { arrivals, flow, tracker, begun, place, .. } = self;
        if let Flow::Asked(demand) = flow {
            demand.keep_up(arrivals.unread());
        }
        arrivals.take(limit, false, |arrival| match arrival {
            Arrival::Gap { gap, place: behind } => {
                handler(Event::Gap(gap));
                tracker.told();
                *place = behind.or(*place);
                (1, None)
            }
            Arrival::Message { receipt, message } => {
                let mut count = 0;
                let sequence = receipt.map(|receipt| receipt.sequence);
                let is_over = wire::hand_over(tracker, sequence, &message.payload, &mut |event| {
                    count += 1;
                    details::hand_over(event, || headers(message.headers.as_ref()?), handler);
                });
                if !is_over {
                    return (count, Some(Arrival::Message { receipt, message }));
                }
                match flow {
                    Flow::Sent(backlog) => backlog.release(&message),
                    Flow::Asked(demand) => demand.release(backlog::bytes(&message)),
                }
                if let Some(Receipt { sequence, time_ns, .. }) = receipt {
                    let before = place.or_else(|| begun.get().copied());
                    let behind = |before: Place| Place { next: sequence + 1, read_ns: Some(time_ns), ..before };
                    *place = before.map(behind);
                }
                (count, None)
            }
        })
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.wait {
            Wait::Block | Wait::Adaptive => self.arrivals.wait(timeout_ns),
            Wait::Busy | Wait::Yield => self.wait.idle(),
        }
    }

    fn token(&self) -> Option<ResumeToken> {
        let place = self.place.or_else(|| self.begun.get().copied());
        place.map(|place| place.token(&self.tracker))
    }

    fn carry_on(&mut self) {
        self.tracker.carry_on();
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.background.reconnects())
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.tracker.again())
    }

    fn late(&self) -> Option<u64> {
        Some(self.tracker.late())
    }

    fn outage(&self) -> Option<String> {
        self.background.outage()
    }
}

/// Returns the headers from another program, in JSON.
fn headers(headers: &HeaderMap) -> Option<String> {
    let (mut object, mut fields) = (Object::default(), Object::default());
    for (name, values) in headers.iter() {
        let name: &str = name.as_ref();
        fields.add_all(name.as_bytes(), values.iter().map(|value| value.as_str()));
    }
    object.add_object(b"headers", fields);
    object.if_any()
}
