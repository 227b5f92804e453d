//! Subscriber of a log, once a writer has made it, and of a new log that takes its place.

use std::hint::black_box;

use tickpath_bus_api::message_id::clock_id;
use tickpath_bus_api::{
    Gap, LendError, LendOutcome, Message, MessageId, MessageIdTracker, PublisherState, ReceiveError, ResumeToken,
    StartPosition, Subscriber, SubscriptionEvent,
};
use tickpath_clock::{Calibration, HostClock, Wait};
use tickpath_log::{
    FIRST_KIND, LogMessage, LogOpenError, LogPath, LogReadError, Next, NextLent, Reader, ReaderStart, Registration,
    WarmUpLog, Writer,
};

use crate::lending;
use crate::name_watch::NameWatch;
use crate::start::{self, PrecedingMessage, StartedReader};
use crate::topic_log::{ATTACH_INTERVAL_NS, NAME};
use crate::warm_up::IdleWarmUp;

pub(crate) struct LogSubscriber {
    path: LogPath,
    start: StartPosition,
    /// True if the topic did not exist: its first message counts as new, and earlier lost ones are reported as a gap.
    was_absent: bool,
    wait: Wait,
    reader: Option<Reader>,
    name_watch: NameWatch<Reader>,
    /// Reader of a subscription that begins with a gap, until the gap is reported.
    reader_after_gap: Option<Reader>,
    /// None for a subscriber that is no bridge.
    bridge_state: Option<BridgeState>,
    /// Bytes of the last message.
    last_bytes: usize,
    /// Stamp of the last message, if it came right before the next one.
    last_stamp: Option<u64>,
    /// Message before the place where the subscription began.
    predecessor: Option<PrecedingMessage>,
    warm_up: IdleWarmUp<WarmUpPair>,
}

/// Outcome of moving on to another log of this name.
struct LogSwitch {
    missed: Option<Gap>,
}

/// The last message handed over, kept for a bridge.
#[derive(Default)]
struct BridgeState {
    /// Copy of its payload.
    copy: Vec<u8>,
    /// Its stamp and that stamp's clock, if it came right before the next message.
    last: Option<(u64, Calibration)>,
}

/// Warm-up: a subscriber, and the writer that publishes to it.
type WarmUpPair = (Writer, LogSubscriber);

impl LogSubscriber {
    pub fn new(path: LogPath, clock: HostClock, start: StartPosition, wait: Wait, reader: Option<Reader>) -> Self {
        Self {
            path,
            start,
            was_absent: false,
            wait,
            reader,
            name_watch: NameWatch::new(clock),
            reader_after_gap: None,
            bridge_state: None,
            last_bytes: 0,
            last_stamp: None,
            predecessor: None,
            warm_up: IdleWarmUp::new(),
        }
    }

    /// Starts with the first message that the topic ever gets, because the topic does not exist yet.
    pub(crate) fn await_topic(&mut self) {
        self.was_absent = matches!(self.start, StartPosition::Now | StartPosition::Oldest);
    }

    pub(crate) fn attach(&mut self) -> Result<(), LogOpenError> {
        if self.was_absent {
            let oldest = Reader::open(&self.path, ReaderStart::Oldest, Registration::Unregistered)?;
            self.start = StartPosition::Sequence(oldest.first_sequence());
        }
        let StartedReader { reader, is_same, predecessor } = start::open(&self.path, self.start)?;
        if matches!(self.wait, Wait::Busy | Wait::Adaptive) {
            // Pays the cost of the first run now, and not with a real message.
            run_warm_up(&mut self.warm_up, &reader, 0);
        }
        *(if is_same { &mut self.reader } else { &mut self.reader_after_gap }) = Some(reader);
        self.predecessor = predecessor;
        if self.bridge_state.is_some() {
            self.find_predecessor();
        }
        Ok(())
    }

    /// Looks up the message before the next one, unless it is known. A subscriber that carries messages on stores its
    /// token from the start, and that message identifies the log again even if nothing has come.
    fn find_predecessor(&mut self) {
        let Some(reader) = self.reader.as_ref().or(self.reader_after_gap.as_ref()) else { return };
        let next = reader.next_reported();
        if self.predecessor.is_none_or(|before| before.next != next) {
            self.predecessor = PrecedingMessage::read_from_log(&self.path, next);
        }
    }

    /// Returns the message right before the next one, if it is known.
    fn preceding_message(&self) -> Option<PrecedingMessage> {
        let reader = self.reader.as_ref()?;
        let next = reader.next_reported();
        let last = match &self.bridge_state {
            Some(bridge) => bridge.last,
            None => self.last_stamp.map(|stamp| (stamp, reader.calibration())),
        };
        let last = last.and_then(|(stamp, clock)| PrecedingMessage::from_token(next, stamp, clock.utc_ns_of(stamp)));
        last.or(self.predecessor.filter(|before| before.next == next))
    }

    /// Reports a gap at the start, or attaches to a new log; returns true if there is a log to read, and no gap before.
    #[cold]
    fn try_attach(
        &mut self,
        reported: &mut usize,
        handler: &mut dyn FnMut(SubscriptionEvent<'_>),
    ) -> Result<bool, ReceiveError> {
        if self.reader_after_gap.is_none() && !self.attach_if_exists()? {
            return Ok(false);
        }
        if let Some(reader) = self.reader_after_gap.take() {
            self.reader = Some(reader);
            handler(SubscriptionEvent::Gap(Gap::Reconnected));
            *reported = 1;
        }
        Ok(*reported == 0)
    }

    /// Checks whether the log still has its name; moves on to the log that has it now, with any gap between them.
    #[cold]
    fn follow_successor(&mut self) -> Option<LogSwitch> {
        let old = self.reader.as_ref()?;
        let open = || Reader::open(&self.path, ReaderStart::Oldest, Registration::Registered);
        let next = self.name_watch.find_successor(|| old.is_removed(), open)?;
        // A publisher that moves on continues its sequence numbers in the new log.
        let missed = match next.first_sequence() == old.sequence() {
            true => Some(next.sequence() - old.sequence()).filter(|&missed| missed > 0).map(Gap::Missed),
            false => Some(Gap::Reconnected),
        };
        (self.reader, self.last_stamp, self.predecessor) = (Some(next), None, None);
        if let Some(bridge) = &mut self.bridge_state {
            bridge.last = None;
            self.find_predecessor();
        }
        Some(LogSwitch { missed })
    }

    #[inline(always)]
    fn drain(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        let Self { reader, last_bytes, last_stamp, bridge_state: bridge, .. } = self;
        let reader = reader.as_mut().expect("attached");
        let drained = match bridge {
            Some(bridge) => drain_bridged(reader, bridge, limit, handler),
            None => reader.drain(limit, |next| match next {
                Next::Message(LogMessage { sequence, stamp, kind, payload }) => {
                    (*last_bytes, *last_stamp) = (payload.len(), Some(stamp));
                    let message = Message { sequence: Some(sequence), stamp, kind, payload, id: None };
                    handler(SubscriptionEvent::from_message(message));
                }
                Next::Gap(missed) => {
                    *last_stamp = None;
                    handler(SubscriptionEvent::Gap(Gap::Missed(missed)));
                }
                Next::Empty => {}
            }),
        };
        drained.map_err(|e| ReceiveError::Damaged(e.to_string()))
    }

    fn attach_if_exists(&mut self) -> Result<bool, ReceiveError> {
        match self.attach() {
            Ok(()) => Ok(true),
            Err(LogOpenError::NotFound(_)) => Ok(false),
            Err(e) => Err(ReceiveError::Other(Box::new(e))),
        }
    }
}

impl Subscriber for LogSubscriber {
    // Never inlined, so that callers and the warm-up run the same code: a copy would keep nothing warm.
    #[inline(never)]
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        let mut reported = 0;
        if limit == 0 || self.reader.is_none() && !self.try_attach(&mut reported, handler)? {
            return Ok(reported);
        }
        let drained = self.drain(limit, handler)?;
        match drained {
            0 if self.name_watch.is_due() => match self.follow_successor() {
                None => Ok(0),
                Some(LogSwitch { missed: Some(gap) }) => {
                    handler(SubscriptionEvent::Gap(gap));
                    Ok(1)
                }
                Some(LogSwitch { missed: None }) => self.drain(limit, handler),
            },
            0 => Ok(0),
            _ => {
                self.warm_up.postpone();
                Ok(drained)
            }
        }
    }

    fn lend(&mut self) -> Result<LendOutcome, LendError> {
        if self.bridge_state.is_some() {
            return Err(LendError::Unsupported(lending::BRIDGE_REFUSAL));
        }
        if self.reader.is_none() && self.reader_after_gap.is_none() && !self.attach_if_exists()? {
            return Ok(LendOutcome::Nothing);
        }
        if let Some(reader) = self.reader_after_gap.take() {
            self.reader = Some(reader);
            return Ok(LendOutcome::Gap(Gap::Reconnected));
        }
        let reader = self.reader.as_mut().expect("attached");
        let found = reader.lend().map_err(|e| ReceiveError::Damaged(e.to_string()))?;
        match found.ok_or_else(|| LendError::Unsupported(lending::refusal_reason(reader.policy())))? {
            NextLent::Message(message) => {
                self.last_bytes = message.payload().len();
                self.last_stamp = Some(message.stamp);
                self.warm_up.postpone();
                Ok(lending::lend_outcome(message))
            }
            NextLent::Gap(missed) => {
                self.last_stamp = None;
                Ok(LendOutcome::Gap(Gap::Missed(missed)))
            }
            NextLent::Empty if self.name_watch.is_due() => match self.follow_successor() {
                Some(LogSwitch { missed: Some(gap) }) => Ok(LendOutcome::Gap(gap)),
                // The next call reads the new log.
                Some(LogSwitch { missed: None }) | None => Ok(LendOutcome::Nothing),
            },
            NextLent::Empty => Ok(LendOutcome::Nothing),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        match (&mut self.reader, self.wait) {
            (Some(_), Wait::Busy) => _ = self.idle(),
            (Some(reader), wait) => {
                let timeout_ns = if wait.sleeps() { self.name_watch.sleep_ns(timeout_ns) } else { timeout_ns };
                reader.wait(wait, timeout_ns);
                self.warm_up.schedule_next();
            }
            (None, _) if self.reader_after_gap.is_some() => {}
            (None, wait) if wait.sleeps() => tickpath_clock::sleep_ns(timeout_ns.min(ATTACH_INTERVAL_NS)),
            (None, wait) => wait.idle(),
        }
    }

    fn resume_token(&self) -> Option<ResumeToken> {
        let reader = self.reader.as_ref()?;
        let [stamp, utc_ns] = self.preceding_message().map_or([0; 2], |last| [last.stamp, last.utc_ns]);
        let words = [reader.next_reported(), reader.identity(), stamp, utc_ns];
        Some(ResumeToken::new(NAME, words, &MessageIdTracker::default()))
    }

    fn enable_bridge_mode(&mut self) {
        self.predecessor = self.preceding_message().or(self.predecessor);
        self.bridge_state = Some(BridgeState::default());
        self.find_predecessor();
    }

    fn idle(&mut self) -> bool {
        let Some(reader) = &mut self.reader else {
            tickpath_clock::relax();
            return false;
        };
        let is_due = self.warm_up.is_due();
        if is_due {
            run_warm_up(&mut self.warm_up, reader, self.last_bytes);
        }
        reader.wait(Wait::Busy, 0);
        is_due
    }

    fn set_warm_up(&mut self, keep: bool) {
        self.warm_up.set_enabled(keep);
    }

    fn publisher_state(&self) -> PublisherState {
        match self.reader.as_ref().and_then(Reader::writer) {
            Some(pid) => PublisherState::Alive(pid),
            None => PublisherState::Absent,
        }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.name_watch.switches())
    }

    fn outage(&self) -> Option<String> {
        self.name_watch.outage(&self.path)
    }

    /// Always 0: a log has each message once.
    fn duplicates(&self) -> Option<u64> {
        Some(0)
    }

    /// Always 0: a log has the messages in their order.
    fn out_of_order(&self) -> Option<u64> {
        Some(0)
    }
}

/// Warms the code by receiving a message of `bytes` bytes on a private log.
#[inline(never)]
fn run_warm_up(warm: &mut IdleWarmUp<WarmUpPair>, reader: &Reader, bytes: usize) {
    let make = || {
        let WarmUpLog { writer, reader } = reader.warm_up_log().ok()?;
        let path = reader.path().clone();
        let clock = HostClock::get().ok()?;
        Some((writer, LogSubscriber::new(path, clock, StartPosition::Now, Wait::Busy, Some(reader))))
    };
    let Some(((writer, subscriber), message)) = warm.prepare(make, bytes) else { return };
    let _ = writer.publish(0, FIRST_KIND, message);
    let subscriber: &mut dyn Subscriber = black_box(subscriber);
    let _ = subscriber.poll(1, &mut |event| {
        black_box(event);
    });
}

/// Hands over messages with an origin: the log's identity and the boot of the writer as publisher id, and the sequence
/// number. A log that lost its end with its host continues its numbers from there, under another boot.
fn drain_bridged(
    reader: &mut Reader,
    bridge: &mut BridgeState,
    limit: usize,
    handler: &mut dyn FnMut(SubscriptionEvent<'_>),
) -> Result<usize, LogReadError> {
    for count in 0..limit {
        let (sequence, stamp, kind) = match reader.next()? {
            Next::Message(message) => {
                bridge.copy.clear();
                bridge.copy.extend_from_slice(message.payload);
                (message.sequence, message.stamp, message.kind)
            }
            Next::Gap(missed) => {
                bridge.last = None;
                handler(SubscriptionEvent::Gap(Gap::Missed(missed)));
                continue;
            }
            Next::Empty => return Ok(count),
        };
        let calibration = reader.calibration();
        bridge.last = Some((stamp, calibration));
        let clock = clock_id(&calibration);
        let id = Some(MessageId { clock, publisher: reader.identity() ^ clock, sequence });
        let message = Message { sequence: Some(sequence), stamp, kind, payload: &bridge.copy, id };
        handler(SubscriptionEvent::Message(message));
    }
    Ok(limit)
}
