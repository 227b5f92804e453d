//! Ctrl-C, and two benches at once.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::tempdir;
use tickpath_bus::conformance::free_port;
use tickpath_log::{LogPath, Reader, ReaderStart, Registration};

use crate::program::{LOOKS, PAUSE_NS, tickpath, without_waits};
use crate::reports::load;

/// Waits until the condition holds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if is_so() {
            return;
        }
        tickpath_clock::sleep_ns(PAUSE_NS);
    }
    panic!("in vain waited until {what}");
}

/// A bench of this test, killed when it is dropped.
struct Bench(Child);

impl Drop for Bench {
    fn drop(&mut self) {
        // The bench may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(words: &[&str]) -> Bench {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A terminal sends its signal to the whole group.
    Bench(command.process_group(0).spawn().expect("the binary starts"))
}

/// Returns the number of topics in shared memory that a bench has made.
fn topics_of(pid: u32) -> usize {
    let names = fs::read_dir("/dev/shm").expect("shared memory").flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().contains(&format!("lab-{pid}."))).count()
}

#[test]
fn ctrl_c_ends_a_bench_saves_its_partial_result_and_leaves_nothing() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("result.json");
    let words = ["bench", "pubsub", "--target", "shm://", "--size", "64", "--rate", "1k", "--duration", "3600"];
    let json = file.to_str().unwrap();
    let mut bench = start(&[&words[..], &["--quiet", "--json", json]].concat());
    let pid = bench.0.id();
    until("it publishes", || topics_of(pid) > 0);
    let group = Pid::from_raw(pid as i32).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    let mut text = Vec::new();
    bench.0.stderr.take().unwrap().read_to_end(&mut text).unwrap();
    let text = without_waits(&text);
    assert_eq!((bench.0.wait().unwrap().code(), text.as_str()), (Some(130), "tickpath: interrupted\n"));
    assert_eq!(topics_of(pid), 0);
    if file.exists() {
        let result = load(&file);
        let runs = result["runs"].as_array().unwrap();
        assert!(runs.last().is_some_and(|run| run["valid"] == false), "{result}");
    }
}

/// Returns the number of messages sent by a run of a result, and its notes.
fn sent(result: &serde_json::Value, run: usize) -> (u64, String) {
    let run = &result["runs"][run];
    assert_eq!(run["valid"], false, "{result}");
    (run["counts"]["sent"].as_u64().unwrap(), run["notes"].to_string())
}

/// The first of several runs is interrupted: the result has only this run, with its measurements so far.
#[test]
fn measurements_before_ctrl_c_are_in_the_result() {
    const PUBSUB: [&str; 5] = ["pubsub", "--target", "shm://", "--size", "64"];
    let at = |rate| [&PUBSUB[..], rate].concat();
    for (words, hop, things) in [
        (at(&["--rate", "1k", "--duration", "3600", "--repeat", "3"]), "one_way", "messages"),
        (at(&["--rate", "auto", "--slo", "one_way.p50<1s", "--duration", "3600"]), "one_way", "messages"),
        (vec!["path", "--rate", "1k", "--count", "1000000", "--repeat", "3"], "tick_to_order", "ticks"),
        (vec!["orders", "--rate", "1k", "--count", "1000000", "--repeat", "3"], "order_round_trip", "orders"),
    ] {
        let folder = tempdir().unwrap();
        let file = folder.path().join("result.json");
        let json = ["--quiet", "--json", file.to_str().unwrap()];
        let mut bench = start(&[&["bench"], &words[..], &json].concat());
        let pid = bench.0.id();
        let is_of_bench = |name: &String| name.starts_with(&format!("lab-{pid}."));
        let has_some = |name: String| {
            let place = LogPath::shared_memory(&name).unwrap();
            let log = Reader::open(&place, ReaderStart::Now, Registration::Unregistered);
            log.is_ok_and(|log| log.sequence() > 100)
        };
        until("some are sent", || {
            assert_eq!(bench.0.try_wait().unwrap(), None, "it has ended: {words:?}");
            LogPath::all_in_shared_memory().unwrap().into_iter().filter(is_of_bench).any(has_some)
        });
        kill_process_group(Pid::from_raw(pid as i32).unwrap(), Signal::INT).unwrap();
        assert_eq!(bench.0.wait().unwrap().code(), Some(130), "{words:?}");
        let result = load(&file);
        let (sent, notes) = sent(&result, 0);
        let text = format!("it broke off after {sent} of ");
        assert!(sent > 0 && notes.contains(&text) && notes.contains("interrupted"), "{words:?}: {result}");
        assert!(notes.contains(things), "{words:?}: {notes}");
        assert_eq!(result["runs"].as_array().unwrap().len(), 1, "there is no run that was not made: {result}");
        assert!(result["runs"][0]["hops"][hop]["count"].as_u64().unwrap() > 0, "{words:?}: {result}");
        assert_eq!(topics_of(pid), 0, "{words:?}");
    }
}

/// A server that stalls in the middle of a run is named, and the measurements before it stay.
#[test]
fn measurements_before_a_server_stalled_are_in_the_result() {
    let folder = tempdir().unwrap();
    let (file, port) = (folder.path().join("result.json"), free_port());
    let mut server = Command::new("redis-server");
    server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder.path());
    let server = Bench(server.stdout(Stdio::null()).spawn().expect("redis-server starts"));
    until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("redis://127.0.0.1:{port}");
    let words = ["bench", "pubsub", "--target", &url, "--size", "64", "--rate", "1k", "--duration", "600", "--quiet"];
    let mut bench = start(&[&words[..], &["--json", file.to_str().unwrap()]].concat());
    let calls = || {
        let mut asking = TcpStream::connect(("127.0.0.1", port)).ok()?;
        asking.write_all(b"INFO commandstats\r\nQUIT\r\n").ok()?;
        let mut text = String::new();
        asking.read_to_string(&mut text).ok()?;
        text.split_once("cmdstat_publish:calls=")?.1.split(',').next()?.parse::<u64>().ok()
    };
    // The plan publishes a thousand messages before, to find the rate that the server can keep up.
    until("some hundreds are sent", || calls().is_some_and(|calls| calls > 1_300));
    kill_process(Pid::from_raw(server.0.id() as i32).unwrap(), Signal::STOP).unwrap();
    let mut output = Vec::new();
    bench.0.stderr.take().unwrap().read_to_end(&mut output).unwrap();
    assert_eq!(bench.0.wait().unwrap().code(), Some(1));
    let output = without_waits(&output);
    assert!(output.contains(&url) && output.contains("did not answer within 5 s"), "{output}");
    let result = load(&file);
    let (sent, notes) = sent(&result, 0);
    assert!(sent > 0 && notes.contains("did not answer within 5 s"), "{result}");
    assert_eq!(result["runs"].as_array().unwrap().len(), 1, "{result}");
}

#[test]
fn ctrl_c_does_not_wait_for_a_broker_that_does_not_answer() {
    let folder = tempdir().unwrap();
    let recording = folder.path().join("recording");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    for words in [
        vec!["log", "record", &url, "ticks", recording.to_str().unwrap()],
        vec!["log", "bridge", &url, "shm://", "--topic", "ticks"],
        vec!["bench", "pubsub", "--target", &url, "--quiet"],
        vec!["doctor", &url],
    ] {
        let mut running = start(&words);
        let mut line = None;
        until("it connects", || {
            line = silent.accept().ok();
            line.is_some()
        });
        kill_process_group(Pid::from_raw(running.0.id() as i32).unwrap(), Signal::INT).unwrap();
        assert_eq!(running.0.wait().unwrap().code(), Some(130), "{words:?}");
    }
    assert!(!recording.exists());
}

#[test]
fn only_one_bench_runs_at_a_time() {
    let first = start(&["bench", "pubsub", "--target", "shm://", "--rate", "1k", "--duration", "3600", "--quiet"]);
    until("it publishes", || topics_of(first.0.id()) > 0);
    let mut second = start(&["bench", "host", "--duration", "0.1", "--quiet"]);
    let mut text = BufReader::new(second.0.stderr.take().unwrap());
    let mut line = String::new();
    text.read_line(&mut line).unwrap();
    let who = format!("process {} (tickpath bench pubsub) has been measuring on this machine for ", first.0.id());
    assert!(line.starts_with(&who), "{line}");
    drop(first);
    until("the second one ends", || second.0.try_wait().unwrap().is_some());
    assert!(matches!(second.0.wait().unwrap().code(), Some(0 | 3)));
}

/// Function that puts something in the place of a lock, beside a file that must not be changed.
type Plant = fn(&Path, &Path) -> io::Result<()>;

/// Any user may make files in a temporary folder.
#[test]
fn a_lock_file_of_another_user_is_not_used() {
    let folder = tempdir().unwrap();
    let precious = folder.path().join("precious");
    // The former shared name, and this user's present one.
    let user = rustix::process::geteuid().as_raw();
    let locks = ["tickpath-bench.lock".to_owned(), format!("tickpath-bench-{user}.lock")];
    let temporary = folder.path().join("temporary");
    let plants: [(&str, Plant); 3] = [
        ("is a symbolic link", |lock, precious| symlink(precious, lock)),
        ("is a hard link", |lock, precious| fs::hard_link(precious, lock)),
        ("every user can write to", |lock, _| {
            fs::write(lock, "0").and_then(|()| fs::set_permissions(lock, fs::Permissions::from_mode(0o666)))
        }),
    ];
    for (words, plant) in plants {
        fs::write(&precious, "an order journal").unwrap();
        fs::create_dir(&temporary).unwrap();
        for lock in &locks {
            plant(&temporary.join(lock), &precious).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        command.args(["bench", "host", "--duration", "0.1"]).env("TMPDIR", &temporary).stdin(Stdio::null());
        let ran = command.output().expect("the binary starts");
        let text = String::from_utf8_lossy(&ran.stderr);
        assert!(matches!(ran.status.code(), Some(0 | 3)), "{words}: {text}");
        assert!(text.contains("cannot lock ") && text.contains(words), "{text}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "an order journal", "{words}");
        fs::remove_dir_all(&temporary).unwrap();
    }
}

#[test]
fn invalid_suffixes_and_sizes_name_the_valid_ones() {
    for (line, word) in [
        ("bench pubsub --size 64q", "like 65536 or 64k"),
        ("bench pubsub --rate 10q", "like 10000 or 10k, or max"),
        ("bench pubsub --size 17M", "16 to 16777216"),
    ] {
        let ran = tickpath(line);
        assert!(ran.code == Some(2) && ran.err.contains(word), "{line}: {}", ran.err);
    }
}
