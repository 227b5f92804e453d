//! Reconnects beside the polling thread, because connecting can take seconds and polling must not wait.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::time::Duration;

use tickpath_bus_api::{Backoff, Outage};

use crate::consumer::AmqpConsumer;
use crate::destination::AmqpDestination;
use crate::error::AmqpServerError;
use crate::incarnation::LastKnownQueue;
use crate::server::AmqpServer;

/// The pause between two failed attempts.
pub(crate) const RECONNECT_BACKOFF: Backoff = Backoff::between(Duration::from_millis(100), Duration::from_secs(1));

/// A thread that tries until it has a connection with a consumer, or an error that does not pass by itself.
pub(crate) struct AmqpReconnect {
    outcome: Receiver<AmqpReconnectOutcome>,
    ready: Option<AmqpReconnectOutcome>,
    last_queue: LastKnownQueue,
    /// The reason for the end of the last connection, then for the last failed attempt, as a sentence.
    outage: Outage,
    /// The thread's stop signal, sent by dropping it.
    _stop: Sender<()>,
}

pub(crate) struct AmqpReconnectOutcome {
    pub connected: Result<AmqpConsumer, AmqpServerError>,
    pub last_queue: LastKnownQueue,
}

pub(crate) struct AmqpReconnectTarget {
    pub server: Arc<AmqpServer>,
    pub destination: AmqpDestination,
    pub last_queue: LastKnownQueue,
}

impl AmqpReconnect {
    /// Starts trying after a pause. The thread first closes the lost connection, which can take its time, too.
    pub fn start(
        target: AmqpReconnectTarget,
        why: &AmqpServerError,
        lost: Option<AmqpConsumer>,
        pause: Duration,
    ) -> Self {
        let last_queue = target.last_queue.clone();
        let outage = Outage::begun(Some(target.server.sentence(why)));
        let shared_outage = outage.clone();
        let (sender, outcome) = sync_channel(1);
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("amqp-reconnect".to_owned());
        let started = thread.spawn(move || {
            drop(lost);
            if is_still_wanted(&stopped, pause) {
                reconnect_until_done(target, &shared_outage, &stopped, &sender);
            }
        });
        let failed = |e| Err(AmqpServerError::LocalResource(e));
        let ready =
            started.err().map(|e| AmqpReconnectOutcome { connected: failed(e), last_queue: last_queue.clone() });
        Self { outcome, ready, last_queue, outage, _stop: stop }
    }

    pub fn reason(&self) -> Option<String> {
        self.outage.reason()
    }

    pub fn outcome(&mut self) -> Option<AmqpReconnectOutcome> {
        self.ready.take().or_else(|| match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(self.panicked_outcome()),
        })
    }

    /// Sleeps until there is an outcome, or until the timeout.
    pub fn wait(&mut self, timeout: Duration) {
        if self.ready.is_none() {
            self.ready = match self.outcome.recv_timeout(timeout) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(self.panicked_outcome()),
            };
        }
    }

    fn panicked_outcome(&self) -> AmqpReconnectOutcome {
        AmqpReconnectOutcome { connected: Err(AmqpServerError::Closed), last_queue: self.last_queue.clone() }
    }
}

fn reconnect_until_done(
    target: AmqpReconnectTarget,
    outage: &Outage,
    stopped: &Receiver<()>,
    outcome: &SyncSender<AmqpReconnectOutcome>,
) {
    let AmqpReconnectTarget { server, destination, mut last_queue } = target;
    let mut pause = RECONNECT_BACKOFF;
    loop {
        match AmqpConsumer::reopen(&server, &destination, &mut last_queue) {
            Err(e) if e.is_transient() => outage.begin(server.sentence(&e)),
            connected => {
                // The caller may have dropped the reconnect meanwhile.
                let _ = outcome.send(AmqpReconnectOutcome { connected, last_queue });
                return;
            }
        }
        if !is_still_wanted(stopped, pause.grow()) {
            return;
        }
    }
}

/// Pauses, or returns early if the reconnect is dropped; true if it is still wanted. The channel never carries a value.
fn is_still_wanted(stopped: &Receiver<()>, pause: Duration) -> bool {
    stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}
