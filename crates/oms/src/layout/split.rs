//! `split`: receiving, core and venue line have a thread each, and hand over by lanes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tickpath_clock::{Clock, settle};
use tickpath_log::{Config as LogConfig, Message, PublishError, Reader, Writer, sleep_until_any};
use tickpath_market::Request;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::source::{Source, poll_ticks, turn};
use super::{Config, join, spawn};
use crate::OmsError;
use crate::agent::{self, Agent, Gap, Gaps};
use crate::lanes::LanesConfig;
use crate::recover::Inbound;
use crate::sequencer::Sequencer;

/// A request on its way from the receiver to the core: when it was sent, by whom; T1 is the frame's stamp.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HandOver {
    sent: u64,
    session: u64,
    length: u64,
    request: [u8; 56],
}

/// The kind of what a mover hands over in place of a message that cannot be one.
const REFUSED: u8 = 255;

/// Moves frames from lanes to the core, stamped when they were seen.
struct Mover<C> {
    clock: C,
    from: Vec<Source>,
    to: Writer,
    /// Requests are wrapped with who sent them and when; reports go as they are.
    wrap: bool,
}

impl<C: Clock> Agent for Mover<C> {
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, from, to, wrap } = self;
        let mut done = 0;
        for (session, lane) in from.iter_mut().enumerate() {
            done += lane.turn(|message| {
                let received = clock.ticks();
                if !*wrap {
                    return hand_over(to, received, message.kind, message.payload);
                }
                let mut wrapped =
                    HandOver { sent: message.stamp, session: session as u64, length: 0, request: [0; 56] };
                let length = message.payload.len().min(wrapped.request.len());
                wrapped.length = message.payload.len() as u64;
                wrapped.request[..length].copy_from_slice(&message.payload[..length]);
                hand_over(to, received, message.kind, wrapped.as_bytes())
            })?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        sleep_until_any(&self.from.iter().map(|lane| &lane.reader).collect::<Vec<_>>(), timeout_ns);
    }
}

/// Publishes to the core's lane; the core always catches up, so a full lane is waited for.
fn hand_over(to: &mut Writer, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), OmsError> {
    loop {
        match to.publish(stamp, kind, payload) {
            Ok(_) => return Ok(()),
            Err(PublishError::Full) => tickpath_clock::yield_now(),
            // The core has ended; so will we.
            Err(PublishError::NoReader) => return Ok(()),
            // No message of ours is so long or of such a kind: the core counts an empty one as refused.
            Err(PublishError::TooLarge { .. } | PublishError::Kind(_)) => return hand_over(to, stamp, REFUSED, &[]),
            Err(e) => return Err(OmsError::Lane(e)),
        }
    }
}

/// The core's thread in `split`.
struct CoreAgent<C> {
    clock: C,
    sequencer: Sequencer<C>,
    requests: Reader,
    reports: Reader,
    ticks: Option<Reader>,
}

impl<C: Clock> CoreAgent<C> {
    /// Takes what is there and does nothing with it: the core has failed, and the movers must end.
    fn discard(&mut self) -> Result<usize, OmsError> {
        let requests = turn(&mut self.requests, |_| Ok(()))?;
        Ok(requests + turn(&mut self.reports, |_| Ok(()))?)
    }
}

impl<C: Clock> Agent for CoreAgent<C> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { sequencer, requests, reports, ticks, .. } = self;
        let mut done = poll_ticks(ticks, sequencer)?;
        done += turn(requests, |message| match unwrap(message) {
            Some((wrapped, request)) => sequencer.accept(wrapped.session as u16, wrapped.sent, message.stamp, request),
            None => {
                sequencer.refuse();
                Ok(())
            }
        })?;
        done += turn(reports, |message| sequencer.report(message.stamp, message))?;
        if sequencer.queued() > 0 {
            done += sequencer.flush()?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        let mut sources = vec![&self.requests, &self.reports];
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
    }
}

/// A request as its mover handed it over; none if it is none.
fn unwrap(message: &Message<'_>) -> Option<(HandOver, Request)> {
    let wrapped = HandOver::read_from_bytes(message.payload).ok()?;
    let request = Request::read(message.kind, wrapped.request.get(..wrapped.length as usize)?).ok()?;
    Some((wrapped, request))
}

/// Runs receiver, core and venue line until they are told to stop.
pub(super) fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    let calibration = *clock.calibration();
    let (sequencer, Inbound { requests, from_venue }) = Sequencer::open(clock.clone(), config)?;
    let (request_writer, request_reader) = inner_lane(config, "core.requests", &calibration)?;
    let (report_writer, report_reader) = inner_lane(config, "core.reports", &calibration)?;
    let mut core =
        CoreAgent { clock: clock.clone(), sequencer, requests: request_reader, reports: report_reader, ticks };
    let requests = requests.into_iter().map(Source::of_client).collect();
    let receiver = Mover { clock: clock.clone(), from: requests, to: request_writer, wrap: true };
    let line = Mover { clock: clock.clone(), from: vec![Source::of_venue(from_venue)], to: report_writer, wrap: false };
    let gaps = thread::scope(|scope| {
        let receiver = spawn(scope, "oms-receiver", config, &clock, receiver, stop);
        let line = spawn(scope, "oms-line", config, &clock, line, stop);
        let mut gaps = Gaps::new(core.clock.clone());
        let settled = settle(config.cpu, config.priority).map_err(OmsError::from);
        ready();
        let result = settled.and_then(|()| agent::run(&mut core, config.wait, stop, &mut gaps));
        stop.store(true, Ordering::Release);
        // A mover may wait for room in the core's lane: take what they hand over until they have ended.
        let mut drained = Ok(());
        while !(receiver.is_finished() && line.is_finished()) {
            match if result.is_ok() && drained.is_ok() { core.poll() } else { core.discard() } {
                Ok(0) => tickpath_clock::yield_now(),
                Ok(_) => {}
                Err(e) => drained = Err(e),
            }
        }
        result.and(drained).and(join(receiver)).and(join(line)).map(|()| gaps.into_found())
    })?;
    while core.poll()? > 0 {}
    core.sequencer.stop()?;
    for name in ["core.requests", "core.reports"] {
        let _ = inner_config(config, name)?.place.remove();
    }
    Ok(gaps)
}

fn inner_config(config: &Config, name: &str) -> Result<LogConfig, OmsError> {
    let lanes = LanesConfig { name: format!("{}.{name}", config.lanes.name), ..config.lanes.clone() };
    // Room for the longest message of either lane.
    let mut lane = lanes.venue_reports()?;
    // Frames in here outlive no process: a lane of an earlier run is of no use.
    lane.place = tickpath_log::Place::shared_memory(&lanes.name).map_err(tickpath_log::OpenError::from)?;
    Ok(lane)
}

fn inner_lane(
    config: &Config,
    name: &str,
    calibration: &tickpath_clock::Calibration,
) -> Result<(Writer, Reader), OmsError> {
    let lane = inner_config(config, name)?;
    if lane.place.exists() {
        let _ = lane.place.remove();
    }
    let writer = Writer::open(&lane, calibration)?;
    let reader = crate::lanes::attach(&lane, calibration)?;
    Ok((writer, reader))
}
