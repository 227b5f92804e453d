//! `tickpath check`: plants known disturbances in measurements, and checks that the results report them.

use anyhow::Context;
use clap::Args;
use tickpath_lab_check::{Finding, LIES, Lie, Stage};
use tickpath_lab_harness::Lab;

use crate::args::{Cpus, Usage};
use crate::bench::measure::{lab, usage};
use crate::outcome::Outcome;
use crate::print::Printer;
use crate::progress::Bar;
use crate::turn::Turn;

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
pub struct Check {
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
    pub cpus: Cpus,
}

pub fn run(args: &Check) -> anyhow::Result<Outcome> {
    let lies = chosen(&args.lies)?;
    let cpus = args.cpus.two()?;
    let turn = Turn::take()?;
    let bar = Bar::new(args.quiet);
    let lab = lab(&bar)?;
    let planted = args.repeat * lies.len() as u32;
    lab.progress.plan(planted as usize, SECONDS * f64::from(planted));
    let stage = Stage::new(&lab, cpus);
    let (mut printer, mut missed) = (Printer::default(), 0);
    printer.say(&row("lie", "planted → reported"));
    for _ in 0..args.repeat {
        for lie in &lies {
            let mut is_told = false;
            for _ in 0..tries(lie, args.tries) {
                let finding = plant(&lab, lie, &stage);
                if turn.is_interrupted() {
                    return Ok(Outcome::Interrupted);
                }
                let finding = finding.with_context(|| lie.title())?;
                printer.say(&line(lie, &finding));
                is_told = finding.is_told;
                if is_told {
                    break;
                }
            }
            missed += u32::from(!is_told);
        }
    }
    printer.say(&match missed {
        0 => format!("\nAll {planted} were told.\n"),
        _ => format!("\n{missed} of {planted} got through or gave a false alarm.\n"),
    });
    printer.end(Ok(if missed == 0 { Outcome::Good } else { Outcome::Lost }))
}

/// Returns how often a lie may be planted: a lie that plants nothing is never retried.
fn tries(lie: &Lie, most: u32) -> u32 {
    if lie.plants_nothing() { 1 } else { most }
}

fn plant(lab: &Lab<'_>, lie: &Lie, stage: &Stage<'_>) -> anyhow::Result<Finding> {
    lab.step(&lie.title(), SECONDS)?;
    lie.plant(stage).map_err(usage)
}

fn line(lie: &Lie, finding: &Finding) -> String {
    let Finding { planted, reported, is_told } = finding;
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

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Lie>> {
    for name in names {
        if !LIES.iter().any(|lie| lie.name == name) {
            let mut known: Vec<&str> = LIES.iter().map(|lie| lie.name).collect();
            known.dedup();
            return Err(Usage(format!("no lie is called '{name}'; there are {}", known.join(", "))).into());
        }
    }
    Ok(LIES.iter().filter(|lie| names.is_empty() || names.iter().any(|name| name == lie.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_alarm_is_never_tried_again() {
        let once: Vec<&str> = LIES.iter().filter(|lie| tries(lie, 3) == 1).map(|lie| lie.name).collect();
        assert_eq!(once, ["nothing", "nothing", "nothing", "identical", "identical", "identical"]);
        assert!(LIES.iter().all(|lie| lie.plants_nothing() || tries(lie, 3) == 3));
    }
}
