//! Session assignment: an admitted client gets its session, or is refused.

use tickpath_clock::Clock;
use tickpath_oms_protocol::{
    ANY_SESSION, FROM_NOW, FrameBuffer, FrameKind, Logon, LogonRejectReason, Welcome, write_frame_with_text,
};
use tickpath_oms_runtime::front_end::InputSink;
use tickpath_oms_runtime::layout::InputEvent;
use tickpath_oms_runtime::{AckLevel, LaneKind, OmsError, RequestRate, TokenBucket};
use zerocopy::IntoBytes;

use std::sync::atomic::Ordering;

use mio::{Interest, Token};

use super::acceptor::{AcceptorThread, AdmittedClient, send_refusal};
use super::connection::{ClientConnection, DisconnectReason, ReportSource, heartbeat_ms};
use super::drop_copies::DropCopyLogon;
use super::event::ServerEvent;
use super::gateway::{Gateway, mark, next_number};
use crate::settings::OmsUser;

impl<C: Clock> Gateway<C> {
    /// Gives a client its session, or refuses it.
    pub(super) fn admit(&mut self, mut admitted: AdmittedClient, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        let now = self.clock.ticks();
        // An admin may have changed the user between its proof and this turn.
        let still_holds =
            |door: &AcceptorThread| door.directory().current().find(&admitted.user.name) == Some(&*admitted.user);
        let session = match self.acceptor.as_ref().is_some_and(still_holds) {
            true => self.choose_session(&admitted.user, &admitted.logon),
            false => Err((LogonRejectReason::NotPermitted, "the user's rights have changed; log in again".to_owned())),
        };
        let session = match session {
            Ok(session) => session,
            Err((refusal, why)) => {
                let from = admitted.stream.peer();
                send_refusal(&mut admitted.stream, now, refusal, &why);
                let why = format!("{}: {why}", admitted.user.name);
                let _ = self.config.events.try_send(ServerEvent::Refused { from, why });
                return Ok(1);
            }
        };
        if admitted.user.drop_copy.is_some() {
            let bucket = TokenBucket::new(RequestRate::default(), self.clock.calibration(), now);
            let next_request = next_number(&self.next_request, session);
            self.copies.hand_over(DropCopyLogon { admitted, session, bucket, next_request });
            return Ok(1);
        }
        if let Some(&place) = self.places.get(&session) {
            self.disconnect(place, DisconnectReason::TakenOver, sink)?;
        }
        let next_request = next_number(&self.next_request, session);
        if self.journaled.first_unjournaled(session, next_request) < next_request {
            self.awaiting_journal.push(admitted);
            return Ok(0);
        }
        let AdmittedClient { mut stream, mut inbox, user, logon, server_final, lanes } = admitted;
        let place = self.connections.iter().position(Option::is_none).unwrap_or(self.connections.len());
        if self.poll.registry().register(&mut stream, Token(place), Interest::READABLE | Interest::WRITABLE).is_err() {
            return Ok(1);
        }
        let bucket = self.buckets.remove(&session).unwrap_or_else(|| self.fresh_bucket(session, now));
        let live_report = next_number(&self.next_report, session);
        let next_report = self.first_report(session, logon.journal, logon.next_report, logon.last_sum);
        let heartbeat_ms = heartbeat_ms(&logon, self.config.heartbeat_ms);
        let hears = match next_report == live_report {
            true => ReportSource::Live,
            false => ReportSource::History(self.history.read(session, next_report).ok().map(Box::new)),
        };
        let level = self.sessions.get(&session).map_or(AckLevel::Os, |rules| rules.level);
        let others = self.was_taken_over(session, &logon).into();
        self.clients.insert(session, logon.client);
        let welcome = Welcome {
            version: logon.version,
            session,
            level: level as u8,
            role: user.role.code(),
            others,
            journal: self.journal,
            next_request,
            next_report,
            live_report,
            heartbeat_ms,
            lanes: lanes.is_some().into(),
            ..Welcome::default()
        };
        let mut said = Vec::new();
        write_frame_with_text(&mut said, FrameKind::Welcome.code(), 0, now, welcome.as_bytes(), &server_final);
        if let Some((lanes, memory)) = lanes {
            let Ok(opened) = stream.open_lanes(lanes, &memory, &said) else { return Ok(1) };
            self.laned.push(place);
            (stream, inbox, said) = (opened, FrameBuffer::default(), Vec::new());
        }
        self.serial += 1;
        let (from, shares_clock) = (stream.peer(), stream.is_of_this_host());
        let patience = self.clock.calibration().ticks_of_ns(u64::from(heartbeat_ms) * 1_000_000);
        let mut connection = ClientConnection::new(stream, inbox, user, session, self.serial, bucket, hears);
        connection.next_report = next_report;
        (connection.last_received, connection.received, connection.last_sent, connection.timeout) =
            (now, now, now, patience);
        (connection.shares_clock, connection.version) = (shares_clock, logon.version);
        let is_journaled = !connection.is_read_only || self.denials.count_logon(session);
        connection.is_journaled = is_journaled;
        connection.send_frames(&said);
        let user = connection.user.name.clone();
        let _ = self.config.events.try_send(ServerEvent::LoggedIn { user, session, from });
        if place == self.connections.len() {
            self.connections.push(None);
        }
        self.schedule.add(now, place, &connection);
        self.connections[place] = Some(connection);
        self.places.insert(session, place);
        self.control.sessions.store(self.places.len() as u64, Ordering::Relaxed);
        mark(&mut self.unfinished, place);
        if is_journaled {
            sink(LaneKind::Requests(session), now, InputEvent::Login(true))?;
        }
        Ok(1)
    }

    /// Returns the session that a user gets.
    fn choose_session(&self, user: &OmsUser, logon: &Logon) -> Result<u16, (LogonRejectReason, String)> {
        let (theirs, is_copy, wanted) = (&user.sessions, user.drop_copy.is_some(), logon.session);
        if logon.features & Logon::DROP_COPY != 0 && !is_copy {
            let why = format!("'{}' hears nothing of others; log in as a user that has drop_copy = true", user.name);
            return Err((LogonRejectReason::NotPermitted, why));
        }
        let list = || theirs.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let known = |session: &u16| self.sessions.contains_key(session);
        // A drop copy takes no session from a client, so several share one.
        let is_free = |session: &u16| is_copy || !self.places.contains_key(session);
        if !is_copy && self.places.len() >= self.config.max_sessions && !self.places.contains_key(&wanted) {
            return Err((
                LogonRejectReason::Full,
                format!("all {} places are taken; log out somewhere", self.config.max_sessions),
            ));
        }
        match wanted {
            ANY_SESSION => {
                let free = theirs.iter().copied().find(|session| known(session) && is_free(session));
                free.ok_or_else(|| match theirs.iter().any(known) {
                    true => (LogonRejectReason::InUse, format!("all sessions of the user are in use: {}", list())),
                    false => (
                        LogonRejectReason::NotPermitted,
                        format!("the OMS does not have the user's sessions ({}); start it with them", list()),
                    ),
                })
            }
            wanted if !theirs.contains(&wanted) => Err((
                LogonRejectReason::NotPermitted,
                format!("session {wanted} is not this user's; use one of {}", list()),
            )),
            wanted if !known(&wanted) => Err((
                LogonRejectReason::NotPermitted,
                format!("the OMS does not have session {wanted}; start it with that"),
            )),
            wanted if self.places.contains_key(&wanted) && self.was_taken_over(wanted, logon) => {
                let why = format!("another client has taken session {wanted} meanwhile; name one for each program");
                Err((LogonRejectReason::InUse, why))
            }
            wanted => Ok(wanted),
        }
    }

    /// Returns whether a reconnecting client finds that another client has had the session meanwhile.
    fn was_taken_over(&self, session: u16, logon: &Logon) -> bool {
        logon.features & Logon::RECONNECT != 0 && self.clients.get(&session).is_some_and(|&last| last != logon.client)
    }

    /// Returns the first report for a client: the one it asks for, if the checksum of the report before it matches.
    fn first_report(&self, session: u16, journal: u64, asked: u64, last_sum: u32) -> u64 {
        let (first, next) = (self.history.first(session), next_number(&self.next_report, session));
        if asked == FROM_NOW {
            return next;
        }
        // A client that knows no report begins with the current day; one that knows a report resumes behind that, in
        // archived days too.
        if journal != self.journal {
            return first;
        }
        let oldest = self.history.oldest(session);
        if asked <= oldest {
            return oldest;
        }
        let knows = |told: u32| last_sum == 0 || told == last_sum;
        match self.history.checksum(session, asked - 1) {
            Some(sum) if !knows(sum) => first,
            // A client that catches up from the history may be ahead of the live reports.
            None if asked > next => first,
            _ => asked,
        }
    }
}
