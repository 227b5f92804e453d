//! Where what is carried comes from, and a look ahead at it.
//!
//! ```text
//!   source   … 9 │ a b c d e f g      the place says: behind 9; what comes is compared with what the log holds behind it
//!   ring         │ ? ? ? ? e f        four are gone, and were a to d, for behind them the ring still holds e
//!   ring         │ ? ? ? ? x y        another program has written here: nobody knows whose the four were
//! ```
//! A carrier that is killed may have filled the ring since its place was written, and so may another program since then.
//! What is gone does not tell whose it was; what is left does. So before anything is carried it is looked ahead, as far as
//! the first message that can be compared. If that differs, or does not come, nothing counts as carried: what comes may be
//! there twice then, which is told, and nothing is left out.

use tickpath_bus::{Connection, Event, Foreign, Gap, Message, Start, Subscriber};
use tickpath_clock::{Clock, Wait};
use tickpath_log::ReadError;

use crate::tail::{Incoming, Tail};
use crate::{LOOK_NS, Outside, RelayError, TURN};

/// How long it is looked ahead at most: a server that keeps messages has handed over by then what it had.
const LOOK_AHEAD_NS: i64 = 10_000_000_000;

/// A topic that is carried, from its place on.
pub(crate) struct Source<'a> {
    pub bus: &'a dyn Connection,
    pub topic: &'a str,
    pub start: Start,
    pub wait: Wait,
    /// The kind that messages of other programs get.
    pub foreign_kind: u8,
}

impl Source<'_> {
    /// What comes.
    pub fn open(&self) -> Result<Box<dyn Subscriber>, RelayError> {
        let mut subscriber = self.bus.subscriber(self.topic, self.start, self.wait)?;
        subscriber.carry_on();
        Ok(subscriber)
    }

    /// Finds out whose it was what a ring has lost behind the place. If that is not known, its tail counts for nothing.
    pub fn settle(&self, incoming: &mut Incoming, outside: &Outside<'_>) -> Result<(), RelayError> {
        if !incoming.tail.is_lapped() {
            return Ok(());
        }
        let untouched = incoming.tail.again()?;
        let is_ours = self.look_ahead(incoming, outside)?;
        incoming.tail = if is_ours { untouched } else { Tail::default() };
        if !is_ours {
            (outside.tell)(&format!(
                "{} has lost messages behind the place that was kept, and what it holds now cannot be compared with what \
                 comes: all of that is carried, and some may be there twice",
                incoming.target
            ));
        }
        Ok(())
    }

    /// Whether all that is gone was carried from here; also if the carrier is to end before that is known, for then it
    /// carries nothing.
    fn look_ahead(&self, incoming: &mut Incoming, outside: &Outside<'_>) -> Result<bool, RelayError> {
        let mut subscriber = self.open()?;
        let began = outside.clock.ticks();
        while !outside.is_stopped() {
            let mut found = Ok(None);
            let polled = subscriber.poll(TURN, &mut |event| {
                if matches!(found, Ok(None)) {
                    found = compare(incoming, event, self.foreign_kind);
                }
            });
            if let Some(is_ours) = found? {
                return Ok(is_ours);
            }
            let count = polled.map_err(|reason| RelayError::Receive { topic: self.topic.to_owned(), reason })?;
            let is_late = outside.clock.ns_between(began, outside.clock.ticks()) > LOOK_AHEAD_NS;
            // A log hands over all that it holds.
            if is_late || (count == 0 && incoming.is_from_log) {
                return Ok(false);
            }
            if count == 0 {
                subscriber.wait(LOOK_NS);
            }
        }
        Ok(true)
    }
}

/// What an event shows: that what is gone was carried from here, that it was not, or nothing yet.
fn compare(incoming: &mut Incoming, event: Event<'_>, foreign_kind: u8) -> Result<Option<bool>, ReadError> {
    let (message, is_foreign) = match event {
        Event::Message(message) => match Gap::read(message.kind, message.payload) {
            Some(gap) => return incoming.tail.gap(gap).map(|_| None),
            None => (message, false),
        },
        Event::Foreign(Foreign { sequence, bytes, .. }) => {
            (Message { sequence, stamp: 0, kind: foreign_kind, payload: bytes, origin: None }, true)
        }
        Event::Gap(gap) => return incoming.tail.gap(gap).map(|_| None),
    };
    let is_behind = !incoming.tail.is_lapped();
    let is_published = incoming.fresh(&message, is_foreign)?.is_none();
    Ok(is_behind.then_some(is_published))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use tickpath_bus::connect;
    use tickpath_bus::origin::clock_of;
    use tickpath_clock::HostClock;
    use tickpath_log::{Config, Place, Policy, Writer};

    use super::*;

    /// Numbers from one on, and before another one.
    type Numbers = (u64, u64);

    /// Makes a log that was given these.
    fn write(folder: &Path, policy: Policy, numbers: &[Numbers]) -> Place {
        let place = Place::folder(folder.join(policy.name()));
        let config = Config { segment_bytes: 4096, ..Config::topic(place.clone(), policy) };
        let mut writer = Writer::open(&config, HostClock::get().unwrap().calibration()).unwrap();
        for number in numbers.iter().flat_map(|&(first, end)| first..end) {
            writer.publish(number, 16, &number.to_le_bytes()).unwrap();
        }
        place
    }

    /// Of a ring that was given these numbers, all behind the place: the first that may come again, and what is told, when
    /// these come.
    fn settled(ring: &[Numbers], comes: Numbers, is_stopped: bool) -> (Option<u64>, String) {
        let folder = tempfile::tempdir().unwrap();
        let place = write(folder.path(), Policy::Overwrite, ring);
        write(folder.path(), Policy::Keep, &[comes]);
        let end = ring.iter().map(|(first, end)| end - first).sum::<u64>();
        let (clock, stop, told) = (HostClock::get().unwrap(), AtomicBool::new(is_stopped), Mutex::new(String::new()));
        let tell = |words: &str| told.lock().unwrap().push_str(words);
        let outside = Outside { clock, stop: &stop, tell: &tell };
        let mut incoming = Incoming {
            tail: Tail::open(&place, 0, end).unwrap(),
            target: "'ring'".to_owned(),
            clock: clock_of(clock.calibration()),
            is_from_log: true,
        };
        let bus = connect(&format!("file://{}", folder.path().display())).unwrap();
        let (start, wait) = (Start::Sequence(0), Wait::Yield);
        let source = Source { bus: bus.as_ref(), topic: Policy::Keep.name(), start, wait, foreign_kind: 128 };
        source.settle(&mut incoming, &outside).unwrap();
        let told = told.lock().unwrap().clone();
        (incoming.tail.front(), told)
    }

    #[test]
    fn what_is_gone_was_carried_only_if_what_is_left_comes_behind_it() {
        let is_whole = |(front, told): (Option<u64>, String)| front == Some(0) && told.is_empty();
        // The carrier has filled the ring itself.
        assert!(is_whole(settled(&[(0, 2_000)], (0, 2_000), false)));
        assert!(is_whole(settled(&[(0, 2_000)], (0, 9_000), false)));
        // Nothing is gone.
        assert!(is_whole(settled(&[(5_000, 5_010)], (0, 10), false)));
        // Nothing is carried.
        assert!(is_whole(settled(&[(5_000, 7_000)], (0, 10), true)));
        for (ring, comes) in [
            (vec![(5_000, 7_000)], (0, 100)),
            (vec![(5_000, 7_000)], (0, 4_000)),
            (vec![(0, 100), (5_000, 7_000)], (0, 4_000)),
            (vec![(0, 100), (5_000, 7_000)], (0, 100)),
            (vec![(0, 2_000)], (100, 9_000)),
            (vec![(0, 2_000)], (0, 0)),
        ] {
            let (front, told) = settled(&ring, comes, false);
            assert_eq!(front, None, "{comes:?} come, and the ring was given {ring:?}");
            assert!(told.contains("cannot be compared"), "{comes:?} come, and the ring was given {ring:?}: {told}");
        }
    }
}
