//! Making a lost connection again, beside the subscriber: connecting can take seconds, and looking must not wait.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tickpath_clock::sleep_ns;

use crate::link::Link;
use crate::server::{Server, ServerError};

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE_NS: u64 = 100_000_000;

/// The longest pause.
const LAST_PAUSE_NS: u64 = 5_000_000_000;

/// A thread that tries until it has a subscribed connection, or an error that does not pass by itself.
#[derive(Debug)]
pub(crate) struct Reconnect {
    outcome: Receiver<Outcome>,
    ready: Option<Outcome>,
    /// The thread ends when this is gone.
    _wanted: Arc<()>,
}

type Outcome = Result<Link, ServerError>;

impl Reconnect {
    /// Starts trying.
    pub fn start(server: Arc<Server>, channel: String) -> Self {
        let (sender, outcome) = sync_channel(1);
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let thread = std::thread::Builder::new().name("redis-reconnect".to_owned());
        let started = thread.spawn(move || try_until_done(&server, &channel, &still, &sender));
        let ready = started.err().map(|e| Err(ServerError::Lost(e)));
        Self { outcome, ready, _wanted: wanted }
    }

    /// What came of it, if it is over.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.ready.take().or_else(|| match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(ServerError::Closed)),
        })
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
}

fn try_until_done(server: &Server, channel: &str, still_wanted: &Weak<()>, outcome: &SyncSender<Outcome>) {
    let mut pause_ns = FIRST_PAUSE_NS;
    while still_wanted.strong_count() > 0 {
        match subscribe(server, channel) {
            Err(e) if e.may_pass() => sleep_ns(pause_ns),
            done => {
                // Who wanted it may have gone meanwhile.
                let _ = outcome.send(done);
                return;
            }
        }
        pause_ns = (pause_ns * 2).min(LAST_PAUSE_NS);
    }
}

/// A connection that is subscribed.
pub(crate) fn subscribe(server: &Server, channel: &str) -> Outcome {
    let mut link = Link::open(server)?;
    link.subscribe(channel)?;
    Ok(link)
}
