//! Ratios of the runs of a bench that took turns: targets, clients, and ways to wait.

use tickpath_lab_report::{duration, size};
use tickpath_lab_result::{Comparison, Run, RunPhase, short_name};

use crate::ratio::{PairedRuns, RatioLine, pair_with_first, ratio_table, value};

/// Figure: processor time of a waiting receiver per message.
const RECEIVER_CPU: &str = "receiver_cpu_per_message_ns";

/// Compares targets, clients or ways to wait that took turns: the ratio of each to the first, for each of the hops and
/// each combination of the other settings. Ways to wait are also compared by the receiver's processor time.
pub fn compare_turns(runs: &[Run], hops: &[&str]) -> Vec<Comparison> {
    let is_one = runs.iter().all(|run| run.client == runs[0].client);
    let target = |run: &Run| match short_name(&run.target) {
        name if is_one => name,
        name => format!("{}_{name}", run.client),
    };
    let wait = |run: &Run| run.params.text("wait");
    let mut lines = Vec::new();
    for hop in hops {
        let figure = format!("{hop}.p50_ns");
        lines.extend(compare_with_first(runs, hop, &figure, |run| settings_text(run, wait(run)), target));
    }
    let medians = hops.iter().map(|hop| (*hop, format!("{hop}.p50_ns")));
    for (name, figure) in medians.chain([(RECEIVER_CPU, RECEIVER_CPU.to_owned())]) {
        let otherwise = |run: &Run| settings_text(run, Some(target(run)));
        lines.extend(compare_with_first(runs, name, &figure, otherwise, |run| wait(run).unwrap_or_default()));
    }
    ratio_table(lines)
}

/// Returns the lines of a figure: each side against the first, for each combination of the other settings.
fn compare_with_first(
    runs: &[Run],
    name: &str,
    figure: &str,
    setup_of: impl Fn(&Run) -> String,
    side: impl Fn(&Run) -> String,
) -> Vec<RatioLine> {
    let found = pair_with_first(runs.iter().filter(|run| value(run, figure).is_some()), setup_of, side);
    let several = found.iter().any(|one| one.setup != found[0].setup);
    let line = |one: &PairedRuns<'_>| {
        let name = format!("{}_to_{}_{name}", one.other, one.first);
        one.line(&if several { format!("{name} {}", one.setup) } else { name }, figure)
    };
    found.iter().map(line).collect()
}

/// Returns the settings of a run as text, without its repetition and without the compared setting; `other` is the one
/// of target and wait that is not compared.
fn settings_text(run: &Run, other: Option<String>) -> String {
    let idle = run.params.number("idle_ns").map(|ns| format!("after {}", duration(ns)));
    let phase = (run.phase == RunPhase::Cold).then(|| "cold".to_owned());
    let size = run.params.number("size_bytes").map(size);
    let readers =
        run.params.number("readers").filter(|readers| *readers > 1.0).map(|readers| format!("{readers} readers"));
    let batch = run.batch_text().filter(|batch| batch != "1").map(|batch| format!("by {batch}"));
    let parts = [run.layout.clone(), phase, idle, size, readers, other, batch];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use tickpath_lab_result::Hop;

    use super::*;

    #[test]
    fn wait_modes_are_compared_in_latency_and_cpu_time() {
        let run = |wait: &str, p50_ns: u64, cpu_ns: f64| {
            let hop = Hop { count: 100, p50_ns: Some(p50_ns), ..Hop::default() };
            let hops = [("one_way".to_owned(), hop)].into();
            let mut run = Run { target: "shm://".to_owned(), repeat: 1, valid: true, hops, ..Run::default() };
            run.params.set("wait", wait);
            run.figures.insert(RECEIVER_CPU.to_owned(), cpu_ns);
            run
        };
        let compared = compare_turns(&[run("busy", 100, 1e6), run("adaptive", 150, 2e5)], &["one_way"]);
        let ratios: Vec<_> = compared.iter().map(|one| (one.name.as_str(), one.ratio)).collect();
        let expected = [("adaptive_to_busy_one_way", 1.5), ("adaptive_to_busy_receiver_cpu_per_message_ns", 0.2)];
        assert_eq!(ratios, expected.map(|(name, ratio)| (name, Some(ratio))));
    }
}
