//! The rules of matching, one case a line; `script.rs` describes the lines.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecType, ExecutionReport, OrdStatus, OrderId, Price, Quantity,
    Request, Side, SymbolId, TopOfBook, VenueId, VenueOrderId,
};
use tickpath_venue_sim::RejectReason;

use crate::script::{check, order, tick, venue};

#[test]
fn orders_match_by_price_then_time() {
    check("| b1 5@100", "N1 0/5");
    check("b1 5@100 | s2 3@101", "N2 0/3");
    check("b1 5@100 | s2 3@100", "N2 0/3; T2 3/0@100; T1 3/2@100");
    check("s1 1@100 | b2 1@105", "N2 0/1; T2 1/0@100; T1 1/0@100");
    check("b1 1@100; b2 1@101 | s3 2@100", "N3 0/2; T3 1/1@101; T2 1/0@101; T3 2/0@100; T1 1/0@100");
    check("s1 1@101; s2 1@100 | b3 2@101", "N3 0/2; T3 1/1@100; T2 1/0@100; T3 2/0@101; T1 1/0@101");
    check("b1 1@100; b2 1@100 | s3 1@100", "N3 0/1; T3 1/0@100; T1 1/0@100");
    check("s1 1@100; s2 1@100 | b3 1@100", "N3 0/1; T3 1/0@100; T1 1/0@100");
    check("b1 1@100 gtc | s2 3@99", "N2 0/3; T2 1/2@100; T1 1/0@100");
    check("b1 1@100; s2 3@99 | b3 2@99", "N3 0/2; T3 2/0@99; T2 3/0@99");
}

#[test]
fn the_unfilled_rest_of_an_order_expires_or_rests() {
    check("| b1 5@100 ioc", "N1 0/5; X1 0/0");
    check("s1 2@100 | b2 5@100 ioc", "N2 0/5; T2 2/3@100; T1 2/0@100; X2 2/0");
    check("s1 5@100 | b2 5@100 ioc", "N2 0/5; T2 5/0@100; T1 5/0@100");
    check("s1 2@101 | b2 5@100 ioc", "N2 0/5; X2 0/0");
    check("| b1 5@0 mkt", "N1 0/5; X1 0/0");
    check("s1 2@100 | b2 5@0 mkt", "N2 0/5; T2 2/3@100; T1 2/0@100; X2 2/0");
    check("b1 2@100; b2 2@1 | s3 4@0 mkt", "N3 0/4; T3 2/2@100; T1 2/0@100; T3 4/0@1; T2 2/0@1");
    check("s1 2@100; s2 3@101 | b3 5@101 fok", "N3 0/5; T3 2/3@100; T1 2/0@100; T3 5/0@101; T2 3/0@101");
    check("s1 2@100; s2 3@102 | b3 5@101 fok", "N3 0/5; X3 0/0");
    check("s1 2@100; s2 3@900 | b3 5@0 mkt fok", "N3 0/5; T3 2/3@100; T1 2/0@100; T3 5/0@900; T2 3/0@900");
    check("s1 2@100; s2 2@900 | b3 5@0 mkt fok", "N3 0/5; X3 0/0");
    check("s1 2@100; b2 5@100 fok | b3 2@100", "N3 0/2; T3 2/0@100; T1 2/0@100");
}

#[test]
fn cancels_end_resting_orders_only() {
    check("b1 5@100 | c9 1", "C1 0/0");
    check("b1 5@100; s2 3@100 | c9 1", "C1 3/0");
    check("b1 5@100; c9 1 | s2 1@100", "N2 0/1");
    check("b1 1@100; b2 1@100; b3 1@100; c9 2 | s4 2@100", "N4 0/2; T4 1/1@100; T1 1/0@100; T4 2/0@100; T3 1/0@100");
    check("| c9 1", "K1 0/0#7");
    check("| c9 0", "K0 0/0#7");
    check("b1 5@100; c8 1 | c9 1", "K1 0/0#8");
    check("b1 5@100; s2 5@100 | c9 1", "K1 0/0#8");
    check("b1 5@100 ioc | c9 1", "K1 0/0#8");
    check("b1 0@100 | c9 1", "K1 0/0#8");
}

#[test]
fn replaces_change_price_and_total() {
    // The same price and no higher total keep the place.
    check("b1 5@100; b2 5@100; r9 1 2@100 | s3 3@100", "N3 0/3; T3 2/1@100; T1 2/0@100; T3 3/0@100; T2 1/4@100");
    check("b1 5@100; b2 5@100; r9 1 5@100 | s3 1@100", "N3 0/1; T3 1/0@100; T1 1/4@100");
    check("b1 5@100; s2 3@100 | r9 1 4@100", "R1 3/1");
    check("b1 5@100; r9 1 2@100 | s2 5@100 fok", "N2 0/5; X2 0/0");
    // Any other replace goes to the end of the queue.
    check("b1 1@100; b2 1@100; r9 1 2@100 | s3 1@100", "N3 0/1; T3 1/0@100; T2 1/0@100");
    check("b1 1@100; b2 1@101; r9 1 1@101 | s3 1@100", "N3 0/1; T3 1/0@101; T2 1/0@101");
    // The replaced order may trade at once, and the rest stays open.
    check("s1 1@101; b2 3@100 | r9 2 3@101", "R2 0/3; T2 1/2@101; T1 1/0@101");
    check("s1 3@101; b2 3@100 | r9 2 3@102", "R2 0/3; T2 3/0@101; T1 3/0@101");
    check("s1 1@101; b2 3@100; r9 2 3@101 | s3 2@101", "N3 0/2; T3 2/0@101; T2 3/0@101");
    check("s1 3@101; b2 3@100; r8 2 3@102 | c9 2", "K2 0/0#8");
    // A total at or below the filled quantity ends the order.
    check("b1 5@100; s2 3@100 | r9 1 3@100", "R1 3/0");
    check("b1 5@100; s2 3@100 | r9 1 2@105", "R1 3/0");
    check("b1 5@100; s2 3@100; r8 1 2@100 | c9 1; s3 1@100", "K1 0/0#8; N3 0/1");
    // A rejected replace leaves the order as it is.
    check("b1 5@100 | r9 1 0@100; r9 1 -1@100; r9 1 5@0; c9 1", "K1 0/5#5; K1 0/5#5; K1 0/5#6; C1 0/0");
    check("| r9 1 5@100", "K1 0/0#7");
    check("b1 5@100; c8 1 | r9 1 5@100", "K1 0/0#8");
}

#[test]
fn bad_orders_are_rejected() {
    check("| b0 5@100", "J0 0/0#1");
    check("b1 5@100 | b1 5@100", "J1 0/0#2");
    check("b1 5@100; b1 5@100 | c9 1", "C1 0/0");
    check("b1 5@100 ioc | b1 5@100", "J1 0/0#2");
    check("b1 0@100 | b1 5@100", "J1 0/0#2");
    check("b5 1@100 | b4 1@100", "N4 0/1");
    check("| b1 5@100 bad", "J1 0/0#3");
    check("| b1 5@100 sym", "J1 0/0#4");
    check("| b1 0@100; b2 -1@100; b3 0@0 mkt", "J1 0/0#5; J2 0/0#5; J3 0/0#5");
    check("| b1 5@0; b2 5@-1; b3 5@100 mkt", "J1 0/0#6; J2 0/0#6; J3 0/0#6");
}

#[test]
fn a_post_only_order_rests_or_is_refused() {
    check("s1 5@101 | b2 3@100 post; s3 1@100", "N2 0/3; N3 0/1; T3 1/0@100; T2 1/2@100");
    check("s1 5@101 | b2 3@101 post; b3 1@101", "J2 0/0#11; N3 0/1; T3 1/0@101; T1 1/4@101");
    check("t 10@99 10@101 | b1 4@102 post; s2 4@99 post gtc; s3 4@100 post", "J1 0/0#11; J2 0/0#11; N3 0/4");
    check("b1 5@100 post | t 10@98 10@99", "T1 5/0@100");
    check("| b1 5@0 mkt post; b2 5@100 ioc post; b3 5@100 fok post", "J1 0/0#11; J2 0/0#11; J3 0/0#11");
    // The refusal is the end of the order, and uses its id up.
    check("s1 5@101; b2 3@101 post | q9 2; c9 2; b2 3@100 post", "S2 0/0=J1#11; K2 0/0#8; J2 0/0#2");
}

#[test]
fn a_post_only_order_stays_post_only_through_its_replaces() {
    check("s1 5@101; b2 3@100 post | r9 2 3@101; r9 2 3@105; c9 2", "K2 0/3#11; K2 0/3#11; C2 0/0");
    check("s1 5@101; b2 3@99 post; r8 2 4@100 | r9 2 4@101; s3 1@100", "K2 0/4#11; N3 0/1; T3 1/0@100; T2 1/3@100");
    // A refused replace leaves the order at its place.
    check("s1 5@101; b2 1@100 post; b3 1@100; r9 2 1@101 | s4 1@100", "N4 0/1; T4 1/0@100; T2 1/0@100");
    // Nothing is left that could trade.
    check("s1 5@101; b2 3@100 post; s3 2@100 | r9 2 2@101", "R2 2/0");
}

#[test]
fn orders_that_need_positions_or_margins_are_rejected() {
    check("| b1 5@100 red; b2 5@100 stp; b3 5@100 iso", "J1 0/0#12; J2 0/0#12; J3 0/0#12");
    check("| b1 5@100 red post; b2 5@0 mkt red", "J1 0/0#12; J2 0/0#12");
}

#[test]
fn the_maker_quotes_the_recorded_market() {
    check("t 10@99 10@101 | b1 4@101 ioc", "N1 0/4; T1 4/0@101");
    check("t 10@99 10@101 | s1 4@0 mkt", "N1 0/4; T1 4/0@99");
    check("t 10@99 10@101 | b1 4@100 ioc", "N1 0/4; X1 0/0");
    // Fills use up the quote until the next tick.
    check("t 10@99 10@101; b1 8@101 ioc | b2 4@101 ioc", "N2 0/4; T2 2/2@101; X2 2/0");
    check("t 10@99 10@101; b1 10@101 ioc; t 10@99 10@101 | b2 4@101 ioc", "N2 0/4; T2 4/0@101");
    check("t 10@99 10@101; t 10@104 10@105 | b1 4@101 ioc", "N1 0/4; X1 0/0");
    // Client orders crossed by a quote fill at their own price, up to its quantity.
    check("b1 5@100 | t 10@98 10@99", "T1 5/0@100");
    check("s1 5@100 | t 10@101 1@105", "T1 5/0@100");
    check("b1 5@100; b2 5@101 | t 1@98 7@99", "T2 5/0@101; T1 2/3@100");
    check("b1 5@100; t 10@98 7@99 | b2 9@99 ioc", "N2 0/9; T2 2/7@99; X2 2/0");
    check("b1 5@100 | t 5@100 5@101", "");
    // A quote queues behind orders at its price, again after each tick.
    check("b1 2@100; t 5@100 5@102 | s2 3@100", "N2 0/3; T2 2/1@100; T1 2/0@100; T2 3/0@100");
    check("t 5@100 5@102; b1 2@100 | s2 3@100", "N2 0/3; T2 3/0@100");
    check("t 5@100 5@102; b1 2@100; t 5@100 5@102 | s2 3@100", "N2 0/3; T2 2/1@100; T1 2/0@100; T2 3/0@100");
    // A zero price or quantity is no quote; locked and crossed quotes are no market.
    check("t 0@99 5@101 | s1 1@1 ioc; b2 1@101 ioc", "N1 0/1; X1 0/0; N2 0/1; T2 1/0@101");
    check("t 5@0 5@101 | s1 1@1 ioc", "N1 0/1; X1 0/0");
    check("b1 5@100 | t 5@99 0@98", "");
    check("t 1@99 1@101 | t 5@100 5@100; b1 1@101 ioc; s2 1@99 ioc", "N1 0/1; X1 0/0; N2 0/1; X2 0/0");
    check("b1 5@100; s2 5@103 | t 5@104 5@99", "");
}

#[test]
fn hostile_quantities_are_summed_without_wrapping() {
    const MAX: i64 = i64::MAX;
    let three = format!("b1 {MAX}@100; b2 {MAX}@100; b3 {MAX}@{MAX}");
    check(&format!("{three} | s4 {MAX}@100"), &format!("N4 0/{MAX}; T4 {MAX}/0@{MAX}; T3 {MAX}/0@{MAX}"));
    check(&format!("{three}; s4 1@100 | r9 3 {MAX}@100"), &format!("R3 1/{}", MAX - 1));
    check(&format!("{three}; s4 1@100; c9 3 | s5 {MAX}@1 fok"), &format!("N5 0/{MAX}; T5 {MAX}/0@100; T1 {MAX}/0@100"));
    let ticks = format!("t {MAX}@{MAX} {MAX}@{MAX}; t {MAX}@1 {MAX}@{MAX}");
    check(&format!("{ticks} | s1 {MAX}@1"), &format!("N1 0/{MAX}; T1 {MAX}/0@1"));
}

#[test]
fn a_report_has_all_its_fields() {
    let mut venue = venue();
    let mut reports = Vec::new();
    let buy = order(Side::Buy, 7, 5, 100);
    venue.request(11, &Request::New(buy), &mut reports);
    venue.request(12, &Request::New(order(Side::Sell, 8, 3, 100)), &mut reports);
    let accepted = ExecutionReport {
        order_id: OrderId(7),
        client_order_id: ClientOrderId(7),
        venue_order_id: VenueOrderId(1),
        venue_sequence: 1,
        leaves_quantity: Quantity(5),
        price: Price(100),
        venue_stamp: 11,
        symbol: SymbolId(0),
        account: AccountId(4),
        venue: VenueId(9),
        exec_type: ExecType::New.code(),
        status: OrdStatus::New.code(),
        side: Side::Buy.code(),
        ..ExecutionReport::default()
    };
    let filled = ExecutionReport {
        client_order_id: ClientOrderId(0),
        exec_id: ExecId(2),
        venue_sequence: 2,
        last_price: Price(100),
        last_quantity: Quantity(3),
        cumulative_quantity: Quantity(3),
        leaves_quantity: Quantity(2),
        venue_stamp: 12,
        exec_type: ExecType::Trade.code(),
        status: OrdStatus::PartiallyFilled.code(),
        ..accepted
    };
    let of_the_buy: Vec<ExecutionReport> = reports.into_iter().filter(|report| report.order_id == OrderId(7)).collect();
    assert_eq!(of_the_buy, [accepted, filled]);
}

#[test]
fn a_long_queue_is_canceled_in_any_order_and_its_slots_are_reused() {
    const ORDERS: u64 = 100_000;
    let mut venue = venue();
    let mut reports = Vec::new();
    for round in 0..2 {
        let first = 1 + round * ORDERS;
        for id in first..first + ORDERS {
            venue.request(id, &Request::New(order(Side::Buy, id, 1, 100)), &mut reports);
        }
        assert_eq!(venue.resting_orders(), ORDERS as usize);
        assert_eq!(venue.depth(SymbolId(0), Side::Buy).collect::<Vec<_>>(), [(Price(100), Quantity(ORDERS as i64))]);
        reports.clear();
        // 7,919 is a prime that does not divide the number of orders, so every order is named once.
        for step in 0..ORDERS {
            let original = ClientOrderId(first + step * 7_919 % ORDERS);
            let cancel = CancelOrder { client_order_id: ClientOrderId(u64::MAX), original, ..CancelOrder::default() };
            venue.request(step, &Request::Cancel(cancel), &mut reports);
        }
        assert!(reports.iter().all(|report| report.exec_type == ExecType::Canceled.code()));
        assert_eq!((venue.resting_orders(), venue.depth(SymbolId(0), Side::Buy).count()), (0, 0));
        reports.clear();
    }
}

#[test]
fn ticks_of_unknown_symbols_are_ignored() {
    let mut venue = venue();
    let mut reports = Vec::new();
    let tick = TopOfBook { symbol: SymbolId(u32::MAX), ..tick("t 5@99 5@101") };
    venue.top_of_book(1, &tick, &mut reports);
    assert_eq!((reports.len(), venue.depth(SymbolId(u32::MAX), Side::Buy).count()), (0, 0));
}

#[test]
fn reasons_have_codes_and_sentences() {
    for reject in RejectReason::ALL {
        assert_eq!(RejectReason::from_code(reject.code()), Some(reject));
        assert!(reject.to_string().contains(' '), "{reject:?} has no sentence");
    }
    assert_eq!((RejectReason::from_code(0), RejectReason::from_code(u16::MAX)), (None, None));
}
