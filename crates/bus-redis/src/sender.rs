//! Publisher and pusher: one command per message, to a channel, a list or a stream, with the outcome of each message.

use std::sync::Arc;

use tickpath_bus_api::wire::{HEADER_BYTES, check_message, encode, header, send_good};
use tickpath_bus_api::{BatchError, ConnectError, Fate, Numbering, Origin, PublishError, Publisher, Pusher};

use crate::error::ServerError;
use crate::link::Link;
use crate::moment::Moment;
use crate::resp::{self, Item, Items, Malformed, UNEXPECTED};
use crate::retention::Retention;
use crate::server::{Server, TIMEOUT};
use crate::stream::{FIELD, Id};

/// The longest payload, in bytes: half of what a server with default settings buffers before it drops a subscriber.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Interval, in nanoseconds, at which a publisher on a channel checks that its server is a master: a replica accepts
/// each message, and none reaches the master's subscribers.
const LOOK_NS: u64 = 1_000_000_000;

/// Function that opens a sender's connection.
pub(crate) type Connect = fn(&Server) -> Result<Link, ServerError>;

/// Publisher or pusher with its own connection.
pub(crate) struct Sender {
    server: Arc<Server>,
    connect: Connect,
    /// Command up to the message.
    head: Vec<u8>,
    /// Connection; none after an error, when it may still hold replies.
    link: Option<Link>,
    reconnects: u64,
    numbering: Numbering,
    /// Messages of the last call that are in doubt, as whole values: a resend repeats them unchanged.
    unknown: Vec<Vec<u8>>,
    /// Messages in doubt whose resend was refused permanently.
    given_up: Option<GivenUp>,
    /// Encoded commands in flight; the buffer is kept, so that sending allocates nothing.
    packed: Vec<u8>,
    audience: Audience,
    /// Trimming of the stream; none if everything stays.
    retention: Option<Retention>,
}

/// Messages whose outcome will stay unknown.
struct GivenUp {
    count: usize,
    /// Reason why they are not sent again.
    sentence: String,
}

/// Subscribers of a channel, as the server counts them.
struct Audience {
    /// True if the server counts the receivers of a message, which it does only for a channel.
    is_counted: bool,
    /// True if the last message had a receiver.
    is_there: bool,
    /// Time of the last check of the server's role.
    asked: Moment,
}

/// Outcome of messages that were not all accepted.
struct Failure {
    fates: Vec<Fate>,
    /// Error of the first one that was not.
    error: ServerError,
}

impl Sender {
    /// Creates a publisher to a channel.
    pub fn to_channel(server: Arc<Server>, topic: &str) -> Result<Self, ConnectError> {
        // A loading server publishes, though it refuses other commands.
        let mut sender = Self::open(server, Link::open_to_publish, &["PUBLISH", topic])?;
        // Cluster nodes, replicas included, forward published messages to each other.
        sender.audience.is_counted = !sender.server.is_cluster();
        Ok(sender)
    }

    /// Creates a sender to a key. The command's second part is the name of the key, and its last part will be the
    /// message.
    pub fn to_key(server: Arc<Server>, command: &[&str]) -> Result<Self, ConnectError> {
        let server = command.get(1).map_or_else(|| server.clone(), |name| server.at(name));
        Self::open(server, Link::open_ready, command)
    }

    /// Creates a publisher to a stream, which it trims to `retention` if there is one.
    pub fn to_stream(server: Arc<Server>, topic: &str, retention: Option<Retention>) -> Result<Self, ConnectError> {
        let mut sender = Self::to_key(server, &["XADD", topic, "*", FIELD])?;
        sender.retention = retention;
        if let (Some(retention), Some(link)) = (&mut sender.retention, &mut sender.link) {
            retention.begin(link).map_err(|e| sender.server.error(&e))?;
        }
        Ok(sender)
    }

    /// Connects at once, so that the first message does not pay for it.
    fn open(server: Arc<Server>, connect: Connect, command: &[&str]) -> Result<Self, ConnectError> {
        let link = connect(&server).map_err(|e| server.error(&e))?;
        let mut head = Vec::new();
        resp::head(&mut head, command);
        let clock = server.clock();
        Ok(Self {
            server,
            connect,
            head,
            link: Some(link),
            reconnects: 0,
            numbering: Numbering::new(clock),
            unknown: Vec::new(),
            given_up: None,
            packed: Vec::new(),
            audience: Audience { is_counted: false, is_there: true, asked: Moment::now(clock) },
            retention: None,
        })
    }

    fn send(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        check_message(kind, payload, MAX_PAYLOAD_BYTES)?;
        self.send_all(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn send_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        send_good(kind, payloads, MAX_PAYLOAD_BYTES, |good| self.send_all(stamp, kind, good))
    }

    fn send_all(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let sent = self.send_from(self.numbering.ahead(0), stamp, kind, payloads);
        self.numbering.advance(sent.as_ref().map_or_else(|failure| Fate::used(&failure.fates), |()| payloads.len()));
        sent.map_err(|failure| failure.told(self.server.name()))
    }

    /// Sends a message that brings its origin from another transport.
    fn send_on(&mut self, origin: Origin, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        check_message(kind, payload, MAX_PAYLOAD_BYTES)?;
        let sent = self.send_from(origin, stamp, kind, &[payload]);
        sent.map_err(|failure| failure.told(self.server.name()).error)
    }

    /// Sends messages: the first one has this origin, the others the numbers after it.
    fn send_from(&mut self, first: Origin, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), Failure> {
        self.unknown.clear();
        self.given_up = None;
        let origin = |at: usize| Origin { number: first.number.wrapping_add(at as u64), ..first };
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        for (at, payload) in payloads.iter().enumerate() {
            packed.extend_from_slice(&self.head);
            resp::bulk(&mut packed, &[&header(stamp, kind, origin(at)), payload]);
        }
        if let Some(retention) = &mut self.retention {
            payloads.iter().for_each(|payload| retention.add(HEADER_BYTES + payload.len()));
        }
        let sent = self.exchange(&packed, payloads.len());
        self.packed = packed;
        if let Err(failure) = &sent {
            let value = |at: usize| encode(stamp, kind, origin(at), payloads[at]);
            self.unknown = Fate::unknown(&failure.fates).map(value).collect();
        }
        sent
    }

    /// Resends the messages in doubt, unchanged.
    fn send_again(&mut self) -> Result<(), BatchError> {
        let values = std::mem::take(&mut self.unknown);
        if values.is_empty() {
            return self.given_up.as_ref().map_or(Ok(()), GivenUp::told);
        }
        let mut packed = Vec::new();
        for value in &values {
            packed.extend_from_slice(&self.head);
            resp::bulk(&mut packed, &[value]);
        }
        let Err(mut failure) = self.exchange(&packed, values.len()) else { return Ok(()) };
        // A message that is refused now may have been accepted the first time.
        let open = failure.fates.iter_mut().filter(|fate| **fate == Fate::NotPublished);
        open.for_each(|fate| *fate = Fate::Unknown);
        if failure.error.may_pass() {
            self.unknown = Fate::unknown(&failure.fates).map(|at| values[at].clone()).collect();
            return Err(failure.told(self.server.name()));
        }
        let sentence = format!(
            "{} {}; what was unknown may be published or not, and is not sent again: look for it there, or publish it anew",
            self.server.name(),
            failure.error
        );
        let given_up = GivenUp { count: Fate::unknown(&failure.fates).count(), sentence };
        let told = BatchError::of(&failure.fates, given_up.error());
        self.given_up = Some(given_up);
        Err(told)
    }

    /// Sends commands in one write, then reads their replies. If a cluster node refuses because the name has moved,
    /// sends them to the node that has it now.
    fn exchange(&mut self, packed: &[u8], count: usize) -> Result<(), Failure> {
        match self.exchange_here(packed, count) {
            Err(failure) if failure.has_moved() => self.exchange_here(packed, count),
            done => done,
        }
    }

    /// Sends commands to one node. Restores a connection that was lost before any byte went out.
    fn exchange_here(&mut self, packed: &[u8], count: usize) -> Result<(), Failure> {
        let all = |fate, error| Failure { fates: vec![fate; count], error };
        let mut link = match self.link.take().and_then(|mut link| (!link.is_closed()).then_some(link)) {
            Some(link) => link,
            None => self.reconnect().map_err(|e| all(Fate::NotPublished, e))?,
        };
        if let Err(e) = link.send(packed) {
            if link.sent() > 0 {
                return Err(all(Fate::Unknown, e));
            }
            link = self.reconnect().map_err(|e| all(Fate::NotPublished, e))?;
            if let Err(e) = link.send(packed) {
                let fate = if link.sent() > 0 { Fate::Unknown } else { Fate::NotPublished };
                return Err(all(fate, e));
            }
        }
        self.take_replies(link, count)
    }

    /// Connects again. Counts as a reconnect, unlike the connection made when a sender is opened.
    fn reconnect(&mut self) -> Result<Link, ServerError> {
        let link = (self.connect)(&self.server)?;
        self.reconnects += 1;
        Ok(link)
    }

    fn take_replies(&mut self, mut link: Link, count: usize) -> Result<(), Failure> {
        let mut failure: Option<Failure> = None;
        let mut last = None;
        for at in 0..count {
            match link.answer(TIMEOUT, Reply::read) {
                Ok(reply) => {
                    last = Some(reply);
                    if let Some(failure) = &mut failure {
                        failure.fates.push(Fate::Published);
                    }
                }
                Err(e) => {
                    let is_silence = e.is_silence();
                    let fate = if is_silence { Fate::Unknown } else { Fate::NotPublished };
                    let failed = failure.get_or_insert_with(|| Failure { fates: vec![Fate::Published; at], error: e });
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
        if let (Some(retention), Some(Reply::Id(id))) = (&mut self.retention, last)
            && !retention.cuts(id).iter().all(|cut| link.tell(cut).is_ok())
        {
            // The messages are published, and the next connection trims the stream.
            return Ok(());
        }
        if !self.audience.is_due(last != Some(Reply::Count(0))) {
            self.link = Some(link);
            return Ok(());
        }
        match link.is_master() {
            Ok(true) => {
                self.link = Some(link);
                Ok(())
            }
            // Some messages may have reached subscribers while the server was the master; their numbers are used up.
            Ok(false) => Err(Failure { fates: vec![Fate::Unknown; count], error: ServerError::Replica }),
            // The messages are published, but the connection is unusable.
            Err(_) => Ok(()),
        }
    }
}

impl Audience {
    /// Returns whether to check the server's role: once a second, and as soon as a message has no receiver any more.
    fn is_due(&mut self, heard: bool) -> bool {
        if !self.is_counted {
            return false;
        }
        let has_left = self.is_there && !heard;
        self.is_there = heard;
        let is_due = has_left || self.asked.is_past(LOOK_NS);
        if is_due {
            self.asked = self.asked.restarted();
        }
        is_due
    }
}

impl GivenUp {
    fn told(&self) -> Result<(), BatchError> {
        Err(BatchError::of(&vec![Fate::Unknown; self.count], self.error()))
    }

    fn error(&self) -> PublishError {
        PublishError::Other(self.sentence.clone().into())
    }
}

impl Failure {
    /// Returns whether every message was refused because another node has the name.
    fn has_moved(&self) -> bool {
        self.error.is_moved() && self.fates.iter().all(|&fate| fate == Fate::NotPublished)
    }

    fn told(self, server: &str) -> BatchError {
        let first = self.fates.iter().find(|&&fate| fate != Fate::Published);
        let error = match first {
            Some(Fate::Unknown) => PublishError::Unknown(format!("{server} {}", self.error)),
            _ => self.error.refusal(server),
        };
        BatchError::of(&self.fates, error)
    }
}

impl Publisher for Sender {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, payload)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send_batch(stamp, kind, payloads)
    }

    fn carry(&mut self, origin: Origin, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send_on(origin, stamp, kind, payload)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        self.send_again()
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Pusher for Sender {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, payload)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send_batch(stamp, kind, payloads)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        self.send_again()
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

/// Server's reply to a message that it accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// Number of messages in the list, or, for a channel, of receivers.
    Count(i64),
    /// Id of the new entry.
    Id(Id),
}

impl Reply {
    fn read(items: &mut Items<'_>) -> Result<Self, Malformed> {
        match items.item()? {
            Some(Item::Integer(count)) => Ok(Self::Count(count)),
            Some(Item::Bulk(id)) => Ok(Self::Id(Id::parse(id)?)),
            _ => Err(UNEXPECTED),
        }
    }
}
