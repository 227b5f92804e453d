//! `tickpath demo`: the path as a picture, the requirements of trading, and the latencies with a broker.

use std::path::PathBuf;

use anyhow::Context;
use tickpath_lab_exchange::{DEMO_SECONDS, demo_settings, demo_text, run as run_at_exchange};
use tickpath_lab_path::demo::text::{is_complete, text};
use tickpath_lab_path::demo::{self, DemoFindings, Settings};
use tickpath_lab_result::ResultFile;

use crate::bench::measure::{as_usage_error, lab, new_result, write};
use crate::bench_lock::BenchLock;
use crate::progress::BenchProgress;
use clap::Args;
use tickpath_cli_terminal::args::{CpuArgs, OutputArgs, check_recording, check_writable};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{Printer, print_note, render_terminal};

#[derive(Debug, Args)]
#[command(after_help = "Exit code 3: the run of the path alone is not valid, or another part has no valid run.")]
pub struct DemoArgs {
    /// A recording, plain or gzip: a line is a time in nanoseconds and a JSON message; default: generated ticks
    #[arg(long, value_name = "FILE")]
    pub ticks: Option<PathBuf>,
    /// Also measure the TCP connect time to a venue, and the share of each path in the whole way to the venue
    #[arg(long, value_name = "HOST:PORT")]
    pub venue: Option<String>,
    /// Seed of the generated ticks
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

pub fn run(args: &DemoArgs) -> anyhow::Result<CliOutcome> {
    check_recording(&args.ticks)?;
    args.output.check()?;
    let page = args.output.html.clone().unwrap_or_else(|| PathBuf::from("tickpath-demo.html"));
    check_writable(&page)?;
    let settings = Settings {
        file: args.ticks.clone(),
        seed: args.seed,
        cpus: args.cpus.bench_cpus()?,
        venue: args.venue.clone(),
    };
    let turn = BenchLock::acquire()?;
    if !args.output.quiet {
        print_note(&format!("about {} s; run nothing else on this machine meanwhile", demo::SECONDS + DEMO_SECONDS));
    }
    let bar = BenchProgress::new(args.output.quiet);
    let mut result = new_result("path");
    let mut found = DemoFindings::default();
    let mut at_exchange = None;
    let done = lab(&bar).and_then(|lab| {
        demo::run(&lab, &settings, &mut result, &mut found).map_err(as_usage_error)?;
        let run = run_at_exchange(&lab, &demo_settings(settings.cpus)).map_err(as_usage_error)?;
        at_exchange = Some(demo_text(&run));
        result.runs.push(run);
        Ok(())
    });
    drop(bar);
    let show = |result: &mut ResultFile| {
        result.check().context("this is a defect of Tickpath")?;
        // The result is printed even if it cannot be written.
        let mut printer = Printer::default();
        printer.print(&text(result, &found));
        printer.print(at_exchange.as_deref().unwrap_or_default());
        if args.output.all {
            printer.print(&format!("\n{}", render_terminal(result, true)));
        }
        let written = write(result, &OutputArgs { html: Some(page.clone()), ..args.output.clone() });
        if written.is_ok() {
            printer.print(&format!("\nreport: {}\n", page.display()));
        }
        printer.end(written)
    };
    turn.finish(done, &mut result, show, |result| {
        // The run at the exchange is the last.
        let is_whole = is_complete(result, &found) && result.runs.last().is_none_or(|run| run.valid);
        if is_whole { CliOutcome::Success } else { CliOutcome::Invalid }
    })
}
