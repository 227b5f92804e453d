//! The end of a trading day: refused where it could not be finished, else journaled, and the day's logs are archived.
//!
//! ```text
//!   DayEnd asked for
//!     ├─ the day is over, or has not begun, or the disk lacks room for its roll: refused, nothing changed
//!     ├─ orders whose venue has not confirmed their end: Doubt (journaled), to outlive the day and be asked for
//!     ├─ DayEnd (journaled): the core expires waiting orders, and those that venues expire by their rules
//!     └─ roll: the journal's log and the history's go into the archive, the next day's begin
//! ```

use rustix::io::Errno;
use tickpath_clock::{Clock, utc_day};
use tickpath_market::{OrderId, VenueId};
use tickpath_oms_core::{AdminCommandError, DayEnd};
use tickpath_oms_journal::{Ballast, JournalError};

use crate::OmsError;
use crate::calendar::Calendar;
use crate::history::History;
use crate::notice::Notice;
use crate::sequencer::Sequencer;

/// Bytes of a log beside its segments: header, cursors, folder entries.
const LOG_OVERHEAD: u64 = 256 << 10;
/// Bytes of the records that end a log.
const LAST_BYTES: u64 = 4 << 10;
/// Bytes in the logs for each order that ends with the day.
const ORDER_BYTES: u64 = 512;

/// Max file descriptors that a roll opens beyond those already open: logs, folders, the archive's.
const DESCRIPTORS: usize = 32;

/// Reason why an admin command was refused. It has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The core refused it.
    #[error(transparent)]
    Core(#[from] AdminCommandError),
    /// The day is over.
    #[error("day {day} has ended already: the last day that ended is {last}; name a later one by --day")]
    DayEnded {
        /// The day, as 20261122.
        day: u32,
        /// The last day that ended.
        last: u32,
    },
    /// The day lies ahead.
    #[error("day {day} has not begun: it is {today} in {zone}; name {today} or an earlier day by --day")]
    DayAhead {
        /// The day, as 20261122.
        day: u32,
        /// The current day in that time zone.
        today: u32,
        /// The time zone of the calendar; UTC without one.
        zone: String,
    },
    /// The disk lacks room for the roll.
    #[error(
        "the day has not ended: its roll needs {mebibytes} MiB free in {folder} ({reason}); trading goes on. Free that much and \
         run the command again"
    )]
    NoRoom {
        /// Space that the roll needs, in MiB.
        mebibytes: u64,
        /// The journal's folder.
        folder: String,
        /// The reason, as the system gives it.
        reason: std::io::Error,
    },
    /// The process has too few file descriptors left for the roll.
    #[error(
        "the day has not ended: its roll needs {DESCRIPTORS} free file descriptors ({reason}); trading goes on. Raise the limit \
         (LimitNOFILE in the unit, or prlimit --pid {pid} --nofile=N) or end some connections, and run the command again"
    )]
    NoDescriptors {
        /// The process of the OMS.
        pid: u32,
        /// The reason, as the system gives it.
        reason: std::io::Error,
    },
}

impl<C: Clock> Sequencer<C> {
    /// Checks that a day may end under its name; a day of zero has no name, and passes.
    pub(crate) fn check_day(&self, end: &DayEnd) -> Result<(), CommandError> {
        let now = self.clock.calibration().utc_ns_of(self.clock.ticks());
        let calendar = self.day_schedule.calendar.as_ref();
        let today = calendar.map_or_else(|| utc_day(now), |calendar| calendar.today(now));
        match (end.day, self.last_day) {
            (0, _) => Ok(()),
            // A last day in the future was named by mistake, and blocks no other day.
            (day, last) if day <= last && last <= today => Err(CommandError::DayEnded { day, last }),
            (day, _) if day > today => {
                let zone = calendar.map_or("UTC", Calendar::zone_name).to_owned();
                Err(CommandError::DayAhead { day, today, zone })
            }
            _ => Ok(()),
        }
    }

    /// Reserves the disk space and the file descriptors that the end of the day needs.
    pub(crate) fn reserve_for_roll(&self) -> Result<Ballast, CommandError> {
        let config = self.journal.config();
        let segment = config.segment_bytes as u64;
        let reserved = config.reserve_bytes.next_multiple_of(segment);
        let history = self.history.as_ref().map(History::offset);
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
    pub(crate) fn doubt_unconfirmed(&mut self) -> Result<usize, OmsError> {
        let open: Vec<(OrderId, VenueId)> = self.core.unconfirmed_day_orders().collect();
        let unconfirmed = open.iter().filter(|(_, venue)| !self.answers.expires_day_orders(*venue));
        let unconfirmed: Vec<_> = unconfirmed.copied().collect();
        for &(order, venue) in &unconfirmed {
            self.doubt_order(venue, order.0)?;
        }
        Ok(unconfirmed.len())
    }

    /// Moves the day's logs into the archive, and requests a snapshot of their end.
    #[cold]
    pub(crate) fn archive_day(&mut self, ballast: Option<Ballast>) -> Result<(), OmsError> {
        self.notified_unknown_orders = false;
        if self.disk_failed {
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
        if let Some(commit) = &self.commit {
            commit.continue_in(self.journal.log()).map_err(JournalError::Disk)?;
        }
        self.release_held()?;
        if let Some(history) = &mut self.history {
            match history.begin_day(self.journal.log().first_sequence()) {
                Err(e @ JournalError::NotArchived(_)) => self.notices.add(Notice::NotArchived(e.to_string())),
                begun => begun?,
            }
        }
        self.request_snapshot();
        Ok(())
    }
}
