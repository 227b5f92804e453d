//! `tickpath blotter`: its arguments and its output.
//!
//! ```text
//!   current day, records 4711 to 4802 of file:///var/lib/tickpath/journal; profit by average cost
//!   orders (2)
//!     entered_utc           order_id    client_order_id  session  user  account  symbol   side  …  status
//!     2026-11-28T18:03:46Z  3474042.12               12        0  anna        1  BTCUSDT  buy   …  filled
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_log::LogPath;
use tickpath_market::Price;

use crate::BlotterError;
use crate::day::DayChoice;
use crate::day_blotter::{BlotterStep, DayBlotter};
use crate::row::BlotterStatus;
use crate::table::BlotterTable;
use crate::view::{BlotterTables, BlotterView, json_document};

/// Time between two reads of a followed journal.
const POLL_NS: u64 = 1_000_000;

/// Writer of text to standard output.
pub type TextOutput<'a> = &'a mut dyn FnMut(&str) -> Result<(), Box<dyn Error + Send + Sync>>;

/// Arguments of `tickpath blotter`.
#[derive(Debug, Clone, Args)]
pub struct BlotterArgs {
    /// The journal's folder; that of the OMS's file if not given
    pub dir: Option<PathBuf>,
    /// The file of the OMS: where its journal is, and its users
    #[arg(long, value_name = "FILE", default_value = "oms.toml", conflicts_with = "dir")]
    pub config: PathBuf,
    /// The day that ended with this date, like 20261128; the current day if not given
    #[arg(long, value_name = "YYYYMMDD", value_parser = parse_day, conflicts_with = "first_record")]
    pub day: Option<u32>,
    /// Number of the day's first record, which is also the name of its log in the journal's archive
    #[arg(long, value_name = "N")]
    pub first_record: Option<u64>,
    /// Orders alone
    #[arg(long, conflicts_with_all = ["fills", "positions"])]
    pub orders: bool,
    /// Fills alone
    #[arg(long, conflicts_with = "positions")]
    pub fills: bool,
    /// Positions alone, with their profit
    #[arg(long, conflicts_with_all = ["session", "status"])]
    pub positions: bool,
    /// Rows of this account
    #[arg(long, value_name = "N")]
    pub account: Option<u32>,
    /// Rows of this instrument
    #[arg(long, value_name = "NAME")]
    pub symbol: Option<String>,
    /// Orders of this session, and their fills; positions have no session
    #[arg(long, value_name = "N")]
    pub session: Option<u16>,
    /// Orders of this status, and their fills: new, partially_filled, filled, canceled, rejected, denied, …
    #[arg(long, value_name = "WORD")]
    pub status: Option<String>,
    /// One table as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// One JSON document; with --follow a line a row
    #[arg(long)]
    pub json: bool,
    /// Value positions at this price instead of the last own fill's
    #[arg(long = "mark", value_name = "SYMBOL=PRICE", value_parser = parse_price)]
    pub marks: Vec<(String, i64)>,
    /// Cost or worth of a position at the start of the day, instead of its average cost
    #[arg(long = "start", value_name = "SYMBOL=PRICE", value_parser = parse_price)]
    pub starts: Vec<(String, i64)>,
    /// Print each row that changes, until Ctrl-C
    #[arg(long, conflicts_with_all = ["day", "first_record"])]
    pub follow: bool,
}

/// Prints the blotter of a journal; `users` are names by sessions, and `warn` takes a sentence for standard error.
pub fn run(
    args: &BlotterArgs,
    journal: &LogPath,
    users: BTreeMap<u16, String>,
    print: TextOutput<'_>,
    warn: &mut dyn FnMut(&str),
) -> Result<(), BlotterError> {
    let view = view(args, users)?;
    if args.csv && !(args.orders || args.fills || args.positions) {
        return Err(BlotterError::SeveralTables);
    }
    let first = args.first_record.map_or(DayChoice::Today, DayChoice::FirstRecord);
    let mut blotter = DayBlotter::open(journal, args.day.map_or(first, DayChoice::Date))?;
    view.check(&blotter)?;
    if let Some(from) = blotter.replayed_from() {
        warn(&format!(
            "the archive lacks the records before {from}: a snapshot replaces them, and the blotter begins there"
        ));
    }
    print(&initial_output(args, journal, &blotter, &view.tables(&blotter))).map_err(BlotterError::Output)?;
    if args.follow {
        warn(&format!("rows that change from record {} on, until Ctrl-C", blotter.next_record()));
    }
    while args.follow && has_reader() {
        let step = blotter.step()?;
        let changes = text(args, &view.changes(&mut blotter));
        if !changes.is_empty() {
            print(&changes).map_err(BlotterError::Output)?;
        }
        match step {
            BlotterStep::Nothing => tickpath_clock::sleep_ns(POLL_NS),
            BlotterStep::Input => {}
            BlotterStep::DayEnd(day) => warn(&format!("day {day} has ended; rows of the next day follow")),
        }
    }
    Ok(())
}

/// Returns whether standard output still has a reader: a pipe without a reader reports an error.
fn has_reader() -> bool {
    let output = std::io::stdout();
    let mut ends = [PollFd::new(&output, PollFlags::empty())];
    let found = poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    found.is_err() || !ends[0].revents().contains(PollFlags::ERR)
}

fn view(args: &BlotterArgs, users: BTreeMap<u16, String>) -> Result<BlotterView, BlotterError> {
    let status = match &args.status {
        None => None,
        Some(word) => Some(BlotterStatus::parse(word).ok_or_else(|| BlotterError::UnknownStatus {
            word: word.clone(),
            known: BlotterStatus::all().map(BlotterStatus::word).collect::<Vec<_>>().join(", "),
        })?),
    };
    Ok(BlotterView {
        account: args.account,
        symbol: args.symbol.clone(),
        session: args.session,
        status,
        marks: args.marks.iter().cloned().collect(),
        starts: args.starts.iter().cloned().collect(),
        users,
    })
}

/// Returns the requested tables.
fn chosen<'a>(args: &BlotterArgs, tables: &'a BlotterTables) -> Vec<&'a BlotterTable> {
    match (args.orders, args.fills, args.positions) {
        (true, ..) => vec![&tables.orders],
        (_, true, _) => vec![&tables.fills],
        (_, _, true) => vec![&tables.positions],
        _ => tables.all().to_vec(),
    }
}

/// Returns everything known at the start.
fn initial_output(args: &BlotterArgs, journal: &LogPath, blotter: &DayBlotter, tables: &BlotterTables) -> String {
    let chosen = chosen(args, tables);
    if args.json && !args.follow {
        return json_document(blotter, &chosen).to_string() + "\n";
    }
    if args.json || args.csv {
        let heads = chosen.iter().filter(|_| args.csv).map(|table| table.csv_head()).collect::<String>();
        return heads + &text(args, tables);
    }
    let day = blotter.day();
    let which = day.date.map_or("current day".to_owned(), |date| format!("day {date}"));
    let (first, last) = (day.first, blotter.next_record().saturating_sub(1));
    let head = format!("{which}, records {first} to {last} of {journal}; profit by average cost\n");
    head + &chosen.iter().map(|table| table.for_people()).collect::<Vec<_>>().join("\n")
}

/// Returns rows as lines.
fn text(args: &BlotterArgs, tables: &BlotterTables) -> String {
    let lines = |table: &&BlotterTable| match (args.json, args.csv) {
        (true, _) => table.json_lines(),
        (_, true) => table.csv_rows(),
        _ => table.lines(),
    };
    chosen(args, tables).iter().map(lines).collect()
}

/// Reads a day: `20261122`.
fn parse_day(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write the day like 20261122".to_owned())
}

/// Reads a price of an instrument: `BTCUSDT=61800.5`.
fn parse_price(text: &str) -> Result<(String, i64), String> {
    let (name, price) = text.split_once('=').ok_or("write it like BTCUSDT=61800.5")?;
    let price = price.parse::<Price>().map_err(|error| error.to_string())?;
    Ok((name.to_owned(), price.0))
}
