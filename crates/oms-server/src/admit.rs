//! Session assignment: an admitted client gets its session, or is refused.

use std::sync::atomic::Ordering;

use tickpath_clock::Clock;
use tickpath_oms_protocol::{
    ANY_SESSION, FrameBuffer, FrameKind, Logon, LogonRejectReason, Welcome, write_frame_with_text,
};
use tickpath_oms_runtime::front_end::InputSink;
use tickpath_oms_runtime::layout::InputEvent;
use tickpath_oms_runtime::{LaneKind, OmsError, RequestRate, TokenBucket};
use zerocopy::IntoBytes;

use super::acceptor::AdmittedClient;
use super::connection::{ClientConnection, DetailPosition, DisconnectReason, Liveness, RIGHTS_CHANGED, heartbeat_ms};
use super::drop_copies::DropCopyLogon;
use super::event::ServerEvent;
use super::gateway::Gateway;
use crate::settings::OmsUser;

impl<C: Clock> Gateway<C> {
    /// Gives this number of waiting clients their sessions, or refuses them. Returns the number of clients done.
    pub(super) fn admit_waiting(&mut self, count: usize, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        let mut done = 0;
        for _ in 0..count {
            let Some(client) = self.admissions.waiting.pop_front() else { break };
            done += self.admit(client, sink)?;
        }
        Ok(done)
    }

    /// Gives a client its session, or refuses it. Returns zero if the client waits for the journal.
    fn admit(&mut self, mut client: AdmittedClient, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        let now = self.clock.ticks();
        // An admin may have changed the user between its proof and this turn.
        let session = match self.admissions.is_current(&client.user) {
            true => self.choose_session(&client.user, &client.logon),
            false => Err((LogonRejectReason::NotPermitted, RIGHTS_CHANGED.to_owned())),
        };
        let session = match session {
            Ok(session) => session,
            Err((reason, why)) => {
                client.refuse(now, reason, &why, &self.config.events);
                return Ok(1);
            }
        };
        if client.user.drop_copy.is_some() {
            let bucket = TokenBucket::new(RequestRate::default(), self.clock.calibration(), now);
            let next_request = self.requests.numbers.next(session);
            self.copies.hand_over(DropCopyLogon { admitted: client, session, bucket, next_request });
            return Ok(1);
        }
        if let Some(slot) = self.clients.slot_of(session) {
            self.disconnect(slot, DisconnectReason::TakenOver, sink)?;
        }
        if !self.requests.are_journaled(session) {
            self.admissions.waiting.push_back(client);
            return Ok(0);
        }
        self.connect(client, session, now, sink).map(|()| 1)
    }

    /// Connects a client to its session, which no other client has now. A client whose socket fails is dropped.
    fn connect(
        &mut self,
        client: AdmittedClient,
        session: u16,
        now: u64,
        sink: &mut impl InputSink,
    ) -> Result<(), OmsError> {
        let AdmittedClient { mut stream, mut inbox, user, logon, server_final, lanes } = client;
        let slot = self.clients.free_slot();
        if self.sockets.register(&mut stream, slot).is_err() {
            return Ok(());
        }
        let bucket = self.sessions.take_bucket(session, &self.clock, now);
        let reports = self.reports.position_for(session, &logon);
        let heartbeat_ms = heartbeat_ms(&logon, self.config.heartbeat_ms);
        let others = self.sessions.was_taken_over(session, &logon).into();
        self.sessions.note_client(session, logon.client);
        let welcome = Welcome {
            version: logon.version,
            session,
            level: self.sessions.level(session) as u8,
            role: user.role.code(),
            others,
            journal: self.reports.journal,
            next_request: self.requests.numbers.next(session),
            next_report: reports.next,
            live_report: self.reports.next(session).report,
            heartbeat_ms,
            lanes: lanes.is_some().into(),
            next_detail: match reports.details {
                DetailPosition::Off => 0,
                DetailPosition::Behind => Logon::DETAILS_BEHIND,
                DetailPosition::Next(next) => next,
            },
            ..Welcome::default()
        };
        let mut frame = Vec::new();
        write_frame_with_text(&mut frame, FrameKind::Welcome.code(), 0, now, welcome.as_bytes(), &server_final);
        if let Some((lanes, memory)) = lanes {
            let Ok(opened) = stream.open_lanes(lanes, &memory, &frame) else { return Ok(()) };
            (stream, inbox, frame) = (opened, FrameBuffer::default(), Vec::new());
        }
        let from = stream.peer();
        let shares_clock = stream.is_of_this_host();
        let timeout = self.clock.calibration().ticks_of_ns(u64::from(heartbeat_ms) * 1_000_000);
        let liveness = Liveness::new(now, timeout);
        let mut connection = ClientConnection::new(stream, inbox, user, session, bucket, reports, liveness);
        connection.serial = self.clients.next_serial();
        (connection.shares_clock, connection.version) = (shares_clock, logon.version);
        let is_journaled = !connection.is_read_only || self.denials.count_logon(session);
        connection.is_journaled = is_journaled;
        connection.output.write_frames(&frame);
        let user = connection.user.name.clone();
        let _ = self.config.events.try_send(ServerEvent::LoggedIn { user, session, from });
        self.checks.add(now, slot, &connection);
        self.clients.insert(slot, connection);
        self.control.sessions.store(self.clients.session_count() as u64, Ordering::Relaxed);
        self.ready.mark(slot);
        if is_journaled {
            sink(LaneKind::Requests(session), now, InputEvent::Login(true))?;
        }
        Ok(())
    }

    fn choose_session(&self, user: &OmsUser, logon: &Logon) -> Result<u16, (LogonRejectReason, String)> {
        use LogonRejectReason::{Full, InUse, NotPermitted};
        let (own, is_copy, wanted) = (&user.sessions, user.drop_copy.is_some(), logon.session);
        if logon.features & Logon::DROP_COPY != 0 && !is_copy {
            let why = format!("'{}' has no drop copy; log in as a user that has drop_copy = true", user.name);
            return Err((NotPermitted, why));
        }
        let list = || own.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let is_known = |session: &u16| self.sessions.contains(*session);
        // A drop copy takes no session from a client, so several share one.
        let is_free = |session: &u16| is_copy || !self.clients.has_session(*session);
        let max_sessions = self.config.max_sessions;
        if !is_copy && self.clients.session_count() >= max_sessions && !self.clients.has_session(wanted) {
            return Err((Full, format!("all {max_sessions} sessions are in use; log out of one")));
        }
        if wanted == ANY_SESSION {
            let free = own.iter().copied().find(|session| is_known(session) && is_free(session));
            return free.ok_or_else(|| match own.iter().any(is_known) {
                true => (InUse, format!("all sessions of the user are in use: {}", list())),
                false => (
                    NotPermitted,
                    format!("the OMS does not have the user's sessions ({}); start it with them", list()),
                ),
            });
        }
        if !own.contains(&wanted) {
            return Err((NotPermitted, format!("session {wanted} is not this user's; use one of {}", list())));
        }
        if !self.sessions.contains(wanted) {
            return Err((NotPermitted, format!("the OMS does not have session {wanted}; start it with that")));
        }
        if self.clients.has_session(wanted) && self.sessions.was_taken_over(wanted, logon) {
            let why = format!("another client has taken session {wanted} meanwhile; name one for each program");
            return Err((InUse, why));
        }
        Ok(wanted)
    }
}
