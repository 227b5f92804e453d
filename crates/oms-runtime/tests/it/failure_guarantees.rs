//! Guarantees to a desk when a host, a lane or a neighbour fails: nothing is sent twice, no foreign message is taken,
//! and an unknown outcome is queried.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use tickpath_clock::{Calibration, SimulatedClock};
use tickpath_log::{Config as LogConfig, LogOwner, owner};
use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, OrdStatus, OrderId, Quantity, Side, SymbolId};
use tickpath_oms_core::{Input, LOST_REQUESTS, MessageLoss, RecordKind, Resolve};
use tickpath_oms_runtime::layout::Inline;
use zerocopy::IntoBytes;

use crate::scripted_venue::{ScriptedVenue, fill, informed, new_orders, questions, report, with_one_order};
use crate::{
    Clock, Kind, LaneKind, LogPublishError, Notice, OmsError, Reader, ReaderStart, ReceivedMessage, Registration,
    SECOND, Scene, VENUE, WIDE, Writer, limit, poll, top,
};

#[test]
fn a_venue_that_starts_before_the_oms_makes_no_lane() {
    let (scene, oms, venue, client, _) = with_one_order();
    drop((oms, venue, client));
    // After a reboot shared memory is empty, and the venue is the first to join.
    scene.config.lanes.remove().expect("the lanes are ours");
    assert!(scene.config.lanes.join_venue(VENUE, scene.clock.calibration()).is_err(), "the OMS makes the lanes");
    let mut oms = informed(&scene);
    let mut venue = ScriptedVenue::join(&scene);
    poll(&mut oms);
    assert_eq!(new_orders(&venue.receive()), Vec::<u64>::new(), "nothing goes again");
    assert_eq!(oms.sequencer().counts().unknown, 1);
}

#[test]
fn a_lane_made_by_another_process_is_not_used() {
    let (scene, oms, venue, client, id) = with_one_order();
    drop((oms, venue, client));
    let ours = owner(&scene.lane(LaneKind::VenueRequests(VENUE)).path).expect("the OMS made it");
    for (owner, what) in [
        (LogOwner::default(), "nobody's"),
        (LogOwner { journal: ours.journal + 1, ..ours }, "another journal's"),
        (LogOwner { incarnation: 0, ..ours }, "an earlier start's"),
    ] {
        scene.config.lanes.remove().expect("the lanes are ours");
        for kind in scene.config.lanes.kinds() {
            let lane = LogConfig { owner, ..scene.lane(kind) };
            let mut writer = Writer::open(&lane, scene.clock.calibration()).expect("the lane is new");
            let reader = lane.mandatory.then(|| Reader::open(&lane.path, ReaderStart::Cursor, Registration::Mandatory));
            // Yesterday's frames: an order of a client, and a fill of the venue.
            if kind == LaneKind::Requests(0) {
                let order = limit(Side::Buy, 77, 90, 1);
                writer.publish(1, Kind::NewOrder.code(), order.as_bytes()).expect("there is room");
            }
            if kind == LaneKind::VenueReports(VENUE) {
                let report = fill(id, 1, 9, 5, 5, 0);
                writer.publish(1, Kind::ExecutionReport.code(), report.as_bytes()).expect("there is room");
            }
            drop((writer, reader));
        }
        let mut oms = informed(&scene);
        let mut venue = ScriptedVenue::join(&scene);
        poll(&mut oms);
        assert_eq!(new_orders(&venue.receive()), Vec::<u64>::new(), "{what}: nothing goes again");
        assert_eq!(oms.sequencer().counts().unknown, 1, "{what}: it is in doubt");
        assert_eq!(oms.sequencer().core().position(WIDE, SymbolId(0)).net, 0, "{what}: nothing is booked");
        assert!(scene.replay().1.iter().all(|input| asks_for(input) != Some(77)), "{what}: nothing is taken");
        let lost = oms.sequencer().notices().filter(|notice| matches!(notice, Notice::LaneLost { .. })).count();
        assert_eq!(lost, scene.config.lanes.kinds().count(), "{what}: each is told");
    }
}

#[test]
fn a_client_that_overwrites_its_lane_loses_only_its_session() {
    let later = |starts: u64| move |lane: &mut LogConfig| lane.owner.incarnation += starts;
    type Overwrite<'a> = &'a dyn Fn(&mut LogConfig);
    let overwrite: [(&str, &[LaneKind], Overwrite<'_>); 4] = [
        ("the next start", &[LaneKind::Requests(0), LaneKind::Reports(0)], &later(1)),
        ("a start of a hundred later", &[LaneKind::Requests(0), LaneKind::Reports(0)], &later(100)),
        ("a start that never comes", &[LaneKind::Requests(0)], &|lane| lane.owner.incarnation = u64::MAX),
        ("another shape", &[LaneKind::Reports(0)], &|lane| lane.segment_bytes *= 2),
    ];
    for (what, kinds, overwrite) in overwrite {
        for &kind in kinds {
            let (scene, oms, venue, client, _) = with_one_order();
            drop((oms, venue, client));
            let mut lane = scene.lane(kind);
            lane.owner = owner(&lane.path).expect("the OMS made it");
            overwrite(&mut lane);
            lane.path.remove().expect("the lane is ours");
            drop(Writer::open(&lane, scene.clock.calibration()).expect("it is new"));
            let refused = |e| panic!("{what} in {kind} keeps the OMS down: {e}");
            let mut oms = Inline::open(scene.clock.clone(), &scene.config, None).unwrap_or_else(refused);
            let lost = oms.sequencer().notices().filter(|notice| matches!(notice, Notice::LaneLost { .. })).count();
            assert_eq!(lost, 1, "{what} in {kind}: it is told once");
            oms.sequencer().apply_top_of_book(scene.clock.ticks(), &top(99, 101)).expect("nothing waits for it");
            let (mut venue, mut clients) = (ScriptedVenue::join(&scene), [scene.client(0), scene.client(1)]);
            clients.iter_mut().for_each(|client| client.send(limit(Side::Buy, 2, 90, 5)));
            poll(&mut oms);
            let ids = new_orders(&venue.receive());
            assert_eq!(ids.len(), 2, "{what} in {kind}: both sessions trade");
            // Even with an older journal no id is given twice; but a client can move the epoch by an hour at most.
            let is_later = |id: &u64| OrderId(*id).epoch() > lane.owner.incarnation;
            assert_eq!(
                ids.iter().all(is_later),
                ["the next start", "another shape"].contains(&what),
                "{what} in {kind}"
            );
        }
    }
}

#[test]
fn a_writer_of_a_replaced_lane_gets_an_error() {
    let (mut scene, oms, venue, mut client, _) = with_one_order();
    drop((oms, venue));
    // Another journal in the same place has another id.
    fs::remove_dir_all(scene.config.journal.path.dir()).expect("the journal is ours");
    scene.config.seed = Some(0xab1e);
    let _oms = informed(&scene);
    let sent = client.try_send(limit(Side::Buy, 2, 90, 5));
    assert!(matches!(sent, Err(LogPublishError::NoReader)), "it would be lost without a word: {sent:?}");
    drop(client);
    assert_eq!(scene.client(0).receive(), [], "a client that joins again finds a new log");
}

#[test]
fn an_old_copy_of_the_journal_is_refused() {
    const YEAR: u64 = 365 * 24 * 3_600 * SECOND;
    let mut scene = Scene::new();
    scene.clock = SimulatedClock::at(56 * YEAR);
    let data = scene.config.journal.path.dir().join("data");
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    oms.sequencer().stop().expect("the disk is sound");
    let copy = fs::read(&data).expect("the journal is there");
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let before = new_orders(&venue.receive())[0];
    drop((oms, venue, client));
    fs::write(&data, &copy).expect("the journal is ours");
    scene.clock.advance(60 * SECOND);
    let refused = scene.try_oms().err().expect("it is refused");
    assert!(matches!(refused, OmsError::JournalBehind { lane: LaneKind::VenueRequests(VENUE), .. }), "{refused}");
    // As the error message advises: the OMS starts without that lane, and no id is given twice.
    scene.lane(LaneKind::VenueRequests(VENUE)).path.remove().expect("the lane is ours");
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 2, 90, 5));
    poll(&mut oms);
    let after = new_orders(&venue.receive());
    assert!(!after.contains(&before) && after.len() == 1, "{before} is the id of an order that the venue works");
    venue.send(&fill(before, 1, 1, 5, 5, 0));
    poll(&mut oms);
    assert_eq!(oms.sequencer().counts().unknown_order_reports, 1);
    assert_eq!(oms.sequencer().core().position(WIDE, SymbolId(0)).net, 0, "nothing is booked elsewhere");
}

#[test]
fn ids_survive_a_loss_of_power() {
    let scene = Scene::new();
    let data = scene.config.journal.path.dir().join("data");
    let mut oms = informed(&scene);
    let synced = fs::read(&data).expect("the journal is there");
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let before = new_orders(&venue.receive())[0];
    drop((oms, venue, client));
    // The tail had not reached the disk, and shared memory is empty.
    fs::write(&data, &synced).expect("the journal is ours");
    scene.config.lanes.remove().expect("the lanes are ours");
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let after = new_orders(&venue.receive())[0];
    assert_ne!(before, after);
    venue.send(&fill(before, 2, 1, 5, 5, 0));
    poll(&mut oms);
    assert_eq!(oms.sequencer().counts().unknown_order_reports, 1, "an old fill is no fill of a new order");
}

#[test]
fn ids_do_not_repeat_in_a_journal_begun_anew_within_a_minute() {
    let mut scene = Scene::new();
    let mut orders = Vec::new();
    for seed in 100..103 {
        scene.config.seed = Some(seed);
        // A start other than the one that made the lanes sends the order.
        drop(informed(&scene));
        let mut oms = informed(&scene);
        let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
        client.send(limit(Side::Buy, 1, 90, 5));
        poll(&mut oms);
        orders.extend(new_orders(&venue.receive()));
        drop((oms, venue, client));
        fs::remove_dir_all(scene.config.journal.path.dir()).expect("the journal is ours");
    }
    assert_eq!(orders.len(), 3);
    assert!(orders[0] < orders[1] && orders[1] < orders[2], "{orders:?}");
}

#[test]
fn unread_fills_put_orders_in_doubt_and_are_resolved() {
    let (scene, mut oms, mut venue, mut client, id) = with_one_order();
    client.send(limit(Side::Buy, 2, 90, 5));
    poll(&mut oms);
    let other = new_orders(&venue.receive())[0];
    venue.send(&report(id, ExecType::New, 1, 0, 5));
    venue.send(&report(other, ExecType::New, 1, 0, 5));
    poll(&mut oms);
    venue.send(&fill(id, 2, 1, 3, 3, 2));
    drop((oms, venue));
    scene.lane(LaneKind::VenueReports(VENUE)).path.remove().expect("the lane is ours");

    let mut oms = informed(&scene);
    let mut venue = ScriptedVenue::join(&scene);
    poll(&mut oms);
    assert_eq!(oms.sequencer().counts().unknown, 2, "acceptances prove nothing of what came after");
    assert_eq!(questions(&venue.receive()), [id, other]);
    let status = |id: u64, sequence: u64, cumulative: i64, leaves: i64, status: OrdStatus| ExecutionReport {
        client_order_id: ClientOrderId(u64::MAX),
        status: status.code(),
        ..report(id, ExecType::OrderStatus, sequence, cumulative, leaves)
    };
    venue.send(&status(other, 1, 0, 5, OrdStatus::New));
    venue.send(&status(id, 2, 3, 2, OrdStatus::PartiallyFilled));
    poll(&mut oms);
    let view = |oms: &mut Inline<SimulatedClock>, id| oms.sequencer().core().order(OrderId(id)).expect("it is known");
    assert_eq!(view(&mut oms, other).status, OrdStatus::New);
    assert_eq!(view(&mut oms, id).status, OrdStatus::Unknown, "its fill is known by number only");

    // The operator has asked by telephone.
    let mut operator = scene.config.lanes.join_control(scene.clock.calibration()).expect("the OMS made it");
    let mut reason = [0; 32];
    reason[..8].copy_from_slice(b"by phone");
    let resolve = Resolve {
        order: id,
        cumulative_quantity: Quantity::from_whole(3),
        status: OrdStatus::PartiallyFilled.code(),
        reserved: [0; 3],
        lane_sequence: 0,
        reason,
    };
    operator.publish(1, RecordKind::Resolve.code(), resolve.as_bytes()).expect("the OMS reads it");
    poll(&mut oms);
    assert_eq!(view(&mut oms, id).status, OrdStatus::PartiallyFilled);
    let position = oms.sequencer().core().position(WIDE, SymbolId(0));
    assert_eq!((position.net, position.working_buy), (3 * 100_000_000, 7 * 100_000_000));
    let messages = client.receive();
    let Some(ReceivedMessage::Report(report)) = messages.last() else { panic!("a report was expected: {messages:?}") };
    assert_eq!(report.status, OrdStatus::PartiallyFilled.code());
}

#[test]
fn a_second_kill_anywhere_in_a_recovery_changes_nothing() {
    let (scene, oms, venue, client, id) = with_one_order();
    drop((oms, venue, client));
    let data = scene.config.journal.path.dir().join("data");
    let journal = fs::read(&data).expect("the journal is there");
    let mut steps = 0;
    for first in 1.. {
        fs::write(&data, &journal).expect("the journal is ours");
        scene.config.lanes.remove().expect("the lanes are ours");
        let was_killed = start_until(&scene, first);
        // Once more, at every step of the second start.
        for second in 1.. {
            let was_killed_again = start_until(&scene, second);
            let mut oms = informed(&scene);
            let mut venue = ScriptedVenue::join(&scene);
            poll(&mut oms);
            let received = venue.receive();
            assert_eq!(new_orders(&received), Vec::<u64>::new(), "killed at {first} and {second}: it goes again");
            let status = oms.sequencer().core().order(OrderId(id)).expect("it is known").status;
            assert_eq!(status, OrdStatus::Unknown, "killed at {first} and {second}: the doubt is forgotten");
            assert!(questions(&received).iter().all(|asked| *asked == id), "killed at {first} and {second}");
            steps += 1;
            if !was_killed_again {
                break;
            }
        }
        if !was_killed {
            break;
        }
    }
    assert!(steps > 50, "a start has many steps: {steps}");
}

/// Starts an OMS that is killed at this reading of its clock; false if its start was over before.
fn start_until(scene: &Scene, readings: u64) -> bool {
    silence_kills();
    let clock = KillingClock { clock: scene.clock.clone(), left: Arc::new(AtomicU64::new(readings)) };
    let started = catch_unwind(AssertUnwindSafe(|| Inline::open(clock, &scene.config, None).map(drop)));
    match started {
        Ok(opened) => {
            opened.unwrap_or_else(|e| panic!("it opens: {e}"));
            false
        }
        Err(_) => true,
    }
}

/// Suppresses the panic message of a simulated kill.
fn silence_kills() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&KILLED) {
                tell(panic);
            }
        }));
    });
}

const KILLED: &str = "killed";

/// A clock whose reader dies at a given reading: between any two steps of a start.
#[derive(Clone)]
struct KillingClock {
    clock: SimulatedClock,
    left: Arc<AtomicU64>,
}

impl Clock for KillingClock {
    fn ticks(&self) -> u64 {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::panic::panic_any(KILLED);
        }
        self.clock.ticks()
    }

    fn calibration(&self) -> &Calibration {
        self.clock.calibration()
    }
}

#[test]
fn a_passive_recorder_keeps_no_lane_alive() {
    let (scene, oms, mut venue, client, id) = with_one_order();
    let place = scene.lane(LaneKind::VenueReports(VENUE)).path;
    let mut recorder = Reader::open(&place, ReaderStart::Oldest, Registration::Registered).expect("the lane is there");
    drop((oms, client));
    // While the OMS is down, the venue keeps its reports, however much the recorder reads.
    let mut kept = vec![report(id, ExecType::New, 1, 0, 5)];
    kept.extend((1..=5).map(|n| fill(id, n as u64 + 1, n as u64, 1, n, 5 - n)));
    let mut next = 0;
    for _ in 0..100_000 {
        let report = &kept[next];
        match venue.lanes.reports.publish(1, Kind::ExecutionReport.code(), report.as_bytes()) {
            Ok(_) => next += 1,
            Err(LogPublishError::NoReader | LogPublishError::Full) => {}
            Err(e) => panic!("{e}"),
        }
        recorder.drain(usize::MAX, |_| {}).expect("the lane is sound");
        if next == kept.len() {
            break;
        }
    }
    let mut oms = informed(&scene);
    for report in &kept[next..] {
        venue.send(report);
    }
    while poll(&mut oms) > 0 {}
    let view = oms.sequencer().core().order(OrderId(id)).expect("it is known");
    assert_eq!((view.status, view.cumulative), (OrdStatus::Filled, Quantity::from_whole(5)), "every fill is booked");
}

/// Returns the client order id of a request in the journal.
fn asks_for(input: &Input) -> Option<u64> {
    match input {
        Input::Request { request, .. } => Some(request.client_order_id().0),
        _ => None,
    }
}

#[test]
fn a_doubt_names_the_lost_messages() {
    let (scene, oms, venue, client, _) = with_one_order();
    drop((oms, venue, client));
    scene.lane(LaneKind::VenueRequests(VENUE)).path.remove().expect("the lane is ours");
    drop(informed(&scene));
    let doubts: Vec<_> = scene.replay().1.into_iter().filter(|input| matches!(input, Input::MessageLoss(_))).collect();
    let expected = MessageLoss { messages: 0, venue: VENUE, lost: LOST_REQUESTS, reserved: [0; 5] };
    assert_eq!(doubts, [Input::MessageLoss(expected)], "the reports are still there");
}
