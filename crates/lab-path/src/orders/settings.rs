//! Settings of `orders`, and the rules that refuse impossible ones.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Priority, Wait};
use tickpath_oms_runtime::{AckLevel, Layout};

use super::login::BenchLogin;
use crate::clients::TradingClient;
use crate::trade::OrderSpec;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::named_variants;

/// Max sessions of a client.
pub const MAX_SESSIONS: u16 = 10_000;

/// The orders' entry to an OMS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrdersTarget {
    /// An OMS of the run without sessions, by lanes that exist from the start.
    Lanes,
    /// An OMS of the run, by lanes handed out in a logon over a Unix socket.
    LogonLanes,
    /// An OMS of the run, by a Unix socket.
    Unix,
    /// An OMS of the run, by TCP on this host.
    Tcp,
    /// A user's own OMS, which is running.
    Running(RunningOms),
}

/// An OMS that is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningOms {
    /// The OMS's name.
    pub name: String,
    /// The login of the client.
    pub login: BenchLogin,
    /// The OMS's number of the order's instrument.
    pub symbol: u32,
    /// Its journal, if it is on this host.
    pub journal: PathBuf,
}

/// The route from an OMS of the run to its venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VenueRoute {
    /// By lanes in shared memory.
    #[default]
    Lanes,
    /// By a line over TCP on this host.
    Tcp,
}

/// Behaviour of a client beside the measured ones, once it has made a day of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideClient {
    /// Connected only.
    Idle,
    /// Requests its day, and never reads.
    Stuck,
    /// Requests its day again and again, and reads it slowly.
    Slow,
    /// Requests its day again and again, and reads it at full speed.
    Day,
}

/// Settings of `orders`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The orders' entry to the OMS.
    pub target: OrdersTarget,
    /// The client that sends the orders.
    pub client: TradingClient,
    /// The route from the OMS to its venue.
    pub venue: VenueRoute,
    /// The number of logged-in sessions.
    pub sessions: u16,
    /// The number of sessions that send; at most `sessions`.
    pub active: u16,
    /// Max orders of a session without a report; unlimited if there is none.
    pub in_flight: Option<u32>,
    /// The durability that a request needs before it is forwarded or acknowledged.
    pub level: AckLevel,
    /// A client beside those that are measured.
    pub side_client: Option<SideClient>,
    /// The number of orders in that client's day.
    pub day: u64,
    /// The assignment of work to threads.
    pub layout: Layout,
    /// The wait mode of the core's thread.
    pub wait: Wait,
    /// The generator's and the system's CPU.
    pub cpus: [usize; 2],
    /// The venue's CPU; it shares the generator's if there is none.
    pub venue_cpu: Option<usize>,
    /// The priority of the core's thread.
    pub priority: Priority,
    /// The order.
    pub order: OrderSpec,
    /// The number of orders of a single group; all groups if there is none.
    pub count: Option<u64>,
    /// Orders a second of that group; full speed if there is none.
    pub rate: Option<f64>,
    /// Whether to run 60 orders in slow runs, and five memory steps.
    pub full: bool,
    /// The journal's folder; one of the run if there is none.
    pub journal: Option<PathBuf>,
    /// The number of this repetition.
    pub repeat: u32,
}

named_variants!(SideClient { Idle = "idle", Stuck = "stuck", Slow = "slow", Day = "day" });

impl OrdersTarget {
    /// Returns the name of its runs.
    pub fn url(&self) -> &str {
        match self {
            Self::Lanes => "shm://",
            Self::LogonLanes => "shm+unix://",
            Self::Unix => "unix://",
            Self::Tcp => "tcp://",
            Self::Running(running) => &running.login.url,
        }
    }

    /// Returns its OMS's number of the order's instrument.
    pub(super) fn symbol(&self) -> u32 {
        match self {
            Self::Running(running) => running.symbol,
            _ => crate::trade::SYMBOL.0,
        }
    }

    /// Returns whether clients connect to it over sockets, if only to log on.
    pub(super) fn has_socket(&self) -> bool {
        *self != Self::Lanes
    }
}

impl Settings {
    /// Returns defaults: all groups at full speed, over lanes, by one session of our own client, which spins.
    pub fn new(cpus: [usize; 2]) -> Self {
        Self {
            target: OrdersTarget::Lanes,
            client: TradingClient::Rust,
            venue: VenueRoute::Lanes,
            sessions: 1,
            active: 1,
            in_flight: None,
            level: AckLevel::Os,
            side_client: None,
            day: 1,
            layout: Layout::Inline,
            wait: Wait::Busy,
            cpus,
            venue_cpu: None,
            priority: Priority::Normal,
            order: OrderSpec::default(),
            count: None,
            rate: None,
            full: false,
            journal: None,
            repeat: 1,
        }
    }

    /// Returns the wait mode of client and venue, which share a CPU. With an adaptive core they wait as with a spinning
    /// core, because the core would have to wake a sleeping venue.
    pub(super) fn shared_wait(&self) -> Wait {
        if self.wait == Wait::Block || self.side_client.is_some() { Wait::Block } else { Wait::Yield }
    }

    pub(super) fn journal_in(&self, lab: &Lab<'_>) -> PathBuf {
        match (&self.target, &self.journal) {
            (OrdersTarget::Running(running), _) => running.journal.clone(),
            (_, Some(journal)) => journal.clone(),
            (_, None) => lab.folder().join("journal"),
        }
    }

    /// Adds a warning to the error of a run that breaks off at a user's own OMS, where orders may stay open.
    pub(super) fn with_open_orders(&self, error: LabError) -> LabError {
        match self.open_orders_warning() {
            Some(sentence) => LabError::Failed(format!("{error}; {sentence}")),
            None => error,
        }
    }

    /// Returns a warning for a run that ends early, or `None` where the OMS was started for the run.
    pub(super) fn open_orders_warning(&self) -> Option<&'static str> {
        let is_real = matches!(self.target, OrdersTarget::Running(_));
        is_real.then_some("orders of this run may still be open at the venue; list them with `tickpath orders`")
    }

    /// Returns the progress line of a run.
    pub(super) fn title(&self) -> String {
        format!("orders {} {} {}", self.target.url(), self.layout, self.wait)
    }
}

pub(super) fn check(settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: &str| Err(LabError::Setting(what.to_owned()));
    let Settings { target, layout, wait, sessions, active, .. } = settings;
    if settings.count == Some(0) || settings.count.is_some_and(|count| count > 50_000_000) {
        return wrong("--count takes 1 to 50000000 orders");
    }
    if (settings.rate.is_some() || settings.in_flight.is_some()) && settings.count.is_none() {
        return wrong("--rate and --in-flight apply to one group; set its number of orders with --count");
    }
    if settings.cpus[0] == settings.cpus[1] && settings.wait.spins() {
        return wrong("client and core would both spin on one CPU; name two with --cpus, or use --wait block");
    }
    if target.has_socket() && *layout == Layout::Mutex {
        return wrong("the layout 'mutex' serves no sockets; use --layout inline or split");
    }
    if target.has_socket() && *layout == Layout::Inline && wait.sleeps() {
        return wrong("one thread cannot sleep for sockets and for lanes at once; use --layout split, or --wait busy");
    }
    if !target.has_socket() && (*sessions != 1 || settings.side_client.is_some()) {
        return wrong("--sessions and --beside are of clients over sockets; use --target unix:// or tcp://");
    }
    if *sessions == 0 || *sessions > MAX_SESSIONS || *active == 0 || active > sessions {
        return wrong("--sessions takes 1 to 10000, and --active 1 to as many");
    }
    if !matches!(settings.client, TradingClient::Rust) {
        check_client(settings.client.name(), settings)?;
    }
    settings.order.order().map(|_| ()).map_err(LabError::Setting)
}

/// Refuses settings that the client of this name does not support.
pub fn check_client(name: &str, settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: &str| Err(LabError::Setting(format!("--client {name} {what}")));
    let Settings { target, count, full, sessions, in_flight, side_client: beside, order, .. } = settings;
    if matches!(target, OrdersTarget::Lanes | OrdersTarget::Running(_)) {
        return wrong("logs on to an OMS of the bench; use --target shm+unix://, unix:// or tcp://");
    }
    if count.is_none() || *full {
        return wrong("sends one group; set its number of orders with --count, and leave --full out");
    }
    if *sessions != 1 || in_flight.is_some() || beside.is_some() {
        return wrong(
            "has one session, and sends whatever has no report yet; leave --sessions, --in-flight and --beside out",
        );
    }
    if order.position != "default" {
        return wrong("supports no position effect; write position=default in --order");
    }
    Ok(())
}
