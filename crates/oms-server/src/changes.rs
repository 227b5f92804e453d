//! Changes of the configuration files: each section and key with the old and the new value, and those changes that a
//! running OMS does not take.
//!
//! The files are compared as they are written, so keys that this module does not know are named too. Secrets are
//! compared but never shown, nor are the credentials in a URL.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tickpath_settings::read_text;
use toml_edit::{DocumentMut, Item, TableLike};

use crate::settings::{Settings, VenueInstrument, VenueSettings};

/// Max changes named singly; the rest is a number.
const MAX_NAMED: usize = 100;
/// Columns of an instrument that a line to its exchange reads when it is opened.
const LINE_COLUMNS: [&str; 5] = ["symbol", "number", "venue", "lot", "code"];

/// Values of the files: by section or row, and by key or column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConfigValues(BTreeMap<(String, String), ConfigValue>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ConfigValue {
    text: String,
    /// A running OMS keeps the value that it was started with.
    at_start: bool,
}

/// Differences between two states of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConfigDiff {
    pub applied: Vec<String>,
    pub needs_restart: Vec<String>,
}

impl ConfigValues {
    /// Reads the values of the files that these settings were read from, as the files are now.
    pub fn read(settings: &Settings) -> Self {
        let mut values = Self::default();
        values.add_toml(&settings.file);
        values.add_toml(&settings.users_file);
        values.add_table(&settings.instruments_file, &["symbol"]);
        values.mark_line_instruments(settings);
        values.add_table(&settings.accounts_file, &["account"]);
        if let Some(symbols) = &settings.symbols_file {
            values.add_table(symbols, &["account", "symbol"]);
        }
        values
    }

    /// Returns these values with those of the users' file as it is now: the other files are read on request only.
    pub fn with_users(&self, file: &Path) -> Self {
        let (mut values, name) = (self.clone(), name_of(file));
        let is_of_users =
            |title: &str| title.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        values.0.retain(|(title, _), _| !is_of_users(title));
        values.add_toml(file);
        values
    }

    /// Returns the changes from `applied`, the values taken last, to these; `started` are those of the start.
    pub fn changes(&self, started: &Self, applied: &Self) -> ConfigDiff {
        let of_kind = |values: &Self, at_start: bool| {
            let kept = values.0.iter().filter(|(_, value)| value.at_start == at_start);
            Self(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
        };
        let between = |before: &Self, at_start: bool| differences(&of_kind(before, at_start), &of_kind(self, at_start));
        let mut changes = ConfigDiff { applied: Vec::new(), needs_restart: between(started, true) };
        for change in between(applied, false) {
            // The durability level may rise at once, and fall only at the next start.
            let is_less = change.contains(" level: \"disk\" to ");
            if is_less { changes.needs_restart.push(change) } else { changes.applied.push(change) }
        }
        for list in [&mut changes.applied, &mut changes.needs_restart] {
            if list.len() > MAX_NAMED {
                let more = list.len() - MAX_NAMED;
                list.truncate(MAX_NAMED);
                list.push(format!("and {more} more"));
            }
        }
        changes
    }

    fn add_toml(&mut self, file: &Path) {
        let document = read_text(file).ok().and_then(|text| text.parse::<DocumentMut>().ok());
        if let Some(document) = document {
            self.add_section(&name_of(file), &[], document.as_table());
        }
    }

    /// Adds the keys of a section; `path` holds the keys that lead to it.
    fn add_section(&mut self, title: &str, path: &[&str], section: &dyn TableLike) {
        for (key, item) in section.iter() {
            let path = [path, &[key]].concat();
            if let Some(inner) = item.as_table_like() {
                self.add_section(&format!("{title} [{key}]"), &path, inner);
            } else if let Some(list) = sections(item) {
                for (number, inner) in (1..).zip(list) {
                    let named = inner.get("name").and_then(Item::as_str).map(str::to_owned);
                    let name = named.unwrap_or_else(|| format!("number {number}"));
                    self.add_section(&format!("{title} [[{key}]] {name}"), &path, inner);
                }
            } else if let Some(value) = item.as_value() {
                // Drops the comment behind the value, and joins its lines.
                let text = value.clone().decorated("", "").to_string();
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let at_start = is_read_at_start(&path);
                self.0.insert((title.to_owned(), key.to_owned()), ConfigValue { text, at_start });
            }
        }
    }

    /// Adds the cells of a table, whose rows are identified by these columns.
    fn add_table(&mut self, file: &Path, known_by: &[&str]) {
        let Ok(text) = read_text(file) else { return };
        let mut rows = rows(&text);
        let Some((_, head)) = rows.next() else { return };
        for (_, cells) in rows {
            let cell = |column: &str| head.iter().position(|name| *name == column).and_then(|index| cells.get(index));
            let mut title = name_of(file);
            for column in known_by {
                title.push_str(&format!(" {column} {}", cell(column).copied().unwrap_or_default()));
            }
            for (column, cell) in head.iter().zip(&cells).filter(|(_, cell)| !cell.is_empty()) {
                let value = ConfigValue { text: (*cell).to_owned(), at_start: false };
                self.0.insert((title.clone(), (*column).to_owned()), value);
            }
        }
    }

    /// Marks the cells of the instruments that lines to exchanges trade: a line is opened with them at a start.
    fn mark_line_instruments(&mut self, settings: &Settings) {
        let has_exchange = |venue: &&VenueSettings| venue.lines.iter().any(|line| line.exchange().is_some());
        let venues = settings.venues.iter().filter(has_exchange);
        let file = name_of(&settings.instruments_file);
        let title = |instrument: VenueInstrument| format!("{file} symbol {}", instrument.name);
        let traded: BTreeSet<String> =
            venues.flat_map(|venue| settings.line_instruments(venue.rules.venue)).map(title).collect();
        for ((title, column), value) in &mut self.0 {
            value.at_start |= traded.contains(title) && LINE_COLUMNS.contains(&column.as_str());
        }
    }

    fn titles(&self) -> BTreeSet<&str> {
        self.0.keys().map(|(title, _)| title.as_str()).collect()
    }
}

/// Returns the rows of a table with their line numbers, from 1; the first row names the columns.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_row = |(_, line): &(usize, &str)| !line.trim().is_empty() && !line.starts_with('#');
    (1..).zip(text.lines()).filter(is_row).map(|(line, text)| (line, text.split(',').map(str::trim).collect()))
}

/// Returns whether a key of `oms.toml` is read at a start only.
fn is_read_at_start(path: &[&str]) -> bool {
    matches!(
        path,
        ["name" | "journal" | "ticks" | "metrics" | "web" | "log"]
            | ["listen" | "tls" | "core" | "day" | "drop_copy", ..]
            | ["sessions", "heartbeat_ms" | "most" | "keep_days"]
            | ["venue", "lines", ..]
    )
}

/// Returns the sections of a list of sections, in either notation; none if the item is no such list.
fn sections(item: &Item) -> Option<Vec<&dyn TableLike>> {
    if let Some(list) = item.as_array_of_tables() {
        return Some(list.iter().map(|table| table as &dyn TableLike).collect());
    }
    let list = item.as_array().filter(|list| !list.is_empty())?;
    list.iter().map(|value| value.as_inline_table().map(|table| table as &dyn TableLike)).collect()
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Returns a sentence for each key that differs, and one for each section that is new or gone.
fn differences(before: &ConfigValues, now: &ConfigValues) -> Vec<String> {
    let (titles_before, titles_now) = (before.titles(), now.titles());
    let mut list = Vec::new();
    let keys: BTreeSet<&(String, String)> = before.0.keys().chain(now.0.keys()).collect();
    let mut listed = BTreeSet::new();
    for path in keys {
        let (title, key) = (path.0.as_str(), path.1.as_str());
        let (old, new) = (before.0.get(path), now.0.get(path));
        if old == new {
            continue;
        }
        // The keys at the top of a file have no section that could be new.
        let is_section = title.contains(' ');
        if is_section && titles_before.contains(title) != titles_now.contains(title) {
            if listed.insert(title) {
                let change = if titles_now.contains(title) { (now, "added") } else { (before, "removed") };
                list.push(describe_section(title, change));
            }
            continue;
        }
        let text = |value: Option<&ConfigValue>| value.map_or("unset".to_owned(), |value| shown(key, &value.text));
        let (old, new) = (text(old), text(new));
        list.push(match old == new {
            true => format!("{title} {key}: changed, and never shown"),
            false => format!("{title} {key}: {old} to {new}"),
        });
    }
    list
}

fn describe_section(title: &str, (values, what): (&ConfigValues, &str)) -> String {
    let section = values.0.iter().filter(|((of, _), _)| of == title);
    let keys: Vec<String> = section.map(|((_, key), value)| format!("{key} {}", shown(key, &value.text))).collect();
    format!("{title}: {what} ({})", keys.join(", "))
}

fn shown(key: &str, text: &str) -> String {
    let is_secret = ["secret", "password", "token"].iter().any(|word| key.contains(word));
    if is_secret { "(never shown)".to_owned() } else { without_credentials(text) }
}

/// Masks the credentials of each URL in a text: the part before its `@`, and a query with `=` or `@`.
fn without_credentials(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(index) = rest.find("://") {
        let (before, behind) = rest.split_at(index + 3);
        let end = behind.find(|c: char| c.is_whitespace() || "\"',".contains(c)).unwrap_or(behind.len());
        let (url, after) = behind.split_at(end);
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        shown.push_str(before);
        match address.rfind('@') {
            Some(index) => shown.push_str(&format!("***{}", &address[index..])),
            None => shown.push_str(address),
        }
        shown.push_str(if query.contains('=') || query.contains('@') { "?***" } else { &url[address.len()..] });
        rest = after;
    }
    shown + rest
}
