//! An admin's session with the OMS, on a thread of its own: it carries the admin's commands from the page, and the OMS
//! itself checks the rights.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tickpath_clock::{Clock, HostClock};
use tickpath_market::{CancelOrder, ClientOrderId, OrderDenied, OrderId, Request};
use tickpath_oms_client::{Client, ClientError, ClientEvent, Config};
use tickpath_oms_core::{CancelScope, Denial, KillSwitch, RecordKind};
use tickpath_oms_protocol::UserRole;
use zerocopy::IntoBytes;

/// Interval between two polls of a session in milliseconds, short enough for its heartbeats.
const POLL_MS: u64 = 50;
/// Max wait for the OMS's instruments, in milliseconds.
const INSTRUMENTS_MS: u32 = 5_000;
const COMMANDS: usize = 16;

pub(crate) struct AdminSession {
    commands: SyncSender<PageCommand>,
    /// The reason for the session's end, once it has ended.
    ended: Arc<Mutex<Option<String>>>,
    /// The reason for which the OMS denied the last command, if it did.
    denied: Arc<Mutex<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageCommand {
    /// Turns a switch of a target.
    Kill(KillSwitch, ScopeTarget),
    /// Cancels the working orders in the scope of a target.
    CancelScope(CancelScope, ScopeTarget),
    Cancel(OrderId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScopeTarget {
    /// An account or a session, or zero for the firm.
    Number(u32),
    /// An instrument by its name in the running OMS.
    Symbol(String),
}

pub(crate) enum AdminSessionError {
    InUse(String),
    Refused(String),
}

impl AdminSession {
    /// Logs in to the OMS; blocks until the OMS has answered.
    pub fn open(oms: &str, user: &str, password: &str) -> Result<Self, AdminSessionError> {
        let client = Client::connect(Config::new(oms, user, password)).map_err(|e| match e {
            ClientError::Refused { .. } if e.is_session_taken() => AdminSessionError::InUse(e.to_string()),
            e => AdminSessionError::Refused(e.to_string()),
        })?;
        if client.welcome().role != UserRole::Admin.code() {
            client.close();
            return Err(AdminSessionError::Refused(format!("'{user}' is no admin any more; log in again")));
        }
        let (commands, received) = sync_channel(COMMANDS);
        let ended = Arc::new(Mutex::new(None));
        let denied = Arc::default();
        let (end, refused) = (ended.clone(), Arc::clone(&denied));
        let session = move || {
            let why = run(client, &received, &refused);
            *lock(&end) = Some(why);
        };
        let thread = thread::Builder::new().name("oms-admin".to_owned()).spawn(session);
        thread.map_err(|e| AdminSessionError::Refused(format!("cannot start a thread: {e}")))?;
        Ok(Self { commands, ended, denied })
    }

    /// Sends a command; the error is a sentence.
    pub fn send(&self, command: PageCommand) -> Result<(), String> {
        self.commands.try_send(command).map_err(|_| {
            let why = lock(&self.ended).clone();
            why.unwrap_or_else(|| "the OMS takes no more commands now; try again".to_owned())
        })
    }

    /// Returns true once the OMS or the network has ended the session.
    pub fn is_over(&self) -> bool {
        lock(&self.ended).is_some()
    }

    /// Returns the reason for which the OMS denied the last command; empty if it did not.
    pub fn denied(&self) -> String {
        lock(&self.denied).clone()
    }
}

/// Keeps a session and sends its commands, until its login is over; returns the reason for its end.
fn run(mut client: Client, commands: &Receiver<PageCommand>, denied: &Mutex<String>) -> String {
    loop {
        match commands.recv_timeout(Duration::from_millis(POLL_MS)) {
            Ok(command) => {
                lock(denied).clear();
                match send(&mut client, command) {
                    Ok(None) => {}
                    Ok(Some(why)) => *lock(denied) = why,
                    Err(why) => return format!("{why}; log in and try again"),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                client.close();
                return "logged out".to_owned();
            }
        }
        let polled = client.poll(|event| match event {
            ClientEvent::Denied { denial, .. } => *lock(denied) = refusal(&denial),
            ClientEvent::CommandAnswered(Err(why)) => *lock(denied) = why,
            _ => {}
        });
        if let Err(e) = polled {
            return e.to_string();
        }
    }
}

/// Sends a command to the OMS. Returns the reason if the target is unknown; the error is that of a lost connection.
fn send(client: &mut Client, command: PageCommand) -> Result<Option<String>, String> {
    let target = match &command {
        PageCommand::Kill(_, target) | PageCommand::CancelScope(_, target) => number(client, target)?,
        PageCommand::Cancel(_) => Ok(0),
    };
    let target = match target {
        Ok(target) => target,
        Err(why) => return Ok(Some(why)),
    };
    let is_sent = match command {
        PageCommand::Kill(kill, _) => {
            client.admin_command(RecordKind::Kill.code(), KillSwitch { target, ..kill }.as_bytes()).is_ok()
        }
        PageCommand::CancelScope(cancel, _) => {
            client.admin_command(RecordKind::CancelScope.code(), CancelScope { target, ..cancel }.as_bytes()).is_ok()
        }
        PageCommand::Cancel(order_id) => {
            // Unique in the session, whichever client had the session before on this day.
            let id = HostClock::get().map_or(1, |clock| clock.calibration().utc_ns_of(clock.ticks()));
            let cancel = CancelOrder { client_order_id: ClientOrderId(id), order_id, ..CancelOrder::default() };
            client.send(&Request::Cancel(cancel)).is_ok()
        }
    };
    let lost = || "the connection to the OMS was lost before the command was sent".to_owned();
    is_sent.then_some(None).ok_or_else(lost)
}

/// Returns the number of a target: for an instrument the running OMS's number, or the reason for which there is none.
fn number(client: &mut Client, target: &ScopeTarget) -> Result<Result<u32, String>, String> {
    let name = match target {
        ScopeTarget::Number(number) => return Ok(Ok(*number)),
        ScopeTarget::Symbol(name) => name,
    };
    let rows = client.instruments(INSTRUMENTS_MS).map_err(|e| e.to_string())?.unwrap_or_default();
    let found = rows.iter().find(|row| row.name() == name);
    Ok(found.map(|row| row.symbol).ok_or_else(|| format!("'{name}' is no instrument of the OMS; write its name")))
}

fn refusal(denial: &OrderDenied) -> String {
    let why = Denial::from_code(denial.code).map_or_else(|| format!("code {}", denial.code), |why| why.to_string());
    format!("the OMS refuses to cancel: {why}")
}

/// Takes a lock, even after a panic: the data behind the locks here is consistent at every moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
