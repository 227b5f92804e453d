//! Puller of one queue, generic over the queue's implementation.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{Backoff, ConnectError, Message, PulledMessage, Puller, ReceiveError, wire};
use tickpath_clock::{Clock, HostClock, Wait, sleep_ns, utc_ns};

use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::host_instant::HostInstant;
use crate::info::DataIdentity;
use crate::reconnect::RedisConnectionState;
use crate::server::{RedisEndpoint, TIMEOUT};

/// Max messages of one pull, and so the max loss that a missing answer is reported as.
const MAX_MESSAGES: usize = 1024;

/// Max bytes in one request, unless a single message has more: exact for a list with acknowledgements, else estimated
/// from the last messages.
pub const MAX_PULLED_BYTES: usize = 8 << 20;

/// Max sleep before the next request: returned messages wake no puller.
const MAX_SLEEP: Duration = Duration::from_millis(250);

/// Min time, in nanoseconds, after which a connection counts as good.
const STABLE_AFTER_NS: u64 = 1_000_000_000;

/// Pause before reconnecting after a connection that was not good, so that a server that refuses every request is not
/// flooded.
const PAUSE: Backoff = Backoff::between(Duration::from_millis(10), Duration::from_secs(1));

/// Min sleep that the server can be asked for: it takes 0 as no end, and version 6.2 takes a millisecond as 0.
pub(crate) const MIN_SLEEP: Duration = Duration::from_millis(2);

/// Callback that takes pulled messages.
pub(crate) type PullHandler<'a> = dyn FnMut(PulledMessage<'_>) + 'a;

/// Queue on the server, as one puller uses it.
pub(crate) trait RedisQueue: Send {
    /// Whether a single message can be given back.
    const GIVES_BACK: bool = false;

    /// Whether a read removes messages from the server before its answer has arrived.
    const REMOVES_ON_READ: bool = false;

    fn name(&self) -> &str;

    /// Rejects, before a puller is opened, a key that is not a queue of ours.
    fn check(&self, _link: &mut RedisConnection) -> ServerResult {
        Ok(())
    }

    /// Brings a new connection to this puller's state, at the start and after each loss. A server that did
    /// not retain all data may hold other messages than the puller took there. Returns true, once, if the queue is not
    /// the one that was pulled from.
    fn resume(&mut self, _link: &mut RedisConnection, _has_retained_all: bool) -> ServerResult<bool> {
        Ok(false)
    }

    /// Accepts any queue at the next `resume`: the removal of this one is already reported.
    fn accept_any_queue(&mut self) {}

    /// Takes up to `limit` messages without waiting, and hands them over.
    fn fetch(&mut self, link: &mut RedisConnection, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult;

    /// Sleeps until a message comes, which is kept for the next [`Self::fetch`], or for `timeout`. The server checks
    /// its clock ten times a second, so the sleep may last a tenth of a second longer.
    fn wait_for_message(&mut self, link: &mut RedisConnection, timeout: Duration) -> ServerResult;

    /// Returns true if messages were handed over and not acknowledged, or were given to other pullers before that.
    fn has_unacknowledged(&self) -> bool {
        false
    }

    fn acknowledge(&mut self, _link: &mut RedisConnection) -> ServerResult {
        Ok(())
    }

    /// Gives back one message that was handed over; false if it is not this puller's, or not any more.
    fn give_back(&mut self, _link: &mut RedisConnection, _tag: u64) -> ServerResult<bool> {
        Ok(false)
    }

    /// Gives back the messages that are not acknowledged.
    fn return_unacknowledged(&mut self, link: &mut RedisConnection) -> ServerResult;
}

/// Puller that outlives its connections.
pub(crate) struct RedisPuller<Q: RedisQueue> {
    server: Arc<RedisEndpoint>,
    queue: Q,
    wait: Wait,
    state: RedisConnectionState<PullerConnection>,
    /// Identity of the server at the last connection.
    identity: Option<DataIdentity>,
    /// Server and client id of the last connection.
    last_connection: Option<(DataIdentity, i64)>,
    pending_error: Option<ReceiveError>,
    reconnects: u64,
    /// Time of the last attempt to connect, successful or not.
    last_attempt: HostInstant,
    pause: Backoff,
}

/// Connection and the server that it leads to.
struct PullerConnection {
    link: RedisConnection,
    identity: Option<DataIdentity>,
    /// Client id on the server; none if the server refuses to report it.
    client_id: Option<i64>,
}

impl<Q: RedisQueue> RedisPuller<Q> {
    /// Connects, checks the queue and joins it.
    pub fn open(server: Arc<RedisEndpoint>, mut queue: Q, wait: Wait) -> Result<Self, ConnectError> {
        let resumed = connect_puller(&server).and_then(|mut connection| {
            queue.check(&mut connection.link)?;
            queue.resume(&mut connection.link, true)?;
            Ok(connection)
        });
        let connection = resumed.map_err(|e| server.error(&e))?;
        let (identity, last_connection, last_attempt) =
            (connection.identity.clone(), connection.client_identity(), HostInstant::now(server.clock));
        let state = RedisConnectionState::Connected(connection);
        Ok(Self {
            server,
            queue,
            wait,
            state,
            identity,
            last_connection,
            pending_error: None,
            reconnects: 0,
            last_attempt,
            pause: PAUSE,
        })
    }

    /// Drops the connection and starts a reconnect, also after a refusal: the server may have become the wrong one.
    fn reconnect(&mut self, why: &RedisServerError) {
        if self.last_attempt.is_older_than(STABLE_AFTER_NS) {
            self.pause.reset();
        } else {
            self.pause.grow();
        }
        // Pauses once: an attempt that fails to connect makes pauses of its own.
        let pause = Cell::new(self.pause.current());
        let open = move |server: &RedisEndpoint| {
            sleep_ns(pause.take().as_nanos() as u64);
            connect_puller(server)
        };
        self.state.reconnect(&self.server, Some(why), Box::new(open));
    }

    /// Resumes on a restored connection. Fails if the reconnect failed, or if the new connection breaks at once.
    fn resume_connection(&mut self) -> ServerResult {
        let Some(outcome) = self.state.outcome() else { return Ok(()) };
        self.last_attempt = self.last_attempt.restarted();
        let has_retained_all = self.has_retained_all();
        let resumed = match &mut self.state {
            RedisConnectionState::Connected(connection) => outcome.and_then(|()| {
                connection.kill_previous(self.last_connection.as_ref())?;
                self.last_connection = connection.client_identity();
                self.queue.resume(&mut connection.link, has_retained_all)
            }),
            RedisConnectionState::Lost(_) => outcome.map(|()| false),
        };
        match resumed {
            Ok(is_another) => {
                self.reconnects += 1;
                self.adopt_server(has_retained_all);
                if is_another && has_retained_all {
                    self.pending_error = Some(self.queue_removed_error());
                }
                Ok(())
            }
            Err(e) => {
                self.reconnect(&e);
                Err(e)
            }
        }
    }

    /// Returns whether the connected server certainly kept all its data.
    fn has_retained_all(&self) -> bool {
        let RedisConnectionState::Connected(connection) = &self.state else { return true };
        DataIdentity::retains_all(self.identity.as_ref(), connection.identity.as_ref())
    }

    /// Adopts the connected server's identity, and notes an error if it may have lost messages.
    fn adopt_server(&mut self, has_retained_all: bool) {
        let RedisConnectionState::Connected(connection) = &self.state else { return };
        self.identity.clone_from(&connection.identity);
        if !has_retained_all {
            self.pending_error = Some(ReceiveError::MessagesLost(format!(
                "{} was started again, or another server has taken over: what the queue '{}' held may be gone, or \
                 part of it, and what was acknowledged since it was last saved may come again; a server with \
                 appendfsync always loses nothing at a start",
                self.server.name,
                self.queue.name(),
            )));
        }
    }

    fn fetch(&mut self, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult {
        self.resume_connection()?;
        if self.pending_error.is_some() {
            return Ok(());
        }
        let RedisConnectionState::Connected(connection) = &mut self.state else { return Ok(()) };
        if must_reconnect_first::<Q>(&mut connection.link) {
            self.reconnect(&RedisServerError::Closed);
            return Ok(());
        }
        let result = self.queue.fetch(&mut connection.link, limit, handler);
        if let Some(error) = result.as_ref().err().filter(|e| !matches!(e, RedisServerError::ForeignMessage)) {
            self.drop_connection(error, limit);
        }
        result
    }

    /// Drops the connection after a request for up to `max_messages` messages, and notes the loss that this error may
    /// mean.
    fn drop_connection(&mut self, error: &RedisServerError, max_messages: usize) {
        let was_asked =
            matches!(&self.state, RedisConnectionState::Connected(connection) if connection.link.sent() > 0);
        if Q::REMOVES_ON_READ && was_asked && error.is_unanswered() {
            let (server, queue) = (&self.server.name, self.queue.name());
            self.pending_error = Some(ReceiveError::MessagesLost(format!(
                "{server} {error}; up to {max_messages} messages that it took out of the queue '{queue}' may be \
                 gone; use 'at-least-once' where none may be"
            )));
        } else if is_queue_removed(error) {
            self.queue.accept_any_queue();
            self.pending_error = Some(self.queue_removed_error());
        }
        self.reconnect(error);
    }

    /// Returns the error for a queue that another client removed.
    fn queue_removed_error(&self) -> ReceiveError {
        ReceiveError::MessagesLost(format!(
            "{} no longer has the queue '{}', or has another one of its name: a client removed it, and its messages \
             may be gone; it is recreated",
            self.server.name,
            self.queue.name(),
        ))
    }

    /// Runs `work` over the connection, and once more over a new one if the connection breaks.
    fn run_with_retry<T>(&mut self, work: impl Fn(&mut Q, &mut RedisConnection) -> ServerResult<T>) -> ServerResult<T> {
        match self.try_once(&work) {
            Err(e) if e.is_transient() => self.try_once(&work),
            known => known,
        }
    }

    fn try_once<T>(&mut self, work: impl Fn(&mut Q, &mut RedisConnection) -> ServerResult<T>) -> ServerResult<T> {
        if let RedisConnectionState::Lost(reconnect) = &mut self.state {
            reconnect.wait(TIMEOUT);
        }
        self.resume_connection()?;
        let RedisConnectionState::Connected(connection) = &mut self.state else {
            return Err(RedisServerError::Timeout);
        };
        let done = work(&mut self.queue, &mut connection.link);
        if let Err(e) = &done
            && !matches!(e, RedisServerError::NotAcknowledged(_))
        {
            self.reconnect(e);
        }
        done
    }
}

impl<Q: RedisQueue> Puller for RedisPuller<Q> {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(PulledMessage<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        let mut handed_over = 0;
        let result = self.fetch(limit.min(MAX_MESSAGES), &mut |pulled| {
            handed_over += 1;
            handler(pulled);
        });
        if let Some(error) = self.pending_error.take_if(|_| handed_over == 0) {
            return Err(error);
        }
        match result {
            // An error that does not pass by itself would recur on every connection, without a report.
            Err(e) if !e.is_transient() => {
                let error = self.server.receive_error(&e);
                if handed_over == 0 {
                    return Err(error);
                }
                self.pending_error = Some(error);
                Ok(handed_over)
            }
            _ => Ok(handed_over),
        }
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        if !self.queue.has_unacknowledged() {
            return Ok(());
        }
        self.run_with_retry(Q::acknowledge).map_err(|e| match e {
            RedisServerError::NotAcknowledged(_) => ReceiveError::NotAcknowledged(format!("{} {e}", self.server.name)),
            // The messages are lost to this puller after the reconnect, or still its own: the next call acknowledges
            // them again.
            e if e.is_transient() => ReceiveError::NotAcknowledged(format!(
                "{} {e}; what was handed over is not acknowledged: acknowledge it again, or it comes again, marked",
                self.server.name
            )),
            e => self.server.receive_error(&e),
        })
    }

    fn give_back(&mut self, tag: u64) -> Result<(), ReceiveError> {
        if !Q::GIVES_BACK {
            let sentence = "at most once a message that was handed over is gone, and goes back to no queue; use \
                            'at-least-once'";
            return Err(ReceiveError::Other(sentence.into()));
        }
        let server = self.server.name.clone();
        match self.run_with_retry(|queue, link| queue.give_back(link, tag)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ReceiveError::NotAcknowledged(format!(
                "{server} does not take the message {tag} back: it is acknowledged, or was given back, or this \
                 puller was silent for too long or lost it with a connection; then it comes again, marked, if it is \
                 still there"
            ))),
            Err(e) if e.is_transient() => Err(ReceiveError::NotAcknowledged(format!(
                "{server} {e}; whether the message {tag} was given back is unknown: give it back again"
            ))),
            Err(e) => Err(self.server.receive_error(&e)),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        let timeout = Duration::from_nanos(timeout_ns);
        match &mut self.state {
            RedisConnectionState::Lost(reconnect) => reconnect.wait(timeout),
            RedisConnectionState::Connected(_) if timeout.is_zero() => {}
            RedisConnectionState::Connected(connection) => {
                if must_reconnect_first::<Q>(&mut connection.link) {
                    return self.reconnect(&RedisServerError::Closed);
                }
                let timeout = timeout.clamp(MIN_SLEEP, MAX_SLEEP);
                if let Err(error) = self.queue.wait_for_message(&mut connection.link, timeout) {
                    self.drop_connection(&error, 1);
                }
            }
        }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }

    fn outage(&self) -> Option<String> {
        self.state.outage()
    }
}

impl<Q: RedisQueue> Drop for RedisPuller<Q> {
    fn drop(&mut self) {
        if let RedisConnectionState::Connected(connection) = &mut self.state {
            // Messages that cannot be returned are redelivered once this puller has exceeded its silence limit.
            let _ = self.queue.return_unacknowledged(&mut connection.link);
        }
    }
}

impl PullerConnection {
    /// Returns the server and the client id, by which the next connection can end this one.
    fn client_identity(&self) -> Option<(DataIdentity, i64)> {
        self.identity.clone().zip(self.client_id)
    }

    /// Ends the previous connection, if the server allows it, so that requests in flight there are not executed after
    /// this connection has read the state of the queue.
    fn kill_previous(&mut self, last_connection: Option<&(DataIdentity, i64)>) -> ServerResult {
        let is_here = |identity: &DataIdentity| self.identity.as_ref().is_some_and(|now| now.is_same_process(identity));
        let Some((_, client_id)) = last_connection.filter(|(identity, _)| is_here(identity)) else { return Ok(()) };
        match self.link.request(&["CLIENT", "KILL", "ID", &client_id.to_string()], |items| items.integer()) {
            Err(RedisServerError::Refused(_)) => Ok(()),
            ended => ended.map(|_count| ()),
        }
    }
}

/// Connects, and asks for the server's identity and the client id.
fn connect_puller(server: &RedisEndpoint) -> ServerResult<PullerConnection> {
    let mut link = RedisConnection::open_ready(server)?;
    let identity = DataIdentity::request(&mut link)?;
    let client_id = match link.request(&["CLIENT", "ID"], |items| items.integer()) {
        Err(RedisServerError::Refused(_)) => None,
        answer => Some(answer?),
    };
    Ok(PullerConnection { link, identity, client_id })
}

/// Returns whether the error means that another client removed the queue.
fn is_queue_removed(error: &RedisServerError) -> bool {
    match error {
        RedisServerError::NoQueue(_) => true,
        // Reply of servers before version 7.2 to a blocked client.
        RedisServerError::TransientRefusal(line) => line.starts_with("UNBLOCKED the stream key no longer exists"),
        _ => false,
    }
}

/// Returns true if a read that removes messages would be sent on a connection the server has closed: its missing answer
/// would be reported as a loss. Checks twice, because the end may lie behind a discarded reply.
fn must_reconnect_first<Q: RedisQueue>(link: &mut RedisConnection) -> bool {
    Q::REMOVES_ON_READ && (0..2).any(|_| link.is_closed())
}

/// Returns a name for a puller that no other puller has.
pub(crate) fn unique_id(clock: HostClock) -> String {
    format!("{:x}-{:x}-{:x}", utc_ns(), std::process::id(), clock.ticks())
}

/// Decodes a pulled message. Rejects one without our header, unless the queue has a kind for foreign messages.
pub(crate) fn decode_message(bytes: &[u8], foreign: Option<u8>) -> ServerResult<Message<'_>> {
    wire::decode_pulled(bytes, foreign).ok_or(RedisServerError::ForeignMessage)
}

/// Formats a time for the server, in whole milliseconds and at least 1.
pub(crate) fn format_millis(ns: u64) -> String {
    (ns / 1_000_000).max(1).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_queue_is_distinguished_from_a_changed_server() {
        for (line, was_removed) in [
            ("NOGROUP No such key 'x' or consumer group 'tickpath' in XREADGROUP with GROUP option", true),
            ("UNBLOCKED the stream key no longer exists", true),
            ("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", false),
            ("READONLY You can't write against a read only replica.", false),
        ] {
            assert_eq!(is_queue_removed(&RedisServerError::from_line(line.as_bytes())), was_removed, "{line}");
        }
    }
}
