//! Durability of requests: the level that each session asks for, and the group commit that reaches it.

use tickpath_clock::Clock;
use tickpath_log::{LogTail, Writer};
use tickpath_oms_journal::JournalError;
use tickpath_oms_journal::commit::{AckLevel, GroupCommit};

use crate::OmsError;
use crate::config::{Config, SessionConfig};

/// Durability levels of the sessions, and the journal's group commit.
#[derive(Default)]
pub(crate) struct SessionDurability {
    /// Durability level of each session.
    levels: Vec<AckLevel>,
    /// `None` while no session asks for the disk level, and once the whole journal is durable at a stop.
    pub commit: Option<GroupCommit>,
    /// Whether the disk has failed: from then on no output waits for it.
    pub disk_failed: bool,
}

impl SessionDurability {
    /// Returns the levels of a configuration's sessions, without a group commit.
    pub fn of(config: &Config) -> Self {
        let levels = vec![AckLevel::Os; config.lanes.sessions.into()];
        let mut durability = Self { levels, ..Self::default() };
        durability.raise_levels(&config.trading.sessions);
        durability
    }

    /// Raises the levels of these sessions. No level falls before the next start, because held outputs keep their
    /// place.
    pub fn raise_levels(&mut self, sessions: &[SessionConfig]) {
        for session in sessions {
            let index = usize::from(session.session);
            if self.levels.len() <= index {
                self.levels.resize(index + 1, AckLevel::Os);
            }
            if session.level == AckLevel::Disk {
                self.levels[index] = session.level;
            }
        }
    }

    /// Returns a session's level; `None` for an unknown session.
    #[inline]
    pub fn level(&self, session: u16) -> Option<AckLevel> {
        self.levels.get(usize::from(session)).copied()
    }

    /// Returns whether a session asks for the disk level.
    #[inline]
    pub fn is_disk_session(&self, session: u16) -> bool {
        self.level(session) == Some(AckLevel::Disk)
    }

    /// Returns whether any output may have to wait for the disk.
    #[inline]
    pub fn waits_for_disk(&self) -> bool {
        self.commit.is_some() && !self.disk_failed
    }

    /// Returns the commit watermark: the records below it are durable. All are, as far as the sessions ask, without a
    /// group commit.
    pub fn synced(&self) -> u64 {
        self.commit.as_ref().map_or(u64::MAX, GroupCommit::synced)
    }

    /// Requests a sync of all records up to this tail.
    #[inline]
    pub fn request_sync(&self, upto: LogTail) {
        if let Some(commit) = &self.commit {
            commit.request_sync(upto);
        }
    }

    /// Starts the commit thread of this journal, if a session asks for the disk level and the journal has none yet.
    pub fn start_commit(&mut self, journal: &Writer, clock: &impl Clock) -> Result<(), OmsError> {
        if self.commit.is_none() && !self.disk_failed && self.levels.contains(&AckLevel::Disk) {
            self.commit = Some(GroupCommit::start(journal, clock.clone()).map_err(JournalError::Disk)?);
        }
        Ok(())
    }

    /// Continues in the journal's next log; all records before that log are durable.
    pub fn continue_in(&self, journal: &Writer) -> Result<(), OmsError> {
        if let Some(commit) = &self.commit {
            commit.continue_in(journal).map_err(JournalError::Disk)?;
        }
        Ok(())
    }

    /// Returns the error of a disk that has failed and is not marked as failed yet.
    #[inline]
    pub fn new_failure(&self) -> Option<String> {
        let failed = self.commit.as_ref().filter(|commit| !self.disk_failed && commit.has_failed())?;
        Some(failed.error())
    }
}
