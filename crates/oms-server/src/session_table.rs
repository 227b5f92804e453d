//! Sessions of the trading configuration, and their state while no client is connected.

use std::collections::BTreeMap;

use tickpath_clock::Clock;
use tickpath_oms_protocol::Logon;
use tickpath_oms_runtime::{AckLevel, RequestRate, SessionConfig, TokenBucket};

use super::denials::{DenialBudget, THROTTLED_RATE};

/// Sessions that may log in, and their state from one connection to the next.
pub(super) struct SessionTable {
    configs: BTreeMap<u16, SessionConfig>,
    /// Token buckets of sessions without a client, so that a reconnect does not refill them.
    buckets: BTreeMap<u16, TokenBucket>,
    last_clients: BTreeMap<u16, u32>,
    /// Deadline after the start: absent sessions that cancel on disconnect have their orders canceled then.
    absent_deadline: Option<u64>,
}

impl SessionTable {
    pub fn new(configs: &[SessionConfig], absent_deadline: u64) -> Self {
        Self {
            configs: configs.iter().map(|config| (config.session, config.clone())).collect(),
            buckets: BTreeMap::new(),
            last_clients: BTreeMap::new(),
            absent_deadline: Some(absent_deadline),
        }
    }

    pub fn contains(&self, session: u16) -> bool {
        self.configs.contains_key(&session)
    }

    pub fn level(&self, session: u16) -> AckLevel {
        self.configs.get(&session).map_or(AckLevel::Os, |config| config.level)
    }

    /// Replaces the sessions that may log in. A session with another rate than before begins with a full token bucket,
    /// unless its budget of denied requests is used up.
    pub fn replace(&mut self, configs: Vec<SessionConfig>, denials: &DenialBudget) {
        let configs: BTreeMap<u16, SessionConfig> =
            configs.into_iter().map(|config| (config.session, config)).collect();
        let rate_in =
            |configs: &BTreeMap<u16, SessionConfig>, session: u16| configs.get(&session).map(|config| config.rate);
        let before = &self.configs;
        self.buckets.retain(|&session, _| {
            denials.is_exhausted(session) || rate_in(before, session) == rate_in(&configs, session)
        });
        self.configs = configs;
    }

    /// Takes the token bucket that a session's last client has left; without one the bucket is full.
    pub fn take_bucket(&mut self, session: u16, clock: &impl Clock, now: u64) -> TokenBucket {
        self.buckets.remove(&session).unwrap_or_else(|| self.full_bucket(session, clock, now))
    }

    pub fn keep_bucket(&mut self, session: u16, bucket: TokenBucket) {
        self.buckets.insert(session, bucket);
    }

    /// Gives a session's next client the rate of a session whose budget of denied requests is used up.
    pub fn throttle(&mut self, session: u16, clock: &impl Clock, now: u64) {
        self.buckets.insert(session, TokenBucket::new(THROTTLED_RATE, clock.calibration(), now));
    }

    /// Drops the token bucket that is kept for a session, and returns a full one for its present client.
    pub fn restore_bucket(&mut self, session: u16, clock: &impl Clock, now: u64) -> TokenBucket {
        self.buckets.remove(&session);
        self.full_bucket(session, clock, now)
    }

    fn full_bucket(&self, session: u16, clock: &impl Clock, now: u64) -> TokenBucket {
        let rate = self.configs.get(&session).map_or(RequestRate::default(), |config| config.rate);
        TokenBucket::new(rate, clock.calibration(), now)
    }

    /// Returns whether a reconnecting client finds that another client has had the session meanwhile.
    pub fn was_taken_over(&self, session: u16, logon: &Logon) -> bool {
        let last = self.last_clients.get(&session);
        logon.features & Logon::RECONNECT != 0 && last.is_some_and(|&last| last != logon.client)
    }

    pub fn note_client(&mut self, session: u16, client: u32) {
        self.last_clients.insert(session, client);
    }

    /// Returns whether the deadline of absent sessions has passed; true once.
    pub fn take_absent_deadline(&mut self, now: u64) -> bool {
        self.absent_deadline.take_if(|deadline| now >= *deadline).is_some()
    }

    pub fn canceling(&self) -> impl Iterator<Item = u16> {
        self.configs.values().filter(|config| config.cancel_on_disconnect).map(|config| config.session)
    }
}
