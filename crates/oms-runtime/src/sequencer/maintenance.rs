//! The sequencer's work beside inputs: checks of disk, lanes and venues, and an orderly stop.

use tickpath_clock::Clock;
use tickpath_oms_core::{ExpiryTimer, GapTimer, Input};

use super::Sequencer;
use crate::OmsError;
use crate::notice::Notice;

/// Control port: the core's side of a front end. The core's thread owns the port beside the sequencer, and serves it in
/// turns that have time for all checks.
pub trait ControlPort<C: Clock>: Send {
    /// Answers questions, applies commands and a changed trading configuration, and passes notices on. Returns the
    /// amount of work done.
    fn serve(&mut self, oms: &mut Sequencer<C>) -> Result<usize, OmsError>;
}

impl<C: Clock> Sequencer<C> {
    /// Does the work beside inputs: releases durable outputs and requests that waited for a venue, serves the control
    /// port, and checks disk and venues. Returns the amount of work done; `is_idle` marks a turn without other work,
    /// which has time for all checks.
    #[inline]
    pub fn do_housekeeping(
        &mut self,
        is_idle: bool,
        control: &mut Option<Box<dyn ControlPort<C>>>,
    ) -> Result<usize, OmsError> {
        let mut done = 0;
        if self.release.held() > 0 {
            done += self.release_held()?;
        }
        if self.housekeeping.is_check_turn(is_idle) {
            done += self.do_checks(control)?;
        }
        Ok(done)
    }

    fn do_checks(&mut self, control: &mut Option<Box<dyn ControlPort<C>>>) -> Result<usize, OmsError> {
        if let Some(why) = self.release.durability.new_failure() {
            return self.fail_disk(&why);
        }
        if let Some(why) = self.housekeeping.snapshot_failure() {
            self.notices.add(Notice::SnapshotFailed(why));
        }
        let mut done = control.as_mut().map_or(Ok(0), |port| port.serve(self))?;
        if self.housekeeping.is_venue_check_due(&self.clock) {
            self.publish_gauges();
            if let Some((lanes, first)) = self.housekeeping.lane_files.check() {
                self.notices.add(Notice::LanesRemoved { lanes, first });
            }
            done += self.check_venues()? + self.check_unanswered()? + self.end_due_day()? + self.end_due_orders()?;
        }
        if self.core.has_blocked_venue() {
            done += self.release_waiting()?;
        }
        if self.core.has_gaps() && self.core.needs_gap_timer(self.clock.ticks()) {
            self.apply_and_release(self.clock.ticks(), &Input::GapTimer(GapTimer::default()))?;
            done += 1;
        }
        Ok(done)
    }

    /// Ends the good-till-date orders whose end time has come. Returns the number of inputs.
    fn end_due_orders(&mut self) -> Result<usize, OmsError> {
        let now = self.clock.ticks();
        if !self.core.needs_expiry_timer(now) {
            return Ok(0);
        }
        self.apply_and_release(now, &Input::ExpiryTimer(ExpiryTimer::default()))?;
        Ok(1)
    }

    /// Finds the venues that have disconnected. Their requests wait in the core from now on, and are checked again.
    #[cold]
    fn check_venues(&mut self) -> Result<usize, OmsError> {
        let mut done = 0;
        for venue in self.release.venues.numbers() {
            let is_gone = self.release.venues.log(venue).is_some_and(|log| !log.is_read());
            if is_gone && self.core.is_up(venue) {
                self.note_venue_connection(venue, false)?;
                done += 1;
            }
            done += self.give_up_lost_lines(venue)?;
        }
        Ok(done)
    }

    /// Waits for the disk, releases the held outputs, and journals the core's digest and an orderly stop.
    pub fn stop(&mut self) -> Result<(), OmsError> {
        let is_disk_sound = !self.has_disk_failed();
        if is_disk_sound {
            self.journal.sync()?;
            self.release.durability.commit = None;
            self.release_held()?;
        }
        let now = self.clock.ticks();
        self.journal.digest(now, &self.core.digest())?;
        self.journal.stop(now, self.release.departure)?;
        if is_disk_sound {
            self.journal.sync()?;
        }
        Ok(())
    }
}
