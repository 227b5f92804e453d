//! A line whose rate limit is below the demand.

use std::collections::BTreeSet;

use tickpath_oms_runtime::VenueExpectations;

use super::*;

/// More orders are in doubt than a slow line can ask for in the longest pause between two questions; a question is
/// still sent for each order.
#[test]
fn a_slow_line_asks_a_silent_venue_for_every_order() {
    const ORDERS: u64 = 40;
    let ([wire], _scene, mut oms, mut client) = joined::<1>(|scene| {
        scene.config.lanes.lines[0].rate_per_second = 1;
        scene.config.trading.expectations =
            vec![VenueExpectations { venue: VENUE, answer_within_ns: SECOND, expires_day_orders: false }];
    });
    (1..=ORDERS).for_each(|id| client.send(limit(Side::Buy, id, 100, 1)));
    let (mut arrived, mut asked) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..10 * ORDERS {
        oms.clock.advance(SECOND);
        // The OMS reads its clock in each sixteenth idle turn.
        (0..40).for_each(|_| _ = poll(&mut oms));
        wire.with_state(|state| {
            state.received = state.sent.len() as u64;
            for (_, request) in &state.sent {
                match request {
                    Request::New(new) => arrived.insert(new.client_order_id),
                    Request::Status(status) => asked.insert(status.original),
                    _ => false,
                };
            }
        });
    }
    assert_eq!(arrived.len() as u64, ORDERS);
    assert_eq!(asked, arrived);
}
