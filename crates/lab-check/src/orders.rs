//! Lies to orders: a venue that leaves some orders unanswered, and a process on their way that is stopped or starved.

use std::path::Path;

use tickpath_clock::sleep_ns;
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::signals::{PauseCycle, pause, resume};
use tickpath_lab_path::orders::{OrdersProcesses, Settings, run_with};
use tickpath_lab_result::Run;
use tickpath_market::ExecType;
use tickpath_oms_runtime::meter::MeterReader;

use crate::context::{CheckContext, FaultReport, ms, retry_until_judgeable};
use crate::machine::{HOGS, PAUSE_NS, RUN_NS, TailPercentile, hogs, judge_invalid};
use crate::messages::{judge_count, judge_undisturbed};

/// Orders a second that leave no queue behind a stall; enough orders for a 99th percentile, and fewer for rows that
/// need none.
const RATE: f64 = 500.0;
const COUNT: u64 = 1_500;
const FEW_ORDERS: u64 = 500;

/// Number of orders that the venue answers before it stops, and the time between two checks for that.
const ANSWERED_BEFORE_STOP: u64 = 50;
const CHECK_INTERVAL_NS: u64 = 1_000_000;

/// Hop within the OMS, and hop that includes the venue.
const OMS_HOP: &str = "t0_t2";
const VENUE_HOP: &str = "order_round_trip";

/// Plants nothing: the result must be valid and report nothing.
pub(crate) fn no_fault(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    judge_undisturbed(|| measure(stage, FEW_ORDERS, |_| Ok(())))
}

/// Stops the venue in the middle of the run, until its OMS has ended.
pub(crate) fn unanswered(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let mut stopping = None;
    let run = measure(stage, FEW_ORDERS, |ends| {
        let OrdersProcesses { lanes, oms, venue } = ends.clone();
        stopping = Some(std::thread::spawn(move || stop_venue_midway(&lanes, oms, venue)));
        Ok(())
    })?;
    let answered = stopping.and_then(|stopping| stopping.join().ok());
    let answered = answered.unwrap_or_else(|| Err(LabError::Failed("nothing was planted".to_owned())))?;
    Ok(judge_count(&run, FEW_ORDERS.saturating_sub(answered), run.counts.left, "without an answer", "had no answer"))
}

/// Stops the venue once it has answered some orders, as counted by the OMS's meters in shared memory. Returns the
/// number of answers.
fn stop_venue_midway(lanes: &str, oms: u32, venue: u32) -> Result<u64, LabError> {
    let mut meters = MeterReader::for_oms(lanes)?;
    let mut answered = 0;
    while Path::new(&format!("/proc/{oms}")).exists() {
        // An OMS that has just ended has no meters.
        let reports = meters.read().map(|reading| reading.reports).unwrap_or_default();
        let of_venue = reports.iter().find(|(code, _)| *code == ExecType::New.code());
        answered = of_venue.map_or(answered, |(_, count)| *count);
        if answered >= ANSWERED_BEFORE_STOP {
            // Stopping a stopped process changes nothing.
            pause(venue)?;
        }
        sleep_ns(CHECK_INTERVAL_NS);
    }
    resume(venue)?;
    Ok(answered)
}

/// Stops only the OMS: the time must count as the OMS's, not the host's.
pub(crate) fn oms_stopped(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let (run, times) = run_with_pauses(stage, |ends| ends.oms)?;
    let tail = TailPercentile::of(&run, OMS_HOP);
    Ok(FaultReport {
        planted: format!("the OMS stopped {times} times for {}", ms(Some(PAUSE_NS))),
        reported: tail.to_string(),
        is_detected: tail.is_not_hosts(),
    })
}

/// Stops only the venue: the time must count in the round trip and not as the host's, and in no hop of the OMS.
pub(crate) fn venue_stopped(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let (run, times) = run_with_pauses(stage, |ends| ends.venue)?;
    let [oms, venue] = [OMS_HOP, VENUE_HOP].map(|hop| TailPercentile::of(&run, hop));
    Ok(FaultReport {
        planted: format!("the venue stopped {times} times for {}", ms(Some(PAUSE_NS))),
        reported: format!("{venue}; {oms}"),
        is_detected: venue.is_not_hosts() && !oms.has_stall(),
    })
}

pub(crate) fn starved_oms(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let hogs = hogs(stage, stage.cpus[1])?;
    let run = measure(stage, FEW_ORDERS, |_| Ok(()))?;
    drop(hogs);
    Ok(judge_invalid(&run, format!("{HOGS} hogs on the OMS's CPU"), &["OMS did not have its CPU"]))
}

/// Runs while one of the processes stops repeatedly. The run is repeated if the host became so much worse during it
/// that nothing can be told apart.
fn run_with_pauses(stage: &CheckContext<'_>, who: fn(&OrdersProcesses) -> u32) -> Result<(Run, u64), LabError> {
    retry_until_judgeable(
        || run_once_with_pauses(stage, who),
        |(run, _)| TailPercentile::of(run, OMS_HOP).is_host_share_known(),
    )
}

fn run_once_with_pauses(stage: &CheckContext<'_>, who: fn(&OrdersProcesses) -> u32) -> Result<(Run, u64), LabError> {
    let mut stopping = None;
    let run = measure(stage, COUNT, |ends| {
        stopping = Some(PauseCycle::start(&[who(ends)], PAUSE_NS, RUN_NS)?);
        Ok(())
    })?;
    Ok((run, stopping.map_or(0, PauseCycle::end)))
}

/// Measures so many orders one by one; `begin` is called before the first.
fn measure(
    stage: &CheckContext<'_>,
    count: u64,
    begin: impl FnOnce(&OrdersProcesses) -> Result<(), LabError>,
) -> Result<Run, LabError> {
    let run = run_with(stage.lab, &settings(stage, count), begin)?.pop();
    run.ok_or_else(|| LabError::Failed("the orders made no run".to_owned()))
}

/// Returns the settings for so many orders one by one.
pub(crate) fn settings(stage: &CheckContext<'_>, count: u64) -> Settings {
    Settings { count: Some(count), rate: Some(RATE), ..Settings::new(stage.cpus) }
}
