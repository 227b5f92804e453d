//! Finds out when an outage is over: the client library says that it reaches no server, and not when it does again.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use tickpath_clock::sleep_ns;

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
    /// Asks for a topic of this consumer. When that is answered, the reasons that its context keeps are forgotten.
    pub fn start<C: ConsumerContext + 'static>(
        cluster: &Arc<Cluster>,
        consumer: &Arc<BaseConsumer<C>>,
        topic: &str,
        reasons: fn(&C) -> &Reasons,
    ) -> Self {
        let (cluster, consumer, topic) = (cluster.clone(), Arc::downgrade(consumer), topic.to_owned());
        let ask = move || {
            while let Some(false) = is_answered(&cluster, &consumer, &topic, reasons) {
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
) -> Option<bool> {
    let consumer = consumer.upgrade()?;
    cluster.server().tell_again(consumer.client());
    let is_there = consumer.fetch_watermarks(topic, 0, PATIENCE).is_ok();
    if is_there {
        reasons(consumer.context()).forget();
    }
    Some(is_there)
}
