//! A scratch Redis server, and the case of a single publish per process.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Serialize;
use tickpath_clock::{Clock, HostClock, sleep_ns};

use crate::python::Python;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::named_variants;

/// A scratch server on a free loopback port; it ends with this value.
pub struct ScratchServer {
    process: ServerProcess,
    /// The port.
    pub port: u16,
    /// The server's version.
    pub version: String,
    /// Its Unix socket, if it has one.
    socket: Option<PathBuf>,
    /// The folder of its data, removed with the server.
    _data: tempfile::TempDir,
}

/// Settings of a scratch server.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerSettings {
    /// Its CPU; any if there is none.
    pub cpu: Option<usize>,
    /// Whether it listens on a Unix socket too.
    pub unix_socket: bool,
    /// The data that it writes to the disk.
    pub persistence: Persistence,
}

/// The persistence of a Redis server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Persistence {
    /// Nothing.
    #[default]
    None,
    /// Snapshots, by the server's own defaults.
    Rdb,
    /// Each command to a file that is synchronised every second.
    AofEverySecond,
    /// Each command to a file that is synchronised before the reply.
    AofAlways,
}

named_variants!(Persistence { None = "none", Rdb = "rdb", AofEverySecond = "aof-everysec", AofAlways = "aof-always" });

impl Persistence {
    /// Returns the server's settings for the mode.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::None => &["--save", "", "--appendonly", "no"],
            Self::Rdb => &["--save", "3600 1 300 100 60 10000", "--appendonly", "no"],
            Self::AofEverySecond => &["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"],
            Self::AofAlways => &["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
        }
    }
}

/// Max time for a server to listen, in seconds.
const START_S: u32 = 30;

impl ScratchServer {
    /// Starts a server; returns `None` if `redis-server` is not installed.
    pub fn start(folder: &Path, settings: &ServerSettings, clock: &HostClock) -> Result<Option<Self>, LabError> {
        let Some(version) = version() else { return Ok(None) };
        let failed = |e: std::io::Error| {
            LabError::Failed(format!(
                "redis-server does not start ({e}); it is run by setpriv and taskset, which every Linux has"
            ))
        };
        let data = tempfile::Builder::new().prefix("redis-").tempdir_in(folder).map_err(failed)?;
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(failed)?.port();
        // The server ends with this process, however this process ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(cpu) = settings.cpu {
            command.args(["taskset", "-c", &cpu.to_string()]);
        }
        command.args(["redis-server", "--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(settings.persistence.arguments()).arg("--dir").arg(data.path());
        let socket = settings.unix_socket.then(|| data.path().join("redis.sock"));
        if let Some(socket) = &socket {
            command.arg("--unixsocket").arg(socket).args(["--unixsocketperm", "600"]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = ServerProcess(command.spawn().map_err(failed)?);
        let mut server = Self { process, port, version, socket, _data: data };
        let from = clock.ticks();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Ok(Some(status)) = server.process.0.try_wait() {
                return Err(LabError::Failed(format!("redis-server ended at once ({status})")));
            }
            if clock.ns_between(from, clock.ticks()) > i64::from(START_S) * 1_000_000_000 {
                return Err(LabError::Failed(format!("redis-server does not listen within {START_S} s")));
            }
            sleep_ns(1_000_000);
        }
        Ok(Some(server))
    }

    /// Starts a server; fails with the remedy, and `instead` as another one, if `redis-server` is not installed.
    pub fn require(lab: &Lab<'_>, settings: &ServerSettings, instead: &str) -> Result<Self, LabError> {
        Self::start(lab.folder(), settings, &lab.clock)?.ok_or_else(|| {
            LabError::Failed(format!(
                "redis-server is not installed; install it with: apt-get install redis-server{instead}"
            ))
        })
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns its Unix socket, if it has one.
    pub fn unix_path(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Returns the URL of its Unix socket, if it has one.
    pub fn unix_url(&self) -> Option<String> {
        self.unix_path().map(|path| format!("redis+unix://{}", path.display()))
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

/// A process that ends with this value.
struct ServerProcess(Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn version() -> Option<String> {
    let output = Command::new("redis-server").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().find_map(|word| word.strip_prefix("v=").map(str::to_owned))
}

/// Settings of an end of the single-publish case.
#[derive(Serialize)]
struct OnePublishSettings {
    role: &'static str,
    port: u16,
    /// Messages, one from each publisher.
    count: u64,
}

/// Runs `count` Python processes that publish once each, to a subscriber that spins on `get_message()`. Returns the
/// nanoseconds of each publish call, and of each message that arrived.
pub fn one_publish_per_process(
    lab: &Lab<'_>,
    server: &ScratchServer,
    python: &Python,
    count: u64,
) -> Result<[Vec<f64>; 2], LabError> {
    const SCRIPT: [(&str, &str); 1] = [("publish_once.py", include_str!("python/publish_once.py"))];
    /// Max wait for a result.
    const SECONDS: f64 = 10.0;
    let spawn = |role| python.spawn(lab, role, &SCRIPT, &OnePublishSettings { role, port: server.port, count });
    let mut subscriber = spawn("subscriber")?;
    let mut publishes: Vec<f64> = Vec::new();
    for _ in 0..count {
        publishes.push(spawn("publisher")?.result(SECONDS)?);
    }
    Ok([publishes, subscriber.result(SECONDS)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_publish_per_process_is_timed_at_both_ends() {
        let lab = Lab::new(PathBuf::from("/nonexistent"), &()).unwrap();
        let server = ScratchServer::start(lab.folder(), &ServerSettings::default(), &lab.clock).unwrap();
        let server = server.expect("redis-server is installed");
        let python = Python::prepare(&()).unwrap();
        let [publishes, messages] = one_publish_per_process(&lab, &server, &python, 2).unwrap();
        assert_eq!((publishes.len(), messages.len()), (2, 2));
        assert!(publishes.iter().chain(&messages).all(|ns| *ns > 0.0), "{publishes:?} {messages:?}");
        assert!(lab.folder().join("python").join("publish_once.py").exists());
    }
}
