//! The noise model: an interval for each ratio, and the chance of a movement in a whole table.
//!
//! All computations use logarithms, in which a doubling and a halving are equally far.

use super::ratio::{self, CONFIDENCE, binomial_cdf};
use tickpath_lab_harness::random::SeededRandom;
use tickpath_lab_result::median;

/// The stated level: the max share of comparisons of identical builds that report a change.
pub const LEVEL: f64 = 0.05;

/// The max share of swaps at which a movement stands out. It is below the stated level, which has to hold although the
/// two calls of a pair are not quite exchangeable: the first call finds other caches than the second.
pub(super) const MAX_SWAP_SHARE: f64 = 0.04;

/// Max number of samples for which every swap of labels is tried.
const MAX_EXHAUSTIVE_SAMPLES: usize = 12;
/// The number of random swaps for more samples.
const RANDOM_SWAPS: usize = 999;
/// The seed of the random swaps: the same results always give the same verdicts.
const SEED: u64 = 1;

/// The order of the two sides' samples in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// All of one side, then all of the other.
    Apart,
    /// In pairs.
    InTurn,
}

/// The interval that holds the true ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The probability that such an interval holds the true ratio: 0 to 1.
    pub level: f64,
}

/// The logarithms of a metric, with an entry for each sample.
#[derive(Debug)]
pub(super) enum MetricLogs {
    /// New minus old of each pair.
    Pairs(Vec<Option<f64>>),
    /// The values of old, and the values of new.
    Sides([Vec<Option<f64>>; 2]),
}

impl MetricLogs {
    /// Returns `None` if a value is not above zero: it has no logarithm, and no ratio.
    pub fn of(sides: &[Vec<Option<f64>>; 2], design: Design) -> Option<Self> {
        let mut known = sides.iter().flatten().flatten();
        if !known.all(|value| value.is_finite() && *value > 0.0) {
            return None;
        }
        let [old, new] = sides.each_ref().map(|of| of.iter().map(|value| value.map(f64::ln)).collect::<Vec<_>>());
        Some(match design {
            Design::Apart => Self::Sides([old, new]),
            Design::InTurn => Self::Pairs(old.iter().zip(&new).map(|(old, new)| Some((*new)? - (*old)?)).collect()),
        })
    }

    /// Returns the interval of the ratio, widened at both ends by `drift`, a logarithm; `None` for a single sample.
    pub fn interval(&self, drift: f64) -> Option<Interval> {
        let (low, high, level) = match self {
            Self::Pairs(ratios) => {
                let (low, high, missed) = ratio::interval(&sorted(ratios), 1.0 - CONFIDENCE)?;
                (low, high, 1.0 - missed)
            }
            Self::Sides([old, new]) => side_interval(&sorted(old), &sorted(new))?,
        };
        Some(Interval { low: (low - drift).exp(), high: (high + drift).exp(), level })
    }
}

/// A metric's movement under swapped labels, relative to its usual movement.
pub(super) struct Contrast {
    /// The contribution of each sample to its side, or of each pair to the movement.
    values: Vec<Option<f64>>,
    /// The usual movement; no swap changes it.
    scale: f64,
    design: Design,
}

impl Contrast {
    /// Builds the contrast of a metric. A stall counts as at most twice the usual movement; a movement below `floor`, a
    /// logarithm, never stands out.
    pub fn of(logs: &MetricLogs, floor: f64) -> Self {
        match logs {
            MetricLogs::Pairs(ratios) => {
                let values = clamp_outliers(ratios);
                let scale = values.iter().flatten().map(|value| value * value + floor * floor).sum::<f64>().sqrt();
                Self { values, scale, design: Design::InTurn }
            }
            MetricLogs::Sides(sides) => {
                let values = centred(&clamp_outliers(&centred(&sides.concat(), |known| median(known.to_vec()))), mean);
                let squares: Vec<f64> = values.iter().flatten().map(|value| value * value + floor * floor).collect();
                Self { values, scale: mean(&squares).map_or(floor, f64::sqrt), design: Design::Apart }
            }
        }
    }

    /// Returns the movement of the metric with these labels: true is new, or a reversed pair.
    fn size(&self, labels: &[bool]) -> f64 {
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for (value, label) in self.values.iter().zip(labels) {
            if let Some(value) = value {
                sums[usize::from(*label)] += value;
                counts[usize::from(*label)] += 1.0;
            }
        }
        let [old, new] = counts;
        match self.design {
            Design::InTurn => (sums[0] - sums[1]).abs() / self.scale,
            Design::Apart if old > 0.0 && new > 0.0 => {
                (sums[1] / new - sums[0] / old).abs() * (old * new / (old + new)).sqrt() / self.scale
            }
            Design::Apart => 0.0,
        }
    }
}

/// Returns for each metric the share of swaps in which any metric of the table moves as far as this metric did.
///
/// If the sides do not differ, every swap was as likely as the found labels, however the metrics depend on each other.
/// `units` are the samples of each side.
pub(super) fn chances(contrasts: &[Contrast], design: Design, units: [usize; 2]) -> Vec<f64> {
    let found = match design {
        Design::InTurn => vec![false; units[0]],
        Design::Apart => [vec![false; units[0]], vec![true; units[1]]].concat(),
    };
    let largest = |labels: &Vec<bool>| contrasts.iter().map(|contrast| contrast.size(labels)).fold(0.0, f64::max);
    let largest: Vec<f64> = swaps(&found, design).iter().map(largest).collect();
    let chance = |contrast: &Contrast| {
        // Sums in another order differ in their last digits.
        let size = contrast.size(&found) - 1e-9;
        largest.iter().filter(|other| **other >= size).count() as f64 / largest.len() as f64
    };
    contrasts.iter().map(chance).collect()
}

/// Returns the possible swaps of labels, including the found labels.
fn swaps(found: &[bool], design: Design) -> Vec<Vec<bool>> {
    let samples = found.len();
    if samples > MAX_EXHAUSTIVE_SAMPLES {
        let mut random = SeededRandom::new(SEED);
        let drawn = (0..RANDOM_SWAPS).map(|_| swap(&mut random, found, design));
        return std::iter::once(found.to_vec()).chain(drawn).collect();
    }
    let all = (0..1u32 << samples).map(|mask| (0..samples).map(|bit| (mask >> bit) & 1 == 1).collect::<Vec<bool>>());
    let news = |labels: &[bool]| labels.iter().filter(|label| **label).count();
    match design {
        // Swapping all pairs gives the same movement as swapping none.
        Design::InTurn => all.filter(|labels| labels.last() != Some(&true)).collect(),
        Design::Apart => all.filter(|labels| news(labels) == news(found)).collect(),
    }
}

/// Returns a random swap: pairs are reversed independently; labels of sides keep their numbers.
fn swap(random: &mut SeededRandom, found: &[bool], design: Design) -> Vec<bool> {
    let mut labels = found.to_vec();
    match design {
        Design::InTurn => labels.iter_mut().for_each(|label| *label = random.draw() & 1 == 1),
        Design::Apart => random.shuffle(&mut labels),
    }
    labels
}

/// Returns the ends and the level of the interval of the ratio of two medians: the bootstrap of both. With too few
/// samples for the confidence, returns the range of all values, and its level.
fn side_interval(old: &[f64], new: &[f64]) -> Option<(f64, f64, f64)> {
    let (low, high) = (new.first()? - old.last()?, new.last()? - old.first()?);
    // The chance that one side lies wholly beyond the other.
    let level = 1.0 - 2.0 / binomial(old.len(), new.len());
    if level < CONFIDENCE {
        return (level > 0.0).then_some((low, high, level));
    }
    let news: Vec<(f64, f64)> = new.iter().copied().zip(median_weights(new.len())).collect();
    let mut ratios = Vec::with_capacity(old.len() * new.len());
    for (old, old_weight) in old.iter().zip(median_weights(old.len())) {
        ratios.extend(news.iter().map(|(new, new_weight)| (new - old, new_weight * old_weight)));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some((quantile(&ratios, tail), quantile(&ratios, 1.0 - tail), CONFIDENCE))
}

/// Returns the probability of each of `n` sorted samples to be the median of `n` draws from them.
fn median_weights(n: usize) -> Vec<f64> {
    // The median is among the smallest `some` samples if more than half of the draws are.
    let within = |some: usize| 1.0 - binomial_cdf(n / 2, n, some as f64 / n as f64);
    (0..n).map(|rank| within(rank + 1) - within(rank)).collect()
}

/// Returns the first sorted value up to which this share of the weights lies.
fn quantile(weighted: &[(f64, f64)], share: f64) -> f64 {
    let mut sum = 0.0;
    let reached = weighted.iter().find(|(_, weight)| {
        sum += weight;
        sum >= share
    });
    reached.or(weighted.last()).map_or(f64::NAN, |(value, _)| *value)
}

/// Returns the number of ways to split `a + b` items into a group of `a` and a group of `b`.
fn binomial(a: usize, b: usize) -> f64 {
    (1..=a).map(|one| (b + one) as f64 / one as f64).product()
}

fn sorted(values: &[Option<f64>]) -> Vec<f64> {
    let mut known: Vec<f64> = values.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    known
}

/// Limits values to twice the median distance from zero of the values that are not zero.
fn clamp_outliers(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let sizes = values.iter().flatten().map(|value| value.abs()).filter(|size| *size > 0.0).collect();
    let max = 2.0 * median(sizes).unwrap_or(0.0);
    values.iter().map(|value| value.map(|value| value.clamp(-max, max))).collect()
}

fn centred(values: &[Option<f64>], centre: impl Fn(&[f64]) -> Option<f64>) -> Vec<Option<f64>> {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let centre = centre(&known).unwrap_or(0.0);
    values.iter().map(|value| value.map(|value| value - centre)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chances_of_draws_are_those_of_the_textbook() {
        for (max_hits, n, p, chance) in [
            (0, 7, 0.5, 1.0 / 128.0),
            (1, 7, 0.5, 8.0 / 128.0),
            (2, 4, 0.5, 11.0 / 16.0),
            (4, 4, 0.5, 1.0),
            (1, 2, 0.25, 15.0 / 16.0),
            (0, 3, 0.0, 1.0),
            (2, 3, 1.0, 0.0),
        ] {
            assert!((binomial_cdf(max_hits, n, p) - chance).abs() < 1e-12, "{max_hits} of {n} at {p}");
        }
        assert!((binomial(4, 4) - 70.0).abs() < 1e-9 && (binomial(1, 1) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_weights_of_a_median_are_those_of_all_draws_counted() {
        for n in 1..=6usize {
            let mut counts = vec![0u32; n];
            for draw in 0..n.pow(n as u32) {
                let mut ranks: Vec<usize> = (0..n).map(|index| draw / n.pow(index as u32) % n).collect();
                ranks.sort_unstable();
                counts[ranks[n / 2]] += 1;
            }
            let all = n.pow(n as u32) as f64;
            for (weight, count) in median_weights(n).iter().zip(counts) {
                assert!((weight - f64::from(count) / all).abs() < 1e-9, "{n}: {weight}, counted {count} of {all}");
            }
        }
    }

    #[test]
    fn swaps_are_all_there_are_and_keep_the_numbers() {
        assert_eq!(swaps(&[false; 7], Design::InTurn).len(), 64);
        let sides = [vec![false; 4], vec![true; 4]].concat();
        assert_eq!(swaps(&sides, Design::Apart).len(), 70);
        let many = [vec![false; 9], vec![true; 5]].concat();
        let drawn = swaps(&many, Design::Apart);
        assert_eq!(drawn.len(), RANDOM_SWAPS + 1);
        assert!(drawn.iter().all(|labels| labels.iter().filter(|label| **label).count() == 5));
        assert!(
            swaps(&[false; 20], Design::InTurn).iter().any(|labels| labels[..5] == [true, false, true, true, false])
        );
    }
}
