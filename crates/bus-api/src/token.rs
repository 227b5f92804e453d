//! Resume token: the position at which one subscriber stopped and another one resumes.
//!
//! ```text
//!   kafka:0,2a,0,0:9f3c…,2a,0      transport : its own words : publisher id, its next number, 1 if a loss was reported
//!                                  after that : the next publisher …
//! ```
//! Numbers are hexadecimal. The words are private to the transport: the next message, and an identity that
//! distinguishes the topic from another one of its name.

use std::fmt;
use std::str::FromStr;

use crate::error::ConnectError;
use crate::message_id::{LastMessage, MessageIdTracker};

/// Number of words in a transport's position.
const TOKEN_WORDS: usize = 4;
/// Max publishers whose last messages a token holds.
const MAX_PUBLISHERS: usize = 8;
/// Max length of a transport's name in a token, in bytes.
const MAX_TRANSPORT_BYTES: usize = 16;

/// Position after all events that a subscriber was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumeToken {
    /// The transport's name, padded with zeros.
    transport: [u8; MAX_TRANSPORT_BYTES],
    words: [u64; TOKEN_WORDS],
    /// Last messages of the most recent publishers, to detect duplicates after a resume.
    seen: [Option<LastMessage>; MAX_PUBLISHERS],
}

/// Error for text that is no resume token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no resume token; take one that a subscriber gave")]
pub struct InvalidToken(String);

impl ResumeToken {
    /// Creates the token of a transport, whose name has up to sixteen letters, digits and `+`.
    pub fn new(transport: &str, words: [u64; TOKEN_WORDS], tracker: &MessageIdTracker) -> Self {
        let name = padded(transport).expect("a transport's name in a token is short and plain");
        let mut latest = tracker.latest_publishers(MAX_PUBLISHERS).into_iter();
        Self { transport: name, words, seen: std::array::from_fn(|_| latest.next()) }
    }

    /// Returns the position's words, and a tracker that detects known duplicates. Fails for another transport's token.
    pub fn read(&self, transport: &str) -> Result<([u64; TOKEN_WORDS], MessageIdTracker), ConnectError> {
        if self.transport() != transport {
            let sentence = format!(
                "the resume token '{self}' is of '{}' and this is '{transport}'; resume on its own transport",
                self.transport()
            );
            return Err(ConnectError::Other(sentence.into()));
        }
        Ok((self.words, MessageIdTracker::resumed_after(self.seen.into_iter().flatten())))
    }

    fn transport(&self) -> &str {
        let end = self.transport.iter().position(|&byte| byte == 0).unwrap_or(MAX_TRANSPORT_BYTES);
        std::str::from_utf8(&self.transport[..end]).expect("plain letters")
    }
}

fn padded(transport: &str) -> Option<[u8; MAX_TRANSPORT_BYTES]> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'+';
    if transport.is_empty() || !transport.bytes().all(plain) {
        return None;
    }
    let mut name = [0; MAX_TRANSPORT_BYTES];
    name.get_mut(..transport.len())?.copy_from_slice(transport.as_bytes());
    Some(name)
}

impl fmt::Display for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.words;
        write!(f, "{}:{a:x},{b:x},{c:x},{d:x}", self.transport())?;
        for LastMessage { publisher, next, is_gap_reported } in self.seen.iter().flatten() {
            write!(f, ":{publisher:x},{next:x},{}", u8::from(*is_gap_reported))?;
        }
        Ok(())
    }
}

impl FromStr for ResumeToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        parse(text).ok_or_else(|| InvalidToken(text.chars().take(200).collect()))
    }
}

fn parse(text: &str) -> Option<ResumeToken> {
    let mut parts = text.split(':');
    let transport = padded(parts.next()?)?;
    let words = numbers(parts.next()?)?;
    let mut seen = [None; MAX_PUBLISHERS];
    for slot in &mut seen {
        let Some(last) = parts.next() else { break };
        let [publisher, next, flag] = numbers(last)?;
        let is_gap_reported = [false, true].get(usize::try_from(flag).ok()?).copied()?;
        *slot = Some(LastMessage { publisher, next, is_gap_reported });
    }
    parts.next().is_none().then_some(ResumeToken { transport, words, seen })
}

fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let is_plain = text.bytes().all(|b| b.is_ascii_hexdigit() || b == b',');
    let numbers: Vec<u64> = text.split(',').map(|word| u64::from_str_radix(word, 16).ok()).collect::<Option<_>>()?;
    numbers.try_into().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message_id::{MessageId, SequenceCheck};

    proptest! {
        #[test]
        fn a_token_is_parsed_as_written(words in any::<[u64; 4]>(), publisher in any::<u64>(), number in any::<u64>()) {
            let mut tracker = MessageIdTracker::default();
            let fresh = ResumeToken::new("redis+streams", words, &tracker);
            prop_assert_eq!(fresh.to_string().parse(), Ok(fresh));
            let id = MessageId { clock: 1, publisher, sequence: number };
            tracker.check(id);
            let token = ResumeToken::new("kafka", words, &tracker);
            prop_assert_eq!(token.to_string().parse(), Ok(token));
            let (read, mut tracker) = token.read("kafka").unwrap();
            prop_assert_eq!(read, words);
            if number < u64::MAX - 3 {
                prop_assert_eq!(tracker.check(id), SequenceCheck::Duplicate);
                prop_assert_eq!(tracker.check(MessageId { sequence: number + 3, ..id }), SequenceCheck::Gap(2));
            }
            prop_assert!(token.read("nats").is_err());
        }

        #[test]
        fn a_loss_reported_before_a_token_is_not_reported_after_it(number in 0..u64::MAX - 3) {
            let (mut tracker, id) = (MessageIdTracker::default(), MessageId { clock: 1, publisher: 2, sequence: number });
            tracker.check(id);
            tracker.gap_reported();
            let token: ResumeToken = ResumeToken::new("kafka", [1; 4], &tracker).to_string().parse().unwrap();
            let (_, mut tracker) = token.read("kafka").unwrap();
            prop_assert_eq!(tracker.check(MessageId { sequence: number + 3, ..id }), SequenceCheck::InOrder);
        }

        #[test]
        fn a_token_keeps_the_most_recent_publishers(publishers in 1u64..20) {
            let id = |publisher, number| MessageId { clock: 1, publisher, sequence: number };
            let mut tracker = MessageIdTracker::default();
            (0..publishers).for_each(|publisher| _ = tracker.check(id(publisher, 7)));
            let token: ResumeToken = ResumeToken::new("kafka", [1; 4], &tracker).to_string().parse().unwrap();
            let (_, mut tracker) = token.read("kafka").unwrap();
            for publisher in publishers.saturating_sub(MAX_PUBLISHERS as u64)..publishers {
                prop_assert_eq!(tracker.check(id(publisher, 7)), SequenceCheck::Duplicate);
                prop_assert_eq!(tracker.check(id(publisher, 8)), SequenceCheck::InOrder);
                prop_assert_eq!(tracker.check(id(publisher, 10)), SequenceCheck::Gap(1));
            }
        }

        #[test]
        fn any_text_is_a_token_or_refused(text in "\\PC*") {
            let _ = text.parse::<ResumeToken>();
        }
    }

    #[test]
    fn invalid_text_is_refused_as_a_token() {
        let texts = "kafka kafka:1,2,3 kafka:1,2,3,4,5 kafka:1,2,3,g kafka:+1,2,3,4 kafka:1,2,3,4:5 kafka:1,2,3,4:5,6 \
                     kafka:1,2,3,4:5,6,2 kafka:1,2,3,4:5,6,1:7 \
                     kafka:1,2,3,4:1,1,0:2,1,0:3,1,0:4,1,0:5,1,0:6,1,0:7,1,0:8,1,0:9,1,0 \
                     a-very-long-name-of-one:1,2,3,4 kafka:1,2,3,11111111111111111";
        for text in texts.split(' ').chain(["", "ka fka:1,2,3,4"]) {
            let error = text.parse::<ResumeToken>().unwrap_err().to_string();
            assert!(error.contains("is no resume token"), "{error}");
        }
    }
}
