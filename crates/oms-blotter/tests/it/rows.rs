//! Each order, fill and position of a day, and their changes by a bust, a correction and an operator.

use tickpath_market::{CancelOrder, ExecType, ExecutionReport, OrdStatus};
use tickpath_oms_blotter::{BlotterError, BlotterStatus, FillState, json_document};
use tickpath_oms_core::{EnterPosition, Resolve};

use super::*;

fn cancel(id: u64, original: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(original),
        account: ACCOUNT,
        ..CancelOrder::default()
    })
}

/// Returns a view that values the instrument at this price.
fn marked(price: i64) -> BlotterView {
    BlotterView { marks: [("FIRST".to_owned(), Price::from_whole(price).0)].into(), ..BlotterView::default() }
}

fn whole(units: i128) -> i128 {
    units * 100_000_000
}

#[test]
fn every_order_of_the_day_has_a_row_with_its_outcome() {
    let mut scene = Scene::new();
    scene.order(Side::Buy, 1, 101, 4);
    scene.order(Side::Sell, 2, 99, 1);
    scene.order(Side::Buy, 3, 98, 5);
    scene.send(cancel(30, 3));
    scene.order(Side::Buy, 4, 97, 6);
    scene.order(Side::Buy, 5, 97, 2_000);
    let blotter = scene.read(DayChoice::Today);
    let rows = orders(&blotter, &BlotterView::default());
    let summaries: Vec<_> = rows.iter().map(|row| (row.client_order_id.0, row.status.word(), row.leaves.0)).collect();
    let leaves = |whole: i64| Quantity::from_whole(whole).0;
    let expected = [(1, "filled", 0), (2, "filled", 0), (3, "canceled", 0), (4, "new", leaves(6)), (5, "denied", 0)];
    assert_eq!(summaries, expected.map(|(id, status, leaves)| (id, status.to_owned(), leaves)));
    assert_eq!((rows[0].filled, rows[0].filled_on_day), (Quantity::from_whole(4), Quantity::from_whole(4)));
    assert_eq!(rows[0].average_price, Some(whole(101)));
    assert_eq!((rows[3].filled, rows[3].average_price), (Quantity::ZERO, None));
    assert!(rows.iter().all(|row| row.entered_ns.is_some() && row.updated_ns >= row.entered_ns), "{rows:?}");
    let reason = rows[4].reason.as_deref().expect("a denial has a reason");
    assert!(reason.ends_with("(limit 1000, value 2000)"), "{reason}");
    assert!(rows[..4].iter().all(|row| row.reason.is_none()), "{rows:?}");
    // Selected by session and by status.
    let only = |status| orders(&blotter, &BlotterView { status: Some(status), ..BlotterView::default() }).len();
    assert_eq!((only(BlotterStatus::Denied), only(BlotterStatus::Fix(OrdStatus::Filled))), (1, 2));
    assert_eq!(orders(&blotter, &BlotterView { session: Some(1), ..BlotterView::default() }), []);
}

#[test]
fn profit_is_by_average_cost_and_times_the_multiplier() {
    let mut scene = Scene::new();
    scene.order(Side::Buy, 1, 101, 4);
    scene.tick(105, 107);
    scene.order(Side::Buy, 2, 107, 2);
    scene.tick(103, 105);
    scene.order(Side::Sell, 3, 103, 3);
    // Bought 4 at 101 and 2 at 107: 103 on average; 3 sold at that, and 3 left.
    let row = position(&scene.read(DayChoice::Today), &BlotterView::default());
    assert_eq!((row.start_quantity, row.end_quantity, row.multiplier), (0, whole(3), (MULTIPLIER, 0)));
    assert_eq!((row.bought_quantity, row.bought_price), (whole(6), Some(whole(103))));
    assert_eq!((row.sold_quantity, row.sold_price), (whole(3), Some(whole(103))));
    assert_eq!((row.average_price, row.mark.map(i128::from)), (Some(whole(103)), Some(whole(103))));
    assert_eq!((row.realised, row.open), (Some(0), Some(0)));
    let row = position(&scene.read(DayChoice::Today), &marked(110));
    assert_eq!((row.realised, row.open), (Some(0), Some(3 * 7 * MONEY * i128::from(MULTIPLIER))));
    scene.tick(107, 109);
    scene.order(Side::Sell, 4, 107, 5);
    // Three closed at a profit of 4 each, two sold short at 107.
    let row = position(&scene.read(DayChoice::Today), &marked(110));
    assert_eq!((row.end_quantity, row.average_price), (whole(-2), Some(whole(107))));
    assert_eq!(row.realised, Some(3 * 4 * MONEY * i128::from(MULTIPLIER)));
    assert_eq!(row.open, Some(-2 * 3 * MONEY * i128::from(MULTIPLIER)));
}

#[test]
fn a_bust_removes_a_fill_and_a_correction_replaces_it() {
    let mut scene = Scene::new();
    scene.order(Side::Buy, 1, 101, 4);
    scene.order(Side::Sell, 2, 99, 1);
    let before = fills(&scene.read(DayChoice::Today));
    let [bought, sold] = &before[..] else { panic!("two fills were expected: {before:?}") };
    assert_eq!((bought.state, bought.counted, sold.signed()), (FillState::Good, Quantity::from_whole(4), whole(-1)));
    let row = position(&scene.read(DayChoice::Today), &BlotterView::default());
    assert_eq!(row.realised, Some(-2 * MONEY * i128::from(MULTIPLIER)));
    scene.venue.bust(sold.exec_id).expect("it is a fill of the day");
    scene.settle();
    let blotter = scene.read(DayChoice::Today);
    let busted = &fills(&blotter)[1];
    assert_eq!((busted.state, busted.counted), (FillState::Busted, Quantity::ZERO));
    assert_eq!((busted.quantity, busted.price), (sold.quantity, sold.price), "what was taken back");
    assert!(busted.updated_ns >= Some(busted.time_ns));
    let row = position(&blotter, &BlotterView::default());
    assert_eq!((row.realised, row.end_quantity, row.sold_quantity), (Some(0), whole(4), 0));
    assert_eq!(row.mark.map(i128::from), Some(whole(101)), "a busted fill is no price");
    let rows = orders(&blotter, &BlotterView::default());
    let [_, order] = &rows[..] else { panic!("two orders were expected: {rows:?}") };
    assert_eq!((order.filled, order.filled_on_day, order.average_price), (Quantity::ZERO, Quantity::ZERO, None));
    scene.venue.correct(bought.exec_id, Price::from_whole(100), Quantity::from_whole(3)).expect("it still holds");
    scene.settle();
    let blotter = scene.read(DayChoice::Today);
    let corrected = &fills(&blotter)[0];
    assert_eq!((corrected.state, corrected.counted), (FillState::Corrected, Quantity::from_whole(3)));
    assert_eq!(corrected.price, Some(Price::from_whole(100)));
    let row = position(&blotter, &marked(110));
    assert_eq!((row.end_quantity, row.average_price), (whole(3), Some(whole(100))));
    assert_eq!(row.open, Some(3 * 10 * MONEY * i128::from(MULTIPLIER)));
    assert_eq!(row.end_quantity, scene.oms.as_mut().expect("it runs").sequencer().core().position(ACCOUNT, SYMBOL).net);
}

#[test]
fn an_operators_resolution_is_a_fill_of_its_own() {
    let mut scene = Scene::new();
    scene.order(Side::Buy, 1, 98, 5);
    let order = orders(&scene.read(DayChoice::Today), &BlotterView::default())[0].clone();
    // The venue reports that it does not know the state of the order.
    scene.venue.leave();
    let lanes = scene.config.lanes.join_venue(VENUE, scene.clock.calibration()).expect("the venue has left them");
    let VenueLanes { mut reports, .. } = lanes;
    let lost = ExecutionReport {
        order_id: order.id,
        symbol: SYMBOL,
        account: ACCOUNT,
        venue: VENUE,
        side: Side::Buy.code(),
        exec_type: ExecType::OrderStatus.code(),
        status: OrdStatus::Unknown.code(),
        ..ExecutionReport::default()
    };
    let published = reports.publish(scene.clock.ticks(), Kind::ExecutionReport.code(), lost.as_bytes());
    published.expect("the OMS reads it");
    scene.settle();
    assert_eq!(
        orders(&scene.read(DayChoice::Today), &BlotterView::default())[0].status,
        BlotterStatus::Fix(OrdStatus::Unknown)
    );
    let mut resolve = Resolve {
        order: order.id.0,
        cumulative_quantity: Quantity::from_whole(2),
        status: OrdStatus::Canceled.code(),
        ..Resolve::default()
    };
    resolve.reason[..5].copy_from_slice(b"phone");
    let mut operator = scene.config.lanes.join_control(scene.clock.calibration()).expect("the OMS has made it");
    operator.publish(scene.clock.ticks(), RecordKind::Resolve.code(), resolve.as_bytes()).expect("the OMS reads it");
    scene.settle();
    let blotter = scene.read(DayChoice::Today);
    let row = &orders(&blotter, &BlotterView::default())[0];
    assert_eq!((row.status, row.filled), (BlotterStatus::Fix(OrdStatus::Canceled), Quantity::from_whole(2)));
    let rows = fills(&blotter);
    let [fill] = &rows[..] else { panic!("one fill was expected: {rows:?}") };
    assert_eq!((fill.state, fill.exec_id.0, fill.counted), (FillState::Resolved, 0, Quantity::from_whole(2)));
    assert_eq!(fill.price, Some(Price::from_whole(98)), "the OMS books it at the limit price");
    assert_eq!(position(&blotter, &BlotterView::default()).end_quantity, whole(2));
}

#[test]
fn an_unknown_symbol_is_refused_with_a_list_of_the_instruments() {
    let mut scene = Scene::new();
    scene.order(Side::Buy, 1, 98, 5);
    let blotter = scene.read(DayChoice::Today);
    for view in [
        BlotterView { symbol: Some("NOPE".to_owned()), ..BlotterView::default() },
        BlotterView { marks: [("NOPE".to_owned(), 1)].into(), ..BlotterView::default() },
        BlotterView { starts: [("NOPE".to_owned(), 1)].into(), ..BlotterView::default() },
    ] {
        let error = view.check(&blotter).expect_err("there is no such instrument");
        assert!(error.is_usage() && matches!(error, BlotterError::UnknownSymbol { .. }), "{error}");
        assert_eq!(error.to_string(), "'NOPE' is no instrument of this journal; its instruments are FIRST");
    }
    assert!(BlotterView { symbol: Some("FIRST".to_owned()), ..BlotterView::default() }.check(&blotter).is_ok());
}

#[test]
fn the_document_and_the_csv_have_the_same_columns_and_values() {
    let mut scene = Scene::new();
    scene.order(Side::Buy, 1, 101, 4);
    let blotter = scene.read(DayChoice::Today);
    let tables = BlotterView::default().tables(&blotter);
    let document = json_document(&blotter, &tables.all());
    assert_eq!(document["schema"], "tickpath.blotter/1");
    assert_eq!((&document["day"], &document["profit_method"]), (&serde_json::Value::Null, &"average_cost".into()));
    for table in tables.all() {
        let head = table.csv_head();
        let names: Vec<&str> = head.trim_end().split(',').collect();
        let (rows, lines) = (&document[table.name], table.csv_rows());
        assert_eq!((rows.as_array().map(Vec::len), lines.lines().count()), (Some(1), 1), "{rows} {lines}");
        for (name, field) in names.iter().zip(lines.trim_end().split(',')) {
            let value = match &rows[0][name] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) => text.clone(),
                number => number.to_string(),
            };
            assert_eq!(value, field, "{name} of {}", table.name);
        }
    }
}

#[test]
fn an_entered_position_is_the_start_of_the_day_and_has_its_profit() {
    let mut scene = Scene::new();
    let entered = EnterPosition {
        quantity: Quantity::from_whole(5),
        price: Price::from_whole(95),
        account: ACCOUNT,
        symbol: SYMBOL,
        reason: *b"anna: from the clearing report..",
        ..EnterPosition::default()
    };
    scene.enter(&entered);
    scene.order(Side::Sell, 1, 99, 2);
    let money = |units: i128| Some(units * i128::from(MULTIPLIER) * MONEY);
    let row = position(&scene.read(DayChoice::Today), &marked(100));
    assert_eq!((row.start_quantity, row.start_price), (whole(5), Some(whole(95))));
    assert_eq!((row.end_quantity, row.bought_quantity, row.sold_quantity), (whole(3), 0, whole(2)));
    assert_eq!((row.realised, row.open), (money(8), money(15)));
    // A change after the first fill; a second start of the day is refused there, and changes no row.
    let change = EnterPosition { quantity: Quantity::from_whole(-1), adjusts: 1, ..entered };
    scene.enter(&change);
    scene.enter(&entered);
    let row = position(&scene.read(DayChoice::Today), &marked(100));
    assert_eq!((row.start_quantity, row.end_quantity), (whole(4), whole(2)));
    let core = scene.oms.as_mut().expect("it runs").sequencer().core().position(ACCOUNT, SYMBOL);
    assert_eq!(core.net, row.end_quantity, "a position here is the core's");
}
