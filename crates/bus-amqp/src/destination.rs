//! The broker's objects that receive messages: a topic's exchange, or a queue.

use std::num::NonZeroU32;

use lapin::options::{
    BasicPublishOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, ExchangeKind};
use tickpath_bus_api::dead_letter_queue;

use crate::broker_version;
use crate::connection::AmqpConnection;
use crate::error::AmqpServerError;
use crate::server::{AmqpServer, Durability};

/// The prefix of names that the broker refuses.
const RESERVED: &str = "amq.";

/// The delivery mode of messages that do not survive the broker.
const TRANSIENT: u8 = 1;

/// The delivery mode of messages that survive the broker.
const PERSISTENT: u8 = 2;

/// An exchange or a queue.
#[derive(Debug, Clone)]
pub(crate) struct AmqpDestination {
    object: AmqpObject,
    durability: Durability,
    /// Max deliveries of a message before a queue moves it to its dead letters.
    max_deliveries: Option<NonZeroU32>,
}

/// The kind of object, with its name on the broker.
#[derive(Debug, Clone)]
pub(crate) enum AmqpObject {
    /// The fanout exchange of a topic.
    Exchange(ShortString),
    /// A queue.
    Queue(ShortString),
}

/// The destination of a message, and its properties.
pub(crate) struct PublishAddress {
    /// The exchange; the unnamed exchange leads to queues.
    pub exchange: ShortString,
    /// The routing key: the name of the queue.
    pub key: ShortString,
    /// The options: whether the message is returned if there is no queue for it.
    pub options: BasicPublishOptions,
    /// The properties: whether it survives the broker.
    pub properties: BasicProperties,
}

impl AmqpDestination {
    /// Returns the exchange of a topic.
    pub fn topic(name: &str, durability: Durability) -> Self {
        Self { object: AmqpObject::Exchange(broker_name(name)), durability, max_deliveries: None }
    }

    /// Returns a queue.
    pub fn queue(name: &str, durability: Durability, most_deliveries: Option<NonZeroU32>) -> Self {
        Self { object: AmqpObject::Queue(broker_name(name)), durability, max_deliveries: most_deliveries }
    }

    /// Returns true if it survives the broker.
    pub fn is_durable(&self) -> bool {
        self.durability != Durability::Transient
    }

    /// Returns true if the queue gives a message up after a number of deliveries.
    pub fn limits_deliveries(&self) -> bool {
        self.max_deliveries.is_some()
    }

    /// Returns the kind of object.
    pub fn object(&self) -> &AmqpObject {
        &self.object
    }

    /// Makes it if it does not exist, always with the same arguments, so that any client can.
    pub fn declare(
        &self,
        server: &AmqpServer,
        link: &AmqpConnection,
        channel: &Channel,
    ) -> Result<(), AmqpServerError> {
        let durable = self.is_durable();
        match &self.object {
            AmqpObject::Exchange(name) => {
                let options = ExchangeDeclareOptions { durable, ..ExchangeDeclareOptions::default() };
                let kind = ExchangeKind::Fanout;
                link.wait_for_answer(channel.exchange_declare(name.clone(), kind, options, FieldTable::default()))
            }
            AmqpObject::Queue(name) => {
                let gives_up = durable && broker_version::has_default_delivery_limit(server)?;
                let declare = |name: &ShortString, arguments| {
                    let options = QueueDeclareOptions { durable, ..QueueDeclareOptions::default() };
                    link.wait_for_answer(channel.queue_declare(name.clone(), options, arguments)).map(|_queue| ())
                };
                if let Some(most) = self.max_deliveries {
                    // The dead-letter queue exists before any message can go there.
                    let dead = ShortString::from(dead_letter_queue(name.as_str()));
                    declare(&dead, self.arguments(gives_up))?;
                    return declare(name, self.limited_arguments(most, &dead));
                }
                declare(name, self.arguments(gives_up))
            }
        }
    }

    /// Returns the arguments of a queue that never gives a message up; `limits_deliveries` says that the broker would do so by
    /// itself.
    fn arguments(&self, gives_up: bool) -> FieldTable {
        let mut arguments = self.basic_arguments();
        if gives_up {
            arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(-1));
        }
        arguments
    }

    /// Returns the arguments of a queue with a limit of deliveries. The dead-letter queue has a message before it is
    /// removed here.
    fn limited_arguments(&self, most_deliveries: NonZeroU32, dead: &ShortString) -> FieldTable {
        let mut arguments = self.basic_arguments();
        // The broker counts from the second delivery on.
        let again = i64::from(most_deliveries.get()) - 1;
        arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(again));
        for (argument, value) in [
            ("x-dead-letter-exchange", ""),
            ("x-dead-letter-routing-key", dead.as_str()),
            ("x-dead-letter-strategy", "at-least-once"),
            // Required by the strategy; the queue has no bound.
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

    /// Removes it, with all its messages. The broker accepts the removal of an object that does not exist.
    pub fn delete(&self, link: &AmqpConnection) -> Result<(), AmqpServerError> {
        let channel = link.channel()?;
        match &self.object {
            AmqpObject::Exchange(name) => {
                link.wait_for_answer(channel.exchange_delete(name.clone(), ExchangeDeleteOptions::default()))
            }
            AmqpObject::Queue(name) => {
                let deleted = channel.queue_delete(name.clone(), QueueDeleteOptions::default());
                link.wait_for_answer(deleted).map(|_messages| ())
            }
        }
    }

    /// Returns the number of a queue's messages that no puller was sent; none if the queue does not exist, or for an
    /// exchange, which holds nothing.
    pub fn waiting(&self, link: &AmqpConnection) -> Result<Option<u64>, AmqpServerError> {
        let AmqpObject::Queue(name) = &self.object else { return Ok(None) };
        let channel = link.channel()?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        match link.wait_for_answer(channel.queue_declare(name.clone(), options, FieldTable::default())) {
            Ok(queue) => Ok(Some(u64::from(queue.message_count()))),
            Err(AmqpServerError::Missing(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Returns the destination of its messages. A message that no queue receives is returned to a pusher; a topic
    /// without subscribers drops it.
    pub fn publish_address(&self) -> PublishAddress {
        let (exchange, key, mandatory) = match &self.object {
            AmqpObject::Exchange(name) => (name.clone(), ShortString::default(), false),
            AmqpObject::Queue(name) => (ShortString::default(), name.clone(), true),
        };
        let mode = if self.is_durable() { PERSISTENT } else { TRANSIENT };
        let options = BasicPublishOptions { mandatory, immediate: false };
        PublishAddress { exchange, key, options, properties: BasicProperties::default().with_delivery_mode(mode) }
    }

    /// Returns true if a refusal of the broker names it.
    pub fn is_named_in(&self, sentence: &str) -> bool {
        let (AmqpObject::Exchange(name) | AmqpObject::Queue(name)) = &self.object;
        sentence.contains(&format!("'{}'", name.as_str()))
    }
}

/// Returns the name on the broker, one to one.
fn broker_name(name: &str) -> ShortString {
    if name.starts_with(RESERVED) { format!("~{name}").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURABLE: Durability = Durability::Durable { replicas: None };

    /// Returns the arguments of a queue as text.
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
        let plain = AmqpDestination::queue("q", Durability::Transient, None);
        check(&plain.arguments(false), &[]);
        let durable = AmqpDestination::queue("q", DURABLE, None);
        check(&durable.arguments(false), &[("x-queue-type", "quorum")]);
        check(&durable.arguments(true), &[("x-delivery-limit", "-1"), ("x-queue-type", "quorum")]);
    }

    #[test]
    fn what_is_given_up_goes_to_the_dead_letters() {
        let most = NonZeroU32::new(3).unwrap();
        let place = AmqpDestination::queue("q", DURABLE, Some(most));
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
