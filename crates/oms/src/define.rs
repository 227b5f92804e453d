//! What a desk changes in what is defined: at a start, and while the OMS runs.

use tickpath_clock::Clock;

use crate::OmsError;
use crate::commit::AckLevel;
use crate::config::Desk;
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Makes of what can be traded, by whom and where, what a desk says: journals what differs, and nothing else. A right
    /// that is gone denies the next order. Says how many definitions differ. What must hold a session's requests may
    /// become more at once, and less at the next start: what is held keeps its place.
    #[cold]
    pub fn define(&mut self, desk: &Desk) -> Result<usize, OmsError> {
        desk.sessions.iter().for_each(|session| raise(&mut self.levels, session.session, session.level));
        if self.commit.is_none() && !self.disk_failed {
            self.watch_disk()?;
        }
        let changes = self.journal_changes(desk)?;
        if changes > 0 && !self.disk_failed {
            // What comes next finds its memory ready, as behind a start.
            match self.journal.sync().and_then(|()| self.journal.reserve()) {
                Err(OmsError::Disk(e)) => self.fail_disk(&e.to_string()).map(drop)?,
                synced => synced?,
            }
        }
        Ok(changes)
    }

    /// The same at a start. After a loss of power, what the definitions were says what may have left: whoever calls has
    /// them on the disk before anything leaves under them.
    pub(crate) fn journal_changes(&mut self, desk: &Desk) -> Result<usize, OmsError> {
        let changes = self.definitions.changes(desk);
        for change in &changes {
            self.take(self.clock.ticks(), change)?;
            self.definitions.note(change);
        }
        self.answers.expect(&desk.watch);
        if let Some(lines) = &self.line_shared {
            lines.validity.set(&desk.accounts, self.clock.calibration());
        }
        Ok(changes.len())
    }
}

/// Notes what must hold a session's requests, if it is more than what must so far.
pub(crate) fn raise(levels: &mut Vec<AckLevel>, session: u16, level: AckLevel) {
    let place = usize::from(session);
    if levels.len() <= place {
        levels.resize(place + 1, AckLevel::Os);
    }
    if level == AckLevel::Disk {
        levels[place] = level;
    }
}
