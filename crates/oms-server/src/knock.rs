//! Unauthenticated connections: their origin, their progress, and the eviction when the acceptor is full.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use mio::Token;
use tickpath_oms_protocol::scram::ServerLogon;
use tickpath_oms_protocol::{Inbox, Logon, Refusal};

use crate::origin::Origin;
use crate::settings::Users;
use crate::stream::Stream;

/// Slots of the logon back-off table. Two logons that share one wait for each other; its secret seed hides which do.
const PLACES: usize = 1 << 12;

/// An unauthenticated connection.
pub(crate) struct Knock {
    pub token: Token,
    pub stream: Stream,
    pub inbox: Inbox,
    /// Time of the accept, in ticks.
    pub since: u64,
    pub origin: Origin,
    pub stage: Stage,
}

/// Progress of a logon.
pub(crate) enum Stage {
    /// Must begin with TLS.
    Hello,
    Logon,
    /// Has its challenge; the proof is awaited.
    Proof(Box<Begun>),
    /// Proof pending: a wrong one for this user came from the same origin.
    Waits(Box<Begun>, Vec<u8>),
    /// Refused: receives this refusal and reason at that time, and is closed.
    Refusing(u64, Refusal, String),
}

/// A logon with its challenge sent.
pub(crate) struct Begun {
    pub server: ServerLogon,
    pub logon: Logon,
    /// Users as they were when the challenge was made: the proof is verified against a record of these, and admits the
    /// user only if that record is still current.
    pub users: Arc<Users>,
}

/// Returns the connection to evict for a new one: from the busiest origin, the oldest that has sent no valid logon,
/// else the oldest.
pub(crate) fn least_welcome(knocks: &VecDeque<Knock>) -> Option<usize> {
    let mut counts = BTreeMap::new();
    knocks.iter().for_each(|knock| *counts.entry(knock.origin).or_insert(0) += 1);
    let most = counts.values().copied().max()?;
    // Age decides between equally busy origins, and no address.
    let theirs = || knocks.iter().enumerate().filter(|(_, knock)| counts.get(&knock.origin) == Some(&most));
    let is_heard = |knock: &Knock| matches!(knock.stage, Stage::Proof(..) | Stage::Waits(..));
    let silent = theirs().find(|(_, knock)| !is_heard(knock));
    silent.or_else(|| theirs().next()).map(|(place, _)| place)
}

/// Logon back-off: after a wrong password the next proof of that user from that origin waits, however many connections
/// bring it. Users who do not exist have the same wait, and no other logon waits for it.
pub(crate) struct Guesses {
    seed: RandomState,
    /// End of each slot's wait, in ticks.
    until: Vec<u64>,
}

impl Guesses {
    pub fn new() -> Self {
        Self { seed: RandomState::new(), until: vec![0; PLACES] }
    }

    /// Returns whether a proof for a user may be verified now.
    pub fn may_try(&self, origin: Origin, user: &str, now: u64) -> bool {
        now >= self.until[self.place(origin, user)]
    }

    /// Makes the next proof for a user from this origin wait until that time.
    pub fn wait(&mut self, origin: Origin, user: &str, until: u64) {
        let place = self.place(origin, user);
        self.until[place] = until;
    }

    fn place(&self, origin: Origin, user: &str) -> usize {
        self.seed.hash_one((origin, user)) as usize % PLACES
    }
}
