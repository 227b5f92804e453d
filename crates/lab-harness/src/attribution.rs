//! The host's share of a run's tail latency, from the kernel's account of a watched thread.

use tickpath_clock::{Calibration, CpuQuota, GapCause, SchedulingGap};
use tickpath_lab_result::Run;

use crate::host::IDLE_NS;

/// Returns the gaps of a thread, with a stop attributed to the host as far as all other watched threads were stopped
/// too. A stop of one process alone, for instance a server, stalls the path; without other watched threads the
/// stop stays a stop.
pub fn attribute_common_stops(own: &[SchedulingGap], others: &[&[SchedulingGap]]) -> Vec<SchedulingGap> {
    own.iter()
        .flat_map(|gap| if gap.cause == GapCause::Stopped { split_stop(*gap, others) } else { vec![*gap] })
        .collect()
}

/// Splits a stop into the host's parts, in which all other threads were stopped too, and the remaining parts.
fn split_stop(stop: SchedulingGap, others: &[&[SchedulingGap]]) -> Vec<SchedulingGap> {
    let mut whole = if others.is_empty() { Vec::new() } else { vec![stop] };
    for gaps in others {
        let stops = || gaps.iter().filter(|gap| gap.cause == GapCause::Stopped);
        let shared = |part: SchedulingGap| {
            stops().map(move |other| SchedulingGap {
                from: part.from.max(other.from),
                to: part.to.min(other.to),
                ..part
            })
        };
        whole = whole.into_iter().flat_map(shared).filter(|part| part.from < part.to).collect();
    }
    let mut parts = Vec::new();
    let mut from = stop.from;
    for part in whole {
        parts.push(SchedulingGap { from, to: part.from, ..stop });
        parts.push(SchedulingGap { cause: GapCause::Host, ..part });
        from = part.to;
    }
    parts.push(SchedulingGap { from, ..stop });
    parts.retain(|part| part.from < part.to);
    parts
}

/// Clips gaps to the time between two stamps, because a thread also waits before and after its run.
pub fn clip_gaps(gaps: &[SchedulingGap], from: u64, to: u64) -> Vec<SchedulingGap> {
    let cut = gaps.iter().map(|gap| SchedulingGap { from: gap.from.max(from), to: gap.to.min(to), ..*gap });
    cut.filter(|gap| gap.from < gap.to).collect()
}

/// Returns the total time that a thread did not run for one cause, in nanoseconds.
pub fn stalled_ns(gaps: &[SchedulingGap], cause: GapCause, calibration: &Calibration) -> u64 {
    let of_cause = gaps.iter().filter(|gap| gap.cause == cause);
    of_cause.map(|gap| calibration.ns_between(gap.from, gap.to).unsigned_abs()).sum()
}

/// Adds notes of a thread's gaps with other causes than the host. `gaps` come from [`attribute_common_stops`] if the
/// run has other watched threads.
pub fn note_stalls(run: &mut Run, who: &str, gaps: &[SchedulingGap], took_ns: u64, calibration: &Calibration) {
    /// Min share of a run that is reported; a smaller one moves no percentile up to the 99.9th.
    const MIN_SHARE: f64 = 0.001;
    let others = match CpuQuota::here() {
        Some(_) => "its CPU quota was used up, or other processes of this machine had its CPU",
        None => "other processes of this machine, possibly a server of the run, had its CPU",
    };
    let causes = [
        (GapCause::Preempted, others),
        (GapCause::Stopped, "its process was stopped, and not all processes of the run with it"),
        (GapCause::Voluntary, "it slept instead of spinning"),
        (GapCause::Unknown, "the kernel did not report the cause"),
    ];
    for (cause, why) in causes {
        let ns = stalled_ns(gaps, cause, calibration);
        let share = ns as f64 / took_ns.max(1) as f64;
        if share >= MIN_SHARE {
            run.notes.push(format!(
                "the {who} was stalled for {:.2} ms, {:.1} % of the run, not known to be the host's stall: {why}; the \
                 stall is in all figures",
                ns as f64 / 1e6,
                100.0 * share
            ));
        }
    }
}

/// Drops the host's share of the tail if the host had more than twice the gaps of its idle floor.
pub fn void_attribution(run: &mut Run, idle: &[SchedulingGap], gaps: &[SchedulingGap], seconds: f64) {
    /// Max number of gaps that is too small for a rate.
    const MAX_UNRATED_GAPS: usize = 20;
    let of_host = |gaps: &[SchedulingGap]| gaps.iter().filter(|gap| gap.cause == GapCause::Host).count();
    let (idle, gaps) = (of_host(idle), of_host(gaps));
    let floor = idle.max(1) as f64 / (IDLE_NS as f64 / 1e9);
    let rate = gaps as f64 / seconds.max(1e-3);
    if gaps > MAX_UNRATED_GAPS && rate > 2.0 * floor {
        drop_attribution(run);
        run.notes.push(format!(
            "host gaps came {rate:.0} times a second, more than twice the idle floor of {floor:.0}: the host's share \
             of the tail is unknown, and the figures are raw"
        ));
    }
}

/// Drops the host's share, and leaves the raw figures alone.
pub fn drop_attribution(run: &mut Run) {
    for hop in run.hops.values_mut() {
        hop.unstalled = None;
        hop.host_stall_share_p999 = None;
    }
}
