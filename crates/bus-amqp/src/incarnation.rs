//! Whether a queue or a topic is still the one that it was, and not another one that somebody made under its name
//! meanwhile.
//!
//! ```text
//!   exchange ~9c61… ──bound──> queue 'orders'      auto-delete: it is gone with the queue, whoever makes that anew
//!      └ alternate-exchange = 51f0…                a number of chance, which the broker tells who declares another one
//!
//!   exchange ~04d7… ──bound──> exchange 'ticks'    the same of a topic
//!      └ alternate-exchange = 8e2b…
//!   exchange ~~8e2b… ─bound──> exchange 'ticks'    whether it is there can be asked for again and again
//! ```
//! Nobody publishes there. Whoever pulls or subscribes makes them if they are not there.

use std::io;
use std::pin::Pin;

use lapin::options::{ExchangeBindOptions, ExchangeDeclareOptions, QueueBindOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};
use tickpath_bus_api::Numbering;
use tickpath_clock::HostClock;

use crate::error::ServerError;
use crate::link::Link;
use crate::place::{Place, What};

/// What tells a queue or a topic from any other one of its name: sixteen hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incarnation(String);

/// Asking whether what is received from is still there, and the same.
pub(crate) type Check = Pin<Box<dyn Future<Output = Result<(), ServerError>> + Send>>;

/// What a puller knows of its queue from one connection to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// The queue that was pulled from last; none if it cannot be told from others.
    pub incarnation: Option<Incarnation>,
    /// The queue that was pulled from is gone, and nobody has been told yet.
    pub is_gone: bool,
}

impl Incarnation {
    /// That of a queue or a topic which is there. None if this user may not make or bind exchanges, or if the name of
    /// the virtual host is so long that the broker's answer is cut off.
    pub fn of(link: &Link, place: &Place) -> Result<Option<Self>, ServerError> {
        match Self::find(link, place) {
            Err(ServerError::Refused(_)) => Ok(None),
            found => found,
        }
    }

    /// Asks, without waiting, whether the queue or the topic is still this one; an error if it is not. That costs a channel,
    /// which the usual answer ends, as it is a refusal. It must be dropped before the connection is.
    pub fn check(&self, link: &Link, place: &Place) -> Check {
        let (opening, known, exchange) = (link.channel_later(), self.clone(), exchange_of(place.what()));
        let (fresh, options) = (Self::fresh(), options(place));
        Box::pin(async move {
            let (arguments, channel) = (fresh?.declared(), opening.await?);
            let declaring = channel.exchange_declare(exchange, ExchangeKind::Fanout, options, arguments);
            match declaring.await.map_err(ServerError::from) {
                // It was gone with the queue; whoever comes next binds the new one to the other queue.
                Ok(()) => Err(ServerError::Missing("another one has its name by now".to_owned())),
                Err(ServerError::Differs(sentence)) => match Self::in_refusal(&sentence) {
                    Some(now) if now != known => Err(ServerError::Missing(sentence)),
                    _ => Ok(()),
                },
                // Who may not ask any more goes without.
                Err(ServerError::Refused(_)) => Ok(()),
                Err(e) => Err(e),
            }
        })
    }

    /// The exchange that is there as long as the topic of this incarnation is. No topic and no queue has its name.
    pub fn exchange(&self) -> ShortString {
        format!("~~{}", self.0).into()
    }

    fn find(link: &Link, place: &Place) -> Result<Option<Self>, ServerError> {
        let (fresh, options) = (Self::fresh()?, options(place));
        let arguments = fresh.declared();
        let exchange = exchange_of(place.what());
        let channel = link.channel()?;
        let declaring = channel.exchange_declare(exchange.clone(), ExchangeKind::Fanout, options, arguments);
        let found = match link.answer(declaring) {
            Ok(()) => fresh,
            Err(ServerError::Differs(sentence)) => match Self::in_refusal(&sentence) {
                Some(found) => found,
                None => return Ok(None),
            },
            Err(e) => return Err(e),
        };
        // A refusal has ended the channel that it came on.
        let channel = link.channel()?;
        match place.what() {
            What::Queue(queue) => {
                let (key, options) = (ShortString::default(), QueueBindOptions::default());
                link.answer(channel.queue_bind(queue.clone(), exchange, key, options, FieldTable::default()))?;
            }
            What::Exchange(topic) => {
                bind(link, &channel, topic, exchange)?;
                let (own, kind) = (found.exchange(), ExchangeKind::Fanout);
                link.answer(channel.exchange_declare(own.clone(), kind, options, FieldTable::default()))?;
                bind(link, &channel, topic, own)?;
            }
        }
        Ok(Some(found))
    }

    /// What an exchange is declared with that tells of it.
    fn declared(&self) -> FieldTable {
        let mut arguments = FieldTable::default();
        arguments.insert("alternate-exchange".into(), AMQPValue::LongString(self.0.as_str().into()));
        arguments
    }

    /// Another one with each call, on all hosts.
    fn fresh() -> Result<Self, ServerError> {
        let clock = HostClock::get().map_err(|e| ServerError::Here(io::Error::other(e)))?;
        Ok(Self(format!("{:016x}", Numbering::new(clock).ahead(0).publisher)))
    }

    /// The one that a refusal tells of: it says what was wanted, and what is there.
    fn in_refusal(sentence: &str) -> Option<Self> {
        let (_, rest) = sentence.split_once("but current is ")?;
        let mut quoted = rest.split('\'').skip(1);
        let digits = quoted.next()?;
        // A quotation that does not end was cut off.
        quoted.next()?;
        let is_whole = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_whole.then(|| Self(digits.to_owned()))
    }
}

/// How an exchange is declared that tells of an incarnation.
fn options(place: &Place) -> ExchangeDeclareOptions {
    ExchangeDeclareOptions {
        durable: place.is_durable(),
        auto_delete: true,
        internal: true,
        ..ExchangeDeclareOptions::default()
    }
}

/// Binds a topic's exchange to this one, so that this one is gone when the topic is.
fn bind(link: &Link, channel: &Channel, topic: &ShortString, exchange: ShortString) -> Result<(), ServerError> {
    let (key, options) = (ShortString::default(), ExchangeBindOptions::default());
    link.answer(channel.exchange_bind(topic.clone(), exchange, key, options, FieldTable::default()))
}

/// The name of the exchange of a queue or a topic, which no topic has. It is short, because the broker cuts its answers
/// off at 255 bytes, and the same in all programs (FNV-1a).
fn exchange_of(what: &What) -> ShortString {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hashed = match what {
        What::Queue(name) => name.as_str().to_owned(),
        // No queue has a name with a space in it.
        What::Exchange(name) => format!("topic {name}"),
    };
    format!("~{:016x}", hashed.bytes().fold(0xcbf2_9ce4_8422_2325, hash)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incarnation_is_read_from_the_refusal_of_another_one() {
        let (wanted, found) = (Incarnation::fresh().unwrap(), Incarnation::fresh().unwrap());
        assert_ne!(wanted, found);
        let [exchange, host] = [exchange_of(&queue("orders")).to_string(), "v".repeat(32)];
        let refusal = |before: &str, behind: &str| {
            format!(
                "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange '{exchange}' in vhost '{host}': \
                 received {}'{}'{} but current is {}'{}'{}",
                before, wanted.0, behind, before, found.0, behind,
            )
        };
        // As versions 3 and others say it.
        for (sentence, behind) in [(refusal("", ""), 0), (refusal("the value ", " of type 'longstr'"), 18)] {
            assert!(sentence.len() <= 255, "{} bytes", sentence.len());
            assert_eq!(Incarnation::in_refusal(&sentence), Some(found.clone()));
            for bytes in 0..sentence.len() - behind {
                assert_eq!(Incarnation::in_refusal(&sentence[..bytes]), None, "cut off after {bytes} bytes");
            }
        }
        let other = "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'x' in vhost '/': received 'true' \
                     but current is 'false'";
        assert_eq!(Incarnation::in_refusal(other), None);
    }

    #[test]
    fn each_queue_and_each_topic_has_an_exchange_of_its_own_for_ever() {
        assert_eq!(exchange_of(&queue("a")).as_str(), "~af63dc4c8601ec8c", "as FNV-1a has it everywhere");
        assert_ne!(exchange_of(&queue("orders")), exchange_of(&queue("orders.dead")));
        let topic = What::Exchange("orders".into());
        assert_ne!(exchange_of(&queue("orders")), exchange_of(&topic));
        assert_eq!(exchange_of(&topic).as_str().len(), 17);
    }

    fn queue(name: &str) -> What {
        What::Queue(name.into())
    }
}
