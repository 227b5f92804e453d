//! Instructions and modes of a new order on every way to its venue: directly, from the queue, by a retry, by a trigger,
//! and each of them in a core that was loaded from a snapshot on the way.

use tickpath_market::{
    Condition, ConditionalOrder, ExecType, ExecutionReport, NewOrder, OrdStatus, PositionEffect, Price, Quantity,
    Request, SelfTradeMode, Side, TradeMode, Trigger, TriggerDirection, TriggerPriceType,
};
use tickpath_oms_core::{Input, RETRY, RejectRule, TriggerFired};

use crate::scene::{SYMBOL, Scene, VENUE, order, reported};
use crate::snapshot::{loaded, saved};

const BUSY: u16 = 77;

/// Returns an order with a value in each field that no check of the core reads.
fn instructed() -> NewOrder {
    NewOrder {
        cause: 5,
        position_effect: PositionEffect::Close.code(),
        instructions: NewOrder::POST_ONLY | NewOrder::REDUCE_ONLY,
        self_trade_mode: SelfTradeMode::CancelBoth.code(),
        trade_mode: TradeMode::Isolated.code(),
        ..order(1, Side::Buy, 100, 10)
    }
}

fn conditional() -> Request {
    let condition = Condition {
        price: Price(105),
        symbol: SYMBOL,
        price_type: TriggerPriceType::Last.code(),
        direction: TriggerDirection::Up.code(),
        reserved: [0; 2],
    };
    Request::Conditional(ConditionalOrder { order: instructed(), trigger: Trigger::on(condition) })
}

fn fire(scene: &mut Scene, id: u64) {
    let reference_price = scene.reference;
    scene.apply(Input::TriggerFired(TriggerFired {
        order: id,
        tick: 77,
        price: Price(105),
        reference_price,
        reference_age_ns: 1,
        symbol: SYMBOL,
        price_type: TriggerPriceType::Last.code(),
        reserved: [0; 3],
    }));
}

/// Retries orders that the venue rejects with [`BUSY`].
fn retry(scene: &mut Scene) {
    scene.apply(Input::Reject(RejectRule { venue: VENUE, code: BUSY, action: RETRY, times: 3, reserved: 0 }));
}

fn reject(scene: &mut Scene, id: u64) {
    let rejected = reported(id, ExecType::Rejected, id, 1, 0, 0);
    scene.report(ExecutionReport { reason: BUSY, status: OrdStatus::Rejected.code(), ..rejected });
}

/// Checks the order that the venue receives. `enter` brings the order into the core and returns its id, `leave` sends
/// the order; a snapshot is taken between the two.
#[track_caller]
fn check(way: &str, enter: fn(&mut Scene) -> u64, leave: fn(&mut Scene, u64)) {
    for is_loaded in [false, true] {
        let mut scene = Scene::new();
        let id = enter(&mut scene);
        if is_loaded {
            scene.core = loaded(&saved(&scene.core)).expect("a core reads its own snapshot");
        }
        leave(&mut scene, id);
        let [Request::New(sent)] = scene.venue_requests()[..] else { panic!("{way}: no order: {:?}", scene.out) };
        let expected = NewOrder { client_order_id: sent.client_order_id, ..instructed() };
        assert_eq!(sent, expected, "{way}, loaded from a snapshot: {is_loaded}");
    }
}

#[test]
fn an_order_keeps_its_instructions_on_every_way_to_its_venue() {
    check("directly", |scene| scene.request(Request::New(instructed())), |_, _| {});
    check(
        "from the queue",
        |scene| {
            scene.line(false);
            scene.request(Request::New(instructed()))
        },
        |scene, _| {
            scene.line(true);
            assert!(scene.release());
        },
    );
    check(
        "returned by its line",
        |scene| {
            let id = scene.request(Request::New(instructed()));
            let sent = scene.venue_requests()[0];
            scene.returned(&sent);
            id
        },
        |scene, _| assert!(scene.release()),
    );
    check(
        "by a retry",
        |scene| {
            retry(scene);
            scene.request(Request::New(instructed()))
        },
        |scene, id| {
            reject(scene, id);
            assert!(scene.release());
        },
    );
    check(
        "from the queue, by a retry",
        |scene| {
            retry(scene);
            let id = scene.request(Request::New(instructed()));
            reject(scene, id);
            id
        },
        |scene, _| assert!(scene.release()),
    );
    check("by a trigger", |scene| scene.request(conditional()), fire);
    check(
        "by a trigger, from the queue",
        |scene| {
            scene.line(false);
            let id = scene.request(conditional());
            fire(scene, id);
            id
        },
        |scene, _| {
            scene.line(true);
            assert!(scene.release());
        },
    );
    check(
        "by a trigger and a retry",
        |scene| {
            retry(scene);
            let id = scene.request(conditional());
            fire(scene, id);
            id
        },
        |scene, id| {
            reject(scene, id);
            assert!(scene.release());
        },
    );
}

#[test]
fn an_armed_order_keeps_its_instructions_through_a_replace() {
    let mut scene = Scene::new();
    let id = scene.request(conditional());
    scene.replace(2, 1, 101, 12);
    fire(&mut scene, id);
    let [Request::New(sent)] = scene.venue_requests()[..] else { panic!("no order: {:?}", scene.out) };
    let expected = NewOrder { price: Price(101), quantity: Quantity(12), ..instructed() };
    assert_eq!(sent, NewOrder { client_order_id: sent.client_order_id, ..expected });
}
