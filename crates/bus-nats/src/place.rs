//! A place in a topic that JetStream keeps, and the token that tells of it.

use async_nats::datetime::DateTime;
use tickpath_bus_api::{ConnectError, OriginTracker, ResumeToken};

/// Whose token it is.
const TRANSPORT: &str = "nats+jetstream";

/// Where a subscriber stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The sequence number of the next message, from 0.
    pub next: u64,
    /// When the topic's stream was made, in nanoseconds since 1970: one that was removed and made anew is another.
    pub made_ns: u64,
    /// When the last message that was read came to that stream, in nanoseconds since 1970, if that is known: what is
    /// newer is new, also in a stream that has come back with less.
    pub read_ns: Option<u64>,
}

impl Place {
    /// The token that says so, with the publishers that are known.
    pub fn token(self, tracker: &OriginTracker) -> ResumeToken {
        ResumeToken::new(TRANSPORT, [self.next, self.made_ns, self.read_ns.unwrap_or(0), 0], tracker)
    }

    /// What a token says.
    pub fn read(token: &ResumeToken) -> Result<(Self, OriginTracker), ConnectError> {
        let ([next, made_ns, read_ns, _], tracker) = token.read(TRANSPORT)?;
        Ok((Self { next, made_ns, read_ns: Some(read_ns).filter(|&ns| ns > 0) }, tracker))
    }
}

/// When a stream was made, in nanoseconds since 1970.
pub(crate) fn made_ns(created: DateTime) -> u64 {
    u64::try_from(created.unix_timestamp_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_the_place() {
        for read_ns in [None, Some(1_795_192_039_167_302_160)] {
            let place = Place { next: 7, made_ns: 1_795_192_033_655_981_456, read_ns };
            let (found, _tracker) = Place::read(&place.token(&OriginTracker::default())).expect("it is ours");
            assert_eq!(found, place);
        }
        let other = ResumeToken::new("kafka", [7; 4], &OriginTracker::default());
        assert!(Place::read(&other).is_err());
    }
}
