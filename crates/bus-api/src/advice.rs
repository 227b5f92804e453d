//! Advice: settings of a server that cost latency or safety.

/// One observation about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Subject of the observation.
    pub setting: &'static str,
    /// Observed value; or why the server does not report it.
    pub value: Result<String, String>,
    /// Cost of the value; none if it is good or unknown.
    pub cost: Option<SettingCost>,
}

/// The cost or the risk of a setting, and the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingCost {
    /// The setting costs time.
    Latency {
        /// The cost.
        why: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// The setting can lose messages.
    Safety {
        /// The risk.
        why: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
}

impl Advice {
    /// Creates the observation of a good value.
    pub fn good(name: &'static str, value: impl Into<String>) -> Self {
        Self { setting: name, value: Ok(value.into()), cost: None }
    }

    /// Creates the observation of a value that costs time.
    pub fn latency(name: &'static str, value: impl Into<String>, why: &'static str, remedy: &'static str) -> Self {
        Self { setting: name, value: Ok(value.into()), cost: Some(SettingCost::Latency { why, remedy }) }
    }

    /// Creates the observation of a value that can lose messages.
    pub fn safety(name: &'static str, value: impl Into<String>, why: &'static str, remedy: &'static str) -> Self {
        Self { setting: name, value: Ok(value.into()), cost: Some(SettingCost::Safety { why, remedy }) }
    }

    /// Creates the observation of a value that the server does not report, with the reason.
    pub fn unknown(name: &'static str, why: impl Into<String>) -> Self {
        Self { setting: name, value: Err(why.into()), cost: None }
    }
}
