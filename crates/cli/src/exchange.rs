//! `tickpath exchange`: a simulated exchange as a process, and its first file.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use rustix::process::Signal;
use signal_hook::consts::signal::{SIGHUP, SIGUSR1};
use signal_hook::flag;
use tickpath_clock::rfc3339;
use tickpath_clock::{HostClock, utc_ns};
use tickpath_settings::SettingsError;
use tickpath_venue_sim::{EndDayError, Settings, VenueControl, VenueEvent, VenueInitError};

use crate::args::{CliUsageError, UnansweredError};
use crate::outcome::{CliOutcome, stop_on_signals};
use crate::print::{print_note, print_text};

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ExchangeArgs {
    #[command(subcommand)]
    pub command: Option<ExchangeCommand>,
    /// Configuration, as `tickpath exchange init` writes it
    #[arg(long, value_name = "FILE", default_value = "exchange.toml")]
    pub config: PathBuf,
    /// Say every mistake in the file and in the table that it names, each with its line, and do nothing else
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub enum ExchangeCommand {
    /// Write a first exchange.toml, for the folder of an OMS
    Init {
        /// Where to; it is made if it is not there. Nothing is written over
        #[arg(long, value_name = "DIR", default_value = ".")]
        folder: PathBuf,
    },
    /// End the trading day of a running exchange: its day orders expire. Before `tickpath oms day-end`
    DayEnd {
        /// Configuration of the exchange, as `tickpath exchange init` writes it
        #[arg(long, value_name = "FILE", default_value = "exchange.toml")]
        config: PathBuf,
    },
}

pub fn run(args: &ExchangeArgs) -> anyhow::Result<CliOutcome> {
    match &args.command {
        Some(ExchangeCommand::Init { folder }) => init(folder)?,
        Some(ExchangeCommand::DayEnd { config }) => return end_day(&read(config)?),
        None => {
            let settings = read(&args.config)?;
            let doubts = settings.warnings().into_iter().chain(settings.file_limit_warning());
            doubts.for_each(|doubt| print_note(&format!("tickpath: {doubt}")));
            if args.check { print_text(&settings.description())? } else { serve(settings)? }
        }
    }
    Ok(CliOutcome::Success)
}

fn read(file: &Path) -> Result<Settings, CliUsageError> {
    Settings::read(file).map_err(|wrong| {
        let is_it = |one: &SettingsError| matches!(one, SettingsError::Missing { file: missing } if missing == file);
        CliUsageError(match wrong.list.iter().any(is_it) {
            true => format!(
                "{}: there is no such file; name one by --config, or have `tickpath exchange init` write a first one",
                file.display()
            ),
            false => wrong.to_string(),
        })
    })
}

fn init(folder: &Path) -> anyhow::Result<()> {
    let file = tickpath_venue_sim::init(folder).map_err(|e| match e {
        VenueInitError::Exists { .. } => anyhow::Error::from(CliUsageError(e.to_string())),
        e => e.into(),
    })?;
    let mut text = format!("{} is written; run it with: tickpath exchange --config {0}\n", file.display());
    if !folder.join("instruments.csv").exists() {
        let folder = folder.display();
        text.push_str(&format!("the table of instruments comes with its OMS: tickpath oms init --folder {folder}\n"));
    }
    print_text(&text)
}

fn end_day(settings: &Settings) -> anyhow::Result<CliOutcome> {
    let journal = crate::log::log_arguments::parse_journal(&settings.journal)?;
    tickpath_venue_sim::end_day(&journal, Signal::USR1).map_err(|why| match why {
        EndDayError::Unanswered => anyhow::Error::from(UnansweredError(why.to_string())),
        why => why.into(),
    })?;
    print_text("the day has ended at the exchange; its day orders have expired\n")?;
    Ok(CliOutcome::Success)
}

fn serve(settings: Settings) -> anyhow::Result<()> {
    let orders = register_signals().context("cannot listen for signals")?;
    let venue = settings.venue;
    let mut tell = |event: VenueEvent| {
        print_note(&format!("{} venue {venue}: {event}", rfc3339(utc_ns())));
    };
    Ok(tickpath_venue_sim::run(HostClock::get()?, settings, &orders, &mut tell)?)
}

/// Registers the signal handlers: the first signal to end stops the exchange, the second ends the process at once.
fn register_signals() -> std::io::Result<VenueControl> {
    let orders = VenueControl { stop: stop_on_signals()?, ..VenueControl::default() };
    flag::register(SIGHUP, orders.reload.clone())?;
    flag::register(SIGUSR1, orders.end_day.clone())?;
    Ok(orders)
}
