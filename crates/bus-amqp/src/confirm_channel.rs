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

/// A message that was sent, and its outcome.
pub(crate) enum SentMessage {
    /// The broker has not answered yet.
    Pending(Pin<Box<dyn Future<Output = Self> + Send>>),
    /// The message was not sent as a whole, so the broker does not have it.
    NotSent(lapin::Error),
    /// The message was sent, and then the connection or its channel ended.
    Lost(lapin::Error),
    /// The broker answered, positively or negatively.
    Confirmed {
        is_ack: bool,
        /// The sequence number of a message that was returned before, which can be another one.
        returned: Option<u64>,
    },
}

impl SentMessage {
    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Pending(_))
    }

    fn confirmed(confirmation: Confirmation) -> Self {
        let number = |bytes: &[u8]| wire::decode(bytes).and_then(|message| message.id).map(|id| id.sequence);
        let is_ack = confirmation.is_ack();
        let returned = confirmation.take_message().and_then(|message| number(&message.data));
        Self::Confirmed { is_ack, returned }
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
    pub fn open(server: &AmqpServer, destination: &AmqpDestination) -> Result<Self, AmqpServerError> {
        let link = AmqpConnection::open(server)?;
        let channel = link.channel()?;
        destination.declare(server, &link, &channel)?;
        link.wait_for_answer(channel.confirm_select(ConfirmSelectOptions::default()))?;
        Ok(Self { link, channel: Arc::new(channel), is_tls: server.tls.is_some() })
    }

    pub fn is_up(&self) -> bool {
        self.link.is_up() && self.channel.status().connected()
    }

    pub fn is_blocked(&self) -> bool {
        self.link.is_blocked()
    }

    /// Returns why a message has no answer.
    pub fn silence(&self) -> AmqpServerError {
        self.link.silence()
    }

    /// Sends all messages in order, and waits for the answers, up to 5 s for the next one.
    pub fn send(&self, destination: &AmqpDestination, bodies: impl Iterator<Item = Vec<u8>>) -> Vec<SentMessage> {
        // All are begun before the first is waited for.
        let mut sent: Vec<SentMessage> = bodies.map(|body| self.begin_send(destination, body)).collect();
        wait_for_answers(&mut sent, TIMEOUT);
        sent
    }

    fn begin_send(&self, destination: &AmqpDestination, body: Vec<u8>) -> SentMessage {
        let PublishAddress { exchange, key, options, properties } = destination.publish_address();
        let (channel, is_tls) = (self.channel.clone(), self.is_tls);
        let mut sending: Pin<Box<dyn Future<Output = SentMessage> + Send>> = Box::pin(async move {
            match channel.basic_publish(exchange, key, options, &body, properties).await {
                // A failed write was not whole, and the broker accepts no partial message.
                Err(e) if is_tls && e.is_io_error() => SentMessage::Lost(e),
                Err(e) => SentMessage::NotSent(e),
                Ok(confirm) => {
                    drop(body);
                    confirm.await.map_or_else(SentMessage::Lost, SentMessage::confirmed)
                }
            }
        });
        match sending.as_mut().now_or_never() {
            Some(answered) => answered,
            None => SentMessage::Pending(sending),
        }
    }
}

/// Waits for the missing answers, each up to `patience`; after the first timeout it only collects those that are here.
pub(crate) fn wait_for_answers(sent: &mut [SentMessage], mut patience: Duration) {
    for message in sent {
        let SentMessage::Pending(sending) = message else { continue };
        match complete(sending, patience) {
            Some(answered) => *message = answered,
            None => patience = Duration::ZERO,
        }
    }
}

/// Returns the fate of each message, with the error of those that are not published; of unanswered ones `silence()`.
pub(crate) fn fates(
    sent: &[SentMessage],
    numbers: &[u64],
    destination: &AmqpDestination,
    silence: impl Fn() -> AmqpServerError,
) -> Vec<(Fate, Option<AmqpServerError>)> {
    let returned_number = |message: &SentMessage| match message {
        SentMessage::Confirmed { returned, .. } => *returned,
        _ => None,
    };
    let returned: BTreeSet<u64> = sent.iter().filter_map(returned_number).collect();
    let last = sent.len().saturating_sub(1);
    let fate = |(index, (message, number)): (usize, (&SentMessage, &u64))| match message {
        // A returned message reached no queue, whichever confirmation the return came with.
        SentMessage::Confirmed { .. } if returned.contains(number) => {
            (Fate::NotPublished, Some(AmqpServerError::QueueRemoved))
        }
        SentMessage::Confirmed { is_ack: true, .. } => (Fate::Published, None),
        // The message may have reached some of the topic's subscribers.
        SentMessage::Confirmed { is_ack: false, .. } => (Fate::Unknown, Some(AmqpServerError::NotConfirmed)),
        SentMessage::NotSent(e) => (Fate::NotPublished, Some(AmqpServerError::from(e.clone()))),
        SentMessage::Lost(e) => match AmqpServerError::from(e.clone()) {
            // The broker ends a channel at the first message without a destination: this message, or one before it.
            AmqpServerError::Missing(refusal) if index == last && destination.is_named_in(&refusal) => {
                (Fate::NotPublished, Some(AmqpServerError::Missing(refusal)))
            }
            error => (Fate::Unknown, Some(error)),
        },
        SentMessage::Pending(_) => (Fate::Unknown, Some(silence())),
    };
    sent.iter().zip(numbers).enumerate().map(fate).collect()
}
