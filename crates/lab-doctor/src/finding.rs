//! Findings, and the host that they are read from.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub name: &'static str,
    /// Value on this host.
    pub value: String,
    /// Meaning of the value.
    pub state: FindingState,
    /// Cost or risk of the value.
    pub why: String,
    /// Remedy; empty where none is needed.
    pub remedy: String,
}

/// Meanings of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// The value is good.
    Good,
    /// The value costs time.
    CostsLatency,
    /// The value can lose data or orders.
    RisksSafety,
    /// The value could not be read.
    Unknown,
}

impl FindingState {
    /// Returns the state in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::CostsLatency => "costs latency",
            Self::RisksSafety => "risks safety",
            Self::Unknown => "unknown",
        }
    }
}

/// The host as described by its files; tests lay out files of their own.
#[derive(Debug, Clone)]
pub struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    /// Returns this host.
    pub fn here() -> Self {
        Self::under("/")
    }

    /// Returns a host whose `/proc` and `/sys` lie in this folder.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns a file's text without the line end; none if it cannot be read.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let text = fs::read(self.root.join(path.trim_start_matches('/'))).ok()?;
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.trim().parse().ok()
    }

    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path.trim_start_matches('/'))).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Returns the number behind `name:` in a file of such lines.
    pub(crate) fn field(&self, path: &str, name: &str) -> Option<u64> {
        let text = self.read(path)?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned))?;
        line.split_whitespace().next()?.parse().ok()
    }

    pub(crate) fn is_guest(&self) -> bool {
        self.read("/proc/cpuinfo").is_some_and(|text| text.split_whitespace().any(|flag| flag == "hypervisor"))
    }

    pub(crate) fn processors(&self) -> usize {
        let is_cpu = |name: &&String| {
            name.strip_prefix("cpu").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        };
        self.names("/sys/devices/system/cpu").iter().filter(is_cpu).count()
    }
}

impl Finding {
    pub(crate) fn good(value: impl Into<String>) -> Self {
        Self::new(value, FindingState::Good, "", "")
    }

    pub(crate) fn latency(value: impl Into<String>, why: &str, remedy: impl Into<String>) -> Self {
        Self::new(value, FindingState::CostsLatency, why, remedy)
    }

    pub(crate) fn safety(value: impl Into<String>, why: &str, remedy: impl Into<String>) -> Self {
        Self::new(value, FindingState::RisksSafety, why, remedy)
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self::new("not reported here", FindingState::Unknown, why, "")
    }

    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    fn new(value: impl Into<String>, state: FindingState, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: "", value: value.into(), state, why: why.into(), remedy: remedy.into() }
    }
}
