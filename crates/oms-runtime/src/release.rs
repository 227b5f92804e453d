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
use tickpath_log::LogPublishError;
use tickpath_market::VenueId;
use tickpath_oms_core::{Input, KILL_DISK, KillSwitch, Output, Release, UnsentRequest};

use crate::OmsError;
use crate::commit::{AckLevel, GroupCommit};
use crate::lines::OutputProgress;
use crate::notice::Notice;
use crate::outbound::{Outbound, PendingOutput};
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Finds the venues that have disconnected. Their requests wait in the core from now on, and are checked again.
    #[cold]
    pub(crate) fn check_venues(&mut self) -> Result<usize, OmsError> {
        let mut done = 0;
        for place in 0..self.venues.len() {
            let venue = VenueId(place as u16);
            let is_gone = self.venues[place].as_ref().is_some_and(|log| !log.is_read());
            if is_gone && self.core.is_up(venue) {
                self.note_venue_line(venue, false)?;
                done += 1;
            }
            done += self.give_up_lost_lines(venue)?;
        }
        Ok(done)
    }

    /// Finds the venues that can be reached again, and releases the requests that wait for them.
    #[cold]
    pub(crate) fn release_waiting(&mut self) -> Result<usize, OmsError> {
        let mut done = 0;
        for place in 0..self.venues.len() {
            let venue = VenueId(place as u16);
            let Some(outbound) = &mut self.venues[place] else { continue };
            if !outbound.is_clear() || !outbound.has_room() {
                continue;
            }
            if !self.core.is_up(venue) {
                self.note_venue_line(venue, true)?;
                done += 1;
            }
            while let Some((order, request)) = self.core.next_waiting(venue) {
                if let (Some(line), Some(lines)) = (self.core.avoided_line(venue), self.lines(venue)) {
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
                let since = self.core.waiting_since(venue).unwrap_or(now);
                let sequence = self.apply(now, &Input::Release(release))?;
                self.release_to_venues(sequence, since)?;
                self.release_to_sessions(sequence, now)?;
                self.after_input()?;
                done += 1;
            }
        }
        Ok(done)
    }

    /// Releases the held outputs that are durable by now. Returns their number.
    #[cold]
    pub(crate) fn release_held(&mut self) -> Result<usize, OmsError> {
        let synced = self.commit.as_ref().map_or(u64::MAX, GroupCommit::synced);
        let before = self.held;
        for place in 0..self.venues.len() {
            while let Some(held) = self.venues[place].as_mut().and_then(|log| log.next_releasable(synced, false)) {
                self.held -= 1;
                self.publish_request(VenueId(place as u16), held.stamp, held.output)?;
            }
        }
        self.journal_returned()?;
        for place in 0..self.sessions.len() {
            while let Some(held) = self.sessions[place].next_releasable(synced, self.disk_failed) {
                self.held -= 1;
                self.sessions[place].publish(self.clock.ticks(), &held.output).map_err(OmsError::Lane)?;
            }
        }
        if let Some(history) = &mut self.history {
            let may_leave = |held: &mut PendingOutput| self.disk_failed || !held.needs_disk || held.sequence < synced;
            while let Some(held) = self.held_reports.pop_front_if(may_leave) {
                self.held -= 1;
                history.append(self.clock.ticks(), &held.output)?;
            }
        }
        if before > self.held
            && let Some(bell) = &self.waker
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
        self.apply_and_release(
            self.clock.ticks(),
            &Input::Kill(KillSwitch { scope: KILL_DISK, on: 1, ..KillSwitch::default() }),
        )?;
        for place in 0..self.venues.len() {
            let held = self.venues[place].as_mut().map(Outbound::take_held).unwrap_or_default();
            self.held -= held.len();
            let venue = VenueId(place as u16);
            self.returned
                .extend(held.into_iter().map(|PendingOutput { stamp, output, .. }| (venue, stamp, output, true)));
        }
        self.journal_returned()?;
        Ok(1 + self.release_held()?)
    }

    /// Releases the core's requests. Reading the clock costs as much as a check, so the frames carry T1.
    #[inline]
    pub(crate) fn release_to_venues(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        let waits_for_disk = self.waits_for_disk();
        let Self { outputs, venues, levels, returned: returning, held, departure, .. } = self;
        for output in outputs.iter() {
            let Output::Venue { venue, session, .. } = output else { continue };
            let for_disk = waits_for_disk && is_disk_session(levels, *session);
            match venues.get_mut(usize::from(venue.0)) {
                Some(Some(log)) if !for_disk && log.is_clear() && returning.is_empty() => {
                    match log.publish(stamp, output) {
                        Ok(passed) => departure.handed_over |= passed == OutputProgress::HandedOver,
                        Err(e @ (LogPublishError::Full | LogPublishError::NoReader)) => {
                            departure.queued = true;
                            returning.push((*venue, stamp, *output, matches!(e, LogPublishError::Full)));
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
                            log.hold(PendingOutput { sequence, stamp, needs_disk: for_disk, output: *output });
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
    pub(crate) fn publish_request(&mut self, venue: VenueId, stamp: u64, output: Output) -> Result<(), OmsError> {
        // A request behind one that came back comes back, too: a venue must not receive a cancel before its order.
        let is_behind = !self.returned.is_empty() && self.returned.iter().any(|(to, ..)| *to == venue);
        let Some(Some(log)) = self.venues.get_mut(usize::from(venue.0)) else { return Ok(()) };
        let sent = if is_behind { Err(LogPublishError::Full) } else { log.publish(stamp, &output) };
        match sent {
            Ok(_) => Ok(()),
            Err(e @ (LogPublishError::Full | LogPublishError::NoReader)) => {
                self.departure.queued = true;
                self.returned.push((venue, stamp, output, matches!(e, LogPublishError::Full)));
                Ok(())
            }
            Err(e) => Err(OmsError::Lane(e)),
        }
    }

    /// Returns the held requests behind one that comes back, too: the venue must not receive a cancel before its order.
    fn return_held_behind(&mut self) {
        for place in 0..self.returned.len() {
            let (venue, .., is_there) = self.returned[place];
            let Some(Some(log)) = self.venues.get_mut(usize::from(venue.0)) else { continue };
            let held = log.take_held();
            self.held -= held.len();
            self.returned
                .extend(held.into_iter().map(|PendingOutput { stamp, output, .. }| (venue, stamp, output, is_there)));
        }
    }

    /// Journals that requests did not leave, and that a venue without a reader is down. A client whose request can
    /// never leave any more receives a report.
    #[cold]
    pub(crate) fn journal_returned(&mut self) -> Result<(), OmsError> {
        self.return_held_behind();
        for (venue, stamp, output, is_there) in std::mem::take(&mut self.returned) {
            let Output::Venue { request, .. } = output else { continue };
            let now = self.clock.ticks();
            let sequence = self.apply(now, &Input::UnsentRequest(UnsentRequest::new(venue, stamp, &request)))?;
            self.release_to_sessions(sequence, now)?;
            if !is_there && self.core.is_up(venue) {
                self.note_venue_line(venue, false)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn release_to_sessions(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        let waits_for_disk = self.waits_for_disk();
        let Self { outputs, sessions, history, held_reports: late, levels, held, meter, .. } = self;
        for output in outputs.iter() {
            let (Output::Report { session, .. } | Output::Denied { session, .. }) = output else { continue };
            if let Some(meter) = meter {
                meter.count_output(output);
            }
            let for_disk = waits_for_disk && is_disk_session(levels, *session);
            let Some(log) = sessions.get_mut(usize::from(*session)) else {
                match history {
                    // The waiting outputs belong to sessions of this level, and go first.
                    Some(_) if for_disk || (!late.is_empty() && is_disk_session(levels, *session)) => {
                        late.push_back(PendingOutput { sequence, stamp, needs_disk: for_disk, output: *output });
                        *held += 1;
                    }
                    Some(history) => history.append(stamp, output)?,
                    // A removed session receives nothing.
                    None => {}
                }
                continue;
            };
            if log.is_clear() && !for_disk {
                log.publish(stamp, output).map_err(OmsError::Lane)?;
                continue;
            }
            log.hold(PendingOutput { sequence, stamp, needs_disk: for_disk, output: *output });
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
fn is_disk_session(levels: &[AckLevel], session: u16) -> bool {
    levels.get(usize::from(session)).is_some_and(|level| *level == AckLevel::Disk)
}
