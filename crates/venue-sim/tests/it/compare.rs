//! The venue and the naive venue take the same commands, and must return the same reports.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem::{self, Discriminant};

use tickpath_market::{Price, Quantity, Side, SymbolId};
use tickpath_venue_sim::{Config, FillError, RejectReason, SimVenue};

use crate::naive::{
    CANCEL_REJECTED, CANCELED, EXPIRED, FILLED, NEW, Naive, ORDER_STATUS, PARTIALLY_FILLED, REJECTED, REPLACED, TRADE,
    TRADE_CANCEL, TRADE_CORRECT, UNKNOWN, VENUE,
};
use crate::random_commands::{Commands, SYMBOLS, seed};

#[test]
fn the_venue_matches_a_naive_model() {
    let seed = seed();
    let mut venue = SimVenue::new(Config { venue: VENUE, symbols: SYMBOLS, expected_orders: 16 });
    let (mut naive, mut commands, mut seen) = (Naive::default(), Commands::new(seed, true), Seen::default());
    for number in 1..=100_000_u64 {
        let command = commands.draw();
        let expected = naive.apply(number, &command);
        let reports = command.apply(&mut venue, number);
        assert_eq!(reports, expected, "seed {seed}, command {number}: {command:?}");
        assert_eq!(venue.resting_orders(), naive.working(), "seed {seed}, command {number}: {command:?}");
        match &reports {
            Err(e) => {
                seen.errors.insert(mem::discriminant(e));
            }
            Ok(reports) => {
                commands.see(reports);
                for report in reports {
                    *seen.types.entry(report.exec_type).or_default() += 1;
                    seen.reasons.insert(report.reason);
                    seen.answers.extend((report.exec_type == ORDER_STATUS).then_some(report.status));
                }
            }
        }
        if number % 64 == 0 {
            compare_depth(&venue, &naive, seed, number);
        }
    }
    seen.check(seed);
}

/// Coverage of the comparison.
#[derive(Default)]
struct Seen {
    types: BTreeMap<u8, u32>,
    reasons: BTreeSet<u16>,
    /// Order statuses in the answers.
    answers: BTreeSet<u8>,
    errors: HashSet<Discriminant<FillError>>,
}

impl Seen {
    /// Panics if an event was too rare to be compared well.
    fn check(&self, seed: u64) {
        let types = [NEW, TRADE, CANCELED, REPLACED, EXPIRED, REJECTED, CANCEL_REJECTED];
        for exec_type in types.into_iter().chain([TRADE_CANCEL, TRADE_CORRECT, ORDER_STATUS]) {
            let count = self.types.get(&exec_type).copied().unwrap_or(0);
            assert!(count >= 100, "seed {seed}: only {count} reports of type {exec_type}, which compares little");
        }
        // `OnOrder` is a configured rejection, which no rule produces.
        for reject in RejectReason::ALL.into_iter().filter(|reject| *reject != RejectReason::OnOrder) {
            assert!(self.reasons.contains(&reject.code()), "seed {seed}: nothing was refused because {reject}");
        }
        let states = BTreeSet::from([NEW, PARTIALLY_FILLED, FILLED, CANCELED, EXPIRED, REJECTED, UNKNOWN]);
        assert_eq!(self.answers, states, "seed {seed}: these statuses were answered");
        assert_eq!(self.errors.len(), 4, "seed {seed}: the operator was refused for these only");
    }
}

fn compare_depth(venue: &SimVenue, naive: &Naive, seed: u64, number: u64) {
    for symbol in (0..SYMBOLS).map(SymbolId) {
        for side in [Side::Buy, Side::Sell] {
            let depth: Vec<(Price, Quantity)> = venue.depth(symbol, side).collect();
            assert_eq!(depth, naive.depth(symbol, side), "seed {seed}, command {number}, {symbol} {side:?}");
        }
    }
}
