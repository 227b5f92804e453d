//! The path of an order: OMS and venue polled in turn by one thread.

use tickpath_market::ReplaceOrder;
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, Kind, NewOrder, OrdStatus, OrderDenied, Price, Quantity, Request,
    Side, SymbolId,
};
use tickpath_oms_core::Denial;
use tickpath_oms_runtime::LanesConfig;

use crate::{ClientRequest, ReceivedMessage, SECOND, SLOW, Scene, TIGHT, cancel, limit, poll, replace, settle};

#[test]
fn an_order_is_acknowledged_accepted_and_filled_against_the_market() {
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let mut client = scene.client(0);
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    client.send(limit(Side::Buy, 1, 101, 2));
    poll(&mut oms);
    assert_eq!(client.receive_reports(), [(1, ExecType::PendingNew, OrdStatus::PendingNew)], "before the venue has it");
    settle(&mut oms, &mut venue);
    let received = client.receive();
    let summaries: Vec<_> = received.iter().map(ReceivedMessage::summary).collect();
    assert_eq!(summaries, [(1, ExecType::New, OrdStatus::New), (1, ExecType::Trade, OrdStatus::Filled)]);
    let ReceivedMessage::Report(fill) = received[1] else { panic!("a fill is a report") };
    assert_eq!((fill.last_price, fill.last_quantity), (Price::from_whole(101), Quantity::from_whole(2)));
    assert_eq!((fill.cumulative_quantity, fill.leaves_quantity), (Quantity::from_whole(2), Quantity::ZERO));

    // A resting order is filled when the market reaches its price.
    client.send(limit(Side::Sell, 2, 103, 4));
    settle(&mut oms, &mut venue);
    scene.tick(104, 105);
    settle(&mut oms, &mut venue);
    assert_eq!(
        client.receive_reports(),
        [
            (2, ExecType::PendingNew, OrdStatus::PendingNew),
            (2, ExecType::New, OrdStatus::New),
            (2, ExecType::Trade, OrdStatus::Filled),
        ]
    );
    let counts = oms.sequencer().counts();
    assert_eq!((counts.done, counts.working, counts.sending, oms.sequencer().invalid_messages()), (2, 0, 0, 0));
}

#[test]
fn an_order_is_replaced_and_canceled() {
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let mut client = scene.client(0);
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    client.send(limit(Side::Buy, 1, 90, 5));
    settle(&mut oms, &mut venue);
    client.send(replace(2, 1, 91, 7));
    settle(&mut oms, &mut venue);
    let received = client.receive();
    let Some(ReceivedMessage::Report(replaced)) = received.last() else {
        panic!("the last word is a report: {received:?}")
    };
    assert_eq!((replaced.price, replaced.leaves_quantity), (Price::from_whole(91), Quantity::from_whole(7)));
    client.send(cancel(3, 1));
    settle(&mut oms, &mut venue);
    let summaries: Vec<_> = received.iter().map(ReceivedMessage::summary).chain(client.receive_reports()).collect();
    assert_eq!(
        summaries,
        [
            (1, ExecType::PendingNew, OrdStatus::PendingNew),
            (1, ExecType::New, OrdStatus::New),
            (2, ExecType::PendingReplace, OrdStatus::PendingReplace),
            (2, ExecType::Replaced, OrdStatus::New),
            (3, ExecType::PendingCancel, OrdStatus::PendingCancel),
            (3, ExecType::Canceled, OrdStatus::Canceled),
        ]
    );
    assert_eq!(venue.venue().resting_orders(), 0);
}

#[test]
fn each_check_denies_on_the_requesting_session() {
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let (mut client, mut other) = (scene.client(0), scene.client(1));
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    let mut denied = |request: ClientRequest, denial: Denial| {
        let id = request.0.client_order_id();
        client.send(request.0);
        settle(&mut oms, &mut venue);
        match client.receive()[..] {
            [ReceivedMessage::Denied(OrderDenied { client_order_id, code, .. })] => {
                assert_eq!((client_order_id, code), (id, denial.code()), "{denial}");
            }
            ref others => panic!("one denial was expected ({denial}): {others:?}"),
        }
    };
    let tight = |id: u64, price: i64, lots: i64| NewOrder { account: TIGHT, ..limit(Side::Buy, id, price, lots) };
    let nobody = AccountId(9);
    denied(tight(0, 90, 1).into(), Denial::MissingClientOrderId);
    denied(NewOrder { account: nobody, ..tight(2, 90, 1) }.into(), Denial::UnknownAccount);
    denied(NewOrder { symbol: SymbolId(9), ..tight(3, 90, 1) }.into(), Denial::UnknownSymbol);
    denied(tight(3, 90, 1).into(), Denial::DuplicateClientOrderId);
    denied(NewOrder { symbol: SymbolId(1), ..tight(4, 90, 1) }.into(), Denial::NoReference);
    denied(cancel(5, 77).into(), Denial::UnknownOrder);
    denied(tight(6, 90, 0).into(), Denial::MinimumQuantity);
    denied(tight(7, 90, 1_001).into(), Denial::MaximumQuantity);
    denied(tight(8, 150, 1).into(), Denial::PriceCollar);
    denied(tight(9, 90, 600).into(), Denial::Notional);
    scene.clock.advance(61 * SECOND);
    denied(tight(10, 90, 1).into(), Denial::StaleReference);
    assert!(other.receive().is_empty(), "the other session is told nothing");
    assert!(scene.to_venue().is_empty(), "the venue is asked nothing");
}

#[test]
fn limits_count_requests_in_flight() {
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let mut client = scene.client(0);
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    let mut last = |client: &mut crate::Client, request: ClientRequest| {
        client.send(request.0);
        settle(&mut oms, &mut venue);
        match client.receive().last() {
            Some(ReceivedMessage::Denied(denied)) => Denial::from_code(denied.code),
            _ => None,
        }
    };
    let of = |account: AccountId, id: u64, quantity: i64| NewOrder { account, ..limit(Side::Buy, id, 90, quantity) };
    assert_eq!(last(&mut client, of(TIGHT, 1, 400).into()), None);
    assert_eq!(last(&mut client, of(TIGHT, 2, 400).into()), Some(Denial::Position));
    assert_eq!(last(&mut client, of(TIGHT, 3, 300).into()), None);
    assert_eq!(last(&mut client, of(SLOW, 4, 1).into()), None);
    assert_eq!(last(&mut client, of(SLOW, 5, 1).into()), Some(Denial::MessageRate));
    scene.clock.advance(SECOND);
    assert_eq!(last(&mut client, of(SLOW, 6, 1).into()), None, "the next window");
    let give_up = |id: u64| {
        let (client_order_id, original) = (ClientOrderId(id), ClientOrderId(1));
        Request::Cancel(CancelOrder { client_order_id, original, account: TIGHT, ..CancelOrder::default() })
    };
    client.send(give_up(7));
    assert_eq!(last(&mut client, give_up(8).into()), None, "the first is answered last");
    assert_eq!(last(&mut client, give_up(9).into()), Some(Denial::TooLate));
}

#[test]
fn two_requests_for_one_order_do_not_cross() {
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let mut client = scene.client(0);
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    client.send(limit(Side::Buy, 1, 90, 5));
    client.send(cancel(2, 1));
    client.send(cancel(3, 1));
    client.send(replace(4, 1, 91, 5));
    poll(&mut oms);
    let codes = |received: &[ReceivedMessage]| -> Vec<Option<u16>> {
        let code = |received: &ReceivedMessage| match received {
            ReceivedMessage::Denied(denied) => Some(denied.code),
            ReceivedMessage::Report(_) => None,
        };
        received.iter().map(code).collect()
    };
    let pending = Some(Denial::AlreadyPending.code());
    assert_eq!(codes(&client.receive()), [None, None, pending, pending]);
    settle(&mut oms, &mut venue);
    assert_eq!(venue.venue().resting_orders(), 0);
}

#[test]
fn sessions_do_not_receive_each_others_reports() {
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let (mut first, mut second) = (scene.client(0), scene.client(1));
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    // The same id in both sessions, two sides of one trade, and a cancel of the other session's order.
    first.send(limit(Side::Buy, 1, 100, 3));
    settle(&mut oms, &mut venue);
    second.send(limit(Side::Sell, 1, 100, 2));
    second.send(limit(Side::Sell, 2, 110, 1));
    first.send(cancel(3, 2));
    settle(&mut oms, &mut venue);
    let received = first.receive();
    let reports = received.iter().filter(|message| matches!(message, ReceivedMessage::Report(_)));
    assert_eq!(
        reports.map(ReceivedMessage::summary).collect::<Vec<_>>(),
        [
            (1, ExecType::PendingNew, OrdStatus::PendingNew),
            (1, ExecType::New, OrdStatus::New),
            (1, ExecType::Trade, OrdStatus::PartiallyFilled),
        ]
    );
    let is_unknown_order =
        |m: &&ReceivedMessage| matches!(m, ReceivedMessage::Denied(d) if d.code == Denial::UnknownOrder.code());
    assert_eq!(received.iter().filter(is_unknown_order).count(), 1, "{received:?}");
    assert_eq!(
        second.receive_reports(),
        [
            (1, ExecType::PendingNew, OrdStatus::PendingNew),
            (2, ExecType::PendingNew, OrdStatus::PendingNew),
            (1, ExecType::New, OrdStatus::New),
            (1, ExecType::Trade, OrdStatus::Filled),
            (2, ExecType::New, OrdStatus::New),
        ]
    );
}

#[test]
fn requests_wait_for_an_absent_venue() {
    let mut scene = Scene::new();
    let mut oms = scene.oms();
    let mut client = scene.client(0);
    scene.tick(99, 101);
    poll(&mut oms);
    for id in 1..=3 {
        client.send(limit(Side::Buy, id, 90, 5));
    }
    client.send(cancel(4, 1));
    poll(&mut oms);
    assert_eq!(oms.sequencer().queued(), 2, "what never left is taken back here");
    let reports: Vec<_> = client.receive_reports().iter().map(|(id, exec_type, _)| (*id, *exec_type)).collect();
    let pending = ExecType::PendingNew;
    assert_eq!(reports, [(1, pending), (2, pending), (3, pending), (4, ExecType::Canceled)], "each is answered");
    let mut venue = scene.venue();
    settle(&mut oms, &mut venue);
    assert_eq!((oms.sequencer().queued(), venue.venue().resting_orders()), (0, 2));
    let kinds: Vec<u8> = scene.to_venue().iter().map(|frame| frame.0).collect();
    assert_eq!(kinds, [Kind::NewOrder.code(); 2]);
    let answers: Vec<_> = client.receive_reports().iter().map(|(id, exec_type, _)| (*id, *exec_type)).collect();
    assert_eq!(answers, [(2, ExecType::New), (3, ExecType::New)]);
}

#[test]
fn requests_wait_for_room_in_the_venues_lane() {
    const ORDERS: u64 = 2_000;
    let mut scene = Scene::new();
    // A page for each of eight segments: room for some 500 requests.
    scene.config.lanes = LanesConfig { request_bytes: 8 * 4096, ..scene.config.lanes.clone() };
    scene.config.trading.venues[0].max_queued = u32::MAX;
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let mut client = scene.client(0);
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    for id in 1..=ORDERS {
        let order = limit(Side::Buy, id, 90, 1);
        if client.try_send(order).is_err() {
            while poll(&mut oms) > 0 {}
            client.send(order);
        }
    }
    while poll(&mut oms) > 0 {}
    assert!(oms.sequencer().queued() > 1_000, "{} wait", oms.sequencer().queued());
    settle(&mut oms, &mut venue);
    assert_eq!((oms.sequencer().queued(), venue.venue().resting_orders()), (0, ORDERS as usize));
    let accepted = client.receive_reports().into_iter().filter(|word| word.1 == ExecType::New).map(|word| word.0);
    assert!(accepted.eq(1..=ORDERS), "every order once, in the order in which they were sent");
}

#[test]
fn a_replace_is_checked_against_the_price_of_its_own_order() {
    let mut scene = Scene::new();
    let mut oms = scene.oms();
    let (mut venue, mut client) = (scene.venue(), scene.client(0));
    scene.tick(99, 101);
    client.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    let Request::Replace(honest) = replace(2, 1, 91, 1) else { unreachable!("it makes one") };
    // The second symbol has no market: a replace that names it is checked against the first symbol's price.
    client.send(Request::Replace(ReplaceOrder { symbol: SymbolId(1), ..honest }));
    settle(&mut oms, &mut venue);
    let reports: Vec<_> = client.receive_reports().iter().map(|reports| reports.1).collect();
    assert_eq!(reports, [ExecType::PendingNew, ExecType::New, ExecType::PendingReplace, ExecType::Replaced]);
}
