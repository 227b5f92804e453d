//! Advice on settings that cost time or lose messages: for every broker, since AMQP reports none, and for the URL's.

use tickpath_bus_api::{Advice, ServerDescription};

pub(crate) fn advise(about: &ServerDescription) -> Vec<Advice> {
    vec![
        Advice::safety(
            "RabbitMQ publisher confirms",
            "each client's own choice",
            "without confirms, messages that the server had not stored when it crashed are lost without an error",
            "confirm.select on each publishing channel, as tickpath's amqp:// does; a confirm costs a round trip of \
             0.2 to 1 ms",
        ),
        queues(about.setting("kept")),
    ]
}

/// Returns the advice on the storage that the URL asks for, and what it can lose.
fn queues(kept: Result<&str, String>) -> Advice {
    let name = "RabbitMQ queues";
    match kept.as_deref() {
        Ok("1") => Advice::safety(
            name,
            "quorum queues on one node",
            "their messages cannot be pulled while the node is down, and are lost with its disk",
            "amqp://…?durable&replicas=3 on three nodes, at the price of a write to the disks of a majority",
        ),
        Ok("majority") => Advice::good(name, "quorum queues, on as many nodes as the cluster gives them"),
        Ok("memory") | Err(_) => Advice::safety(
            name,
            "classic, and not durable",
            "they are lost when the broker restarts",
            "amqp://…?durable makes quorum queues, at the price of a write to the disks of a majority a message",
        ),
        Ok(replicas) => Advice::good(name, format!("quorum queues on {replicas} nodes")),
    }
}

/// Returns the advice on the broker's policies, by their effect on the messages of queues.
pub(crate) fn policies(risk: Result<Option<String>, String>) -> Advice {
    let name = "RabbitMQ policies";
    match risk {
        Ok(None) => Advice::good(name, "none that drops or refuses messages of a queue"),
        Ok(Some(risk)) => Advice::safety(
            name,
            risk,
            "messages that were pushed and confirmed are dropped, or pushed ones refused, and no client gets the reason",
            "rabbitmqctl set_policy with a pattern that spares these queues, or a larger limit; \
             overflow=reject-publish refuses messages that would be dropped otherwise",
        ),
        Err(why) => Advice::unknown(name, why),
    }
}
