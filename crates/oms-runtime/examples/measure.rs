//! Cost of durability and history:
//! `cargo run --release -p tickpath-oms-runtime --example measure -- WHAT [COUNT] [FOLDER]`
//!
//! | WHAT | question |
//! |---|---|
//! | `restart` | how long a start takes with COUNT orders in the journal, without and with a snapshot |
//! | `snapshot` | what a snapshot costs the core while it trades |
//! | `disk` | orders a second with disk durability: many sessions at once, against one sync per order |
//! | `follow` | how far a second process that applies the journal lags a core at a million orders a second |
//!
//! All files are in FOLDER, a temporary folder by default; compared variants run in turns.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tickpath_clock::{Clock, HostClock, Priority, Wait, pin_to_cpu, relax};
use tickpath_log::{Config as LogConfig, LogPath, Next};
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, NewOrder, Notional, OrdStatus, OrderId, OrderType, Price,
    Quantity, Request, Side, SymbolId, TopOfBook, VenueId, VenueOrderId,
};
use tickpath_oms_core::{ALL_ACCOUNTS, AccountLimits, Core, Input, Instrument, VenueRules};
use tickpath_oms_runtime::layout::Inline;
use tickpath_oms_runtime::{
    AckLevel, Agent, Config, LanesConfig, Layout, RequestRate, SessionConfig, SessionLanes, TradingDefinitions,
    VenueLanes, journal, snapshot,
};
use tickpath_venue_sim::{Config as VenueConfig, SimVenue, VenueEngine};

type MeasureError = Box<dyn std::error::Error>;

const VENUE: VenueId = VenueId(1);
const ACCOUNT: AccountId = AccountId(1);
/// Turns of each compared variant.
const TURNS: usize = 7;
/// File that signals the follower that its journal is complete.
const DONE: &str = "done";

fn main() -> Result<(), MeasureError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let what = arguments.first().map_or("", String::as_str);
    let count = arguments.get(1).map(|count| count.parse()).transpose()?;
    let temporary = tempfile::tempdir()?;
    let folder = arguments.get(2).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    match what {
        "restart" => restart(&folder, count.unwrap_or(1_000_000)),
        "snapshot" => snapshots(&folder, count.unwrap_or(1_000_000)),
        "disk" => disk(&folder, count.unwrap_or(2_000)),
        "follow" => follow(&folder, count.unwrap_or(1_000_000)),
        "follower" => follower(&folder),
        _ => Err("say what: restart, snapshot, disk or follow".into()),
    }
}

fn restart(folder: &Path, orders: u64) -> Result<(), MeasureError> {
    let clock = HostClock::get()?;
    let mut config = config(&folder.join("restart"), 1, AckLevel::Os, orders);
    let mut setup = TradingSetup::open(clock, &config)?;
    for id in 1..=orders {
        setup.trade(id)?;
    }
    drop(setup);
    println!("{orders} orders, {} of journal", megabytes(&config.journal.path)?);
    config.journal.reserve_bytes = 0;
    let start = || {
        let from = clock.ticks();
        let oms = Inline::open(clock, &config, None);
        let ns = clock.ns_between(from, clock.ticks());
        oms.map(|_| ns as f64 / 1e9)
    };
    let whole = turns(start)?;
    let from = clock.ticks();
    let made = snapshot::make(&config.journal.path)?;
    let took = clock.ns_between(from, clock.ticks()) as f64 / 1e9;
    let behind = turns(start)?;
    println!("a start from the journal alone     {whole}");
    println!("a start from a snapshot            {behind}");
    println!("that snapshot: {} MB in {took:.2} s, beside the core", made.bytes / 1_000_000);
    config.lanes.remove()?;
    Ok(())
}

fn snapshots(folder: &Path, orders: u64) -> Result<(), MeasureError> {
    let clock = HostClock::get()?;
    pin_to_cpu(0)?;
    println!("{orders} orders a turn; one request, from the client's lane to the venue's, in ns (host gaps are in it)");
    println!("{:24} {:>8} {:>8} {:>8} {:>9} {:>10}  snapshots", "", "50 %", "99 %", "99.9 %", "99.99 %", "worst");
    for turn in 0..9 {
        let fifth = orders / 5;
        let name = ["without", "with snapshots", "a neighbour that copies"][turn % 3];
        let mut config = config(&folder.join(format!("turn{turn}")), 1, AckLevel::Os, orders);
        (config.snapshot_every, config.other_cpu) = (if turn % 3 == 1 { fifth } else { 0 }, Some(1));
        let mut setup = TradingSetup::open(clock, &config)?;
        let place = config.journal.path.dir().to_owned();
        let neighbour = (turn % 3 == 2).then(MemoryLoad::start);
        let mut samples = Vec::with_capacity(orders as usize);
        for id in 1..=orders {
            let from = clock.ticks();
            setup.send_order(id)?;
            setup.oms.poll()?;
            samples.push(clock.ns_between(from, clock.ticks()) as u64);
            setup.return_report()?;
        }
        drop(neighbour);
        let made = ["snapshot", "snapshot.before"].iter().filter(|name| place.join(name).exists()).count();
        drop(setup);
        config.lanes.remove()?;
        let [p50, p99, p999, p9999, worst] = percentiles(&mut samples);
        println!("{name:24} {p50:>8} {p99:>8} {p999:>8} {p9999:>9} {worst:>10}  {made} left");
    }
    Ok(())
}

fn disk(folder: &Path, orders: u64) -> Result<(), MeasureError> {
    let clock = HostClock::get()?;
    let at_once = |sessions: u16, in_flight: u64, orders: u64, name: String| -> Result<f64, MeasureError> {
        let config = config(&folder.join(name), sessions, AckLevel::Disk, orders);
        let rate = waiting_for_the_disk(clock, &config, sessions, in_flight, orders)?;
        config.lanes.remove()?;
        Ok(rate)
    };
    println!("orders a second, reported to their clients once they are on the disk of {}", folder.display());
    println!(
        "{:>18} {:>22} {:>8} {:>22} {:>8}",
        "one sync an order", "64 sessions, 1 each", "ratio", "64 sessions, 8 each", "ratio"
    );
    let mut ratios = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let alone = at_once(1, 1, orders / 10, format!("alone{turn}"))?;
        let one = at_once(64, 1, orders * 5, format!("one{turn}"))?;
        let eight = at_once(64, 8, orders * 20, format!("eight{turn}"))?;
        ratios.0.push(one / alone);
        ratios.1.push(eight / alone);
        println!("{alone:>18.0} {one:>22.0} {:>7.0}× {eight:>22.0} {:>7.0}×", one / alone, eight / alone);
    }
    println!("medians: {:.0}× and {:.0}×", median(&mut ratios.0), median(&mut ratios.1));
    Ok(())
}

/// Returns the rate of acknowledgements with this many sessions, each with this many orders in flight.
fn waiting_for_the_disk(
    clock: HostClock,
    config: &Config,
    sessions: u16,
    in_flight: u64,
    orders: u64,
) -> Result<f64, MeasureError> {
    let mut oms = open(clock, config)?;
    let _venue = config.lanes.join_venue(VENUE, clock.calibration())?;
    let join = |session| config.lanes.join_session(session, clock.calibration());
    let mut clients: Vec<SessionLanes> = (0..sessions).map(join).collect::<Result<_, _>>()?;
    let (mut asked, mut reported, mut next) = (0, 0, 1);
    let from = clock.ticks();
    while reported < orders {
        for client in &mut clients {
            let mut room = if asked == 0 || asked < u64::from(sessions) * in_flight { in_flight } else { 0 };
            client.reports.drain(usize::MAX, |next| {
                if matches!(next, Next::Message(_)) {
                    reported += 1;
                    room += 1;
                }
            })?;
            for _ in 0..room {
                let request = order(next);
                client.requests.publish(clock.ticks(), request.kind().code(), request.as_bytes())?;
                (asked, next) = (asked + 1, next + 1);
            }
        }
        oms.poll()?;
    }
    Ok(reported as f64 * 1e9 / clock.ns_between(from, clock.ticks()) as f64)
}

fn follow(folder: &Path, orders: u64) -> Result<(), MeasureError> {
    let clock = HostClock::get()?;
    let folder = folder.join("follow");
    let mut config = config(&folder, 1, AckLevel::Os, orders);
    config.journal.reserve_bytes = orders * 300;
    let mut oms = open(clock, &config)?;
    let SessionLanes { mut reports, .. } = config.lanes.join_session(0, clock.calibration())?;
    let VenueLanes { mut requests, .. } = config.lanes.join_venue(VENUE, clock.calibration())?;
    let mut follower = Command::new(std::env::current_exe()?)
        .args(["follower", "0"])
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // The follower prints a line at the end.
    let mut output = std::io::BufReader::new(follower.stdout.take().ok_or("a pipe")?);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line)?;
    pin_to_cpu(0)?;
    let sequencer = oms.sequencer();
    let from = clock.ticks();
    let (mut venue_sequence, mut late) = (0, 0_u64);
    for id in 1..=orders {
        // One order per microsecond, however long the last one took.
        let due = from + clock.calibration().ticks_of_ns(id * 1_000);
        while clock.ticks() < due {
            relax();
        }
        let now = clock.ticks();
        late = late.max(now - due);
        sequencer.accept_request(0, id - 1, now, now, order(id))?;
        if let Next::Message(message) = requests.next()? {
            let new = Request::read(message.kind, message.payload)?;
            venue_sequence += 1;
            sequencer.accept_report(VENUE, venue_sequence, clock.ticks(), accepted(new.client_order_id().0))?;
        }
        while matches!(reports.next()?, Next::Message(_) | Next::Gap(_)) {}
    }
    let ns = clock.ns_between(from, clock.ticks()) as f64;
    std::fs::write(folder.join(DONE), [])?;
    std::io::Read::read_to_string(&mut output, &mut line)?;
    follower.wait()?;
    let rate = orders as f64 * 1e3 / ns;
    println!("{orders} orders and as many reports at {rate:.2} million orders a second");
    println!("the core itself was late by {:.3} ms at most", clock.ns_between(0, late) as f64 / 1e6);
    print!("{}", line.trim_start_matches("ready\n"));
    drop(oms);
    config.lanes.remove()?;
    Ok(())
}

/// Applies a growing journal, and prints how far it lagged.
fn follower(folder: &Path) -> Result<(), MeasureError> {
    let clock = HostClock::get()?;
    let place = LogPath::folder(folder.join("journal"));
    let mut core = Core::new(tickpath_oms_core::Config { expected_orders: 4_000_000, key: 1 });
    let mut replay = journal::Replay::open(&place)?;
    while replay.step(&mut core, |_, _, _| {})? {}
    pin_to_cpu(1)?;
    println!("ready");
    std::io::stdout().flush()?;
    let mut samples: Vec<u64> = Vec::with_capacity(8_000_000);
    let (mut gaps, mut last, mut looks) = (0_u64, clock.ticks(), 0_u32);
    loop {
        let mut stamp = 0;
        if replay.step(&mut core, |at, input, _| {
            stamp = if matches!(input, Input::Request { .. } | Input::Report(_)) { at.stamp } else { 0 };
        })? {
            if stamp != 0 {
                samples.push(clock.ns_between(stamp, clock.ticks()).max(0) as u64);
            }
            last = clock.ticks();
            continue;
        }
        // Time that passes between two idle turns is a pause of the host.
        let now = clock.ticks();
        gaps = gaps.max(clock.ns_between(last, now).max(0) as u64 * u64::from(looks > 0));
        (last, looks) = (now, looks.wrapping_add(1));
        if looks.is_multiple_of(4096) && folder.join(DONE).exists() {
            break;
        }
    }
    let (inputs, over) = (samples.len(), samples.iter().filter(|&&ns| ns > 1_000_000).count());
    let [p50, p99, p999, p9999, worst] = percentiles(&mut samples);
    println!(
        "behind, from T1 to applied by the second process: 50 % {p50} ns, 99 % {p99} ns, 99.9 % {p999} ns, 99.99 % \
         {p9999} ns, worst {worst} ns; {over} of {inputs} inputs over 1 ms; longest gap of the host seen there {gaps} ns"
    );
    let open = core.open_orders().count();
    println!("the second process knows {open} open orders; nothing but its own core was asked");
    Ok(())
}

/// A thread on the other processor that is independent of the OMS, and uses memory as a snapshot does.
struct MemoryLoad(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl MemoryLoad {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_over_in_thread = is_over.clone();
        let work = move || {
            let _ = pin_to_cpu(1);
            while !is_over_in_thread.load(Ordering::Relaxed) {
                let bytes: Vec<Vec<u64>> = (0..64).map(|piece| vec![piece; 1 << 16]).collect();
                std::hint::black_box(bytes.concat());
            }
        };
        Self(is_over, Some(std::thread::spawn(work)))
    }
}

impl Drop for MemoryLoad {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(JoinHandle::join);
    }
}

/// Opens an OMS that knows a price.
fn open(clock: HostClock, config: &Config) -> Result<Inline<HostClock>, MeasureError> {
    let mut oms = Inline::open(clock, config, None)?;
    let price = Price::from_whole(100);
    oms.sequencer().apply_top_of_book(clock.ticks(), &TopOfBook { bid: price, ask: price, ..TopOfBook::default() })?;
    Ok(oms)
}

/// An OMS, a client and a venue on one thread.
struct TradingSetup {
    clock: HostClock,
    oms: Inline<HostClock>,
    venue: VenueEngine<HostClock>,
    client: SessionLanes,
}

impl TradingSetup {
    fn open(clock: HostClock, config: &Config) -> Result<Self, MeasureError> {
        let oms = open(clock, config)?;
        let VenueLanes { requests, reports } = config.lanes.join_venue(VENUE, clock.calibration())?;
        let book = VenueConfig { venue: VENUE, symbols: 1, expected_orders: config.expected_orders };
        let venue = VenueEngine::new(clock, SimVenue::new(book), requests, reports, None);
        let client = config.lanes.join_session(0, clock.calibration())?;
        Ok(Self { clock, oms, venue, client })
    }

    fn send_order(&mut self, id: u64) -> Result<(), MeasureError> {
        let request = order(id);
        self.client.requests.publish(self.clock.ticks(), request.kind().code(), request.as_bytes())?;
        Ok(())
    }

    /// Passes the venue's report back to the client.
    fn return_report(&mut self) -> Result<(), MeasureError> {
        self.venue.poll()?;
        self.oms.poll()?;
        self.client.reports.drain(usize::MAX, |_| {})?;
        Ok(())
    }

    fn trade(&mut self, id: u64) -> Result<(), MeasureError> {
        self.send_order(id)?;
        self.oms.poll()?;
        self.return_report()
    }
}

fn order(id: u64) -> Request {
    Request::New(NewOrder {
        client_order_id: ClientOrderId(id),
        price: Price::from_whole(100),
        quantity: Quantity::from_whole(1),
        symbol: SymbolId(0),
        account: ACCOUNT,
        side: Side::Buy.code(),
        order_type: OrderType::Limit.code(),
        ..NewOrder::default()
    })
}

fn accepted(id: u64) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(id),
        client_order_id: ClientOrderId(id),
        venue_order_id: VenueOrderId(id),
        venue_sequence: 1,
        leaves_quantity: Quantity::from_whole(1),
        price: Price::from_whole(100),
        account: ACCOUNT,
        venue: VENUE,
        exec_type: ExecType::New.code(),
        status: OrdStatus::New.code(),
        side: Side::Buy.code(),
        ..ExecutionReport::default()
    }
}

fn config(folder: &Path, sessions: u16, level: AckLevel, orders: u64) -> Config {
    let name = format!(
        "measure-{}-{}",
        std::process::id(),
        folder.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    );
    let instrument = Instrument {
        symbol: SymbolId(0),
        venue: VENUE,
        multiplier: 1,
        ..Instrument::named("FIRST".parse().expect("a good name"))
    };
    let limits = AccountLimits {
        account: ACCOUNT,
        max_order_quantity: Quantity::from_whole(1_000),
        max_notional: Notional::from_whole(1_000_000_000).0.to_le_bytes(),
        collar: u32::MAX,
        max_reference_age_ns: u64::MAX,
        max_position: Quantity(i64::MAX),
        ..AccountLimits::default()
    };
    let session = |session| SessionConfig {
        session,
        level,
        cancel_on_disconnect: false,
        accounts: vec![ALL_ACCOUNTS],
        withheld: 0,
        limits: Default::default(),
        rate: RequestRate::UNLIMITED,
    };
    Config {
        lanes: LanesConfig { report_bytes: 1 << 20, ..LanesConfig::new(&name, sessions, &[VENUE]) },
        journal: LogConfig {
            reserve_bytes: orders * 150,
            ..LogConfig::journal(LogPath::folder(folder.join("journal")))
        },
        trading: TradingDefinitions {
            instruments: vec![instrument],
            accounts: vec![limits],
            venues: vec![VenueRules::of(VENUE)],
            sessions: (0..sessions).map(session).collect(),
            ..TradingDefinitions::default()
        },
        expected_orders: orders as usize,
        layout: Layout::Inline,
        wait: Wait::Busy,
        cpu: None,
        other_cpu: None,
        priority: Priority::Normal,
        snapshot_every: 0,
        warm_up: true,
        history: false,
        seed: None,
    }
}

/// Returns the median and the range of several turns, in seconds.
fn turns(mut once: impl FnMut() -> Result<f64, tickpath_oms_runtime::OmsError>) -> Result<String, MeasureError> {
    let mut seconds = (0..TURNS).map(|_| once()).collect::<Result<Vec<_>, _>>()?;
    let middle = median(&mut seconds);
    Ok(format!("{middle:.3} s  ({:.3} to {:.3} s in {TURNS} turns)", seconds[0], seconds[TURNS - 1]))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the 50th, 99th, 99.9th and 99.99th percentile and the maximum.
fn percentiles(samples: &mut [u64]) -> [u64; 5] {
    samples.sort_unstable();
    let at = |part: f64| samples.get(((samples.len() as f64 * part) as usize).min(samples.len().saturating_sub(1)));
    [0.5, 0.99, 0.999, 0.9999, 1.0].map(|part| at(part).copied().unwrap_or(0))
}

fn megabytes(place: &LogPath) -> Result<String, MeasureError> {
    use std::os::unix::fs::MetadataExt;
    let blocks = std::fs::metadata(place.dir().join("data"))?.blocks();
    Ok(format!("{} MB", blocks * 512 / 1_000_000))
}
