//! Subscriber of a log, once a writer has made it, and of a new log that takes its place.

use std::hint::black_box;

use tickpath_bus_api::origin::clock_of;
use tickpath_bus_api::{
    Event, Gap, LendError, Lending, Message, Origin, OriginTracker, PublisherState, ReceiveError, ResumeToken, Start,
    Subscriber,
};
use tickpath_clock::{Calibration, HostClock, Wait};
use tickpath_log::{FIRST_KIND, Next, NextLent, OpenError, Place, ReadError, Reader, Registration, Rehearsal, Writer};

use crate::lent;
use crate::name::NameWatch;
use crate::ring::{LOOK_FOR_LOG_NS, NAME};
use crate::start::{self, Before, Begun};
use crate::warm::Warm;

pub(crate) struct LogSubscriber {
    place: Place,
    start: Start,
    /// True if the topic did not exist: its first message counts as "from now on", and earlier lost ones are reported
    /// as a gap.
    was_absent: bool,
    wait: Wait,
    reader: Option<Reader>,
    name: NameWatch<Reader>,
    /// Reader of a subscription that begins with a gap, until the gap is reported.
    behind_gap: Option<Reader>,
    /// State of carrying messages on; none for a plain subscriber.
    carried: Option<Carried>,
    /// Bytes of the last message.
    last_bytes: usize,
    /// Stamp of the last message, if it came right before the next one.
    last_stamp: Option<u64>,
    /// Message before the place where the subscription began.
    before: Option<Before>,
    warm: Warm<Heard>,
}

/// Outcome of moving on to another log of this name.
struct Followed {
    missed: Option<Gap>,
}

/// The last message handed over, kept to carry messages on.
#[derive(Default)]
struct Carried {
    /// Copy of its payload.
    copy: Vec<u8>,
    /// Its stamp and that stamp's clock, if it came right before the next message.
    last: Option<(u64, Calibration)>,
}

/// Warm-up: a subscriber, and the writer that publishes to it.
type Heard = (Writer, LogSubscriber);

impl LogSubscriber {
    pub(crate) fn new(place: Place, clock: HostClock, start: Start, wait: Wait, reader: Option<Reader>) -> Self {
        Self {
            place,
            start,
            was_absent: false,
            wait,
            reader,
            name: NameWatch::new(clock),
            behind_gap: None,
            carried: None,
            last_bytes: 0,
            last_stamp: None,
            before: None,
            warm: Warm::new(),
        }
    }

    /// Starts with the first message that the topic ever gets, because the topic does not exist yet.
    pub(crate) fn await_topic(&mut self) {
        self.was_absent = matches!(self.start, Start::Now | Start::Oldest);
    }

    pub(crate) fn attach(&mut self) -> Result<(), OpenError> {
        if self.was_absent {
            let oldest = Reader::open(&self.place, tickpath_log::Start::Oldest, Registration::Unregistered)?;
            self.start = Start::Sequence(oldest.first_sequence());
        }
        let Begun { reader, is_same, before } = start::open(&self.place, self.start)?;
        if matches!(self.wait, Wait::Busy | Wait::Adaptive) {
            // Pays the cost of the first run now, and not with a real message.
            rehearse(&mut self.warm, &reader, 0);
        }
        *(if is_same { &mut self.reader } else { &mut self.behind_gap }) = Some(reader);
        self.before = before;
        if self.carried.is_some() {
            self.look_before();
        }
        Ok(())
    }

    /// Looks up the message before the next one, unless it is known. A subscriber that carries messages on stores its
    /// token from the start, and that message identifies the log again even if nothing has come.
    fn look_before(&mut self) {
        let Some(reader) = self.reader.as_ref().or(self.behind_gap.as_ref()) else { return };
        let next = reader.next_told();
        if self.before.is_none_or(|before| before.next != next) {
            self.before = Before::look(&self.place, next);
        }
    }

    /// Returns the message right before the next one, if it is known.
    fn last(&self) -> Option<Before> {
        let reader = self.reader.as_ref()?;
        let next = reader.next_told();
        let handed = match &self.carried {
            Some(carried) => carried.last,
            None => self.last_stamp.map(|stamp| (stamp, reader.calibration())),
        };
        let handed = handed.and_then(|(stamp, clock)| Before::read(next, stamp, clock.utc_ns_of(stamp)));
        handed.or(self.before.filter(|before| before.next == next))
    }

    /// Reports the gap that the subscription begins with, or checks whether a writer has made the log. Returns true if
    /// there is a log to read, and no gap before it.
    #[cold]
    fn try_attach(&mut self, told: &mut usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<bool, ReceiveError> {
        if self.behind_gap.is_none() && !self.find()? {
            return Ok(false);
        }
        if let Some(reader) = self.behind_gap.take() {
            self.reader = Some(reader);
            handler(Event::Gap(Gap::Reconnected));
            *told = 1;
        }
        Ok(*told == 0)
    }

    /// Checks whether the log still has its name, and moves on to the log that has it now; returns the gap between
    /// them, if any.
    #[cold]
    fn follow_name(&mut self) -> Option<Followed> {
        let old = self.reader.as_ref()?;
        let next = || Reader::open(&self.place, tickpath_log::Start::Oldest, Registration::Registered);
        let next = self.name.look(|| old.is_removed(), next)?;
        // A publisher that moves on continues its sequence numbers in the new log.
        let missed = match next.first_sequence() == old.sequence() {
            true => Some(next.sequence() - old.sequence()).filter(|&missed| missed > 0).map(Gap::Missed),
            false => Some(Gap::Reconnected),
        };
        (self.reader, self.last_stamp, self.before) = (Some(next), None, None);
        if let Some(carried) = &mut self.carried {
            carried.last = None;
            self.look_before();
        }
        Some(Followed { missed })
    }

    #[inline(always)]
    fn drain(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        let Self { reader, last_bytes, last_stamp, carried, .. } = self;
        let reader = reader.as_mut().expect("attached");
        let drained = match carried {
            Some(carried) => carry_on(reader, carried, limit, handler),
            None => reader.drain(limit, |next| match next {
                Next::Message(m) => {
                    *last_bytes = m.payload.len();
                    *last_stamp = Some(m.stamp);
                    handler(Event::of(Message {
                        sequence: Some(m.sequence),
                        stamp: m.stamp,
                        kind: m.kind,
                        payload: m.payload,
                        origin: None,
                    }));
                }
                Next::Gap(missed) => {
                    *last_stamp = None;
                    handler(Event::Gap(Gap::Missed(missed)));
                }
                Next::Empty => {}
            }),
        };
        drained.map_err(|e| ReceiveError::Damaged(e.to_string()))
    }

    fn find(&mut self) -> Result<bool, ReceiveError> {
        match self.attach() {
            Ok(()) => Ok(true),
            Err(OpenError::NotFound(_)) => Ok(false),
            Err(e) => Err(ReceiveError::Other(Box::new(e))),
        }
    }
}

impl Subscriber for LogSubscriber {
    // Never inlined, so that callers and the warm-up run the same code: a copy would keep nothing warm.
    #[inline(never)]
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        let mut told = 0;
        if limit == 0 || self.reader.is_none() && !self.try_attach(&mut told, handler)? {
            return Ok(told);
        }
        let drained = self.drain(limit, handler)?;
        match drained {
            0 if self.name.is_due() => match self.follow_name() {
                None => Ok(0),
                Some(Followed { missed: Some(gap) }) => {
                    handler(Event::Gap(gap));
                    Ok(1)
                }
                Some(Followed { missed: None }) => self.drain(limit, handler),
            },
            0 => Ok(0),
            _ => {
                self.warm.has_worked();
                Ok(drained)
            }
        }
    }

    fn lend(&mut self) -> Result<Lending, LendError> {
        if self.carried.is_some() {
            return Err(LendError::NotHere(lent::CARRIES));
        }
        if self.reader.is_none() && self.behind_gap.is_none() && !self.find()? {
            return Ok(Lending::Nothing);
        }
        if let Some(reader) = self.behind_gap.take() {
            self.reader = Some(reader);
            return Ok(Lending::Gap(Gap::Reconnected));
        }
        let reader = self.reader.as_mut().expect("attached");
        let found = reader.lend().map_err(|e| ReceiveError::Damaged(e.to_string()))?;
        match found.ok_or_else(|| LendError::NotHere(lent::why_not(reader.policy())))? {
            NextLent::Message(message) => {
                self.last_bytes = message.payload().len();
                self.last_stamp = Some(message.stamp);
                self.warm.has_worked();
                Ok(lent::lending(message))
            }
            NextLent::Gap(missed) => {
                self.last_stamp = None;
                Ok(Lending::Gap(Gap::Missed(missed)))
            }
            NextLent::Empty if self.name.is_due() => match self.follow_name() {
                Some(Followed { missed: Some(gap) }) => Ok(Lending::Gap(gap)),
                // The next call reads the new log.
                Some(Followed { missed: None }) | None => Ok(Lending::Nothing),
            },
            NextLent::Empty => Ok(Lending::Nothing),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        match (&mut self.reader, self.wait) {
            (Some(_), Wait::Busy) => _ = self.idle(),
            (Some(reader), wait) => {
                let timeout_ns = if wait.sleeps() { self.name.sleep_ns(timeout_ns) } else { timeout_ns };
                reader.wait(wait, timeout_ns);
                self.warm.is_cold();
            }
            (None, _) if self.behind_gap.is_some() => {}
            (None, wait) if wait.sleeps() => tickpath_clock::sleep_ns(timeout_ns.min(LOOK_FOR_LOG_NS)),
            (None, wait) => wait.idle(),
        }
    }

    fn token(&self) -> Option<ResumeToken> {
        let reader = self.reader.as_ref()?;
        let [stamp, utc_ns] = self.last().map_or([0; 2], |last| [last.stamp, last.utc_ns]);
        let words = [reader.next_told(), reader.identity(), stamp, utc_ns];
        Some(ResumeToken::new(NAME, words, &OriginTracker::default()))
    }

    fn carry_on(&mut self) {
        self.before = self.last().or(self.before);
        self.carried = Some(Carried::default());
        self.look_before();
    }

    fn idle(&mut self) -> bool {
        let Some(reader) = &mut self.reader else {
            tickpath_clock::relax();
            return false;
        };
        let is_due = self.warm.is_due();
        if is_due {
            rehearse(&mut self.warm, reader, self.last_bytes);
        }
        reader.wait(Wait::Busy, 0);
        is_due
    }

    fn keep_warm(&mut self, keep: bool) {
        self.warm.keep(keep);
    }

    fn publisher(&self) -> PublisherState {
        match self.reader.as_ref().and_then(Reader::writer) {
            Some(pid) => PublisherState::Alive(pid),
            None => PublisherState::Absent,
        }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.name.moved())
    }

    fn outage(&self) -> Option<String> {
        self.name.outage(&self.place)
    }

    /// Always 0: a log has each message once.
    fn duplicates(&self) -> Option<u64> {
        Some(0)
    }

    /// Always 0: a log has the messages in their order.
    fn late(&self) -> Option<u64> {
        Some(0)
    }
}

/// Warms the code by receiving a message of `bytes` bytes on a private log.
#[inline(never)]
fn rehearse(warm: &mut Warm<Heard>, reader: &Reader, bytes: usize) {
    let make = || {
        let Rehearsal { writer, reader } = reader.rehearsal().ok()?;
        let place = reader.place().clone();
        let clock = HostClock::get().ok()?;
        Some((writer, LogSubscriber::new(place, clock, Start::Now, Wait::Busy, Some(reader))))
    };
    let Some(((writer, subscriber), message)) = warm.stage(make, bytes) else { return };
    let _ = writer.publish(0, FIRST_KIND, message);
    let subscriber: &mut dyn Subscriber = black_box(subscriber);
    let _ = subscriber.poll(1, &mut |event| {
        black_box(event);
    });
}

/// Hands over messages with an origin: the log's identity and the boot of the writer as publisher id, and the sequence
/// number. A log that lost its end with its host continues its numbers from there, under another boot.
fn carry_on(
    reader: &mut Reader,
    carried: &mut Carried,
    limit: usize,
    handler: &mut dyn FnMut(Event<'_>),
) -> Result<usize, ReadError> {
    for count in 0..limit {
        let (sequence, stamp, kind) = match reader.next()? {
            Next::Message(message) => {
                carried.copy.clear();
                carried.copy.extend_from_slice(message.payload);
                (message.sequence, message.stamp, message.kind)
            }
            Next::Gap(missed) => {
                carried.last = None;
                handler(Event::Gap(Gap::Missed(missed)));
                continue;
            }
            Next::Empty => return Ok(count),
        };
        let calibration = reader.calibration();
        carried.last = Some((stamp, calibration));
        let clock = clock_of(&calibration);
        let origin = Some(Origin { clock, publisher: reader.identity() ^ clock, number: sequence });
        handler(Event::Message(Message { sequence: Some(sequence), stamp, kind, payload: &carried.copy, origin }));
    }
    Ok(limit)
}
