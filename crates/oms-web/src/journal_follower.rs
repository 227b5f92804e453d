//! Follows the journal of a running OMS: the state of its core, from a second core beside it.
//!
//! The cost is the memory of a second core, and the processing of every input a second time, on the calling thread.

use std::collections::BTreeMap;

use tickpath_log::LogPath;
use tickpath_oms_core::{Core, Input, Output};
use tickpath_oms_journal::JournalError;
use tickpath_oms_journal::journal::{self, Replay};

/// A core that keeps up with the journal.
pub struct JournalFollower {
    journal: LogPath,
    replay: Replay,
    core: Core,
    sessions: BTreeMap<u16, SessionActivity>,
}

/// State of a session from the journal, since the follower began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionActivity {
    /// Whether it is logged in; `None` if the journal has not recorded that.
    pub is_up: Option<bool>,
    /// The number of its requests.
    pub requests: u64,
    /// The number of its denied requests.
    pub denied: u64,
}

impl JournalFollower {
    /// Opens at the newest snapshot of the journal.
    pub fn open(journal: &LogPath) -> Result<Self, JournalError> {
        let (replay, core) = journal::follow(journal)?;
        Ok(Self { journal: journal.clone(), replay, core, sessions: BTreeMap::new() })
    }

    /// Applies at most `max` inputs; returns their number.
    pub fn step(&mut self, max: usize) -> Result<usize, JournalError> {
        let Self { replay, core, sessions, .. } = self;
        for applied in 0..max {
            if !replay.step(core, |_, input, outputs| record_activity(sessions, input, outputs))? {
                return Ok(applied);
            }
        }
        Ok(max)
    }

    /// Restarts from the newest snapshot: after a repaired damage, or for another journal.
    pub fn reopen(&mut self) -> Result<(), JournalError> {
        *self = Self::open(&self.journal)?;
        Ok(())
    }

    /// Returns the core's state.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Returns the sequence number of the next record.
    pub fn sequence(&self) -> u64 {
        self.replay.sequence()
    }

    /// Returns the sessions that the journal has mentioned.
    pub fn sessions(&self) -> &BTreeMap<u16, SessionActivity> {
        &self.sessions
    }
}

fn record_activity(sessions: &mut BTreeMap<u16, SessionActivity>, input: &Input, outputs: &[Output]) {
    match input {
        Input::Boot(_) => sessions.values_mut().for_each(|session| session.is_up = Some(false)),
        Input::SessionConnection(login) => sessions.entry(login.session).or_default().is_up = Some(login.up != 0),
        Input::Request { envelope, .. } => {
            let session = sessions.entry(envelope.session).or_default();
            session.requests += 1;
            session.denied += u64::from(outputs.iter().any(|output| matches!(output, Output::Denied { .. })));
        }
        _ => {}
    }
}
