//! Release: an output leaves once its input is as durable as its session asks, and its lane has room.
//!
//! ```text
//!   input ─> journal ─> core ─> outputs ──┬── os, lane clear ──────────────> lane
//!                                         ├── disk ─> held, in order ─sync─> lane
//!                                         └── lane full, or no reader ─────> Returned: waits in the core
//! ```
//!
//! A venue with lines has its lane behind the choice of a line; a request that no line takes now comes back, too.
//!
//! Held outputs stay in order for each lane. A request that comes back is an input: it waits in the core, is checked
//! again, and leaves by a `Release`.

use tickpath_clock::Clock;
use tickpath_log::PublishError;
use tickpath_market::VenueId;
use tickpath_oms_core::{Input, KILL_DISK, Kill, Output, Release, Returned};

use crate::OmsError;
use crate::commit::{AckLevel, Commit};
use crate::lines::Passed;
use crate::notice::Notice;
use crate::outbound::{Held, Outbound};
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Finds the venues that have disconnected. Their requests wait in the core from now on, and are checked again.
    #[cold]
    pub(crate) fn look_after_venues(&mut self) -> Result<usize, OmsError> {
        let mut done = 0;
        for place in 0..self.venues.len() {
            let venue = VenueId(place as u16);
            let is_gone = self.venues[place].as_ref().is_some_and(|log| !log.is_read());
            if is_gone && self.core.is_up(venue) {
                self.line(venue, false)?;
                done += 1;
            }
            done += self.give_up_lines(venue)?;
        }
        Ok(done)
    }

    /// Finds the venues that can be reached again, and releases the requests that wait for them.
    #[cold]
    pub(crate) fn serve_venues(&mut self) -> Result<usize, OmsError> {
        let mut done = 0;
        for place in 0..self.venues.len() {
            let venue = VenueId(place as u16);
            let Some(outbound) = &mut self.venues[place] else { continue };
            if !outbound.is_clear() || !outbound.is_open() {
                continue;
            }
            if !self.core.is_up(venue) {
                self.line(venue, true)?;
                done += 1;
            }
            while let Some((order, request)) = self.core.next_waiting(venue) {
                if let (Some(line), Some(lines)) = (self.core.refused_by(venue), self.lines(venue)) {
                    lines.avoid(request.client_order_id().0, line);
                }
                if self.venues[place].as_mut().is_some_and(|outbound| outbound.room_for(&request).is_err()) {
                    break;
                }
                let now = self.clock.ticks();
                let (reference_price, reference_age_ns) = self.reference(request.symbol(), now);
                let (order, request) = (order.0, request.client_order_id().0);
                let reserved = [0; 6];
                let release = Release { order, request, reference_price, reference_age_ns, venue, reserved };
                // The request keeps its age when it comes back once more.
                let since = self.core.waits_since(venue).unwrap_or(now);
                let sequence = self.apply(now, &Input::Release(release))?;
                self.let_venues(sequence, since)?;
                self.let_sessions(sequence, now)?;
                self.after_input()?;
                done += 1;
            }
        }
        Ok(done)
    }

    /// Releases the held outputs that are durable by now. Returns their number.
    #[cold]
    pub(crate) fn let_held(&mut self) -> Result<usize, OmsError> {
        let synced = self.commit.as_ref().map_or(u64::MAX, Commit::synced);
        let before = self.held;
        for place in 0..self.venues.len() {
            while let Some(held) = self.venues[place].as_mut().and_then(|log| log.next(synced, false)) {
                self.held -= 1;
                self.send(VenueId(place as u16), held.stamp, held.output)?;
            }
        }
        self.take_back()?;
        for place in 0..self.sessions.len() {
            while let Some(held) = self.sessions[place].next(synced, self.disk_failed) {
                self.held -= 1;
                self.sessions[place].publish(self.clock.ticks(), &held.output).map_err(OmsError::Lane)?;
            }
        }
        if let Some(history) = &mut self.history {
            let may_leave = |held: &mut Held| self.disk_failed || !held.for_disk || held.sequence < synced;
            while let Some(held) = self.late.pop_front_if(may_leave) {
                self.held -= 1;
                history.say(self.clock.ticks(), &held.output)?;
            }
        }
        if before > self.held
            && let Some(bell) = &self.bell
        {
            bell();
        }
        Ok(before - self.held)
    }

    /// Handles a failed disk: denies new orders from here on and those that had not left, passes cancels, and releases
    /// all held reports. The denials come first, so that a client that receives a report of an order which the disk
    /// does not have also receives that order's end.
    #[cold]
    pub(crate) fn fail_disk(&mut self, why: &str) -> Result<usize, OmsError> {
        self.disk_failed = true;
        self.notices.add(Notice::DiskFailed(why.to_owned()));
        self.take(self.clock.ticks(), &Input::Kill(Kill { scope: KILL_DISK, on: 1, ..Kill::default() }))?;
        for place in 0..self.venues.len() {
            let held = self.venues[place].as_mut().map(Outbound::give_up).unwrap_or_default();
            self.held -= held.len();
            let venue = VenueId(place as u16);
            self.returning.extend(held.into_iter().map(|Held { stamp, output, .. }| (venue, stamp, output, true)));
        }
        self.take_back()?;
        Ok(1 + self.let_held()?)
    }

    /// Releases the core's requests. Reading the clock costs as much as a check, so the frames carry T1.
    #[inline]
    pub(crate) fn let_venues(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        let waits_for_disk = self.waits_for_disk();
        let Self { outputs, venues, levels, returning, held, departure, .. } = self;
        for output in outputs.iter() {
            let Output::Venue { venue, session, .. } = output else { continue };
            let for_disk = waits_for_disk && is_for_disk(levels, *session);
            match venues.get_mut(usize::from(venue.0)) {
                Some(Some(log)) if !for_disk && log.is_clear() && returning.is_empty() => {
                    match log.publish(stamp, output) {
                        Ok(passed) => departure.handed_over |= passed == Passed::HandedOver,
                        Err(e @ (PublishError::Full | PublishError::NoReader)) => {
                            departure.queued = true;
                            returning.push((*venue, stamp, *output, matches!(e, PublishError::Full)));
                        }
                        Err(e) => return Err(OmsError::Lane(e)),
                    }
                }
                // A request behind one that came back comes back, too: a venue must not receive a cancel before its
                // order. A venue without lanes counts as always down.
                log => {
                    departure.queued = true;
                    match log {
                        Some(Some(log)) if returning.iter().all(|(to, ..)| to != venue) => {
                            log.hold(Held { sequence, stamp, for_disk, output: *output });
                            *held += 1;
                        }
                        log => returning.push((*venue, stamp, *output, matches!(log, Some(Some(_))))),
                    }
                }
            }
        }
        Ok(())
    }

    /// Publishes a request to its venue. A request that the lane does not take comes back once this input is done.
    #[inline]
    pub(crate) fn send(&mut self, venue: VenueId, stamp: u64, output: Output) -> Result<(), OmsError> {
        // A request behind one that came back comes back, too: a venue must not receive a cancel before its order.
        let is_behind = !self.returning.is_empty() && self.returning.iter().any(|(to, ..)| *to == venue);
        let Some(Some(log)) = self.venues.get_mut(usize::from(venue.0)) else { return Ok(()) };
        let sent = if is_behind { Err(PublishError::Full) } else { log.publish(stamp, &output) };
        match sent {
            Ok(_) => Ok(()),
            Err(e @ (PublishError::Full | PublishError::NoReader)) => {
                self.departure.queued = true;
                self.returning.push((venue, stamp, output, matches!(e, PublishError::Full)));
                Ok(())
            }
            Err(e) => Err(OmsError::Lane(e)),
        }
    }

    /// Returns the held requests behind one that comes back, too: the venue must not receive a cancel before its order.
    fn give_up_behind(&mut self) {
        for place in 0..self.returning.len() {
            let (venue, .., is_there) = self.returning[place];
            let Some(Some(log)) = self.venues.get_mut(usize::from(venue.0)) else { continue };
            let held = log.give_up();
            self.held -= held.len();
            self.returning.extend(held.into_iter().map(|Held { stamp, output, .. }| (venue, stamp, output, is_there)));
        }
    }

    /// Journals that requests did not leave, and that a venue without a reader is down. A client whose request can
    /// never leave any more receives a report.
    #[cold]
    pub(crate) fn take_back(&mut self) -> Result<(), OmsError> {
        self.give_up_behind();
        for (venue, stamp, output, is_there) in std::mem::take(&mut self.returning) {
            let Output::Venue { request, .. } = output else { continue };
            let now = self.clock.ticks();
            let sequence = self.apply(now, &Input::Returned(Returned::new(venue, stamp, &request)))?;
            self.let_sessions(sequence, now)?;
            if !is_there && self.core.is_up(venue) {
                self.line(venue, false)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn let_sessions(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        let waits_for_disk = self.waits_for_disk();
        let Self { outputs, sessions, history, late, levels, held, meter, .. } = self;
        for output in outputs.iter() {
            let (Output::Report { session, .. } | Output::Denied { session, .. }) = output else { continue };
            if let Some(meter) = meter {
                meter.said(output);
            }
            let for_disk = waits_for_disk && is_for_disk(levels, *session);
            let Some(log) = sessions.get_mut(usize::from(*session)) else {
                match history {
                    // The waiting outputs belong to sessions of this level, and go first.
                    Some(_) if for_disk || (!late.is_empty() && is_for_disk(levels, *session)) => {
                        late.push_back(Held { sequence, stamp, for_disk, output: *output });
                        *held += 1;
                    }
                    Some(history) => history.say(stamp, output)?,
                    // A removed session receives nothing.
                    None => {}
                }
                continue;
            };
            if log.is_clear() && !for_disk {
                log.publish(stamp, output).map_err(OmsError::Lane)?;
                continue;
            }
            log.hold(Held { sequence, stamp, for_disk, output: *output });
            *held += 1;
        }
        Ok(())
    }

    /// Returns whether any output may have to wait for the disk.
    #[inline]
    fn waits_for_disk(&self) -> bool {
        self.commit.is_some() && !self.disk_failed
    }
}

/// Returns whether a session asks for the disk level.
#[inline]
fn is_for_disk(levels: &[AckLevel], session: u16) -> bool {
    levels.get(usize::from(session)).is_some_and(|level| *level == AckLevel::Disk)
}
