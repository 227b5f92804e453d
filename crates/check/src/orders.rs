//! Lies to orders: a venue that leaves some without an answer, and who stands still or starves on their way.

use std::path::Path;

use tickpath_clock::{Priority, Wait, sleep_ns};
use tickpath_harness::LabError;
use tickpath_harness::signals::{Stopping, go_on, stop};
use tickpath_lab_path::Client;
use tickpath_lab_path::orders::{Ends, OrderSpec, Settings, Target, VenueRoute, run_with};
use tickpath_market::ExecType;
use tickpath_meter::Meters;
use tickpath_oms::{AckLevel, Layout};
use tickpath_result::Run;

use crate::machine::{HOGS, MOVING_NS, STILL_NS, Tail, hogs, refused};
use crate::messages::{exactly, told_nothing};
use crate::stage::{Finding, Stage, judgeable, ms};

/// Orders a second that leave no queue behind a standstill; enough of them for a 99th percentile, and fewer where none is
/// asked for.
const RATE: f64 = 500.0;
const COUNT: u64 = 1_500;
const FEW: u64 = 500;

/// The venue answers so many, and stops. Between two looks whether it has.
const ANSWERED: u64 = 50;
const LOOK_NS: u64 = 1_000_000;

/// What the OMS takes, and what the venue does with it.
const OF_OMS: &str = "t0_t2";
const WITH_VENUE: &str = "order_round_trip";

/// No lie: nothing is to be told.
pub(crate) fn nothing(stage: &Stage<'_>) -> Result<Finding, LabError> {
    told_nothing(|| measure(stage, FEW, |_| Ok(())))
}

/// The venue stops in the middle of the run, and goes on when its OMS has ended.
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

/// Gives how many orders the venue has answered, as the OMS counts in shared memory what it says.
fn stop_in_the_middle(lanes: &str, oms: u32, venue: u32) -> Result<u64, LabError> {
    let mut meters = Meters::of(lanes)?;
    let mut answered = 0;
    while Path::new(&format!("/proc/{oms}")).exists() {
        // An OMS that has just ended counts no more.
        let reports = meters.read().map(|reading| reading.reports).unwrap_or_default();
        let of_venue = reports.iter().find(|(code, _)| *code == ExecType::New.code());
        answered = of_venue.map_or(answered, |(_, count)| *count);
        if answered >= ANSWERED {
            // Whoever stands still already goes on doing so.
            stop(venue)?;
        }
        sleep_ns(LOOK_NS);
    }
    go_on(venue)?;
    Ok(answered)
}

/// The OMS alone stands still: that is its own, and not the host's.
pub(crate) fn oms_stopped(stage: &Stage<'_>) -> Result<Finding, LabError> {
    let (run, times) = stopped(stage, |ends| ends.oms)?;
    let tail = Tail::of(&run, OF_OMS);
    Ok(Finding {
        planted: format!("the OMS stopped {times} times for {}", ms(Some(STILL_NS))),
        reported: tail.to_string(),
        is_told: tail.is_ours(),
    })
}

/// The venue alone stands still: that is in the way to its answer and not the host's, and in no hop of the OMS.
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

/// A run in which one of its processes stops, again and again. Where the host was so much worse than before the run
/// that nothing can be told apart, it is tried again.
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

/// So many orders one by one; `begin` is called before the first.
fn measure(stage: &Stage<'_>, count: u64, begin: impl FnOnce(&Ends) -> Result<(), LabError>) -> Result<Run, LabError> {
    let run = run_with(stage.lab, &settings(stage, count), begin)?.pop();
    run.ok_or_else(|| LabError::Failed("the orders made no run".to_owned()))
}

/// So many orders one by one.
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
