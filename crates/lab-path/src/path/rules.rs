//! Rules that make a run of `path` invalid: its feed did not keep its times, or its latencies miss requested ticks or
//! orders.

use tickpath_lab_harness::rules::{note_reconnects, refuse_loss, refuse_reordered};
use tickpath_lab_result::Run;

use super::feed::FeedResult;
use crate::strategy::StrategyResult;

/// Counts the seen ticks, in order of arrival, against the published ones. A tick's stamp is its intended time;
/// ticks of the same time are interchangeable.
pub(super) fn count_ticks(run: &mut Run, published: &[[u64; 2]], seen: &[[u64; 1]]) {
    let alike = published.chunk_by(|[a, _], [b, _]| a == b);
    let mut due: Vec<(u64, u64)> = alike.map(|ticks| (ticks[0][0], ticks.len() as u64)).collect();
    let counts = &mut run.counts;
    (counts.sent, counts.received) = (published.len() as u64, seen.len() as u64);
    let mut newest = 0;
    for &[stamp] in seen {
        match due.binary_search_by_key(&stamp, |(time, _)| *time) {
            Ok(index) if due[index].1 > 0 => {
                due[index].1 -= 1;
                counts.reordered += u64::from(stamp < newest);
                newest = newest.max(stamp);
            }
            _ => counts.duplicated += 1,
        }
    }
    counts.lost = due.iter().map(|(_, left)| left).sum();
}

/// Checks the processes' results against the rules. `took_ns` is the duration of publishing, `journaled` the number of
/// orders that the OMS received; the run's counts already have the ticks and the unanswered orders.
pub(super) fn apply_rules(run: &mut Run, fed: &FeedResult, traded: &StrategyResult, journaled: u64, took_ns: f64) {
    let lost_orders = traded.orders.saturating_sub(journaled);
    run.counts.lost += lost_orders;
    if took_ns > 0.0 && (fed.planned_ns as f64) < 0.99 * took_ns {
        run.refuse(format!("the feed reached {:.1} % of its rate", 100.0 * fed.planned_ns as f64 / took_ns));
    }
    if fed.late_share > 0.01 {
        run.refuse(format!("{:.1} % of ticks were published late", 100.0 * fed.late_share));
    }
    if lost_orders > 0 {
        run.figures.insert("orders_lost".to_owned(), lost_orders as f64);
        run.refuse(format!("{lost_orders} of {} orders were lost on the way to the journal", traded.orders));
    }
    if run.counts.left > 0 {
        let left = run.counts.left;
        run.refuse(format!("{left} orders had no answer of the venue in time: they are in no hop that ends there"));
    }
    if traded.lapped > 0 {
        let lapped = traded.lapped;
        run.refuse(format!("the strategy was lapped and missed {lapped} reports: order_round_trip lacks them"));
    }
    if traded.restamped > 0 {
        let times = traded.restamped;
        run.refuse(format!("the session was full {times} times, and T0 is not the first attempt of those orders"));
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
    run.counts.received += traded.duplicates + traded.late;
    run.counts.duplicated += traded.duplicates;
    run.counts.reordered += traded.late;
    run.counts.lost = run.counts.lost.saturating_sub(traded.late);
    note_reconnects(run, "feed", fed.reconnects);
    note_reconnects(run, "strategy", traded.reconnects);
    refuse_reordered(run);
    refuse_loss(run);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS: u64 = 1_000;
    const PLANNED_NS: u64 = 1_000_000_000;

    /// Builds results of a run in which everything arrived in time.
    fn good() -> (FeedResult, StrategyResult) {
        let fed = FeedResult { planned_ns: PLANNED_NS, reconnects: Some(0), ..FeedResult::default() };
        (fed, StrategyResult { orders: TICKS, reconnects: Some(0), ..StrategyResult::default() })
    }

    fn held(fed: &FeedResult, traded: &StrategyResult, journaled: u64, left: u64, took_ns: u64) -> Run {
        let mut run = Run { valid: true, ..Run::default() };
        (run.counts.sent, run.counts.received, run.counts.left) = (TICKS, TICKS, left);
        apply_rules(&mut run, fed, traded, journaled, took_ns as f64);
        run
    }

    #[test]
    fn a_run_that_kept_the_rules_is_valid() {
        let (fed, traded) = good();
        let run = held(&fed, &traded, TICKS, 0, PLANNED_NS);
        assert_eq!((run.valid, run.counts.lost, run.notes), (true, 0, Vec::new()));
    }

    /// Checks that the run is invalid, with a note that contains `word`.
    #[track_caller]
    fn refused(run: &Run, word: &str) {
        assert!(!run.valid && run.notes.iter().any(|note| note.contains(word)), "{word}: {run:?}");
    }

    #[test]
    fn a_run_whose_ticks_or_orders_were_lost_is_not_valid() {
        let (fed, traded) = good();
        let all: Vec<u64> = (1..=TICKS).collect();
        let (run, counts) = seen(&all, &all[10..]);
        refused(&run, "10 of 1000 messages were lost");
        assert_eq!((counts, run.figures.get("orders_lost")), ((10, 0, 0), None));
        let run = held(&fed, &traded, TICKS - 3, 0, PLANNED_NS);
        refused(&run, "3 of 1000 orders were lost");
        assert_eq!((run.counts.lost, run.figures.get("orders_lost")), (3, Some(&3.0)));
    }

    /// Builds a run with these published and these seen stamps; returns it with the numbers of lost, duplicated and
    /// reordered ticks.
    fn seen(published: &[u64], seen: &[u64]) -> (Run, (u64, u64, u64)) {
        let (fed, traded) = good();
        let mut run = Run { valid: true, ..Run::default() };
        let published: Vec<[u64; 2]> = published.iter().map(|stamp| [*stamp, 0]).collect();
        let seen: Vec<[u64; 1]> = seen.iter().map(|stamp| [*stamp]).collect();
        count_ticks(&mut run, &published, &seen);
        apply_rules(&mut run, &fed, &traded, TICKS, PLANNED_NS as f64);
        let found = (run.counts.lost, run.counts.duplicated, run.counts.reordered);
        (run, found)
    }

    #[test]
    fn a_duplicate_tick_hides_no_lost_tick() {
        let cases = [
            (&[10, 20, 30, 40][..], &[10, 20, 20, 40][..], (1, 1, 0), "1 of 4 messages came twice"),
            (&[10, 20, 30, 40], &[10, 30, 20, 40], (0, 0, 1), "1 of 4 messages came behind a later one"),
            (&[10, 20, 30, 40], &[10, 20, 30, 40, 10], (0, 1, 0), "1 of 4 messages came twice"),
            (&[10, 10, 10, 20], &[10, 10, 20], (1, 0, 0), "1 of 4 messages were lost"),
            (&[10, 20], &[10, 15, 20], (0, 1, 0), "1 of 2 messages came twice"),
        ];
        for (published, received, found, word) in cases {
            let (run, counts) = seen(published, received);
            assert_eq!(counts, found, "{published:?}, {received:?}");
            refused(&run, word);
        }
        // Ticks of the same time are not duplicates.
        let (run, counts) = seen(&[10, 10, 20], &[10, 10, 20]);
        assert_eq!((run.valid, counts), (true, (0, 0, 0)), "{run:?}");
    }

    #[test]
    fn a_run_whose_ticks_were_late_is_not_valid() {
        let (fed, traded) = good();
        for (share, valid) in [(0.01, true), (0.011, false)] {
            let run = held(&FeedResult { late_share: share, ..fed.clone() }, &traded, TICKS, 0, PLANNED_NS);
            assert_eq!(run.valid, valid, "{share}");
        }
        for (took_ns, valid) in [(1_010_000_000, true), (1_011_000_000, false)] {
            assert_eq!(held(&fed, &traded, TICKS, 0, took_ns).valid, valid, "{took_ns} ns");
        }
        refused(&held(&fed, &traded, TICKS, 0, 2_000_000_000), "50.0 % of its rate");
    }

    #[test]
    fn missing_answers_and_missed_reports_invalidate_the_run() {
        let (fed, traded) = good();
        refused(&held(&fed, &traded, TICKS, 2, PLANNED_NS), "2 orders had no answer");
        refused(&held(&fed, &StrategyResult { lapped: 7, ..traded.clone() }, TICKS, 0, PLANNED_NS), "missed 7 reports");
        refused(&held(&fed, &StrategyResult { restamped: 3, ..traded }, TICKS, 0, PLANNED_NS), "full 3 times");
    }

    #[test]
    fn reconnects_of_feed_and_strategy_are_noted() {
        let (fed, traded) = good();
        let (fed, traded) =
            (FeedResult { reconnects: Some(2), ..fed }, StrategyResult { reconnects: Some(1), ..traded });
        let run = held(&fed, &traded, TICKS, 0, PLANNED_NS);
        assert!(run.valid && run.figures.get("reconnects") == Some(&3.0), "{run:?}");
        for sentence in ["the feed's connection was lost", "the strategy's connection was lost"] {
            assert!(run.notes.iter().any(|note| note.contains(sentence)), "{sentence}: {:?}", run.notes);
        }
    }
}
