//! What a desk may rely on when a host, a lane or a neighbour fails: nothing is sent twice, nothing is taken that is not
//! ours, what cannot be known is asked for.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Calibration, SimulatedClock};
use tickpath_log::{Config as LogConfig, Owner, owner};
use tickpath_market::{
    ClientOrderId, ExecId, ExecType, ExecutionReport, OrdStatus, OrderId, Price, Quantity, Side,
};
use tickpath_oms::layout::Inline;
use tickpath_orders::{Doubt, Input, KILL_ALL, Kill, LOST_REQUESTS, RecordKind, Resolve};

use crate::{
    Clock, Heard, Kind, LaneKind, NewOrder, Notice, OmsError, PublishError, Rate, Reader, Registration,
    Request, SECOND, SLOW, Scene, Start, TIGHT, VENUE, VenueLanes, WIDE, Writer, cancel, limit, poll, settle, top,
};
use zerocopy::IntoBytes;

/// A venue that says what a test lets it say.
struct Told {
    lanes: VenueLanes,
    clock: SimulatedClock,
}

impl Told {
    fn join(scene: &Scene) -> Self {
        Self { lanes: scene.venue_lanes(), clock: scene.clock.clone() }
    }

    /// All requests that came since the last call.
    fn hear(&mut self) -> Vec<Request> {
        let mut heard = Vec::new();
        while let crate::Next::Message(message) = self.lanes.requests.next().expect("the lane is sound") {
            heard.push(Request::read(message.kind, message.payload).expect("the OMS writes requests"));
        }
        heard
    }

    fn say(&mut self, report: &ExecutionReport) {
        let kind = Kind::ExecutionReport.code();
        self.lanes.reports.publish(self.clock.ticks(), kind, report.as_bytes()).expect("the OMS reads this lane");
    }
}

/// A report on a limit order of the wide account, by its id at the venue.
fn said(id: u64, exec_type: ExecType, sequence: u64, cumulative: i64, leaves: i64) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(id),
        client_order_id: ClientOrderId(id),
        venue_sequence: sequence,
        cumulative_quantity: Quantity::from_whole(cumulative),
        leaves_quantity: Quantity::from_whole(leaves),
        price: Price::from_whole(90),
        account: WIDE,
        venue: VENUE,
        exec_type: exec_type.code(),
        side: Side::Buy.code(),
        ..ExecutionReport::default()
    }
}

fn fill(id: u64, sequence: u64, exec: u64, last: i64, cumulative: i64, leaves: i64) -> ExecutionReport {
    ExecutionReport {
        exec_id: ExecId(exec),
        client_order_id: ClientOrderId(0),
        last_quantity: Quantity::from_whole(last),
        last_price: Price::from_whole(90),
        ..said(id, ExecType::Trade, sequence, cumulative, leaves)
    }
}

fn new_orders(requests: &[Request]) -> Vec<u64> {
    let of = |request: &Request| match request {
        Request::New(order) => Some(order.client_order_id.0),
        _ => None,
    };
    requests.iter().filter_map(of).collect()
}

fn questions(requests: &[Request]) -> Vec<u64> {
    let of = |request: &Request| match request {
        Request::Status(status) => Some(status.original.0),
        _ => None,
    };
    requests.iter().filter_map(of).collect()
}

/// A scene with the market at 99 to 101 and an order of five at the venue, which has not said anything yet.
fn with_one_order() -> (Scene, Inline<SimulatedClock>, Told, crate::Client, u64) {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (Told::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let id = new_orders(&venue.hear())[0];
    (scene, oms, venue, client, id)
}

fn informed(scene: &Scene) -> Inline<SimulatedClock> {
    let mut oms = Inline::open(scene.clock.clone(), &scene.config, None).unwrap_or_else(|e| panic!("it opens: {e}"));
    oms.sequencer().tick(scene.clock.ticks(), &top(99, 101));
    oms
}

#[test]
fn a_venue_that_starts_before_the_oms_makes_no_lane() {
    let (scene, oms, venue, client, _) = with_one_order();
    drop((oms, venue, client));
    // A reboot: shared memory is empty, and the venue is the first to come.
    scene.config.lanes.remove().expect("the lanes are ours");
    assert!(scene.config.lanes.join_venue(VENUE, scene.clock.calibration()).is_err(), "the OMS makes the lanes");
    let mut oms = informed(&scene);
    let mut venue = Told::join(&scene);
    poll(&mut oms);
    assert_eq!(new_orders(&venue.hear()), Vec::<u64>::new(), "nothing goes again");
    assert_eq!(oms.sequencer().counts().unknown, 1);
}

#[test]
fn a_lane_that_somebody_else_has_made_is_not_ours() {
    let (scene, oms, venue, client, id) = with_one_order();
    drop((oms, venue, client));
    let ours = owner(&scene.lane(LaneKind::VenueRequests(VENUE)).place).expect("the OMS made it");
    for (owner, what) in [
        (Owner::default(), "nobody's"),
        (Owner { journal: ours.journal + 1, ..ours }, "another journal's"),
        (Owner { incarnation: 0, ..ours }, "an earlier start's"),
    ] {
        scene.config.lanes.remove().expect("the lanes are ours");
        for kind in scene.config.lanes.kinds() {
            let lane = LogConfig { owner, ..scene.lane(kind) };
            let mut writer = Writer::open(&lane, scene.clock.calibration()).expect("the lane is new");
            let reader = lane.mandatory.then(|| Reader::open(&lane.place, Start::Cursor, Registration::Mandatory));
            // Yesterday's: an order of a client, and a fill of the venue.
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
        let mut venue = Told::join(&scene);
        poll(&mut oms);
        assert_eq!(new_orders(&venue.hear()), Vec::<u64>::new(), "{what}: nothing goes again");
        assert_eq!(oms.sequencer().counts().unknown, 1, "{what}: it is in doubt");
        assert_eq!(oms.sequencer().core().position(WIDE, tickpath_market::SymbolId(0)).net, 0, "{what}: nothing is booked");
        assert!(scene.replay().1.iter().all(|input| asks_for(input) != Some(77)), "{what}: nothing is taken");
        let lost = oms.sequencer().notices().filter(|notice| matches!(notice, Notice::LaneLost { .. })).count();
        assert_eq!(lost, scene.config.lanes.kinds().count(), "{what}: each is told");
    }
}

#[test]
fn a_writer_of_a_lane_that_was_replaced_is_told() {
    let (mut scene, oms, venue, mut client, _) = with_one_order();
    drop((oms, venue));
    // A journal that was rolled: the next one has another id.
    fs::remove_dir_all(scene.config.journal.place.dir()).expect("the journal is ours");
    scene.config.seed = Some(0xab1e);
    let _oms = informed(&scene);
    let sent = client.try_send(limit(Side::Buy, 2, 90, 5));
    assert!(matches!(sent, Err(PublishError::NoReader)), "it would be lost without a word: {sent:?}");
    drop(client);
    assert_eq!(scene.client(0).hear(), [], "a client that joins again finds a new log");
}

#[test]
fn a_journal_that_is_a_copy_from_before_is_refused() {
    const YEAR: u64 = 365 * 24 * 3_600 * SECOND;
    let mut scene = Scene::new();
    scene.clock = SimulatedClock::at(56 * YEAR);
    let data = scene.config.journal.place.dir().join("data");
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (Told::join(&scene), scene.client(0));
    oms.sequencer().stop().expect("the disk is sound");
    let copy = fs::read(&data).expect("the journal is there");
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let before = new_orders(&venue.hear())[0];
    drop((oms, venue, client));
    fs::write(&data, &copy).expect("the journal is ours");
    scene.clock.advance(60 * SECOND);
    let refused = scene.try_oms().err().expect("it is refused");
    assert!(matches!(refused, OmsError::JournalBehind { lane: LaneKind::VenueRequests(VENUE), .. }), "{refused}");
    // As the sentence says: without that lane it goes on, and no id is given twice.
    scene.lane(LaneKind::VenueRequests(VENUE)).place.remove().expect("the lane is ours");
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (Told::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 2, 90, 5));
    poll(&mut oms);
    let after = new_orders(&venue.hear());
    assert!(!after.contains(&before) && after.len() == 1, "{before} is the id of an order that the venue works");
    venue.say(&fill(before, 1, 1, 5, 5, 0));
    poll(&mut oms);
    assert_eq!(oms.sequencer().counts().strangers, 1);
    assert_eq!(oms.sequencer().core().position(WIDE, tickpath_market::SymbolId(0)).net, 0, "nothing is booked elsewhere");
}

#[test]
fn ids_survive_a_loss_of_power() {
    let scene = Scene::new();
    let data = scene.config.journal.place.dir().join("data");
    let mut oms = informed(&scene);
    let synced = fs::read(&data).expect("the journal is there");
    let (mut venue, mut client) = (Told::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let before = new_orders(&venue.hear())[0];
    drop((oms, venue, client));
    // The tail had not reached the disk, and shared memory is empty.
    fs::write(&data, &synced).expect("the journal is ours");
    scene.config.lanes.remove().expect("the lanes are ours");
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (Told::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let after = new_orders(&venue.hear())[0];
    assert_ne!(before, after);
    venue.say(&fill(before, 2, 1, 5, 5, 0));
    poll(&mut oms);
    assert_eq!(oms.sequencer().counts().strangers, 1, "an old fill is no fill of a new order");
}

#[test]
fn fills_that_were_not_read_put_orders_in_doubt_and_are_resolved() {
    let (scene, mut oms, mut venue, mut client, id) = with_one_order();
    client.send(limit(Side::Buy, 2, 90, 5));
    poll(&mut oms);
    let other = new_orders(&venue.hear())[0];
    venue.say(&said(id, ExecType::New, 1, 0, 5));
    venue.say(&said(other, ExecType::New, 1, 0, 5));
    poll(&mut oms);
    venue.say(&fill(id, 2, 1, 3, 3, 2));
    drop((oms, venue));
    scene.lane(LaneKind::VenueReports(VENUE)).place.remove().expect("the lane is ours");

    let mut oms = informed(&scene);
    let mut venue = Told::join(&scene);
    poll(&mut oms);
    assert_eq!(oms.sequencer().counts().unknown, 2, "acceptances prove nothing of what came after");
    assert_eq!(questions(&venue.hear()), [id, other]);
    let status = |id: u64, sequence: u64, cumulative: i64, leaves: i64, status: OrdStatus| ExecutionReport {
        client_order_id: ClientOrderId(u64::MAX),
        status: status.code(),
        ..said(id, ExecType::OrderStatus, sequence, cumulative, leaves)
    };
    venue.say(&status(other, 1, 0, 5, OrdStatus::New));
    venue.say(&status(id, 2, 3, 2, OrdStatus::PartiallyFilled));
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
    let position = oms.sequencer().core().position(WIDE, tickpath_market::SymbolId(0));
    assert_eq!((position.net, position.working_buy), (3 * 100_000_000, 7 * 100_000_000));
    let words = client.hear();
    assert!(matches!(words.last(), Some(Heard::Report(report)) if report.status == OrdStatus::PartiallyFilled.code()));
}

#[test]
fn a_second_kill_anywhere_in_a_recovery_changes_nothing() {
    let (scene, oms, venue, client, id) = with_one_order();
    drop((oms, venue, client));
    let data = scene.config.journal.place.dir().join("data");
    let journal = fs::read(&data).expect("the journal is there");
    let mut steps = 0;
    for first in 1.. {
        fs::write(&data, &journal).expect("the journal is ours");
        scene.config.lanes.remove().expect("the lanes are ours");
        let was_killed = start_until(&scene, first);
        // And once more, at every step of the second start.
        for second in 1.. {
            let was_killed_again = start_until(&scene, second);
            let mut oms = informed(&scene);
            let mut venue = Told::join(&scene);
            poll(&mut oms);
            let heard = venue.hear();
            assert_eq!(new_orders(&heard), Vec::<u64>::new(), "killed at {first} and {second}: it goes again");
            let status = oms.sequencer().core().order(OrderId(id)).expect("it is known").status;
            assert_eq!(status, OrdStatus::Unknown, "killed at {first} and {second}: the doubt is forgotten");
            assert!(questions(&heard).iter().all(|asked| *asked == id), "killed at {first} and {second}");
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
    let clock = Tripping { clock: scene.clock.clone(), left: Arc::new(AtomicU64::new(readings)) };
    let started = catch_unwind(AssertUnwindSafe(|| Inline::open(clock, &scene.config, None).map(drop)));
    match started {
        Ok(opened) => {
            opened.unwrap_or_else(|e| panic!("it opens: {e}"));
            false
        }
        Err(_) => true,
    }
}

/// A kill is no failure to be told of.
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

/// A clock whose reader dies at some reading: between any two steps of a start.
#[derive(Clone)]
struct Tripping {
    clock: SimulatedClock,
    left: Arc<AtomicU64>,
}

impl Clock for Tripping {
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
    let place = scene.lane(LaneKind::VenueReports(VENUE)).place;
    let mut recorder = Reader::open(&place, Start::Oldest, Registration::Registered).expect("the lane is there");
    drop((oms, client));
    // The OMS is away: the venue keeps what it has to say, however much the recorder reads.
    let mut kept = vec![said(id, ExecType::New, 1, 0, 5)];
    kept.extend((1..=5).map(|n| fill(id, n as u64 + 1, n as u64, 1, n, 5 - n)));
    let mut next = 0;
    for _ in 0..100_000 {
        let report = &kept[next];
        match venue.lanes.reports.publish(1, Kind::ExecutionReport.code(), report.as_bytes()) {
            Ok(_) => next += 1,
            Err(PublishError::NoReader | PublishError::Full) => {}
            Err(e) => panic!("{e}"),
        }
        recorder.drain(usize::MAX, |_| {}).expect("the lane is sound");
        if next == kept.len() {
            break;
        }
    }
    let mut oms = informed(&scene);
    for report in &kept[next..] {
        venue.say(report);
    }
    while poll(&mut oms) > 0 {}
    let view = oms.sequencer().core().order(OrderId(id)).expect("it is known");
    assert_eq!((view.status, view.cumulative), (OrdStatus::Filled, Quantity::from_whole(5)), "every fill is booked");
}

#[test]
fn windows_survive_a_reboot() {
    let mut scene = Scene::new();
    scene.clock.advance(1_000 * SECOND);
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    let slow = |id: u64| NewOrder { account: SLOW, ..limit(Side::Buy, id, 90, 1) };
    client.send(slow(1));
    client.send(slow(2));
    poll(&mut oms);
    assert_eq!(denials(&client.hear()), [21], "one message a second");
    drop((oms, client));
    // The counter begins anew, far below the stamp at which the window opened.
    scene.config.lanes.remove().expect("the lanes are ours");
    scene.clock = scene.clock.after_reboot(SECOND);
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    for id in 3..=5 {
        client.send(slow(id));
        poll(&mut oms);
        assert_eq!(denials(&client.hear()), Vec::<u16>::new(), "order {id}");
        scene.clock.advance(SECOND);
    }
}

fn denials(heard: &[Heard]) -> Vec<u16> {
    let code = |heard: &Heard| match heard {
        Heard::Denied(denied) => Some(denied.code),
        Heard::Report(_) => None,
    };
    heard.iter().filter_map(code).collect()
}

#[test]
fn a_session_trades_only_for_its_accounts_and_costs_the_others_nothing() {
    let mut scene = Scene::new();
    scene.config.desk.sessions[0].accounts = vec![WIDE];
    scene.config.desk.sessions[1].accounts = vec![SLOW];
    let mut oms = informed(&scene);
    let (mut thief, mut owner) = (scene.client(0), scene.client(1));
    for id in 1..=50 {
        thief.send(NewOrder { account: SLOW, ..limit(Side::Buy, id, 90, 1) });
    }
    while poll(&mut oms) > 0 {}
    assert_eq!(denials(&thief.hear()), [11; 50], "not entitled");
    owner.send(NewOrder { account: SLOW, ..limit(Side::Buy, 1, 90, 1) });
    poll(&mut oms);
    assert_eq!(denials(&owner.hear()), Vec::<u16>::new(), "its one message of this second is its own");
}

#[test]
fn a_flood_fills_its_own_lane_and_nothing_else() {
    let mut scene = Scene::new();
    scene.config.desk.sessions[0].rate = Rate { per_second: 100, burst: 20 };
    let mut oms = informed(&scene);
    let (mut flood, mut honest) = (scene.client(0), scene.client(1));
    let mut sent = 0;
    for id in 1..=100_000 {
        match flood.try_send(cancel(id, 1 << 40)) {
            Ok(_) => sent += 1,
            Err(PublishError::Full) => break,
            Err(e) => panic!("{e}"),
        }
        if id % 100 == 0 {
            poll(&mut oms);
        }
    }
    for _ in 0..1_000 {
        poll(&mut oms);
    }
    let taken = |scene: &Scene| scene.replay().1.iter().filter(|input| matches!(input, Input::Request { .. })).count();
    assert_eq!(taken(&scene), 20, "of {sent}: a burst");
    honest.send(limit(Side::Buy, 1, 90, 1));
    poll(&mut oms);
    assert_eq!(honest.told().len(), 1, "the other session goes on");
    // Nothing is lost: what waits in the lane is taken as time passes.
    scene.clock.advance(SECOND / 2);
    for _ in 0..100 {
        poll(&mut oms);
    }
    assert_eq!(taken(&scene), 20 + 1 + 20, "never more than a burst at once");
}

#[test]
fn a_damaged_lane_is_set_aside_and_the_others_go_on() {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let (mut hostile, mut honest) = (scene.client(0), scene.client(1));
    hostile.send(limit(Side::Buy, 1, 90, 1));
    honest.send(limit(Side::Buy, 1, 90, 1));
    poll(&mut oms);
    hostile.send(limit(Side::Buy, 2, 90, 1));
    drop((oms, hostile));
    // Its client has written over the frame that would be next.
    let lane = scene.lane(LaneKind::Requests(0));
    let file = lane.place.dir().join("data");
    let mut bytes = fs::read(&file).expect("the lane is there");
    let order = limit(Side::Buy, 2, 90, 1);
    let at = bytes.windows(48).rposition(|window| window == order.as_bytes()).expect("the order is in the lane");
    bytes[at - 12] ^= 0x55;
    fs::write(&file, &bytes).expect("the lane is ours");
    let mut oms = informed(&scene);
    poll(&mut oms);
    let is_told = |notice: &Notice| matches!(notice, Notice::Quarantined { lane: LaneKind::Requests(0), .. });
    assert_eq!(oms.sequencer().notices().filter(|notice| is_told(notice)).count(), 1);
    honest.send(limit(Side::Buy, 2, 90, 1));
    poll(&mut oms);
    assert_eq!(honest.told().len(), 2, "the other session goes on");
    // Nothing spins on it: a turn finds nothing to do.
    while poll(&mut oms) > 0 {}
    assert_eq!(poll(&mut oms), 0);
}

#[test]
fn codes_are_checked_at_every_door_and_never_by_a_replay() {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let bad = NewOrder { side: 9, ..limit(Side::Buy, 1, 90, 1) };
    oms.sequencer().accept(0, 0, 1, 1, Request::New(bad)).expect("the journal takes what it is given");
    assert_eq!(oms.sequencer().refused(), 1);
    assert!(scene.replay().1.iter().all(|input| !matches!(input, Input::Request { .. })), "nothing is journaled");
    drop(oms);
    // What an older version took: the core denies it again, as it did then.
    let mut journal = Writer::open(&scene.config.journal, scene.clock.calibration()).expect("the OMS has ended");
    let input = Input::Request { envelope: tickpath_orders::Envelope::default(), request: Request::New(bad) };
    let mut buffer = [0; tickpath_orders::RECORD_BYTES];
    journal.publish(1, RecordKind::New.code(), input.write(&mut buffer)).expect("a journal takes all");
    drop(journal);
    poll(&mut informed(&scene));
}

#[test]
fn what_is_taken_out_of_the_configuration_ends() {
    let mut scene = Scene::new();
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    let tight = |id: u64| NewOrder { account: TIGHT, ..limit(Side::Buy, id, 90, 1) };
    client.send(tight(1));
    poll(&mut oms);
    assert_eq!(denials(&client.hear()), Vec::<u16>::new());
    drop(oms);
    scene.config.desk.accounts.retain(|limits| limits.account != TIGHT);
    let mut oms = informed(&scene);
    client.send(tight(2));
    poll(&mut oms);
    assert_eq!(denials(&client.hear()), [5], "the account is not defined any more");
    let Request::Cancel(gone) = cancel(3, 1) else { panic!("a cancel was built") };
    client.send(Request::Cancel(tickpath_market::CancelOrder { account: TIGHT, ..gone }));
    poll(&mut oms);
    assert_eq!(denials(&client.hear()), Vec::<u16>::new(), "what it has open may be canceled");
}

#[test]
fn a_kill_and_the_time_are_asked_again_before_what_waited_leaves() {
    let cases: [(&str, u16, fn(&Scene, &mut Inline<SimulatedClock>)); 3] = [
        ("kill", 20, |scene, oms| {
            let mut operator = scene.config.lanes.join_control(scene.clock.calibration()).expect("it is there");
            let kill = Kill { scope: KILL_ALL, on: 1, ..Kill::default() };
            operator.publish(1, RecordKind::Kill.code(), kill.as_bytes()).expect("the OMS reads it");
            poll(oms);
        }),
        ("reference", 25, |scene, _| scene.clock.advance(61 * SECOND)),
        ("age", 29, |scene, oms| {
            scene.clock.advance(100 * SECOND);
            oms.sequencer().tick(scene.clock.ticks(), &top(99, 101));
        }),
    ];
    for (what, code, happens) in cases {
        let mut scene = Scene::new();
        scene.config.desk.accounts[0].max_request_age_ns = 90 * SECOND;
        let mut oms = informed(&scene);
        let mut client = scene.client(0);
        client.send(limit(Side::Buy, 1, 90, 1));
        poll(&mut oms);
        assert_eq!(oms.sequencer().queued(), 1, "the venue is not there");
        client.hear();
        happens(&scene, &mut oms);
        let mut venue = Told::join(&scene);
        while poll(&mut oms) > 0 {}
        assert_eq!(venue.hear(), [], "{what}: it does not leave");
        assert_eq!(denials(&client.hear()), [code], "{what}");
        assert_eq!(oms.sequencer().queued(), 0);
    }
}

#[test]
fn what_waits_for_a_venue_is_bounded() {
    let mut scene = Scene::new();
    scene.config.desk.venues[0].max_queued = 3;
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    for id in 1..=5 {
        client.send(limit(Side::Buy, id, 90, 1));
    }
    poll(&mut oms);
    assert_eq!((oms.sequencer().queued(), denials(&client.hear())), (3, vec![13, 13]));
    let mut venue = Told::join(&scene);
    while poll(&mut oms) > 0 {}
    assert_eq!(new_orders(&venue.hear()).len(), 3);
    let down: Vec<_> = oms.sequencer().notices().cloned().collect();
    assert_eq!(down, [Notice::VenueDown(VENUE), Notice::VenueUp(VENUE)]);
}

#[test]
fn nothing_of_a_session_that_asks_for_the_disk_leaves_before_the_disk_has_it() {
    let mut scene = Scene::new();
    scene.config.desk.sessions[0].level = crate::AckLevel::Disk;
    let mut oms = informed(&scene);
    let mut disk = oms.sequencer().commit_by_hand().expect("the journal is there");
    let (mut venue, mut client, mut other) = (Told::join(&scene), scene.client(0), scene.client(1));
    client.send(limit(Side::Buy, 1, 90, 1));
    while poll(&mut oms) > 0 {}
    assert_eq!((venue.hear(), client.hear()), (vec![], vec![]), "held");
    other.send(limit(Side::Buy, 1, 90, 1));
    while poll(&mut oms) > 0 {}
    assert_eq!(other.told().len(), 1, "a session of its own level is told");
    assert_eq!(venue.hear(), [], "and its order goes behind what is held for the same venue");
    disk.commit();
    while poll(&mut oms) > 0 {}
    let sent = venue.hear();
    assert_eq!((new_orders(&sent).len(), client.told().len(), oms.sequencer().held()), (2, 1, 0));
    // What the venue says to it waits as well.
    venue.say(&said(new_orders(&sent)[0], ExecType::New, 1, 0, 1));
    while poll(&mut oms) > 0 {}
    assert_eq!(client.hear(), []);
    disk.commit();
    while poll(&mut oms) > 0 {}
    assert_eq!(client.told().len(), 1);
}

#[test]
fn a_disk_that_fails_stops_new_orders_and_lets_cancels_through() {
    let mut scene = Scene::new();
    scene.config.desk.sessions[0].level = crate::AckLevel::Disk;
    let mut oms = informed(&scene);
    let mut disk = oms.sequencer().commit_by_hand().expect("the journal is there");
    let (mut venue, mut client) = (Told::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 1));
    while poll(&mut oms) > 0 {}
    disk.commit();
    while poll(&mut oms) > 0 {}
    assert_eq!((new_orders(&venue.hear()).len(), client.told().len()), (1, 1));
    client.send(limit(Side::Buy, 2, 90, 1));
    while poll(&mut oms) > 0 {}
    disk.fail();
    while poll(&mut oms) > 0 {}
    assert_eq!(venue.hear(), [], "what the disk never had does not leave");
    client.send(limit(Side::Buy, 3, 90, 1));
    client.send(cancel(4, 1));
    while poll(&mut oms) > 0 {}
    let sent = venue.hear();
    assert!(matches!(sent[..], [Request::Cancel(_)]), "{sent:?}");
    let heard = client.hear();
    assert_eq!(denials(&heard), [19, 19], "the one that was held, and the one that came after: {heard:?}");
    assert!(oms.sequencer().notices().any(|notice| matches!(notice, Notice::DiskFailed(_))));
    assert_eq!(oms.sequencer().held(), 0);
}

#[test]
fn a_lane_is_sound_for_every_other_while_its_client_rewrites_and_truncates_it() {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let mut venue = scene.venue();
    let (mut hostile, mut honest) = (Some(scene.client(0)), scene.client(1));
    for round in 1..=20 {
        for id in 0..50 {
            let asked = limit(Side::Buy, round * 100 + id, 90, 1);
            hostile.as_mut().map(|hostile| hostile.try_send(asked).expect("there is room"));
        }
        honest.send(limit(Side::Buy, round, 90, 1));
        if round == 10 {
            // Its lanes lose all their pages while the OMS has them mapped, the one that it reads and the one that it
            // writes. Its own view of them must not be touched again: nobody guards that.
            std::mem::forget(hostile.take());
            for lane in [LaneKind::Requests(0), LaneKind::Reports(0)] {
                for file in ["data", "control"] {
                    let path = scene.lane(lane).place.dir().join(file);
                    let file = fs::OpenOptions::new().write(true).open(path);
                    file.and_then(|file| file.set_len(0)).expect("the lane is its client's");
                }
            }
        }
        settle(&mut oms, &mut venue);
    }
    let accepted = honest.told().into_iter().filter(|word| word.1 == ExecType::New).count();
    assert_eq!(accepted, 20, "the other session goes on");
}

/// The client's id of a request in the journal.
fn asks_for(input: &Input) -> Option<u64> {
    match input {
        Input::Request { request, .. } => Some(request.client_order_id().0),
        _ => None,
    }
}

#[test]
fn a_doubt_names_what_was_lost() {
    let (scene, oms, venue, client, _) = with_one_order();
    drop((oms, venue, client));
    scene.lane(LaneKind::VenueRequests(VENUE)).place.remove().expect("the lane is ours");
    drop(informed(&scene));
    let doubts: Vec<_> = scene.replay().1.into_iter().filter(|input| matches!(input, Input::Doubt(_))).collect();
    let expected = Doubt { messages: 0, venue: VENUE, lost: LOST_REQUESTS, reserved: [0; 5] };
    assert_eq!(doubts, [Input::Doubt(expected)], "the reports are still there");
}
