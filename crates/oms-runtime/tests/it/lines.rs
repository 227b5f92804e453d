//! Lines of a venue under a test's control: returned, doubtful and waiting requests, and no request sent twice.

mod identity;
mod slow;
mod test_line;

use std::ops::{Deref, DerefMut};

use tickpath_market::{ExecutionReport, OrderId};
use tickpath_oms_core::{Denial, OTHER_LINE, RejectRule};
use tickpath_oms_runtime::{LineFactory, LineId, OmsLineConfig};
use tickpath_venue::Line;

use super::*;
use test_line::TestLine;

/// Clock step of a turn that waits for an event.
const TURN_NS: u64 = 1_000_000;

/// Returns an OMS whose venue is reached by this many lines only, all of them up, and its client.
fn joined<const N: usize>(change: impl FnOnce(&mut Scene)) -> ([TestLine; N], Scene, TimedOms, Client) {
    let wires = std::array::from_fn(|_| TestLine::default());
    let mut scene = scene(&wires);
    change(&mut scene);
    let mut oms = TimedOms::new(&scene);
    up(&mut oms, &wires, 0);
    let client = scene.client(0);
    (wires, scene, oms, client)
}

/// Returns a scene whose venue is reached by these lines only.
fn scene(wires: &[TestLine]) -> Scene {
    let mut scene = Scene::new();
    scene.config.lanes.venues.clear();
    scene.config.lanes.lines = wires.iter().zip(0..).map(|(wire, line)| config_of(wire, line)).collect();
    scene.tick(99, 101);
    scene
}

fn config_of(wire: &TestLine, line: u8) -> OmsLineConfig {
    let wire = wire.clone();
    let open = LineFactory::new(move || Ok(Box::new(wire.clone()) as Box<dyn Line>));
    OmsLineConfig {
        id: LineId { venue: VENUE, line },
        open,
        rate_per_second: 0,
        window: 100,
        lost_after_ns: 10 * SECOND,
    }
}

/// An OMS and its clock.
struct TimedOms {
    oms: Inline<SimulatedClock>,
    clock: SimulatedClock,
}

impl TimedOms {
    fn new(scene: &Scene) -> Self {
        Self { oms: scene.oms(), clock: scene.clock.clone() }
    }
}

impl Deref for TimedOms {
    type Target = Inline<SimulatedClock>;

    fn deref(&self) -> &Self::Target {
        &self.oms
    }
}

impl DerefMut for TimedOms {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.oms
    }
}

fn until(oms: &mut TimedOms, what: &str, mut is_so: impl FnMut(&mut Inline<SimulatedClock>) -> bool) {
    for _ in 0..MAX_TURNS {
        if is_so(oms) {
            return;
        }
        poll(oms);
        oms.clock.advance(TURN_NS);
    }
    panic!("in vain waited until {what}");
}

/// Brings all lines up, each with this number of requests at the venue.
fn up(oms: &mut TimedOms, wires: &[TestLine], has: u64) {
    wires.iter().for_each(|wire| wire.accept_connect(Some(has)));
    let ups = oms.sequencer().notices().filter(|notice| matches!(notice, Notice::LineUp(_))).count();
    until(oms, "the lines are up", |oms| {
        oms.sequencer().notices().filter(|notice| matches!(notice, Notice::LineUp(_))).count() == ups + wires.len()
    });
    for _ in 0..4 {
        poll(oms);
    }
}

#[test]
fn unreceived_requests_use_another_line_and_no_cancel_overtakes() {
    let wires = [TestLine::default(), TestLine::default()];
    let scene = scene(&wires);
    let mut oms = TimedOms::new(&scene);
    let mut client = scene.client(0);
    // An order waits while no line is up.
    client.send(limit(Side::Buy, 1, 100, 1));
    until(&mut oms, "it waits", |oms| oms.sequencer().queued() == 1);
    up(&mut oms, &wires, 0);
    until(&mut oms, "it leaves", |_| wires[0].sent().len() + wires[1].sent().len() == 1);
    let (first, second) = if wires[0].sent().is_empty() { (&wires[1], &wires[0]) } else { (&wires[0], &wires[1]) };
    first.cut();
    until(&mut oms, "the loss is told", has_lost);
    // New orders use the other line; a request that names the unproven order does not.
    client.send(replace(2, 1, 101, 1));
    client.send(limit(Side::Buy, 3, 100, 1));
    until(&mut oms, "the other line has it", |_| second.sent() == [(0, 'N')]);
    first.accept_connect(Some(0));
    let sent =
        |what: char| wires.iter().map(|wire| wire.sent().iter().filter(|sent| sent.1 == what).count()).sum::<usize>();
    until(&mut oms, "the order goes again, and its replace", |_| (sent('N'), sent('R')) == (3, 1));
    let by =
        wires.iter().map(TestLine::sent).find(|sent| sent.iter().any(|(_, what)| *what == 'R')).expect("just there");
    let [(before, 'N'), (behind, 'R')] = by[by.len() - 2..] else {
        panic!("the replace is not behind its order: {by:?}")
    };
    assert_eq!(behind, before + 1);
    let ids = first.with_state(|state| state.sent[0].1.client_order_id());
    let again = wires
        .iter()
        .map(|wire| wire.with_state(|state| state.sent.iter().filter(|sent| sent.1.client_order_id() == ids).count()));
    assert_eq!(again.sum::<usize>(), 2, "once, and once more when the venue had said that it has not got it");
}

#[test]
fn a_cancel_returned_with_its_order_cancels_it_in_the_oms() {
    let (wires, _scene, mut oms, mut client) = joined::<1>(|_| {});
    client.send(limit(Side::Buy, 1, 100, 1));
    until(&mut oms, "it is sent", |_| wires[0].sent().len() == 1);
    wires[0].cut();
    until(&mut oms, "the loss is told", has_lost);
    client.send(cancel(2, 1));
    poll(&mut oms);
    client.receive_reports();
    up(&mut oms, &wires, 0);
    let mut reports = Vec::new();
    until(&mut oms, "it is canceled", |_| {
        reports.extend(client.receive_reports());
        !reports.is_empty()
    });
    assert_eq!(reports, [(2, ExecType::Canceled, OrdStatus::Canceled)]);
    for _ in 0..10 {
        poll(&mut oms);
    }
    assert_eq!((wires[0].sent().len(), oms.sequencer().queued(), oms.sequencer().counts().done), (1, 0, 1));
}

#[test]
fn a_line_refuses_an_expired_request_and_sends_those_behind_it() {
    let (wires, mut scene, mut oms, mut client) =
        joined::<1>(|scene| scene.config.trading.accounts[0].max_request_age_ns = SECOND);
    client.send(limit(Side::Buy, 1, 100, 1));
    until(&mut oms, "it is sent", |_| wires[0].sent() == [(0, 'N')]);
    wires[0].with_state(|state| state.is_full = true);
    client.send(limit(Side::Buy, 2, 100, 1));
    client.send(limit(Side::Buy, 3, 100, 1));
    client.send(cancel(4, 3));
    client.send(cancel(5, 1));
    until(&mut oms, "all are taken", |oms| oms.sequencer().counts().sending == 3);
    client.receive();
    scene.clock.advance(2 * SECOND);
    scene.tick(99, 101);
    wires[0].with_state(|state| state.is_full = false);
    // The OMS returns no request until the venue has confirmed the ones sent.
    for _ in 0..20 {
        poll(&mut oms);
    }
    assert_eq!(wires[0].sent(), [(0, 'N')]);
    wires[0].with_state(|state| state.received = 1);
    until(&mut oms, "the cancel of what the venue has leaves", |_| wires[0].sent().len() == 2);
    assert_eq!(wires[0].sent()[1], (5, 'C'), "behind the numbers of what was given back");
    let received = client.receive();
    let [ReceivedMessage::Report(canceled), ReceivedMessage::Denied(denied)] = received[..] else {
        panic!("two answers: {received:?}")
    };
    assert_eq!(
        (canceled.client_order_id.0, canceled.status),
        (4, OrdStatus::Canceled.code()),
        "taken back with its order"
    );
    assert_eq!((denied.client_order_id.0, Denial::from_code(denied.code)), (2, Some(Denial::RequestAge)));
    // The line continues, and no second notice that it is up was sent.
    wires[0].with_state(|state| state.received = 6);
    client.send(limit(Side::Buy, 6, 100, 1));
    until(&mut oms, "it is sent", |_| wires[0].sent().len() == 3);
    let ups = oms.sequencer().notices().filter(|notice| matches!(notice, Notice::LineUp(_))).count();
    assert_eq!((ups, oms.sequencer().counts().unknown), (1, 0));
}

#[test]
fn orders_of_a_lost_line_are_in_doubt_and_queried_by_another_line() {
    let (wires, scene, mut oms, mut client) = joined::<2>(|_| {});
    (1..=4).for_each(|id| client.send(limit(Side::Buy, id, 100, 1)));
    until(&mut oms, "each line has two", |_| wires.iter().all(|wire| wire.sent().len() == 2));
    // The first order of the first line has arrived; no other report came.
    wires[0].with_state(|state| state.received = 1);
    poll(&mut oms);
    wires[0].cut();
    until(&mut oms, "the loss is told", has_lost);
    scene.clock.advance(9 * SECOND);
    client.send(cancel(5, 3));
    for _ in 0..100 {
        poll(&mut oms);
    }
    assert_eq!((oms.sequencer().counts().unknown, wires[1].sent().len()), (0, 2), "it may come back");
    scene.clock.advance(2 * SECOND);
    until(&mut oms, "both are asked for", |_| wires[1].sent().len() == 4);
    assert_eq!(oms.sequencer().counts().unknown, 2);
    let asked = |place: usize| {
        wires[1].with_state(|state| match state.sent[place].1 {
            Request::Status(status) => status.original,
            ref other => panic!("a question: {other:?}"),
        })
    };
    let sent = wires[0].with_state(|state| [state.sent[0].1.client_order_id(), state.sent[1].1.client_order_id()]);
    assert_eq!([asked(2), asked(3)], sent);
    assert!(oms.sequencer().notices().any(|notice| matches!(notice, Notice::LineGivenUp { orders: 2, .. })));
    // A cancel no longer waits for the dead line.
    client.send(cancel(6, 3));
    until(&mut oms, "it goes by the other", |_| wires[1].sent().last().is_some_and(|last| last.1 == 'C'));
    // The line is back after all: a request missing at the venue is not sent again, because its answer decides.
    wires[0].accept_connect(Some(1));
    until(&mut oms, "it is up", |_| wires[0].with_state(|state| state.is_up));
    for _ in 0..20 {
        poll(&mut oms);
    }
    assert_eq!((wires[0].sent().len(), oms.sequencer().counts().ignored), (2, 0));
    assert_eq!(oms.sequencer().counts().unknown, 2);
    let (order, question) = wires[1].with_state(|state| (sent[1], state.sent[3].1.client_order_id()));
    wires[1].with_state(|state| state.reports.push(unknown_order_answer(order, question)));
    until(&mut oms, "it is known", |oms| oms.sequencer().counts().unknown == 1);
    assert_eq!(oms.sequencer().counts().rejected, 1);
}

#[test]
fn orders_from_before_a_lane_was_lost_are_in_doubt_too() {
    let (wires, scene, mut oms, mut client) = joined::<2>(|_| {});
    client.send(limit(Side::Buy, 1, 100, 1));
    until(&mut oms, "it is sent", |_| wires.iter().any(|wire| !wire.sent().is_empty()));
    let by = usize::from(wires[0].sent().is_empty());
    let order = wires[by].with_state(|state| state.sent[0].1.client_order_id());
    wires[by].with_state(|state| (state.received, state.reports) = (1, vec![accepted(order)]));
    until(&mut oms, "the venue works it", |oms| oms.sequencer().counts().working == 1);
    drop((oms, client));
    scene.config.lanes.remove().expect("nobody has them open");
    wires.iter().for_each(|wire| wire.with_state(|state| (state.is_up, state.has, state.resume) = (false, None, None)));
    let mut oms = TimedOms::new(&scene);
    // The order's reports come by that line only, and the other line's new lane has no record of the order.
    wires[1 - by].accept_connect(None);
    until(&mut oms, "it is asked for", |_| wires[1 - by].sent().last().is_some_and(|last| last.1 == 'S'));
    assert_eq!(oms.sequencer().counts().unknown, 1);
}

#[test]
fn orders_that_a_start_finds_on_a_dead_line_are_in_doubt_too() {
    let (wires, scene, mut oms, mut client) = joined::<1>(|_| {});
    client.send(limit(Side::Buy, 1, 100, 1));
    until(&mut oms, "it is sent", |_| wires[0].sent().len() == 1);
    drop(oms);
    wires[0].with_state(|state| (state.is_up, state.has, state.resume) = (false, None, None));
    let mut oms = TimedOms::new(&scene);
    scene.clock.advance(11 * SECOND);
    until(&mut oms, "it is unknown", |oms| oms.sequencer().counts().unknown == 1);
    // The question is sent as soon as a line is up.
    wires[0].accept_connect(Some(1));
    until(&mut oms, "it is asked for", |_| wires[0].sent().last().is_some_and(|last| last.1 == 'S'));
}

#[test]
fn an_order_refused_on_one_line_uses_the_other_while_it_is_up() {
    const BUSY: u16 = 77;
    let rule = RejectRule { venue: VENUE, code: BUSY, action: OTHER_LINE, times: 2, reserved: 0 };
    let (wires, _scene, mut oms, mut client) = joined::<2>(|scene| scene.config.trading.rejects = vec![rule]);
    for (id, is_other_up) in [(1, true), (2, true), (3, false)] {
        let before: Vec<usize> = wires.iter().map(|wire| wire.sent().len()).collect();
        client.send(limit(Side::Buy, id, 100, 1));
        let newest = |place: usize| wires[place].sent().len() > before[place];
        until(&mut oms, "it is sent", |_| newest(0) || newest(1));
        let by = if newest(0) { 0 } else { 1 };
        if !is_other_up {
            wires[1 - by].cut();
            until(&mut oms, "the loss is told", has_lost);
        }
        let order = wires[by].with_state(|state| state.sent.last().expect("just sent").1.client_order_id());
        wires[by].with_state(|state| state.reports.push(refused(order, BUSY)));
        let to = if is_other_up { 1 - by } else { by };
        let sent = wires[to].sent().len();
        until(&mut oms, "it goes again", |_| wires[to].sent().len() > sent);
        let again = wires[to].with_state(|state| state.sent.last().expect("just sent").1.client_order_id());
        assert_ne!(again, order, "under another id");
    }
    assert_eq!((oms.sequencer().counts().rejected, oms.sequencer().counts().sending), (0, 3));
}

fn has_lost(oms: &mut Inline<SimulatedClock>) -> bool {
    oms.sequencer().notices().any(|notice| matches!(notice, Notice::LineDown { why, .. } if why == "cut"))
}

fn refused(order: ClientOrderId, reason: u16) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(order.0),
        client_order_id: order,
        venue_sequence: 1,
        venue: VENUE,
        account: WIDE,
        exec_type: ExecType::Rejected.code(),
        status: OrdStatus::Rejected.code(),
        side: Side::Buy.code(),
        reason,
        ..ExecutionReport::default()
    }
}

fn accepted(order: ClientOrderId) -> ExecutionReport {
    let (exec_type, status) = (ExecType::New.code(), OrdStatus::New.code());
    let (price, leaves_quantity) = (Price::from_whole(100), Quantity::from_whole(1));
    ExecutionReport { exec_type, status, price, leaves_quantity, ..refused(order, 0) }
}

/// Returns the answer to a question about an order that the venue never received.
fn unknown_order_answer(order: ClientOrderId, question: ClientOrderId) -> ExecutionReport {
    ExecutionReport {
        venue_sequence: 0,
        client_order_id: question,
        exec_type: ExecType::OrderStatus.code(),
        side: 0,
        ..refused(order, 7)
    }
}

#[test]
fn a_restarted_oms_resends_once_only_requests_the_venue_lacks() {
    let (wires, scene, mut oms, mut client) = joined::<1>(|_| {});
    (1..=5).for_each(|id| client.send(limit(Side::Buy, id, 100, 1)));
    until(&mut oms, "all are sent", |_| wires[0].sent().len() == 5);
    wires[0].with_state(|state| state.received = 2);
    for _ in 0..4 {
        poll(&mut oms);
    }
    drop(oms);
    wires[0].with_state(|state| (state.is_up, state.has, state.resume) = (false, None, None));
    let mut oms = TimedOms::new(&scene);
    // The first two had proof, and the third has arrived too.
    up(&mut oms, &wires, 3);
    until(&mut oms, "the rest is sent", |_| wires[0].sent().len() == 7);
    assert_eq!(wires[0].sent()[5..], [(5, 'N'), (6, 'N')], "their numbers rise");
    let ids: Vec<u64> =
        wires[0].with_state(|state| state.sent.iter().map(|(_, request)| request.client_order_id().0).collect());
    assert_eq!(ids[3..5], ids[5..7], "the two that never arrived");
    // A second loss without any request taken since: returned requests are not returned again.
    wires[0].cut();
    until(&mut oms, "the loss", |_| wires[0].with_state(|state| !state.is_up));
    wires[0].with_state(|state| state.received = 0);
    up(&mut oms, &wires, 7);
    drop(oms);
    wires[0].with_state(|state| (state.is_up, state.has, state.resume) = (false, None, None));
    let mut oms = TimedOms::new(&scene);
    up(&mut oms, &wires, 7);
    assert_eq!(wires[0].sent().len(), 7);
    assert_eq!(oms.sequencer().counts().unknown, 0);
}

#[test]
fn a_venue_without_resume_numbers_leaves_doubt_and_is_queried() {
    let (wires, _scene, mut oms, mut client) = joined::<1>(|_| {});
    client.send(limit(Side::Buy, 1, 100, 1));
    until(&mut oms, "it is sent", |_| wires[0].sent().len() == 1);
    wires[0].cut();
    until(&mut oms, "the loss", |_| wires[0].with_state(|state| !state.is_up));
    wires[0].accept_connect(None);
    until(&mut oms, "it is asked for", |_| wires[0].sent() == [(0, 'N'), (1, 'S')]);
    assert_eq!(oms.sequencer().counts().unknown, 1);
    // The venue never had it.
    let order = wires[0].with_state(|state| state.sent[0].1.client_order_id());
    let asked = wires[0].with_state(|state| state.sent[1].1.client_order_id());
    let never = ExecutionReport {
        order_id: OrderId(order.0),
        client_order_id: asked,
        venue: VENUE,
        account: WIDE,
        exec_type: ExecType::OrderStatus.code(),
        status: OrdStatus::Rejected.code(),
        side: Side::Buy.code(),
        reason: 5,
        ..ExecutionReport::default()
    };
    wires[0].with_state(|state| state.reports.push(never));
    until(&mut oms, "it is known", |oms| oms.sequencer().counts().unknown == 0);
}

#[test]
fn requests_that_never_left_leave_by_the_next_connection_to_a_venue_without_resume_numbers() {
    let (wires, _scene, mut oms, mut client) = joined::<1>(|_| {});
    client.send(limit(Side::Buy, 1, 100, 1));
    until(&mut oms, "it is sent", |_| wires[0].sent() == [(0, 'N')]);
    let order = wires[0].with_state(|state| state.sent[0].1.client_order_id());
    wires[0].with_state(|state| (state.received, state.reports) = (1, vec![accepted(order)]));
    until(&mut oms, "the venue works it", |oms| oms.sequencer().counts().working == 1);
    wires[0].with_state(|state| state.is_full = true);
    client.send(limit(Side::Buy, 2, 100, 1));
    client.send(cancel(3, 1));
    until(&mut oms, "both are taken", |oms| oms.sequencer().counts().sending == 1);
    wires[0].cut();
    until(&mut oms, "the loss", |_| wires[0].with_state(|state| !state.is_up));
    wires[0].with_state(|state| state.is_full = false);
    wires[0].accept_connect(None);
    until(&mut oms, "both leave", |_| wires[0].sent().len() >= 3);
    for _ in 0..20 {
        poll(&mut oms);
    }
    let kinds: Vec<char> = wires[0].sent().iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds, ['N', 'N', 'C', 'S'], "each once, and a question about the order whose reports may be lost");
    let asked = wires[0].with_state(|state| match state.sent[3].1 {
        Request::Status(status) => status.original,
        ref other => panic!("a question: {other:?}"),
    });
    assert_eq!((asked, oms.sequencer().counts().unknown), (order, 1), "the order that never left is not in doubt");
}

#[test]
fn a_venue_that_lost_requests_leaves_doubt_and_is_queried() {
    let (wires, _scene, mut oms, mut client) = joined::<1>(|_| {});
    client.send(limit(Side::Buy, 1, 100, 1));
    wires[0].with_state(|state| state.received = 1);
    until(&mut oms, "it is sent", |_| wires[0].sent().len() == 1);
    for _ in 0..4 {
        poll(&mut oms);
    }
    wires[0].cut();
    until(&mut oms, "the loss", |_| wires[0].with_state(|state| !state.is_up));
    wires[0].with_state(|state| state.received = 0);
    wires[0].accept_connect(Some(0));
    until(&mut oms, "it is asked for, and not sent again", |_| wires[0].sent() == [(0, 'N'), (1, 'S')]);
    assert_eq!(oms.sequencer().counts().unknown, 1);
}

#[test]
fn an_expired_returned_request_is_refused_at_the_line() {
    let (wires, mut scene, mut oms, mut client) =
        joined::<1>(|scene| scene.config.trading.accounts[0].max_request_age_ns = SECOND);
    client.send(limit(Side::Buy, 1, 100, 1));
    until(&mut oms, "it is sent", |_| wires[0].sent().len() == 1);
    wires[0].cut();
    until(&mut oms, "the loss", |_| wires[0].with_state(|state| !state.is_up));
    scene.clock.advance(2 * SECOND);
    scene.tick(99, 101);
    wires[0].accept_connect(Some(0));
    let mut denied = None;
    until(&mut oms, "it is denied", |_| {
        denied = client.receive().into_iter().find_map(|received| match received {
            ReceivedMessage::Denied(denied) => Some(denied),
            ReceivedMessage::Report(_) => None,
        });
        denied.is_some()
    });
    let denied = denied.expect("just heard");
    assert_eq!(Denial::from_code(denied.code), Some(Denial::RequestAge), "{denied:?}");
    assert_eq!(wires[0].sent().len(), 1, "it never went again");
}

#[test]
fn a_full_window_makes_later_requests_wait() {
    let (wires, _scene, mut oms, mut client) = joined::<1>(|scene| scene.config.lanes.lines[0].window = 2);
    (1..=5).for_each(|id| client.send(limit(Side::Buy, id, 100, 1)));
    until(&mut oms, "the rest waits", |oms| oms.sequencer().queued() == 3);
    assert_eq!(wires[0].sent().len(), 2);
    // A waiting order can be canceled before it is sent.
    client.send(cancel(6, 5));
    until(&mut oms, "it is canceled", |oms| oms.sequencer().queued() == 2);
    wires[0].with_state(|state| state.received = 1);
    until(&mut oms, "one more leaves", |_| wires[0].sent().len() == 3);
    wires[0].with_state(|state| state.received = 3);
    until(&mut oms, "the last leaves", |_| wires[0].sent() == [(0, 'N'), (1, 'N'), (2, 'N'), (3, 'N')]);
}

#[test]
fn a_following_cancel_keeps_the_rate_limit_and_ignores_the_window() {
    for (window, rate_per_second) in [(2, 0), (100, 2)] {
        let (wires, _scene, mut oms, mut client) = joined::<2>(|scene| {
            for line in &mut scene.config.lanes.lines {
                (line.window, line.rate_per_second) = (window, rate_per_second);
            }
        });
        (1..=4).for_each(|id| client.send(limit(Side::Buy, id, 100, 1)));
        until(&mut oms, "each line has two", |_| wires.iter().all(|wire| wire.sent().len() == 2));
        (1..=4).for_each(|id| client.send(cancel(10 + id, id)));
        if rate_per_second > 0 {
            for _ in 0..10 {
                poll(&mut oms);
            }
            assert!(wires.iter().all(|wire| wire.sent().len() == 2), "a rate of {rate_per_second}");
            oms.clock.advance(SECOND);
        }
        // The venue has confirmed nothing.
        until(&mut oms, "the cancels leave", |_| wires.iter().all(|wire| wire.sent().len() == 4));
        client.send(limit(Side::Buy, 5, 100, 1));
        for _ in 0..10 {
            poll(&mut oms);
        }
        let orders = |wire: &TestLine| wire.sent().iter().filter(|(_, word)| *word == 'N').count();
        assert_eq!(wires.iter().map(orders).sum::<usize>(), 4, "a window of {window}, a rate of {rate_per_second}");
    }
}

#[test]
fn a_lost_or_removed_line_puts_its_venue_in_doubt_and_a_new_one_not() {
    let wires = [TestLine::default(), TestLine::default(), TestLine::default()];
    let mut scene = scene(&wires);
    let all = std::mem::take(&mut scene.config.lanes.lines);
    let mut doubts = Vec::new();
    for (lines, lost) in
        [(&all[..1], false), (&all[..2], false), (&all[..3], false), (&all[..2], true), (&all[..2], false)]
    {
        scene.config.lanes.lines = lines.to_vec();
        wires.iter().for_each(|wire| wire.with_state(|state| (state.is_up, state.resume) = (false, None)));
        let mut oms = TimedOms::new(&scene);
        let doubted = oms.sequencer().notices().any(|notice| matches!(notice, Notice::Doubt { .. }));
        doubts.push((doubted, lost));
        // An order that stays open, so that a request can be in doubt.
        let mut client = scene.client(0);
        wires[..lines.len()].iter().for_each(|wire| wire.with_state(|state| state.has = None));
        client.send(limit(Side::Buy, lines.len() as u64 * 100 + doubts.len() as u64, 100, 1));
        wires[0].with_state(|state| state.has = state.resume.map(|resume| Some(resume.next_request)));
        until(&mut oms, "the first line is up", |_| {
            wires[0].with_state(|state| {
                state.has = state.resume.map(|resume| Some(resume.next_request));
                state.is_up && state.sent.iter().any(|(_, request)| matches!(request, Request::New(_)))
            })
        });
    }
    assert!(doubts.iter().all(|(doubted, lost)| doubted == lost), "{doubts:?}");
}
