//! `tickpath exchange`: a simulated exchange as a process, and its first file.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use rustix::process::{Pid, Signal};
use signal_hook::consts::signal::{SIGHUP, SIGUSR1};
use signal_hook::flag;
use tickpath_clock::{HostClock, sleep_ns, utc_ns};
use tickpath_exchange::{Event, InitError, JournalRecord, Orders, Settings};
use tickpath_log::{Next, Reader, Registration, Start};
use tickpath_result::rfc3339;
use tickpath_settings::SettingsError;

use crate::args::{Unanswered, Usage};
use crate::outcome::{Outcome, stop_on_signals};
use crate::print::{note, say};

/// Between two looks at an exchange's journal, and how many of them.
const LOOK_NS: u64 = 10_000_000;
const DAY_END_LOOKS: u32 = 1_000;
/// The name of the record by which an exchange's day ends.
const END_OF_DAY: &str = "end_of_day";

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Exchange {
    #[command(subcommand)]
    pub command: Option<ExchangeCommand>,
    /// What it is told, as `tickpath exchange init` writes it
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
        /// What the exchange was told, as `tickpath exchange init` writes it
        #[arg(long, value_name = "FILE", default_value = "exchange.toml")]
        config: PathBuf,
    },
}

pub fn run(args: &Exchange) -> anyhow::Result<Outcome> {
    match &args.command {
        Some(ExchangeCommand::Init { folder }) => init(folder)?,
        Some(ExchangeCommand::DayEnd { config }) => return end_day(&read(config)?),
        None => {
            let settings = read(&args.config)?;
            settings.doubts().iter().for_each(|doubt| note(&format!("tickpath: {doubt}")));
            if args.check { say(&described(&settings))? } else { serve(settings)? }
        }
    }
    Ok(Outcome::Good)
}

fn read(file: &Path) -> Result<Settings, Usage> {
    Settings::read(file).map_err(|wrong| {
        let is_it = |one: &SettingsError| matches!(one, SettingsError::Missing { file: missing } if missing == file);
        Usage(match wrong.list.iter().any(is_it) {
            true => format!(
                "{}: there is no such file; name one by --config, or have `tickpath exchange init` write a first one",
                file.display()
            ),
            false => wrong.to_string(),
        })
    })
}

fn init(folder: &Path) -> anyhow::Result<()> {
    let file = tickpath_exchange::init(folder).map_err(|e| match e {
        InitError::Exists { .. } => anyhow::Error::from(Usage(e.to_string())),
        e => e.into(),
    })?;
    let mut text = format!("{} is written; run it with: tickpath exchange --config {0}\n", file.display());
    if !folder.join("instruments.csv").exists() {
        let folder = folder.display();
        text.push_str(&format!("the table of instruments comes with its OMS: tickpath oms init --folder {folder}\n"));
    }
    say(&text)
}

/// Asks the exchange that writes the journal of these settings to end its day, and waits until its journal says so.
fn end_day(settings: &Settings) -> anyhow::Result<Outcome> {
    let journal = crate::log::place::journal(&settings.journal)?;
    let mut log = Reader::open(&journal, Start::Now, Registration::Unregistered)?;
    let Some(pid) = log.writer().and_then(|pid| Pid::from_raw(pid as i32)) else {
        bail!("no exchange writes {journal}; start it with: tickpath exchange --config {}", settings.file.display());
    };
    rustix::process::kill_process(pid, Signal::USR1).with_context(|| {
        format!("process {}, which writes {journal}, cannot be asked; ask as its user", pid.as_raw_nonzero())
    })?;
    for _ in 0..DAY_END_LOOKS {
        while let Next::Message(record) = log.next()? {
            let is_end = |name| name == END_OF_DAY;
            if let Some(JournalRecord::Other(name, _)) = JournalRecord::read(record.kind, record.payload)
                && is_end(name)
            {
                say("the day has ended at the exchange; its day orders have expired\n")?;
                return Ok(Outcome::Good);
            }
        }
        sleep_ns(LOOK_NS);
    }
    bail!(Unanswered("the exchange has not ended its day yet; it does so once it serves an OMS".to_owned()))
}

fn serve(settings: Settings) -> anyhow::Result<()> {
    let orders = orders().context("cannot listen for signals")?;
    let venue = settings.venue;
    let mut tell = |event: Event| {
        note(&format!("{} venue {venue}: {event}", rfc3339(utc_ns())));
    };
    Ok(tickpath_exchange::run(HostClock::get()?, settings, &orders, &mut tell)?)
}

/// What signals tell: the first one to end stops the exchange, the second ends the process at once.
fn orders() -> std::io::Result<Orders> {
    let orders = Orders { stop: stop_on_signals()?, ..Orders::default() };
    flag::register(SIGHUP, orders.reload.clone())?;
    flag::register(SIGUSR1, orders.end_day.clone())?;
    Ok(orders)
}

fn described(settings: &Settings) -> String {
    let Settings { file, venue, oms, listen, journal, instruments, quotes, ticks, .. } = settings;
    let market = match ticks {
        Some(topic) => format!("its market is {topic}"),
        None => format!("it quotes {}", quotes.len()),
    };
    let (file, journal, symbols) = (file.display(), journal.display(), instruments.len());
    let lanes = (!oms.is_empty()).then(|| format!("the OMS '{oms}'"));
    let whose: Vec<String> =
        lanes.into_iter().chain(listen.iter().map(|address| format!("lines by {address}"))).collect();
    let whose = whose.join(" and ");
    format!("{file}: good\nvenue {venue} for {whose}; {symbols} symbols, {market}; its journal is {journal}\n")
}
