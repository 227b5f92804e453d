//! Server settings that cost latency or lose messages. The protocol does not report them: the advice holds for every
//! server, and for the options of the URL.

use tickpath_bus_api::{Advice, ServerDescription};

pub(crate) fn advise(about: &ServerDescription) -> Vec<Advice> {
    vec![
        replica_advice(about.setting("replicas")),
        Advice::safety(
            "Kafka flush",
            "log.flush.interval.messages is not reported; unlimited unless the server's file says otherwise",
            "an acknowledged message is in the page caches of the replicas, on no disk: one node alone loses it in a \
             power cut",
            "three servers and kafka://…?replicas=3, which makes topics with min.insync.replicas=2; a flush a message \
             costs the disk's time",
        ),
        Advice::latency(
            "Kafka linger.ms",
            "each producer's own choice; 5 ms in new Java clients",
            "a message waits that long for others of its batch",
            "linger.ms=0, as tickpath's kafka:// does",
        ),
    ]
}

/// Returns the advice about the URL's number of replicas, and the loss it permits.
fn replica_advice(replicas: Result<&str, String>) -> Advice {
    let name = "Kafka copies of a topic";
    match replicas.as_deref().map(str::parse::<u32>) {
        Ok(Ok(2..)) => Advice::good(name, format!("on {} servers", replicas.unwrap_or_default())),
        Ok(Ok(_)) => Advice::safety(
            name,
            "on one server",
            "no client gets it while that is down, and it is gone with its disk",
            "kafka://…?replicas=3 on three servers",
        ),
        Ok(Err(_)) | Err(_) => Advice::safety(
            name,
            "as default.replication.factor says, which is 1 unless the server's file says otherwise",
            "a topic on one server is gone with its disk, and one without min.insync.replicas loses acknowledged \
             messages when only its leader fails",
            "kafka://…?replicas=3, which also makes topics with min.insync.replicas=2",
        ),
    }
}
