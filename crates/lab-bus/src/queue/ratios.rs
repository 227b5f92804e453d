//! Ratios of the rates of targets that took turns.

use tickpath_lab_compare::{RatioLine, pair_with_first, ratio_table};
use tickpath_lab_result::{Comparison, Run, short_name};

/// Compares the rates of the first target with those of each other target, for each combination of the other settings.
pub fn compare_rates(runs: &[Run]) -> Vec<Comparison> {
    let mut lines = Vec::new();
    for figure in ["push_rate_per_s", "pull_rate_per_s"] {
        for pair in pair_with_first(runs, settings_text, |run| short_name(&run.target)) {
            let [first, other] = pair.runs;
            let name = format!("{}_to_{}_{} {}", pair.first, pair.other, figure.trim_end_matches("_per_s"), pair.setup);
            lines.push(RatioLine::of_runs(&name, figure, first, other));
        }
    }
    ratio_table(lines)
}

/// Returns the settings of a run as text, without its target and repetition.
fn settings_text(run: &Run) -> String {
    let names = ["pull_variant", "pull", "pullers"].into_iter();
    let settings = names.filter_map(|name| Some(format!("{name} {}", run.params.text(name)?)));
    run.batch_text().map(|batch| format!("push {batch}")).into_iter().chain(settings).collect::<Vec<_>>().join(", ")
}
