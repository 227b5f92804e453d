//! What every rendering says in the same words: titles, headlines, facts and footnotes.

use std::collections::BTreeSet;

use super::quantity::{NONE, bytes, count, duration, duration_or_none, figure, multiple};
use crate::result::{Comparison, Counts, Hop, PERCENTILES, ResultFile, Run, Software};

/// The hops worth a headline, the one that people ask for first.
const LEADING_HOPS: [&str; 9] =
    ["tick_to_order", "order_round_trip", "t0_t2", "one_way", "round_trip", "in_queue", "publish", "push", "spin_gap"];

/// The most systems that the headlines name; the tables have all.
const HEADLINE_RUNS: usize = 6;

/// Titles that tell the runs of one file apart, and say no more than that needs.
pub(super) struct Titles {
    varying: Vec<String>,
    repeated: bool,
}

impl Titles {
    pub(super) fn of(result: &ResultFile) -> Self {
        let names: BTreeSet<&String> = result.runs.iter().flat_map(|run| run.params.0.keys()).collect();
        let differs = |name: &str| {
            // A run that has no such setting does not make it one that differs.
            let mut values = result.runs.iter().filter_map(|run| run.params.0.get(name));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        Self {
            varying: names.into_iter().filter(|name| differs(name)).cloned().collect(),
            repeated: result.runs.iter().any(|run| run.repeat > 1),
        }
    }

    /// The title of a run; repeats of the same thing have the same.
    pub(super) fn title(&self, run: &Run) -> String {
        let mut parts = vec![run.target.clone(), run.client.clone(), run.phase.name().to_owned()];
        parts.extend(run.layout.clone());
        parts.extend(run.batch_text().map(|batch| format!("batch {batch}")));
        for name in &self.varying {
            parts.extend(run.params.text(name).map(|value| format!("{name} {value}")));
        }
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    }

    /// The title of a run with its repetition, where there are any.
    pub(super) fn numbered(&self, run: &Run) -> String {
        let title = self.title(run);
        if self.repeated { format!("{title} · #{}", run.repeat) } else { title }
    }

    /// The first run of each title, in the order of the file.
    pub(super) fn first_runs<'a>(&self, result: &'a ResultFile) -> Vec<&'a Run> {
        let mut seen = BTreeSet::new();
        let firsts = result.runs.iter().filter(|run| seen.insert(self.title(run)));
        // A run that broke a rule is not quoted where one of the same kind kept it.
        let kept = |first: &'a Run| result.runs.iter().find(|run| run.valid && self.title(run) == self.title(first));
        firsts.map(|first| kept(first).unwrap_or(first)).collect()
    }
}

/// The sentences that a reader should know first.
pub(super) fn headlines(result: &ResultFile) -> Vec<String> {
    let titles = Titles::of(result);
    let mut sentences = Vec::new();
    let invalid = result.runs.iter().filter(|run| !run.valid).count();
    if invalid > 0 {
        sentences.push(format!("{invalid} of {} runs are not valid; their notes say why.", result.runs.len()));
    }
    sentences.extend(result.comparisons.iter().map(comparison));
    if let Some(leading) = leading_hop(result) {
        let told = titles.first_runs(result).into_iter().filter(|run| run.hops.contains_key(leading));
        sentences.extend(told.take(HEADLINE_RUNS).map(|run| headline(&titles.title(run), leading, &run.hops[leading])));
    }
    let lost: u64 = result.runs.iter().map(|run| run.counts.lost).fold(0, u64::saturating_add);
    if lost > 0 {
        sentences.push(format!("{} messages were lost.", count(lost)));
    }
    if sentences.is_empty() {
        sentences.push(format!("{} runs, and no latency among them.", result.runs.len()));
    }
    sentences
}

/// A comparison in a sentence, with its interval where there is one.
pub(super) fn comparison(comparison: &Comparison) -> String {
    let name = comparison.name.replace('_', " ");
    let ratio = comparison.ratio.map_or_else(|| NONE.to_owned(), multiple);
    match interval(comparison) {
        Some(interval) => format!("{name}: {ratio} ({interval}) in {}.", comparison.figure),
        None => format!("{name}: {ratio} in {}.", comparison.figure),
    }
}

/// The interval of a ratio, if both ends are known.
pub(super) fn interval(comparison: &Comparison) -> Option<String> {
    let (low, high) = comparison.low.zip(comparison.high)?;
    Some(format!("{} to {}", multiple(low), multiple(high)))
}

/// What is known of a run beside its hops: label and text.
pub(super) fn facts(run: &Run) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = vec![("messages".to_owned(), counts(&run.counts))];
    let mut add = |label: &str, text: Option<String>| facts.extend(text.map(|text| (label.to_owned(), text)));
    add("throughput", run.throughput_per_s.map(|rate| figure("throughput_per_s", rate)));
    add("elapsed", run.elapsed_ns.map(|ns| duration(ns as f64)));
    add(
        "memory",
        run.memory.map(|memory| {
            let [before, after, peak] =
                [memory.before_bytes, memory.after_bytes, memory.peak_bytes].map(|size| bytes(size as f64));
            format!("before {before}, after {after}, peak {peak}")
        }),
    );
    for (name, value) in &run.figures {
        add(name, Some(figure(name, *value)));
    }
    for actor in &run.actors {
        let rate = actor.rate_per_s.map(|rate| format!(", {}", figure("rate_per_s", rate))).unwrap_or_default();
        add(&format!("{} {}", actor.role, actor.name), Some(format!("{}{rate}", count(actor.count))));
    }
    add("software", software(&run.software));
    let params = run.params.0.keys().filter_map(|name| Some(format!("{name} {}", run.params.text(name)?)));
    add("settings", Some(params.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty()));
    facts
}

/// What is known of the machine: label and text.
pub(super) fn host(result: &ResultFile) -> Vec<(String, String)> {
    let host = &result.host;
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let cores = (host.cores > 0).then(|| count(u64::from(host.cores)));
    [
        ("processor", known(&host.cpu)),
        ("processors", cores),
        ("kernel", known(&host.kernel)),
        ("governor", host.governor.clone()),
        ("hypervisor", host.hypervisor.clone()),
        ("clock", known(&host.clock_source)),
        ("one stamp costs", host.clock_cost_ns.map(duration)),
        ("one cache line takes", host.cache_line_transfer_ns.map(duration)),
        ("spin gap, 99.99%", host.spin_gap_p9999_ns.map(duration)),
        ("stolen by the hypervisor", host.steal_percent.map(|share| figure("steal_percent", share))),
        ("tickpath", known(&result.tickpath)),
        ("commit", result.commit.clone()),
        ("started", known(&result.started_at)),
    ]
    .into_iter()
    .filter_map(|(label, text)| Some((label.to_owned(), text?)))
    .collect()
}

/// What of a hop is beside its percentiles, where there is something.
pub(super) fn hop_remark(hop: &Hop) -> Option<String> {
    let negative = (hop.negative > 0).then(|| format!("{} negative", count(hop.negative)));
    let share = hop.host_stall_share_p999.map(|share| share * 100.0);
    let stalled = share.map(|percent| format!("{percent:.0} % of the tail beyond p99.9 is the host's"));
    let remarks: Vec<String> = negative.into_iter().chain(stalled).collect();
    (!remarks.is_empty()).then(|| remarks.join(", "))
}

/// The footnote that a missing percentile needs; none if all are there.
pub(super) fn footnote(result: &ResultFile) -> Option<String> {
    let lacking = |hop: &Hop| hop.percentiles().contains(&None);
    let any = result.runs.iter().flat_map(|run| run.hops.values()).any(lacking);
    any.then(|| format!("{NONE} too few samples: {}.", samples_needed()))
}

/// How many samples each percentile needs.
pub(super) fn samples_needed() -> String {
    let needs = PERCENTILES.map(|percentile| format!("{} needs {}", percentile.label, count(percentile.samples)));
    format!("a percentile needs 10/(1−q) samples: {}", needs.join(", "))
}

/// The counts of a run; what should be zero and is, is left out.
fn counts(counts: &Counts) -> String {
    let troubles = [
        ("lost", counts.lost),
        ("duplicated", counts.duplicated),
        ("reordered", counts.reordered),
        ("left", counts.left),
        ("errors", counts.errors),
    ];
    let mut text = format!("sent {}, received {}", count(counts.sent), count(counts.received));
    for (name, number) in troubles.into_iter().filter(|(name, number)| *name == "lost" || *number > 0) {
        text += &format!(", {name} {}", count(number));
    }
    text
}

fn headline(title: &str, name: &str, hop: &Hop) -> String {
    let [p50, p99] = [hop.p50_ns, hop.p99_ns].map(duration_or_none);
    format!("{title}: {} takes {p50} at the median, {p99} at 99%.", name.replace('_', " "))
}

fn leading_hop(result: &ResultFile) -> Option<&'static str> {
    LEADING_HOPS.into_iter().find(|name| result.runs.iter().any(|run| run.hops.contains_key(*name)))
}

fn software(software: &Software) -> Option<String> {
    let pair = |name: &Option<String>, version: &Option<String>| {
        let parts: Vec<&str> = [name, version].into_iter().flatten().map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    };
    let settings = software.server_settings.0.keys().filter_map(|name| {
        let value = software.server_settings.text(name)?;
        Some(format!("{name} {value}"))
    });
    let parts: Vec<String> = pair(&software.server, &software.server_version)
        .into_iter()
        .chain(pair(&software.client, &software.client_version))
        .chain(software.runtime.clone())
        .chain(settings)
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
