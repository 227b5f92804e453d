//! Making a lost connection again, beside who polls: connecting and hashing take time, and polling must not.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tickpath_clock::{Priority, set_priority, sleep_ns};

use crate::ClientError;
use crate::line::Line;
use crate::logon::{Asked, Entry};

/// The pause behind the first failure; each further one doubles it.
const FIRST_PAUSE_NS: u64 = 10_000_000;
/// The longest pause.
const LAST_PAUSE_NS: u64 = 1_000_000_000;
/// Failures that wait to be told; more of them are not kept.
const MOST_UNTOLD: usize = 8;

/// What came of an attempt.
#[derive(Debug)]
pub(crate) enum Outcome {
    Arrived(Box<Line>),
    /// It goes on.
    Failed(ClientError),
    /// It does not.
    Ended(ClientError),
}

/// A thread that tries until it has a connection, or an error that does not pass by itself.
#[derive(Debug)]
pub(crate) struct Reconnect {
    outcome: Receiver<Outcome>,
    ready: Option<Outcome>,
    /// The thread ends when this is gone.
    _wanted: Arc<()>,
}

impl Reconnect {
    /// Begins, after a pause.
    pub fn start(entry: &Arc<Entry>, asked: Asked, pause_ns: u64) -> Self {
        let (sender, outcome) = sync_channel(MOST_UNTOLD);
        let wanted = Arc::new(());
        let (entry, still) = (entry.clone(), Arc::downgrade(&wanted));
        let thread = std::thread::Builder::new().name("oms-reconnect".to_owned());
        let started = thread.spawn(move || try_until_done(&entry, asked, pause_ns, &still, &sender));
        let ready = started.err().map(|e| Outcome::Ended(ClientError::lost(e)));
        Self { outcome, ready, _wanted: wanted }
    }

    /// What came of it, if something is new.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.ready.take().or_else(|| match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(died()),
        })
    }

    /// Returns the connection that was made and is not taken yet: it must be kept alive, too. A failure that was not
    /// told gives way to what came behind it.
    pub fn arrived(&mut self) -> Option<&mut Line> {
        while !matches!(self.ready, Some(Outcome::Arrived(_) | Outcome::Ended(_))) {
            match self.outcome.try_recv() {
                Ok(outcome) => self.ready = Some(outcome),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => self.ready = Some(died()),
            }
        }
        match &mut self.ready {
            Some(Outcome::Arrived(line)) => Some(&mut **line),
            _ => None,
        }
    }

    /// Sleeps until there is something new, or for so long.
    pub fn wait(&mut self, timeout: Duration) {
        if self.ready.is_none() {
            self.ready = match self.outcome.recv_timeout(timeout) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(died()),
            };
        }
    }
}

/// The pause behind a failure that came after a pause.
pub(crate) fn longer(pause_ns: u64) -> u64 {
    (pause_ns * 2).clamp(FIRST_PAUSE_NS, LAST_PAUSE_NS)
}

fn try_until_done(entry: &Entry, asked: Asked, pause_ns: u64, wanted: &Weak<()>, outcome: &SyncSender<Outcome>) {
    // A thread that spins at a priority and waits for this one would keep it from running.
    let _ = set_priority(Priority::Normal);
    let (mut pause_ns, mut told) = (pause_ns, String::new());
    while wanted.strong_count() > 0 {
        sleep_ns(pause_ns);
        pause_ns = longer(pause_ns);
        // Who wanted it may have gone meanwhile, and its session be another client's.
        if wanted.strong_count() == 0 {
            return;
        }
        match entry.come(asked) {
            Ok(arrived) => drop(outcome.send(Outcome::Arrived(Box::new(Line::new(entry.clock, arrived))))),
            Err(why) if why.is_final() => drop(outcome.send(Outcome::Ended(why))),
            Err(why) => {
                if why.to_string() != told {
                    told = why.to_string();
                    let _ = outcome.try_send(Outcome::Failed(why));
                }
                continue;
            }
        }
        return;
    }
}

fn died() -> Outcome {
    Outcome::Ended(ClientError::Protocol("could not be called again, for the thread that does it died"))
}
