//! When a run of `path` proves nothing: its feed did not keep its times, or what it asked for is not in its latencies.

use tickpath_harness::rules::{refuse_loss, tell_reconnects};
use tickpath_result::Run;

use super::feed::Fed;
use crate::strategy::Traded;

/// Holds what the processes told against the rules. `took_ns` is how long the feed published, `journaled` are the orders
/// that the OMS had; what it has no answer to is in the run's counts already.
pub(super) fn hold(run: &mut Run, fed: &Fed, traded: &Traded, journaled: u64, took_ns: f64) {
    let lost_orders = traded.orders.saturating_sub(journaled);
    (run.counts.sent, run.counts.received) = (fed.sent, traded.seen);
    run.counts.lost = fed.sent.saturating_sub(traded.seen) + lost_orders;
    if took_ns > 0.0 && (fed.planned_ns as f64) < 0.99 * took_ns {
        refuse(run, format!("the feed reached {:.1} % of its rate", 100.0 * fed.planned_ns as f64 / took_ns));
    }
    if fed.late_share > 0.01 {
        refuse(run, format!("{:.1} % of ticks were published late", 100.0 * fed.late_share));
    }
    if lost_orders > 0 {
        run.figures.insert("orders_lost".to_owned(), lost_orders as f64);
        refuse(run, format!("{lost_orders} of {} orders were lost on the way to the journal", traded.orders));
    }
    if run.counts.left > 0 {
        let left = run.counts.left;
        refuse(run, format!("{left} orders had no answer of the venue in time: they are in no hop that ends there"));
    }
    if traded.lapped > 0 {
        let lapped = traded.lapped;
        refuse(run, format!("the strategy was lapped and missed {lapped} reports: order_round_trip lacks them"));
    }
    if traded.missed > 0 {
        run.notes.push(format!("the strategy was lapped and missed {} ticks", traded.missed));
    }
    if traded.denied > 0 {
        run.notes.push(format!("{} orders were denied by the risk checks", traded.denied));
    }
    if let Some(queued) = run.figures.get("orders_queued").filter(|queued| **queued > 0.0) {
        run.notes.push(format!(
            "{queued} orders had to wait for the venue: tick_to_order lacks them, tick_to_venue does not"
        ));
    }
    tell_reconnects(run, traded.reconnects);
    refuse_loss(run);
}

fn refuse(run: &mut Run, why: String) {
    run.valid = false;
    run.notes.push(why);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS: u64 = 1_000;
    const PLANNED_NS: u64 = 1_000_000_000;

    /// A run in which everything arrived in its time.
    fn good() -> (Fed, Traded) {
        let fed = Fed { sent: TICKS, planned_ns: PLANNED_NS, ..Fed::default() };
        (fed, Traded { seen: TICKS, orders: TICKS, ..Traded::default() })
    }

    fn held(fed: &Fed, traded: &Traded, journaled: u64, left: u64, took_ns: u64) -> Run {
        let mut run = Run { valid: true, ..Run::default() };
        run.counts.left = left;
        hold(&mut run, fed, traded, journaled, took_ns as f64);
        run
    }

    #[test]
    fn a_run_that_kept_the_rules_is_valid() {
        let (fed, traded) = good();
        let run = held(&fed, &traded, TICKS, 0, PLANNED_NS);
        assert_eq!((run.valid, run.counts.lost, run.notes), (true, 0, Vec::new()));
    }

    /// The run says so, in this word, and is not valid.
    #[track_caller]
    fn refused(run: &Run, word: &str) {
        assert!(!run.valid && run.notes.iter().any(|note| note.contains(word)), "{word}: {run:?}");
    }

    #[test]
    fn a_run_whose_ticks_or_orders_were_lost_is_not_valid() {
        let (fed, traded) = good();
        let lossy = Traded { seen: TICKS - 10, orders: TICKS - 10, missed: 10, ..traded.clone() };
        let run = held(&fed, &lossy, TICKS - 10, 0, PLANNED_NS);
        refused(&run, "10 of 1000 messages were lost");
        assert_eq!((run.counts.lost, run.figures.get("orders_lost")), (10, None));
        let run = held(&fed, &traded, TICKS - 3, 0, PLANNED_NS);
        refused(&run, "3 of 1000 orders were lost");
        assert_eq!((run.counts.lost, run.figures.get("orders_lost")), (3, Some(&3.0)));
    }

    #[test]
    fn a_run_whose_ticks_were_late_is_not_valid() {
        let (fed, traded) = good();
        for (share, valid) in [(0.01, true), (0.011, false)] {
            let run = held(&Fed { late_share: share, ..fed.clone() }, &traded, TICKS, 0, PLANNED_NS);
            assert_eq!(run.valid, valid, "{share}");
        }
        for (took_ns, valid) in [(1_010_000_000, true), (1_011_000_000, false)] {
            assert_eq!(held(&fed, &traded, TICKS, 0, took_ns).valid, valid, "{took_ns} ns");
        }
        refused(&held(&fed, &traded, TICKS, 0, 2_000_000_000), "50.0 % of its rate");
    }

    #[test]
    fn an_order_without_an_answer_or_a_report_that_was_missed_is_no_latency_and_makes_the_run_invalid() {
        let (fed, traded) = good();
        refused(&held(&fed, &traded, TICKS, 2, PLANNED_NS), "2 orders had no answer");
        refused(&held(&fed, &Traded { lapped: 7, ..traded }, TICKS, 0, PLANNED_NS), "missed 7 reports");
    }

    #[test]
    fn a_connection_that_was_made_again_is_told() {
        let (fed, traded) = good();
        let run = held(&fed, &Traded { reconnects: 1, ..traded }, TICKS, 0, PLANNED_NS);
        assert!(run.valid && run.notes.iter().any(|note| note.contains("made again")), "{:?}", run.notes);
    }
}
