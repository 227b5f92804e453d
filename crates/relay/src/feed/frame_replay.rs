//! Publication of a file of raw frames, through the parser of its exchange.
//!
//! The frames count as those of one connection, which ends with the last of them, and where the file notes another
//! connect. A gap in the file stays until the file's next snapshot. The time from an event to its arrival is that of the
//! recording; all other times are those of the replay.

use std::path::Path;

use tickpath_bus::url::redact_logins;
use tickpath_clock::{Clock, HostClock, Pacer};
use tickpath_feed::{Arrival, FeedEvent, FrameParser};
use tickpath_market::replay::ReplaySpeed;

use super::config::FeedRelayConfig;
use super::market_carrier::MarketCarrier;
use super::meter::FeedMeter;
use crate::raw_frames::{RawFrameReader, RawLine};
use crate::{MAX_SLEEP_NS, RelayContext, RelayError};

/// Lead before the first frame's time, in nanoseconds, so that the first frame is not late.
const LEAD_NS: u64 = 1_000_000;

/// Max bad lines that are reported.
const MAX_REPORTED_LINES: u64 = 10;

/// Publishes the frames of a file at this pace, as fast as possible if there is none, until the end of the file, or as
/// [`run`](super::run) ends.
pub fn replay_frames(
    config: &FeedRelayConfig,
    file: &Path,
    pace: Option<ReplaySpeed>,
    parser: &mut dyn FrameParser,
    meter: &FeedMeter,
    context: &RelayContext<'_>,
) -> Result<(), RelayError> {
    let frames = RawFrameReader::open(file)?;
    let mut carrier = MarketCarrier::open(config, 1, context)?;
    let to = redact_logins(&config.url);
    (context.report)(&format!("replaying {} to '{}' of {to}", file.display(), config.topic));
    let mut replay = FrameReplay {
        context,
        frames,
        pacer: Pacer::new(context.clock, config.wait),
        pace,
        begin: context.clock.ticks() + context.clock.calibration().ticks_of_ns(LEAD_NS),
        first_utc_ns: None,
        own_ns: 0,
        count: 0,
    };
    let ended = replay.play(&mut carrier, parser, meter);
    let closed = carrier.close(meter);
    match ended.and(closed) {
        Ok(()) if replay.count == 0 && !context.is_stopped() => Err(RelayError::NoFrames(file.to_owned())),
        ended => ended,
    }
}

struct FrameReplay<'a> {
    context: &'a RelayContext<'a>,
    frames: RawFrameReader,
    pacer: Pacer<HostClock>,
    pace: Option<ReplaySpeed>,
    /// Intended time of the first frame, in ticks.
    begin: u64,
    first_utc_ns: Option<u64>,
    /// Recorded time since the first frame, in nanoseconds; it never goes back.
    own_ns: u64,
    /// Number of frames so far.
    count: u64,
}

impl FrameReplay<'_> {
    fn play(
        &mut self,
        carrier: &mut MarketCarrier<'_>,
        parser: &mut dyn FrameParser,
        meter: &FeedMeter,
    ) -> Result<(), RelayError> {
        let mut bad = 0;
        loop {
            let Self { context, frames, pacer, .. } = self;
            let number = frames.line_number + 1;
            let (utc_ns, frame) = match frames.read()? {
                RawLine::Frame(utc_ns, frame) => (utc_ns, frame),
                RawLine::Connect => {
                    connect(carrier)?;
                    continue;
                }
                RawLine::Bad(why) => {
                    bad += 1;
                    if bad <= MAX_REPORTED_LINES {
                        (context.report)(&format!("line {number} is skipped: {why}"));
                    }
                    continue;
                }
                RawLine::Truncated => {
                    (context.report)(&format!("the file is cut off after line {}", number - 1));
                    return Ok(());
                }
                RawLine::End => return Ok(()),
            };
            let first_utc_ns = *self.first_utc_ns.get_or_insert(utc_ns);
            self.own_ns = self.own_ns.max(utc_ns.saturating_sub(first_utc_ns));
            let own_ns = match self.pace {
                None => None,
                Some(ReplaySpeed::Recorded) => Some(self.own_ns),
                Some(ReplaySpeed::Scaled(speed)) => Some((self.own_ns as f64 / speed) as u64),
                Some(ReplaySpeed::Fixed { per_second }) => Some((self.count as f64 * 1e9 / per_second) as u64),
            };
            let intended = own_ns.map(|ns| self.begin.saturating_add(context.clock.calibration().ticks_of_ns(ns)));
            let Some(now) = wait_until(intended, pacer, context) else { return Ok(()) };
            if carrier.is_done(now) {
                return Ok(());
            }
            // A file of an earlier version notes no connects.
            if !carrier.is_up(0) {
                connect(carrier)?;
            }
            self.count += 1;
            carrier.take_frame(0, frame, Arrival { wire: 0, read: now }, utc_ns);
            let mut taken = Ok(());
            let parsed = parser.parse(frame, &mut |event| {
                if taken.is_ok() {
                    taken = carrier.take_recorded(event);
                }
            });
            taken?;
            if let Err(error) = parsed {
                carrier.take(0, FeedEvent::BadFrame(&error))?;
            }
            carrier.keep_up(now, meter)?;
        }
    }
}

/// Ends the connection of the replay, if it is up, and begins the next one.
fn connect(carrier: &mut MarketCarrier<'_>) -> Result<(), RelayError> {
    carrier.disconnected(0)?;
    carrier.count_attempt(0);
    carrier.take(0, FeedEvent::Up)
}

/// Waits for the intended time, if there is one. Returns the ticks then, or `None` if the carrier was stopped before.
fn wait_until(intended: Option<u64>, pacer: &mut Pacer<HostClock>, context: &RelayContext<'_>) -> Option<u64> {
    let max_sleep = context.clock.calibration().ticks_of_ns(MAX_SLEEP_NS);
    loop {
        if context.is_stopped() {
            return None;
        }
        let now = context.clock.ticks();
        match intended {
            None => return Some(now),
            Some(intended) if intended <= now + max_sleep => return Some(pacer.until(intended)),
            Some(_) => pacer.until(now + max_sleep),
        };
    }
}
