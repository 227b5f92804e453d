//! Source of carried messages, and a look ahead at it.
//!
//! ```text
//!   source   … 9 │ a b c d e f g      saved position: after 9; incoming messages are compared with those in the log
//!   ring         │ ? ? ? ? e f        four are lost, and were a to d, because the ring still holds e after them
//!   ring         │ ? ? ? ? x y        another program has written here: the publisher of the four is unknown
//! ```
//! A carrier that is killed may have filled the ring since its position was written, and so may another program since
//! then. Lost messages do not show their publisher; the remaining ones do. So the carrier first looks ahead, as far as
//! the first message that can be compared. If that differs, or does not arrive, nothing counts as carried: messages may
//! be there twice then, which is reported, and none is left out.

use tickpath_bus::{
    Connection, ForeignMessage, Gap, Message, ReceiveError, StartPosition, Subscriber, SubscriptionEvent,
};
use tickpath_clock::{Clock, Wait};
use tickpath_log::LogReadError;

use crate::published_tail::{IncomingFilter, PublishedTail};
use crate::{MAX_EVENTS_PER_POLL, MAX_SLEEP_NS, RelayContext, RelayError};

/// Max time of the look ahead, in nanoseconds: a server that keeps messages has delivered its backlog by then.
const LOOK_AHEAD_NS: i64 = 10_000_000_000;

/// A topic to carry, from its position on.
pub(crate) struct SourceTopic<'a> {
    pub bus: &'a dyn Connection,
    pub topic: &'a str,
    pub start: StartPosition,
    pub wait: Wait,
    /// Kind given to messages of other programs.
    pub foreign_kind: u8,
}

impl SourceTopic<'_> {
    /// Opens the subscriber.
    pub fn open(&self) -> Result<Box<dyn Subscriber>, RelayError> {
        let mut subscriber = self.bus.subscriber(self.topic, self.start, self.wait)?;
        subscriber.enable_bridge_mode();
        Ok(subscriber)
    }

    /// Determines whether this carrier published the messages that a ring has lost after the position. If that is
    /// unknown, the tail is discarded.
    pub fn check_tail(&self, incoming: &mut IncomingFilter, context: &RelayContext<'_>) -> Result<(), RelayError> {
        if !incoming.tail.is_overwritten() {
            return Ok(());
        }
        let untouched = incoming.tail.reopen()?;
        let is_own = self.look_ahead(incoming, context)?;
        incoming.tail = if is_own { untouched } else { PublishedTail::default() };
        if !is_own {
            (context.report)(&format!(
                "{} has lost messages after the saved position, and the remaining ones cannot be compared with those \
                 that arrive: all of these are carried, and some may be duplicates",
                incoming.target
            ));
        }
        Ok(())
    }

    /// Returns whether all lost messages were published by this carrier; also true if the carrier is stopped before
    /// that is known, because it then carries nothing.
    fn look_ahead(&self, incoming: &mut IncomingFilter, context: &RelayContext<'_>) -> Result<bool, RelayError> {
        let mut subscriber = self.open()?;
        let began = context.clock.ticks();
        while !context.is_stopped() {
            let mut is_own = None;
            let polled = poll_events(&mut *subscriber, MAX_EVENTS_PER_POLL, |event| {
                if is_own.is_none() {
                    is_own = is_published_by_us(incoming, event, self.foreign_kind)?;
                }
                Ok(())
            });
            if let Some(is_own) = is_own {
                return Ok(is_own);
            }
            let count = polled?.map_err(|reason| RelayError::Receive(self.topic.to_owned(), reason))?;
            let is_late = context.clock.ns_between(began, context.clock.ticks()) > LOOK_AHEAD_NS;
            // A log delivers all its messages at once.
            if is_late || (count == 0 && incoming.is_from_log) {
                return Ok(false);
            }
            if count == 0 {
                subscriber.wait(MAX_SLEEP_NS);
            }
        }
        Ok(true)
    }
}

/// Polls up to `max` events. After the first error of `carry`, which is returned, no further event is carried.
pub(crate) fn poll_events(
    subscriber: &mut dyn Subscriber,
    max: usize,
    mut carry: impl FnMut(SubscriptionEvent<'_>) -> Result<(), RelayError>,
) -> Result<Result<usize, ReceiveError>, RelayError> {
    let mut carried = Ok(());
    let polled = subscriber.poll(max, &mut |event| {
        if carried.is_ok() {
            carried = carry(event);
        }
    });
    carried.map(|()| polled)
}

/// Returns whether an event shows that this carrier published the lost messages; `None` if it does not show it yet.
fn is_published_by_us(
    incoming: &mut IncomingFilter,
    event: SubscriptionEvent<'_>,
    foreign_kind: u8,
) -> Result<Option<bool>, LogReadError> {
    let (message, is_foreign) = match event {
        SubscriptionEvent::Message(message) => match Gap::decode(message.kind, message.payload) {
            Some(gap) => return incoming.tail.unpublished_gap(gap).map(|_| None),
            None => (message, false),
        },
        SubscriptionEvent::Foreign(ForeignMessage { sequence, bytes, .. }) => {
            (Message { sequence, stamp: 0, kind: foreign_kind, payload: bytes, id: None }, true)
        }
        SubscriptionEvent::Gap(gap) => return incoming.tail.unpublished_gap(gap).map(|_| None),
    };
    let was_compared = !incoming.tail.is_overwritten();
    let is_published = incoming.filter_published(&message, is_foreign)?.is_none();
    Ok(was_compared.then_some(is_published))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use tickpath_bus::connect;
    use tickpath_clock::HostClock;
    use tickpath_log::{Config, LogPath, OverflowPolicy, Writer};

    use super::*;

    /// First number, and the number after the last.
    type Numbers = (u64, u64);

    /// Creates a log that was given these numbers.
    fn write(folder: &Path, policy: OverflowPolicy, numbers: &[Numbers]) -> LogPath {
        let path = LogPath::folder(folder.join(policy.name()));
        let config = Config { segment_bytes: 4096, ..Config::topic(path.clone(), policy) };
        let mut writer = Writer::open(&config, HostClock::get().unwrap().calibration()).unwrap();
        for number in numbers.iter().flat_map(|&(first, end)| first..end) {
            writer.publish(number, 16, &number.to_le_bytes()).unwrap();
        }
        path
    }

    /// Checks the tail of a ring that was given these numbers, all after the position, while others arrive. Returns the
    /// first one that may arrive again, and the reports.
    fn check(ring: &[Numbers], incoming: Numbers, is_stopped: bool) -> (Option<u64>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), OverflowPolicy::Overwrite, ring);
        write(folder.path(), OverflowPolicy::Keep, &[incoming]);
        let end = ring.iter().map(|(first, end)| end - first).sum::<u64>();
        let (clock, stop, reports) =
            (HostClock::get().unwrap(), AtomicBool::new(is_stopped), Mutex::new(String::new()));
        let report = |text: &str| reports.lock().unwrap().push_str(text);
        let context = RelayContext { clock, stop: &stop, report: &report };
        let tail = PublishedTail::open(&path, 0, end).unwrap();
        let mut filter = IncomingFilter::new(tail, "'ring'".to_owned(), true, &context);
        let bus = connect(&format!("file://{}", folder.path().display())).unwrap();
        let (start, wait) = (StartPosition::Sequence(0), Wait::Yield);
        let source =
            SourceTopic { bus: bus.as_ref(), topic: OverflowPolicy::Keep.name(), start, wait, foreign_kind: 128 };
        source.check_tail(&mut filter, &context).unwrap();
        let reports = reports.lock().unwrap().clone();
        (filter.tail.front_sequence(), reports)
    }

    #[test]
    fn lost_messages_count_as_carried_only_if_the_remaining_ones_arrive() {
        let is_whole = |(front, reports): (Option<u64>, String)| front == Some(0) && reports.is_empty();
        // The carrier has filled the ring itself.
        assert!(is_whole(check(&[(0, 2_000)], (0, 2_000), false)));
        assert!(is_whole(check(&[(0, 2_000)], (0, 9_000), false)));
        // Nothing is lost.
        assert!(is_whole(check(&[(5_000, 5_010)], (0, 10), false)));
        // Nothing is carried.
        assert!(is_whole(check(&[(5_000, 7_000)], (0, 10), true)));
        for (ring, incoming) in [
            (vec![(5_000, 7_000)], (0, 100)),
            (vec![(5_000, 7_000)], (0, 4_000)),
            (vec![(0, 100), (5_000, 7_000)], (0, 4_000)),
            (vec![(0, 100), (5_000, 7_000)], (0, 100)),
            (vec![(0, 2_000)], (100, 9_000)),
            (vec![(0, 2_000)], (0, 0)),
        ] {
            let (front, reports) = check(&ring, incoming, false);
            assert_eq!(front, None, "{incoming:?} arrive, and the ring was given {ring:?}");
            assert!(reports.contains("cannot be compared"), "{incoming:?} arrive, ring {ring:?}: {reports}");
        }
    }
}
