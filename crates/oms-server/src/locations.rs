//! Lines of the configuration files in which numbers are defined.

use std::path::Path;

use tickpath_oms_runtime::{EntityNumber, IdentityConflict, IdentityConflicts};
use tickpath_settings::{Section, read_text};

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
        EntityNumber::Venue(venue) => {
            let is_it = |section: &mut Section<'_>| section.number("number", 0..=u16::MAX) == Some(venue.0);
            (file, line_in_sections(file, "venue", "number", is_it))
        }
        EntityNumber::Session(session) => {
            let sessions = |user: &mut Section<'_>| user.numbers("sessions", 0..=u16::MAX).unwrap_or_default();
            (users_file, line_in_sections(users_file, "user", "sessions", |user| sessions(user).contains(&session)))
        }
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

/// Returns the line of a key in the last section for which the function is true.
fn line_in_sections(file: &Path, name: &str, key: &str, is_it: impl Fn(&mut Section<'_>) -> bool) -> Option<usize> {
    let mut line = None;
    // Keys that are not read count as mistakes, and only the line is wanted here.
    let _ = tickpath_settings::read(file, |top| {
        top.sections(name, |section| {
            if is_it(section) {
                line = Some(section.line(key));
            }
        });
    });
    line
}
