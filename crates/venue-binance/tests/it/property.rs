//! Events in any order and any number end in the same reports, whichever way their frames are written.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tickpath_market::Request;

use crate::driver::{Driver, buy};
use crate::exchange::ScriptedExchange;
use crate::frames::{EventFrame, renamed, text_of};

/// Filled quantities after each fill of 0.1.
const FILLED: [&str; 6] = ["0.00000000", "0.10000000", "0.20000000", "0.30000000", "0.40000000", "0.50000000"];

/// Returns the events of an order: its acceptance, fills, reductions of its quantity, and its end.
fn life(fills: usize, amendments: u64, end: usize) -> Vec<EventFrame> {
    let accepted = EventFrame::new(&text_of(1), 77);
    let mut events = vec![accepted.clone()];
    for amendment in 0..amendments {
        let execution_id = 50 + amendment;
        events.push(EventFrame { kind: "REPLACED", quantity: "0.50000000", execution_id, ..accepted.clone() });
    }
    for (trade_id, cumulative) in (1..).zip(FILLED[1..=fills].iter().copied()) {
        let state = if cumulative == FILLED[5] { "FILLED" } else { "PARTIALLY_FILLED" };
        events.push(accepted.trade(trade_id, "0.10000000", cumulative, state));
    }
    // A filled order has no other end.
    if fills < 5 {
        events.extend(match end {
            1 => Some(accepted.canceled(&renamed(&text_of(1), 'c'), FILLED[fills])),
            2 => Some(accepted.canceled("web_0123", FILLED[fills])),
            3 => Some(accepted.expired(FILLED[fills], "EXPIRED_IN_MATCH")),
            _ => None,
        });
    }
    events
}

/// Sends these events to a line, each frame behind a prefix, and returns the reports of the order in an order of their
/// own.
fn reports_of(events: &[EventFrame], prefix: &str) -> Vec<String> {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.send(0, &Request::New(buy(1)));
    driver.until_request(&exchange, "order.place", 1);
    events.iter().for_each(|event| exchange.send(&format!("{prefix}{}", event.text())));
    driver.settle(&exchange);
    let of_order = driver.reports().into_iter().filter(|report| report.order_id.0 == 1);
    let mut shown: Vec<String> = of_order.map(|report| format!("{report:?}")).collect();
    shown.sort();
    shown
}

/// Returns the events of a life as they happen, and the same in any order, some of them several times.
fn lives() -> impl Strategy<Value = (Vec<EventFrame>, Vec<EventFrame>)> {
    (0usize..=5, 0u64..3, 0usize..4, vec(any::<Index>(), 0..8)).prop_flat_map(|(fills, amendments, end, repeats)| {
        let events = life(fills, amendments, end);
        let repeated = repeats.iter().map(|index| index.get(&events).clone());
        let all: Vec<EventFrame> = events.iter().cloned().chain(repeated).collect();
        (Just(events), Just(all).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn late_and_repeated_events_end_in_the_same_reports((events, shuffled) in lives()) {
        let expected = reports_of(&events, "");
        prop_assert_eq!(expected.len(), events.len());
        prop_assert_eq!(&reports_of(&shuffled, ""), &expected);
        // A space leaves a frame to the complete reader.
        prop_assert_eq!(&reports_of(&events, " "), &expected);
    }

    #[test]
    fn a_torn_frame_ends_the_connection(end in any::<Index>(), number in 0usize..3) {
        let accepted = EventFrame::new(&text_of(1), 77);
        let trade = accepted.trade(4, "0.1", "0.1", "PARTIALLY_FILLED");
        let text = &[accepted.text(), trade.text(), accepted.expired("0", "EXPIRED").text()][number];
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        exchange.send(&text[..1 + end.index(text.len() - 1)]);
        let why = driver.until_lost();
        prop_assert!(why.contains("cannot be read"), "{}", why);
    }
}
