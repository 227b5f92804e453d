//! A venue as a process: it serves one OMS over lanes and any number of lines over sockets, resumes when they
//! reconnect, and runs until its stop flag is set.
//!
//! ```text
//!             ┌──────────────── the OMS has exited, or has new lanes ────────────────┐
//!             ▼                                                                      │
//!   start ─> wait for lanes ──> VenueEngine: the journal against these lanes ──> serve ──> stop
//!             its market keeps moving
//! ```
//!
//! Sockets are served all the time, with lanes and without them.

use std::mem::replace;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tickpath_clock::{AdaptiveWait, Clock, HostClock, IdleAction, Wait, apply_schedule, sleep_ns};
use tickpath_log::{
    Config as LogConfig, LogOpenError, LogPath, OverflowPolicy, Reader, ReaderStart, Registration, Writer,
};
use tickpath_venue_native::LinePassword;

use crate::acceptor::LineAcceptor;
use crate::engine::VenueEngine;
use crate::error::{EngineError, RecoverError, VenueServerError};
use crate::event::VenueEvent;
use crate::lanes::{JoinedLanes, LaneEnds, LanePaths, LaneStatus, LanesUnavailable};
use crate::quote_publisher::QuotePublisher;
use crate::settings::Settings;

/// Interval between two checks for absent lanes, and for events that wake no sleeper, in nanoseconds.
const POLL_INTERVAL_NS: u64 = 10_000_000;
/// Interval between two checks that the lanes are still the joined ones, in nanoseconds.
const LANE_CHECK_NS: u64 = 100_000_000;
/// Max sleep, in nanoseconds, of a thread that only its sockets can wake, and so its max delay for messages in its
/// lanes.
const MAX_LANE_DELAY_NS: u64 = 200_000;
/// Patience with an obstacle to joining, in nanoseconds: an OMS that starts removes it sooner, any other one is
/// permanent.
const JOIN_TIMEOUT_NS: u64 = 3_000_000_000;
const MINUTE_NS: u64 = 60_000_000_000;

/// Commands to a running venue, set by a signal handler or another thread.
#[derive(Debug, Clone, Default)]
pub struct VenueControl {
    /// Stops the venue.
    pub stop: Arc<AtomicBool>,
    /// Makes the venue read its file again and apply the faults in it.
    pub reload: Arc<AtomicBool>,
    /// Ends the venue's day, as [`SimVenue::end_of_day`](crate::SimVenue::end_of_day) does.
    pub end_day: Arc<AtomicBool>,
}

/// Runs a venue on this thread until [`VenueControl::stop`] is set.
pub fn run<C: Clock>(
    clock: C,
    settings: Settings,
    control: &VenueControl,
    notify: &mut dyn FnMut(VenueEvent),
) -> Result<(), VenueServerError> {
    // Before the thread is pinned and prioritised, because this measures wake-ups with a second thread.
    let adaptive_wait = (settings.thread.wait == Wait::Adaptive).then(|| AdaptiveWait::new(clock.clone()));
    apply_schedule(settings.thread.cpu, settings.thread.priority)?;
    // Keeps the lines' password out of core dumps. If the system refuses this, LimitCORE=0 must do it.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let has_lanes = !settings.oms.is_empty();
    let paths =
        has_lanes.then(|| LanePaths::new(&settings.oms, settings.venue)).transpose().map_err(LogOpenError::from)?;
    let mut server = VenueServer {
        clock,
        settings,
        paths,
        control,
        notify,
        journal: None,
        engine: None,
        quote_publisher: None,
        acceptor: None,
        topic: None,
        loss_notice: LossNotice::default(),
        adaptive_wait,
    };
    // Opened before any wait, so that a second process of the same venue fails at once.
    server.journal = Some(server.open_journal()?);
    server.open_quote_publisher()?;
    if server.settings.faults.is_any() {
        (server.notify)(VenueEvent::Faults(server.settings.faults));
    }
    server.open_acceptor()?;
    if !has_lanes {
        server.serve_sockets()?;
    }
    let mut left = None;
    while has_lanes && let Some(lanes) = server.await_lanes(left)? {
        let why = match server.resume(lanes)? {
            Some(joined) => server.serve(&joined)?,
            None => LeaveReason::OtherLanes,
        };
        server.leave(why);
        left = Some(why);
    }
    if let (Some(acceptor), Some(engine)) = (&server.acceptor, &mut server.engine) {
        acceptor.close(engine)?;
    }
    let resting = server.engine.as_ref().map(|engine| engine.venue().resting_orders());
    (server.notify)(VenueEvent::Stopped { resting });
    Ok(())
}

struct VenueServer<'a, C> {
    clock: C,
    settings: Settings,
    /// None if no OMS uses lanes.
    paths: Option<LanePaths>,
    control: &'a VenueControl,
    notify: &'a mut dyn FnMut(VenueEvent),
    /// Open journal while there is no engine.
    journal: Option<Writer>,
    engine: Option<VenueEngine<C>>,
    quote_publisher: Option<QuotePublisher<C>>,
    acceptor: Option<LineAcceptor>,
    /// Folder of the tick topic that the market reads.
    topic: Option<FolderId>,
    loss_notice: LossNotice,
    /// Present with the `adaptive` wait alone.
    adaptive_wait: Option<AdaptiveWait<C>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaveReason {
    Stop,
    OmsGone,
    OtherLanes,
    OtherTicks,
}

/// Device and inode of a log's folder: a log that is made anew has another inode.
type FolderId = (u64, u64);

/// Last reported counts of lost messages (refused, missed), and the time of that report, in ticks.
#[derive(Default)]
struct LossNotice {
    lost: (u64, u64),
    at: u64,
}

impl<C: Clock> VenueServer<'_, C> {
    /// Waits for the lanes of a running OMS while the market keeps moving. Returns none if the venue is stopped before.
    fn await_lanes(&mut self, left: Option<LeaveReason>) -> Result<Option<LaneEnds>, VenueServerError> {
        // The exit of an OMS was reported when its lanes were left.
        let (mut has_reported_lanes, mut has_reported_oms) = (false, left == Some(LeaveReason::OmsGone));
        let mut refused_at = None;
        while !self.control.stop.load(Ordering::Acquire) {
            let Some(paths) = &self.paths else { return Ok(None) };
            let absent = match paths.join(self.clock.calibration()) {
                Ok(lanes) => return Ok(Some(lanes)),
                Err(absent) => absent,
            };
            let oms = self.settings.oms.clone();
            match absent {
                LanesUnavailable::Refused(reason) => {
                    let since = *refused_at.get_or_insert_with(|| self.clock.ticks());
                    if self.has_elapsed(JOIN_TIMEOUT_NS, since) {
                        return Err(reason.into());
                    }
                }
                LanesUnavailable::NoLanes => {
                    refused_at = None;
                    if !replace(&mut has_reported_lanes, true) {
                        (self.notify)(VenueEvent::AwaitingLanes { oms, lane: paths.requests.clone() });
                    }
                }
                LanesUnavailable::NoOms => {
                    refused_at = None;
                    // Not reported after missing lanes: an OMS that makes its lanes reads them a moment later.
                    if !(replace(&mut has_reported_oms, true) || has_reported_lanes) {
                        (self.notify)(VenueEvent::AwaitingOms(oms));
                    }
                }
            }
            let started = self.clock.ticks();
            while self.run_once()? > 0 && !self.has_elapsed(POLL_INTERVAL_NS, started) {}
            self.run_periodic_tasks()?;
            match &self.acceptor {
                Some(_) => self.serve_until(started)?,
                None => sleep_ns(POLL_INTERVAL_NS),
            }
        }
        Ok(None)
    }

    /// Serves sockets until [`POLL_INTERVAL_NS`] have passed since `started`.
    fn serve_until(&mut self, started: u64) -> Result<(), VenueServerError> {
        while !self.has_elapsed(POLL_INTERVAL_NS, started) {
            if self.run_once()? == 0 {
                self.idle();
            }
        }
        Ok(())
    }

    /// Serves sockets without lanes until [`VenueControl::stop`] is set.
    fn serve_sockets(&mut self) -> Result<(), VenueServerError> {
        while !self.control.stop.load(Ordering::Acquire) {
            let started = self.clock.ticks();
            self.serve_until(started)?;
            self.run_periodic_tasks()?;
            self.report_losses();
            if let Some(topic) = self.replaced_ticks().cloned() {
                (self.notify)(VenueEvent::TicksReplaced(topic));
                self.recover(None)?;
            }
        }
        Ok(())
    }

    /// Opens the listeners, if the settings name any. Recovers the books first, because sockets are served without
    /// lanes.
    fn open_acceptor(&mut self) -> Result<(), VenueServerError> {
        if self.settings.listen.is_empty() {
            return Ok(());
        }
        self.recover(None)?;
        let Settings { listen, password, most_lines, .. } = &self.settings;
        let check = password.as_ref().map(LinePassword::check);
        let mut acceptor = LineAcceptor::open(HostClock::get()?, listen, check, *most_lines, self.notify)?;
        acceptor.cut = self.settings.faults.cut;
        self.acceptor = Some(acceptor);
        Ok(())
    }

    /// Recovers the venue from its journal, on these lanes or without lanes. Returns the number of resting orders.
    fn recover(&mut self, lanes: Option<(Reader, Writer)>) -> Result<usize, VenueServerError> {
        let (journal, market) = self.engine.take().map_or_else(|| (self.journal.take(), None), VenueEngine::into_parts);
        let journal = journal.map_or_else(|| self.open_journal(), Ok)?;
        let market = self.open_market(market)?;
        let config = self.settings.engine_config();
        let engine = VenueEngine::recover(self.clock.clone(), &config, journal, lanes, market)?;
        // Before the venue serves anybody, and after a recovery that may take long: without a fresh price, an OMS denies
        // the first orders.
        self.publish_quotes()?;
        Ok(self.engine.insert(engine).venue().resting_orders())
    }

    /// Returns the tick topic, if its feed has created it anew.
    fn replaced_ticks(&self) -> Option<&LogPath> {
        let is_other = |path: &&LogPath| folder(path).is_some_and(|found| self.topic != Some(found));
        self.settings.ticks.as_ref().filter(is_other)
    }

    /// Runs one turn of lanes, market and sockets. Returns the number of messages handled.
    fn run_once(&mut self) -> Result<usize, EngineError> {
        let Some(engine) = &mut self.engine else { return Ok(0) };
        let mut done = engine.poll()?;
        if let Some(acceptor) = &mut self.acceptor {
            done += acceptor.run_once(engine, self.notify)?;
        }
        if let Some(adaptive_wait) = self.adaptive_wait.as_mut().filter(|_| done > 0) {
            adaptive_wait.note_work();
        }
        Ok(done)
    }

    /// Waits after a turn without work, as the `wait` setting asks.
    fn idle(&mut self) {
        let action = match (self.settings.thread.wait, &mut self.adaptive_wait) {
            (Wait::Busy, _) => IdleAction::Spin,
            (Wait::Yield, _) => IdleAction::Yield,
            (Wait::Block | Wait::Adaptive, None) => IdleAction::Sleep(POLL_INTERVAL_NS),
            (Wait::Block | Wait::Adaptive, Some(adaptive_wait)) => adaptive_wait.next_action(POLL_INTERVAL_NS),
        };
        match (action, &self.engine, &self.acceptor) {
            (IdleAction::Sleep(ns), Some(engine), None) => engine.sleep(ns),
            (IdleAction::Sleep(ns), Some(engine), Some(acceptor)) => {
                let has_lanes = self.paths.is_some() || self.topic.is_some();
                acceptor.sleep(
                    engine.max_sleep_ns(if has_lanes { ns.min(MAX_LANE_DELAY_NS) } else { ns }),
                    engine.is_halted(),
                );
            }
            (IdleAction::Sleep(_), None, _) => IdleAction::Yield.perform(),
            (action, ..) => action.perform(),
        }
        if let (IdleAction::Sleep(_), Some(adaptive_wait)) = (action, &mut self.adaptive_wait) {
            adaptive_wait.note_wake_up();
        }
    }

    /// Recovers the venue from its journal on these lanes. Returns none if the lanes were removed meanwhile.
    fn resume(&mut self, lanes: LaneEnds) -> Result<Option<JoinedLanes>, VenueServerError> {
        let LaneEnds { requests, reports, joined } = lanes;
        let resting = match self.recover(Some((requests, reports))) {
            Err(VenueServerError::Recover(RecoverError::Open(LogOpenError::NotFound(_)))) => return Ok(None),
            recovered => recovered?,
        };
        (self.notify)(VenueEvent::Serving { oms: self.settings.oms.clone(), resting });
        self.loss_notice = LossNotice::default();
        Ok(Some(joined))
    }

    fn serve(&mut self, joined: &JoinedLanes) -> Result<LeaveReason, VenueServerError> {
        let watch = self.clock.calibration().ticks_of_ns(LANE_CHECK_NS);
        let mut checked = self.clock.ticks();
        while !self.control.stop.load(Ordering::Acquire) {
            if self.run_once()? > 0 {
                continue;
            }
            let now = self.clock.ticks();
            if now.wrapping_sub(checked) < watch {
                self.idle();
                continue;
            }
            checked = now;
            if let Some(left) = self.check_lanes(joined)? {
                return Ok(left);
            }
        }
        Ok(LeaveReason::Stop)
    }

    /// Does the chores, reports losses, and checks that lanes and ticks are still the same. Returns the reason to
    /// leave.
    fn check_lanes(&mut self, joined: &JoinedLanes) -> Result<Option<LeaveReason>, VenueServerError> {
        self.run_periodic_tasks()?;
        self.report_losses();
        Ok(match joined.check() {
            LaneStatus::OmsExited => Some(LeaveReason::OmsGone),
            LaneStatus::Replaced => Some(LeaveReason::OtherLanes),
            LaneStatus::Same => self.replaced_ticks().map(|_| LeaveReason::OtherTicks),
        })
    }

    fn leave(&mut self, why: LeaveReason) {
        let oms = self.settings.oms.clone();
        let Some(engine) = &mut self.engine else { return (self.notify)(VenueEvent::LanesReplaced(oms)) };
        engine.leave();
        let resting = engine.venue().resting_orders();
        match why {
            LeaveReason::Stop => {}
            LeaveReason::OmsGone => (self.notify)(VenueEvent::OmsExited { oms, resting }),
            LeaveReason::OtherLanes => (self.notify)(VenueEvent::LanesReplaced(oms)),
            LeaveReason::OtherTicks => {
                self.settings.ticks.iter().for_each(|topic| (self.notify)(VenueEvent::TicksReplaced(topic.clone())))
            }
        }
    }

    /// Publishes quotes, reloads the faults and ends the day when due, with lanes and without them.
    fn run_periodic_tasks(&mut self) -> Result<(), VenueServerError> {
        self.publish_quotes()?;
        self.reload()?;
        self.end_day()
    }

    fn publish_quotes(&mut self) -> Result<(), VenueServerError> {
        match (&mut self.quote_publisher, &self.settings.publish) {
            (Some(feed), Some(topic)) => {
                feed.publish_if_due().map_err(|reason| VenueServerError::Publish(topic.clone(), reason))
            }
            _ => Ok(()),
        }
    }

    /// Ends the day if [`VenueControl::end_day`] is set. Without an engine there is no order to expire, and the flag
    /// stays set until there is an engine.
    fn end_day(&mut self) -> Result<(), VenueServerError> {
        let Some(engine) = &mut self.engine else { return Ok(()) };
        if !self.control.end_day.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let before = engine.venue().resting_orders();
        engine.end_of_day()?;
        let resting = engine.venue().resting_orders();
        (self.notify)(VenueEvent::DayEnded { expired: before.saturating_sub(resting), resting });
        Ok(())
    }

    /// Reads the file again and applies its faults, if [`VenueControl::reload`] is set. Reports mistakes and keeps the
    /// old faults.
    fn reload(&mut self) -> Result<(), VenueServerError> {
        if !self.control.reload.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        match Settings::read(&self.settings.file) {
            Ok(Settings { faults, .. }) => {
                self.settings.faults = faults;
                if let Some(acceptor) = &mut self.acceptor {
                    acceptor.cut = faults.cut;
                }
                if let Some(engine) = &mut self.engine {
                    engine.set_faults(faults)?;
                }
                (self.notify)(VenueEvent::Faults(faults));
            }
            Err(wrong) => (self.notify)(VenueEvent::ReloadFailed(wrong.to_string())),
        }
        Ok(())
    }

    /// Reports the number of lost messages, at most once a minute and only after an increase.
    fn report_losses(&mut self) {
        let Some(engine) = &self.engine else { return };
        let lost = (engine.refused(), engine.missed());
        let is_due = self.loss_notice.lost == (0, 0) || self.has_elapsed(MINUTE_NS, self.loss_notice.at);
        if lost != self.loss_notice.lost && is_due {
            self.loss_notice = LossNotice { lost, at: self.clock.ticks() };
            (self.notify)(VenueEvent::MessagesLost { refused: lost.0, missed: lost.1 });
        }
    }

    fn open_journal(&self) -> Result<Writer, VenueServerError> {
        let opened = Writer::open(&self.settings.engine_config().journal, self.clock.calibration());
        opened.map_err(|reason| match reason {
            LogOpenError::HasWriter { pid, .. } => {
                VenueServerError::AlreadyRunning { journal: self.settings.journal.clone(), pid }
            }
            reason => reason.into(),
        })
    }

    /// Opens the tick topic, which it creates if the feed has not done so yet. Keeps the reader `before` on the same
    /// topic.
    fn open_market(&mut self, before: Option<Reader>) -> Result<Option<Reader>, LogOpenError> {
        let Some(path) = &self.settings.ticks else { return Ok(None) };
        if !path.exists() {
            let topic = LogConfig::topic(path.clone(), OverflowPolicy::Overwrite);
            // Fails if the feed has created the topic meanwhile, and then the topic exists as well.
            drop(Writer::open(&topic, self.clock.calibration()));
        }
        let found = folder(path);
        if before.is_some() && found == self.topic {
            return Ok(before);
        }
        self.topic = found;
        let started = self.clock.ticks();
        loop {
            match Reader::open(path, ReaderStart::Oldest, Registration::Registered) {
                // The feed is still creating it.
                Err(LogOpenError::NotFound(_)) if !self.has_elapsed(JOIN_TIMEOUT_NS, started) => {
                    sleep_ns(POLL_INTERVAL_NS)
                }
                opened => return opened.map(Some),
            }
        }
    }

    /// Opens the topic for published quotes. Its reader may hold the writer's place for a moment while it creates the
    /// topic.
    fn open_quote_publisher(&mut self) -> Result<(), LogOpenError> {
        let Settings { publish: Some(topic), quotes, .. } = &self.settings else { return Ok(()) };
        let started = self.clock.ticks();
        self.quote_publisher = loop {
            match QuotePublisher::open(self.clock.clone(), topic, quotes) {
                Err(LogOpenError::HasWriter { .. }) if !self.has_elapsed(JOIN_TIMEOUT_NS, started) => {
                    sleep_ns(POLL_INTERVAL_NS)
                }
                opened => break Some(opened?),
            }
        };
        Ok(())
    }

    fn has_elapsed(&self, ns: u64, since: u64) -> bool {
        self.clock.ticks().wrapping_sub(since) >= self.clock.calibration().ticks_of_ns(ns)
    }
}

fn folder(path: &LogPath) -> Option<FolderId> {
    std::fs::metadata(path.dir()).map(|folder| (folder.dev(), folder.ino())).ok()
}
