//! Replay of a recording onto a bus.
//!
//! ```text
//!   recording   │0 ms   │3 ms │5 ms        its own intervals, from the stamps and the clock that each segment names
//!   published   │t      │t+3  │t+5         intended times; at speed 2: t, t+1.5, t+2.5
//! ```
//! A message has its intended time as its stamp, so that a subscriber can measure latency. Losses in the recording are
//! reported and counted; nothing is published for them.

use tickpath_bus::url::redact_logins;
use tickpath_bus::{GAP_KIND, Gap, connect};
use tickpath_clock::{Clock, HostClock, Pacer, Wait};
use tickpath_log::{LogPath, Next, OverflowPolicy, Reader, ReaderStart, Registration};
use tickpath_market::replay::{ReplaySpeed, ReplaySpeedError};

use super::{MAX_SLEEP_NS, RelayContext, RelayError, RelayMeter, TargetConfig, describe_gap};
use crate::address::{log_path_address, topic_address};
use crate::target::{CarriedItem, PublishOutcome, TopicWriter};

/// Lead before the first message's time, in nanoseconds, so that the first message is not late.
const LEAD_NS: u64 = 1_000_000;

/// Configuration of a replay.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Recording to replay: any log that keeps everything.
    pub recording: LogPath,
    /// URL of the bus.
    pub url: String,
    /// Name of the topic.
    pub topic: String,
    /// Configuration of the topic.
    pub target: TargetConfig,
    /// Pace; as fast as possible if none is given.
    pub pace: Option<ReplaySpeed>,
    /// Sequence number to start with; the oldest of the recording if none is given.
    pub start: Option<u64>,
    /// Max number of messages.
    pub count: Option<u64>,
    /// Whether to start again at the end. The mean interval lies between two rounds.
    pub looped: bool,
    /// Whether messages keep their recorded stamps.
    pub keep_stamps: bool,
    /// Way to wait for intended times, and for room in a full topic.
    pub wait: Wait,
}

/// Replays until the end, or until stopped.
pub fn run(settings: &Settings, meter: &RelayMeter, context: &RelayContext<'_>) -> Result<(), RelayError> {
    let Settings { recording: path, url, topic, .. } = settings;
    let first_ns = first_utc_ns(settings)?;
    if topic_address(url, topic) == log_path_address(path) {
        return Err(RelayError::Loop(path.to_string()));
    }
    let writer = TopicWriter::open(connect(url)?.as_ref(), (url, topic), &settings.target, settings.wait)?;
    writer.report_held(url, context);
    (context.report)(&format!("replaying {path} to '{topic}' of {}", redact_logins(url)));
    let clock = context.clock;
    let mut player = RecordingPlayer {
        settings,
        meter,
        context,
        writer,
        pacer: Pacer::new(clock, settings.wait),
        max_sleep: clock.calibration().ticks_of_ns(MAX_SLEEP_NS),
        begin: clock.ticks() + clock.calibration().ticks_of_ns(LEAD_NS),
        first_ns,
        rounds: 0,
        rounds_ns: 0,
        published: 0,
    };
    while player.play_round(&mut RecordedLog::open(settings)?)? && settings.looped {}
    Ok(())
}

struct RecordingPlayer<'a> {
    settings: &'a Settings,
    meter: &'a RelayMeter,
    context: &'a RelayContext<'a>,
    writer: TopicWriter,
    pacer: Pacer<HostClock>,
    /// Longest wait between two checks for a stop, in ticks.
    max_sleep: u64,
    /// Intended time of the first message, in ticks.
    begin: u64,
    /// UTC time of the first recorded message, in nanoseconds.
    first_ns: u64,
    rounds: u64,
    /// Recorded duration of the completed rounds, in nanoseconds.
    rounds_ns: u64,
    published: u64,
}

impl RecordingPlayer<'_> {
    /// Publishes the recording once. Returns false if all requested messages are published, or if the replay was
    /// stopped.
    fn play_round(&mut self, recording: &mut RecordedLog) -> Result<bool, RelayError> {
        let (mut own_ns, mut messages) = (0u64, 0u64);
        while let Some(record) = recording.read()? {
            if let Some(gap) = record.gap {
                self.report_gap(&record, gap);
                continue;
            }
            // A stamp that goes back, as of another publisher, keeps its position and gets the preceding time.
            own_ns = own_ns.max(record.utc_ns.saturating_sub(self.first_ns));
            let is_done = self.settings.count == Some(self.published);
            if is_done || !self.publish(&record, &recording.payload, own_ns)? {
                return Ok(false);
            }
            messages += 1;
        }
        let is_timed = matches!(self.settings.pace, Some(ReplaySpeed::Recorded | ReplaySpeed::Scaled(_)));
        if self.settings.looped && is_timed && own_ns == 0 {
            return Err(ReplaySpeedError::NoSpan.into());
        }
        let mean_ns = own_ns.div_ceil(messages.saturating_sub(1).max(1));
        self.rounds_ns = self.rounds_ns.saturating_add(own_ns).saturating_add(mean_ns);
        self.rounds += 1;
        Ok(true)
    }

    /// Publishes one message at its time. Returns false if the replay was stopped before.
    fn publish(&mut self, record: &RecordedMessage, payload: &[u8], own_ns: u64) -> Result<bool, RelayError> {
        let intended = self.intended(self.rounds_ns.saturating_add(own_ns));
        let Some(now) = self.wait_until(intended) else { return Ok(false) };
        let stamp = if self.settings.keep_stamps { record.stamp } else { intended.unwrap_or(now) };
        let item = CarriedItem::Message { id: None, stamp, kind: record.kind, payload };
        let outcome = self.writer.publish_until_stopped(item, self.context);
        let (topic, sequence) = (&self.settings.topic, record.sequence);
        match outcome.map_err(|reason| RelayError::Publish { topic: topic.clone(), sequence, reason })? {
            PublishOutcome::Stopped => {
                self.meter.update(|totals| totals.unpublished += 1);
                Ok(false)
            }
            PublishOutcome::Published { ticks, refused } => {
                let late_ns = intended.map(|intended| self.context.clock.ns_between(intended, ticks));
                self.meter.update(|totals| {
                    totals.add_message(payload.len(), record.utc_ns);
                    totals.refused += u64::from(refused);
                    if let Some(ns) = late_ns {
                        totals.add_delay(ns);
                    }
                });
                self.published += 1;
                Ok(true)
            }
        }
    }

    /// Returns the intended time of the next message, in ticks. It is computed from the start, so that rounding does
    /// not add up.
    fn intended(&self, own_ns: u64) -> Option<u64> {
        let offset_ns = match self.settings.pace? {
            ReplaySpeed::Recorded => own_ns,
            ReplaySpeed::Scaled(speed) => (own_ns as f64 / speed) as u64,
            ReplaySpeed::Fixed { per_second } => (self.published as f64 * 1e9 / per_second) as u64,
        };
        Some(self.begin.saturating_add(self.context.clock.calibration().ticks_of_ns(offset_ns)))
    }

    /// Waits for the intended time, if there is one; returns the ticks then, or `None` if the replay was stopped
    /// before.
    fn wait_until(&mut self, intended: Option<u64>) -> Option<u64> {
        loop {
            if self.context.is_stopped() {
                return None;
            }
            let now = self.context.clock.ticks();
            match intended {
                None => return Some(now),
                Some(intended) if intended <= now + self.max_sleep => return Some(self.pacer.until(intended)),
                Some(_) => self.pacer.until(now + self.max_sleep),
            };
        }
    }

    /// Counts a loss in the recording, and reports it in the first round.
    fn report_gap(&self, record: &RecordedMessage, gap: Gap) {
        self.meter.update(|totals| totals.add_gap(gap));
        if self.rounds == 0 {
            let loss = describe_gap(gap);
            (self.context.report)(&format!("the recording has a gap at sequence number {}: {loss}", record.sequence));
        }
    }
}

/// A recording that is read from start to end.
struct RecordedLog {
    reader: Reader,
    payload: Vec<u8>,
}

struct RecordedMessage {
    sequence: u64,
    stamp: u64,
    /// UTC stamp by the clock that took it: recordings of other boots, and of several, have other clocks than this host
    /// now.
    utc_ns: u64,
    kind: u8,
    /// Loss that the record reports, if it is no message.
    gap: Option<Gap>,
}

impl RecordedLog {
    fn open(settings: &Settings) -> Result<Self, RelayError> {
        let start = settings.start.map_or(ReaderStart::Oldest, ReaderStart::Sequence);
        let reader = Reader::open(&settings.recording, start, Registration::Unregistered)?;
        match reader.policy() {
            OverflowPolicy::Keep => Ok(Self { reader, payload: Vec::new() }),
            policy => Err(RelayError::NotKept(settings.recording.clone(), policy)),
        }
    }

    fn read(&mut self) -> Result<Option<RecordedMessage>, RelayError> {
        let (sequence, stamp, kind) = match self.reader.next()? {
            Next::Message(message) => {
                self.payload.clear();
                self.payload.extend_from_slice(message.payload);
                (message.sequence, message.stamp, message.kind)
            }
            Next::Gap(missed) => {
                let (sequence, gap) = (self.reader.sequence(), Some(Gap::Missed(missed)));
                return Ok(Some(RecordedMessage { sequence, stamp: 0, utc_ns: 0, kind: GAP_KIND, gap }));
            }
            Next::Empty => {
                self.reader.check_end()?;
                return Ok(None);
            }
        };
        let utc_ns = self.reader.calibration().utc_ns_of(stamp);
        let gap = Gap::decode(kind, &self.payload);
        Ok(Some(RecordedMessage { sequence, stamp, utc_ns, kind, gap }))
    }
}

/// Returns the UTC time of the first recorded message, in nanoseconds.
fn first_utc_ns(settings: &Settings) -> Result<u64, RelayError> {
    let mut recording = RecordedLog::open(settings)?;
    while let Some(record) = recording.read()? {
        if record.gap.is_none() {
            return Ok(record.utc_ns);
        }
    }
    Err(RelayError::Empty(settings.recording.clone(), settings.start.unwrap_or(0)))
}
