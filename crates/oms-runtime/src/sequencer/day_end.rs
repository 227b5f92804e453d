//! The end of a trading day: refused where it could not be finished, else journaled, and the day's logs are archived.
//!
//! ```text
//!   DayEnd asked for
//!     ├─ the day has already ended or lies ahead (not checked for the operator's lane): refused, nothing changed
//!     ├─ the disk lacks room for the day's roll: refused, nothing changed
//!     ├─ orders whose venue has not confirmed their end: MessageLoss (journaled), to outlive the day
//!     ├─ DayEnd (journaled): the core expires waiting orders, and those that venues expire by their rules
//!     └─ roll: the journal's log and the history's go into the archive, the next day's begin
//! ```

use rustix::io::Errno;
use tickpath_clock::Clock;
use tickpath_market::{OrderId, VenueId};
use tickpath_oms_journal::{Ballast, JournalError};

use super::Sequencer;
use crate::OmsError;
use crate::command_error::{CommandError, DESCRIPTORS};
use crate::notice::Notice;

/// Bytes of a log beside its segments: header, cursors, folder entries.
const LOG_OVERHEAD: u64 = 256 << 10;
/// Bytes of the records that end a log.
const LAST_BYTES: u64 = 4 << 10;
/// Bytes in the logs for each order that ends with the day.
const ORDER_BYTES: u64 = 512;

impl<C: Clock> Sequencer<C> {
    /// Reserves the disk space and the file descriptors that the end of the day needs.
    pub(crate) fn reserve_for_roll(&self) -> Result<Ballast, CommandError> {
        let config = self.journal.config();
        let segment = config.segment_bytes as u64;
        let reserved = config.reserve_bytes.next_multiple_of(segment);
        let history = self.release.front_end.offset();
        let logs = 1 + u64::from(history.is_some());
        // The first segment, and the next segment, which is made ahead of need.
        let roll = logs * (2 * segment + reserved + LOG_OVERHEAD);
        let bytes = LAST_BYTES + self.core.open_orders().count() as u64 * ORDER_BYTES;
        // Records that fit into a segment in use need no room.
        let beyond = |offset: u64| (offset + bytes).saturating_sub(segment).next_multiple_of(segment);
        let reports = beyond(self.journal.tail().offset) + history.map_or(0, beyond) + LOG_OVERHEAD;
        let folder = config.path.dir();
        let refused = |reason: std::io::Error| match Errno::from_io_error(&reason) {
            Some(Errno::MFILE | Errno::NFILE) => CommandError::NoDescriptors { pid: std::process::id(), reason },
            _ => CommandError::NoRoom {
                mebibytes: (reports + roll).div_ceil(1 << 20),
                folder: folder.display().to_string(),
                reason,
            },
        };
        let ballast = Ballast::reserve(folder, reports, roll).map_err(refused)?;
        ballast.hold_descriptors(DESCRIPTORS).map_err(refused)
    }

    /// Puts those day orders in doubt whose end neither a report nor the venue's rules confirm. Returns their number.
    pub(crate) fn mark_unconfirmed_in_doubt(&mut self) -> Result<usize, OmsError> {
        let open: Vec<(OrderId, VenueId)> = self.core.unconfirmed_day_orders().collect();
        let unconfirmed = open.iter().filter(|(_, venue)| !self.unanswered.expires_day_orders(*venue));
        let unconfirmed: Vec<_> = unconfirmed.copied().collect();
        for &(order, venue) in &unconfirmed {
            self.mark_order_in_doubt(venue, order.0)?;
        }
        Ok(unconfirmed.len())
    }

    /// Moves the day's logs into the archive, and requests a snapshot of their end.
    #[cold]
    pub(crate) fn archive_day(&mut self, ballast: Option<Ballast>) -> Result<(), OmsError> {
        self.day.notified_unknown_orders = false;
        if self.has_disk_failed() {
            return Ok(());
        }
        match self.journal.roll(self.clock.ticks(), ballast) {
            Err(e @ JournalError::NotArchived(_)) => {
                self.notices.add(Notice::NotArchived(e.to_string()));
                return Ok(());
            }
            Err(JournalError::Disk(e)) => return self.fail_disk(&e.to_string()).map(drop),
            rolled => rolled?,
        }
        self.journal.reserve()?;
        self.release.durability.continue_in(self.journal.log())?;
        self.release_held()?;
        match self.release.front_end.begin_day(self.journal.log().first_sequence()) {
            Err(e @ JournalError::NotArchived(_)) => self.notices.add(Notice::NotArchived(e.to_string())),
            begun => begun?,
        }
        self.housekeeping.request_snapshot(self.journal.tail().sequence);
        Ok(())
    }
}
