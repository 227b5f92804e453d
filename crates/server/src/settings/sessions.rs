//! The section `[sessions]`: what holds for each session, where its user says nothing else.

use tickpath_oms::{AckLevel, Rate};
use tickpath_settings::Section;

/// Sessions of users are below this.
pub const MOST_SESSIONS: u16 = tickpath_oms::front::MOST_SESSIONS;

/// Archived days from which a client resumes, where the file says nothing: six weeks of trading days.
pub const KEEP_DAYS: u32 = 30;

/// The words for what must hold a request.
pub(super) const LEVELS: &[(&str, AckLevel)] = &[("os", AckLevel::Os), ("disk", AckLevel::Disk)];

/// What holds for each session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sessions {
    /// After so long without a word either side is taken for gone, in milliseconds.
    pub heartbeat_ms: u32,
    /// What must hold its requests before anything of them leaves.
    pub level: AckLevel,
    /// Whether its orders are canceled when it is lost.
    pub cancel_on_disconnect: bool,
    /// How fast its requests are taken.
    pub rate: Rate,
    /// Connections at once.
    pub most: u32,
    /// Archived days from which a client resumes; zero for all.
    pub keep_days: u32,
}

/// How much of the journal may go to requests that come to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenialLimits {
    /// Denied requests of each session and day; one more, and the session is disconnected, and slow until the day ends.
    pub most_a_day: u32,
    /// Mebibytes of the journal's disk that are kept for sessions that trade: while less is free, each session has a
    /// hundredth of its denied requests. Zero keeps none.
    pub disk_reserve_mb: u32,
}

impl Default for DenialLimits {
    /// A program that is denied something once a second all day stays within it.
    fn default() -> Self {
        Self { most_a_day: 100_000, disk_reserve_mb: 256 }
    }
}

impl DenialLimits {
    /// What the section says, and the usual where it says nothing.
    pub(super) fn take(sessions: &mut Section<'_>) -> Self {
        let usual = Self::default();
        Self {
            most_a_day: sessions.number("max_denied_a_day", 1..=u32::MAX).unwrap_or(usual.most_a_day),
            disk_reserve_mb: sessions.number("disk_reserve_mb", 0..=u32::MAX).unwrap_or(usual.disk_reserve_mb),
        }
    }

    /// The reserve in bytes.
    pub(crate) fn disk_reserve_bytes(&self) -> u64 {
        u64::from(self.disk_reserve_mb) << 20
    }
}

impl Sessions {
    /// What the section says, and the usual where it says nothing.
    pub(super) fn take(sessions: &mut Section<'_>) -> Self {
        let usual = Rate::default();
        Self {
            heartbeat_ms: sessions.number("heartbeat_ms", 100..=3_600_000).unwrap_or(10_000),
            level: sessions.one_of("level", LEVELS).unwrap_or_default(),
            cancel_on_disconnect: sessions.flag("cancel_on_disconnect").unwrap_or(false),
            rate: Rate {
                per_second: sessions.number("rate_per_second", 0..=u32::MAX).unwrap_or(usual.per_second),
                burst: sessions.number("burst", 1..=u32::MAX).unwrap_or(usual.burst),
            },
            most: sessions.number("most", 1..=u32::from(MOST_SESSIONS)).unwrap_or(1024),
            keep_days: sessions.number("keep_days", 0..=u32::MAX).unwrap_or(KEEP_DAYS),
        }
    }
}
