//! Receives a topic.

use std::sync::Arc;

use tickpath_bus_api::{Event, Mailbox, PublisherState, ReceiveError, Start, Subscriber, wire};
use tickpath_clock::Wait;

use crate::arrivals::{Arrival, Arrivals};
use crate::background::Background;
use crate::core_feed::CoreFeed;
use crate::demand::{Demand, WINDOW};
use crate::error::ServerError;
use crate::name;
use crate::server::Server;
use crate::topic_feed::TopicFeed;

/// A subscription, which outlives its connections.
pub(crate) struct NatsSubscriber {
    arrivals: Arrivals<Arrival>,
    /// How much is wanted, where that can be said: JetStream keeps the rest.
    demand: Option<Demand>,
    wait: Wait,
    background: Background,
}

impl NatsSubscriber {
    /// Subscribes to a subject of core NATS.
    pub fn to_subject(server: Arc<Server>, topic: &str, wait: Wait) -> Result<Self, ServerError> {
        let mailbox = Mailbox::new();
        let feed = CoreFeed::new(name::topic_subject(topic), None, mailbox.clone());
        let background = Background::start(server, feed)?;
        Ok(Self { arrivals: Arrivals::new(mailbox), demand: None, wait, background })
    }

    /// Follows a stream of JetStream.
    pub fn of_stream(server: Arc<Server>, topic: &str, start: Start, wait: Wait) -> Result<Self, ServerError> {
        let (mailbox, demand) = (Mailbox::new(), Demand::default());
        demand.raise(WINDOW);
        let feed = TopicFeed::new(name::topic_stream(topic), start, mailbox.clone(), demand.clone());
        let background = Background::start(server, feed)?;
        Ok(Self { arrivals: Arrivals::new(mailbox), demand: Some(demand), wait, background })
    }
}

impl Subscriber for NatsSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        if let Some(demand) = &self.demand {
            demand.keep_up(self.arrivals.unread());
        }
        self.arrivals.take(limit, |arrival| match arrival {
            Arrival::Gap(gap) => handler(Event::Gap(gap)),
            Arrival::Message { sequence, message } => handler(wire::event(sequence, &message.payload)),
        })
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.wait {
            Wait::Block | Wait::Adaptive => self.arrivals.wait(timeout_ns),
            Wait::Busy | Wait::Yield => self.wait.idle(),
        }
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.background.reconnects())
    }
}
