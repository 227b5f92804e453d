//! `users.toml`: who may log in, and with which rights.
//!
//! ```toml
//! [[user]]
//! name = "trader"
//! role = "trade"                  # read | trade | admin
//! accounts = ["1", "7*"]          # `*` stands for any digits, `?` for one
//! sessions = [0, 1]               # each session has one user
//! kinds = ["new", "cancel"]       # all kinds of request if not given
//! secret = "SCRAM-SHA-256$…"      # made by `tickpath oms user passwd`
//! ```

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;

use tickpath_market::AccountId;
use tickpath_oms::{AckLevel, Rate, SessionConfig, SessionLimits};
use tickpath_orders::{ALL_ACCOUNTS, AccountLimits, MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS};
use tickpath_session::{Role, Secret};
use tickpath_settings::{Section, SettingsError, parse, read_text};
use zeroize::Zeroizing;

use super::copies::{CopyFilter, CopyTakes};
use super::limits::{money_of, quantity_of, rate_of};
use super::pattern::AccountPattern;
use super::sessions::{LEVELS, MOST_SESSIONS, Sessions};

/// Characters of a user's name.
const MOST_NAME: usize = 64;

/// The words for roles.
pub const ROLES: &[(&str, Role)] = &[("read", Role::Read), ("trade", Role::Trade), ("admin", Role::Admin)];

/// All users of an OMS.
#[derive(Debug, Clone, Default)]
pub struct Users {
    /// In the file's order.
    pub list: Vec<User>,
}

/// Who may log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Unique.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The accounts that it may trade for, or see.
    pub accounts: Vec<AccountPattern>,
    /// Its sessions; nobody else has them.
    pub sessions: Vec<u16>,
    /// What its password is held against.
    pub secret: Secret,
    /// What each of its sessions may do at most.
    pub limits: SessionLimits,
    /// The kinds of request that its sessions may not make: the sum of [`MAY_NEW`] and its like.
    pub withheld: u8,
    /// True if it may not log in, and nothing is done in its name.
    pub disabled: bool,
    /// What must hold its requests, if it is not as for all.
    pub level: Option<AckLevel>,
    /// Whether its orders are canceled when a session is lost, if it is not as for all.
    pub cancel_on_disconnect: Option<bool>,
    /// What it hears of others' reports, if it is here for that and for nothing else.
    pub drop_copy: Option<CopyFilter>,
    /// Its requests a second, of each session, if it is not as for all; zero for as many as come.
    pub rate_per_second: Option<u32>,
}

impl Users {
    /// Reads the file.
    pub fn read(file: &Path) -> Result<Self, SettingsError> {
        // It has the secrets in it.
        Self::parse(&Zeroizing::new(read_text(file)?), file)
    }

    pub(super) fn parse(text: &str, file: &Path) -> Result<Self, SettingsError> {
        let (mut names, mut sessions) = (HashMap::new(), HashMap::new());
        let take = |user: &mut Section<'_>| take(user, &mut names, &mut sessions);
        Ok(parse(text, file, |top| Self { list: top.sections("user", take) })?)
    }

    /// The user of this name.
    pub fn find(&self, name: &str) -> Option<&User> {
        self.list.iter().find(|user| user.name == name)
    }

    /// The user who has this session.
    pub fn of_session(&self, session: u16) -> Option<&User> {
        self.list.iter().find(|user| user.sessions.contains(&session))
    }

    /// The sessions of all users with their rights: `all` says what holds where a user says nothing, `accounts` are
    /// those that are defined. Who only reads, and who is disabled, may trade for none.
    pub fn sessions(&self, all: &Sessions, accounts: &[AccountLimits]) -> Vec<SessionConfig> {
        let of_user = |user: &User| {
            let config = user.session(all, accounts);
            let each = |&session: &u16| SessionConfig { session, ..config.clone() };
            user.sessions.iter().map(each).collect::<Vec<_>>()
        };
        let mut sessions: Vec<SessionConfig> = self.list.iter().flat_map(of_user).collect();
        sessions.sort_by_key(|config| config.session);
        sessions
    }
}

impl User {
    /// Whether it may see what happens in the account. An admin sees all.
    pub fn sees(&self, account: AccountId) -> bool {
        self.role == Role::Admin || self.accounts.iter().any(|pattern| pattern.matches(account))
    }

    /// The rights of each of its sessions.
    fn session(&self, all: &Sessions, accounts: &[AccountLimits]) -> SessionConfig {
        let is_idle = self.disabled || self.role == Role::Read;
        let granted = match self.accounts.iter().any(AccountPattern::is_all) {
            _ if is_idle => Vec::new(),
            true => vec![ALL_ACCOUNTS],
            false => {
                let is_meant = |account: &AccountId| self.accounts.iter().any(|pattern| pattern.matches(*account));
                accounts.iter().map(|limits| limits.account).filter(is_meant).collect()
            }
        };
        SessionConfig {
            session: 0,
            level: self.level.unwrap_or(all.level),
            cancel_on_disconnect: self.cancel_on_disconnect.unwrap_or(all.cancel_on_disconnect),
            accounts: granted,
            withheld: self.withheld,
            limits: self.limits,
            rate: self.rate_per_second.map_or(all.rate, |rate| own_rate(rate, all.rate)),
        }
    }
}

impl CopyFilter {
    /// With the sessions that its users have now.
    pub fn with(&self, users: &Users) -> CopyTakes {
        let of = |name: &String| users.find(name).map(|user| user.sessions.clone()).unwrap_or_default();
        let sessions = (!self.users.is_empty()).then(|| self.users.iter().flat_map(of).collect());
        self.of_sessions(sessions)
    }
}

/// A user's own rate: no more at once than for all, nor than comes in a second.
fn own_rate(per_second: u32, all: Rate) -> Rate {
    let burst = if per_second == 0 { all.burst } else { all.burst.min(per_second) };
    Rate { per_second, burst }
}

fn take(user: &mut Section<'_>, names: &mut HashMap<String, usize>, sessions: &mut HashMap<u16, String>) -> User {
    user.need("name");
    let name = user.text("name");
    if let Some(name) = &name {
        if let Err(sentence) = check_name(name) {
            user.mistake("name", sentence);
        }
        if let Some(before) = names.insert(name.clone(), user.line("name")) {
            user.mistake("name", format!("'{name}' is in line {before} already; give each user its own"));
        }
    }
    let name = name.unwrap_or_default();
    user.need("sessions");
    let own: Option<Vec<u16>> = user.numbers("sessions", 0..=MOST_SESSIONS - 1);
    if own.as_ref().is_some_and(Vec::is_empty) {
        user.mistake("sessions", "a user needs one to log in; write numbers that nobody else has");
    }
    for session in own.iter().flatten() {
        if let Some(other) = sessions.insert(*session, name.clone()) {
            let whose = if other == name { "is written twice".to_owned() } else { format!("is {other}'s") };
            user.mistake("sessions", format!("session {session} {whose}; each has one user, and stands once"));
        }
    }
    user.need("accounts");
    let accounts: Vec<AccountPattern> = user.list("accounts").unwrap_or_default();
    let role = user.need_one_of("role", ROLES).unwrap_or_default();
    let mut taken = User {
        role,
        accounts,
        drop_copy: None,
        sessions: own.unwrap_or_default(),
        secret: user.need_parsed("secret").unwrap_or_else(|| Secret::decoy(b"", "")),
        withheld: user
            .list::<RequestKind>("kinds")
            .map_or(0, |kinds| kinds.iter().fold(ALL_KINDS, |left, kind| left & !kind.0)),
        limits: limits(user),
        disabled: user.flag("disabled").unwrap_or(false),
        level: user.one_of("level", LEVELS),
        cancel_on_disconnect: user.flag("cancel_on_disconnect"),
        rate_per_second: user.number("rate_per_second", 0..=u32::MAX),
        name,
    };
    taken.drop_copy = take_drop_copy(user, &taken);
    taken
}

/// What a user hears of others, if it is a drop copy.
fn take_drop_copy(user: &mut Section<'_>, taken: &User) -> Option<CopyFilter> {
    let is_one = user.flag("drop_copy").unwrap_or(false);
    let filter = CopyFilter::take(user, taken.accounts.clone(), "copy_users");
    if is_one && taken.role != Role::Read {
        user.mistake("drop_copy", "a drop copy only hears; set role = \"read\", and give who trades a user of its own");
    }
    for key in ["copy_users", "fills_only"] {
        if !is_one && user.has(key) {
            user.mistake(key, "only a drop copy has it; set drop_copy = true");
        }
    }
    is_one.then_some(filter)
}

/// What each of its sessions may do at most.
fn limits(user: &mut Section<'_>) -> SessionLimits {
    let (rate_limit, rate_window_ns) = rate_of(user);
    SessionLimits {
        max_order_quantity: quantity_of(user, "max_order_quantity"),
        max_notional: money_of(user, "max_notional"),
        rate_limit,
        rate_window_ns,
    }
}

/// The words for kinds of request.
const KINDS: [(&str, u8); 5] = [
    ("new", MAY_NEW),
    ("cancel", MAY_CANCEL),
    ("replace", MAY_REPLACE),
    ("mass_cancel", MAY_MASS_CANCEL),
    ("status", MAY_STATUS),
];
const ALL_KINDS: u8 = MAY_NEW | MAY_CANCEL | MAY_REPLACE | MAY_MASS_CANCEL | MAY_STATUS;

/// A kind of request, as a session's rights name it.
struct RequestKind(u8);

impl FromStr for RequestKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = KINDS.iter().find(|(name, _)| *name == word);
        known.map(|&(_, kind)| Self(kind)).ok_or_else(|| {
            let words = KINDS.map(|(name, _)| name).join(", ");
            format!("'{word}' is no kind of request; use some of {words}")
        })
    }
}

/// Says why a text is no user's name.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    match (1..=MOST_NAME).contains(&name.len()) && name.chars().all(is_good) {
        true => Ok(()),
        false => Err(format!("'{name}' is no user's name; use 1 to {MOST_NAME} letters, digits, '.', '_', '-' or '@'")),
    }
}
