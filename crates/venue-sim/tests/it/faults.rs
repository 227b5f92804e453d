//! Injected faults, and nothing else that goes wrong.

use tickpath_market::{ExecType, OrderId, Quantity, Request, Side};
use tickpath_venue_sim::{Chance, InjectedFaults, RejectReason};

use crate::random_commands::Command;
use crate::script::order;
use crate::world::{MORNING, Step, World, settle};

const ALWAYS: Chance = Chance(1_000_000);
const HALF: Chance = Chance(500_000);

#[test]
fn each_fault_has_its_documented_effect() {
    let none = InjectedFaults::default();
    for (faults, expected) in [
        (none, vec![1, 2, 3, 4]),
        (InjectedFaults { drop: ALWAYS, ..none }, vec![]),
        (InjectedFaults { drop_requests: ALWAYS, ..none }, vec![]),
        (InjectedFaults { double: ALWAYS, ..none }, vec![1, 1, 2, 2, 3, 3, 4, 4]),
        (InjectedFaults { swap: ALWAYS, ..none }, vec![2, 1, 4, 3]),
        (InjectedFaults { double: ALWAYS, swap: ALWAYS, ..none }, vec![1, 2, 2, 1, 3, 4, 4, 3]),
        (InjectedFaults { halt: true, ..none }, vec![]),
    ] {
        let mut world = World::with(faults);
        (1..=4).for_each(|id| send(&mut world, id));
        settle(&mut world.open());
        assert_eq!(ids(&world), expected, "{faults}");
    }
}

#[test]
fn an_injected_rejection_ends_the_order_and_uses_up_its_id() {
    let mut world = World::with(InjectedFaults { reject: ALWAYS, ..InjectedFaults::default() });
    send(&mut world, 1);
    send(&mut world, 1);
    let mut line = world.open();
    settle(&mut line);
    let reports: Vec<_> = world.reports().iter().map(|report| (report.venue_sequence, report.reason)).collect();
    assert_eq!(reports, [(1, RejectReason::OnOrder.code()), (0, RejectReason::DuplicateId.code())]);
    assert!(world.reports().iter().all(|report| report.exec_type == ExecType::Rejected.code()));
    assert_eq!(line.venue().resting_orders(), 0);
}

#[test]
fn a_delayed_report_is_sent_when_it_is_due() {
    let mut world = World::with(InjectedFaults { delay_ns: 1_000, ..InjectedFaults::default() });
    send(&mut world, 1);
    let mut line = world.open();
    settle(&mut line);
    world.clock.advance(999);
    settle(&mut line);
    assert_eq!(ids(&world), [0; 0]);
    world.clock.advance(1);
    settle(&mut line);
    assert_eq!(ids(&world), [1]);
    // A restart ends the wait.
    send(&mut world, 2);
    settle(&mut line);
    drop(line);
    settle(&mut world.open());
    assert_eq!(ids(&world), [1, 2]);
}

#[test]
fn faults_change_at_run_time_and_across_restarts() {
    let mut world = World::new();
    let mut line = world.open();
    let mut id = 0;
    let mut seen = Vec::new();
    for (drop, restarts) in [(HALF, false), (Chance(0), true), (HALF, true), (ALWAYS, false), (HALF, true)] {
        world.config.faults = InjectedFaults { drop, seed: 3, ..InjectedFaults::default() };
        line.set_faults(world.config.faults).expect("the journal takes it");
        for _ in 0..20 {
            id += 1;
            send(&mut world, id);
            settle(&mut line);
        }
        seen.push(ids(&world).iter().filter(|seen| **seen > id - 20).count());
        if restarts {
            std::mem::drop(line);
            let before = world.frames("journal").len();
            line = world.open();
            assert_eq!(world.frames("journal").len(), before, "a restart with the same faults writes nothing down");
        }
    }
    let [half, all, again, none, last] = seen[..] else { panic!("five times") };
    assert!((1..20).contains(&half) && (all, none) == (20, 0), "{seen:?}");
    assert_eq!((half, half), (again, last), "the same dice fall the same");
    assert_eq!(line.venue().resting_orders(), id as usize, "the venue has taken the orders of dropped reports");
}

#[test]
fn chances_are_read_and_printed() {
    for (text, millionths) in [("0", 0), ("1", 1_000_000), ("0.5", 500_000), ("0.000001", 1), ("1.0", 1_000_000)] {
        let chance: Chance = text.parse().expect("a chance");
        assert_eq!(chance, Chance(millionths), "{text}");
        assert_eq!(chance.to_string().parse(), Ok(chance));
    }
    for bad in ["", "1.1", "2", "-0.5", "0.0000001", "10%", ".5", "1e-3", "0.5.5", "é"] {
        assert!(bad.parse::<Chance>().is_err(), "{bad}");
    }
}

fn send(world: &mut World, id: u64) {
    let request = Request::New(order(Side::Buy, id, Quantity::from_whole(1).0, 100));
    world.feed(&Step::Command(Command::Request(request)), MORNING);
}

/// Returns the order of each report, in the order of the lane.
fn ids(world: &World) -> Vec<u64> {
    world.reports().iter().map(|report| report.order_id).map(|OrderId(id)| id).collect()
}
