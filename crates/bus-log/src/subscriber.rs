//! Reads a log, once somebody has made it, and the one that comes in its place.

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
    /// Its topic was not there: whatever comes first is "from now on", and what is gone before is told as a gap.
    was_absent: bool,
    wait: Wait,
    reader: Option<Reader>,
    name: NameWatch<Reader>,
    /// It begins with a gap, which is not told yet; then this is what it reads.
    behind_gap: Option<Reader>,
    /// Where it hands over for who carries on.
    carried: Option<Carried>,
    /// Bytes of the last message.
    last_bytes: usize,
    /// Its stamp, if it came right before what comes next.
    last_stamp: Option<u64>,
    /// The message before the place where it began.
    before: Option<Before>,
    warm: Warm<Heard>,
}

/// It has gone on in another log of this name.
struct Followed {
    missed: Option<Gap>,
}

/// The last message that was handed over, for who carries on.
#[derive(Default)]
struct Carried {
    /// A copy of its payload.
    copy: Vec<u8>,
    /// Its stamp and the clock of that, if it came right before what comes next.
    last: Option<(u64, Calibration)>,
}

/// A subscriber that rehearses, and who publishes to it.
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

    /// Begins with the first message that its topic ever has, which is not there.
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
            // The cost of the first time is not taken from a message that comes.
            rehearse(&mut self.warm, &reader, 0);
        }
        *(if is_same { &mut self.reader } else { &mut self.behind_gap }) = Some(reader);
        self.before = before;
        if self.carried.is_some() {
            self.look_before();
        }
        Ok(())
    }

    /// Looks up the message before the next one, if that is not known. Who carries on keeps its token from the beginning on,
    /// and the log is known again by that message, though nothing has come.
    fn look_before(&mut self) {
        let Some(reader) = self.reader.as_ref().or(self.behind_gap.as_ref()) else { return };
        let next = reader.next_told();
        if self.before.is_none_or(|before| before.next != next) {
            self.before = Before::look(&self.place, next);
        }
    }

    /// The message right before the next one, if it is known.
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

    /// Tells the gap that it begins with, or looks whether a writer has made the log by now; true if there is something to
    /// read from, and no gap before it.
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

    /// Looks whether its log still has its name, and goes on in the one that has it now; gives what is to be told then.
    #[cold]
    fn follow_name(&mut self) -> Option<Followed> {
        let old = self.reader.as_ref()?;
        let next = || Reader::open(&self.place, tickpath_log::Start::Oldest, Registration::Registered);
        let next = self.name.look(|| old.is_removed(), next)?;
        // The numbers of a publisher that goes on do.
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
    // One function for callers and for the rehearsal, wherever each of them is compiled: a copy of it would keep nothing warm.
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
                // The next call looks into the new one.
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

    /// A log has each message once.
    fn duplicates(&self) -> Option<u64> {
        Some(0)
    }

    /// A log has them in their order.
    fn late(&self) -> Option<u64> {
        Some(0)
    }
}

/// Receives a message of so many bytes that is none.
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

/// Hands over messages with an origin: what tells the log, and the boot of who wrote the message, and its sequence number.
/// A log that lost its end with its host counts on from there, of another boot.
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
