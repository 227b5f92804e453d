//! `tickpath check`: plants known disturbances in measurements, and checks that the results report them.

use anyhow::Context;
use clap::Args;
use tickpath_lab_check::{CheckContext, FaultReport, PLANTED_FAULTS, PlantedFault};
use tickpath_lab_harness::Lab;

use crate::args::{CliUsageError, CpuArgs};
use crate::bench::measure::{as_usage_error, lab};
use crate::bench_lock::BenchLock;
use crate::outcome::CliOutcome;
use crate::print::Printer;
use crate::progress::BenchProgress;

/// Approximate length of one lie, in seconds.
const SECONDS: f64 = 4.0;

/// Width of the column of names, and of a line.
const NAME: usize = 26;
const WIDTH: usize = 80;

#[derive(Debug, Args)]
#[command(
    after_help = "A lie is told if the result says what was planted: by the same number where whoever planted it \
counts, by its name elsewhere. \"nothing\" and \"identical\" plant none, and nothing is to be told.\n\nExit code: 0 \
all were told, 1 one got through or gave a false alarm."
)]
pub struct CheckArgs {
    /// Which lies; all if not given
    #[arg(value_name = "LIE")]
    pub lies: Vec<String>,
    /// How often to plant each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// How often to plant a lie that got through, at most: a machine that others use at times hides one. What plants
    /// none is never tried again
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub tries: u32,
    /// Do not show how far it is
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub cpus: CpuArgs,
}

pub fn run(args: &CheckArgs) -> anyhow::Result<CliOutcome> {
    let lies = chosen(&args.lies)?;
    let cpus = args.cpus.bench_cpus()?;
    let turn = BenchLock::acquire()?;
    let bar = BenchProgress::new(args.quiet);
    let lab = lab(&bar)?;
    let planted = args.repeat * lies.len() as u32;
    lab.progress.plan(planted as usize, SECONDS * f64::from(planted));
    let stage = CheckContext::new(&lab, cpus);
    let (mut printer, mut missed) = (Printer::default(), 0);
    printer.print(&row("lie", "planted → reported"));
    for _ in 0..args.repeat {
        for lie in &lies {
            let mut is_told = false;
            for _ in 0..max_attempts(lie, args.tries) {
                let finding = plant(&lab, lie, &stage);
                if turn.is_interrupted() {
                    return Ok(CliOutcome::Interrupted);
                }
                let finding = finding.with_context(|| lie.title())?;
                printer.print(&line(lie, &finding));
                is_told = finding.is_detected;
                if is_told {
                    break;
                }
            }
            missed += u32::from(!is_told);
        }
    }
    printer.print(&match missed {
        0 => format!("\nAll {planted} were told.\n"),
        _ => format!("\n{missed} of {planted} got through or gave a false alarm.\n"),
    });
    printer.end(Ok(if missed == 0 { CliOutcome::Success } else { CliOutcome::Lost }))
}

/// Returns how often a lie may be planted: a lie that plants nothing is never retried.
fn max_attempts(lie: &PlantedFault, most: u32) -> u32 {
    if lie.plants_nothing() { 1 } else { most }
}

fn plant(lab: &Lab<'_>, lie: &PlantedFault, stage: &CheckContext<'_>) -> anyhow::Result<FaultReport> {
    lab.step(&lie.title(), SECONDS)?;
    lie.plant(stage).map_err(as_usage_error)
}

fn line(lie: &PlantedFault, finding: &FaultReport) -> String {
    let FaultReport { planted, reported, is_detected: is_told } = finding;
    let through = match (*is_told, lie.plants_nothing()) {
        (true, _) => "",
        (false, true) => " (FALSE ALARM)",
        (false, false) => " (GOT THROUGH)",
    };
    row(&lie.title(), &format!("{planted} → {reported}{through}"))
}

/// Returns a name with a text beside it, which wraps below its own column.
fn row(name: &str, text: &str) -> String {
    let mut out = format!("{name:<NAME$}");
    let mut column = NAME;
    for word in text.split(' ') {
        let long = word.chars().count() + 1;
        if column + long > WIDTH && column > NAME {
            out += &format!("\n{:NAME$}", "");
            column = NAME;
        }
        out += &format!(" {word}");
        column += long;
    }
    out + "\n"
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static PlantedFault>> {
    for name in names {
        if !PLANTED_FAULTS.iter().any(|lie| lie.name == name) {
            let mut known: Vec<&str> = PLANTED_FAULTS.iter().map(|lie| lie.name).collect();
            known.dedup();
            return Err(CliUsageError(format!("no lie is called '{name}'; there are {}", known.join(", "))).into());
        }
    }
    Ok(PLANTED_FAULTS.iter().filter(|lie| names.is_empty() || names.iter().any(|name| name == lie.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_alarm_is_never_tried_again() {
        let once: Vec<&str> =
            PLANTED_FAULTS.iter().filter(|lie| max_attempts(lie, 3) == 1).map(|lie| lie.name).collect();
        assert_eq!(once, ["nothing", "nothing", "nothing", "identical", "identical", "identical"]);
        assert!(PLANTED_FAULTS.iter().all(|lie| lie.plants_nothing() || max_attempts(lie, 3) == 3));
    }
}
