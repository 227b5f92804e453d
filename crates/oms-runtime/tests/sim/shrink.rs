//! Shortens a failing plan for as long as it still fails.

use crate::plan::Step;

/// Max plans tried.
const TRIES: usize = 1_500;

/// Returns a plan that still fails and in which every step is needed, as far as the tries suffice.
pub fn shrink(plan: &[Step], mut fails: impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let mut plan = plan.to_vec();
    let (mut chunk, mut tries) = (plan.len().div_ceil(2), 0);
    while chunk > 0 && tries < TRIES {
        let (mut at, mut is_shorter) = (0, false);
        while at < plan.len() && tries < TRIES {
            let mut shorter = plan.clone();
            shorter.drain(at..(at + chunk).min(plan.len()));
            tries += 1;
            if fails(&shorter) {
                (plan, is_shorter) = (shorter, true);
            } else {
                at += chunk;
            }
        }
        // A round of single steps without a gain ends the search.
        chunk = if chunk == 1 && is_shorter { 1 } else { chunk / 2 };
    }
    plan
}
