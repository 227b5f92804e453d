//! Publisher and pusher: one command per message, to a channel, a list or a stream, with the outcome of each message.

use std::sync::Arc;

use tickpath_bus_api::wire::{HEADER_BYTES, check_message, encode, header, send_valid};
use tickpath_bus_api::{BatchError, ConnectError, Fate, MessageId, Numbering, PublishError, Publisher, Pusher};

use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::host_instant::HostInstant;
use crate::resp::{self, RespError, RespItem, RespReader, UNEXPECTED};
use crate::retention::StreamRetention;
use crate::server::{RedisEndpoint, TIMEOUT};
use crate::stream::{EntryId, MESSAGE_FIELD};

/// The longest payload, in bytes: half of what a server with default settings buffers before it drops a subscriber.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Interval, in nanoseconds, at which a publisher on a channel checks that its server is a master: a replica accepts
/// each message, and none reaches the master's subscribers.
const ROLE_CHECK_NS: u64 = 1_000_000_000;

pub(crate) type OpenConnectionFn = fn(&RedisEndpoint) -> ServerResult<RedisConnection>;

pub(crate) struct RedisPublisher {
    server: Arc<RedisEndpoint>,
    connect: OpenConnectionFn,
    head: Vec<u8>,
    /// Connection; none after an error, when it may still hold replies.
    link: Option<RedisConnection>,
    reconnects: u64,
    numbering: Numbering,
    /// Messages of the last call that are in doubt, as whole values: a resend repeats them unchanged.
    unknown: Vec<Vec<u8>>,
    /// Messages in doubt whose resend was refused permanently.
    abandoned: Option<AbandonedMessages>,
    /// Encoded commands in flight; the buffer is kept, so that sending allocates nothing.
    commands: Vec<u8>,
    receivers: ChannelReceivers,
    /// Trimming of the stream; none if everything stays.
    retention: Option<StreamRetention>,
}

/// Messages whose outcome will stay unknown.
struct AbandonedMessages {
    count: usize,
    reason: String,
}

/// Subscribers of a channel, as the server counts them.
struct ChannelReceivers {
    /// True if the server counts the receivers of a message, which it does only for a channel.
    is_counted: bool,
    /// True if the last message had a receiver.
    has_receiver: bool,
    /// Time of the last check of the server's role.
    last_role_check: HostInstant,
}

/// Outcome of messages that were not all accepted.
struct PipelineFailure {
    fates: Vec<Fate>,
    error: RedisServerError,
}

impl RedisPublisher {
    pub fn to_channel(server: Arc<RedisEndpoint>, topic: &str) -> Result<Self, ConnectError> {
        // A loading server publishes, though it refuses other commands.
        let mut sender = Self::open(server, RedisConnection::open_to_publish, &["PUBLISH", topic])?;
        // Cluster nodes, replicas included, forward published messages to each other.
        sender.receivers.is_counted = !sender.server.is_cluster;
        Ok(sender)
    }

    /// Creates a sender to a key. The command's second part is the name of the key, and its last part will be the
    /// message.
    pub fn to_key(server: Arc<RedisEndpoint>, command: &[&str]) -> Result<Self, ConnectError> {
        let server = command.get(1).map_or_else(|| server.clone(), |name| server.for_name(name));
        Self::open(server, RedisConnection::open_ready, command)
    }

    /// Creates a publisher to a stream, which it trims to `retention` if there is one.
    pub fn to_stream(
        server: Arc<RedisEndpoint>,
        topic: &str,
        retention: Option<StreamRetention>,
    ) -> Result<Self, ConnectError> {
        let mut sender = Self::to_key(server, &["XADD", topic, "*", MESSAGE_FIELD])?;
        sender.retention = retention;
        if let (Some(retention), Some(link)) = (&mut sender.retention, &mut sender.link) {
            retention.learn_mean_size(link).map_err(|e| sender.server.error(&e))?;
        }
        Ok(sender)
    }

    /// Connects at once, so that the first message does not pay for it.
    fn open(server: Arc<RedisEndpoint>, connect: OpenConnectionFn, command: &[&str]) -> Result<Self, ConnectError> {
        let link = connect(&server).map_err(|e| server.error(&e))?;
        let mut head = Vec::new();
        resp::command_head(&mut head, command);
        let clock = server.clock;
        Ok(Self {
            server,
            connect,
            head,
            link: Some(link),
            reconnects: 0,
            numbering: Numbering::new(clock),
            unknown: Vec::new(),
            abandoned: None,
            commands: Vec::new(),
            receivers: ChannelReceivers {
                is_counted: false,
                has_receiver: true,
                last_role_check: HostInstant::now(clock),
            },
            retention: None,
        })
    }

    fn send_all(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let sent = self.send_numbered(self.numbering.peek(0), stamp, kind, payloads);
        self.numbering.advance(sent.as_ref().map_or_else(|failure| Fate::used(&failure.fates), |()| payloads.len()));
        sent.map_err(|failure| failure.into_batch_error(&self.server.name))
    }

    /// Sends messages: the first one has this origin, the others the numbers after it.
    fn send_numbered(
        &mut self,
        first: MessageId,
        stamp: u64,
        kind: u8,
        payloads: &[&[u8]],
    ) -> Result<(), PipelineFailure> {
        self.unknown.clear();
        self.abandoned = None;
        let origin = |index: usize| MessageId { sequence: first.sequence.wrapping_add(index as u64), ..first };
        let mut commands = std::mem::take(&mut self.commands);
        commands.clear();
        for (index, payload) in payloads.iter().enumerate() {
            commands.extend_from_slice(&self.head);
            resp::bulk(&mut commands, &[&header(stamp, kind, origin(index)), payload]);
        }
        if let Some(retention) = &mut self.retention {
            payloads.iter().for_each(|payload| retention.count_message(HEADER_BYTES + payload.len()));
        }
        let sent = self.exchange(&commands, payloads.len());
        self.commands = commands;
        if let Err(failure) = &sent {
            let value = |index: usize| encode(stamp, kind, origin(index), payloads[index]);
            self.unknown = Fate::unknown(&failure.fates).map(value).collect();
        }
        sent
    }

    /// Sends commands in one write, then reads their replies. If a cluster node refuses because the name has moved,
    /// sends them to the node that has it now.
    fn exchange(&mut self, commands: &[u8], count: usize) -> Result<(), PipelineFailure> {
        match self.exchange_at_node(commands, count) {
            Err(failure) if failure.has_moved() => self.exchange_at_node(commands, count),
            done => done,
        }
    }

    /// Sends commands to one node. Restores a connection that was lost before any byte went out.
    fn exchange_at_node(&mut self, commands: &[u8], count: usize) -> Result<(), PipelineFailure> {
        let all = |fate, error| PipelineFailure { fates: vec![fate; count], error };
        let mut link = match self.link.take().and_then(|mut link| (!link.is_closed()).then_some(link)) {
            Some(link) => link,
            None => self.reconnect().map_err(|e| all(Fate::NotPublished, e))?,
        };
        if let Err(e) = link.send(commands) {
            if link.sent() > 0 {
                return Err(all(Fate::Unknown, e));
            }
            link = self.reconnect().map_err(|e| all(Fate::NotPublished, e))?;
            if let Err(e) = link.send(commands) {
                let fate = if link.sent() > 0 { Fate::Unknown } else { Fate::NotPublished };
                return Err(all(fate, e));
            }
        }
        self.read_replies(link, count)
    }

    /// Connects again. Counts as a reconnect, unlike the connection made when a sender is opened.
    fn reconnect(&mut self) -> ServerResult<RedisConnection> {
        let link = (self.connect)(&self.server)?;
        self.reconnects += 1;
        Ok(link)
    }

    fn read_replies(&mut self, mut link: RedisConnection, count: usize) -> Result<(), PipelineFailure> {
        let mut failure: Option<PipelineFailure> = None;
        let mut last = None;
        for index in 0..count {
            match link.receive_reply(TIMEOUT, SendReply::read) {
                Ok(reply) => {
                    last = Some(reply);
                    if let Some(failure) = &mut failure {
                        failure.fates.push(Fate::Published);
                    }
                }
                Err(e) => {
                    let is_silence = e.is_unanswered();
                    let fate = if is_silence { Fate::Unknown } else { Fate::NotPublished };
                    let failed = failure
                        .get_or_insert_with(|| PipelineFailure { fates: vec![Fate::Published; index], error: e });
                    if is_silence {
                        failed.fates.resize(count, fate);
                        break;
                    }
                    failed.fates.push(fate);
                }
            }
        }
        if let Some(failure) = failure {
            // A server that refuses may have become the wrong one: the next call looks for the right one.
            return Err(failure);
        }
        if let (Some(retention), Some(SendReply::Id(id))) = (&mut self.retention, last)
            && !retention.due_trims(id).iter().all(|cut| link.send_unanswered(cut).is_ok())
        {
            // The messages are published, and the next connection trims the stream.
            return Ok(());
        }
        if !self.receivers.is_due(last != Some(SendReply::Count(0))) {
            self.link = Some(link);
            return Ok(());
        }
        match link.is_master() {
            Ok(true) => {
                self.link = Some(link);
                Ok(())
            }
            // Some messages may have reached subscribers while the server was the master; their numbers are used up.
            Ok(false) => Err(PipelineFailure { fates: vec![Fate::Unknown; count], error: RedisServerError::Replica }),
            // The messages are published, but the connection is unusable.
            Err(_) => Ok(()),
        }
    }
}

impl ChannelReceivers {
    /// Returns whether to check the server's role: once a second, and as soon as a message has no receiver any more.
    fn is_due(&mut self, has_receiver: bool) -> bool {
        if !self.is_counted {
            return false;
        }
        let has_left = self.has_receiver && !has_receiver;
        self.has_receiver = has_receiver;
        let is_due = has_left || self.last_role_check.is_older_than(ROLE_CHECK_NS);
        if is_due {
            self.last_role_check = self.last_role_check.restarted();
        }
        is_due
    }
}

impl AbandonedMessages {
    fn error(&self) -> PublishError {
        PublishError::Other(self.reason.clone().into())
    }
}

impl PipelineFailure {
    /// Returns whether every message was refused because another node has the name.
    fn has_moved(&self) -> bool {
        self.error.is_moved() && self.fates.iter().all(|&fate| fate == Fate::NotPublished)
    }

    fn into_batch_error(self, server: &str) -> BatchError {
        BatchError::from_failure(&self.fates, format!("{server} {}", self.error), self.error.is_transient())
    }
}

impl Publisher for RedisPublisher {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        check_message(kind, payload, MAX_PAYLOAD_BYTES)?;
        self.send_all(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        send_valid(kind, payloads, MAX_PAYLOAD_BYTES, |good| self.send_all(stamp, kind, good))
    }

    fn publish_with_id(&mut self, origin: MessageId, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        check_message(kind, payload, MAX_PAYLOAD_BYTES)?;
        let sent = self.send_numbered(origin, stamp, kind, &[payload]);
        sent.map_err(|failure| failure.into_batch_error(&self.server.name).error)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        let values = std::mem::take(&mut self.unknown);
        if values.is_empty() {
            let Some(abandoned) = &self.abandoned else { return Ok(()) };
            return Err(BatchError::all_unknown(abandoned.count, abandoned.error()));
        }
        let mut commands = Vec::new();
        for value in &values {
            commands.extend_from_slice(&self.head);
            resp::bulk(&mut commands, &[value]);
        }
        let Err(mut failure) = self.exchange(&commands, values.len()) else { return Ok(()) };
        failure.fates.iter_mut().for_each(|fate| *fate = fate.after_resend());
        if failure.error.is_transient() {
            self.unknown = Fate::unknown(&failure.fates).map(|index| values[index].clone()).collect();
            return Err(failure.into_batch_error(&self.server.name));
        }
        let reason = format!(
            "{} {}; what was unknown may be published or not, and is not sent again: look for it there, or publish \
             it anew",
            self.server.name, failure.error
        );
        let abandoned = AbandonedMessages { count: Fate::unknown(&failure.fates).count(), reason };
        let error = BatchError::from_fates(&failure.fates, abandoned.error());
        self.abandoned = Some(abandoned);
        Err(error)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Pusher for RedisPublisher {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.publish(stamp, kind, payload)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.publish_batch(stamp, kind, payloads)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        Publisher::resend(self)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

/// Server's reply to a message that it accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendReply {
    /// Number of messages in the list, or, for a channel, of receivers.
    Count(i64),
    Id(EntryId),
}

impl SendReply {
    fn read(items: &mut RespReader<'_>) -> Result<Self, RespError> {
        match items.item()? {
            Some(RespItem::Integer(count)) => Ok(Self::Count(count)),
            Some(RespItem::Bulk(id)) => Ok(Self::Id(EntryId::parse(id)?)),
            _ => Err(UNEXPECTED),
        }
    }
}
