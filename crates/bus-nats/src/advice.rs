//! What of a server's settings costs time or loses messages.

use tickpath_bus_api::{About, Advice};

/// All that is looked at.
pub(crate) fn advise(about: &About) -> Vec<Advice> {
    let longest =
        about.setting("max_payload").map(|bytes| Advice::good("NATS longest message", format!("{bytes} bytes")));
    let mut found = vec![longest.unwrap_or_else(|why| Advice::unknown("NATS longest message", why))];
    if about.setting("jetstream") == Ok("true") {
        found.push(Advice::safety(
            "NATS sync_interval",
            "not told over the client port; 2 minutes unless the server's file says otherwise",
            "JetStream acknowledges before the disk has the message: a power cut loses up to that much (nats-server \
             issues 7545, 7549, 7567)",
            "sync_interval: always in the jetstream block, at the price of the disk's time a message, or three \
             replicas",
        ));
    }
    found
}
