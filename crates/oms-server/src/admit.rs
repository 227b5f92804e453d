//! Session assignment: an admitted client gets its session, or is refused.

use tickpath_clock::Clock;
use tickpath_oms_protocol::{ANY_SESSION, FROM_NOW, Inbox, Kind, Logon, Refusal, Welcome, write_with_text};
use tickpath_oms_runtime::front::Take;
use tickpath_oms_runtime::layout::Event;
use tickpath_oms_runtime::{AckLevel, Bucket, LaneKind, OmsError, Rate};
use zerocopy::IntoBytes;

use std::sync::atomic::Ordering;

use mio::{Interest, Token};

use super::connection::{Connection, End, Hears, heartbeat_ms};
use super::copies::Newcomer;
use super::door::{Admitted, Door, tell_refusal};
use super::event::ServerEvent;
use super::gateway::{Gateway, get, mark};
use crate::settings::User;

impl<C: Clock> Gateway<C> {
    /// Gives a client its session, or refuses it.
    pub(super) fn admit(&mut self, mut admitted: Admitted, take: &mut impl Take) -> Result<usize, OmsError> {
        let now = self.clock.ticks();
        // An admin may have changed the user between its proof and this turn.
        let still_holds = |door: &Door| door.known().get().find(&admitted.user.name) == Some(&*admitted.user);
        let session = match self.door.as_ref().is_some_and(still_holds) {
            true => self.session_for(&admitted.user, &admitted.logon),
            false => Err((Refusal::NotYours, "the user's rights have changed; log in again".to_owned())),
        };
        let session = match session {
            Ok(session) => session,
            Err((refusal, why)) => {
                let from = admitted.stream.peer();
                tell_refusal(&mut admitted.stream, now, refusal, &why);
                let why = format!("{}: {why}", admitted.user.name);
                let _ = self.config.events.try_send(ServerEvent::Refused { from, why });
                return Ok(1);
            }
        };
        if admitted.user.drop_copy.is_some() {
            let bucket = Bucket::new(Rate::default(), self.clock.calibration(), now);
            let next_request = get(&self.next_request, session);
            self.copies.take(Newcomer { admitted, session, bucket, next_request });
            return Ok(1);
        }
        if let Some(&place) = self.places.get(&session) {
            self.end(place, End::Taken, take)?;
        }
        let next_request = get(&self.next_request, session);
        if self.journaled.upto(session, next_request) < next_request {
            self.waiting.push(admitted);
            return Ok(0);
        }
        let Admitted { mut stream, mut inbox, user, logon, server_final, lanes } = admitted;
        let place = self.connections.iter().position(Option::is_none).unwrap_or(self.connections.len());
        if self.poll.registry().register(&mut stream, Token(place), Interest::READABLE | Interest::WRITABLE).is_err() {
            return Ok(1);
        }
        let bucket = self.buckets.remove(&session).unwrap_or_else(|| self.fresh_bucket(session, now));
        let live_report = get(&self.next_report, session);
        let next_report = self.first_report(session, logon.journal, logon.next_report, logon.last_sum);
        let heartbeat_ms = heartbeat_ms(&logon, self.config.heartbeat_ms);
        let hears = match next_report == live_report {
            true => Hears::Live,
            false => Hears::Reading(self.marks.read(session, next_report).ok().map(Box::new)),
        };
        let level = self.sessions.get(&session).map_or(AckLevel::Os, |rules| rules.level);
        let others = self.had_others(session, &logon).into();
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
        write_with_text(&mut said, Kind::Welcome.code(), 0, now, welcome.as_bytes(), &server_final);
        if let Some((lanes, memory)) = lanes {
            let Ok(opened) = stream.open_lanes(lanes, &memory, &said) else { return Ok(1) };
            self.laned.push(place);
            (stream, inbox, said) = (opened, Inbox::default(), Vec::new());
        }
        self.serial += 1;
        let (from, shares_clock) = (stream.peer(), stream.is_of_this_host());
        let patience = self.clock.calibration().ticks_of_ns(u64::from(heartbeat_ms) * 1_000_000);
        let mut connection = Connection::new(stream, inbox, user, session, self.serial, bucket, hears);
        connection.next_report = next_report;
        (connection.heard, connection.received, connection.said, connection.patience) = (now, now, now, patience);
        (connection.shares_clock, connection.version) = (shares_clock, logon.version);
        let is_journaled = !connection.only_reads || self.denials.journals_logon(session);
        connection.is_journaled = is_journaled;
        connection.say_frames(&said);
        let user = connection.user.name.clone();
        let _ = self.config.events.try_send(ServerEvent::LoggedIn { user, session, from });
        if place == self.connections.len() {
            self.connections.push(None);
        }
        self.watch.add(now, place, &connection);
        self.connections[place] = Some(connection);
        self.places.insert(session, place);
        self.asking.sessions.store(self.places.len() as u64, Ordering::Relaxed);
        mark(&mut self.unfinished, place);
        if is_journaled {
            take(LaneKind::Requests(session), now, Event::Login(true))?;
        }
        Ok(1)
    }

    /// Returns the session that a user gets.
    fn session_for(&self, user: &User, logon: &Logon) -> Result<u16, (Refusal, String)> {
        let (theirs, is_copy, wanted) = (&user.sessions, user.drop_copy.is_some(), logon.session);
        if logon.wishes & Logon::DROP_COPY != 0 && !is_copy {
            let why = format!("'{}' hears nothing of others; log in as a user that has drop_copy = true", user.name);
            return Err((Refusal::NotYours, why));
        }
        let list = || theirs.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let known = |session: &u16| self.sessions.contains_key(session);
        // A drop copy takes no session from a client, so several share one.
        let is_free = |session: &u16| is_copy || !self.places.contains_key(session);
        if !is_copy && self.places.len() >= self.config.most && !self.places.contains_key(&wanted) {
            return Err((Refusal::Full, format!("all {} places are taken; log out somewhere", self.config.most)));
        }
        match wanted {
            ANY_SESSION => {
                let free = theirs.iter().copied().find(|session| known(session) && is_free(session));
                free.ok_or_else(|| match theirs.iter().any(known) {
                    true => (Refusal::InUse, format!("all sessions of the user are in use: {}", list())),
                    false => (
                        Refusal::NotYours,
                        format!("the OMS does not have the user's sessions ({}); start it with them", list()),
                    ),
                })
            }
            wanted if !theirs.contains(&wanted) => {
                Err((Refusal::NotYours, format!("session {wanted} is not this user's; use one of {}", list())))
            }
            wanted if !known(&wanted) => {
                Err((Refusal::NotYours, format!("the OMS does not have session {wanted}; start it with that")))
            }
            wanted if self.places.contains_key(&wanted) && self.had_others(wanted, logon) => {
                let why = format!("another client has taken session {wanted} meanwhile; name one for each program");
                Err((Refusal::InUse, why))
            }
            wanted => Ok(wanted),
        }
    }

    /// Returns whether a reconnecting client finds that another client has had the session meanwhile.
    fn had_others(&self, session: u16, logon: &Logon) -> bool {
        logon.wishes & Logon::AGAIN != 0 && self.clients.get(&session).is_some_and(|&last| last != logon.client)
    }

    /// Returns the first report for a client: the one it asks for, if the checksum of the report before it matches.
    fn first_report(&self, session: u16, journal: u64, asked: u64, last_sum: u32) -> u64 {
        let (first, next) = (self.marks.first(session), get(&self.next_report, session));
        if asked == FROM_NOW {
            return next;
        }
        // A client that knows no report begins with the current day; one that knows a report resumes behind that, in
        // archived days too.
        if journal != self.journal {
            return first;
        }
        let oldest = self.marks.oldest(session);
        if asked <= oldest {
            return oldest;
        }
        let knows = |told: u32| last_sum == 0 || told == last_sum;
        match self.marks.sum(session, asked - 1) {
            Some(sum) if !knows(sum) => first,
            // A client that catches up from the history may be ahead of the live reports.
            None if asked > next => first,
            _ => asked,
        }
    }
}
