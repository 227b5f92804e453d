//! How it is told that a rule does not hold.

/// What does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub rule: &'static str,
    pub what: String,
}

/// Whether all holds.
pub type Checked = Result<(), Broken>;

/// Says what does not hold.
pub fn broken<T>(rule: &'static str, what: impl Into<String>) -> Result<T, Broken> {
    Err(Broken { rule, what: what.into() })
}
