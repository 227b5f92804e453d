//! Checks that the machine did not change during a run.
//!
//! ```text
//!   crossing ── run ── crossing        a cache line to and fro between the run's two CPUs, and both counters' stamps
//!   processes ──────── processes       other processes that were busy on the two
//! ```

use tickpath_clock::CpuQuota;
use tickpath_lab_result::{Floor, Run};

use crate::busy_processes::{BusyProcess, ProcessTable, describe_busy};
use crate::host::{self, TransferTiming};
use crate::rules::refuse_negative;
use crate::{Lab, LabError};

/// Number of timings of the cache line, enough for a median.
const TIMINGS: usize = 2_000;

/// Max ratio between the floors before and after a run; beyond it the run gets no ratio to its floor.
const MAX_FLOOR_RATIO: f64 = 1.5;

/// State of the machine before a run.
#[derive(Debug)]
pub struct StabilityCheck {
    cpus: [usize; 2],
    transfer: Option<TransferTiming>,
    times: Option<(u64, u64)>,
    processes: ProcessTable,
    quota: Option<CpuQuota>,
}

impl StabilityCheck {
    /// Measures before a run on two of its CPUs, which must be idle.
    pub fn begin(lab: &Lab<'_>, cpus: [usize; 2]) -> Result<Self, LabError> {
        let crossing = host::measure_transfer(lab, cpus, TIMINGS)?;
        let (times, processes) = (host::cpu_times(), ProcessTable::now(&lab.clock));
        Ok(Self { cpus, transfer: crossing, times, processes, quota: CpuQuota::here() })
    }

    /// Returns the transfer time of a cache line between the two CPUs; none if both are the same.
    pub fn transfer_ns(&self) -> Option<f64> {
        self.transfer.map(|crossing| crossing.transfer_ns)
    }

    /// Measures again, and judges the runs since the first measurement, one or several in sequence, by both.
    pub fn end(self, lab: &Lab<'_>, runs: &mut [Run]) -> Result<(), LabError> {
        let steal_percent = host::steal_percent(self.times, host::cpu_times());
        let quota = CpuQuota::here().map(|quota| quota.since(self.quota.as_ref()));
        let others = ProcessTable::now(&lab.clock).busy_since(&self.processes, std::process::id(), &self.cpus);
        let after = host::measure_transfer(lab, self.cpus, TIMINGS)?;
        for run in runs {
            if let Some(quota) = &quota {
                note_quota(run, quota);
            }
            note_busy_processes(run, &others);
            if let (Some(before), Some(after)) = (self.transfer, after) {
                judge(run, [before, after], steal_percent);
            }
            refuse_negative(run);
        }
        Ok(())
    }
}

/// Adds a note of other busy processes, because the figures contain the time that they took.
pub fn note_busy_processes(run: &mut Run, others: &[BusyProcess]) {
    run.notes.extend(describe_busy(others).map(|others| format!("{others} meanwhile")));
}

/// Adds the run's CPU quota, and its throttled time. A throttled run is not valid, because it measures its quota.
pub fn note_quota(run: &mut Run, quota: &CpuQuota) {
    let CpuQuota { cpus, group, periods, throttled, throttled_ns } = quota;
    run.figures.insert("cpu_quota".to_owned(), *cpus);
    run.figures.insert("throttled_ns".to_owned(), *throttled_ns as f64);
    if *throttled > 0 {
        run.refuse(format!(
            "a CPU quota of {cpus} CPUs (cgroup {group}) stopped this run in {throttled} of {periods} periods, for {:.1} ms \
             summed over its CPUs: that is in all figures; measure without a CPU limit, or with a larger one",
            *throttled_ns as f64 / 1e6
        ));
    }
}

/// Adds the measurements before and after a run to its results. Counters that disagree make the run invalid; a floor
/// that moved adds a note and removes the run's ratio to it.
pub fn judge(run: &mut Run, crossings: [TransferTiming; 2], steal_percent: Option<f64>) {
    let [before, after] = crossings.map(|crossing| crossing.transfer_ns);
    run.floor = Some(Floor {
        cache_line_transfer_before_ns: before,
        cache_line_transfer_after_ns: after,
        counter_offset_ns: crossings.map(|crossing| crossing.offset.bound_ns()).into_iter().max().unwrap_or(0),
        steal_percent,
    });
    if let Some(apart) = crossings.iter().map(|crossing| crossing.offset).find(|offset| offset.is_apart()) {
        run.refuse(match apart.stepped_back {
            true => "the counter of a CPU stepped back: no stamp of this run can be trusted; use another clock source"
                .to_owned(),
            false => format!(
                "the counter of the second CPU is {} to {} ns ahead of the first one's: latencies between the two are wrong \
                 by as much; use another clock source, or CPUs of one socket",
                apart.low_ns, apart.high_ns
            ),
        });
    }
    if before.max(after) > MAX_FLOOR_RATIO * before.min(after) {
        run.figures.remove("one_way_over_transfer_ratio");
        run.notes.push(format!(
            "one cache line took {before:.0} ns before the run and {after:.0} ns after it: the host has moved its CPUs, so \
             the run has no ratio to its floor"
        ));
    }
}
