//! Messages that were delivered too often, on their way to the queue of those.

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Config;
use async_nats::{HeaderMap, Message, Subject};

use crate::connected::Connected;
use crate::error::ServerError;
use crate::receipt::Receipt;
use crate::stream;

/// What the headers begin with that are for the server.
const OF_SERVER: &str = "Nats-";

/// The queue of those.
pub(crate) struct DeadLetters {
    /// More deliveries than these are too many.
    pub most_deliveries: u32,
    /// How that queue is kept.
    pub stream: Config,
}

impl DeadLetters {
    /// Whether this message is one of those.
    pub fn takes(&self, receipt: &Receipt) -> bool {
        receipt.deliveries > self.most_deliveries
    }

    /// Keeps a message there, whole; returns when the server has it. It is known again if it comes twice, for as long
    /// as a queue knows messages again.
    pub async fn keep(&self, connected: &Connected, message: &Message, receipt: &Receipt) -> Result<(), ServerError> {
        stream::ensure(connected, &self.stream).await?;
        let subject = Subject::from(self.stream.subjects.concat());
        let bare = || PublishMessage::build().payload(message.payload.clone());
        let whole = bare().headers(headers(message)).message_id(id(receipt));
        let sent = match connected.context.send_publish(subject.clone(), whole).await {
            // Others push messages of the full length without an id: there is no room for one.
            Err(e) if e.kind() == PublishErrorKind::MaxPayloadExceeded => {
                connected.context.send_publish(subject, bare()).await
            }
            sent => sent,
        };
        sent?.await?;
        Ok(())
    }
}

/// By what the server knows it again: in one queue no two messages have the same place and time. It is as long as the
/// id that the message had, so that the longest one still fits.
fn id(receipt: &Receipt) -> String {
    format!("{:016x}{:016x}", receipt.time_ns, receipt.sequence)
}

/// The headers of a message, but for what the server was told of it when it was pushed.
fn headers(message: &Message) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, values) in message.headers.iter().flat_map(HeaderMap::iter) {
        let text: &str = name.as_ref();
        if !text.starts_with(OF_SERVER) {
            values.iter().for_each(|value| kept.append(name.clone(), value.clone()));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_of_a_message_is_kept_and_what_the_server_was_told_is_not() {
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
    fn an_id_is_as_long_as_that_of_a_message() {
        let receipt = Receipt { sequence: 2, deliveries: 4, time_ns: 1_795_192_033_655_981_456, pending: 0 };
        assert_eq!(id(&receipt), "18e9cda4adad05900000000000000002");
    }
}
