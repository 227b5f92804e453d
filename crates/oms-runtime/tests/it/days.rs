//! Ends of days, snapshots, and followers: a start that does not read the whole history, and loses none of it.

use std::fs;
use std::path::PathBuf;

use tickpath_market::{Side, TimeInForce};
use tickpath_oms_core::{CORE_VERSION, DayEnd, RecordKind};
use tickpath_oms_runtime::{JournalError, snapshot};

use super::*;

fn end_day(scene: &Scene, oms: &mut Inline<SimulatedClock>, venue: &mut VenueEngine<SimulatedClock>) {
    venue.end_of_day().expect("the venue's lanes are sound");
    settle(oms, venue);
    let mut operator = scene.config.lanes.join_control(scene.clock.calibration()).expect("the OMS has made it");
    let day = DayEnd { day: 20_260_202, ..DayEnd::default() };
    operator.publish(scene.clock.ticks(), RecordKind::DayEnd.code(), day.as_bytes()).expect("the OMS reads it");
    settle(oms, venue);
}

/// Sends the orders of a busy day: crossing orders, cancels, some good-till-cancel orders.
fn trade(client: &mut Client, ids: std::ops::Range<u64>) {
    for id in ids {
        let side = if id % 2 == 0 { Side::Buy } else { Side::Sell };
        let time_in_force = if id % 10 == 0 { TimeInForce::GoodTillCancel } else { TimeInForce::Day };
        client.send(NewOrder { time_in_force: time_in_force.code(), ..limit(side, id, 100 + (id % 3) as i64, 1) });
        if id % 5 == 0 {
            client.send(cancel(1_000_000 + id, id));
        }
    }
}

impl Scene {
    fn journal(&self) -> PathBuf {
        self.config.journal.path.dir().to_owned()
    }

    /// Returns the names of the archived logs.
    fn archived(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.journal().join("archive")) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs a day with orders to its end.
    fn day(&mut self, ids: std::ops::Range<u64>) -> (Inline<SimulatedClock>, VenueEngine<SimulatedClock>, Client) {
        let mut oms = self.oms();
        self.tick(99, 101);
        let (mut venue, mut client) = (self.venue(), self.client(0));
        trade(&mut client, ids);
        settle(&mut oms, &mut venue);
        (oms, venue, client)
    }
}

#[test]
fn an_ended_day_is_archived_and_the_journal_continues() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, mut client) = scene.day(1..40);
    end_day(&scene, &mut oms, &mut venue);
    assert_eq!(scene.archived(), ["00000000000000000000"]);
    client.receive();
    // Ids restart with the day, and so may the client's orders.
    trade(&mut client, 1..20);
    settle(&mut oms, &mut venue);
    assert!(client.receive_reports().contains(&(1, ExecType::New, OrdStatus::New)));
    end_day(&scene, &mut oms, &mut venue);
    assert_eq!(scene.archived().len(), 2);
    let digest = oms.sequencer().core().digest();
    assert_eq!(scene.replay().0.digest(), digest, "a replay reads the archive, too");
    drop(oms);
    let mut oms = scene.oms();
    assert!(oms.sequencer().core().digest().inputs > digest.inputs);
    assert_eq!(oms.sequencer().counts().unknown_order_reports, 0);
    assert_eq!(scene.replay().0.digest(), oms.sequencer().core().digest());
}

#[test]
fn memory_stays_flat_over_ten_days() {
    let mut scene = Scene::new();
    let mut kept = Vec::new();
    let (mut oms, mut venue, mut client) = scene.day(1..2);
    for _ in 0..10 {
        trade(&mut client, 1..400);
        settle(&mut oms, &mut venue);
        for order in (10..400).step_by(10) {
            client.send(cancel(2_000_000 + order, order));
        }
        settle(&mut oms, &mut venue);
        client.receive();
        end_day(&scene, &mut oms, &mut venue);
        client.receive();
        kept.push(oms.sequencer().core().item_count());
    }
    assert!(kept.iter().all(|&kept| kept <= 80), "what is kept after each day: {kept:?}");
    assert_eq!(scene.archived().len(), 10);
}

#[test]
fn a_roll_killed_anywhere_is_finished_by_the_next_start() {
    type Undo = fn(&Scene);
    let archive = |scene: &Scene| scene.journal().join("archive/00000000000000000000");
    let killed: [(&str, Undo); 4] = [
        ("before anything moved", |scene| {
            let folder = scene.journal().join("archive/00000000000000000000");
            fs::rename(folder.join("data"), scene.journal().join("data")).unwrap();
            fs::rename(folder.join("control"), scene.journal().join("control")).unwrap();
            fs::remove_dir(folder).unwrap();
        }),
        ("between control and data", |scene| {
            let folder = scene.journal().join("archive/00000000000000000000");
            fs::remove_file(scene.journal().join("control")).unwrap();
            fs::rename(folder.join("data"), scene.journal().join("data")).unwrap();
        }),
        ("before there was a new log", |scene| {
            fs::remove_file(scene.journal().join("control")).unwrap();
            fs::remove_file(scene.journal().join("data")).unwrap();
        }),
        ("before the new log had its first record", |scene| {
            // The header alone, as a kill leaves it.
            let data = fs::OpenOptions::new().write(true).open(scene.journal().join("data")).unwrap();
            data.set_len(4096).unwrap();
            let header = fs::read(scene.journal().join("data")).unwrap();
            let mut fresh = header.clone();
            fresh[1024..].fill(0);
            fs::write(scene.journal().join("data"), fresh).unwrap();
        }),
    ];
    for (when, undo) in killed {
        let mut scene = Scene::new();
        let (mut oms, mut venue, mut client) = scene.day(1..40);
        client.receive();
        end_day(&scene, &mut oms, &mut venue);
        let (digest, live) = (oms.sequencer().core().digest(), oms.sequencer().core().open_orders().count());
        let reports = client.receive_reports().len();
        drop(oms);
        // The state after a kill there: only the start record follows the roll.
        assert!(archive(&scene).join("data").exists());
        undo(&scene);
        let mut oms = scene.oms();
        assert_eq!(oms.sequencer().core().open_orders().count(), live, "killed {when}");
        assert_eq!(scene.replay().0.digest(), oms.sequencer().core().digest(), "killed {when}");
        assert!(oms.sequencer().core().digest().inputs >= digest.inputs, "killed {when}");
        assert_eq!(scene.archived(), ["00000000000000000000"], "killed {when}");
        assert_eq!((reports > 0, client.receive()), (true, vec![]), "killed {when}: nothing is told twice");
        trade(&mut client, 1..10);
        settle(&mut oms, &mut venue);
        let reports = client.receive_reports();
        assert!(reports.contains(&(1, ExecType::New, OrdStatus::New)), "killed {when}: {reports:?}");
        end_day(&scene, &mut oms, &mut venue);
        assert_eq!(scene.archived().len(), 2, "killed {when}");
    }
}

#[test]
fn a_start_from_a_snapshot_equals_a_start_from_the_beginning() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, mut client) = scene.day(1..40);
    end_day(&scene, &mut oms, &mut venue);
    trade(&mut client, 1..30);
    settle(&mut oms, &mut venue);
    let made = snapshot::make(&scene.config.journal.path).unwrap();
    // A tail after the snapshot.
    trade(&mut client, 40..50);
    settle(&mut oms, &mut venue);
    let again = snapshot::make(&scene.config.journal.path).unwrap();
    assert!(again.replayed > 0 && again.replayed < made.replayed, "only what came since: {again:?}, {made:?}");
    trade(&mut client, 50..60);
    settle(&mut oms, &mut venue);
    client.receive();
    let (counts, digest) = (oms.sequencer().counts(), oms.sequencer().core().digest());
    drop(oms);
    let (whole, ..) = scene.replay();
    assert_eq!(whole.digest(), digest);
    // Without the archive the journal has no beginning: only the snapshot can have been used.
    let away = scene.journal().join("away");
    fs::rename(scene.journal().join("archive"), &away).unwrap();
    let mut oms = scene.oms();
    assert_eq!(oms.sequencer().counts(), counts);
    assert_eq!(oms.sequencer().core().digest().outputs, digest.outputs, "nothing was said twice");
    settle(&mut oms, &mut venue);
    assert_eq!(client.receive(), [], "nothing is told twice");
    trade(&mut client, 60..70);
    settle(&mut oms, &mut venue);
    let digest = oms.sequencer().core().digest();
    drop(oms);
    fs::rename(away, scene.journal().join("archive")).unwrap();
    assert_eq!(scene.replay().0.digest(), digest, "and the journal tells the same from its beginning");
}

#[test]
fn no_oms_starts_without_archive_and_snapshot() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, _client) = scene.day(1..10);
    end_day(&scene, &mut oms, &mut venue);
    drop(oms);
    fs::remove_dir_all(scene.journal().join("archive")).unwrap();
    let Err(OmsError::Journal(JournalError::ArchiveGone { upto, .. })) = scene.try_oms() else {
        panic!("half a history is none")
    };
    assert!(upto > 10);
}

#[test]
fn a_damaged_snapshot_is_not_used() {
    let mut scene = Scene::new();
    let (oms, _venue, _client) = scene.day(1..30);
    let place = &scene.config.journal.path;
    let whole = snapshot::make(place).unwrap().replayed;
    assert_eq!((whole, snapshot::make(place).unwrap().replayed), (scene.replay().1.len() as u64, 0));
    let path = scene.journal().join("snapshot");
    let good = fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(good.len() / 40).chain([good.len() - 1]) {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        for damaged in [&bad[..], &good[..at]] {
            fs::write(&path, damaged).unwrap();
            // Only a snapshot with a valid head was renamed to the older name.
            let _ = fs::remove_file(scene.journal().join("snapshot.before"));
            assert_eq!(snapshot::make(place).unwrap().replayed, whole, "byte {at} of {}", good.len());
        }
    }
    drop(oms);
}

#[test]
fn a_snapshot_of_lost_records_is_not_used() {
    let mut scene = Scene::new();
    let (oms, venue, mut client) = scene.day(1..20);
    drop((oms, venue));
    let early = fs::read(scene.journal().join("data")).unwrap();
    let mut oms = scene.oms();
    let mut venue = scene.venue();
    trade(&mut client, 20..40);
    settle(&mut oms, &mut venue);
    snapshot::make(&scene.config.journal.path).unwrap();
    drop((oms, venue));
    // A power loss takes the records that the snapshot was made from; the lanes go with the host.
    fs::write(scene.journal().join("data"), early).unwrap();
    scene.config.lanes.remove().unwrap();
    let mut oms = scene.oms();
    assert_eq!(scene.replay().0.digest(), oms.sequencer().core().digest());
    // Other records take the numbers of the lost ones: the snapshot still does not fit.
    let (mut venue, mut client) = (scene.venue(), scene.client(0));
    trade(&mut client, 40..80);
    settle(&mut oms, &mut venue);
    drop(oms);
    let oms = &mut scene.oms();
    assert_eq!(scene.replay().0.digest(), oms.sequencer().core().digest());
}

#[test]
fn another_core_version_starts_only_from_a_snapshot() {
    let mut scene = Scene::new();
    let (mut oms, venue, mut client) = scene.day(1..30);
    client.receive();
    oms.sequencer().stop().unwrap();
    let digest = oms.sequencer().core().digest();
    drop((oms, venue));
    snapshot::make(&scene.config.journal.path).unwrap();
    as_written_by(&scene, CORE_VERSION - 1);
    let snapshot = scene.journal().join("snapshot");
    fs::rename(&snapshot, scene.journal().join("aside")).unwrap();
    let Err(OmsError::Journal(JournalError::CoreVersion { found, .. })) = scene.try_oms() else {
        panic!("other rules, other state")
    };
    assert_eq!(found, CORE_VERSION - 1);
    fs::rename(scene.journal().join("aside"), snapshot).unwrap();
    let mut oms = scene.oms();
    assert_eq!(oms.sequencer().core().digest().outputs, digest.outputs);
    assert_eq!(scene.archived(), ["00000000000000000000"], "what the other version wrote is history");
    let mut venue = scene.venue();
    trade(&mut client, 30..40);
    settle(&mut oms, &mut venue);
    assert!(client.receive_reports().contains(&(31, ExecType::New, OrdStatus::New)));
    let digest = oms.sequencer().core().digest();
    drop(oms);
    assert!(scene.oms().sequencer().core().digest().inputs > digest.inputs, "and again");
}

/// Rewrites the journal's log as if a core of this version had written it.
pub fn as_written_by(scene: &Scene, version: u32) {
    let place = &scene.config.journal.path;
    let copy = LogPath::folder(scene.journal().join("copy"));
    let config = LogConfig { path: copy.clone(), ..scene.config.journal.clone() };
    let mut log = Writer::open(&config, scene.clock.calibration()).unwrap();
    let mut records = Reader::open(place, ReaderStart::Oldest, Registration::Unregistered).unwrap();
    while let Next::Message(record) = records.next().unwrap() {
        let mut payload = record.payload.to_vec();
        if record.kind == RecordKind::JournalStart.code() {
            payload[..4].copy_from_slice(&version.to_le_bytes());
        }
        log.publish(record.stamp, record.kind, &payload).unwrap();
    }
    log.sync().unwrap();
    drop((log, records));
    fs::rename(copy.dir().join("data"), place.dir().join("data")).unwrap();
}

#[test]
fn a_follower_of_a_journal_moves_from_day_to_day() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, mut client) = scene.day(1..10);
    let mut replay = journal::Replay::open(&scene.config.journal.path).unwrap();
    let mut core = Core::new(tickpath_oms_core::Config { expected_orders: 0, key: 0 });
    for day in 0..3 {
        trade(&mut client, 10..30);
        settle(&mut oms, &mut venue);
        while replay.step(&mut core, |_, _, _| {}).unwrap() {}
        assert_eq!(core.digest(), oms.sequencer().core().digest(), "day {day}");
        end_day(&scene, &mut oms, &mut venue);
        client.receive();
    }
    while replay.step(&mut core, |_, _, _| {}).unwrap() {}
    assert_eq!(core.digest(), oms.sequencer().core().digest());
}

#[test]
fn each_archived_day_is_replayed_up_to_its_end() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, mut client) = scene.day(1..10);
    for _ in 0..3 {
        trade(&mut client, 10..30);
        settle(&mut oms, &mut venue);
        end_day(&scene, &mut oms, &mut venue);
        client.receive();
    }
    drop(oms);
    let (whole, days) = (&scene.config.journal.path, scene.archived());
    let own = Reader::open(whole, tickpath_log::ReaderStart::Oldest, Registration::Unregistered).unwrap();
    let firsts = days.iter().map(|name| name.parse::<u64>().unwrap());
    let ends: Vec<u64> = firsts.skip(1).chain([own.first_sequence()]).collect();
    assert_eq!((days.len(), ends.len()), (3, 3));
    for (name, end) in days.iter().zip(ends) {
        let day = LogPath::folder(scene.journal().join("archive").join(name));
        let (mut replay, mut core) = journal::follow(&day).unwrap();
        while replay.step(&mut core, |at, _, _| assert!(at.sequence < end, "{name}: {}", at.sequence)).unwrap() {}
        replay.check_end().unwrap();
        assert_eq!(replay.sequence(), end, "{name}");
        // The digest equals that of the journal's own replay at this record.
        let new_core = || Core::new(tickpath_oms_core::Config { expected_orders: 0, key: 0 });
        let (mut reference, mut expected) = (new_core(), new_core().digest());
        let mut from_the_first = journal::Replay::open(whole).unwrap();
        let mut last = Some(0);
        while last.take().is_some_and(|sequence| sequence < end) {
            expected = reference.digest();
            from_the_first.step(&mut reference, |at, _, _| last = Some(at.sequence)).unwrap();
        }
        assert_eq!(core.digest(), expected, "{name}");
        let mut again = new_core();
        journal::replay(&day, &mut again, |_, _| {}).unwrap();
        assert_eq!(again.digest(), expected, "{name}");
    }
}

#[test]
fn a_day_ends_while_sessions_wait_for_the_disk() {
    let mut scene = Scene::new();
    scene.config.trading.sessions.iter_mut().for_each(|session| session.level = AckLevel::Disk);
    scene.config.snapshot_every = 10;
    let mut oms = scene.oms();
    scene.tick(99, 101);
    let (mut venue, mut client) = (scene.venue(), scene.client(0));
    for day in 0..3 {
        trade(&mut client, 1..20);
        until(|| {
            settle(&mut oms, &mut venue);
            oms.sequencer().held() == 0
        });
        assert!(client.receive_reports().contains(&(1, ExecType::New, OrdStatus::New)), "day {day}");
        end_day(&scene, &mut oms, &mut venue);
        until(|| {
            settle(&mut oms, &mut venue);
            oms.sequencer().held() == 0
        });
        client.receive();
    }
    until(|| scene.journal().join("snapshot").exists());
    assert_eq!(scene.archived().len(), 3);
    let digest = oms.sequencer().core().digest();
    assert_eq!(scene.replay().0.digest(), digest);
}

/// Waits until another thread has made this true.
fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000_000 {
        if is_so() {
            return;
        }
        tickpath_clock::yield_now();
    }
    panic!("what is waited for does not come");
}

#[test]
fn a_second_oms_is_refused_before_and_after_a_day_end() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, _client) = scene.day(1..5);
    end_day(&scene, &mut oms, &mut venue);
    let Err(OmsError::Open(tickpath_log::LogOpenError::HasWriter { .. })) = scene.try_oms() else {
        panic!("the journal has a writer")
    };
}

/// Copies the files of a lane.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn an_older_copy_of_a_lane_causes_no_resend() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, mut client) = scene.day(1..10);
    let lane = scene.lane(LaneKind::VenueRequests(VENUE)).path.dir().to_owned();
    let aside = scene.journal().join("aside");
    copy(&lane, &aside);
    trade(&mut client, 10..30);
    settle(&mut oms, &mut venue);
    // An order in flight, without an answer yet.
    client.send(limit(Side::Buy, 30, 90, 1));
    poll(&mut oms);
    drop((oms, venue));
    copy(&aside, &lane);
    let mut oms = scene.oms();
    let lost = |notice: &Notice| matches!(notice, Notice::LaneLost { lane: LaneKind::VenueRequests(VENUE), .. });
    assert!(oms.sequencer().notices().any(lost));
    assert_eq!(oms.sequencer().counts().unknown, 1, "what had no answer is in doubt");
    let _gateway = scene.venue_lanes();
    while poll(&mut oms) > 0 {}
    let sent: Vec<u8> = scene.to_venue().iter().map(|(kind, _)| *kind).collect();
    assert_eq!(sent, [Kind::StatusRequest.code()], "it is asked for, and nothing is sent again");
}

#[test]
fn swapped_lanes_are_never_taken_for_each_other() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, first) = scene.day(1..10);
    let mut second = scene.client(1);
    second.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    drop((oms, first, second));
    let [one, other] = [0, 1].map(|session| scene.lane(LaneKind::Reports(session)).path.dir().to_owned());
    let aside = one.with_extension("aside");
    fs::rename(&one, &aside).unwrap();
    fs::rename(&other, &one).unwrap();
    fs::rename(&aside, &other).unwrap();
    let mut oms = scene.oms();
    let lost = |notice: &&Notice| matches!(notice, Notice::LaneLost { lane: LaneKind::Reports(_), .. });
    assert_eq!(oms.sequencer().notices().filter(lost).count(), 2, "nobody reads what was said to another");
}

#[test]
fn a_lane_that_lacks_unrecoverable_messages_is_lost_and_others_continue() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, mut client) = scene.day(1..10);
    let reports = scene.lane(LaneKind::Reports(0)).path.dir().to_owned();
    let aside = scene.journal().join("aside");
    copy(&reports, &aside);
    trade(&mut client, 10..20);
    settle(&mut oms, &mut venue);
    end_day(&scene, &mut oms, &mut venue);
    snapshot::make(&scene.config.journal.path).unwrap();
    drop((oms, client));
    copy(&aside, &reports);
    fs::remove_dir_all(scene.journal().join("archive")).unwrap();
    let mut oms = scene.oms();
    let lost = |notice: &Notice| matches!(notice, Notice::LaneLost { lane: LaneKind::Reports(0), .. });
    assert_eq!(oms.sequencer().notices().filter(|notice| lost(notice)).count(), 1);
    let mut other = scene.client(1);
    other.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    assert!(other.receive_reports().contains(&(1, ExecType::New, OrdStatus::New)));
}

#[test]
fn a_day_that_cannot_be_archived_stays_in_place() {
    let mut scene = Scene::new();
    let (mut oms, mut venue, mut client) = scene.day(1..10);
    let blocked = scene.journal().join("archive");
    fs::write(&blocked, "a file in the way").unwrap();
    end_day(&scene, &mut oms, &mut venue);
    assert!(oms.sequencer().notices().any(|notice| matches!(notice, Notice::NotArchived(_))));
    client.receive();
    trade(&mut client, 1..10);
    settle(&mut oms, &mut venue);
    assert!(client.receive_reports().contains(&(1, ExecType::New, OrdStatus::New)), "the next day begins all the same");
    drop(oms);
    drop(scene.oms());
    fs::remove_file(blocked).unwrap();
    let digest = scene.oms().sequencer().core().digest();
    assert_eq!(scene.archived().len(), 1, "a start puts it there once it can");
    assert_eq!(scene.replay().0.digest().outputs, digest.outputs);
}

#[test]
fn a_client_that_left_while_no_oms_ran_is_logged_out() {
    let mut scene = Scene::new();
    scene.config.trading.sessions[1].cancel_on_disconnect = true;
    let (oms, mut venue, stays) = scene.day(1..2);
    let mut oms = oms;
    let mut leaver = scene.client(1);
    leaver.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    drop(oms);
    drop(leaver);
    let mut oms = scene.oms();
    settle(&mut oms, &mut venue);
    let open: Vec<u16> = oms.sequencer().core().open_orders().map(|order| order.session).collect();
    assert_eq!(open, [0], "of the one who is still there");
    drop(stays);
}

#[test]
fn two_concurrent_snapshot_makers_make_sound_snapshots() {
    let mut scene = Scene::new();
    let (oms, _venue, _client) = scene.day(1..30);
    let place = &scene.config.journal.path;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..20).for_each(|_| drop(snapshot::make(place).unwrap())));
        }
    });
    assert_eq!(snapshot::make(place).unwrap().replayed, 0, "the last one was good");
    drop(oms);
}
