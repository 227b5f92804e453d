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

#[derive(Debug, Clone)]
pub(crate) struct AmqpDestination {
    pub object: AmqpObject,
    durability: Durability,
    /// Max deliveries of a message before a queue moves it to its dead letters.
    pub max_deliveries: Option<NonZeroU32>,
}

#[derive(Debug, Clone)]
pub(crate) enum AmqpObject {
    /// The fanout exchange of a topic.
    Exchange(ShortString),
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
    pub fn topic(name: &str, durability: Durability) -> Self {
        Self { object: AmqpObject::Exchange(broker_name(name)), durability, max_deliveries: None }
    }

    pub fn queue(name: &str, durability: Durability, max_deliveries: Option<NonZeroU32>) -> Self {
        Self { object: AmqpObject::Queue(broker_name(name)), durability, max_deliveries }
    }

    pub fn is_durable(&self) -> bool {
        self.durability != Durability::Transient
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
                let (kind, none) = (ExchangeKind::Fanout, FieldTable::default());
                link.wait_for_answer(channel.exchange_declare(name.clone(), kind, options, none))
            }
            AmqpObject::Queue(name) => {
                let has_limit = durable && broker_version::has_default_delivery_limit(server)?;
                let declare = |name: &ShortString, arguments| {
                    let options = QueueDeclareOptions { durable, ..QueueDeclareOptions::default() };
                    link.wait_for_answer(channel.queue_declare(name.clone(), options, arguments)).map(|_queue| ())
                };
                if let Some(max) = self.max_deliveries {
                    // The dead-letter queue exists before any message can go there.
                    let dead = ShortString::from(dead_letter_queue(name.as_str()));
                    declare(&dead, self.arguments(has_limit))?;
                    return declare(name, self.limited_arguments(max, &dead));
                }
                declare(name, self.arguments(has_limit))
            }
        }
    }

    /// Returns the arguments of a queue that never gives a message up, also where the broker has a limit by default.
    fn arguments(&self, has_default_limit: bool) -> FieldTable {
        let mut arguments = self.basic_arguments();
        if has_default_limit {
            arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(-1));
        }
        arguments
    }

    /// Returns the arguments of a queue with a delivery limit. A dead letter is stored before it is removed here.
    fn limited_arguments(&self, max_deliveries: NonZeroU32, dead: &ShortString) -> FieldTable {
        let mut arguments = self.basic_arguments();
        // The broker counts from the second delivery on.
        let limit = i64::from(max_deliveries.get()) - 1;
        arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(limit));
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

    /// Returns the number of a queue's messages that no puller was sent; none for an exchange, or without the queue.
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

    /// Returns the destination of its messages. A pusher gets a message back that no queue receives; a topic drops it.
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
    fn a_queue_without_a_limit_overrides_the_brokers_default() {
        let plain = AmqpDestination::queue("q", Durability::Transient, None);
        check(&plain.arguments(false), &[]);
        let durable = AmqpDestination::queue("q", DURABLE, None);
        check(&durable.arguments(false), &[("x-queue-type", "quorum")]);
        check(&durable.arguments(true), &[("x-delivery-limit", "-1"), ("x-queue-type", "quorum")]);
    }

    #[test]
    fn a_queue_with_a_delivery_limit_names_its_dead_letter_queue() {
        let max = NonZeroU32::new(3).unwrap();
        let destination = AmqpDestination::queue("q", DURABLE, Some(max));
        let expected = [
            ("x-dead-letter-exchange", ""),
            ("x-dead-letter-routing-key", "q.dead"),
            ("x-dead-letter-strategy", "at-least-once"),
            ("x-delivery-limit", "2"),
            ("x-overflow", "reject-publish"),
            ("x-queue-type", "quorum"),
        ];
        check(&destination.limited_arguments(max, &"q.dead".into()), &expected);
    }
}
