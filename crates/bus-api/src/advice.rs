//! Advice: settings of a server that cost latency or safety.

/// One look at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Its subject.
    pub name: &'static str,
    /// How it is there; or why it does not tell.
    pub value: Result<String, String>,
    /// The cost; none if it is as it should be, or not known.
    pub cost: Option<Cost>,
}

/// The cost or the risk of a setting, and the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// It costs time.
    Latency {
        /// The cost.
        why: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// It can lose messages.
    Safety {
        /// The risk.
        why: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
}

impl Advice {
    /// As it should be.
    pub fn good(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: Ok(value.into()), cost: None }
    }

    /// It costs time.
    pub fn latency(name: &'static str, value: impl Into<String>, why: &'static str, remedy: &'static str) -> Self {
        Self { name, value: Ok(value.into()), cost: Some(Cost::Latency { why, remedy }) }
    }

    /// It can lose messages.
    pub fn safety(name: &'static str, value: impl Into<String>, why: &'static str, remedy: &'static str) -> Self {
        Self { name, value: Ok(value.into()), cost: Some(Cost::Safety { why, remedy }) }
    }

    /// The server does not tell, and why.
    pub fn unknown(name: &'static str, why: impl Into<String>) -> Self {
        Self { name, value: Err(why.into()), cost: None }
    }
}
