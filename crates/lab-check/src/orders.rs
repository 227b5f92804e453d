//! Lies to orders: a venue that leaves some orders unanswered, and a process on their way that is stopped or starved.

use std::path::Path;

use tickpath_clock::{Priority, Wait, sleep_ns};
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::signals::{Stopping, go_on, stop};
use tickpath_lab_path::Client;
use tickpath_lab_path::orders::{Ends, OrderSpec, Settings, Target, VenueRoute, run_with};
use tickpath_lab_result::Run;
use tickpath_market::ExecType;
use tickpath_oms_runtime::meter::Meters;
use tickpath_oms_runtime::{AckLevel, Layout};

use crate::machine::{HOGS, MOVING_NS, STILL_NS, Tail, hogs, refused};
use crate::messages::{exactly, told_nothing};
use crate::stage::{Finding, Stage, judgeable, ms};

/// Orders a second that leave no queue behind a stall; enough orders for a 99th percentile, and fewer for rows that
/// need none.
const RATE: f64 = 500.0;
const COUNT: u64 = 1_500;
const FEW: u64 = 500;

/// Number of orders that the venue answers before it stops, and the time between two checks for that.
const ANSWERED: u64 = 50;
const LOOK_NS: u64 = 1_000_000;

/// Hop within the OMS, and hop that includes the venue.
const OF_OMS: &str = "t0_t2";
const WITH_VENUE: &str = "order_round_trip";

/// Plants nothing: the result must be valid and report nothing.
pub(crate) fn nothing(stage: &Stage<'_>) -> Result<Finding, LabError> {
    told_nothing(|| measure(stage, FEW, |_| Ok(())))
}

/// Stops the venue in the middle of the run, until its OMS has ended.
pub(crate) fn unanswered(stage: &Stage<'_>) -> Result<Finding, LabError> {
    let mut stopping = None;
    let run = measure(stage, FEW, |ends| {
        let Ends { lanes, oms, venue } = ends.clone();
        stopping = Some(std::thread::spawn(move || stop_in_the_middle(&lanes, oms, venue)));
        Ok(())
    })?;
    let answered = stopping.and_then(|stopping| stopping.join().ok());
    let answered = answered.unwrap_or_else(|| Err(LabError::Failed("nothing was planted".to_owned())))?;
    Ok(exactly(&run, FEW.saturating_sub(answered), run.counts.left, "without an answer", "had no answer"))
}

/// Stops the venue once it has answered some orders, as counted by the OMS's meters in shared memory. Returns the
/// number of answers.
fn stop_in_the_middle(lanes: &str, oms: u32, venue: u32) -> Result<u64, LabError> {
    let mut meters = Meters::of(lanes)?;
    let mut answered = 0;
    while Path::new(&format!("/proc/{oms}")).exists() {
        // An OMS that has just ended has no meters.
        let reports = meters.read().map(|reading| reading.reports).unwrap_or_default();
        let of_venue = reports.iter().find(|(code, _)| *code == ExecType::New.code());
        answered = of_venue.map_or(answered, |(_, count)| *count);
        if answered >= ANSWERED {
            // Stopping a stopped process changes nothing.
            stop(venue)?;
        }
        sleep_ns(LOOK_NS);
    }
    go_on(venue)?;
    Ok(answered)
}

/// Stops only the OMS: the time must count as the OMS's, not the host's.
pub(crate) fn oms_stopped(stage: &Stage<'_>) -> Result<Finding, LabError> {
    let (run, times) = stopped(stage, |ends| ends.oms)?;
    let tail = Tail::of(&run, OF_OMS);
    Ok(Finding {
        planted: format!("the OMS stopped {times} times for {}", ms(Some(STILL_NS))),
        reported: tail.to_string(),
        is_told: tail.is_ours(),
    })
}

/// Stops only the venue: the time must count in the round trip and not as the host's, and in no hop of the OMS.
pub(crate) fn venue_stopped(stage: &Stage<'_>) -> Result<Finding, LabError> {
    let (run, times) = stopped(stage, |ends| ends.venue)?;
    let [oms, venue] = [OF_OMS, WITH_VENUE].map(|hop| Tail::of(&run, hop));
    Ok(Finding {
        planted: format!("the venue stopped {times} times for {}", ms(Some(STILL_NS))),
        reported: format!("{venue}; {oms}"),
        is_told: venue.is_ours() && !oms.has_standstill(),
    })
}

pub(crate) fn starved_oms(stage: &Stage<'_>) -> Result<Finding, LabError> {
    let hogs = hogs(stage, stage.cpus[1])?;
    let run = measure(stage, FEW, |_| Ok(()))?;
    drop(hogs);
    Ok(refused(&run, format!("{HOGS} hogs on the OMS's CPU"), &["OMS did not have its CPU"]))
}

/// Runs while one of the processes stops repeatedly. The run is repeated if the host became so much worse during it
/// that nothing can be told apart.
fn stopped(stage: &Stage<'_>, who: fn(&Ends) -> u32) -> Result<(Run, u64), LabError> {
    judgeable(|| stopped_once(stage, who), |(run, _)| Tail::of(run, OF_OMS).is_told_apart())
}

fn stopped_once(stage: &Stage<'_>, who: fn(&Ends) -> u32) -> Result<(Run, u64), LabError> {
    let mut stopping = None;
    let run = measure(stage, COUNT, |ends| {
        stopping = Some(Stopping::of(&[who(ends)], STILL_NS, MOVING_NS)?);
        Ok(())
    })?;
    Ok((run, stopping.map_or(0, Stopping::end)))
}

/// Measures so many orders one by one; `begin` is called before the first.
fn measure(stage: &Stage<'_>, count: u64, begin: impl FnOnce(&Ends) -> Result<(), LabError>) -> Result<Run, LabError> {
    let run = run_with(stage.lab, &settings(stage, count), begin)?.pop();
    run.ok_or_else(|| LabError::Failed("the orders made no run".to_owned()))
}

/// Returns the settings for so many orders one by one.
pub(crate) fn settings(stage: &Stage<'_>, count: u64) -> Settings {
    Settings {
        target: Target::Lanes,
        client: Client::Rust,
        venue: VenueRoute::Lanes,
        sessions: 1,
        active: 1,
        in_flight: None,
        level: AckLevel::Os,
        beside: None,
        day: 1,
        layout: Layout::Inline,
        wait: Wait::Busy,
        cpus: stage.cpus,
        venue_cpu: None,
        priority: Priority::Normal,
        order: OrderSpec::default(),
        count: Some(count),
        rate: Some(RATE),
        full: false,
        journal: None,
        repeat: 1,
    }
}
