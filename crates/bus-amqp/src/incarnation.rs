//! The identity of a queue or a topic, which distinguishes it from another made under its name meanwhile.
//!
//! ```text
//!   exchange ~9c61… ──bound──> queue 'orders'      auto-delete: it is gone with the queue, also if that is made anew
//!      └ alternate-exchange = 51f0…                a random number, which the broker reports when another is declared
//!
//!   exchange ~04d7… ──bound──> exchange 'ticks'    the same of a topic
//!      └ alternate-exchange = 8e2b…
//!   exchange ~~8e2b… ─bound──> exchange 'ticks'    whether it is there can be asked for again and again
//! ```
//! Nothing is published there. A puller or subscriber makes these exchanges if they do not exist.

use std::io;
use std::pin::Pin;

use lapin::ExchangeKind;
use lapin::options::{ExchangeBindOptions, ExchangeDeclareOptions, QueueBindOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use tickpath_bus_api::Numbering;
use tickpath_clock::HostClock;

use crate::connection::AmqpConnection;
use crate::destination::{AmqpDestination, AmqpObject};
use crate::error::AmqpServerError;

/// The identity of a queue or a topic among those of its name: sixteen hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incarnation(String);

/// A request in flight whether a queue or topic still exists, and is the same.
pub(crate) type IncarnationCheck = Pin<Box<dyn Future<Output = Result<(), AmqpServerError>> + Send>>;

/// A puller's memory of its queue across connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastKnownQueue {
    /// The incarnation of the last queue; none if it cannot be identified.
    pub incarnation: Option<Incarnation>,
    /// True if that queue is gone, and this was not reported yet.
    pub is_gone: bool,
}

impl Incarnation {
    /// Returns the incarnation of an existing queue or topic. None if this user may not make or bind exchanges, or if
    /// the virtual host's name is so long that the broker's answer is cut off.
    pub fn identify(link: &AmqpConnection, destination: &AmqpDestination) -> Result<Option<Self>, AmqpServerError> {
        match Self::find_or_create(link, destination) {
            Err(AmqpServerError::Refused(_)) => Ok(None),
            found => found,
        }
    }

    /// Asks, without waiting, whether the queue or topic is still this one; fails if it is not. The check costs a
    /// channel, because the usual answer is a refusal and ends it, and must be dropped before the connection.
    pub fn check(&self, link: &AmqpConnection, destination: &AmqpDestination) -> IncarnationCheck {
        let (opening, known, exchange) = (link.begin_channel(), self.clone(), identity_exchange(&destination.object));
        let (fresh, options) = (Self::random(), options(destination));
        Box::pin(async move {
            let (arguments, channel) = (fresh?.arguments(), opening.await?);
            let declaring = channel.exchange_declare(exchange, ExchangeKind::Fanout, options, arguments);
            match declaring.await.map_err(AmqpServerError::from) {
                // The exchange was gone with the queue; the next puller or subscriber binds the new exchange.
                Ok(()) => Err(AmqpServerError::Missing("another one has its name by now".to_owned())),
                Err(AmqpServerError::Differs(sentence)) => match Self::parse_refusal(&sentence) {
                    Some(now) if now != known => Err(AmqpServerError::Missing(sentence)),
                    _ => Ok(()),
                },
                // A user who has lost the permission goes without the check.
                Err(AmqpServerError::Refused(_)) => Ok(()),
                Err(e) => Err(e),
            }
        })
    }

    /// Returns the exchange that exists as long as the topic of this incarnation. No topic or queue has its name.
    pub fn exchange(&self) -> ShortString {
        format!("~~{}", self.0).into()
    }

    fn find_or_create(link: &AmqpConnection, destination: &AmqpDestination) -> Result<Option<Self>, AmqpServerError> {
        let (fresh, options) = (Self::random()?, options(destination));
        let arguments = fresh.arguments();
        let exchange = identity_exchange(&destination.object);
        let channel = link.channel()?;
        let declaring = channel.exchange_declare(exchange.clone(), ExchangeKind::Fanout, options, arguments);
        let found = match link.wait_for_answer(declaring) {
            Ok(()) => fresh,
            Err(AmqpServerError::Differs(sentence)) => match Self::parse_refusal(&sentence) {
                Some(found) => found,
                None => return Ok(None),
            },
            Err(e) => return Err(e),
        };
        // A refusal has ended the first channel.
        let channel = link.channel()?;
        match &destination.object {
            AmqpObject::Queue(queue) => {
                let (key, options) = (ShortString::default(), QueueBindOptions::default());
                link.wait_for_answer(channel.queue_bind(queue.clone(), exchange, key, options, FieldTable::default()))?;
            }
            AmqpObject::Exchange(topic) => {
                // The topic's exchange is bound to the others, so that they are deleted with it.
                let bind = |exchange: ShortString| {
                    let (key, options, none) = <(ShortString, ExchangeBindOptions, FieldTable)>::default();
                    link.wait_for_answer(channel.exchange_bind(topic.clone(), exchange, key, options, none))
                };
                bind(exchange)?;
                let (own, kind) = (found.exchange(), ExchangeKind::Fanout);
                link.wait_for_answer(channel.exchange_declare(own.clone(), kind, options, FieldTable::default()))?;
                bind(own)?;
            }
        }
        Ok(Some(found))
    }

    /// Returns the arguments of an exchange that holds this incarnation.
    fn arguments(&self) -> FieldTable {
        let mut arguments = FieldTable::default();
        arguments.insert("alternate-exchange".into(), AMQPValue::LongString(self.0.as_str().into()));
        arguments
    }

    /// Returns a new incarnation, unique over all hosts.
    fn random() -> Result<Self, AmqpServerError> {
        let clock = HostClock::get().map_err(|e| AmqpServerError::LocalResource(io::Error::other(e)))?;
        Ok(Self(format!("{:016x}", Numbering::new(clock).peek(0).publisher)))
    }

    /// Reads the existing incarnation from a refusal, which names the wanted and the current value.
    fn parse_refusal(sentence: &str) -> Option<Self> {
        let (_, rest) = sentence.split_once("but current is ")?;
        let mut quoted = rest.split('\'').skip(1);
        let digits = quoted.next()?;
        // A quotation without an end was cut off.
        quoted.next()?;
        let is_whole = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_whole.then(|| Self(digits.to_owned()))
    }
}

/// Returns the options of an exchange that holds an incarnation.
fn options(destination: &AmqpDestination) -> ExchangeDeclareOptions {
    ExchangeDeclareOptions {
        durable: destination.is_durable(),
        auto_delete: true,
        internal: true,
        ..ExchangeDeclareOptions::default()
    }
}

/// Returns the name of an identity exchange: no topic's, short as the broker cuts answers off, and stable (FNV-1a).
fn identity_exchange(object: &AmqpObject) -> ShortString {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hashed = match object {
        AmqpObject::Queue(name) => name.as_str().to_owned(),
        // A queue's name has no space in it.
        AmqpObject::Exchange(name) => format!("topic {name}"),
    };
    format!("~{:016x}", hashed.bytes().fold(0xcbf2_9ce4_8422_2325, hash)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incarnation_is_parsed_from_the_brokers_refusal() {
        let (wanted, found) = (Incarnation::random().unwrap(), Incarnation::random().unwrap());
        assert_ne!(wanted, found);
        let [exchange, host] = [identity_exchange(&queue("orders")).to_string(), "v".repeat(32)];
        let refusal = |before: &str, behind: &str| {
            format!(
                "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange '{exchange}' in vhost '{host}': \
                 received {}'{}'{} but current is {}'{}'{}",
                before, wanted.0, behind, before, found.0, behind,
            )
        };
        // The wording of version 3, and that of others.
        for (sentence, behind) in [(refusal("", ""), 0), (refusal("the value ", " of type 'longstr'"), 18)] {
            assert!(sentence.len() <= 255, "{} bytes", sentence.len());
            assert_eq!(Incarnation::parse_refusal(&sentence), Some(found.clone()));
            for bytes in 0..sentence.len() - behind {
                assert_eq!(Incarnation::parse_refusal(&sentence[..bytes]), None, "cut off after {bytes} bytes");
            }
        }
        let other = "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'x' in vhost '/': received 'true' \
                     but current is 'false'";
        assert_eq!(Incarnation::parse_refusal(other), None);
    }

    #[test]
    fn each_queue_and_each_topic_has_an_identity_exchange_of_its_own() {
        assert_eq!(identity_exchange(&queue("a")).as_str(), "~af63dc4c8601ec8c", "as FNV-1a has it everywhere");
        assert_ne!(identity_exchange(&queue("orders")), identity_exchange(&queue("orders.dead")));
        let topic = AmqpObject::Exchange("orders".into());
        assert_ne!(identity_exchange(&queue("orders")), identity_exchange(&topic));
        assert_eq!(identity_exchange(&topic).as_str().len(), 17);
    }

    fn queue(name: &str) -> AmqpObject {
        AmqpObject::Queue(name.into())
    }
}
