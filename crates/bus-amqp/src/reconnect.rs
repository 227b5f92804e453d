//! Reconnects beside the polling thread, because connecting can take seconds and polling must not wait.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::time::Duration;

use tickpath_bus_api::{Outage, Pause};

use crate::error::ServerError;
use crate::incarnation::Memory;
use crate::intake::Intake;
use crate::place::Place;
use crate::server::Server;

/// The pause between two failed attempts.
pub(crate) const PAUSE: Pause = Pause::between(Duration::from_millis(100), Duration::from_secs(1));

/// A thread that tries until it has a connection with a consumer, or an error that does not pass by itself.
pub(crate) struct Reconnect {
    outcome: Receiver<Outcome>,
    ready: Option<Outcome>,
    /// The memory of the queue from before.
    memory: Memory,
    /// The reason for the end of the last connection, then for the last failed attempt, as a sentence.
    why: Outage,
    /// The thread's stop signal, sent by dropping it.
    _wanted: Sender<()>,
}

/// The outcome of a reconnect.
pub(crate) struct Outcome {
    /// The new connection.
    pub made: Result<Intake, ServerError>,
    /// The memory of the queue by now.
    pub memory: Memory,
}

/// The target of a reconnect.
pub(crate) struct Wanted {
    /// The server.
    pub server: Arc<Server>,
    /// The topic or queue.
    pub place: Place,
    /// The memory of the queue.
    pub memory: Memory,
}

impl Reconnect {
    /// Starts trying after a pause. The thread first closes the remains of the lost connection, which can take its
    /// time, too.
    pub fn start(what: Wanted, why: &ServerError, lost: Option<Intake>, pause: Duration) -> Self {
        let memory = what.memory.clone();
        let why = Outage::of(Some(what.server.sentence(why)));
        let known = why.clone();
        let (sender, outcome) = sync_channel(1);
        let (wanted, still_wanted) = channel();
        let thread = std::thread::Builder::new().name("amqp-reconnect".to_owned());
        let started = thread.spawn(move || {
            drop(lost);
            if is_still(&still_wanted, pause) {
                try_until_done(what, &known, &still_wanted, &sender);
            }
        });
        let failed = |e| Outcome { made: Err(ServerError::Here(e)), memory: memory.clone() };
        let ready = started.err().map(failed);
        Self { outcome, ready, memory, why, _wanted: wanted }
    }

    /// Returns why there is no connection now, in a sentence.
    pub fn why(&self) -> Option<String> {
        self.why.why()
    }

    /// Returns the outcome, if there is one.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.ready.take().or_else(|| match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(self.ended()),
        })
    }

    /// Sleeps until there is an outcome, or until the timeout.
    pub fn wait(&mut self, timeout: Duration) {
        if self.ready.is_none() {
            self.ready = match self.outcome.recv_timeout(timeout) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(self.ended()),
            };
        }
    }

    /// Returns the outcome of a thread that has panicked.
    fn ended(&self) -> Outcome {
        Outcome { made: Err(ServerError::Closed), memory: self.memory.clone() }
    }
}

fn try_until_done(what: Wanted, why: &Outage, still_wanted: &Receiver<()>, outcome: &SyncSender<Outcome>) {
    let Wanted { server, place, mut memory } = what;
    let mut pause = PAUSE;
    loop {
        match Intake::reopen(&server, &place, &mut memory) {
            Err(e) if e.may_pass() => why.say(server.sentence(&e)),
            made => {
                // The caller may have dropped the reconnect meanwhile.
                let _ = outcome.send(Outcome { made, memory });
                return;
            }
        }
        if !is_still(still_wanted, pause.grow()) {
            return;
        }
    }
}

/// Pauses, or returns early if the reconnect is dropped; true if it is still wanted. The channel never carries a value.
fn is_still(wanted: &Receiver<()>, pause: Duration) -> bool {
    wanted.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}
