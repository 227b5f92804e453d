//! `tickpath orders`: the orders of a journal, read without a request to its OMS.
//!
//! ```text
//!   file:///var/lib/tickpath/journal, all before record 4711; process 4711 writes it
//!   order       since             client_order_id  session   symbol  side  …  status            when
//!   3474042.12  2026-11-22T18:03:46Z           12        0  BTCUSDT   buy  …  partially_filled
//!   3474042.14  2026-11-22T18:03:51Z           13        0  BTCUSDT   buy  …  armed             BTCUSDT last >= 65000
//! ```

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use tickpath_log::{LogPath, ProcessId};
use tickpath_market::OrderId;
use tickpath_oms_core::{At, Config, Core, Input, Output};
use tickpath_oms_runtime::journal::{self, Replay};
use tickpath_oms_text::{ReportOrDenial, SentReport, foreign_reports, open_orders, symbol_name};

use crate::follower_output::has_reader;
use crate::oms_files::PartialSettings;
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{is_closed, print_note, print_text};

/// Sleep of `--follow` between two reads, in nanoseconds.
const POLL_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Args)]
pub struct OpenOrdersArgs {
    /// Folder of the journal; default: the one in the OMS's file
    pub dir: Option<PathBuf>,
    /// Configuration file of the OMS
    #[arg(long, value_name = "FILE", default_value = "oms.toml", conflicts_with = "dir")]
    pub config: PathBuf,
    /// Follow the reports that the OMS sends to clients, one a line behind its record number, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// With --follow: resume behind this record, the number at the beginning of the last line received, without the
    /// table of open orders; days that have ended are read too
    #[arg(long, value_name = "N", requires = "follow")]
    pub from: Option<u64>,
    /// With --follow: print one JSON object a line, without the table of open orders
    #[arg(long, requires = "follow")]
    pub json: bool,
    /// List the reports of orders that the OMS does not know, instead of its orders: `tickpath oms enter order` enters
    /// them
    #[arg(long, conflicts_with = "follow")]
    pub foreign: bool,
}

pub fn run(args: &OpenOrdersArgs) -> anyhow::Result<CliOutcome> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => PartialSettings::read(&args.config).journal("it as DIR")?,
    };
    let place = tickpath_cli_terminal::log_arguments::parse_journal(&dir)?;
    if let Some(from) = args.from {
        let (replay, core) = open_behind(&place, from)?;
        print_note(&format!("reports to clients behind record {from}, until Ctrl-C:"));
        return follow(args, replay, core, from).map(|()| CliOutcome::Success);
    }
    let (mut replay, mut core) = journal::follow(&place)?;
    while replay.step(&mut core, |_, _, _| {})? {}
    // A lost page would be taken for the end of the journal.
    replay.check_end()?;
    if !args.json {
        let writer = tickpath_log::writer(&place);
        let writer = writer.map_or("no OMS writes it now".to_owned(), |pid| format!("{} writes it", ProcessId(pid)));
        print_text(&format!("{place}, all before record {}; {writer}\n", replay.sequence()))?;
        let since = |order: OrderId| journal::time_of(&place, order.sequence());
        print_text(&if args.foreign { foreign_reports(&core) } else { open_orders(&core, since) })?;
    }
    if args.follow {
        print_note(&format!("reports to clients from record {} on, until Ctrl-C:", replay.sequence()));
        let last = replay.sequence().saturating_sub(1);
        follow(args, replay, core, last)?;
    }
    Ok(CliOutcome::Success)
}

/// Opens a replay that yields every input behind this record, with its core: from the latest snapshot, unless that
/// already holds inputs behind the record.
fn open_behind(place: &LogPath, record: u64) -> anyhow::Result<(Replay, Core)> {
    let (replay, core) = journal::follow(place)?;
    if replay.sequence() <= record.saturating_add(1) {
        return Ok((replay, core));
    }
    Ok((Replay::open(place)?, Core::new(Config::default())))
}

/// Prints the reports to clients behind the record `from`, over restarts and ends of days, until the output is closed.
fn follow(args: &OpenOrdersArgs, mut replay: Replay, mut core: Core, from: u64) -> anyhow::Result<()> {
    let mut is_checked = false;
    while !is_closed() {
        let mut found = None;
        let has_stepped = replay.step(&mut core, |at, input, outputs| {
            if at.sequence > from {
                let detail = if let Input::ReportDetail(record) = input { Some(*record) } else { None };
                found = Some((at, outputs.to_vec(), detail));
            }
        })?;
        if !has_stepped {
            if !std::mem::replace(&mut is_checked, true) {
                check(&replay, from)?;
            }
            if !has_reader() {
                return Ok(());
            }
            tickpath_clock::sleep_ns(POLL_NS);
        }
        let Some((at, outputs, detail)) = found else { continue };
        let utc_ns = replay.calibration().utc_ns_of(at.stamp);
        let detail = detail.and_then(|record| Some((record.session.checked_sub(1)?, record.detail)));
        let detail = detail.map(|(session, detail)| sent(at, utc_ns, session, ReportOrDenial::Detail(detail)));
        let all = outputs.iter().filter_map(|output| sent_report(at, utc_ns, output)).chain(detail);
        let lines: String = all.map(|sent| sent.line(args.json, |symbol| symbol_name(&core, symbol))).collect();
        // All lines of a record are printed at once: a follower that is killed has printed all of them or none.
        if !lines.is_empty() {
            print_text(&lines)?;
        }
    }
    Ok(())
}

/// Checks at the journal's end that no page is lost, and that the record `from` lies before the end.
fn check(replay: &Replay, from: u64) -> anyhow::Result<()> {
    replay.check_end()?;
    if from >= replay.sequence() {
        bail!("the journal ends before record {}; --from {from} belongs to another journal", replay.sequence());
    }
    Ok(())
}

/// Returns the report or the denial sent to a client; none for a message to a venue.
fn sent_report(at: At, utc_ns: u64, output: &Output) -> Option<SentReport> {
    let (session, answer) = match output {
        Output::Venue { .. } | Output::Extension { .. } => return None,
        Output::Report { session, report } => (*session, ReportOrDenial::Report(*report)),
        Output::Denied { session, denied } => (*session, ReportOrDenial::Denied(*denied)),
    };
    Some(sent(at, utc_ns, session, answer))
}

/// Returns a message to a client, with the number of its record.
fn sent(at: At, utc_ns: u64, session: u16, answer: ReportOrDenial) -> SentReport {
    let (number, stamp) = (at.sequence, at.stamp);
    SentReport { number, journal: None, session, session_number: None, stamp, utc_ns: Some(utc_ns), answer }
}
