//! `tickpath orders`: what a journal knows of orders, without a word to its OMS.
//!
//! ```text
//!   file:///var/lib/tickpath/journal, all before record 4711; process 4711 writes it
//!   order       since                 client_order_id  session  account   symbol  side  …  status            when
//!   3474042.12  2026-11-22T18:03:46Z               12        0        1  BTCUSDT   buy  …  partially_filled
//!   3474042.14  2026-11-22T18:03:51Z               13        0        1  BTCUSDT   buy  …  armed             BTCUSDT last >= 65000
//! ```

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use tickpath_client::CopiedReport;
use tickpath_log::Place;
use tickpath_market::{ExecType, OrdStatus, Side, SymbolId};
use tickpath_oms::journal::{self, Replay};
use tickpath_orders::{At, Config, Core, Foreign, OrderView, Output};
use tickpath_result::rfc3339;

use crate::desk::Known;
use crate::log::fields::word;
use crate::outcome::Outcome;
use crate::outlet::has_reader;
use crate::print::{is_closed, note, say};
use crate::report_lines::Told;

pub use crate::report_lines::{denial_line, id, report_line};

/// How long who follows waits before it looks again.
const LOOK_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Args)]
pub struct Orders {
    /// The journal's folder; that of the OMS's file if not given
    pub dir: Option<PathBuf>,
    /// The file of the OMS
    #[arg(long, value_name = "FILE", default_value = "oms.toml", conflicts_with = "dir")]
    pub config: PathBuf,
    /// Go on with what each client is told from now on, a line each behind its record, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// With --follow: begin behind this record, with which the last line that you have begins, and without the table of
    /// open orders. Days that have ended are read, too
    #[arg(long, value_name = "N", requires = "follow")]
    pub from: Option<u64>,
    /// With --follow: print one JSON object a line, without the table of open orders
    #[arg(long, requires = "follow")]
    pub json: bool,
    /// Reports of orders that the OMS does not know, instead of its orders: `tickpath oms enter order` joins them
    #[arg(long, conflicts_with = "follow")]
    pub foreign: bool,
}

pub fn run(args: &Orders) -> anyhow::Result<Outcome> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => Known::read(&args.config).journal()?,
    };
    let place = crate::log::place::journal(&dir)?;
    if let Some(from) = args.from {
        let (replay, core) = behind(&place, from)?;
        note(&format!("what clients are told behind record {from}, until Ctrl-C:"));
        return follow(args, replay, core, from).map(|()| Outcome::Good);
    }
    let (mut replay, mut core) = journal::follow(&place)?;
    while replay.step(&mut core, |_, _, _| {})? {}
    // A page that is lost would pass for the end.
    replay.check_end()?;
    if !args.json {
        let writer = tickpath_log::writer(&place);
        let whose = writer.map_or("no OMS writes it now".to_owned(), |pid| format!("process {pid} writes it"));
        say(&format!("{place}, all before record {}; {whose}\n", replay.sequence()))?;
        say(&if args.foreign { foreign(&core) } else { table(&core, &place) })?;
    }
    if args.follow {
        note(&format!("what clients are told from record {} on, until Ctrl-C:", replay.sequence()));
        let last = replay.sequence().saturating_sub(1);
        follow(args, replay, core, last)?;
    }
    Ok(Outcome::Good)
}

/// Open orders, oldest first, and how many others there are.
fn table(core: &Core, journal: &Place) -> String {
    let mut open: Vec<OrderView> = core.live().collect();
    open.sort_by_key(|order| order.id.0);
    let heads = [
        "order",
        "since",
        "client_order_id",
        "session",
        "account",
        "symbol",
        "venue",
        "side",
        "quantity",
        "filled",
        "leaves",
        "price",
        "status",
        "when",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(open.iter().map(|order| row(order, core, journal)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    for row in if open.is_empty() { &rows[..0] } else { &rows[..] } {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    let counts = core.counts();
    text.push_str(&format!(
        "{} open ({} wait here, {} on their way, {} unknown), {} done, {} rejected; {} requests were denied\n",
        open.len(),
        counts.queued,
        counts.sending,
        counts.unknown,
        counts.done,
        counts.rejected,
        counts.denied_requests
    ));
    text
}

/// Reports of orders that are not known, oldest first.
fn foreign(core: &Core) -> String {
    let mut text = String::new();
    for Foreign { sequence, record } in core.foreign() {
        let report = &record.report;
        let name = core.instrument(report.symbol).map_or_else(|| report.symbol.0.to_string(), |i| i.name.to_string());
        text.push_str(&format!(
            "record {sequence}: venue {} sent_as {} venue_order_id {} account {} {name} {} {} {} filled {} leaves {} \
             last {}@{} exec_id {} number {}\n",
            record.source,
            id(report.order_id),
            report.venue_order_id.0,
            report.account.0,
            Side::from_code(report.side).map_or_else(String::new, word),
            ExecType::from_code(report.exec_type).map_or_else(String::new, word),
            OrdStatus::from_code(report.status).map_or_else(String::new, word),
            report.cumulative_quantity,
            report.leaves_quantity,
            report.last_quantity,
            report.last_price,
            report.exec_id.0,
            report.venue_sequence,
        ));
    }
    let count = core.foreign_count();
    text.push_str(&format!("{count} reports of orders that are not known here\n"));
    text
}

fn row(order: &OrderView, core: &Core, journal: &Place) -> [String; 14] {
    let name = |symbol: SymbolId| {
        let name = core.instrument(symbol).map(|instrument| instrument.name.to_string());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| symbol.0.to_string())
    };
    let since = journal::time_of(journal, order.id.sequence());
    [
        id(order.id),
        since.map_or_else(String::new, rfc3339),
        order.client_order_id.0.to_string(),
        order.session.to_string(),
        order.account.0.to_string(),
        name(order.symbol),
        order.venue.to_string(),
        word(order.side),
        order.quantity.to_string(),
        order.cumulative.to_string(),
        order.leaves.to_string(),
        order.price.to_string(),
        word(order.status),
        core.armed_order(order.id).map_or_else(String::new, |armed| crate::when::text(&armed.trigger, name)),
    ]
}

/// The instrument's name, if the journal has defined one.
fn name(core: &Core, symbol: SymbolId) -> Option<String> {
    core.instrument(symbol).map(|instrument| instrument.name.to_string()).filter(|name| !name.is_empty())
}

/// A replay that gives all behind this record, with its core: from a snapshot on, if that record is in none.
fn behind(place: &Place, record: u64) -> anyhow::Result<(Replay, Core)> {
    let (replay, core) = journal::follow(place)?;
    if replay.sequence() <= record.saturating_add(1) {
        return Ok((replay, core));
    }
    Ok((Replay::open(place)?, Core::new(Config::default())))
}

/// Prints what clients are told behind the record `from`, over restarts and ends of days, until the output is closed.
fn follow(args: &Orders, mut replay: Replay, mut core: Core, from: u64) -> anyhow::Result<()> {
    let mut is_checked = false;
    while !is_closed() {
        let mut found = None;
        let came = replay.step(&mut core, |at, _, outputs| {
            if at.sequence > from {
                found = Some((at, outputs.to_vec()));
            }
        })?;
        if !came {
            if !std::mem::replace(&mut is_checked, true) {
                check(&replay, from)?;
            }
            if !has_reader() {
                return Ok(());
            }
            tickpath_clock::sleep_ns(LOOK_NS);
        }
        let Some((at, outputs)) = found else { continue };
        let utc_ns = replay.calibration().utc_ns_of(at.stamp);
        let all = outputs.iter().filter_map(|output| told(at, utc_ns, output));
        let lines: String = all.map(|told| told.line(args.json, |symbol| name(&core, symbol))).collect();
        // All of a record at once: a follower that is killed has all of it or nothing.
        if !lines.is_empty() {
            say(&lines)?;
        }
    }
    Ok(())
}

/// Checks, where the journal ends, that this is no lost page, and that the record to begin behind lies before it.
fn check(replay: &Replay, from: u64) -> anyhow::Result<()> {
    replay.check_end()?;
    if from >= replay.sequence() {
        bail!("the journal ends before record {}: --from {from} is a number of another one", replay.sequence());
    }
    Ok(())
}

/// What a client is told; none of what goes to a venue.
fn told(at: At, utc_ns: u64, output: &Output) -> Option<Told> {
    let (session, report) = match output {
        Output::Venue { .. } => return None,
        Output::Report { session, report } => (*session, CopiedReport::Report(*report)),
        Output::Denied { session, denied } => (*session, CopiedReport::Denied(*denied)),
    };
    let (number, stamp) = (at.sequence, at.stamp);
    Some(Told { number, journal: None, session, session_number: None, stamp, utc_ns: Some(utc_ns), report })
}
