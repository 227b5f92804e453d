//! The processes of a run of `orders`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Clock, Priority};
use tickpath_log::Writer;
use tickpath_oms_runtime::AckLevel;
use tickpath_oms_runtime::meter::MeterReader;

use super::client::{BatchAnswers, ClientRole, OmsAccess, publish_reference};
use super::foreign_client;
use super::login::BenchLogin;
use super::plan::OrderBatch;
use super::settings::{OrdersTarget, Settings, VenueRoute};
use super::side_client::SideClientRole;
use super::users::{LANES_SCHEME, USER, login_at, write_users};
use crate::clients::TradingClient;
use crate::trade::{ExchangeRole, OmsRole, SIDE_USER, ServerRole};
use tickpath_lab_harness::evict::EvictorRole;
use tickpath_lab_harness::samples::{load, save};
use tickpath_lab_harness::{Child, Lab, LabError, ThreadConfig, memory, remove_topics};

/// Max bytes of an order in the journal, for reserving.
const JOURNAL_BYTES: u64 = 256;

/// Lanes hold a whole burst, so that lane backpressure is never measured.
const REQUEST_BYTES: usize = 16 << 20;
const REPORT_BYTES: usize = 64 << 20;

/// Time for which an OMS is observed while its clients are connected and idle.
const OBSERVATION_NS: u64 = 1_000_000_000;

/// Max time until a line is up.
const VENUE_TIMEOUT_NS: i64 = 10_000_000_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct SystemLoad {
    /// The number of requests of all groups.
    pub expected: usize,
    pub evicts_caches: bool,
    /// Inputs between two snapshots; zero for none.
    pub snapshot_every: u64,
}

/// Names and processes of a run, right before its first order; the process ids of a user's own OMS are unknown: zero.
#[derive(Debug, Clone)]
pub struct OrdersProcesses {
    /// The prefix of the lanes' names.
    pub lanes: String,
    /// The OMS's process id.
    pub oms: u32,
    /// The venue's process id.
    pub venue: u32,
}

/// The processes of a run; with a user's own OMS, the client alone.
pub(super) struct OrdersSystem {
    oms: Option<Child>,
    target: OrdersTarget,
    oms_role: OmsRole,
    exchange: Option<Child>,
    client: Option<Child>,
    /// Whether the client is in another language: its settings hold the group, and it needs only the command `go`.
    is_foreign: bool,
    /// The reference price for a client that publishes none.
    reference: Option<Writer>,
    evictor: Option<Child>,
    side_client: Option<Child>,
    /// The login of the clients; `None` with lanes.
    pub login: Option<BenchLogin>,
    /// The OMS's cost of connecting the sessions, by figure.
    pub connect_costs: Vec<(&'static str, f64)>,
    folder: PathBuf,
}

impl OrdersSystem {
    pub fn start(lab: &Lab<'_>, settings: &Settings, load: SystemLoad) -> Result<Self, LabError> {
        let Settings { layout, wait, cpus, order, target, .. } = settings;
        // A new name for each system: an OMS would report another OMS's leftover lane to its operator.
        static SYSTEMS: AtomicU64 = AtomicU64::new(0);
        let number = SYSTEMS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}.{layout}.{wait}.{number}", lab.name);
        let market = format!("{name}.market");
        let is_running = matches!(target, OrdersTarget::Running(_));
        let mut oms_role = oms_role(lab, settings, load, &name, &market)?;
        let exchange = ExchangeRole {
            lanes: name.clone(),
            request_bytes: REQUEST_BYTES,
            report_bytes: REPORT_BYTES,
            market: None,
            expected_orders: load.expected,
            // A venue refuses the ids of a second journal within a minute, so each system has its own.
            sockets: (settings.venue == VenueRoute::Tcp).then(|| lab.folder().join(format!("venue.{number}"))),
            thread: ThreadConfig::new(settings.venue_cpu.unwrap_or(cpus[0]), settings.shared_wait(), Priority::Normal),
        };
        let (oms, login, exchange) = match (target, settings.venue) {
            (OrdersTarget::Running(running), _) => (None, Some(running.login.clone()), None),
            // The OMS makes the lanes that the venue joins.
            (_, VenueRoute::Lanes) => {
                let (oms, login) = start_oms(lab, target, &oms_role)?;
                (oms, login, Some(lab.spawn(&exchange)?))
            }
            (_, VenueRoute::Tcp) => {
                let mut exchange = lab.spawn(&exchange)?;
                oms_role.line = Some(exchange.result(1.0)?);
                let (oms, login) = start_oms(lab, target, &oms_role)?;
                wait_for_venue(lab, &name)?;
                (oms, login, Some(exchange))
            }
        };
        let entry = match login.clone() {
            Some(login) => OmsAccess::Sockets { login, sessions: settings.sessions, active: settings.active },
            None => OmsAccess::Lanes { name, request_bytes: REQUEST_BYTES, report_bytes: REPORT_BYTES },
        };
        let client = ClientRole {
            entry,
            market: (!is_running).then_some(market),
            order: order.clone(),
            symbol: target.symbol(),
            thread: ThreadConfig::new(cpus[0], settings.shared_wait(), Priority::Normal),
            sleeps: settings.side_client.is_some(),
            out: lab.folder().join("client"),
        };
        let before = oms.as_ref().map(|oms| memory::resident(oms.id()));
        let (client, reference) = match (&settings.client, &login) {
            (TradingClient::Python(python), Some(login)) => {
                let price = order.order().map_err(LabError::Setting)?.price;
                let reference = client.market.as_ref().map(|name| publish_reference(name, &lab.clock, price));
                let reference = reference.transpose()?;
                (foreign_client::spawn(python, lab, settings, login, &client.thread)?, reference)
            }
            _ => (lab.spawn(&client)?, None),
        };
        let connected = match (&oms, before, &login) {
            (Some(oms), Some(before), Some(_)) => connect_costs(lab, oms.id(), before.orders_bytes, settings.sessions),
            _ => Vec::new(),
        };
        let beside = match (settings.side_client, &login) {
            (Some(kind), Some(login)) => {
                let role = SideClientRole::new(kind, login, settings);
                Some(lab.spawn(&role)?)
            }
            _ => None,
        };
        let evictor = load.evicts_caches.then(|| lab.spawn(&EvictorRole { cpu: cpus[1] })).transpose()?;
        Ok(Self {
            oms,
            target: target.clone(),
            oms_role,
            exchange,
            client: Some(client),
            is_foreign: !matches!(settings.client, TradingClient::Rust),
            reference,
            evictor,
            side_client: beside,
            login,
            connect_costs: connected,
            folder: lab.folder().to_owned(),
        })
    }

    /// Returns the names and process ids, for tests that observe or disturb the run.
    pub fn processes(&self) -> OrdersProcesses {
        let [oms, venue] = [&self.oms, &self.exchange].map(|process| process.as_ref().map_or(0, Child::id));
        OrdersProcesses { lanes: self.oms_role.lanes.clone(), oms, venue }
    }

    pub fn run_batch(&mut self, batch: &OrderBatch) -> Result<BatchAnswers, LabError> {
        if self.is_foreign {
            return run_client_batch(self.client.as_mut(), "go", batch);
        }
        let words = |batch: &OrderBatch| serde_json::to_string(batch).expect("plain data");
        let Some(evictor) = self.evictor.as_mut().filter(|_| batch.evict) else {
            return run_client_batch(self.client.as_mut(), &words(batch), batch);
        };
        // A single request at a time: evict the caches, then wait out the rest of the pause in the client.
        let (mut all, mut rows) = (BatchAnswers::default(), Vec::new());
        let file = self.folder.join(format!("client.{}", batch.number));
        for first in 0..batch.count {
            evictor.send("evict")?;
            evictor.result::<()>(5.0)?;
            let one = OrderBatch { first, count: 1, ..*batch };
            let answered = run_client_batch(self.client.as_mut(), &words(&one), &one)?;
            all.denied += answered.denied;
            all.missed += answered.missed;
            all.unanswered += answered.unanswered;
            all.late += answered.late;
            all.last_report = answered.last_report;
            rows.extend(load::<3>(&file)?);
            if let Some((sent, why)) = answered.broke_off {
                all.broke_off = Some((first + sent, why));
                break;
            }
        }
        save(&file, &rows)?;
        Ok(all)
    }

    /// Logs the clients out; the other processes keep running.
    pub fn stop_client(&mut self) -> Result<(), LabError> {
        self.client.take().map_or(Ok(()), Child::stop::<()>)
    }

    /// Kills the OMS and restarts it like a desk's OMS: without room reserved for a run of orders. The clients must be
    /// gone.
    pub fn restart_oms(&mut self, lab: &Lab<'_>) -> Result<(), LabError> {
        self.oms.take().into_iter().for_each(Child::kill);
        self.oms_role.reserve_bytes = 0;
        let (oms, login) = start_oms(lab, &self.target, &self.oms_role)?;
        (self.oms, self.login) = (oms, login);
        Ok(())
    }

    /// Ends all processes in order. Returns the OMS's messages to its operator, and the number of reports that the
    /// client beside received.
    pub fn stop(mut self) -> Result<(Vec<String>, Option<u64>), LabError> {
        self.stop_client()?;
        let received = self.side_client.take().map(Child::stop::<u64>).transpose()?;
        let oms_messages = self.oms.take().map(Child::stop::<Vec<String>>).transpose()?;
        drop(self.reference.take());
        self.exchange.take().map_or(Ok(()), Child::stop::<()>)?;
        let lanes = format!("{}.", self.oms_role.lanes);
        remove_topics(|name| name.starts_with(&lanes));
        Ok((oms_messages.unwrap_or_default(), received))
    }
}

/// Sends the client the command to run a group, and returns its result.
fn run_client_batch(client: Option<&mut Child>, words: &str, batch: &OrderBatch) -> Result<BatchAnswers, LabError> {
    let client = client.ok_or_else(|| LabError::Failed("the client has gone already".to_owned()))?;
    client.send(words)?;
    client.result(batch.seconds() * 3.0 + 30.0)
}

pub(super) fn gaps_file(lab: &Lab<'_>) -> PathBuf {
    lab.folder().join("oms.gaps")
}

fn oms_role(
    lab: &Lab<'_>,
    settings: &Settings,
    load: SystemLoad,
    name: &str,
    market: &str,
) -> Result<OmsRole, LabError> {
    let Settings { layout, wait, cpus, priority, order, .. } = settings;
    let server = match settings.target {
        OrdersTarget::Lanes | OrdersTarget::Running(_) => None,
        OrdersTarget::LogonLanes | OrdersTarget::Unix | OrdersTarget::Tcp => Some(ServerRole {
            unix: (settings.target != OrdersTarget::Tcp).then(|| lab.folder().join("oms.sock")),
            tcp: (settings.target == OrdersTarget::Tcp).then(|| ([127, 0, 0, 1], 0).into()),
            users: users(lab, settings)?,
        }),
    };
    Ok(OmsRole {
        lanes: name.to_owned(),
        request_bytes: REQUEST_BYTES,
        report_bytes: REPORT_BYTES,
        journal: settings.journal.clone().unwrap_or_else(|| lab.folder().join("journal")),
        reserve_bytes: load.expected as u64 * JOURNAL_BYTES,
        symbol: order.symbol.clone(),
        account: order.account,
        expected_orders: load.expected,
        layout: layout.to_string(),
        thread: ThreadConfig::new(cpus[1], *wait, *priority).with_warm_up(lab.runs_warm_up),
        other_cpu: Some(cpus[0]),
        market: Some(market.to_owned()),
        level: if settings.level == AckLevel::Disk { "disk" } else { "os" }.to_owned(),
        snapshot_every: load.snapshot_every,
        line: None,
        server,
        out: gaps_file(lab),
    })
}

fn start_oms(
    lab: &Lab<'_>,
    target: &OrdersTarget,
    role: &OmsRole,
) -> Result<(Option<Child>, Option<BenchLogin>), LabError> {
    let mut oms = lab.spawn(role)?;
    let url: Option<String> = oms.result(1.0)?;
    let url = url.map(|url| if *target == OrdersTarget::LogonLanes { format!("{LANES_SCHEME}{url}") } else { url });
    Ok((Some(oms), url.map(|url| login_at(lab.folder(), url))))
}

/// Waits until the line is up: until then a venue's orders would wait in the core.
fn wait_for_venue(lab: &Lab<'_>, oms: &str) -> Result<(), LabError> {
    let mut meters = MeterReader::for_oms(oms)?;
    let from = lab.clock.ticks();
    while !meters.read()?.venues.iter().any(|venue| venue.is_up) {
        if lab.clock.ns_between(from, lab.clock.ticks()) > VENUE_TIMEOUT_NS {
            return Err(LabError::Failed("the OMS's line to its venue is not up".to_owned()));
        }
        tickpath_clock::sleep_ns(1_000_000);
    }
    Ok(())
}

/// Writes the file of users: the measured client, and the client beside it.
fn users(lab: &Lab<'_>, settings: &Settings) -> Result<PathBuf, LabError> {
    let sessions = settings.sessions;
    let beside = settings.side_client.map(|_| (SIDE_USER, sessions..sessions + 1));
    let users: Vec<_> = std::iter::once((USER, 0..sessions)).chain(beside).collect();
    write_users(lab.folder(), settings.order.account, &users)
}

/// Measures an OMS's cost of `sessions` idle sessions.
fn connect_costs(lab: &Lab<'_>, oms: u32, before_bytes: u64, sessions: u16) -> Vec<(&'static str, f64)> {
    let grown = memory::resident(oms).orders_bytes.saturating_sub(before_bytes) as f64;
    let (from, cpu_ns) = (lab.clock.ticks(), tickpath_clock::cpu_ns(oms));
    tickpath_clock::sleep_ns(OBSERVATION_NS);
    let used = tickpath_clock::cpu_ns(oms).saturating_sub(cpu_ns) as f64;
    let lasted = lab.clock.ns_between(from, lab.clock.ticks()) as f64;
    vec![("memory_per_session_bytes", grown / f64::from(sessions)), ("connected_cpu_percent", 100.0 * used / lasted)]
}
