//! Accounts in a file: one by its number, or many by a pattern.

use std::fmt;
use std::str::FromStr;

use tickpath_market::AccountId;

/// Pattern of account numbers: digits, `*` for any digits or none, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPattern(String);

/// Text that is no account pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no accounts; use digits, '*' for any digits and '?' for one, like 7*")]
pub struct AccountPatternError(String);

impl AccountPattern {
    /// Returns whether the pattern matches every account.
    pub fn is_all(&self) -> bool {
        self.0.bytes().all(|c| c == b'*')
    }

    /// Returns the account, if the pattern is a single number.
    pub fn one(&self) -> Option<AccountId> {
        self.0.parse().ok().map(AccountId)
    }

    /// Returns whether the pattern matches this account.
    pub fn matches(&self, account: AccountId) -> bool {
        matches(self.0.as_bytes(), account.to_string().as_bytes())
    }
}

impl FromStr for AccountPattern {
    type Err = AccountPatternError;

    fn from_str(text: &str) -> Result<Self, AccountPatternError> {
        let is_good = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit() || b"*?".contains(&c));
        if is_good { Ok(Self(text.to_owned())) } else { Err(AccountPatternError(text.to_owned())) }
    }
}

impl fmt::Display for AccountPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Matches by going back to the last `*` at a mismatch: at most as many steps as pattern length times text length.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}
