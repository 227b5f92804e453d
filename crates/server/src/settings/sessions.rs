//! The section `[sessions]`: what holds for each session, where its user says nothing else.

use tickpath_oms::{AckLevel, Rate};
use tickpath_settings::Section;

/// Sessions of users are below this.
pub const MOST_SESSIONS: u16 = tickpath_oms::front::MOST_SESSIONS;

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
        }
    }
}
