//! Pulls from one queue, as a member of its consumer group.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Offset, TopicPartitionList};
use tickpath_bus_api::{ConnectError, DeliveryGuarantee, PulledMessage, Puller, QueueConfig, ReceiveError, wire};
use tickpath_clock::{Wait, sleep_ns};

use crate::cluster::{Cluster, drain_events};
use crate::committer::Committer;
use crate::deadline::{CallDeadline, PAUSE_NS, TIMEOUT, whole_ms};
use crate::error::{ErrorMeaning, KafkaServerError, classify};
use crate::group::GroupMember;
use crate::names::TRANSPORT;
use crate::outage_probe::OutageProbe;
use crate::partitions::OffsetCommit;

/// Consumer settings. The cooperative assignor interrupts only the puller whose partition moves.
const SETTINGS: [(&str, &str); 11] = [
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("auto.offset.reset", "earliest"),
    ("partition.assignment.strategy", "cooperative-sticky"),
    // A server that has records answers at once.
    ("fetch.min.bytes", "1"),
    ("fetch.wait.max.ms", "500"),
    ("fetch.error.backoff.ms", "20"),
    ("fetch.queue.backoff.ms", "10"),
    // Read-ahead of the client library; this crate keeps as much again.
    ("queued.max.messages.kbytes", "16384"),
    ("fetch.max.bytes", "8388608"),
    ("enable.partition.eof", "false"),
];

/// Max milliseconds between heartbeats, by which a puller also learns of others that join or leave. The client library
/// may take twice as long.
const MAX_HEARTBEAT_MS: u64 = 250;

/// Longest silence that can be configured, in milliseconds.
const MAX_SILENCE_MS: u64 = 3_600_000;

/// Timeout of a pull's commit if the pull before it timed out on its own.
const RETRY_TIMEOUT: Duration = Duration::from_millis(500);

/// Longest wait for the close of a consumer, which leaves its group.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of done messages after which the server is asked to delete them from its disk.
const DELETE_AFTER: u64 = 100_000;

pub(crate) struct KafkaPuller {
    cluster: Arc<Cluster>,
    /// Declared before the consumer, so that the commit thread drops its reference first.
    committer: Committer,
    consumer: GroupConsumer,
    /// Name on the server.
    topic: String,
    delivery: DeliveryGuarantee,
    /// Kind given to messages of other programs; none skips them.
    foreign: Option<u8>,
    silence_ms: u64,
    wait: Wait,
    /// Detects the end of an outage.
    outage_probe: Option<OutageProbe>,
    error: Option<KafkaServerError>,
    /// Fetching is paused because too many records are buffered.
    is_paused: bool,
    /// Buffered records cannot be handed over yet: the group is rebalancing, or its server is away.
    is_blocked: bool,
}

/// The consumer of a puller. A drop waits for its close at most for [`CLOSE_TIMEOUT`]: after an outage the client library
/// may never finish the close, and then a thread is left behind instead of a caller.
struct GroupConsumer(Option<Arc<BaseConsumer<GroupMember>>>);

impl Deref for GroupConsumer {
    type Target = Arc<BaseConsumer<GroupMember>>;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref().expect("it is there until the drop")
    }
}

impl Drop for GroupConsumer {
    fn drop(&mut self) {
        let (done, is_done) = channel();
        let consumer = self.0.take();
        let close = move || {
            drop(consumer);
            // The receiver is gone after the timeout.
            let _ = done.send(());
        };
        if Builder::new().name("kafka-close".to_owned()).spawn(close).is_ok() {
            let _ = is_done.recv_timeout(CLOSE_TIMEOUT);
        }
    }
}

enum OffsetCommitOutcome {
    Done,
    /// The group is rebalancing, or its server is away.
    Retry(KafkaServerError),
    /// The group has excluded this puller, which has not noticed yet.
    Excluded,
}

impl KafkaPuller {
    /// Joins the group, whose topic must exist; partitions are assigned during pulls.
    pub fn open(cluster: Arc<Cluster>, topic: &str, config: &QueueConfig, wait: Wait) -> Result<Self, ConnectError> {
        let silence_ms = config.silence_ns.div_ceil(1_000_000).max(1);
        if silence_ms > MAX_SILENCE_MS {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT,
                what: format!("wait {silence_ms} ms for a silent puller"),
                remedy: "use a silence of an hour at most",
            });
        }
        let group = GroupMember::new(cluster.clone(), topic, config.delivery);
        let (committer, consumer) = create_member(&cluster, topic, silence_ms, group)?;
        let subscribed = cluster.watermarks(consumer.client(), topic, 0).and_then(|_| consumer.subscribe(&[topic]));
        subscribed.map_err(|e| {
            drain_events(&consumer);
            cluster.error(&consumer.context().reasons.explain(&e))
        })?;
        Ok(Self {
            cluster,
            committer,
            consumer,
            topic: topic.to_owned(),
            delivery: config.delivery,
            foreign: config.foreign,
            silence_ms,
            wait,
            outage_probe: None,
            error: None,
            is_paused: false,
            is_blocked: false,
        })
    }

    fn group(&self) -> &GroupMember {
        self.consumer.context()
    }

    /// Fetches until `limit` records are buffered or none are left, and polls at least once. Rebalances happen only in
    /// this call, before its records are handed over: a puller that does not poll never learns that it was excluded.
    fn fetch(&mut self, limit: usize) {
        self.pause();
        while self.error.is_none() {
            match self.consumer.poll(Duration::ZERO) {
                None => return self.start_outage_probe(),
                Some(Ok(message)) => self.buffer_message(&message),
                Some(Err(e)) => self.error = self.permanent_error(&e),
            }
            let group = self.group();
            if group.buffered_count() >= limit || group.is_full() {
                return;
            }
        }
    }

    /// Starts a lookout for the end of an outage, which the client library does not report.
    fn start_outage_probe(&mut self) {
        match &self.outage_probe {
            Some(probe) if probe.is_finished() => self.outage_probe = None,
            Some(_) => {}
            None if self.group().reasons.is_outage() => {
                let (cluster, consumer, topic) = (&self.cluster, &self.consumer, &self.topic);
                let probe = OutageProbe::start(cluster, consumer, topic, |group| &group.reasons, &Arc::default());
                self.outage_probe = Some(probe);
            }
            None => {}
        }
    }

    /// Pauses fetching while too many records are buffered, also for newly assigned partitions, and resumes it later.
    fn pause(&mut self) {
        let is_full = self.group().is_full();
        if !is_full && !self.is_paused {
            return;
        }
        let Ok(partitions) = self.consumer.assignment() else { return };
        let done = if is_full { self.consumer.pause(&partitions) } else { self.consumer.resume(&partitions) };
        if done.is_ok() {
            self.is_paused = is_full;
        }
    }

    fn buffer_message(&self, message: &BorrowedMessage<'_>) {
        let end = |partition| self.cluster.watermarks(self.consumer.client(), &self.topic, partition);
        self.group().buffer_record(message, |partition| end(partition).ok().map(|(_low, high)| high));
    }

    /// Commits offsets, and waits for the answer until the deadline; commits nothing if they belong to another topic.
    fn commit(
        &mut self,
        offsets: &[OffsetCommit],
        deadline: &CallDeadline,
    ) -> Result<OffsetCommitOutcome, ReceiveError> {
        if !self.await_overdue(deadline.remaining()) {
            return Ok(OffsetCommitOutcome::Retry(self.no_answer_error()));
        }
        match self.group().is_same_topic(&self.consumer, deadline) {
            Ok(true) => {}
            Ok(false) => return Err(self.rejoin()),
            Err(error) => return self.classify_refusal(&error),
        }
        self.committer.send(offsets.to_vec());
        let Some(answer) = self.committer.wait_for_answer(deadline.remaining()) else {
            self.group().state().note_overdue(offsets);
            return Ok(OffsetCommitOutcome::Retry(self.no_answer_error()));
        };
        let Err(error) = answer else {
            self.group().note_committed(offsets);
            return Ok(OffsetCommitOutcome::Done);
        };
        if classify(&error) == Some(ErrorMeaning::InDoubt) {
            self.group().state().note_unanswered(offsets);
        }
        self.classify_refusal(&error)
    }

    fn classify_refusal(&self, error: &KafkaError) -> Result<OffsetCommitOutcome, ReceiveError> {
        if let Some(error) = self.permanent_error(error) {
            return Err(self.failure(&error));
        }
        match error.rdkafka_error_code() {
            Some(Code::UnknownMemberId | Code::AssignmentLost) => Ok(OffsetCommitOutcome::Excluded),
            Some(Code::IllegalGeneration) if self.consumer.assignment_lost() => Ok(OffsetCommitOutcome::Excluded),
            _ => Ok(OffsetCommitOutcome::Retry(self.group().reasons.explain(error))),
        }
    }

    /// Joins the group with a new member when the topic was recreated, because all known offsets are void. The new
    /// member asks the server where to begin.
    fn rejoin(&mut self) -> ReceiveError {
        let group = self.group().for_recreated_topic();
        let (committer, consumer) = match create_member(&self.cluster, &self.topic, self.silence_ms, group) {
            Ok(member) => member,
            Err(error) => return ReceiveError::Other(error.into()),
        };
        self.group().start_leaving();
        (self.committer, self.consumer, self.is_paused) = (committer, consumer, false);
        if let Err(error) = self.consumer.subscribe(&[self.topic.as_str()]) {
            return self.failure(&(&error).into());
        }
        ReceiveError::MessagesLost(format!(
            "{}: this queue was removed, with all that was not acknowledged; pull on for new messages, if a \
             client recreates it, and push the lost ones again",
            self.cluster.server.name()
        ))
    }

    /// Takes in an overdue answer if it arrives within the timeout. Returns false if it is still outstanding, and
    /// nothing else can be committed yet.
    fn await_overdue(&mut self, timeout: Duration) -> bool {
        if self.committer.is_busy() {
            let Some(answer) = self.committer.wait_for_answer(timeout) else { return false };
            self.group().note_late_answer(answer.is_ok());
        }
        true
    }

    fn no_answer_error(&self) -> KafkaServerError {
        self.group().reasons.explain(&KafkaError::ConsumerCommit(Code::OperationTimedOut))
    }

    /// Returns the deadline of a commit, at most the allowed silence: a waiting puller does not poll.
    fn commit_deadline(&self) -> CallDeadline {
        self.cluster.deadline_after(TIMEOUT.min(Duration::from_millis(self.silence_ms)))
    }

    /// Commits what must be committed before the next records are handed over; returns whether that is done.
    fn is_ready(&mut self, limit: usize) -> Result<bool, ReceiveError> {
        let offsets = self.group().state().offsets_before(limit, self.delivery);
        if offsets.is_empty() || self.committer.is_busy() {
            return Ok(offsets.is_empty());
        }
        let deadline =
            if self.is_blocked { self.cluster.deadline_after(RETRY_TIMEOUT) } else { self.commit_deadline() };
        Ok(matches!(self.commit(&offsets, &deadline)?, OffsetCommitOutcome::Done))
    }

    /// Deletes done messages from the server, up to its own committed offsets. The puller's offsets may belong to a
    /// removed topic, and would delete unpulled messages of its replacement.
    fn delete_done(&self, least: u64) {
        let Some(partitions) = self.group().deletable(least) else { return };
        let Ok(kept) = self.consumer.committed_offsets(partitions, self.cluster.deadline().remaining()) else { return };
        let mut offsets = TopicPartitionList::new();
        for entry in kept.elements() {
            let is_known = entry.error().is_ok() && matches!(entry.offset(), Offset::Offset(_));
            if is_known && offsets.add_partition_offset(&self.topic, entry.partition(), entry.offset()).is_err() {
                return;
            }
        }
        if offsets.count() > 0 {
            self.cluster.delete_records(&offsets);
        }
    }

    /// Returns an error that waiting does not cure.
    fn permanent_error(&self, error: &KafkaError) -> Option<KafkaServerError> {
        match error.rdkafka_error_code() {
            Some(Code::InvalidSessionTimeout) => Some(KafkaServerError::Refused(format!(
                "a silence of {} ms lies outside its group.min.session.timeout.ms and group.max.session.timeout.ms, \
                 which are 6 s and 30 min by default",
                self.silence_ms
            ))),
            Some(
                Code::GroupAuthorizationFailed
                | Code::InvalidGroupId
                | Code::InconsistentGroupProtocol
                | Code::GroupMaxSizeReached,
            ) => Some(error.into()),
            _ => self.cluster.permanent_error(self.consumer.client(), &self.group().reasons, error),
        }
    }

    fn failure(&self, error: &KafkaServerError) -> ReceiveError {
        let sentence = self.cluster.server.describe_error(error);
        match error {
            // Another client may recreate the topic.
            KafkaServerError::TopicGone => ReceiveError::MessagesLost(sentence),
            _ => ReceiveError::Other(sentence.into()),
        }
    }

    /// Commits all messages handed over, and retries until the deadline.
    fn commit_done(&mut self, offsets: &[OffsetCommit], deadline: &CallDeadline) -> Result<(), ReceiveError> {
        loop {
            let outcome = match self.commit(offsets, deadline)? {
                OffsetCommitOutcome::Done => return Ok(()),
                OffsetCommitOutcome::Retry(error) if deadline.is_expired() => {
                    let fate = match self.group().state().in_doubt() {
                        0 => "what was handed over is not acknowledged: it comes again".to_owned(),
                        in_doubt => {
                            format!("{}; what was handed over behind them comes again", in_doubt_text(in_doubt))
                        }
                    };
                    format!(" {error}; {fate}, unless a later acknowledgement takes it in")
                }
                OffsetCommitOutcome::Retry(_) => {
                    sleep_ns(PAUSE_NS);
                    continue;
                }
                OffsetCommitOutcome::Excluded => {
                    let fate = match self.group().state().in_doubt() {
                        0 => "what it did not acknowledge comes again".to_owned(),
                        in_doubt => in_doubt_text(in_doubt),
                    };
                    self.group().state().drop_all();
                    format!(
                        ": this puller was silent for more than {} ms; {fate}: pull on, and look for what is marked, \
                         or ask for a longer silence",
                        self.silence_ms
                    )
                }
            };
            return Err(ReceiveError::NotAcknowledged(format!("{}{outcome}", self.cluster.server.name())));
        }
    }
}

/// Creates a member that has not joined the group yet, and its commit thread.
fn create_member(
    cluster: &Cluster,
    topic: &str,
    silence_ms: u64,
    group: GroupMember,
) -> Result<(Committer, GroupConsumer), ConnectError> {
    let silence = silence_ms.to_string();
    let mut settings = cluster.server.config(&SETTINGS);
    settings.set("group.id", topic);
    settings.set("session.timeout.ms", silence.as_str());
    settings.set("max.poll.interval.ms", silence.as_str());
    settings.set("heartbeat.interval.ms", (silence_ms / 3).clamp(1, MAX_HEARTBEAT_MS).to_string());
    let created: KafkaResult<BaseConsumer<GroupMember>> = settings.create_with_context(group);
    let member = Arc::new(created.map_err(|e| cluster.error(&(&e).into()))?);
    let consumer = GroupConsumer(Some(member.clone()));
    let committer =
        Committer::start(move |offsets| member.commit(&member.context().offset_list(offsets), CommitMode::Sync));
    Ok((committer.map_err(|e| ConnectError::Other(e.into()))?, consumer))
}

/// Returns the sentence about messages whose acknowledgement was sent and not answered.
fn in_doubt_text(messages: u64) -> String {
    format!("up to {messages} messages are in doubt: they are acknowledged, or come again, marked")
}

impl Puller for KafkaPuller {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(PulledMessage<'_>)) -> Result<usize, ReceiveError> {
        self.await_overdue(Duration::ZERO);
        self.fetch(limit);
        if let Some(error) = self.error.take() {
            return Err(self.failure(&error));
        }
        if self.group().state().is_recreated {
            return Err(self.rejoin());
        }
        if std::mem::take(&mut self.group().state().is_truncated) {
            return Err(ReceiveError::MessagesLost(format!(
                "{}: part of this queue is gone: its topic was truncated, or recreated; pull on for new messages, \
                 and push the lost ones again",
                self.cluster.server.name()
            )));
        }
        if self.delivery == DeliveryGuarantee::AtMostOnce {
            let unknown = std::mem::take(&mut self.group().state().unknown);
            if unknown > 0 {
                return Err(ReceiveError::MessagesLost(format!(
                    "{}: up to {unknown} messages are in doubt, which this puller lost before they were handed over: \
                     another one gets them, or they are gone; pull on, and push the lost ones again",
                    self.cluster.server.name()
                )));
            }
        }
        self.is_blocked = !self.is_ready(limit)?;
        if self.is_blocked {
            return Ok(0);
        }
        let mut handed_over = 0;
        let records = self.group().state().hand_over(limit);
        for record in records {
            if let Some(message) = wire::decode_pulled(&record.value, self.foreign) {
                handed_over += 1;
                handler(PulledMessage::without_tag(message, record.redelivered));
            }
        }
        if self.delivery == DeliveryGuarantee::AtMostOnce {
            self.delete_done(DELETE_AFTER);
        }
        Ok(handed_over)
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        if self.delivery == DeliveryGuarantee::AtMostOnce {
            return Ok(());
        }
        if self.group().state().is_recreated {
            return Err(self.rejoin());
        }
        let deadline = self.commit_deadline();
        self.await_overdue(deadline.remaining());
        let offsets = self.group().state().offsets_done();
        if !offsets.is_empty() {
            self.commit_done(&offsets, &deadline)?;
            self.delete_done(DELETE_AFTER);
        }
        let mut state = self.group().state();
        let (revoked, unknown) = (std::mem::take(&mut state.revoked), std::mem::take(&mut state.unknown));
        drop(state);
        let fate = match (revoked, unknown) {
            (0, 0) => return Ok(()),
            (0, unknown) => in_doubt_text(unknown),
            (given_away, unknown) => {
                let others = if unknown > 0 { format!(", and {}", in_doubt_text(unknown)) } else { String::new() };
                format!(
                    "up to {given_away} messages went to another puller before they were acknowledged, and come again \
                     there, marked{others}"
                )
            }
        };
        Err(ReceiveError::NotAcknowledged(format!(
            "{}: {fate}; acknowledge before the next pull",
            self.cluster.server.name()
        )))
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        if self.is_blocked {
            // The next pull tries again.
            return sleep_ns(PAUSE_NS.min(timeout_ns));
        }
        let group = self.group();
        if self.error.is_some() || group.buffered_count() > 0 || group.has_loss() {
            return;
        }
        match self.consumer.poll(whole_ms(timeout_ns)) {
            None => self.start_outage_probe(),
            Some(Ok(message)) => self.buffer_message(&message),
            Some(Err(e)) => self.error = self.permanent_error(&e),
        }
    }

    fn outage(&self) -> Option<String> {
        self.group().reasons.outage().map(|why| self.cluster.server.describe_error(&why))
    }
}

impl Drop for KafkaPuller {
    /// Leaves the group in order, so that other pullers get the partitions at once. If the topic is the same and the
    /// server answers, notes tell them this puller's position; without notes they mark more, and an outstanding commit
    /// delays the leave.
    fn drop(&mut self) {
        let can_ask = self.await_overdue(Duration::ZERO) && self.group().reasons.outage().is_none();
        if can_ask && matches!(self.group().is_same_topic(&self.consumer, &self.commit_deadline()), Ok(true)) {
            self.delete_done(1);
        } else {
            self.group().state().drop_all();
        }
        self.group().start_leaving();
    }
}
