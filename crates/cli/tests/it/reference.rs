//! Pages of `docs/reference` that the code makes. Each test compares its page with the text that it makes, and
//! `TICKPATH_BLESS=1 cargo test -p tickpath-cli --test it reference` writes the pages.

use std::path::{Path, PathBuf};
use std::{env, fs};

mod codes;
mod command_line;
mod crates;
mod header;
mod messages;
mod metrics;
mod settings;
mod urls;

/// First line of each page.
const MARK: &str =
    "<!-- Made by crates/cli/tests/it/reference: TICKPATH_BLESS=1 cargo test -p tickpath-cli --test it reference -->";

/// Compares a page with its made text. With `TICKPATH_BLESS` it writes the page first.
fn check_page(name: &str, made: &str) {
    let path = root().join("docs/reference").join(name);
    let made = format!("{MARK}\n\n{}\n", made.trim());
    if env::var_os("TICKPATH_BLESS").is_some() {
        fs::write(&path, &made).expect("the page can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let first = (1..).zip(made.lines().zip(kept.lines())).find(|(_, (made, kept))| made != kept);
    let remedy = "make it anew: TICKPATH_BLESS=1 cargo test -p tickpath-cli --test it reference";
    assert!(
        made == kept,
        "docs/reference/{name} differs from the code, first (line, made, kept) at {first:?}; {remedy}"
    );
}

/// Reads a file of the repository.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a text for a cell of a table: on one line, with its bars escaped.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
