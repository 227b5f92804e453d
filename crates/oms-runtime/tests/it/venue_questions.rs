//! Order status questions of an admin to a venue: the answer is there once the venue has sent it, and not before.

use tickpath_market::{ExecId, OrderId, StatusRequest};
use tickpath_oms_core::{QueryStatus, Reconcile, RecordKind};
use tickpath_oms_runtime::VenueAnswer;

use super::*;

#[test]
fn the_answer_to_an_admins_question_is_kept_for_the_admin() {
    let mut scene = Scene::new();
    let mut oms = scene.oms();
    scene.tick(99, 101);
    let (mut venue, mut client) = (scene.venue(), scene.client(0));
    settle(&mut oms, &mut venue);
    client.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    let order = oms.sequencer().core().order_of(0, ClientOrderId(1)).expect("the order works").id;
    let inquire = QueryStatus { order: order.0, ..QueryStatus::default() };
    let now = scene.clock.ticks();
    let word = oms
        .sequencer()
        .accept_command(now, RecordKind::QueryStatus.code(), inquire.as_bytes())
        .expect("the OMS goes on");
    let record = word.expect("the venue can be asked").record;
    assert!(oms.sequencer().answer(record).is_none(), "the venue has not had its turn");
    settle(&mut oms, &mut venue);
    let answer = oms.sequencer().answer(record).expect("the venue has answered").last;
    assert_eq!((answer.order_id, answer.status), (order, OrdStatus::New.code()));
    assert!(oms.sequencer().answer(record + 1).is_none(), "no question has that record");
}

/// An OMS whose venue is this test.
struct ReconcileScene {
    scene: Scene,
    oms: Inline<SimulatedClock>,
    lanes: VenueLanes,
}

impl ReconcileScene {
    fn new() -> Self {
        let scene = Scene::new();
        let oms = scene.oms();
        let lanes = scene.venue_lanes();
        let mut asking = Self { scene, oms, lanes };
        asking.turn();
        asking
    }

    fn turn(&mut self) {
        for _ in 0..50 {
            poll(&mut self.oms);
        }
    }

    /// Reconciles all orders as an admin does. Returns the record, and the question that the venue received.
    fn reconcile(&mut self) -> (u64, StatusRequest) {
        let reconcile =
            Reconcile { venue: VENUE, reason: *b"anna: the desk has rung us up...", ..Reconcile::default() };
        let now = self.scene.clock.ticks();
        let word = self.oms.sequencer().accept_command(now, RecordKind::Reconcile.code(), reconcile.as_bytes());
        let record = word.expect("the OMS goes on").expect("the venue can be asked").record;
        self.turn();
        let message = match self.lanes.requests.next().expect("the lane is sound") {
            Next::Message(message) => message,
            other => panic!("a question was expected: {other:?}"),
        };
        assert_eq!(message.kind, Kind::StatusRequest.code());
        (record, StatusRequest::read_from_bytes(message.payload).expect("a whole question"))
    }

    /// Publishes these reports as the venue's answer to a question.
    fn answer(&mut self, question: &StatusRequest, reports: &[ExecutionReport]) {
        for report in reports {
            let report = ExecutionReport { client_order_id: question.client_order_id, venue: VENUE, ..*report };
            let published =
                self.lanes.reports.publish(self.scene.clock.ticks(), Kind::ExecutionReport.code(), report.as_bytes());
            published.expect("the OMS reads this lane");
        }
        self.turn();
    }

    fn answer_to(&mut self, record: u64) -> Option<VenueAnswer> {
        self.oms.sequencer().answer(record).cloned()
    }
}

/// Returns the end of an answer about all orders, with this reason.
fn end(reason: u16) -> ExecutionReport {
    ExecutionReport { reason, exec_type: ExecType::OrderStatus.code(), ..ExecutionReport::default() }
}

#[test]
fn an_order_known_only_to_its_venue_is_a_difference_to_be_entered() {
    let mut asking = ReconcileScene::new();
    let (record, question) = asking.reconcile();
    assert!(question.asks_for_all_orders(), "{question:?}");
    let fill = ExecutionReport {
        order_id: OrderId(77),
        exec_id: ExecId(5),
        venue_sequence: 2,
        last_price: Price::from_whole(90),
        last_quantity: Quantity::from_whole(1),
        cumulative_quantity: Quantity::from_whole(1),
        leaves_quantity: Quantity::from_whole(2),
        price: Price::from_whole(90),
        account: WIDE,
        exec_type: ExecType::Trade.code(),
        status: OrdStatus::PartiallyFilled.code(),
        side: Side::Sell.code(),
        ..ExecutionReport::default()
    };
    let status = ExecutionReport {
        exec_id: ExecId(0),
        last_price: Price::ZERO,
        last_quantity: Quantity::ZERO,
        exec_type: ExecType::OrderStatus.code(),
        ..fill
    };
    asking.answer(&question, &[fill, status]);
    assert!(asking.answer_to(record).is_none(), "the answer has not ended");
    asking.answer(&question, &[end(0)]);
    let answer = asking.answer_to(record).expect("the venue has answered");
    assert_eq!((answer.orders, answer.differing, answer.differences.len()), (1, 1, 1));
    let difference = answer.differences[0];
    assert_eq!(difference.ours, None);
    assert_eq!(
        difference.venues.map(|report| (report.order_id, report.leaves_quantity)),
        Some((OrderId(77), status.leaves_quantity))
    );
    let sold = [Quantity::ZERO, Quantity::from_whole(1)];
    let [position] = &answer.positions[..] else { panic!("{:?}", answer.positions) };
    assert_eq!((position.account, position.symbol), (WIDE, SymbolId(0)));
    assert_eq!((position.ours, position.venues), ([Quantity::ZERO; 2], sold));
    // Both reports are kept until the order is entered; the end of the answer is no report of an order.
    let core = asking.oms.sequencer().core();
    assert_eq!(
        (core.unknown_order_report_count(), core.counts().unknown_order_reports, core.counts().malformed),
        (2, 2, 0)
    );
}

#[test]
fn a_refused_order_list_is_reported_and_changes_nothing() {
    let mut asking = ReconcileScene::new();
    let (record, question) = asking.reconcile();
    asking.answer(&question, &[ExecutionReport { status: OrdStatus::Rejected.code(), ..end(7) }]);
    let answer = asking.answer_to(record).expect("the venue has answered");
    assert_eq!((answer.last.reason, answer.orders, answer.differing), (7, 0, 0));
    assert_eq!((answer.differences.len(), answer.positions.len()), (0, 0));
}
