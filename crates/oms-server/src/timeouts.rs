//! Heartbeats, timeouts and the budget of denied requests: each connection is checked when something of it may be due.

use tickpath_clock::Clock;
use tickpath_oms_protocol::FrameKind;
use tickpath_oms_runtime::front_end::InputSink;
use tickpath_oms_runtime::layout::InputEvent;
use tickpath_oms_runtime::{LaneKind, OmsError};

use super::connection::{DisconnectReason, Liveness, OutstandingControl, RIGHTS_CHANGED};
use super::gateway::Gateway;

impl<C: Clock> Gateway<C> {
    /// Runs a round of checks: connections, changed users, and sessions that are absent after the start.
    pub(super) fn run_checks(&mut self, now: u64, sink: &mut impl InputSink) -> Result<(), OmsError> {
        self.check_connections(now, sink)?;
        self.disconnect_changed_users(sink)?;
        self.cancel_for_absent_sessions(now, sink)
    }

    /// Ends the connections of silent clients, and sends heartbeats to the others.
    fn check_connections(&mut self, now: u64, sink: &mut impl InputSink) -> Result<(), OmsError> {
        while let Some((slot, serial)) = self.checks.next(now) {
            let Some(connection) = self.clients.get_mut(slot) else { continue };
            if connection.serial != serial {
                continue;
            }
            let is_outstanding = matches!(connection.control.outstanding, OutstandingControl::Sent);
            if connection.liveness.is_silent(now) && !is_outstanding {
                let ms = self.clock.ns_between(0, connection.liveness.timeout) / 1_000_000;
                self.disconnect(slot, DisconnectReason::ByServer(format!("no message for {ms} ms")), sink)?;
                continue;
            }
            if connection.liveness.is_heartbeat_due(now) && !connection.output.is_lagging() {
                let expected = self.requests.first_unjournaled(connection.session) + connection.denied_before_journal;
                connection.send_message(FrameKind::Heartbeat, expected, now, &[], &[]);
                self.ready.mark(slot);
            }
            let Liveness { last_received, last_sent, timeout } = connection.liveness;
            let due = (last_received + timeout).min(last_sent + timeout / 2);
            self.checks.add_after_round(due, slot, connection);
        }
        Ok(())
    }

    fn disconnect_changed_users(&mut self, sink: &mut impl InputSink) -> Result<(), OmsError> {
        let Some(users) = self.admissions.changed_users() else { return Ok(()) };
        let changed = self.clients.slots_where(|connection| {
            let user = &*connection.user;
            users.find(&user.name) != Some(user)
        });
        for slot in changed {
            self.disconnect(slot, DisconnectReason::ByServer(RIGHTS_CHANGED.to_owned()), sink)?;
        }
        Ok(())
    }

    /// Sends the core a logout of each session that cancels on disconnect and has no client, once after the start.
    fn cancel_for_absent_sessions(&mut self, now: u64, sink: &mut impl InputSink) -> Result<(), OmsError> {
        if !self.sessions.take_absent_deadline(now) {
            return Ok(());
        }
        for session in self.sessions.canceling().filter(|&session| !self.clients.has_session(session)) {
            sink(LaneKind::Requests(session), now, InputEvent::Login(false))?;
        }
        Ok(())
    }

    /// Disconnects sessions over their budget of denied requests, and restores the rate of those that a new day frees.
    pub(super) fn enforce_budgets(&mut self, sink: &mut impl InputSink) -> Result<(), OmsError> {
        let now = self.clock.ticks();
        for session in std::mem::take(&mut self.denials.exhausted) {
            if let Some(slot) = self.clients.slot_of(session) {
                self.disconnect(slot, DisconnectReason::ByServer(self.denials.sentence(session)), sink)?;
            }
            self.sessions.throttle(session, &self.clock, now);
        }
        for session in std::mem::take(&mut self.denials.restored) {
            let bucket = self.sessions.restore_bucket(session, &self.clock, now);
            if let Some((_, connection)) = self.clients.of_session(session) {
                connection.limit.bucket = bucket;
            }
        }
        Ok(())
    }
}
