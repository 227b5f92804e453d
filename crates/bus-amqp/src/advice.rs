//! What of a server's settings costs time or loses messages. It tells nobody: this holds for each.

use tickpath_bus_api::{About, Advice};

/// All that is known.
pub(crate) fn advise(_about: &About) -> Vec<Advice> {
    vec![
        Advice::safety(
            "RabbitMQ publisher confirms",
            "each client's own choice",
            "a publish without confirms is a hope: what the server had not taken when it fell is gone, and nobody \
             knows",
            "confirm.select on each publishing channel, as tickpath's amqp:// does; a confirm costs a round trip of \
             0.2 to 1 ms",
        ),
        Advice::safety(
            "RabbitMQ queues",
            "classic unless declared otherwise",
            "a classic queue lives on one node: its messages are gone with that node's disk",
            "x-queue-type: quorum for what must survive, as tickpath's amqp://…?durable makes it; it costs a write to \
             the disks of a majority a message",
        ),
    ]
}
