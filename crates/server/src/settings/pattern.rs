//! How a file names accounts: one by its number, or many by a pattern.

use std::fmt;
use std::str::FromStr;

use tickpath_market::AccountId;

/// Accounts by their number: digits, `*` for any digits or none, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPattern(String);

/// A text that names no accounts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no accounts; use digits, '*' for any digits and '?' for one, like 7*")]
pub struct AccountPatternError(String);

impl AccountPattern {
    /// Whether it stands for every account.
    pub fn is_all(&self) -> bool {
        self.0.bytes().all(|c| c == b'*')
    }

    /// The account that it names, if it stands for one alone.
    pub fn one(&self) -> Option<AccountId> {
        self.0.parse().ok().map(AccountId)
    }

    /// Whether it stands for this account, too.
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

/// Goes back to the last `*` where the text does not fit: never longer than the pattern times the text.
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
