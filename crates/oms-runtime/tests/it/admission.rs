//! Checks before the journal and before the outputs: rights, token buckets, damaged neighbours, repeated risk checks,
//! the disk.

use std::fs;

use tickpath_clock::SimulatedClock;
use tickpath_log::{LogOpenError, LogPath, Reader, ReaderStart, Registration};
use tickpath_market::{ExecType, OrdStatus, Side};
use tickpath_oms_core::{Input, KILL_ALL, KillSwitch, RecordKind};
use tickpath_oms_runtime::OmsError;
use tickpath_oms_runtime::layout::Inline;
use zerocopy::IntoBytes;

use crate::scripted_venue::{ScriptedVenue, informed, new_orders, questions, report};
use crate::{
    AckLevel, Clock, LaneKind, LogPublishError, NewOrder, Notice, ReceivedMessage, Request, RequestRate, SECOND, SLOW,
    Scene, TIGHT, VENUE, WIDE, Writer, cancel, limit, poll, replace, settle, top,
};

#[test]
fn rate_windows_work_after_a_reboot() {
    let mut scene = Scene::new();
    scene.clock.advance(1_000 * SECOND);
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    let slow = |id: u64| NewOrder { account: SLOW, ..limit(Side::Buy, id, 90, 1) };
    client.send(slow(1));
    client.send(slow(2));
    poll(&mut oms);
    assert_eq!(denials(&client.receive()), [21], "one message a second");
    drop((oms, client));
    // The counter restarts, far below the stamp at which the window opened.
    scene.config.lanes.remove().expect("the lanes are ours");
    scene.clock = scene.clock.after_reboot(SECOND);
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    for id in 3..=5 {
        client.send(slow(id));
        poll(&mut oms);
        assert_eq!(denials(&client.receive()), Vec::<u16>::new(), "order {id}");
        scene.clock.advance(SECOND);
    }
}

fn denials(received: &[ReceivedMessage]) -> Vec<u16> {
    let code = |received: &ReceivedMessage| match received {
        ReceivedMessage::Denied(denied) => Some(denied.code),
        ReceivedMessage::Report(_) => None,
    };
    received.iter().filter_map(code).collect()
}

#[test]
fn a_session_trades_only_for_its_accounts_and_affects_no_other() {
    let mut scene = Scene::new();
    scene.config.trading.sessions[0].accounts = vec![WIDE];
    scene.config.trading.sessions[1].accounts = vec![SLOW];
    let mut oms = informed(&scene);
    let (mut thief, mut owner) = (scene.client(0), scene.client(1));
    for id in 1..=50 {
        thief.send(NewOrder { account: SLOW, ..limit(Side::Buy, id, 90, 1) });
    }
    while poll(&mut oms) > 0 {}
    assert_eq!(denials(&thief.receive()), [11; 50], "not entitled");
    owner.send(NewOrder { account: SLOW, ..limit(Side::Buy, 1, 90, 1) });
    poll(&mut oms);
    assert_eq!(denials(&owner.receive()), Vec::<u16>::new(), "its one message of this second is its own");
}

#[test]
fn a_flooding_client_fills_only_its_own_lane() {
    let mut scene = Scene::new();
    scene.config.trading.sessions[0].rate = RequestRate { per_second: 100, burst: 20 };
    let mut oms = informed(&scene);
    let (mut flood, mut honest) = (scene.client(0), scene.client(1));
    let mut sent = 0;
    for id in 1..=100_000 {
        match flood.try_send(cancel(id, 1 << 40)) {
            Ok(_) => sent += 1,
            Err(LogPublishError::Full) => break,
            Err(e) => panic!("{e}"),
        }
        if id % 100 == 0 {
            poll(&mut oms);
        }
    }
    for _ in 0..1_000 {
        poll(&mut oms);
    }
    let accepted =
        |scene: &Scene| scene.replay().1.iter().filter(|input| matches!(input, Input::Request { .. })).count();
    assert_eq!(accepted(&scene), 20, "of {sent}: a burst");
    honest.send(limit(Side::Buy, 1, 90, 1));
    poll(&mut oms);
    assert_eq!(honest.receive_reports().len(), 1, "the other session goes on");
    // Nothing is lost: requests that wait in the lane are taken as time passes.
    scene.clock.advance(SECOND / 2);
    for _ in 0..100 {
        poll(&mut oms);
    }
    assert_eq!(accepted(&scene), 20 + 1 + 20, "never more than a burst at once");
}

#[test]
fn a_damaged_lane_is_set_aside_and_the_others_continue() {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let (mut hostile, mut honest) = (scene.client(0), scene.client(1));
    hostile.send(limit(Side::Buy, 1, 90, 1));
    honest.send(limit(Side::Buy, 1, 90, 1));
    poll(&mut oms);
    hostile.send(limit(Side::Buy, 2, 90, 1));
    drop((oms, hostile));
    // The client has overwritten the frame that would be read next.
    let lane = scene.lane(LaneKind::Requests(0));
    let file = lane.path.dir().join("data");
    let mut bytes = fs::read(&file).expect("the lane is there");
    let order = limit(Side::Buy, 2, 90, 1);
    let at = bytes.windows(48).rposition(|window| window == order.as_bytes()).expect("the order is in the lane");
    bytes[at - 12] ^= 0x55;
    fs::write(&file, &bytes).expect("the lane is ours");
    let mut oms = informed(&scene);
    poll(&mut oms);
    let is_reported = |notice: &Notice| matches!(notice, Notice::Quarantined { lane: LaneKind::Requests(0), .. });
    assert_eq!(oms.sequencer().notices().filter(|notice| is_reported(notice)).count(), 1);
    honest.send(limit(Side::Buy, 2, 90, 1));
    poll(&mut oms);
    assert_eq!(honest.receive_reports().len(), 2, "the other session goes on");
    // The damaged lane causes no busy loop: a turn has nothing to do.
    while poll(&mut oms) > 0 {}
    assert_eq!(poll(&mut oms), 0);
}

#[test]
fn codes_are_checked_at_every_entry_and_never_by_a_replay() {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let bad = NewOrder { side: 9, ..limit(Side::Buy, 1, 90, 1) };
    oms.sequencer().accept_request(0, 0, 1, 1, Request::New(bad)).expect("the journal takes what it is given");
    assert_eq!(oms.sequencer().invalid_messages(), 1);
    assert!(scene.replay().1.iter().all(|input| !matches!(input, Input::Request { .. })), "nothing is journaled");
    drop(oms);
    // A record that an older version accepted: the core denies it again, as it did then.
    let mut journal = Writer::open(&scene.config.journal, scene.clock.calibration()).expect("the OMS has ended");
    let input = Input::Request { envelope: tickpath_oms_core::Envelope::default(), request: Request::New(bad) };
    let mut buffer = [0; tickpath_oms_core::RECORD_BYTES];
    journal.publish(1, RecordKind::New.code(), input.write(&mut buffer)).expect("a journal takes all");
    drop(journal);
    poll(&mut informed(&scene));
}

#[test]
fn definitions_removed_from_the_configuration_end() {
    let mut scene = Scene::new();
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    let tight = |id: u64| NewOrder { account: TIGHT, ..limit(Side::Buy, id, 90, 1) };
    client.send(tight(1));
    poll(&mut oms);
    assert_eq!(denials(&client.receive()), Vec::<u16>::new());
    drop(oms);
    scene.config.trading.accounts.retain(|limits| limits.account != TIGHT);
    let mut oms = informed(&scene);
    client.send(tight(2));
    poll(&mut oms);
    assert_eq!(denials(&client.receive()), [5], "the account is not defined any more");
    let Request::Cancel(gone) = cancel(3, 1) else { panic!("a cancel was built") };
    client.send(Request::Cancel(tickpath_market::CancelOrder { account: TIGHT, ..gone }));
    poll(&mut oms);
    assert_eq!(denials(&client.receive()), Vec::<u16>::new(), "what it has open may be canceled");
}

#[test]
fn kill_switch_and_age_are_checked_again_before_a_waiting_order_leaves() {
    type Happens = fn(&Scene, &mut Inline<SimulatedClock>);
    let cases: [(&str, u16, Happens); 3] = [
        ("kill", 20, |scene, oms| {
            let mut operator = scene.config.lanes.join_control(scene.clock.calibration()).expect("it is there");
            let kill = KillSwitch { scope: KILL_ALL, on: 1, ..KillSwitch::default() };
            operator.publish(1, RecordKind::Kill.code(), kill.as_bytes()).expect("the OMS reads it");
            poll(oms);
        }),
        ("reference", 25, |scene, _| scene.clock.advance(61 * SECOND)),
        ("age", 29, |scene, oms| {
            scene.clock.advance(100 * SECOND);
            oms.sequencer().apply_top_of_book(scene.clock.ticks(), &top(99, 101)).expect("nothing waits for it");
        }),
    ];
    for (what, code, happens) in cases {
        let mut scene = Scene::new();
        scene.config.trading.accounts[0].max_request_age_ns = 90 * SECOND;
        let mut oms = informed(&scene);
        let mut client = scene.client(0);
        client.send(limit(Side::Buy, 1, 90, 1));
        poll(&mut oms);
        assert_eq!(oms.sequencer().queued(), 1, "the venue is not there");
        client.receive();
        happens(&scene, &mut oms);
        let mut venue = ScriptedVenue::join(&scene);
        while poll(&mut oms) > 0 {}
        assert_eq!(venue.receive(), [], "{what}: it does not leave");
        assert_eq!(denials(&client.receive()), [code], "{what}");
        assert_eq!(oms.sequencer().queued(), 0);
    }
}

#[test]
fn the_queue_of_a_venue_is_bounded() {
    let mut scene = Scene::new();
    scene.config.trading.venues[0].max_queued = 3;
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    for id in 1..=5 {
        client.send(limit(Side::Buy, id, 90, 1));
    }
    poll(&mut oms);
    assert_eq!((oms.sequencer().queued(), denials(&client.receive())), (3, vec![13, 13]));
    let mut venue = ScriptedVenue::join(&scene);
    while poll(&mut oms) > 0 {}
    assert_eq!(new_orders(&venue.receive()).len(), 3);
    let down: Vec<_> = oms.sequencer().notices().cloned().collect();
    assert_eq!(down, [Notice::VenueDown(VENUE), Notice::VenueUp(VENUE)]);
}

#[test]
fn outputs_of_a_disk_level_session_wait_for_the_disk() {
    let mut scene = Scene::new();
    scene.config.trading.sessions[0].level = AckLevel::Disk;
    let mut oms = informed(&scene);
    let mut disk = oms.sequencer().commit_manually().expect("the journal is there");
    let (mut venue, mut client, mut other) = (ScriptedVenue::join(&scene), scene.client(0), scene.client(1));
    client.send(limit(Side::Buy, 1, 90, 1));
    while poll(&mut oms) > 0 {}
    assert_eq!((venue.receive(), client.receive()), (vec![], vec![]), "held");
    other.send(limit(Side::Buy, 1, 90, 1));
    while poll(&mut oms) > 0 {}
    assert_eq!(other.receive_reports().len(), 1, "a session of its own level is told");
    assert_eq!(venue.receive(), [], "and its order goes behind what is held for the same venue");
    disk.commit();
    while poll(&mut oms) > 0 {}
    let sent = venue.receive();
    assert_eq!((new_orders(&sent).len(), client.receive_reports().len(), oms.sequencer().held()), (2, 1, 0));
    // A report of the venue on the held order waits as well.
    venue.send(&report(new_orders(&sent)[0], ExecType::New, 1, 0, 1));
    while poll(&mut oms) > 0 {}
    assert_eq!(client.receive(), []);
    disk.commit();
    while poll(&mut oms) > 0 {}
    assert_eq!(client.receive_reports().len(), 1);
}

#[test]
fn a_failed_disk_stops_new_orders_and_passes_cancels() {
    let mut scene = Scene::new();
    scene.config.trading.sessions[0].level = AckLevel::Disk;
    let mut oms = informed(&scene);
    let mut disk = oms.sequencer().commit_manually().expect("the journal is there");
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 1));
    while poll(&mut oms) > 0 {}
    disk.commit();
    while poll(&mut oms) > 0 {}
    assert_eq!((new_orders(&venue.receive()).len(), client.receive_reports().len()), (1, 1));
    client.send(limit(Side::Buy, 2, 90, 1));
    while poll(&mut oms) > 0 {}
    disk.fail();
    while poll(&mut oms) > 0 {}
    assert_eq!(venue.receive(), [], "what the disk never had does not leave");
    client.send(limit(Side::Buy, 3, 90, 1));
    client.send(cancel(4, 1));
    while poll(&mut oms) > 0 {}
    let sent = venue.receive();
    assert!(matches!(sent[..], [Request::Cancel(_)]), "{sent:?}");
    let received = client.receive();
    assert_eq!(denials(&received), [19, 19], "the one that was held, and the one that came after: {received:?}");
    assert!(oms.sequencer().notices().any(|notice| matches!(notice, Notice::DiskFailed(_))));
    assert_eq!(oms.sequencer().held(), 0);
}

/// Sends a request about an order that a full lane returns while the request is held for the disk; the session asks for
/// disk durability. Returns the requests at the venue and the client's reports.
fn request_during_return(asked: Request) -> (Vec<Request>, Vec<(u64, ExecType, OrdStatus)>) {
    let mut scene = Scene::new();
    scene.config.trading.sessions[0].level = AckLevel::Disk;
    scene.config.lanes.request_bytes = 1 << 14;
    let mut oms = informed(&scene);
    let mut disk = oms.sequencer().commit_manually().expect("the journal is there");
    let (mut venue, mut client, mut other) = (ScriptedVenue::join(&scene), scene.client(0), scene.client(1));
    client.send(limit(Side::Buy, 1, 90, 1));
    poll(&mut oms);
    for id in 1..=1_000 {
        other.send(limit(Side::Buy, id, 90, 1));
        poll(&mut oms);
    }
    client.send(limit(Side::Buy, 2, 90, 1));
    poll(&mut oms);
    disk.commit();
    // The request is accepted before held output is released.
    oms.sequencer().accept_request(0, 2, 1, 1, asked).expect("the journal takes it");
    let mut received = Vec::new();
    for _ in 0..4 {
        while poll(&mut oms) > 0 {}
        received.extend(venue.receive());
        disk.commit();
    }
    while poll(&mut oms) > 0 {}
    assert_eq!(oms.sequencer().held(), 0);
    (received, client.receive_reports())
}

#[test]
fn a_held_replace_returns_with_its_order() {
    let (received, _) = request_during_return(replace(3, 2, 91, 1));
    let [first, order] = [0, new_orders(&received).len() - 1].map(|place| new_orders(&received)[place]);
    assert_ne!(order, first, "the order was sent");
    let place = |is_it: &dyn Fn(&Request) -> bool| received.iter().position(is_it).expect("both were sent");
    let sent = place(&|request| request.client_order_id().0 == order);
    let replaced = place(&|request| matches!(request, Request::Replace(replace) if replace.original.0 == order));
    assert!(sent < replaced, "the order is number {sent}, its replace {replaced}");
    assert_eq!(new_orders(&received).len(), 1_002);
}

#[test]
fn a_held_cancel_cancels_its_returned_order() {
    let (received, reports) = request_during_return(cancel(3, 2));
    assert_eq!(new_orders(&received).len(), 1_001, "all but the one that was canceled here");
    assert!(received.iter().all(|request| matches!(request, Request::New(_))), "no cancel leaves");
    assert_eq!(reports.last(), Some(&(3, ExecType::Canceled, OrdStatus::Canceled)), "{reports:?}");
}

/// Reports are lost while the lane to the venue is nearly full, or while orders wait for room in it.
#[test]
fn a_question_without_room_in_the_lane_is_sent_later() {
    for orders in [400, 600] {
        let mut scene = Scene::new();
        scene.config.lanes.request_bytes = 1 << 14;
        let mut oms = informed(&scene);
        let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
        for id in 1..=orders {
            client.send(limit(Side::Buy, id, 90, 1));
            poll(&mut oms);
        }
        oms.sequencer().note_missed(LaneKind::VenueReports(VENUE), 1).expect("the journal takes it");
        let unknown = oms.sequencer().counts().unknown;
        let (mut received, mut last) = (Vec::new(), venue.receive());
        assert!(questions(&last).len() < unknown as usize, "there is no room for all of them");
        while !last.is_empty() {
            received.append(&mut last);
            while poll(&mut oms) > 0 {}
            last = venue.receive();
        }
        assert_eq!(new_orders(&received).len() as u64, orders, "all have left");
        assert_eq!(
            questions(&received),
            new_orders(&received)[..unknown as usize],
            "of {orders}: each was asked for, once"
        );
        assert_eq!(oms.sequencer().queued(), 0);
    }
}

/// The final report of an order that the disk does not have is that the order is over.
#[test]
fn a_failed_disk_denies_waiting_orders_of_a_venue_that_is_down() {
    let mut scene = Scene::new();
    scene.config.trading.sessions[0].level = AckLevel::Disk;
    let mut oms = informed(&scene);
    let mut disk = oms.sequencer().commit_manually().expect("the journal is there");
    let mut client = scene.client(0);
    client.send(limit(Side::Buy, 1, 90, 1));
    client.send(limit(Side::Buy, 2, 90, 1));
    while poll(&mut oms) > 0 {}
    assert_eq!(client.receive(), [], "held");
    disk.fail();
    while poll(&mut oms) > 0 {}
    let received = client.receive();
    assert_eq!(
        (received.len(), denials(&received)),
        (4, vec![19, 19]),
        "two are pending, and both are over: {received:?}"
    );
    assert_eq!((oms.sequencer().counts().withdrawn, oms.sequencer().queued()), (2, 0));
}

#[test]
fn a_client_that_rewrites_its_lane_harms_no_other_lane() {
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
            // The client's lanes lose all their pages while the OMS has them mapped, the inbound and the outbound one.
            // The client's own view must not be touched again, because no handler guards it.
            std::mem::forget(hostile.take());
            for lane in [LaneKind::Requests(0), LaneKind::Reports(0)] {
                for file in ["data", "control"] {
                    let path = scene.lane(lane).path.dir().join(file);
                    let file = fs::OpenOptions::new().write(true).open(path);
                    file.and_then(|file| file.set_len(0)).expect("the lane is its client's");
                }
            }
        }
        settle(&mut oms, &mut venue);
    }
    let accepted = honest.receive_reports().into_iter().filter(|report| report.1 == ExecType::New).count();
    assert_eq!(accepted, 20, "the other session goes on");
}

/// A user that can write to a lane can lock it. That costs a client its own lanes, and never prevents a start.
#[test]
fn a_client_with_the_oms_ends_of_its_lanes_prevents_no_start() {
    let scene = Scene::new();
    let (mut oms, mut venue) = (informed(&scene), scene.venue());
    let (mut hostile, mut honest) = (scene.client(0), scene.client(1));
    honest.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    drop(oms);
    let requests = scene.lane(LaneKind::Requests(0)).path;
    let _reads = Reader::open(&requests, ReaderStart::Cursor, Registration::Mandatory).expect("nobody reads it");
    let reports = scene.lane(LaneKind::Reports(0));
    let _writes = Writer::open_untrusted(&reports, scene.clock.calibration()).expect("nobody writes it");
    let mut oms = informed(&scene);
    let holder = format!("process {}", std::process::id());
    let is_reported = |notice: &&Notice| matches!(notice, Notice::LaneLost { why, .. } if why.contains(&holder));
    assert_eq!(oms.sequencer().notices().filter(is_reported).count(), 2);
    assert!(matches!(hostile.try_send(limit(Side::Buy, 1, 90, 1)), Err(LogPublishError::NoReader)));
    let mut comes_back = scene.client(0);
    for client in [&mut comes_back, &mut honest] {
        client.receive();
        client.send(limit(Side::Buy, 2, 90, 1));
        settle(&mut oms, &mut venue);
        assert_eq!(client.receive_reports().last().map(|report| report.1), Some(ExecType::New));
    }
}

#[test]
fn a_second_oms_of_the_same_name_is_refused_and_harms_nothing() {
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (informed(&scene), scene.venue());
    let mut client = scene.client(0);
    let folder = scene.config.journal.path.dir().join("another");
    let first = std::mem::replace(&mut scene.config.journal.path, LogPath::folder(folder));
    let refused = scene.try_oms().err().expect("the lanes are another one's");
    assert!(matches!(refused, OmsError::Open(LogOpenError::HasReader { .. })), "{refused}");
    scene.config.journal.path = first;
    client.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    assert_eq!(client.receive_reports().last().map(|report| report.1), Some(ExecType::New));
}

/// A client can write to the folders of its lanes.
#[test]
fn a_client_that_fills_its_lanes_folders_prevents_no_start() {
    let scene = Scene::new();
    drop(informed(&scene));
    for lane in [LaneKind::Requests(0), LaneKind::Reports(0)] {
        let folder = scene.lane(lane).path.dir().to_owned();
        fs::remove_file(folder.join("data")).expect("the folder is its client's");
        fs::create_dir_all(folder.join("data/within")).expect("the folder is its client's");
    }
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (scene.venue(), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    assert_eq!(client.receive_reports().last().map(|report| report.1), Some(ExecType::New));
}

/// The reader of the control lane owns the OMS's name, so another OMS of that name must not start.
#[test]
fn an_oms_with_a_damaged_control_lane_still_refuses_a_second() {
    let mut scene = Scene::new();
    let control = scene.lane(LaneKind::Control).path;
    drop(informed(&scene));
    let cut = |bytes| {
        let file = fs::OpenOptions::new().write(true).open(control.dir().join("data"));
        file.and_then(|file| file.set_len(bytes)).expect("the lane is there");
    };
    cut(4096);
    let mut oms = informed(&scene);
    let is_reported = |notice: &&Notice| matches!(notice, Notice::LaneLost { lane: LaneKind::Control, .. });
    assert_eq!(oms.sequencer().notices().filter(is_reported).count(), 1, "an operator must be heard");
    cut(4096);
    while poll(&mut oms) > 0 {}
    let is_reported = |notice: &&Notice| matches!(notice, Notice::Quarantined { lane: LaneKind::Control, .. });
    assert_eq!(oms.sequencer().notices().filter(is_reported).count(), 1);
    let folder = scene.config.journal.path.dir().join("another");
    scene.config.journal.path = LogPath::folder(folder);
    let refused = scene.try_oms().err().expect("the lanes are another one's");
    assert!(matches!(refused, OmsError::Open(LogOpenError::HasReader { .. })), "{refused}");
}
