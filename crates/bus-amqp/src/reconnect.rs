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

/// The pause that follows another one, which is none at first.
pub(crate) fn longer(pause: Duration) -> Duration {
    (pause * 2).clamp(FIRST_PAUSE, LAST_PAUSE)
}

impl Reconnect {
    /// Starts trying, after a pause. Closing what is left of the lost connection can take its time, too, and comes first.
    pub fn start(server: Arc<Server>, place: Place, lost: Option<Intake>, pause: Duration) -> Self {
        let (sender, outcome) = sync_channel(1);
        let (wanted, still_wanted) = channel();
        let thread = std::thread::Builder::new().name("amqp-reconnect".to_owned());
        let started = thread.spawn(move || {
            drop(lost);
            if is_still(&still_wanted, pause) {
                try_until_done(&server, &place, &still_wanted, &sender);
            }
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
        if !is_still(still_wanted, pause) {
            return;
        }
        pause = longer(pause);
    }
}

/// Pauses, unless nobody wants it any more: whether somebody still does. Nothing is ever sent.
fn is_still(wanted: &Receiver<()>, pause: Duration) -> bool {
    wanted.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let pauses: Vec<u128> = std::iter::successors(Some(Duration::ZERO), |&pause| Some(longer(pause)))
            .map(|pause| pause.as_millis())
            .take(7)
            .collect();
        assert_eq!(pauses, [0, 100, 200, 400, 800, 1000, 1000]);
    }
}
