//! Result of a check.

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRule {
    pub rule: &'static str,
    pub what: String,
}

/// Result of a check: a broken rule is the error.
pub type RuleCheck = Result<(), BrokenRule>;

/// Returns a broken rule as an error.
pub fn broken<T>(rule: &'static str, what: impl Into<String>) -> Result<T, BrokenRule> {
    Err(BrokenRule { rule, what: what.into() })
}
