//! Restarts: between any two turns, with any part of the outputs already sent, by SIGKILL, and after lanes were lost.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use tickpath_clock::{SimulatedClock, end_with_parent, sleep_ns};
use tickpath_log::{Config as LogConfig, Writer, owner};
use tickpath_market::{ExecType, NewOrder, OrdStatus, Request, Side};
use tickpath_oms_core::Input;
use tickpath_oms_runtime::LaneKind;
use tickpath_oms_runtime::layout::Inline;

use crate::{
    Agent, ClientRequest, Clock, Config, Dice, Kind, Layout, LogPath, MORNING, Next, Reader, ReaderStart,
    ReceivedMessage, Registration, Scene, VENUE, cancel, client_frames, config, frames, limit, poll, replace, seed,
    settle, top, venue_frames,
};

const NAME: &str = "TICKPATH_TEST_NAME";
const FOLDER: &str = "TICKPATH_TEST_FOLDER";
const LAYOUT: &str = "TICKPATH_TEST_LAYOUT";
/// Exit code of an OMS that ended by itself.
const ENDED: i32 = 7;

/// Max turns of the child's OMS, so that it ends even without a kill.
const LIFE: u64 = 50_000_000;

/// One step of a scripted day.
enum DayStep {
    Send(u16, ClientRequest),
    Oms,
    Venue,
}

/// Returns a day with all events of an order: fills of both sides, a cancel, a replace, denials, a queue.
fn day() -> Vec<DayStep> {
    let send = |session: u16, asked: ClientRequest| DayStep::Send(session, asked);
    vec![
        send(0, limit(Side::Buy, 1, 95, 5).into()),
        DayStep::Oms,
        send(1, limit(Side::Sell, 1, 105, 3).into()),
        send(1, limit(Side::Sell, 0, 105, 3).into()),
        DayStep::Oms,
        DayStep::Venue,
        send(0, replace(2, 1, 100, 6).into()),
        DayStep::Oms,
        DayStep::Oms,
        DayStep::Venue,
        send(1, limit(Side::Sell, 2, 100, 2).into()),
        send(0, limit(Side::Buy, 1, 95, 5).into()),
        DayStep::Oms,
        DayStep::Venue,
        DayStep::Oms,
        send(0, cancel(3, 1).into()),
        send(1, cancel(3, 1).into()),
        DayStep::Oms,
        send(1, cancel(4, 1).into()),
        DayStep::Oms,
        DayStep::Venue,
        DayStep::Oms,
        send(0, limit(Side::Buy, 4, 300, 1).into()),
        send(0, limit(Side::Buy, 5, 99, 1).into()),
        DayStep::Oms,
        DayStep::Venue,
        DayStep::Oms,
    ]
}

/// All frames of a day, with each order named by its turn, because ids contain the epoch of a start.
#[derive(Debug, PartialEq, Eq)]
struct DayFrames {
    venue: Vec<(u8, Vec<u8>)>,
    clients: [Vec<(u8, Vec<u8>)>; 2],
}

/// Replaces the OMS's order ids in frames by the order in which they appear.
fn by_turn(ids: &mut Vec<[u8; 8]>, frames: Vec<(u8, Vec<u8>)>) -> Vec<(u8, Vec<u8>)> {
    let mut turn = |bytes: &mut [u8]| {
        let id: [u8; 8] = bytes.try_into().expect("eight bytes");
        // The ids of unsolicited messages stay zero.
        if id == [0; 8] {
            return;
        }
        let place = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
            ids.push(id);
            ids.len() - 1
        });
        bytes.copy_from_slice(&(place as u64 + 1).to_le_bytes());
    };
    let each = |(kind, mut bytes): (u8, Vec<u8>)| {
        match Kind::from_code(kind).expect("a message") {
            // The OMS's ids of the request and of the order that it names.
            Kind::NewOrder => turn(&mut bytes[..8]),
            Kind::CancelOrder | Kind::ReplaceOrder | Kind::StatusRequest => {
                turn(&mut bytes[..8]);
                turn(&mut bytes[8..16]);
            }
            // The OMS's id of the order; the second id is the client's.
            Kind::ExecutionReport => {
                turn(&mut bytes[..8]);
                // The venue's time is deterministic, so it stays.
            }
            Kind::OrderDenied => bytes[..8].fill(0),
            other => panic!("nobody sends {other:?} here"),
        }
        (kind, bytes)
    };
    frames.into_iter().map(each).collect()
}

impl Scene {
    /// Opens an OMS that knows the market already, as after reading its ticks.
    fn informed(&self) -> Inline<SimulatedClock> {
        let mut oms = Inline::open(self.clock.clone(), &self.config, None).expect("the OMS opens");
        oms.sequencer().apply_top_of_book(self.clock.ticks(), &top(99, 101)).expect("nothing waits for it");
        oms
    }

    fn traces(&self) -> DayFrames {
        let mut ids = Vec::new();
        let venue = by_turn(&mut ids, self.to_venue());
        let clients = [self.to_client(0), self.to_client(1)].map(|frames| by_turn(&mut ids, frames));
        DayFrames { venue, clients }
    }

    /// Runs a day, and restarts the OMS after each turn that is asked for.
    fn live(&self, is_restarted: impl Fn(usize) -> bool) -> DayFrames {
        let (mut oms, mut venue) = (self.informed(), self.venue());
        let mut clients = [self.client(0), self.client(1)];
        let mut turns = 0;
        for act in day() {
            self.clock.advance(1);
            match act {
                DayStep::Send(session, asked) => clients[usize::from(session)].send(asked.0),
                DayStep::Venue => _ = venue.poll().expect("the venue's lanes are sound"),
                DayStep::Oms => {
                    poll(&mut oms);
                    turns += 1;
                    if is_restarted(turns) {
                        drop(oms);
                        oms = self.informed();
                    }
                }
            }
        }
        settle(&mut oms, &mut venue);
        self.traces()
    }
}

#[test]
fn a_restart_between_two_turns_changes_nothing() {
    let whole = Scene::new().live(|_| false);
    assert!(whole.venue.len() > 6 && whole.clients.iter().all(|log| log.len() > 6), "a full day");
    let turns = day().iter().filter(|act| matches!(act, DayStep::Oms)).count();
    for restarted in 1..=turns {
        assert!(Scene::new().live(|turn| turn == restarted) == whole, "a restart after turn {restarted} is seen");
    }
    assert!(Scene::new().live(|_| true) == whole, "a restart after every turn is seen");
}

#[test]
fn unsent_requests_leave_after_a_restart() {
    let first = Scene::new();
    first.live(|_| false);
    let records = records(&first.config.journal);
    let mut cuts = 0;
    // Killed after each record: either none of its outputs was sent, or only those to the venue were.
    for kept in 1..=records.len() {
        if Input::read(records[kept - 1].1, &records[kept - 1].2).is_ok_and(|input| input.is_none()) {
            continue;
        }
        for has_left in [false, true] {
            cuts += 1;
            check_cut(&first, &records[..kept], has_left);
        }
    }
    assert!(cuts > 60, "a full day: {cuts}");
}

/// Starts on these records, with lanes that hold all outputs before the last record's, and its request to the venue if
/// that was sent. Checks that every output reaches its lane once.
fn check_cut(first: &Scene, records: &[(u64, u8, Vec<u8>)], has_left: bool) {
    let scene = Scene::new();
    let mut journal = Writer::open(&scene.config.journal, scene.clock.calibration()).expect("the journal is new");
    for (stamp, kind, bytes) in &records[..records.len() - 1] {
        journal.publish(*stamp, *kind, bytes).expect("a journal takes all");
    }
    let before = scene.replay().2;
    let (stamp, kind, bytes) = &records[records.len() - 1];
    journal.publish(*stamp, *kind, bytes).expect("a journal takes all");
    drop(journal);
    let all = scene.replay().2;
    let at_venue = venue_frames(if has_left { &all } else { &before });
    for (lane, frames) in [
        (LaneKind::VenueRequests(VENUE), at_venue),
        (LaneKind::Reports(0), client_frames(&before, 0)),
        (LaneKind::Reports(1), client_frames(&before, 1)),
        (LaneKind::VenueReports(VENUE), frames(&first.lane(LaneKind::VenueReports(VENUE)))),
        (LaneKind::Requests(0), frames(&first.lane(LaneKind::Requests(0)))),
        (LaneKind::Requests(1), frames(&first.lane(LaneKind::Requests(1)))),
        (LaneKind::Control, Vec::new()),
    ] {
        let owner = owner(&first.lane(lane).path).expect("the OMS made it");
        let config = LogConfig { owner, ..scene.lane(lane) };
        let mut writer = Writer::open(&config, scene.clock.calibration()).expect("the lane is new");
        let reader = config.mandatory.then(|| Reader::open(&config.path, ReaderStart::Cursor, Registration::Mandatory));
        for (kind, bytes) in frames {
            writer.publish(MORNING, kind, &bytes).expect("the lane has room");
        }
        drop((writer, reader));
    }
    let mut oms = scene.informed();
    let _venue = scene.venue_lanes();
    // Requests waiting for the venue are sent before the OMS answers later requests of clients.
    oms.sequencer().do_housekeeping(true, &mut None).unwrap_or_else(|e| panic!("the OMS stopped: {e}"));
    let context = format!("{} records, left: {has_left}", records.len());
    assert!(scene.to_venue() == venue_frames(&all), "{context}: to the venue");
    for session in [0, 1] {
        assert!(scene.to_client(session) == client_frames(&all, session), "{context}: to session {session}");
    }
    assert_eq!(oms.sequencer().queued(), 0, "{context}");
}

/// Returns all records of a journal: stamp, kind and bytes.
fn records(journal: &LogConfig) -> Vec<(u64, u8, Vec<u8>)> {
    let mut log = Reader::open(&journal.path, ReaderStart::Oldest, Registration::Unregistered).expect("it is there");
    let mut records = Vec::new();
    while let Next::Message(record) = log.next().expect("the journal is sound") {
        records.push((record.stamp, record.kind, record.payload.to_vec()));
    }
    records
}

#[test]
fn requests_waiting_for_the_venue_still_wait_after_a_restart() {
    let scene = Scene::new();
    let mut oms = scene.informed();
    let mut client = scene.client(0);
    for id in 1..=3 {
        client.send(limit(Side::Buy, id, 90, 5));
    }
    poll(&mut oms);
    assert_eq!(client.receive_reports().len(), 3);
    drop(oms);
    let mut oms = scene.informed();
    assert_eq!(oms.sequencer().queued(), 3, "the lane was not lost: nobody was there to read it");
    let mut venue = scene.venue();
    settle(&mut oms, &mut venue);
    assert_eq!(venue.venue().resting_orders(), 3);
    let answers: Vec<_> = client.receive_reports().into_iter().map(|(id, exec_type, _)| (id, exec_type)).collect();
    assert_eq!(answers, [(1, ExecType::New), (2, ExecType::New), (3, ExecType::New)]);
}

#[test]
fn lost_lanes_make_orders_unknown_and_cause_no_resend() {
    let scene = Scene::new();
    let (mut oms, venue) = (scene.informed(), scene.venue());
    let mut client = scene.client(0);
    client.send(limit(Side::Buy, 1, 90, 5));
    client.send(limit(Side::Buy, 2, 90, 5));
    client.send(cancel(3, 2));
    poll(&mut oms);
    assert_eq!(scene.to_venue().len(), 3);
    drop((oms, venue, client));
    scene.config.lanes.remove().expect("the lanes are ours");

    let mut oms = scene.informed();
    let venue = scene.venue();
    poll(&mut oms);
    let asked: Vec<u8> = scene.to_venue().iter().map(|frame| frame.0).collect();
    assert!(asked.iter().all(|kind| *kind == Kind::StatusRequest.code()), "what may have arrived is asked for");
    assert_eq!(oms.sequencer().counts().unknown, 2);
    let mut client = scene.client(0);
    let reports: Vec<_> = client.receive_reports().into_iter().map(|(id, _, status)| (id, status)).collect();
    assert_eq!(reports, [(1, OrdStatus::Unknown), (2, OrdStatus::Unknown)]);

    // Later requests are in the new lanes, and the next restart distinguishes them from the lost ones.
    client.send(limit(Side::Buy, 4, 90, 5));
    client.send(cancel(5, 2));
    poll(&mut oms);
    let sent = scene.to_venue();
    assert_eq!(sent.len(), asked.len() + 2, "an order that is unknown can be canceled");
    let received = scene.to_client(0);
    for restart in 1..=3 {
        drop(oms);
        oms = scene.informed();
        poll(&mut oms);
        assert!(scene.to_venue() == sent, "restart {restart} sends again");
        assert!(scene.to_client(0) == received, "restart {restart} tells again");
        assert_eq!(oms.sequencer().counts().unknown, 2);
    }
    drop(venue);
}

#[test]
fn a_clean_stop_is_checked_by_the_next_start() {
    let scene = Scene::new();
    let (mut oms, mut venue) = (scene.informed(), scene.venue());
    let mut client = scene.client(0);
    client.send(limit(Side::Buy, 1, 90, 5));
    settle(&mut oms, &mut venue);
    oms.sequencer().stop().expect("the journal takes it");
    let digest = oms.sequencer().core().digest();
    drop(oms);
    assert_eq!(scene.replay().0.digest(), digest);
    // A start is an input of its own.
    assert_eq!(scene.informed().sequencer().core().digest().outputs, digest.outputs);
}

#[test]
fn a_changed_configuration_is_journaled_and_an_unchanged_one_is_not() {
    let mut scene = Scene::new();
    drop(scene.informed());
    let defined = scene.replay().1.len();
    let since = |scene: &Scene| -> Vec<Input> {
        let all = scene.replay().1;
        all[defined..].iter().filter(|input| !matches!(input, Input::Boot(_))).copied().collect()
    };
    drop(scene.informed());
    assert_eq!(since(&scene), []);
    scene.config.trading.accounts[0].collar += 1;
    drop(scene.informed());
    drop(scene.informed());
    assert_eq!(since(&scene), [Input::Account(scene.config.trading.accounts[0])]);
}

#[test]
fn a_kill_of_the_inline_layout_loses_and_repeats_nothing() {
    kill_again_and_again(Layout::Inline);
}

#[test]
fn a_kill_of_the_split_layout_loses_and_repeats_nothing() {
    kill_again_and_again(Layout::Split);
}

#[test]
fn a_kill_of_the_mutex_layout_loses_and_repeats_nothing() {
    kill_again_and_again(Layout::Mutex);
}

fn kill_again_and_again(layout: Layout) {
    const KILLS: u64 = 10;
    /// Max orders sent in one life of the OMS.
    const ORDERS: u64 = 150;
    /// Max turns of each life: minutes, longer than any stall of the host.
    const TURNS: u64 = 1_600_000;
    const PAUSE_NS: u64 = 50_000;
    let mut dice = Dice::new(seed());
    let mut scene = Scene::new();
    drop(scene.informed());
    scene.tick(99, 101);
    let (mut venue, mut client) = (scene.venue(), scene.client(0));
    let (mut acknowledged, mut denied) = (BTreeSet::new(), Vec::new());
    let mut id = 0;
    for life in 1..=KILLS {
        let mut oms = Process::start(&scene, layout);
        let (until_killed, mut received_now, mut turns) = (1 + dice.below(2 * ORDERS), 0, 0);
        let last = id + ORDERS;
        while received_now < until_killed {
            turns += 1;
            assert!(turns < TURNS, "life {life}: {received_now} of {until_killed} reports came");
            if id < last && client.try_send(limit(Side::Buy, id + 1, 90, 1)).is_ok() {
                id += 1;
            }
            venue.poll().expect("the venue's lanes are sound");
            let received = client.receive();
            if received.is_empty() {
                sleep_ns(PAUSE_NS);
            }
            received_now += received.len() as u64;
            note(&received, &mut acknowledged, &mut denied);
        }
        oms.kill();
    }
    let mut oms = scene.informed();
    settle(&mut oms, &mut venue);
    note(&client.receive(), &mut acknowledged, &mut denied);
    let digest = oms.sequencer().core().digest();
    drop(oms);

    let (core, inputs, outputs) = scene.replay();
    assert_eq!(core.digest(), digest, "a replay comes to the same state");
    let journaled: Vec<u64> = inputs.iter().filter_map(new_order).map(|order| order.client_order_id.0).collect();
    assert!(acknowledged.iter().all(|id| journaled.contains(id)), "what is acknowledged is in the journal");
    assert!(scene.to_venue() == venue_frames(&outputs), "the venue has what the journal says, once");
    assert!(scene.to_client(0) == client_frames(&outputs, 0), "the client was told what the journal says, once");
    assert_eq!(denied, Vec::<u64>::new(), "no request is taken twice from its lane");
    assert_eq!(journaled, (1..=id).collect::<Vec<_>>(), "what is in the lane is taken by the next life, in order");
    assert_eq!(venue.venue().resting_orders() as u64, id);
}

/// A full disk takes no record, so nothing more is accepted and the OMS ends with an error. Accepted requests are in
/// the journal, and those left in the lane are taken by a start with room.
#[test]
fn a_full_disk_stops_the_oms_and_loses_no_order() {
    /// Segments of the journal that fit on the disk, in blocks of 512 bytes, with the header.
    const BLOCKS: u64 = 3 * 128 + 8;
    const TURNS: u64 = 1_600_000;
    const PAUSE_NS: u64 = 50_000;
    let scene = Scene::new();
    drop(scene.informed());
    let (mut venue, mut client) = (scene.venue(), scene.client(0));
    let (mut acknowledged, mut denied) = (BTreeSet::new(), Vec::new());
    let mut oms = Process::start_on(&scene, Layout::Inline, Some(BLOCKS));
    let (mut id, mut turns) = (0, 0);
    let ended = loop {
        turns += 1;
        assert!(turns < TURNS, "the disk of {BLOCKS} blocks takes {id} orders");
        if client.try_send(limit(Side::Buy, id + 1, 90, 1)).is_ok() {
            id += 1;
        } else if let Some(ended) = oms.0.try_wait().expect("it can be asked after") {
            break ended;
        } else {
            sleep_ns(PAUSE_NS);
        }
        venue.poll().expect("the venue's lanes are sound");
        note(&client.receive(), &mut acknowledged, &mut denied);
    };
    assert_eq!(ended.code(), Some(ENDED), "it ends by itself");
    assert!(acknowledged.len() > 100, "it took {} orders until then", acknowledged.len());
    let mut oms = scene.informed();
    settle(&mut oms, &mut venue);
    note(&client.receive(), &mut acknowledged, &mut denied);
    drop(oms);
    let (_, inputs, outputs) = scene.replay();
    let journaled: Vec<u64> = inputs.iter().filter_map(new_order).map(|order| order.client_order_id.0).collect();
    assert_eq!(journaled, (1..=id).collect::<Vec<_>>(), "each order that was sent, once and in order");
    assert_eq!((acknowledged.len() as u64, denied), (id, vec![]));
    assert!(scene.to_venue() == venue_frames(&outputs), "the venue has what the journal says, once");
    assert_eq!(venue.venue().resting_orders() as u64, id);
}

/// Runs the OMS of a process to be killed. Does nothing unless a test started this program for that purpose.
#[test]
fn child_main() {
    let Ok(name) = std::env::var(NAME) else { return };
    let folder = PathBuf::from(std::env::var(FOLDER).expect("the parent has set it"));
    let clock = SimulatedClock::at(MORNING);
    let layout: Layout = std::env::var(LAYOUT).expect("the parent has set it").parse().expect("it is one");
    if layout != Layout::Inline {
        // These layouts run until the test kills them or ends.
        assert!(end_with_parent(std::os::unix::process::parent_id()));
        let market = LogPath::shared_memory(&format!("{name}.market")).expect("a good name");
        let ticks = Reader::open(&market, ReaderStart::Oldest, Registration::Registered).expect("the topic is there");
        let config = Config { layout, ..config(&name, &folder, 2) };
        let ran = tickpath_oms_runtime::layout::run(clock, &config, Some(ticks), &AtomicBool::new(false), || {});
        panic!("nobody stops it: {ran:?}");
    }
    let mut oms = Inline::open(clock.clone(), &config(&name, &folder, 2), None).expect("the one before is dead");
    oms.sequencer().apply_top_of_book(clock.ticks(), &top(99, 101)).expect("nothing waits for it");
    for _ in 0..LIFE {
        match oms.poll() {
            Ok(0) => tickpath_clock::yield_now(),
            Ok(_) => {}
            Err(e) => {
                eprintln!("{e}");
                std::process::exit(ENDED);
            }
        }
    }
}

/// An OMS that can be killed.
struct Process(Child);

impl Process {
    fn start(scene: &Scene, layout: Layout) -> Self {
        Self::start_on(scene, layout, None)
    }

    /// Starts a child whose files are limited to this many blocks, if given; a longer write fails with a system error.
    fn start_on(scene: &Scene, layout: Layout, blocks: Option<u64>) -> Self {
        let folder = scene.config.journal.path.dir().parent().expect("the journal lies in the test's folder");
        let limit = blocks.map_or(String::new(), |blocks| format!("trap '' XFSZ; ulimit -f {blocks}; "));
        let child = Command::new("sh")
            .args(["-c", &format!("{limit}exec $TICKPATH_EMULATOR \"$0\" recover::child_main --exact --nocapture")])
            .arg(std::env::current_exe().expect("this program has a path"))
            .env(NAME, &scene.config.lanes.name)
            .env(FOLDER, folder)
            .env(LAYOUT, layout.name())
            .stdout(Stdio::null())
            .spawn()
            .expect("this program can be started again");
        Self(child)
    }

    /// Sends SIGKILL, and waits for the end.
    fn kill(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may be dead already; after a failed test it is not.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn note(received: &[ReceivedMessage], acknowledged: &mut BTreeSet<u64>, denied: &mut Vec<u64>) {
    for message in received {
        match message {
            ReceivedMessage::Report(report) if report.exec_type == ExecType::PendingNew.code() => {
                let is_first = acknowledged.insert(report.client_order_id.0);
                assert!(is_first, "order {} is acknowledged twice", report.client_order_id);
            }
            ReceivedMessage::Report(_) => {}
            ReceivedMessage::Denied(request) => denied.push(request.client_order_id.0),
        }
    }
}

fn new_order(input: &Input) -> Option<&NewOrder> {
    match input {
        Input::Request { request: Request::New(order), .. } => Some(order),
        _ => None,
    }
}
