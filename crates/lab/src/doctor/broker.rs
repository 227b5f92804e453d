//! The brokers: what of their settings costs time or loses messages. Read only.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::Finding;
use crate::servers::{self, connect, silence};

/// Looks at the broker of a URL, which may take so long to accept and to answer.
pub fn broker(url: &str, patience: Duration) -> Vec<Finding> {
    let scheme = url.split("://").next().unwrap_or(url);
    let address = &servers::address(url).unwrap_or_default();
    let looked = match scheme {
        "redis" => redis(address, url, patience),
        "nats" => nats(address, patience),
        "amqp" => rabbitmq(address, patience),
        "kafka" => kafka(address, patience),
        _ => Err("this is no broker's URL; use redis://, nats://, amqp:// or kafka://HOST:PORT".to_owned()),
    };
    looked.unwrap_or_else(|why| vec![Finding::unknown("broker", format!("{scheme}://{address}: {why}"))])
}

/// Settings and statistics of a Redis server.
struct Redis {
    stream: BufReader<TcpStream>,
    patience: Duration,
}

impl Redis {
    fn open(address: &str, url: &str, patience: Duration) -> Result<Self, String> {
        let mut redis = Self { stream: BufReader::new(connect(address, patience)?), patience };
        let url = url.split('?').next().unwrap_or(url);
        let info = ::redis::IntoConnectionInfo::into_connection_info(url).map_err(|_| "its URL cannot be read")?;
        let login = info.redis_settings();
        if let Some(password) = login.password() {
            let words = ["AUTH", login.username().unwrap_or_default(), password];
            redis.ask(&words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>())?;
        }
        Ok(redis)
    }

    /// All texts of a reply, in a row.
    fn ask(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command += &format!("${}\r\n{word}\r\n", word.len()));
        self.stream.get_mut().write_all(command.as_bytes()).map_err(|e| e.to_string())?;
        let mut texts = Vec::new();
        self.reply(&mut texts)?;
        Ok(texts)
    }

    fn reply(&mut self, texts: &mut Vec<String>) -> Result<(), String> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or("it does not answer as Redis does")?;
        let count = || rest.parse::<i64>().map_err(|_| "it does not answer as Redis does".to_owned());
        match kind {
            "+" | ":" => texts.push(rest.to_owned()),
            "-" => return Err(rest.to_owned()),
            "$" => {
                let mut bytes = vec![0; count()?.clamp(-2, 1 << 20).unsigned_abs() as usize + 2];
                self.stream.read_exact(&mut bytes).map_err(|e| e.to_string())?;
                texts.push(String::from_utf8_lossy(&bytes[..bytes.len() - 2]).into_owned());
            }
            "*" => (0..count()?).try_for_each(|_| self.reply(texts))?,
            _ => return Err("it does not answer as Redis does".to_owned()),
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).map_err(|e| silence(&e, self.patience))?;
        if read == 0 { Err("it closed the connection".to_owned()) } else { Ok(line.trim_end().to_owned()) }
    }

    /// A setting.
    fn setting(&mut self, name: &str) -> Result<String, String> {
        let reply = self.ask(&["CONFIG", "GET", name])?;
        reply.into_iter().nth(1).ok_or_else(|| format!("it has no setting '{name}'"))
    }

    /// A line of INFO.
    fn info(&mut self, name: &str) -> Result<String, String> {
        let text = self.ask(&["INFO"])?.concat();
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
        found.ok_or_else(|| format!("INFO has no line '{name}'"))
    }
}

/// One look at a server.
type Look = fn(&mut Redis) -> Result<Finding, String>;

fn redis(address: &str, url: &str, patience: Duration) -> Result<Vec<Finding>, String> {
    let mut redis = Redis::open(address, url, patience)?;
    let mut found = vec![Finding::good("Redis", format!("{} at {address}", redis.info("redis_version")?))];
    let checks: [Look; 6] =
        [redis_snapshots, redis_append_only, redis_subscribers, redis_memory, redis_clients, redis_slow_commands];
    for check in checks {
        found.push(check(&mut redis).unwrap_or_else(|why| Finding::unknown("Redis setting", why)));
    }
    Ok(found)
}

fn redis_snapshots(redis: &mut Redis) -> Result<Finding, String> {
    let save = redis.setting("save")?;
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

fn redis_append_only(redis: &mut Redis) -> Result<Finding, String> {
    let (is_on, sync) = (redis.setting("appendonly")? == "yes", redis.setting("appendfsync")?);
    Ok(match (is_on, sync.as_str()) {
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

fn redis_subscribers(redis: &mut Redis) -> Result<Finding, String> {
    let limits = redis.setting("client-output-buffer-limit")?;
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

fn redis_memory(redis: &mut Redis) -> Result<Finding, String> {
    let (limit, policy) = (redis.setting("maxmemory")?, redis.setting("maxmemory-policy")?);
    Ok(match (limit.as_str(), policy.as_str()) {
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

fn redis_clients(redis: &mut Redis) -> Result<Finding, String> {
    let others = redis.info("connected_clients")?.parse::<u64>().unwrap_or(1).saturating_sub(1);
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

fn redis_slow_commands(redis: &mut Redis) -> Result<Finding, String> {
    let slow = redis.ask(&["SLOWLOG", "LEN"])?.concat().parse::<u64>().unwrap_or(0);
    if slow == 0 {
        return Ok(Finding::good("Redis slow commands", "none are noted"));
    }
    let limit = redis.setting("slowlog-log-slower-than")?;
    Ok(Finding::latency(
        "Redis slow commands",
        format!("{slow} noted, slower than {limit} µs"),
        "everybody waits while one runs",
        "SLOWLOG GET tells which; split them, or move them to another server",
    ))
}

fn nats(address: &str, patience: Duration) -> Result<Vec<Finding>, String> {
    let info = servers::nats(address, patience)?;
    let text = |name: &str| servers::text(&info, name).unwrap_or_else(|| "unknown".to_owned());
    let mut found = vec![
        Finding::good("NATS", format!("{} at {address}", text("version"))),
        Finding::good("NATS longest message", format!("{} bytes", text("max_payload"))),
    ];
    if info["jetstream"].as_bool() == Some(true) {
        found.push(Finding::safety(
            "NATS sync_interval",
            "not told over the client port; 2 minutes unless the server's file says otherwise",
            "JetStream acknowledges before the disk has the message: a power cut loses up to that much (nats-server issues \
             7545, 7549, 7567)",
            "sync_interval: always in the jetstream block, at the price of the disk's time a message, or three replicas",
        ));
    }
    Ok(found)
}

fn rabbitmq(address: &str, patience: Duration) -> Result<Vec<Finding>, String> {
    let version = servers::rabbitmq(address, patience)?;
    Ok(vec![
        Finding::good("RabbitMQ", format!("{} at {address}", version.unwrap_or_else(|| "no version told".to_owned()))),
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
    ])
}

fn kafka(address: &str, patience: Duration) -> Result<Vec<Finding>, String> {
    let _stream = connect(address, patience)?;
    Ok(vec![
        Finding::good("Kafka", format!("something listens at {address}")),
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
    ])
}
