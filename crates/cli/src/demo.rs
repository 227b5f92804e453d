//! `tickpath demo`: the path as a picture, the requirements of trading, and the latencies with a broker.

use std::path::PathBuf;

use anyhow::Context;
use tickpath_lab_path::demo::text::{is_told, text};
use tickpath_lab_path::demo::{self, Found, Settings};
use tickpath_lab_result::ResultFile;

use crate::args::{Cpus, Output, can_be_written, is_file};
use crate::bench::measure::{lab, new_result, usage, write};
use crate::outcome::Outcome;
use crate::print::{Printer, note, terminal};
use crate::progress::Bar;
use crate::turn::Turn;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Exit code 3: the path alone is not valid, or a part beside it has nothing valid to tell.")]
pub struct Demo {
    /// A recording of LOCAL_NS JSON lines, gzip or plain; ticks are made up without one
    #[arg(long, value_name = "FILE")]
    pub ticks: Option<PathBuf>,
    /// Measure the TCP connect time to a venue too, and what share of the way each path is
    #[arg(long, value_name = "HOST:PORT")]
    pub venue: Option<String>,
    /// Seed of made-up ticks
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub output: Output,
}

pub fn run(args: &Demo) -> anyhow::Result<Outcome> {
    is_file(&args.ticks)?;
    args.output.check()?;
    let page = args.output.html.clone().unwrap_or_else(|| PathBuf::from("tickpath-demo.html"));
    can_be_written(&page)?;
    let settings =
        Settings { file: args.ticks.clone(), seed: args.seed, cpus: args.cpus.two()?, venue: args.venue.clone() };
    let turn = Turn::take()?;
    if !args.output.quiet {
        note(&format!("about {} s; leave this machine alone meanwhile", demo::SECONDS));
    }
    let bar = Bar::new(args.output.quiet);
    let mut result = new_result("path");
    let mut found = Found::default();
    let done = lab(&bar).and_then(|lab| demo::run(&lab, &settings, &mut result, &mut found).map_err(usage));
    drop(bar);
    let show = |result: &mut ResultFile| {
        result.check().context("this is a defect of Tickpath")?;
        // The result is printed even if it cannot be written.
        let mut printer = Printer::default();
        printer.say(&text(result, &found));
        if args.output.all {
            printer.say(&format!("\n{}", terminal(result, true)));
        }
        let kept = write(result, &Output { html: Some(page.clone()), ..args.output.clone() });
        if kept.is_ok() {
            printer.say(&format!("\nreport: {}\n", page.display()));
        }
        printer.end(kept)
    };
    turn.end(done, &mut result, show, |result| if is_told(result, &found) { Outcome::Good } else { Outcome::Invalid })
}
