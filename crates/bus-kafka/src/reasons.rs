//! Reasons for an unreachable server. The client library connects in the background, and reports failures separately; a
//! call that then fails knows only that no answer came.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::util::Timeout;

use crate::error::KafkaServerError;

/// Failures that the client library has reported in the background.
#[derive(Debug, Default)]
pub(crate) struct OutageReasons {
    state: Mutex<ReportedFailures>,
}

#[derive(Debug, Default)]
struct ReportedFailures {
    last: Option<KafkaServerError>,
    /// The client library has tried every server it knows, and reached none.
    is_outage: bool,
    /// A message cannot be read; not reported yet.
    unreadable: Option<KafkaServerError>,
}

impl OutageReasons {
    /// Takes in a reported failure.
    pub fn note(&self, error: &KafkaError, text: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        // The text may contain a server's own words, and control characters affect a terminal.
        let shown = |c: char| match c {
            c if c.is_whitespace() => ' ',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        let text: &str = &text.chars().map(shown).collect::<String>();
        let mut state = self.state();
        if code == RDKafkaErrorCode::AllBrokersDown {
            state.is_outage = true;
        } else if let Some(unreadable) = KafkaServerError::from_message(code, text) {
            state.unreadable = Some(unreadable);
        } else if let Some(reason) = KafkaServerError::from_connection(code, text) {
            state.last = Some(reason);
        }
    }

    /// Returns whether no server at all can be reached.
    pub fn is_outage(&self) -> bool {
        self.state().is_outage
    }

    pub fn outage(&self) -> Option<KafkaServerError> {
        let state = self.state();
        state.is_outage.then(|| state.last.clone().unwrap_or(KafkaServerError::ClosedOrSilent))
    }

    /// Returns the reason of an outage if the servers refused TLS or the login.
    pub fn refusal(&self) -> Option<KafkaServerError> {
        self.outage().filter(KafkaServerError::is_refusal)
    }

    /// Returns, once, that a message cannot be read.
    pub fn take_unreadable(&self) -> Option<KafkaServerError> {
        self.state().unreadable.take()
    }

    /// Returns the meaning of an error; for a timeout, its reported reason.
    pub fn explain(&self, error: &KafkaError) -> KafkaServerError {
        match KafkaServerError::from(error) {
            silence @ (KafkaServerError::Timeout | KafkaServerError::AckTimeout) => {
                let last = self.state().last.clone();
                last.or_else(|| self.outage()).unwrap_or(silence)
            }
            clear => clear,
        }
    }

    /// Clears the outage and its reason, when a server answers again.
    pub fn clear_outage(&self) {
        let mut state = self.state();
        (state.last, state.is_outage) = (None, false);
    }

    /// Clears everything, when the server has answered.
    pub fn clear(&self) {
        *self.state() = ReportedFailures::default();
    }

    fn state(&self) -> MutexGuard<'_, ReportedFailures> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for OutageReasons {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _line: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.note(&error, reason);
    }
}

impl ConsumerContext for OutageReasons {
    /// Disables the library's polling of other queues, because one queue holds all events.
    fn main_queue_min_poll_interval(&self) -> Timeout {
        Timeout::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_reason_explains_timeouts_only() {
        let reasons = OutageReasons::default();
        let silence = KafkaError::MetadataFetch(RDKafkaErrorCode::OperationTimedOut);
        assert_eq!((reasons.explain(&silence), reasons.outage()), (KafkaServerError::Timeout, None));
        let refused = KafkaError::Global(RDKafkaErrorCode::BrokerTransportFailure);
        reasons.note(&refused, "a:1/bootstrap: Connection refused");
        let reason = KafkaServerError::ConnectionRefused("a:1".to_owned());
        assert_eq!((reasons.explain(&silence), reasons.outage()), (reason.clone(), None));
        reasons.note(&KafkaError::Global(RDKafkaErrorCode::AllBrokersDown), "1/1 brokers are down");
        assert_eq!(reasons.outage(), Some(reason));
        let gone = KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition);
        assert_eq!(reasons.explain(&gone), KafkaServerError::TopicGone);
        reasons.clear();
        assert_eq!((reasons.explain(&silence), reasons.outage()), (KafkaServerError::Timeout, None));
    }

    #[test]
    fn control_characters_of_a_server_are_replaced() {
        let reasons = OutageReasons::default();
        let login = KafkaError::Global(RDKafkaErrorCode::Authentication);
        reasons.note(&login, "a:1/2: SASL authentication error: \u{1b}[2Jno");
        reasons.note(&KafkaError::Global(RDKafkaErrorCode::AllBrokersDown), "1/1 brokers are down");
        let sentence = reasons.outage().map(|reason| reason.to_string()).unwrap_or_default();
        assert!(sentence.contains("[2Jno") && !sentence.chars().any(char::is_control), "{sentence:?}");
    }

    #[test]
    fn a_refusal_by_one_of_several_servers_is_no_refusal() {
        let reasons = OutageReasons::default();
        let login = KafkaError::Global(RDKafkaErrorCode::Authentication);
        reasons.note(&login, "sasl_ssl://a:1/2: SASL authentication error: Authentication failed");
        assert_eq!(reasons.refusal(), None);
        let down = KafkaError::Global(RDKafkaErrorCode::AllBrokersDown);
        reasons.note(&down, "3/3 brokers are down");
        assert!(matches!(reasons.refusal(), Some(KafkaServerError::LoginRefused(_))));
        let refused = KafkaError::Global(RDKafkaErrorCode::BrokerTransportFailure);
        reasons.note(&refused, "a:1/2: Connection refused");
        assert_eq!(reasons.refusal(), None, "the last reason counts");
    }

    #[test]
    fn an_unreadable_message_is_reported_once_and_explains_no_timeout() {
        let reasons = OutageReasons::default();
        let damaged = KafkaError::Global(RDKafkaErrorCode::BadMessage);
        reasons.note(&damaged, "MessageSet at offset 7 (90 bytes) failed CRC32C check");
        let silence = KafkaError::MetadataFetch(RDKafkaErrorCode::OperationTimedOut);
        assert_eq!(reasons.explain(&silence), KafkaServerError::Timeout);
        assert!(matches!(reasons.take_unreadable(), Some(KafkaServerError::Unreadable(_))));
        assert_eq!(reasons.take_unreadable(), None);
    }

    #[test]
    fn a_closed_connection_is_the_default_reason() {
        let reasons = OutageReasons::default();
        reasons.note(&KafkaError::Global(RDKafkaErrorCode::AllBrokersDown), "1/1 brokers are down");
        assert_eq!(reasons.outage(), Some(KafkaServerError::ClosedOrSilent));
    }
}
