//! `tickpath orders`: what a journal knows of orders, without a word to its OMS.
//!
//! ```text
//!   file:///var/lib/tickpath/journal, all before record 4711; process 4711 writes it
//!   order       since                 client_order_id  session  account   symbol  side  …  status            when
//!   3474042.12  2026-11-22T18:03:46Z               12        0        1  BTCUSDT   buy  …  partially_filled
//!   3474042.14  2026-11-22T18:03:51Z               13        0        1  BTCUSDT   buy  …  armed             BTCUSDT last >= 65000
//! ```

use std::path::PathBuf;

use clap::Args;
use tickpath_log::{Place, Reader, Registration, Start};
use tickpath_market::{
    ExecType, ExecutionReport, ManualOrderIndicator, Notional, OrdStatus, OrderDenied, OrderId, SCALE, Side, SymbolId,
};
use tickpath_oms::journal;
use tickpath_orders::{Core, Denial, Foreign, Measure, OrderView, Output};
use tickpath_result::rfc3339;

use crate::desk::Known;
use crate::log::fields::word;
use crate::outcome::Outcome;
use crate::print::{is_closed, note, say};

/// How long who follows waits before it looks again.
const LOOK_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Args)]
pub struct Orders {
    /// The journal's folder; that of the OMS's file if not given
    pub dir: Option<PathBuf>,
    /// The file of the OMS
    #[arg(long, value_name = "FILE", default_value = "oms.toml", conflicts_with = "dir")]
    pub config: PathBuf,
    /// Go on with what each client is told from now on, a line each, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
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
    let (mut replay, mut core) = journal::follow(&place)?;
    while replay.step(&mut core, |_, _, _| {})? {}
    // A page that is lost would pass for the end.
    replay.check_end()?;
    let writer = Reader::open(&place, Start::Now, Registration::Unregistered)?.writer();
    let whose = writer.map_or("no OMS writes it now".to_owned(), |pid| format!("process {pid} writes it"));
    say(&format!("{place}, all before record {}; {whose}\n", replay.sequence()))?;
    say(&if args.foreign { foreign(&core) } else { table(&core, &place) })?;
    if args.follow {
        note(&format!("what clients are told from record {} on, until Ctrl-C:", replay.sequence()));
    }
    while args.follow && !is_closed() {
        let mut lines = String::new();
        let came = replay.step(&mut core, |_, _, outputs| lines = outputs.iter().filter_map(line).collect())?;
        match came {
            true => say(&lines)?,
            false => tickpath_clock::sleep_ns(LOOK_NS),
        }
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

/// What a client is told; none of what goes to a venue.
fn line(output: &Output) -> Option<String> {
    match output {
        Output::Venue { .. } => None,
        Output::Report { session, report } => Some(report_line(*session, report)),
        Output::Denied { session, denied } => Some(denial_line(*session, denied)),
    }
}

/// What a report tells.
pub fn report_line(session: u16, report: &ExecutionReport) -> String {
    format!(
        "{} session={session} client_order_id={} {} {} side={} leaves={} filled={} last={}@{}{}\n",
        id(report.order_id),
        report.client_order_id.0,
        ExecType::from_code(report.exec_type).map_or_else(String::new, word),
        OrdStatus::from_code(report.status).map_or_else(String::new, word),
        Side::from_code(report.side).map_or_else(String::new, word),
        report.leaves_quantity,
        report.cumulative_quantity,
        report.last_quantity,
        report.last_price,
        if report.manual == ManualOrderIndicator::Manual.code() { " manual" } else { "" },
    )
}

/// Why a request was denied, with the limit and the value that broke it.
pub fn denial_line(session: u16, denied: &OrderDenied) -> String {
    let denial = Denial::from_code(denied.code);
    let why = denial.map_or_else(|| denied.code.to_string(), |denial| denial.to_string());
    let (limit, value) = (i128::from_le_bytes(denied.limit), i128::from_le_bytes(denied.value));
    let measure = match denial.and_then(|denial| measured(denial, limit).zip(measured(denial, value))) {
        Some((limit, value)) => format!(" (limit {limit}, value {value})"),
        None => String::new(),
    };
    let (order, client) = (id(denied.order_id), denied.client_order_id.0);
    format!("{order} session={session} client_order_id={client} denied: {why}{measure}\n")
}

/// A limit or a value as a person reads it; none if the check has no measure.
fn measured(denial: Denial, number: i128) -> Option<String> {
    Some(match denial.measure() {
        Measure::Nothing => return None,
        Measure::Count => number.to_string(),
        // A sum of quantities may be more than one quantity can be; money has eight decimals more.
        Measure::Decimal => Notional(number.saturating_mul(SCALE.into())).to_string(),
        Measure::Money => Notional(number).to_string(),
        Measure::Nanoseconds => match u64::try_from(number) {
            Ok(u64::MAX) => "never".to_owned(),
            Ok(ns) if ns < 1_000_000_000 && ns % 1_000_000 != 0 => {
                format!("{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000)
            }
            _ => format!("{} ms", number / 1_000_000),
        },
    })
}

/// As the epoch of its start and its journal sequence.
pub fn id(id: OrderId) -> String {
    format!("{}.{}", id.epoch(), id.sequence())
}
