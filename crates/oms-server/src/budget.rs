//! Enforcement of the budget of denied requests: a session over it is disconnected, and slow until the day ends.

use tickpath_clock::Clock;
use tickpath_oms_runtime::OmsError;
use tickpath_oms_runtime::front_end::InputSink;

use super::connection::DisconnectReason;
use super::gateway::Gateway;

impl<C: Clock> Gateway<C> {
    /// Ends the connections of sessions over their budget of denied requests, and restores the full rate of the
    /// sessions that a new day has freed.
    pub(super) fn enforce_budgets(&mut self, sink: &mut impl InputSink) -> Result<(), OmsError> {
        let now = self.clock.ticks();
        for session in self.denials.take_exhausted() {
            if let Some(slot) = self.clients.slot_of(session) {
                self.disconnect(slot, DisconnectReason::ByServer(self.denials.sentence(session)), sink)?;
            }
            self.sessions.throttle(session, &self.clock, now);
        }
        for session in self.denials.take_restored() {
            let bucket = self.sessions.restore_bucket(session, &self.clock, now);
            if let Some((_, connection)) = self.clients.of_session(session) {
                connection.limit.bucket = bucket;
            }
        }
        Ok(())
    }
}
