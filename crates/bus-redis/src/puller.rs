//! Puller of one queue, generic over the queue's implementation.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{ConnectError, Message, Pause, Pulled, Puller, ReceiveError, wire};
use tickpath_clock::{Clock, HostClock, Wait, sleep_ns, utc_ns};

use crate::error::ServerError;
use crate::info::Run;
use crate::link::Link;
use crate::moment::Moment;
use crate::reconnect::State;
use crate::server::{Server, TIMEOUT};

/// Max number of messages in one request.
const MOST_MESSAGES: usize = 1024;

/// Max bytes in one request, unless a single message has more: exact for a list with acknowledgements, else estimated
/// from the last messages.
pub const MAX_PULLED_BYTES: usize = 8 << 20;

/// Max sleep before the next request: returned messages wake no puller.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);

/// Min time, in nanoseconds, after which a connection counts as good.
const LASTING_NS: u64 = 1_000_000_000;

/// Pause before reconnecting after a connection that was not good, so that a server that refuses every request is not
/// flooded.
const PAUSE: Pause = Pause::between(Duration::from_millis(10), Duration::from_secs(1));

/// Min sleep that the server can be asked for: it takes 0 as no end, and version 6.2 takes a millisecond as 0.
pub(crate) const SHORTEST_SLEEP: Duration = Duration::from_millis(2);

/// Queue on the server, as one puller uses it.
pub(crate) trait Queue: Send {
    /// Whether a single message can be given back.
    const GIVES_BACK: bool = false;

    /// Whether a read removes messages from the server before its answer has arrived.
    const TAKES_AWAY: bool = false;

    /// Returns the name of the queue.
    fn name(&self) -> &str;

    /// Rejects, before a puller is opened, a key that is not a queue of ours.
    fn check(&self, _link: &mut Link) -> Result<(), ServerError> {
        Ok(())
    }

    /// Brings a new connection to this puller's state, at the start and after each loss; without `has_kept_all` the
    /// server may hold other messages than the puller took there. Returns true, once, if the queue is not the one that
    /// was pulled from.
    fn resume(&mut self, link: &mut Link, has_kept_all: bool) -> Result<bool, ServerError>;

    /// Accepts any queue at the next `resume`: the removal of this one is already reported.
    fn forget(&mut self) {}

    /// Takes up to `limit` messages without waiting, and hands them over.
    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError>;

    /// Sleeps until a message comes, which is kept for the next [`Self::take`], or for `timeout`. The server checks its
    /// clock ten times a second, so the sleep may last a tenth of a second longer.
    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError>;

    /// Returns true if messages were handed over and not acknowledged, or were given to other pullers before that.
    fn is_holding(&self) -> bool;

    /// Acknowledges the messages that were handed over.
    fn acknowledge(&mut self, link: &mut Link) -> Result<(), ServerError>;

    /// Gives back one message that was handed over; false if it is not this puller's, or not any more.
    fn give_back(&mut self, _link: &mut Link, _tag: u64) -> Result<bool, ServerError> {
        Ok(false)
    }

    /// Gives back the messages that are not acknowledged.
    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError>;
}

/// Puller that outlives its connections.
pub(crate) struct RedisPuller<Q: Queue> {
    server: Arc<Server>,
    queue: Q,
    wait: Wait,
    state: State<Attached>,
    /// Identity of the server at the last connection.
    run: Option<Run>,
    /// Server and client id of the last connection.
    last: Option<(Run, i64)>,
    /// Error to report once.
    news: Option<ReceiveError>,
    reconnects: u64,
    /// Time of the last connection, or of the last failed attempt.
    connected: Moment,
    /// Pause before the next reconnect.
    pause: Pause,
}

/// Connection and the server that it leads to.
struct Attached {
    link: Link,
    run: Option<Run>,
    /// Client id on the server; none if the server refuses to report it.
    number: Option<i64>,
}

impl<Q: Queue> RedisPuller<Q> {
    /// Connects, checks the queue and joins it.
    pub fn open(server: Arc<Server>, mut queue: Q, wait: Wait) -> Result<Self, ConnectError> {
        let resumed = attach(&server).and_then(|mut there| {
            queue.check(&mut there.link)?;
            queue.resume(&mut there.link, true)?;
            Ok(there)
        });
        let there = resumed.map_err(|e| server.error(&e))?;
        let (run, last, connected) = (there.run.clone(), there.name(), Moment::now(server.clock()));
        let state = State::Connected(there);
        Ok(Self { server, queue, wait, state, run, last, news: None, reconnects: 0, connected, pause: PAUSE })
    }

    /// Drops the connection and starts a reconnect, also after a refusal: the server may have become the wrong one.
    fn reconnect(&mut self, why: &ServerError) {
        if self.connected.is_past(LASTING_NS) {
            self.pause.reset();
        } else {
            self.pause.grow();
        }
        // Pauses once: an attempt that fails to connect makes pauses of its own.
        let pause = Cell::new(self.pause.now());
        let open = move |server: &Server| {
            sleep_ns(pause.take().as_nanos() as u64);
            attach(server)
        };
        self.state.renew(&self.server, Some(why), Box::new(open));
    }

    /// Resumes on a restored connection. Fails if the reconnect failed, or if the new connection breaks at once.
    fn look_for_connection(&mut self) -> Result<(), ServerError> {
        let Some(outcome) = self.state.outcome() else { return Ok(()) };
        self.connected = self.connected.restarted();
        let has_kept_all = self.has_kept_all();
        let resumed = match &mut self.state {
            State::Connected(there) => outcome.and_then(|()| {
                there.end(self.last.as_ref())?;
                self.last = there.name();
                self.queue.resume(&mut there.link, has_kept_all)
            }),
            State::Lost(_) => outcome.map(|()| false),
        };
        match resumed {
            Ok(is_another) => {
                self.reconnects += 1;
                self.go_by_this_server(has_kept_all);
                if is_another && has_kept_all {
                    self.news = Some(self.removed());
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
    fn has_kept_all(&self) -> bool {
        let State::Connected(there) = &self.state else { return true };
        Run::has_kept_all(self.run.as_ref(), there.run.as_ref())
    }

    /// Adopts the connected server's identity, and notes an error if it may have lost messages.
    fn go_by_this_server(&mut self, has_kept_all: bool) {
        let State::Connected(there) = &self.state else { return };
        self.run.clone_from(&there.run);
        if !has_kept_all {
            self.news = Some(ReceiveError::Gone(format!(
                "{} was started again, or another server has taken over: what the queue '{}' held may be gone, or part of \
                 it, and what was acknowledged since it was last saved may come again; a server with appendfsync \
                 always loses nothing at a start",
                self.server.name(),
                self.queue.name(),
            )));
        }
    }

    fn take(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        self.look_for_connection()?;
        if self.news.is_some() {
            return Ok(());
        }
        let State::Connected(there) = &mut self.state else { return Ok(()) };
        if is_cut::<Q>(&mut there.link) {
            self.reconnect(&ServerError::Closed);
            return Ok(());
        }
        let taken = self.queue.take(&mut there.link, limit, handler);
        if let Some(error) = taken.as_ref().err().filter(|e| !matches!(e, ServerError::Foreign)) {
            self.give_up(error, limit);
        }
        taken
    }

    /// Drops the connection after a request for up to `most` messages, and notes the loss that this error may mean.
    fn give_up(&mut self, error: &ServerError, most: usize) {
        let was_asked = matches!(&self.state, State::Connected(there) if there.link.sent() > 0);
        if Q::TAKES_AWAY && was_asked && error.is_silence() {
            let (server, queue) = (self.server.name(), self.queue.name());
            self.news = Some(ReceiveError::Gone(format!(
                "{server} {error}; up to {most} messages that it took out of the queue '{queue}' may be gone; use \
                 'at-least-once' where none may be"
            )));
        } else if is_of_no_queue(error) {
            self.queue.forget();
            self.news = Some(self.removed());
        }
        self.reconnect(error);
    }

    /// Returns the error for a queue that another client removed.
    fn removed(&self) -> ReceiveError {
        ReceiveError::Gone(format!(
            "{} has the queue '{}' no more, or another one of its name: somebody removed it, and what it held may be gone; \
             it is made anew",
            self.server.name(),
            self.queue.name(),
        ))
    }

    /// Runs `work` over the connection, and once more over a new one if the connection breaks.
    fn insist<T>(&mut self, work: impl Fn(&mut Q, &mut Link) -> Result<T, ServerError>) -> Result<T, ServerError> {
        match self.try_once(&work) {
            Err(e) if e.may_pass() => self.try_once(&work),
            known => known,
        }
    }

    fn try_once<T>(&mut self, work: impl Fn(&mut Q, &mut Link) -> Result<T, ServerError>) -> Result<T, ServerError> {
        if let State::Lost(reconnect) = &mut self.state {
            reconnect.wait(TIMEOUT);
        }
        self.look_for_connection()?;
        let State::Connected(there) = &mut self.state else { return Err(ServerError::Timeout) };
        let done = work(&mut self.queue, &mut there.link);
        if let Err(e) = &done
            && !matches!(e, ServerError::NotAcknowledged(_))
        {
            self.reconnect(e);
        }
        done
    }
}

impl<Q: Queue> Puller for RedisPuller<Q> {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        let mut handed_over = 0;
        let taken = self.take(limit.min(MOST_MESSAGES), &mut |pulled| {
            handed_over += 1;
            handler(pulled);
        });
        if let Some(news) = self.news.take_if(|_| handed_over == 0) {
            return Err(news);
        }
        match taken {
            // An error that does not pass by itself would recur on every connection, without a report.
            Err(e) if !e.may_pass() => {
                let error = self.server.receive_error(&e);
                if handed_over == 0 {
                    return Err(error);
                }
                self.news = Some(error);
                Ok(handed_over)
            }
            _ => Ok(handed_over),
        }
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        if !self.queue.is_holding() {
            return Ok(());
        }
        self.insist(Q::acknowledge).map_err(|e| match e {
            ServerError::NotAcknowledged(_) => ReceiveError::NotAcknowledged(format!("{} {e}", self.server.name())),
            // The messages are lost to this puller after the reconnect, or still its own: the next call acknowledges
            // them again.
            e if e.may_pass() => ReceiveError::NotAcknowledged(format!(
                "{} {e}; what was handed over is not acknowledged: acknowledge it again, or it comes again, marked",
                self.server.name()
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
        let server = self.server.name().to_owned();
        match self.insist(|queue, link| queue.give_back(link, tag)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ReceiveError::NotAcknowledged(format!(
                "{server} does not take the message {tag} back: it is acknowledged, or was given back, or this puller was \
                 silent for too long or lost it with a connection; then it comes again, marked, if it is still there"
            ))),
            Err(e) if e.may_pass() => Err(ReceiveError::NotAcknowledged(format!(
                "{server} {e}; nobody knows whether the message {tag} went back: give it back again"
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
            State::Lost(reconnect) => reconnect.wait(timeout),
            State::Connected(_) if timeout.is_zero() => {}
            State::Connected(there) => {
                if is_cut::<Q>(&mut there.link) {
                    return self.reconnect(&ServerError::Closed);
                }
                let timeout = timeout.clamp(SHORTEST_SLEEP, LONGEST_SLEEP);
                if let Err(error) = self.queue.sleep(&mut there.link, timeout) {
                    self.give_up(&error, 1);
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

impl<Q: Queue> Drop for RedisPuller<Q> {
    fn drop(&mut self) {
        if let State::Connected(there) = &mut self.state {
            // Messages that cannot be returned are redelivered once this puller has exceeded its silence limit.
            let _ = self.queue.leave(&mut there.link);
        }
    }
}

impl Attached {
    /// Returns the server and the client id, by which the next connection can end this one.
    fn name(&self) -> Option<(Run, i64)> {
        self.run.clone().zip(self.number)
    }

    /// Ends the previous connection, if the server allows it, so that requests in flight there are not executed after
    /// this connection has read the state of the queue.
    fn end(&mut self, last: Option<&(Run, i64)>) -> Result<(), ServerError> {
        let is_here = |run: &Run| self.run.as_ref().is_some_and(|now| now.is_same_process(run));
        let Some((_, number)) = last.filter(|(run, _)| is_here(run)) else { return Ok(()) };
        match self.link.ask(&["CLIENT", "KILL", "ID", &number.to_string()], |items| items.integer()) {
            Err(ServerError::Refused(_)) => Ok(()),
            ended => ended.map(|_count| ()),
        }
    }
}

/// Connects, and asks for the server's identity and the client id.
fn attach(server: &Server) -> Result<Attached, ServerError> {
    let mut link = Link::open_ready(server)?;
    let run = Run::ask(&mut link)?;
    let number = match link.ask(&["CLIENT", "ID"], |items| items.integer()) {
        Err(ServerError::Refused(_)) => None,
        told => Some(told?),
    };
    Ok(Attached { link, run, number })
}

/// Returns whether the error means that another client removed the queue.
fn is_of_no_queue(error: &ServerError) -> bool {
    match error {
        ServerError::NoQueue(_) => true,
        // Reply of servers before version 7.2 to a blocked client.
        ServerError::NotNow(line) => line.starts_with("UNBLOCKED the stream key no longer exists"),
        _ => false,
    }
}

/// Returns whether the server has closed the connection, where a request without an answer would look like a loss.
/// Checks twice, because the end may lie behind a discarded reply.
fn is_cut<Q: Queue>(link: &mut Link) -> bool {
    Q::TAKES_AWAY && (0..2).any(|_| link.is_closed())
}

/// Returns a name for a puller that no other puller has.
pub(crate) fn unique_id(clock: HostClock) -> String {
    format!("{:x}-{:x}-{:x}", utc_ns(), std::process::id(), clock.ticks())
}

/// Decodes a pulled message. Rejects one without our header, unless the queue has a kind for foreign messages.
pub(crate) fn message(bytes: &[u8], foreign: Option<u8>) -> Result<Message<'_>, ServerError> {
    wire::pulled(bytes, foreign).ok_or(ServerError::Foreign)
}

/// Formats a time for the server, in whole milliseconds and at least 1.
pub(crate) fn milliseconds(ns: u64) -> String {
    (ns / 1_000_000).max(1).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_was_removed_is_told_from_a_server_that_changed() {
        for (line, was_removed) in [
            ("NOGROUP No such key 'x' or consumer group 'tickpath' in XREADGROUP with GROUP option", true),
            ("UNBLOCKED the stream key no longer exists", true),
            ("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", false),
            ("READONLY You can't write against a read only replica.", false),
        ] {
            assert_eq!(is_of_no_queue(&ServerError::from_line(line.as_bytes())), was_removed, "{line}");
        }
    }
}
