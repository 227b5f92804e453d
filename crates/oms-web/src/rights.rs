//! Users of the page, and the accounts and sessions that each may see.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tickpath_market::AccountId;
use tickpath_oms_protocol::{Secret, UserRole};

/// The users of an OMS, looked up for each request: a removed, disabled or changed user loses the page at once.
pub trait PageUserLookup: Send + Sync {
    /// Returns the user of this name, if it may log in now.
    fn find(&self, name: &str) -> Option<PageUser>;

    /// Returns the secrets of all users: fake secrets of unknown users imitate them.
    fn secrets(&self) -> Vec<Secret>;

    /// Returns the name of the user of each session.
    fn owners(&self) -> BTreeMap<u16, String>;
}

/// The user data that the page needs.
#[derive(Debug, Clone)]
pub struct PageUser {
    /// The secret that checks the user's password.
    pub secret: Secret,
    /// The user's role: an admin gets a session with the OMS at its login, other users only view.
    pub role: UserRole,
    /// The accounts and sessions that the user may see.
    pub rights: Rights,
}

/// The accounts and sessions that a user may see.
#[derive(Clone)]
pub struct Rights(Option<LimitedRights>);

#[derive(Clone)]
struct LimitedRights {
    sessions: Vec<u16>,
    accounts: Arc<dyn Fn(AccountId) -> bool + Send + Sync>,
}

impl Rights {
    /// Returns rights to all accounts and all sessions.
    pub fn all() -> Self {
        Self(None)
    }

    /// Returns rights to these sessions, and to the accounts for which the function is true.
    pub fn of(sessions: Vec<u16>, accounts: impl Fn(AccountId) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(LimitedRights { sessions, accounts: Arc::new(accounts) }))
    }

    /// Returns true if the account may be seen.
    pub fn may_see(&self, account: AccountId) -> bool {
        self.0.as_ref().is_none_or(|limited| (limited.accounts)(account))
    }

    /// Returns true if the session may be seen.
    pub fn has_session(&self, session: u16) -> bool {
        self.0.as_ref().is_none_or(|limited| limited.sessions.contains(&session))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("Rights(all)"),
            Some(limited) => f.debug_tuple("Rights").field(&limited.sessions).finish(),
        }
    }
}
