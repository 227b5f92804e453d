//! Where messages lie on the broker: a topic's exchange, or a queue.

use lapin::options::{
    BasicPublishOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, ExchangeKind, PublisherConfirm};

use crate::error::ServerError;
use crate::link::Link;

/// The broker refuses names that begin so.
const RESERVED: &str = "amq.";

/// The delivery mode of messages that do not survive the broker.
const TRANSIENT: u8 = 1;

/// An exchange or a queue, by the name that it has on the broker.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// The fanout exchange of a topic.
    Exchange(ShortString),
    /// A queue.
    Queue(ShortString),
}

impl Place {
    /// That of a topic.
    pub fn topic(name: &str) -> Self {
        Self::Exchange(carried(name))
    }

    /// That of a queue.
    pub fn queue(name: &str) -> Self {
        Self::Queue(carried(name))
    }

    /// Makes it if it is not there, always alike, so that everybody can.
    pub fn declare(&self, link: &Link, channel: &Channel) -> Result<(), ServerError> {
        let arguments = FieldTable::default();
        match self {
            Self::Exchange(name) => {
                let options = ExchangeDeclareOptions::default();
                link.answer(channel.exchange_declare(name.clone(), ExchangeKind::Fanout, options, arguments))
            }
            Self::Queue(name) => {
                let options = QueueDeclareOptions::default();
                link.answer(channel.queue_declare(name.clone(), options, arguments)).map(|_queue| ())
            }
        }
    }

    /// Removes it, with all that is in it. One that is not there is no error to the broker either.
    pub fn delete(&self, link: &Link) -> Result<(), ServerError> {
        let channel = link.channel()?;
        match self {
            Self::Exchange(name) => {
                link.answer(channel.exchange_delete(name.clone(), ExchangeDeleteOptions::default()))
            }
            Self::Queue(name) => {
                let deleted = channel.queue_delete(name.clone(), QueueDeleteOptions::default());
                link.answer(deleted).map(|_messages| ())
            }
        }
    }

    /// How many messages lie in a queue that no puller was sent. An exchange holds none.
    pub fn waiting(&self, link: &Link) -> Result<u64, ServerError> {
        let Self::Queue(name) = self else { return Ok(0) };
        let channel = link.channel()?;
        let options = QueueDeclareOptions::default().passive();
        match link.answer(channel.queue_declare(name.clone(), options, FieldTable::default())) {
            Ok(queue) => Ok(u64::from(queue.message_count())),
            Err(ServerError::Missing(_)) => Ok(0),
            Err(e) => Err(e),
        }
    }

    /// Sends a message there. To a queue it must come; a topic that nobody is subscribed to drops it.
    pub async fn publish(&self, channel: &Channel, body: &[u8]) -> lapin::Result<PublisherConfirm> {
        let (exchange, key, mandatory) = match self {
            Self::Exchange(name) => (name.clone(), ShortString::default(), false),
            Self::Queue(name) => (ShortString::default(), name.clone(), true),
        };
        let options = BasicPublishOptions { mandatory, immediate: false };
        let properties = BasicProperties::default().with_delivery_mode(TRANSIENT);
        channel.basic_publish(exchange, key, options, body, properties).await
    }
}

/// The name on the broker, another one for each name.
fn carried(name: &str) -> ShortString {
    if name.starts_with(RESERVED) { format!("~{name}").into() } else { name.into() }
}
