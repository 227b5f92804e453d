//! `tickpath check`: plants known disturbances in measurements, and checks that the results report them.

use anyhow::Context;
use clap::Args;
use tickpath_lab_check::{CheckContext, FaultReport, PLANTED_FAULTS, PlantedFault};
use tickpath_lab_harness::Lab;

use crate::bench::measure::{as_usage_error, lab};
use crate::bench_lock::BenchLock;
use crate::progress::BenchProgress;
use tickpath_cli_terminal::args::{CpuArgs, bail_usage};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{Printer, paragraph};

/// Approximate length of one planted fault, in seconds.
const SECONDS: f64 = 4.0;

#[derive(Debug, Args)]
#[command(
    after_help = "A fault is detected if the result reports it: with the same number where the planting side counts, \
                  by its name elsewhere. \"nothing\" and \"identical\" plant no fault, and the result must report \
                  none.\n\nExit code: 0 every fault was detected, 1 a fault was missed or a false alarm was raised."
)]
pub struct CheckArgs {
    /// Names of the faults; default: all
    #[arg(value_name = "FAULT")]
    pub faults: Vec<String>,
    /// How often to plant each fault
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Max attempts for a fault that was missed: load from other programs can hide one at times. A name that plants no
    /// fault is never tried again
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub tries: u32,
    /// Print no progress
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub cpus: CpuArgs,
}

pub fn run(args: &CheckArgs) -> anyhow::Result<CliOutcome> {
    let faults = chosen(&args.faults)?;
    let cpus = args.cpus.bench_cpus()?;
    let turn = BenchLock::acquire()?;
    let bar = BenchProgress::new(args.quiet);
    let lab = lab(&bar)?;
    let planted = args.repeat * faults.len() as u32;
    lab.progress.plan(planted as usize, SECONDS * f64::from(planted));
    let stage = CheckContext::new(&lab, cpus);
    let (mut printer, mut missed) = (Printer::default(), 0);
    printer.print(&row("fault", "planted → reported"));
    for _ in 0..args.repeat {
        for fault in &faults {
            let mut is_detected = false;
            for _ in 0..max_attempts(fault, args.tries) {
                let report = plant(&lab, fault, &stage);
                if turn.is_interrupted() {
                    return Ok(CliOutcome::Interrupted);
                }
                let report = report.with_context(|| fault.title())?;
                printer.print(&line(fault, &report));
                is_detected = report.is_detected;
                if is_detected {
                    break;
                }
            }
            missed += u32::from(!is_detected);
        }
    }
    printer.print(&match missed {
        0 => format!("\nAll {planted} checks passed.\n"),
        _ => format!("\n{missed} of {planted} checks failed: a fault was missed, or a false alarm was raised.\n"),
    });
    printer.end(Ok(if missed == 0 { CliOutcome::Success } else { CliOutcome::Lost }))
}

/// Returns how often a fault may be planted: a name that plants nothing is never retried.
fn max_attempts(fault: &PlantedFault, tries: u32) -> u32 {
    if fault.plants_nothing() { 1 } else { tries }
}

fn plant(lab: &Lab<'_>, fault: &PlantedFault, stage: &CheckContext<'_>) -> anyhow::Result<FaultReport> {
    lab.step(&fault.title(), SECONDS)?;
    fault.plant(stage).map_err(as_usage_error)
}

fn line(fault: &PlantedFault, report: &FaultReport) -> String {
    let FaultReport { planted, reported, is_detected } = report;
    let verdict = match (*is_detected, fault.plants_nothing()) {
        (true, _) => "",
        (false, true) => " (FALSE ALARM)",
        (false, false) => " (MISSED)",
    };
    row(&fault.title(), &format!("{planted} → {reported}{verdict}"))
}

fn row(name: &str, text: &str) -> String {
    paragraph(&format!("{name:<26} "), text)
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static PlantedFault>> {
    for name in names {
        if !PLANTED_FAULTS.iter().any(|fault| fault.name == name) {
            let mut known: Vec<&str> = PLANTED_FAULTS.iter().map(|fault| fault.name).collect();
            known.sort_unstable();
            known.dedup();
            bail_usage!("no fault is called '{name}'; the faults are {}", known.join(", "));
        }
    }
    Ok(PLANTED_FAULTS.iter().filter(|fault| names.is_empty() || names.iter().any(|name| name == fault.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_alarm_is_never_tried_again() {
        let once: Vec<&str> =
            PLANTED_FAULTS.iter().filter(|fault| max_attempts(fault, 3) == 1).map(|fault| fault.name).collect();
        assert_eq!(once, ["nothing", "nothing", "nothing", "identical", "identical", "identical"]);
        assert!(PLANTED_FAULTS.iter().all(|fault| fault.plants_nothing() || max_attempts(fault, 3) == 3));
    }
}
