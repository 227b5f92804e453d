//! Two builds side by side: the changes, their size, and the noise. Also all ratios in results: the benches pass their
//! pairs to [`ratio_table`].
//!
//! ```text
//!   two result files ──┐
//!                      ├──> ComparedResults ──judge──> Judgement ──> text, markdown, result_file
//!   calls in turn ─────┘                                   └───────> MetricLimit: was it exceeded?
//! ```
//!
//! Runs of the same setting are compared, and their repeats are the samples. The noise model:
//!
//! * Calls in turn (A B, B A, A B, …) see the same drift of the host, so each pair gives a ratio. The interval holds
//!   the median of the ratios in at least 95 % of cases, by their order alone; that takes six pairs.
//! * Two files lie apart in time. Their interval is the bootstrap of both medians, computed exactly, and widened by
//!   the drift that repeats within a file do not show: 5 %, or the movement of the host's own floor, if that is more.
//!   It takes four repeats in each.
//! * A change counts only if its interval excludes 1, its median moved by more than the noise floor of the metric, and
//!   the movement stands out in the whole table: labels are swapped as chance could have done it, pair by pair or
//!   repeat by repeat, and it has to exceed the largest movement of any metric in all but 4 % of the swaps.
//! * So a table of a hundred metrics is a single test. [`FalsePositives`] measures the rate of false alarms. For files
//!   from different hours the rate is unknown.
//! * A [`MetricLimit`] stands alone: it is exceeded if the whole interval lies beyond it, and kept if the whole
//!   interval lies within it. Any other outcome, and too few repeats, cannot be judged.
//! * Invalid runs are left out of both sides alike. If more than one in four is left out, there is no verdict.
//!
//! | file                 | contents                                                         |
//! |----------------------|------------------------------------------------------------------|
//! | `sample.rs`          | grouping of runs, and the samples of each metric                 |
//! | `noise.rs`           | intervals, and the chance of a movement in a whole table         |
//! | `judge.rs`           | the verdict of each metric                                       |
//! | `limit.rs`           | limits: parsed, and checked against a judgement                  |
//! | `promise.rs`         | promises of a system: parsed, and checked against a run          |
//! | `published.rs`       | published figures, beside ours                                   |
//! | `search.rs`          | the highest rate at which a promise is kept                      |
//! | `false_positives.rs` | the rate at which identical builds are called different          |
//! | `ratio.rs`           | all ratios: turns, pairs, intervals for a whole table            |
//! | `turns.rs`           | ratios of targets, clients and ways to wait                      |
//! | `losses.rs`          | the new side's losses                                            |
//! | `history.rs`         | results of a machine over time, and their changes                |
//! | `error.rs`           | the reasons for which two results cannot be compared             |
//! | `render.rs`          | a judgement as text, as Markdown and as a result file            |
//!
//! # Invariants
//!
//! * Of the comparisons of identical builds whose calls took turns at most [`LEVEL`] report a change, however many
//!   metrics they have.
//! * Counts come before times: a build that loses messages that the old build kept is worse, whatever its speed.

mod error;
mod false_positives;
mod history;
mod judge;
mod limit;
mod losses;
mod noise;
mod promise;
pub mod published;
mod ratio;
mod render;
mod sample;
mod search;
mod turns;

pub use error::CompareError;
pub use false_positives::{FalseAlarmTally, FalsePositives};
pub use history::histories;
pub use judge::{Judgement, MIN_MOVE_IN_TURN, MetricChange, Verdict, judge};
pub use limit::{
    ComparisonOutcome, LimitStatus, MetricLimit, ParseLimitError, Ruling, UnmeasuredMetric, overall_outcome,
};
pub use noise::{Design, Interval, LEVEL};
pub use promise::{ParsePromiseError, Promise};
pub use ratio::{
    CONFIDENCE, PairedRuns, RatioLine, entry_or_default, in_turn, pair_with_first, pairs_needed, ratio_table, value,
};
pub use render::{markdown, result_file, text};
pub use sample::{BuildSide, ComparedResults, ResultPair};
pub use search::Search;
pub use turns::compare_turns;
