//! Advice on a server's settings that cost time or lose messages.

use tickpath_bus_api::{Advice, ServerDescription};

/// Returns the advice on all settings that are checked.
pub(crate) fn advise(about: &ServerDescription) -> Vec<Advice> {
    let longest =
        about.setting("max_payload").map(|bytes| Advice::good("NATS longest message", format!("{bytes} bytes")));
    let mut found = vec![longest.unwrap_or_else(|why| Advice::unknown("NATS longest message", why))];
    found.extend(storage_advice(about));
    if about.setting("kept") == Ok("disk") {
        found.push(Advice::safety(
            "NATS sync_interval",
            "not reported over the client port; 2 minutes unless the server's file says otherwise",
            "JetStream acknowledges before the disk has the message: a power cut loses up to that much (nats-server \
             issues 7545, 7549, 7567)",
            "sync_interval: always in the jetstream block, at the price of the disk's time a message, or three \
             replicas",
        ));
    }
    found
}

/// Returns the advice on the storage that the URL asks for, and what it can lose.
fn storage_advice(about: &ServerDescription) -> Option<Advice> {
    let (kept, replicas) = (about.setting("kept").ok()?, about.setting("replicas").ok()?);
    let name = "NATS messages are kept";
    Some(match (kept, replicas) {
        ("nothing", _) => Advice::safety(
            name,
            "nowhere",
            "a client that is not subscribed misses them, a publish is not confirmed, and a queue has them only while \
             a puller is connected",
            "nats://…?jetstream keeps and confirms them, at the price of a round trip",
        ),
        ("memory", _) => Advice::safety(
            name,
            "in the server's memory",
            "they are gone when it is started again",
            "nats://…?jetstream&durable keeps them on its disk",
        ),
        (_, "1") => Advice::safety(
            name,
            "on the disk of one server",
            "no client gets them while it is down, and they are gone with its disk",
            "nats://…?jetstream&durable&replicas=3 on three servers, at the price of a majority's answer",
        ),
        (_, replicas) => Advice::good(name, format!("on the disks of {replicas} servers")),
    })
}
