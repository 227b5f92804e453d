//! Messages in doubt, kept so that `resend` can send the same messages again.

use tickpath_bus_api::Fate;

use crate::confirm_channel::{SentMessage, fates};
use crate::destination::AmqpDestination;
use crate::error::AmqpServerError;

/// The messages in doubt, in their order.
#[derive(Default)]
pub(crate) struct InDoubtMessages {
    pub numbers: Vec<u64>,
    bodies: Vec<Vec<u8>>,
    /// The last attempt to send each message.
    pub sent: Vec<SentMessage>,
}

impl InDoubtMessages {
    pub fn add(&mut self, number: u64, body: Vec<u8>, sent: SentMessage) {
        self.numbers.push(number);
        self.bodies.push(body);
        self.sent.push(sent);
    }

    pub fn is_waiting(&self) -> bool {
        self.sent.iter().any(SentMessage::is_waiting)
    }

    /// Returns copies of the whole messages.
    pub fn bodies(&self) -> impl Iterator<Item = Vec<u8>> {
        self.bodies.iter().cloned()
    }

    /// Drops the messages that are published by now, and returns the fate of all; a failed resend stays in doubt.
    pub fn settle(&mut self, destination: &AmqpDestination) -> Vec<Fate> {
        let found = fates(&self.sent, &self.numbers, destination, || AmqpServerError::Timeout);
        let settled: Vec<Fate> = found.into_iter().map(|(fate, _why)| fate.after_resend()).collect();
        let before = std::mem::take(self);
        let all = before.numbers.into_iter().zip(before.bodies).zip(before.sent);
        for (((number, body), sent), fate) in all.zip(&settled) {
            if *fate == Fate::Unknown {
                self.add(number, body, sent);
            }
        }
        settled
    }
}
