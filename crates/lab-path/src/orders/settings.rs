//! How `orders` is run, and which settings make no run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Priority, Wait};
use tickpath_oms::{AckLevel, Layout};

use super::login::Login;
use crate::clients::Client;
use crate::trade::OrderSpec;
use tickpath_harness::{Lab, LabError};

/// The sessions that one client has, at most.
pub const MOST_SESSIONS: u16 = 10_000;

/// Where the orders go in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An OMS of the run without sessions, by lanes that are there from the start.
    Lanes,
    /// An OMS of the run, by lanes that a logon over a Unix socket gives.
    LogonLanes,
    /// An OMS of the run, by a Unix socket.
    Unix,
    /// An OMS of the run, by TCP on this host.
    Tcp,
    /// Somebody's own OMS, which is running.
    Running(Running),
}

/// An OMS that is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// What it is called.
    pub name: String,
    /// How to log in.
    pub login: Login,
    /// The number that it knows the order's instrument by.
    pub symbol: u32,
    /// Its journal, if it is on this host.
    pub journal: PathBuf,
}

/// How an OMS of the run reaches its venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VenueRoute {
    /// By lanes in shared memory.
    #[default]
    Lanes,
    /// By a line over TCP on this host.
    Tcp,
}

/// What a client beside the measured ones does, once it has made a day of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beside {
    /// It is connected.
    Idle,
    /// It asks for its day, and never reads.
    Stuck,
    /// It asks for its day again and again, and reads it slowly.
    Slow,
    /// It asks for its day again and again, and reads it as fast as it can.
    Day,
}

/// How `orders` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the orders go in.
    pub target: Target,
    /// Whose code sends them.
    pub client: Client,
    /// How the orders go out.
    pub venue: VenueRoute,
    /// Sessions that are logged in.
    pub sessions: u16,
    /// Sessions that send; no more than there are.
    pub active: u16,
    /// Orders of a session without a report, at most; as many as there are if there is none.
    pub in_flight: Option<u32>,
    /// What must hold a request before anything of it leaves.
    pub level: AckLevel,
    /// A client beside those that are measured.
    pub beside: Option<Beside>,
    /// Orders in that client's day.
    pub day: u64,
    /// Which thread does what.
    pub layout: Layout,
    /// How the core's thread waits.
    pub wait: Wait,
    /// Generator's and system's CPU.
    pub cpus: [usize; 2],
    /// The venue's CPU; it shares the generator's if there is none.
    pub venue_cpu: Option<usize>,
    /// Of the core's thread.
    pub priority: Priority,
    /// The order.
    pub order: OrderSpec,
    /// One group alone, of so many orders.
    pub count: Option<u64>,
    /// Orders a second of that group; as fast as they go if there is none.
    pub rate: Option<f64>,
    /// 60 orders in slow runs and five memory steps.
    pub full: bool,
    /// The journal's folder; one of the run if there is none.
    pub journal: Option<PathBuf>,
    /// Which repetition this is.
    pub repeat: u32,
}

impl Beside {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Stuck, Self::Slow, Self::Day];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Stuck => "stuck",
            Self::Slow => "slow",
            Self::Day => "day",
        }
    }
}

impl Target {
    /// The name of its runs.
    pub fn url(&self) -> &str {
        match self {
            Self::Lanes => "shm://",
            Self::LogonLanes => "shm+unix://",
            Self::Unix => "unix://",
            Self::Tcp => "tcp://",
            Self::Running(running) => &running.login.url,
        }
    }

    /// The number that its OMS knows the order's instrument by.
    pub(super) fn symbol(&self) -> u32 {
        match self {
            Self::Running(running) => running.symbol,
            _ => crate::trade::SYMBOL.0,
        }
    }

    /// Whether clients come to it over sockets, if only to log on.
    pub(super) fn has_socket(&self) -> bool {
        *self != Self::Lanes
    }
}

impl Settings {
    /// How client and venue wait, who share a CPU. Beside a core that adapts they do as beside one that spins: a venue
    /// that sleeps has to be woken by it.
    pub(super) fn shared_wait(&self) -> Wait {
        if self.wait == Wait::Block || self.beside.is_some() { Wait::Block } else { Wait::Yield }
    }

    /// The journal's folder.
    pub(super) fn journal_in(&self, lab: &Lab<'_>) -> PathBuf {
        match (&self.target, &self.journal) {
            (Target::Running(running), _) => running.journal.clone(),
            (_, Some(journal)) => journal.clone(),
            (_, None) => lab.folder().join("journal"),
        }
    }

    /// Who breaks off at somebody's own OMS leaves something behind there.
    pub(super) fn may_be_open(&self, error: LabError) -> LabError {
        match self.open_orders() {
            Some(sentence) => LabError::Failed(format!("{error}; {sentence}")),
            None => error,
        }
    }

    /// A sentence for a run that ends early; none where the OMS was started for it.
    pub(super) fn open_orders(&self) -> Option<&'static str> {
        let is_real = matches!(self.target, Target::Running(_));
        is_real.then_some("orders of this run may still be open at the venue, `tickpath orders` tells")
    }

    /// What is said before a run.
    pub(super) fn title(&self) -> String {
        format!("orders {} {} {}", self.target.url(), self.layout, self.wait)
    }
}

/// Refuses settings that make no run.
pub(super) fn check(settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: &str| Err(LabError::Setting(what.to_owned()));
    let Settings { target, layout, wait, sessions, active, .. } = settings;
    if settings.count == Some(0) || settings.count.is_some_and(|count| count > 50_000_000) {
        return wrong("--count takes 1 to 50000000 orders");
    }
    if (settings.rate.is_some() || settings.in_flight.is_some()) && settings.count.is_none() {
        return wrong("--rate and --in-flight are of one group; say how many orders with --count");
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
    if !target.has_socket() && (*sessions != 1 || settings.beside.is_some()) {
        return wrong("--sessions and --beside are of clients over sockets; use --target unix:// or tcp://");
    }
    if *sessions == 0 || *sessions > MOST_SESSIONS || *active == 0 || active > sessions {
        return wrong("--sessions takes 1 to 10000, and --active 1 to as many");
    }
    if !matches!(settings.client, Client::Rust) {
        check_other(settings.client.name(), settings)?;
    }
    settings.order.order().map(|_| ()).map_err(LabError::Setting)
}

/// Refuses settings that the client of this name does not have.
pub fn check_other(name: &str, settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: &str| Err(LabError::Setting(format!("--client {name} {what}")));
    let Settings { target, count, full, sessions, in_flight, beside, order, .. } = settings;
    if matches!(target, Target::Lanes | Target::Running(_)) {
        return wrong("logs on to an OMS of the bench; use --target shm+unix://, unix:// or tcp://");
    }
    if count.is_none() || *full {
        return wrong("sends one group; say how many orders with --count, and leave --full out");
    }
    if *sessions != 1 || in_flight.is_some() || beside.is_some() {
        return wrong(
            "has one session, and sends whatever has no report yet; leave --sessions, --in-flight and --beside out",
        );
    }
    if order.position != "default" {
        return wrong("knows no position effect; write position=default in --order");
    }
    Ok(())
}
