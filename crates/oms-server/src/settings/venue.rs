//! A `[[venue]]`: its behaviour and its lines.

use std::fmt;

use tickpath_exchanges::OrderExchange;
use tickpath_market::VenueId;
use tickpath_oms_core::{RejectRule, VenueRules};
use tickpath_oms_runtime::VenueExpectations;
use tickpath_settings::Section;

use super::retry_rules;
use super::venue_lines::{self, LineSettings};

/// Bound of the venue numbers, exclusive.
const VENUES: u16 = 1 << 12;
const MS_NS: u64 = 1_000_000;
/// Default time in which a venue must answer, in milliseconds.
const ANSWER_WITHIN_MS: u64 = 5_000;

/// Venue with its behaviour, lines and retry rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VenueSettings {
    /// Name for people.
    pub name: String,
    /// Behaviour.
    pub rules: VenueRules,
    /// Expectations of its answers, and of the end of its day.
    pub watch: VenueExpectations,
    /// Lines to it; over shared memory if there are none.
    pub lines: Vec<LineSettings>,
    /// Retry rules for new orders that it refuses, by its code; an order refused with any other code is over.
    pub rejects: Vec<RejectRule>,
}

impl VenueSettings {
    /// Takes all venues of a file; there must be one.
    pub(super) fn all_from(top: &mut Section<'_>) -> Vec<Self> {
        let mut venues: Vec<Self> = Vec::new();
        top.sections("venue", |section| {
            let venue = Self::from_section(section, &venues);
            venues.push(venue);
        });
        if !top.has("venue") {
            top.add_section_mistake("there is no [[venue]]; orders need one");
        }
        venues
    }

    /// Takes a venue, after the venues before it, whose names and numbers it must not repeat.
    fn from_section(venue: &mut Section<'_>, before: &[Self]) -> Self {
        venue.require("name");
        venue.require("number");
        let (name, number) = (venue.text("name"), venue.number("number", 0..=VENUES - 1));
        let mut wrong =
            |key: &str, value: &dyn fmt::Display, why: &str| venue.add_mistake(key, format!("'{value}' {why}"));
        if let Some(name) = &name {
            if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
                wrong("name", name, "does not begin with a letter, so it could be read as a number");
            }
            if name.contains([',', '"']) {
                wrong("name", name, "has a comma or a quote in it, which a table cannot have");
            }
            if before.iter().any(|other| other.name == *name) {
                wrong("name", name, "is another venue's already; give each its own");
            }
        }
        if let Some(number) = number.filter(|&number| before.iter().any(|other| other.rules.venue.0 == number)) {
            wrong("number", &number, "is another venue's already; give each its own");
        }
        let id = VenueId(number.unwrap_or(VENUES));
        let (rules, watch, lines) =
            (rules(venue, VenueRules::of(id)), watch(venue, id), venue_lines::read_lines(venue));
        if let Some(exchange) = lines.iter().find_map(LineSettings::exchange) {
            check_rules(venue, &rules, exchange);
        }
        let rejects = retry_rules::read_retry_rules(venue, id, lines.len());
        Self { name: name.unwrap_or_default(), rules, watch, lines, rejects }
    }
}

/// Takes the expectations of a venue: the time of its answers, and whether its day orders expire without a report.
fn watch(venue: &mut Section<'_>, id: VenueId) -> VenueExpectations {
    let answer_within_ms = venue.number("answer_within_ms", 0..=86_400_000).unwrap_or(ANSWER_WITHIN_MS);
    let expires_day_orders = venue.flag("expires_day_orders").unwrap_or(false);
    VenueExpectations { venue: id, answer_within_ns: answer_within_ms * MS_NS, expires_day_orders }
}

/// Reports a behaviour that an exchange does not have.
fn check_rules(venue: &mut Section<'_>, rules: &VenueRules, exchange: OrderExchange) {
    if rules.numbered != 0 {
        let why = "does not number the events of an order; set numbered = false";
        venue.add_mistake("numbered", format!("{exchange} {why}"));
    }
    if rules.answers_status == 0 {
        let why = "answers status queries, which resolve doubts; set answers_status = true, or remove the key";
        venue.add_mistake("answers_status", format!("{exchange} {why}"));
    }
}

/// Takes the behaviour of a venue, with defaults for missing keys.
fn rules(venue: &mut Section<'_>, usual: VenueRules) -> VenueRules {
    let max_gap_ms = venue.number("max_gap_ms", 1..=86_400_000).unwrap_or(usual.max_gap_ns / MS_NS);
    VenueRules {
        numbered: venue.flag("numbered").map_or(usual.numbered, u8::from),
        answers_status: venue.flag("answers_status").map_or(usual.answers_status, u8::from),
        max_queued: venue.number("max_queued", 0..=u32::MAX).unwrap_or(usual.max_queued),
        max_gap_ns: max_gap_ms * MS_NS,
        ..usual
    }
}
