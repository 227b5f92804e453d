//! Who has not logged in: where it comes from, how far it is, and who goes when the door is full.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use mio::Token;
use tickpath_session::scram::ServerLogon;
use tickpath_session::{Inbox, Logon, Refusal};

use crate::origin::Origin;
use crate::settings::Users;
use crate::stream::Stream;

/// Places for who guesses at whom. Two that share one wait for each other; which do, nobody outside knows.
const PLACES: usize = 1 << 12;

/// Somebody who has not logged in.
pub(crate) struct Knock {
    pub token: Token,
    pub stream: Stream,
    pub inbox: Inbox,
    /// Since when it is here, in ticks.
    pub since: u64,
    pub origin: Origin,
    pub stage: Stage,
}

/// How far it is.
pub(crate) enum Stage {
    /// It must begin with TLS.
    Hello,
    Logon,
    /// It has its challenge, and its proof is awaited.
    Proof(Box<Begun>),
    /// Its proof waits: from where it comes, wrong ones for this user have come.
    Waits(Box<Begun>, Vec<u8>),
    /// It hears this at that time, and goes.
    Refusing(u64, Refusal, String),
}

/// A logon that has had its challenge.
pub(crate) struct Begun {
    pub server: ServerLogon,
    pub logon: Logon,
    /// The users as they were when the challenge was made: the proof is held against a record of these, and admits nobody
    /// whose record is another one by then.
    pub users: Arc<Users>,
}

/// Who goes when one more has come: of the origin that most come from, the longest there that has said nothing sound, else
/// the longest there.
pub(crate) fn least_welcome(knocks: &VecDeque<Knock>) -> Option<usize> {
    let mut counts = BTreeMap::new();
    knocks.iter().for_each(|knock| *counts.entry(knock.origin).or_insert(0) += 1);
    let most = counts.values().copied().max()?;
    // Age decides between origins with as many each, and no address.
    let theirs = || knocks.iter().enumerate().filter(|(_, knock)| counts.get(&knock.origin) == Some(&most));
    let is_heard = |knock: &Knock| matches!(knock.stage, Stage::Proof(..) | Stage::Waits(..));
    let silent = theirs().find(|(_, knock)| !is_heard(knock));
    silent.or_else(|| theirs().next()).map(|(place, _)| place)
}

/// Wrong passwords: after one for a user, from an origin, the next proof of the two waits, however many connections bring
/// them. It is the same for users who do not exist, and nobody else waits for it.
pub(crate) struct Guesses {
    seed: RandomState,
    /// Until when each place waits, in ticks.
    until: Vec<u64>,
}

impl Guesses {
    pub fn new() -> Self {
        Self { seed: RandomState::new(), until: vec![0; PLACES] }
    }

    /// Whether a proof for a user may be looked at now.
    pub fn may_try(&self, origin: Origin, user: &str, now: u64) -> bool {
        now >= self.until[self.place(origin, user)]
    }

    /// It was wrong: the next waits until then.
    pub fn wait(&mut self, origin: Origin, user: &str, until: u64) {
        let place = self.place(origin, user);
        self.until[place] = until;
    }

    fn place(&self, origin: Origin, user: &str) -> usize {
        self.seed.hash_one((origin, user)) as usize % PLACES
    }
}
