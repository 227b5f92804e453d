//! `tickpath exchange`: a simulated exchange as a process, and its first file. `exchange_as.rs` has those with the
//! protocols of real exchanges.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use rustix::process::Signal;
use signal_hook::consts::signal::{SIGHUP, SIGUSR1};
use signal_hook::flag;
use tickpath_clock::rfc3339;
use tickpath_clock::{HostClock, utc_ns};
use tickpath_venue_sim::{EndDayError, Settings, VenueControl, VenueEvent, VenueInitError};

use crate::oms_files::mistakes_text;
use tickpath_cli_exchanges::exchange_as::{self, SimulatedExchangeArgs};
use tickpath_cli_terminal::args::{CliUsageError, UnansweredError};
use tickpath_cli_terminal::outcome::{CliOutcome, stop_on_signals};
use tickpath_cli_terminal::print::{print_note, print_text};

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ExchangeArgs {
    #[command(subcommand)]
    pub command: Option<ExchangeCommand>,
    /// Configuration file, as `tickpath exchange init` writes it
    #[arg(long, value_name = "FILE", default_value = "exchange.toml")]
    pub config: PathBuf,
    /// Report every mistake in the file and in its table of instruments, each with its line, and exit
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub simulated: SimulatedExchangeArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum ExchangeCommand {
    /// Write a first exchange.toml, for the folder of an OMS
    Init {
        /// Target folder, created if it does not exist; no file in it is overwritten
        #[arg(long, value_name = "DIR", default_value = ".")]
        folder: PathBuf,
    },
    /// End the trading day of a running exchange: its day orders expire. Run this before `tickpath oms day-end`
    DayEnd {
        /// Configuration file of the exchange, as `tickpath exchange init` writes it
        #[arg(long, value_name = "FILE", default_value = "exchange.toml")]
        config: PathBuf,
    },
}

pub fn run(args: &ExchangeArgs) -> anyhow::Result<CliOutcome> {
    match (&args.command, args.simulated.protocol) {
        (Some(ExchangeCommand::Init { folder }), _) => init(folder)?,
        (Some(ExchangeCommand::DayEnd { config }), _) => return end_day(&read(config)?),
        (None, Some(protocol)) => exchange_as::run(&args.simulated, protocol)?,
        (None, None) => {
            let settings = read(&args.config)?;
            let warnings = settings.warnings().into_iter().chain(settings.file_limit_warning());
            warnings.for_each(|warning| print_note(&format!("tickpath: {warning}")));
            if args.check { print_text(&settings.description())? } else { serve(settings)? }
        }
    }
    Ok(CliOutcome::Success)
}

fn read(file: &Path) -> Result<Settings, CliUsageError> {
    Settings::read(file).map_err(|e| CliUsageError(mistakes_text(file, &e.list, &e, "exchange")))
}

fn init(folder: &Path) -> anyhow::Result<()> {
    let file = tickpath_venue_sim::init(folder).map_err(|e| match e {
        VenueInitError::Exists { .. } => anyhow::Error::from(CliUsageError(e.to_string())),
        e => e.into(),
    })?;
    let mut text = format!("wrote {}; run the exchange with: tickpath exchange --config {0}\n", file.display());
    if !folder.join("instruments.csv").exists() {
        let folder = folder.display();
        text.push_str(&format!("the OMS writes the table of instruments: tickpath oms init --folder {folder}\n"));
    }
    print_text(&text)
}

fn end_day(settings: &Settings) -> anyhow::Result<CliOutcome> {
    let journal = tickpath_cli_terminal::log_arguments::parse_journal(&settings.journal)?;
    tickpath_venue_sim::end_day(&journal, Signal::USR1).map_err(|why| match why {
        EndDayError::Unanswered => anyhow::Error::from(UnansweredError(why.to_string())),
        why => why.into(),
    })?;
    print_text("the exchange has ended its trading day; its day orders have expired\n")?;
    Ok(CliOutcome::Success)
}

fn serve(settings: Settings) -> anyhow::Result<()> {
    let control = register_signals().context("cannot listen for signals")?;
    let venue = settings.venue;
    let mut report = |event: VenueEvent| print_note(&format!("{} venue {venue}: {event}", rfc3339(utc_ns())));
    Ok(tickpath_venue_sim::run(HostClock::get()?, settings, &control, &mut report)?)
}

/// Registers the signal handlers: the first signal to end stops the exchange, the second ends the process at once.
fn register_signals() -> std::io::Result<VenueControl> {
    let control = VenueControl { stop: stop_on_signals()?, ..VenueControl::default() };
    flag::register(SIGHUP, control.reload.clone())?;
    flag::register(SIGUSR1, control.end_day.clone())?;
    Ok(control)
}
