//! `tickpath orders`: what a journal knows of orders, without a word to its OMS.
//!
//! ```text
//!   file:///var/lib/tickpath/journal, all before record 4711; process 4711 writes it
//!   order       since                 client_order_id  session  account   symbol  side  …  status
//!   3474042.12  2026-11-22T18:03:46Z               12        0        1  BTCUSDT   buy  …  partially_filled
//! ```

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use tickpath_lab::result::rfc3339;
use tickpath_log::{Place, Reader, Registration, Start};
use tickpath_market::{ExecType, ExecutionReport, Notional, OrdStatus, OrderDenied, OrderId, Price, Side};
use tickpath_oms::journal;
use tickpath_orders::{Core, Denial, OrderView, Output};

use crate::Outcome;
use crate::log::word;

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
}

pub fn run(args: &Orders) -> anyhow::Result<Outcome> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => crate::oms::read_for_client(&args.config)?.journal,
    };
    let place = crate::log::journal(&dir)?;
    let (mut replay, mut core) = journal::follow(&place)?;
    while replay.step(&mut core, |_, _, _| {})? {}
    // A page that is lost would pass for the end.
    replay.check_end()?;
    let mut out = std::io::stdout().lock();
    // Whoever closed our output has read enough of it.
    let mut print = |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok();
    let writer = Reader::open(&place, Start::Now, Registration::Unregistered)?.writer();
    let whose = writer.map_or("no OMS writes it now".to_owned(), |pid| format!("process {pid} writes it"));
    let mut is_read =
        print(&format!("{place}, all before record {}; {whose}\n", replay.sequence())) && print(&table(&core, &place));
    if args.follow {
        eprintln!("what clients are told from record {} on, until Ctrl-C:", replay.sequence());
    }
    while args.follow && is_read {
        let mut lines = String::new();
        let came = replay.step(&mut core, |_, _, outputs| lines = outputs.iter().filter_map(line).collect())?;
        match came {
            true => is_read = lines.is_empty() || print(&lines),
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
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(open.iter().map(|order| row(order, core, journal)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    for row in if open.is_empty() { &rows[..0] } else { &rows[..] } {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        text.push_str(&cells.collect::<Vec<_>>().join("  "));
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

fn row(order: &OrderView, core: &Core, journal: &Place) -> [String; 13] {
    let symbol = core.instrument(order.symbol).map(|instrument| instrument.name.to_string());
    let since = journal::time_of(journal, order.id.sequence());
    [
        id(order.id),
        since.map_or_else(String::new, rfc3339),
        order.client_order_id.0.to_string(),
        order.session.to_string(),
        order.account.0.to_string(),
        symbol.filter(|name| !name.is_empty()).unwrap_or_else(|| order.symbol.0.to_string()),
        order.venue.to_string(),
        word(order.side),
        order.quantity.to_string(),
        order.cumulative.to_string(),
        order.leaves.to_string(),
        order.price.to_string(),
        word(order.status),
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
        "{} session={session} client_order_id={} {} {} side={} leaves={} filled={} last={}@{}\n",
        id(report.order_id),
        report.client_order_id.0,
        ExecType::from_code(report.exec_type).map_or_else(String::new, word),
        OrdStatus::from_code(report.status).map_or_else(String::new, word),
        Side::from_code(report.side).map_or_else(String::new, word),
        report.leaves_quantity,
        report.cumulative_quantity,
        report.last_quantity,
        report.last_price,
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
    let units =
        |number: i128| i64::try_from(number).map_or_else(|_| number.to_string(), |units| Price(units).to_string());
    Some(match denial {
        Denial::MinimumQuantity | Denial::MaximumQuantity | Denial::Position | Denial::PriceCollar => units(number),
        Denial::Notional | Denial::Credit => Notional(number).to_string(),
        Denial::RequestAge | Denial::StaleReference => match u64::try_from(number) {
            Ok(u64::MAX) => "never".to_owned(),
            _ => format!("{} ms", number / 1_000_000),
        },
        Denial::MessageRate | Denial::OpenOrders | Denial::VenueQueue => number.to_string(),
        _ => return None,
    })
}

/// As the epoch of its start and its journal sequence.
pub fn id(id: OrderId) -> String {
    format!("{}.{}", id.epoch(), id.sequence())
}
