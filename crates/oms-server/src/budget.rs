//! Enforcement of the budget of denied requests: a session over it is disconnected, and slow until the day ends.

use tickpath_clock::Clock;
use tickpath_oms_runtime::front_end::InputSink;
use tickpath_oms_runtime::{OmsError, RequestRate, TokenBucket};

use super::connection::DisconnectReason;
use super::denials::THROTTLED_RATE;
use super::gateway::Gateway;

impl<C: Clock> Gateway<C> {
    /// Ends the connections of sessions over their budget of denied requests, and restores the full rate of the
    /// sessions that a new day has freed.
    pub(super) fn enforce_budgets(&mut self, sink: &mut impl InputSink) -> Result<(), OmsError> {
        let now = self.clock.ticks();
        for session in self.denials.take_exhausted() {
            if let Some(&place) = self.places.get(&session) {
                self.disconnect(place, DisconnectReason::ByServer(self.denials.sentence(session)), sink)?;
            }
            self.buckets.insert(session, TokenBucket::new(THROTTLED_RATE, self.clock.calibration(), now));
        }
        for session in self.denials.take_restored() {
            self.buckets.remove(&session);
            let bucket = self.fresh_bucket(session, now);
            let place = self.places.get(&session).copied();
            if let Some(Some(connection)) = place.and_then(|place| self.connections.get_mut(place)) {
                connection.bucket = bucket;
            }
        }
        Ok(())
    }

    /// Returns a full token bucket for a session.
    pub(super) fn fresh_bucket(&self, session: u16, now: u64) -> TokenBucket {
        let rate = self.sessions.get(&session).map_or(RequestRate::default(), |rules| rules.rate);
        TokenBucket::new(rate, self.clock.calibration(), now)
    }
}
