//! Functions and filters of templates over result files.
//!
//! | in a template                                         | result                                                   |
//! |-------------------------------------------------------|----------------------------------------------------------|
//! | `figure(FILE, PATH, KEY=VALUE, …)`                    | the figure at PATH of each run whose keys or params have |
//! |                                                       | these values: one, or the lowest to the highest          |
//! | `.median`                                             | of a figure                                              |
//! | `ratio(A, B)`                                         | A divided by B; each a figure or a number                |
//! | `comparison(FILE, NAME)`                              | a ratio of the file with its interval                    |
//! | `sentence(FILE, WORDS)`                               | the finding of the file that begins with these words     |
//! | `file(FILE)`, `command(FILE)`                         | the file itself, and the command that made it            |
//! | `left_out(FILE)`                                      | the number of invalid runs, and the first one's note     |
//! | `ns`, `two`, `unit(UNIT)`                             | filters: a time, two digits, or the format of UNIT       |
//!
//! In PATH, `stages.NAME` and `actors.NAME` are found by name. Invalid runs count only if there is no valid run; their
//! figure is marked †. A figure that covers only a part of the runs that have it states their number.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, Serde, Value};
use minijinja::{Environment, Error, ErrorKind};
use serde_json::Value as Json;
use tickpath_lab_report::figure as shown;
use tickpath_lab_result::{ResultFile, short_name};

use crate::results::PageResults;

/// Registers the functions and filters.
pub fn register(environment: &mut Environment<'_>, results: PageResults) {
    let results = Arc::new(results);
    let files = Arc::clone(&results);
    environment.add_function("figure", move |file: String, path: String, keys: Kwargs| {
        Figure::find(get(&files, &file)?, &path, &keys).map(Value::from_object)
    });
    let files = Arc::clone(&results);
    environment.add_function("comparison", move |file: String, name: String| interval(get(&files, &file)?, &name));
    let files = Arc::clone(&results);
    environment.add_function("left_out", move |file: String| {
        let result = get(&files, &file)?;
        let invalid = result.runs.iter().filter(|run| !run.valid).collect::<Vec<_>>();
        Ok::<_, Error>(match invalid.first().and_then(|run| run.notes.first()) {
            None if invalid.is_empty() => format!("All {} runs kept the rules.", result.runs.len()),
            why => {
                let why = why.map_or(String::new(), |why| format!(", the first because {why}"));
                format!("{} of {} runs broke a rule and are left out{why}.", invalid.len(), result.runs.len())
            }
        })
    });
    let files = Arc::clone(&results);
    environment.add_function("sentence", move |file: String, begin: String| {
        let found = get(&files, &file)?.findings.iter().find(|found| found.starts_with(&begin));
        found.cloned().ok_or_else(|| wrong(format!("{file} finds nothing that begins with '{begin}'")))
    });
    let files = Arc::clone(&results);
    environment.add_function("file", move |file: String| Ok::<_, Error>(Value::from(Serde(get(&files, &file)?))));
    environment.add_function("command", move |file: String| {
        let args = get(&results, &file)?.command.split(' ').collect::<Vec<_>>();
        let outputs = ["--json", "--html"];
        let is_output =
            |i: usize| outputs.contains(&args[i]) || i > 0 && outputs.contains(&args[i - 1]) || args[i] == "--quiet";
        let left: Vec<&str> = (0..args.len()).filter(|&i| !is_output(i)).map(|i| args[i]).collect();
        Ok::<_, Error>(left.join(" "))
    });
    environment.add_function("ratio", |a: Value, b: Value| {
        let (a, b) = (Figure::of(&a)?, Figure::of(&b)?);
        let (low, high) = (a.low / b.high, a.high / b.low);
        Ok::<_, Error>(Value::from_object(Figure {
            unit: "_ratio".to_owned(),
            low,
            high,
            median: a.median / b.median,
            mark: if a.mark == b.mark { a.mark } else { a.mark + &b.mark },
        }))
    });
    environment.add_filter("ns", |value: f64| shown("_ns", value));
    environment.add_filter("two", |value: f64| two(value));
    environment.add_filter("unit", |value: f64, unit: String| match unit.as_str() {
        "ns" => shown("_ns", value),
        "per_s" => rate(value),
        _ => format!("{} times", two(value)),
    });
}

fn get<'a>(results: &'a PageResults, name: &str) -> Result<&'a ResultFile, Error> {
    results.get(name).map_err(|e| wrong(e.to_string()))
}

fn wrong(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

/// A figure over the runs that have it.
#[derive(Debug, Clone)]
struct Figure {
    /// The last part of its path, whose ending is its unit.
    unit: String,
    low: f64,
    high: f64,
    median: f64,
    /// The mark behind it if some runs broke the rules.
    mark: String,
}

impl Figure {
    fn find(result: &ResultFile, path: &str, keys: &Kwargs) -> Result<Self, Error> {
        let runs = serde_json::to_value(&result.runs).map_err(|e| wrong(e.to_string()))?;
        let names: Vec<&str> = keys.args().collect();
        let mut wanted = Vec::with_capacity(names.len());
        for name in names {
            wanted.push((name.to_owned(), keys.get::<Value>(name)?.to_string()));
        }
        let is_wanted = |run: &&Json| wanted.iter().all(|(key, value)| has(run, key, value));
        let mut found: Vec<(bool, f64)> = Vec::new();
        for run in runs.as_array().into_iter().flatten().filter(is_wanted) {
            let value = path.split('.').try_fold(run, step).and_then(Json::as_f64);
            found.extend(value.map(|value| (run["valid"] == true, value)));
        }
        let (all, valid) = (found.len(), found.iter().filter(|(valid, _)| *valid).count());
        let mark = match valid {
            0 => " †".to_owned(),
            _ if valid == all => String::new(),
            _ => format!(" ({valid} of {all} runs valid)"),
        };
        let counts = |(is_valid, _): &&(bool, f64)| *is_valid == (valid > 0);
        let mut values: Vec<f64> = found.iter().filter(counts).map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else {
            return Err(wrong(format!("no run of {} with {wanted:?} has {path}", result.command)));
        };
        let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
        let unit = path.rsplit('.').next().unwrap_or_default().to_owned();
        Ok(Self { unit, low, high, median, mark })
    }

    /// Returns a figure, or a number as a figure.
    fn of(value: &Value) -> Result<Self, Error> {
        if let Some(figure) = value.downcast_object_ref::<Self>() {
            return Ok(figure.clone());
        }
        let number = f64::try_from(value.clone())?;
        Ok(Self { unit: String::new(), low: number, high: number, median: number, mark: String::new() })
    }

    fn number(&self, value: f64) -> String {
        if self.unit.ends_with("_ratio") {
            two(value)
        } else if self.unit.ends_with("_per_s") {
            rate(value)
        } else {
            shown(&self.unit, value)
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.number(self.low), self.number(self.high));
        let mark = &self.mark;
        if low == high {
            return write!(f, "{high}{mark}");
        }
        // The unit appears once if both ends have the same.
        match (low.split_once(' '), high.split_once(' ')) {
            (Some((number, unit)), Some((_, other))) if unit == other => write!(f, "{number} to {high}{mark}"),
            _ => write!(f, "{low} to {high}{mark}"),
        }
    }
}

impl Object for Figure {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        (key.as_str()? == "median").then(|| (self.number(self.median) + &self.mark).into())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Resolves a part of a path; items of a list are found by name.
fn step<'a>(node: &'a Json, part: &str) -> Option<&'a Json> {
    match node {
        Json::Array(parts) => parts.iter().find(|found| found["name"] == part),
        _ => node.get(part),
    }
}

/// Returns whether a run has this value under a key of its own or of its params. The target is compared by its short
/// name, because a server's port differs each time.
fn has(run: &Json, key: &str, value: &str) -> bool {
    let found = match run.get(key).or_else(|| run["params"].get(key)) {
        Some(Json::String(found)) => found.clone(),
        Some(found) => found.to_string(),
        None => return value.is_empty(),
    };
    let is_same_number = || matches!((found.parse::<f64>(), value.parse::<f64>()), (Ok(a), Ok(b)) if a == b);
    found == value || key == "target" && short_name(&found) == value || is_same_number()
}

/// The usual level of an interval in percent, which the text omits.
const STATED: f64 = 95.0;

/// Returns a ratio of a file with its interval, and its level if it is lower than usual.
fn interval(result: &ResultFile, name: &str) -> Result<String, Error> {
    let found = result.comparisons.iter().find(|found| found.name == name);
    let found = found.ok_or_else(|| wrong(format!("{} compares no {name}", result.command)))?;
    let Some(ratio) = found.ratio else {
        return Ok(found.note.clone().unwrap_or_else(|| "no ratio".to_owned()));
    };
    let (Some(low), Some(high)) = (found.low, found.high) else { return Ok(format!("{} (one pair)", two(ratio))) };
    let level = match found.level_percent {
        Some(level) if level >= STATED => String::new(),
        Some(level) if level > 0.0 => format!(", {level:.0} %"),
        _ => ", no level".to_owned(),
    };
    Ok(format!("{} ({} to {}{level})", two(ratio), two(low), two(high)))
}

/// Formats two digits: 0.021, 2.7, 33, 310.
fn two(value: f64) -> String {
    let rounded: f64 = format!("{value:.1e}").parse().unwrap_or(value);
    match rounded {
        rounded if rounded.abs() >= 10.0 => format!("{rounded:.0}"),
        rounded if rounded.abs() >= 1.0 => format!("{rounded:.1}"),
        rounded => {
            let places = (1.0 - rounded.abs().max(1e-9).log10().floor()) as usize;
            format!("{rounded:.places$}")
        }
    }
}

/// Formats a rate, in millions from a million a second on.
fn rate(value: f64) -> String {
    if value >= 1e6 { format!("{} M/s", shown("", value / 1e6)) } else { shown("_per_s", value) }
}

#[cfg(test)]
mod tests {
    use tickpath_lab_result::Run;

    use super::*;

    #[test]
    fn a_figure_states_its_number_of_runs() {
        let text = |valid: [bool; 3]| {
            let run = |(valid, ns): (bool, f64)| Run {
                valid,
                figures: [("send_ns".to_owned(), ns)].into(),
                ..Run::default()
            };
            let runs = valid.into_iter().zip([10.0, 20.0, 30.0]).map(run).collect();
            let result = ResultFile { runs, ..ResultFile::default() };
            let none: [(&str, Value); 0] = [];
            Figure::find(&result, "figures.send_ns", &none.into_iter().collect()).unwrap().to_string()
        };
        assert_eq!(text([true, true, true]), "10 to 30 ns");
        assert_eq!(text([false, true, true]), "20 to 30 ns (2 of 3 runs valid)");
        assert_eq!(text([false, false, false]), "10 to 30 ns †");
    }
}
