//! Events of orders: fills with their details, ends, and events that come twice or are of others.

use tickpath_market::{Currency, ExecType, Liquidity, OrdStatus, Price, Quantity};

use crate::driver::{ACCOUNT, BTCUSDT, Driver, buy};
use crate::exchange::ScriptedExchange;
use crate::frames::{EventFrame, renamed, text_of};

const NEW: (ExecType, OrdStatus) = (ExecType::New, OrdStatus::New);
const PARTLY_FILLED: (ExecType, OrdStatus) = (ExecType::Trade, OrdStatus::PartiallyFilled);

/// Places an order, sends these events of it, and returns the line once it has handled them.
fn after(events: &[EventFrame]) -> Driver {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.place(&exchange, 0, &buy(1), 77);
    events.iter().for_each(|event| exchange.send(&event.text()));
    driver.settle(&exchange);
    driver
}

fn accepted() -> EventFrame {
    EventFrame::new(&text_of(1), 77)
}

#[test]
fn a_fill_has_its_quantities_and_a_detail_with_fee_role_and_times() {
    for (is_maker, role) in [(true, Liquidity::Maker), (false, Liquidity::Taker)] {
        let driver = after(&[EventFrame { is_maker, ..accepted().trade(4, "0.2", "0.2", "PARTIALLY_FILLED") }]);
        let report = driver.report(1, ExecType::Trade).expect("a fill");
        assert_eq!((report.last_price, report.last_quantity), (Price(5_999_950_000_000), Quantity(20_000_000)));
        assert_eq!((report.cumulative_quantity, report.leaves_quantity), (Quantity(20_000_000), Quantity(30_000_000)));
        assert_eq!((report.price, report.client_order_id.0), (Price::from_whole(60_000), 0));
        // Instrument 3, trade 4, a buy.
        assert_eq!(report.exec_id.0, 4 << 41 | 4 << 1);
        let detail = driver.detail(1);
        assert_eq!((detail.exec_id, detail.liquidity), (report.exec_id, role.code()));
        assert_eq!(i128::from_le_bytes(detail.fee), 1_234 * 100_000_000, "in units of 10⁻¹⁶");
        assert_eq!(detail.fee_currency, "BNB".parse::<Currency>().expect("a currency"));
        let times = (detail.venue_received_ns, detail.venue_sent_ns);
        assert_eq!(times, (1_700_000_000_122_000_000, 1_700_000_000_123_000_000));
    }
}

#[test]
fn a_filled_order_is_over() {
    let driver = after(&[
        accepted().trade(4, "0.2", "0.2", "PARTIALLY_FILLED"),
        accepted().trade(5, "0.3", "0.5", "FILLED"),
        accepted().canceled(&renamed(&text_of(1), 'c'), "0.5"),
    ]);
    assert_eq!(driver.story(1), [NEW, PARTLY_FILLED, (ExecType::Trade, OrdStatus::Filled)]);
    assert_eq!(driver.report(1, ExecType::Trade).expect("a fill").leaves_quantity.0, 0);
}

#[test]
fn duplicates_are_passed_on_once_and_the_first_end_holds() {
    let trade = accepted().trade(4, "0.2", "0.2", "PARTIALLY_FILLED");
    let expired = accepted().expired("0.2", "EXPIRED");
    let canceled = accepted().canceled(&renamed(&text_of(1), 'c'), "0.2");
    let events = [accepted(), trade.clone(), accepted(), trade, expired.clone(), canceled, expired];
    let driver = after(&events);
    assert_eq!(driver.story(1), [NEW, PARTLY_FILLED, (ExecType::Expired, OrdStatus::Expired)]);
}

#[test]
fn an_end_has_the_exchanges_reason() {
    let driver = after(&[accepted().expired("0", "EXPIRED_IN_MATCH")]);
    assert_eq!(driver.story(1), [NEW, (ExecType::Expired, OrdStatus::Expired)]);
    let rejected = EventFrame { kind: "REJECTED", state: "REJECTED", reason: "INSUFFICIENT_BALANCES", ..accepted() };
    let driver = after(&[rejected]);
    assert_eq!(driver.story(1), [NEW, (ExecType::Rejected, OrdStatus::Rejected)]);
    assert_eq!(driver.text(1), "INSUFFICIENT_BALANCES");
}

#[test]
fn self_trade_prevention_ends_an_order_and_a_part_of_it_puts_it_in_doubt() {
    let prevented = EventFrame { kind: "TRADE_PREVENTION", ..accepted().expired("0", "EXPIRED_IN_MATCH") };
    assert_eq!(after(&[prevented]).story(1), [NEW, (ExecType::Expired, OrdStatus::Expired)]);
    let part = EventFrame { kind: "TRADE_PREVENTION", ..accepted() };
    assert_eq!(after(&[part]).story(1), [NEW, (ExecType::OrderStatus, OrdStatus::Unknown)]);
}

#[test]
fn an_event_that_this_line_does_not_know_puts_the_order_in_doubt() {
    for event in [EventFrame { kind: "SPLIT", ..accepted() }, EventFrame { state: "FROZEN", ..accepted() }] {
        assert_eq!(after(&[event]).story(1), [NEW, (ExecType::OrderStatus, OrdStatus::Unknown)]);
    }
}

#[test]
fn an_event_that_cannot_be_read_leaves_its_order_in_doubt_and_so_does_the_end_behind_it() {
    let in_doubt = (ExecType::OrderStatus, OrdStatus::Unknown);
    let huge = accepted().trade(5, "92233720368547758.08", "0.2", "PARTIALLY_FILLED");
    let driver = after(&[huge.clone(), huge.clone()]);
    assert_eq!(driver.story(1), [NEW, in_doubt]);
    let named = driver.text(1);
    assert!(named.starts_with("trade 5: the field 'l' of a message is '92233720368547758.08'"), "{named}");

    let driver = after(&[
        accepted().trade(4, "0.1", "0.1", "PARTIALLY_FILLED"),
        huge.clone(),
        accepted().trade(6, "0.1", "0.3", "PARTIALLY_FILLED"),
        accepted().canceled(&renamed(&text_of(1), 'c'), "0.3"),
    ]);
    assert_eq!(driver.story(1), [NEW, PARTLY_FILLED, in_doubt, PARTLY_FILLED, in_doubt]);

    let driver = after(&[accepted().trade(1 << 40, "0.1", "0.1", "PARTIALLY_FILLED")]);
    assert_eq!(driver.story(1), [NEW, in_doubt]);
    assert_eq!(driver.text(1), "trade 1099511627776: its id is too large for this line");

    let foreign = EventFrame { client: "web_0123".to_owned(), ..huge };
    assert_eq!(after(&[foreign]).story(1), [NEW]);
}

#[test]
fn a_trade_without_a_quantity_is_none() {
    let nothing = accepted().trade(4, "0.00000000", "0.00000000", "FILLED");
    assert_eq!(after(&[nothing]).story(1), [NEW]);
}

#[test]
fn a_cancel_from_elsewhere_is_unsolicited() {
    let driver = after(&[accepted().canceled("web_0123", "0")]);
    assert_eq!(driver.story(1), [NEW, (ExecType::Canceled, OrdStatus::Canceled)]);
    assert_eq!(driver.report(1, ExecType::Canceled).expect("a cancel").client_order_id.0, 0);
}

#[test]
fn an_amendment_from_elsewhere_is_passed_on_once() {
    let amended = EventFrame { kind: "REPLACED", quantity: "0.40000000", execution_id: 50, ..accepted() };
    let driver = after(&[amended.clone(), amended]);
    assert_eq!(driver.story(1), [NEW, (ExecType::Replaced, OrdStatus::New)]);
    let report = driver.report(1, ExecType::Replaced).expect("an amendment");
    assert_eq!((report.client_order_id.0, report.leaves_quantity.0), (0, 40_000_000));
}

#[test]
fn orders_of_other_programs_and_other_instruments_are_left_out() {
    let own = text_of(1);
    let foreign = ["web_0123", "", "x", "tQY000000000017", "tQZ0000000000!7", "tQZ00000000001", "tQZ0000000000107"];
    let mut events: Vec<EventFrame> = foreign.iter().map(|text| EventFrame::new(text, 99)).collect();
    events.push(EventFrame::new(&format!("{own}-0-0"), 99));
    events.push(EventFrame::new(&format!("{own}-1"), 99));
    events.push(EventFrame::new(&format!("{own}-1-2-3"), 99));
    let driver = after(&events);
    assert_eq!(driver.story(1), [NEW]);
    let others: Vec<u64> = driver.reports().iter().map(|report| report.order_id.0).collect();
    assert!(others.iter().all(|order| *order == 1 || *order >= 1_000_000), "{others:?}");

    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    exchange.send(&EventFrame::new(&text_of(2), 99).text().replace("BTCUSDT", "BNBUSDT"));
    driver.settle(&exchange);
    assert_eq!(driver.reports().len(), 1, "the marker alone");
}

#[test]
fn an_order_that_this_process_did_not_send_is_reported_by_its_text() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    // The second replacement of order 5, after 0.1 was filled: fxSK are 10,000,000 units.
    let text = format!("{}-2-fxSK", text_of(5));
    exchange.send(&EventFrame::new(&text, 80).trade(9, "0.2", "0.3", "PARTIALLY_FILLED").text());
    let report = driver.until_report(5, ExecType::Trade);
    assert_eq!((report.cumulative_quantity.0, report.leaves_quantity.0), (40_000_000, 20_000_000));
    assert_eq!((report.account, report.symbol), (ACCOUNT, BTCUSDT));
}
