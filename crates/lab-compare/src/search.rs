//! Search for the highest rate at which a promise is kept, by bisection.

/// A tried rate, and whether the promise was kept.
#[derive(Debug, Clone)]
struct TriedRate {
    rate: f64,
    kept: bool,
}

/// Search that brackets the rate by factors of four, then bisects the bracket geometrically until its ends are near.
#[derive(Debug, Clone)]
pub struct Search {
    min_rate: f64,
    tried: Vec<TriedRate>,
}

impl Search {
    /// Max number of tried rates.
    const MAX_RATES: usize = 16;

    /// The first and the highest tried rate, in messages a second.
    const FIRST: f64 = 10_000.0;
    /// No generator here sends faster.
    const HIGHEST: f64 = 20_000_000.0;

    /// The factor from one rate to the next until the bracket is closed; and the final ratio of its ends.
    const STEP: f64 = 4.0;
    const FINAL_RATIO: f64 = 1.05;

    /// Starts a search that tries no rate below `min_rate`.
    pub fn new(least: f64) -> Self {
        Self { min_rate: least, tried: Vec::new() }
    }

    /// Returns the next rate to try, rounded to three digits; `None` if the search is finished.
    pub fn next_rate(&self) -> Option<f64> {
        let rate = match (self.highest_kept(), self.lowest_broken()) {
            (None, None) => Self::FIRST.max(self.min_rate),
            (Some(kept), None) => (kept < Self::HIGHEST).then_some((kept * Self::STEP).min(Self::HIGHEST))?,
            (None, Some(broken)) => (broken > self.min_rate).then_some((broken / Self::STEP).max(self.min_rate))?,
            (Some(kept), Some(broken)) => (broken / kept > Self::FINAL_RATIO).then_some((kept * broken).sqrt())?,
        };
        let rate = format!("{rate:.2e}").parse().unwrap_or(rate);
        let is_new = self.tried.iter().all(|tried| tried.rate != rate);
        (is_new && self.tried.len() < Self::MAX_RATES).then_some(rate)
    }

    /// Records the result of a rate.
    pub fn record(&mut self, rate: f64, kept: bool) {
        self.tried.push(TriedRate { rate, kept });
    }

    /// Returns the lowest rate that broke the promise.
    pub fn lowest_broken(&self) -> Option<f64> {
        self.tried.iter().filter(|tried| !tried.kept).map(|tried| tried.rate).min_by(f64::total_cmp)
    }

    /// Returns the highest rate that kept the promise, below all rates that broke it.
    pub fn highest_kept(&self) -> Option<f64> {
        let end = self.lowest_broken().unwrap_or(f64::INFINITY);
        let kept = self.tried.iter().filter(|tried| tried.kept && tried.rate < end).map(|tried| tried.rate);
        kept.max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a target that keeps the promise up to `limit`; rates below `min_rate` are not tried.
    fn searched(limit: f64, least: f64) -> Search {
        let mut search = Search::new(least);
        while let Some(rate) = search.next_rate() {
            search.record(rate, rate <= limit);
        }
        assert!(search.tried.len() <= Search::MAX_RATES && search.tried.iter().all(|tried| tried.rate >= least * 0.99));
        search
    }

    #[test]
    fn the_limit_lies_between_the_ends_and_they_are_near() {
        for step in 0..120 {
            let limit = 10f64.powf(1.0 + f64::from(step) / 20.0);
            let search = searched(limit, 1.0);
            let (kept, broken) =
                (search.highest_kept().expect("a rate keeps it"), search.lowest_broken().expect("a rate breaks it"));
            assert!(kept <= limit && limit < broken && broken / kept < 1.07, "{limit}: {kept} to {broken}");
        }
    }

    #[test]
    fn a_search_ends_if_no_rate_or_every_rate_keeps_the_promise() {
        let none = searched(0.0, 250.0);
        assert_eq!((none.highest_kept(), none.lowest_broken()), (None, Some(250.0)));
        let every = searched(f64::INFINITY, 1.0);
        assert_eq!((every.highest_kept(), every.lowest_broken()), (Some(Search::HIGHEST), None));
    }

    #[test]
    fn noise_ends_the_search_too() {
        let mut search = Search::new(1.0);
        let mut rounds = 0;
        while let Some(rate) = search.next_rate() {
            search.record(rate, rounds % 3 != 1);
            rounds += 1;
        }
        assert!(rounds <= Search::MAX_RATES && search.highest_kept() < search.lowest_broken(), "{:?}", search.tried);
    }
}
