//! A venue that is killed at any point resumes as if nothing had happened: the same lanes, to the byte.

use tickpath_clock::{Clock, SimulatedClock};
use tickpath_log::{ReaderStart, Writer};
use tickpath_market::ExecutionReport;
use tickpath_venue_sim::{Chance, InjectedFaults, VenueEngine};
use zerocopy::IntoBytes;

use crate::naive::Naive;
use crate::random_commands::{Command, Commands, seed};
use crate::world::{Frame, MORNING, Step, World, operate, settle};

/// Number of steps of a run.
const STEPS: usize = 120;

/// Faults of a run with many of them.
const FAULTS: InjectedFaults = InjectedFaults {
    seed: 7,
    drop_requests: Chance(100_000),
    drop: Chance(100_000),
    double: Chance(200_000),
    swap: Chance(300_000),
    reject: Chance(100_000),
    delay_ns: 0,
    halt: false,
    cut: Chance(0),
};

#[test]
fn a_venue_restarted_after_each_step_sends_the_same_reports() {
    restart_after_every_step(InjectedFaults::default());
}

#[test]
fn a_venue_with_injected_faults_restarts_after_each_step() {
    restart_after_every_step(FAULTS);
}

fn restart_after_every_step(faults: InjectedFaults) {
    let seed = seed();
    let steps = steps(seed);
    let one = live(&steps, faults);
    for start in [ReaderStart::Oldest, ReaderStart::Cursor] {
        let mut world = World::with(faults);
        world.start = start;
        for (number, step) in steps.iter().enumerate() {
            let mut line = world.open();
            take(&mut world, &mut line, number, step);
        }
        check_end(&world, &one, &format!("seed {seed}, {start:?}"));
    }
}

#[test]
fn a_venue_restarted_after_each_poll_works_off_a_backlog() {
    let seed = seed();
    let backlog = || {
        let mut world = World::new();
        steps(seed).iter().for_each(|step| world.feed(step, MORNING));
        world
    };
    let (one, other) = (backlog(), backlog());
    settle(&mut one.open());
    let lives = (0..STEPS).take_while(|_| other.open().poll().expect("the line goes on") > 0).count();
    assert!((2..STEPS).contains(&lives), "seed {seed}: {lives} lives, of which each should do a part");
    check_end(&other, &ReferenceRun { world: one, marks: Vec::new() }, &format!("seed {seed}"));
}

#[test]
fn a_venue_recovers_from_a_crash_between_any_two_polls() {
    come_back_from_every_point(InjectedFaults::default());
}

#[test]
fn a_venue_with_injected_faults_recovers_from_any_crash() {
    come_back_from_every_point(FAULTS);
}

fn come_back_from_every_point(faults: InjectedFaults) {
    let seed = seed();
    let steps = steps(seed);
    let one = live(&steps, faults);
    for at in 0..STEPS {
        let (before, after) = (one.mark(at), one.mark(at + 1));
        // The input is in its lane only, or in the journal with some of its reports sent.
        let mut points = vec![RestartPoint { at, records: before.records, reports: before.reports }];
        if after.records > before.records {
            let reports = before.reports..=after.reports;
            points.extend(reports.map(|reports| RestartPoint { at, records: after.records, reports }));
        }
        for point in points {
            check_point(&steps, &one, &point, &format!("seed {seed}, {point:?}: {:?}", steps[at]));
        }
    }
}

/// Point of a kill: a step, with the number of records in the journal and of reports in the lane.
#[derive(Debug)]
struct RestartPoint {
    at: usize,
    records: usize,
    reports: usize,
}

/// A run without a kill.
struct ReferenceRun {
    world: World,
    /// Marks after each number of steps.
    marks: Vec<RunMark>,
}

#[derive(Clone, Copy)]
struct RunMark {
    records: usize,
    reports: usize,
}

impl ReferenceRun {
    fn mark(&self, steps: usize) -> RunMark {
        self.marks[steps]
    }
}

/// Draws steps of as many kinds as possible, hostile ones included. The operator's actions follow the fills.
fn steps(seed: u64) -> Vec<Step> {
    let (mut commands, mut naive) = (Commands::new(seed, true), Naive::default());
    let mut steps = Vec::new();
    for number in 0..STEPS {
        let command = match number % 60 {
            59 => Command::EndOfDay,
            _ => commands.draw(),
        };
        commands.see(&naive.apply(number as u64, &command).unwrap_or_default());
        steps.push(if number % 20 == 7 { Step::Garbage } else { Step::Command(command) });
    }
    steps
}

fn live(steps: &[Step], faults: InjectedFaults) -> ReferenceRun {
    let mut world = World::with(faults);
    let mut line = world.open();
    let mut marks = vec![mark(&world)];
    for (number, step) in steps.iter().enumerate() {
        take(&mut world, &mut line, number, step);
        marks.push(mark(&world));
    }
    drop(line);
    ReferenceRun { world, marks }
}

/// Runs one step at its time.
fn take(world: &mut World, line: &mut VenueEngine<SimulatedClock>, number: usize, step: &Step) {
    world.clock.advance(1);
    assert_eq!(world.clock.ticks(), MORNING + 1 + number as u64);
    world.feed(step, world.clock.ticks());
    operate(line, step);
    settle(line);
}

/// Restores the world at a point, and continues from there.
fn check_point(steps: &[Step], one: &ReferenceRun, point: &RestartPoint, context: &str) {
    let mut world = World::with(one.world.config.faults);
    for (number, step) in steps[..=point.at].iter().enumerate() {
        world.feed(step, MORNING + 1 + number as u64);
    }
    world.clock.advance(1 + point.at as u64);
    let mut journal = Writer::open(&world.config.journal, world.clock.calibration()).expect("it is new");
    copy(&one.world.frames("journal")[..point.records], &mut journal);
    drop(journal);
    copy(&one.world.frames("reports")[..point.reports], &mut world.join_reports());

    let mut line = world.open();
    if point.records == one.mark(point.at).records {
        operate(&mut line, &steps[point.at]);
    }
    settle(&mut line);
    let count = one.mark(point.at + 1).reports;
    assert_same(&world.reports(), &one.world.reports()[..count], context);
    for (number, step) in steps.iter().enumerate().skip(point.at + 1) {
        take(&mut world, &mut line, number, step);
    }
    check_end(&world, one, context);
}

/// Checks that lanes and journal equal those of the run without a kill, and the book that of the journal.
fn check_end(world: &World, one: &ReferenceRun, context: &str) {
    assert_same(&world.reports(), &one.world.reports(), context);
    assert!(world.frames("journal") == one.world.frames("journal"), "{context}: the journals differ");
}

fn assert_same(reports: &[ExecutionReport], expected: &[ExecutionReport], context: &str) {
    let differs = reports.iter().zip(expected).position(|(a, b)| a.as_bytes() != b.as_bytes());
    if let Some(at) = differs {
        panic!("{context}: report {at} is {:?}, and not {:?}", reports[at], expected[at]);
    }
    assert_eq!(reports.len(), expected.len(), "{context}: so many reports");
}

fn mark(world: &World) -> RunMark {
    RunMark { records: world.frames("journal").len(), reports: world.frames("reports").len() }
}

fn copy(frames: &[Frame], to: &mut Writer) {
    for (stamp, kind, payload) in frames {
        to.publish(*stamp, *kind, payload).expect("there is room");
    }
}
