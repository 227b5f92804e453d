//! The subscriber of a topic.

use std::sync::Arc;

use lapin::message::Delivery;
use lapin::types::AMQPValue;
use tickpath_bus_api::details::{self, JsonObject};
use tickpath_bus_api::{
    ConnectError, Gap, MessageId, MessageIdTracker, PublisherState, ReceiveError, Subscriber, SubscriptionEvent, wire,
};
use tickpath_clock::Wait;

use crate::consumer::MAX_BEHIND_BYTES;
use crate::destination::AmqpDestination;
use crate::losses::DropTracker;
use crate::receiver::AmqpReceiver;
use crate::server::AmqpServer;

/// A subscription, which outlives its connections.
pub(crate) struct AmqpSubscriber {
    receiver: AmqpReceiver,
    /// The detector of duplicates, and of gaps in the publishers' sequence numbers.
    tracker: MessageIdTracker,
    /// The losses of which the broker has given notice.
    drops: DropTracker,
    /// A message that waits behind a gap.
    pending: Option<Delivery>,
}

impl AmqpSubscriber {
    pub fn open(server: Arc<AmqpServer>, topic: &str, wait: Wait) -> Result<Self, ConnectError> {
        let destination = AmqpDestination::topic(topic, server.durability);
        let receiver = AmqpReceiver::open(server, destination, wait)?;
        Ok(Self { receiver, tracker: MessageIdTracker::default(), drops: DropTracker::default(), pending: None })
    }

    /// Returns the next message, after all notices sent before it; none if none was sent before the last notice.
    #[inline]
    fn take(&mut self) -> Option<Delivery> {
        loop {
            let next = self.pending.take().or_else(|| self.receiver.take());
            let mut is_news = false;
            while let Some(notice) = self.receiver.take_notice() {
                self.drops.record_dropped(notice.delivery_tag, message_id_of(&notice), may_be_last(&notice));
                is_news = true;
            }
            // A message may have come before the notice, but after the poll for messages.
            if next.is_some() || !is_news {
                return next;
            }
        }
    }

    /// Reports a loss that cannot be counted.
    fn report_uncounted_loss(&mut self, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) {
        handler(SubscriptionEvent::Gap(Gap::Reconnected));
        self.tracker.gap_reported();
    }
}

impl Subscriber for AmqpSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        if self.pending.is_none() && self.receiver.take_reconnected()? {
            self.drops.clear();
            self.report_uncounted_loss(handler);
            return Ok(1);
        }
        let mut handed_over = 0;
        while handed_over < limit {
            let Some(delivery) = self.take() else {
                if self.drops.take_trailing_loss() {
                    self.report_uncounted_loss(handler);
                    handed_over += 1;
                }
                break;
            };
            let origin = message_id_of(&delivery);
            if self.drops.take_loss_before(delivery.delivery_tag, origin) {
                self.report_uncounted_loss(handler);
                handed_over += 1;
                self.pending = Some(delivery);
                continue;
            }
            let is_over = wire::deliver(&mut self.tracker, None, &delivery.data, &mut |event| {
                handed_over += 1;
                details::deliver_with_details(event, || headers(&delivery), handler);
            });
            if is_over {
                self.drops.record_received(origin);
                self.receiver.hold_unacknowledged(&delivery);
            } else {
                self.pending = Some(delivery);
            }
        }
        Ok(handed_over)
    }

    fn wait(&mut self, timeout_ns: u64) {
        if self.pending.is_none() {
            self.receiver.wait(timeout_ns);
        }
    }

    fn enable_bridge_mode(&mut self) {
        self.tracker.enable_bridge_mode();
    }

    fn publisher_state(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.receiver.reconnects)
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.tracker.duplicates())
    }

    fn out_of_order(&self) -> Option<u64> {
        Some(self.tracker.out_of_order())
    }

    fn outage(&self) -> Option<String> {
        self.receiver.outage()
    }
}

/// Returns true if perhaps no message follows a dropped one: it has expired, or was longer than the broker's bound.
fn may_be_last(notice: &Delivery) -> bool {
    let headers = notice.properties.headers().as_ref();
    let why = headers.and_then(|headers| headers.inner().get("x-first-death-reason"));
    let is_over = matches!(why, Some(AMQPValue::LongString(why)) if why.as_bytes() == b"expired");
    is_over || notice.data.len() > MAX_BEHIND_BYTES
}

/// Returns the origin of a message, if it has our header.
fn message_id_of(delivery: &Delivery) -> Option<MessageId> {
    wire::decode(&delivery.data).and_then(|message| message.id)
}

/// Returns the headers from another program, in JSON; values that are no text as the client library prints them.
fn headers(delivery: &Delivery) -> Option<String> {
    let (mut object, mut fields) = (JsonObject::default(), JsonObject::default());
    for (name, value) in delivery.properties.headers().iter().flat_map(|headers| headers.inner()) {
        let name = name.as_str().as_bytes();
        match value {
            AMQPValue::LongString(text) => fields.add(name, text.as_bytes()),
            AMQPValue::ShortString(text) => fields.add(name, text.as_str().as_bytes()),
            AMQPValue::ByteArray(bytes) => fields.add(name, bytes.as_slice()),
            AMQPValue::Boolean(is) => fields.add_json(name, if *is { "true" } else { "false" }),
            AMQPValue::Void => fields.add_json(name, "null"),
            number => match as_integer(number) {
                Some(number) => fields.add_json(name, &number.to_string()),
                None => fields.add(name, format!("{number:?}").as_bytes()),
            },
        }
    }
    object.add_object(b"headers", fields);
    object.into_json_if_any()
}

fn as_integer(value: &AMQPValue) -> Option<i128> {
    match value {
        AMQPValue::ShortShortInt(number) => Some((*number).into()),
        AMQPValue::ShortShortUInt(number) => Some((*number).into()),
        AMQPValue::ShortInt(number) => Some((*number).into()),
        AMQPValue::ShortUInt(number) => Some((*number).into()),
        AMQPValue::LongInt(number) => Some((*number).into()),
        AMQPValue::LongUInt(number) => Some((*number).into()),
        AMQPValue::LongLongInt(number) => Some((*number).into()),
        AMQPValue::Timestamp(seconds) => Some((*seconds).into()),
        _ => None,
    }
}
