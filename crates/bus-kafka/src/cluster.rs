//! What is asked of a cluster as a whole: whether it is there, its topics, and how far a queue has come.

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

use crate::answer::{Meaning, ServerError, code_of, is_of_connections, meaning};
use crate::deadline::{Deadline, PAUSE_NS, TIMEOUT};
use crate::handshake;
use crate::reasons::Reasons;
use crate::retention::Retention;
use crate::server::Server;

/// A topic that is asked for to see whether the cluster answers; it need not be there.
const PROBE: &str = "tickpath";

/// How long a server may take before it is asked whether it is there at all. Within it each of a name's addresses is
/// tried.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// How long a server may take to make or remove a topic; shorter than [`TIMEOUT`], so that it is the one that says so.
const WORK: Duration = Duration::from_secs(4);

/// The longest batch that a topic of ours takes, which is what a server has if nobody changed it: what fits here fits
/// there.
const MOST_BATCH_BYTES: &str = "1048588";

/// A cluster that has answered.
pub(crate) struct Cluster {
    server: Server,
    clock: HostClock,
    /// Looks, and changes nothing.
    lookup: BaseConsumer<Reasons>,
    admin: AdminClient<Reasons>,
    /// The member of no group that was last asked how far a group has come.
    counter: Mutex<Option<Counter>>,
}

struct Counter {
    group: String,
    consumer: BaseConsumer<Reasons>,
}

/// What a look at a topic finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// It is being made: a partition has no leader yet.
    Forming,
    /// It can be used.
    Topic(Size),
}

/// How large a topic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    partitions: i32,
    /// On how many servers the partition is kept that is kept on fewest.
    replicas: usize,
}

impl Cluster {
    /// Connects, and waits for an answer.
    pub fn open(server: Server) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(e.into()))?;
        let said = |error: ServerError| server.error(&error);
        if let Some(Err(sentence)) = server.tls.as_ref().map(handshake::read) {
            return Err(said(ServerError::Tls(sentence)));
        }
        let lookup: BaseConsumer<Reasons> = made(server.config(&[]).create_with_context(Reasons::default()), said)?;
        ping(&lookup).map_err(|error| said(without_tls(&server, error)))?;
        let admin = made(server.config(&[]).create_with_context(Reasons::default()), said)?;
        Ok(Self { clock, lookup, admin, counter: Mutex::new(None), server })
    }

    /// Which one.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// An error for who wanted to connect.
    pub fn error(&self, error: &ServerError) -> ConnectError {
        self.server.error(error)
    }

    /// What stamps are of.
    pub fn clock(&self) -> HostClock {
        self.clock
    }

    /// The end of a call that begins now.
    pub fn deadline(&self) -> Deadline {
        Deadline::new(self.clock)
    }

    /// The end of a call that begins now and may take so long.
    pub fn deadline_after(&self, timeout: Duration) -> Deadline {
        Deadline::after(self.clock, timeout)
    }

    /// Makes a topic that keeps so much unless it is there, and waits until it can be used; gives how many partitions
    /// it has. One that is kept on fewer servers than was asked for is refused.
    pub fn ensure(&self, topic: &str, partitions: i32, retention: Retention) -> Result<i32, ServerError> {
        if self.look(topic)? == Found::Nothing {
            self.create(topic, partitions, retention)?;
        }
        let deadline = self.deadline();
        loop {
            if let Found::Topic(found) = self.look(topic)? {
                let wanted = self.server.replicas.map_or(0, |wanted| wanted as usize);
                if found.replicas < wanted {
                    return Err(ServerError::Copies { topic: topic.to_owned(), has: found.replicas, wanted });
                }
                return Ok(found.partitions);
            }
            pause(&deadline)?;
        }
    }

    /// Sees to it that a topic of one partition, which is there, keeps what its publisher asks for. One that is
    /// undecided, as a subscriber makes it that comes first, is changed: for who lets old messages go only while it
    /// holds nothing. One that lets old messages go some other way is as good for who lets them go, and so is one whose
    /// settings are not told to us.
    pub fn hold(&self, topic: &str, wanted: Retention) -> Result<(), ServerError> {
        let Some(found) = self.described(topic)? else { return Ok(()) };
        let Some(has) = retention(&found) else { return Ok(()) };
        if has == wanted || has.lets_go() && wanted.lets_go() {
            return Ok(());
        }
        let is_open = has == Retention::UNDECIDED && (wanted == Retention::ALL || self.is_empty(topic)?);
        if !is_open {
            return Err(ServerError::Kept { topic: topic.to_owned(), has, wanted });
        }
        self.change(topic, &found, wanted)?;
        let deadline = self.deadline();
        while self.described(topic)?.as_ref().and_then(retention) != Some(wanted) {
            pause(&deadline)?;
        }
        Ok(())
    }

    /// Whether a topic of one partition has never held a message.
    fn is_empty(&self, topic: &str) -> Result<bool, ServerError> {
        let marks = self.watermarks(self.lookup.client(), topic, 0);
        let (_low, high) = marks.map_err(|e| self.explain(&e))?;
        Ok(high == 0)
    }

    /// What a receiver cannot get over by waiting, of an error that its client has told, together with why. That no
    /// server lets us in is looked at once more: the client says so once, and one of several may, or all by now.
    pub fn lasting<C: ClientContext>(
        &self,
        client: &Client<C>,
        reasons: &Reasons,
        error: &KafkaError,
    ) -> Option<ServerError> {
        if let Some(unreadable) = reasons.take_unreadable() {
            return Some(unreadable);
        }
        if !is_of_connections(error) {
            return ServerError::lasting(error);
        }
        self.server.tell_again(client);
        reasons.refusal()?;
        match self.greet() {
            Ok(()) => {
                reasons.forget();
                None
            }
            Err(now) => Some(now).filter(ServerError::is_refusal),
        }
    }

    /// Whether a server lets in who has never been here.
    fn greet(&self) -> Result<(), ServerError> {
        let created = self.server.config(&[]).create_with_context(Reasons::default());
        let lookup: BaseConsumer<Reasons> = created.map_err(|e| ServerError::from(&e))?;
        ping(&lookup).map_err(|error| without_tls(&self.server, error))
    }

    /// Removes a topic, and waits until its name is free.
    pub fn remove(&self, topic: &str) -> Result<(), ServerError> {
        match outcome(self.administer(self.admin.delete_topics(&[topic], &topic_options()))) {
            Ok(()) => {}
            Err(KafkaError::AdminOp(Code::UnknownTopicOrPartition)) => return Ok(()),
            Err(error) => return Err((&error).into()),
        }
        let deadline = self.deadline();
        while self.look(topic)? != Found::Nothing {
            pause(&deadline)?;
        }
        Ok(())
    }

    /// Removes what a group has left, whose topic is gone: else the next queue of this name would begin where it stood.
    /// The server drops that with the topic, so that a member that died in silence does not matter.
    pub fn remove_group(&self, group: &str, partitions: i32) -> Result<(), ServerError> {
        let deadline = self.deadline();
        loop {
            match outcome(self.administer(self.admin.delete_groups(&[group], &options()))) {
                Ok(()) | Err(KafkaError::AdminOp(Code::GroupIdNotFound)) => return Ok(()),
                Err(KafkaError::AdminOp(Code::NonEmptyGroup)) => {
                    let places = self.places(group, partitions)?;
                    if places.elements().iter().all(|place| place.offset() == Offset::Invalid) {
                        return Ok(());
                    }
                    pause(&deadline).map_err(|_| ServerError::Pulled)?;
                }
                Err(error) if passes(&error) => pause(&deadline)?,
                Err(error) => return Err((&error).into()),
            }
        }
    }

    /// Messages of a queue that no puller is done with.
    pub fn waiting(&self, queue: &str) -> Result<u64, ServerError> {
        let deadline = self.deadline();
        let partitions = loop {
            match self.look(queue)? {
                Found::Topic(Size { partitions, .. }) => break partitions,
                Found::Nothing => return Ok(0),
                // It may hold much: its server has just come back, or another one takes it over.
                Found::Forming => pause(&deadline)?,
            }
        };
        let mut waiting = 0;
        for place in self.places(queue, partitions)?.elements() {
            let marks = self.watermarks(self.lookup.client(), queue, place.partition());
            let (low, high) = marks.map_err(|e| self.explain(&e))?;
            let done = match place.offset() {
                Offset::Offset(offset) if offset <= high => offset.max(low),
                // Nobody has pulled from it, or not since it was cut short.
                _ => low,
            };
            waiting += (high - done).max(0) as u64;
        }
        Ok(waiting)
    }

    /// The oldest offset of a partition and the next one, asked for by a client that is to have its connection then.
    pub fn watermarks<C: ClientContext>(
        &self,
        client: &Client<C>,
        topic: &str,
        partition: i32,
    ) -> KafkaResult<(i64, i64)> {
        self.patiently(|left| client.fetch_watermarks(topic, partition, left))
    }

    /// Lets the server forget what lies before these places. It only frees disk: a failure changes nothing else.
    pub fn free(&self, places: &TopicPartitionList) {
        let _freed = self.administer(self.admin.delete_records(places, &options()));
    }

    fn create(&self, topic: &str, partitions: i32, retention: Retention) -> Result<(), ServerError> {
        // As many copies as the server's owner wants, if the URL does not say.
        let replicas = self.server.replicas.unwrap_or(-1);
        let settings = self.settings(retention);
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(replicas));
        for (key, value) in &settings {
            new = new.set(key, value);
        }
        match outcome(self.administer(self.admin.create_topics([&new], &topic_options()))) {
            Ok(()) | Err(KafkaError::AdminOp(Code::TopicAlreadyExists)) => Ok(()),
            Err(error) => Err((&error).into()),
        }
    }

    /// What a topic of ours is made with.
    fn settings(&self, retention: Retention) -> Vec<(&'static str, String)> {
        let mut settings = retention.settings();
        settings.push(("max.message.bytes", MOST_BATCH_BYTES.to_owned()));
        if let Some(replicas) = self.server.replicas {
            // One server may be away, and what is acknowledged is on all others.
            settings.push(("min.insync.replicas", (replicas - 1).max(1).to_string()));
        }
        settings
    }

    /// Gives a topic the settings that it would be made with. All others that are set on it stay, which takes sending
    /// them along: what is not sent is unset.
    fn change(&self, topic: &str, found: &ConfigResource, retention: Retention) -> Result<(), ServerError> {
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
            self.administer(self.admin.alter_configs([&changed], &options())).map_err(|e| ServerError::from(&e))?;
        match results.into_iter().next() {
            Some(Err((_topic, code))) => Err((&KafkaError::AdminOp(code)).into()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// The settings of a topic, with what it keeps; none if we have no right to know. A server that has just heard of
    /// it says nothing yet.
    fn described(&self, topic: &str) -> Result<Option<ConfigResource>, ServerError> {
        let specifier = ResourceSpecifier::Topic(topic);
        let deadline = self.deadline();
        loop {
            let found = self.administer(self.admin.describe_configs([&specifier], &options()));
            let found = found.map_err(|e| ServerError::from(&e))?.into_iter().next().transpose();
            if let Err(Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed) = found {
                return Ok(None);
            }
            if let Some(found) = found.ok().flatten().filter(|found| retention(found).is_some()) {
                return Ok(Some(found));
            }
            pause(&deadline).map_err(|_| ServerError::Untold(topic.to_owned()))?;
        }
    }

    fn look(&self, topic: &str) -> Result<Found, ServerError> {
        let metadata = self.lookup.fetch_metadata(Some(topic), TIMEOUT).map_err(|e| self.explain(&e))?;
        let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
            return Ok(Found::Nothing);
        };
        match found.error().map(Code::from) {
            None if found.partitions().iter().all(|partition| partition.leader() >= 0) => {
                let replicas = found.partitions().iter().map(|partition| partition.replicas().len()).min();
                let partitions = found.partitions().len() as i32;
                Ok(Found::Topic(Size { partitions, replicas: replicas.unwrap_or(0) }))
            }
            None | Some(Code::LeaderNotAvailable) => Ok(Found::Forming),
            Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => Ok(Found::Nothing),
            Some(code) => Err((&KafkaError::MetadataFetch(code)).into()),
        }
    }

    /// How far a group has come in each partition of the topic of the same name.
    fn places(&self, group: &str, partitions: i32) -> Result<TopicPartitionList, ServerError> {
        let mut counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
        let consumer = match counter.take() {
            Some(counter) if counter.group == group => counter.consumer,
            _ => {
                let settings = [("group.id", group), ("enable.auto.commit", "false")];
                let created = self.server.config(&settings).create_with_context(Reasons::default());
                created.map_err(|e| ServerError::from(&e))?
            }
        };
        let mut all = TopicPartitionList::new();
        all.add_partition_range(group, 0, partitions - 1);
        let places = self.patiently(|left| consumer.committed_offsets(all.clone(), left));
        drain(&consumer);
        match places {
            Ok(places) => {
                *counter = Some(Counter { group: group.to_owned(), consumer });
                Ok(places)
            }
            Err(error) => Err(consumer.context().explain(&error)),
        }
    }

    /// What came of a request, when it is there.
    fn administer<T>(&self, request: impl Future<Output = KafkaResult<T>>) -> KafkaResult<T> {
        let result = finish(request);
        if result.is_err() {
            self.server.tell_again(self.admin.inner());
        }
        result
    }

    /// Asks again, as long as the answer is that something is not ready yet.
    pub fn patiently<T>(&self, mut ask: impl FnMut(Duration) -> KafkaResult<T>) -> KafkaResult<T> {
        let deadline = self.deadline();
        loop {
            match ask(deadline.left()) {
                Err(error) if passes(&error) && !deadline.is_over() => sleep_ns(PAUSE_NS),
                answer => return answer,
            }
        }
    }

    fn explain(&self, error: &KafkaError) -> ServerError {
        drain(&self.lookup);
        self.server.tell_again(self.lookup.client());
        self.lookup.context().explain(error)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(f)
    }
}

/// What a topic keeps; none if the server does not tell.
fn retention(found: &ConfigResource) -> Option<Retention> {
    Retention::read(|name| found.get(name)?.value.as_deref())
}

/// Lets the client library hand over what it has to say on the side.
pub(crate) fn drain<C: ConsumerContext>(consumer: &BaseConsumer<C>) {
    const ENOUGH: usize = 100;
    for _ in 0..ENOUGH {
        if consumer.poll(Duration::ZERO).is_none() {
            return;
        }
    }
}

/// Whether the cluster answers. Where every server refuses, that is not waited for any longer.
fn ping(lookup: &BaseConsumer<Reasons>) -> Result<(), ServerError> {
    let mut last = ServerError::Timeout;
    for patience in [FIRST_LOOK, TIMEOUT.saturating_sub(FIRST_LOOK)] {
        let Err(error) = lookup.fetch_metadata(Some(PROBE), patience) else {
            // One of a name's addresses may have refused before another one answered.
            drain(lookup);
            lookup.context().forget();
            return Ok(());
        };
        drain(lookup);
        if let Some(reason) = lookup.context().outage() {
            return Err(reason);
        }
        last = lookup.context().explain(&error);
    }
    Err(last)
}

/// The same error, or that there is no TLS, if that is behind it.
fn without_tls(server: &Server, error: ServerError) -> ServerError {
    match error {
        // It was spoken to.
        ServerError::Login(_) | ServerError::NoLogin | ServerError::Mechanism(_) => error,
        _ => handshake::why_none(server).map_or(error, ServerError::Tls),
    }
}

fn made<T>(client: KafkaResult<T>, said: impl Fn(ServerError) -> ConnectError) -> Result<T, ConnectError> {
    client.map_err(|e| said((&e).into()))
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(TIMEOUT))
}

fn topic_options() -> AdminOptions {
    options().operation_timeout(Some(WORK))
}

/// What came of a request about one thing.
fn outcome(results: KafkaResult<Vec<TopicResult>>) -> KafkaResult<()> {
    match results?.into_iter().next() {
        Some(Err((_name, code))) => Err(KafkaError::AdminOp(code)),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Whether an answer means: not ready yet. What a topic was just made for, or as, may not be known everywhere.
fn passes(error: &KafkaError) -> bool {
    meaning(error) == Some(Meaning::NotYet)
        || matches!(code_of(error), Some(Code::UnknownTopicOrPartition | Code::UnknownPartition))
}

fn pause(deadline: &Deadline) -> Result<(), ServerError> {
    if deadline.is_over() {
        return Err(ServerError::Timeout);
    }
    sleep_ns(PAUSE_NS);
    Ok(())
}

/// Sleeps until the client library's own thread has finished it, which every request has an end for.
fn finish<F: Future>(future: F) -> F::Output {
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
