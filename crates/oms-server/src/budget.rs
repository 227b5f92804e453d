//! Enforcement of the budget of denied requests: a session over it is disconnected, and slow until the day ends.

use tickpath_clock::Clock;
use tickpath_oms_runtime::front::Take;
use tickpath_oms_runtime::{Bucket, OmsError, Rate};

use super::connection::End;
use super::denials::SLOW;
use super::gateway::Gateway;

impl<C: Clock> Gateway<C> {
    /// Ends the connections of sessions over their budget of denied requests, and restores the full rate of the
    /// sessions that a new day has freed.
    pub(super) fn settle_denials(&mut self, take: &mut impl Take) -> Result<(), OmsError> {
        let now = self.clock.ticks();
        for session in self.denials.take_spent() {
            if let Some(&place) = self.places.get(&session) {
                self.end(place, End::Ended(self.denials.sentence(session)), take)?;
            }
            self.buckets.insert(session, Bucket::new(SLOW, self.clock.calibration(), now));
        }
        for session in self.denials.take_freed() {
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
    pub(super) fn fresh_bucket(&self, session: u16, now: u64) -> Bucket {
        let rate = self.sessions.get(&session).map_or(Rate::default(), |rules| rules.rate);
        Bucket::new(rate, self.clock.calibration(), now)
    }
}
