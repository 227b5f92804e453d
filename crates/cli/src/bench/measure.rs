//! Steps around the measuring of each bench: a lab before it, a result after it.

use anyhow::Context;
use tickpath_bus::url::redact_logins;
use tickpath_lab_compare::published;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::{ResultFile, Run};

use crate::bench_lock::BenchLock;
use crate::progress::BenchProgress;
use tickpath_cli_terminal::args::{CliUsageError, OutputArgs};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{Printer, render_terminal};

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
        [option_env!("TICKPATH_COMMIT"), option_env!("TICKPATH_PROFILE")].map(|value| value.map(str::to_owned));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_names_the_profile_of_its_program() {
        let profile = new_result("host").profile.expect("Cargo built it");
        assert!(env!("OUT_DIR").contains(&format!("/{profile}/build/")), "{profile}");
    }

    #[test]
    fn losses_decide_by_the_policy_of_the_topic() {
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
