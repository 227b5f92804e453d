//! Background reconnect of a lost connection: connecting can take seconds, and a poll must not wait.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tickpath_bus_api::{Backoff, Outage};

use crate::error::{RedisServerError, ServerResult};
use crate::server::RedisEndpoint;

/// Pause between failed attempts.
pub(crate) const PAUSE: Backoff = Backoff::between(Duration::from_millis(100), Duration::from_secs(1));

/// Function that opens a connection and restores its state.
pub(crate) type ReopenFn<T> = Box<dyn Fn(&RedisEndpoint) -> ServerResult<T> + Send>;

pub(crate) enum RedisConnectionState<T> {
    Connected(T),
    Lost(RedisReconnect<T>),
}

impl<T: Send + 'static> RedisConnectionState<T> {
    /// Drops the connection, and starts a thread that opens it again: at once, or, after a permanent failure, after a
    /// growing pause.
    pub fn reconnect(&mut self, server: &Arc<RedisEndpoint>, why: Option<&RedisServerError>, open: ReopenFn<T>) {
        let mut pause = PAUSE;
        if let Self::Lost(failed) = self {
            pause = failed.pause;
            pause.grow();
        }
        self.reconnect_after(pause, server, why, open);
    }

    /// Drops the connection, and starts a thread that opens it again after this pause.
    pub fn reconnect_after(
        &mut self,
        pause: Backoff,
        server: &Arc<RedisEndpoint>,
        why: Option<&RedisServerError>,
        open: ReopenFn<T>,
    ) {
        *self = Self::Lost(RedisReconnect::start(pause, server.clone(), why, open));
    }

    /// Returns a sentence on why there is no connection; none while there is one.
    pub fn outage(&self) -> Option<String> {
        match self {
            Self::Connected(_) => None,
            Self::Lost(reconnect) => reconnect.outage.reason(),
        }
    }

    /// Returns, once, the outcome of a reconnect when it has finished. Without an error the connection is restored.
    pub fn outcome(&mut self) -> Option<ServerResult> {
        let Self::Lost(reconnect) = self else { return None };
        match reconnect.outcome()? {
            Ok(connection) => {
                *self = Self::Connected(connection);
                Some(Ok(()))
            }
            Err(e) => Some(Err(e)),
        }
    }
}

/// Thread that tries until it has a connection, or an error that does not pass by itself.
pub(crate) struct RedisReconnect<T> {
    outcome: Receiver<ServerResult<T>>,
    ready: Option<ServerResult<T>>,
    pause: Backoff,
    /// Reason of the outage: the end of the last connection, then the failure of the last attempt.
    outage: Outage,
    /// Kept alive by the owner; the thread ends when it is dropped.
    _wanted: Arc<()>,
}

impl<T: Send + 'static> RedisReconnect<T> {
    fn start(pause: Backoff, server: Arc<RedisEndpoint>, why: Option<&RedisServerError>, open: ReopenFn<T>) -> Self {
        let why = Outage::begun(why.map(|e| server.describe_error(e)));
        let known = why.clone();
        let (sender, outcome) = sync_channel(1);
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let thread = std::thread::Builder::new().name("redis-reconnect".to_owned());
        let started = thread.spawn(move || {
            pause.sleep();
            retry_until_connected(&server, &open, &known, &still, &sender);
        });
        let ready = started.err().map(|e| Err(RedisServerError::ConnectionLost(e)));
        Self { outcome, ready, pause, outage: why, _wanted: wanted }
    }

    /// Sleeps until the reconnect has finished, or for `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        if self.ready.is_none() {
            self.ready = match self.outcome.recv_timeout(timeout) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Err(RedisServerError::Closed)),
            };
        }
    }

    fn outcome(&mut self) -> Option<ServerResult<T>> {
        self.ready.take().or_else(|| match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(RedisServerError::Closed)),
        })
    }
}

fn retry_until_connected<T>(
    server: &RedisEndpoint,
    open: &ReopenFn<T>,
    why: &Outage,
    still_wanted: &Weak<()>,
    outcome: &SyncSender<ServerResult<T>>,
) {
    let mut pause = PAUSE;
    while still_wanted.strong_count() > 0 {
        match open(server) {
            Err(e) if e.is_transient() => {
                why.begin(server.describe_error(&e));
                pause.grow();
                pause.sleep();
            }
            done => {
                // The owner may have been dropped meanwhile.
                let _ = outcome.send(done);
                return;
            }
        }
    }
}
