//! Heartbeats and timeouts: each connection is checked when something of it may be due.

use tickpath_clock::Clock;
use tickpath_oms_protocol::Kind;
use tickpath_oms_runtime::front::Take;
use tickpath_oms_runtime::layout::Event;
use tickpath_oms_runtime::{LaneKind, OmsError};

use super::connection::{Connection, End, Question};
use super::gateway::{Gateway, LOOK_NS, get, mark};

impl<C: Clock> Gateway<C> {
    /// Ends the connections of silent clients, and sends heartbeats to the others. Also acts on changed users, and on
    /// sessions that are absent after the start.
    pub(super) fn look(&mut self, now: u64, take: &mut impl Take) -> Result<(), OmsError> {
        let soon = now + self.clock.calibration().ticks_of_ns(LOOK_NS);
        while let Some((place, serial)) = self.watch.next(now) {
            let Some(Some(connection)) = self.connections.get_mut(place) else { continue };
            if connection.serial != serial {
                continue;
            }
            let (patience, session) = (connection.patience, connection.session);
            let is_asked = matches!(connection.question, Question::Asked);
            if now.saturating_sub(connection.heard) > patience && !is_asked {
                let ms = self.clock.ns_between(0, patience) / 1_000_000;
                self.end(place, End::Ended(format!("no word for {ms} ms")), take)?;
                continue;
            }
            if now.saturating_sub(connection.said) > patience / 2 && !connection.lags() {
                let upto = self.journaled.upto(session, get(&self.next_request, session)) + connection.refused;
                connection.say(Kind::Heartbeat, upto, now, &[], &[]);
                mark(&mut self.unfinished, place);
            }
            let due = (connection.heard + patience).min(connection.said + patience / 2);
            self.watch.add(due.max(soon), place, connection);
        }
        if let Some((users, known)) = self.door.as_ref().and_then(|door| door.users_since(self.users)) {
            self.users = users;
            let has_changed = |connection: &Connection| known.find(&connection.user.name) != Some(&*connection.user);
            for place in 0..self.connections.len() {
                if self.connections[place].as_ref().is_some_and(has_changed) {
                    self.end(place, End::Ended("the user's rights have changed; log in again".to_owned()), take)?;
                }
            }
        }
        if self.awaited.is_some_and(|at| now >= at) {
            self.awaited = None;
            let missing = self.sessions.values().filter(|session| session.cancel_on_disconnect);
            for session in missing.map(|session| session.session).filter(|session| !self.places.contains_key(session)) {
                take(LaneKind::Requests(session), now, Event::Login(false))?;
            }
        }
        Ok(())
    }
}
