//! OMSes with the same order ids at one exchange: each has its own orders, and cannot reach the orders of others.

use tickpath_market::{
    AccountId, ClientOrderId, ExecutionReport, MassCancel, MassCancelType, OrderId, Request, Side, StatusRequest,
};
use tickpath_venue_sim::RejectReason;

use crate::naive::{CANCEL_REJECTED, CANCELED, FILLED, NEW, Naive, ORDER_STATUS, REJECTED, TRADE};
use crate::random_commands::{Command, Commands, seed};
use crate::sockets::{ExchangeFolder, RawLine, summaries, until};

/// The identities of two OMSes.
const ONE: u64 = 0x1111;
const OTHER: u64 = 0x2222;

const UNKNOWN_ORDER: u16 = RejectReason::UnknownOrder.code();

/// Requests of the comparison.
const REQUESTS: usize = 3_000;

#[test]
fn two_omses_with_equal_order_ids_have_orders_of_their_own() {
    let site = ExchangeFolder::new("");
    let _exchange = site.start();
    let (mut one, mut other) = (RawLine::up(&site, 1, ONE), RawLine::up(&site, 2, OTHER));
    assert_eq!(summaries(&one.order(Side::Buy, 7, 100)), [(NEW, 7, 0, 100)]);
    assert_eq!(summaries(&other.order(Side::Buy, 7, 101)), [(NEW, 7, 0, 101)], "the id is another OMS's, too");
    assert_eq!(summaries(&one.order(Side::Buy, 8, 99)), [(NEW, 8, 0, 99)]);
    // Each OMS names its own order by the shared id.
    assert_eq!(summaries(&other.cancel(7)), [(CANCELED, 7, 0, 101)]);
    assert_eq!(summaries(&one.ask(&status(7))), [(ORDER_STATUS, 7, 0, 100)], "the order of the other OMS rests");
    // An order of the other OMS is unknown to a cancel and to a question.
    assert_eq!(summaries(&other.cancel(8)), [(CANCEL_REJECTED, 8, UNKNOWN_ORDER, 0)]);
    assert_eq!(summaries(&other.ask(&status(8))), [(ORDER_STATUS, 8, UNKNOWN_ORDER, 0)]);
    // They trade with each other, and each receives reports on its own order under its own id.
    assert_eq!(summaries(&other.order(Side::Sell, 9, 100)), [(NEW, 9, 0, 100), (TRADE, 9, 0, 100)]);
    let from = one.reports.len();
    let mut news = Vec::new();
    until(
        || {
            one.turn();
            news = summaries(&one.reports[from..]);
            !news.is_empty()
        },
        || "the fill".to_owned(),
    );
    assert_eq!(news, [(TRADE, 7, 0, 100)]);
    // An id is used up only for the OMS that used it.
    assert_eq!(summaries(&one.order(Side::Buy, 7, 100)), [(REJECTED, 7, RejectReason::DuplicateId.code(), 100)]);
    assert_eq!(summaries(&other.cancel(9)), [(CANCEL_REJECTED, 9, RejectReason::TooLate.code(), 0)]);
    assert_eq!(summaries(&one.cancel(8)), [(CANCELED, 8, 0, 99)]);
}

#[test]
fn a_mass_cancel_covers_the_orders_of_its_oms() {
    let site = ExchangeFolder::new("");
    let _exchange = site.start();
    let (mut one, mut other) = (RawLine::up(&site, 1, ONE), RawLine::up(&site, 2, OTHER));
    for id in [1, 2] {
        one.order(Side::Buy, id, 100);
        other.order(Side::Buy, id, 100);
    }
    let all = Request::MassCancel(MassCancel {
        client_order_id: ClientOrderId(5),
        account: AccountId(4),
        cancel_type: MassCancelType::All.code(),
        ..MassCancel::default()
    });
    assert_eq!(summaries(&one.ask(&all)), [(CANCELED, 1, 0, 100), (CANCELED, 2, 0, 100)]);
    for id in [1, 2] {
        assert_eq!(summaries(&other.cancel(id)), [(CANCELED, id, 0, 100)], "it rested until now");
    }
}

#[test]
fn a_status_of_all_orders_covers_those_of_its_oms() {
    let site = ExchangeFolder::new("");
    let _exchange = site.start();
    let (mut one, mut other) = (RawLine::up(&site, 1, ONE), RawLine::up(&site, 2, OTHER));
    one.order(Side::Buy, 7, 100);
    one.order(Side::Buy, 8, 99);
    other.order(Side::Buy, 7, 98);
    // This sale fills order 7 of the first OMS.
    other.order(Side::Sell, 9, 100);
    one.cancel(8);
    one.order(Side::Buy, 6, 97);
    // The answer uses the line of the question, whatever line the orders used.
    let mut second = RawLine::up(&site, 3, ONE);
    let answer = second.ask(&all(5));
    assert_eq!(
        summaries(&answer),
        [
            (TRADE, 7, 0, 100),
            (ORDER_STATUS, 7, 0, 100),
            (ORDER_STATUS, 8, 0, 99),
            (ORDER_STATUS, 6, 0, 97),
            (ORDER_STATUS, 0, 0, 0)
        ]
    );
    let states = |report: &ExecutionReport| (report.status, report.cumulative_quantity.0, report.leaves_quantity.0);
    let states: Vec<(u8, i64, i64)> = answer.iter().map(states).collect();
    assert_eq!(states, [(FILLED, 5, 0), (FILLED, 5, 0), (CANCELED, 0, 0), (NEW, 0, 5), (NEW, 0, 0)]);
    assert!(answer.iter().all(|report| report.client_order_id == ClientOrderId(5)), "{answer:?}");
    assert!(answer[..4].iter().all(|report| !report.ends_status_answer()) && answer[4].ends_status_answer());
    assert_eq!(
        summaries(&other.ask(&all(6))),
        [(ORDER_STATUS, 7, 0, 98), (TRADE, 9, 0, 100), (ORDER_STATUS, 9, 0, 100), (ORDER_STATUS, 0, 0, 0)]
    );
    // An OMS without orders gets an empty answer; the question changes nothing.
    let mut third = RawLine::up(&site, 4, 0x3333);
    assert_eq!(summaries(&third.ask(&all(7))), [(ORDER_STATUS, 0, 0, 0)]);
    assert_eq!(summaries(&second.cancel(6)), [(CANCELED, 6, 0, 97)]);
}

#[test]
fn a_killed_exchange_recovers_the_owners_of_its_orders() {
    let site = ExchangeFolder::new("");
    let exchange = site.start();
    let (mut one, mut other) = (RawLine::up(&site, 1, ONE), RawLine::up(&site, 2, OTHER));
    one.order(Side::Buy, 7, 100);
    other.order(Side::Buy, 7, 101);
    one.order(Side::Buy, 8, 99);
    drop(exchange);
    let _exchange = site.start();
    let (mut one, mut other) = (one.again(&site, 2, ONE), other.again(&site, 2, OTHER));
    assert_eq!(summaries(&other.cancel(8)), [(CANCEL_REJECTED, 8, UNKNOWN_ORDER, 0)]);
    assert_eq!(summaries(&one.cancel(7)), [(CANCELED, 7, 0, 100)]);
    assert_eq!(summaries(&other.cancel(7)), [(CANCELED, 7, 0, 101)]);
    // Another line of the same OMS can cancel it too.
    let mut second = RawLine::up(&site, 3, ONE);
    assert_eq!(summaries(&second.cancel(8)), [(CANCELED, 8, 0, 99)]);
}

#[test]
fn unnamed_lines_share_their_orders_and_keep_them_once_named() {
    let site = ExchangeFolder::new("");
    let exchange = site.start();
    let (mut first, mut second) = (RawLine::old(&site, 1), RawLine::old(&site, 2));
    for id in [1, 2, 3] {
        assert_eq!(summaries(&first.order(Side::Buy, id, 100)), [(NEW, id, 0, 100)]);
    }
    assert_eq!(summaries(&second.cancel(1)), [(CANCELED, 1, 0, 100)], "one space, as ever");
    drop(exchange);
    let _exchange = site.start();
    // The OMS of both lines has a later version now.
    let (mut first, mut second) = (first.again(&site, 2, ONE), second.again(&site, 2, ONE));
    let mut stranger = RawLine::up(&site, 3, OTHER);
    assert_eq!(summaries(&stranger.cancel(2)), [(CANCEL_REJECTED, 2, UNKNOWN_ORDER, 0)]);
    assert_eq!(summaries(&second.cancel(2)), [(CANCELED, 2, 0, 100)]);
    assert_eq!(summaries(&first.cancel(3)), [(CANCELED, 3, 0, 100)]);
    // From then on its lines belong to no other OMS.
    let mut thief = RawLine::named(&site, 1, OTHER, b"thief");
    assert!(thief.await_refusal().contains("belong to another OMS"));
}

/// The naive venue has one id space, in which each OMS has its own part by a bijection: each OMS receives the reports
/// that it would receive if the other had no ids at all.
#[test]
fn two_owners_get_the_reports_of_two_naive_id_spaces() {
    let seed = seed();
    let site = ExchangeFolder::new("");
    let _exchange = site.start();
    let mut wires = [RawLine::up(&site, 1, ONE), RawLine::up(&site, 2, OTHER)];
    let mut commands = [Commands::new(seed, false), Commands::new(seed ^ 1, false)];
    let (mut naive, mut expected) = (Naive::default(), [Vec::new(), Vec::new()]);
    for number in 0..REQUESTS {
        // Irregular turns, so that ids meet in any order.
        let owner = usize::from((number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61 < 4);
        let Command::Request(request) = commands[owner].draw() else { continue };
        wires[owner].ask(&request);
        let command = Command::Request(inward(request, owner as u64));
        for report in naive.apply(1, &command).expect("only the operator is refused") {
            let (owner, report) = outward(report);
            expected[owner].push(report);
        }
    }
    for (owner, wire) in wires.iter_mut().enumerate() {
        let wanted = expected[owner].len();
        until(
            || {
                wire.turn();
                wire.reports.len() >= wanted
            },
            || format!("seed {seed}: {wanted} reports of owner {owner}"),
        );
        let received: Vec<ExecutionReport> =
            wire.reports.iter().map(|report| ExecutionReport { venue_stamp: 1, ..*report }).collect();
        assert!(received.len() >= 1_000, "seed {seed}: {} reports compare little", received.len());
        for (number, (received, expected)) in received.iter().zip(&expected[owner]).enumerate() {
            assert_eq!(received, expected, "seed {seed}, owner {owner}, report {number}");
        }
        assert_eq!(received.len(), wanted, "seed {seed}, owner {owner}");
    }
}

/// Returns a request with the ids and the account of its owner in the naive venue.
fn inward(mut request: Request, owner: u64) -> Request {
    let id = |id: &mut ClientOrderId| id.0 = id.0 * 2 + owner;
    let account = |account: &mut AccountId| account.0 = account.0 * 2 + owner as u32;
    match &mut request {
        Request::New(new) => {
            id(&mut new.client_order_id);
            account(&mut new.account);
        }
        Request::Cancel(cancel) => {
            id(&mut cancel.client_order_id);
            id(&mut cancel.original);
            account(&mut cancel.account);
        }
        Request::Replace(replace) => {
            id(&mut replace.client_order_id);
            id(&mut replace.original);
            account(&mut replace.account);
        }
        Request::Status(status) => {
            id(&mut status.client_order_id);
            id(&mut status.original);
            account(&mut status.account);
        }
        Request::MassCancel(all) => {
            id(&mut all.client_order_id);
            account(&mut all.account);
        }
        Request::Conditional(_) | Request::ReplaceConditional(_) => unreachable!("triggers are an OMS's own"),
        Request::Extended(_) | Request::ByTextId(_) => unreachable!("text ids are an OMS's own"),
    }
    request
}

/// Returns the owner of a report of the naive venue, and the report with the owner's ids.
fn outward(report: ExecutionReport) -> (usize, ExecutionReport) {
    let (order_id, client_order_id) = (OrderId(report.order_id.0 / 2), ClientOrderId(report.client_order_id.0 / 2));
    let account = AccountId(report.account.0 / 2);
    ((report.account.0 % 2) as usize, ExecutionReport { order_id, client_order_id, account, ..report })
}

fn all(id: u64) -> Request {
    Request::Status(StatusRequest { client_order_id: ClientOrderId(id), fills: 1, ..StatusRequest::default() })
}

fn status(id: u64) -> Request {
    let (client_order_id, original) = (ClientOrderId(2_000 + id), ClientOrderId(id));
    Request::Status(StatusRequest { client_order_id, original, ..StatusRequest::default() })
}
