//! Makes a failing plan shorter for as long as it fails.

use crate::plan::Step;

/// Plans that are tried at most.
const TRIES: usize = 1_500;

/// A plan that still fails and of which no step can be left out, if the tries suffice to find it.
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
        // One round without a gain at single steps is the end.
        chunk = if chunk == 1 && is_shorter { 1 } else { chunk / 2 };
    }
    plan
}
