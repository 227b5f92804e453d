//! A case's own topic or queue, and the way it is opened.

use tickpath_clock::{Wait, sleep_ns};

use super::fixture::{Fixture, check_unsupported};
use super::message::{ReceivedTally, TestDeadline};
use crate::{
    Capabilities, Connection, DeliveryGuarantee, Policy, Publisher, Puller, Pusher, QueueCapabilities, QueueConfig,
    StartPosition, Subscriber, TopicConfig,
};

/// A topic of one case, removed at its end.
pub(super) struct ScratchTopic {
    pub connection: Box<dyn Connection>,
    pub name: String,
}

impl Fixture<'_> {
    pub(super) fn topic(&self, suffix: &str) -> ScratchTopic {
        ScratchTopic { connection: (self.connect)(), name: format!("{}.{suffix}", self.topic) }
    }
}

impl ScratchTopic {
    pub fn capabilities(&self) -> Capabilities {
        self.connection.capabilities()
    }

    /// Opens a publisher with the default policy.
    pub fn publisher(&self) -> Box<dyn Publisher> {
        self.publisher_by(default_topic_config(&*self.connection).policy)
    }

    pub fn publisher_by(&self, policy: Policy) -> Box<dyn Publisher> {
        let opened = self.connection.publisher(&self.name, &TopicConfig::new(policy));
        opened.unwrap_or_else(|e| panic!("no publisher of {}: {e}", self.name))
    }

    /// Opens a publisher with this policy; `None` after checking that a transport without it refuses it.
    pub fn publisher_if_supported(&self, policy: Policy) -> Option<Box<dyn Publisher>> {
        if self.capabilities().policies.contains(&policy) {
            return Some(self.publisher_by(policy));
        }
        check_unsupported(self.connection.publisher(&self.name, &TopicConfig::new(policy)), policy.name());
        None
    }

    pub fn subscriber(&self, start: StartPosition, wait: Wait) -> Box<dyn Subscriber> {
        let opened = self.connection.subscriber(&self.name, start, wait);
        opened.unwrap_or_else(|e| panic!("no subscriber of {}: {e}", self.name))
    }

    /// Checks that nothing was missed where the default policy keeps everything.
    pub fn check_kept(&self, tally: &ReceivedTally) {
        let is_kept = default_topic_config(&*self.connection).policy == Policy::Keep;
        assert!(!is_kept || tally.missed == 0, "{} messages of a topic that is kept were missed", tally.missed);
    }
}

impl Drop for ScratchTopic {
    fn drop(&mut self) {
        let _ = self.connection.remove_topic(&self.name);
    }
}

/// Returns the transport's default configuration of a topic.
pub(super) fn default_topic_config(connection: &dyn Connection) -> TopicConfig {
    TopicConfig::new(connection.capabilities().policies[0])
}

/// A queue of one case, removed at its end.
pub(super) struct ScratchQueue {
    pub connection: Box<dyn Connection>,
    pub name: String,
    pub config: QueueConfig,
}

impl Fixture<'_> {
    /// Creates a queue with the surest delivery.
    pub(super) fn queue(&self, suffix: &str) -> ScratchQueue {
        self.queue_by(suffix, surest_delivery(&*(self.connect)()))
    }

    /// Creates one queue for each kind of delivery.
    pub(super) fn queues(&self, suffix: &str) -> impl Iterator<Item = ScratchQueue> {
        let deliveries = (self.connect)().queue_capabilities().deliveries;
        deliveries.iter().map(move |&delivery| self.queue_by(suffix, delivery))
    }

    pub(super) fn queue_if_supported(&self, suffix: &str, delivery: DeliveryGuarantee) -> Option<ScratchQueue> {
        let queue = self.queue_by(suffix, delivery);
        queue.capabilities().deliveries.contains(&delivery).then_some(queue)
    }

    pub(super) fn queue_by(&self, suffix: &str, delivery: DeliveryGuarantee) -> ScratchQueue {
        let name = format!("{}.{suffix}.{delivery}", self.topic);
        ScratchQueue { connection: (self.connect)(), name, config: queue_config(delivery) }
    }
}

impl ScratchQueue {
    /// Configures the queue for pullers that are killed.
    pub fn with_short_silence(mut self) -> Self {
        self.config = short_silence_config(self.config.delivery);
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
        self.connection.count_waiting(&self.name).unwrap_or_else(|e| panic!("no count of {}: {e}", self.name))
    }

    /// Waits until this many messages are waiting, where they can be counted. A server may count a moment later.
    pub fn wait_for_count(&self, count: u64) {
        let expected = self.capabilities().counts_waiting.then_some(count);
        let deadline = TestDeadline::new();
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

impl Drop for ScratchQueue {
    fn drop(&mut self) {
        let _ = self.connection.remove_queue(&self.name);
    }
}

/// Returns the configuration of queues in which no puller dies: 60 s of silence, longer than any stall of the host.
pub(super) fn queue_config(delivery: DeliveryGuarantee) -> QueueConfig {
    QueueConfig { silence_ns: 60_000_000_000, ..QueueConfig::new(delivery) }
}

/// Returns the configuration of queues whose pullers are killed: 5 s of silence, where it shows a death.
pub(super) fn short_silence_config(delivery: DeliveryGuarantee) -> QueueConfig {
    QueueConfig { silence_ns: 5_000_000_000, ..QueueConfig::new(delivery) }
}

/// Returns at least once, where that exists, or else the default.
pub(super) fn surest_delivery(connection: &dyn Connection) -> DeliveryGuarantee {
    let deliveries = connection.queue_capabilities().deliveries;
    if deliveries.contains(&DeliveryGuarantee::AtLeastOnce) { DeliveryGuarantee::AtLeastOnce } else { deliveries[0] }
}
