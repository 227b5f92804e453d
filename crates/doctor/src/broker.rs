//! The brokers: what of their settings costs time or loses messages. Read only.

use tickpath_bus::{About, connect};

use crate::finding::{Finding, State};

/// Looks at the broker of a URL.
pub fn broker(url: &str) -> Vec<Finding> {
    let scheme = url.split("://").next().unwrap_or(url);
    let look = match scheme {
        "redis" | "redis+unix" => redis,
        "nats" => nats,
        "amqp" => rabbitmq,
        "kafka" => kafka,
        _ => {
            let why = "this is no broker's URL; use redis://, nats://, amqp:// or kafka://HOST:PORT";
            return vec![Finding::unknown("broker", why)];
        }
    };
    match connect(url) {
        Ok(connection) => {
            let mut found = look(&connection.about());
            let place = url.rsplit_once('@').map_or_else(|| url.trim_start_matches(scheme), |(_, place)| place);
            if let Some(broker) = found.first_mut().filter(|broker| broker.state != State::Unknown) {
                broker.value +=
                    &format!(" at {}", place.trim_start_matches("://").split('?').next().unwrap_or_default());
            }
            found
        }
        Err(why) => vec![Finding::unknown("broker", why.to_string())],
    }
}

/// What the broker is; not known of one that tells nothing at all, and why.
fn is(about: &About, name: &'static str) -> Finding {
    let untold = about.settings.values().find_map(|told| told.as_ref().err());
    match (&about.version, untold) {
        (Some(version), _) => Finding::good(name, version.clone()),
        (None, Some(why)) if about.settings.values().all(Result::is_err) => Finding::unknown(name, why.clone()),
        (None, _) => Finding::good(name, "no version told"),
    }
}

/// A setting, or why it is not told.
fn setting<'a>(about: &'a About, name: &str) -> Result<&'a str, String> {
    match about.settings.get(name) {
        Some(told) => told.as_deref().map_err(Clone::clone),
        None => Err(format!("'{name}' is not told")),
    }
}

/// One look at a server.
type Look = fn(&About) -> Result<Finding, String>;

fn redis(about: &About) -> Vec<Finding> {
    let looks: [Look; 6] =
        [redis_snapshots, redis_append_only, redis_subscribers, redis_memory, redis_clients, redis_slow_commands];
    let looked = looks.map(|look| look(about).unwrap_or_else(|why| Finding::unknown("Redis setting", why)));
    std::iter::once(is(about, "Redis")).chain(looked).collect()
}

fn redis_snapshots(about: &About) -> Result<Finding, String> {
    let save = setting(about, "save")?;
    if save.is_empty() {
        return Ok(Finding::good("Redis snapshots", "off"));
    }
    Ok(Finding::latency(
        "Redis snapshots",
        save,
        "a save forks: the server stands still for about 10 ms a gigabyte, and each page written meanwhile is copied. \
         PUBLISH stores no key: a server that only publishes never saves",
        "CONFIG SET save \"\" on a server that only carries messages",
    ))
}

fn redis_append_only(about: &About) -> Result<Finding, String> {
    let (is_on, sync) = (setting(about, "appendonly")? == "yes", setting(about, "appendfsync")?);
    Ok(match (is_on, sync) {
        (false, _) => Finding::safety(
            "Redis append-only file",
            "off",
            "lists and streams are gone after a crash, back to the last snapshot",
            "appendonly yes, or treat the server as a fan-out and keep a journal of your own",
        ),
        (true, "always") => Finding::latency(
            "Redis append-only file",
            "synchronised before each reply",
            "each write waits for the disk: 0.1 to 10 ms",
            "appendfsync everysec, if a second of messages may be lost in a power cut",
        ),
        (true, other) => Finding::safety(
            "Redis append-only file",
            format!("synchronised: {other}"),
            "a power cut loses up to a second of acknowledged writes, or more if the disk is slow",
            "appendfsync always where that must not be, at the price of the disk's time a write",
        ),
    })
}

fn redis_subscribers(about: &About) -> Result<Finding, String> {
    let limits = setting(about, "client-output-buffer-limit")?;
    let words: Vec<&str> = limits.split_whitespace().collect();
    let pubsub = words.iter().position(|&word| word == "pubsub").and_then(|at| words.get(at + 1..at + 4));
    let Some(&[hard, soft, seconds]) = pubsub else { return Err("no limit for subscribers is told".to_owned()) };
    if hard == "0" && soft == "0" {
        return Ok(Finding::good("Redis buffer of a subscriber", "without limit"));
    }
    Ok(Finding::safety(
        "Redis buffer of a subscriber",
        format!("{hard} bytes, or {soft} for {seconds} s"),
        "a subscriber that falls behind so far is disconnected, and what it had not read is gone without a count",
        "read faster, watch for reconnects, or raise client-output-buffer-limit pubsub",
    ))
}

fn redis_memory(about: &About) -> Result<Finding, String> {
    let (limit, policy) = (setting(about, "maxmemory")?, setting(about, "maxmemory-policy")?);
    Ok(match (limit, policy) {
        ("0", _) => Finding::safety(
            "Redis memory",
            "without limit",
            "a queue that nobody empties takes all memory, and the kernel ends the server",
            "maxmemory, with maxmemory-policy noeviction",
        ),
        (limit, "noeviction") => Finding::good("Redis memory", format!("{limit} bytes, nothing evicted")),
        (limit, policy) => Finding::safety(
            "Redis memory",
            format!("{limit} bytes, {policy}"),
            "a full server deletes keys, queues and streams among them, without telling anybody",
            "maxmemory-policy noeviction",
        ),
    })
}

fn redis_clients(about: &About) -> Result<Finding, String> {
    let others = setting(about, "connected_clients")?.parse::<u64>().unwrap_or(1).saturating_sub(1);
    if others == 0 {
        return Ok(Finding::good("Redis clients", "none but this one"));
    }
    Ok(Finding::latency(
        "Redis clients",
        format!("{others} others"),
        "it serves others: one thread runs all commands, so that a long one of theirs delays yours, and a benchmark \
         disturbs them",
        "a server of its own for messages of the path",
    ))
}

fn redis_slow_commands(about: &About) -> Result<Finding, String> {
    let slow = setting(about, "slowlog-len")?.parse::<u64>().unwrap_or(0);
    if slow == 0 {
        return Ok(Finding::good("Redis slow commands", "none are noted"));
    }
    let limit = setting(about, "slowlog-log-slower-than")?;
    Ok(Finding::latency(
        "Redis slow commands",
        format!("{slow} noted, slower than {limit} µs"),
        "everybody waits while one runs",
        "SLOWLOG GET tells which; split them, or move them to another server",
    ))
}

fn nats(about: &About) -> Vec<Finding> {
    let longest =
        setting(about, "max_payload").map(|bytes| Finding::good("NATS longest message", format!("{bytes} bytes")));
    let longest = longest.unwrap_or_else(|why| Finding::unknown("NATS longest message", why));
    let mut found = vec![is(about, "NATS"), longest];
    if setting(about, "jetstream") == Ok("true") {
        found.push(Finding::safety(
            "NATS sync_interval",
            "not told over the client port; 2 minutes unless the server's file says otherwise",
            "JetStream acknowledges before the disk has the message: a power cut loses up to that much (nats-server issues \
             7545, 7549, 7567)",
            "sync_interval: always in the jetstream block, at the price of the disk's time a message, or three replicas",
        ));
    }
    found
}

fn rabbitmq(about: &About) -> Vec<Finding> {
    vec![
        is(about, "RabbitMQ"),
        Finding::safety(
            "RabbitMQ publisher confirms",
            "each client's own choice",
            "a publish without confirms is a hope: what the server had not taken when it fell is gone, and nobody knows",
            "confirm.select on each publishing channel, as tickpath's amqp:// does; a confirm costs a round trip of 0.2 to 1 ms",
        ),
        Finding::safety(
            "RabbitMQ queues",
            "classic unless declared otherwise",
            "a classic queue lives on one node: its messages are gone with that node's disk",
            "x-queue-type: quorum for what must survive; it costs a write to the disks of a majority a message",
        ),
    ]
}

fn kafka(about: &About) -> Vec<Finding> {
    vec![
        is(about, "Kafka"),
        Finding::safety(
            "Kafka flush",
            "log.flush.interval.messages is not told; unlimited unless the server's file says otherwise",
            "an acknowledged message is in the page caches of the replicas, on no disk: one node alone loses it in a power cut",
            "three replicas with min.insync.replicas=2 and acks=all; a flush a message costs the disk's time",
        ),
        Finding::latency(
            "Kafka linger.ms",
            "each producer's own choice; 5 ms in new Java clients",
            "a message waits so long for company",
            "linger.ms=0, as tickpath's kafka:// does",
        ),
    ]
}
