//! Configuration files of a venue: `exchange.toml`, and the table of instruments that it names.
//!
//! All mistakes of both files are reported at once, each with its line. Relative paths start at the folder of the file.

mod init;
mod instruments;

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use tickpath_clock::{Priority, Wait};
use tickpath_log::{Config as LogConfig, LogPath};
use tickpath_market::{Price, Quantity, Symbol, SymbolId, TopOfBook, VenueId};
use tickpath_settings::{Section, SettingsError};
use tickpath_venue_native::{LineAddress, LinePassword};

pub use init::{VenueInitError, init};

use crate::lanes::LanePaths;
use crate::{Config, EngineConfig, InjectedFaults};

/// Number of files that the exchange itself opens: journal, lanes, market data.
const OWN_FILES: u64 = 32;
/// Max connections at once, unless `most_lines` is larger.
pub(crate) const MAX_CONNECTIONS: usize = 64;

/// Upper bound of venue numbers, exclusive.
const VENUES: u16 = 1 << 12;
/// Max injected delay of a report, in milliseconds.
const MAX_DELAY_MS: u64 = 3_600_000;
const MS_NS: u64 = 1_000_000;
/// Default of `most_lines`: socket lines that are known at once.
const DEFAULT_MAX_LINES: usize = 64;

const WAITS: &[(&str, Wait)] =
    &[("busy", Wait::Busy), ("yield", Wait::Yield), ("block", Wait::Block), ("adaptive", Wait::Adaptive)];

/// Settings of a venue as a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Path of the settings file.
    pub file: PathBuf,
    /// Venue number, which must match the OMS's configuration.
    pub venue: VenueId,
    /// Name of the OMS, which its lanes carry; empty if no OMS uses lanes.
    pub oms: String,
    /// Listen addresses for socket lines.
    pub listen: Vec<LineAddress>,
    /// Password that socket lines must prove; if absent, lines need no proof.
    pub password: Option<LinePassword>,
    /// Max socket lines that are known at once.
    pub most_lines: usize,
    /// Folder of the venue's journal.
    pub journal: PathBuf,
    /// Path of the table of instruments.
    pub instruments_file: PathBuf,
    /// Instruments that can be traded here, with their ids.
    pub instruments: Vec<(Symbol, SymbolId)>,
    /// Tick topic in shared memory that moves the market.
    pub ticks: Option<LogPath>,
    /// The maker's quotes of a venue without ticks.
    pub quotes: Vec<TopOfBook>,
    /// Topic in shared memory that the quotes are published on.
    pub publish: Option<LogPath>,
    /// Injected faults.
    pub faults: InjectedFaults,
    /// Number of resting orders with memory allocated at the start.
    pub expected_orders: usize,
    /// The venue's thread.
    pub thread: ThreadSettings,
}

/// Settings of the venue's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSettings {
    /// Wait strategy.
    pub wait: Wait,
    /// Processor; any if none is given.
    pub cpu: Option<usize>,
    /// Scheduling priority.
    pub priority: Priority,
}

/// Error of unusable settings files: all mistakes, file by file.
#[derive(Debug, thiserror::Error)]
#[error("{}", .list.iter().map(SettingsError::to_string).collect::<Vec<_>>().join("\n"))]
pub struct VenueSettingsError {
    /// Mistakes of each faulty file.
    pub list: Vec<SettingsError>,
}

impl Settings {
    /// Describes what a venue with these settings would do, in two lines.
    pub fn description(&self) -> String {
        let Settings { file, venue, oms, listen, journal, instruments, quotes, ticks, .. } = self;
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

    /// Reads the file and the table that it names.
    pub fn read(file: &Path) -> Result<Self, VenueSettingsError> {
        let mut sections = None;
        let own = tickpath_settings::read(file, |top| sections = Some(Self::read_sections(top)));
        let mut list: Vec<SettingsError> = own.err().into_iter().collect();
        let Some((settings, table)) = sections else { return Err(VenueSettingsError { list }) };
        // A missing name of the table is reported as a mistake of the file alone.
        list.extend(table.filter(|_| !settings.instruments_file.as_os_str().is_empty()));
        if list.is_empty() { Ok(settings) } else { Err(VenueSettingsError { list }) }
    }

    /// Returns the configuration for [`VenueEngine::open`](crate::VenueEngine::open).
    pub fn engine_config(&self) -> EngineConfig {
        let symbols = self.instruments.iter().map(|(_, SymbolId(number))| number + 1).max().unwrap_or(0);
        EngineConfig {
            venue: Config { venue: self.venue, symbols, expected_orders: self.expected_orders },
            journal: LogConfig::journal(LogPath::folder(&self.journal)),
            quotes: self.quotes.clone(),
            faults: self.faults,
        }
    }

    /// Returns a warning for each valid setting that may be unintended, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let file = self.file.display();
        if self.instruments.is_empty() {
            let table = self.instruments_file.display();
            doubts.push(format!("{table}: no instrument is of venue {}, so that every order is refused", self.venue.0));
        }
        if self.password.is_some() && self.listen.is_empty() {
            doubts.push(format!(
                "{file}: a password_file, and nowhere to listen; only lines by sockets prove a password"
            ));
        }
        if self.ticks.is_none() && self.quotes.is_empty() {
            doubts.push(format!("{file}: neither ticks nor a [[quote]]; orders fill only against each other"));
        }
        doubts
    }

    /// Returns a warning if the limit of open files is too low for the configured number of lines.
    pub fn file_limit_warning(&self) -> Option<String> {
        let needed = OWN_FILES + self.most_lines.max(MAX_CONNECTIONS) as u64;
        let limit = getrlimit(Resource::Nofile).current.filter(|&limit| limit < needed && !self.listen.is_empty())?;
        Some(format!(
            "the limit is {limit} open files, and this configuration needs up to {needed}: lines would wait for a \
             free one; `ulimit -n {needed}` before the exchange starts, or lower most_lines"
        ))
    }

    /// Reads the settings from the file's sections. Returns them, and the mistakes of the table of instruments.
    fn read_sections(top: &mut Section<'_>) -> (Self, Option<SettingsError>) {
        let number: Option<u16> = top.number("venue", 0..=VENUES - 1);
        if !top.has("venue") {
            // Reports the missing key.
            top.require_number("venue", 0..=VENUES - 1);
        }
        let venue = VenueId(number.unwrap_or_default());
        let listen = top.list("listen").unwrap_or_default();
        let oms = match top.has("oms") || listen.is_empty() {
            true => top.require_text("oms"),
            false => String::new(),
        };
        if top.has("oms")
            && let Err(reason) = LanePaths::new(&oms, VenueId(VENUES))
        {
            top.add_mistake("oms", reason);
        }
        let password = top.path("password_file").and_then(|file| {
            let read = LinePassword::read(&file);
            read.map_err(|reason| top.add_mistake("password_file", reason)).ok()
        });
        let name = top.text("name");
        let instruments_file = top.require_path("instruments");
        let table = instruments::read(&instruments_file, venue, name.as_deref());
        let thread = top.section("thread", thread);
        let most_lines = top.number("most_lines", 1..=4_096).unwrap_or(DEFAULT_MAX_LINES);
        let journal = top.require_path("journal");
        let mut settings = Self {
            file: top.file().to_owned(),
            venue,
            oms,
            listen,
            password,
            most_lines,
            // An absolute path, because a journal is identified by its path.
            journal: std::path::absolute(&journal).unwrap_or(journal),
            instruments_file,
            instruments: Vec::new(),
            ticks: topic(top, "ticks"),
            quotes: Vec::new(),
            publish: topic(top, "publish"),
            faults: top.section("faults", faults),
            expected_orders: top.number("expected_orders", 1..=50_000_000).unwrap_or(100_000),
            thread,
        };
        let is_known = table.is_ok() && number.is_some();
        let wrong = table.map(|instruments| settings.instruments = instruments).err();
        top.sections("quote", |section| quote(section, &mut settings, is_known));
        if settings.ticks.is_some() && top.has("quote") {
            top.add_mistake("ticks", "the market is made of ticks or of quotes; leave out this, or each [[quote]]");
        }
        if settings.publish.is_some() && !top.has("quote") {
            top.add_mistake("publish", "there is no [[quote]] that could be published; write one, or leave this out");
        }
        (settings, wrong)
    }
}

fn thread(thread: &mut Section<'_>) -> ThreadSettings {
    let wait = thread.one_of("wait", WAITS).unwrap_or(Wait::Block);
    let cpu = thread.number("cpu", 0..=4095);
    let available = tickpath_clock::cpus();
    if let Some(cpu) = cpu.filter(|cpu| !available.contains(cpu)) {
        thread.add_mistake("cpu", format!("CPU {cpu} is not available to this process; available: {available:?}"));
    }
    ThreadSettings { wait, cpu, priority: thread.parsed("priority").unwrap_or_default() }
}

fn topic(top: &mut Section<'_>, key: &str) -> Option<LogPath> {
    let name = top.text(key)?;
    LogPath::shared_memory(&name).map_err(|reason| top.add_mistake(key, reason)).ok()
}

/// Adds a `[[quote]]`. `is_known` is false if the table has mistakes, and then its symbol is not checked.
fn quote(quote: &mut Section<'_>, settings: &mut Settings, is_known: bool) {
    let name: Option<Symbol> = quote.require_parsed("symbol");
    let bid: Price = above_zero(quote, "bid", Price::ZERO);
    let ask: Price = above_zero(quote, "ask", Price::ZERO);
    if bid >= ask && ask > Price::ZERO {
        quote.add_mistake("bid", format!("{bid} is not below the ask, {ask}; such quotes would trade with each other"));
    }
    let quantity: Quantity = above_zero(quote, "quantity", Quantity::ZERO);
    let Some(name) = name.filter(|_| is_known) else { return };
    let Some(&(_, symbol)) = settings.instruments.iter().find(|(listed, _)| *listed == name) else {
        let (table, venue) = (settings.instruments_file.display(), settings.venue.0);
        return quote.add_mistake("symbol", format!("{table} has no '{name}' of venue {venue}; add it there"));
    };
    if settings.quotes.iter().any(|other| other.symbol == symbol) {
        quote.add_mistake("symbol", format!("'{name}' has a [[quote]] already; write one for each symbol"));
    }
    let sizes = TopOfBook { bid_quantity: quantity, ask_quantity: quantity, ..TopOfBook::default() };
    settings.quotes.push(TopOfBook { bid, ask, symbol, ..sizes });
}

fn above_zero<T>(quote: &mut Section<'_>, key: &str, zero: T) -> T
where
    T: std::str::FromStr<Err: fmt::Display> + fmt::Display + PartialOrd,
{
    match quote.require_parsed(key) {
        Some(number) if number > zero => number,
        Some(number) => {
            quote.add_mistake(key, format!("{number} is not above zero"));
            zero
        }
        None => zero,
    }
}

fn faults(faults: &mut Section<'_>) -> InjectedFaults {
    let mut chance = |key| faults.parsed(key).unwrap_or_default();
    let [drop_requests, drop, double, swap, reject, cut] =
        ["drop_requests", "drop", "double", "swap", "reject", "cut"].map(&mut chance);
    InjectedFaults {
        seed: faults.number("seed", 0..=i64::MAX as u64).unwrap_or(1),
        drop_requests,
        drop,
        double,
        swap,
        reject,
        delay_ns: faults.number("delay_ms", 0..=MAX_DELAY_MS).unwrap_or(0) * MS_NS,
        halt: faults.flag("halt").unwrap_or(false),
        cut,
    }
}
