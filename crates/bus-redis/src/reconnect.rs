//! Making a lost connection again, beside who receives: connecting can take seconds, and looking must not wait.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tickpath_bus_api::{Outage, Pause};

use crate::error::ServerError;
use crate::server::Server;

/// Between two attempts that fail.
pub(crate) const PAUSE: Pause = Pause::between(Duration::from_millis(100), Duration::from_secs(1));

/// How a connection is made and brought to where it was.
pub(crate) type Open<T> = Box<dyn Fn(&Server) -> Result<T, ServerError> + Send>;

/// A connection that outlives its losses.
pub(crate) enum State<T> {
    Connected(T),
    Lost(Reconnect<T>),
}

impl<T: Send + 'static> State<T> {
    /// Gives the connection up, and lets a thread make it again: at once, or, where that has failed for good before, after a
    /// pause that grows.
    pub fn renew(&mut self, server: &Arc<Server>, why: Option<&ServerError>, open: Open<T>) {
        let mut pause = PAUSE;
        if let Self::Lost(failed) = self {
            pause = failed.pause;
            pause.grow();
        }
        self.renew_after(pause, server, why, open);
    }

    /// The same after this pause.
    pub fn renew_after(&mut self, pause: Pause, server: &Arc<Server>, why: Option<&ServerError>, open: Open<T>) {
        *self = Self::Lost(Reconnect::start(pause, server.clone(), why, open));
    }

    /// Why there is no connection now, in a sentence.
    pub fn outage(&self) -> Option<String> {
        match self {
            Self::Connected(_) => None,
            Self::Lost(reconnect) => reconnect.why.why(),
        }
    }

    /// What came of a lost connection, at the one moment when it is known. Without an error it is there again.
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

/// A thread that tries until it has a connection, or an error that does not pass by itself.
pub(crate) struct Reconnect<T> {
    outcome: Receiver<Outcome<T>>,
    ready: Option<Outcome<T>>,
    /// How long it waited before it tried.
    pause: Pause,
    /// Why there is no connection: what ended the last one, then why the last attempt failed.
    why: Outage,
    /// The thread ends when this is gone.
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

    /// Sleeps until it is over, or for so long.
    pub fn wait(&mut self, timeout: Duration) {
        if self.ready.is_none() {
            self.ready = match self.outcome.recv_timeout(timeout) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Err(ServerError::Closed)),
            };
        }
    }

    /// What came of it, if it is over.
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
                // Who wanted it may have gone meanwhile.
                let _ = outcome.send(done);
                return;
            }
        }
    }
}
