//! Receives one channel.

use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{ConnectError, Event, Gap, PublisherState, ReceiveError, Subscriber};
use tickpath_clock::Wait;

use crate::link::Link;
use crate::reconnect::{Reconnect, subscribe};
use crate::server::{Server, ServerError};
use crate::wire;

/// A subscription, which outlives its connections.
pub(crate) struct RedisSubscriber {
    server: Arc<Server>,
    topic: String,
    wait: Wait,
    state: State,
}

enum State {
    Connected(Link),
    Lost(Reconnect),
}

impl RedisSubscriber {
    /// Connects and subscribes.
    pub fn open(server: Arc<Server>, topic: &str, wait: Wait) -> Result<Self, ConnectError> {
        let link = subscribe(&server, topic).map_err(|e| server.error(&e))?;
        Ok(Self { server, topic: topic.to_owned(), wait, state: State::Connected(link) })
    }

    fn reconnect(&mut self) {
        self.state = State::Lost(Reconnect::start(self.server.clone(), self.topic.clone()));
    }

    /// True if the connection is there again by now.
    #[cold]
    fn is_reconnected(&mut self) -> Result<bool, ReceiveError> {
        let State::Lost(reconnect) = &mut self.state else { return Ok(true) };
        match reconnect.outcome() {
            None => Ok(false),
            Some(Ok(link)) => {
                self.state = State::Connected(link);
                Ok(true)
            }
            Some(Err(e)) => {
                self.reconnect();
                Err(ReceiveError::Other(format!("{} {e}", self.server.name()).into()))
            }
        }
    }
}

impl Subscriber for RedisSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        let link = match &mut self.state {
            State::Connected(link) => link,
            State::Lost(_) => {
                if !self.is_reconnected()? {
                    return Ok(0);
                }
                handler(Event::Gap(Gap::Reconnected));
                return Ok(1);
            }
        };
        let mut handed_over = 0;
        let drained = drain(link, limit, &mut |event| {
            handed_over += 1;
            handler(event);
        });
        if drained.is_err() {
            self.reconnect();
        }
        Ok(handed_over)
    }

    fn wait(&mut self, timeout_ns: u64) {
        if self.wait != Wait::Block {
            return self.wait.idle();
        }
        let timeout = Duration::from_nanos(timeout_ns);
        let lost = match &mut self.state {
            State::Lost(reconnect) => {
                reconnect.wait(timeout);
                false
            }
            State::Connected(link) => sleep(link, timeout).is_err(),
        };
        if lost {
            self.reconnect();
        }
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }
}

/// Hands over what has come. Looks at no more than `limit` replies, also where they are none of ours.
fn drain(link: &mut Link, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<(), ServerError> {
    for _ in 0..limit {
        while link.reply()?.is_none() {
            if !link.receive()? {
                return Ok(());
            }
        }
        let Some((reply, length)) = link.reply()? else { return Ok(()) };
        if let Some(message) = reply.message().and_then(wire::decode) {
            handler(Event::Message(message));
        }
        link.consume(length);
    }
    Ok(())
}

/// Sleeps until bytes come, unless a whole reply is here already.
fn sleep(link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
    if link.reply()?.is_none() && !timeout.is_zero() {
        link.receive_within(timeout)?;
    }
    Ok(())
}
