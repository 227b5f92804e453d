//! The subscriber of a topic.

use std::sync::Arc;

use lapin::message::Delivery;
use lapin::types::AMQPValue;
use tickpath_bus_api::details::{self, Object};
use tickpath_bus_api::{
    ConnectError, Event, Gap, Origin, OriginTracker, PublisherState, ReceiveError, Subscriber, wire,
};
use tickpath_clock::Wait;

use crate::inlet::Inlet;
use crate::intake::MAX_BEHIND_BYTES;
use crate::losses::Losses;
use crate::place::Place;
use crate::server::Server;

/// A subscription, which outlives its connections.
pub(crate) struct AmqpSubscriber {
    inlet: Inlet,
    /// The detector of duplicates, and of gaps in the publishers' sequence numbers.
    tracker: OriginTracker,
    /// The losses of which the broker has given notice.
    losses: Losses,
    /// A message that waits behind a gap.
    kept: Option<Delivery>,
}

impl AmqpSubscriber {
    /// Connects and subscribes.
    pub fn open(server: Arc<Server>, topic: &str, wait: Wait) -> Result<Self, ConnectError> {
        let place = Place::topic(topic, server.durability());
        let inlet = Inlet::open(server, place, wait)?;
        Ok(Self { inlet, tracker: OriginTracker::default(), losses: Losses::default(), kept: None })
    }

    /// Returns the next message, after reading all notices that were sent before it. None means that no message was
    /// sent before the last notice that is not handed over.
    #[inline]
    fn take(&mut self) -> Option<Delivery> {
        loop {
            let next = self.kept.take().or_else(|| self.inlet.take());
            let mut is_news = false;
            while let Some(notice) = self.inlet.take_notice() {
                self.losses.dropped(notice.delivery_tag, origin(&notice), may_be_last(&notice));
                is_news = true;
            }
            // A message may have come before the notice, but after the poll for messages.
            if next.is_some() || !is_news {
                return next;
            }
        }
    }

    /// Reports a loss that cannot be counted.
    fn tell(&mut self, handler: &mut dyn FnMut(Event<'_>)) {
        handler(Event::Gap(Gap::Reconnected));
        self.tracker.told();
    }
}

impl Subscriber for AmqpSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        if self.kept.is_none() && self.inlet.is_anew()? {
            self.losses.told();
            self.tell(handler);
            return Ok(1);
        }
        let mut handed_over = 0;
        while handed_over < limit {
            let Some(delivery) = self.take() else {
                if self.losses.are_last() {
                    self.tell(handler);
                    handed_over += 1;
                }
                break;
            };
            let origin = origin(&delivery);
            if self.losses.are_before(delivery.delivery_tag, origin) {
                self.tell(handler);
                handed_over += 1;
                self.kept = Some(delivery);
                continue;
            }
            let is_over = wire::hand_over(&mut self.tracker, None, &delivery.data, &mut |event| {
                handed_over += 1;
                details::hand_over(event, || headers(&delivery), handler);
            });
            if is_over {
                self.losses.came(origin);
                self.inlet.let_go(&delivery);
            } else {
                self.kept = Some(delivery);
            }
        }
        Ok(handed_over)
    }

    fn wait(&mut self, timeout_ns: u64) {
        if self.kept.is_none() {
            self.inlet.wait(timeout_ns);
        }
    }

    fn carry_on(&mut self) {
        self.tracker.carry_on();
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.inlet.reconnects())
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.tracker.again())
    }

    fn late(&self) -> Option<u64> {
        Some(self.tracker.late())
    }

    fn outage(&self) -> Option<String> {
        self.inlet.outage()
    }
}

/// Returns true if perhaps no message follows a dropped one: it has expired, or was longer than all that the broker
/// keeps.
fn may_be_last(notice: &Delivery) -> bool {
    let headers = notice.properties.headers().as_ref();
    let why = headers.and_then(|headers| headers.inner().get("x-first-death-reason"));
    let is_over = matches!(why, Some(AMQPValue::LongString(why)) if why.as_bytes() == b"expired");
    is_over || notice.data.len() > MAX_BEHIND_BYTES
}

/// Returns the origin of a message, if it has our header.
fn origin(delivery: &Delivery) -> Option<Origin> {
    wire::decode(&delivery.data).and_then(|message| message.origin)
}

/// Returns the headers from another program, in JSON; values that are no text are shown as the client library prints
/// them.
fn headers(delivery: &Delivery) -> Option<String> {
    let (mut object, mut fields) = (Object::default(), Object::default());
    for (name, value) in delivery.properties.headers().iter().flat_map(|headers| headers.inner()) {
        let name = name.as_str().as_bytes();
        match value {
            AMQPValue::LongString(text) => fields.add(name, text.as_bytes()),
            AMQPValue::ShortString(text) => fields.add(name, text.as_str().as_bytes()),
            AMQPValue::ByteArray(bytes) => fields.add(name, bytes.as_slice()),
            AMQPValue::Boolean(is) => fields.add_json(name, if *is { "true" } else { "false" }),
            AMQPValue::Void => fields.add_json(name, "null"),
            number => match whole(number) {
                Some(number) => fields.add_json(name, &number.to_string()),
                None => fields.add(name, format!("{number:?}").as_bytes()),
            },
        }
    }
    object.add_object(b"headers", fields);
    object.if_any()
}

fn whole(value: &AMQPValue) -> Option<i128> {
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
