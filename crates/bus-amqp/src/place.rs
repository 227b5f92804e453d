//! Where messages lie on the broker: a topic's exchange, or a queue.

use lapin::options::{
    BasicPublishOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, ExchangeKind};

use crate::error::ServerError;
use crate::link::Link;
use crate::server::Durability;

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
        Self { what: What::Exchange(carried(name)), durability }
    }

    /// That of a queue.
    pub fn queue(name: &str, durability: Durability) -> Self {
        Self { what: What::Queue(carried(name)), durability }
    }

    /// Whether it survives the broker.
    pub fn is_durable(&self) -> bool {
        self.durability != Durability::Transient
    }

    /// What it is.
    pub fn what(&self) -> &What {
        &self.what
    }

    /// Makes it if it is not there, always alike, so that everybody can.
    pub fn declare(&self, link: &Link, channel: &Channel) -> Result<(), ServerError> {
        let durable = self.is_durable();
        match &self.what {
            What::Exchange(name) => {
                let options = ExchangeDeclareOptions { durable, ..ExchangeDeclareOptions::default() };
                let kind = ExchangeKind::Fanout;
                link.answer(channel.exchange_declare(name.clone(), kind, options, FieldTable::default()))
            }
            What::Queue(name) => {
                let options = QueueDeclareOptions { durable, ..QueueDeclareOptions::default() };
                let declaring = channel.queue_declare(name.clone(), options, self.arguments());
                link.answer(declaring).map(|_queue| ())
            }
        }
    }

    /// What a queue is declared with.
    fn arguments(&self) -> FieldTable {
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
