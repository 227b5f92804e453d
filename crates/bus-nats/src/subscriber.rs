//! Receives a topic.

use std::sync::Arc;

use tickpath_bus_api::{Event, Mailbox, OriginTracker, PublisherState, ReceiveError, Start, Subscriber, wire};
use tickpath_clock::Wait;

use crate::arrivals::{Arrival, Arrivals, Arrived};
use crate::background::Background;
use crate::backlog::Backlog;
use crate::core_feed::CoreFeed;
use crate::demand::{Demand, WINDOW};
use crate::error::ServerError;
use crate::name;
use crate::server::Server;
use crate::topic_feed::TopicFeed;

/// A subscription, which outlives its connections.
pub(crate) struct NatsSubscriber {
    arrivals: Arrivals<Arrival>,
    flow: Flow,
    /// Which messages of which publishers have come.
    tracker: OriginTracker,
    wait: Wait,
    background: Background,
}

/// How it is bounded what lies here unread.
enum Flow {
    /// JetStream is told how much is wanted, and keeps the rest.
    Asked(Demand),
    /// Core NATS sends everything; who is too far behind is cut off.
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

    /// Follows a stream of JetStream.
    pub fn of_stream(server: Arc<Server>, topic: &str, start: Start, wait: Wait) -> Result<Self, ServerError> {
        let (mailbox, demand) = (Mailbox::new(), Demand::default());
        demand.raise(WINDOW);
        let feed = TopicFeed::new(name::topic_stream(topic), start, Arrived::new(mailbox.clone()), demand.clone());
        let background = Background::start(server, feed)?;
        Ok(Self::new(Arrivals::new(mailbox), Flow::Asked(demand), wait, background))
    }

    fn new(arrivals: Arrivals<Arrival>, flow: Flow, wait: Wait, background: Background) -> Self {
        Self { arrivals, flow, tracker: OriginTracker::default(), wait, background }
    }
}

impl Subscriber for NatsSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        let Self { arrivals, flow, tracker, .. } = self;
        if let Flow::Asked(demand) = flow {
            demand.keep_up(arrivals.unread());
        }
        arrivals.take(limit, false, |arrival| match arrival {
            Arrival::Gap(gap) => {
                handler(Event::Gap(gap));
                tracker.told();
                (1, None)
            }
            Arrival::Message { sequence, message } => {
                let mut count = 0;
                let is_over = wire::hand_over(tracker, sequence, &message.payload, &mut |event| {
                    count += 1;
                    handler(event);
                });
                if !is_over {
                    return (count, Some(Arrival::Message { sequence, message }));
                }
                if let Flow::Sent(backlog) = flow {
                    backlog.release(&message);
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

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.background.reconnects())
    }
}
