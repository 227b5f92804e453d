//! Reasons why an admin command is refused.

use tickpath_oms_core::AdminCommandError;

/// Max file descriptors that a roll opens beyond those already open: logs, folders, the archive's.
pub(crate) const DESCRIPTORS: usize = 32;

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
        "the day has not ended: its roll needs {mebibytes} MiB free in {folder} ({reason}), and trading continues. \
         Free that much and run the command again"
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
        "the day has not ended: its roll needs {DESCRIPTORS} free file descriptors ({reason}), and trading continues. \
         Raise the limit (LimitNOFILE in the unit, or prlimit --pid {pid} --nofile=N) or end some connections, and run \
         the command again"
    )]
    NoDescriptors {
        /// The process of the OMS.
        pid: u32,
        /// The reason, as the system gives it.
        reason: std::io::Error,
    },
}
