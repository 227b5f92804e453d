//! Venues that stay silent, reject an open order, or do not confirm the end of a day: the OMS sends a question.

use tickpath_market::{ExecId, ExtendedOrder, OrderId, TimeInForce, VenueOrderId};
use tickpath_oms_core::{AdminCommandError, DayEnd, OrderView, Reconcile, RecordKind};
use tickpath_oms_runtime::{CommandError, VenueExpectations};
use tickpath_venue_sim::{Chance, InjectedFaults};

use super::*;

/// Time within which the venue answers.
const WITHIN_NS: u64 = 5 * SECOND;
/// All reports are dropped.
const DROPS_REPORTS: InjectedFaults = InjectedFaults { drop: Chance(1_000_000), ..NO_FAULTS };
/// All requests are dropped.
const DROPS_REQUESTS: InjectedFaults = InjectedFaults { drop_requests: Chance(1_000_000), ..NO_FAULTS };
const NO_FAULTS: InjectedFaults = InjectedFaults {
    seed: 1,
    drop_requests: Chance(0),
    drop: Chance(0),
    double: Chance(0),
    swap: Chance(0),
    reject: Chance(0),
    delay_ns: 0,
    halt: false,
    cut: Chance(0),
};

/// An OMS that expects answers, its venue, and a client.
struct SilentVenueScene {
    scene: Scene,
    oms: Inline<SimulatedClock>,
    venue: VenueEngine<SimulatedClock>,
    client: Client,
}

impl SilentVenueScene {
    fn new(watch: VenueExpectations) -> Self {
        let mut scene = Scene::new();
        scene.config.trading.expectations = vec![watch];
        let oms = scene.oms();
        scene.tick(99, 101);
        let (venue, client) = (scene.venue(), scene.client(0));
        let mut silence = Self { scene, oms, venue, client };
        silence.settle();
        silence
    }

    fn settle(&mut self) {
        settle(&mut self.oms, &mut self.venue);
    }

    fn faults(&mut self, faults: InjectedFaults) {
        self.venue.set_faults(faults).expect("no journal to write to");
    }

    /// Sends a request and delivers all messages that are not dropped.
    fn send(&mut self, request: impl Into<ClientRequest>) {
        self.client.send(request);
        self.settle();
    }

    /// Advances the time by this much, in steps of 50 ms in which the OMS is idle.
    fn wait(&mut self, ns: u64) {
        for _ in 0..ns / 50_000_000 {
            self.scene.clock.advance(50_000_000);
            // The OMS reads its clock in each sixteenth idle turn.
            for _ in 0..40 {
                poll(&mut self.oms);
            }
            self.settle();
        }
    }

    /// Returns the order with this client order id.
    fn order(&mut self, client: u64) -> OrderView {
        self.oms.sequencer().core().order_of(0, ClientOrderId(client)).expect("the order is known")
    }

    fn status(&mut self, client: u64) -> (OrdStatus, Quantity) {
        let order = self.order(client);
        (order.status, order.cumulative)
    }

    fn position(&mut self) -> i128 {
        self.oms.sequencer().core().position(WIDE, SymbolId(0)).net
    }

    /// Ends the day as an admin does.
    fn end_day(&mut self, day: u32) -> Result<u64, CommandError> {
        let end = DayEnd { day, ..DayEnd::default() };
        let now = self.scene.clock.ticks();
        let ended = self.oms.sequencer().accept_command(now, RecordKind::DayEnd.code(), end.as_bytes());
        let record = ended.expect("the OMS goes on").map(|applied| applied.record);
        self.settle();
        record
    }

    /// Reconciles all orders at the venue as an admin does, and delivers the answer.
    fn reconcile(&mut self) -> u64 {
        let reconcile =
            Reconcile { venue: VENUE, reason: *b"anna: the desk has rung us up...", ..Reconcile::default() };
        let now = self.scene.clock.ticks();
        let applied = self.oms.sequencer().accept_command(now, RecordKind::Reconcile.code(), reconcile.as_bytes());
        let record = applied.expect("the OMS goes on").expect("the venue can be asked").record;
        self.settle();
        record
    }

    /// Checks that the journal's replay gives the state of the OMS.
    fn check_replay(&mut self) {
        assert_eq!(self.scene.replay().0.digest(), self.oms.sequencer().core().digest());
    }
}

fn watch() -> VenueExpectations {
    VenueExpectations { venue: VENUE, answer_within_ns: WITHIN_NS, expires_day_orders: false }
}

#[test]
fn a_lost_fill_is_found_by_the_next_question() {
    let mut scene = SilentVenueScene::new(watch());
    scene.send(limit(Side::Buy, 1, 100, 3));
    scene.faults(DROPS_REPORTS);
    // A seller of the same venue crosses: the fill of the buyer and all reports to the seller are lost.
    scene.send(limit(Side::Sell, 2, 100, 3));
    scene.faults(NO_FAULTS);
    assert_eq!((scene.status(1), scene.position()), ((OrdStatus::New, Quantity(0)), 0));
    // The seller has no answer: its order is in doubt, a question goes to the venue, and the venue reports the fill
    // again.
    scene.wait(WITHIN_NS + SECOND);
    assert_eq!(scene.status(2), (OrdStatus::Filled, Quantity::from_whole(3)));
    // The cancel is rejected, because the order is filled.
    scene.send(cancel(3, 1));
    assert_eq!(scene.status(1), (OrdStatus::Filled, Quantity::from_whole(3)));
    assert_eq!(scene.position(), 0, "bought and sold");
    let messages = scene.client.receive();
    let is_fill = |message: &&ReceivedMessage| matches!(message, ReceivedMessage::Report(r) if r.last_quantity.0 > 0);
    assert_eq!(messages.iter().filter(is_fill).count(), 2, "each fill is reported once: {messages:?}");
    let refused = |notice: &Notice| matches!(notice, Notice::RefusedOpen { reason: 8, .. });
    assert!(scene.oms.sequencer().notices().any(refused));
    scene.check_replay();
}

#[test]
fn a_reconciliation_finds_losses_and_books_each_fill_once() {
    let mut scene = SilentVenueScene::new(VenueExpectations { answer_within_ns: 0, ..watch() });
    scene.send(limit(Side::Buy, 1, 100, 3));
    scene.send(limit(Side::Buy, 2, 90, 1));
    scene.faults(DROPS_REPORTS);
    scene.send(limit(Side::Sell, 3, 100, 3));
    scene.faults(DROPS_REQUESTS);
    scene.send(limit(Side::Buy, 4, 80, 1));
    scene.faults(NO_FAULTS);
    let record = scene.reconcile();
    let answer = scene.oms.sequencer().answer(record).expect("the venue has answered").clone();
    let whole = Quantity::from_whole;
    let found: Vec<(u64, OrdStatus, Option<Quantity>)> = answer
        .differences
        .iter()
        .map(|difference| {
            let ours = difference.ours.expect("the OMS knows all of them");
            let venues = difference.venues.map(|report| report.cumulative_quantity);
            (ours.client_order_id.0, ours.status, venues)
        })
        .collect();
    let expected = [
        (1, OrdStatus::New, Some(whole(3))),
        (3, OrdStatus::PendingNew, Some(whole(3))),
        // The venue has never received it.
        (4, OrdStatus::PendingNew, None),
    ];
    assert_eq!(found, expected);
    assert_eq!((answer.orders, answer.differing), (3, 3));
    assert_eq!(scene.status(1), (OrdStatus::Filled, whole(3)));
    assert_eq!(scene.status(2), (OrdStatus::New, Quantity::ZERO));
    assert_eq!(scene.status(3), (OrdStatus::Filled, whole(3)));
    assert_eq!(scene.status(4).0, OrdStatus::PendingNew, "only the answers of the venue are applied");
    let [position] = &answer.positions[..] else { panic!("{:?}", answer.positions) };
    assert_eq!((position.ours, position.venues), ([whole(3); 2], [whole(3); 2]));
    assert_eq!(scene.position(), 0, "bought and sold");
    let messages = scene.client.receive();
    let is_fill = |message: &&ReceivedMessage| matches!(message, ReceivedMessage::Report(r) if r.last_quantity.0 > 0);
    assert_eq!(messages.iter().filter(is_fill).count(), 2, "each fill is reported once: {messages:?}");
    // A second comparison finds the order that the venue lacks, and nothing else.
    let record = scene.reconcile();
    let again = scene.oms.sequencer().answer(record).expect("the venue has answered").clone();
    assert_eq!((again.orders, again.differing, again.differences.len()), (3, 1, 1));
    let counts = scene.oms.sequencer().counts();
    assert_eq!((counts.unknown_order_reports, counts.malformed, counts.contradictions), (0, 0, 0));
    scene.check_replay();
}

#[test]
fn an_unanswered_request_puts_its_order_in_doubt_and_is_queried() {
    let mut scene = SilentVenueScene::new(watch());
    scene.faults(DROPS_REQUESTS);
    scene.send(limit(Side::Buy, 1, 90, 1));
    scene.wait(WITHIN_NS - SECOND);
    assert_eq!(scene.status(1).0, OrdStatus::PendingNew, "its time is not up");
    scene.wait(2 * SECOND);
    assert_eq!(scene.status(1).0, OrdStatus::Unknown);
    // The question was lost too; the next one arrives, and the venue has no record of the order.
    scene.faults(NO_FAULTS);
    scene.wait(2 * WITHIN_NS + SECOND);
    assert_eq!(scene.status(1).0, OrdStatus::Rejected);
    let reports = scene.client.receive_reports();
    assert!(reports.contains(&(1, ExecType::OrderStatus, OrdStatus::Unknown)), "{reports:?}");
    assert!(scene.oms.sequencer().notices().any(|notice| matches!(notice, Notice::VenueSilent { .. })));
    scene.check_replay();
}

#[test]
fn a_lost_cancel_leaves_its_order_working_and_may_be_repeated() {
    let mut scene = SilentVenueScene::new(watch());
    scene.send(limit(Side::Buy, 1, 90, 1));
    scene.faults(DROPS_REQUESTS);
    scene.send(cancel(2, 1));
    assert_eq!(scene.status(1).0, OrdStatus::PendingCancel);
    scene.faults(NO_FAULTS);
    scene.wait(WITHIN_NS + SECOND);
    assert_eq!(scene.status(1).0, OrdStatus::New, "the venue works it, and has no cancel of it");
    scene.send(cancel(3, 1));
    assert_eq!(scene.status(1).0, OrdStatus::Canceled);
    scene.check_replay();
}

#[test]
fn a_fill_lost_before_a_cancel_is_found_by_the_final_report() {
    let mut scene = SilentVenueScene::new(watch());
    scene.send(limit(Side::Buy, 1, 100, 3));
    scene.faults(DROPS_REPORTS);
    scene.send(limit(Side::Sell, 2, 100, 1));
    scene.faults(NO_FAULTS);
    scene.send(cancel(3, 1));
    assert_eq!(scene.status(1), (OrdStatus::Canceled, Quantity::from_whole(1)));
    assert_eq!(scene.position(), Quantity::from_whole(1).0.into());
    scene.check_replay();
}

#[test]
fn an_unanswered_query_repeats_less_and_less_often() {
    let mut scene = SilentVenueScene::new(watch());
    scene.send(limit(Side::Buy, 1, 90, 1));
    scene.faults(DROPS_REQUESTS);
    scene.send(cancel(2, 1));
    let asked = |scene: &SilentVenueScene| {
        scene.scene.to_venue().iter().filter(|(kind, _)| *kind == Kind::StatusRequest.code()).count()
    };
    let mut counts = Vec::new();
    for _ in 0..6 {
        scene.wait(60 * SECOND);
        counts.push(asked(&scene));
    }
    let more: Vec<usize> = counts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        counts[0] >= 3 && more.iter().all(|&more| (0..=2).contains(&more)) && more.iter().sum::<usize>() >= 2,
        "{counts:?}"
    );
    assert_eq!(scene.status(1).0, OrdStatus::Unknown);
    scene.faults(NO_FAULTS);
    scene.wait(16 * WITHIN_NS + SECOND);
    assert_eq!(scene.status(1).0, OrdStatus::New);
    scene.check_replay();
}

#[test]
fn a_restart_continues_to_wait_for_answers() {
    let mut silence = SilentVenueScene::new(watch());
    silence.faults(DROPS_REQUESTS);
    silence.send(limit(Side::Buy, 1, 90, 1));
    let SilentVenueScene { mut scene, oms, venue, client } = silence;
    drop(oms);
    let oms = scene.oms();
    scene.tick(99, 101);
    let mut silence = SilentVenueScene { scene, oms, venue, client };
    silence.wait(WITHIN_NS + SECOND);
    assert_eq!(silence.status(1).0, OrdStatus::Unknown);
}

#[test]
fn without_an_answer_limit_no_venue_is_queried() {
    let mut scene = SilentVenueScene::new(VenueExpectations { answer_within_ns: 0, ..watch() });
    scene.faults(DROPS_REQUESTS);
    scene.send(limit(Side::Buy, 1, 90, 1));
    scene.wait(3_600 * SECOND / 10);
    assert_eq!(scene.status(1).0, OrdStatus::PendingNew);
}

#[test]
fn a_day_orders_expiry_is_booked_only_when_its_venue_confirms_it() {
    let mut scene = SilentVenueScene::new(watch());
    scene.send(limit(Side::Buy, 1, 100, 3));
    scene.send(limit(Side::Buy, 2, 90, 1));
    scene.send(NewOrder { time_in_force: TimeInForce::GoodTillCancel.code(), ..limit(Side::Buy, 3, 80, 1) });
    scene.faults(DROPS_REPORTS);
    scene.send(limit(Side::Sell, 4, 100, 3));
    scene.faults(NO_FAULTS);
    scene.end_day(0).expect("there is room");
    // The order was filled at the venue, so the fill is booked and no expiry. Orders open at the venue stay open here.
    assert_eq!(scene.status(1), (OrdStatus::Filled, Quantity::from_whole(3)));
    assert_eq!((scene.status(2).0, scene.status(3).0), (OrdStatus::New, OrdStatus::New));
    assert_eq!(scene.status(4), (OrdStatus::Filled, Quantity::from_whole(3)));
    assert_eq!(scene.oms.sequencer().counts().contradictions, 0);
    scene.venue.end_of_day().expect("no journal to write to");
    scene.settle();
    assert_eq!(scene.status(2).0, OrdStatus::Expired);
    scene.end_day(0).expect("there is room");
    assert_eq!(scene.status(3).0, OrdStatus::New);
    scene.check_replay();
}

#[test]
fn a_good_till_date_order_is_canceled_when_its_time_has_come() {
    let mut scene = SilentVenueScene::new(watch());
    let until = |client, expire_ns| {
        let time_in_force = TimeInForce::GoodTillDate.code();
        let order = NewOrder { time_in_force, ..limit(Side::Buy, client, 80, 1) };
        Request::Extended(ExtendedOrder { order, expire_ns, ..ExtendedOrder::default() })
    };
    let now_ns = scene.scene.clock.calibration().utc_ns_of(scene.scene.clock.ticks());
    scene.send(until(1, now_ns + 2 * SECOND));
    scene.send(until(2, now_ns + 60 * SECOND));
    scene.wait(SECOND);
    assert_eq!((scene.status(1).0, scene.status(2).0), (OrdStatus::New, OrdStatus::New));
    scene.wait(2 * SECOND);
    assert_eq!((scene.status(1).0, scene.status(2).0), (OrdStatus::Expired, OrdStatus::New));
    scene.check_replay();
}

#[test]
fn a_venue_with_day_order_rules_need_not_confirm_expiry() {
    let mut scene = SilentVenueScene::new(VenueExpectations { expires_day_orders: true, ..watch() });
    scene.send(limit(Side::Buy, 1, 90, 1));
    scene.end_day(0).expect("there is room");
    let reports = scene.client.receive_reports();
    assert!(reports.contains(&(1, ExecType::Expired, OrdStatus::Expired)), "{reports:?}");
}

#[test]
fn a_day_ends_once_and_not_before_it_has_begun() {
    let mut silence = SilentVenueScene::new(watch());
    silence.end_day(19_700_101).expect("it is that day");
    assert!(matches!(silence.end_day(19_700_101), Err(CommandError::DayEnded { day: 19_700_101, last: 19_700_101 })));
    assert!(matches!(silence.end_day(19_691_231), Err(CommandError::DayEnded { .. })));
    assert!(matches!(
        silence.end_day(19_700_102),
        Err(CommandError::DayAhead { day: 19_700_102, today: 19_700_101, .. })
    ));
    // A start reads the day from its journal and from a snapshot.
    tickpath_oms_runtime::snapshot::make(&silence.scene.config.journal.path).expect("there is room");
    let SilentVenueScene { scene, oms, venue, client } = silence;
    drop(oms);
    let oms = scene.oms();
    let mut silence = SilentVenueScene { scene, oms, venue, client };
    assert!(matches!(silence.end_day(19_700_101), Err(CommandError::DayEnded { .. })));
    let no_command = silence.oms.sequencer().accept_command(MORNING, RecordKind::JournalStart.code(), &[]);
    assert!(matches!(no_command.expect("the OMS goes on"), Err(CommandError::Core(AdminCommandError::NotACommand))));
}

#[test]
fn invented_orders_of_a_venue_fill_no_disk_and_true_reports_count() {
    /// Reports of unknown orders that are kept.
    const KEPT: u64 = 1 << 16;
    let mut scene = SilentVenueScene::new(watch());
    scene.send(limit(Side::Buy, 1, 100, 3));
    let order = scene.order(1);
    let now = scene.scene.clock.ticks();
    let invented = |number: u64| ExecutionReport {
        order_id: OrderId(1 << 60 | number),
        venue_order_id: VenueOrderId(1 << 60 | number),
        exec_id: ExecId(number),
        last_quantity: Quantity::from_whole(1),
        cumulative_quantity: Quantity::from_whole(1),
        exec_type: ExecType::Trade.code(),
        status: OrdStatus::Filled.code(),
        side: Side::Buy.code(),
        ..ExecutionReport::default()
    };
    let oms = scene.oms.sequencer();
    let mut number = 0;
    let mut hear = |oms: &mut tickpath_oms_runtime::Sequencer<SimulatedClock>, report: ExecutionReport| {
        number += 1;
        oms.accept_report(VENUE, 1_000 + number, now, report).expect("the OMS goes on");
    };
    (1..=KEPT).for_each(|number| hear(oms, invented(number)));
    let records = oms.records();
    (1..=10).for_each(|number| hear(oms, invented(KEPT + number)));
    assert_eq!(oms.records(), records, "what is not kept is not journaled");
    assert_eq!(oms.notices().filter(|notice| matches!(notice, Notice::UnknownOrders { .. })).count(), 1);
    let status = ExecutionReport {
        order_id: order.id,
        leaves_quantity: order.leaves,
        exec_type: ExecType::OrderStatus.code(),
        status: OrdStatus::New.code(),
        side: Side::Buy.code(),
        symbol: order.symbol,
        account: order.account,
        price: order.price,
        ..ExecutionReport::default()
    };
    hear(oms, status);
    assert_eq!(oms.records(), records + 1, "a report of a known order is one");
    scene.check_replay();
}
