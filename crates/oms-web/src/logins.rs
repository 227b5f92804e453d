//! The logins of the page.
//!
//! Passwords are checked against the user's secret here, so a wrong password costs the OMS nothing. An admin's login
//! also has a session with the OMS; other users take none, because a session that ends may have its orders canceled.
//!
//! A login has two random secrets, each worthless without the other: a cookie that no script reads, but that goes to
//! every port of the host, and a token that the page keeps to itself and sends in a header.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_oms_protocol::{ClientLogon, Decoys, Secret, ServerLogon, UserRole};

use crate::admin::{AdminSession, AdminSessionError, PageCommand, lock};
use crate::rights::{PageUser, PageUserLookup, Rights};

/// Max logins of a user; a further login ends the one that was idle for longest.
const MAX_PER_USER: usize = 4;
const IDLE_NS: i64 = 15 * 60 * 1_000_000_000;
const SECRET_BYTES: usize = 32;
/// Max tries of an admin's logon while the session of the user's older login ends, and the pause between them.
const MAX_LOGON_TRIES: u32 = 50;
const LOGON_NS: u64 = 100_000_000;

pub(crate) struct Logins {
    /// The URL of the OMS, for admins' sessions.
    oms: String,
    users: Arc<dyn PageUserLookup>,
    clock: HostClock,
    /// Fake secrets for unknown users, so that a logon's time does not reveal which users exist.
    decoys: Mutex<Decoys>,
    list: Mutex<Vec<PageLogin>>,
}

struct PageLogin {
    cookie: String,
    token: String,
    user: String,
    /// The secret at the login's check: a user with another secret or role is another user.
    secret: Secret,
    role: UserRole,
    /// The time of its last request, in ticks.
    last_request: u64,
    admin: Option<AdminSession>,
}

#[derive(Debug)]
pub(crate) struct NewLogin {
    pub cookie: String,
    pub token: String,
    pub is_admin: bool,
}

#[derive(Debug)]
pub(crate) struct RequestLogin {
    pub user: String,
    pub rights: Rights,
    /// For an admin: the reason for which the OMS denied the last command, if it did.
    pub denied: Option<String>,
}

impl Logins {
    pub fn new(oms: &str, users: Arc<dyn PageUserLookup>, clock: HostClock) -> Self {
        let decoys = Mutex::new(Decoys::new(&users.secrets()));
        Self { oms: oms.to_owned(), users, clock, decoys, list: Mutex::default() }
    }

    /// Returns the user if the password is right. The check takes milliseconds, and as long for unknown users.
    pub fn check(&self, user: &str, password: &str) -> Option<PageUser> {
        let found = self.users.find(user);
        let decoy = {
            let mut decoys = lock(&self.decoys);
            decoys.update(&self.users.secrets());
            decoys.of(user)
        };
        let secret = found.as_ref().map_or(decoy, |found| found.secret.clone());
        // Outside the filter, which would skip the check for an unknown user.
        let is_right = is_password(user, password, secret);
        found.filter(|_| is_right)
    }

    /// Begins a login after a right password; for an admin it blocks until the OMS has answered.
    pub fn begin(&self, user: &str, password: &str, found: PageUser) -> Result<NewLogin, String> {
        let is_admin = found.role == UserRole::Admin;
        let admin = if is_admin { Some(self.open_session(user, password)?) } else { None };
        let (cookie, token) = (random_text()?, random_text()?);
        let login = PageLogin {
            cookie: cookie.clone(),
            token: token.clone(),
            user: user.to_owned(),
            secret: found.secret,
            role: found.role,
            last_request: self.clock.ticks(),
            admin,
        };
        let mut list = self.live_logins();
        if list.iter().filter(|login| login.user == user).count() >= MAX_PER_USER {
            end_oldest(&mut list, user);
        }
        list.push(login);
        Ok(NewLogin { cookie, token, is_admin })
    }

    /// Returns the login of a request that contains both secrets, if the user's secret and role are unchanged.
    pub fn find(&self, cookie: &str, token: &str) -> Option<RequestLogin> {
        let mut list = self.live_logins();
        let index = list.iter().position(|login| login.is_of(cookie, token))?;
        let login = &mut list[index];
        let found = self.users.find(&login.user);
        let Some(found) = found.filter(|found| found.secret == login.secret && found.role == login.role) else {
            list.remove(index);
            return None;
        };
        login.last_request = self.clock.ticks();
        let denied = login.admin.as_ref().map(AdminSession::denied);
        Some(RequestLogin { user: login.user.clone(), rights: found.rights, denied })
    }

    pub fn owners(&self) -> BTreeMap<u16, String> {
        self.users.owners()
    }

    /// Sends an admin command by the session of a login; the error is a sentence.
    pub fn command(&self, cookie: &str, token: &str, command: PageCommand) -> Result<(), String> {
        let list = lock(&self.list);
        let login = list.iter().find(|login| login.is_of(cookie, token)).ok_or("log in first")?;
        let admin = login.admin.as_ref().ok_or_else(|| format!("'{}' is no admin, and may only look", login.user))?;
        admin.send(command)
    }

    pub fn logout(&self, cookie: &str, token: &str) {
        lock(&self.list).retain(|login| !login.is_of(cookie, token));
    }

    /// Logs an admin in to the OMS. A page that was closed without logging out keeps its session for a while: if all of
    /// the user's sessions are in use, its oldest login here ends.
    fn open_session(&self, user: &str, password: &str) -> Result<AdminSession, String> {
        let mut has_made_room = false;
        for _ in 0..MAX_LOGON_TRIES {
            match AdminSession::open(&self.oms, user, password) {
                Ok(session) => return Ok(session),
                Err(AdminSessionError::Refused(why)) => return Err(why),
                Err(AdminSessionError::InUse(why)) => {
                    has_made_room = has_made_room || end_oldest(&mut self.live_logins(), user);
                    if !has_made_room {
                        return Err(why);
                    }
                    // The session of the ended login takes a moment to end.
                    sleep_ns(LOGON_NS);
                }
            }
        }
        Err("the session of an older login has not ended yet; try again".to_owned())
    }

    fn live_logins(&self) -> MutexGuard<'_, Vec<PageLogin>> {
        let mut list = lock(&self.list);
        let now = self.clock.ticks();
        let is_over = |login: &PageLogin| login.admin.as_ref().is_some_and(AdminSession::is_over);
        list.retain(|login| self.clock.ns_between(login.last_request, now) < IDLE_NS && !is_over(login));
        list
    }
}

impl PageLogin {
    fn is_of(&self, cookie: &str, token: &str) -> bool {
        is_same(&self.cookie, cookie) & is_same(&self.token, token)
    }
}

/// Ends the login of a user that was idle for longest; returns false if the user has none.
fn end_oldest(list: &mut Vec<PageLogin>, user: &str) -> bool {
    let logins = list.iter().enumerate().filter(|(_, login)| login.user == user);
    let oldest = logins.min_by_key(|(_, login)| login.last_request).map(|(index, _)| index);
    oldest.map(|index| list.remove(index)).is_some()
}

/// Checks a password against a secret by running both ends of a logon.
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

/// Compares in constant time, so that the time does not reveal how much is right.
fn is_same(known: &str, given: &str) -> bool {
    let differ = known.bytes().zip(given.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    known.len() == given.len() && std::hint::black_box(differ) == 0
}
