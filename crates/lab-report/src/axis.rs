//! Axes: from a value to its position between 0 and 1, and the positions of marks.

/// An axis from one value to a larger one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    marks: Vec<f64>,
}

impl Axis {
    /// Returns a logarithmic axis around all values above zero, between multiples by 1, 2 or 5 of powers of ten; `None`
    /// without such a value.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut low, mut high) = (f64::INFINITY, 0.0);
        for value in values.filter(|value| DRAWABLE.contains(value)) {
            low = value.min(low);
            high = value.max(high);
        }
        if high == 0.0 {
            return None;
        }
        let (low, high) = (step_below(low), step_above(high));
        let high = if high > low { high } else { step_above(1.5 * low) };
        Some(Self { low, high, logarithmic: true, marks: logarithmic_marks(low, high) })
    }

    /// Returns a logarithmic axis between two values, with these marks.
    pub(super) fn between(low: f64, high: f64, marks: Vec<f64>) -> Self {
        Self { low, high, logarithmic: true, marks }
    }

    /// Returns an axis from zero to a round number that is at least as large as every value.
    pub(super) fn linear(values: impl Iterator<Item = f64>) -> Self {
        let largest = values.filter(|value| DRAWABLE.contains(value)).fold(0.0, f64::max);
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let power = power_below(largest);
        let fits = |(times, _): &(f64, u32)| times * power >= largest * (1.0 - TOLERANCE);
        let (times, parts) = ROUND.into_iter().find(fits).unwrap_or(ROUND[ROUND.len() - 1]);
        let high = times * power;
        let marks = (0..=parts).map(|part| high * f64::from(part) / f64::from(parts)).collect();
        Self { low: 0.0, high, logarithmic: false, marks }
    }

    /// Returns the same axis, cut at a value.
    pub(super) fn until(mut self, high: f64) -> Self {
        if high > self.low {
            self.high = high;
            self.marks.retain(|mark| *mark <= high * (1.0 + TOLERANCE));
        }
        self
    }

    /// Returns the position of a value, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    pub(super) fn marks(&self) -> &[f64] {
        &self.marks
    }

    pub(super) const fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}

/// Values that have a position on a chart: a file may hold any number.
const DRAWABLE: std::ops::Range<f64> = 1e-12..1e21;

/// Relative tolerance for sums of rounding errors.
const TOLERANCE: f64 = 1e-9;

/// Ends of a linear axis, as multiples of a power of ten, and the number of parts of each.
const ROUND: [(f64, u32); 9] =
    [(1.0, 4), (1.5, 3), (2.0, 4), (3.0, 3), (4.0, 4), (5.0, 5), (6.0, 3), (8.0, 4), (10.0, 5)];

/// Max marks of a logarithmic axis.
const MAX_MARKS: usize = 8;

fn power_below(value: f64) -> f64 {
    10f64.powi(value.log10().floor() as i32)
}

fn step_below(value: f64) -> f64 {
    let power = power_below(value);
    let step = [10.0, 5.0, 2.0].into_iter().find(|step| step * power <= value * (1.0 + TOLERANCE));
    step.unwrap_or(1.0) * power
}

fn step_above(value: f64) -> f64 {
    let power = power_below(value);
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= value * (1.0 - TOLERANCE));
    step.unwrap_or(10.0) * power
}

/// Returns powers of ten, at most a readable number; 1, 2 and 5 times them if there are only two.
fn logarithmic_marks(low: f64, high: f64) -> Vec<f64> {
    let inside = |mark: &f64| *mark >= low * (1.0 - TOLERANCE) && *mark <= high * (1.0 + TOLERANCE);
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let tens: Vec<f64> = powers.map(|power| 10f64.powi(power)).collect();
    let within: Vec<f64> = tens.iter().copied().filter(inside).collect();
    match within.len() {
        0..=2 => tens.iter().flat_map(|ten| [1.0, 2.0, 5.0].map(|step| step * ten)).filter(inside).collect(),
        3..=MAX_MARKS => within,
        many => within.into_iter().step_by(many.div_ceil(MAX_MARKS)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the axis contains its values, with the marks on it in order.
    fn check(axis: &Axis, values: &[f64]) {
        for value in values.iter().chain(axis.marks()) {
            let share = axis.share(*value);
            assert!((-1e-6..=1.0 + 1e-6).contains(&share), "{value} lies at {share} of {axis:?}");
        }
        assert!((2..=12).contains(&axis.marks().len()), "{axis:?}");
        assert!(axis.marks().is_sorted_by(|a, b| a < b), "{axis:?}");
    }

    #[test]
    fn axes_hold_their_values() {
        for low in (-30..60).map(|step| 10f64.powf(f64::from(step) / 7.0)) {
            for times in [1.0, 1.01, 1.9, 2.0, 7.0, 10.0, 99.0, 1e3, 1e6, 1e12] {
                let values = [low, low * times];
                check(&Axis::logarithmic(values.into_iter()).expect("both are above zero"), &values);
                check(&Axis::linear(values.into_iter()), &values);
            }
        }
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (values, ends) in [
            (vec![1_000.0, 100_000.0], (1_000.0, 100_000.0)),
            (vec![1_001.0, 99_000.0], (1_000.0, 100_000.0)),
            (vec![0.9, 3.0], (0.5, 5.0)),
            (vec![0.0, f64::NAN, 20.0], (20.0, 50.0)),
        ] {
            let axis = Axis::logarithmic(values.iter().copied()).expect("one is above zero");
            let (low, high) = axis.ends();
            assert!((low / ends.0 - 1.0).abs() < 1e-6 && (high / ends.1 - 1.0).abs() < 1e-6, "{values:?}: {axis:?}");
        }
        assert_eq!(Axis::logarithmic([0.0, -1.0, f64::INFINITY].into_iter()), None);
        assert_eq!(Axis::linear([0.0].into_iter()).ends(), (0.0, 1.0));
        assert_eq!(Axis::linear([11_041.0].into_iter()).ends(), (0.0, 15_000.0));
        assert_eq!(Axis::linear([11_041.0].into_iter()).until(12_000.0).marks(), [0.0, 5_000.0, 10_000.0]);
    }
}
