//! `path --via`: from the packet with a tick to the packet with an order, by the protocols of a real exchange.
//!
//! ```text
//!   exchange process              trader process, one thread                               exchange process
//!   tick ──TLS, WebSocket──> wire ─> read ─> framed ─> parsed ─> T0 ─> core ─> handed ─> encoded ─> ready ─> written ──> arrived
//!   intended                        kernel   TLS       feed      strategy                line       TLS      kernel
//!   generator's CPU                system's CPU
//! ```
//!
//! The exchange is `tickpath exchange --as okx|binance` on the loopback, which takes no more orders than the real one, so
//! that a run is slow and its path is cold. The strategy is that of `path`. A strategy in Python is two processes as
//! people have them: one watches the exchange by ccxt and publishes, the other subscribes and orders by ccxt.
//!
//! # Invariants
//!
//! * An order names its tick by its price, on every side and in every language, so that no message carries anything for
//!   the measurement.
//! * Both ends of `packet_to_packet` are stamps of the exchange's process, made alike for every client.

mod exchange;
mod protocol;
mod stacks;
mod trader;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Calibration, Clock, Priority, Wait};
use tickpath_lab_harness::attribution::{clip_gaps, drop_attribution, note_stalls};
use tickpath_lab_harness::rules::{add_lateness, refuse_loss};
use tickpath_lab_harness::samples::{Samples, load, load_gaps};
use tickpath_lab_harness::{Child, Lab, LabError, RoleEntry, StabilityCheck, ThreadConfig};
use tickpath_lab_path::{OmsRole, PATH_GROUP, analyse};
use tickpath_lab_result::{MessageCounts, Run, Stage};
use tickpath_oms_runtime::Layout;

pub use protocol::ViaExchange;
pub use stacks::ExchangeClient;

use exchange::{ExchangeRow, WebExchangeRole};
use trader::{OrderStamps, STAMPS, WebTraderResult, WebTraderRole};

/// The process roles of the workload.
pub const ROLES: &[RoleEntry] = &[RoleEntry::of::<WebExchangeRole>(), RoleEntry::of::<WebTraderRole>()];

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The exchange.
    pub via: ViaExchange,
    /// The strategy's side.
    pub client: ExchangeClient,
    /// The generator's and the system's CPU.
    pub cpus: [usize; 2],
    /// Ticks a second.
    pub rate: f64,
    /// The number of ticks.
    pub count: u64,
    /// The priority of the trader's thread.
    pub priority: Priority,
    /// The number of this repetition.
    pub repeat: u32,
}

/// The steps of an order, from one stamp to the next: name, and the stamps by their places in a row.
const STEPS: [(&str, usize, usize); 9] = [
    ("wire_to_read", 1, 2),
    ("read_to_framed", 2, 3),
    ("framed_to_parsed", 3, 4),
    ("parsed_to_sent", 4, 5),
    ("sent_to_handed", 5, 6),
    ("handed_to_encoded", 6, 7),
    ("encoded_to_ready", 7, 8),
    ("ready_to_written", 8, 9),
    ("wire_to_written", 1, 9),
];

impl Settings {
    /// Estimates the duration of a run.
    pub fn seconds(&self) -> f64 {
        /// Seconds to start and end the processes.
        const SETUP_S: f64 = 5.0;
        SETUP_S + self.count as f64 / self.rate
    }

    fn check(&self) -> Result<(), LabError> {
        let (via, max) = (self.via, self.via.max_rate());
        let wrong = |what: String| Err(LabError::Setting(what));
        if !(self.rate > 0.0 && self.rate <= max) {
            return wrong(format!(
                "{via} takes no more than {max} orders a second of this account; use --rate {max} or less"
            ));
        }
        if self.count == 0 || self.count > 100_000 {
            return wrong("--via takes --count 1 to 100000 ticks".to_owned());
        }
        if self.cpus[0] == self.cpus[1] {
            return wrong("exchange and trader would both spin on one CPU; name two with --cpus".to_owned());
        }
        Ok(())
    }
}

/// Runs once.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Run, LabError> {
    static RUN: AtomicU64 = AtomicU64::new(0);
    settings.check()?;
    lab.step(&format!("path via {} by {}", settings.via, settings.client.name()), settings.seconds())?;
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let name = format!("{}.via{}", lab.name, RUN.fetch_add(1, Ordering::Relaxed));
    let files = RunFiles { name: name.clone(), folder: lab.folder().to_owned() };
    let exchange = WebExchangeRole {
        via: settings.via,
        rate: settings.rate,
        count: settings.count,
        ca: files.of("ca.pem"),
        thread: ThreadConfig::new(settings.cpus[0], Wait::Busy, Priority::Normal),
        out: files.of("exchange"),
    };
    let mut exchange = lab.spawn(&exchange)?;
    let address: String = exchange.result(10.0)?;
    let mut run = match &settings.client {
        ExchangeClient::Rust => trade_here(lab, settings, &files, exchange, address)?,
        ExchangeClient::Scripts(scripts) => stacks::trade(lab, settings, scripts, &files, exchange, &address)?,
    };
    describe(&mut run, settings);
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

/// Names of a run's files.
pub(crate) struct RunFiles {
    pub name: String,
    folder: PathBuf,
}

impl RunFiles {
    pub fn of(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{}.{what}", self.name))
    }
}

/// Makes the exchange send its ticks, and waits for the last.
pub(crate) fn send_ticks(exchange: &mut Child, settings: &Settings) -> Result<(), LabError> {
    exchange.send("go")?;
    exchange.result(settings.seconds() * 2.0)
}

/// Runs our own strategy with its OMS.
fn trade_here(
    lab: &Lab<'_>,
    settings: &Settings,
    files: &RunFiles,
    mut exchange: Child,
    address: String,
) -> Result<Run, LabError> {
    let journal = files.of("journal");
    let trader = trader_role(lab, settings, files, journal.clone(), address);
    let child = lab.spawn(&trader)?;
    send_ticks(&mut exchange, settings)?;
    let traded: WebTraderResult = child.stop()?;
    exchange.stop::<()>()?;
    let run = assemble(lab, settings, files, &journal, &traded);
    let _ = std::fs::remove_dir_all(&journal);
    run
}

fn trader_role(
    lab: &Lab<'_>,
    settings: &Settings,
    files: &RunFiles,
    journal: PathBuf,
    address: String,
) -> WebTraderRole {
    let thread = ThreadConfig::new(settings.cpus[1], Wait::Busy, settings.priority).with_warm_up(lab.runs_warm_up);
    let oms = OmsRole {
        lanes: files.name.clone(),
        request_bytes: 1 << 20,
        report_bytes: 4 << 20,
        journal,
        reserve_bytes: settings.count * 1_024,
        symbol: settings.via.instrument().to_owned(),
        account: 1,
        expected_orders: settings.count as usize,
        layout: Layout::Inline.to_string(),
        thread: thread.clone(),
        other_cpu: Some(settings.cpus[0]),
        market: None,
        level: "os".to_owned(),
        snapshot_every: 0,
        line: None,
        server: None,
        out: files.of("oms"),
    };
    let (via, ca, count, out) = (settings.via, files.of("ca.pem"), settings.count, files.of("trader"));
    WebTraderRole { via, address, ca, oms, count, thread, out }
}

fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    files: &RunFiles,
    journal: &Path,
    traded: &WebTraderResult,
) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let read = analyse::read(journal)?;
    let Some(group) = read.groups.get(&PATH_GROUP) else {
        return Err(LabError::Failed("no tick led to an order".to_owned()));
    };
    let rows: Vec<[u64; STAMPS]> = load(&files.of("trader"))?;
    let ticks: Vec<ExchangeRow> = load(&files.of("exchange"))?;
    let end = rows.iter().flatten().copied().max().unwrap_or(0);
    let gaps = load_gaps(&files.of("trader").with_extension("gaps"))?;
    let gaps = clip_gaps(&gaps, ticks.first().map_or(0, |row| row[0]), end);
    let mut run = group.run(&read.calibration, &gaps);
    // Their causes are packets, and not the intended times of ticks.
    run.hops.retain(|name, _| !matches!(name.as_str(), "tick_to_order" | "tick_to_venue"));
    let pairs = |from: usize, to: usize| {
        Samples(rows.iter().filter(|row| row[from] != 0 && row[to] != 0).map(|row| (row[from], row[to])).collect())
    };
    for (name, from, to) in STEPS {
        let samples = pairs(from, to);
        if name != "wire_to_written" && !samples.0.is_empty() {
            let p50_ns = Some(samples.p50_ns(calibration));
            run.stages.push(Stage { name: name.to_owned(), p50_ns, ..Stage::default() });
        }
        run.hops.insert(name.to_owned(), samples.hop(calibration, &gaps));
    }
    let orders: Vec<OrderStamps> = rows.iter().map(|row| OrderStamps::from(*row)).collect();
    let intended = orders.iter().filter_map(|row| Some((ticks.get(row.tick as usize)?[0], row.written)));
    let more = [
        ("own_work", pairs(3, 7)),
        ("own_work_with_tls", pairs(2, 8)),
        ("order_ack", pairs(5, 10)),
        ("order_round_trip", pairs(5, 11)),
        ("tick_to_order", Samples(intended.filter(|(_, to)| *to != 0).collect())),
    ];
    run.hops.extend(more.map(|(name, samples)| (name.to_owned(), samples.hop(calibration, &gaps))));
    add_exchange_hops(&mut run, &ticks, calibration);
    for (what, number) in [("denied", traded.denied), ("bad_frames", traded.bad_frames)] {
        if number > 0 {
            run.refuse(format!("{number} orders or frames were {what}"));
        }
    }
    if traded.missed_reports > 0 {
        run.refuse(format!("the strategy missed {} reports", traded.missed_reports));
    }
    count_orders(&mut run, settings, traded.ticks, &ticks);
    let took_ns = lab.clock.ns_between(ticks.first().map_or(end, |row| row[0]), end).max(0) as u64;
    drop_attribution(&mut run);
    note_stalls(&mut run, "trader", &gaps, took_ns, calibration);
    Ok(run)
}

/// Adds the hops whose ends are both stamps of the exchange.
pub(crate) fn add_exchange_hops(run: &mut Run, ticks: &[ExchangeRow], calibration: &Calibration) {
    let of = |from: usize, to: usize| {
        Samples(ticks.iter().filter(|row| row[from] != 0 && row[to] != 0).map(|row| (row[from], row[to])).collect())
    };
    let late = of(0, 1).hop(calibration, &[]);
    add_lateness(run, &late);
    run.hops.insert("lateness".to_owned(), late);
    run.hops.insert("tick_to_venue".to_owned(), of(0, 3).hop(calibration, &[]));
    run.hops.insert("packet_to_packet".to_owned(), of(2, 3).hop(calibration, &[]));
}

/// Counts the ticks and their orders; a lost one makes the run invalid.
pub(crate) fn count_orders(run: &mut Run, settings: &Settings, received: u64, ticks: &[ExchangeRow]) {
    let sent = ticks.len() as u64;
    let ordered = ticks.iter().filter(|row| row[3] != 0).count() as u64;
    run.counts = MessageCounts { sent, received: received.min(sent), lost: sent - ordered, ..MessageCounts::default() };
    if sent < settings.count {
        run.refuse(format!("the exchange sent {sent} of {} ticks", settings.count));
    }
    refuse_loss(run);
}

fn describe(run: &mut Run, settings: &Settings) {
    run.target = format!("{}+wss://", settings.via);
    run.repeat = settings.repeat;
    settings.client.describe(run);
    run.params.set("via", settings.via.name());
    run.params.set("rate_per_s", settings.rate);
    run.params.set("cpus", settings.cpus.to_vec());
    run.notes.push(format!(
        "The exchange is simulated, on this host's loopback, and takes orders as {} does: {} a second at most",
        settings.via,
        settings.via.max_rate()
    ));
}
