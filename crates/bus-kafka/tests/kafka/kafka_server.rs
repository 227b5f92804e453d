//! Kafka servers for tests: on loopback, empty, in folders of their own, gone with the test.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use tempfile::TempDir;
use tickpath_bus_api::conformance::free_port;

use crate::until;

/// Another one on each server of a cluster; the id of the cluster is the same.
const CLUSTER: &str = "tickpath-brokers-00000";

/// Who can log in by SCRAM, and with what.
pub const USER: (&str, &str) = ("ann", "secret");

/// A running server.
pub struct KafkaServer {
    process: Child,
    port: u16,
    /// Goes after the server.
    home: TempDir,
}

/// As many servers of tests run at a time as a cluster has: more would take the host's memory.
const MOST: usize = 3;

/// One that was killed is known to its controller as long as its session lasts, and not let in again before; else that
/// is 9 s, in which a test waits for each restart. No server but a lone one is restarted here.
const SHORT_SESSION: &str = "broker.session.timeout.ms=2500\nbroker.heartbeat.interval.ms=500\n";

static FREE: Mutex<usize> = Mutex::new(MOST);
static GIVEN_BACK: Condvar = Condvar::new();

/// The right to so many servers, until it is dropped.
pub struct Turn(usize);

/// Waits until a test may have so many servers of its own.
pub fn in_turn(servers: usize) -> Turn {
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let free = GIVEN_BACK.wait_while(free, |free| *free < servers);
    *free.unwrap_or_else(PoisonError::into_inner) -= servers;
    Turn(servers)
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        GIVEN_BACK.notify_all();
    }
}

/// A server whose folder is being made ready, by a Java of its own.
struct Prepared {
    format: Child,
    port: u16,
    home: TempDir,
}

impl KafkaServer {
    /// Starts one with further settings, of which `listeners` have names and ports behind the usual ones. In the others
    /// `PORT` stands for that of the usual listener.
    pub fn start(listeners: &str, settings: &str) -> Self {
        let (port, controller) = (free_port(), free_port());
        let settings = format!("{SHORT_SESSION}{settings}").replace("PORT", &port.to_string());
        let server = Prepared::new(1, port, controller, &voters(&[controller]), listeners, &settings).run();
        server.until_there(1);
        server
    }

    /// Starts three that are a cluster.
    pub fn start_cluster() -> [Self; 3] {
        let ports = [(); 3].map(|()| (free_port(), free_port()));
        let voters = voters(&ports.map(|(_, controller)| controller));
        let mut id = 0;
        // All at once, and then each is waited for.
        let prepared = ports.map(|(port, controller)| {
            id += 1;
            Prepared::new(id, port, controller, &voters, "", "offsets.topic.replication.factor=3\n")
        });
        let servers = prepared.map(Prepared::run);
        servers.iter().for_each(|server| server.until_there(3));
        servers
    }

    /// Its URL, without encryption or login.
    pub fn url(&self) -> String {
        format!("kafka://{}", self.address())
    }

    /// Where its usual listener is.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills it and waits until it is gone.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again, as it was.
    pub fn restart(&mut self) {
        self.process = run(self.home.path());
        self.until_there(1);
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Cuts a topic off behind so many records, each of which was sent alone, while the server is not running. What is
    /// known of them elsewhere goes too.
    pub fn cut(&self, topic: &str, records: usize) {
        let data = self.home.path().join("data");
        let folder = data.join(format!("{topic}-0"));
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            match file.extension().and_then(|end| end.to_str()) {
                Some("log") => cut(&file, records),
                Some("metadata") => {}
                _ => fs::remove_file(file).unwrap(),
            }
        }
        let _ = fs::remove_file(data.join("recovery-point-offset-checkpoint"));
    }

    /// Waits until it knows so many servers that work.
    fn until_there(&self, servers: usize) {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.address()).set("reconnect.backoff.max.ms", "200");
        let lookup: BaseConsumer = config.create().unwrap();
        until(|| {
            let found = lookup.fetch_metadata(None, Duration::from_secs(1));
            found.is_ok_and(|found| found.brokers().len() == servers)
        });
    }
}

impl Prepared {
    fn new(id: u32, port: u16, controller: u16, voters: &str, listeners: &str, settings: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut properties = fs::read_to_string(repository().join("scripts/kafka/server.properties")).unwrap();
        writeln!(
            properties,
            "\nnode.id={id}\nlisteners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{listeners}\n\
             controller.quorum.voters={voters}\nlog.dirs={}\n{settings}",
            home.path().join("data").display()
        )
        .unwrap();
        fs::write(home.path().join("server.properties"), properties).unwrap();
        let user = format!("SCRAM-SHA-512=[name={},password={}]", USER.0, USER.1);
        let mut format = java(home.path(), &["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER, "--config"]);
        format.arg(home.path().join("server.properties")).args(["--add-scram", &user]);
        Self { format: format.spawn().expect("java runs"), port, home }
    }

    /// Starts it as soon as it is ready.
    fn run(mut self) -> KafkaServer {
        let formatted = self.format.wait().unwrap();
        assert!(formatted.success(), "{}", log(self.home.path()));
        KafkaServer { process: run(self.home.path()), port: self.port, home: self.home }
    }
}

impl Drop for KafkaServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            println!("the end of the log of {}:\n{}", self.address(), log(self.home.path()));
        }
    }
}

/// One that controllers find each other by.
fn voters(ports: &[u16]) -> String {
    let voters: Vec<String> = (1..).zip(ports).map(|(id, port)| format!("{id}@127.0.0.1:{port}")).collect();
    voters.join(",")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(home: &Path) -> Child {
    let mut server = java(home, &["kafka.Kafka"]);
    server.arg(home.join("server.properties")).spawn().expect("java runs")
}

/// Sends so many records to a topic by Kafka's own client, each in a transaction of its own, of which one is aborted.
pub fn send_in_transactions(address: &str, topic: &str, count: u64, aborted: u64) {
    let home = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/Transactions.java");
    let mut sending = java(home.path(), &[]);
    sending.arg(program).args([address, topic, &count.to_string(), &aborted.to_string()]);
    let ended = sending.status().expect("java runs");
    assert!(ended.success(), "{}", log(home.path()));
}

/// Kafka's Java, which ends with the test that starts it.
fn java(home: &Path, arguments: &[&str]) -> Command {
    let libraries = repository().join("target/kafka-libs");
    assert!(libraries.is_dir(), "fetch Kafka: scripts/brokers run kafka -- true");
    let log = OpenOptions::new().create(true).append(true).open(home.join("log")).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:+PerfDisableSharedMem"]);
    command.args(["-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]);
    command.arg(format!("-Djava.io.tmpdir={}", home.display()));
    command.arg("-cp").arg(format!("{}/*", libraries.display())).args(arguments);
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command
}

/// The last lines of what it said.
fn log(home: &Path) -> String {
    let said = fs::read_to_string(home.join("log")).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// Leaves so many batches in a segment: each begins with its offset, of 8 bytes, and the length of what follows, of 4.
fn cut(segment: &Path, batches: usize) {
    let bytes = fs::read(segment).unwrap();
    let mut end = 0;
    for _ in 0..batches {
        let length = u32::from_be_bytes(bytes[end + 8..end + 12].try_into().unwrap());
        end += 12 + length as usize;
    }
    File::options().write(true).open(segment).unwrap().set_len(end as u64).unwrap();
}
