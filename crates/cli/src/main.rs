//! The binary `tickpath`.
//!
//! `command.rs` is the command line; each command is a module, and each workload a module of `bench`. Arguments are
//! parsed here, progress goes to standard error, results go to standard output. Errors end here: a sentence on standard
//! error, and the exit code of the contract: 0 good, 1 the run failed, 2 bad usage, 3 measured but invalid, 4 a
//! --fail-if limit was exceeded, 5 no answer, 130 Ctrl-C.
//!
//! # Invariants
//!
//! * One module prints (`print.rs` of `cli-terminal`): a closed output ends the command quietly with the exit code of its work, any other
//!   failure of an output is a sentence.
//! * A command to a running OMS needs an address and a login, and no file. An answer that was received decides its exit
//!   code.
//! * Only this crate and the program `pages` of `lab-tools` use `anyhow`; the libraries have error enums.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these panic where the output is closed or full; use `print`"
)]
#![allow(rustdoc::broken_intra_doc_links, reason = "help texts are doc comments, and URLs in them have brackets")]

mod admin;
mod bench;
mod bench_lock;
mod blotter;
mod check;
mod command;
mod compare;
mod demo;
mod doctor;
mod drop_copy;
mod exchange;
mod explain;
mod follower_output;
mod history;
mod instruments;
mod log;
mod manual;
mod oms;
mod oms_files;
mod order;
mod orders;
mod progress;
mod reconcile;
mod report;
mod serve;
mod status;
mod top;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};

use command::{CliArgs, CliCommand};
use order::OrderCommand;
use tickpath_cli_exchanges::{feed, instruments_fetch, venue_check};
use tickpath_cli_terminal::args;
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{self, print_note};

/// Text of the standard library for a number that is not whole.
const NOT_WHOLE: &str = "invalid digit found in string";

fn main() -> ExitCode {
    // A file-size limit then makes the write fail, instead of ending the process by a signal with an order in flight.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let done = match CliArgs::try_parse() {
        Ok(args) => run(args.command),
        Err(error) => print_usage(&error),
    };
    match done {
        Ok(outcome) => {
            if matches!(outcome, CliOutcome::Interrupted) {
                print_note("tickpath: interrupted");
            }
            ExitCode::from(outcome as u8)
        }
        Err(error) => {
            print_note(&format!("tickpath: {error:#}"));
            ExitCode::from(match () {
                () if error.is::<args::CliUsageError>() => 2,
                () if error.is::<args::UnansweredError>() => 5,
                () => 1,
            })
        }
    }
}

/// Prints a help text or the version, or the mistake in the command line.
fn print_usage(error: &clap::Error) -> anyhow::Result<CliOutcome> {
    // The parser of the standard library names no remedy.
    let text = error.render().to_string();
    if text.contains(NOT_WHOLE) {
        print_note(text.replace(NOT_WHOLE, "write a whole number").trim_end());
        return Ok(CliOutcome::BadUsage);
    }
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    if error.use_stderr() {
        // The error is printed on standard error, or cannot be printed at all.
        return Ok(CliOutcome::BadUsage);
    }
    print::accept_closed_pipe(printed).map(|()| CliOutcome::Success)
}

fn run(command: CliCommand) -> anyhow::Result<CliOutcome> {
    match command {
        CliCommand::Demo(args) => demo::run(&args),
        CliCommand::Bench(args) => bench::run(&args.workload),
        CliCommand::Report(args) => report::run(&args),
        CliCommand::Explain(args) => explain::run(&args),
        CliCommand::Compare(args) => compare::run(&args),
        CliCommand::Check(args) => check::run(&args),
        CliCommand::History(args) => history::run(&args),
        CliCommand::Order(args) => match &args.command {
            OrderCommand::Status(asked) => status::run(asked),
            _ => order::run(&args),
        },
        CliCommand::Orders(args) => orders::run(&args),
        CliCommand::Blotter(args) => blotter::run(&args),
        CliCommand::DropCopy(args) => drop_copy::run(&args),
        CliCommand::Oms(args) => oms::run(&args),
        CliCommand::Top(args) => top::run(&args),
        CliCommand::Exchange(args) => exchange::run(&args),
        CliCommand::Venue(args) => venue_check::run(&args),
        CliCommand::Feed(args) => feed::run(&args),
        CliCommand::Instruments(args) => instruments_fetch::run(&args),
        CliCommand::Log(args) => log::run(&args.command),
        CliCommand::Doctor(args) => doctor::run(&args),
        CliCommand::Completions(args) => manual::print_completions(&args, CliArgs::command()),
        CliCommand::Man(args) => manual::write_man_pages(&args, CliArgs::command()),
        // A child's error is reported to its parent, which prints it.
        CliCommand::Child { parent } if tickpath_clock::end_with_parent(parent) => {
            Ok(tickpath_lab_harness::role::run(bench::ROLES.into_iter().flatten())
                .map_or(CliOutcome::Invalid, |()| CliOutcome::Success))
        }
        CliCommand::Child { .. } => Ok(CliOutcome::Invalid),
    }
}
