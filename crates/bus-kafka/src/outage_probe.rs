//! Detects the end of an outage, because the client library reports only its beginning.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use tickpath_clock::sleep_ns;

use crate::cluster::Cluster;
use crate::error::KafkaServerError;
use crate::reasons::OutageReasons;

const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause between two probes, in nanoseconds.
const PAUSE_NS: u64 = 100_000_000;

/// A thread that probes until a server answers, or its consumer is dropped.
pub(crate) struct OutageProbe {
    thread: Option<JoinHandle<()>>,
}

impl OutageProbe {
    /// Starts probing for a topic of this consumer. At the first answer, counts the outage, and clears the reasons in
    /// the consumer's context.
    pub fn start<C: ConsumerContext + 'static>(
        cluster: &Arc<Cluster>,
        consumer: &Arc<BaseConsumer<C>>,
        topic: &str,
        reasons: fn(&C) -> &OutageReasons,
        outages: &Arc<AtomicU64>,
    ) -> Self {
        let (cluster, consumer, topic) = (cluster.clone(), Arc::downgrade(consumer), topic.to_owned());
        let outages = outages.clone();
        let ask = move || {
            while let Some(false) = probe(&cluster, &consumer, &topic, reasons, &outages) {
                sleep_ns(PAUSE_NS);
            }
        };
        // A failed spawn counts as over, and the next check starts another thread.
        let thread = std::thread::Builder::new().name("kafka-lookout".to_owned()).spawn(ask).ok();
        Self { thread }
    }

    /// Returns whether a server has answered, or the consumer is gone.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// Returns whether a server answers; none if the consumer is gone.
fn probe<C: ConsumerContext>(
    cluster: &Cluster,
    consumer: &Weak<BaseConsumer<C>>,
    topic: &str,
    reasons: fn(&C) -> &OutageReasons,
    outages: &AtomicU64,
) -> Option<bool> {
    let consumer = consumer.upgrade()?;
    cluster.server.add_brokers_again(consumer.client());
    let is_reachable = match consumer.fetch_watermarks(topic, 0, PROBE_TIMEOUT) {
        Ok(_marks) => true,
        // A server that refuses the request, or has no leader for the topic, is reachable.
        Err(e) => {
            let error = KafkaServerError::from(&e);
            !error.is_transient() || matches!(error, KafkaServerError::NotReady(_))
        }
    };
    if is_reachable {
        // Counted before the end of the outage is visible.
        outages.fetch_add(1, Ordering::Relaxed);
        reasons(consumer.context()).clear_outage();
    }
    Some(is_reachable)
}
