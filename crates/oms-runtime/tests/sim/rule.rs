//! Result of a check.

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub rule: &'static str,
    pub what: String,
}

/// Result of a check: a broken rule is the error.
pub type Checked = Result<(), Broken>;

/// Returns a broken rule as an error.
pub fn broken<T>(rule: &'static str, what: impl Into<String>) -> Result<T, Broken> {
    Err(Broken { rule, what: what.into() })
}
