//! The JetStream streams that store topics and queues: in the server's memory or in files, one subject each.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{ConsumerInfoErrorKind, CreateStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use tickpath_bus_api::wire::HEADER_BYTES;
use tickpath_bus_api::{Policy, TopicConfig};

use crate::connection::NatsConnection;
use crate::error::{NatsServerError, ServerResult};
use crate::names;
use crate::server::StreamStorage;

/// Max payload, in bytes, also where a server takes more. Servers usually take 1 MiB with the header.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// The name of the consumer that a queue's pullers share.
pub(crate) const QUEUE_CONSUMER: &str = "tickpath";

/// Bytes of a message's subject and of the server's metadata, which has at most 16 bytes.
const METADATA_BYTES: usize = 256;

/// A queue's duplicate window: a message sent again within this time is known by its `Nats-Msg-Id`, and not stored
/// twice.
const QUEUE_DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// A topic's duplicate window: short, because subscribers detect duplicates without a limit, and the server keeps some
/// 100 bytes per message for this long.
const TOPIC_DUPLICATE_WINDOW: Duration = Duration::from_secs(10);

/// The bytes of a message's JetStream headers: the first line, `Nats-Msg-Id` with 32 digits, and the empty line.
const ID_BYTES: usize = 10 + 13 + 32 + 2 + 2;

/// The shortest age at which messages expire.
const MIN_AGE: Duration = Duration::from_millis(100);

const MIN_CAPACITY_BYTES: usize = 4096;

const UNLIMITED: i64 = -1;

pub(crate) fn topic_stream_config(topic: &str, config: &TopicConfig, storage: StreamStorage) -> Config {
    let max_bytes = match config.policy {
        Policy::Keep => UNLIMITED,
        Policy::Overwrite | Policy::Fail => config.capacity_bytes.max(MIN_CAPACITY_BYTES) as i64,
    };
    let (name, subject) = (names::topic_stream(topic), names::topic_subject(topic));
    let kept = stream_config(name, subject, RetentionPolicy::Limits, storage);
    let Some(age_ns) = config.max_age_ns else { return Config { max_bytes, ..kept } };
    let max_age = Duration::from_nanos(age_ns).max(MIN_AGE);
    // The server refuses a duplicate window that is longer than the age of messages.
    Config { max_bytes, max_age, duplicate_window: kept.duplicate_window.min(max_age), ..kept }
}

/// Returns the configuration of a queue's stream, from which acknowledged messages are removed.
pub(crate) fn queue_stream_config(queue: &str, storage: StreamStorage) -> Config {
    stream_config(names::queue_stream(queue), names::queue_subject(queue), RetentionPolicy::WorkQueue, storage)
}

/// Makes the stream if it does not exist. An existing one is taken with its capacity, but not with another policy or
/// age, nor in another storage, nor on fewer servers.
pub(crate) async fn ensure(connected: &NatsConnection, wanted: &Config) -> ServerResult<Stream> {
    let error = match connected.context.create_stream(wanted).await {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    let exists = match error.kind() {
        CreateStreamErrorKind::JetStream(answer) => answer.error_code() == ErrorCode::STREAM_NAME_EXIST,
        _ => false,
    };
    if !exists {
        return Err(error.into());
    }
    let stream = find(connected, &wanted.name).await?.ok_or(NatsServerError::StreamGone)?;
    check_config(&stream.cached_info().config, wanted)?;
    Ok(stream)
}

pub(crate) async fn find(connected: &NatsConnection, name: &str) -> ServerResult<Option<Stream>> {
    match connected.context.get_stream(name).await.map_err(NatsServerError::from) {
        Ok(stream) => Ok(Some(stream)),
        Err(NatsServerError::StreamGone) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Removes the stream of this name, if it exists.
pub(crate) async fn remove(connected: &NatsConnection, name: &str) -> ServerResult {
    match connected.context.delete_stream(name).await.map_err(NatsServerError::from) {
        Ok(_) | Err(NatsServerError::StreamGone) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Returns the number of a queue's messages that no puller has requested yet.
pub(crate) async fn count_waiting(connected: &NatsConnection, name: &str) -> ServerResult<u64> {
    let Some(stream) = find(connected, name).await? else { return Ok(0) };
    match stream.consumer_info(QUEUE_CONSUMER).await {
        Ok(consumer) => Ok(consumer.num_pending),
        // The consumer is made by the first puller.
        Err(e) if e.kind() == ConsumerInfoErrorKind::NotFound => Ok(stream.cached_info().state.messages),
        Err(e) => match NatsServerError::from(e) {
            NatsServerError::StreamGone => Ok(0),
            e => Err(e),
        },
    }
}

/// Returns the longest payload, in bytes: limited by the server's messages, where JetStream's headers count, and by the
/// capacity of the topic.
pub(crate) fn max_payload_bytes(server_bytes: usize, is_jetstream: bool, topic_bytes: Option<i64>) -> usize {
    let server_bytes = server_bytes.saturating_sub(if is_jetstream { ID_BYTES } else { 0 });
    let bounded = topic_bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|&bytes| bytes > 0);
    let topic_bytes = bounded.map_or(usize::MAX, |bytes| bytes.saturating_sub(METADATA_BYTES));
    server_bytes.min(topic_bytes).saturating_sub(HEADER_BYTES).min(MAX_PAYLOAD_BYTES)
}

fn stream_config(name: String, subject: String, retention: RetentionPolicy, storage: StreamStorage) -> Config {
    Config {
        name,
        subjects: vec![subject],
        retention,
        max_bytes: UNLIMITED,
        max_messages: UNLIMITED,
        discard: DiscardPolicy::Old,
        storage: if storage.is_durable { StorageType::File } else { StorageType::Memory },
        num_replicas: storage.replicas,
        duplicate_window: match retention {
            RetentionPolicy::WorkQueue => QUEUE_DUPLICATE_WINDOW,
            _ => TOPIC_DUPLICATE_WINDOW,
        },
        ..Config::default()
    }
}

fn check_config(existing: &Config, wanted: &Config) -> ServerResult {
    let subject = wanted.subjects.concat();
    if policy(existing) != policy(wanted) {
        return Err(NatsServerError::PolicyMismatch { topic: subject, existing: policy(existing).name() });
    }
    if existing.max_age != wanted.max_age {
        return Err(NatsServerError::MaxAgeMismatch { topic: subject, existing: age_text(existing.max_age) });
    }
    if existing.storage != wanted.storage || existing.num_replicas < wanted.num_replicas {
        return Err(NatsServerError::StorageMismatch {
            subject,
            existing: storage_text(existing),
            wanted: storage_text(wanted),
        });
    }
    Ok(())
}

fn policy(config: &Config) -> Policy {
    if config.max_bytes > 0 { Policy::Overwrite } else { Policy::Keep }
}

/// Returns for how long messages are kept, in words.
fn age_text(max_age: Duration) -> String {
    if max_age.is_zero() { "whatever their age".to_owned() } else { format!("for {} s", max_age.as_secs_f64()) }
}

/// Returns where a stream is kept, in words of the URL.
fn storage_text(config: &Config) -> String {
    let medium = if config.storage == StorageType::File { "in files ('durable')" } else { "in memory" };
    format!("{medium}, with replicas={}", config.num_replicas)
}
