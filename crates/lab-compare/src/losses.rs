//! Losses of the new side: a build that drops its slow messages is faster, and worse.

use tickpath_lab_report::count;
use tickpath_lab_result::{MessageCounts, Run};

/// Max relative drop of the received share of the sent messages; the end of a run cuts some off.
const RECEIVED_WITHIN: f64 = 0.001;

/// Max relative drop of a hop's samples per sent message.
const SAMPLED_WITHIN: f64 = 0.01;

/// Min runs of each side for which the least loss of one side above the most of the other is no chance.
const RUNS: usize = 4;

/// A getter of a count.
type CountGetter = fn(&MessageCounts) -> u64;

/// Losses in a setting, in sentences.
#[derive(Debug, Default)]
pub(super) struct LossFindings {
    /// Losses that make the new side worse, whatever its speed.
    pub failures: Vec<String>,
    pub notes: Vec<String>,
}

impl LossFindings {
    /// Compares the counts of a setting: all runs of the old side with all of the new side, invalid runs included,
    /// because their losses may have made them invalid.
    pub fn of(what: &str, sides: &[Vec<&Run>; 2]) -> Self {
        let [old, new] = sides.each_ref().map(|runs| SideTotals::of(runs));
        if sides.iter().any(Vec::is_empty) || new.counts.sent == 0 || old.counts.sent == 0 {
            return Self::default();
        }
        let mut out = Self::default();
        if may_lose(sides) {
            let least_of_new = loss_shares(&sides[1]).fold(f64::INFINITY, f64::min);
            let most_of_old = loss_shares(&sides[0]).fold(0.0, f64::max);
            let beyond = least_of_new > most_of_old && sides.iter().all(|runs| runs.len() >= RUNS);
            let into = if beyond { &mut out.failures } else { &mut out.notes };
            into.extend((new.lost_share() > old.lost_share()).then(|| lost_sentence(what, &old, &new)));
        } else {
            let is_worse = new.lost_share() > old.lost_share();
            let into = if is_worse { &mut out.failures } else { &mut out.notes };
            into.extend((new.counts.lost > 0).then(|| lost_sentence(what, &old, &new)));
            out.failures.extend(received_sentence(what, &old, &new).filter(|_| new.counts.lost == 0));
            out.failures.extend(fewer_samples(what, sides, [&old, &new]));
        }
        let others: [(&str, CountGetter); 3] = [
            ("duplicated", |counts| counts.duplicated),
            ("reordered", |counts| counts.reordered),
            ("errors", |counts| counts.errors),
        ];
        for (name, of) in others {
            let [before, now] = [of(&old.counts), of(&new.counts)];
            let grew = now > before;
            out.notes.extend(grew.then(|| format!("{name}, {what}: {} of NEW, {} of OLD", count(now), count(before))));
        }
        out
    }

    /// Appends another setting's losses.
    pub fn extend(&mut self, others: Self) {
        self.failures.extend(others.failures);
        self.notes.extend(others.notes);
    }
}

/// The sum of all runs of a side.
struct SideTotals {
    counts: MessageCounts,
}

impl SideTotals {
    fn of(runs: &[&Run]) -> Self {
        let sum = |of: CountGetter| runs.iter().map(|run| of(&run.counts)).fold(0, u64::saturating_add);
        Self {
            counts: MessageCounts {
                sent: sum(|counts| counts.sent),
                received: sum(|counts| counts.received),
                lost: sum(|counts| counts.lost),
                duplicated: sum(|counts| counts.duplicated),
                reordered: sum(|counts| counts.reordered),
                errors: sum(|counts| counts.errors),
                ..MessageCounts::default()
            },
        }
    }

    fn lost_share(&self) -> f64 {
        self.share_of_sent(self.counts.lost)
    }

    fn share_of_sent(&self, number: u64) -> f64 {
        number as f64 / self.counts.sent as f64
    }
}

/// Returns whether the topic overwrites messages that its readers have not taken in time.
fn may_lose(sides: &[Vec<&Run>; 2]) -> bool {
    sides.iter().flatten().any(|run| run.params.text("policy").is_some_and(|policy| policy == "overwrite"))
}

fn loss_shares<'a>(runs: &'a [&Run]) -> impl Iterator<Item = f64> + 'a {
    runs.iter().map(|run| run.counts.lost as f64 / run.counts.sent.max(1) as f64)
}

fn lost_sentence(what: &str, old: &SideTotals, new: &SideTotals) -> String {
    let [old, new] = [old, new].map(|side| format!("{} of {}", count(side.counts.lost), count(side.counts.sent)));
    format!("NEW loses messages, {what}: {new}; OLD {old}")
}

fn received_sentence(what: &str, old: &SideTotals, new: &SideTotals) -> Option<String> {
    let [before, now] = [old, new].map(|side| side.share_of_sent(side.counts.received));
    let [old, new] = [old, new].map(|side| format!("{} of {}", count(side.counts.received), count(side.counts.sent)));
    (now < before * (1.0 - RECEIVED_WITHIN)).then(|| format!("NEW loses messages, {what}: received {new}; OLD {old}"))
}

/// Hops with a sample for each message, whatever the timing; other hops depend on batches, or on an order's fate.
const PER_MESSAGE_HOPS: [&str; 5] = ["one_way", "service", "publish", "round_trip", "in_queue"];

/// Returns the hops of which the new side has fewer samples: messages without a sample are in no percentile.
fn fewer_samples(what: &str, sides: &[Vec<&Run>; 2], totals: [&SideTotals; 2]) -> Vec<String> {
    let fewer = PER_MESSAGE_HOPS.into_iter().filter_map(|name| {
        let samples = |runs: &Vec<&Run>| {
            let of_run = |run: &&Run| run.hops.get(name).map_or(0, |hop| hop.count.saturating_add(hop.negative));
            runs.iter().map(of_run).fold(0, u64::saturating_add)
        };
        let [old, new] = sides.each_ref().map(samples);
        let is_fewer = totals[1].share_of_sent(new) < totals[0].share_of_sent(old) * (1.0 - SAMPLED_WITHIN);
        // A hop that the new build does not measure at all is reported elsewhere.
        (new > 0 && is_fewer).then(|| {
            let [of_old, of_new] = totals.map(|side| count(side.counts.sent));
            let [old, new] = [old, new].map(count);
            format!("NEW loses samples, {what}: {name} has {new} for {of_new} sent; OLD {old} for {of_old}")
        })
    });
    fewer.collect()
}
