//! Names of runs: titles within a file, labels within a chart, both as short as distinct names can be.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::quantity::{duration, figure, size};
use tickpath_lab_result::{ResultFile, Run, RunPhase, short_name};

/// Titles that distinguish the runs of a file with as few words as possible.
pub(super) struct RunTitles {
    settings: Vec<String>,
    columns: Vec<usize>,
    repeated: bool,
}

impl RunTitles {
    pub(super) fn of(result: &ResultFile) -> Self {
        let runs: Vec<&Run> = result.runs.iter().collect();
        let settings = settings_of(&runs);
        let rows: Vec<TitleRow> = runs.iter().map(|run| row(run, &settings)).collect();
        let repeated = runs.iter().any(|run| run.repeat > 1);
        Self { columns: distinguishing_columns(&rows, LEADING_COLUMNS), settings, repeated }
    }

    /// Returns the title of a run; repeats of the same setting share it.
    pub(super) fn title(&self, run: &Run) -> String {
        join_words(&row(run, &self.settings), &self.columns, " · ")
    }

    /// Returns the title of a run, with its repetition if runs repeat.
    pub(super) fn numbered(&self, run: &Run) -> String {
        let title = self.title(run);
        if self.repeated { format!("{title} · #{}", run.repeat) } else { title }
    }

    /// Returns the first run of each title, in the order of the file.
    pub(super) fn first_runs<'a>(&self, result: &'a ResultFile) -> Vec<&'a Run> {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut firsts: Vec<&Run> = Vec::new();
        for run in &result.runs {
            let index = *places.entry(self.title(run)).or_insert(firsts.len());
            match firsts.get_mut(index) {
                // An invalid run is not quoted if a valid run of the same kind exists.
                Some(first) if run.valid && !first.valid => *first = run,
                Some(_) => {}
                None => firsts.push(run),
            }
        }
        firsts
    }
}

/// Returns a label for each of these runs: words for their differences, or the target's short name without any.
pub(super) fn labels(runs: &[&Run]) -> Vec<String> {
    let settings = settings_of(runs);
    distinct_labels(runs, runs.iter().map(|run| row(run, &settings)).collect(), TARGET)
}

/// Returns labels for which only target, client and these settings count; the client's name without any difference.
pub(super) fn labels_by(runs: &[&Run], settings: &[&str]) -> Vec<String> {
    let settings: Vec<String> = settings.iter().map(|name| (*name).to_owned()).collect();
    let counted = |run: &&Run| {
        let mut row = row(run, &settings);
        row[BATCH] = None;
        row
    };
    distinct_labels(runs, runs.iter().map(counted).collect(), CLIENT)
}

/// Groups items by key, in the order of each key's first item.
pub(super) fn grouped<T, K: PartialEq>(
    things: impl IntoIterator<Item = T>,
    key_of: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for thing in things {
        let key = key_of(&thing);
        match groups.iter().position(|(known, _)| *known == key) {
            Some(index) => groups[index].1.push(thing),
            None => groups.push((key, vec![thing])),
        }
    }
    groups
}

/// Returns the phase, with the length of the idle period.
pub(super) fn phase(run: &Run) -> String {
    let idle_ns = run.params.number(IDLE).filter(|_| run.phase == RunPhase::Idle);
    idle_ns.map_or_else(|| run.phase.name().to_owned(), |ns| format!("idle {}", duration(ns)))
}

/// A function that formats a number.
type NumberFormat = fn(f64) -> String;

/// Formats a setting: `rate 10 000/s`, `size 1 KiB`, `wait busy`.
pub(super) fn setting(name: &str, value: &Value) -> String {
    let units: [(&str, NumberFormat); 4] = [
        ("_ns", duration),
        ("_ms", |ms| duration(ms * 1e6)),
        ("_per_s", |rate| figure("_per_s", rate)),
        ("_bytes", size),
    ];
    let unit = units.into_iter().find_map(|(ending, print)| Some((name.strip_suffix(ending)?, print)));
    let label = unit.map_or(name, |(stem, _)| stem).replace('_', " ");
    let text = match (unit, value.as_f64()) {
        (Some((_, print)), Some(number)) => print(number),
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    };
    format!("{label} {text}")
}

/// The words for a run, in the order of the columns: its identity, then its settings; `None` where it lacks a word.
type TitleRow = Vec<Option<String>>;

/// The number of leading columns in every title: target, client, phase and layout.
const LEADING_COLUMNS: usize = 4;
const TARGET: usize = 0;
const CLIENT: usize = 1;
const BATCH: usize = 4;

/// The setting that is part of the phase.
const IDLE: &str = "idle_ns";

/// Settings that appear only where no other setting distinguishes runs, the last ones least.
const WEAK_SETTINGS: [&str; 10] = [
    "generator_wait",
    "rate_per_s",
    "count",
    "orders",
    "cpus",
    "seed",
    "interval_ns",
    "measured_rtt_ns",
    "encoding",
    "threads",
];

fn row(run: &Run, settings: &[String]) -> TitleRow {
    let batch = match &run.batch {
        Some(Value::String(name)) => Some(name.clone()),
        Some(number) => Some(format!("batch {number}")),
        None => None,
    };
    let own = [Some(run.target.clone()), Some(run.client.clone()), Some(phase(run)), run.layout.clone(), batch];
    let own = own.map(|word| word.filter(|word| !word.is_empty()));
    let settings = settings.iter().map(|name| Some(setting(name, run.params.0.get(name)?)));
    own.into_iter().chain(settings).collect()
}

/// Returns the names of all settings but the phase's, the weak ones last.
fn settings_of(runs: &[&Run]) -> Vec<String> {
    let names: BTreeSet<&str> = runs.iter().flat_map(|run| run.params.0.keys()).map(String::as_str).collect();
    let mut names: Vec<String> = names.into_iter().filter(|name| *name != IDLE).map(str::to_owned).collect();
    names.sort_by_key(|name| WEAK_SETTINGS.iter().position(|weak| *weak == name.as_str()).map_or(0, |index| index + 1));
    names
}

/// Returns the columns that distinguish rows, beside the leading columns: from the last column on, columns that add no
/// distinction are dropped.
fn distinguishing_columns(rows: &[TitleRow], always: usize) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    let differs = |column: usize| {
        // A run without the setting does not make it differ.
        let mut values = rows.iter().filter_map(|row| row[column].as_ref());
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let mut kept: Vec<usize> = (0..columns).filter(|column| *column < always || differs(*column)).collect();
    let all = distinct_rows(rows, &kept);
    for candidate in (always..columns).rev() {
        let others: Vec<usize> = kept.iter().copied().filter(|column| *column != candidate).collect();
        if distinct_rows(rows, &others) == all {
            kept = others;
        }
    }
    kept
}

/// Returns the number of distinct rows in these columns.
fn distinct_rows(rows: &[TitleRow], columns: &[usize]) -> usize {
    let words = |row: &TitleRow| columns.iter().map(|column| row[*column].clone()).collect::<TitleRow>();
    rows.iter().map(words).collect::<BTreeSet<TitleRow>>().len()
}

/// Returns labels of the differences, or of the column `alone` without any.
fn distinct_labels(runs: &[&Run], mut rows: Vec<TitleRow>, alone: usize) -> Vec<String> {
    let urls: BTreeSet<&str> = runs.iter().map(|run| run.target.as_str()).collect();
    let names: BTreeSet<String> = urls.iter().map(|url| short_name(url)).collect();
    if names.len() == urls.len() {
        for (row, run) in rows.iter_mut().zip(runs) {
            row[TARGET] = Some(short_name(&run.target));
        }
    }
    let mut columns = distinguishing_columns(&rows, 0);
    if columns.is_empty() {
        columns.push(alone);
    }
    let label = |row: &TitleRow| Some(join_words(row, &columns, ", ")).filter(|label| !label.trim().is_empty());
    rows.iter().map(|row| label(row).unwrap_or_else(|| "run".to_owned())).collect()
}

fn join_words(row: &[Option<String>], columns: &[usize], between: &str) -> String {
    let parts: Vec<&str> = columns.iter().filter_map(|column| row[*column].as_deref()).collect();
    parts.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(target: &str, client: &str, params: &[(&str, Value)]) -> Run {
        let mut run = Run { target: target.to_owned(), client: client.to_owned(), repeat: 1, ..Run::default() };
        params.iter().for_each(|(name, value)| run.params.set(name, value.clone()));
        run
    }

    #[test]
    fn labels_contain_only_the_differences() {
        let check = |runs: &[Run], expected: &[&str]| {
            assert_eq!(labels(&runs.iter().collect::<Vec<_>>()), expected);
        };
        check(&[run("shm://", "rust", &[])], &["log"]);
        check(&[run("", "", &[])], &["run"]);
        check(&[run("shm://", "rust", &[]), run("redis://h:1", "rust", &[])], &["log", "redis"]);
        check(&[run("redis://h:1", "", &[]), run("redis://h:2", "", &[])], &["redis://h:1", "redis://h:2"]);
        // The rate follows from the wait mode, and adds no distinction.
        let [rate, wait] = ["rate_per_s", "wait"];
        let busy = run("shm://", "rust", &[(rate, 20_000.into()), (wait, "busy".into())]);
        let block = run("shm://", "rust", &[(rate, 2_000.into()), (wait, "block".into())]);
        check(&[busy.clone(), block], &["wait busy", "wait block"]);
        let slow = run("shm://", "rust", &[(rate, 100.into()), (wait, "busy".into())]);
        check(&[busy, slow], &["rate 20\u{202f}000/s", "rate 100/s"]);
    }

    #[test]
    fn settings_have_units() {
        for (name, value, words) in [
            ("size_bytes", Value::from(65_536), "size 64 KiB"),
            ("rtt_ms", Value::from(0.3), "rtt 300 µs"),
            ("rate_per_s", Value::from("max"), "rate max"),
            ("wait", Value::from("busy"), "wait busy"),
            ("pull", Value::from(100), "pull 100"),
        ] {
            assert_eq!(setting(name, &value), words);
        }
    }

    #[test]
    fn repeats_share_a_title_and_a_valid_run_represents_them() {
        let mut result = ResultFile::new("pubsub", "", "");
        let bad = run("shm://", "rust", &[]);
        let good = Run { repeat: 2, valid: true, ..bad.clone() };
        result.runs = vec![bad, good, run("redis://h:1", "rust", &[])];
        let titles = RunTitles::of(&result);
        let firsts = titles.first_runs(&result);
        assert_eq!(
            firsts.iter().map(|run| titles.numbered(run)).collect::<Vec<_>>(),
            ["shm:// · rust · steady · #2", "redis://h:1 · rust · steady · #1"]
        );
    }
}
