//! Bad calls and bad files: each ends with its exit code and a sentence that names the mistake.

use std::fs;
use std::path::Path;

use tempfile::tempdir;
use tickpath_clock::Calibration;
use tickpath_log::{Config, FORMAT_VERSION, LogPath, Writer};
use tickpath_oms_core::{CORE_VERSION, Digest, JournalStart, RecordKind};
use zerocopy::IntoBytes;

use crate::program::tickpath;

/// Offset of the format version in a log's header.
const VERSION_AT: usize = 8;

/// A record that a test damages, and the record that shows that the damaged one was not the last.
const MARK: &[u8] = b"a record that will be damaged";
const BEHIND: &[u8] = b"and one behind it";

#[test]
fn contradictory_arguments_are_bad_usage() {
    for (line, word) in [
        ("bench", "Usage"),
        ("fly", "fly"),
        ("bench host --loud", "--loud"),
        ("bench host --duration 0", "0.1 to 86400"),
        ("bench host --duration nan", "0.1 to 86400"),
        ("bench pubsub --size 0", "16 to 16777216"),
        ("bench pubsub --size 8", "16 to 16777216"),
        ("bench pubsub --size 16777217", "16 to 16777216"),
        ("bench pubsub --size big", "whole number"),
        ("bench pubsub --rate 0", "above 0"),
        ("bench pubsub --rate=-1", "above 0"),
        ("bench pubsub --rate -1", "error"),
        ("bench pubsub --rate nan", "above 0"),
        ("bench pubsub --rate fast", "not a number"),
        ("bench pubsub --rate auto", "--slo"),
        ("bench pubsub --slo one_way.p99<5us", "--rate auto"),
        ("bench pubsub --rate auto --slo one_way.p99<5", "is no promise"),
        ("bench pubsub --rate auto --slo speed<5us", "no bench measures"),
        ("bench pubsub --rate auto --slo t0_t2.p50<5us", "one_way, service and publish"),
        ("bench pubsub --rate auto --slo one_way.p50<5us --count 9", "leave --count"),
        ("bench pubsub --rate max --arrivals poisson", "needs a rate"),
        ("bench queue --rate auto", "not a number"),
        ("bench pubsub --count 0", "not in 1.."),
        ("bench pubsub --policy drop", "overwrite, fail or keep"),
        ("bench pubsub --readers 257", "257"),
        ("bench pubsub --wait x", "busy, yield, block or adaptive"),
        ("bench pubsub --priority fifo:0", "fifo"),
        ("bench host --cpus 99999 --duration 0.1", "available"),
        ("bench pubsub --cpus 0,99999 --count 1", "99999"),
        ("bench path --cpus 99999 --count 1", "available"),
        ("bench orders --cpus 99999 --count 1", "available"),
        ("bench orders --cpus first --count 1", "first"),
        ("bench path --speed 0", "above 0"),
        ("bench path --layout x", "inline, split or mutex"),
        ("bench path --wait x", "busy, yield, block or adaptive"),
        ("bench path --count 0", "not in 1.."),
        ("bench path --client jedis", "rust, python"),
        ("bench path --client python --layout inline", "--layout split"),
        ("bench path --client rust,python --layout split,mutex", "--layout split"),
        ("bench orders --layout x", "inline, split or mutex"),
        ("bench orders --client jedis", "rust, python"),
        ("bench orders --client python --count 9", "shm+unix://, unix:// or tcp://"),
        ("bench orders --client rust,python --target unix:// --target shm:// --count 9", "--client python"),
        ("bench orders --client python --target unix://", "with --count"),
        ("bench orders --client python --target unix:// --full --count 9", "leave --full out"),
        ("bench orders --client python --target tcp:// --sessions 2 --count 9", "leave --sessions"),
        ("bench orders --client python --target tcp:// --count 9 --order qty=1", "position=default"),
        ("bench orders --client python --resume 9", "cannot be used"),
        ("bench orders --rate 10", "--count"),
        ("bench orders --count 0", "not in 1.."),
        ("bench orders --order side=up", "buy or sell"),
        ("bench orders --target http://x", "oms.toml"),
        ("bench orders --target tcp://127.0.0.1:1", "oms.toml"),
        ("bench orders --target nothing.toml", "no such file"),
        ("bench orders --sessions 2 --count 1", "unix:// or tcp://"),
        ("bench orders --beside day --count 1", "unix:// or tcp://"),
        ("bench orders --target tcp:// --sessions 0", "1..=10000"),
        ("bench orders --target tcp:// --sessions 2 --active 3", "only 2 sessions"),
        ("bench orders --target tcp:// --layout mutex --count 1", "inline or split"),
        ("bench orders --target tcp:// --wait block --count 1", "split"),
        ("bench orders --target tcp:// --wait adaptive --count 1", "split"),
        ("bench orders --ack never", "os or disk"),
        ("bench orders --beside idle --count 1", "stuck, slow or day"),
        ("bench orders --target tcp:// --beside day", "--count"),
        ("bench orders --resume 10", "unix:// or tcp://"),
        ("bench orders --resume 1", "2..="),
        ("bench orders --restart 0", "1..="),
        ("bench orders --resume 9 --restart 9", "cannot be used"),
        ("bench orders --in-flight 1", "--count"),
        ("bench orders --order colour=red", "no field"),
        ("bench orders --order qty=0", "above zero"),
        ("report", "FILE"),
        ("log cat", "LOG"),
        ("compare a", "NEW"),
        ("explain", "nothing to explain"),
        ("explain nats://h:1 --client redis-py", "--client rust"),
        ("explain http://x", "names no transport"),
        ("explain redis://h:1 --gains x", "no change"),
        ("explain --with a", "error"),
        ("compare a b --fail-if x", "METRIC > +10%"),
        ("compare a b -- fly", "behind --"),
        ("bench queue --size 8", "108 to 16777216"),
        ("bench queue --transaction", "redis-py"),
        ("bench queue --role pusher", "--queue"),
        ("bench queue --pipeline 0", "1.."),
        ("bench pubsub --target http://x", "names no transport"),
        ("bench pubsub --target 127.0.0.1:6379", "did you mean redis://127.0.0.1:6379?"),
        ("doctor nast://h:4222", "did you mean nats://h:4222?"),
        ("bench pubsub --stall 0", "not in 1.."),
        ("bench pubsub --client jedis", "go-redis"),
        ("bench pubsub --client go-redis --target shm://", "--target redis://HOST:PORT"),
        ("bench pubsub --client rust,redis-py --target shm://", "--target redis://HOST:PORT"),
        ("bench pubsub --client go-redis --stall 10", "cannot be used with"),
        ("bench pubsub --phase warm", "steady, idle, cold, round-trip"),
        ("bench pipeline --depth 0", "not in 1.."),
        ("bench pipeline --command FLY", "PING"),
        ("bench pipeline --rtt=-1", "0 to"),
        ("bench clients --client java", "redis-py"),
        ("bench clients --rtt 9999", "0 to 2000"),
        ("bench clients --target nats://127.0.0.1:1", "redis"),
        ("doctor --script --json x", "cannot be used with"),
        ("log cat shm://x --count few", "few"),
        ("log bridge shm:// redis://h:1?streams --topic t --max-age abc", "0.1 to 86400 seconds"),
        ("log replay x shm:// t --max-age 10m", "without a unit: 600 for ten minutes"),
        ("log record shm:// t x --duration 1h", "without a unit: 600 for ten minutes"),
        ("bench clients --rtt 5ms", "milliseconds, a number without a unit"),
    ] {
        check(line, 2, word);
    }
}

#[test]
fn a_missing_server_is_named_with_the_remedy() {
    for call in ["bench queue --target", "bench pubsub --target", "bench pipeline --target", "explain"] {
        check(&format!("{call} redis://127.0.0.1:1"), 1, "refused the connection; start redis-server");
    }
    check("explain nats://127.0.0.1:1", 1, "refused the connection; start nats-server");
    check("doctor nats://127.0.0.1:1", 1, "1 of 1 brokers could not be inspected");
}

#[test]
fn a_missing_recording_is_named() {
    check("bench path --ticks /nonexistent --count 1 --wait block --quiet", 2, "/nonexistent");
}

#[test]
fn a_journal_is_never_overwritten() {
    let folder = tempdir().expect("a temporary folder can be made");
    let journal = text(folder.path());
    check(&format!("bench orders --count 1 --wait block --quiet --journal {journal}"), 2, "it exists");
    assert_eq!(fs::read_dir(folder.path()).expect("it is still there").count(), 0);
}

#[test]
fn a_file_that_is_no_result_is_refused() {
    let folder = tempdir().expect("a temporary folder can be made");
    let missing = folder.path().join("missing.json");
    check(&format!("report {}", text(&missing)), 1, "cannot read");
    for (content, word) in [
        ("", "cut short"),
        (r#"{"schema": "tickpath.result/1", "runs": ["#, "cut short"),
        ("latency: low", "not JSON"),
        ("[1, 2]", "schema"),
        (r#"{"schema": "tickpath.result/2"}"#, "tickpath.result/2"),
        (r#"{"schema": "tickpath.result/1", "runs": 7}"#, "result.schema.json"),
    ] {
        let file = folder.path().join("result.json");
        fs::write(&file, content).expect("the folder is ours");
        check(&format!("report {}", text(&file)), 1, word);
    }
}

#[test]
fn an_unreadable_log_is_an_error_with_the_reason() {
    let folder = tempdir().expect("a temporary folder can be made");
    let at = |name: &str| folder.path().join(name);
    let missing = format!("shm://usage-missing-{}", std::process::id());
    for command in ["cat", "verify", "ls"] {
        check(&format!("log {command} {missing}"), 1, "does not exist");
        check(&format!("log {command} {}", text(&at("missing"))), 1, "does not exist");
    }
    no_log(&at("zeros"), &[0; 8192]);
    no_log(&at("short"), b"TICKLOG");
    for name in ["zeros", "short"] {
        check(&format!("log cat {}", text(&at(name))), 1, "damaged or no log");
    }
    let other = at("other");
    journal(&other, &[(RecordKind::JournalStart.code(), start().as_bytes())]);
    change(&other, |data| {
        let version = (FORMAT_VERSION + 1).to_le_bytes();
        data[VERSION_AT..VERSION_AT + version.len()].copy_from_slice(&version);
    });
    check(&format!("log cat {}", text(&other)), 1, "format version");
}

#[test]
fn a_folder_of_logs_is_distinguished_from_a_log() {
    let folder = tempdir().expect("a temporary folder can be made");
    let dir = text(folder.path());
    for command in ["cat", "verify", "ls", "rm"] {
        check(&format!("log {command} {dir}"), 1, "is a folder without a log");
    }
    for name in ["ticks", "trades"] {
        journal(&folder.path().join(name), &[(RecordKind::JournalStart.code(), start().as_bytes())]);
    }
    let expected = format!("is no log; name one of the logs in that place: file://{dir}/ticks, file://{dir}/trades");
    for command in ["cat", "verify", "ls", "rm"] {
        check(&format!("log {command} file://{dir}"), 1, &expected);
    }
    check(&format!("log replay {dir} shm:// ticks"), 1, &expected);
    for number in 0..8 {
        journal(
            &folder.path().join(format!("more-{number}")),
            &[(RecordKind::JournalStart.code(), start().as_bytes())],
        );
    }
    check(&format!("log cat {dir}"), 1, "more-7 and more");
}

#[test]
fn a_damaged_journal_is_distinguished_from_a_good_one() {
    let folder = tempdir().expect("a temporary folder can be made");
    let at = |name: &str| folder.path().join(name);
    let first = (RecordKind::JournalStart.code(), start());
    let good = at("good");
    journal(&good, &[(first.0, first.1.as_bytes())]);
    assert_eq!(tickpath(&format!("log verify {}", text(&good))).code, Some(0), "a journal of nothing is whole");
    check(&format!("log analyse {}", text(&good)), 1, "holds no order");
    let empty = at("empty");
    fs::create_dir(&empty).expect("the folder is ours");
    check(&format!("log analyse {}", text(&empty)), 1, "does not exist");
    check(&format!("log analyse {}", text(&at("missing"))), 1, "does not exist");
    for command in ["log snapshot", "orders"] {
        check(&format!("{command} {}", text(&empty)), 1, "does not exist");
        check(&format!("{command} {}", text(&good)), 0, "");
    }

    let damaged = at("damaged");
    journal(&damaged, &[(first.0, first.1.as_bytes()), (200, MARK), (200, BEHIND)]);
    change(&damaged, |data| {
        let found = data.windows(MARK.len()).position(|bytes| bytes == MARK).expect("it was written");
        data[found] ^= 1;
    });
    check(&format!("log verify {}", text(&damaged)), 1, "damaged at sequence 1");
    // A lost page: the records behind it exist, and the hole is not taken for the end.
    let holed = at("holed");
    let (id, timer) = (0x1122_3344_5566_7788_u64, (RecordKind::GapTimer.code(), [0; 8].as_slice()));
    journal(&holed, &[(first.0, JournalStart { journal: id, ..start() }.as_bytes()), timer, timer]);
    change(&holed, |data| {
        let end = data.windows(8).position(|bytes| bytes == id.to_le_bytes()).expect("it was written") + 8;
        // Behind the checksum: a header, eight bytes and a checksum.
        data[end + 8..end + 8 + 32].fill(0);
    });
    for command in ["orders", "log snapshot", "log verify"] {
        check(&format!("{command} {}", text(&holed)), 1, "damaged at sequence 1");
    }
    check(&format!("orders {}", text(&holed.join("data"))), 1, "is a file");

    let wrong = at("wrong");
    let digest = Digest { inputs: 1, outputs: 1, digest: 1 };
    journal(&wrong, &[(first.0, first.1.as_bytes()), (RecordKind::Digest.code(), digest.as_bytes())]);
    check(&format!("log verify {}", text(&wrong)), 1, "digest");

    let later = at("later");
    let start = JournalStart { core_version: CORE_VERSION + 1, ..start() };
    journal(&later, &[(RecordKind::JournalStart.code(), start.as_bytes())]);
    check(&format!("log verify {}", text(&later)), 1, "core version");
}

/// Calls the binary, and checks its exit code and its sentence.
fn check(line: &str, code: i32, word: &str) {
    let ran = tickpath(line);
    let sentence = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(ran.code, Some(code), "tickpath {line}: {sentence}");
    assert!(sentence.contains(word), "tickpath {line}: no word of '{word}' in: {sentence}");
    assert!(!sentence.contains("panicked") && !sentence.contains('{'), "tickpath {line}: {sentence}");
}

fn start() -> JournalStart {
    let ticks_per_second = Calibration::nanoseconds().ticks_per_second;
    JournalStart { core_version: CORE_VERSION, reserved: 0, ticks_per_second, journal: 1 }
}

/// Makes a log on the disk with these records, each by its kind and its bytes.
fn journal(dir: &Path, records: &[(u8, &[u8])]) {
    let config = Config { segment_bytes: 4096, ..Config::journal(LogPath::folder(dir)) };
    let mut log = Writer::open(&config, &Calibration::nanoseconds()).expect("the folder is ours");
    for (kind, bytes) in records {
        log.publish(1, *kind, bytes).expect("a journal takes all");
    }
}

/// Makes a folder with a data file that no writer made.
fn no_log(dir: &Path, data: &[u8]) {
    fs::create_dir(dir).expect("the folder is ours");
    fs::write(dir.join("data"), data).expect("the folder is ours");
}

fn change(dir: &Path, change: impl FnOnce(&mut [u8])) {
    let file = dir.join("data");
    let mut data = fs::read(&file).expect("the log is there");
    change(&mut data);
    fs::write(&file, data).expect("the log is ours");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain text")
}
