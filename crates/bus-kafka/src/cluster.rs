//! Requests to a cluster as a whole: reachability, topics, and the progress of queues.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigResource, ConfigSource, NewTopic, ResourceSpecifier,
    TopicReplication, TopicResult,
};
use rdkafka::client::{Client, ClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use tickpath_bus_api::ConnectError;
use tickpath_clock::{HostClock, sleep_ns};

use crate::deadline::{CallDeadline, PAUSE_NS, TIMEOUT};
use crate::error::{ErrorMeaning, KafkaServerError, ServerResult, classify, code_of, is_connection_error};
use crate::handshake;
use crate::reasons::OutageReasons;
use crate::retention::TopicRetention;
use crate::server::KafkaEndpoint;

/// Topic requested to see whether the cluster answers; it need not exist.
const PROBE: &str = "tickpath";

/// Timeout of the first probe of a connect, after which an outage is looked for. Each address of a host name is tried
/// within it.
const FIRST_PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Max time for a server to create or remove a topic; shorter than [`TIMEOUT`], so that the server reports the timeout.
const ADMIN_TIMEOUT: Duration = Duration::from_secs(4);

/// Longest batch of a topic that we create, in bytes: a server's default, so that batches fit both.
const MAX_BATCH_BYTES: &str = "1048588";

/// A cluster that has answered.
pub(crate) struct Cluster {
    pub server: KafkaEndpoint,
    pub clock: HostClock,
    /// Client for lookups, which changes nothing.
    lookup: BaseConsumer<OutageReasons>,
    admin: AdminClient<OutageReasons>,
    /// Consumer for the last queried group's offsets; it never joins the group.
    group_offsets: Mutex<Option<GroupOffsets>>,
}

struct GroupOffsets {
    group: String,
    consumer: BaseConsumer<OutageReasons>,
}

/// Result of a topic lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TopicLookup {
    Missing,
    /// The topic is being created, or a partition has no leader.
    NotReady,
    /// The topic is usable.
    Ready(TopicSize),
}

/// Size of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TopicSize {
    partitions: i32,
    /// Number of replicas of the partition that has fewest.
    replicas: usize,
}

impl Cluster {
    /// Connects, and waits for an answer.
    pub fn open(server: KafkaEndpoint) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(e.into()))?;
        let to_connect_error = |error: KafkaServerError| server.error(&error);
        if let Some(Err(sentence)) = server.tls.as_ref().map(handshake::read_tls_files) {
            return Err(to_connect_error(KafkaServerError::Tls(sentence)));
        }
        let lookup = server.consumer(&[]).map_err(to_connect_error)?;
        ping(&lookup).map_err(|error| to_connect_error(with_tls_reason(&server, error)))?;
        let admin = server.config(&[]).create_with_context(OutageReasons::default());
        let admin = admin.map_err(|e| to_connect_error((&e).into()))?;
        Ok(Self { clock, lookup, admin, group_offsets: Mutex::new(None), server })
    }

    pub fn error(&self, error: &KafkaServerError) -> ConnectError {
        self.server.error(error)
    }

    /// Returns a deadline of [`TIMEOUT`] from now.
    pub fn deadline(&self) -> CallDeadline {
        self.deadline_after(TIMEOUT)
    }

    /// Returns a deadline of `timeout` from now.
    pub fn deadline_after(&self, timeout: Duration) -> CallDeadline {
        CallDeadline::new(self.clock, timeout)
    }

    /// Creates a topic with this retention unless it exists, waits until it is usable, and returns its number of
    /// partitions. Refuses an existing topic with fewer replicas than the URL asks for.
    pub fn ensure(&self, topic: &str, partitions: i32, retention: TopicRetention) -> ServerResult<i32> {
        if self.look_up_topic(topic)? == TopicLookup::Missing {
            self.create(topic, partitions, retention)?;
        }
        let deadline = self.deadline();
        loop {
            if let TopicLookup::Ready(found) = self.look_up_topic(topic)? {
                let wanted = self.server.replicas.map_or(0, |wanted| wanted as usize);
                if found.replicas < wanted {
                    return Err(KafkaServerError::TooFewReplicas {
                        topic: topic.to_owned(),
                        has: found.replicas,
                        wanted,
                    });
                }
                return Ok(found.partitions);
            }
            pause(&deadline)?;
        }
    }

    /// Ensures that an existing topic of one partition has the retention that its publisher asks for. An undecided
    /// topic, created by a subscriber, is changed; to let messages expire only while it is empty. Any two retentions
    /// that let messages expire are compatible, and unreadable settings are accepted.
    pub fn ensure_retention(&self, topic: &str, wanted: TopicRetention) -> ServerResult {
        let Some(found) = self.topic_settings(topic)? else { return Ok(()) };
        let Some(has) = retention(&found) else { return Ok(()) };
        if has == wanted || has.expires() && wanted.expires() {
            return Ok(());
        }
        let is_open = has == TopicRetention::UNDECIDED && (wanted == TopicRetention::ALL || self.is_empty(topic)?);
        if !is_open {
            return Err(KafkaServerError::RetentionMismatch { topic: topic.to_owned(), has, wanted });
        }
        self.change_settings(topic, &found, wanted)?;
        let deadline = self.deadline();
        while self.topic_settings(topic)?.as_ref().and_then(retention) != Some(wanted) {
            pause(&deadline)?;
        }
        Ok(())
    }

    /// Returns whether a topic of one partition has never held a message.
    fn is_empty(&self, topic: &str) -> ServerResult<bool> {
        let marks = self.watermarks(self.lookup.client(), topic, 0);
        let (_low, high) = marks.map_err(|e| self.explain(&e))?;
        Ok(high == 0)
    }

    /// Returns the lasting error, if any, behind an error reported by a receiver's client. A refusal by all servers is
    /// checked with a new connection, because the client reports it once, and another server may let us in by now.
    pub fn permanent_error<C: ClientContext>(
        &self,
        client: &Client<C>,
        reasons: &OutageReasons,
        error: &KafkaError,
    ) -> Option<KafkaServerError> {
        if let Some(unreadable) = reasons.take_unreadable() {
            return Some(unreadable);
        }
        if !is_connection_error(error) {
            return KafkaServerError::permanent(error);
        }
        self.server.add_brokers_again(client);
        reasons.refusal()?;
        match self.check_login() {
            Ok(()) => {
                reasons.clear();
                None
            }
            Err(now) => Some(now).filter(KafkaServerError::is_refusal),
        }
    }

    /// Checks whether a server lets a new client in.
    fn check_login(&self) -> ServerResult {
        ping(&self.server.consumer(&[])?).map_err(|error| with_tls_reason(&self.server, error))
    }

    /// Removes a topic, and waits until its name is free.
    pub fn remove(&self, topic: &str) -> ServerResult {
        match single_result(self.run_admin(self.admin.delete_topics(&[topic], &topic_options()))) {
            Ok(()) => {}
            Err(KafkaError::AdminOp(Code::UnknownTopicOrPartition)) => return Ok(()),
            Err(error) => return Err((&error).into()),
        }
        let deadline = self.deadline();
        while self.look_up_topic(topic)? != TopicLookup::Missing {
            pause(&deadline)?;
        }
        Ok(())
    }

    /// Removes the group of a removed topic, or the next queue of this name would begin at its offsets. The server
    /// drops them with the topic, so a member that died silently does not matter.
    pub fn remove_group(&self, group: &str, partitions: i32) -> ServerResult {
        let deadline = self.deadline();
        loop {
            match single_result(self.run_admin(self.admin.delete_groups(&[group], &options()))) {
                Ok(()) | Err(KafkaError::AdminOp(Code::GroupIdNotFound)) => return Ok(()),
                Err(KafkaError::AdminOp(Code::NonEmptyGroup)) => {
                    let offsets = self.committed_offsets(group, partitions)?;
                    if offsets.elements().iter().all(|entry| entry.offset() == Offset::Invalid) {
                        return Ok(());
                    }
                    pause(&deadline).map_err(|_| KafkaServerError::QueueInUse)?;
                }
                Err(error) if is_not_ready(&error) => pause(&deadline)?,
                Err(error) => return Err((&error).into()),
            }
        }
    }

    /// Returns the number of messages of a queue that are not acknowledged.
    pub fn count_waiting(&self, queue: &str) -> ServerResult<u64> {
        let deadline = self.deadline();
        let partitions = loop {
            match self.look_up_topic(queue)? {
                TopicLookup::Ready(TopicSize { partitions, .. }) => break partitions,
                TopicLookup::Missing => return Ok(0),
                // The topic may hold many messages: its server has just restarted, or another one takes over.
                TopicLookup::NotReady => pause(&deadline)?,
            }
        };
        let mut waiting = 0;
        for entry in self.committed_offsets(queue, partitions)?.elements() {
            let marks = self.watermarks(self.lookup.client(), queue, entry.partition());
            let (low, high) = marks.map_err(|e| self.explain(&e))?;
            let done = match entry.offset() {
                Offset::Offset(offset) if offset <= high => offset.max(low),
                // No puller has pulled from the partition, or none since it was cut short.
                _ => low,
            };
            waiting += (high - done).max(0) as u64;
        }
        Ok(waiting)
    }

    /// Returns the oldest and the next offset of a partition, over the given client, which thereby connects.
    pub fn watermarks<C: ClientContext>(
        &self,
        client: &Client<C>,
        topic: &str,
        partition: i32,
    ) -> KafkaResult<(i64, i64)> {
        self.retry_until_ready(|left| client.fetch_watermarks(topic, partition, left))
    }

    /// Asks the server to delete messages below these offsets. It only frees disk, so that a failure is ignored.
    pub fn delete_records(&self, offsets: &TopicPartitionList) {
        let _freed = self.run_admin(self.admin.delete_records(offsets, &options()));
    }

    fn create(&self, topic: &str, partitions: i32, retention: TopicRetention) -> ServerResult {
        // The server's default number of replicas, unless the URL has one.
        let replicas = self.server.replicas.unwrap_or(-1);
        let settings = self.settings(retention);
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(replicas));
        for (key, value) in &settings {
            new = new.set(key, value);
        }
        match single_result(self.run_admin(self.admin.create_topics([&new], &topic_options()))) {
            Ok(()) | Err(KafkaError::AdminOp(Code::TopicAlreadyExists)) => Ok(()),
            Err(error) => Err((&error).into()),
        }
    }

    /// Returns the settings of a new topic.
    fn settings(&self, retention: TopicRetention) -> Vec<(&'static str, String)> {
        let mut settings = retention.settings();
        settings.push(("max.message.bytes", MAX_BATCH_BYTES.to_owned()));
        if let Some(replicas) = self.server.replicas {
            // One server may be down, and acknowledged messages are on all others.
            settings.push(("min.insync.replicas", (replicas - 1).max(1).to_string()));
        }
        settings
    }

    /// Changes the settings of a topic to those of a new one. Its other settings are sent along, because the server
    /// resets those that are not.
    fn change_settings(&self, topic: &str, found: &ConfigResource, retention: TopicRetention) -> ServerResult {
        let settings = self.settings(retention);
        let mut changed = AlterConfig::new(ResourceSpecifier::Topic(topic));
        for entry in found.entries.iter().filter(|entry| entry.source == ConfigSource::DynamicTopic) {
            if let Some(value) = &entry.value {
                changed = changed.set(&entry.name, value);
            }
        }
        for (key, value) in &settings {
            changed = changed.set(key, value);
        }
        let results =
            self.run_admin(self.admin.alter_configs([&changed], &options())).map_err(|e| KafkaServerError::from(&e))?;
        match results.into_iter().next() {
            Some(Err((_topic, code))) => Err((&KafkaError::AdminOp(code)).into()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Returns the settings of a topic; none if we lack the right. Retries, because a server that has just learned of a
    /// topic returns no settings yet.
    fn topic_settings(&self, topic: &str) -> ServerResult<Option<ConfigResource>> {
        let specifier = ResourceSpecifier::Topic(topic);
        let deadline = self.deadline();
        loop {
            let found = self.run_admin(self.admin.describe_configs([&specifier], &options()));
            let found = found.map_err(|e| KafkaServerError::from(&e))?.into_iter().next().transpose();
            if let Err(Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed) = found {
                return Ok(None);
            }
            if let Some(found) = found.ok().flatten().filter(|found| retention(found).is_some()) {
                return Ok(Some(found));
            }
            pause(&deadline).map_err(|_| KafkaServerError::RetentionUnreadable(topic.to_owned()))?;
        }
    }

    fn look_up_topic(&self, topic: &str) -> ServerResult<TopicLookup> {
        let metadata = self.lookup.fetch_metadata(Some(topic), TIMEOUT).map_err(|e| self.explain(&e))?;
        let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
            return Ok(TopicLookup::Missing);
        };
        match found.error().map(Code::from) {
            None if found.partitions().iter().all(|partition| partition.leader() >= 0) => {
                let replicas = found.partitions().iter().map(|partition| partition.replicas().len()).min();
                let partitions = found.partitions().len() as i32;
                Ok(TopicLookup::Ready(TopicSize { partitions, replicas: replicas.unwrap_or(0) }))
            }
            None | Some(Code::LeaderNotAvailable) => Ok(TopicLookup::NotReady),
            Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => Ok(TopicLookup::Missing),
            Some(code) => Err((&KafkaError::MetadataFetch(code)).into()),
        }
    }

    /// Returns the committed offsets of a group in the topic of the same name.
    fn committed_offsets(&self, group: &str, partitions: i32) -> ServerResult<TopicPartitionList> {
        let mut counter = self.group_offsets.lock().unwrap_or_else(PoisonError::into_inner);
        let consumer = match counter.take() {
            Some(counter) if counter.group == group => counter.consumer,
            _ => self.server.consumer(&[("group.id", group), ("enable.auto.commit", "false")])?,
        };
        let mut all = TopicPartitionList::new();
        all.add_partition_range(group, 0, partitions - 1);
        let offsets = self.retry_until_ready(|left| consumer.committed_offsets(all.clone(), left));
        drain_events(&consumer);
        match offsets {
            Ok(offsets) => {
                *counter = Some(GroupOffsets { group: group.to_owned(), consumer });
                Ok(offsets)
            }
            Err(error) => Err(consumer.context().explain(&error)),
        }
    }

    /// Waits for the result of an admin request.
    fn run_admin<T>(&self, request: impl Future<Output = KafkaResult<T>>) -> KafkaResult<T> {
        let result = block_on(request);
        if result.is_err() {
            self.server.add_brokers_again(self.admin.inner());
        }
        result
    }

    /// Repeats a request while the answer is that something is not ready yet, until [`TIMEOUT`].
    pub fn retry_until_ready<T>(&self, mut ask: impl FnMut(Duration) -> KafkaResult<T>) -> KafkaResult<T> {
        let deadline = self.deadline();
        loop {
            match ask(deadline.remaining()) {
                Err(error) if is_not_ready(&error) && !deadline.is_expired() => sleep_ns(PAUSE_NS),
                answer => return answer,
            }
        }
    }

    fn explain(&self, error: &KafkaError) -> KafkaServerError {
        drain_events(&self.lookup);
        self.server.add_brokers_again(self.lookup.client());
        self.lookup.context().explain(error)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(f)
    }
}

/// Reads the retention of a topic; none if the server does not return it.
fn retention(found: &ConfigResource) -> Option<TopicRetention> {
    TopicRetention::read(|name| found.get(name)?.value.as_deref())
}

/// Polls until the client library has delivered its pending error reports.
pub(crate) fn drain_events<C: ConsumerContext>(consumer: &BaseConsumer<C>) {
    const ENOUGH: usize = 100;
    for _ in 0..ENOUGH {
        if consumer.poll(Duration::ZERO).is_none() {
            return;
        }
    }
}

/// Waits until the cluster answers. Fails early if every server refuses.
fn ping(lookup: &BaseConsumer<OutageReasons>) -> ServerResult {
    let mut last = KafkaServerError::Timeout;
    for patience in [FIRST_PROBE_TIMEOUT, TIMEOUT.saturating_sub(FIRST_PROBE_TIMEOUT)] {
        let Err(error) = lookup.fetch_metadata(Some(PROBE), patience) else {
            // One address of a host name may have refused before another one answered.
            drain_events(lookup);
            lookup.context().clear();
            return Ok(());
        };
        drain_events(lookup);
        if let Some(reason) = lookup.context().outage() {
            return Err(reason);
        }
        last = lookup.context().explain(&error);
    }
    Err(last)
}

/// Replaces the error by a failed TLS handshake, if that is its cause.
fn with_tls_reason(server: &KafkaEndpoint, error: KafkaServerError) -> KafkaServerError {
    match error {
        // The server was reached, past TLS.
        KafkaServerError::LoginRefused(_)
        | KafkaServerError::LoginUnsupported
        | KafkaServerError::UnsupportedMechanism(_) => error,
        _ => handshake::failure_reason(server).map_or(error, KafkaServerError::Tls),
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(TIMEOUT))
}

fn topic_options() -> AdminOptions {
    options().operation_timeout(Some(ADMIN_TIMEOUT))
}

/// Returns the result of a request about one topic or group.
fn single_result(results: KafkaResult<Vec<TopicResult>>) -> KafkaResult<()> {
    match results?.into_iter().next() {
        Some(Err((_name, code))) => Err(KafkaError::AdminOp(code)),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Returns whether an answer means "not ready yet". A new topic or setting may not be known to every server.
fn is_not_ready(error: &KafkaError) -> bool {
    classify(error) == Some(ErrorMeaning::Retryable)
        || matches!(code_of(error), Some(Code::UnknownTopicOrPartition | Code::UnknownPartition))
}

fn pause(deadline: &CallDeadline) -> ServerResult {
    if deadline.is_expired() {
        return Err(KafkaServerError::Timeout);
    }
    sleep_ns(PAUSE_NS);
    Ok(())
}

/// Sleeps until the client library's thread has finished the request; every request has a timeout.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
