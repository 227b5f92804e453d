//! Recovery of a gap in the received numbers: messages behind the gap wait, the missing ones are requested, all at once or
//! in chunks.
//!
//! ```text
//!   received 1 2 3 . . . . . . . 11 12       next_in = 4, missing up to 10, 11 and 12 are held
//!                  └ requested ┘             the next chunk follows once next_in is behind `requested`
//! ```
//!
//! Only one request is outstanding at a time. A gap fill, a reset or a resent message beyond the chunk moves `next_in`, and
//! the recovery continues from there.

use std::collections::VecDeque;

use super::config::{BeginString, SessionConfig};

/// Numbers of processed messages that are kept, whatever the limit of held messages is.
const MIN_PROCESSED: usize = 1_024;

/// Range of a ResendRequest, as it is written: `end` may stand for infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestedRange {
    /// BeginSeqNo (7).
    pub begin: u64,
    /// EndSeqNo (16).
    pub end: u64,
}

/// State of the received numbers above the one expected next.
pub(crate) struct Recovery {
    gap: Option<Gap>,
    held: HeldMessages,
    /// Highest number received.
    highest: u64,
    /// Max messages of a request; 0 for all.
    chunk: u64,
    version: BeginString,
}

/// Missing messages, from the number expected next on.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// Last missing number, as far as it was known at the last request.
    last: u64,
    /// Last number that the outstanding request covers.
    requested: u64,
    /// Time of the last progress, in nanoseconds since the Unix epoch.
    progress_ns: u64,
}

impl Recovery {
    /// Makes the state of a session without a gap.
    pub fn new(config: &SessionConfig) -> Self {
        let limits = &config.limits;
        Self {
            gap: None,
            held: HeldMessages {
                max_bytes: limits.held,
                max_messages: limits.held_messages,
                ..HeldMessages::default()
            },
            highest: 0,
            chunk: config.max_resend,
            version: config.begin_string,
        }
    }

    /// Forgets the gap and the held messages.
    pub fn clear(&mut self) {
        self.gap = None;
        self.held.clear();
        self.highest = 0;
    }

    /// Returns whether messages are missing.
    pub fn is_open(&self) -> bool {
        self.gap.is_some()
    }

    /// Notes a message above the number expected next, and keeps it if there is room; an empty `frame` stands for a
    /// message that was processed already. Returns the range to request, if none is outstanding.
    pub fn hold(&mut self, number: u64, frame: &[u8], next_in: u64, now_ns: u64) -> Option<RequestedRange> {
        self.note_high(number, frame);
        self.reopen(next_in, now_ns)
    }

    /// Notes a message above the number expected next, of which the peer resends the missing ones unasked (789).
    pub fn expect_resend(&mut self, number: u64, now_ns: u64) {
        self.note_high(number, &[]);
        let last = number.saturating_sub(1);
        self.gap = Some(Gap { last, requested: u64::MAX, progress_ns: now_ns });
    }

    /// Notes that all numbers below `next_in` are received or skipped. Returns the next chunk to request, if there is
    /// one.
    pub fn advance(&mut self, next_in: u64, now_ns: u64) -> Option<RequestedRange> {
        let gap = self.gap.as_mut()?;
        gap.progress_ns = now_ns;
        if next_in > gap.last {
            self.gap = None;
            return None;
        }
        let needs_chunk = next_in > gap.requested;
        needs_chunk.then(|| self.request(next_in, now_ns))
    }

    /// Returns the lowest number above this one whose message is held and not processed yet.
    pub fn first_held_above(&self, number: u64) -> Option<u64> {
        let mut unprocessed = self.held.messages.iter().filter(|message| message.length > 0);
        unprocessed.find(|message| message.number > number).map(|message| message.number)
    }

    /// Copies the held message with this number to `frame`, empty if that message was processed already. Returns whether
    /// it is held.
    pub fn take(&mut self, number: u64, frame: &mut Vec<u8>) -> bool {
        self.held.take(number, frame)
    }

    /// Returns the range to request if numbers are missing below the highest one, and none is outstanding. There is such a
    /// range when a held message found no room, too.
    pub fn reopen(&mut self, next_in: u64, now_ns: u64) -> Option<RequestedRange> {
        let is_missing = self.gap.is_none() && self.highest >= next_in;
        is_missing.then(|| self.request(next_in, now_ns))
    }

    /// Returns the range to request again, after no progress for `patience_ns`.
    pub fn retry(&mut self, next_in: u64, patience_ns: u64, now_ns: u64) -> Option<RequestedRange> {
        let is_stuck = self.gap.is_some_and(|gap| now_ns.saturating_sub(gap.progress_ns) >= patience_ns);
        is_stuck.then(|| self.request(next_in, now_ns))
    }

    /// Returns the time of the next retry, in nanoseconds since the Unix epoch.
    pub fn retry_at_ns(&self, patience_ns: u64) -> Option<u64> {
        self.gap.map(|gap| gap.progress_ns.saturating_add(patience_ns))
    }

    fn note_high(&mut self, number: u64, frame: &[u8]) {
        self.highest = self.highest.max(number);
        self.held.hold(number, frame);
    }

    /// Opens the gap, or its next chunk.
    fn request(&mut self, next_in: u64, now_ns: u64) -> RequestedRange {
        let first_held = self.held.first().filter(|first| *first > next_in);
        let last = match self.gap {
            Some(gap) => gap.last,
            None => first_held.map_or(self.highest, |first| first - 1),
        };
        let (requested, end) = match self.chunk {
            0 => (u64::MAX, self.version.infinity()),
            chunk => {
                let end = last.min(next_in.saturating_add(chunk - 1));
                (end, end)
            }
        };
        self.gap = Some(Gap { last, requested, progress_ns: now_ns });
        RequestedRange { begin: next_in, end }
    }
}

/// Messages that arrived before their turn, in the order of their numbers. Their room is used again once none is left.
#[derive(Debug, Default)]
struct HeldMessages {
    bytes: Vec<u8>,
    messages: VecDeque<HeldMessage>,
    max_bytes: usize,
    max_messages: usize,
}

#[derive(Debug, Clone, Copy)]
struct HeldMessage {
    number: u64,
    begin: usize,
    length: usize,
}

impl HeldMessages {
    fn clear(&mut self) {
        self.messages.clear();
        self.bytes.clear();
    }

    /// Returns the lowest held number.
    fn first(&self) -> Option<u64> {
        self.messages.front().map(|message| message.number)
    }

    /// Keeps a message, unless its number is held already or there is no room.
    fn hold(&mut self, number: u64, frame: &[u8]) {
        // The requests of a peer that recovers a gap of its own are processed at once. Without their numbers, each would be
        // requested again by the next request, without an end.
        let max_messages = if frame.is_empty() { self.max_messages.max(MIN_PROCESSED) } else { self.max_messages };
        let has_room = self.messages.len() < max_messages && self.bytes.len() + frame.len() <= self.max_bytes;
        if let Err(place) = self.messages.binary_search_by_key(&number, |message| message.number)
            && has_room
        {
            let begin = self.bytes.len();
            self.bytes.extend_from_slice(frame);
            self.messages.insert(place, HeldMessage { number, begin, length: frame.len() });
        }
    }

    /// Drops the messages below `number`, and copies the one with this number to `frame`.
    fn take(&mut self, number: u64, frame: &mut Vec<u8>) -> bool {
        while self.first().is_some_and(|first| first < number) {
            self.messages.pop_front();
        }
        let is_held = self.first() == Some(number);
        if is_held && let Some(HeldMessage { begin, length, .. }) = self.messages.pop_front() {
            frame.clear();
            frame.extend_from_slice(&self.bytes[begin..begin + length]);
        }
        if self.messages.is_empty() {
            self.bytes.clear();
        }
        is_held
    }
}

#[cfg(test)]
mod tests {
    use crate::session::config::Role;

    use super::*;

    fn recovery(chunk: u64) -> Recovery {
        let mut config = SessionConfig::new(Role::Acceptor, BeginString::Fix44, "US", "THEM");
        config.max_resend = chunk;
        (config.limits.held, config.limits.held_messages) = (10, 3);
        Recovery::new(&config)
    }

    fn range(begin: u64, end: u64) -> Option<RequestedRange> {
        Some(RequestedRange { begin, end })
    }

    #[test]
    fn a_gap_is_requested_once_and_held_messages_follow_it() {
        let (mut recovery, mut frame) = (recovery(0), Vec::new());
        assert_eq!(recovery.hold(7, b"seven", 4, 0), range(4, 0));
        assert_eq!(recovery.hold(8, b"", 4, 0), None, "a request is outstanding");
        for next_in in [5, 6] {
            assert_eq!((recovery.advance(next_in, 0), recovery.is_open()), (None, true));
            assert!(!recovery.take(next_in, &mut frame));
        }
        assert_eq!((recovery.advance(7, 0), recovery.is_open()), (None, false));
        assert!(recovery.take(7, &mut frame));
        assert_eq!(frame, b"seven");
        assert!(recovery.take(8, &mut frame));
        assert_eq!(frame, b"", "message 8 was processed when it arrived");
        assert_eq!(recovery.reopen(9, 0), None);
    }

    #[test]
    fn chunks_follow_each_other_from_where_the_peer_jumped_to() {
        let mut recovery = recovery(5);
        assert_eq!(recovery.hold(20, b"", 4, 0), range(4, 8));
        assert_eq!(recovery.advance(8, 0), None, "message 8 belongs to the chunk");
        assert_eq!(recovery.advance(12, 0), range(12, 16), "a gap fill went beyond the chunk");
        assert_eq!(recovery.advance(17, 0), range(17, 19), "the last chunk ends with the gap");
        assert_eq!(recovery.advance(20, 0), None);
        assert!(!recovery.is_open());
    }

    #[test]
    fn a_message_that_found_no_room_is_requested_later() {
        let (mut recovery, mut frame) = (recovery(0), Vec::new());
        assert_eq!(recovery.hold(3, b"eight...", 2, 0), range(2, 0));
        assert_eq!(recovery.hold(4, b"eight...", 2, 0), None);
        recovery.advance(3, 0);
        assert!(recovery.take(3, &mut frame) && !recovery.take(4, &mut frame));
        assert_eq!(recovery.reopen(4, 0), range(4, 0));
        assert_eq!(recovery.advance(5, 0), None);
        assert!(!recovery.is_open());
    }

    #[test]
    fn the_number_of_held_messages_is_bounded() {
        let (mut recovery, mut frame) = (recovery(0), Vec::new());
        for number in [9, 5, 7, 11, 5] {
            recovery.hold(number, b"x", 2, 0);
        }
        assert!([5, 7, 9].into_iter().all(|number| recovery.take(number, &mut frame)));
        assert!(!recovery.take(11, &mut frame));
    }

    #[test]
    fn a_request_without_progress_is_repeated() {
        let mut recovery = recovery(0);
        recovery.hold(9, b"", 2, 100);
        assert_eq!(recovery.retry(2, 50, 149), None);
        assert_eq!((recovery.retry_at_ns(50), recovery.retry(2, 50, 150)), (Some(150), range(2, 0)));
        recovery.advance(3, 180);
        assert_eq!(recovery.retry(3, 50, 229), None);
        assert_eq!(recovery.retry(3, 50, 230), range(3, 0));
    }

    #[test]
    fn an_announced_resend_is_not_requested() {
        let mut recovery = recovery(0);
        recovery.expect_resend(9, 0);
        assert_eq!(recovery.hold(10, b"", 2, 0), None);
        assert_eq!((recovery.advance(9, 0), recovery.is_open()), (None, false));
    }

    #[test]
    fn a_reset_clears_the_gap() {
        let (mut recovery, mut frame) = (recovery(0), Vec::new());
        recovery.hold(9, b"nine", 2, 0);
        recovery.clear();
        assert!(!recovery.is_open() && !recovery.take(9, &mut frame));
        assert_eq!(recovery.hold(4, b"", 2, 0), range(2, 0));
    }
}
