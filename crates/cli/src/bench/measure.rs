//! Steps around the measuring of each bench: a lab before it, a result after it.

use anyhow::Context;
use tickpath_bus::url::redact_logins;
use tickpath_lab_compare::published;
use tickpath_lab_compare::{PairedRuns, RatioLine, pair_with_first, ratio_table, value};
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_report::{duration, size};
use tickpath_lab_result::{ResultFile, Run, RunPhase, short_name};

use crate::args::{CliUsageError, OutputArgs};
use crate::bench_lock::BenchLock;
use crate::outcome::CliOutcome;
use crate::print::{Printer, render_terminal};
use crate::progress::BenchProgress;

/// Makes a lab and a result, runs the bench, and shows and writes the result, even a partial one if the bench failed.
pub fn measure(
    workload: &str,
    output: &OutputArgs,
    bench: impl FnOnce(&mut Lab<'_>, &mut ResultFile) -> anyhow::Result<()>,
) -> anyhow::Result<CliOutcome> {
    output.check()?;
    let turn = BenchLock::acquire()?;
    let bar = BenchProgress::new(output.quiet);
    let mut lab = lab(&bar)?;
    let mut result = new_result(workload);
    let done = bench(&mut lab, &mut result);
    drop(lab);
    drop(bar);
    let show = |result: &mut ResultFile| {
        // Results are shown to others: logins are removed.
        for run in &mut result.runs {
            run.target = redact_logins(&run.target);
            run.notes.iter_mut().chain(&mut run.finding).for_each(|text| *text = redact_logins(text));
        }
        result.findings.iter_mut().for_each(|finding| *finding = redact_logins(finding));
        result.published = published::published_figures(result);
        finish(result, output)
    };
    turn.finish(done, &mut result, show, verdict)
}

/// Returns a lab that spawns this program.
pub fn lab(bar: &BenchProgress) -> anyhow::Result<Lab<'_>> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(Lab::new(program, bar)?)
}

/// Returns an empty result with its command, start time, commit and build profile.
pub fn new_result(workload: &str) -> ResultFile {
    let command: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    let mut command = command.join(" ");
    if let Some(rest) = command.split_once(' ').map(|(_, rest)| rest.to_owned()) {
        command = format!("tickpath {rest}");
    }
    let started_at = tickpath_clock::rfc3339(tickpath_clock::utc_ns());
    let [commit, profile] =
        [option_env!("TICKPATH_COMMIT"), option_env!("TICKPATH_PROFILE")].map(|told| told.map(str::to_owned));
    ResultFile { commit, profile, ..ResultFile::new(workload, &redact_logins(&command), &started_at) }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Prints the result, and writes the requested files.
pub fn finish(result: &ResultFile, output: &OutputArgs) -> anyhow::Result<()> {
    result.check().context("this is a defect of Tickpath")?;
    let mut printer = Printer::default();
    printer.print(&render_terminal(result, output.all));
    printer.end(write(result, output))
}

pub fn write(result: &ResultFile, output: &OutputArgs) -> anyhow::Result<()> {
    if let Some(file) = &output.json {
        result.save(file)?;
    }
    if let Some(file) = &output.html {
        std::fs::write(file, tickpath_lab_report::html(result))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Returns the outcome of a bench: whether messages were lost, or runs were invalid.
pub fn verdict(result: &ResultFile) -> CliOutcome {
    // Runs of a search for the highest rate are not judged: the search exceeds that rate on purpose.
    let mut judged = result.runs.iter().filter(|run| !run.params.0.contains_key("slo"));
    // Only a topic with the policy overwrite, such as that of ticks, may lose messages; an order must never be lost.
    let overwrites = |run: &Run| run.params.text("policy").is_some_and(|policy| policy == "overwrite");
    let has_lost = |run: &Run| match result.workload.as_str() {
        "path" => run.figures.contains_key("orders_lost"),
        _ => !overwrites(run) && run.counts.lost > 0,
    };
    if judged.clone().any(has_lost) {
        return CliOutcome::Lost;
    }
    if judged.all(|run| run.valid) { CliOutcome::Success } else { CliOutcome::Invalid }
}

/// Turns an error about an impossible setting into bad usage.
pub fn as_usage_error(error: LabError) -> anyhow::Error {
    match error {
        LabError::Setting(what) => CliUsageError(what).into(),
        other => other.into(),
    }
}

/// Figure: processor time of a waiting receiver per message.
const RECEIVER_CPU: &str = "receiver_cpu_per_message_ns";

/// Compares targets, clients or ways to wait that took turns: the ratio of each to the first, for each of the hops and
/// each combination of the other settings. Ways to wait are also compared by the receiver's processor time.
pub fn compare_turns(result: &mut ResultFile, hops: &[&str]) {
    let is_one = result.runs.iter().all(|run| run.client == result.runs[0].client);
    let target = |run: &Run| match short_name(&run.target) {
        name if is_one => name,
        name => format!("{}_{name}", run.client),
    };
    let wait = |run: &Run| run.params.text("wait");
    let mut lines = Vec::new();
    for hop in hops {
        lines.extend(compare_with_first(
            &result.runs,
            hop,
            &format!("{hop}.p50_ns"),
            |run| settings_text(run, wait(run)),
            target,
        ));
    }
    let medians = hops.iter().map(|hop| (*hop, format!("{hop}.p50_ns")));
    for (name, figure) in medians.chain([(RECEIVER_CPU, RECEIVER_CPU.to_owned())]) {
        let otherwise = |run: &Run| settings_text(run, Some(target(run)));
        lines.extend(compare_with_first(&result.runs, name, &figure, otherwise, |run| wait(run).unwrap_or_default()));
    }
    result.comparisons.extend(ratio_table(lines));
}

/// Returns the lines of a figure: each side against the first, for each combination of the other settings.
fn compare_with_first(
    runs: &[Run],
    name: &str,
    figure: &str,
    way: impl Fn(&Run) -> String,
    side: impl Fn(&Run) -> String,
) -> Vec<RatioLine> {
    let found = pair_with_first(runs.iter().filter(|run| value(run, figure).is_some()), way, side);
    let several = found.iter().any(|one| one.setup != found[0].setup);
    let line = |one: &PairedRuns<'_>| {
        let name = format!("{}_to_{}_{name}", one.other, one.first);
        one.line(&if several { format!("{name} {}", one.setup) } else { name }, figure)
    };
    found.iter().map(line).collect()
}

/// Returns the settings of a run as text, without its repetition and without the compared setting; `other` is the one
/// of target and wait that is not compared.
fn settings_text(run: &Run, other: Option<String>) -> String {
    let number = |name: &str| run.params.0.get(name).and_then(serde_json::Value::as_f64);
    let idle = number("idle_ns").map(|ns| format!("after {}", duration(ns)));
    let phase = (run.phase == RunPhase::Cold).then(|| "cold".to_owned());
    let size = number("size_bytes").map(size);
    let readers = number("readers").filter(|readers| *readers > 1.0).map(|readers| format!("{readers} readers"));
    let batch = run.batch_text().filter(|batch| batch != "1").map(|batch| format!("by {batch}"));
    let told = [run.layout.clone(), phase, idle, size, readers, other, batch];
    told.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use tickpath_lab_result::Hop;

    use super::*;

    #[test]
    fn a_result_names_the_profile_of_its_program() {
        let profile = new_result("host").profile.expect("Cargo built it");
        assert!(env!("OUT_DIR").contains(&format!("/{profile}/build/")), "{profile}");
    }

    #[test]
    fn ways_to_wait_that_took_turns_are_set_against_the_first_in_latency_and_in_processor_time() {
        let run = |wait: &str, p50_ns: u64, cpu_ns: f64| {
            let hop = Hop { count: 100, p50_ns: Some(p50_ns), ..Hop::default() };
            let hops = [("one_way".to_owned(), hop)].into();
            let mut run = Run { target: "shm://".to_owned(), repeat: 1, valid: true, hops, ..Run::default() };
            run.params.set("wait", wait);
            run.figures.insert(RECEIVER_CPU.to_owned(), cpu_ns);
            run
        };
        let mut result = ResultFile::new("pubsub", "", "");
        result.runs = vec![run("busy", 100, 1e6), run("adaptive", 150, 2e5)];
        compare_turns(&mut result, &["one_way"]);
        let told: Vec<_> = result.comparisons.iter().map(|one| (one.name.as_str(), one.ratio)).collect();
        let wanted = [("adaptive_to_busy_one_way", 1.5), ("adaptive_to_busy_receiver_cpu_per_message_ns", 0.2)];
        assert_eq!(told, wanted.map(|(name, ratio)| (name, Some(ratio))));
    }

    #[test]
    fn what_was_lost_decides_by_what_was_promised() {
        let outcome = |workload: &str, lost: u64, orders_lost: bool, valid: bool| {
            let mut run = Run { valid, ..Run::default() };
            run.counts.lost = lost;
            run.figures.extend(orders_lost.then(|| ("orders_lost".to_owned(), lost as f64)));
            let mut result = ResultFile::new(workload, "", "");
            result.runs.push(run);
            verdict(&result)
        };
        assert!(matches!(outcome("path", 0, false, true), CliOutcome::Success));
        assert!(
            matches!(outcome("path", 1, false, false), CliOutcome::Invalid),
            "ticks are on a topic that overwrites"
        );
        assert!(matches!(outcome("path", 1, true, false), CliOutcome::Lost), "an order is kept");
        assert!(matches!(outcome("orders", 1, false, true), CliOutcome::Lost));
    }
}
