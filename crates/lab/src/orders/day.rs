//! Whole days: a client that asks for one, a client beside the measured ones that does, and an OMS that is killed behind
//! one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_client::{Client, ClientError, Event, Since};
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_market::{ClientOrderId, NewOrder, Request};

use super::group::{RESTART_GROUP, RESUME_GROUP};
use super::system::{Load, System};
use super::way::Login;
use super::way::log_in;
use super::{Batch, Settings, analyse, bare_run, check};
use crate::trade::BESIDE_USER;
use tickpath_harness::Parent;
use tickpath_harness::Role;
use tickpath_harness::host::on_cpu;
use tickpath_harness::{Lab, LabError};
use tickpath_result::{Counts, Run};

const BESIDE_GROUP: u64 = 70;

/// Between two reads of a client that reads slowly, and between two looks of one that has nothing to do.
const SLOW_NS: u64 = 20_000_000;
const IDLE_NS: u64 = 100_000_000;

/// After so long a client that never reads comes again: the OMS has given it up then, for it says nothing either.
const STUCK_NS: u64 = 9_000_000_000;

/// Nothing comes for so long: it never will.
const PATIENCE_NS: i64 = 30_000_000_000;

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

/// See [`Beside`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BesideRole {
    kind: Beside,
    login: Login,
    order: crate::trade::OrderSpec,
    /// Orders in its day.
    orders: u64,
    cpu: usize,
}

impl Role for BesideRole {
    const NAME: &'static str = "client beside";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        beside(self, parent)
    }
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

impl BesideRole {
    pub(super) fn new(kind: Beside, login: &Login, settings: &Settings) -> Self {
        let login = Login { user: BESIDE_USER.to_owned(), ..login.clone() };
        let cpu = settings.venue_cpu.unwrap_or(settings.cpus[0]);
        Self { kind, login, order: settings.order.clone(), orders: settings.day, cpu }
    }
}

/// The life of a client beside the measured ones. Its result is how many reports it has heard behind its own day.
pub(crate) fn beside(role: &BesideRole, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    tickpath_clock::pin_to_cpu(role.cpu)?;
    make_day(&clock, role)?;
    // It runs where the measured client leaves room.
    rustix::process::nice(19).map_err(|e| LabError::Failed(format!("cannot be nice: {e}")))?;
    let stop = parent.stop_flag();
    parent.ready();
    let mut heard = 0;
    while !stop.load(Ordering::Relaxed) {
        let since = if role.kind == Beside::Idle { Since::Now } else { Since::Start };
        let mut client = log_in(&role.login, since)?;
        match role.kind {
            Beside::Idle => read(&clock, &mut client, &stop, Some(IDLE_NS), u64::MAX, &mut heard)?,
            Beside::Stuck => wait(&clock, &stop, STUCK_NS),
            Beside::Slow | Beside::Day => {
                let (pause_ns, day) = ((role.kind == Beside::Slow).then_some(SLOW_NS), day_of(&client));
                read(&clock, &mut client, &stop, pause_ns, day, &mut heard)?;
            }
        }
        client.close();
    }
    parent.result(&heard);
    Ok(())
}

fn make_day(clock: &HostClock, role: &BesideRole) -> Result<(), LabError> {
    let order = role.order.order().map_err(LabError::Setting)?;
    let mut client = log_in(&role.login, Since::Now)?;
    let (mut next, mut heard, mut last) = (0, 0, clock.ticks());
    let orders = role.orders;
    // Each order has a report of the OMS and one of the venue.
    while heard < 2 * orders {
        while next < orders {
            let id = ClientOrderId(BESIDE_GROUP << 32 | next);
            if client.gather(&Request::New(NewOrder { client_order_id: id, ..order }), clock.ticks()).is_err() {
                break;
            }
            next += 1;
        }
        let told = told(&mut client)?;
        if told > 0 {
            (heard, last) = (heard + told, clock.ticks());
        } else if clock.ns_between(last, clock.ticks()) > PATIENCE_NS {
            return Err(LabError::Failed(format!("of {} reports only {heard} came", 2 * orders)));
        } else {
            client.wait(1_000_000);
        }
    }
    client.close();
    Ok(())
}

/// Reads so many reports, with a pause between two reads if there is one.
fn read(
    clock: &HostClock,
    client: &mut Client,
    stop: &AtomicBool,
    pause_ns: Option<u64>,
    count: u64,
    heard: &mut u64,
) -> Result<(), LabError> {
    let upto = heard.saturating_add(count);
    while !stop.load(Ordering::Relaxed) && *heard < upto {
        *heard += told(client)?;
        match pause_ns {
            Some(ns) => wait(clock, stop, ns),
            None => client.wait(10_000_000),
        }
    }
    Ok(())
}

/// Passes the time, unless it is time to stop.
fn wait(clock: &HostClock, stop: &AtomicBool, ns: u64) {
    let from = clock.ticks();
    while !stop.load(Ordering::Relaxed) && clock.ns_between(from, clock.ticks()) < ns as i64 {
        sleep_ns(ns.min(IDLE_NS));
    }
}

/// Reads once; says how many reports came.
fn told(client: &mut Client) -> Result<u64, LabError> {
    let (mut heard, mut lost) = (0, None);
    let polled = client.poll(|event| match event {
        Event::Report { .. } | Event::Denied { .. } => heard += 1,
        Event::Disconnected { why } => lost = Some(why),
        _ => {}
    });
    let failed = |why: ClientError| LabError::Failed(format!("a session was lost: {why}"));
    lost.or(polled.err()).map_or(Ok(heard), |why| Err(failed(why)))
}

/// Reports that a client gets before it is live.
fn day_of(client: &Client) -> u64 {
    client.welcome().live_report.saturating_sub(client.welcome().next_report)
}

/// How fast a client that lacks a day of so many reports is live again.
pub fn resume(lab: &Lab<'_>, settings: &Settings, reports: u64) -> Result<Run, LabError> {
    check(settings)?;
    // Each order has a report of the OMS and one of the venue.
    let batch = Batch::burst(RESUME_GROUP, reports.div_ceil(2));
    let (mut system, journal) = day(lab, settings, &batch, 0)?;
    system.stop_client()?;
    let login = system.login.clone().expect("checked: it has a socket");
    let (clock, session) = (lab.clock, Login { session: Some(0), ..login });
    let resumed = on_cpu(settings.cpus[0], move || come_back(&clock, &session))??;
    let (told, _) = system.stop()?;
    let mut run = bare_run(settings, &batch);
    run.params.set("reports", resumed.live);
    run.counts = Counts {
        sent: resumed.live,
        received: resumed.heard,
        lost: resumed.live.saturating_sub(resumed.heard),
        ..Counts::default()
    };
    run.elapsed_ns = Some(resumed.ns as u64);
    run.throughput_per_s = Some(resumed.heard as f64 * 1e9 / resumed.ns);
    let figures = [("resume_ns", resumed.ns), ("resume_reports_per_s", resumed.heard as f64 * 1e9 / resumed.ns)];
    run.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
    run.notes.extend(told);
    if settings.journal.is_none() {
        let _ = std::fs::remove_dir_all(&journal);
    }
    Ok(run)
}

struct Resumed {
    /// The first report that is live, all before it being the day.
    live: u64,
    heard: u64,
    /// From before the connect until the last report of the day.
    ns: f64,
}

fn come_back(clock: &HostClock, login: &Login) -> Result<Resumed, LabError> {
    let from = clock.ticks();
    let mut client = log_in(login, Since::Start)?;
    let (live, day) = (client.welcome().live_report, day_of(&client));
    let (mut heard, mut last) = (0, clock.ticks());
    while heard < day {
        match told(&mut client)? {
            0 if clock.ns_between(last, clock.ticks()) > PATIENCE_NS => {
                return Err(LabError::Failed(format!("of {day} reports only {heard} came")));
            }
            0 => client.wait(1_000_000),
            more => (heard, last) = (heard + more, clock.ticks()),
        }
    }
    let ns = clock.ns_between(from, clock.ticks()) as f64;
    client.close();
    Ok(Resumed { live, heard, ns })
}

/// How long an OMS with so many orders in its journal takes from its start until it is ready, after it was killed.
pub fn restart(lab: &Lab<'_>, settings: &Settings, orders: u64) -> Result<Run, LabError> {
    /// As an OMS has it whose file says nothing.
    const SNAPSHOT_EVERY: u64 = 1_000_000;
    check(settings)?;
    let batch = Batch::burst(RESTART_GROUP, orders);
    let (mut system, journal) = day(lab, settings, &batch, SNAPSHOT_EVERY)?;
    system.stop_client()?;
    let from = lab.clock.ticks();
    system.restart_oms(lab)?;
    let ns = lab.clock.ns_between(from, lab.clock.ticks()) as f64;
    let (told, _) = system.stop()?;
    let read = analyse::read(&journal)?;
    let known = read.groups.get(&RESTART_GROUP).map_or(0, |group| group.len() as u64);
    let mut run = bare_run(settings, &batch);
    run.counts = Counts { sent: orders, received: known, lost: orders.saturating_sub(known), ..Counts::default() };
    run.params.set("snapshot_every", SNAPSHOT_EVERY);
    run.elapsed_ns = Some(ns as u64);
    run.figures.insert("restart_to_ready_ns".to_owned(), ns);
    run.notes.extend(told);
    if settings.journal.is_none() {
        let _ = std::fs::remove_dir_all(&journal);
    }
    Ok(run)
}

/// A system that has taken a whole day, and its journal.
fn day(lab: &Lab<'_>, settings: &Settings, batch: &Batch, snapshot_every: u64) -> Result<(System, PathBuf), LabError> {
    lab.step(&settings.title(), batch.seconds() * 3.0 + 5.0)?;
    let load = Load { expected: batch.count as usize, evicts: false, snapshot_every };
    let mut system = System::start(lab, settings, load)?;
    let answered = system.batch(batch)?;
    if answered.unanswered + answered.denied > 0 {
        return Err(LabError::Failed(format!(
            "of {} orders of the day {} were denied and {} had no answer in time",
            batch.count, answered.denied, answered.unanswered
        )));
    }
    Ok((system, settings.journal_in(lab)))
}
