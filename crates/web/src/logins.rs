//! The logins of the page.
//!
//! A password is held against the user's secret here, so a wrong one costs the OMS nothing. An admin's login has a session
//! with the OMS besides; other users take none, because a session that ends may have its orders canceled.
//!
//! A login is known by two random texts, and either alone is worth nothing: a cookie that no script reads, but that goes to
//! every port of the host, and a token that the page keeps to itself and sends in a header.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_session::{ClientLogon, Decoys, Role, Secret, ServerLogon};

use crate::admin::{AdminSession, Command, NoSession, locked};
use crate::rights::{PageUser, Rights, UserDirectory};

/// Logins of one user at once; the one that was silent for longest makes room.
const MOST_OF_USER: usize = 4;
/// After so long without a request a login is over.
const IDLE_NS: i64 = 15 * 60 * 1_000_000_000;
/// Bytes of a cookie and of a token.
const SECRET_BYTES: usize = 32;
/// How often an admin's logon is tried while the session of the user's older login ends, and the pause between.
const MOST_LOGONS: u32 = 50;
const LOGON_NS: u64 = 100_000_000;

/// The logins.
pub(crate) struct Logins {
    /// The URL of the OMS, for admins' sessions.
    oms: String,
    users: Arc<dyn UserDirectory>,
    clock: HostClock,
    /// Makes secrets of users who do not exist, so that a logon's time does not tell who does.
    decoys: Mutex<Decoys>,
    list: Mutex<Vec<Login>>,
}

struct Login {
    cookie: String,
    token: String,
    user: String,
    /// As the login was checked: a user with another secret or role is another one.
    secret: Secret,
    role: Role,
    /// When its last request came, in ticks.
    seen: u64,
    admin: Option<AdminSession>,
}

/// A new login, for its page.
#[derive(Debug)]
pub(crate) struct NewLogin {
    pub cookie: String,
    pub token: String,
    pub is_admin: bool,
}

/// A login that a request belongs to.
#[derive(Debug)]
pub(crate) struct Known {
    pub user: String,
    pub rights: Rights,
    /// Of an admin: the last command that the OMS has denied, and why.
    pub denied: Option<String>,
}

impl Logins {
    /// No logins yet.
    pub fn new(oms: &str, users: Arc<dyn UserDirectory>, clock: HostClock) -> Self {
        let decoys = Mutex::new(Decoys::new(&users.secrets()));
        Self { oms: oms.to_owned(), users, clock, decoys, list: Mutex::default() }
    }

    /// Returns the user if the password is right. It takes milliseconds, and as long for users who do not exist.
    pub fn check(&self, user: &str, password: &str) -> Option<PageUser> {
        let found = self.users.find(user);
        let decoy = {
            let mut decoys = locked(&self.decoys);
            decoys.follow(&self.users.secrets());
            decoys.of(user)
        };
        let secret = found.as_ref().map_or(decoy, |found| found.secret.clone());
        // Not within the filter, which would not ask for a user who does not exist.
        let is_right = is_password(user, password, secret);
        found.filter(|_| is_right)
    }

    /// Begins a login of a user whose password was right; for an admin this takes as long as the OMS does. The error is a
    /// sentence.
    pub fn begin(&self, user: &str, password: &str, found: PageUser) -> Result<NewLogin, String> {
        let is_admin = found.role == Role::Admin;
        let admin = if is_admin { Some(self.open_session(user, password)?) } else { None };
        let (cookie, token) = (random_text()?, random_text()?);
        let login = Login {
            cookie: cookie.clone(),
            token: token.clone(),
            user: user.to_owned(),
            secret: found.secret,
            role: found.role,
            seen: self.clock.ticks(),
            admin,
        };
        let mut list = self.living();
        if list.iter().filter(|login| login.user == user).count() >= MOST_OF_USER {
            forget_oldest(&mut list, user);
        }
        list.push(login);
        Ok(NewLogin { cookie, token, is_admin })
    }

    /// Returns whose login a request has, if it has brought both of its texts and the user still is what it was.
    pub fn find(&self, cookie: &str, token: &str) -> Option<Known> {
        let mut list = self.living();
        let place = list.iter().position(|login| login.is_of(cookie, token))?;
        let login = &mut list[place];
        let found = self.users.find(&login.user);
        let Some(found) = found.filter(|found| found.secret == login.secret && found.role == login.role) else {
            list.remove(place);
            return None;
        };
        login.seen = self.clock.ticks();
        let denied = login.admin.as_ref().map(AdminSession::denied);
        Some(Known { user: login.user.clone(), rights: found.rights, denied })
    }

    /// Returns the name of the user of each session.
    pub fn owners(&self) -> BTreeMap<u16, String> {
        self.users.owners()
    }

    /// Sends an admin command by the session of a login; the error is a sentence.
    pub fn command(&self, cookie: &str, token: &str, command: Command) -> Result<(), String> {
        let list = locked(&self.list);
        let login = list.iter().find(|login| login.is_of(cookie, token)).ok_or("log in first")?;
        let admin = login.admin.as_ref().ok_or_else(|| format!("'{}' is no admin, and may only look", login.user))?;
        admin.send(command)
    }

    /// Ends a login and its session.
    pub fn logout(&self, cookie: &str, token: &str) {
        locked(&self.list).retain(|login| !login.is_of(cookie, token));
    }

    /// Logs an admin in at the OMS. A page that was closed without logging out keeps a session for a while: where all of the
    /// user's are in use, its oldest login here ends.
    fn open_session(&self, user: &str, password: &str) -> Result<AdminSession, String> {
        let mut has_made_room = false;
        for _ in 0..MOST_LOGONS {
            match AdminSession::open(&self.oms, user, password) {
                Ok(session) => return Ok(session),
                Err(NoSession::Refused(why)) => return Err(why),
                Err(NoSession::InUse(why)) => {
                    has_made_room = has_made_room || forget_oldest(&mut self.living(), user);
                    if !has_made_room {
                        return Err(why);
                    }
                    // Its session takes a moment to end.
                    sleep_ns(LOGON_NS);
                }
            }
        }
        Err("the session of an older login has not ended yet; try again".to_owned())
    }

    /// The logins that are not over.
    fn living(&self) -> MutexGuard<'_, Vec<Login>> {
        let mut list = locked(&self.list);
        let now = self.clock.ticks();
        let is_over = |login: &Login| login.admin.as_ref().is_some_and(AdminSession::is_over);
        list.retain(|login| self.clock.ns_between(login.seen, now) < IDLE_NS && !is_over(login));
        list
    }
}

impl Login {
    fn is_of(&self, cookie: &str, token: &str) -> bool {
        is_same(&self.cookie, cookie) & is_same(&self.token, token)
    }
}

/// Ends the login of a user that was silent for longest; false if it has none.
fn forget_oldest(list: &mut Vec<Login>, user: &str) -> bool {
    let theirs = list.iter().enumerate().filter(|(_, login)| login.user == user);
    let oldest = theirs.min_by_key(|(_, login)| login.seen).map(|(place, _)| place);
    oldest.map(|place| list.remove(place)).is_some()
}

/// Holds a password against a secret: both ends of a logon in one place.
fn is_password(user: &str, password: &str, secret: Secret) -> bool {
    let Ok((mut client, first)) = ClientLogon::new(user, password, None) else { return false };
    let Ok((server, challenge)) = ServerLogon::begin(&first, None, |_| secret) else { return false };
    client.answer(&challenge).is_ok_and(|proof| server.verify(&proof).is_ok())
}

fn random_text() -> Result<String, String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|e| format!("the system gives no random bytes: {e}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares without telling by its time how much is right.
fn is_same(known: &str, given: &str) -> bool {
    let differ = known.bytes().zip(given.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    known.len() == given.len() && std::hint::black_box(differ) == 0
}
