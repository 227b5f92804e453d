//! Unauthenticated connections: their origin, their progress, and the eviction when the acceptor is full.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use mio::Token;
use rustls::ServerConnection;
use tickpath_oms_protocol::scram::ServerLogon;
use tickpath_oms_protocol::tls::TlsStream;
use tickpath_oms_protocol::{FrameBuffer, Logon, LogonRejectReason, OrderEntryStream};

use crate::settings::Users;
use crate::stream::{ClientStream, PeerOrigin};

/// Slots of the logon back-off table. Two logons that share one wait for each other; its secret seed hides which do.
const BACKOFF_SLOTS: usize = 1 << 12;
/// First byte of a TLS handshake.
pub(crate) const TLS_HANDSHAKE: u8 = 22;

pub(crate) struct PendingLogon {
    pub token: Token,
    pub stream: ClientStream,
    pub inbox: FrameBuffer,
    /// Time of the accept, in ticks.
    pub since: u64,
    pub origin: PeerOrigin,
    pub stage: LogonStage,
}

pub(crate) enum LogonStage {
    /// Must begin with TLS.
    Hello,
    Logon,
    /// Has its challenge; the proof is awaited.
    Proof(Box<ChallengedLogon>),
    /// Proof pending: a wrong one for this user came from the same origin.
    Delayed(Box<ChallengedLogon>, Vec<u8>),
    /// Refused: receives this refusal and reason at that time, and is closed.
    Refusing(u64, LogonRejectReason, String),
}

pub(crate) struct ChallengedLogon {
    pub server: ServerLogon,
    pub logon: Logon,
    /// Users when the challenge was made: one of these records verifies the proof, if it is still current.
    pub users: Arc<Users>,
}

impl PendingLogon {
    /// Returns the connection with TLS over its TCP stream.
    pub fn with_tls(self, tls: ServerConnection) -> Self {
        let stream = match self.stream.0 {
            OrderEntryStream::Tcp(tcp) => OrderEntryStream::Tls(Box::new(TlsStream::new(tcp, tls))),
            other => other,
        };
        Self { stream: ClientStream(stream), stage: LogonStage::Logon, ..self }
    }
}

/// Returns the connection to evict for a new one: from the busiest origin, the oldest that has sent no valid logon,
/// else the oldest.
pub(crate) fn eviction_victim(pending: &VecDeque<PendingLogon>) -> Option<usize> {
    let mut counts = BTreeMap::new();
    pending.iter().for_each(|peer| *counts.entry(peer.origin).or_insert(0) += 1);
    let max = counts.values().copied().max()?;
    // Age decides between equally busy origins, and no address.
    let busiest = || pending.iter().enumerate().filter(|(_, peer)| counts.get(&peer.origin) == Some(&max));
    let has_challenge = |peer: &PendingLogon| matches!(peer.stage, LogonStage::Proof(..) | LogonStage::Delayed(..));
    let silent = busiest().find(|(_, peer)| !has_challenge(peer));
    silent.or_else(|| busiest().next()).map(|(index, _)| index)
}

/// Logon back-off: after a wrong password the next proof of that user from that origin waits, however many connections
/// bring it. Users who do not exist have the same wait, and no other logon waits for it.
pub(crate) struct LogonBackoff {
    seed: RandomState,
    until: Vec<u64>,
}

impl LogonBackoff {
    pub fn new() -> Self {
        Self { seed: RandomState::new(), until: vec![0; BACKOFF_SLOTS] }
    }

    pub fn may_verify(&self, origin: PeerOrigin, user: &str, now: u64) -> bool {
        now >= self.until[self.slot(origin, user)]
    }

    /// Makes the next proof for a user from this origin wait until that time.
    pub fn delay_until(&mut self, origin: PeerOrigin, user: &str, until: u64) {
        let slot = self.slot(origin, user);
        self.until[slot] = until;
    }

    fn slot(&self, origin: PeerOrigin, user: &str) -> usize {
        self.seed.hash_one((origin, user)) as usize % BACKOFF_SLOTS
    }
}
