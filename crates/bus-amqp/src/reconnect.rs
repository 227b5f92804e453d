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
    /// The memory of the queue from before.
    last_queue: LastKnownQueue,
    /// The reason for the end of the last connection, then for the last failed attempt, as a sentence.
    outage: Outage,
    /// The thread's stop signal, sent by dropping it.
    _stop: Sender<()>,
}

/// The outcome of a reconnect.
pub(crate) struct AmqpReconnectOutcome {
    /// The new connection.
    pub connected: Result<AmqpConsumer, AmqpServerError>,
    /// The memory of the queue by now.
    pub last_queue: LastKnownQueue,
}

/// The target of a reconnect.
pub(crate) struct AmqpReconnectTarget {
    /// The server.
    pub server: Arc<AmqpServer>,
    /// The topic or queue.
    pub destination: AmqpDestination,
    /// The memory of the queue.
    pub last_queue: LastKnownQueue,
}

impl AmqpReconnect {
    /// Starts trying after a pause. The thread first closes the remains of the lost connection, which can take its
    /// time, too.
    pub fn start(
        what: AmqpReconnectTarget,
        why: &AmqpServerError,
        lost: Option<AmqpConsumer>,
        pause: Duration,
    ) -> Self {
        let memory = what.last_queue.clone();
        let why = Outage::begun(Some(what.server.sentence(why)));
        let known = why.clone();
        let (sender, outcome) = sync_channel(1);
        let (wanted, still_wanted) = channel();
        let thread = std::thread::Builder::new().name("amqp-reconnect".to_owned());
        let started = thread.spawn(move || {
            drop(lost);
            if is_still_wanted(&still_wanted, pause) {
                reconnect_until_done(what, &known, &still_wanted, &sender);
            }
        });
        let failed =
            |e| AmqpReconnectOutcome { connected: Err(AmqpServerError::LocalResource(e)), last_queue: memory.clone() };
        let ready = started.err().map(failed);
        Self { outcome, ready, last_queue: memory, outage: why, _stop: wanted }
    }

    /// Returns why there is no connection now, in a sentence.
    pub fn reason(&self) -> Option<String> {
        self.outage.reason()
    }

    /// Returns the outcome, if there is one.
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

    /// Returns the outcome of a thread that has panicked.
    fn panicked_outcome(&self) -> AmqpReconnectOutcome {
        AmqpReconnectOutcome { connected: Err(AmqpServerError::Closed), last_queue: self.last_queue.clone() }
    }
}

fn reconnect_until_done(
    what: AmqpReconnectTarget,
    why: &Outage,
    still_wanted: &Receiver<()>,
    outcome: &SyncSender<AmqpReconnectOutcome>,
) {
    let AmqpReconnectTarget { server, destination: place, last_queue: mut memory } = what;
    let mut pause = RECONNECT_BACKOFF;
    loop {
        match AmqpConsumer::reopen(&server, &place, &mut memory) {
            Err(e) if e.is_transient() => why.begin(server.sentence(&e)),
            made => {
                // The caller may have dropped the reconnect meanwhile.
                let _ = outcome.send(AmqpReconnectOutcome { connected: made, last_queue: memory });
                return;
            }
        }
        if !is_still_wanted(still_wanted, pause.grow()) {
            return;
        }
    }
}

/// Pauses, or returns early if the reconnect is dropped; true if it is still wanted. The channel never carries a value.
fn is_still_wanted(wanted: &Receiver<()>, pause: Duration) -> bool {
    wanted.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}
