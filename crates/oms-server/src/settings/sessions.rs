//! The section `[sessions]`: the defaults of each session, where its user has no value of its own.

use tickpath_oms_runtime::{AckLevel, RequestRate};
use tickpath_settings::Section;

/// Bound of the users' session numbers, exclusive.
pub const MAX_SESSIONS: u16 = tickpath_oms_runtime::front_end::MAX_SESSIONS;

/// Default of the archived days from which a client can resume: six weeks of trading days.
pub const KEEP_DAYS: u32 = 30;

/// Names of the durability levels.
pub(super) const LEVELS: &[(&str, AckLevel)] = &[("os", AckLevel::Os), ("disk", AckLevel::Disk)];

/// Defaults of each session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionDefaults {
    /// Silence after which either side is considered dead, in milliseconds.
    pub heartbeat_ms: u32,
    /// Durability level that a request must reach before anything of it is sent.
    pub level: AckLevel,
    /// Whether the orders of a lost session are canceled.
    pub cancel_on_disconnect: bool,
    /// Rate limit of requests.
    pub rate: RequestRate,
    /// Max connections at once.
    pub max_sessions: u32,
    /// Archived days from which a client can resume; zero for all.
    pub keep_days: u32,
}

/// Limits of the journal records and the disk space that denied requests may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenialLimits {
    /// Max denied requests per session and day; beyond it the session is disconnected, and slow until the day ends.
    pub max_per_day: u32,
    /// Mebibytes of the journal's disk reserved for sessions that trade: while less is free, each session has a
    /// hundredth of its denied requests. Zero reserves none.
    pub disk_reserve_mb: u32,
}

impl Default for DenialLimits {
    /// Returns limits that allow a program one denied request a second all day.
    fn default() -> Self {
        Self { max_per_day: 100_000, disk_reserve_mb: 256 }
    }
}

impl DenialLimits {
    /// Takes the limits of the section, with defaults for missing keys.
    pub(super) fn from_section(sessions: &mut Section<'_>) -> Self {
        let usual = Self::default();
        Self {
            max_per_day: sessions.number("max_denied_a_day", 1..=u32::MAX).unwrap_or(usual.max_per_day),
            disk_reserve_mb: sessions.number("disk_reserve_mb", 0..=u32::MAX).unwrap_or(usual.disk_reserve_mb),
        }
    }
}

impl SessionDefaults {
    /// Takes the values of the section, with defaults for missing keys.
    pub(super) fn from_section(sessions: &mut Section<'_>) -> Self {
        let usual = RequestRate::default();
        Self {
            heartbeat_ms: sessions.number("heartbeat_ms", 100..=3_600_000).unwrap_or(10_000),
            level: sessions.one_of("level", LEVELS).unwrap_or_default(),
            cancel_on_disconnect: sessions.flag("cancel_on_disconnect").unwrap_or(false),
            rate: RequestRate {
                per_second: sessions.number("rate_per_second", 0..=u32::MAX).unwrap_or(usual.per_second),
                burst: sessions.number("burst", 1..=u32::MAX).unwrap_or(usual.burst),
            },
            max_sessions: sessions.number("most", 1..=u32::from(MAX_SESSIONS)).unwrap_or(1024),
            keep_days: sessions.number("keep_days", 0..=u32::MAX).unwrap_or(KEEP_DAYS),
        }
    }
}
