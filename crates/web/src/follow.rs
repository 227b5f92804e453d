//! Follows the journal of an OMS that runs: what its core knows, from a core of our own beside it.
//!
//! It costs the memory of a second core, and the work of every input once more, on the thread that calls it.

use std::collections::BTreeMap;

use tickpath_log::Place;
use tickpath_oms_journal::JournalError;
use tickpath_oms_journal::journal::{self, Replay};
use tickpath_orders::{Core, Input, Output};

/// A core that keeps up with the journal.
pub struct Follower {
    journal: Place,
    replay: Replay,
    core: Core,
    sessions: BTreeMap<u16, Session>,
}

/// What the journal told of a session since we follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Session {
    /// Whether it is logged in; none if it was not told.
    pub is_up: Option<bool>,
    /// Its requests.
    pub requests: u64,
    /// Those of them that were denied.
    pub denied: u64,
}

impl Follower {
    /// At the newest snapshot of the journal.
    pub fn open(journal: &Place) -> Result<Self, JournalError> {
        let (replay, core) = journal::follow(journal)?;
        Ok(Self { journal: journal.clone(), replay, core, sessions: BTreeMap::new() })
    }

    /// Takes at most so many inputs; says how many there were.
    pub fn step(&mut self, most: usize) -> Result<usize, JournalError> {
        let Self { replay, core, sessions, .. } = self;
        for taken in 0..most {
            if !replay.step(core, |_, input, outputs| note(sessions, input, outputs))? {
                return Ok(taken);
            }
        }
        Ok(most)
    }

    /// Begins again from the newest snapshot: after a damage that was repaired, or in another journal.
    pub fn reopen(&mut self) -> Result<(), JournalError> {
        *self = Self::open(&self.journal)?;
        Ok(())
    }

    /// What is known.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The number of the next record.
    pub fn sequence(&self) -> u64 {
        self.replay.sequence()
    }

    /// The sessions that were heard of.
    pub fn sessions(&self) -> &BTreeMap<u16, Session> {
        &self.sessions
    }
}

fn note(sessions: &mut BTreeMap<u16, Session>, input: &Input, outputs: &[Output]) {
    match input {
        Input::Boot(_) => sessions.values_mut().for_each(|session| session.is_up = Some(false)),
        Input::Login(login) => sessions.entry(login.session).or_default().is_up = Some(login.up != 0),
        Input::Request { envelope, .. } => {
            let session = sessions.entry(envelope.session).or_default();
            session.requests += 1;
            session.denied += u64::from(outputs.iter().any(|output| matches!(output, Output::Denied { .. })));
        }
        _ => {}
    }
}
