//! Where messages lie on the broker: a topic's exchange, or a queue.

use std::num::NonZeroU32;

use lapin::options::{
    BasicPublishOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, ExchangeKind};
use tickpath_bus_api::dead_letter_queue;

use crate::about;
use crate::error::ServerError;
use crate::link::Link;
use crate::server::{Durability, Server};

/// The broker refuses names that begin so.
const RESERVED: &str = "amq.";

/// The delivery mode of messages that do not survive the broker.
const TRANSIENT: u8 = 1;

/// The delivery mode of messages that do.
const PERSISTENT: u8 = 2;

/// An exchange or a queue.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    what: What,
    durability: Durability,
    /// How often a queue delivers a message at most before that goes to its dead letters.
    most_deliveries: Option<NonZeroU32>,
}

/// What it is, by the name that it has on the broker.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// The fanout exchange of a topic.
    Exchange(ShortString),
    /// A queue.
    Queue(ShortString),
}

/// Where a message is sent to, and how.
pub(crate) struct Addressing {
    /// The exchange; the unnamed one leads to queues.
    pub exchange: ShortString,
    /// The queue.
    pub key: ShortString,
    /// Whether it comes back if there is no queue for it.
    pub options: BasicPublishOptions,
    /// Whether it survives the broker.
    pub properties: BasicProperties,
}

impl Place {
    /// That of a topic.
    pub fn topic(name: &str, durability: Durability) -> Self {
        Self { what: What::Exchange(carried(name)), durability, most_deliveries: None }
    }

    /// That of a queue.
    pub fn queue(name: &str, durability: Durability, most_deliveries: Option<NonZeroU32>) -> Self {
        Self { what: What::Queue(carried(name)), durability, most_deliveries }
    }

    /// Whether it survives the broker.
    pub fn is_durable(&self) -> bool {
        self.durability != Durability::Transient
    }

    /// Whether a message is given up after so many deliveries.
    pub fn gives_up(&self) -> bool {
        self.most_deliveries.is_some()
    }

    /// What it is.
    pub fn what(&self) -> &What {
        &self.what
    }

    /// Makes it if it is not there, always alike, so that everybody can.
    pub fn declare(&self, server: &Server, link: &Link, channel: &Channel) -> Result<(), ServerError> {
        let durable = self.is_durable();
        match &self.what {
            What::Exchange(name) => {
                let options = ExchangeDeclareOptions { durable, ..ExchangeDeclareOptions::default() };
                let kind = ExchangeKind::Fanout;
                link.answer(channel.exchange_declare(name.clone(), kind, options, FieldTable::default()))
            }
            What::Queue(name) => {
                let gives_up = durable && about::gives_up(server)?;
                let declare = |name: &ShortString, arguments| {
                    let options = QueueDeclareOptions { durable, ..QueueDeclareOptions::default() };
                    link.answer(channel.queue_declare(name.clone(), options, arguments)).map(|_queue| ())
                };
                if let Some(most) = self.most_deliveries {
                    // That of the dead letters is there before any can die.
                    let dead = ShortString::from(dead_letter_queue(name.as_str()));
                    declare(&dead, self.arguments(gives_up))?;
                    return declare(name, self.limited_arguments(most, &dead));
                }
                declare(name, self.arguments(gives_up))
            }
        }
    }

    /// What a queue is declared with that delivers a message as often as need be, on a broker that would give it up by
    /// itself, or on one that would not.
    fn arguments(&self, gives_up: bool) -> FieldTable {
        let mut arguments = self.basic_arguments();
        if gives_up {
            arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(-1));
        }
        arguments
    }

    /// What one is declared with that delivers it so often at most. Where it goes then has it before it is gone here.
    fn limited_arguments(&self, most_deliveries: NonZeroU32, dead: &ShortString) -> FieldTable {
        let mut arguments = self.basic_arguments();
        // The broker counts from the second delivery on.
        let again = i64::from(most_deliveries.get()) - 1;
        arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(again));
        for (argument, value) in [
            ("x-dead-letter-exchange", ""),
            ("x-dead-letter-routing-key", dead.as_str()),
            ("x-dead-letter-strategy", "at-least-once"),
            // The broker wants this with it; the queue has no bound.
            ("x-overflow", "reject-publish"),
        ] {
            arguments.insert(argument.into(), AMQPValue::LongString(value.into()));
        }
        arguments
    }

    fn basic_arguments(&self) -> FieldTable {
        let mut arguments = FieldTable::default();
        if let Durability::Durable { replicas } = self.durability {
            arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
            if let Some(replicas) = replicas {
                arguments.insert("x-quorum-initial-group-size".into(), AMQPValue::LongInt(i32::from(replicas)));
            }
        }
        arguments
    }

    /// Removes it, with all that is in it. One that is not there is no error to the broker either.
    pub fn delete(&self, link: &Link) -> Result<(), ServerError> {
        let channel = link.channel()?;
        match &self.what {
            What::Exchange(name) => {
                link.answer(channel.exchange_delete(name.clone(), ExchangeDeleteOptions::default()))
            }
            What::Queue(name) => {
                let deleted = channel.queue_delete(name.clone(), QueueDeleteOptions::default());
                link.answer(deleted).map(|_messages| ())
            }
        }
    }

    /// How many messages lie in a queue that no puller was sent; none if there is no such queue, or if it is an
    /// exchange, which holds nothing.
    pub fn waiting(&self, link: &Link) -> Result<Option<u64>, ServerError> {
        let What::Queue(name) = &self.what else { return Ok(None) };
        let channel = link.channel()?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        match link.answer(channel.queue_declare(name.clone(), options, FieldTable::default())) {
            Ok(queue) => Ok(Some(u64::from(queue.message_count()))),
            Err(ServerError::Missing(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// How a message is sent there. To a queue it must come; a topic that nobody is subscribed to drops it.
    pub fn addressing(&self) -> Addressing {
        let (exchange, key, mandatory) = match &self.what {
            What::Exchange(name) => (name.clone(), ShortString::default(), false),
            What::Queue(name) => (ShortString::default(), name.clone(), true),
        };
        let mode = if self.is_durable() { PERSISTENT } else { TRANSIENT };
        let options = BasicPublishOptions { mandatory, immediate: false };
        Addressing { exchange, key, options, properties: BasicProperties::default().with_delivery_mode(mode) }
    }

    /// Whether a refusal of the broker speaks of it.
    pub fn is_in(&self, sentence: &str) -> bool {
        let (What::Exchange(name) | What::Queue(name)) = &self.what;
        sentence.contains(&format!("'{}'", name.as_str()))
    }
}

/// The name on the broker, another one for each name.
fn carried(name: &str) -> ShortString {
    if name.starts_with(RESERVED) { format!("~{name}").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURABLE: Durability = Durability::Durable { replicas: None };

    /// What a queue is declared with, as text.
    fn shown(arguments: &FieldTable) -> Vec<(String, String)> {
        let show = |value: &AMQPValue| match value {
            AMQPValue::LongString(text) => text.to_string(),
            AMQPValue::LongLongInt(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        arguments.into_iter().map(|(name, value)| (name.to_string(), show(value))).collect()
    }

    fn check(arguments: &FieldTable, expected: &[(&str, &str)]) {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        assert_eq!(shown(arguments), expected.iter().map(owned).collect::<Vec<_>>());
    }

    #[test]
    fn no_broker_gives_up_a_message_by_itself() {
        let plain = Place::queue("q", Durability::Transient, None);
        check(&plain.arguments(false), &[]);
        let durable = Place::queue("q", DURABLE, None);
        check(&durable.arguments(false), &[("x-queue-type", "quorum")]);
        check(&durable.arguments(true), &[("x-delivery-limit", "-1"), ("x-queue-type", "quorum")]);
    }

    #[test]
    fn what_is_given_up_goes_to_the_dead_letters() {
        let most = NonZeroU32::new(3).unwrap();
        let place = Place::queue("q", DURABLE, Some(most));
        let expected = [
            ("x-dead-letter-exchange", ""),
            ("x-dead-letter-routing-key", "q.dead"),
            ("x-dead-letter-strategy", "at-least-once"),
            ("x-delivery-limit", "2"),
            ("x-overflow", "reject-publish"),
            ("x-queue-type", "quorum"),
        ];
        check(&place.limited_arguments(most, &"q.dead".into()), &expected);
    }
}
