//! Making a lost connection again, beside the thread that polls: connecting can take seconds, polling must not wait.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::time::Duration;

use tickpath_bus_api::{Outage, Pause};

use crate::error::ServerError;
use crate::incarnation::Memory;
use crate::intake::Intake;
use crate::place::Place;
use crate::server::Server;

/// Between two attempts that fail.
pub(crate) const PAUSE: Pause = Pause::between(Duration::from_millis(100), Duration::from_secs(1));

/// A thread that tries until it has a connection with a consumer, or an error that does not pass by itself.
pub(crate) struct Reconnect {
    outcome: Receiver<Outcome>,
    ready: Option<Outcome>,
    /// What was known before.
    memory: Memory,
    /// Why the last connection ended, then why the last attempt failed: a sentence.
    why: Outage,
    /// The thread ends when this is gone.
    _wanted: Sender<()>,
}

/// What came of trying.
pub(crate) struct Outcome {
    /// The new connection.
    pub made: Result<Intake, ServerError>,
    /// What is known of the queue now.
    pub memory: Memory,
}

/// What to make, and for whom.
pub(crate) struct Wanted {
    /// Where.
    pub server: Arc<Server>,
    /// What is received from.
    pub place: Place,
    /// What is known of the queue.
    pub memory: Memory,
}

impl Reconnect {
    /// Starts trying, after a pause. Closing what is left of the lost connection can take its time, too, and comes
    /// first.
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

    /// Why there is no connection now, in a sentence.
    pub fn why(&self) -> Option<String> {
        self.why.why()
    }

    /// What came of it, if it is over.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.ready.take().or_else(|| match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(self.ended()),
        })
    }

    /// Sleeps until it is over, or for so long.
    pub fn wait(&mut self, timeout: Duration) {
        if self.ready.is_none() {
            self.ready = match self.outcome.recv_timeout(timeout) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(self.ended()),
            };
        }
    }

    /// Its thread has panicked.
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
                // Who wanted it may have gone meanwhile.
                let _ = outcome.send(Outcome { made, memory });
                return;
            }
        }
        if !is_still(still_wanted, pause.grow()) {
            return;
        }
    }
}

/// Pauses, unless nobody wants it any more: whether somebody still does. Nothing is ever sent.
fn is_still(wanted: &Receiver<()>, pause: Duration) -> bool {
    wanted.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}
