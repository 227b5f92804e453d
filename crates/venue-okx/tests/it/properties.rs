//! Properties of rows: their order and their repetitions change no report, and neither does their spelling.

use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use tickpath_market::{ClientOrderId, ExecId, ExecutionReport, OrderId, ReportDetail, VenueOrderId};

use crate::harness::{LineUnderTest, OwnedLineEvent};
use crate::rows::OrderRow;

/// A report or a detail, without the names of its order.
#[derive(Debug, Clone, PartialEq)]
enum NamelessEvent {
    Report(ExecutionReport),
    Detail(ReportDetail),
}

/// Life of an order with a total of 100.
#[derive(Debug, Clone)]
struct OrderLife {
    /// Sizes of its fills.
    fills: Vec<u32>,
    /// Amendments to another total: whether they succeed.
    amendments: Vec<bool>,
    /// Type of the order, and cause of its cancel; none if it keeps working.
    end: Option<(&'static str, &'static str)>,
}

fn life() -> impl Strategy<Value = OrderLife> {
    let ends = prop_oneof![
        Just(None),
        Just(Some(("limit", "1"))),
        Just(Some(("ioc", "14"))),
        Just(Some(("post_only", "31"))),
    ];
    (vec(1..10_u32, 0..5), vec(any::<bool>(), 0..3), ends).prop_map(|(fills, amendments, end)| OrderLife {
        fills,
        amendments,
        end,
    })
}

impl OrderLife {
    /// Returns the rows of the life for this order.
    fn rows(&self, order: u64) -> Vec<OrderRow> {
        let order_type = self.end.map_or("limit", |(order_type, _)| order_type);
        let base = OrderRow::live(order).with("sz", "100").with("ordType", order_type);
        let (mut rows, mut cumulative) = (vec![base.clone()], 0_u32);
        for (trade_id, size) in (1..).zip(&self.fills) {
            cumulative += size;
            rows.push(base.clone().filled(trade_id, &size.to_string(), &cumulative.to_string()));
        }
        let state = if cumulative > 0 { "partially_filled" } else { "live" };
        let after = base.with("accFillSz", &cumulative.to_string()).with("state", state);
        for (request, is_applied) in (500_u64..).zip(&self.amendments) {
            let row = after.clone().with("reqId", &format!("{request:016x}")).with("sz", &(request - 300).to_string());
            rows.push(row.with("amendResult", if *is_applied { "0" } else { "-1" }));
        }
        rows.extend(self.end.map(|(_, source)| after.canceled(source)));
        rows
    }
}

/// A line, and the number of the next order.
struct Bench {
    test: LineUnderTest,
    next: u64,
}

impl Bench {
    fn new() -> RefCell<Self> {
        RefCell::new(Self { test: LineUnderTest::connected(), next: 1 })
    }

    fn order(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Sends frames about an order, and returns the events that they become.
    fn events_of(&mut self, order: u64, frames: &[String]) -> Vec<NamelessEvent> {
        let begin = self.test.events.len();
        frames.iter().for_each(|frame| self.test.okx.send(frame));
        let last = self.order();
        self.test.okx.send(&OrderRow::live(last).push());
        self.test.wait_until("all rows are read", |test| test.reports().iter().any(|r| r.order_id.0 == last));
        let events: Vec<OwnedLineEvent> = self.test.events.drain(..).skip(begin).collect();
        assert!(self.test.losses.is_empty(), "{:?}", self.test.losses);
        events.iter().filter_map(|event| nameless(event, order)).collect()
    }
}

/// Returns an event of this order without its names.
fn nameless(event: &OwnedLineEvent, order: u64) -> Option<NamelessEvent> {
    match event {
        OwnedLineEvent::Report(_, report) if report.order_id.0 == order => {
            let request = report.client_order_id.0;
            let client_order_id = ClientOrderId(if request == order { 0 } else { request });
            let (order_id, venue_order_id) = (OrderId(0), VenueOrderId(0));
            Some(NamelessEvent::Report(ExecutionReport { order_id, venue_order_id, client_order_id, ..*report }))
        }
        OwnedLineEvent::Detail(_, detail) if detail.order_id.0 == order => {
            Some(NamelessEvent::Detail(ReportDetail { order_id: OrderId(0), ..*detail }))
        }
        _ => None,
    }
}

fn sorted(mut events: Vec<NamelessEvent>) -> Vec<NamelessEvent> {
    events.sort_by_cached_key(|event| format!("{event:?}"));
    events
}

fn run<S: Strategy>(cases: u32, strategy: S, property: impl Fn(&mut Bench, S::Value) -> TestCaseResult) {
    let bench = Bench::new();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&strategy, |value| property(&mut bench.borrow_mut(), value));
    result.unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn rows_in_any_order_and_repeated_end_in_the_same_set_of_reports() {
    let permuted = (life(), vec(any::<u16>(), 32), vec(any::<bool>(), 16));
    run(128, permuted, |bench, (life, keys, repeated)| {
        let (order, other) = (bench.order(), bench.order());
        let frames = |rows: Vec<OrderRow>| rows.iter().map(OrderRow::push).collect::<Vec<String>>();
        let expected = bench.events_of(order, &frames(life.rows(order)));
        let mut rows = life.rows(other);
        let again: Vec<OrderRow> =
            rows.iter().zip(&repeated).filter(|(_, is_repeated)| **is_repeated).map(|(row, _)| row.clone()).collect();
        rows.extend(again);
        let mut keyed: Vec<(u16, OrderRow)> = keys.iter().copied().cycle().zip(rows).collect();
        keyed.sort_by_key(|(key, _)| *key);
        let found = bench.events_of(other, &frames(keyed.into_iter().map(|(_, row)| row).collect()));
        prop_assert!(!expected.is_empty());
        prop_assert_eq!(sorted(found), sorted(expected));
        Ok(())
    });
}

/// Spelling of a push.
struct PushSpelling {
    /// State of a generator of random numbers.
    random: u64,
}

impl PushSpelling {
    fn choose(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % limit
    }

    /// Writes a row with its own order of keys, and if it is unusual with white space, escapes and an unknown key.
    fn push(&mut self, row: &OrderRow, is_unusual: bool) -> String {
        let mut values = row.values();
        if is_unusual {
            values.push(("unknown", r#"[1,{"sz":null}]"#.to_owned()));
        }
        for last in (1..values.len()).rev() {
            let other = self.choose(last as u64 + 1) as usize;
            values.swap(last, other);
        }
        let fields: Vec<String> = values.iter().map(|(key, value)| self.field(key, value, is_unusual)).collect();
        let comma = if is_unusual { ", \n" } else { "," };
        format!(r#"{{"arg":{{"channel":"orders","instType":"ANY"}},"data":[{{{}}}]}}"#, fields.join(comma))
    }

    fn field(&mut self, key: &str, value: &str, is_unusual: bool) -> String {
        let text = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let Some(text) = text.filter(|_| is_unusual) else { return format!("\"{key}\":{value}") };
        let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
        let characters: String =
            text.chars().map(|c| if self.choose(8) == 1 { escaped(c) } else { c.to_string() }).collect();
        format!("\"{key}\" : \"{characters}\"")
    }
}

#[test]
fn every_spelling_of_a_row_gives_the_same_events() {
    run(128, (life(), any::<usize>(), any::<u64>()), |bench, (life, index, seed)| {
        let (order, other) = (bench.order(), bench.order());
        let rows = life.rows(order);
        let index = index % rows.len();
        let spelling = &mut PushSpelling { random: seed };
        let before = bench.test.line.unusual_pushes();
        let usual = spelling.push(&rows[index], false);
        let scanned = bench.events_of(order, std::slice::from_ref(&usual));
        prop_assert_eq!(bench.test.line.unusual_pushes(), before, "the scan takes {}", usual);
        let unusual = spelling.push(&life.rows(other)[index], true);
        let read = bench.events_of(other, std::slice::from_ref(&unusual));
        prop_assert_eq!(bench.test.line.unusual_pushes(), before + 1, "the scan leaves {}", unusual);
        prop_assert!(!scanned.is_empty());
        prop_assert_eq!(scanned, read);
        Ok(())
    });
}

#[test]
fn the_id_of_an_execution_is_that_of_its_trade() {
    run(64, (any::<u64>(), any::<u64>()), |bench, (first, second)| {
        let mut execution = |trade_id: u64| -> ExecId {
            let order = bench.order();
            let events = bench.events_of(order, &[OrderRow::live(order).filled(trade_id, "1", "1").push()]);
            match events.first() {
                Some(NamelessEvent::Report(report)) => report.exec_id,
                _ => ExecId(0),
            }
        };
        let (first_id, second_id) = (execution(first.max(1)), execution(second.max(1)));
        prop_assert_eq!(first_id == second_id, first.max(1) == second.max(1));
        prop_assert!(first_id.0 != 0 && second_id.0 != 0);
        Ok(())
    });
}
