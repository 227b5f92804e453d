//! Whether what the host took of a run's tail can be told.

use tickpath_clock::Gap;
use tickpath_result::Run;

/// The host's share of the tail is told only if the host behaved as it does when idle.
pub fn void_attribution(run: &mut Run, idle: &[Gap], gaps: &[Gap], seconds: f64) {
    /// How long the idle floor was watched; a run watches one thread too.
    const IDLE_SECONDS: f64 = 0.2;
    /// Fewer gaps than this make no rate.
    const LEAST: usize = 20;
    let floor = (idle.len().max(1)) as f64 / IDLE_SECONDS;
    let rate = gaps.len() as f64 / seconds.max(1e-3);
    if gaps.len() > LEAST && rate > 2.0 * floor {
        drop_attribution(run);
        run.notes.push(format!(
            "host gaps came {rate:.0} times a second, more than twice the idle floor of {floor:.0}: what the host took of \
             the tail cannot be told, raw figures stand"
        ));
    }
}

/// Raw figures alone.
pub fn drop_attribution(run: &mut Run) {
    for hop in run.hops.values_mut() {
        hop.unstalled = None;
        hop.host_stall_share_p999 = None;
    }
}
