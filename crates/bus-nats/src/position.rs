//! A position in a topic of JetStream, and the resume token that holds it.

use async_nats::datetime::DateTime;
use tickpath_bus_api::{ConnectError, MessageIdTracker, ResumeToken};

const TRANSPORT: &str = "nats+jetstream";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JetStreamPosition {
    /// The sequence number of the next message, from 0.
    pub next: u64,
    /// The creation time of the topic's stream, in nanoseconds since 1970: a stream that was removed and made anew has
    /// another.
    pub created_ns: u64,
    /// The time at which the last message read came to the stream, in nanoseconds since 1970, if known. Newer messages
    /// are unread, also in a stream that has come back with less.
    pub last_read_ns: Option<u64>,
}

impl JetStreamPosition {
    pub fn token(self, tracker: &MessageIdTracker) -> ResumeToken {
        ResumeToken::new(TRANSPORT, [self.next, self.created_ns, self.last_read_ns.unwrap_or(0), 0], tracker)
    }

    pub fn from_token(token: &ResumeToken) -> Result<(Self, MessageIdTracker), ConnectError> {
        let ([next, created_ns, last_read_ns, _], tracker) = token.read(TRANSPORT)?;
        Ok((Self { next, created_ns, last_read_ns: Some(last_read_ns).filter(|&ns| ns > 0) }, tracker))
    }
}

/// Converts a stream's creation time to nanoseconds since 1970.
pub(crate) fn created_ns(created: DateTime) -> u64 {
    u64::try_from(created.unix_timestamp_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_round_trips_the_position() {
        for last_read_ns in [None, Some(1_795_192_039_167_302_160)] {
            let position = JetStreamPosition { next: 7, created_ns: 1_795_192_033_655_981_456, last_read_ns };
            let (found, _tracker) =
                JetStreamPosition::from_token(&position.token(&MessageIdTracker::default())).expect("it is ours");
            assert_eq!(found, position);
        }
        let other = ResumeToken::new("kafka", [7; 4], &MessageIdTracker::default());
        assert!(JetStreamPosition::from_token(&other).is_err());
    }
}
