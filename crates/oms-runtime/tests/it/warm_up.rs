//! Warm-up of an idle OMS: it has no visible effect.

use std::fs;

use tickpath_clock::Wait;
use tickpath_market::Side;
use tickpath_oms_runtime::{Agent, LaneKind, Layout};

use crate::layouts::{ThreadedOms, await_messages};
use crate::{Dice, SECOND, Scene, TIGHT, VENUE, cancel, frames, limit, replace, seed, settle};

/// Idle turns between two requests: enough for several warm-ups.
const TURNS: u32 = 10_000;

/// All persistent traces of a day.
#[derive(PartialEq, Eq)]
struct DayTraces {
    journal: Vec<u8>,
    lanes: Vec<Vec<(u8, Vec<u8>)>>,
    state: String,
}

#[test]
fn a_day_with_warm_up_and_one_without_agree_to_the_byte() {
    let seed = seed();
    let (warm, warm_up_counts) = day(seed, true);
    let (cold, none) = day(seed, false);
    assert!(warm.state == cold.state, "{}\n{}", warm.state, cold.state);
    assert!(warm.lanes == cold.lanes && warm.journal == cold.journal, "lanes or journals differ");
    assert_eq!(none, (0, 0));
    let (orders, outputs) = warm_up_counts;
    assert!(orders > 300, "{orders} warm-up orders were sent");
    assert!(outputs > orders, "{outputs} outputs for {orders} orders: the orders are denied");
}

/// Runs on the threads of every layout, one order after the other: a warm-up has no effect there either.
#[test]
fn the_warm_up_of_every_layout_has_no_effect() {
    for layout in Layout::ALL {
        let [warm, cold] = [true, false].map(|warm| {
            let mut scene = Scene::new();
            (scene.config.layout, scene.config.wait, scene.config.warm_up) = (layout, Wait::Adaptive, warm);
            scene.tick(99, 101);
            let beside = ThreadedOms::start(&scene);
            let mut client = scene.client(0);
            let reports = (1..=40).map(|id| {
                client.send(limit(Side::Buy, id, 90, 1));
                format!("{:?}", await_messages(&mut client, &beside.deadline, 2))
            });
            let reports: Vec<String> = reports.collect();
            beside.end();
            let (core, inputs, outputs) = scene.replay();
            format!("{reports:?} {:?} {:?} {inputs:?} {outputs:?}", core.digest(), core.counts())
        });
        assert!(warm == cold, "{layout}:\n{warm}\n{cold}");
    }
}

/// Runs a day of orders, cancels and replaces, some of them denied, with idle time between them.
fn day(seed: u64, warm: bool) -> (DayTraces, (u64, u64)) {
    let mut dice = Dice::new(seed);
    let mut scene = Scene::new();
    (scene.config.wait, scene.config.warm_up) = (Wait::Busy, warm);
    scene.tick(99, 101);
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let mut client = scene.client(0);
    settle(&mut oms, &mut venue);
    for id in 1..=100 {
        let before = 1 + dice.below(id);
        match dice.below(6) {
            0 => client.send(cancel(id, before)),
            1 => client.send(replace(id, before, 95, 3)),
            2 => client.send(tickpath_market::NewOrder { account: TIGHT, ..limit(Side::Buy, id, 98, 600) }),
            3 => client.send(limit(Side::Sell, id, 99, 2)),
            _ => client.send(limit(Side::Buy, id, 90 + (id % 7) as i64, 1)),
        }
        if dice.below(2) == 0 {
            settle(&mut oms, &mut venue);
        }
        (0..TURNS).for_each(|_| {
            oms.idle();
        });
        scene.clock.advance(SECOND / 100);
        if dice.below(5) == 0 {
            scene.tick(98 + (id % 2) as i64, 101);
        }
    }
    settle(&mut oms, &mut venue);
    let warm_up = oms.warm_up_counts();
    let sequencer = oms.sequencer();
    sequencer.stop().expect("the journal is open");
    let (core, records) = (sequencer.core(), sequencer.records());
    let state = format!("{:?} {:?} {} {records}", core.digest(), core.counts(), core.item_count());
    assert!(core.digest().outputs > 200, "a day of some orders");
    let kinds = [LaneKind::VenueRequests(VENUE), LaneKind::Reports(0), LaneKind::Reports(1)];
    let lanes = kinds.map(|kind| frames(&scene.lane(kind))).to_vec();
    let journal = fs::read(scene.config.journal.path.dir().join("data")).expect("it is on the disk");
    (DayTraces { journal, lanes, state }, warm_up)
}
