//! The binary `tickpath`.
//!
//! `command` is the command line; each command is a module. Errors end here: a sentence on standard error, and the
//! exit code of the contract: 0 good, 1 the run failed, 2 bad usage, 3 measured but invalid, 4 a --fail-if limit was
//! exceeded, 5 no answer, 130 Ctrl-C.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these panic where the output is closed or full; use `print`"
)]
#![allow(rustdoc::broken_intra_doc_links, reason = "help texts are doc comments, and URLs in them have brackets")]

mod args;
mod bench;
mod blotter;
mod check;
mod command;
mod compare;
mod copies;
mod demo;
mod desk;
mod doctor;
mod drop_copy;
mod exchange;
mod explain;
mod history;
mod instruments;
mod log;
mod oms;
mod order;
mod orders;
mod outcome;
mod outlet;
mod print;
mod progress;
mod reconcile;
mod report;
mod serve;
mod status;
mod top;
mod turn;
mod words;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use command::{Args, Command};
use order::OrderCommand;
use outcome::Outcome;
use print::note;

fn main() -> ExitCode {
    // A file-size limit then makes the write fail, instead of a signal that ends the process while an order is in flight.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let done = match Args::try_parse() {
        Ok(args) => run(args.command),
        Err(told) => help(&told),
    };
    match done {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Invalid) => ExitCode::from(3),
        Ok(Outcome::Lost) => ExitCode::FAILURE,
        Ok(Outcome::LimitExceeded) => ExitCode::from(4),
        Ok(Outcome::Unanswered) => ExitCode::from(5),
        Ok(Outcome::BadUsage) => ExitCode::from(2),
        Ok(Outcome::Interrupted) => {
            note("tickpath: interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            note(&format!("tickpath: {error:#}"));
            ExitCode::from(match () {
                () if error.is::<args::Usage>() => 2,
                () if error.is::<args::Unanswered>() => 5,
                () => 1,
            })
        }
    }
}

/// Prints a help text or the version, or the mistake in the command line.
fn help(told: &clap::Error) -> anyhow::Result<Outcome> {
    let printed = told.print().and_then(|()| std::io::stdout().flush());
    if told.use_stderr() {
        // The error is printed on standard error, or cannot be printed at all.
        return Ok(Outcome::BadUsage);
    }
    print::written(printed).map(|()| Outcome::Good)
}

fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args.workload),
        Command::Report(args) => report::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Check(args) => check::run(&args),
        Command::History(args) => history::run(&args),
        Command::Order(args) => match &args.command {
            OrderCommand::Status(asked) => status::run(asked),
            _ => order::run(&args),
        },
        Command::Orders(args) => orders::run(&args),
        Command::Blotter(args) => blotter::run(&args),
        Command::DropCopy(args) => drop_copy::run(&args),
        Command::Oms(args) => oms::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Exchange(args) => exchange::run(&args),
        Command::Log(args) => log::run(&args.command),
        Command::Doctor(args) => doctor::run(&args),
        // A child's error is reported to its parent, which prints it.
        Command::Child { parent } if tickpath_clock::end_with_parent(parent) => {
            Ok(tickpath_lab_harness::role::run(bench::ROLES.into_iter().flatten())
                .map_or(Outcome::Invalid, |()| Outcome::Good))
        }
        Command::Child { .. } => Ok(Outcome::Invalid),
    }
}
