//! What the server says to what was sent: one report a message, from the client library's own thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};

use crate::reasons::Reasons;

/// Longer than the client library takes to give a message up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts the reports of one round of messages, which are numbered from 0.
#[derive(Default)]
pub(crate) struct Reports {
    /// Why there is no server, should there be none.
    pub reasons: Reasons,
    round: Mutex<Round>,
    complete: Condvar,
}

#[derive(Default)]
struct Round {
    came: usize,
    /// Whose coming wakes who waits.
    last: usize,
    /// The lowest number that failed.
    failed: Option<(usize, KafkaError)>,
}

/// What came of a round.
pub(crate) enum Outcome {
    /// The server has all.
    Delivered,
    /// It has those before this one; of the others some may have arrived, too.
    Failed(usize, KafkaError),
    /// There are reports missing that were promised.
    Silence,
}

impl Reports {
    /// Begins a round. Of the one before nothing is on its way.
    pub fn begin(&self) {
        *self.round() = Round::default();
    }

    /// Sleeps until there is a report for each of so many messages.
    pub fn wait(&self, sent: usize) -> Outcome {
        let mut round = self.round();
        round.last = sent;
        let waited = self.complete.wait_timeout_while(round, PATIENCE, |round| round.came < sent);
        let (mut round, _timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if round.came < sent {
            return Outcome::Silence;
        }
        match round.failed.take() {
            None => Outcome::Delivered,
            Some((number, error)) => Outcome::Failed(number, error),
        }
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Reports {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _line: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.reasons.note(&error, reason);
    }
}

impl ProducerContext for Reports {
    /// The message's number in its round.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let mut round = self.round();
        round.came += 1;
        if let Err((error, _message)) = result
            && round.failed.as_ref().is_none_or(|(first, _)| number < *first)
        {
            round.failed = Some((number, error.clone()));
        }
        if round.came == round.last {
            self.complete.notify_one();
        }
    }
}
