//! Orders with a trigger against a naive model: each fires once, at the first tick that satisfies its trigger and at no
//! other, wherever the OMS is killed in between.

use std::collections::BTreeMap;

use tickpath_clock::{Clock, SimulatedClock};
use tickpath_market::{
    ClientOrderId, Condition, ConditionalOrder, ExecType, Kind, OrdStatus, OrderId, Price, Quantity,
    ReplaceConditional, Request, Side, SymbolId, TopOfBook, Trade, Trigger, TriggerDirection, TriggerJoin,
    TriggerPriceType,
};
use tickpath_oms_core::{Denial, Input};
use tickpath_oms_runtime::layout::Inline;
use zerocopy::IntoBytes;

use crate::{Client, Dice, ReceivedMessage, Scene, WIDE, cancel, limit, poll, replace, seed, top};

const ROUNDS: u64 = 12;
const ACTS: u64 = 300;

/// All armed orders with their triggers, and the fired ones.
#[derive(Default)]
struct Naive {
    prices: BTreeMap<(u32, u8), Price>,
    armed: BTreeMap<u64, Trigger>,
    /// The stamp of the tick, by the client's order id.
    fired: BTreeMap<u64, u64>,
    /// The stamps of the ticks that the latest prices come from.
    stamps: BTreeMap<(u32, u8), u64>,
}

impl Naive {
    fn tick(&mut self, stamp: u64, prices: &[((u32, u8), Price)]) {
        for &(of, price) in prices {
            match price {
                Price::ZERO => self.prices.remove(&of),
                price => self.prices.insert(of, price),
            };
            self.stamps.insert(of, stamp);
        }
        let held: Vec<u64> = self.armed.iter().filter(|(_, trigger)| self.holds(trigger)).map(|(id, _)| *id).collect();
        for id in held {
            self.armed.remove(&id);
            self.fired.insert(id, stamp);
        }
    }

    fn arm(&mut self, id: u64, trigger: Trigger) {
        if !self.holds(&trigger) {
            self.armed.insert(id, trigger);
            return;
        }
        self.armed.remove(&id);
        let first = trigger.conditions().find(|condition| self.price(condition).is_some_and(|at| condition.holds(at)));
        let first = first.expect("one of them holds");
        self.fired.insert(id, self.stamps[&(first.symbol.0, first.price_type)]);
    }

    fn holds(&self, trigger: &Trigger) -> bool {
        trigger.fires(|condition| self.price(condition))
    }

    fn price(&self, condition: &Condition) -> Option<Price> {
        self.prices.get(&(condition.symbol.0, condition.price_type)).copied()
    }
}

fn trigger(dice: &mut Dice) -> Trigger {
    let mut condition = || Condition {
        price: Price::from_whole(90 + dice.below(21) as i64),
        symbol: SymbolId(dice.below(2) as u32),
        price_type: TriggerPriceType::ALL[dice.below(3) as usize].code(),
        direction: TriggerDirection::ALL[dice.below(2) as usize].code(),
        reserved: [0; 2],
    };
    let (first, second) = (condition(), condition());
    Trigger::joined(first, TriggerJoin::ALL[dice.below(3) as usize], second)
}

fn on(price_type: TriggerPriceType, direction: TriggerDirection, price: i64) -> Trigger {
    Trigger::on(Condition {
        price: Price::from_whole(price),
        symbol: SymbolId(0),
        price_type: price_type.code(),
        direction: direction.code(),
        reserved: [0; 2],
    })
}

/// Returns an order with a trigger, at a price far from the market.
fn armed(id: u64, trigger: Trigger) -> Request {
    Request::Conditional(ConditionalOrder { order: limit(Side::Buy, id, 90, 1), trigger })
}

fn rearmed(id: u64, original: u64, trigger: Trigger) -> Request {
    Request::ReplaceConditional(ReplaceConditional {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(original),
        price: Price::from_whole(91),
        quantity: Quantity::from_whole(2),
        account: WIDE,
        trigger,
        ..ReplaceConditional::default()
    })
}

impl Scene {
    fn trade(&mut self, symbol: u32, price: i64) -> u64 {
        let trade = Trade { price: Price::from_whole(price), symbol: SymbolId(symbol), ..Trade::default() };
        let stamp = self.clock.ticks();
        self.feed.publish(stamp, Kind::Trade.code(), trade.as_bytes()).expect("an overwrite topic takes all");
        stamp
    }

    /// Publishes a trade or a top of book of either symbol.
    fn market(&mut self, dice: &mut Dice, naive: &mut Naive) {
        let (symbol, middle) = (dice.below(2) as u32, 90 + dice.below(21) as i64);
        if dice.below(12) < 5 {
            let stamp = self.trade(symbol, middle);
            naive.tick(stamp, &[((symbol, TriggerPriceType::Last.code()), Price::from_whole(middle))]);
            return;
        }
        let ask = if dice.below(8) == 0 { Price::ZERO } else { Price::from_whole(middle + 1) };
        let tick = TopOfBook { ask, symbol: SymbolId(symbol), ..top(middle - 1, middle + 1) };
        let stamp = self.clock.ticks();
        self.feed.publish(stamp, Kind::TopOfBook.code(), tick.as_bytes()).expect("it takes all");
        let (bid, ask) = (TriggerPriceType::Bid.code(), TriggerPriceType::Ask.code());
        naive.tick(stamp, &[((symbol, bid), tick.bid), ((symbol, ask), tick.ask)]);
    }

    /// Returns the fired orders in the journal: the client's order id and the tick's stamp.
    fn fired(&self) -> BTreeMap<u64, u64> {
        let (core, inputs, _) = self.replay();
        let mut fired = BTreeMap::new();
        for input in inputs {
            let Input::TriggerFired(it) = input else { continue };
            let client = core.order(OrderId(it.order)).expect("it is known").client_order_id.0;
            assert!(fired.insert(client, it.tick).is_none(), "{client} has fired twice");
        }
        fired
    }
}

/// Runs a random script; the OMS is killed after some steps, before or after it has seen their ticks.
fn live(seed: u64) {
    let (mut dice, mut naive, mut scene) = (Dice::new(seed), Naive::default(), Scene::new());
    let mut oms = scene.oms();
    let mut client = scene.client(0);
    let mut last = 0;
    for act in 0..ACTS {
        scene.clock.advance(10);
        last += 1;
        let recent = 1 + dice.below(last);
        match dice.below(20) {
            0..=4 => {
                let trigger = trigger(&mut dice);
                client.send(armed(last, trigger));
                // The OMS takes a request from a lane after the prices.
                naive.arm(last, trigger);
            }
            5 if naive.armed.contains_key(&recent) => {
                let trigger = trigger(&mut dice);
                client.send(rearmed(last, recent, trigger));
                naive.arm(recent, trigger);
            }
            6 if naive.armed.contains_key(&recent) => {
                client.send(replace(last, recent, 92, 3));
            }
            7 if naive.armed.remove(&recent).is_some() => client.send(cancel(last, recent)),
            _ => scene.market(&mut dice, &mut naive),
        }
        scene.clock.advance(10);
        let is_killed_before = dice.below(12) == 0;
        if is_killed_before {
            drop(oms);
            oms = scene.oms();
        }
        while poll(&mut oms) > 0 {}
        if dice.below(12) == 0 {
            drop(oms);
            scene.clock.advance(5);
            // Ticks during the outage fire as if the OMS had been up.
            for _ in 0..dice.below(6) {
                scene.market(&mut dice, &mut naive);
                scene.clock.advance(5);
            }
            oms = scene.oms();
        }
        let armed: Vec<u64> = {
            let core = oms.sequencer().core();
            let client = |id| core.order(id).expect("it is known").client_order_id.0;
            let mut armed: Vec<u64> = core.armed_orders().map(|armed| client(armed.order)).collect();
            armed.sort_unstable();
            armed
        };
        assert_eq!(armed, naive.armed.keys().copied().collect::<Vec<_>>(), "seed {seed}, act {act}");
    }
    assert_eq!(scene.fired(), naive.fired, "seed {seed}");
    assert!(naive.fired.len() > 10, "too little has fired");
}

#[test]
fn each_order_fires_once_and_at_the_first_tick_that_satisfies_it() {
    let seed = seed();
    (0..ROUNDS).for_each(|round| live(seed + round));
}

/// Returns an OMS that has seen a market of 99 to 101, and its client.
fn begin() -> (Scene, Inline<SimulatedClock>, Client) {
    let mut scene = Scene::new();
    let oms = scene.oms();
    scene.tick(99, 101);
    let client = scene.client(0);
    scene.clock.advance(1);
    (scene, oms, client)
}

fn asks(client: &mut Client) -> Vec<(u64, ExecType, OrdStatus)> {
    client.receive_reports()
}

#[test]
fn a_trigger_that_already_holds_fires_with_the_last_tick() {
    let (_scene, mut oms, mut client) = begin();
    client.send(armed(1, on(TriggerPriceType::Bid, TriggerDirection::Up, 99)));
    while poll(&mut oms) > 0 {}
    let expected = [(1, ExecType::PendingNew, OrdStatus::Armed), (1, ExecType::Triggered, OrdStatus::PendingNew)];
    assert_eq!(asks(&mut client), expected);
    client.send(armed(2, on(TriggerPriceType::Ask, TriggerDirection::Down, 100)));
    while poll(&mut oms) > 0 {}
    client.send(rearmed(3, 2, on(TriggerPriceType::Ask, TriggerDirection::Down, 101)));
    while poll(&mut oms) > 0 {}
    let expected = [
        (2, ExecType::PendingNew, OrdStatus::Armed),
        (3, ExecType::Replaced, OrdStatus::Armed),
        (2, ExecType::Triggered, OrdStatus::PendingNew),
    ];
    assert_eq!(asks(&mut client), expected);
}

#[test]
fn ticks_older_than_a_trigger_do_not_fire_it_after_a_start() {
    let (mut scene, mut oms, mut client) = begin();
    scene.tick(120, 121);
    scene.clock.advance(1);
    scene.tick(99, 101);
    while poll(&mut oms) > 0 {}
    scene.clock.advance(1);
    client.send(armed(1, on(TriggerPriceType::Bid, TriggerDirection::Up, 110)));
    while poll(&mut oms) > 0 {}
    for _ in 0..3 {
        drop(oms);
        oms = scene.oms();
        while poll(&mut oms) > 0 {}
        assert_eq!(oms.sequencer().core().armed_orders().count(), 1, "the topic still holds a tick at 120");
    }
    // Ticks during the outage count.
    drop(oms);
    scene.clock.advance(1);
    scene.tick(110, 111);
    scene.clock.advance(1);
    scene.tick(99, 101);
    oms = scene.oms();
    while poll(&mut oms) > 0 {}
    assert_eq!(oms.sequencer().core().armed_orders().count(), 0);
}

#[test]
fn an_oms_without_ticks_denies_triggers() {
    let scene = Scene::new();
    let mut oms = Inline::open(scene.clock.clone(), &scene.config, None).expect("it opens");
    let mut client = scene.client(0);
    client.send(armed(1, on(TriggerPriceType::Last, TriggerDirection::Up, 99)));
    while poll(&mut oms) > 0 {}
    let [ReceivedMessage::Denied(denied)] = client.receive()[..] else { panic!("it is denied") };
    assert_eq!(denied.code, Denial::NoTicks.code());
}

#[test]
fn thousands_of_short_lived_triggers_leave_nothing_behind() {
    let (mut scene, mut oms, mut client) = begin();
    let mut id = 0;
    for round in 0..60 {
        for _ in 0..50 {
            id += 2;
            client.send(armed(id, on(TriggerPriceType::Bid, TriggerDirection::Up, 200)));
            client.send(cancel(id + 1, id));
        }
        while poll(&mut oms) > 0 {}
        client.receive();
        assert_eq!(oms.sequencer().core().armed_upper_bound(), 0, "round {round}");
    }
    id += 2;
    client.send(armed(id, on(TriggerPriceType::Bid, TriggerDirection::Up, 200)));
    while poll(&mut oms) > 0 {}
    client.receive();
    scene.clock.advance(1);
    scene.tick(200, 201);
    while poll(&mut oms) > 0 {}
    assert_eq!(scene.fired().keys().copied().collect::<Vec<_>>(), [id]);
}
