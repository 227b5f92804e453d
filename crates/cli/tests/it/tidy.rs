//! Rules of the repository: dependencies point down, of crates and of files, the map names existing files, files stay
//! short, and every command on a page exists. A rule without a check drifts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toml::{Table, Value};

mod cycles;
mod notes;
mod prose;

/// The rows of the workspace, top first. A crate uses only crates of rows below its own.
const ROWS: &[(&str, &[&str])] = &[
    ("roots", &["cli", "python", "capi"]),
    ("commands", &["cli-exchanges"]),
    ("terminal", &["cli-terminal"]),
    ("advice", &["lab-explain", "lab-doctor", "lab-check"]),
    ("marketplace", &["lab-exchange"]),
    ("workloads", &["lab-bus", "lab-path", "lab-redis"]),
    ("tools", &["lab-tools"]),
    ("comparison", &["lab-compare"]),
    ("measuring", &["lab-harness", "lab-report"]),
    ("result", &["lab-result"]),
    ("services", &["oms-server", "oms-web", "venue-sim-okx", "venue-sim-binance"]),
    ("tables", &["oms-blotter", "venue-sim-web"]),
    ("engines", &["oms-runtime", "venue-sim", "oms-client", "relay"]),
    ("facade", &["bus", "exchanges"]),
    ("adapters", &["bus-log", "bus-redis", "bus-nats", "bus-amqp", "bus-kafka"]),
    ("venues", &["venue-native", "venue-okx", "venue-binance", "feed-okx", "feed-binance"]),
    ("text", &["oms-text"]),
    ("files", &["oms-journal", "recordings"]),
    ("cores", &["bus-api", "oms-core", "oms-protocol", "venue", "feed", "fix"]),
    ("records", &["oms-records"]),
    ("foundation", &["log", "oms-risk", "web-client"]),
    ("primitives", &["clock", "market", "settings", "oms-slots", "tls", "json-scan"]),
];

const ADAPTERS: &[&str] = &["bus-log", "bus-redis", "bus-nats", "bus-amqp", "bus-kafka"];

/// Crates that a crate never uses although they stand below, with the reason.
const NEVER: &[(&str, &[&str], &str)] = &[
    ("lab-harness", ADAPTERS, "the harness knows no single transport"),
    ("lab-bus", ADAPTERS, "a workload knows no single transport"),
    ("lab-path", ADAPTERS, "a workload knows no single transport"),
    ("relay", ADAPTERS, "a relay knows no single transport"),
    ("lab-doctor", ADAPTERS, "what is known of a server comes by the contract"),
    ("lab-harness", &["oms-runtime", "oms-journal", "oms-core", "oms-server"], "the harness knows no workload's parts"),
    ("lab-report", &["log", "bus-api", "oms-core"], "a rendering knows its result alone"),
    ("venue-sim", &["oms-journal", "oms-core", "oms-records", "oms-risk"], "a venue does not know its client's OMS"),
    ("bus-api", &["log"], "the contract knows no transport"),
    ("oms-core", &["log", "clock"], "the core does no I/O and reads no clock"),
    ("oms-risk", &["clock"], "the checks read no clock"),
    (
        "oms-client",
        &["oms-runtime", "oms-journal", "oms-core", "oms-records", "oms-risk", "venue-sim"],
        "a client knows its OMS by what it says",
    ),
    ("oms-protocol", &["log", "clock"], "the protocol does no I/O and reads no clock"),
    ("oms-text", &["log"], "the text of a message does no I/O"),
];

/// Files that may be longer: tables, and tests that are one list of cases.
const LONG_FILES: &[&str] = &[];
/// Max lines of a file.
const MAX_LINES: usize = 600;

/// Max lines of a crate's source without its tests.
const MAX_CRATE_LINES: usize = 8_000;

/// Folders whose code the compiler cannot check: the memory that processes share, the counter and the scheduler,
/// arguments from C, and one call of a client library.
const UNCHECKED: [&str; 4] = ["crates/log/", "crates/clock/", "crates/capi/src/", "crates/bus-kafka/src/brokers.rs"];

// Spelled in parts, because this file is checked too.
const UNSAFE: &str = concat!("un", "safe");
const PROMISES: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const STUBS: [&str; 2] = [concat!("to", "do!("), concat!("unimple", "mented!(")];
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

#[test]
fn dependencies_point_down() {
    let mut wrong = Vec::new();
    for (name, manifest) in crates() {
        let Some(row) = row_of(&name) else {
            wrong.push(format!("crates/{name} stands in no row; give it one here, and in ARCHITECTURE.md with a line"));
            continue;
        };
        for used in uses(&manifest, &["dependencies", "build-dependencies"]) {
            if row_of(&used).is_none_or(|other| other <= row) {
                wrong.push(format!("{name} uses {used}, which does not stand below it"));
            }
            let banned = NEVER.iter().filter(|(user, never, _)| *user == name && never.contains(&used.as_str()));
            wrong.extend(banned.map(|(_, _, why)| format!("{name} uses {used}, but {why}")));
        }
        // A test may use a real counterpart in the same row, never a crate above.
        for used in uses(&manifest, &["dev-dependencies"]) {
            if row_of(&used).is_none_or(|other| other < row) {
                wrong.push(format!("the tests of {name} use {used}, which stands above it"));
            }
        }
    }
    check(wrong);
}

#[test]
fn every_folder_is_a_member_with_its_own_name() {
    let workspace = manifest("Cargo.toml");
    let members = workspace["workspace"]["members"].as_array().expect("members is a list");
    let members: BTreeSet<&str> = members.iter().filter_map(|m| m.as_str()?.strip_prefix("crates/")).collect();
    let mut wrong = Vec::new();
    for (name, manifest) in crates() {
        if !members.contains("*") && !members.contains(name.as_str()) {
            wrong.push(format!("crates/{name} is no member of the workspace; add it to Cargo.toml"));
        }
        let package = manifest["package"]["name"].as_str().unwrap_or_default();
        if package != format!("tickpath-{name}") {
            wrong.push(format!("crates/{name} calls itself '{package}'; name it tickpath-{name}"));
        }
    }
    check(wrong);
}

#[test]
fn the_map_names_every_crate_in_its_row() {
    let map = read("ARCHITECTURE.md");
    let folders: BTreeSet<String> = crates().into_iter().map(|(name, _)| name).collect();
    let section = map.lines().skip_while(|line| *line != "## Crates").skip(1);
    let items = section.take_while(|line| !line.starts_with("## ")).filter_map(|line| line.strip_prefix("* `"));
    let mut described: Vec<&str> = items.filter_map(|item| Some(item.split_once("`: ")?.0)).collect();
    described.sort_unstable();
    let expected: Vec<&str> = folders.iter().map(String::as_str).collect();
    assert_eq!(described, expected, "left: the lines of ARCHITECTURE.md under 'Crates', right: the folders");
    for (row, names) in ROWS {
        let here: BTreeSet<&str> = names.iter().copied().filter(|name| folders.contains(*name)).collect();
        assert_eq!(drawn(&map, row), here, "left: the row '{row}' of ARCHITECTURE.md, right: the folders");
    }
}

#[test]
fn files_stay_short() {
    let code =
        |path: &String| ["rs", "py", "go", "css", "html", "sh"].iter().any(|end| path.ends_with(&format!(".{end}")));
    let mut wrong = Vec::new();
    for path in files().iter().filter(|path| code(path) && !LONG_FILES.contains(&path.as_str())) {
        let lines = read(path).lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("{path} has {lines} lines; split it by idea, {MAX_LINES} is the limit"));
        }
    }
    check(wrong);
}

#[test]
fn crates_stay_small() {
    let mut wrong = Vec::new();
    for (name, _) in crates() {
        let source = format!("crates/{name}/src/");
        let is_source = |path: &String| path.starts_with(&source) && path.ends_with(".rs") && !is_tests(path);
        let sources = files().into_iter().filter(is_source);
        let lines: usize = sources.map(|path| code_lines(&read(&path))).sum();
        if lines > MAX_CRATE_LINES {
            wrong.push(format!("crates/{name} has {lines} lines; split it, {MAX_CRATE_LINES} is the limit"));
        }
    }
    check(wrong);
}

/// Returns whether a file holds only unit tests of its crate, or models.
fn is_tests(path: &str) -> bool {
    path.ends_with("_tests.rs") || path.ends_with("/loom.rs") || path.contains("/loom/")
}

/// Returns the number of lines before a file's own tests.
fn code_lines(text: &str) -> usize {
    text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

#[test]
fn unchecked_code_stays_in_its_crates() {
    let elsewhere = |path: &String| path.ends_with(".rs") && !UNCHECKED.iter().any(|place| path.starts_with(*place));
    let mut wrong = Vec::new();
    for path in files().iter().filter(|path| elsewhere(path)) {
        for (number, line) in (1..).zip(read(path).lines()) {
            let code = line.split("//").next().unwrap_or_default();
            if has_word(code, UNSAFE) {
                wrong.push(format!("{path}:{number}: {UNSAFE} code belongs into {UNCHECKED:?} only"));
            }
        }
    }
    check(wrong);
}

#[test]
fn files_promise_nothing_and_name_no_machine() {
    let mut wrong = Vec::new();
    for path in files() {
        let Ok(text) = String::from_utf8(fs::read(root().join(&path)).expect("a listed file can be read")) else {
            continue;
        };
        for (number, line) in (1..).zip(text.lines()) {
            if PROMISES.iter().any(|word| has_word(line, word)) || STUBS.iter().any(|stub| line.contains(*stub)) {
                wrong.push(format!("{path}:{number}: a promise; do it, or leave it out"));
            }
            if let Some(place) = MACHINE_PATHS.iter().find(|place| line.contains(**place)) {
                wrong.push(format!("{path}:{number}: {place} is on one machine; name it relative to the repository"));
            }
        }
    }
    check(wrong);
}

#[test]
fn every_command_on_a_page_exists() {
    let pages: Vec<String> = files().into_iter().filter(|path| path.ends_with(".md")).collect();
    assert!(pages.iter().any(|page| page == "README.md"), "there is no README.md");
    let makefile = read("Makefile");
    let (mut wrong, mut known) = (Vec::new(), BTreeSet::new());
    for page in pages {
        let text = read(&page);
        for target in first_arguments(&text, "make").filter(|target| !is_target(&makefile, target)) {
            wrong.push(format!("{page}: `make {target}` is no target of the Makefile"));
        }
        for subcommand in first_arguments(&text, "tickpath") {
            if !known.contains(subcommand) && !has_subcommand(subcommand) {
                wrong.push(format!("{page}: `tickpath {subcommand}` is no command"));
            }
            known.insert(subcommand.to_owned());
        }
    }
    check(wrong);
}

/// Fails with every place that breaks the rule, one per line.
fn check(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Returns the folders of `crates/` with their manifests, by name.
fn crates() -> Vec<(String, Table)> {
    let mut found: Vec<(String, Table)> = fs::read_dir(root().join("crates"))
        .expect("the folder crates/ is here")
        .map(|entry| entry.expect("crates/ can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| root().join("crates").join(name).join("Cargo.toml").is_file())
        .map(|name| (name.clone(), manifest(&format!("crates/{name}/Cargo.toml"))))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Returns the crates of this workspace that a manifest names, in any table of dependencies.
fn uses(manifest: &Table, kinds: &[&str]) -> BTreeSet<String> {
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
        tables.extend(targets.iter().filter_map(|(_, target)| target.as_table()));
    }
    let mut used = BTreeSet::new();
    for dependencies in
        tables.iter().flat_map(|table| kinds.iter().filter_map(move |kind| table.get(*kind)?.as_table()))
    {
        for (key, value) in dependencies {
            let package = value.get("package").and_then(Value::as_str).unwrap_or(key.as_str());
            used.extend(package.strip_prefix("tickpath-").map(str::to_owned));
        }
    }
    used
}

fn row_of(name: &str) -> Option<usize> {
    ROWS.iter().position(|(_, names)| names.contains(&name))
}

/// Returns the crates that the map draws in a row: the words behind its name, as far as they are names of crates.
fn drawn<'a>(map: &'a str, row: &str) -> BTreeSet<&'a str> {
    let line = map.lines().find(|line| line.starts_with("    ") && line.split_whitespace().next() == Some(row));
    line.unwrap_or_default().split_whitespace().skip(1).take_while(|word| row_of(word).is_some()).collect()
}

/// Returns the first argument, where it is a plain word, of each call of `program` in a page's code.
fn first_arguments<'a>(page: &'a str, program: &'a str) -> impl Iterator<Item = &'a str> {
    let plain = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let commands = code_of(page).into_iter().flat_map(|code| code.split(['&', ';', '|', '#']));
    commands.filter_map(move |command| {
        let mut words = command.split_whitespace().skip_while(|word| *word == "$" || word.contains('='));
        words.next().filter(|name| name.rsplit('/').next() == Some(program))?;
        words.find(|word| !word.starts_with('-') && !word.contains('=')).filter(plain)
    })
}

/// Returns the code on a page: the lines of its blocks, and the text between backticks in its sentences.
fn code_of(page: &str) -> Vec<&str> {
    let (mut code, mut fenced) = (Vec::new(), false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            code.push(line);
        } else {
            code.extend(line.split('`').skip(1).step_by(2));
        }
    }
    code
}

fn is_target(makefile: &str, name: &str) -> bool {
    let rules = makefile.lines().filter_map(|line| line.split_once(':')).filter(|(_, rest)| !rest.starts_with('='));
    let mut targets = rules.map(|(target, _)| target);
    targets.any(|target| match target.split_once('%') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => target == name,
    })
}

fn has_subcommand(name: &str) -> bool {
    let mut tickpath = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    let output = tickpath.args([name, "--help"]).stdin(Stdio::null()).output().expect("tickpath starts");
    output.status.success()
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

/// Returns the files of the repository, relative to its root: tracked or untracked in git, or, without git, all files.
fn files() -> Vec<String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let listed = match git.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => String::new(),
    };
    let listed: Vec<String> =
        listed.split('\0').filter(|path| root().join(path).is_file()).map(str::to_owned).collect();
    if listed.is_empty() { walk() } else { listed }
}

fn walk() -> Vec<String> {
    let made = [".git", "target", "dist", "results", "corpus", "artifacts"];
    let (mut folders, mut files) = (vec![PathBuf::new()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder of the repository can be read") {
            let name = entry.expect("a folder of the repository can be read").file_name();
            let path = folder.join(&name);
            if root().join(&path).is_file() {
                files.push(path.to_string_lossy().into_owned());
            } else if root().join(&path).is_dir() && !made.contains(&name.to_string_lossy().as_ref()) {
                folders.push(path);
            }
        }
    }
    files
}

fn manifest(path: &str) -> Table {
    toml::from_str(&read(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
