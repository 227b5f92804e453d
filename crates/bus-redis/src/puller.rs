//! Pulls from one queue, whatever the queue is made of.

use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{ConnectError, Pulled, Puller, ReceiveError, wire};
use tickpath_clock::{Clock, HostClock, Wait, utc_ns};

use crate::error::ServerError;
use crate::info::Run;
use crate::link::Link;
use crate::reconnect::State;
use crate::server::{Server, TIMEOUT};

/// The most messages that are asked for at once.
const MOST_MESSAGES: usize = 1024;

/// The most bytes that are asked for at once, unless one message has more.
pub const MAX_PULLED_BYTES: usize = 8 << 20;

/// A puller that sleeps asks anew after so long: what another one gave back wakes nobody.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);

/// The shortest sleep that the server can be asked for; it takes 0 for no end.
pub(crate) const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// A queue on the server, as one puller uses it.
pub(crate) trait Queue: Send {
    /// What it is called.
    fn name(&self) -> &str;

    /// Brings a new connection to where this puller is, at the start and after each loss.
    fn resume(&mut self, link: &mut Link) -> Result<(), ServerError>;

    /// Takes up to `limit` messages that are there, and hands them over.
    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError>;

    /// Sleeps until there is a message, which is kept for the next [`Self::take`], or for so long. The server looks at
    /// its own clock ten times a second, so that it may be a tenth longer.
    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError>;

    /// True if something was handed over that is not acknowledged, or was given to others before it was.
    fn is_holding(&self) -> bool;

    /// Tells the server that what was handed over is done with.
    fn acknowledge(&mut self, link: &mut Link) -> Result<(), ServerError>;

    /// Gives back what is not done with.
    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError>;
}

/// A puller, which outlives its connections.
pub(crate) struct RedisPuller<Q: Queue> {
    server: Arc<Server>,
    queue: Q,
    wait: Wait,
    state: State<Attached>,
    /// The server, as it was last.
    run: Option<Run>,
    /// What is to be told once.
    news: Option<ReceiveError>,
    reconnects: u64,
}

/// A connection, and the server that it is to.
struct Attached {
    link: Link,
    run: Option<Run>,
}

impl<Q: Queue> RedisPuller<Q> {
    /// Connects.
    pub fn open(server: Arc<Server>, mut queue: Q, wait: Wait) -> Result<Self, ConnectError> {
        let resumed = attach(&server).and_then(|mut there| queue.resume(&mut there.link).map(|()| there));
        let there = resumed.map_err(|e| server.error(&e))?;
        let run = there.run.clone();
        Ok(Self { server, queue, wait, state: State::Connected(there), run, news: None, reconnects: 0 })
    }

    fn reconnect(&mut self) {
        self.state.renew(&self.server, Box::new(attach));
    }

    /// Goes on with a connection that was made again. Fails if it cannot be, or if it does not last.
    fn look_for_connection(&mut self) -> Result<(), ServerError> {
        let Some(outcome) = self.state.outcome() else { return Ok(()) };
        let resumed = match &mut self.state {
            State::Connected(there) => outcome.and_then(|()| self.queue.resume(&mut there.link)),
            State::Lost(_) => outcome,
        };
        match resumed {
            Ok(()) => {
                self.reconnects += 1;
                self.compare();
            }
            Err(_) => self.reconnect(),
        }
        resumed
    }

    /// Looks whether the server still has all that it had.
    fn compare(&mut self) {
        let State::Connected(there) = &self.state else { return };
        if !Run::has_kept_all(self.run.as_ref(), there.run.as_ref()) {
            self.news = Some(ReceiveError::Gone(format!(
                "{} was started again, or another server has taken over: what the queue '{}' held may be gone, or part of \
                 it; a server with appendfsync always loses nothing at a start",
                self.server.name(),
                self.queue.name(),
            )));
        }
        self.run.clone_from(&there.run);
    }

    fn take(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        self.look_for_connection()?;
        if self.news.is_some() {
            return Ok(());
        }
        let State::Connected(there) = &mut self.state else { return Ok(()) };
        let taken = self.queue.take(&mut there.link, limit, handler);
        if taken.as_ref().is_err_and(|e| !matches!(e, ServerError::Foreign)) {
            self.reconnect();
        }
        taken
    }

    fn try_to_acknowledge(&mut self) -> Result<(), ServerError> {
        if let State::Lost(reconnect) = &mut self.state {
            reconnect.wait(TIMEOUT);
        }
        self.look_for_connection()?;
        let State::Connected(there) = &mut self.state else { return Err(ServerError::Timeout) };
        let acknowledged = self.queue.acknowledge(&mut there.link);
        if acknowledged.as_ref().is_err_and(|e| !matches!(e, ServerError::NotAcknowledged(_))) {
            self.reconnect();
        }
        acknowledged
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
            // What does not pass by itself would come again and again, and nobody would know.
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
        let acknowledged = match self.try_to_acknowledge() {
            Err(e) if e.may_pass() => self.try_to_acknowledge(),
            known => known,
        };
        acknowledged.map_err(|e| match e {
            ServerError::NotAcknowledged(_) => ReceiveError::NotAcknowledged(format!("{} {e}", self.server.name())),
            // They are this puller's no more when it is back, or still are: the next call says it again.
            e if e.may_pass() => ReceiveError::NotAcknowledged(format!(
                "{} {e}; what was handed over is not acknowledged: acknowledge it again, or it comes again, marked",
                self.server.name()
            )),
            e => self.server.receive_error(&e),
        })
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        let timeout = Duration::from_nanos(timeout_ns);
        let slept = match &mut self.state {
            State::Lost(reconnect) => {
                reconnect.wait(timeout);
                Ok(())
            }
            State::Connected(_) if timeout.is_zero() => Ok(()),
            State::Connected(there) => self.queue.sleep(&mut there.link, timeout.clamp(SHORTEST_SLEEP, LONGEST_SLEEP)),
        };
        if slept.is_err() {
            self.reconnect();
        }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl<Q: Queue> Drop for RedisPuller<Q> {
    fn drop(&mut self) {
        if let State::Connected(there) = &mut self.state {
            // What cannot be given back any more comes again when this puller has been silent for long enough.
            let _ = self.queue.leave(&mut there.link);
        }
    }
}

/// Connects, and asks who is there.
fn attach(server: &Server) -> Result<Attached, ServerError> {
    let mut link = Link::open_ready(server)?;
    let run = Run::ask(&mut link)?;
    Ok(Attached { link, run })
}

/// A name for a puller that no other one has.
pub(crate) fn unique_id(clock: HostClock) -> String {
    format!("{:x}-{:x}-{:x}", utc_ns(), std::process::id(), clock.ticks())
}

/// Hands a message over. What has no header of ours is refused, unless it was asked for by a kind.
pub(crate) fn hand_over(
    bytes: &[u8],
    redelivered: bool,
    foreign: Option<u8>,
    handler: &mut dyn FnMut(Pulled<'_>),
) -> Result<(), ServerError> {
    let message = wire::pulled(bytes, foreign).ok_or(ServerError::Foreign)?;
    handler(Pulled::plain(message, redelivered));
    Ok(())
}

/// A time as the server wants it, in whole milliseconds, of which it takes no fewer than one.
pub(crate) fn milliseconds(ns: u64) -> String {
    (ns / 1_000_000).max(1).to_string()
}
