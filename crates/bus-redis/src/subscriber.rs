//! Subscriber of one channel.

use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{
    ConnectError, Event, Gap, OriginTracker, Pauses, PublisherState, ReceiveError, Subscriber, wire,
};
use tickpath_clock::Wait;

use crate::error::ServerError;
use crate::link::Link;
use crate::reconnect::{PAUSE, State};
use crate::resp;
use crate::server::Server;

/// Subscription that outlives its connections.
pub(crate) struct RedisSubscriber {
    server: Arc<Server>,
    topic: String,
    wait: Wait,
    state: State<Link>,
    tracker: OriginTracker,
    reconnects: u64,
    pauses: Pauses,
}

impl RedisSubscriber {
    /// Connects and subscribes.
    pub fn open(server: Arc<Server>, topic: &str, wait: Wait) -> Result<Self, ConnectError> {
        let link = subscribe(&server, topic).map_err(|e| server.error(&e))?;
        let (topic, tracker, pauses) = (topic.to_owned(), OriginTracker::default(), Pauses::new(PAUSE, server.clock()));
        Ok(Self { server, topic, wait, state: State::Connected(link), tracker, reconnects: 0, pauses })
    }

    fn reconnect(&mut self, why: &ServerError) {
        let topic = self.topic.clone();
        let open = Box::new(move |server: &Server| subscribe(server, &topic));
        self.state.renew_after(self.pauses.next_pause(), &self.server, Some(why), open);
    }

    /// Returns true if the connection has been restored.
    #[cold]
    fn is_reconnected(&mut self) -> Result<bool, ReceiveError> {
        match self.state.outcome() {
            None => Ok(false),
            Some(Ok(())) => {
                self.reconnects += 1;
                Ok(true)
            }
            Some(Err(e)) => {
                self.reconnect(&e);
                Err(self.server.receive_error(&e))
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
                self.tracker.told();
                handler(Event::Gap(Gap::Reconnected));
                return Ok(1);
            }
        };
        let mut handed_over = 0;
        let silence = self.server.silence();
        let drained = drain(link, silence, &mut self.tracker, limit, &mut |event| {
            handed_over += 1;
            handler(event);
        });
        let Err(e) = drained else { return Ok(handed_over) };
        self.reconnect(&e);
        // An error that does not pass by itself would recur on every connection, without a report.
        if e.may_pass() || handed_over > 0 { Ok(handed_over) } else { Err(self.server.receive_error(&e)) }
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
            State::Connected(link) => sleep(link, timeout, self.server.silence()),
        };
        match slept {
            Err(e) if e.may_pass() => self.reconnect(&e),
            // Any other error meets the next poll.
            _ => {}
        }
    }

    fn carry_on(&mut self) {
        self.tracker.carry_on();
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.tracker.again())
    }

    fn late(&self) -> Option<u64> {
        Some(self.tracker.late())
    }

    fn outage(&self) -> Option<String> {
        self.state.outage()
    }
}

/// Opens a subscribed connection.
fn subscribe(server: &Server, channel: &str) -> Result<Link, ServerError> {
    let mut link = Link::open(server)?;
    link.subscribe(channel)?;
    Ok(link)
}

/// Hands over received messages. Reads at most `limit` replies, those that are no messages included.
fn drain(
    link: &mut Link,
    silence: Duration,
    tracker: &mut OriginTracker,
    limit: usize,
    handler: &mut dyn FnMut(Event<'_>),
) -> Result<(), ServerError> {
    for _ in 0..limit {
        let length = loop {
            if let Some(length) = link.length(1)? {
                break length;
            }
            if !link.receive()? {
                return link.prove(silence);
            }
        };
        let message = resp::message(link.reply(length));
        if message.is_none_or(|bytes| wire::hand_over(tracker, None, bytes, handler)) {
            link.consume(length);
        }
    }
    Ok(())
}

/// Sleeps until bytes come, unless a complete reply is there already.
fn sleep(link: &mut Link, timeout: Duration, silence: Duration) -> Result<(), ServerError> {
    if link.length(1)?.is_some() || timeout.is_zero() || link.receive_within(timeout.min(silence / 2))? {
        return Ok(());
    }
    link.prove(silence)
}
