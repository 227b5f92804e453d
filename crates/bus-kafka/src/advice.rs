//! What of a server's settings costs time or loses messages. It tells nobody: this holds for each.

use tickpath_bus_api::{About, Advice};

/// All that is known.
pub(crate) fn advise(_about: &About) -> Vec<Advice> {
    vec![
        Advice::safety(
            "Kafka flush",
            "log.flush.interval.messages is not told; unlimited unless the server's file says otherwise",
            "an acknowledged message is in the page caches of the replicas, on no disk: one node alone loses it in a \
             power cut",
            "three servers and kafka://…?replicas=3, which makes topics with min.insync.replicas=2; a flush a message \
             costs the disk's time",
        ),
        Advice::latency(
            "Kafka linger.ms",
            "each producer's own choice; 5 ms in new Java clients",
            "a message waits so long for company",
            "linger.ms=0, as tickpath's kafka:// does",
        ),
    ]
}
