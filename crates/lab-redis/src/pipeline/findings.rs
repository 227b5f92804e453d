//! Findings over all runs.

use std::collections::BTreeMap;

use super::{BATCH, BenchPart, LONG_PIPELINE, RedisCommand};
use tickpath_lab_compare::{RatioLine, ratio_table};
use tickpath_lab_report::duration;
use tickpath_lab_result::{Comparison, Run, median};

/// The share of the best throughput from which a deeper pipeline's gain is not worth its memory.
const KNEE_SHARE: f64 = 0.9;

/// The figure that the ratios compare.
const THROUGHPUT: &str = "throughput_per_s";

/// Returns all ratios between the runs, over their repeats: each depth to a command at a time (`pipeline_to_one`), a
/// long pipeline to batches (`long_to_batches`), and each way to read, compute and write to two round trips.
pub fn compare(runs: &[Run]) -> Vec<Comparison> {
    let mut lines = Vec::new();
    let mut add = |name: String, figure, runs: &[&Run], a: &dyn Fn(&Run) -> bool, b: &dyn Fn(&Run) -> bool| {
        let of = |is: &dyn Fn(&Run) -> bool| runs.iter().copied().filter(|run| is(run)).collect::<Vec<_>>();
        lines.push(RatioLine::of_runs(name.trim_end(), figure, of(a), of(b)));
    };
    let is_deep = |depth| move |run: &Run| run.params.whole("depth") == Some(depth);
    for (variant, runs) in variants(runs, BenchPart::Sweep) {
        for depth in depths(&runs).into_iter().filter(|depth| *depth > 1) {
            let name = format!("pipeline_to_one {}", variant.title(Some(depth)));
            add(name, THROUGHPUT, &runs, &is_deep(depth), &is_deep(1));
        }
    }
    for (variant, runs) in variants(runs, BenchPart::Long) {
        for figure in [THROUGHPUT, "reply_memory_bytes"] {
            let name = format!("long_to_batches {}", variant.title(None));
            add(name, figure, &runs, &is_deep(LONG_PIPELINE), &is_deep(BATCH));
        }
    }
    let [by_round_trips, others @ ..] = RedisCommand::READ_MODIFY_WRITE;
    for (variant, runs) in
        grouped(runs, BenchPart::Scripts, |run| RunVariant { command: String::new(), ..RunVariant::of(run) })
    {
        for command in others {
            let name = format!("{}_to_get_set {}", command.name().replace('-', "_"), variant.title(None));
            add(name, THROUGHPUT, &runs, &|run| is_with(run, command), &|run| is_with(run, by_round_trips));
        }
    }
    ratio_table(lines)
}

/// Returns the smallest depth that reaches nine tenths of the best throughput, by medians over the repeats; `None` for
/// a single depth.
fn knee(runs: &[&Run]) -> Option<u64> {
    let mut reached: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.valid) {
        if let (Some(depth), Some(throughput)) = (run.params.whole("depth"), run.throughput_per_s) {
            reached.entry(depth).or_default().push(throughput);
        }
    }
    let medians: Vec<(u64, f64)> =
        reached.into_iter().filter_map(|(depth, throughputs)| Some((depth, median(throughputs)?))).collect();
    let best = medians.iter().map(|(_, throughput)| *throughput).fold(0.0, f64::max);
    let first = medians.iter().find(|(_, throughput)| *throughput >= KNEE_SHARE * best);
    first.filter(|_| medians.len() > 1).map(|(depth, _)| *depth)
}

/// Adds the knee of its command to each run of a sweep.
pub fn add_knees(runs: &mut [Run]) {
    let knees: Vec<(RunVariant, Option<u64>)> =
        variants(runs, BenchPart::Sweep).into_iter().map(|(variant, runs)| (variant, knee(&runs))).collect();
    for run in runs.iter_mut().filter(|run| is_of(run, BenchPart::Sweep)) {
        let variant = RunVariant::of(run);
        let found = knees.iter().find(|(known, _)| *known == variant).and_then(|(_, knee)| *knee);
        run.figures.extend(found.map(|depth| ("knee_depth".to_owned(), depth as f64)));
    }
}

/// Explains why a program that sends one command at a time is slow although the server is near; for a run at depth 1
/// over a single connection with the CPU figures of both processes.
pub fn why_depth_one_is_slow(run: &Run) -> Option<String> {
    let alone = run.params.whole("depth") == Some(1) && run.params.text("connections").as_deref() == Some("1");
    let command = run.params.text("command").filter(|_| alone && !run.params.0.contains_key("rtt_ms"))?;
    let figure = |name: &str| run.figures.get(name).copied();
    let round_trip = figure("latency_per_command_ns")?;
    let [server_ns, client_ns] = [figure("server_cpu_per_command_ns")?, figure("client_cpu_per_command_ns")?];
    let server = figure("context_switches_per_command")?;
    let client = figure("client_context_switches_per_command")?;
    Some(format!(
        "One {command} takes {}, of which the server works {} and the client {}. For each command the scheduler stops \
         the server {server:.1} times and the client {client:.1} times, and has to wake them again: each sleeps while \
         the other one works. A pipeline pays that once for all its commands.",
        duration(round_trip),
        duration(server_ns),
        duration(client_ns),
    ))
}

/// The key of a group of runs, beside depth and repetition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RunVariant {
    command: String,
    client: String,
    target: String,
    connections: Option<String>,
    rtt_ms: Option<String>,
}

impl RunVariant {
    fn of(run: &Run) -> Self {
        Self {
            command: run.params.text("command").unwrap_or_default(),
            client: run.client.clone(),
            target: run.target.clone(),
            connections: run.params.text("connections"),
            rtt_ms: run.params.text("rtt_ms"),
        }
    }

    /// Returns the command and the depth, then all unusual values.
    fn title(&self, depth: Option<u64>) -> String {
        let words = [
            Some(self.command.clone()).filter(|command| !command.is_empty()),
            depth.map(|depth| depth.to_string()),
            Some(self.client.clone()).filter(|client| client != "rust"),
            self.connections.clone().filter(|number| number != "1").map(|number| format!("{number} connections")),
            self.rtt_ms.clone().map(|ms| format!("rtt {ms} ms")),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Returns the runs of a part, grouped by variant.
fn variants(runs: &[Run], part: BenchPart) -> BTreeMap<RunVariant, Vec<&Run>> {
    grouped(runs, part, RunVariant::of)
}

fn grouped(runs: &[Run], part: BenchPart, variant: impl Fn(&Run) -> RunVariant) -> BTreeMap<RunVariant, Vec<&Run>> {
    let mut found: BTreeMap<RunVariant, Vec<&Run>> = BTreeMap::new();
    for run in runs.iter().filter(|run| is_of(run, part)) {
        found.entry(variant(run)).or_default().push(run);
    }
    found
}

fn depths(runs: &[&Run]) -> Vec<u64> {
    let mut depths: Vec<u64> = runs.iter().filter_map(|run| run.params.whole("depth")).collect();
    depths.sort_unstable();
    depths.dedup();
    depths
}

fn is_of(run: &Run, part: BenchPart) -> bool {
    run.params.text("part").as_deref() == Some(part.name())
}

fn is_with(run: &Run, command: RedisCommand) -> bool {
    run.params.text("command").as_deref() == Some(command.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(command: &str, depth: u64, repeat: u32, throughput: f64) -> Run {
        let mut run = Run {
            client: "rust".to_owned(),
            repeat,
            valid: true,
            throughput_per_s: Some(throughput),
            ..Run::default()
        };
        run.params.set("part", "sweep");
        run.params.set("command", command);
        run.params.set("connections", 1);
        run.params.set("depth", depth);
        run
    }

    fn runs_of(command: &str, throughputs: &[(u64, f64)]) -> Vec<Run> {
        throughputs.iter().map(|(depth, throughput)| run_of(command, *depth, 1, *throughput)).collect()
    }

    #[test]
    fn the_knee_is_where_deeper_gains_no_more() {
        for (throughputs, expected) in [
            (vec![(1, 20.0), (10, 150.0), (100, 480.0), (1000, 500.0), (10_000, 490.0)], Some(100)),
            (vec![(1, 20.0), (10, 19.0)], Some(1)),
            (vec![(1, 20.0), (10, 200.0)], Some(10)),
            (vec![(1, 20.0)], None),
            (vec![], None),
        ] {
            let runs = runs_of("PING", &throughputs);
            assert_eq!(knee(&runs.iter().collect::<Vec<_>>()), expected, "{throughputs:?}");
        }
    }

    #[test]
    fn each_command_has_a_knee_of_its_own() {
        let mut runs = runs_of("PING", &[(1, 10.0), (10, 100.0)]);
        runs.extend(runs_of("SET", &[(1, 10.0), (10, 10.0)]));
        add_knees(&mut runs);
        let knees: Vec<f64> = runs.iter().map(|run| run.figures["knee_depth"]).collect();
        assert_eq!(knees, [10.0, 10.0, 1.0, 1.0]);
    }

    #[test]
    fn depths_are_compared_within_a_repetition() {
        let mut runs = Vec::new();
        for (repeat, slow, fast) in [(1, 10.0, 80.0), (2, 20.0, 220.0), (3, 30.0, 300.0)] {
            runs.push(run_of("GET", 1, repeat, slow));
            runs.push(run_of("GET", 100, repeat, fast));
        }
        runs[5].valid = false;
        let found = compare(&runs);
        let [comparison] = &found[..] else { panic!("{found:?}") };
        assert_eq!(comparison.name, "pipeline_to_one GET 100");
        assert_eq!((comparison.low, comparison.high), (Some(8.0), Some(11.0)));
    }

    #[test]
    fn single_commands_are_explained_if_both_ends_are_known() {
        let mut run = run_of("SET", 1, 1, 40_000.0);
        assert_eq!(why_depth_one_is_slow(&run), None);
        for (name, value) in [
            ("latency_per_command_ns", 25_000.0),
            ("server_cpu_per_command_ns", 9_000.0),
            ("client_cpu_per_command_ns", 8_000.0),
            ("context_switches_per_command", 1.0),
            ("client_context_switches_per_command", 1.0),
        ] {
            run.figures.insert(name.to_owned(), value);
        }
        let sentence = why_depth_one_is_slow(&run).expect("all is known");
        assert!(sentence.contains("SET") && sentence.contains("25 µs"), "{sentence}");
        run.params.set("depth", 10);
        assert_eq!(why_depth_one_is_slow(&run), None);
    }
}
