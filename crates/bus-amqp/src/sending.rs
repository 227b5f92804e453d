//! Messages in flight to the broker, and its answers.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Confirmation};
use tickpath_bus_api::{Fate, wire};

use crate::error::ServerError;
use crate::link::{Link, TIMEOUT};
use crate::place::{Addressing, Place};
use crate::server::Server;
use crate::signal::complete;

/// A message in flight, until the broker has answered.
pub(crate) type Sending = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The outcome of sending a message.
pub(crate) enum Answer {
    /// The message was not sent as a whole, so the broker does not have it.
    NotSent(lapin::Error),
    /// The message was sent, and then the connection or its channel ended.
    Lost(lapin::Error),
    /// The broker answered, positively or negatively.
    Confirmed {
        /// True if the answer is positive.
        is_ack: bool,
        /// The sequence number of a message that was returned before, which can be another one.
        returned: Option<u64>,
    },
}

/// A message that was sent: in flight, or answered.
pub(crate) enum Sent {
    /// No answer yet.
    Waiting(Sending),
    /// The answer.
    Answered(Answer),
}

impl Sent {
    /// Returns true if there is no answer yet.
    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }
}

/// A connection with a channel in confirm mode.
pub(crate) struct ConfirmChannel {
    link: Link,
    channel: Arc<Channel>,
    /// True over TLS, where a message may have left, in earlier records, although its write failed.
    is_tls: bool,
}

impl ConfirmChannel {
    /// Connects, and makes the exchange or queue if it does not exist.
    pub fn open(server: &Server, place: &Place) -> Result<Self, ServerError> {
        let link = Link::open(server)?;
        let channel = link.channel()?;
        place.declare(server, &link, &channel)?;
        link.answer(channel.confirm_select(ConfirmSelectOptions::default()))?;
        Ok(Self { link, channel: Arc::new(channel), is_tls: server.tls().is_some() })
    }

    /// Returns true if the connection and channel are up, as far as is known.
    pub fn is_up(&self) -> bool {
        self.link.is_up() && self.channel.status().connected()
    }

    /// Returns true if the broker has reported that it takes no messages now.
    pub fn is_blocked(&self) -> bool {
        self.link.is_blocked()
    }

    /// Sends all messages in order, and waits for the answers, up to 5 s for the next one.
    pub fn send(&self, place: &Place, bodies: impl Iterator<Item = Vec<u8>>) -> Vec<Sent> {
        // All are begun before the first is waited for.
        let mut sent: Vec<Sent> = bodies.map(|body| self.begin(place, body)).collect();
        wait_for(&mut sent, TIMEOUT);
        sent
    }

    fn begin(&self, place: &Place, body: Vec<u8>) -> Sent {
        let Addressing { exchange, key, options, properties } = place.addressing();
        let (channel, is_tls) = (self.channel.clone(), self.is_tls);
        let mut sending: Sending = Box::pin(async move {
            let written = channel.basic_publish(exchange, key, options, &body, properties).await;
            match written {
                // A failed write was not whole, and the broker accepts no partial message.
                Err(e) if is_tls && e.is_io_error() => Answer::Lost(e),
                Err(e) => Answer::NotSent(e),
                Ok(confirm) => {
                    drop(body);
                    answer(confirm.await)
                }
            }
        });
        match sending.as_mut().now_or_never() {
            Some(answer) => Sent::Answered(answer),
            None => Sent::Waiting(sending),
        }
    }
}

/// Waits for the missing answers, each up to `patience`; after the first timeout it only collects those that are here.
pub(crate) fn wait_for(sent: &mut [Sent], mut patience: Duration) {
    for one in sent {
        let Sent::Waiting(sending) = one else { continue };
        match complete(sending, patience) {
            Some(answer) => *one = Sent::Answered(answer),
            None => patience = Duration::ZERO,
        }
    }
}

/// Returns the fate of each message, with the error of those that are not published. `silence` gives the error of a
/// message without an answer.
pub(crate) fn fates(
    sent: &[Sent],
    numbers: &[u64],
    place: &Place,
    silence: impl Fn() -> ServerError,
) -> Vec<(Fate, Option<ServerError>)> {
    let returned: BTreeSet<u64> = sent.iter().filter_map(returned).collect();
    let last = sent.len().saturating_sub(1);
    let fate = |(at, (one, number)): (usize, (&Sent, &u64))| match one {
        // A returned message reached no queue, whichever confirmation the return came with.
        Sent::Answered(Answer::Confirmed { .. }) if returned.contains(number) => {
            (Fate::NotPublished, Some(ServerError::NoQueue))
        }
        Sent::Answered(Answer::Confirmed { is_ack: true, .. }) => (Fate::Published, None),
        // The message may have reached some of the topic's subscribers.
        Sent::Answered(Answer::Confirmed { is_ack: false, .. }) => (Fate::Unknown, Some(ServerError::NotConfirmed)),
        Sent::Answered(Answer::NotSent(e)) => (Fate::NotPublished, Some(ServerError::from(e.clone()))),
        Sent::Answered(Answer::Lost(e)) => match ServerError::from(e.clone()) {
            // The broker ends a channel at the first message without a destination: this message, or one before it.
            ServerError::Missing(said) if at == last && place.is_in(&said) => {
                (Fate::NotPublished, Some(ServerError::Missing(said)))
            }
            why => (Fate::Unknown, Some(why)),
        },
        Sent::Waiting(_) => (Fate::Unknown, Some(silence())),
    };
    sent.iter().zip(numbers).enumerate().map(fate).collect()
}

fn returned(sent: &Sent) -> Option<u64> {
    match sent {
        Sent::Answered(Answer::Confirmed { returned, .. }) => *returned,
        _ => None,
    }
}

fn answer(confirmed: lapin::Result<Confirmation>) -> Answer {
    let number = |bytes: &[u8]| wire::decode(bytes).and_then(|message| message.origin).map(|origin| origin.number);
    match confirmed {
        Err(e) => Answer::Lost(e),
        Ok(confirmation) => {
            let is_ack = confirmation.is_ack();
            let returned = confirmation.take_message().and_then(|message| number(&message.data));
            Answer::Confirmed { is_ack, returned }
        }
    }
}
