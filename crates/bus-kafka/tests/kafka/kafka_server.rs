//! Kafka servers for tests: on loopback, empty, in separate folders, removed with the test.

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

/// Cluster id, shared by all servers.
const CLUSTER: &str = "tickpath-brokers-00000";

/// User and password of the SCRAM login.
pub const USER: (&str, &str) = ("ann", "secret");

/// A running server.
pub struct KafkaServer {
    process: Child,
    port: u16,
    /// Declared last, so that the folder is removed after the server has ended.
    home: TempDir,
}

/// Max number of test servers at a time: a cluster's, because more would exhaust the host's memory.
const MAX_SERVERS: usize = 3;

/// Settings that expire a killed server's session soon: until then its controller refuses a restart, by default for 9
/// s. Only single servers are restarted here.
const SHORT_SESSION: &str = "broker.session.timeout.ms=2500\nbroker.heartbeat.interval.ms=500\n";

static FREE_SLOTS: Mutex<usize> = Mutex::new(MAX_SERVERS);
static SLOT_RETURNED: Condvar = Condvar::new();

/// Permission to run this number of servers, until dropped.
pub struct ServerPermit(usize);

/// Waits until a test may run this number of servers.
pub fn acquire_permit(servers: usize) -> ServerPermit {
    let free = FREE_SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = SLOT_RETURNED.wait_while(free, |free| *free < servers);
    *free.unwrap_or_else(PoisonError::into_inner) -= servers;
    ServerPermit(servers)
}

impl Drop for ServerPermit {
    fn drop(&mut self) {
        *FREE_SLOTS.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        SLOT_RETURNED.notify_all();
    }
}

/// A server whose folder is being formatted, by a separate Java process.
struct Prepared {
    format: Child,
    port: u16,
    home: TempDir,
}

impl KafkaServer {
    /// Starts a server with further `listeners`, given as names and ports, and further settings, in which `PORT` stands
    /// for the port of the usual listener.
    pub fn start(listeners: &str, settings: &str) -> Self {
        let (port, controller) = (free_port(), free_port());
        let settings = format!("{SHORT_SESSION}{settings}").replace("PORT", &port.to_string());
        let server = Prepared::new(1, port, controller, &voters(&[controller]), listeners, &settings).run();
        server.until_there(1);
        server
    }

    /// Starts three servers that form a cluster.
    pub fn start_cluster() -> [Self; 3] {
        let ports = [(); 3].map(|()| (free_port(), free_port()));
        let voters = voters(&ports.map(|(_, controller)| controller));
        let mut id = 0;
        // All start at once, and then each is waited for.
        let prepared = ports.map(|(port, controller)| {
            id += 1;
            Prepared::new(id, port, controller, &voters, "", "offsets.topic.replication.factor=3\n")
        });
        let servers = prepared.map(Prepared::run);
        servers.iter().for_each(|server| server.until_there(3));
        servers
    }

    /// Returns the URL without TLS or login.
    pub fn url(&self) -> String {
        format!("kafka://{}", self.address())
    }

    /// Returns the address of the usual listener.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills the server and waits until its process has ended.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Restarts the server with its old settings and data.
    pub fn restart(&mut self) {
        self.process = run(self.home.path());
        self.until_there(1);
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Cuts a topic off behind this number of records, each sent alone, while the server is down. Also removes the
    /// server's other state about them.
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

    /// Waits until the server reports this number of live servers.
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

    /// Starts the server as soon as its folder is formatted.
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

/// Returns the addresses by which controllers find each other.
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

/// Sends records to a topic with Kafka's own client, each in its own transaction, one of which is aborted.
pub fn send_in_transactions(address: &str, topic: &str, count: u64, aborted: u64) {
    let home = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/Transactions.java");
    let mut sending = java(home.path(), &[]);
    sending.arg(program).args([address, topic, &count.to_string(), &aborted.to_string()]);
    let ended = sending.status().expect("java runs");
    assert!(ended.success(), "{}", log(home.path()));
}

/// Returns a command for Kafka's Java, which ends with the test that starts it.
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

/// Returns the last lines of the server's log.
fn log(home: &Path) -> String {
    let text = fs::read_to_string(home.join("log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// Leaves this number of batches in a segment: each begins with its offset, of 8 bytes, and the length of the rest, of
/// 4.
fn cut(segment: &Path, batches: usize) {
    let bytes = fs::read(segment).unwrap();
    let mut end = 0;
    for _ in 0..batches {
        let length = u32::from_be_bytes(bytes[end + 8..end + 12].try_into().unwrap());
        end += 12 + length as usize;
    }
    File::options().write(true).open(segment).unwrap().set_len(end as u64).unwrap();
}
