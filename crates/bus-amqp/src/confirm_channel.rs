//! Messages in flight to the broker, and its answers.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Confirmation};
use tickpath_bus_api::{Fate, wire};

use crate::connection::{AmqpConnection, TIMEOUT};
use crate::destination::{AmqpDestination, PublishAddress};
use crate::error::AmqpServerError;
use crate::server::AmqpServer;
use crate::signal::complete;

/// A message in flight, until the broker has answered.
pub(crate) type PendingConfirm = Pin<Box<dyn Future<Output = SendOutcome> + Send>>;

/// The outcome of sending a message.
pub(crate) enum SendOutcome {
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
pub(crate) enum SentMessage {
    /// No answer yet.
    Pending(PendingConfirm),
    /// The answer.
    Answered(SendOutcome),
}

impl SentMessage {
    /// Returns true if there is no answer yet.
    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Pending(_))
    }
}

/// A connection with a channel in confirm mode.
pub(crate) struct ConfirmChannel {
    link: AmqpConnection,
    channel: Arc<Channel>,
    /// True over TLS, where a message may have left, in earlier records, although its write failed.
    is_tls: bool,
}

impl ConfirmChannel {
    /// Connects, and makes the exchange or queue if it does not exist.
    pub fn open(server: &AmqpServer, place: &AmqpDestination) -> Result<Self, AmqpServerError> {
        let link = AmqpConnection::open(server)?;
        let channel = link.channel()?;
        place.declare(server, &link, &channel)?;
        link.wait_for_answer(channel.confirm_select(ConfirmSelectOptions::default()))?;
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
    pub fn send(&self, place: &AmqpDestination, bodies: impl Iterator<Item = Vec<u8>>) -> Vec<SentMessage> {
        // All are begun before the first is waited for.
        let mut sent: Vec<SentMessage> = bodies.map(|body| self.begin_send(place, body)).collect();
        wait_for_answers(&mut sent, TIMEOUT);
        sent
    }

    fn begin_send(&self, place: &AmqpDestination, body: Vec<u8>) -> SentMessage {
        let PublishAddress { exchange, key, options, properties } = place.publish_address();
        let (channel, is_tls) = (self.channel.clone(), self.is_tls);
        let mut sending: PendingConfirm = Box::pin(async move {
            let written = channel.basic_publish(exchange, key, options, &body, properties).await;
            match written {
                // A failed write was not whole, and the broker accepts no partial message.
                Err(e) if is_tls && e.is_io_error() => SendOutcome::Lost(e),
                Err(e) => SendOutcome::NotSent(e),
                Ok(confirm) => {
                    drop(body);
                    send_outcome(confirm.await)
                }
            }
        });
        match sending.as_mut().now_or_never() {
            Some(answer) => SentMessage::Answered(answer),
            None => SentMessage::Pending(sending),
        }
    }
}

/// Waits for the missing answers, each up to `patience`; after the first timeout it only collects those that are here.
pub(crate) fn wait_for_answers(sent: &mut [SentMessage], mut patience: Duration) {
    for one in sent {
        let SentMessage::Pending(sending) = one else { continue };
        match complete(sending, patience) {
            Some(answer) => *one = SentMessage::Answered(answer),
            None => patience = Duration::ZERO,
        }
    }
}

/// Returns the fate of each message, with the error of those that are not published. `silence` gives the error of a
/// message without an answer.
pub(crate) fn fates(
    sent: &[SentMessage],
    numbers: &[u64],
    place: &AmqpDestination,
    silence: impl Fn() -> AmqpServerError,
) -> Vec<(Fate, Option<AmqpServerError>)> {
    let returned: BTreeSet<u64> = sent.iter().filter_map(returned_sequence).collect();
    let last = sent.len().saturating_sub(1);
    let fate = |(at, (one, number)): (usize, (&SentMessage, &u64))| match one {
        // A returned message reached no queue, whichever confirmation the return came with.
        SentMessage::Answered(SendOutcome::Confirmed { .. }) if returned.contains(number) => {
            (Fate::NotPublished, Some(AmqpServerError::QueueRemoved))
        }
        SentMessage::Answered(SendOutcome::Confirmed { is_ack: true, .. }) => (Fate::Published, None),
        // The message may have reached some of the topic's subscribers.
        SentMessage::Answered(SendOutcome::Confirmed { is_ack: false, .. }) => {
            (Fate::Unknown, Some(AmqpServerError::NotConfirmed))
        }
        SentMessage::Answered(SendOutcome::NotSent(e)) => (Fate::NotPublished, Some(AmqpServerError::from(e.clone()))),
        SentMessage::Answered(SendOutcome::Lost(e)) => match AmqpServerError::from(e.clone()) {
            // The broker ends a channel at the first message without a destination: this message, or one before it.
            AmqpServerError::Missing(said) if at == last && place.is_named_in(&said) => {
                (Fate::NotPublished, Some(AmqpServerError::Missing(said)))
            }
            why => (Fate::Unknown, Some(why)),
        },
        SentMessage::Pending(_) => (Fate::Unknown, Some(silence())),
    };
    sent.iter().zip(numbers).enumerate().map(fate).collect()
}

fn returned_sequence(sent: &SentMessage) -> Option<u64> {
    match sent {
        SentMessage::Answered(SendOutcome::Confirmed { returned, .. }) => *returned,
        _ => None,
    }
}

fn send_outcome(confirmed: lapin::Result<Confirmation>) -> SendOutcome {
    let number = |bytes: &[u8]| wire::decode(bytes).and_then(|message| message.id).map(|origin| origin.sequence);
    match confirmed {
        Err(e) => SendOutcome::Lost(e),
        Ok(confirmation) => {
            let is_ack = confirmation.is_ack();
            let returned = confirmation.take_message().and_then(|message| number(&message.data));
            SendOutcome::Confirmed { is_ack, returned }
        }
    }
}
