//! All ratios of a result: of pairs that took turns, each line with an interval whose level accounts for the whole
//! table.
//!
//! A pair gives a ratio, and the middle ratio is the line's. The number of pairs on either side of the true ratio
//! follows coin tosses alone, so the sorted ratios hold the true ratio between the k-th from below and the k-th from
//! above with an exactly known probability, whatever the noise looks like. With n pairs the widest such interval misses
//! it in 2^(1−n) of cases; a table of m lines misses in at most m times as many. The stated level is the remainder.

use std::collections::BTreeMap;

use tickpath_lab_result::{Comparison, PERCENTILES, Run};

/// The confidence level of an interval, or of all intervals of a table together.
pub const CONFIDENCE: f64 = 0.95;

/// Max relative difference of rates that count as equal.
const MAX_RATE_DIFFERENCE: f64 = 0.01;

/// A line of a table of ratios before evaluation: the measurements of two sides in turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RatioLine {
    /// The name of the comparison: `A_to_B`, and its subject.
    pub name: String,
    /// The figure's name in results: `one_way.p50_ns`, `throughput_per_s`.
    pub figure: String,
    /// A pair for each round: A, then B. `None` where a side was not measured, or was not valid.
    pub pairs: Vec<[Option<f64>; 2]>,
    /// The reason for having no ratio although both sides were measured: their rates, or another difference.
    pub no_ratio: Option<String>,
}

impl RatioLine {
    /// Builds a line from measured pairs.
    pub fn new(name: &str, figure: &str, pairs: Vec<[Option<f64>; 2]>) -> Self {
        Self { name: name.to_owned(), figure: figure.to_owned(), pairs, no_ratio: None }
    }

    /// Builds a line from runs: the two runs of a repetition are a pair, and the last run counts if there are several.
    /// An invalid run leaves its half empty, on either side alike. Times of runs at different rates have no ratio.
    pub fn of_runs<'a>(
        name: &str,
        figure: &str,
        a: impl IntoIterator<Item = &'a Run>,
        b: impl IntoIterator<Item = &'a Run>,
    ) -> Self {
        let mut rounds: BTreeMap<u32, [Option<&Run>; 2]> = BTreeMap::new();
        a.into_iter().for_each(|run| rounds.entry(run.repeat).or_default()[0] = Some(run));
        b.into_iter().for_each(|run| rounds.entry(run.repeat).or_default()[1] = Some(run));
        let valid = |run: Option<&Run>| run.filter(|run| run.valid).and_then(|run| value(run, figure));
        let pairs = rounds.values().map(|runs| runs.map(valid)).collect();
        let unequal = rounds.values().find_map(|[a, b]| rate_difference((*a)?, (*b)?));
        let no_ratio = unequal.filter(|_| figure.ends_with("_ns"));
        Self { no_ratio, ..Self::new(name, figure, pairs) }
    }

    /// Returns the rounds in which both sides have positive finite values, the least ratio first.
    fn complete_pairs(&self) -> Vec<(f64, f64)> {
        let can_be_divided = |value: &f64| value.is_finite() && *value > 0.0;
        let pairs = self.pairs.iter().filter_map(|[a, b]| Some(((*a)?, (*b)?)));
        let mut whole: Vec<_> = pairs.filter(|(a, b)| can_be_divided(a) && can_be_divided(b)).collect();
        whole.sort_by(|(a, b), (c, d)| (a / b).total_cmp(&(c / d)));
        whole
    }

    /// Returns both sides of the pair with the middle ratio; `None` if no pair is complete.
    pub(super) fn median_pair(&self) -> Option<(f64, f64)> {
        median_pair(&self.complete_pairs())
    }

    fn into_comparison(self, lines: usize) -> Option<Comparison> {
        let whole = self.complete_pairs();
        let (a, b) = median_pair(&whole)?;
        let (name, figure, note) = (self.name, self.figure, self.no_ratio);
        let middle = Comparison { name, figure, a: Some(a), b: Some(b), note, ..Comparison::default() };
        if middle.note.is_some() {
            return Some(middle);
        }
        let ratio = a / b;
        let ratios: Vec<f64> = whole.iter().map(|(a, b)| a / b).collect();
        let interval = interval(&ratios, (1.0 - CONFIDENCE) / lines as f64);
        let (pairs, all) = (whole.len(), self.pairs.len());
        let left_out = all - pairs;
        let was = if left_out == 1 { "was" } else { "were" };
        Some(Comparison {
            ratio: Some(ratio),
            // The middle of two ratios differs from the interval's ends in its last digit.
            low: interval.map(|(low, ..)| low.min(ratio)),
            high: interval.map(|(_, high, _)| high.max(ratio)),
            level_percent: interval.map(|(.., missed)| table_level(missed, lines)),
            pairs: u32::try_from(pairs).ok(),
            note: (left_out > 0).then(|| format!("{left_out} of {all} pairs {was} not valid on both sides")),
            ..middle
        })
    }
}

/// Evaluates the lines of a table as ratios. Their level accounts for the number of lines; a line without a complete
/// pair is omitted.
pub fn ratio_table(lines: impl IntoIterator<Item = RatioLine>) -> Vec<Comparison> {
    let lines: Vec<RatioLine> = lines.into_iter().collect();
    let judged = lines.iter().filter(|line| line.no_ratio.is_none() && line.complete_pairs().len() > 1).count().max(1);
    lines.into_iter().filter_map(|line| line.into_comparison(judged)).collect()
}

/// The runs of each side, in order of arrival.
type RunsBySide<'a> = Vec<(String, Vec<&'a Run>)>;

/// The runs of two sides that took turns in the same setup: of the first side, and of another side.
#[derive(Debug)]
pub struct PairedRuns<'a> {
    /// The setup that both have in common.
    pub setup: String,
    /// The side that came first.
    pub first: String,
    /// The other side.
    pub other: String,
    /// The runs of both: the first's, the other's.
    pub runs: [Vec<&'a Run>; 2],
}

/// Compares every other side with the first side, within each setup.
pub fn pair_with_first<'a>(
    runs: impl IntoIterator<Item = &'a Run>,
    setup_of: impl Fn(&Run) -> String,
    side: impl Fn(&Run) -> String,
) -> Vec<PairedRuns<'a>> {
    let mut setups: Vec<(String, RunsBySide<'_>)> = Vec::new();
    for run in runs {
        entry_or_default(entry_or_default(&mut setups, setup_of(run)), side(run)).push(run);
    }
    let others = setups.into_iter().flat_map(|(setup, sides)| {
        let first = sides.first().cloned();
        sides.into_iter().skip(1).filter_map(move |(other, other_run)| {
            let (first, first_run) = first.clone()?;
            Some(PairedRuns { setup: setup.clone(), first, other, runs: [first_run, other_run] })
        })
    });
    others.collect()
}

impl PairedRuns<'_> {
    /// Returns the line of ratios of the other side's figure to the first side's.
    pub fn line(&self, name: &str, figure: &str) -> RatioLine {
        let [first, other] = &self.runs;
        RatioLine::of_runs(name, figure, other.iter().copied(), first.iter().copied())
    }
}

/// Returns the value of a key, inserting a default if it is missing; keys keep their order of insertion.
pub fn entry_or_default<T: Default>(list: &mut Vec<(String, T)>, key: String) -> &mut T {
    let index = list.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        list.push((key, T::default()));
        list.len() - 1
    });
    &mut list[index].1
}

/// Returns the min number of pairs with which all intervals of a table of `lines` lines hold in 95 % of cases.
pub fn pairs_needed(lines: usize) -> u32 {
    let misses = lines.max(1) as f64 / (1.0 - CONFIDENCE);
    1 + misses.log2().ceil() as u32
}

/// Returns the order of a round's turns: as given in odd rounds, reversed in even ones. So of any two sides each is
/// first in every second round, and drift affects both alike.
pub fn in_turn<T>(round: u32, sides: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut order: Vec<T> = sides.into_iter().collect();
    if round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// Returns a figure of a run by its name in comparisons; `None` if the run lacks it.
pub fn value(run: &Run, figure: &str) -> Option<f64> {
    match figure.rsplit_once('.') {
        Some((hop, key)) => {
            let index = PERCENTILES.iter().position(|percentile| percentile.key == key)?;
            run.hops.get(hop)?.percentiles()[index].map(|ns| ns as f64)
        }
        None if figure == "throughput_per_s" => run.throughput_per_s,
        None => run.figures.get(figure).copied(),
    }
}

/// Returns the interval of the middle of sorted values and its probability of missing the true middle: the narrowest
/// interval whose probability stays below `missed`, or the whole range. `None` for a single value.
pub(super) fn interval(sorted: &[f64], missed: f64) -> Option<(f64, f64, f64)> {
    let n = sorted.len();
    let misses = |dropped: usize| 2.0 * binomial_cdf(dropped, n, 0.5);
    let dropped = (1..n / 2).take_while(|dropped| misses(*dropped) <= missed).last().unwrap_or(0);
    (n > 1).then(|| (sorted[dropped], sorted[n - 1 - dropped], misses(dropped)))
}

/// Returns the min level, in percent, of an interval in a table of `lines` lines that alone misses in `missed` of
/// cases.
pub(super) fn table_level(missed: f64, lines: usize) -> f64 {
    100.0 * (1.0 - missed * lines as f64).max(0.0)
}

/// Returns the probability of at most `max_hits` hits in `n` draws that each hit with probability `p`.
pub(super) fn binomial_cdf(max_hits: usize, n: usize, p: f64) -> f64 {
    if p <= 0.0 || max_hits >= n {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    let (mut sum, mut ln_ways) = (0.0, 0.0);
    for hits in 0..=max_hits {
        sum += (ln_ways + hits as f64 * p.ln() + (n - hits) as f64 * (1.0 - p).ln()).exp();
        ln_ways += ((n - hits) as f64 / (hits + 1) as f64).ln();
    }
    sum
}

/// Returns both sides of the pair with the middle ratio. For an even number the two middle pairs count alike, so that
/// exchanging the sides inverts the ratio.
fn median_pair(sorted: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = sorted.len();
    let ((a, b), (c, d)) = (sorted.get(n.checked_sub(1)? / 2)?, sorted.get(n / 2)?);
    Some(if n.is_multiple_of(2) { ((a * c).sqrt(), (b * d).sqrt()) } else { (*a, *b) })
}

/// Returns a note on the rates of two runs if they differ; `None` if they are equal or not set.
fn rate_difference(a: &Run, b: &Run) -> Option<String> {
    // At full speed the reached throughput is the rate.
    let rate = |run: &Run| run.params.0.get("rate_per_s").and_then(|set| set.as_f64().or(run.throughput_per_s));
    let (of_a, of_b) = (rate(a)?, rate(b)?);
    ((of_a / of_b).ln().abs() > MAX_RATE_DIFFERENCE)
        .then(|| format!("no ratio: their rates are not equal, {of_a:.0} and {of_b:.0} a second"))
}
