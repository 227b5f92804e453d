//! The groups of a run, with their sizes and pauses.

use serde::{Deserialize, Serialize};

use super::group::group_name;
use super::settings::{OrdersTarget, Settings};
use tickpath_lab_result::RunPhase;

/// Sizes of the groups g1 … g6 and d1 … d6.
const SIZES: [u64; 6] = [1, 10, 100, 1_000, 10_000, 100_000];

/// Pauses of the slow runs, in nanoseconds.
const PAUSES: [u64; 3] = [1_000_000_000, 500_000_000, 100_000_000];

/// Orders of a memory step.
const STEP: u64 = 1_000_000;

/// Consecutive requests of a burst that a session sends before the next session's turn.
const STRIDE: u64 = 32;

/// Min allowed lateness of a paced request, where its interval is shorter.
const LATE_NS: u64 = 10_000;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrderBatch {
    /// The group's number: the high half of its client order ids.
    pub number: u32,
    pub count: u64,
    /// Nanoseconds between two requests.
    pub interval_ns: Option<u64>,
    /// The group whose orders it cancels, instead of sending new ones.
    pub cancels: Option<u32>,
    pub evict: bool,
    /// The number of its first request.
    pub first: u64,
    /// Consecutive requests that a session sends.
    pub stride: u64,
    /// Max requests of a session without a report.
    pub in_flight: Option<u32>,
}

impl OrderBatch {
    pub fn burst(number: u32, count: u64) -> Self {
        Self { number, count, stride: STRIDE, ..Self::default() }
    }

    pub fn name(&self) -> String {
        group_name(self.number)
    }

    /// Returns the lateness above which a paced request counts as late, in nanoseconds.
    pub fn late_ns(&self) -> u64 {
        self.interval_ns.unwrap_or(0).max(LATE_NS)
    }

    /// Returns the phase: the first order of a new system, single orders, or a stream of orders.
    pub fn phase(&self) -> RunPhase {
        match self.number {
            1 => RunPhase::Cold,
            21..=33 => RunPhase::Idle,
            _ => RunPhase::Steady,
        }
    }

    pub fn seconds(&self) -> f64 {
        self.interval_ns.map_or(self.count as f64 * 2e-6, |ns| self.count as f64 * ns as f64 / 1e9)
    }
}

pub(super) fn plan(settings: &Settings) -> Vec<OrderBatch> {
    let Some(count) = settings.count else { return full_plan(settings.full) };
    let burst = SIZES.iter().position(|&size| size == count).map_or(41, |i| i as u32 + 1);
    let number = match (&settings.target, settings.rate) {
        // An OMS of a user accepts an id once a day.
        (OrdersTarget::Running(_), _) => (tickpath_clock::utc_ns() / 1_000_000_000) as u32,
        (_, Some(_)) => 40,
        (_, None) => burst,
    };
    let interval_ns = settings.rate.map(|rate| (1e9 / rate) as u64);
    let mut alone = OrderBatch { interval_ns, in_flight: settings.in_flight, ..OrderBatch::burst(number, count) };
    if interval_ns.is_some() || settings.in_flight.is_some() {
        alone.stride = 1;
    }
    match settings.target {
        // Orders that were sent there and are still open are cancelled.
        OrdersTarget::Running(_) => vec![alone, OrderBatch { number: number + 1, cancels: Some(number), ..alone }],
        _ => vec![alone],
    }
}

fn full_plan(full: bool) -> Vec<OrderBatch> {
    let mut plan: Vec<OrderBatch> = (1..).zip(SIZES).map(|(number, count)| OrderBatch::burst(number, count)).collect();
    plan.extend((1..).zip(SIZES).map(|(g, count)| OrderBatch { cancels: Some(g), ..OrderBatch::burst(10 + g, count) }));
    let slow = if full { 60 } else { 10 };
    for (base, evict) in [(20u32, false), (30, true)] {
        let run = |(i, ns): (u32, u64)| OrderBatch {
            interval_ns: Some(ns),
            evict,
            stride: 1,
            ..OrderBatch::burst(base + i, slow)
        };
        plan.extend((1..).zip(PAUSES).map(run));
    }
    plan.extend((1..=if full { 5 } else { 1 }).map(|step| OrderBatch::burst(50 + step, STEP)));
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_lateness_is_the_interval_but_at_least_ten_microseconds() {
        for (interval_ns, late_ns) in [(Some(1_000_000), 1_000_000), (Some(2_000), 10_000), (None, 10_000)] {
            assert_eq!(OrderBatch { interval_ns, ..OrderBatch::burst(40, 1) }.late_ns(), late_ns, "{interval_ns:?}");
        }
    }

    #[test]
    fn every_planned_group_has_a_unique_name() {
        let settings = Settings { full: true, ..Settings::new([0, 1]) };
        let names: std::collections::BTreeSet<_> = plan(&settings).iter().map(|b| group_name(b.number)).collect();
        assert_eq!(names.len(), plan(&settings).len());
        assert!(["g1", "g6", "d1", "d6", "s1", "s3", "e1", "m5"].iter().all(|name| names.contains(*name)));
    }
}
