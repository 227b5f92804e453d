//! A case's own topic or queue, and how it is opened.

use tickpath_clock::{Wait, sleep_ns};

use super::fixture::{Fixture, refused};
use super::message::{Deadline, Tally};
use crate::{
    Capabilities, Connection, Delivery, Policy, Publisher, Puller, Pusher, QueueCapabilities, QueueConfig, Start,
    Subscriber, TopicConfig,
};

/// A topic of one case, removed at its end.
pub(super) struct Topic {
    pub connection: Box<dyn Connection>,
    pub name: String,
}

impl Fixture<'_> {
    pub(super) fn topic(&self, suffix: &str) -> Topic {
        Topic { connection: (self.connect)(), name: format!("{}.{suffix}", self.topic) }
    }
}

impl Topic {
    pub fn capabilities(&self) -> Capabilities {
        self.connection.capabilities()
    }

    /// By the usual policy.
    pub fn publisher(&self) -> Box<dyn Publisher> {
        self.publisher_by(usual(&*self.connection).policy)
    }

    pub fn publisher_by(&self, policy: Policy) -> Box<dyn Publisher> {
        let opened = self.connection.publisher(&self.name, &TopicConfig::new(policy));
        opened.unwrap_or_else(|e| panic!("no publisher of {}: {e}", self.name))
    }

    /// None where the transport has no such policy, after it has refused it in words.
    pub fn publisher_if_supported(&self, policy: Policy) -> Option<Box<dyn Publisher>> {
        if self.capabilities().policies.contains(&policy) {
            return Some(self.publisher_by(policy));
        }
        refused(self.connection.publisher(&self.name, &TopicConfig::new(policy)), policy.name());
        None
    }

    pub fn subscriber(&self, start: Start, wait: Wait) -> Box<dyn Subscriber> {
        let opened = self.connection.subscriber(&self.name, start, wait);
        opened.unwrap_or_else(|e| panic!("no subscriber of {}: {e}", self.name))
    }

    /// Nothing may be missed where the usual policy keeps everything.
    pub fn check_kept(&self, tally: &Tally) {
        let is_kept = usual(&*self.connection).policy == Policy::Keep;
        assert!(!is_kept || tally.missed == 0, "{} messages of a topic that is kept were missed", tally.missed);
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let _ = self.connection.remove(&self.name);
    }
}

/// A topic as the transport usually opens it.
pub(super) fn usual(connection: &dyn Connection) -> TopicConfig {
    TopicConfig::new(connection.capabilities().policies[0])
}

/// A queue of one case, removed at its end.
pub(super) struct Queue {
    pub connection: Box<dyn Connection>,
    pub name: String,
    pub config: QueueConfig,
}

impl Fixture<'_> {
    /// By the surest delivery.
    pub(super) fn queue(&self, suffix: &str) -> Queue {
        self.queue_by(suffix, surest_delivery(&*(self.connect)()))
    }

    /// One for each delivery.
    pub(super) fn queues(&self, suffix: &str) -> impl Iterator<Item = Queue> {
        let deliveries = (self.connect)().queue_capabilities().deliveries;
        deliveries.iter().map(move |&delivery| self.queue_by(suffix, delivery))
    }

    pub(super) fn queue_if_supported(&self, suffix: &str, delivery: Delivery) -> Option<Queue> {
        let queue = self.queue_by(suffix, delivery);
        queue.capabilities().deliveries.contains(&delivery).then_some(queue)
    }

    pub(super) fn queue_by(&self, suffix: &str, delivery: Delivery) -> Queue {
        let name = format!("{}.{suffix}.{delivery}", self.topic);
        Queue { connection: (self.connect)(), name, config: config(delivery) }
    }
}

impl Queue {
    /// Whose pullers are killed.
    pub fn mortal(mut self) -> Self {
        self.config = mortal_config(self.config.delivery);
        self
    }

    pub fn capabilities(&self) -> QueueCapabilities {
        self.connection.queue_capabilities()
    }

    pub fn pusher(&self) -> Box<dyn Pusher> {
        let opened = self.connection.pusher(&self.name, &self.config);
        opened.unwrap_or_else(|e| panic!("no pusher of {}: {e}", self.name))
    }

    pub fn puller(&self, wait: Wait) -> Box<dyn Puller> {
        let opened = self.connection.puller(&self.name, &self.config, wait);
        opened.unwrap_or_else(|e| panic!("no puller of {}: {e}", self.name))
    }

    pub fn waiting(&self) -> Option<u64> {
        self.connection.waiting(&self.name).unwrap_or_else(|e| panic!("no count of {}: {e}", self.name))
    }

    /// Checks that so many messages wait, where that can be told. A server may count a moment later.
    pub fn until_waiting(&self, count: u64) {
        let expected = self.capabilities().counts_waiting.then_some(count);
        let deadline = Deadline::new();
        loop {
            let waiting = self.waiting();
            if waiting == expected {
                return;
            }
            assert!(!deadline.is_over(), "{waiting:?} messages wait in {}, not {expected:?}", self.name);
            sleep_ns(1_000_000);
        }
    }

    pub fn remove(&self) {
        self.connection.remove_queue(&self.name).unwrap_or_else(|e| panic!("{} is not removed: {e}", self.name));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = self.connection.remove_queue(&self.name);
    }
}

/// How cases open a queue in which no puller dies: none is silent for longer than a stall of the host, at most.
pub(super) fn config(delivery: Delivery) -> QueueConfig {
    QueueConfig { silence_ns: 60_000_000_000, ..QueueConfig::new(delivery) }
}

/// How cases and their processes open a queue whose pullers are killed: a death that shows only in silence is waited for.
pub(super) fn mortal_config(delivery: Delivery) -> QueueConfig {
    QueueConfig { silence_ns: 5_000_000_000, ..QueueConfig::new(delivery) }
}

/// At least once, where that exists.
pub(super) fn surest_delivery(connection: &dyn Connection) -> Delivery {
    let deliveries = connection.queue_capabilities().deliveries;
    if deliveries.contains(&Delivery::AtLeastOnce) { Delivery::AtLeastOnce } else { deliveries[0] }
}
