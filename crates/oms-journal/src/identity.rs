//! Identity of the numbers of symbols, accounts, venues and sessions: no number changes its meaning while something
//! uses it.
//!
//! ```text
//!   symbol    name, venue, multiplier, currency   used by orders, positions, triggers, unknown reports, kill switch
//!   account   currency                            used by orders, positions, unknown reports, its kill switch
//!   venue     name                                used by orders, unknown reports, and the users of its symbols
//!   session   the name of its user                used by orders, requests, its kill switch, any report sent to it
//! ```
//! Open orders and the orders of the day count. Tick sizes, lots, hours, limits and rights are no part of a meaning:
//! they change at any time. The rule is a pure function of the journal's content and the wanted definitions. It is
//! checked before the first difference is journaled, so a journal never holds half of a refused configuration, and old
//! journals replay as before.

use std::collections::BTreeMap;
use std::fmt;

use tickpath_market::{AccountId, Currency, Symbol, SymbolId, VenueId, decimal_text};
use tickpath_oms_core::{AccountLimits, Core, IdReference, Instrument, NAME_SESSION, NAME_VENUE, NameRecord};

use crate::definitions::Definitions;

/// Definitions of a trading configuration that give numbers a meaning.
#[derive(Debug, Clone, Copy)]
pub struct WantedIdentities<'a> {
    /// Instruments that can be traded.
    pub instruments: &'a [Instrument],
    /// Accounts that may trade.
    pub accounts: &'a [AccountLimits],
    /// Names of venues, and of the users that sessions belong to.
    pub names: &'a [NameRecord],
}

/// Reason why a trading configuration is refused: each number whose meaning would change while something bears it. Its
/// text is a sentence on a line of its own for each conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityConflicts {
    /// The conflicts, at least one.
    pub list: Vec<IdentityConflict>,
}

/// A number that would change its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityConflict {
    /// The number that the configuration reassigns.
    pub of: EntityNumber,
    /// The number's meaning, the wanted meaning, the bearer of the number, and the remedy.
    pub sentence: String,
}

/// A number and its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntityNumber {
    /// A symbol.
    Symbol(SymbolId),
    /// An account.
    Account(AccountId),
    /// A venue.
    Venue(VenueId),
    /// A session.
    Session(u16),
}

/// Checks wanted definitions against the journal's definitions and orders; `has_reports` returns whether a session was
/// ever sent a report.
pub fn check(
    core: &Core,
    known: &Definitions,
    wanted: WantedIdentities<'_>,
    has_reports: impl Fn(u16) -> bool,
) -> Result<(), IdentityConflicts> {
    let mut list = symbols(core, known, wanted.instruments);
    list.extend(wanted.accounts.iter().filter_map(|limits| account(core, known, limits)));
    for name in changed_names(known, wanted.names) {
        list.extend(match name.of {
            NAME_VENUE => venue(core, known, name),
            NAME_SESSION => session(core, known, name, &has_reports),
            _ => None,
        });
    }
    if list.is_empty() { Ok(()) } else { Err(IdentityConflicts { list }) }
}

/// Returns whether a number would mean another instrument. A missing name or currency may be added.
pub fn changes_meaning(was: &Instrument, wanted: &Instrument) -> bool {
    let is_named = !was.name().is_none() && was.name() != wanted.name();
    is_named || !differences(was, wanted).is_empty()
}

fn symbols(core: &Core, known: &Definitions, instruments: &[Instrument]) -> Vec<IdentityConflict> {
    let is_known = |wanted: &&Instrument| {
        known.instrument(wanted.symbol).is_some_and(|was| was.name() == wanted.name() && !changes_meaning(was, wanted))
    };
    let changed: Vec<&Instrument> = instruments.iter().filter(|wanted| !is_known(wanted)).collect();
    if changed.is_empty() {
        return Vec::new();
    }
    let mut numbers: BTreeMap<Symbol, Vec<SymbolId>> = BTreeMap::new();
    known.instruments().for_each(|was| numbers.entry(was.name()).or_default().push(was.symbol));
    let mut conflicts = Vec::new();
    for wanted in changed {
        let (number, name) = (wanted.symbol, wanted.name());
        if let Some(was) = known.instrument(number).filter(|was| changes_meaning(was, wanted))
            && let Some(bearer) = core.reference_to_symbol(number)
        {
            conflicts.push(IdentityConflict {
                of: EntityNumber::Symbol(number),
                sentence: another_symbol(was, wanted, bearer),
            });
            continue;
        }
        let others = numbers.get(&name).into_iter().flatten().filter(|&&other| other != number && !name.is_none());
        if let Some((other, bearer)) = others.copied().find_map(|other| Some((other, core.reference_to_symbol(other)?)))
        {
            let sentence = format!(
                "{name} is symbol number {other}, and cannot become number {number}: {bearer}; write {other} in this \
                 line"
            );
            conflicts.push(IdentityConflict { of: EntityNumber::Symbol(number), sentence });
        }
    }
    conflicts
}

fn another_symbol(was: &Instrument, wanted: &Instrument, bearer: IdReference) -> String {
    let (number, old, new) = (wanted.symbol, was.name(), wanted.name());
    if old != new {
        return format!(
            "symbol number {number} is {old}, and cannot become {new}: {bearer}; leave {number} to {old}, and give \
             {new} a number that no symbol has had"
        );
    }
    let differences = differences(was, wanted).join(", ");
    format!(
        "{old}, symbol number {number}, cannot change ({differences}): {bearer}; list the other contract under a name \
         and a number of its own, or change this one when nothing of it is open or held and the day has ended"
    )
}

/// Returns the differences between two instruments of one name that change their meaning.
fn differences(was: &Instrument, wanted: &Instrument) -> Vec<String> {
    let mut list = Vec::new();
    if was.venue != wanted.venue {
        list.push(format!("venue {} to {}", was.venue, wanted.venue));
    }
    if was.contract_size() != wanted.contract_size() {
        list.push(format!("multiplier {} to {}", multiplier(was), multiplier(wanted)));
    }
    if was.price_decimals() != wanted.price_decimals() {
        list.push(format!("price decimals {} to {}", was.price_decimals(), wanted.price_decimals()));
    }
    if was.quantity_decimals() != wanted.quantity_decimals() {
        list.push(format!("quantity decimals {} to {}", was.quantity_decimals(), wanted.quantity_decimals()));
    }
    list.extend(other_currency(was.currency(), wanted.currency()));
    list
}

fn multiplier(instrument: &Instrument) -> String {
    decimal_text(instrument.multiplier.into(), instrument.multiplier_decimals)
}

/// Returns the change of a currency that was set.
fn other_currency(was: Currency, wanted: Currency) -> Option<String> {
    let wanted_text = if wanted.is_none() { "none" } else { wanted.as_str() };
    (!was.is_none() && was != wanted).then(|| format!("currency {was} to {wanted_text}"))
}

fn account(core: &Core, known: &Definitions, wanted: &AccountLimits) -> Option<IdentityConflict> {
    let number = wanted.account;
    let difference = other_currency(known.account(number)?.currency(), wanted.currency())?;
    let bearer = core.reference_to_account(number)?;
    let sentence = format!(
        "account {number} cannot change ({difference}): {bearer}; give the other currency an account of its own, or \
         change this one when nothing of it is open or held and the day has ended"
    );
    Some(IdentityConflict { of: EntityNumber::Account(number), sentence })
}

/// Returns the wanted names whose number has another name so far, or none.
fn changed_names<'a>(known: &'a Definitions, names: &'a [NameRecord]) -> impl Iterator<Item = &'a NameRecord> {
    names.iter().filter(move |name| known.name(name.of, name.number) != Some(*name))
}

fn venue(core: &Core, known: &Definitions, wanted: &NameRecord) -> Option<IdentityConflict> {
    let (number, new) = (wanted.number, wanted.text());
    let bearer = |number: u16| {
        let venue = VenueId(number);
        let traded = || known.instruments().filter(move |instrument| instrument.venue == venue);
        core.reference_to_venue(venue)
            .or_else(|| traded().find_map(|instrument| core.reference_to_symbol(instrument.symbol)))
    };
    let of = EntityNumber::Venue(VenueId(number));
    if let Some(was) = known.name(NAME_VENUE, number)
        && let Some(bearer) = bearer(number)
    {
        let old = was.text();
        let sentence = format!(
            "venue number {number} is {old}, and cannot become {new}: {bearer}; leave {number} to {old}, and give \
             {new} a number that no venue has had"
        );
        return Some(IdentityConflict { of, sentence });
    }
    let others = known.names().filter(|other| (other.of, other.name) == (NAME_VENUE, wanted.name));
    let (other, bearer) = others.map(|other| other.number).find_map(|other| Some((other, bearer(other)?)))?;
    let sentence = format!(
        "{new} is venue number {other}, and cannot become number {number}: {bearer}; write {other} as its number"
    );
    Some(IdentityConflict { of, sentence })
}

fn session(
    core: &Core,
    known: &Definitions,
    wanted: &NameRecord,
    has_reports: &impl Fn(u16) -> bool,
) -> Option<IdentityConflict> {
    let number = wanted.number;
    let (old, new) = (known.name(NAME_SESSION, number)?.text(), wanted.text());
    let in_core = core.reference_to_session(number).map(|bearer| bearer.to_string());
    let bearer = in_core.or_else(|| has_reports(number).then(|| format!("reports to {old} are in its history")))?;
    let sentence = format!(
        "session {number} is {old}'s, and cannot become {new}'s: {bearer}; give {new} a session that no user has had"
    );
    Some(IdentityConflict { of: EntityNumber::Session(number), sentence })
}

impl fmt::Display for IdentityConflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, conflict) in self.list.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", conflict.sentence)?;
        }
        Ok(())
    }
}

impl std::error::Error for IdentityConflicts {}
