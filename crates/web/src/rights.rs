//! Users of the page, and what each of them may see.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tickpath_market::AccountId;
use tickpath_session::{Role, Secret};

/// The users of an OMS, looked up for each request: a user who is removed, disabled or changed loses the page at once.
pub trait UserDirectory: Send + Sync {
    /// Returns the user of this name, if it may log in now.
    fn find(&self, name: &str) -> Option<PageUser>;

    /// Returns the secrets of all users: those of users who do not exist are made to look like them.
    fn secrets(&self) -> Vec<Secret>;

    /// Returns the name of the user of each session.
    fn owners(&self) -> BTreeMap<u16, String>;
}

/// A user as the page needs it.
#[derive(Debug, Clone)]
pub struct PageUser {
    /// Checks the user's password.
    pub secret: Secret,
    /// An admin gets a session with the OMS at its login, other users only look.
    pub role: Role,
    /// The accounts and sessions that the user may see.
    pub rights: Rights,
}

/// The accounts and sessions that a user may see.
#[derive(Clone)]
pub struct Rights(Option<Limited>);

#[derive(Clone)]
struct Limited {
    sessions: Vec<u16>,
    accounts: Arc<dyn Fn(AccountId) -> bool + Send + Sync>,
}

impl Rights {
    /// All accounts and all sessions.
    pub fn all() -> Self {
        Self(None)
    }

    /// These sessions, and the accounts for which the function is true.
    pub fn of(sessions: Vec<u16>, accounts: impl Fn(AccountId) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Limited { sessions, accounts: Arc::new(accounts) }))
    }

    /// True if the account may be seen.
    pub fn sees(&self, account: AccountId) -> bool {
        self.0.as_ref().is_none_or(|limited| (limited.accounts)(account))
    }

    /// True if the session may be seen.
    pub fn has(&self, session: u16) -> bool {
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
