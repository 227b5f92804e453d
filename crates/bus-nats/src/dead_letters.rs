//! Moves messages that were delivered too often to the dead-letter queue.

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Config;
use async_nats::{HeaderMap, Message, Subject};

use crate::connection::NatsConnection;
use crate::error::ServerResult;
use crate::receipt::Receipt;
use crate::stream;

/// The prefix of the headers that are meant for the server.
const SERVER_HEADER_PREFIX: &str = "Nats-";

pub(crate) struct DeadLetterQueue {
    pub max_deliveries: u32,
    pub stream: Config,
}

impl DeadLetterQueue {
    pub fn is_over_limit(&self, receipt: &Receipt) -> bool {
        receipt.deliveries > self.max_deliveries
    }

    /// Stores a whole message there; returns when the server has it. The server drops a second copy within the queue's
    /// duplicate window.
    pub async fn store(&self, connected: &NatsConnection, message: &Message, receipt: &Receipt) -> ServerResult {
        stream::ensure(connected, &self.stream).await?;
        let subject = Subject::from(self.stream.subjects.concat());
        let bare = || PublishMessage::build().payload(message.payload.clone());
        let whole = bare().headers(headers(message)).message_id(duplicate_id(receipt));
        let sent = match connected.context.send_publish(subject.clone(), whole).await {
            // A message of full length from another program had no id, and leaves no room for one.
            Err(e) if e.kind() == PublishErrorKind::MaxPayloadExceeded => {
                connected.context.send_publish(subject, bare()).await
            }
            sent => sent,
        };
        sent?.await?;
        Ok(())
    }
}

/// Returns the id by which the server detects a duplicate: no two messages of a queue share position and time. It is as
/// long as the id that the message had, so that the longest message still fits.
fn duplicate_id(receipt: &Receipt) -> String {
    format!("{:016x}{:016x}", receipt.time_ns, receipt.sequence)
}

/// Returns a message's headers without those that were meant for the server when it was pushed.
fn headers(message: &Message) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, values) in message.headers.iter().flat_map(HeaderMap::iter) {
        let text: &str = name.as_ref();
        if !text.starts_with(SERVER_HEADER_PREFIX) {
            values.iter().for_each(|value| kept.append(name.clone(), value.clone()));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_letter_keeps_foreign_headers_and_drops_the_servers() {
        let mut given = HeaderMap::new();
        given.append("Nats-Msg-Id", "1");
        given.append("Trace", "one");
        given.append("Trace", "two");
        let message = Message {
            subject: "queue/jobs".into(),
            reply: None,
            payload: "job".into(),
            headers: Some(given),
            status: None,
            description: None,
            length: 3,
        };
        let kept = headers(&message);
        assert_eq!(kept.get_all("Trace").map(|value| value.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        assert!(kept.get("Nats-Msg-Id").is_none());
    }

    #[test]
    fn a_duplicate_id_is_as_long_as_a_message_id() {
        let receipt = Receipt { sequence: 2, deliveries: 4, time_ns: 1_795_192_033_655_981_456, pending: 0 };
        assert_eq!(duplicate_id(&receipt), "18e9cda4adad05900000000000000002");
    }
}
