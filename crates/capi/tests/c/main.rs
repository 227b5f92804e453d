//! C and C++ programs against the library built by Cargo, over shared memory and with an OMS.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, process};

use tempfile::TempDir;
use tickpath_bus::conformance::wait_until;
use tickpath_bus::{
    Connection, DeliveryGuarantee, Policy, Publisher, QueueConfig, StartPosition, SubscriptionEvent, TopicConfig,
    connect,
};
use tickpath_clock::{Clock, HostClock, Wait};
use tickpath_log::LogPath;

mod books;
mod desk;
#[path = "../../../oms-server/tests/it/detail_line.rs"]
mod detail_line;
mod misuse;
mod orders;

const KIND: u8 = 200;
const TOPIC: &str = "ticks";
const QUEUE: &str = "jobs";

/// Seconds after which a hanging program is killed.
const MAX_SECONDS: &str = "120";

#[test]
fn messages_published_by_c_reach_c_and_rust() {
    let (programs, bus) = (Programs::new(), Bus::new("publishes"));
    let printed = programs.say("examples/publish.c", &[&bus.url, TOPIC, "20"]);
    assert_eq!(printed, "published 20\n");
    let all: Vec<u64> = (0..20).collect();
    let received = programs.say("examples/subscribe.c", &[&bus.url, TOPIC, "20"]);
    assert_eq!(numbers(&received), all, "{received}");
    let received = programs.say("examples/subscribe.cpp", &[&bus.url, TOPIC, "20"]);
    assert_eq!(numbers(&received), all, "{received}");
    assert_eq!(receive(&*bus.open(), 20), all);
}

#[test]
fn messages_published_by_rust_reach_c() {
    let (programs, bus) = (Programs::new(), Bus::new("receives"));
    let subscriber = programs.compile("examples/subscribe.c");
    let mut receiving = bounded(&subscriber, &[&bus.url, TOPIC, "100"]);
    let receiving = receiving.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("timeout can be run");
    let connection = bus.open();
    let mut publisher = connection.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).expect("the topic is new");
    publish(&mut *publisher, 0..100);
    let ended = receiving.wait_with_output().expect("it was started");
    let received = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(numbers(&received), (0..100).collect::<Vec<_>>(), "{received}");
    // Resumes after the last message received.
    let token = received.lines().find_map(|line| line.strip_prefix("token ")).expect("a log has a history");
    publish(&mut *publisher, 100..103);
    let received = programs.say("examples/subscribe.c", &[&bus.url, TOPIC, "3", token]);
    assert_eq!(numbers(&received), [100, 101, 102], "{received}");
}

#[test]
fn c_and_rust_share_a_queue() {
    let (programs, bus) = (Programs::new(), Bus::new("queue"));
    let queue = |what, count| programs.say("examples/queue.c", &[&bus.url, QUEUE, what, count]);
    assert_eq!(queue("push", "5"), "waiting 5\n");
    let connection = bus.open();
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let mut puller = connection.puller(QUEUE, &config, Wait::Yield).expect("it is there");
    let mut pulled = Vec::new();
    let taken = puller.pull(2, &mut |pulled_one| pulled.push(number(pulled_one.message.payload)));
    assert_eq!(taken.expect("pulled"), 2);
    assert_eq!(pulled, [0, 1]);
    puller.acknowledge().expect("acknowledged");
    drop(puller);
    assert_eq!(numbers(&queue("pull", "3")), [2, 3, 4]);
    let mut pusher = connection.pusher(QUEUE, &config).expect("C has closed its own");
    let clock = HostClock::get().expect("the host has a clock");
    (5..8u64).for_each(|number| pusher.push(clock.ticks(), KIND, &number.to_ne_bytes()).expect("it has room"));
    assert_eq!(numbers(&queue("pull", "3")), [5, 6, 7]);
    assert_eq!(connection.count_waiting(QUEUE).expect("it is there"), Some(0));
}

#[test]
fn every_misuse_has_a_status_and_a_sentence() {
    let (programs, bus) = (Programs::new(), Bus::new("misuse"));
    misuse::check(misuse::OF_THE_BUS, &programs.say("tests/c/abuse.c", &[&bus.url]));
}

/// A unique place in shared memory, removed with all its contents.
struct Bus {
    url: String,
}

impl Bus {
    fn new(what: &str) -> Self {
        Self { url: format!("shm://c-test-{}-{what}", process::id()) }
    }

    fn open(&self) -> Box<dyn Connection> {
        connect(&self.url).expect("shared memory is always there")
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let place: LogPath = self.url.parse().expect("it is a name");
        for log in tickpath_bus::list_logs(&place) {
            let _ = log.remove();
        }
    }
}

/// The folder of compiled programs.
struct Programs {
    folder: TempDir,
}

impl Programs {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Returns a program's output with these arguments; compiles the program if needed.
    fn say(&self, source: &str, arguments: &[&str]) -> String {
        stdout_of(&mut bounded(&self.compile(source), arguments))
    }

    /// Compiles a program as its users do, with warnings as errors.
    fn compile(&self, source: &str) -> PathBuf {
        let program = self.folder.path().join(source.replace(['/', '.'], "-"));
        if program.exists() {
            return program;
        }
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let test = env::current_exe().expect("a test has a path");
        let libraries = test.parent().expect("it lies in a folder");
        assert!(libraries.join("libtickpath.so").is_file(), "Cargo has built no library in {}", libraries.display());
        let (variable, usual, standard) = match source.ends_with(".cpp") {
            true => ("CXX", "c++", "-std=c++17"),
            false => ("CC", "cc", "-std=c11"),
        };
        let compiler = env::var(variable).unwrap_or_else(|_| usual.to_owned());
        let mut words = compiler.split_whitespace();
        let mut compile = Command::new(words.next().unwrap_or(usual));
        compile.args(words).args(["-Wall", "-Wextra", "-Werror", "-O1", standard]);
        compile.arg("-I").arg(package.join("include")).arg(package.join(source)).arg("-o").arg(&program);
        compile.arg("-L").arg(libraries).arg("-ltickpath").arg(format!("-Wl,-rpath,{}", libraries.display()));
        stdout_of(&mut compile);
        program
    }
}

/// Returns a command that kills the program if it hangs.
fn bounded(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg(MAX_SECONDS).arg(program).args(arguments);
    // Cargo's library path may contain an older build; the program has the path of its own library.
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Returns the output of a command, which must succeed.
fn stdout_of(command: &mut Command) -> String {
    let ended = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let [printed, errors] = [ended.stdout, ended.stderr].map(|printed| String::from_utf8_lossy(&printed).into_owned());
    assert!(ended.status.success(), "{command:?}: {}\n{printed}{errors}", ended.status);
    printed
}

/// Parses the sequence numbers that a program has received.
fn numbers(printed: &str) -> Vec<u64> {
    let lines = printed.lines().filter_map(|line| line.strip_prefix("number "));
    let digits = lines.map(|line| line.split(',').next().unwrap_or_default());
    digits.map(|digits| digits.parse().unwrap_or_else(|e| panic!("{digits}: {e}"))).collect()
}

fn number(payload: &[u8]) -> u64 {
    u64::from_ne_bytes(payload.try_into().expect("a number has eight bytes"))
}

fn publish(publisher: &mut dyn Publisher, numbers: std::ops::Range<u64>) {
    let clock = HostClock::get().expect("the host has a clock");
    for number in numbers {
        publisher.publish(clock.ticks(), KIND, &number.to_ne_bytes()).expect("it never waits");
    }
}

/// Receives the first `count` numbers of the topic.
fn receive(connection: &dyn Connection, count: usize) -> Vec<u64> {
    let mut subscriber = connection.subscriber(TOPIC, StartPosition::Oldest, Wait::Yield).expect("the topic is there");
    let mut received = Vec::new();
    wait_until(|| {
        let polled = subscriber.poll(count - received.len(), &mut |event| match event {
            SubscriptionEvent::Message(message) => received.push(number(message.payload)),
            other => panic!("{other:?}"),
        });
        polled.expect("polled");
        received.len() == count
    });
    received
}
