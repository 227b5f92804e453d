//! Recording of a topic.
//!
//! A recorder is a subscriber like any other: a topic that overwrites may lap it, and on a `fail` topic it blocks the
//! publisher while the disk is slow.

use std::path::PathBuf;

use tickpath_bus::url::redact_logins;
use tickpath_bus::{GAP_KIND, Gap, Message, StartPosition, Subscriber, SubscriptionEvent, connect};
use tickpath_clock::{Clock, Wait};
use tickpath_log::{
    Config, HEADER_BYTES, LogOpenError, LogPath, MAX_PAYLOAD_BYTES, Reader, ReaderStart, Registration,
    SEGMENT_HEADER_BYTES, Writer,
};

use super::{MAX_EVENTS_PER_POLL, MAX_SLEEP_NS, RelayContext, RelayError, RelayMeter, describe_gap};
use crate::address::{log_address, log_path_address, topic_address, written_address};
use crate::published_tail::{IncomingFilter, PublishedTail};
use crate::saved_position::{CarriedPosition, SavedPosition};
use crate::source::poll_events;
use crate::subscriber_watch::SubscriberWatch;
use crate::target::TargetLog;

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
    pub start: StartPosition,
    /// Folder of the saved position; if there is one, the recording resumes there.
    pub resume: Option<PathBuf>,
    /// Kind given to messages of other programs.
    pub foreign_kind: u8,
    /// Way to wait for messages.
    pub wait: Wait,
    /// Path of the recording.
    pub recording: LogPath,
    /// Whether to append to an existing recording.
    pub append: bool,
    /// Max number of messages.
    pub count: Option<u64>,
    /// Max duration, in nanoseconds.
    pub duration_ns: Option<u64>,
}

/// Records until stopped, or until the requested number of messages or duration is reached.
pub fn run(settings: &Settings, meter: &RelayMeter, context: &RelayContext<'_>) -> Result<(), RelayError> {
    let Settings { url, topic, recording: path, .. } = settings;
    check_recording_path(path, settings.append)?;
    if topic_address(url, topic) == log_path_address(path) {
        return Err(RelayError::Loop(path.to_string()));
    }
    let connection = connect(url)?;
    let ends = [written_address(url, topic), log_path_address(path)];
    let mut saved =
        SavedPosition::open_if_requested(settings.resume.as_deref(), connection.as_ref(), (url, topic), topic, ends)?;
    let start = saved.as_ref().map_or(settings.start, |saved| saved.start_position(settings.start));
    let mut subscriber = connection.subscriber(topic, start, settings.wait)?;
    subscriber.enable_bridge_mode();
    let config = Config { segment_bytes: SEGMENT_BYTES, ..Config::journal(path.clone()) };
    let writer = Writer::open(&config, context.clock.calibration()).map_err(open_error)?;
    let reader = Reader::open(path, ReaderStart::Now, Registration::Unregistered)?;
    let log = TargetLog { next: reader.sequence(), held: 0, reader };
    let tail = saved.as_ref().map_or(Ok(PublishedTail::default()), |saved| saved.tail(&log.reader, log.next))?;
    let lost = saved.as_ref().and_then(|saved| saved.log_loss(&log.reader, log.next));
    let incoming = IncomingFilter::new(tail, path.to_string(), log_address(url, topic).is_some(), context);
    if let Some(saved) = &mut saved {
        saved.save_start(subscriber.resume_token(), incoming.is_from_log, Some(log.position_before(&incoming.tail)))?;
    }
    (context.report)(&format!("recording '{topic}' of {} to {path}", redact_logins(url)));
    let mut recorder = Recorder {
        settings,
        meter,
        context,
        writer,
        log,
        incoming,
        position: saved,
        messages: 0,
        is_foreign_reported: false,
        is_other_host_reported: false,
    };
    let ended =
        lost.map_or(Ok(()), |gap| recorder.record_log_loss(gap)).and_then(|()| recorder.record_until_end(subscriber));
    // Also after an error: messages recorded before it are worth as much.
    let synced = recorder.writer.sync().map_err(|reason| RelayError::Sync(path.clone(), reason));
    let (ended, reached) = ended.map_or_else(|error| (Err(error), None), |reached| (Ok(()), reached));
    let saved = recorder.position.map_or(Ok(()), |mut saved| saved.save_final(reached));
    ended.and(synced).and(saved)
}

struct Recorder<'a> {
    settings: &'a Settings,
    meter: &'a RelayMeter,
    context: &'a RelayContext<'a>,
    writer: Writer,
    log: TargetLog,
    incoming: IncomingFilter,
    position: Option<SavedPosition>,
    messages: u64,
    /// The first message of another program was reported.
    is_foreign_reported: bool,
    /// The first message of another host was reported.
    is_other_host_reported: bool,
}

impl Recorder<'_> {
    fn record_until_end(&mut self, mut subscriber: Box<dyn Subscriber>) -> Result<Option<CarriedPosition>, RelayError> {
        let clock = self.context.clock;
        let mut watch = SubscriberWatch::default();
        let end = self.settings.duration_ns.map(|ns| clock.ticks() + clock.calibration().ticks_of_ns(ns));
        while !self.context.is_stopped() {
            let max = self.position.as_ref().map_or(MAX_EVENTS_PER_POLL, SavedPosition::max_events);
            let left = self.settings.count.map_or(max, |count| (count - self.messages).min(max as u64) as usize);
            let until_end = |end| clock.ns_between(clock.ticks(), end).max(0) as u64;
            let ns_left = end.map_or(MAX_SLEEP_NS, until_end).min(MAX_SLEEP_NS);
            if left == 0 || ns_left == 0 {
                break;
            }
            let polled = poll_events(&mut *subscriber, left, |event| self.record_event(event))?;
            let topic = &self.settings.topic;
            let count = polled.map_err(|reason| RelayError::Receive(topic.clone(), reason))?;
            let Self { position, log, incoming, .. } = self;
            if let Some(position) = position {
                position.save_if_due(&clock, false, || recorded_position(&*subscriber, log, &incoming.tail))?;
            }
            if count == 0 {
                watch.report_changes(&*subscriber, topic, self.meter, self.context);
                subscriber.wait(ns_left);
            }
        }
        watch.report_changes(&*subscriber, &self.settings.topic, self.meter, self.context);
        Ok(recorded_position(&*subscriber, &self.log, &self.incoming.tail))
    }

    fn record_event(&mut self, event: SubscriptionEvent<'_>) -> Result<(), RelayError> {
        match event {
            SubscriptionEvent::Message(message) => match Gap::decode(message.kind, message.payload) {
                Some(gap) => self.record_gap(gap),
                None => self.record_message(&message, false),
            },
            SubscriptionEvent::Foreign(foreign) => {
                let Settings { topic, foreign_kind, .. } = self.settings;
                let message = self.context.stamp_foreign(foreign, *foreign_kind, topic, &mut self.is_foreign_reported);
                self.record_message(&message, true)
            }
            SubscriptionEvent::Gap(gap) => self.record_gap(gap),
        }
    }

    /// Reports a loss, and records the part of it that is not recorded already.
    fn record_gap(&mut self, gap: Gap) -> Result<(), RelayError> {
        if let Some(left) = self.incoming.tail.unpublished_gap(gap)? {
            self.write(self.context.clock.ticks(), GAP_KIND, &left.encode())?;
        }
        self.meter.update(|totals| totals.add_gap(gap));
        (self.context.report)(&format!("'{}': {}", self.settings.topic, describe_gap(gap)));
        Ok(())
    }

    /// Records the loss of messages from the recording itself.
    fn record_log_loss(&mut self, gap: Gap) -> Result<(), RelayError> {
        self.record_gap(gap)?;
        match &mut self.position {
            Some(position) => position.save_after_loss(self.log.position_before(&self.incoming.tail)),
            None => Ok(()),
        }
    }

    fn write(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), RelayError> {
        self.writer.publish(stamp, kind, payload).map_err(RelayError::Record)?;
        self.log.next += 1;
        Ok(())
    }

    fn record_message(&mut self, message: &Message<'_>, is_foreign: bool) -> Result<(), RelayError> {
        let Some(timed) = self.incoming.filter_published(message, is_foreign)? else { return Ok(()) };
        let stamp = self.context.local_stamp(&timed, &self.settings.topic, &mut self.is_other_host_reported);
        self.write(stamp.ticks, message.kind, message.payload)?;
        self.incoming.record_published(self.context);
        self.messages += 1;
        let utc_ns = self.context.clock.calibration().utc_ns_of(stamp.ticks);
        self.meter.update(|totals| {
            totals.other_hosts += u64::from(stamp.is_arrival);
            totals.add_message(message.payload.len(), utc_ns);
            totals.foreign += u64::from(is_foreign);
        });
        Ok(())
    }
}

/// Returns the position recorded so far; `None` if it is unknown.
fn recorded_position(subscriber: &dyn Subscriber, log: &TargetLog, tail: &PublishedTail) -> Option<CarriedPosition> {
    Some(CarriedPosition { token: Some(subscriber.resume_token()?), log: Some(log.position_before(tail)) })
}

/// Rejects a path that cannot take a recording, before anything is created there.
pub(crate) fn check_recording_path(path: &LogPath, append: bool) -> Result<(), RelayError> {
    if path.is_shared_memory() {
        return Err(RelayError::InSharedMemory(path.clone()));
    }
    if path.exists() {
        return if append { Ok(()) } else { Err(RelayError::HoldsLog(path.clone())) };
    }
    match std::fs::read_dir(path.dir()).map(|mut files| files.next().is_some()) {
        Ok(true) => Err(RelayError::OtherFiles(path.clone())),
        Err(reason) if reason.kind() != std::io::ErrorKind::NotFound => Err(RelayError::Target(path.clone(), reason)),
        _ => Ok(()),
    }
}

pub(crate) fn open_error(error: LogOpenError) -> RelayError {
    match error {
        LogOpenError::ConfigMismatch { place: path, found, .. } => RelayError::NotRecording(path, found),
        other => RelayError::from_writer(other),
    }
}
