//! What each bench does around its own measuring: a lab before it, a result after it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use tickpath_harness::{Lab, LabError};
use tickpath_lab::published;
use tickpath_report::{duration, size};
use tickpath_result::{Comparison, Phase, ResultFile, Run, short_name, without_login};

use crate::args::{Output, Usage};
use crate::outcome::Outcome;
use crate::print::{say, terminal};
use crate::progress::Bar;
use crate::turn::Turn;

/// Makes a lab and a result, runs, and shows and writes what came of it, in part too if it failed.
pub fn measure(
    workload: &str,
    output: &Output,
    bench: impl FnOnce(&Lab<'_>, &mut ResultFile) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    output.check()?;
    let turn = Turn::take(output.quiet)?;
    let bar = Bar::new(output.quiet);
    let lab = lab(&bar)?;
    let mut result = new_result(workload);
    let done = bench(&lab, &mut result);
    drop(lab);
    drop(bar);
    let is_interrupted = done.is_err() && turn.is_interrupted();
    if result.runs.is_empty() {
        return if is_interrupted { Ok(Outcome::Interrupted) } else { done.map(|()| Outcome::Good) };
    }
    if let Err(error) = &done {
        mark(&mut result, &if is_interrupted { "interrupted".to_owned() } else { format!("{error:#}") });
    }
    // A result is shown to others.
    for run in &mut result.runs {
        run.target = without_login(&run.target);
        run.notes.iter_mut().chain(&mut run.finding).for_each(|text| *text = without_login(text));
    }
    result.findings.iter_mut().for_each(|finding| *finding = without_login(finding));
    result.published = published::found(&result);
    finish(&result, output)?;
    if is_interrupted {
        return Ok(Outcome::Interrupted);
    }
    done?;
    Ok(verdict(&result))
}

/// Says in the result that the bench broke off, and why, unless a run says so already.
fn mark(result: &mut ResultFile, why: &str) {
    let is_told = result.runs.iter().flat_map(|run| &run.notes).any(|note| note.contains(why));
    if let Some(last) = result.runs.last().filter(|_| !is_told) {
        let (target, client, repeat) = (last.target.clone(), last.client.clone(), last.repeat);
        let notes = vec![format!("the bench broke off after the run before: {why}")];
        result.runs.push(Run { target, client, repeat, notes, ..Run::default() });
    }
}

/// A lab that spawns this very program.
pub fn lab(bar: &Bar) -> anyhow::Result<Lab<'_>> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(Lab::new(program, bar)?)
}

/// An empty result that says what made it, when.
pub fn new_result(workload: &str) -> ResultFile {
    let command: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    let mut command = command.join(" ");
    if let Some(rest) = command.split_once(' ').map(|(_, rest)| rest.to_owned()) {
        command = format!("tickpath {rest}");
    }
    ResultFile::new(workload, &without_login(&command), &tickpath_result::rfc3339(tickpath_clock::utc_ns()))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Prints the result, and writes the files that were asked for.
pub fn finish(result: &ResultFile, output: &Output) -> anyhow::Result<()> {
    result.check().context("this is a defect of Tickpath")?;
    say(&terminal(result, output.all));
    write(result, output)
}

/// Writes the files that were asked for.
pub fn write(result: &ResultFile, output: &Output) -> anyhow::Result<()> {
    if let Some(file) = &output.json {
        result.save(file)?;
    }
    if let Some(file) = &output.html {
        std::fs::write(file, tickpath_report::html(result))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Whether every run kept the rules.
pub fn verdict(result: &ResultFile) -> Outcome {
    // Only a topic that overwrites may lose; an order never.
    let keeps = |run: &Run| run.params.text("policy").is_none_or(|policy| policy != "overwrite");
    let promised = result.workload != "path";
    // A search for the highest rate goes beyond it on purpose.
    let mut judged = result.runs.iter().filter(|run| !run.params.0.contains_key("slo"));
    if promised && judged.clone().any(|run| keeps(run) && run.counts.lost > 0) {
        return Outcome::Lost;
    }
    if judged.all(|run| run.valid) { Outcome::Good } else { Outcome::Invalid }
}

/// A setting that makes no run is bad usage.
pub fn usage(error: LabError) -> anyhow::Error {
    match error {
        LabError::Setting(what) => Usage(what).into(),
        other => other.into(),
    }
}

/// Where several targets took turns, the ratio of each to the first, for each way in which they ran: medians over the
/// repeats, between the smallest and the largest ratio of a repeat.
pub fn compare_targets(result: &mut ResultFile, hop: &str) {
    let Some(first) = result.runs.first().map(|run| short_name(&run.target)) else { return };
    let mut ways: BTreeMap<(String, String), BTreeMap<u32, f64>> = BTreeMap::new();
    for run in result.runs.iter().filter(|run| run.valid) {
        let p50 = run.hops.get(hop).and_then(|hop| hop.percentiles()[0]);
        if let Some(p50) = p50 {
            ways.entry((way(run), short_name(&run.target))).or_default().insert(run.repeat, p50 as f64);
        }
    }
    let several = ways.keys().map(|(way, _)| way).collect::<BTreeSet<_>>().len() > 1;
    let mut found = Vec::new();
    for ((way, other), theirs) in ways.iter().filter(|((_, name), _)| *name != first) {
        let Some(ours) = ways.get(&(way.clone(), first.clone())) else { continue };
        let pairs: Vec<(f64, f64)> = theirs.iter().filter_map(|(repeat, a)| Some((*a, *ours.get(repeat)?))).collect();
        let name = format!("{other}_to_{first}_{hop}");
        let name = if several { format!("{name} {way}") } else { name };
        found.extend(Comparison::of_pairs(&name, &format!("{hop}.p50_ns"), &pairs));
    }
    result.comparisons.extend(found);
}

/// How a run ran, but for its target and repetition.
fn way(run: &Run) -> String {
    let number = |name: &str| run.params.0.get(name).and_then(serde_json::Value::as_f64);
    let idle = number("idle_ns").map(|ns| format!("after {}", duration(ns)));
    let phase = (run.phase == Phase::Cold).then(|| "cold".to_owned());
    let size = number("size_bytes").map(size);
    let readers = number("readers").filter(|readers| *readers > 1.0).map(|readers| format!("{readers} readers"));
    let batch = run.batch_text().filter(|batch| batch != "1").map(|batch| format!("by {batch}"));
    let told = [run.layout.clone(), phase, idle, size, readers, run.params.text("wait"), batch];
    told.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
