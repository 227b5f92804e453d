//! The subscriber of a topic, over core NATS or JetStream.

use std::sync::{Arc, OnceLock};

use async_nats::HeaderMap;
use tickpath_bus_api::details::{self, JsonObject};
use tickpath_bus_api::{
    Mailbox, MessageIdTracker, PublisherState, ReceiveError, ResumeToken, StartPosition, Subscriber, SubscriptionEvent,
    wire,
};
use tickpath_clock::Wait;

use crate::arrivals::{ArrivalReceiver, ArrivalSender, TopicArrival};
use crate::background::ReceiverThread;
use crate::backlog::{self, Backlog};
use crate::core_feed::CoreFeed;
use crate::demand::{Demand, MAX_REQUESTED};
use crate::error::ServerResult;
use crate::names;
use crate::position::JetStreamPosition;
use crate::receipt::Receipt;
use crate::server::NatsEndpoint;
use crate::topic_feed::{SubscriptionStart, TopicFeed};

pub(crate) struct NatsSubscriber {
    arrivals: ArrivalReceiver<TopicArrival>,
    flow: UnreadBound,
    /// The messages of each publisher that have come.
    tracker: MessageIdTracker,
    /// The position where the subscription began, once the topic exists; never set with core NATS.
    start_position: Arc<OnceLock<JetStreamPosition>>,
    /// The position behind all that was handed over, once anything was, or the position of a token.
    position: Option<JetStreamPosition>,
    wait: Wait,
    background: ReceiverThread,
}

enum UnreadBound {
    /// JetStream: the demand is requested, and the server keeps the rest.
    Requested(Demand),
    /// Core NATS, which sends everything: a subscriber too far behind is cut off.
    Pushed(Backlog),
}

impl NatsSubscriber {
    pub fn to_subject(server: Arc<NatsEndpoint>, topic: &str, wait: Wait) -> ServerResult<Self> {
        let (mailbox, backlog) = (Mailbox::new(), Backlog::default());
        let feed =
            CoreFeed::new(names::topic_subject(topic), None, ArrivalSender::new(mailbox.clone()), backlog.clone());
        let background = ReceiverThread::start(server, feed)?;
        Ok(Self::new(ArrivalReceiver::new(mailbox), UnreadBound::Pushed(backlog), wait, background))
    }

    /// Follows a stream of JetStream from `start`, or behind a position with its known publishers.
    pub fn of_stream(
        server: Arc<NatsEndpoint>,
        topic: &str,
        start: StartPosition,
        behind: Option<(JetStreamPosition, MessageIdTracker)>,
        wait: Wait,
    ) -> ServerResult<Self> {
        let (mailbox, demand, start_position) = (Mailbox::new(), Demand::default(), Arc::default());
        let (position, tracker) = behind.map_or_else(Default::default, |(position, tracker)| (Some(position), tracker));
        demand.raise(MAX_REQUESTED);
        let beginning = SubscriptionStart { start, resume_at: position, start_position: Arc::clone(&start_position) };
        let feed =
            TopicFeed::new(names::topic_stream(topic), beginning, ArrivalSender::new(mailbox.clone()), demand.clone());
        let background = ReceiverThread::start(server, feed)?;
        Ok(Self {
            tracker,
            start_position,
            position,
            ..Self::new(ArrivalReceiver::new(mailbox), UnreadBound::Requested(demand), wait, background)
        })
    }

    fn new(arrivals: ArrivalReceiver<TopicArrival>, flow: UnreadBound, wait: Wait, background: ReceiverThread) -> Self {
        let (tracker, start_position) = (MessageIdTracker::default(), Arc::default());
        Self { arrivals, flow, tracker, start_position, position: None, wait, background }
    }
}

impl Subscriber for NatsSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        let Self { arrivals, flow, tracker, start_position, position, .. } = self;
        if let UnreadBound::Requested(demand) = flow {
            demand.top_up(arrivals.unread());
        }
        arrivals.take_arrivals(limit, false, |arrival| match arrival {
            TopicArrival::Gap { gap, position: behind } => {
                handler(SubscriptionEvent::Gap(gap));
                tracker.gap_reported();
                *position = behind.or(*position);
                (1, None)
            }
            TopicArrival::Message { receipt, message } => {
                let mut count = 0;
                let sequence = receipt.map(|receipt| receipt.sequence);
                let is_over = wire::deliver(tracker, sequence, &message.payload, &mut |event| {
                    count += 1;
                    details::deliver_with_details(event, || headers(message.headers.as_ref()?), handler);
                });
                if !is_over {
                    return (count, Some(TopicArrival::Message { receipt, message }));
                }
                match flow {
                    UnreadBound::Pushed(backlog) => backlog.release(&message),
                    UnreadBound::Requested(demand) => demand.subtract_unread(backlog::bytes(&message)),
                }
                if let Some(Receipt { sequence, time_ns, .. }) = receipt {
                    let before = position.or_else(|| start_position.get().copied());
                    let behind = |before: JetStreamPosition| JetStreamPosition {
                        next: sequence + 1,
                        last_read_ns: Some(time_ns),
                        ..before
                    };
                    *position = before.map(behind);
                }
                (count, None)
            }
        })
    }

    fn wait(&mut self, timeout_ns: u64) {
        if self.wait.sleeps() { self.arrivals.wait(timeout_ns) } else { self.wait.idle() }
    }

    fn resume_token(&self) -> Option<ResumeToken> {
        let position = self.position.or_else(|| self.start_position.get().copied());
        position.map(|position| position.token(&self.tracker))
    }

    fn enable_bridge_mode(&mut self) {
        self.tracker.enable_bridge_mode();
    }

    fn publisher_state(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.background.reconnects())
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.tracker.duplicates())
    }

    fn out_of_order(&self) -> Option<u64> {
        Some(self.tracker.out_of_order())
    }

    fn outage(&self) -> Option<String> {
        self.background.outage()
    }
}

/// Returns the headers from another program, in JSON.
fn headers(headers: &HeaderMap) -> Option<String> {
    let (mut object, mut fields) = (JsonObject::default(), JsonObject::default());
    for (name, values) in headers.iter() {
        let name: &str = name.as_ref();
        fields.add_all(name.as_bytes(), values.iter().map(|value| value.as_str()));
    }
    object.add_object(b"headers", fields);
    object.into_json_if_any()
}
