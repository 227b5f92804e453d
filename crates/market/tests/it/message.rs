//! Bytes from outside are checked before they become a message.

use proptest::prelude::*;
use tickpath_market::{
    AccountId, BookLevel, CancelOrder, ClientOrderId, Condition, ConditionalOrder, ExecType, ExecutionReport,
    ExtendedOrder, FeedCondition, FeedStatus, Kind, MassCancel, MassCancelType, MessageError, NewOrder, OrdStatus,
    OrderId, OrderType, PositionEffect, Price, Quantity, ReplaceConditional, ReplaceOrder, Request, Side,
    StatusRequest, SymbolId, TextId, TextIdAction, TextIdRequest, TimeInForce, Trigger, TriggerDirection, TriggerJoin,
    TriggerPriceType,
};
use zerocopy::IntoBytes;

fn new_order() -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(7),
        price: Price::from_whole(61_800),
        quantity: Quantity::from_whole(2),
        cause: 99,
        side: Side::Sell.code(),
        order_type: OrderType::Limit.code(),
        time_in_force: TimeInForce::Day.code(),
        position_effect: PositionEffect::Default.code(),
        ..NewOrder::default()
    }
}

fn mass_cancel() -> MassCancel {
    MassCancel { cancel_type: MassCancelType::All.code(), ..MassCancel::default() }
}

fn condition(price_type: TriggerPriceType, direction: TriggerDirection, price: i64) -> Condition {
    Condition {
        price: Price::from_whole(price),
        symbol: SymbolId(1),
        price_type: price_type.code(),
        direction: direction.code(),
        reserved: [0; 2],
    }
}

fn trigger(join: TriggerJoin) -> Trigger {
    let last = condition(TriggerPriceType::Last, TriggerDirection::Up, 65_000);
    Trigger::joined(last, join, condition(TriggerPriceType::Bid, TriggerDirection::Down, 60_000))
}

fn report() -> ExecutionReport {
    ExecutionReport {
        exec_type: ExecType::Trade.code(),
        status: OrdStatus::Filled.code(),
        side: Side::Buy.code(),
        ..ExecutionReport::default()
    }
}

#[test]
fn requests_read_as_they_were_written() {
    let (symbol, account) = (SymbolId(3), AccountId(4));
    let new = NewOrder { symbol, account, ..new_order() };
    let cancel = CancelOrder { client_order_id: ClientOrderId(8), cause: 5, symbol, account, ..CancelOrder::default() };
    let replace = ReplaceOrder { client_order_id: ClientOrderId(9), cause: 6, symbol, account, ..Default::default() };
    let status = StatusRequest { client_order_id: ClientOrderId(10), cause: 7, symbol, account, ..Default::default() };
    let all = MassCancel { client_order_id: ClientOrderId(11), cause: 8, symbol, account, ..mass_cancel() };
    let conditional = ConditionalOrder { order: new, trigger: trigger(TriggerJoin::And) };
    let rearm = ReplaceConditional {
        client_order_id: ClientOrderId(12),
        cause: 9,
        symbol,
        account,
        trigger: trigger(TriggerJoin::Or),
        ..Default::default()
    };
    let text_id = TextId::constant("grid-7");
    let extended = ExtendedOrder { order: new, text_id, ..Default::default() };
    let by_text = TextIdRequest {
        client_order_id: ClientOrderId(13),
        cause: 10,
        symbol,
        account,
        text_id,
        action: TextIdAction::Cancel.code(),
        ..Default::default()
    };
    for (request, kind, id, cause) in [
        (Request::Extended(extended), Kind::ExtendedOrder, 7, 99),
        (Request::ByTextId(by_text), Kind::TextIdRequest, 13, 10),
        (Request::New(new), Kind::NewOrder, 7, 99),
        (Request::Conditional(conditional), Kind::ConditionalOrder, 7, 99),
        (Request::ReplaceConditional(rearm), Kind::ReplaceConditional, 12, 9),
        (Request::Cancel(cancel), Kind::CancelOrder, 8, 5),
        (Request::Replace(replace), Kind::ReplaceOrder, 9, 6),
        (Request::Status(status), Kind::StatusRequest, 10, 7),
        (Request::MassCancel(all), Kind::MassCancel, 11, 8),
    ] {
        assert_eq!(Request::read(kind.code(), request.as_bytes()), Ok(request));
        assert_eq!((request.kind(), request.client_order_id().0, request.cause()), (kind, id, cause));
        assert_eq!((request.symbol(), request.account(), request.check()), (symbol, account, Ok(())));
    }
}

#[test]
fn a_request_of_another_length_is_refused() {
    let bytes = [1; 256];
    for (kind, right) in [
        (Kind::NewOrder, size_of::<NewOrder>()),
        (Kind::CancelOrder, size_of::<CancelOrder>()),
        (Kind::ReplaceOrder, size_of::<ReplaceOrder>()),
        (Kind::StatusRequest, size_of::<StatusRequest>()),
        (Kind::MassCancel, size_of::<MassCancel>()),
        (Kind::ConditionalOrder, size_of::<ConditionalOrder>()),
        (Kind::ReplaceConditional, size_of::<ReplaceConditional>()),
        (Kind::ExtendedOrder, size_of::<ExtendedOrder>()),
        (Kind::TextIdRequest, size_of::<TextIdRequest>()),
    ] {
        for length in (0..=bytes.len()).filter(|&length| length != right) {
            let refused = MessageError::Length { kind: kind.code(), length };
            assert_eq!(Request::read(kind.code(), &bytes[..length]), Err(refused), "{kind:?}");
        }
    }
}

#[test]
fn a_kind_that_is_no_request_is_refused() {
    let requests = [
        Kind::NewOrder,
        Kind::CancelOrder,
        Kind::ReplaceOrder,
        Kind::StatusRequest,
        Kind::MassCancel,
        Kind::ConditionalOrder,
        Kind::ReplaceConditional,
        Kind::ExtendedOrder,
        Kind::TextIdRequest,
    ]
    .map(Kind::code);
    for kind in (0..=u8::MAX).filter(|kind| !requests.contains(kind)) {
        assert_eq!(Request::read(kind, new_order().as_bytes()), Err(MessageError::Kind(kind)));
    }
    for kind in (0..=u8::MAX).filter(|&kind| kind != Kind::ExecutionReport.code()) {
        assert_eq!(ExecutionReport::read(kind, report().as_bytes()), Err(MessageError::Kind(kind)));
    }
}

#[test]
fn unknown_codes_of_an_order_are_refused() {
    check_order("side", |order, code| order.side = code, |code| Side::from_code(code).is_some());
    check_order("order_type", |order, code| order.order_type = code, |code| OrderType::from_code(code).is_some());
    check_order(
        "time_in_force",
        |order, code| order.time_in_force = code,
        |code| TimeInForce::from_code(code).is_some_and(|time| time != TimeInForce::GoodTillDate),
    );
    check_order(
        "position_effect",
        |order, code| order.position_effect = code,
        |code| PositionEffect::from_code(code).is_some(),
    );
}

/// Returns whether an order and a cancel with these bytes as their text id are read.
fn takes_text_id(bytes: &[u8]) -> bool {
    let mut text_id = TextId::default();
    text_id.0[..bytes.len()].copy_from_slice(bytes);
    let order = ExtendedOrder { order: new_order(), text_id, ..Default::default() };
    let cancel = TextIdRequest { text_id, action: TextIdAction::Cancel.code(), ..Default::default() };
    let read = Request::read(Kind::ExtendedOrder.code(), order.as_bytes());
    assert_eq!(read.is_ok(), Request::ByTextId(cancel).check().is_ok(), "{bytes:?}");
    assert!(read.is_ok() || read == Err(MessageError::TextId), "{bytes:?}");
    read.is_ok()
}

#[test]
fn a_text_id_is_printable_ascii_of_up_to_36_bytes() {
    assert!("".parse::<TextId>().is_err() && !takes_text_id(b""));
    assert!("x".repeat(37).parse::<TextId>().is_err());
    assert!(takes_text_id(&[b'x'; 36]));
    for byte in 0..=u8::MAX {
        assert_eq!(takes_text_id(&[b'a', byte]), byte.is_ascii_graphic() || byte == 0, "{byte}");
        let text = format!("a{}", char::from(byte));
        assert_eq!(text.parse::<TextId>().is_ok(), byte.is_ascii_graphic(), "{byte}");
    }
    assert!(!takes_text_id(b"a\0b"), "text behind the end");
}

#[test]
fn an_end_time_belongs_to_a_good_till_date_order() {
    let text = TextId::constant("a");
    let read = |time_in_force: TimeInForce, expire_ns, text_id| {
        let order = NewOrder { time_in_force: time_in_force.code(), ..new_order() };
        let extended = ExtendedOrder { order, expire_ns, text_id, ..Default::default() };
        assert_eq!(extended.venue_order().check(), Ok(()), "every venue takes it");
        Request::read(Kind::ExtendedOrder.code(), extended.as_bytes()).map(drop)
    };
    for &time_in_force in TimeInForce::ALL {
        let (with, without) = match time_in_force {
            TimeInForce::GoodTillDate => (Ok(()), Err(MessageError::EndTime)),
            _ => (Err(MessageError::EndTime), Ok(())),
        };
        assert_eq!((read(time_in_force, 1, text), read(time_in_force, 0, text)), (with, without), "{time_in_force:?}");
    }
    assert_eq!(read(TimeInForce::GoodTillDate, 1, TextId::default()), Ok(()), "it needs no text id");
    assert_eq!(read(TimeInForce::Day, 0, TextId::default()), Err(MessageError::TextId));
}

#[test]
fn a_text_id_request_has_a_known_action() {
    for code in 0..=u8::MAX {
        let request = TextIdRequest { text_id: TextId::constant("a"), action: code, ..Default::default() };
        let read = Request::read(Kind::TextIdRequest.code(), request.as_bytes());
        assert_eq!(read.is_ok(), TextIdAction::from_code(code).is_some(), "{code}");
    }
}

#[test]
fn unknown_codes_of_a_mass_cancel_are_refused() {
    for code in 0..=u8::MAX {
        let all = MassCancel { cancel_type: code, ..mass_cancel() };
        let unknown = MessageError::Code { field: "cancel_type", code };
        let is_known = MassCancelType::from_code(code).is_some();
        let expected = if is_known { Ok(Request::MassCancel(all)) } else { Err(unknown) };
        assert_eq!(Request::read(Kind::MassCancel.code(), all.as_bytes()), expected);
        assert_eq!(Request::MassCancel(all).check().is_ok(), is_known);
    }
}

#[test]
fn unknown_codes_of_a_feed_are_refused() {
    for code in 0..=u8::MAX {
        let unknown = |field, is_known| if is_known { Ok(()) } else { Err(MessageError::Code { field, code }) };
        let level = BookLevel { side: code, ..BookLevel::default() };
        assert_eq!(level.check(), unknown("side", code <= 2), "0 in a message that changes no level");
        let level = BookLevel { flags: code, ..BookLevel::default() };
        assert_eq!(level.check(), unknown("flags", code <= BookLevel::SNAPSHOT + BookLevel::LAST));
        let status = FeedStatus { condition: code, ..FeedStatus::default() };
        assert_eq!(status.check(), unknown("condition", FeedCondition::from_code(code).is_some()));
    }
}

#[test]
fn unknown_codes_of_a_trigger_are_refused() {
    let codes: [fn(&mut Trigger) -> &mut u8; 5] = [
        |trigger| &mut trigger.join,
        |trigger| &mut trigger.first.price_type,
        |trigger| &mut trigger.first.direction,
        |trigger| &mut trigger.second.price_type,
        |trigger| &mut trigger.second.direction,
    ];
    for (index, field) in codes.into_iter().enumerate() {
        for code in 0..=u8::MAX {
            let mut trigger = trigger(TriggerJoin::And);
            *field(&mut trigger) = code;
            let is_known = match index {
                0 => TriggerJoin::from_code(code).is_some(),
                1 | 3 => TriggerPriceType::from_code(code).is_some(),
                _ => TriggerDirection::from_code(code).is_some(),
            };
            let order = ConditionalOrder { order: new_order(), trigger };
            let read = Request::read(Kind::ConditionalOrder.code(), order.as_bytes());
            assert_eq!(read.is_ok(), is_known, "code {index} is {code}");
            let replace = ReplaceConditional { trigger, ..Default::default() };
            assert_eq!(Request::ReplaceConditional(replace).check().is_ok(), is_known, "code {index} is {code}");
        }
    }
    // A condition that is not read may have any codes.
    let alone = Trigger { second: Condition::default(), ..trigger(TriggerJoin::Alone) };
    assert_eq!(alone.check(), Ok(()));
}

/// Returns whether the trigger fires at a last price and a bid, where they are known.
fn fires(join: TriggerJoin, last: Option<i64>, bid: Option<i64>) -> bool {
    trigger(join).fires(|condition| {
        let is_last = condition.price_type == TriggerPriceType::Last.code();
        if is_last { last } else { bid }.map(Price::from_whole)
    })
}

#[test]
fn a_trigger_fires_by_the_known_prices() {
    use TriggerJoin::{Alone, And, Or};
    for (last, bid, alone, and, or) in [
        (None, None, false, false, false),
        (Some(64_999), Some(60_001), false, false, false),
        (Some(65_000), None, true, false, true),
        (None, Some(60_000), false, false, true),
        (Some(65_000), Some(60_000), true, true, true),
        (Some(70_000), Some(61_000), true, false, true),
    ] {
        let found = [Alone, And, Or].map(|join| fires(join, last, bid));
        assert_eq!(found, [alone, and, or], "last {last:?}, bid {bid:?}");
    }
}

#[test]
fn an_order_id_holds_an_epoch_and_a_sequence() {
    for (epoch, sequence) in [(0, 1), (1, 0), (7, 123_456_789), ((1 << 24) - 1, (1 << 40) - 1)] {
        let id = OrderId::new(epoch, sequence);
        assert_eq!((id.epoch(), id.sequence()), (epoch, sequence));
    }
    assert!(OrderId::new(2, 1) > OrderId::new(1, (1 << 40) - 1), "a later start has higher ids");
}

#[test]
fn unknown_codes_of_a_report_are_refused() {
    check_report("exec_type", |report, code| report.exec_type = code, |code| ExecType::from_code(code).is_some());
    check_report("status", |report, code| report.status = code, |code| OrdStatus::from_code(code).is_some());
}

proptest! {
    #[test]
    fn random_bytes_are_a_whole_message_or_an_error(
        kind in prop_oneof![
            any::<u8>(), Just(32_u8), Just(33_u8), Just(34_u8), Just(35_u8), Just(36_u8), Just(37_u8), Just(48_u8)
        ],
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..128),
            prop::collection::vec(0_u8..5, 40..=56),
            prop::collection::vec(0_u8..3, 88),
            prop::collection::vec(0_u8..5, 104),
        ],
    ) {
        if let Ok(request) = Request::read(kind, &bytes) {
            prop_assert_eq!(request.kind().code(), kind);
            prop_assert_eq!(request.as_bytes(), &bytes[..]);
        }
        if let Ok(report) = ExecutionReport::read(kind, &bytes) {
            prop_assert_eq!(kind, Kind::ExecutionReport.code());
            prop_assert_eq!(report.as_bytes(), &bytes[..]);
        }
    }
}

fn check_order(field: &'static str, set: fn(&mut NewOrder, u8), is_known: fn(u8) -> bool) {
    for code in 0..=u8::MAX {
        let mut order = new_order();
        set(&mut order, code);
        let unknown = MessageError::Code { field, code };
        let expected = if is_known(code) { Ok(Request::New(order)) } else { Err(unknown) };
        assert_eq!(Request::read(Kind::NewOrder.code(), order.as_bytes()), expected);
    }
}

fn check_report(field: &'static str, set: fn(&mut ExecutionReport, u8), is_known: fn(u8) -> bool) {
    for code in 0..=u8::MAX {
        let mut report = report();
        set(&mut report, code);
        let unknown = MessageError::Code { field, code };
        let expected = if is_known(code) { Ok(report) } else { Err(unknown) };
        assert_eq!(ExecutionReport::read(Kind::ExecutionReport.code(), report.as_bytes()), expected);
    }
}
