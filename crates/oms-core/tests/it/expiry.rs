//! Good-till-date orders: denied if they come too late, canceled at their end time and not before, until they have
//! ended.

use tickpath_market::{
    ClientOrderId, ExecType, ExecutionReport, ExtendedOrder, NewOrder, OrdStatus, OrderId, Request, Side, TimeInForce,
};
use tickpath_oms_core::{
    Boot, DayEnd, Denial, ExpiryTimer, Input, LOST_REPORTS, LOST_REQUESTS, Output, RETRY, RejectRule, VenueRules,
};

use crate::dice::{Dice, seed};
use crate::scene::{Scene, VENUE, amended, fill, order, reported};
use crate::snapshot::{loaded, saved};

/// Time after which a refused cancel is sent again: ticks of a scene are nanoseconds.
const AGAIN_NS: u64 = 1_000_000_000;

fn dated(client: u64, expire_ns: u64) -> Request {
    let time_in_force = TimeInForce::GoodTillDate.code();
    let order = NewOrder { time_in_force, ..order(client, Side::Buy, 100, 10) };
    Request::Extended(ExtendedOrder { order, expire_ns, ..ExtendedOrder::default() })
}

impl Scene {
    /// Sends an order that ends at this time, and lets its venue accept it.
    fn order_until(&mut self, client: u64, expire_ns: u64) -> u64 {
        let id = self.request(dated(client, expire_ns));
        self.report(reported(id, ExecType::New, id, 1, 0, 10));
        id
    }

    /// Advances the clock, as a shell does: with a timer if one is needed. Returns whether it was.
    fn pass(&mut self, until: u64) -> bool {
        self.stamp = until - 1;
        let is_needed = self.core.needs_expiry_timer(until);
        if is_needed {
            self.apply(Input::ExpiryTimer(ExpiryTimer::default()));
        }
        is_needed
    }

    /// Returns types and states of the last reports to clients.
    fn reports(&self) -> Vec<(ExecType, OrdStatus)> {
        let both = |report: &ExecutionReport| {
            (ExecType::from_code(report.exec_type).unwrap(), OrdStatus::from_code(report.status).unwrap())
        };
        self.client_reports().iter().map(both).collect()
    }
}

#[test]
fn the_venue_gets_a_good_till_cancel_order_and_the_core_keeps_the_end_time() {
    let mut scene = Scene::new();
    let id = scene.request(dated(1, 1_000));
    let [Request::New(new)] = scene.venue_requests()[..] else { panic!("{:?}", scene.out) };
    assert_eq!(new.time_in_force, TimeInForce::GoodTillCancel.code());
    assert_eq!(scene.view(id).time_in_force, TimeInForce::GoodTillDate);
    let extension = scene.core.extension(OrderId(id)).expect("it has an end time");
    assert_eq!((extension.expire_ns, scene.core.text_id(OrderId(id))), (1_000, None));
    let [_, Output::Extension { extension: sent, .. }, Output::Report { .. }] = scene.out.as_slice() else {
        panic!("{:?}", scene.out)
    };
    assert_eq!((*sent, sent.client_order_id), (extension, ClientOrderId(1)));
}

#[test]
fn an_order_that_comes_after_its_end_is_denied() {
    let mut scene = Scene::new();
    let now = scene.stamp + 1;
    scene.request(dated(1, now));
    assert_eq!(scene.denial(), Some((Denial::EndTimePassed, 0, 0)));
    scene.request(dated(2, now + 2));
    assert_eq!(scene.denial(), None, "its end is a nanosecond later");
    // A plain order cannot be good till date.
    let plain = NewOrder { time_in_force: TimeInForce::GoodTillDate.code(), ..order(3, Side::Buy, 100, 10) };
    scene.request(Request::New(plain));
    assert_eq!(scene.denial(), Some((Denial::Malformed, 0, 0)));
}

#[test]
fn an_order_is_canceled_at_its_end_and_reported_as_expired() {
    let mut scene = Scene::new();
    let id = scene.order_until(1, 1_000);
    scene.report(fill(id, 2, 3, 3, 7));
    assert!(!scene.pass(999), "not before");
    assert!(scene.pass(1_000));
    assert_eq!(scene.canceled(), [id]);
    let cancel = OrderId::new(scene.core.epoch(), scene.sequence).0;
    assert_eq!(scene.reports(), [(ExecType::PendingCancel, OrdStatus::PendingCancel)]);
    assert!(!scene.pass(1_001), "its cancel is in flight");
    scene.report(reported(id, ExecType::Canceled, cancel, 3, 3, 0));
    assert_eq!(scene.reports(), [(ExecType::Expired, OrdStatus::Expired)]);
    scene.report(reported(id, ExecType::Canceled, cancel, 3, 3, 0));
    assert_eq!(scene.reports(), [], "a duplicate");
    scene.pass(10 * AGAIN_NS);
    assert!(!scene.pass(20 * AGAIN_NS), "nothing is left to do");
}

#[test]
fn an_order_that_its_client_or_its_venue_ended_is_left_alone() {
    let mut scene = Scene::new();
    let ended = scene.order_until(1, 1_000);
    let asked = scene.order_until(2, 1_000);
    scene.report(fill(ended, 2, 10, 10, 0));
    let cancel = scene.cancel(3, 2);
    scene.pass(1_000);
    assert_eq!(scene.out.as_slice(), [], "one is filled, and the cancel of the other is in flight");
    scene.report(reported(asked, ExecType::Canceled, cancel, 2, 0, 0));
    assert_eq!(scene.reports(), [(ExecType::Canceled, OrdStatus::Canceled)], "the client has canceled it");
}

#[test]
fn a_refused_cancel_is_sent_again() {
    let mut scene = Scene::new();
    let id = scene.order_until(1, 1_000);
    for (attempt, number) in (0..3).zip(2..) {
        assert!(scene.pass(1_000 + attempt * AGAIN_NS));
        assert_eq!(scene.canceled(), [id], "attempt {attempt}");
        let cancel = OrderId::new(scene.core.epoch(), scene.sequence).0;
        scene.report(reported(id, ExecType::CancelRejected, cancel, number, 0, 10));
        assert_eq!(scene.state(id), OrdStatus::New);
        assert!(!scene.pass(999 + (attempt + 1) * AGAIN_NS), "not at once");
    }
}

#[test]
fn an_order_that_waits_for_its_venue_is_withdrawn() {
    let mut scene = Scene::new();
    scene.line(false);
    let id = scene.request(dated(1, 1_000));
    assert!(scene.pass(1_000));
    assert_eq!((scene.venue_requests(), scene.reports()[0].0), (vec![], ExecType::Expired));
    scene.line(true);
    assert!(!scene.release(), "it never leaves");
    assert_eq!(scene.core.open_orders().count(), 0, "{:?}", scene.view(id));
}

#[test]
fn a_lost_cancel_is_sent_again_to_a_venue_without_status_answers() {
    let mut scene = Scene::new();
    scene.apply(Input::Venue(VenueRules { answers_status: 0, ..VenueRules::of(VENUE) }));
    let id = scene.order_until(1, 1_000);
    assert!(scene.pass(1_000));
    assert_eq!(scene.canceled(), [id]);
    scene.doubt(LOST_REQUESTS);
    assert_eq!((scene.venue_requests(), scene.state(id)), (vec![], OrdStatus::Unknown));
    assert!(scene.pass(1_000 + AGAIN_NS));
    assert_eq!(scene.canceled(), [id], "the first cancel may be lost");
    scene.line(false);
    for attempt in 2..4 {
        assert!(scene.pass(1_000 + attempt * AGAIN_NS));
        assert_eq!((scene.venue_requests(), scene.core.waiting(VENUE)), (vec![], 1), "attempt {attempt}");
    }
    scene.line(true);
    assert!(scene.release());
    assert_eq!(scene.canceled(), [id]);
    let [Request::Cancel(cancel)] = scene.venue_requests()[..] else { panic!("{:?}", scene.out) };
    scene.report(reported(id, ExecType::Canceled, cancel.client_order_id.0, 2, 0, 0));
    assert_eq!(scene.reports(), [(ExecType::Expired, OrdStatus::Expired)]);
}

#[test]
fn an_order_whose_turn_comes_after_its_end_is_withdrawn() {
    for is_retry in [false, true] {
        let mut scene = Scene::new();
        scene.apply(Input::Reject(RejectRule { venue: VENUE, code: 77, action: RETRY, times: 3, reserved: 0 }));
        scene.line(is_retry);
        let id = scene.request(dated(1, 1_000));
        if is_retry {
            let status = OrdStatus::Rejected.code();
            scene.report(ExecutionReport { reason: 77, status, ..reported(id, ExecType::Rejected, id, 1, 0, 0) });
        }
        scene.line(true);
        assert_eq!((scene.state(id), scene.core.waiting(VENUE)), (OrdStatus::PendingNew, 1), "retry: {is_retry}");
        // The release comes before the timer.
        scene.stamp = 999;
        assert!(scene.release());
        assert_eq!((scene.venue_requests(), scene.reports()[0].0), (vec![], ExecType::Expired), "retry: {is_retry}");
        assert_eq!((scene.core.open_orders().count(), scene.core.waiting(VENUE)), (0, 0));
        scene.pass(2_000);
        assert_eq!(scene.out.as_slice(), [], "nothing is left to do");
    }
}

#[test]
fn an_order_that_comes_back_from_its_line_after_its_end_has_expired() {
    let mut scene = Scene::new();
    let id = scene.request(dated(1, 1_000));
    let sent = scene.venue_requests()[0];
    assert!(scene.pass(1_000));
    assert_eq!(scene.canceled(), [id]);
    scene.returned(&sent);
    assert_eq!((scene.reports()[0].0, scene.core.open_orders().count()), (ExecType::Expired, 0));
}

#[test]
fn an_order_that_ended_while_the_oms_was_down_is_canceled_once_its_line_is_up() {
    let mut scene = Scene::new();
    let boot =
        |epoch, boot, utc_ns| Input::Boot(Boot { epoch, boot_id: [boot; 16], ticks_per_second: 1_000_000_000, utc_ns });
    scene.apply(boot(1, 1, 5_000_000));
    let id = scene.order_until(1, 6_000_000);
    scene.core = loaded(&saved(&scene.core)).expect("a core reads its own snapshot");
    scene.line(false);
    // The next boot of the host begins with other ticks, behind the end time.
    scene.stamp = 10;
    scene.apply(boot(2, 2, 7_000_000));
    assert!(scene.pass(20));
    assert_eq!(scene.canceled(), [0; 0], "its line is down");
    assert_eq!(scene.state(id), OrdStatus::PendingCancel);
    scene.line(true);
    assert!(scene.release());
    assert_eq!(scene.canceled(), [id]);
}

#[test]
fn an_order_outlives_the_day_and_one_in_doubt_is_canceled_too() {
    let mut scene = Scene::new();
    let id = scene.order_until(1, 1_000);
    scene.apply(Input::DayEnd(DayEnd { day: 20_261_130, lane_sequence: 0 }));
    assert_eq!(scene.state(id), OrdStatus::New);
    scene.doubt(LOST_REPORTS);
    assert!(scene.pass(1_000));
    assert_eq!(scene.canceled(), [id]);
    // The venue has canceled it, which only its status shows.
    assert_eq!(scene.answer(id, OrdStatus::Canceled, 2, 0, 0), Some(OrdStatus::Expired));
}

#[test]
fn an_order_that_a_bust_opens_again_after_its_end_is_canceled() {
    let mut scene = Scene::new();
    let id = scene.order_until(1, 1_000);
    scene.report(fill(id, 2, 10, 10, 0));
    scene.pass(2_000);
    assert_eq!(scene.canceled(), [0; 0]);
    scene.report(amended(id, ExecType::TradeCancel, 10, 3, 10, 0, 10));
    assert_eq!(scene.state(id), OrdStatus::New);
    assert!(scene.pass(2_002));
    assert_eq!(scene.canceled(), [id]);
}

/// State of an order at a venue that knows no end times, and the end time by the client.
struct VenueOrder {
    id: u64,
    expire_ns: u64,
    number: u64,
    cancel: Option<u64>,
    is_open: bool,
}

/// A venue that answers late, refuses cancels and is away at times, against the end times of a naive list.
struct World {
    scene: Scene,
    orders: Vec<VenueOrder>,
    is_up: bool,
}

impl World {
    /// Takes the requests that have left; a cancel before its order's end is a fault.
    fn take_requests(&mut self) {
        for request in self.scene.venue_requests() {
            if let Request::Cancel(cancel) = request {
                let order = self.orders.iter_mut().find(|order| order.id == cancel.original.0).expect("it is known");
                assert!(order.expire_ns <= self.scene.stamp, "canceled at {}, {}", self.scene.stamp, order.expire_ns);
                order.cancel = Some(cancel.client_order_id.0);
            }
        }
    }

    fn answer(&mut self, index: usize, refuses: bool) {
        let order = &mut self.orders[index];
        let Some(cancel) = order.cancel.take().filter(|_| order.is_open) else { return };
        order.number += 1;
        order.is_open = refuses;
        let (what, leaves) = if refuses { (ExecType::CancelRejected, 10) } else { (ExecType::Canceled, 0) };
        let (id, number) = (order.id, order.number);
        self.scene.report(reported(id, what, cancel, number, 0, leaves));
        self.take_requests();
    }

    fn pass(&mut self, ns: u64) {
        self.scene.pass(self.scene.stamp + 1 + ns);
        self.take_requests();
        while self.is_up && self.scene.release() {
            self.take_requests();
        }
    }

    fn set_up(&mut self, is_up: bool) {
        self.is_up = is_up;
        self.scene.line(is_up);
        self.take_requests();
        self.pass(0);
    }
}

#[test]
fn no_order_stays_open_past_its_end_and_none_is_canceled_before() {
    let mut dice = Dice::new(seed());
    for round in 0..40 {
        let mut world = World { scene: Scene::new(), orders: Vec::new(), is_up: true };
        for step in 0..150 {
            match dice.below(7) {
                0 | 1 if world.is_up => {
                    let expire_ns = world.scene.stamp + 2 + dice.below(5 * AGAIN_NS);
                    let id = world.scene.order_until(step + 1, expire_ns);
                    world.orders.push(VenueOrder { id, expire_ns, number: 1, cancel: None, is_open: true });
                }
                2 | 3 if !world.orders.is_empty() => {
                    let index = dice.below(world.orders.len() as u64) as usize;
                    world.answer(index, dice.once_in(3));
                }
                4 => world.set_up(dice.once_in(2)),
                5 => world.scene.core = loaded(&saved(&world.scene.core)).expect("a core reads its own snapshot"),
                _ => world.pass(dice.below(AGAIN_NS)),
            }
        }
        world.set_up(true);
        // The last end is less than five seconds away, and refusals end here.
        for _ in 0..8 {
            world.pass(AGAIN_NS);
            (0..world.orders.len()).for_each(|index| world.answer(index, false));
        }
        let open: Vec<u64> = world.orders.iter().filter(|order| order.is_open).map(|order| order.id).collect();
        assert_eq!((open, world.scene.core.open_orders().count()), (vec![], 0), "round {round}");
        for order in &world.orders {
            assert_eq!(world.scene.state(order.id), OrdStatus::Expired, "round {round}");
        }
    }
}
