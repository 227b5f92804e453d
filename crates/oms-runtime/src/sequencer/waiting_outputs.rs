//! Release of outputs that wait for the disk or their venue, and handling of a failed disk.
//!
//! A request that comes back is an input: it waits in the core, is checked again, and leaves by a `Release`.

use tickpath_clock::Clock;
use tickpath_market::VenueId;
use tickpath_oms_core::{Input, KILL_DISK, KillSwitch, Output, Release, UnsentRequest};

use super::Sequencer;
use crate::OmsError;
use crate::notice::Notice;
use crate::release::ReturnedRequest;

impl<C: Clock> Sequencer<C> {
    /// Finds the venues that can be reached again, and releases the requests that wait for them.
    #[cold]
    pub(crate) fn release_waiting(&mut self) -> Result<usize, OmsError> {
        let mut done = 0;
        for venue in self.release.venues.numbers() {
            if !self.release.venues.log_mut(venue).is_some_and(|log| log.is_clear() && log.has_room()) {
                continue;
            }
            if !self.core.is_up(venue) {
                self.note_venue_connection(venue, true)?;
                done += 1;
            }
            done += self.release_waiting_for(venue)?;
        }
        Ok(done)
    }

    /// Releases the requests that wait for a venue, as far as its log has room.
    fn release_waiting_for(&mut self, venue: VenueId) -> Result<usize, OmsError> {
        let mut done = 0;
        while let Some((order, request)) = self.core.next_waiting(venue) {
            if let (Some(line), Some(lines)) = (self.core.avoided_line(venue), self.release.venues.lines_mut(venue)) {
                lines.avoid(request.client_order_id().0, line);
            }
            if self.release.venues.log_mut(venue).is_some_and(|log| log.room_for(&request).is_err()) {
                break;
            }
            let now = self.clock.ticks();
            let (reference_price, reference_age_ns) = self.reference(request.symbol(), now);
            let (order, request, reserved) = (order.0, request.client_order_id().0, [0; 6]);
            let release = Release { order, request, reference_price, reference_age_ns, venue, reserved };
            // The request keeps its age when it comes back once more.
            let since = self.core.waiting_since(venue).unwrap_or(now);
            let sequence = self.apply(now, &Input::Release(release))?;
            self.release_to_venues(sequence, since)?;
            self.release_to_sessions(sequence, now)?;
            self.after_input()?;
            done += 1;
        }
        Ok(done)
    }

    /// Releases the held outputs that are durable by now. Returns their number.
    #[cold]
    pub(crate) fn release_held(&mut self) -> Result<usize, OmsError> {
        let synced = self.release.durability.synced();
        let before = self.release.held();
        self.release.release_held_requests(synced)?;
        self.journal_returned()?;
        self.release.release_held_reports(synced, &self.clock)?;
        let done = before - self.release.held();
        if done > 0 {
            self.release.front_end.wake();
        }
        Ok(done)
    }

    /// Journals that requests did not leave, and that a venue without a reader is down. A client whose request can
    /// never leave any more receives a report.
    #[cold]
    pub(crate) fn journal_returned(&mut self) -> Result<(), OmsError> {
        for ReturnedRequest { venue, stamp, output, has_reader } in self.release.take_returned() {
            let Output::Venue { request, .. } = output else { continue };
            let now = self.clock.ticks();
            let sequence = self.apply(now, &Input::UnsentRequest(UnsentRequest::new(venue, stamp, &request)))?;
            self.release_to_sessions(sequence, now)?;
            if !has_reader && self.core.is_up(venue) {
                self.note_venue_connection(venue, false)?;
            }
        }
        Ok(())
    }

    /// Handles a failed disk: denies new orders from here on and those that had not left, passes cancels, and releases
    /// all held reports. The denials come first, so that a client that receives a report of an order which the disk
    /// does not have also receives that order's end.
    #[cold]
    pub(crate) fn fail_disk(&mut self, why: &str) -> Result<usize, OmsError> {
        self.release.durability.disk_failed = true;
        self.notices.add(Notice::DiskFailed(why.to_owned()));
        let kill = KillSwitch { scope: KILL_DISK, on: 1, ..KillSwitch::default() };
        self.apply_and_release(self.clock.ticks(), &Input::Kill(kill))?;
        self.release.return_all_held();
        self.journal_returned()?;
        Ok(1 + self.release_held()?)
    }
}
