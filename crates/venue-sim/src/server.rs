//! A venue as a process: it serves one OMS over lanes and any number of lines over sockets, resumes when they
//! reconnect, and runs until its stop flag is set.
//!
//! ```text
//!             ┌──────────────── the OMS has exited, or has new lanes ────────────────┐
//!             ▼                                                                      │
//!   start ─> wait for lanes ──> Line::resume: the journal against these lanes ──> serve ──> stop
//!             its market keeps moving
//! ```
//!
//! Sockets are served all the time, with lanes and without them.

use std::mem::replace;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tickpath_clock::{AdaptiveWait, Clock, HostClock, Rest, Wait, settle, sleep_ns};
use tickpath_log::{Config as LogConfig, OpenError, Place, Policy, Reader, Registration, Start, Writer};
use tickpath_venue_native::Password;

use crate::error::{LineError, RecoverError, ServerError};
use crate::event::Event;
use crate::feed::Feed;
use crate::gate::Gate;
use crate::lanes::{Absent, Found, Joined, LanePlaces, Lanes};
use crate::line::Line;
use crate::settings::Settings;

/// Interval between two checks for absent lanes, and for events that wake no sleeper, in nanoseconds.
const LOOK_NS: u64 = 10_000_000;
/// Interval between two checks that the lanes are still the joined ones, in nanoseconds.
const WATCH_NS: u64 = 100_000_000;
/// Max sleep, in nanoseconds, of a thread that only its sockets can wake, and so its max delay for messages in its
/// lanes.
const LANES_NS: u64 = 200_000;
/// Patience with an obstacle to joining, in nanoseconds: an OMS that starts removes it sooner, any other one is
/// permanent.
const PATIENCE_NS: u64 = 3_000_000_000;
const MINUTE_NS: u64 = 60_000_000_000;

/// Commands to a running venue, set by a signal handler or another thread.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    /// Stops the venue.
    pub stop: Arc<AtomicBool>,
    /// Makes the venue read its file again and apply the faults in it.
    pub reload: Arc<AtomicBool>,
    /// Ends the venue's day, as [`Venue::end_of_day`](crate::Venue::end_of_day) does.
    pub end_day: Arc<AtomicBool>,
}

/// Runs a venue on this thread until [`Orders::stop`] is set.
pub fn run<C: Clock>(
    clock: C,
    settings: Settings,
    orders: &Orders,
    tell: &mut dyn FnMut(Event),
) -> Result<(), ServerError> {
    // Before the thread is pinned and prioritised, because this measures wake-ups with a second thread.
    let rests = (settings.wait == Wait::Adaptive).then(|| AdaptiveWait::new(clock.clone()));
    settle(settings.cpu, settings.priority)?;
    // Keeps the lines' password out of core dumps. If the system refuses this, LimitCORE=0 must do it.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let has_lanes = !settings.oms.is_empty();
    let places =
        has_lanes.then(|| LanePlaces::new(&settings.oms, settings.venue)).transpose().map_err(OpenError::from)?;
    let mut server = Server {
        clock,
        settings,
        places,
        orders,
        tell,
        journal: None,
        line: None,
        feed: None,
        gate: None,
        topic: None,
        loss_notice: LossNotice::default(),
        rests,
    };
    // Opened before any wait, so that a second process of the same venue fails at once.
    server.journal = Some(server.open_journal()?);
    server.open_feed()?;
    if server.settings.faults.is_any() {
        (server.tell)(Event::Faults(server.settings.faults));
    }
    server.open_gate()?;
    if !has_lanes {
        server.serve_sockets()?;
    }
    let mut left = None;
    while has_lanes && let Some(lanes) = server.await_lanes(left)? {
        let why = match server.resume(lanes)? {
            Some(joined) => server.serve(&joined)?,
            None => Left::OtherLanes,
        };
        server.leave(why);
        left = Some(why);
    }
    if let (Some(gate), Some(line)) = (&server.gate, &mut server.line) {
        gate.close(line)?;
    }
    let rest = server.line.as_ref().map(|line| line.venue().working());
    (server.tell)(Event::Stopped { rest });
    Ok(())
}

struct Server<'a, C> {
    clock: C,
    settings: Settings,
    /// None if no OMS uses lanes.
    places: Option<LanePlaces>,
    orders: &'a Orders,
    tell: &'a mut dyn FnMut(Event),
    /// Open journal while there is no line.
    journal: Option<Writer>,
    line: Option<Line<C>>,
    feed: Option<Feed<C>>,
    gate: Option<Gate>,
    /// Folder of the tick topic that the market reads.
    topic: Option<Folder>,
    loss_notice: LossNotice,
    /// Present with the `adaptive` wait alone.
    rests: Option<AdaptiveWait<C>>,
}

/// Reason for leaving the lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Stop,
    OmsGone,
    OtherLanes,
    OtherTicks,
}

/// Device and inode of a log's folder: a log that is made anew has another inode.
type Folder = (u64, u64);

/// Last reported counts of lost messages (refused, missed), and the time of that report, in ticks.
#[derive(Default)]
struct LossNotice {
    lost: (u64, u64),
    at: u64,
}

impl<C: Clock> Server<'_, C> {
    /// Waits for the lanes of a running OMS while the market keeps moving. Returns none if the venue is stopped before.
    fn await_lanes(&mut self, left: Option<Left>) -> Result<Option<Lanes>, ServerError> {
        // The exit of an OMS was reported when its lanes were left.
        let (mut told_lanes, mut told_oms) = (false, left == Some(Left::OmsGone));
        let mut refused_at = None;
        while !self.orders.stop.load(Ordering::Acquire) {
            let Some(places) = &self.places else { return Ok(None) };
            let absent = match places.join(self.clock.calibration()) {
                Ok(lanes) => return Ok(Some(lanes)),
                Err(absent) => absent,
            };
            let oms = self.settings.oms.clone();
            match absent {
                Absent::Refused(reason) => {
                    let since = *refused_at.get_or_insert_with(|| self.clock.ticks());
                    if self.is_over(PATIENCE_NS, since) {
                        return Err(reason.into());
                    }
                }
                Absent::Lanes => {
                    refused_at = None;
                    if !replace(&mut told_lanes, true) {
                        (self.tell)(Event::NoLanes { oms, lane: places.requests.clone() });
                    }
                }
                Absent::Oms => {
                    refused_at = None;
                    // Not reported after missing lanes: an OMS that makes its lanes reads them a moment later.
                    if !(replace(&mut told_oms, true) || told_lanes) {
                        (self.tell)(Event::NoOms { oms });
                    }
                }
            }
            let began = self.clock.ticks();
            while self.turn()? > 0 && !self.is_over(LOOK_NS, began) {}
            self.chores()?;
            match &self.gate {
                Some(_) => self.rest_until(began)?,
                None => sleep_ns(LOOK_NS),
            }
        }
        Ok(None)
    }

    /// Serves sockets until [`LOOK_NS`] have passed since `began`.
    fn rest_until(&mut self, began: u64) -> Result<(), ServerError> {
        while !self.is_over(LOOK_NS, began) {
            if self.turn()? == 0 {
                self.rest();
            }
        }
        Ok(())
    }

    /// Serves sockets without lanes until [`Orders::stop`] is set.
    fn serve_sockets(&mut self) -> Result<(), ServerError> {
        while !self.orders.stop.load(Ordering::Acquire) {
            let began = self.clock.ticks();
            self.rest_until(began)?;
            self.chores()?;
            self.tell_lost();
            let is_other = |place: &Place| folder(place).is_some_and(|found| self.topic != Some(found));
            if let Some(topic) = self.settings.ticks.clone().filter(is_other) {
                (self.tell)(Event::OtherTicks(topic));
                self.resume_without_lanes()?;
            }
        }
        Ok(())
    }

    /// Opens the listeners, if the settings name any. Recovers the books first, because sockets are served without
    /// lanes.
    fn open_gate(&mut self) -> Result<(), ServerError> {
        if self.settings.listen.is_empty() {
            return Ok(());
        }
        self.resume_without_lanes()?;
        let Settings { listen, password, most_lines, .. } = &self.settings;
        let check = password.as_ref().map(Password::check);
        let mut gate = Gate::open(HostClock::get()?, listen, check, *most_lines, self.tell)?;
        gate.set_cut(self.settings.faults.cut);
        self.gate = Some(gate);
        Ok(())
    }

    fn resume_without_lanes(&mut self) -> Result<(), ServerError> {
        let (journal, market) = self.line.take().map_or_else(|| (self.journal.take(), None), Line::into_parts);
        let journal = journal.map_or_else(|| self.open_journal(), Ok)?;
        let market = self.open_market(market)?;
        self.line = Some(Line::recover(self.clock.clone(), &self.settings.line(), journal, None, market)?);
        Ok(())
    }

    /// Runs one turn of lanes, market and sockets. Returns the number of messages handled.
    fn turn(&mut self) -> Result<usize, LineError> {
        let Some(line) = &mut self.line else { return Ok(0) };
        let mut done = line.poll()?;
        if let Some(gate) = &mut self.gate {
            done += gate.turn(line, self.tell)?;
        }
        if let Some(rests) = self.rests.as_mut().filter(|_| done > 0) {
            rests.found();
        }
        Ok(done)
    }

    /// Waits after a turn without work, as the `wait` setting asks.
    fn rest(&mut self) {
        let rest = match (self.settings.wait, &mut self.rests) {
            (Wait::Busy, _) => Rest::Spin,
            (Wait::Yield, _) => Rest::Yield,
            (Wait::Block | Wait::Adaptive, None) => Rest::Sleep(LOOK_NS),
            (Wait::Block | Wait::Adaptive, Some(rests)) => rests.rest(LOOK_NS),
        };
        match (rest, &self.line, &self.gate) {
            (Rest::Sleep(ns), Some(line), None) => line.sleep(ns),
            (Rest::Sleep(ns), Some(line), Some(gate)) => {
                let has_lanes = self.places.is_some() || self.topic.is_some();
                gate.sleep(line.sleeps_ns(if has_lanes { ns.min(LANES_NS) } else { ns }), line.halts());
            }
            (Rest::Sleep(_), None, _) => Rest::Yield.take(),
            (rest, ..) => rest.take(),
        }
        if let (Rest::Sleep(_), Some(rests)) = (rest, &mut self.rests) {
            rests.woke();
        }
    }

    /// Recovers the venue from its journal on these lanes. Returns none if the lanes were removed meanwhile.
    fn resume(&mut self, lanes: Lanes) -> Result<Option<Joined>, ServerError> {
        let Lanes { requests, reports, joined } = lanes;
        let (journal, market) = self.line.take().map_or_else(|| (self.journal.take(), None), Line::into_parts);
        let journal = journal.map_or_else(|| self.open_journal(), Ok)?;
        let market = self.open_market(market)?;
        match Line::resume(self.clock.clone(), &self.settings.line(), journal, requests, reports, market) {
            Ok(line) => {
                let rest = line.venue().working();
                (self.tell)(Event::Serves { oms: self.settings.oms.clone(), rest });
                (self.line, self.loss_notice) = (Some(line), LossNotice::default());
                Ok(Some(joined))
            }
            Err(RecoverError::Open(OpenError::NotFound(_))) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    fn serve(&mut self, joined: &Joined) -> Result<Left, ServerError> {
        let watch = self.clock.calibration().ticks_of_ns(WATCH_NS);
        let mut looked = self.clock.ticks();
        while !self.orders.stop.load(Ordering::Acquire) {
            if self.turn()? > 0 {
                continue;
            }
            let now = self.clock.ticks();
            if now.wrapping_sub(looked) < watch {
                self.rest();
                continue;
            }
            looked = now;
            if let Some(left) = self.look(joined)? {
                return Ok(left);
            }
        }
        Ok(Left::Stop)
    }

    /// Does the chores, reports losses, and checks that lanes and ticks are still the same. Returns the reason to
    /// leave.
    fn look(&mut self, joined: &Joined) -> Result<Option<Left>, ServerError> {
        self.chores()?;
        self.tell_lost();
        let is_other = |place: &Place| folder(place).is_some_and(|found| self.topic != Some(found));
        Ok(match joined.look() {
            Found::OmsGone => Some(Left::OmsGone),
            Found::Other => Some(Left::OtherLanes),
            Found::Same => self.settings.ticks.as_ref().filter(|place| is_other(place)).map(|_| Left::OtherTicks),
        })
    }

    fn leave(&mut self, why: Left) {
        let oms = self.settings.oms.clone();
        let Some(line) = &mut self.line else { return (self.tell)(Event::OtherLanes { oms }) };
        line.leave();
        let rest = line.venue().working();
        match why {
            Left::Stop => {}
            Left::OmsGone => (self.tell)(Event::OmsGone { oms, rest }),
            Left::OtherLanes => (self.tell)(Event::OtherLanes { oms }),
            Left::OtherTicks => {
                self.settings.ticks.iter().for_each(|topic| (self.tell)(Event::OtherTicks(topic.clone())))
            }
        }
    }

    /// Publishes quotes, reloads the faults and ends the day when due, with lanes and without them.
    fn chores(&mut self) -> Result<(), ServerError> {
        if let (Some(feed), Some(topic)) = (&mut self.feed, &self.settings.publish) {
            feed.turn().map_err(|reason| ServerError::Publish { topic: topic.clone(), reason })?;
        }
        self.reload()?;
        self.end_day()
    }

    /// Ends the day if [`Orders::end_day`] is set. Without a line there is no order to expire, and the flag stays set
    /// until there is a line.
    fn end_day(&mut self) -> Result<(), ServerError> {
        let Some(line) = &mut self.line else { return Ok(()) };
        if !self.orders.end_day.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let before = line.venue().working();
        line.end_of_day()?;
        let rest = line.venue().working();
        (self.tell)(Event::DayEnded { expired: before.saturating_sub(rest), rest });
        Ok(())
    }

    /// Reads the file again and applies its faults, if [`Orders::reload`] is set. Reports mistakes and keeps the old
    /// faults.
    fn reload(&mut self) -> Result<(), ServerError> {
        if !self.orders.reload.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        match Settings::read(&self.settings.file) {
            Ok(Settings { faults, .. }) => {
                self.settings.faults = faults;
                if let Some(gate) = &mut self.gate {
                    gate.set_cut(faults.cut);
                }
                if let Some(line) = &mut self.line {
                    line.set_faults(faults)?;
                }
                (self.tell)(Event::Faults(faults));
            }
            Err(wrong) => (self.tell)(Event::NotTaken(wrong.to_string())),
        }
        Ok(())
    }

    /// Reports the number of lost messages, at most once a minute and only after an increase.
    fn tell_lost(&mut self) {
        let Some(line) = &self.line else { return };
        let lost = (line.refused(), line.missed());
        let is_due = self.loss_notice.lost == (0, 0) || self.is_over(MINUTE_NS, self.loss_notice.at);
        if lost != self.loss_notice.lost && is_due {
            self.loss_notice = LossNotice { lost, at: self.clock.ticks() };
            (self.tell)(Event::Lost { refused: lost.0, missed: lost.1 });
        }
    }

    fn open_journal(&self) -> Result<Writer, ServerError> {
        let opened = Writer::open(&self.settings.line().journal, self.clock.calibration());
        opened.map_err(|reason| match reason {
            OpenError::HasWriter { pid, .. } => ServerError::Runs { journal: self.settings.journal.clone(), pid },
            reason => reason.into(),
        })
    }

    /// Opens the tick topic, which it creates if the feed has not done so yet. Keeps the reader `before` on the same
    /// topic.
    fn open_market(&mut self, before: Option<Reader>) -> Result<Option<Reader>, OpenError> {
        let Some(place) = &self.settings.ticks else { return Ok(None) };
        if !place.exists() {
            let topic = LogConfig::topic(place.clone(), Policy::Overwrite);
            // Fails if the feed has created the topic meanwhile, and then the topic exists as well.
            drop(Writer::open(&topic, self.clock.calibration()));
        }
        let found = folder(place);
        if before.is_some() && found == self.topic {
            return Ok(before);
        }
        self.topic = found;
        let began = self.clock.ticks();
        loop {
            match Reader::open(place, Start::Oldest, Registration::Registered) {
                // The feed is still creating it.
                Err(OpenError::NotFound(_)) if !self.is_over(PATIENCE_NS, began) => sleep_ns(LOOK_NS),
                opened => return opened.map(Some),
            }
        }
    }

    /// Opens the topic for published quotes. Its reader may hold the writer's place for a moment while it creates the
    /// topic.
    fn open_feed(&mut self) -> Result<(), OpenError> {
        let Settings { publish: Some(topic), quotes, .. } = &self.settings else { return Ok(()) };
        let began = self.clock.ticks();
        self.feed = loop {
            match Feed::open(self.clock.clone(), topic, quotes) {
                Err(OpenError::HasWriter { .. }) if !self.is_over(PATIENCE_NS, began) => sleep_ns(LOOK_NS),
                opened => break Some(opened?),
            }
        };
        Ok(())
    }

    fn is_over(&self, ns: u64, since: u64) -> bool {
        self.clock.ticks().wrapping_sub(since) >= self.clock.calibration().ticks_of_ns(ns)
    }
}

fn folder(place: &Place) -> Option<Folder> {
    std::fs::metadata(place.dir()).map(|folder| (folder.dev(), folder.ino())).ok()
}
