//! The `rejects` of a `[[venue]]`: the retry rules for new orders that the venue refuses, by its code.

use tickpath_market::VenueId;
use tickpath_oms_core::{GIVE_UP, OTHER_LINE, RETRY, RejectRule};
use tickpath_settings::Section;

const ACTIONS: &[(&str, u8)] = &[("give-up", GIVE_UP), ("retry", RETRY), ("other-line", OTHER_LINE)];

const TIMES: u8 = 3;
const MAX_RETRIES: u8 = 100;

/// Takes the retry rules of a venue with this number of lines.
pub(super) fn read_retry_rules(venue: &mut Section<'_>, id: VenueId, lines: usize) -> Vec<RejectRule> {
    let mut rules: Vec<RejectRule> = Vec::new();
    venue.sections("rejects", |rule| {
        rule.require("code");
        let code = rule.number("code", 0..=u16::MAX);
        let action = rule.require_one_of("do", ACTIONS).unwrap_or(GIVE_UP);
        let times = rule.number("times", 1..=MAX_RETRIES);
        if action == GIVE_UP && times.is_some() {
            rule.add_mistake(
                "times",
                "an order that is given up is not retried; leave 'times' out, or set do = \"retry\"",
            );
        }
        if action == OTHER_LINE && lines < 2 {
            rule.add_mistake(
                "do",
                format!("the venue has no other line, it has {lines}; add one to 'lines', or retry"),
            );
        }
        let Some(code) = code else { return };
        if rules.iter().any(|other| other.code == code) {
            rule.add_mistake("code", format!("{code} has a rule already; give each code one"));
        }
        let times = if action == GIVE_UP { 0 } else { times.unwrap_or(TIMES) };
        rules.push(RejectRule { venue: id, code, action, times, reserved: 0 });
    });
    rules
}
