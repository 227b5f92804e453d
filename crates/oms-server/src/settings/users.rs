//! `users.toml`: the users who may log in, and their rights.
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
use tickpath_oms_core::{ALL_ACCOUNTS, AccountLimits, MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS};
use tickpath_oms_protocol::{Secret, UserRole};
use tickpath_oms_runtime::{AckLevel, RequestRate, SessionConfig, SessionLimits};
use tickpath_settings::{Section, SettingsError, parse, read_text};
use zeroize::Zeroizing;

use super::copy_filter::{CopyFilter, ResolvedCopyFilter};
use super::limits::{money_of, quantity_of, rate_of};
use super::pattern::AccountPattern;
use super::sessions::{LEVELS, MAX_SESSIONS, SessionDefaults};

const MAX_NAME_CHARS: usize = 64;

/// Names of the roles.
pub const ROLES: &[(&str, UserRole)] =
    &[("read", UserRole::Read), ("trade", UserRole::Trade), ("admin", UserRole::Admin)];

/// All users of an OMS.
#[derive(Debug, Clone, Default)]
pub struct Users {
    /// Users in the order of the file.
    pub list: Vec<OmsUser>,
}

/// User who may log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmsUser {
    /// Name, unique.
    pub name: String,
    /// Role of the user.
    pub role: UserRole,
    /// Accounts that the user may trade for, or see.
    pub accounts: Vec<AccountPattern>,
    /// Sessions of this user alone.
    pub sessions: Vec<u16>,
    /// Secret that proofs of the password are verified with.
    pub secret: Secret,
    /// Limits of each session.
    pub limits: SessionLimits,
    /// Kinds of request that its sessions may not send: the sum of [`MAY_NEW`] and its like.
    pub withheld: u8,
    /// The user may not log in, and nothing is done in its name.
    pub disabled: bool,
    /// Durability level of its requests; none for the default.
    pub level: Option<AckLevel>,
    /// Whether its orders are canceled when a session is lost; none for the default.
    pub cancel_on_disconnect: Option<bool>,
    /// Filter of its drop copy, for a user that has one and nothing else.
    pub drop_copy: Option<CopyFilter>,
    /// Max requests a second of each session, zero for no limit; none for the default.
    pub rate_per_second: Option<u32>,
}

impl Users {
    /// Reads the file.
    pub fn read(file: &Path) -> Result<Self, SettingsError> {
        // The text holds the secrets.
        Self::parse(&Zeroizing::new(read_text(file)?), file)
    }

    pub(super) fn parse(text: &str, file: &Path) -> Result<Self, SettingsError> {
        let (mut names, mut sessions) = (HashMap::new(), HashMap::new());
        let take = |user: &mut Section<'_>| read_user(user, &mut names, &mut sessions);
        Ok(parse(text, file, |top| Self { list: top.sections("user", take) })?)
    }

    /// Returns the user of this name.
    pub fn find(&self, name: &str) -> Option<&OmsUser> {
        self.list.iter().find(|user| user.name == name)
    }

    /// Returns the user who has this session.
    pub fn by_session(&self, session: u16) -> Option<&OmsUser> {
        self.list.iter().find(|user| user.sessions.contains(&session))
    }

    /// Returns the sessions of all users with their rights: `all` holds the defaults, `accounts` the accounts that are
    /// defined. A user that only reads, or is disabled, may trade for none.
    pub fn sessions(&self, all: &SessionDefaults, accounts: &[AccountLimits]) -> Vec<SessionConfig> {
        let of_user = |user: &OmsUser| {
            let config = user.session(all, accounts);
            let each = |&session: &u16| SessionConfig { session, ..config.clone() };
            user.sessions.iter().map(each).collect::<Vec<_>>()
        };
        let mut sessions: Vec<SessionConfig> = self.list.iter().flat_map(of_user).collect();
        sessions.sort_by_key(|config| config.session);
        sessions
    }
}

impl OmsUser {
    /// Returns whether the user may see what happens in the account. An admin sees all.
    pub fn may_see(&self, account: AccountId) -> bool {
        self.role == UserRole::Admin || self.accounts.iter().any(|pattern| pattern.matches(account))
    }

    fn session(&self, all: &SessionDefaults, accounts: &[AccountLimits]) -> SessionConfig {
        let is_idle = self.disabled || self.role == UserRole::Read;
        let granted = match self.accounts.iter().any(AccountPattern::is_all) {
            _ if is_idle => Vec::new(),
            true => vec![ALL_ACCOUNTS],
            false => {
                let is_granted = |account: &AccountId| self.accounts.iter().any(|pattern| pattern.matches(*account));
                accounts.iter().map(|limits| limits.account).filter(is_granted).collect()
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
    /// Resolves the filter's users to the sessions that they have now.
    pub fn with(&self, users: &Users) -> ResolvedCopyFilter {
        let of = |name: &String| users.find(name).map(|user| user.sessions.clone()).unwrap_or_default();
        let sessions = (!self.users.is_empty()).then(|| self.users.iter().flat_map(of).collect());
        self.resolve(sessions)
    }
}

/// Returns a user's own rate, with a burst of at most the default and at most one second's requests.
fn own_rate(per_second: u32, all: RequestRate) -> RequestRate {
    let burst = if per_second == 0 { all.burst } else { all.burst.min(per_second) };
    RequestRate { per_second, burst }
}

fn read_user(
    user: &mut Section<'_>,
    names: &mut HashMap<String, usize>,
    sessions: &mut HashMap<u16, String>,
) -> OmsUser {
    user.require("name");
    let name = user.text("name");
    if let Some(name) = &name {
        if let Err(sentence) = check_name(name) {
            user.add_mistake("name", sentence);
        }
        if let Some(before) = names.insert(name.clone(), user.line("name")) {
            user.add_mistake("name", format!("'{name}' is in line {before} already; give each user its own"));
        }
    }
    let name = name.unwrap_or_default();
    user.require("sessions");
    let own: Option<Vec<u16>> = user.numbers("sessions", 0..=MAX_SESSIONS - 1);
    if own.as_ref().is_some_and(Vec::is_empty) {
        user.add_mistake("sessions", "a user needs a session to log in; write numbers that no other user has");
    }
    for session in own.iter().flatten() {
        if let Some(other) = sessions.insert(*session, name.clone()) {
            let whose = if other == name { "is written twice".to_owned() } else { format!("is {other}'s") };
            user.add_mistake("sessions", format!("session {session} {whose}; each has one user, and is listed once"));
        }
    }
    user.require("accounts");
    let accounts: Vec<AccountPattern> = user.list("accounts").unwrap_or_default();
    let role = user.require_one_of("role", ROLES).unwrap_or_default();
    let mut read = OmsUser {
        role,
        accounts,
        drop_copy: None,
        sessions: own.unwrap_or_default(),
        secret: user.require_parsed("secret").unwrap_or_else(|| Secret::decoy(b"", "")),
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
    read.drop_copy = read_drop_copy(user, &read);
    read
}

fn read_drop_copy(user: &mut Section<'_>, read: &OmsUser) -> Option<CopyFilter> {
    let is_one = user.flag("drop_copy").unwrap_or(false);
    let filter = CopyFilter::from_section(user, read.accounts.clone(), "copy_users");
    if is_one && read.role != UserRole::Read {
        user.add_mistake("drop_copy", "a drop copy sends no requests; set role = \"read\", and trade as another user");
    }
    for key in ["copy_users", "fills_only"] {
        if !is_one && user.has(key) {
            user.add_mistake(key, "only a drop copy has it; set drop_copy = true");
        }
    }
    is_one.then_some(filter)
}

fn limits(user: &mut Section<'_>) -> SessionLimits {
    let (rate_limit, rate_window_ns) = rate_of(user);
    SessionLimits {
        max_order_quantity: quantity_of(user, "max_order_quantity"),
        max_notional: money_of(user, "max_notional"),
        rate_limit,
        rate_window_ns,
    }
}

const KINDS: [(&str, u8); 5] = [
    ("new", MAY_NEW),
    ("cancel", MAY_CANCEL),
    ("replace", MAY_REPLACE),
    ("mass_cancel", MAY_MASS_CANCEL),
    ("status", MAY_STATUS),
];
const ALL_KINDS: u8 = MAY_NEW | MAY_CANCEL | MAY_REPLACE | MAY_MASS_CANCEL | MAY_STATUS;

/// Kind of request, as its bit in a session's rights.
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

/// Checks a user's name; the error is a sentence.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_good) {
        return Ok(());
    }
    Err(format!("'{name}' is no user's name; use 1 to {MAX_NAME_CHARS} letters, digits, '.', '_', '-' or '@'"))
}
