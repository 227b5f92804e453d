//! Recording of a topic.
//!
//! A recorder is a subscriber like any other: a topic that overwrites may lap it, and on a `fail` topic it blocks the
//! publisher while the disk is slow.

use std::path::PathBuf;

use tickpath_bus::origin::clock_of;
use tickpath_bus::url::without_login;
use tickpath_bus::{Event, GAP_KIND, Gap, Message, Start, Subscriber, connect};
use tickpath_clock::{Clock, Wait};
use tickpath_log::{
    Config, HEADER_BYTES, MAX_PAYLOAD_BYTES, OpenError, Place, Reader, Registration, SEGMENT_HEADER_BYTES, Writer,
};

use super::{LOOK_NS, Meter, Outside, RelayError, TURN, gap_words};
use crate::address::{address, log_address, place_address, said_address};
use crate::outlet::Log;
use crate::resume::{Kept, Reached};
use crate::tail::{Incoming, Tail};
use crate::watched::Watched;

/// Segment size: a segment takes the longest message that a log can hold, with its headers. No journal has segments of
/// this size, so that none is ever taken for a recording.
pub(crate) const SEGMENT_BYTES: usize = (SEGMENT_HEADER_BYTES + MAX_PAYLOAD_BYTES + 64).next_multiple_of(HEADER_BYTES);

/// Configuration of a recording.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the bus.
    pub url: String,
    /// Name of the topic.
    pub topic: String,
    /// Start position.
    pub start: Start,
    /// Folder of the saved position; if there is one, the recording resumes there.
    pub resume: Option<PathBuf>,
    /// Kind given to messages of other programs.
    pub foreign_kind: u8,
    /// Way to wait for messages.
    pub wait: Wait,
    /// Place of the recording.
    pub place: Place,
    /// Whether to append to an existing recording.
    pub append: bool,
    /// Max number of messages.
    pub count: Option<u64>,
    /// Max duration, in nanoseconds.
    pub duration_ns: Option<u64>,
}

/// Records until stopped, or until the requested number of messages or duration is reached.
pub fn run(settings: &Settings, meter: &Meter, outside: &Outside<'_>) -> Result<(), RelayError> {
    let Settings { url, topic, place, .. } = settings;
    check_place(place, settings.append)?;
    if address(url, topic) == place_address(place) {
        return Err(RelayError::Circle(place.to_string()));
    }
    let connection = connect(url)?;
    let ends = [said_address(url, topic), place_address(place)];
    let mut kept = Kept::asked(settings.resume.as_deref(), connection.as_ref(), (url, topic), topic, ends)?;
    let start = kept.as_ref().map_or(settings.start, |kept| kept.start(settings.start));
    let mut subscriber = connection.subscriber(topic, start, settings.wait)?;
    subscriber.carry_on();
    let config = Config { segment_bytes: SEGMENT_BYTES, ..Config::journal(place.clone()) };
    let writer = Writer::open(&config, outside.clock.calibration()).map_err(open_error)?;
    let there = Reader::open(place, tickpath_log::Start::Now, Registration::Unregistered)?;
    let log = Log { next: there.sequence(), held: 0, there };
    let tail = kept.as_ref().map_or(Ok(Tail::default()), |kept| kept.tail(&log.there, log.next))?;
    let lost = kept.as_ref().and_then(|kept| kept.lost(&log.there, log.next));
    let incoming = Incoming {
        tail,
        target: place.to_string(),
        clock: clock_of(outside.clock.calibration()),
        is_from_log: log_address(url, topic).is_some(),
    };
    if let Some(kept) = &mut kept {
        kept.begin(subscriber.token(), incoming.is_from_log, Some(log.reached(&incoming.tail)))?;
    }
    (outside.tell)(&format!("recording '{topic}' of {} to {place}", without_login(url)));
    let (messages, is_told, is_elsewhere_told) = (0, false, false);
    let mut recorder =
        Recorder { settings, meter, outside, writer, log, incoming, kept, messages, is_told, is_elsewhere_told };
    let ended = lost.map_or(Ok(()), |gap| recorder.mend(gap)).and_then(|()| recorder.follow(subscriber));
    // Also after an error: messages recorded before it are worth as much.
    let synced = recorder.writer.sync().map_err(|reason| RelayError::Sync { place: place.clone(), reason });
    let (ended, reached) = ended.map_or_else(|error| (Err(error), None), |reached| (Ok(()), reached));
    let kept = recorder.kept.map_or(Ok(()), |mut kept| kept.end(reached));
    ended.and(synced).and(kept)
}

struct Recorder<'a> {
    settings: &'a Settings,
    meter: &'a Meter,
    outside: &'a Outside<'a>,
    writer: Writer,
    /// State of the recording.
    log: Log,
    incoming: Incoming,
    kept: Option<Kept>,
    messages: u64,
    /// The first message of another program was reported.
    is_told: bool,
    /// The first message of another host was reported.
    is_elsewhere_told: bool,
}

impl Recorder<'_> {
    /// Records until the end; returns the final position.
    fn follow(&mut self, mut subscriber: Box<dyn Subscriber>) -> Result<Option<Reached>, RelayError> {
        let clock = self.outside.clock;
        let mut watched = Watched::default();
        let end = self.settings.duration_ns.map(|ns| clock.ticks() + clock.calibration().ticks_of_ns(ns));
        while !self.outside.is_stopped() {
            let most = self.kept.as_ref().map_or(TURN, Kept::most);
            let left = self.settings.count.map_or(most, |count| (count - self.messages).min(most as u64) as usize);
            let until_end = |end| clock.ns_between(clock.ticks(), end).max(0) as u64;
            let ns_left = end.map_or(LOOK_NS, until_end).min(LOOK_NS);
            if left == 0 || ns_left == 0 {
                break;
            }
            let mut failed = None;
            let polled = subscriber.poll(left, &mut |event| {
                if failed.is_none() {
                    failed = self.keep(event).err();
                }
            });
            if let Some(error) = failed {
                return Err(error);
            }
            let topic = &self.settings.topic;
            let count = polled.map_err(|reason| RelayError::Receive { topic: topic.clone(), reason })?;
            let Self { kept, log, incoming, .. } = self;
            if let Some(kept) = kept {
                kept.reached(&clock, false, || reached(&*subscriber, log, incoming))?;
            }
            if count == 0 {
                watched.look(&*subscriber, topic, self.meter, self.outside);
                subscriber.wait(ns_left);
            }
        }
        watched.look(&*subscriber, &self.settings.topic, self.meter, self.outside);
        Ok(reached(&*subscriber, &self.log, &self.incoming))
    }

    fn keep(&mut self, event: Event<'_>) -> Result<(), RelayError> {
        match event {
            Event::Message(message) => match Gap::read(message.kind, message.payload) {
                Some(gap) => self.lose(gap)?,
                None => self.keep_message(&message, false)?,
            },
            Event::Foreign(foreign) => {
                let Settings { topic, foreign_kind, .. } = self.settings;
                let message = self.outside.adopt(foreign, *foreign_kind, topic, &mut self.is_told);
                self.keep_message(&message, true)?;
            }
            Event::Gap(gap) => self.lose(gap)?,
        }
        Ok(())
    }

    /// Reports a loss, and records the part of it that is not recorded already.
    fn lose(&mut self, gap: Gap) -> Result<(), RelayError> {
        if let Some(left) = self.incoming.tail.gap(gap)? {
            self.write(self.outside.clock.ticks(), GAP_KIND, &left.record())?;
        }
        self.meter.update(|totals| totals.gap(gap));
        (self.outside.tell)(&format!("'{}': {}", self.settings.topic, gap_words(gap)));
        Ok(())
    }

    /// Records the loss of messages from the recording itself.
    fn mend(&mut self, gap: Gap) -> Result<(), RelayError> {
        self.lose(gap)?;
        match &mut self.kept {
            Some(kept) => kept.mended(self.log.reached(&self.incoming.tail)),
            None => Ok(()),
        }
    }

    fn write(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), RelayError> {
        self.writer.publish(stamp, kind, payload).map_err(RelayError::Record)?;
        self.log.next += 1;
        Ok(())
    }

    fn keep_message(&mut self, message: &Message<'_>, is_foreign: bool) -> Result<(), RelayError> {
        let Some(timed) = self.incoming.fresh(message, is_foreign)? else { return Ok(()) };
        let stamp = self.outside.stamp_here(&timed, &self.settings.topic, &mut self.is_elsewhere_told);
        self.write(stamp.ticks, message.kind, message.payload)?;
        self.incoming.passed(self.outside);
        self.messages += 1;
        let utc_ns = self.outside.utc_ns_of(stamp.ticks);
        self.meter.update(|totals| {
            totals.elsewhere += u64::from(stamp.is_arrival);
            totals.message(message.payload.len(), utc_ns);
            totals.foreign += u64::from(is_foreign);
        });
        Ok(())
    }
}

/// Returns the position recorded so far; `None` if it is unknown.
fn reached(subscriber: &dyn Subscriber, log: &Log, incoming: &Incoming) -> Option<Reached> {
    Some(Reached { token: Some(subscriber.token()?), log: Some(log.reached(&incoming.tail)) })
}

/// Rejects a place that cannot take a recording, before anything is created there.
pub(crate) fn check_place(place: &Place, append: bool) -> Result<(), RelayError> {
    if place.is_shared_memory() {
        return Err(RelayError::NoDisk(place.clone()));
    }
    if place.exists() {
        return if append { Ok(()) } else { Err(RelayError::Taken(place.clone())) };
    }
    match std::fs::read_dir(place.dir()) {
        Ok(mut files) => match files.next() {
            Some(_) => Err(RelayError::OtherFiles(place.clone())),
            None => Ok(()),
        },
        Err(reason) if reason.kind() != std::io::ErrorKind::NotFound => {
            Err(RelayError::Target { place: place.clone(), reason })
        }
        _ => Ok(()),
    }
}

pub(crate) fn open_error(error: OpenError) -> RelayError {
    match error {
        OpenError::Differs { place, found, .. } => RelayError::NoRecording { place, found },
        other => RelayError::of_writer(other),
    }
}
