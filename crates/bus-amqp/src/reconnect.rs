//! Making a lost connection again, beside the thread that polls: connecting can take seconds, polling must not wait.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::time::Duration;

use crate::error::ServerError;
use crate::intake::Intake;
use crate::place::Place;
use crate::server::Server;

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// A thread that tries until it has a connection with a consumer, or an error that does not pass by itself.
pub(crate) struct Reconnect {
    outcome: Receiver<Outcome>,
    ready: Option<Outcome>,
    /// The thread ends when this is gone.
    _wanted: Sender<()>,
}

type Outcome = Result<Intake, ServerError>;

impl Reconnect {
    /// Starts trying. Closing what is left of the lost connection can take its time, too, and comes first.
    pub fn start(server: Arc<Server>, place: Place, lost: Option<Intake>) -> Self {
        let (sender, outcome) = sync_channel(1);
        let (wanted, still_wanted) = channel();
        let thread = std::thread::Builder::new().name("amqp-reconnect".to_owned());
        let started = thread.spawn(move || {
            drop(lost);
            try_until_done(&server, &place, &still_wanted, &sender);
        });
        let ready = started.err().map(|e| Err(ServerError::Here(e)));
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

fn try_until_done(server: &Server, place: &Place, still_wanted: &Receiver<()>, outcome: &SyncSender<Outcome>) {
    let (mut pause, mut is_gone) = (FIRST_PAUSE, false);
    loop {
        match Intake::reopen(server, place, &mut is_gone) {
            Err(e) if e.may_pass() => {}
            done => {
                // Who wanted it may have gone meanwhile.
                let _ = outcome.send(done);
                return;
            }
        }
        // Nothing is ever sent: the pause is over, or nobody wants it any more.
        if still_wanted.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        pause = (pause * 2).min(LAST_PAUSE);
    }
}
