//! Journals that no OMS may start from: each is refused with its own reason.

use std::fs;

use tickpath_clock::Clock;
use tickpath_log::Writer;
use tickpath_market::Side;
use tickpath_oms_core::{CORE_VERSION, Digest, JournalStart, RecordKind};
use tickpath_oms_runtime::{JournalError, OmsError};
use zerocopy::IntoBytes;

use crate::{Scene, limit, poll};

/// Marker of a record that a test finds again by its bytes.
const MARK: &[u8] = b"a record that will be damaged";

#[test]
fn a_log_that_is_no_journal_is_refused() {
    let start = JournalStart { core_version: CORE_VERSION, reserved: 0, ticks_per_second: 1_000_000_000, journal: 1 };
    let later = JournalStart { core_version: CORE_VERSION + 1, ..start };
    let digest = Digest { inputs: 1, outputs: 0, digest: 0 };
    let begin = (RecordKind::JournalStart.code(), start.as_bytes());
    check(&[(RecordKind::JournalStart.code(), later.as_bytes())], |e| match e {
        OmsError::Journal(JournalError::CoreVersion { found, expected }) => *found == *expected + 1,
        _ => false,
    });
    check(&[(200, MARK)], |e| matches!(e, OmsError::Journal(JournalError::NoJournal)));
    check(&[(RecordKind::Digest.code(), digest.as_bytes())], |e| {
        matches!(e, OmsError::Journal(JournalError::NoJournal))
    });
    check(&[begin, (200, MARK)], |e| matches!(e, OmsError::Journal(JournalError::Record { sequence: 1, .. })));
    check(&[begin, (RecordKind::Report.code(), MARK)], |e| {
        matches!(e, OmsError::Journal(JournalError::Record { sequence: 1, .. }))
    });
    check(&[begin, (RecordKind::New.code(), &[0xff; 95])], |e| {
        matches!(e, OmsError::Journal(JournalError::Record { sequence: 1, .. }))
    });
    check(&[begin, (RecordKind::Digest.code(), digest.as_bytes())], |e| {
        matches!(e, OmsError::Journal(JournalError::Digest { sequence: 1 }))
    });
}

#[test]
fn a_file_that_is_no_log_is_refused() {
    let scene = Scene::new();
    let dir = scene.config.journal.path.dir();
    fs::create_dir_all(dir).expect("the folder is ours");
    fs::write(dir.join("data"), [7; 10_000]).expect("the folder is ours");
    assert!(matches!(scene.try_oms().err(), Some(OmsError::Open(_))));
}

#[test]
fn a_changed_byte_is_found() {
    let mut scene = Scene::new();
    let mut oms = scene.oms();
    let mut client = scene.client(0);
    scene.tick(99, 101);
    poll(&mut oms);
    for id in 1..=5 {
        client.send(limit(Side::Buy, id, 90, 1));
    }
    poll(&mut oms);
    drop(oms);
    let file = scene.config.journal.path.dir().join("data");
    let good = fs::read(&file).expect("the journal is there");
    // In a new file, so that segments still being prepared for the old file do not lengthen this one.
    let put = |bytes: &[u8]| {
        fs::remove_file(&file).expect("the journal is ours");
        fs::write(&file, bytes).expect("the journal is ours");
    };
    let order = limit(Side::Buy, 3, 90, 1);
    let wanted = order.as_bytes();
    let found =
        good.windows(wanted.len()).position(|bytes| bytes == wanted).expect("the third order is in the journal");
    for changed in [found, found + 8, found + wanted.len() - 1] {
        let mut bad = good.clone();
        bad[changed] ^= 0x40;
        put(&bad);
        assert!(matches!(scene.try_oms().err(), Some(OmsError::Read(_) | OmsError::Open(_))), "byte {changed}");
        assert!(fs::read(&file).expect("it is still there") == bad, "a journal that is refused stays as it is");
    }
    put(&good);
    assert_eq!(scene.oms().sequencer().counts().queued, 5);
}

#[test]
fn a_journal_has_one_writer() {
    let scene = Scene::new();
    let config = &scene.config.journal;
    let _other = Writer::open(config, scene.clock.calibration()).expect("the journal is new");
    assert!(scene.try_oms().is_err());
}

/// Writes a journal of these records, each given by its kind and bytes, and opens an OMS on it.
fn check(records: &[(u8, &[u8])], is_meant: fn(&OmsError) -> bool) {
    let scene = Scene::new();
    let mut journal = Writer::open(&scene.config.journal, scene.clock.calibration()).expect("the journal is new");
    for (kind, bytes) in records {
        journal.publish(1, *kind, bytes).expect("a journal takes all");
    }
    drop(journal);
    let refused = scene.try_oms().err().expect("it is refused");
    assert!(is_meant(&refused), "{refused}");
    assert!(!refused.to_string().contains('{'), "{refused}");
}
