//! Reconnects on a thread of its own, because connecting and hashing take time and polling must not.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tickpath_clock::{Priority, set_priority, sleep_ns};

use crate::ClientError;
use crate::connection::OmsConnection;
use crate::logon::{Connector, LogonRequest};

/// Pause after the first failure; each further failure doubles it.
const FIRST_PAUSE_NS: u64 = 10_000_000;
const LAST_PAUSE_NS: u64 = 1_000_000_000;
/// Max failures that wait to be reported; further ones are dropped.
const MAX_UNREPORTED: usize = 8;

#[derive(Debug)]
pub(crate) enum ReconnectOutcome {
    Connected(Box<OmsConnection>),
    /// The attempt failed, and the thread tries again.
    Failed(ClientError),
    /// The attempt failed for good.
    Ended(ClientError),
}

/// A thread that retries until it has a connection, or a permanent error.
#[derive(Debug)]
pub(crate) struct ReconnectThread {
    outcome: Receiver<ReconnectOutcome>,
    ready: Option<ReconnectOutcome>,
    /// The thread ends when this handle is dropped.
    _wanted: Arc<()>,
}

impl ReconnectThread {
    /// Starts the thread; its first attempt follows a pause.
    pub fn start(connector: &Arc<Connector>, request: LogonRequest, pause_ns: u64) -> Self {
        let (sender, outcome) = sync_channel(MAX_UNREPORTED);
        let wanted = Arc::new(());
        let (connector, still_wanted) = (connector.clone(), Arc::downgrade(&wanted));
        let thread = std::thread::Builder::new().name("oms-reconnect".to_owned());
        let started = thread.spawn(move || try_until_done(&connector, request, pause_ns, &still_wanted, &sender));
        let ready = started.err().map(|e| ReconnectOutcome::Ended(ClientError::lost(e)));
        Self { outcome, ready, _wanted: wanted }
    }

    pub fn poll_outcome(&mut self) -> Option<ReconnectOutcome> {
        self.ready.take().or_else(|| self.receive())
    }

    /// Returns the new connection that was not taken yet, to be kept alive; it replaces a failure not yet reported.
    pub fn connection_mut(&mut self) -> Option<&mut OmsConnection> {
        while !matches!(self.ready, Some(ReconnectOutcome::Connected(_) | ReconnectOutcome::Ended(_))) {
            self.ready = Some(self.receive()?);
        }
        match &mut self.ready {
            Some(ReconnectOutcome::Connected(connection)) => Some(&mut **connection),
            _ => None,
        }
    }

    fn receive(&self) -> Option<ReconnectOutcome> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(thread_died()),
        }
    }

    /// Sleeps until there is a new result, or until the timeout.
    pub fn wait(&mut self, timeout: Duration) {
        if self.ready.is_none() {
            self.ready = match self.outcome.recv_timeout(timeout) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(thread_died()),
            };
        }
    }
}

/// Returns the pause after a failure, given the pause before it.
pub(crate) fn next_pause(pause_ns: u64) -> u64 {
    (pause_ns * 2).clamp(FIRST_PAUSE_NS, LAST_PAUSE_NS)
}

fn try_until_done(
    connector: &Connector,
    request: LogonRequest,
    pause_ns: u64,
    wanted: &Weak<()>,
    outcome: &SyncSender<ReconnectOutcome>,
) {
    // At its parent's priority, this thread could be starved by a spinning thread that waits for it.
    let _ = set_priority(Priority::Normal);
    let (mut pause_ns, mut reported) = (pause_ns, String::new());
    while wanted.strong_count() > 0 {
        sleep_ns(pause_ns);
        pause_ns = next_pause(pause_ns);
        // The client may have been dropped meanwhile, and its session taken by another client.
        if wanted.strong_count() == 0 {
            return;
        }
        match connector.log_on(request) {
            Ok(logon) => {
                let connection = Box::new(OmsConnection::new(connector.clock, logon));
                drop(outcome.send(ReconnectOutcome::Connected(connection)));
            }
            Err(why) if why.is_final() => drop(outcome.send(ReconnectOutcome::Ended(why))),
            Err(why) => {
                if why.to_string() != reported {
                    reported = why.to_string();
                    let _ = outcome.try_send(ReconnectOutcome::Failed(why));
                }
                continue;
            }
        }
        return;
    }
}

fn thread_died() -> ReconnectOutcome {
    ReconnectOutcome::Ended(ClientError::Protocol("cannot be reconnected to: the reconnect thread has died"))
}
