//! Subscriber of one channel.

use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{
    ConnectError, Gap, MessageIdTracker, PublisherState, ReceiveError, ReconnectBackoff, Subscriber, SubscriptionEvent,
    wire,
};
use tickpath_clock::Wait;

use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::reconnect::{PAUSE, RedisConnectionState};
use crate::resp;
use crate::server::RedisEndpoint;

/// Subscription that outlives its connections.
pub(crate) struct RedisSubscriber {
    server: Arc<RedisEndpoint>,
    topic: String,
    wait: Wait,
    state: RedisConnectionState<RedisConnection>,
    tracker: MessageIdTracker,
    reconnects: u64,
    pauses: ReconnectBackoff,
}

impl RedisSubscriber {
    pub fn open(server: Arc<RedisEndpoint>, topic: &str, wait: Wait) -> Result<Self, ConnectError> {
        let link = subscribe(&server, topic).map_err(|e| server.error(&e))?;
        let (topic, tracker, pauses) =
            (topic.to_owned(), MessageIdTracker::default(), ReconnectBackoff::new(PAUSE, server.clock));
        Ok(Self { server, topic, wait, state: RedisConnectionState::Connected(link), tracker, reconnects: 0, pauses })
    }

    fn reconnect(&mut self, why: &RedisServerError) {
        let topic = self.topic.clone();
        let open = Box::new(move |server: &RedisEndpoint| subscribe(server, &topic));
        self.state.reconnect_after(self.pauses.next_backoff(), &self.server, Some(why), open);
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
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        let link = match &mut self.state {
            RedisConnectionState::Connected(link) => link,
            RedisConnectionState::Lost(_) => {
                if !self.is_reconnected()? {
                    return Ok(0);
                }
                self.tracker.gap_reported();
                handler(SubscriptionEvent::Gap(Gap::Reconnected));
                return Ok(1);
            }
        };
        let mut handed_over = 0;
        let silence = self.server.silence;
        let drained = drain(link, silence, &mut self.tracker, limit, &mut |event| {
            handed_over += 1;
            handler(event);
        });
        let Err(e) = drained else { return Ok(handed_over) };
        self.reconnect(&e);
        // An error that does not pass by itself would recur on every connection, without a report.
        if e.is_transient() || handed_over > 0 { Ok(handed_over) } else { Err(self.server.receive_error(&e)) }
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        let timeout = Duration::from_nanos(timeout_ns);
        let slept = match &mut self.state {
            RedisConnectionState::Lost(reconnect) => {
                reconnect.wait(timeout);
                Ok(())
            }
            RedisConnectionState::Connected(link) => sleep(link, timeout, self.server.silence),
        };
        match slept {
            Err(e) if e.is_transient() => self.reconnect(&e),
            // Any other error meets the next poll.
            _ => {}
        }
    }

    fn enable_bridge_mode(&mut self) {
        self.tracker.enable_bridge_mode();
    }

    fn publisher_state(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.tracker.duplicates())
    }

    fn out_of_order(&self) -> Option<u64> {
        Some(self.tracker.out_of_order())
    }

    fn outage(&self) -> Option<String> {
        self.state.outage()
    }
}

fn subscribe(server: &RedisEndpoint, channel: &str) -> ServerResult<RedisConnection> {
    let mut link = RedisConnection::open(server)?;
    link.subscribe(channel)?;
    Ok(link)
}

/// Hands over received messages. Reads at most `limit` replies, those that are no messages included.
fn drain(
    link: &mut RedisConnection,
    silence: Duration,
    tracker: &mut MessageIdTracker,
    limit: usize,
    handler: &mut dyn FnMut(SubscriptionEvent<'_>),
) -> ServerResult {
    for _ in 0..limit {
        let length = loop {
            if let Some(length) = link.length(1)? {
                break length;
            }
            if !link.receive()? {
                return link.check_alive(silence);
            }
        };
        let message = resp::message(link.reply(length));
        if message.is_none_or(|bytes| wire::deliver(tracker, None, bytes, handler)) {
            link.consume(length);
        }
    }
    Ok(())
}

/// Sleeps until bytes come, unless a complete reply is there already.
fn sleep(link: &mut RedisConnection, timeout: Duration, silence: Duration) -> ServerResult {
    if link.length(1)?.is_some() || timeout.is_zero() || link.receive_within(timeout.min(silence / 2))? {
        return Ok(());
    }
    link.check_alive(silence)
}
