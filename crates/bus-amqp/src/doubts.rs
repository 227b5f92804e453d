//! Messages of which nobody knows whether they have arrived: kept so that they can be sent again as the same ones.

use tickpath_bus_api::Fate;

use crate::error::ServerError;
use crate::place::Place;
use crate::sending::{Sent, fates};

/// These messages, in their order.
#[derive(Default)]
pub(crate) struct Doubts {
    numbers: Vec<u64>,
    bodies: Vec<Vec<u8>>,
    /// What was sent, of each the last time.
    pub sent: Vec<Sent>,
}

impl Doubts {
    /// One more.
    pub fn add(&mut self, number: u64, body: Vec<u8>, sent: Sent) {
        self.numbers.push(number);
        self.bodies.push(body);
        self.sent.push(sent);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether any of them waits for its answer.
    pub fn wait(&self) -> bool {
        self.sent.iter().any(Sent::is_waiting)
    }

    /// Their numbers.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Copies of the whole messages.
    pub fn bodies(&self) -> impl Iterator<Item = Vec<u8>> {
        self.bodies.iter().cloned()
    }

    /// Drops those that are published by now. Of all there were, gives what became of them: of what is not published
    /// as it was sent the last time, another copy may be.
    pub fn settle(&mut self, place: &Place) -> Vec<Fate> {
        let found = fates(&self.sent, &self.numbers, place, || ServerError::Timeout);
        let of = |fate: Fate| if fate == Fate::Published { fate } else { Fate::Unknown };
        let settled: Vec<Fate> = found.into_iter().map(|(fate, _why)| of(fate)).collect();
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
