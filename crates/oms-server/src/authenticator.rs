//! SCRAM verifier of the acceptor: challenges, proofs, and the delay of wrong passwords.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use tickpath_clock::Clock;
use tickpath_oms_protocol::scram::{Decoys, ServerLogon};
use tickpath_oms_protocol::{
    FrameError, FrameKind, Logon, LogonRejectReason, MAGIC, OrderEntryStream, write_frame_with_text,
};

use super::config::ServerConfig;
use super::config_reload::UserDirectory;
use super::escape::escaped;
use super::event::ServerEvent;
use super::file::{DECOY_KEY_FILE, load_or_create_key};
use super::pending_logon::{ChallengedLogon, LogonBackoff, LogonStage, PendingLogon, TLS_HANDSHAKE};
use super::stream::ClientStream;
use crate::settings::OmsUser;

/// Wait after a wrong password.
const PENALTY_NS: u64 = 1_000_000_000;
/// Max reads per connection and turn; a connection with more to read is closed as no client.
const MAX_READS: usize = 256;

/// SCRAM verifier of the acceptor: checks the users' proofs, and refuses connections.
pub(crate) struct Authenticator<C> {
    clock: C,
    events: SyncSender<ServerEvent>,
    directory: Arc<UserDirectory>,
    backoff: LogonBackoff,
    /// Stand-ins for secrets of users that do not exist, and the user directory's change count when they were made.
    decoys: Decoys,
    decoys_version: u64,
}

pub(crate) enum LogonOutcome {
    Pending,
    Closed,
    Admitted(Arc<OmsUser>, Logon, Vec<u8>),
}

impl<C: Clock> Authenticator<C> {
    /// Opens with the decoys' key in this folder, which is drawn at the first start.
    pub fn open(clock: C, config: &ServerConfig, directory: Arc<UserDirectory>, folder: &Path) -> Self {
        let key = load_or_create_key(&folder.join(DECOY_KEY_FILE)).unwrap_or_else(|e| {
            let why = format!(
                "{DECOY_KEY_FILE} cannot be kept in {}: {e}; until it can, a restart reveals to strangers which users exist",
                folder.display()
            );
            let _ = config.events.try_send(ServerEvent::Warning(why));
            Decoys::draw_key()
        });
        let decoys = Decoys::with_key(key, directory.current().list.iter().map(|user| &user.secret));
        let events = config.events.clone();
        Self { clock, events, directory, backoff: LogonBackoff::new(), decoys, decoys_version: 0 }
    }

    /// Reads and answers the frames of a connection.
    pub fn read_logon(&mut self, peer: &mut PendingLogon) -> LogonOutcome {
        for _ in 0..MAX_READS {
            if matches!(peer.stage, LogonStage::Refusing(..) | LogonStage::Delayed(..) | LogonStage::Hello) {
                return LogonOutcome::Pending;
            }
            match peer.stream.read(peer.inbox.free_space()) {
                Ok(0) => return LogonOutcome::Closed,
                Ok(bytes) => peer.inbox.advance(bytes),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return LogonOutcome::Pending,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    // The client's own message may be better, but this one reaches the operator.
                    if e.kind() == io::ErrorKind::InvalidData {
                        self.report_refusal(&peer.stream, &format!("its TLS failed: {e}"));
                    }
                    return LogonOutcome::Closed;
                }
            }
            // A client sends one frame and waits for the answer, so one frame per read is enough.
            let received = match peer.inbox.next() {
                Ok(None) => continue,
                Ok(Some(frame)) => Ok((frame.kind, frame.message::<Logon>(), frame.text.to_vec())),
                Err(FrameError::Length(first))
                    if first as u8 == TLS_HANDSHAKE && matches!(peer.stream.0, OrderEntryStream::Tcp(_)) =>
                {
                    Err("this port has no TLS; connect by tcp://HOST:PORT, or give the OMS a [tls]".to_owned())
                }
                Err(e) => Err(e.to_string()),
            };
            let answered = received.and_then(|(kind, logon, text)| self.answer(peer, kind, logon, &text));
            match answered {
                Ok(LogonOutcome::Pending) => {}
                Ok(ended) => return ended,
                Err(why) => self.refuse(peer, 0, LogonRejectReason::Protocol, why),
            }
        }
        LogonOutcome::Closed
    }

    fn answer(&mut self, peer: &mut PendingLogon, kind: u8, logon: Logon, text: &[u8]) -> Result<LogonOutcome, String> {
        match (std::mem::replace(&mut peer.stage, LogonStage::Logon), FrameKind::from_code(kind)) {
            (LogonStage::Logon, Some(FrameKind::Logon)) => {
                if logon.magic != MAGIC || logon.version == 0 {
                    return Err("this is no logon of this protocol; is the client of another one?".to_owned());
                }
                let binding = peer.stream.binding().map_err(|e| e.to_string())?;
                if let Some((changes, users)) = self.directory.changed_since(self.decoys_version) {
                    self.decoys.update(users.list.iter().map(|user| &user.secret));
                    self.decoys_version = changes;
                }
                let (users, decoys) = (self.directory.current(), &self.decoys);
                let find = |name: &str| {
                    // A decoy is made for each name, so that the time of the answer does not reveal which users exist.
                    // A disabled user keeps the challenge it had: a decoy would reveal the change.
                    let decoy = decoys.of(name);
                    users.find(name).map_or(decoy, |user| user.secret.clone())
                };
                let (server, challenge) =
                    ServerLogon::begin(text, binding.as_ref(), find).map_err(|e| e.to_string())?;
                let mut out = Vec::new();
                write_frame_with_text(&mut out, FrameKind::Challenge.code(), 0, self.clock.ticks(), &[], &challenge);
                peer.stage = LogonStage::Proof(Box::new(ChallengedLogon { server, logon, users }));
                // The challenge fits the empty send buffer of a new socket.
                peer.stream.write_all(&out).map_err(|e| e.to_string())?;
                Ok(LogonOutcome::Pending)
            }
            (LogonStage::Proof(begun), Some(FrameKind::Proof)) => Ok(self.verify(peer, begun, text.to_vec())),
            _ => Err(format!("a frame of kind {kind} does not belong to a logon; log in first")),
        }
    }

    /// Verifies a proof, unless a wrong password delays it. Admits the user only if its record is unchanged since the
    /// challenge.
    fn verify(&mut self, peer: &mut PendingLogon, begun: Box<ChallengedLogon>, proof: Vec<u8>) -> LogonOutcome {
        let (now, name) = (self.clock.ticks(), begun.server.user().to_owned());
        if !self.backoff.may_verify(peer.origin, &name, now) {
            peer.stage = LogonStage::Delayed(begun, proof);
            return LogonOutcome::Pending;
        }
        let ChallengedLogon { server, logon, users } = *begun;
        let challenged = users.find(&name).filter(|user| !user.disabled);
        match (server.verify(&proof), challenged) {
            (Ok(server_final), Some(user)) if self.directory.current().find(&name) == Some(user) => {
                LogonOutcome::Admitted(Arc::new(user.clone()), logon, server_final)
            }
            (Ok(_), Some(_)) => {
                let why = format!("the record of user '{name}' has changed since this logon began; log in again");
                self.refuse(peer, 0, LogonRejectReason::NotPermitted, why);
                LogonOutcome::Pending
            }
            _ => {
                let penalty = self.clock.calibration().ticks_of_ns(PENALTY_NS);
                self.backoff.delay_until(peer.origin, &name, now + penalty);
                let why = format!("the user '{name}' or the password is wrong; check both");
                self.refuse(peer, penalty, LogonRejectReason::Password, why);
                LogonOutcome::Pending
            }
        }
    }

    /// Returns whether a connection has a delayed proof that may be verified now.
    pub fn may_verify(&self, peer: &PendingLogon, now: u64) -> bool {
        match &peer.stage {
            LogonStage::Delayed(begun, _) => self.backoff.may_verify(peer.origin, begun.server.user(), now),
            _ => false,
        }
    }

    pub fn verify_delayed(&mut self, peer: &mut PendingLogon) -> LogonOutcome {
        match std::mem::replace(&mut peer.stage, LogonStage::Logon) {
            LogonStage::Delayed(begun, proof) => self.verify(peer, begun, proof),
            _ => LogonOutcome::Closed,
        }
    }

    /// Refuses a connection: the client receives the reason after so many ticks, and later frames of the client are
    /// ignored.
    pub fn refuse(&self, peer: &mut PendingLogon, after: u64, reason: LogonRejectReason, why: String) {
        self.report_refusal(&peer.stream, &why);
        peer.stage = LogonStage::Refusing(self.clock.ticks() + after, reason, why);
    }

    /// Reports a refusal to the operator. Escapes the sentence, because a name in it may have any characters.
    fn report_refusal(&self, stream: &ClientStream, why: &str) {
        let _ = self.events.try_send(ServerEvent::Refused { from: stream.peer(), why: escaped(why) });
    }
}
