//! Rules of honest measurement for every workload.

use tickpath_clock::CpuQuota;
use tickpath_lab_result::{Hop, Run};

/// Marks a run that lost messages as not valid and notes their number, because lost messages appear in no latency.
pub fn refuse_loss(run: &mut Run) {
    let (sent, lost) = (run.counts.sent, run.counts.lost);
    if lost > 0 {
        run.refuse(format!("{lost} of {sent} messages were lost: the latencies are those of the others"));
    }
}

/// Marks a run with duplicates or reordered messages as not valid and notes their number: a topic must deliver each
/// message at most once, in its publisher's order.
pub fn refuse_reordered(run: &mut Run) {
    for (count, how) in [(run.counts.duplicated, "twice"), (run.counts.reordered, "behind a later one")] {
        if count > 0 {
            run.refuse(format!("{count} of {} messages came {how}: no topic may do that", run.counts.sent));
        }
    }
}

/// Adds the number of reconnects of one end to the figures and notes, because the figures contain the transport's work
/// meanwhile. Notes an unknown number as well.
pub fn note_reconnects(run: &mut Run, who: &str, reconnects: Option<u64>) {
    let Some(reconnects) = reconnects else {
        return run.notes.push(format!("the {who}'s client does not report reconnects"));
    };
    if reconnects > 0 {
        *run.figures.entry("reconnects".to_owned()).or_default() += reconnects as f64;
        let times = if reconnects == 1 { "once".to_owned() } else { format!("{reconnects} times") };
        run.notes.push(format!("the {who}'s connection was lost and made again {times}"));
    }
}

/// Adds percentiles of the generator's lateness against its plan, as far as the samples suffice for them.
pub fn add_lateness(run: &mut Run, late: &Hop) {
    let figures = [("lateness_p50_ns", late.p50_ns), ("lateness_p99_ns", late.p99_ns)];
    run.figures.extend(figures.into_iter().filter_map(|(name, ns)| Some((name.to_owned(), ns? as f64))));
}

/// Adds the receiver's processor time for each message received. Adds nothing if the time is unknown, or if messages
/// were lost, because waiting for them used time too.
pub fn add_receiver_cpu(run: &mut Run, used_ns: u64) {
    if used_ns > 0 && run.counts.received > 0 && run.counts.lost == 0 {
        let each_ns = used_ns as f64 / run.counts.received as f64;
        run.figures.insert("receiver_cpu_per_message_ns".to_owned(), each_ns);
    }
}

/// Marks a run as not valid if a sample ends before it begins by more than the counters of the run's CPUs may differ,
/// because then a stamp is wrong.
pub fn refuse_negative(run: &mut Run) {
    /// Hops that may be negative: a message can be popped before its push returns, and adjacent orders overtake each
    /// other.
    const SIGNED_HOPS: [&str; 4] = ["in_queue", "t0_gap", "t1_gap", "t2_gap"];
    let bound_ns = run.floor.map_or(0, |floor| floor.counter_offset_ns);
    let causal = run.hops.iter().filter(|(name, _)| !SIGNED_HOPS.contains(&name.as_str()));
    let beyond = causal.filter_map(|(name, hop)| Some((name, hop.negative, hop.negative_max_ns?)));
    let notes: Vec<String> = beyond
        .filter(|(.., ns)| *ns > bound_ns)
        .map(|(name, count, ns)| {
            format!(
                "{count} samples of {name} ended before they began, by up to {ns} ns, and the counters differ by {bound_ns} ns \
                 at most: a clock of this run is wrong"
            )
        })
        .collect();
    run.valid &= notes.is_empty();
    run.notes.extend(notes);
}

/// Marks a run as not valid if a thread with an exclusive CPU was preempted for more than a hundredth of the time,
/// because it then measures the other processes on that CPU.
pub fn refuse_starved(run: &mut Run, who: &str, preempted_ns: u64, took_ns: u64) {
    if preempted_ns as f64 > 0.01 * took_ns as f64 {
        let remedy = match CpuQuota::here() {
            Some(_) => "its CPU quota stopped it, or what else runs there did",
            None => "end what else runs there, or name other CPUs",
        };
        run.refuse(format!(
            "the {who} did not have its CPU to itself and waited {:.1} ms for it; {remedy}",
            preempted_ns as f64 / 1e6
        ));
    }
}
