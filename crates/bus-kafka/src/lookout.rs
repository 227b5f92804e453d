//! Finds out when an outage is over: the client library says that it reaches no server, and not when it does again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use tickpath_clock::sleep_ns;

use crate::answer::ServerError;
use crate::cluster::Cluster;
use crate::reasons::Reasons;

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two questions.
const PAUSE_NS: u64 = 100_000_000;

/// A thread that asks until a server answers, or nobody wants to know.
pub(crate) struct Lookout {
    thread: Option<JoinHandle<()>>,
}

impl Lookout {
    /// Asks for a topic of this consumer. When that is answered, the outage is counted, and the reasons that its context keeps
    /// are forgotten.
    pub fn start<C: ConsumerContext + 'static>(
        cluster: &Arc<Cluster>,
        consumer: &Arc<BaseConsumer<C>>,
        topic: &str,
        reasons: fn(&C) -> &Reasons,
        outages: &Arc<AtomicU64>,
    ) -> Self {
        let (cluster, consumer, topic) = (cluster.clone(), Arc::downgrade(consumer), topic.to_owned());
        let outages = outages.clone();
        let ask = move || {
            while let Some(false) = is_answered(&cluster, &consumer, &topic, reasons, &outages) {
                sleep_ns(PAUSE_NS);
            }
        };
        // Without a thread it counts as over, and the next look starts another one.
        let thread = std::thread::Builder::new().name("kafka-lookout".to_owned()).spawn(ask).ok();
        Self { thread }
    }

    /// Whether a server has answered.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// Whether a server answers; none if the consumer is gone.
fn is_answered<C: ConsumerContext>(
    cluster: &Cluster,
    consumer: &Weak<BaseConsumer<C>>,
    topic: &str,
    reasons: fn(&C) -> &Reasons,
    outages: &AtomicU64,
) -> Option<bool> {
    let consumer = consumer.upgrade()?;
    cluster.server().tell_again(consumer.client());
    let is_there = match consumer.fetch_watermarks(topic, 0, PATIENCE) {
        Ok(_marks) => true,
        // A server that refuses, or has no leader for it, is there.
        Err(e) => {
            let error = ServerError::from(&e);
            !error.may_pass() || matches!(error, ServerError::NotYet(_))
        }
    };
    if is_there {
        // Before anybody sees that it is over.
        outages.fetch_add(1, Ordering::Relaxed);
        reasons(consumer.context()).answered();
    }
    Some(is_there)
}
