//! The configuration of an OMS: `oms.toml`, and the tables and users that it names.
//!
//! ```text
//!   oms.toml ── listen, core, sessions, venues ──┐
//!     ├── instruments.csv    instruments         ├─> Settings ─> Config of an OMS
//!     ├── accounts.csv       limits per account  │
//!     ├── symbols.csv        limits per symbol   │
//!     └── users.toml         users ──────────────┘
//! ```
//!
//! All mistakes of all files are reported at once, each with its file and line; with any mistake nothing is taken. A
//! relative path begins at the folder of the file in which it stands.

mod accounts;
mod calendar;
mod config_errors;
mod copy_filter;
mod csv;
mod edit;
mod exchange_lines;
mod init;
mod instruments;
mod limits;
mod pattern;
mod retry_rules;
mod sessions;
mod symbols;
mod users;
mod venue;
mod venue_lines;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tickpath_clock::{LogoutCleanup, Priority, Wait};
use tickpath_exchanges::OrderExchange;
use tickpath_log::{Config as LogConfig, LogPath};
use tickpath_market::{Symbol, SymbolId, VenueId};
use tickpath_oms_core::{AccountLimits, FirmLimits, Instrument, NAME_SESSION, NAME_VENUE, NameRecord, SymbolLimits};
use tickpath_oms_runtime::calendar::Calendar;
use tickpath_oms_runtime::{Config, LaneKind, LanesConfig, Layout, TradingDefinitions};
use tickpath_settings::{Mistakes, Section, SettingsError};
use zeroize::Zeroizing;

pub use accounts::account_columns;
pub use calendar::read_calendar as take_calendar;
pub use config_errors::ConfigErrors;
pub use copy_filter::{CopyFilter, CopyTopic, ResolvedCopyFilter};
pub use edit::{EditError, NewUser, UsersFile};
pub use exchange_lines::{ExchangeLine, VenueInstrument};
pub use init::{InitialFiles, OmsInitError, init};
use instruments::InstrumentLine;
pub use instruments::{instrument_columns, list_instruments};
pub use pattern::{AccountPattern, AccountPatternError};
pub use sessions::{DenialLimits, KEEP_DAYS, MAX_SESSIONS, SessionDefaults};
pub use symbols::symbol_columns;
pub use users::{OmsUser, ROLES, Users};
pub use venue::VenueSettings;
pub use venue_lines::{LineSettings, LineTarget};

use limits::{money_of, quantity_of, rate_of};

use crate::tls::ServerTlsFiles;

/// Max bytes of the name of an OMS: the names of its lanes are longer.
const MAX_NAME_BYTES: usize = 100;
/// Bytes of a Unix socket's path, its terminating zero included.
const MAX_SOCKET_PATH: usize = 108;
/// Instruments of a line to Binance whose orders and fills a connect can ask for: a weight of 26 each, of 4,800 a minute.
const MAX_BINANCE_INSTRUMENTS: usize = 180;

const LAYOUTS: &[(&str, Layout)] = &[("inline", Layout::Inline), ("split", Layout::Split)];
const WAITS: &[(&str, Wait)] =
    &[("busy", Wait::Busy), ("yield", Wait::Yield), ("block", Wait::Block), ("adaptive", Wait::Adaptive)];

/// Configuration of an OMS as a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file itself.
    pub file: PathBuf,
    /// Name of its lanes in shared memory.
    pub name: String,
    /// Folder of its journal.
    pub journal: PathBuf,
    /// File of its users.
    pub users_file: PathBuf,
    /// Table of its instruments.
    pub instruments_file: PathBuf,
    /// Table of its accounts.
    pub accounts_file: PathBuf,
    /// Table of the limits of accounts in single symbols, if there is one.
    pub symbols_file: Option<PathBuf>,
    /// Topic in shared memory with its reference prices.
    pub ticks: Option<String>,
    /// Metrics, live page and log of the OMS.
    pub monitoring: MonitoringSettings,
    /// Topics on which it publishes the reports to its sessions.
    pub drop_copies: Vec<CopyTopic>,
    /// Addresses for clients.
    pub listen: ListenSettings,
    /// Configuration of the core's thread.
    pub core: CoreSettings,
    /// Defaults of each session, where its user has no value of its own.
    pub sessions: SessionDefaults,
    /// Limits of the journal records and the disk space that denied requests may use.
    pub denials: DenialLimits,
    /// Calendar by which trading days end, if they end without a command.
    pub day: Option<Calendar>,
    /// Venues that orders go to.
    pub venues: Vec<VenueSettings>,
    /// Instruments that can be traded.
    pub instruments: Vec<Instrument>,
    /// Numbers of instruments at their exchanges, as far as the table has them.
    pub codes: HashMap<SymbolId, u64>,
    /// Names of instruments in the table that the OMS does not trade, by the reason.
    pub untraded: BTreeMap<&'static str, Vec<Symbol>>,
    /// Accounts with their limits.
    pub accounts: Vec<AccountLimits>,
    /// Limits of accounts in single symbols.
    pub symbols: Vec<SymbolLimits>,
    /// Limits of all accounts together, if there are any.
    pub firm: Option<FirmLimits>,
    /// Users who may log in.
    pub users: Users,
}

/// Views of an OMS for others than its clients, with their addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MonitoringSettings {
    /// Address of the metrics for Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Address of the live page.
    pub web: Option<SocketAddr>,
    /// Host names by which both may be requested, beside addresses, `localhost` and the names of the certificate.
    pub hosts: Vec<String>,
    /// Form of the log lines.
    pub log: LogForm,
}

/// Form of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogForm {
    /// Time, name, and a sentence.
    #[default]
    Text,
    /// Pairs of a key and a value.
    Logfmt,
    /// A JSON object.
    Json,
}

/// Addresses for clients: at least one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListenSettings {
    /// Unix socket.
    pub unix: Option<PathBuf>,
    /// TCP address of this host.
    pub tcp: Option<SocketAddr>,
    /// Certificate for TCP connections.
    pub tls: Option<ServerTlsFiles>,
}

/// Configuration of the core's thread; see [`Config`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreSettings {
    /// Threads, and the work of each.
    pub layout: Layout,
    /// Waiting strategy of the core's thread.
    pub wait: Wait,
    /// CPU of the core's thread.
    pub cpu: Option<usize>,
    /// CPU of the other threads.
    pub other_cpu: Option<usize>,
    /// Priority of the core's thread.
    pub priority: Priority,
    /// Orders expected before the next start.
    pub expected_orders: usize,
    /// Inputs between two snapshots; zero for none.
    pub snapshot_every: u64,
    /// Warm-up of the core's thread while it spins.
    pub warm_up: bool,
}

impl Settings {
    /// Reads the file and all files that it names.
    pub fn read(file: &Path) -> Result<Self, ConfigErrors> {
        let mut faults = ConfigErrors { list: Vec::new() };
        let mut read = None;
        let own = tickpath_settings::read(file, |top| read = Some(Self::from_section_checked(top)));
        let is_sound = own.is_ok();
        faults.collect(own);
        // A file with mistakes is used too, for the files that it names: their mistakes are reported as well.
        let Some(mut settings) = read else { return Err(faults) };
        let venues = is_sound.then_some(&settings.venues[..]);
        let count = faults.list.len();
        let rows = faults.read_if_named(&settings.instruments_file, |file| instruments::read(file, venues));
        settings.set_instruments(rows);
        let has_instruments = faults.list.len() == count;
        settings.accounts = faults.read_if_named(&settings.accounts_file, accounts::read);
        let has_both = faults.list.len() == count;
        let instruments = has_instruments.then_some(&settings.instruments[..]);
        let accounts = has_both.then_some(&settings.accounts[..]);
        let symbols = settings.symbols_file.as_deref().unwrap_or(Path::new(""));
        settings.symbols = faults.read_if_named(symbols, |file| symbols::read(file, accounts, instruments));
        settings.users = faults.read_if_named(&settings.users_file, Users::read);
        if faults.list.is_empty() {
            faults.collect(settings.check_exchange_lines().map_err(SettingsError::from));
        }
        if faults.list.is_empty() { Ok(settings) } else { Err(faults) }
    }

    /// Reads what a client needs: the addresses of the OMS and its instruments. A client may not read the users' file.
    pub fn read_for_client(file: &Path) -> Result<Self, ConfigErrors> {
        let mut faults = ConfigErrors { list: Vec::new() };
        let mut settings =
            tickpath_settings::read(file, Self::from_section).map_err(|fault| ConfigErrors { list: vec![fault] })?;
        let venues = settings.venues.clone();
        let rows = faults.read_if_named(&settings.instruments_file, |file| instruments::read(file, Some(&venues)));
        settings.set_instruments(rows);
        if faults.list.is_empty() { Ok(settings) } else { Err(faults) }
    }

    /// Returns the file of users that an OMS's file names, whatever the state of the other files.
    pub fn users_file(file: &Path) -> Result<PathBuf, SettingsError> {
        tickpath_settings::read(file, Self::from_section).map(|settings| settings.users_file)
    }

    /// Returns the configuration of the OMS itself. Sessions of clients have no lanes of their own by name.
    pub fn config(&self) -> Config {
        let by_lanes = self.venues.iter().filter(|venue| venue.lines.is_empty());
        let by_lanes: Vec<VenueId> = by_lanes.map(|venue| venue.rules.venue).collect();
        let lines = self.venues.iter().flat_map(|venue| {
            let id = venue.rules.venue;
            venue_lines::configs(&self.name, id, &venue.lines, self.line_instruments(id), &self.journal)
        });
        let CoreSettings { layout, wait, cpu, other_cpu, priority, expected_orders, snapshot_every, warm_up: warm } =
            self.core;
        Config {
            lanes: LanesConfig { lines: lines.collect(), ..LanesConfig::new(&self.name, 0, &by_lanes) },
            journal: LogConfig::journal(LogPath::folder(&self.journal)),
            trading: self.trading_config(),
            expected_orders,
            layout,
            wait,
            cpu,
            other_cpu,
            priority,
            snapshot_every,
            warm_up: warm,
            history: true,
            seed: None,
        }
    }

    /// Returns the trading configuration: instruments, accounts, venues and sessions.
    pub fn trading_config(&self) -> TradingDefinitions {
        TradingDefinitions {
            instruments: self.instruments.clone(),
            accounts: self.accounts.clone(),
            venues: self.venues.iter().map(|venue| venue.rules).collect(),
            symbols: self.symbols.clone(),
            firm: self.firm,
            sessions: self.users.sessions(&self.sessions, &self.accounts),
            rejects: self.venues.iter().flat_map(|venue| venue.rejects.iter().copied()).collect(),
            expectations: self.venues.iter().map(|venue| venue.watch).collect(),
            names: self.names(),
        }
    }

    /// Returns the names of venues, and of the users that sessions belong to.
    fn names(&self) -> Vec<NameRecord> {
        let venues = self.venues.iter().map(|venue| NameRecord::new(NAME_VENUE, venue.rules.venue.0, &venue.name));
        let of_user = |user: &OmsUser| {
            let name = |&session: &u16| NameRecord::new(NAME_SESSION, session, &user.name);
            user.sessions.iter().map(name).collect::<Vec<_>>()
        };
        venues.chain(self.users.list.iter().flat_map(of_user)).collect()
    }

    /// Returns a sentence for each setting that is no mistake, yet may not be meant. `at_logout` is the fate of this
    /// user's shared memory.
    pub fn warnings(&self, at_logout: LogoutCleanup) -> Vec<String> {
        let mut doubts = Vec::new();
        let is_defined = |pattern: &AccountPattern| self.accounts.iter().any(|limits| pattern.matches(limits.account));
        for user in &self.users.list {
            for pattern in user.accounts.iter().filter(|pattern| !is_defined(pattern)) {
                let file = self.accounts_file.display();
                doubts.push(format!("user '{}': no account of {file} matches '{pattern}'", user.name));
            }
        }
        for user in &self.users.list {
            let named = user.drop_copy.iter().flat_map(|copy| &copy.users);
            for name in named.filter(|name| self.users.find(name).is_none()) {
                doubts.push(format!("user '{}': there is no user '{name}' to copy", user.name));
            }
        }
        for (reason, names) in &self.untraded {
            let (file, count) = (self.instruments_file.display(), names.len());
            let names = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
            doubts.push(format!("{file}: {count} not traded here, because {reason}: {names}"));
        }
        let is_open = |address: &SocketAddr| self.listen.tls.is_none() && !address.ip().is_loopback();
        if let Some(address) = self.listen.tcp.filter(is_open) {
            doubts.push(format!("tcp {address}: other hosts can reach it, and it is not encrypted"));
        }
        doubts.extend(self.listen.tls.as_ref().and_then(ServerTlsFiles::expiry_warning));
        for (key, address) in [("metrics", self.monitoring.metrics), ("web", self.monitoring.web)] {
            if let Some(address) = address.filter(is_open) {
                doubts.push(format!(
                    "{key} {address}: other hosts can read it, and nothing is encrypted, passwords included; \
                     127.0.0.1 keeps it on this host"
                ));
            }
        }
        doubts.extend(edit::is_readable_by_others(&self.users_file).then(|| {
            let file = self.users_file.display();
            format!("{file}: users other than its owner may read it; it holds secrets, `chmod 600` it")
        }));
        doubts.extend(self.venues.iter().filter_map(|venue| self.line_warning(venue)));
        if at_logout == LogoutCleanup::Removed {
            doubts.push(format!("{}: {}", LogoutCleanup::DAMAGE, LogoutCleanup::REMEDY));
        }
        doubts
    }

    /// Returns the instruments that the lines of a venue trade.
    pub fn line_instruments(&self, venue: VenueId) -> Vec<VenueInstrument> {
        let traded = self.instruments.iter().filter(|instrument| instrument.venue == venue);
        let listed = |instrument: &Instrument| VenueInstrument {
            name: instrument.name().to_string(),
            symbol: instrument.symbol,
            code: self.codes.get(&instrument.symbol).copied().unwrap_or_default(),
            lot: instrument.lot,
        };
        traded.map(listed).collect()
    }

    fn set_instruments(&mut self, rows: Vec<InstrumentLine>) {
        for row in rows {
            match row {
                InstrumentLine::Traded(instrument, code) => {
                    if code > 0 {
                        self.codes.insert(instrument.symbol, code);
                    }
                    self.instruments.push(instrument);
                }
                InstrumentLine::Untraded(name, reason) => self.untraded.entry(reason).or_default().push(name),
            }
        }
    }

    /// Opens each line to an exchange once: credentials or instruments that it cannot use are found before a start, and
    /// so are two lines on one account, which would each read the ends of the other's orders.
    fn check_exchange_lines(&self) -> Result<(), Mistakes> {
        let (mut mistakes, mut accounts) =
            (Mistakes::new(&self.file), Vec::<(OrderExchange, Zeroizing<String>, usize)>::new());
        let locations = venue_lines::locations(&self.file);
        for (venue, lines) in self.venues.iter().zip(locations) {
            let instruments = self.line_instruments(venue.rules.venue);
            for (index, (settings, line)) in venue.lines.iter().zip(lines).enumerate() {
                let LineTarget::Exchange(target) = &settings.target else { continue };
                if let Err(why) = target.open(venue.rules.venue, &instruments, None) {
                    mistakes.add(line, format!("[[lines]] {why}"));
                }
                if index > 0 {
                    mistakes.add(line, format!("[[lines]] url: {}", exchange_lines::second_line(target.exchange)));
                    continue;
                }
                let Some(key) = target.read_key() else { continue };
                let is_same = |(exchange, known, _): &&(OrderExchange, Zeroizing<String>, usize)| {
                    *exchange == target.exchange && known.as_str() == key.as_str()
                };
                if let Some((exchange, _, first)) = accounts.iter().find(is_same) {
                    mistakes.add(
                        line,
                        format!("[[lines]] credentials: {}", exchange_lines::shared_account(*exchange, *first)),
                    );
                }
                accounts.push((target.exchange, key, line));
            }
        }
        mistakes.into_result(())
    }

    /// Returns a sentence if instruments of a venue at OKX have no code, by which OKX takes orders, or if those of a venue
    /// at Binance are so many that a connect exceeds its limits.
    fn line_warning(&self, venue: &VenueSettings) -> Option<String> {
        let instruments = self.line_instruments(venue.rules.venue);
        match venue.lines.iter().find_map(LineSettings::exchange)? {
            OrderExchange::Okx => {}
            OrderExchange::Binance if instruments.len() <= MAX_BINANCE_INSTRUMENTS => return None,
            OrderExchange::Binance => {
                return Some(format!(
                    "{}: {} instruments of {}; each connect asks Binance for the orders and fills of each, which exceeds \
                     its limits beyond {MAX_BINANCE_INSTRUMENTS}: remove the rows that are not traded",
                    self.instruments_file.display(),
                    instruments.len(),
                    venue.name
                ));
            }
        }
        let names: Vec<&str> =
            instruments.iter().filter(|listed| listed.code == 0).map(|listed| listed.name.as_str()).collect();
        let (first, file) = (names.first()?, self.instruments_file.display());
        Some(format!(
            "{file}: {} of the instruments of {name} have no code, {first} first; OKX takes orders by it: fetch the table \
             with `tickpath instruments fetch okx --venue {name}`",
            names.len(),
            name = venue.name
        ))
    }

    /// Takes the file, and checks the certificate and its key, which only the OMS may read.
    fn from_section_checked(top: &mut Section<'_>) -> Self {
        let settings = Self::from_section(top);
        if let Some(Err(why)) = settings.listen.tls.as_ref().map(ServerTlsFiles::check) {
            top.add_mistake("tls", why);
        }
        settings
    }

    fn from_section(top: &mut Section<'_>) -> Self {
        top.require("name");
        let name = top.text("name");
        let is_good = |name: &&String| {
            name.len() <= MAX_NAME_BYTES && LanesConfig::new(name, 0, &[]).lane(LaneKind::Control).is_ok()
        };
        if let Some(name) = name.as_ref().filter(|name| !is_good(name)) {
            let good =
                format!("1 to {MAX_NAME_BYTES} letters, digits, '.', '_', '-' or ':', not starting with a point");
            top.add_mistake("name", format!("'{name}' cannot be in the names of lanes; use {good}"));
        }
        let both =
            |section: &mut Section<'_>| (SessionDefaults::from_section(section), DenialLimits::from_section(section));
        let (sessions, denials) = top.section("sessions", both);
        Self {
            file: top.file().to_owned(),
            journal: absolute(top.require_path("journal")),
            users_file: top.require_path("users"),
            instruments_file: top.require_path("instruments"),
            accounts_file: top.require_path("accounts"),
            symbols_file: top.path("symbols"),
            firm: top.section("firm", firm),
            day: top.section_if("day", calendar::read_calendar).flatten(),
            symbols: Vec::new(),
            ticks: ticks(top),
            monitoring: MonitoringSettings::from_section(top),
            drop_copies: CopyTopic::all_from(top),
            listen: ListenSettings::from_section(top),
            core: top.section("core", CoreSettings::from_section),
            sessions,
            denials,
            venues: VenueSettings::all_from(top),
            instruments: Vec::new(),
            codes: HashMap::new(),
            untraded: BTreeMap::new(),
            accounts: Vec::new(),
            users: Users::default(),
            name: name.unwrap_or_default(),
        }
    }
}

/// Takes the limits of the firm. A missing limit is off; if all are missing there is no limit at all.
fn firm(firm: &mut Section<'_>) -> Option<FirmLimits> {
    let (rate_limit, rate_window_ns) = rate_of(firm);
    let limits = FirmLimits {
        rate_limit,
        max_open_orders: firm.number("max_open_orders", 0..=u32::MAX).unwrap_or_default(),
        rate_window_ns,
        max_order_quantity: quantity_of(firm, "max_order_quantity"),
        max_notional: money_of(firm, "max_notional").0.to_le_bytes(),
        credit: money_of(firm, "credit").0.to_le_bytes(),
    };
    (limits != FirmLimits::default()).then_some(limits)
}

fn ticks(top: &mut Section<'_>) -> Option<String> {
    let topic = top.text("ticks")?;
    if let Err(e) = LogPath::shared_memory(&topic) {
        top.add_mistake("ticks", e.to_string());
    }
    Some(topic)
}

impl MonitoringSettings {
    fn from_section(top: &mut Section<'_>) -> Self {
        let forms = [("text", LogForm::Text), ("logfmt", LogForm::Logfmt), ("json", LogForm::Json)];
        let (metrics, web) = (address(top, "metrics"), address(top, "web"));
        let is_allowed = top.flag("insecure").unwrap_or(false) || top.has("tls");
        for (key, address) in [("metrics", metrics), ("web", web)] {
            if address.is_some_and(|address| !address.ip().is_loopback()) && !is_allowed {
                let why = "other hosts can reach it, and passwords would be sent unencrypted; give the file a [tls] \
                           with certificate and key, or set insecure = true beside it";
                top.add_mistake(key, why);
            }
        }
        Self { metrics, web, hosts: hosts(top), log: top.one_of("log", &forms).unwrap_or_default() }
    }
}

/// Takes the names of this host by which the ports of the page may be requested.
fn hosts(top: &mut Section<'_>) -> Vec<String> {
    let hosts: Vec<String> = top.list("hosts").unwrap_or_default();
    let is_good =
        |host: &&String| !host.is_empty() && host.bytes().all(|c| c.is_ascii_alphanumeric() || b".-_".contains(&c));
    if let Some(host) = hosts.iter().find(|host| !is_good(host)) {
        top.add_mistake("hosts", format!("'{host}' is no host's name; write it without a port, like desk-1.example"));
    }
    hosts
}

impl ListenSettings {
    fn from_section(top: &mut Section<'_>) -> Self {
        let tls = top.section_if("tls", |tls| ServerTlsFiles {
            certificate: tls.require_path("certificate"),
            key: tls.require_path("key"),
        });
        top.section("listen", |listen| Self::read_addresses(listen, tls))
    }

    fn read_addresses(listen: &mut Section<'_>, tls: Option<ServerTlsFiles>) -> Self {
        let unix = listen.path("unix");
        if let Some(path) = unix.as_ref().filter(|path| path.as_os_str().len() >= MAX_SOCKET_PATH) {
            let (bytes, max) = (path.as_os_str().len(), MAX_SOCKET_PATH - 1);
            listen.add_mistake(
                "unix",
                format!("a socket's path has at most {max} bytes, this has {bytes}; use a shorter one"),
            );
        }
        if !listen.has("unix") && !listen.has("tcp") {
            listen.add_section_mistake(
                "has no address; set 'unix' to a path, 'tcp' to an address like '127.0.0.1:7001', or both",
            );
        }
        let (tcp, insecure) = (address(listen, "tcp"), listen.flag("insecure").unwrap_or(false));
        if tcp.is_some_and(|tcp| !tcp.ip().is_loopback()) && tls.is_none() && !insecure {
            let why = "other hosts can reach it, and nothing is encrypted; give the file a [tls] with certificate \
                       and key, or set insecure = true";
            listen.add_mistake("tcp", why);
        }
        Self { unix, tcp, tls }
    }
}

impl CoreSettings {
    fn from_section(core: &mut Section<'_>) -> Self {
        let layout = core.one_of("layout", LAYOUTS).unwrap_or(Layout::Split);
        let wait = core.one_of("wait", WAITS).unwrap_or(Wait::Block);
        if layout == Layout::Inline && wait.sleeps() {
            let why =
                "one thread cannot sleep for sockets and for shared memory at once; set wait = \"busy\" or \"yield\"";
            core.add_mistake("layout", why.to_owned());
        }
        Self {
            layout,
            wait,
            cpu: cpu(core, "cpu"),
            other_cpu: cpu(core, "other_cpu"),
            priority: core.parsed("priority").unwrap_or_default(),
            expected_orders: core.number("expected_orders", 1..=50_000_000).unwrap_or(100_000),
            snapshot_every: core.number("snapshot_every", 0..=u64::MAX).unwrap_or(1_000_000),
            warm_up: core.flag("warm").unwrap_or(true),
        }
    }
}

fn address(section: &mut Section<'_>, key: &str) -> Option<SocketAddr> {
    let text = section.text(key)?;
    let address = text.parse().ok();
    if address.is_none() {
        section.add_mistake(
            key,
            format!("'{text}' is no address; write an IP and a port, like 127.0.0.1:7001 or [::]:7001"),
        );
    }
    address
}

fn cpu(section: &mut Section<'_>, key: &str) -> Option<usize> {
    let cpu = section.number(key, 0..=4095)?;
    let available = tickpath_clock::cpus();
    if !available.contains(&cpu) {
        section.add_mistake(key, format!("CPU {cpu} is not available to this process; available: {available:?}"));
    }
    Some(cpu)
}

/// Makes the journal's path absolute: it is reported to others as a URL, which has no relative paths.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
