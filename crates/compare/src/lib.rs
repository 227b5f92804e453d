//! Two builds side by side: what changed, by how much, and what is only noise. And every ratio that a result holds: the
//! benches hand their pairs to [`table`].
//!
//! ```text
//!   two result files ──┐
//!                      ├──> Measured ──judge──> Judgement ──> text, markdown, result_file
//!   calls in turn ─────┘                            └───────> Limit: was it exceeded?
//! ```
//!
//! Runs of the same setting are compared, and their repeats are the samples. The noise model:
//!
//! * Calls in turn (A B, B A, A B, …) see the same drift of the host, so each pair gives one ratio. The interval holds
//!   the median of the ratios in at least 95 % of cases, by their order alone; that takes six pairs.
//! * Two files lie apart in time. Their interval is the bootstrap of both medians, worked out exactly, and widened by
//!   the drift that repeats inside one file do not show: 5 %, or what the host's own floor moved by, if that is more.
//!   It takes four repeats in each.
//! * A change counts only if its interval excludes 1, its median moved by more than the noise floor of the metric, and
//!   the movement stands out in the whole table: labels are swapped as chance could have done it, pair by pair or
//!   repeat by repeat, and it has to exceed the largest movement of any metric in all but 4 % of the swaps.
//! * So a table of a hundred metrics is one question. Of calls in turn at most [`LEVEL`] of the comparisons of identical
//!   builds call anything changed; [`FalsePositives`] measures it. Of files from different hours no such rate is known.
//! * A [`Limit`] stands alone: it is exceeded if the whole interval lies beyond it, and kept if the ratio does not. What
//!   is neither, and what has too few repeats, cannot be judged.
//! * What was not valid is left out of both sides alike. Of more than one in four there is no verdict.
//! * Counts come before times: a build that loses what the old one kept is worse, whatever its speed.
//!
//! | file                 | what it holds                                                    |
//! |----------------------|------------------------------------------------------------------|
//! | `sample.rs`          | which runs belong together, and the samples of each metric       |
//! | `noise.rs`           | intervals, and the chance of a movement in a whole table         |
//! | `judge.rs`           | the verdict of each metric                                       |
//! | `limit.rs`           | limits: read, and held against a judgement                       |
//! | `promise.rs`         | what a system is asked to keep, held against one run             |
//! | `published.rs`       | what others have published, beside ours                          |
//! | `search.rs`          | the highest rate at which a promise is kept                      |
//! | `false_positives.rs` | how often identical builds are called different                  |
//! | `ratio.rs`           | the one home of ratios: turns, pairs, intervals for a whole table |
//! | `losses.rs`          | what the new side lost                                           |
//! | `history.rs`         | results of one machine over time, and where they changed         |
//! | `error.rs`           | why two results cannot be compared                               |
//! | `render.rs`          | a judgement as text, as Markdown and as a result file            |

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

pub use error::CompareError;
pub use false_positives::{FalsePositives, Tally};
pub use history::histories;
pub use judge::{Change, Judgement, LEAST_IN_TURN, Verdict, judge};
pub use limit::{Ending, Limit, NotMeasured, ParseLimitError, Ruled, Ruling, ending};
pub use noise::{Design, Interval, LEVEL};
pub use promise::{ParsePromiseError, Promise};
pub use ratio::{Against, CONFIDENCE, Line, against_first, in_turn, pairs_needed, place, table, value};
pub use render::{markdown, result_file, text};
pub use sample::{Measured, Pair, Side};
pub use search::Search;
