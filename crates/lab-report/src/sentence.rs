//! Sentences that all renderings share: headlines, facts and footnotes.

use std::collections::BTreeSet;

use super::names::{RunTitles, setting};
use super::quantity::{NONE, bytes, count, duration, figure, figure_name, multiple, number};
use tickpath_lab_result::{Comparison, Floor, Hop, MessageCounts, PERCENTILES, ResultFile, Run, Software, is_own};

/// The hops worth a headline, the most requested first.
pub(super) const LEADING_HOPS: [&str; 9] =
    ["tick_to_order", "order_round_trip", "t0_t2", "one_way", "round_trip", "in_queue", "publish", "push", "spin_gap"];

/// Max systems and max comparisons in the headlines; the tables have all.
const HEADLINE_RUNS: usize = 5;
const HEADLINE_COMPARISONS: usize = 5;

/// Returns the most important sentences.
pub(super) fn headlines(result: &ResultFile) -> Vec<String> {
    let titles = RunTitles::of(result);
    let mut sentences = Vec::new();
    sentences.extend(invalid(result));
    sentences.extend(lost(result, &titles));
    if !result.findings.is_empty() {
        sentences.extend(result.findings.iter().cloned());
        return sentences;
    }
    sentences.extend(compared(&result.comparisons));
    let leading: Vec<&str> = match leading_hop(result) {
        // Among a user's own hops none leads.
        Some(hop) if is_own(hop) => own_hops(result).into_iter().collect(),
        leading => leading.into_iter().collect(),
    };
    let run_sentences = titles.first_runs(result).into_iter().flat_map(|run| {
        let title = titles.title(run);
        headlines_of(run, &leading).into_iter().map(move |headline| format!("{title}: {headline}."))
    });
    sentences.extend(run_sentences.take(HEADLINE_RUNS));
    if sentences.is_empty() {
        let runs = result.runs.len();
        let noun = if runs == 1 { "run" } else { "runs" };
        let is_measured = result.runs.iter().flat_map(|run| run.hops.values()).any(|hop| hop.p50_ns.is_some());
        let latency = if is_measured { "; the tables have the latencies" } else { " without a latency" };
        sentences.push(format!("{runs} {noun}{latency}."));
    }
    sentences
}

/// Returns invalid runs. A search for the highest rate exceeds that rate on purpose, and its finding reports the
/// result.
pub(super) fn invalid_runs(result: &ResultFile) -> impl Iterator<Item = &Run> {
    result.runs.iter().filter(|run| !run.valid && !run.params.0.contains_key("slo"))
}

/// Reports the number of invalid runs; `None` if all runs are valid.
pub fn invalid(result: &ResultFile) -> Option<String> {
    let all = result.runs.len();
    match invalid_runs(result).count() {
        0 => None,
        1 => Some(format!("1 of {all} runs is not valid; its notes have the reason.")),
        invalid => Some(format!("{invalid} of {all} runs are not valid; their notes have the reasons.")),
    }
}

/// Reports the number of lost messages, and the run with the most losses; `None` without losses.
fn lost(result: &ResultFile, titles: &RunTitles) -> Option<String> {
    let lossy: Vec<&Run> = result.runs.iter().filter(|run| run.counts.lost > 0).collect();
    let worst = lossy.iter().max_by_key(|run| run.counts.lost)?;
    let all = lossy.iter().map(|run| run.counts.lost).fold(0, u64::saturating_add);
    let number = titles.numbered(worst);
    Some(match lossy.len() {
        1 => format!("Messages lost: {}, in {number}.", count(all)),
        runs => {
            format!("Messages lost: {} in {runs} runs, {} of them in {number}.", count(all), count(worst.counts.lost))
        }
    })
}

/// Returns a comparison as a sentence: the ratio of the two sides with its interval, or that there is none.
pub(super) fn comparison(comparison: &Comparison) -> String {
    let Comparison { name, figure, ratio, note, .. } = comparison;
    let ratio = ratio.map_or_else(|| NONE.to_owned(), multiple);
    let interval = interval(comparison).map_or(String::new(), |interval| format!(" ({interval})"));
    let note = note.as_ref().map_or(String::new(), |note| format!("; {note}"));
    match ComparisonSides::of(comparison) {
        Some(ComparisonSides { a, b, setup: way }) if comparison.ratio.is_some() => {
            let difference = if figure.ends_with("_ns") {
                format!("takes {ratio} as long as {b}")
            } else if figure.ends_with("_per_s") {
                format!("reaches {ratio} the rate of {b}")
            } else {
                format!("has {ratio} of {b}")
            };
            format!("{a} {difference}{interval}{way}, in {figure}{note}.")
        }
        _ => format!("{}: {ratio}{interval} in {figure}{note}.", name.replace('_', " ")),
    }
}

/// Returns the interval of a ratio with its level, or that there is none; `None` without a ratio.
pub(super) fn interval(comparison: &Comparison) -> Option<String> {
    let Some((low, high)) = comparison.low.zip(comparison.high) else {
        let pairs = if comparison.pairs == Some(1) { "one pair, " } else { "" };
        return comparison.ratio.map(|_| format!("{pairs}no interval"));
    };
    let level = comparison.level_percent.map(|level| match level {
        // Rounded down, so that the text never exceeds the level.
        1.0.. => format!(" at {} %", number((level * 10.0).floor() / 10.0)),
        _ => ", too few pairs for a level".to_owned(),
    });
    Some(format!("{} to {}{}", multiple(low), multiple(high), level.unwrap_or_default()))
}

/// The two sides of a comparison, as its name `A_to_B` gives them, and the setup that they share.
struct ComparisonSides {
    a: String,
    b: String,
    setup: String,
}

impl ComparisonSides {
    fn of(comparison: &Comparison) -> Option<Self> {
        if let Some(change) = comparison.name.strip_prefix("gain_") {
            let b = format!("with {}", change.replace('_', " "));
            return Some(Self { a: "What there is".to_owned(), b, setup: String::new() });
        }
        let (head, way) = comparison.name.split_once(' ').unwrap_or((&comparison.name, ""));
        let (a, rest) = head.split_once("_to_")?;
        let figure = comparison.figure.as_str();
        let of = figure.rsplit_once('.').map_or(figure, |(hop, _)| hop).trim_end_matches("_per_s");
        // Older files contain only the percentile.
        let hop = [of].into_iter().chain(LEADING_HOPS).find(|hop| rest.contains(&format!("_{hop}"))).unwrap_or(of);
        let (b, more) = rest.split_once(&format!("_{hop}")).unwrap_or((rest, ""));
        let ways = [more.trim_start_matches('_'), way].into_iter().filter(|way| !way.is_empty());
        let way: String = ways.map(|way| format!(", {}", way.replace('_', " "))).collect();
        let mut a = display_name(a);
        a.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
        Some(Self { a, b: display_name(b), setup: way })
    }
}

/// Returns the usual name of a system.
fn display_name(name: &str) -> String {
    let known = [
        ("log", "the log"),
        ("redis", "Redis"),
        ("redis-streams", "Redis streams"),
        ("nats", "NATS"),
        ("jetstream", "JetStream"),
        ("rabbitmq", "RabbitMQ"),
        ("kafka", "Kafka"),
    ];
    let of = |name: &str| known.into_iter().find(|(short, _)| *short == name).map(|(_, called)| called.to_owned());
    // A client and its target.
    let both = |(client, target)| {
        let client = if client == "python" { "Python" } else { client };
        Some(format!("{client} over {}", of(target)?))
    };
    of(name).or_else(|| both(name.split_once('_')?)).unwrap_or_else(|| name.replace('_', " "))
}

/// Returns the facts of a run beside its hops: label and text.
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
    add("machine", run.floor.as_ref().map(machine));
    for (name, value) in &run.figures {
        add(&figure_name(name), Some(figure(name, *value)));
    }
    for actor in &run.actors {
        let rate = actor.rate_per_s.map(|rate| format!(", {}", figure("rate_per_s", rate))).unwrap_or_default();
        add(&format!("{} {}", actor.role, actor.name), Some(format!("{}{rate}", count(actor.count))));
    }
    add("software", software(&run.software));
    let params = run.params.0.iter().map(|(name, value)| setting(name, value));
    add("settings", Some(params.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty()));
    facts
}

/// Returns the machine's measurements around a run.
fn machine(floor: &Floor) -> String {
    let stolen = floor.steal_percent.map(|share| format!(", {} stolen", figure("steal_percent", share)));
    format!(
        "a cache line in {} before and {} after, counters within {}{}",
        duration(floor.cache_line_transfer_before_ns),
        duration(floor.cache_line_transfer_after_ns),
        duration(floor.counter_offset_ns as f64),
        stolen.unwrap_or_default()
    )
}

/// Returns the facts of the machine: label and text.
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
        ("profile", result.profile.clone()),
        ("started", known(&result.started_at)),
    ]
    .into_iter()
    .filter_map(|(label, text)| Some((label.to_owned(), text?)))
    .collect()
}

/// Returns the remarks on a hop beside its percentiles, if there are any.
pub(super) fn hop_remark(hop: &Hop) -> Option<String> {
    let negative = (hop.negative > 0).then(|| format!("{} negative", count(hop.negative)));
    let share = hop.host_stall_share_p999.map(|share| share * 100.0);
    let stalled = share.map(|percent| format!("at least {percent:.0} % of the tail beyond p99.9 is the host's"));
    let remarks: Vec<String> = negative.into_iter().chain(stalled).collect();
    (!remarks.is_empty()).then(|| remarks.join(", "))
}

/// A median in nanoseconds, with the mark `*` if it is the nearest rank for lack of samples.
pub(super) struct MedianFigure {
    pub ns: f64,
    pub mark: &'static str,
}

/// Returns the median of a hop, or its nearest rank; `None` without a histogram or a sample.
pub(super) fn median_figure(hop: &Hop) -> Option<MedianFigure> {
    let known = hop.p50_ns.map(|ns| MedianFigure { ns: ns as f64, mark: "" });
    known.or_else(|| Some(MedianFigure { ns: hop.nearest_ranks()?[0] as f64, mark: "*" }))
}

/// The explanation of the mark behind a figure.
pub(super) const NEAREST_RANK: &str = "* too few samples for this percentile: the sample nearest to it";

/// Returns the footnote on missing percentiles; `None` if all are there.
pub(super) fn footnote(result: &ResultFile) -> Option<String> {
    let lacking = |hop: &Hop| hop.percentiles().contains(&None);
    let any = result.runs.iter().flat_map(|run| run.hops.values()).any(lacking);
    any.then(|| format!("{NONE} too few samples: {}.", samples_needed()))
}

/// Returns the number of samples that each percentile needs.
pub(super) fn samples_needed() -> String {
    let needs = PERCENTILES.map(|percentile| format!("{} needs {}", percentile.label, count(percentile.samples)));
    format!("a percentile needs 10/(1−q) samples: {}", needs.join(", "))
}

/// Formats the counts of a run; counts of trouble are omitted if they are zero.
fn counts(counts: &MessageCounts) -> String {
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

/// Returns the comparisons that no headline reports.
pub(super) fn unreported_comparisons(result: &ResultFile) -> &[Comparison] {
    if result.findings.is_empty() { headline_comparisons(&result.comparisons).1 } else { &result.comparisons }
}

fn headline_comparisons(comparisons: &[Comparison]) -> (&[Comparison], &[Comparison]) {
    let named = if comparisons.len() <= HEADLINE_COMPARISONS + 1 { comparisons.len() } else { HEADLINE_COMPARISONS };
    comparisons.split_at(named)
}

/// Returns the first comparisons, and the number of further ones.
fn compared(comparisons: &[Comparison]) -> Vec<String> {
    let (first, others) = headline_comparisons(comparisons);
    let more = (!others.is_empty()).then(|| format!("{} more comparisons stand below.", others.len()));
    first.iter().map(comparison).chain(more).collect()
}

/// Returns the main sentences of a run: whether its pullers kept up, or its leading hops.
fn headlines_of(run: &Run, leading: &[&str]) -> Vec<String> {
    if let Some(finding) = &run.finding {
        return vec![finding.clone()];
    }
    let takes = |name: &&str| {
        let hop = run.hops.get(*name)?;
        let p99 = hop.p99_ns.map(|ns| format!(", {} at 99%", duration(ns as f64))).unwrap_or_default();
        let p50 = duration(hop.p50_ns? as f64);
        Some(format!("{} takes {p50} at the median{p99}", hop_words(name)))
    };
    leading.iter().filter_map(takes).collect()
}

/// Returns a hop's name in a sentence; a user's own hop keeps its name.
pub(super) fn hop_words(name: &str) -> String {
    if is_own(name) { name.to_owned() } else { name.replace('_', " ") }
}

/// Returns the first of the leading hops that a run has; without any, the first of a user's own hops.
pub(super) fn leading_hop(result: &ResultFile) -> Option<&str> {
    let listed = LEADING_HOPS.into_iter().find(|name| result.runs.iter().any(|run| run.hops.contains_key(*name)));
    listed.or_else(|| own_hops(result).into_iter().next())
}

/// Returns the hops of a user's own code, by name.
pub(super) fn own_hops(result: &ResultFile) -> BTreeSet<&str> {
    let names = result.runs.iter().flat_map(|run| run.hops.keys());
    names.map(String::as_str).filter(|name| is_own(name)).collect()
}

fn software(software: &Software) -> Option<String> {
    let settings = software.server_settings.0.keys().filter_map(|name| {
        let value = software.server_settings.text(name)?;
        Some(if value.is_empty() { format!("{name} \"\"") } else { format!("{name} {value}") })
    });
    let parts: Vec<String> = software.names().into_iter().chain(settings).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
