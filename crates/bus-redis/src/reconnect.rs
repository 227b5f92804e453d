//! Background reconnect of a lost connection: connecting can take seconds, and a poll must not wait.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tickpath_bus_api::{Outage, Pause};

use crate::error::ServerError;
use crate::server::Server;

/// Pause between failed attempts.
pub(crate) const PAUSE: Pause = Pause::between(Duration::from_millis(100), Duration::from_secs(1));

/// Function that opens a connection and restores its state.
pub(crate) type Open<T> = Box<dyn Fn(&Server) -> Result<T, ServerError> + Send>;

/// Connection that outlives its losses.
pub(crate) enum State<T> {
    Connected(T),
    Lost(Reconnect<T>),
}

impl<T: Send + 'static> State<T> {
    /// Drops the connection, and starts a thread that opens it again: at once, or, after a permanent failure, after a
    /// growing pause.
    pub fn renew(&mut self, server: &Arc<Server>, why: Option<&ServerError>, open: Open<T>) {
        let mut pause = PAUSE;
        if let Self::Lost(failed) = self {
            pause = failed.pause;
            pause.grow();
        }
        self.renew_after(pause, server, why, open);
    }

    /// Drops the connection, and starts a thread that opens it again after this pause.
    pub fn renew_after(&mut self, pause: Pause, server: &Arc<Server>, why: Option<&ServerError>, open: Open<T>) {
        *self = Self::Lost(Reconnect::start(pause, server.clone(), why, open));
    }

    /// Returns a sentence on why there is no connection; none while there is one.
    pub fn outage(&self) -> Option<String> {
        match self {
            Self::Connected(_) => None,
            Self::Lost(reconnect) => reconnect.why.why(),
        }
    }

    /// Returns, once, the outcome of a reconnect when it has finished. Without an error the connection is restored.
    pub fn outcome(&mut self) -> Option<Result<(), ServerError>> {
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
pub(crate) struct Reconnect<T> {
    outcome: Receiver<Outcome<T>>,
    ready: Option<Outcome<T>>,
    /// Pause before the first attempt.
    pause: Pause,
    /// Reason of the outage: the end of the last connection, then the failure of the last attempt.
    why: Outage,
    /// Kept alive by the owner; the thread ends when it is dropped.
    _wanted: Arc<()>,
}

type Outcome<T> = Result<T, ServerError>;

impl<T: Send + 'static> Reconnect<T> {
    fn start(pause: Pause, server: Arc<Server>, why: Option<&ServerError>, open: Open<T>) -> Self {
        let why = Outage::of(why.map(|e| server.sentence(e)));
        let known = why.clone();
        let (sender, outcome) = sync_channel(1);
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let thread = std::thread::Builder::new().name("redis-reconnect".to_owned());
        let started = thread.spawn(move || {
            pause.sleep();
            try_until_done(&server, &open, &known, &still, &sender);
        });
        let ready = started.err().map(|e| Err(ServerError::Lost(e)));
        Self { outcome, ready, pause, why, _wanted: wanted }
    }

    /// Sleeps until the reconnect has finished, or for `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        if self.ready.is_none() {
            self.ready = match self.outcome.recv_timeout(timeout) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Err(ServerError::Closed)),
            };
        }
    }

    /// Returns the outcome, if the reconnect has finished.
    fn outcome(&mut self) -> Option<Outcome<T>> {
        self.ready.take().or_else(|| match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(ServerError::Closed)),
        })
    }
}

fn try_until_done<T>(
    server: &Server,
    open: &Open<T>,
    why: &Outage,
    still_wanted: &Weak<()>,
    outcome: &SyncSender<Outcome<T>>,
) {
    let mut pause = PAUSE;
    while still_wanted.strong_count() > 0 {
        match open(server) {
            Err(e) if e.may_pass() => {
                why.say(server.sentence(&e));
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
