//! Delivery reports of sent messages: one per message, from the client library's own thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{DeliveryResult, ProducerContext};

use crate::reasons::OutageReasons;

/// Reports of one round of messages, which are numbered from 0.
#[derive(Default)]
pub(crate) struct DeliveryReports {
    pub reasons: OutageReasons,
    round: Mutex<SendRound>,
    complete: Condvar,
}

#[derive(Default)]
struct SendRound {
    report_count: usize,
    /// Number of reports at which the waiting sender is woken.
    wake_at: usize,
    /// Delivered messages, by index. Kept from round to round, so that a round allocates nothing.
    delivered: Vec<bool>,
    /// Failed messages, by index, with their errors.
    failed: Vec<(usize, KafkaError)>,
}

impl DeliveryReports {
    /// Begins a round. No message of the last round may be in flight.
    pub fn begin(&self) {
        let mut round = self.round();
        (round.report_count, round.wake_at) = (0, 0);
        round.delivered.clear();
        round.failed.clear();
    }

    /// Sleeps until each of `sent` messages has a report; returns false if some are missing at the timeout.
    pub fn wait(&self, sent: usize, timeout: Duration) -> bool {
        let mut round = self.round();
        round.wake_at = sent;
        let waited = self.complete.wait_timeout_while(round, timeout, |round| round.report_count < sent);
        let (round, _timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        round.report_count >= sent
    }

    /// Returns the results of `sent` messages; none if all are delivered. A missing report counts as a timeout.
    pub fn results(&self, sent: usize) -> Option<Vec<KafkaResult<()>>> {
        let round = self.round();
        if round.report_count >= sent && round.failed.is_empty() {
            return None;
        }
        let silence = KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut);
        let is_delivered = |number| round.delivered.get(number).copied().unwrap_or(false);
        let of = |number| if is_delivered(number) { Ok(()) } else { Err(silence.clone()) };
        let mut results: Vec<KafkaResult<()>> = (0..sent).map(of).collect();
        for (number, error) in &round.failed {
            if let Some(result) = results.get_mut(*number) {
                *result = Err(error.clone());
            }
        }
        Some(results)
    }

    fn round(&self) -> MutexGuard<'_, SendRound> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SendRound {
    fn add_result(&mut self, number: usize, result: KafkaResult<()>) {
        self.report_count += 1;
        match result {
            Ok(()) => {
                if self.delivered.len() <= number {
                    self.delivered.resize(number + 1, false);
                }
                self.delivered[number] = true;
            }
            Err(error) => self.failed.push((number, error)),
        }
    }
}

impl ClientContext for DeliveryReports {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _line: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.reasons.note(&error, reason);
    }
}

impl ProducerContext for DeliveryReports {
    /// Index of the message in its round.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let result = match result {
            Ok(_message) => Ok(()),
            Err((error, _message)) => Err(error.clone()),
        };
        let mut round = self.round();
        round.add_result(number, result);
        if round.report_count == round.wake_at {
            self.complete.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOO_LARGE: KafkaError = KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge);
    const SILENCE: KafkaError = KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut);

    #[test]
    fn each_message_has_its_own_result() {
        let reports = DeliveryReports::default();
        reports.begin();
        for (number, result) in [(3, Ok(())), (0, Ok(())), (1, Err(TOO_LARGE))] {
            reports.round().add_result(number, result);
        }
        assert!(!reports.wait(5, Duration::ZERO), "two reports are missing");
        assert_eq!(reports.results(5), Some(vec![Ok(()), Err(TOO_LARGE), Err(SILENCE), Ok(()), Err(SILENCE)]));
        reports.begin();
        reports.round().add_result(0, Ok(()));
        assert!(reports.wait(1, Duration::ZERO));
        assert_eq!(reports.results(1), None);
    }
}
