//! The pages of `oms.toml` and `exchange.toml`: the keys that the code reads, which its errors list, and the commented
//! files that `init` writes.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tickpath_oms_server::settings::{
    Settings as OmsSettings, Users, account_columns, instrument_columns, symbol_columns,
};
use tickpath_venue_sim::Settings as VenueSettings;

use super::{check_page, read};

/// Key that no file has. The error about an unknown key lists the known ones, unless one of them is similar.
const UNKNOWN: &str = "zzzzzzzzzzzz";

const OMS_FILES: &str = "crates/oms-server/src/settings";

const OMS_HEAD: &str = "\
# oms.toml

The settings of an OMS. `tickpath oms init` writes this file and the files that it names, and `tickpath oms --check`
reports every mistake in them with its line. [The OMS](../oms.md) describes how the OMS uses them.
";

const EXCHANGE_HEAD: &str = "\
# exchange.toml

The settings of the simulated exchange. `tickpath exchange init` writes this file, and `tickpath exchange --check`
reports every mistake in it with its line.
";

const KEYS: &str = "\
## Keys

The keys that the code reads, section by section. A key in **bold** is required, unless the comments below state when
it can be left out.
";

/// Section of a settings file.
struct KeySection {
    /// Lines that open the section in a file; empty at the top.
    opening: String,
    keys: Vec<String>,
    required: Vec<String>,
}

#[test]
fn the_page_of_oms_toml_has_every_key() {
    let sections = sections_of(|text| mistakes_of("oms.toml", text, OmsSettings::read));
    let users = sections_of(|text| mistakes_of("users.toml", text, Users::read));
    let [oms_file, users_file] = ["oms.toml", "users.toml"].map(|name| read(&format!("{OMS_FILES}/{name}")));
    check_described(&sections, &oms_file);
    check_described(&users, &users_file);

    let mut page = format!("{OMS_HEAD}\n{KEYS}\n{}", keys_table(&sections));
    page += &format!("\n## oms.toml, as init writes it\n\n```toml\n{oms_file}```\n");
    page += &format!("\n## users.toml\n\n{}\n```toml\n{users_file}```\n", keys_table(&users));
    add_table(&mut page, "instruments.csv", instrument_columns());
    add_table(&mut page, "accounts.csv", account_columns());
    add_table(&mut page, "symbols.csv", symbol_columns());
    check_page("oms-toml.md", &page);
}

#[test]
fn the_page_of_exchange_toml_has_every_key() {
    let sections = sections_of(|text| mistakes_of("exchange.toml", text, VenueSettings::read));
    let file = read("crates/venue-sim/src/settings/exchange.toml");
    check_described(&sections, &file);
    let keys = keys_table(&sections);
    let file = format!("## exchange.toml, as init writes it\n\n```toml\n{file}```");
    check_page("exchange-toml.md", &format!("{EXCHANGE_HEAD}\n{KEYS}\n{keys}\n{file}"));
}

/// Writes a text to a file of this name, and returns its mistakes.
fn mistakes_of<T, E: ToString>(name: &str, text: &str, read: impl Fn(&Path) -> Result<T, E>) -> String {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let file = folder.path().join(name);
    fs::write(&file, text).expect("the file can be written");
    read(&file).err().map(|mistakes| mistakes.to_string()).unwrap_or_default()
}

/// Finds all sections of a kind of file, given a function that returns the mistakes of a text. The mistake of an
/// unknown key lists the known keys, and the mistake of a number in place of a section shows how it is written.
fn sections_of(mistakes: impl Fn(&str) -> String) -> Vec<KeySection> {
    let mut found = Vec::new();
    // The opening lines of a section, its path in the file, and its title in errors.
    let mut open = VecDeque::from([(String::new(), String::new(), String::new())]);
    while let Some((opening, path, title)) = open.pop_front() {
        let text = mistakes(&format!("{opening}{UNKNOWN} = 1\n"));
        let keys = known_keys(&text, &title);
        let is_required = |key: &&String| text.contains(&format!(": {title}'{key}' is missing"));
        let required: Vec<String> = keys.iter().filter(is_required).cloned().collect();
        let numbers: String = keys.iter().map(|key| format!("{key} = 1\n")).collect();
        let text = mistakes(&format!("{opening}{numbers}"));
        for key in &keys {
            let inner = format!("{path}{key}");
            if text.contains(&format!("written as [[{key}]]")) {
                open.push_back((format!("{opening}[[{inner}]]\n"), format!("{inner}."), format!("[[{key}]] ")));
            } else if text.contains(&format!("written as [{key}]")) {
                open.push_back((format!("{opening}[{inner}]\n"), format!("{inner}."), format!("[{key}] ")));
            }
        }
        found.push(KeySection { opening, keys, required });
    }
    found
}

/// Returns the keys of a section, from the mistake about the unknown one.
fn known_keys(text: &str, title: &str) -> Vec<String> {
    let mark = format!(": {title}unknown key '{UNKNOWN}'; known here: ");
    let listed = text.lines().find_map(|line| line.split_once(mark.as_str()));
    let (_, keys) = listed.unwrap_or_else(|| panic!("no mistake lists the keys of '{title}':\n{text}"));
    keys.split(", ").map(str::to_owned).collect()
}

/// Checks that the commented file names every key.
fn check_described(sections: &[KeySection], file: &str) {
    let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_named = |key: &&String| file.split(|c: char| !is_in_word(c)).any(|word| word == key.as_str());
    let missing: Vec<&String> =
        sections.iter().flat_map(|section| &section.keys).filter(|key| !is_named(key)).collect();
    assert!(missing.is_empty(), "the file that init writes does not name {missing:?}; describe them in a comment");
}

fn keys_table(sections: &[KeySection]) -> String {
    let mut table = "| section | keys |\n|---|---|\n".to_owned();
    for section in sections {
        let title = section.opening.lines().last().map_or("the top".to_owned(), |line| format!("`{line}`"));
        let marked =
            |key: &String| if section.required.contains(key) { format!("**`{key}`**") } else { format!("`{key}`") };
        let keys: Vec<String> = section.keys.iter().map(marked).collect();
        table += &format!("| {title} | {} |\n", keys.join(", "));
    }
    table
}

/// Adds a table that `oms.toml` names: its columns, and the file that `init` writes.
fn add_table(page: &mut String, name: &str, columns: impl Iterator<Item = &'static str>) {
    let columns: Vec<String> = columns.map(|column| format!("`{column}`")).collect();
    let file = read(&format!("{OMS_FILES}/{name}"));
    *page += &format!("\n## {name}\n\nColumns: {}.\n\n```text\n{file}```\n", columns.join(", "));
}
