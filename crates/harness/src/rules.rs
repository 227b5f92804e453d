//! Rules of honest measuring that bind every workload.

use tickpath_result::Run;

/// What is lost is in no latency: a run that lost messages says so by number, and is not valid.
pub fn refuse_loss(run: &mut Run) {
    let (sent, lost) = (run.counts.sent, run.counts.lost);
    if lost > 0 {
        run.valid = false;
        run.notes.push(format!("{lost} of {sent} messages were lost: the latencies are those of the others"));
    }
}

/// A topic gives each message at most once and in the order of its publisher: a run in which it did not says so by number,
/// and is not valid.
pub fn refuse_disorder(run: &mut Run) {
    for (count, how) in [(run.counts.duplicated, "twice"), (run.counts.reordered, "behind a later one")] {
        if count > 0 {
            run.valid = false;
            run.notes.push(format!("{count} of {} messages came {how}: no topic may do that", run.counts.sent));
        }
    }
}

/// Connections that were lost and made again: counted and told, for what the transport did meanwhile is in the figures.
pub fn tell_reconnects(run: &mut Run, reconnects: u64) {
    if reconnects > 0 {
        run.figures.insert("reconnects".to_owned(), reconnects as f64);
        let times = if reconnects == 1 { "once".to_owned() } else { format!("{reconnects} times") };
        run.notes.push(format!("the receiver's connection was lost and made again {times}"));
    }
}
