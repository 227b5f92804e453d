//! Lines of the configuration files in which numbers are defined.

use std::path::Path;

use tickpath_oms_runtime::{EntityNumber, IdentityConflict, IdentityConflicts};
use tickpath_settings::read_text;

use super::changes::rows;
use crate::settings::Settings;

/// Adds to each conflict the file and the line that gives the number another meaning.
pub(crate) fn with_locations(conflicts: IdentityConflicts, settings: &Settings) -> IdentityConflicts {
    let located = |IdentityConflict { of, sentence }| IdentityConflict {
        of,
        sentence: format!("{}: {sentence}", location_of(settings, of)),
    };
    IdentityConflicts { list: conflicts.list.into_iter().map(located).collect() }
}

/// Returns the file and the line of a number; the file alone if the number is no longer there.
pub(crate) fn location_of(settings: &Settings, of: EntityNumber) -> String {
    let Settings { file, instruments_file, accounts_file, users_file, .. } = settings;
    let (file, line) = match of {
        EntityNumber::Symbol(symbol) => (instruments_file, line_in_table(instruments_file, "number", symbol.0)),
        EntityNumber::Account(account) => (accounts_file, line_in_table(accounts_file, "account", account.0)),
        EntityNumber::Venue(venue) => (file, line_of_venue(file, venue.0)),
        EntityNumber::Session(session) => (users_file, line_of_session(users_file, session)),
    };
    match line {
        Some(line) => format!("{}:{line}", file.display()),
        None => file.display().to_string(),
    }
}

fn line_in_table(file: &Path, column: &str, number: u32) -> Option<usize> {
    let text = read_text(file).ok()?;
    let mut rows = rows(&text);
    let (_, head) = rows.next()?;
    let index = head.iter().position(|name| *name == column)?;
    let is_it = |cells: &[&str]| cells.get(index).and_then(|cell| cell.parse::<u32>().ok()) == Some(number);
    rows.find(|(_, cells)| is_it(cells)).map(|(line, _)| line)
}

fn line_of_venue(file: &Path, number: u16) -> Option<usize> {
    let mut line = None;
    // Keys that are not asked for count as mistakes, and only the line is wanted here.
    let _ = tickpath_settings::read(file, |top| {
        top.sections("venue", |venue| {
            if venue.number("number", 0..=u16::MAX) == Some(number) {
                line = Some(venue.line("number"));
            }
        });
    });
    line
}

fn line_of_session(file: &Path, session: u16) -> Option<usize> {
    let mut line = None;
    let _ = tickpath_settings::read(file, |top| {
        top.sections("user", |user| {
            let sessions = user.numbers("sessions", 0..=u16::MAX).unwrap_or_default();
            if sessions.contains(&session) {
                line = Some(user.line("sessions"));
            }
        });
    });
    line
}
