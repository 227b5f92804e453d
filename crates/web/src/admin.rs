//! Who has logged in on the page: each is a session with the OMS, which checks the password and the rights itself.
//!
//! A login is known by a cookie that no script reads, and by a token that a request must bring beside it; both are random.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tickpath_client::{Client, Config, Event};
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{CancelOrder, ClientOrderId, OrderDenied, OrderId, Request};
use tickpath_orders::{CancelScope, Denial, Kill, RecordKind};
use tickpath_session::Role;
use zerocopy::IntoBytes;

/// Logins at once.
const MOST: usize = 16;
/// After so long without a request a login is over.
const IDLE_NS: i64 = 15 * 60 * 1_000_000_000;
/// Between two polls of a session, in milliseconds: its heartbeats go out in time.
const POLL_MS: u64 = 50;
/// Words that wait for their session.
const WORDS: usize = 16;
/// Bytes of a cookie and of a token.
const SECRET_BYTES: usize = 32;

/// The logins.
pub(crate) struct Admins {
    /// The URL of the OMS.
    oms: String,
    list: Mutex<Vec<Login>>,
}

struct Login {
    cookie: String,
    token: String,
    user: String,
    /// When it was last heard of, in ticks.
    seen: u64,
    words: SyncSender<Word>,
    /// Why its session has ended, once it has.
    ended: Arc<Mutex<Option<String>>>,
    /// The last of its words that the OMS has denied, and why.
    denied: Arc<Mutex<String>>,
}

/// What an admin may say on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// Turns a switch.
    Kill(Kill),
    /// Cancels what works in a scope.
    CancelScope(CancelScope),
    /// Cancels an order of any session.
    Cancel(OrderId),
}

/// A login that was found.
pub(crate) struct Known {
    pub user: String,
    pub token: String,
    pub denied: String,
}

impl Admins {
    pub fn new(oms: &str) -> Self {
        Self { oms: oms.to_owned(), list: Mutex::default() }
    }

    /// Logs in; this takes as long as the OMS does. Gives the cookie, or a sentence that says why not.
    pub fn login(&self, user: &str, password: &str) -> Result<String, String> {
        let clock = HostClock::get().map_err(|e| e.to_string())?;
        if self.living(&clock).len() >= MOST {
            return Err(format!("{MOST} are logged in already; one must log out"));
        }
        let client = Client::connect(Config::new(&self.oms, user, password)).map_err(|e| e.to_string())?;
        if client.welcome().role != Role::Admin.code() {
            client.close();
            return Err(format!("'{user}' is no admin, and sees as much without a login"));
        }
        let (words, heard) = sync_channel(WORDS);
        let ended = Arc::new(Mutex::new(None));
        let denied = Arc::default();
        let (told, refused) = (ended.clone(), Arc::clone(&denied));
        let session = move || {
            let why = be_session(client, &heard, &refused);
            *locked(&told) = Some(why);
        };
        let thread = thread::Builder::new().name("oms-admin".to_owned()).spawn(session);
        thread.map_err(|e| format!("cannot start a thread: {e}"))?;
        let (cookie, token) = (secret()?, secret()?);
        let (seen, user) = (clock.ticks(), user.to_owned());
        let login = Login { cookie: cookie.clone(), token, user, seen, words, ended, denied };
        self.living(&clock).push(login);
        Ok(cookie)
    }

    /// Whose cookie this is.
    pub fn find(&self, cookie: &str) -> Option<Known> {
        let clock = HostClock::get().ok()?;
        let mut list = self.living(&clock);
        let login = list.iter_mut().find(|login| is_same(&login.cookie, cookie))?;
        login.seen = clock.ticks();
        let denied = locked(&login.denied).clone();
        Some(Known { user: login.user.clone(), token: login.token.clone(), denied })
    }

    /// Says a word in the name of a login.
    pub fn say(&self, cookie: &str, word: Word) -> Result<(), String> {
        let list = locked(&self.list);
        let login = list.iter().find(|login| is_same(&login.cookie, cookie)).ok_or("log in first")?;
        match login.words.try_send(word) {
            Ok(()) => Ok(()),
            Err(_) => {
                let why = locked(&login.ended).clone();
                Err(why.unwrap_or_else(|| "the OMS takes no more words now; try again".to_owned()))
            }
        }
    }

    /// Ends a login and its session.
    pub fn logout(&self, cookie: &str) {
        locked(&self.list).retain(|login| !is_same(&login.cookie, cookie));
    }

    /// The logins that are not over.
    fn living(&self, clock: &HostClock) -> std::sync::MutexGuard<'_, Vec<Login>> {
        let mut list = locked(&self.list);
        let now = clock.ticks();
        list.retain(|login| clock.ns_between(login.seen, now) < IDLE_NS && locked(&login.ended).is_none());
        list
    }
}

/// Keeps a session and says what it is given, until its login is over; says why it has ended.
fn be_session(mut client: Client, words: &Receiver<Word>, denied: &Mutex<String>) -> String {
    loop {
        match words.recv_timeout(Duration::from_millis(POLL_MS)) {
            Ok(word) => {
                locked(denied).clear();
                if !say(&mut client, word) {
                    return "the connection to the OMS is lost, and the word may not have been heard; log in again"
                        .to_owned();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                client.close();
                return "logged out".to_owned();
            }
        }
        let polled = client.poll(|event| match event {
            Event::Denied { denial, .. } => *locked(denied) = refusal(&denial),
            Event::WordAnswered(Err(why)) => *locked(denied) = why,
            _ => {}
        });
        if let Err(e) = polled {
            return e.to_string();
        }
    }
}

/// Says a word to the OMS; false if it is not there.
fn say(client: &mut Client, word: Word) -> bool {
    match word {
        Word::Kill(kill) => client.word(RecordKind::Kill.code(), kill.as_bytes()).is_ok(),
        Word::CancelScope(cancel) => client.word(RecordKind::CancelScope.code(), cancel.as_bytes()).is_ok(),
        Word::Cancel(order_id) => {
            // Unique in the session, whoever had it before on this day.
            let id = HostClock::get().map_or(1, |clock| clock.calibration().utc_ns_of(clock.ticks()));
            let cancel = CancelOrder { client_order_id: ClientOrderId(id), order_id, ..CancelOrder::default() };
            client.send(&Request::Cancel(cancel)).is_ok()
        }
    }
}

fn refusal(denial: &OrderDenied) -> String {
    let why = Denial::from_code(denial.code).map_or_else(|| format!("code {}", denial.code), |why| why.to_string());
    format!("the OMS refuses to cancel: {why}")
}

fn secret() -> Result<String, String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|e| format!("the system gives no random bytes: {e}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares without telling by its time how much is right.
pub(crate) fn is_same(known: &str, given: &str) -> bool {
    let differ = known.bytes().zip(given.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    known.len() == given.len() && std::hint::black_box(differ) == 0
}

/// What is behind a lock here is whole at every moment, whoever panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
