//! Whole days: a day that a client requests, and a day after which an OMS is killed.

use tickpath_clock::{Clock, HostClock};
use tickpath_oms_client::Since;

use super::evaluation::run_of_settings;
use super::group::{RESTART_GROUP, RESUME_GROUP};
use super::login::{BenchLogin, REPORT_TIMEOUT_NS, log_in, receive_reports, replayed_reports};
use super::plan::OrderBatch;
use super::settings::{Settings, check};
use super::system::{OrdersSystem, SystemLoad};
use crate::analyse;
use tickpath_lab_harness::host::on_cpu;
use tickpath_lab_harness::rules::refuse_loss;
use tickpath_lab_harness::{Lab, LabError, StabilityCheck};
use tickpath_lab_result::{MessageCounts, Run};

/// Measures the time until a client that lacks a day of `reports` reports is live again.
pub fn resume(lab: &Lab<'_>, settings: &Settings, reports: u64) -> Result<Run, LabError> {
    check(settings)?;
    // Each order has a report from the OMS and a report from the venue.
    let batch = OrderBatch::burst(RESUME_GROUP, reports.div_ceil(2));
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let mut system = run_day(lab, settings, &batch, 0)?;
    system.stop_client()?;
    let login = system.login.clone().expect("checked: it has a socket");
    let (clock, session) = (lab.clock, BenchLogin { session: Some(0), ..login });
    let resumed = on_cpu(settings.cpus[0], move || reconnect(&clock, &session))??;
    let (oms_messages, _) = system.stop()?;
    let mut run = run_of_settings(settings, &batch);
    run.params.set("reports", resumed.live);
    run.counts = MessageCounts {
        sent: resumed.live,
        received: resumed.received,
        lost: resumed.live.saturating_sub(resumed.received),
        ..MessageCounts::default()
    };
    run.elapsed_ns = Some(resumed.ns as u64);
    run.throughput_per_s = Some(resumed.received as f64 * 1e9 / resumed.ns);
    let figures = [("resume_ns", resumed.ns), ("resume_reports_per_s", resumed.received as f64 * 1e9 / resumed.ns)];
    run.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
    run.notes.extend(oms_messages);
    finish(lab, settings, around, run)
}

struct ResumeTiming {
    /// The number of the first live report; all before it are the day.
    live: u64,
    received: u64,
    /// Time from before the connect until the last report of the day.
    ns: f64,
}

fn reconnect(clock: &HostClock, login: &BenchLogin) -> Result<ResumeTiming, LabError> {
    let from = clock.ticks();
    let mut client = log_in(login, Since::Start)?;
    let (live, day) = (client.welcome().live_report, replayed_reports(&client));
    let (mut reports, mut last) = (0, clock.ticks());
    while reports < day {
        match receive_reports(&mut client)? {
            0 if clock.ns_between(last, clock.ticks()) > REPORT_TIMEOUT_NS => {
                return Err(LabError::Failed(format!("only {reports} of {day} reports arrived")));
            }
            0 => client.wait(1_000_000),
            more => (reports, last) = (reports + more, clock.ticks()),
        }
    }
    let ns = clock.ns_between(from, clock.ticks()) as f64;
    client.close();
    Ok(ResumeTiming { live, received: reports, ns })
}

/// Measures the time that a killed OMS with `orders` orders in its journal takes from its start until it is ready.
pub fn restart(lab: &Lab<'_>, settings: &Settings, orders: u64) -> Result<Run, LabError> {
    /// The default of an OMS's settings.
    const SNAPSHOT_EVERY: u64 = 1_000_000;
    check(settings)?;
    let batch = OrderBatch::burst(RESTART_GROUP, orders);
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let mut system = run_day(lab, settings, &batch, SNAPSHOT_EVERY)?;
    system.stop_client()?;
    let from = lab.clock.ticks();
    system.restart_oms(lab)?;
    let ns = lab.clock.ns_between(from, lab.clock.ticks()) as f64;
    let (oms_messages, _) = system.stop()?;
    let read = analyse::read(&settings.journal_in(lab))?;
    let known = read.groups.get(&RESTART_GROUP).map_or(0, |group| group.len() as u64);
    let mut run = run_of_settings(settings, &batch);
    run.counts =
        MessageCounts { sent: orders, received: known, lost: orders.saturating_sub(known), ..MessageCounts::default() };
    run.params.set("snapshot_every", SNAPSHOT_EVERY);
    run.elapsed_ns = Some(ns as u64);
    run.figures.insert("restart_to_ready_ns".to_owned(), ns);
    run.notes.extend(oms_messages);
    finish(lab, settings, around, run)
}

/// Finishes a run: checks for losses, and adds the machine's activity during it.
fn finish(lab: &Lab<'_>, settings: &Settings, around: StabilityCheck, mut run: Run) -> Result<Run, LabError> {
    refuse_loss(&mut run);
    if settings.journal.is_none() {
        let _ = std::fs::remove_dir_all(settings.journal_in(lab));
    }
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

/// Estimates the duration of a day of `orders` orders and the measurement after it.
pub fn day_seconds(orders: u64) -> f64 {
    OrderBatch::burst(RESTART_GROUP, orders).seconds() * 3.0 + 5.0
}

fn run_day(
    lab: &Lab<'_>,
    settings: &Settings,
    batch: &OrderBatch,
    snapshot_every: u64,
) -> Result<OrdersSystem, LabError> {
    lab.step(&settings.title(), day_seconds(batch.count))?;
    let load = SystemLoad { expected: batch.count as usize, evicts_caches: false, snapshot_every };
    let mut system = OrdersSystem::start(lab, settings, load)?;
    let answered = system.run_batch(batch)?;
    if let Some((_, why)) = answered.broke_off {
        return Err(LabError::Failed(why));
    }
    if answered.unanswered + answered.denied > 0 {
        return Err(LabError::Failed(format!(
            "of {} orders of the day {} were denied and {} had no answer in time",
            batch.count, answered.denied, answered.unanswered
        )));
    }
    Ok(system)
}
