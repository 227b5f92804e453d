//! What is done while there is nothing to do, so that the next message finds its way warm: its lines are asked for, and
//! the code is run on a log of which nobody else knows.

use std::hint::black_box;

use tickpath_bus_api::{Publisher, Start, Subscriber};
use tickpath_clock::Wait;
use tickpath_log::{FIRST_KIND, Reader, Rehearsal, Writer};

use crate::{LogPublisher, LogSubscriber};

/// Turns without work between two rehearsals: some ten microseconds, of which one takes two tenths.
const EVERY: u32 = 256;

/// A rehearsal of one end.
pub(crate) struct Warm<T> {
    /// Turns without work.
    turns: u32,
    state: State<T>,
}

enum State<T> {
    New,
    /// What it is rehearsed on. Its messages have the length of the last real one.
    On(Box<T>, Vec<u8>),
    Off,
}

/// A subscriber, and who publishes to it.
type Heard = (Writer, LogSubscriber);

impl<T> Warm<T> {
    pub(crate) fn new() -> Self {
        Self { turns: 0, state: State::New }
    }

    pub(crate) fn keep(&mut self, keep: bool) {
        self.state = if keep { State::New } else { State::Off };
    }

    /// True if a rehearsal is due.
    #[inline(always)]
    fn is_due(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        self.turns.is_multiple_of(EVERY)
    }

    /// What to rehearse on, with a message of this length; none if there is nothing.
    fn stage(&mut self, make: impl FnOnce() -> Option<T>, bytes: usize) -> Option<(&mut T, &[u8])> {
        if let State::New = self.state {
            self.state = make().map_or(State::Off, |made| State::On(Box::new(made), Vec::new()));
        }
        let State::On(stage, message) = &mut self.state else { return None };
        message.resize(bytes.min(Rehearsal::MAX_PAYLOAD), 0);
        Some((stage, message))
    }
}

impl Warm<LogPublisher> {
    /// A turn in which there was nothing to publish.
    #[inline(always)]
    pub(crate) fn publisher(&mut self, writer: &Writer, bytes: usize) {
        if self.is_due() {
            self.rehearse_publishing(writer, bytes);
        }
    }

    #[inline(never)]
    fn rehearse_publishing(&mut self, writer: &Writer, bytes: usize) {
        writer.keep_warm(bytes);
        let make = || writer.rehearsal().ok().map(|made| LogPublisher::new(made.writer));
        let Some((stage, message)) = self.stage(make, bytes) else { return };
        // The function that callers call, not a copy of it.
        let publisher: &mut dyn Publisher = black_box(stage);
        let _ = publisher.publish(0, FIRST_KIND, message);
    }
}

impl Warm<Heard> {
    /// A turn in which there was nothing to receive.
    #[inline(always)]
    pub(crate) fn subscriber(&mut self, reader: &Reader, bytes: usize) {
        if self.is_due() {
            self.rehearse_receiving(reader, bytes);
        }
    }

    #[inline(never)]
    fn rehearse_receiving(&mut self, reader: &Reader, bytes: usize) {
        let make = || {
            let Rehearsal { writer, reader } = reader.rehearsal().ok()?;
            let place = reader.place().clone();
            Some((writer, LogSubscriber::new(place, Start::Now, Wait::Busy, Some(reader))))
        };
        let Some(((writer, subscriber), message)) = self.stage(make, bytes) else { return };
        let _ = writer.publish(0, FIRST_KIND, message);
        let subscriber: &mut dyn Subscriber = black_box(subscriber);
        let _ = subscriber.poll(1, &mut |event| {
            black_box(event);
        });
    }
}
