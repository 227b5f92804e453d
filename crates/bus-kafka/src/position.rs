//! Position of a subscription in its topic, and where it resumes if that position is lost.

use tickpath_bus_api::{ConnectError, Gap, MessageIdTracker, ResumeToken, SubscriptionEvent, wire};

/// Name of this transport in resume tokens.
pub(crate) const TOKEN: &str = "kafka";

/// Position of a subscription, behind everything that was handed over, including gaps.
pub(crate) struct KafkaPosition {
    pub next: i64,
    /// Timestamp of the newest record seen, or start of the subscription if none was; UTC, in milliseconds.
    pub newest_ms: i64,
    /// Fingerprint of the record before the next one; zero if it was not seen.
    fingerprint: u64,
    /// The record before the next one must still be compared with its fingerprint.
    is_unverified: bool,
    tracker: MessageIdTracker,
}

/// A gap that is not reported yet, and the offset behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnreportedGap {
    pub gap: Gap,
    pub next: i64,
}

/// Outcome for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordOutcome {
    /// The record was handed over, or need not be.
    HandedOver,
    /// A gap before the record was reported; the record must be passed again.
    GapReported,
    /// Another record was seen at this offset: the topic was recreated.
    TopicRecreated,
}

impl KafkaPosition {
    /// Creates the position of a subscription that begins at an offset and a time.
    pub fn at(next: i64, now_ms: i64) -> Self {
        Self { next, newest_ms: now_ms, fingerprint: 0, is_unverified: false, tracker: MessageIdTracker::default() }
    }

    /// Restores the position of the subscriber that gave a token.
    pub fn from_token(token: &ResumeToken) -> Result<Self, ConnectError> {
        let ([next, newest_ms, mark, _], tracker) = token.read(TOKEN)?;
        // No topic has so many messages: an invalid offset lies behind its end.
        let next = i64::try_from(next).unwrap_or(i64::MAX);
        Ok(Self { next, newest_ms: newest_ms as i64, fingerprint: mark, is_unverified: false, tracker })
    }

    /// Delivers a published loss as its message from now on, for a bridge.
    pub fn deliver_gaps_as_messages(&mut self) {
        self.tracker.enable_bridge_mode();
    }

    /// Returns the number of duplicates, by their publishers' sequence numbers.
    pub fn duplicates(&self) -> u64 {
        self.tracker.duplicates()
    }

    /// Returns the number of messages that came behind a later one of their publisher.
    pub fn late(&self) -> u64 {
        self.tracker.out_of_order()
    }

    pub fn token(&self) -> ResumeToken {
        ResumeToken::new(TOKEN, [self.next as u64, self.newest_ms as u64, self.fingerprint, 0], &self.tracker)
    }

    /// Returns the offset to read from so that the fingerprint can prove the topic is the same. None if there is no
    /// fingerprint, or its record is not in the log.
    pub fn verification_offset(&mut self, low: i64, high: i64) -> Option<i64> {
        self.is_unverified = self.fingerprint != 0 && low < self.next && self.next <= high;
        self.is_unverified.then(|| self.next - 1)
    }

    /// Skips the fingerprint comparison, because a new position is searched for.
    pub fn skip_verification(&mut self) {
        self.is_unverified = false;
    }

    /// Reports a gap found by the topic's offsets, and moves behind it.
    pub fn report_gap(&mut self, ahead: UnreportedGap, hand_over: &mut dyn FnMut(SubscriptionEvent<'_>)) {
        (self.next, self.fingerprint) = (ahead.next, 0);
        self.tracker.gap_reported();
        hand_over(SubscriptionEvent::Gap(ahead.gap));
    }

    /// Hands a record over, unless it is a duplicate. If its publisher's sequence numbers show a gap before it, reports
    /// that instead, so that there is at most one event.
    ///
    /// Skipped offsets are no loss: they hold transaction markers, and records of aborted transactions. If the server
    /// no longer has an offset, it refuses the fetch.
    pub fn process_record(
        &mut self,
        offset: i64,
        made_ms: Option<i64>,
        value: &[u8],
        hand_over: &mut dyn FnMut(SubscriptionEvent<'_>),
    ) -> RecordOutcome {
        if std::mem::take(&mut self.is_unverified) && offset == self.next - 1 {
            return if fingerprint(made_ms, value) == self.fingerprint {
                RecordOutcome::HandedOver
            } else {
                RecordOutcome::TopicRecreated
            };
        }
        if offset < self.next {
            // The topic was removed and recreated.
            self.report_gap(UnreportedGap { gap: Gap::Reconnected, next: offset }, hand_over);
            return RecordOutcome::GapReported;
        }
        if !wire::deliver(&mut self.tracker, Some(offset as u64), value, hand_over) {
            return RecordOutcome::GapReported;
        }
        self.next = offset + 1;
        self.fingerprint = fingerprint(made_ms, value);
        self.newest_ms = made_ms.map_or(self.newest_ms, |made_ms| made_ms.max(self.newest_ms));
        RecordOutcome::HandedOver
    }
}

/// Returns a record's fingerprint: its timestamp, size and first bytes, which hold the stamp and origin of our
/// messages. Never zero.
fn fingerprint(made_ms: Option<i64>, value: &[u8]) -> u64 {
    let start = made_ms.unwrap_or(-1) as u64 ^ (value.len() as u64) << 44;
    let words = value.chunks(8).take(wire::HEADER_BYTES / 8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    words.fold(start, |mark, word| (mark ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)) | 1
}

/// First record that is new by its timestamp, or the end. Later timestamps than this host's present are not believed,
/// because a publisher's clock may be ahead; but if this host's clock was set back, seen records lie in its future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewerOffsets {
    /// Newer than everything seen: an offset below the position shows that the topic is another one.
    pub than_seen: i64,
    /// Newer than the believed part of that: where to resume in another topic.
    pub than_believed: i64,
}

/// Returns the offset to resume at when the server refuses or cannot prove the next one, and the gap to report.
pub(crate) fn resume_offset(next: i64, low: i64, newer: NewerOffsets, high: i64) -> (i64, Option<Gap>) {
    if next < low {
        return (low, Some(Gap::Missed((low - next) as u64)));
    }
    if next > high || newer.than_seen < next {
        // The end was lost, or the topic was recreated: earlier records were seen, or lie before the subscription.
        return (newer.than_believed, Some(Gap::Reconnected));
    }
    // The refusal came from a leader that lagged behind.
    (next, None)
}

/// Returns where a subscription from a sequence number begins, and the gap before it.
pub(crate) fn sequence_start(
    topic: &str,
    sequence: u64,
    low: i64,
    high: i64,
) -> Result<(i64, Option<Gap>), ConnectError> {
    match i64::try_from(sequence) {
        Ok(wanted) if wanted > high => {}
        Ok(wanted) if wanted < low => return Ok((low, Some(Gap::Missed((low - wanted) as u64)))),
        Ok(wanted) => return Ok((wanted, None)),
        Err(_) => {}
    }
    let sentence = format!(
        "topic '{topic}' has no message {sequence} yet, its next one is {high}; \
         start there or before it, at the oldest, or now"
    );
    Err(ConnectError::Other(sentence.into()))
}

#[cfg(test)]
mod tests {
    use tickpath_bus_api::{GAP_KIND, MessageId};

    use super::*;

    /// Encodes a message whose stamp is its publisher's sequence number.
    fn message(publisher: u64, number: u64) -> Vec<u8> {
        wire::encode(number, 16, MessageId { clock: 1, publisher, sequence: number }, b"ours")
    }

    fn describe_event(event: SubscriptionEvent<'_>) -> String {
        match event {
            SubscriptionEvent::Message(message) => format!("{:?}: {}", message.sequence, message.stamp),
            SubscriptionEvent::Foreign(foreign) => format!("{:?}: foreign", foreign.sequence),
            SubscriptionEvent::Gap(gap) => format!("{gap:?}"),
        }
    }

    /// Fails on any event.
    fn silent(event: SubscriptionEvent<'_>) {
        panic!("{event:?}");
    }

    /// Passes a record as often as it asks to be; returns the events.
    fn take(position: &mut KafkaPosition, offset: i64, value: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..3 {
            match position.process_record(offset, Some(8), value, &mut |event| events.push(describe_event(event))) {
                RecordOutcome::HandedOver => return events,
                RecordOutcome::GapReported => {}
                RecordOutcome::TopicRecreated => panic!("nothing is to be proven"),
            }
        }
        panic!("it never ends: {events:?}");
    }

    #[test]
    fn every_record_is_handed_over_or_reported_as_missing() {
        let message = message(2, 3);
        let gap =
            wire::encode(1, GAP_KIND, MessageId { clock: 1, publisher: 2, sequence: 3 }, &Gap::Missed(7).encode());
        let cases: [(i64, &[u8], &[&str]); 5] = [
            (5, &message, &["Some(5): 3"]),
            (5, b"of others", &["Some(5): foreign"]),
            (9, &message, &["Some(9): 3"]),
            (0, &message, &["Reconnected", "Some(0): 3"]),
            // A loss reported by a bridge is reported, and nothing else.
            (5, &gap, &["Missed(7)"]),
        ];
        for (offset, value, events) in cases {
            let mut position = KafkaPosition::at(5, 0);
            assert_eq!(take(&mut position, offset, value), events, "{offset}");
            assert_eq!((position.next, position.newest_ms), (offset + 1, 8));
        }
    }

    #[test]
    fn a_record_resent_under_the_same_id_comes_once() {
        let mut position = KafkaPosition::at(0, 0);
        let events: Vec<String> = (0..)
            .zip([0, 1, 1, 2])
            .flat_map(|(offset, number)| take(&mut position, offset, &message(2, number)))
            .collect();
        assert_eq!(
            (events, position.next),
            (["Some(0): 0", "Some(1): 1", "Some(3): 2"].map(str::to_owned).to_vec(), 4)
        );
    }

    /// Compares with a model of each publisher's next number: for every combination of skipped numbers and offsets,
    /// each loss is reported once.
    #[test]
    fn each_loss_of_each_publisher_is_reported_once() {
        // Each step: publisher, number of its missing messages before the next one, and skipped offsets.
        const STEPS: [(usize, u64, i64); 6] = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (1, 3, 0), (0, 2, 5), (1, 1, 1)];
        for number in 0..STEPS.len().pow(5) {
            let steps = (0..5).map(|step| STEPS[number / STEPS.len().pow(step) % STEPS.len()]);
            let (mut position, mut offset, mut next) = (KafkaPosition::at(0, 0), 0, [0; 2]);
            let mut known = [false; 2];
            for (publisher, missing, offsets) in steps {
                let mut expected = Vec::new();
                offset += offsets;
                next[publisher] += missing;
                if known[publisher] && missing > 0 {
                    expected.push(format!("Missed({missing})"));
                }
                expected.push(format!("Some({offset}): {}", next[publisher]));
                assert_eq!(
                    take(&mut position, offset, &message(publisher as u64, next[publisher])),
                    expected,
                    "{number}"
                );
                known[publisher] = true;
                next[publisher] += 1;
                offset += 1;
            }
        }
    }

    #[test]
    fn a_token_follows_reported_gaps_and_precedes_unreported_ones() {
        let mut position = KafkaPosition::at(3, 7);
        take(&mut position, 3, &message(2, 0));
        let ahead = UnreportedGap { gap: Gap::Missed(2), next: 6 };
        let before = KafkaPosition::from_token(&position.token()).unwrap();
        assert_eq!((before.next, before.newest_ms, before.fingerprint), (4, 8, position.fingerprint));
        position.report_gap(ahead, &mut |_| {});
        let behind = KafkaPosition::from_token(&position.token()).unwrap();
        assert_eq!((behind.next, behind.fingerprint), (6, 0));
        assert!(KafkaPosition::from_token(&ResumeToken::new("nats", [0; 4], &MessageIdTracker::default())).is_err());
        let damaged = ResumeToken::new(TOKEN, [u64::MAX; 4], &MessageIdTracker::default());
        assert_eq!(KafkaPosition::from_token(&damaged).unwrap().next, i64::MAX);
    }

    #[test]
    fn a_resumed_subscriber_verifies_the_topic_by_its_last_record() {
        let (same, other) = (message(2, 0), message(2, 1));
        let resumed = || {
            let mut position = KafkaPosition::at(3, 0);
            take(&mut position, 3, &same);
            KafkaPosition::from_token(&position.token()).unwrap()
        };
        let mut position = resumed();
        assert_eq!(position.verification_offset(0, 9), Some(3));
        assert_eq!(position.process_record(3, Some(8), &same, &mut silent), RecordOutcome::HandedOver);
        assert_eq!((position.next, take(&mut position, 4, &other)), (4, vec!["Some(4): 1".to_owned()]));
        for (made_ms, value) in [(Some(8), &other), (Some(9), &same), (None, &same)] {
            let mut position = resumed();
            position.verification_offset(0, 9);
            assert_eq!(position.process_record(3, made_ms, value, &mut silent), RecordOutcome::TopicRecreated);
        }
        // That record is gone, so the next record decides.
        let mut position = resumed();
        assert_eq!(position.verification_offset(3, 9), Some(3));
        assert_eq!(take(&mut position, 5, &other), ["Some(5): 1"]);
        for (low, high) in [(4, 9), (0, 3)] {
            assert_eq!(resumed().verification_offset(low, high), None, "{low}..{high}");
        }
        assert_eq!(KafkaPosition::at(4, 0).verification_offset(0, 9), None, "nothing was seen");
    }

    #[test]
    fn a_lost_offset_resumes_at_the_first_new_record() {
        // Columns: expected offset, oldest offset, first one newer than everything seen, next one; resume offset and
        // gap.
        for (next, low, newer, high, then, gap) in [
            (5, 9, 9, 20, 9, Some(Gap::Missed(4))),
            // The end is lost, and no record is new; three are; the topic has grown past the position again.
            (110, 0, 50, 50, 50, Some(Gap::Reconnected)),
            (110, 0, 50, 53, 50, Some(Gap::Reconnected)),
            (110, 0, 50, 200, 50, Some(Gap::Reconnected)),
            // The topic was recreated.
            (110, 0, 0, 7, 0, Some(Gap::Reconnected)),
            // Nothing is lost.
            (110, 0, 110, 110, 110, None),
            (110, 0, 115, 120, 110, None),
        ] {
            let newer = NewerOffsets { than_seen: newer, than_believed: newer };
            assert_eq!(resume_offset(next, low, newer, high), (then, gap), "{next} in {low}..{high}, {newer:?}");
        }
    }

    #[test]
    fn a_clock_set_back_makes_no_record_new() {
        // Seen records are newer than this host's present. Nothing is lost; the end is; everything is.
        for (than_seen, high, found) in
            [(110, 120, (110, None)), (50, 50, (30, Some(Gap::Reconnected))), (40, 120, (30, Some(Gap::Reconnected)))]
        {
            let newer = NewerOffsets { than_seen, than_believed: 30 };
            assert_eq!(resume_offset(110, 0, newer, high), found, "{newer:?} of {high}");
        }
    }

    #[test]
    fn a_sequence_number_is_an_offset_a_gap_or_in_the_future() {
        for (number, found) in [
            (0, Some((3, Some(Gap::Missed(3))))),
            (3, Some((3, None))),
            (9, Some((9, None))),
            (10, None),
            (u64::MAX, None),
        ] {
            assert_eq!(sequence_start("ticks", number, 3, 9).ok(), found, "{number}");
        }
    }
}
