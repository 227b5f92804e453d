//! Admin commands over a socket: each is answered with the result for every affected order.

use tickpath_market::{ExecType, Kind, OrdStatus, Quantity, Side};
use tickpath_oms_client::{ClientEvent, Since};
use tickpath_oms_core::{CancelScope, KILL_ACCOUNT, KILL_ALL, KILL_SESSION, KillSwitch, RecordKind, Resolve};
use tickpath_oms_protocol::{FrameKind as Word, Query};
use tickpath_oms_runtime::Layout;
use zerocopy::{Immutable, IntoBytes};

use super::raw_client::RawClient;
use crate::limit;
use crate::sessions::{OmsFixture, RecordingClient};

/// Sends an admin command and returns the rows received, and the answer.
fn word(
    boss: &mut RecordingClient,
    kind: RecordKind,
    word: &(impl IntoBytes + Immutable),
) -> (Vec<u64>, Result<u64, String>) {
    boss.events.clear();
    boss.client.admin_command(kind.code(), word.as_bytes()).expect("it is connected");
    boss.until("an answer", |boss| boss.events.iter().any(|event| matches!(event, ClientEvent::CommandAnswered(_))));
    let rows = boss.events.iter().filter_map(|event| match event {
        ClientEvent::OrderRow { report, .. } => Some(report.client_order_id.0),
        _ => None,
    });
    let answer = boss.events.iter().find_map(|event| match event {
        ClientEvent::CommandAnswered(answer) => Some(answer.clone()),
        _ => None,
    });
    (rows.collect(), answer.expect("it was just there"))
}

#[test]
fn an_admin_command_is_answered_with_the_orders_in_scope() {
    for layout in [Layout::Inline, Layout::Split] {
        let oms = OmsFixture::new(layout);
        let mut anna = oms.remote("anna", Since::Now);
        let mut boss = oms.remote("boss", Since::Now);
        anna.send(limit(Side::Buy, 1, 95, 1));
        anna.send(limit(Side::Buy, 2, 96, 1));
        anna.until("both work", |anna| anna.heard.len() == 4);
        let session = anna.client.welcome().session;
        let of = |session: u16| CancelScope { scope: KILL_SESSION, target: session.into(), ..Default::default() };
        let (rows, answer) = word(&mut boss, RecordKind::CancelScope, &of(session + 1));
        assert!(rows.is_empty() && answer.is_ok(), "{rows:?} {answer:?}");
        let kill = KillSwitch { scope: KILL_ACCOUNT, on: 1, cancel: 1, target: crate::WIDE.0, ..KillSwitch::default() };
        let (rows, answer) = word(&mut boss, RecordKind::Kill, &kill);
        assert_eq!(rows, [1, 2]);
        let record = answer.expect("it was taken");
        anna.until("both are canceled", |anna| {
            let ends = anna.heard.iter().filter(|(_, message)| message.summary().2 == OrdStatus::Canceled);
            ends.count() == 2
        });
        let (_, answer) = word(&mut boss, RecordKind::CancelScope, &of(session));
        assert!(answer.is_ok_and(|later| later > record));
        // An ended order can be queried by its id.
        let crate::ReceivedMessage::Report(last) = anna.heard[anna.heard.len() - 1].1 else {
            panic!("{:?}", anna.heard)
        };
        boss.events.clear();
        let query = Query { what: Query::ORDER, order: last.order_id.0, ..Query::default() };
        boss.client.query(query).expect("it is connected");
        boss.until("an answer", |boss| boss.events.iter().any(|event| matches!(event, ClientEvent::Answered(None))));
        let [ClientEvent::OrderRow { session: whose, report }, _] = &boss.events[..] else {
            panic!("{:?}", boss.events)
        };
        assert_eq!((*whose, report.status), (session, OrdStatus::Canceled.code()));
        assert_eq!(report.exec_type, ExecType::OrderStatus.code());
    }
}

#[test]
fn an_order_list_of_several_pages_is_complete_and_sorted() {
    const ORDERS: u64 = 300;
    for layout in [Layout::Inline, Layout::Split] {
        let oms = OmsFixture::new(layout);
        let mut anna = oms.remote("anna", Since::Now);
        let mut boss = oms.remote("boss", Since::Now);
        (1..=ORDERS).for_each(|client| anna.send(limit(Side::Buy, client, 95, 1)));
        anna.until("all work", |anna| anna.heard.len() as u64 == 2 * ORDERS);
        boss.events.clear();
        boss.client.query(Query { what: Query::ORDERS, ..Query::default() }).expect("it is connected");
        boss.until("an answer", |boss| boss.events.iter().any(|event| matches!(event, ClientEvent::Answered(None))));
        let rows = boss.events.iter().filter_map(|event| match event {
            ClientEvent::OrderRow { report, .. } => Some((report.order_id.0, report.client_order_id.0)),
            _ => None,
        });
        let rows: Vec<(u64, u64)> = rows.collect();
        assert!(rows.is_sorted(), "{rows:?}");
        assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), (1..=ORDERS).collect::<Vec<_>>());
    }
}

#[test]
fn a_refused_admin_command_gets_its_reason_and_is_not_journaled() {
    let oms = OmsFixture::new(Layout::Split);
    let mut boss = oms.remote("boss", Since::Now);
    let before = boss.status().journal_records;
    let resolve =
        Resolve { order: 5, cumulative_quantity: Quantity(1), status: 2, reason: [b'x'; 32], ..Default::default() };
    let (_, answer) = word(&mut boss, RecordKind::Resolve, &resolve);
    assert!(answer.as_ref().is_err_and(|why| why.contains("there is no order")), "{answer:?}");
    let (_, answer) = word(&mut boss, RecordKind::Kill, &KillSwitch { scope: 9, on: 1, ..KillSwitch::default() });
    assert!(answer.as_ref().is_err_and(|why| why.contains("does not exist")), "{answer:?}");
    // A record of another length is no command of this version.
    let (_, answer) = word(&mut boss, RecordKind::Kill, &[KILL_ALL, 1, 0]);
    assert!(answer.as_ref().is_err_and(|why| why.contains("another version")), "{answer:?}");
    assert_eq!(boss.status().journal_records, before);
}

#[test]
fn requests_pass_while_a_long_order_list_is_outstanding() {
    const ORDERS: u64 = 12_000;
    for layout in [Layout::Inline, Layout::Split] {
        let oms = OmsFixture::new(layout);
        let mut raw = RawClient::login(&oms, "anna", 0, 60_000);
        for number in 0..ORDERS {
            raw.say(Kind::NewOrder.code(), number, limit(Side::Buy, number + 1, 95, 1).as_bytes(), &[]);
        }
        let mut eve = oms.remote("eve", Since::Now);
        while eve.status().working != ORDERS {}
        // The client reads no reports, so the list has no room; the second question and all later messages wait for it.
        let list = Query { what: Query::ORDERS, ..Query::default() };
        raw.say(Word::Query.code(), 0, list.as_bytes(), &[]);
        raw.say(Kind::NewOrder.code(), ORDERS, limit(Side::Buy, ORDERS + 1, 95, 1).as_bytes(), &[]);
        while eve.status().working != ORDERS + 1 {}
        raw.say(Word::Query.code(), 0, list.as_bytes(), &[]);
        raw.say(Kind::NewOrder.code(), ORDERS + 1, limit(Side::Buy, ORDERS + 2, 95, 1).as_bytes(), &[]);
        let (mut rows, mut answers) = (0, 0);
        while answers < 2 {
            let (kind, ..) = raw.hear().expect("more comes");
            rows += u64::from(kind == Word::OrderRow.code());
            answers += u64::from(kind == Word::Answer.code());
        }
        assert!(rows >= 2 * ORDERS, "{layout:?}: {rows} rows in two lists");
        while eve.status().working != ORDERS + 2 {}
    }
}
