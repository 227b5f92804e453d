//! Faults that a simulated exchange injects, read from a TOML file.
//!
//! ```toml
//! seed = 7
//! cut_after_ack = 0.01
//! duplicate_push = 0.1
//! late_push_ms = 200
//! suspended = ["ETH-USDT"]
//! ```
//!
//! Each key is optional. A chance is written from 0, which is never, to 1, which is always.

use std::path::Path;

use tickpath_settings::{Section, SettingsError};
use tickpath_venue_sim::Chance;

pub use tickpath_venue_sim::FaultDice;

/// Max delay in milliseconds: an hour.
const MAX_DELAY_MS: u64 = 3_600_000;
/// Max clock drift in milliseconds, in both directions: a day.
const MAX_DRIFT_MS: i64 = 86_400_000;
/// Lifetime of a listen key at the real exchange, in milliseconds.
const LISTEN_KEY_MS: u64 = 3_600_000;

/// Faults of a simulated exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebFaults {
    /// Chance that the connection is cut behind the acknowledgement of a request.
    pub cut_after_ack: Chance,
    /// Chance that a push is sent twice.
    pub duplicate_push: Chance,
    /// Delay of each push, in milliseconds.
    pub late_push_ms: u64,
    /// Number of book messages after which their sequence begins anew; zero for never.
    pub reset_sequence_every: u64,
    /// Time until maintenance is announced, in milliseconds from the start; zero for never.
    pub announce_maintenance_after_ms: u64,
    /// Chance that a new order is answered by an error that leaves its fate open: 50004 or -1007.
    pub ambiguous: Chance,
    /// Whether the order of an ambiguous answer was placed.
    pub ambiguous_placed: bool,
    /// Chance that a filled order is pushed again with a fill of quantity zero.
    pub zero_fill_push: Chance,
    /// Chance that an acknowledged amend fails later.
    pub amend_fails_later: Chance,
    /// Lifetime of a listen key, in milliseconds.
    pub listen_key_ms: u64,
    /// Lead of the exchange's clock, in milliseconds; negative for a lag.
    pub clock_drift_ms: i64,
    /// Chance that a request is refused by a rate limit: 429 or 50011.
    pub rate_limited: Chance,
    /// Names of the suspended instruments.
    pub suspended: Vec<String>,
    /// Chance that an HTTP request is answered by a page of HTML, as a proxy does.
    pub html_answers: Chance,
    /// Seed of the dice.
    pub seed: u64,
}

impl WebFaults {
    /// Returns no faults.
    pub fn none() -> Self {
        Self {
            cut_after_ack: Chance::default(),
            duplicate_push: Chance::default(),
            late_push_ms: 0,
            reset_sequence_every: 0,
            announce_maintenance_after_ms: 0,
            ambiguous: Chance::default(),
            ambiguous_placed: false,
            zero_fill_push: Chance::default(),
            amend_fails_later: Chance::default(),
            listen_key_ms: LISTEN_KEY_MS,
            clock_drift_ms: 0,
            rate_limited: Chance::default(),
            suspended: Vec::new(),
            html_answers: Chance::default(),
            seed: 1,
        }
    }

    /// Reads a file. The error has all mistakes of the file, each with its line.
    pub fn read(file: &Path) -> Result<Self, SettingsError> {
        tickpath_settings::read(file, Self::read_keys)
    }

    /// Returns dice for these faults: the same seed gives the same throws.
    pub fn dice(&self) -> FaultDice {
        FaultDice::new(self.seed)
    }

    fn read_keys(top: &mut Section<'_>) -> Self {
        let none = Self::none();
        let mut chance = |key| top.parsed(key).unwrap_or_default();
        let [cut_after_ack, duplicate_push, ambiguous, zero_fill_push, amend_fails_later, rate_limited, html_answers] =
            [
                "cut_after_ack",
                "duplicate_push",
                "ambiguous",
                "zero_fill_push",
                "amend_fails_later",
                "rate_limited",
                "html_answers",
            ]
            .map(&mut chance);
        let faults = Self {
            cut_after_ack,
            duplicate_push,
            late_push_ms: top.number("late_push_ms", 0..=MAX_DELAY_MS).unwrap_or(none.late_push_ms),
            reset_sequence_every: top.number("reset_sequence_every", 0..=i64::MAX as u64).unwrap_or_default(),
            announce_maintenance_after_ms: top
                .number("announce_maintenance_after_ms", 0..=MAX_DELAY_MS)
                .unwrap_or_default(),
            ambiguous,
            ambiguous_placed: top.flag("ambiguous_placed").unwrap_or(false),
            zero_fill_push,
            amend_fails_later,
            listen_key_ms: top.number("listen_key_ms", 1..=MAX_DRIFT_MS as u64).unwrap_or(none.listen_key_ms),
            clock_drift_ms: top.number("clock_drift_ms", -MAX_DRIFT_MS..=MAX_DRIFT_MS).unwrap_or_default(),
            rate_limited,
            suspended: top.list("suspended").unwrap_or_default(),
            html_answers,
            seed: top.number("seed", 0..=i64::MAX as u64).unwrap_or(none.seed),
        };
        if faults.ambiguous_placed && !top.has("ambiguous") {
            top.add_mistake("ambiguous_placed", "no answer is ambiguous; set ambiguous as well, or leave this out");
        }
        if faults.suspended.iter().any(String::is_empty) {
            top.add_mistake("suspended", "an empty text names no instrument; write its name, or leave it out");
        }
        faults
    }
}
