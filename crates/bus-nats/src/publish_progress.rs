//! Messages in flight, and the fate of each. Resends: `docs/design/nats-resends.md`.

use async_nats::Subject;
use async_nats::jetstream::message::PublishMessage;
use tickpath_bus_api::{Fate, MessageId};

use crate::connection::NatsConnection;
use crate::error::{NatsServerError, ServerResult, is_not_stored};

#[derive(Clone)]
pub(crate) struct Outgoing {
    pub origin: MessageId,
    /// The sender's count of refusals so far.
    pub refusals: u16,
    pub bytes: Vec<u8>,
}

pub(crate) struct PublishProgress {
    pub fates: Vec<Fate>,
    /// The number of messages, from the first on, that were handed over to the client library, each whole.
    pub handed_over: usize,
    /// The answer to the first message that was refused.
    refusal: Option<NatsServerError>,
}

impl PublishProgress {
    /// Begins a call with this many messages, none of them sent.
    pub fn new(count: usize) -> Self {
        Self { fates: vec![Fate::NotPublished; count], handed_over: 0, refusal: None }
    }

    /// Returns the messages that are to be sent, or sent again.
    pub fn not_published(&self) -> Vec<usize> {
        (0..self.fates.len()).filter(|&index| self.fates[index] != Fate::Published).collect()
    }

    pub fn unknown(&self) -> impl Iterator<Item = usize> {
        Fate::unknown(&self.fates)
    }

    /// Returns the number of sequence numbers that are used: up to the last message that is published or in doubt.
    pub fn used(&self) -> usize {
        Fate::used(&self.fates)
    }

    /// Marks messages of an earlier attempt as in doubt, whatever the last attempt was answered.
    pub fn mark_unknown(&mut self, sent: impl IntoIterator<Item = usize>) {
        for index in sent {
            self.fates[index] = self.fates[index].after_resend();
        }
    }

    /// Returns why the first message that is not published is not, where the call ended with the error `end`.
    pub fn first_error(&mut self, end: NatsServerError) -> NatsServerError {
        if end.is_refused_publish() {
            for fate in self.fates.iter_mut().filter(|fate| **fate == Fate::Unknown) {
                *fate = Fate::NotPublished;
            }
        }
        self.refusal.take().unwrap_or(end)
    }

    fn mark_handed_over(&mut self, index: usize) {
        self.fates[index] = Fate::Unknown;
        self.handed_over = self.handed_over.max(index + 1);
    }

    fn refuse(&mut self, index: usize, is_known: bool, error: NatsServerError) {
        if is_known {
            self.fates[index] = Fate::NotPublished;
        }
        self.refusal.get_or_insert(error);
    }
}

/// Publishes over core NATS: returns when all messages are written to the socket, which is all that is confirmed.
pub(crate) async fn publish_core(
    connected: &NatsConnection,
    subject: &Subject,
    batch: &[usize],
    message: &dyn Fn(usize) -> Outgoing,
    sending: &mut PublishProgress,
) -> ServerResult {
    for &index in batch {
        connected.client.publish(subject.clone(), message(index).bytes.into()).await?;
        sending.mark_handed_over(index);
    }
    connected.client.flush().await.map_err(NatsServerError::closed)?;
    for &index in batch {
        sending.fates[index] = Fate::Published;
    }
    Ok(())
}

/// Publishes over JetStream: sends all messages, then waits for their confirmations in the same order.
pub(crate) async fn publish_stored(
    connected: &NatsConnection,
    subject: &Subject,
    batch: &[usize],
    message: &dyn Fn(usize) -> Outgoing,
    sending: &mut PublishProgress,
) -> ServerResult {
    let mut confirmations = Vec::with_capacity(batch.len());
    let mut end = Ok(());
    for &index in batch {
        let Outgoing { origin, refusals, bytes } = message(index);
        let publish = PublishMessage::build().payload(bytes.into()).message_id(duplicate_id(origin, refusals));
        match connected.context.send_publish(subject.clone(), publish).await {
            Ok(confirmation) => confirmations.push((index, confirmation)),
            Err(e) => {
                end = Err(e.into());
                break;
            }
        }
        sending.mark_handed_over(index);
    }
    for (index, confirmation) in confirmations {
        match confirmation.await {
            Ok(_confirmed) => sending.fates[index] = Fate::Published,
            Err(e) => sending.refuse(index, is_not_stored(&e), e.into()),
        }
    }
    match sending.refusal.take() {
        Some(refusal) => Err(refusal),
        None => end,
    }
}

/// Returns the id by which JetStream detects a duplicate. JetStream may remember the id of a message that it refused,
/// so the next message with that number has another id.
fn duplicate_id(origin: MessageId, refusals: u16) -> String {
    format!("{:016x}{:016x}", origin.publisher, origin.sequence ^ u64::from(refusals) << 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_first_attempt_stay_in_doubt_after_a_second() {
        let mut sending = PublishProgress::new(4);
        (0..3).for_each(|index| sending.mark_handed_over(index));
        let sent: Vec<usize> = sending.unknown().collect();
        assert_eq!(sent, [0, 1, 2]);
        sending.refuse(0, true, NatsServerError::Busy("maximum messages exceeded".to_owned()));
        sending.fates[1] = Fate::Published;
        let end = NatsServerError::Refused("Permissions Violation for Publish to \"a\"".to_owned());
        assert!(matches!(sending.first_error(end), NatsServerError::Busy(_)), "the first one is reported");
        sending.mark_unknown(sent);
        assert_eq!(sending.fates, [Fate::Unknown, Fate::Published, Fate::Unknown, Fate::NotPublished]);
    }

    #[test]
    fn a_refused_sequence_number_gets_another_duplicate_id() {
        let origin = MessageId { clock: 1, publisher: 0x2a, sequence: 7 };
        assert_eq!(duplicate_id(origin, 0), "000000000000002a0000000000000007");
        assert_eq!(duplicate_id(origin, 1), "000000000000002a0001000000000007");
    }
}
