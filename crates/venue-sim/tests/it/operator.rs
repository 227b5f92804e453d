//! Status requests and operator actions, one case a line; `script.rs` describes the lines.

use tickpath_market::{
    AccountId, ClientOrderId, ExecId, ExecType, ExecutionReport, OrdStatus, OrderId, Price, Quantity, Request, Side,
    StatusRequest, SymbolId, VenueId,
};
use tickpath_venue_sim::FillError;

use crate::script::{check, order, venue};

#[test]
fn a_status_reports_the_state_of_a_working_order() {
    check("b1 5@100 | q9 1", "S1 0/5=N1");
    check("b1 5@100; s2 3@100 | q9 1; q9 2", "S1 3/2=P2; S2 3/0=F2");
    check("b1 5@100; r8 1 7@101 | q9 1", "S1 0/7=N2");
    check("b1 5@100; r8 1 0@101 | q9 1", "S1 0/5=N2");
    // A status is no event, and changes nothing.
    check("b1 5@100 | q9 1; q9 1; c9 1; q9 1", "S1 0/5=N1; S1 0/5=N1; C1 0/0; S1 0/0=C2");
}

#[test]
fn a_status_reports_how_an_order_ended() {
    check("b1 5@100; c9 1 | q9 1", "S1 0/0=C2");
    check("b1 5@100; s2 3@100; c9 1 | q9 1", "S1 3/0=C3");
    check("b1 5@100; s2 5@100 | q9 1; q9 2", "S1 5/0=F2; S2 5/0=F2");
    check("b1 5@100; s2 3@100; r9 1 3@100 | q9 1", "S1 3/0=F3");
    check("s1 3@101; b2 3@100; r9 2 3@101 | q9 1; q9 2", "S1 3/0=F2; S2 3/0=F3");
    check("s1 2@100; b2 5@100 ioc | q9 2", "S2 2/0=X3");
    check("b1 5@100 fok | q9 1", "S1 0/0=X2");
    check("b1 5@100 bad; b2 5@100 sym; b3 0@100 | q9 1; q9 2; q9 3", "S1 0/0=J1#3; S2 0/0=J1#4; S3 0/0=J1#5");
    // The rejection of a duplicate is no event of the order that had the id first.
    check("b1 5@100; b1 5@100 | q9 1", "S1 0/5=N1");
    check("b1 0@100; b1 5@100 | q9 1", "S1 0/0=J1#5");
    // A rejection for lateness is no event either.
    check("b1 5@100; c8 1; c9 1; r9 1 5@100 | q9 1", "S1 0/0=C2");
}

#[test]
fn a_status_of_an_unknown_order_is_rejected() {
    check("| q9 1", "S1 0/0=J0#7");
    check("| q9 0", "S0 0/0=J0#7");
    check("b1 5@100; c9 1 | q8 9", "S9 0/0=J0#7");
    // A status request uses up no id.
    check("q9 1 | b1 5@100; q9 1", "N1 0/5; S1 0/5=N1");
    // An order of an earlier day is known, but its end is forgotten.
    check("b1 5@100; c9 1; d | q9 1", "S1 0/0=U0#9");
    check("b1 5@100; d | q9 1", "S1 0/0=U0#9");
}

#[test]
fn a_status_has_all_its_fields() {
    let mut venue = venue();
    let mut reports = Vec::new();
    venue.request(11, &Request::New(order(Side::Buy, 7, 5, 100)), &mut reports);
    venue.request(12, &Request::New(order(Side::Sell, 8, 3, 100)), &mut reports);
    let filled = reports.pop().expect("the buy traded");
    reports.clear();
    for original in [7, 70] {
        let asked = StatusRequest {
            client_order_id: ClientOrderId(9),
            original: ClientOrderId(original),
            symbol: SymbolId(3),
            account: AccountId(5),
            ..StatusRequest::default()
        };
        venue.request(13, &Request::Status(asked), &mut reports);
    }
    let known = ExecutionReport {
        client_order_id: ClientOrderId(9),
        exec_id: ExecId(0),
        last_price: Price(0),
        last_quantity: Quantity(0),
        venue_stamp: 13,
        exec_type: ExecType::OrderStatus.code(),
        ..filled
    };
    let stranger = ExecutionReport {
        order_id: OrderId(70),
        client_order_id: ClientOrderId(9),
        venue_stamp: 13,
        symbol: SymbolId(3),
        account: AccountId(5),
        reason: 7,
        venue: VenueId(9),
        exec_type: ExecType::OrderStatus.code(),
        status: OrdStatus::Rejected.code(),
        ..ExecutionReport::default()
    };
    assert_eq!(reports, [known, stranger]);
}

#[test]
fn a_mass_cancel_cancels_the_resting_orders_of_an_account() {
    let book = "b3 1@100; s2 1@105; b1 1@101; b4 1@99 a7; s5 2@101";
    check(&format!("{book} | m9 7 4"), "C3 0/0; C2 0/0; C5 1/0");
    check(&format!("{book} | m9 1 4; q9 4"), "C3 0/0; C2 0/0; C5 1/0; S4 0/1=N1");
    check(&format!("{book} | m9 1 4 1"), "");
    check(&format!("{book} | m9 7 7; m9 7 7; m9 7 99"), "C4 0/0");
    check(&format!("{book}; m9 7 4 | q9 3; c9 3; s6 1@99"), "S3 0/0=C2; K3 0/0#8; N6 0/1; T6 1/0@99; T4 1/0@99");
    check("b1 1@100; t 1@99 1@105 | m9 7 0; s2 1@99; s3 1@99", "N2 0/1; T2 1/0@100; T1 1/0@100; N3 0/1; T3 1/0@99");
    check("b1 1@100 | m9 3 4; q9 1", "K0 0/0#3; S1 0/1=N1");
}

#[test]
fn a_fill_is_busted() {
    let traded = "b1 5@100; s2 3@100";
    check(&format!("{traded} | x2; q9 1"), "B1 0/2 3@100; S1 0/2=N3");
    check(&format!("{traded} | x1; q9 2"), "B2 0/0 3@100; S2 0/0=F3");
    check(&format!("{traded}; s3 1@100 | x2; q9 1"), "B1 1/1 3@100; S1 1/1=P4");
    // The busted quantity does not return to the book.
    check(&format!("{traded}; x2 | s3 9@100 ioc"), "N3 0/9; T3 2/7@100; T1 2/0@100; X3 2/0");
    // A finished order keeps its final status.
    check(&format!("{traded}; c9 1 | x2; q9 1; s3 1@100 ioc"), "B1 0/0 3@100; S1 0/0=C4; N3 0/1; X3 0/0");
    check("s1 2@100; b2 5@100 ioc | x1; q9 2", "B2 0/0 2@100; S2 0/0=X4");
    // A fill is busted once, and only if it exists.
    let busted = "!the fill 2 is";
    check(&format!("{traded}; x2 | x2; v2 1@100; q9 1"), &format!("{busted}; {busted}; S1 0/2=N3"));
    check(&format!("{traded} | x0; x3; v3 1@100"), &["!no fill of this"; 3].join("; "));
    check(&format!("| x1; x{}", u64::MAX), &["!no fill of this"; 2].join("; "));
}

#[test]
fn the_total_is_filled_plus_open_after_a_bust() {
    let busted = "b1 5@100; s2 3@100; x2; b3 1@100";
    check(&format!("{busted}; r9 1 2@100 | s4 1@100"), "N4 0/1; T4 1/0@100; T1 1/1@100");
    check(&format!("{busted}; r9 1 3@100 | s4 1@100"), "N4 0/1; T4 1/0@100; T3 1/0@100");
    check(&format!("{busted} | r9 1 1@100"), "R1 0/1");
}

#[test]
fn a_fill_is_corrected() {
    let traded = "b1 5@100; s2 3@100";
    check(&format!("{traded} | v2 2@99; q9 1"), "V1 2/2 2@99; S1 2/2=P3");
    check(&format!("{traded} | v2 4@100; q9 1"), "V1 4/2 4@100; S1 4/2=P3");
    check(&format!("{traded} | v1 1@101; q9 2"), "V2 1/0 1@101; S2 1/0=F3");
    check(&format!("{traded}; c9 1 | v2 1@100; q9 1"), "V1 1/0 1@100; S1 1/0=C4");
    // Later corrections and busts apply to the corrected fill.
    check(&format!("{traded}; v2 2@99 | v2 4@98; x2; x2"), "V1 4/2 4@98; B1 0/2 4@98; !the fill 2 is");
    // Rejected, with no change.
    check(
        &format!("{traded} | v2 0@99; v2 -1@99; q9 1"),
        "!the corrected quantity is; !the corrected quantity is; S1 3/2=P2",
    );
    check(&format!("{traded} | v2 1@0; v2 1@-1; x2"), "!the corrected price is; !the corrected price is; B1 0/2 3@100");
    let too_much = i64::MAX - 1;
    check(&format!("{traded} | v2 {too_much}@100; q9 1"), "!the corrected quantity is; S1 3/2=P2");
    check(&format!("{traded} | v1 {too_much}@100"), &format!("V2 {too_much}/0 {too_much}@100"));
}

#[test]
fn a_changed_fill_is_reported_in_full() {
    let mut venue = venue();
    let mut reports = Vec::new();
    venue.request(11, &Request::New(order(Side::Buy, 7, 5, 100)), &mut reports);
    venue.request(12, &Request::New(order(Side::Sell, 8, 3, 100)), &mut reports);
    let filled = reports.pop().expect("the buy traded");
    reports.clear();
    venue.correct(13, ExecId(2), Price(99), Quantity(2), &mut reports).expect("the fill is there");
    venue.bust(14, ExecId(2), &mut reports).expect("the fill is there");
    assert_eq!(venue.bust(15, ExecId(2), &mut reports), Err(FillError::Busted(ExecId(2))));
    let corrected = ExecutionReport {
        venue_sequence: 3,
        last_price: Price(99),
        last_quantity: Quantity(2),
        cumulative_quantity: Quantity(2),
        venue_stamp: 13,
        exec_type: ExecType::TradeCorrect.code(),
        ..filled
    };
    let taken_back = ExecutionReport {
        venue_sequence: 4,
        cumulative_quantity: Quantity(0),
        venue_stamp: 14,
        exec_type: ExecType::TradeCancel.code(),
        status: OrdStatus::New.code(),
        ..corrected
    };
    assert_eq!(reports, [corrected, taken_back]);
}

#[test]
fn the_day_ends() {
    check("b2 5@100; s1 3@105; b3 1@101 gtc | d", "X2 0/0; X1 0/0");
    check("b1 5@100; s2 3@100 | d", "X1 3/0");
    check("b1 5@100; d | s2 3@100; c9 1", "N2 0/3; K1 0/0#8");
    // Good-till-cancel orders keep their places and their counts.
    check(
        "b1 2@100 gtc; b2 1@100; b3 2@100 gtc; d | s4 3@100",
        "N4 0/3; T4 2/1@100; T1 2/0@100; T4 3/0@100; T3 1/1@100",
    );
    check("b1 5@100 gtc; s2 3@100; d | q9 1; c9 1; q9 1", "S1 3/2=P2; C1 3/0; S1 3/0=C3");
    check("b1 5@100 gtc; d; d | r9 1 6@100; q9 1", "R1 0/6; S1 0/6=N2");
    // The market stays as of the last tick.
    check("t 1@99 2@105; b1 5@100; d | b2 3@105 ioc", "N2 0/3; T2 2/1@105; X2 2/0");
    check("t 1@99 2@105; b1 1@99; d; t 0@0 0@0 | s2 3@1 ioc", "N2 0/3; X2 0/0");
    // Ids stay used, and a fill of an earlier day cannot be changed.
    check("b1 5@100; d | b1 5@100", "J1 0/0#2");
    check("b1 5@100 gtc; s2 3@100; d | x2; v1 1@1", &["!no fill of this"; 2].join("; "));
    check(
        "b1 5@100 gtc; s2 3@100; d; s3 1@100 | x2; x3; x4; q9 1",
        "!no fill of this; B3 0/0 1@100; B1 3/1 1@100; S1 3/1=P4",
    );
}

#[test]
fn the_end_of_a_day_leaves_only_good_till_canceled_orders() {
    const ORDERS: u64 = 20_000;
    let mut venue = venue();
    let mut reports = Vec::new();
    for day in 0..3 {
        for id in 1 + day * ORDERS..=(day + 1) * ORDERS {
            // The epoch of an OMS's start is in the upper bits of its ids.
            let mut new = order(Side::Buy, 5 << 40 | id, 1, 100);
            new.time_in_force = u8::from(id % 100 == 0);
            venue.request(id, &Request::New(new), &mut reports);
        }
        assert_eq!(venue.resting_orders() as u64, ORDERS + day * ORDERS / 100);
        reports.clear();
        venue.end_of_day(day, &mut reports);
        let kept = (day + 1) * ORDERS / 100;
        assert_eq!((venue.resting_orders() as u64, reports.len() as u64), (kept, ORDERS - ORDERS / 100));
        assert_eq!(venue.depth(SymbolId(0), Side::Buy).collect::<Vec<_>>(), [(Price(100), Quantity(kept as i64))]);
        reports.clear();
    }
}
