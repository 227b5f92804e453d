//! Heartbeats and timeouts: each connection is checked when something of it may be due.

use tickpath_clock::Clock;
use tickpath_oms_protocol::FrameKind;
use tickpath_oms_runtime::front_end::InputSink;
use tickpath_oms_runtime::layout::InputEvent;
use tickpath_oms_runtime::{LaneKind, OmsError};

use super::connection::{ClientConnection, DisconnectReason, OutstandingControl};
use super::gateway::{CHECK_NS, Gateway, mark, next_number};

impl<C: Clock> Gateway<C> {
    /// Ends the connections of silent clients, and sends heartbeats to the others. Also acts on changed users, and on
    /// sessions that are absent after the start.
    pub(super) fn run_checks(&mut self, now: u64, sink: &mut impl InputSink) -> Result<(), OmsError> {
        let soon = now + self.clock.calibration().ticks_of_ns(CHECK_NS);
        while let Some((place, serial)) = self.schedule.next(now) {
            let Some(Some(connection)) = self.connections.get_mut(place) else { continue };
            if connection.serial != serial {
                continue;
            }
            let (patience, session) = (connection.timeout, connection.session);
            let is_asked = matches!(connection.outstanding, OutstandingControl::Sent);
            if now.saturating_sub(connection.last_received) > patience && !is_asked {
                let ms = self.clock.ns_between(0, patience) / 1_000_000;
                self.disconnect(place, DisconnectReason::ByServer(format!("no word for {ms} ms")), sink)?;
                continue;
            }
            if now.saturating_sub(connection.last_sent) > patience / 2 && !connection.is_lagging() {
                let upto = self.journaled.first_unjournaled(session, next_number(&self.next_request, session))
                    + connection.refused;
                connection.send_message(FrameKind::Heartbeat, upto, now, &[], &[]);
                mark(&mut self.unfinished, place);
            }
            let due = (connection.last_received + patience).min(connection.last_sent + patience / 2);
            self.schedule.add(due.max(soon), place, connection);
        }
        if let Some((users, known)) = self.acceptor.as_ref().and_then(|door| door.users_since(self.users_version)) {
            self.users_version = users;
            let has_changed =
                |connection: &ClientConnection| known.find(&connection.user.name) != Some(&*connection.user);
            for place in 0..self.connections.len() {
                if self.connections[place].as_ref().is_some_and(has_changed) {
                    self.disconnect(
                        place,
                        DisconnectReason::ByServer("the user's rights have changed; log in again".to_owned()),
                        sink,
                    )?;
                }
            }
        }
        if self.absent_deadline.is_some_and(|at| now >= at) {
            self.absent_deadline = None;
            let missing = self.sessions.values().filter(|session| session.cancel_on_disconnect);
            for session in missing.map(|session| session.session).filter(|session| !self.places.contains_key(session)) {
                sink(LaneKind::Requests(session), now, InputEvent::Login(false))?;
            }
        }
        Ok(())
    }
}
