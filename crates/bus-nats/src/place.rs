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
    /// It lies right behind a gap: what is missing next of a publisher is part of that.
    pub is_behind_gap: bool,
}

impl Place {
    /// The token that says so, with the publishers that are known.
    pub fn token(self, tracker: &OriginTracker) -> ResumeToken {
        ResumeToken::new(TRANSPORT, [self.next, self.made_ns, u64::from(self.is_behind_gap), 0], tracker)
    }

    /// What a token says.
    pub fn read(token: &ResumeToken) -> Result<(Self, OriginTracker), ConnectError> {
        let ([next, made_ns, behind_gap, _unused], mut tracker) = token.read(TRANSPORT)?;
        let is_behind_gap = behind_gap != 0;
        if is_behind_gap {
            tracker.told();
        }
        Ok((Self { next, made_ns, is_behind_gap }, tracker))
    }
}

/// When a stream was made, in nanoseconds since 1970.
pub(crate) fn made_ns(created: DateTime) -> u64 {
    u64::try_from(created.unix_timestamp_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tickpath_bus_api::Origin;
    use tickpath_bus_api::origin::Sighting;

    use super::*;

    #[test]
    fn a_token_says_the_place() {
        let origin = |number| Origin { clock: 1, publisher: 2, number };
        for is_behind_gap in [false, true] {
            let mut tracker = OriginTracker::default();
            tracker.see(origin(3));
            let place = Place { next: 7, made_ns: 1_795_192_033_655_981_456, is_behind_gap };
            let (found, mut tracker) = Place::read(&place.token(&tracker)).expect("it is ours");
            assert_eq!(found, place);
            // What a gap was told for is not told once more by the publisher's numbers.
            let sighting = if is_behind_gap { Sighting::Next } else { Sighting::After(2) };
            assert_eq!(tracker.see(origin(6)), sighting);
        }
        let other = ResumeToken::new("kafka", [7; 4], &OriginTracker::default());
        assert!(Place::read(&other).is_err());
    }
}
