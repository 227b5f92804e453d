//! A Redis server of our own, and the case of one publish a process.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tickpath_clock::{Clock, HostClock, sleep_ns};

use tickpath_harness::LabError;

/// A scratch server on a free loopback port; it ends with this value.
pub struct Server {
    process: Ended,
    /// Where it listens.
    pub port: u16,
    /// What it says it is.
    pub version: String,
    /// Its Unix socket, if it was asked for.
    socket: Option<PathBuf>,
    /// What it keeps on disk; gone with the server.
    _data: tempfile::TempDir,
}

/// What a scratch server is to be.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerSettings {
    /// Its CPU; any if there is none.
    pub cpu: Option<usize>,
    /// Whether it listens on a Unix socket too.
    pub unix_socket: bool,
    /// What it writes to the disk.
    pub persistence: Persistence,
}

/// What a Redis server writes to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Persistence {
    /// Nothing.
    #[default]
    None,
    /// Snapshots, as the server's own defaults make them.
    Rdb,
    /// Each command to a file that is synchronised every second.
    AofEverySecond,
    /// Each command to a file that is synchronised before the reply.
    AofAlways,
}

impl Persistence {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Rdb, Self::AofEverySecond, Self::AofAlways];

    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rdb => "rdb",
            Self::AofEverySecond => "aof-everysec",
            Self::AofAlways => "aof-always",
        }
    }

    /// The server's settings for it.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::None => &["--save", "", "--appendonly", "no"],
            Self::Rdb => &["--save", "3600 1 300 100 60 10000", "--appendonly", "no"],
            Self::AofEverySecond => &["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"],
            Self::AofAlways => &["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
        }
    }
}

/// How long a server may take to listen, in seconds.
const START_S: u32 = 30;

impl Server {
    /// Starts one; none if `redis-server` is not installed.
    pub fn start(folder: &Path, settings: &ServerSettings, clock: &HostClock) -> Result<Option<Self>, LabError> {
        let Some(version) = version() else { return Ok(None) };
        let failed = |e: std::io::Error| {
            LabError::Failed(format!(
                "redis-server does not start ({e}); it is run by setpriv and taskset, which every Linux has"
            ))
        };
        let data = tempfile::Builder::new().prefix("redis-").tempdir_in(folder).map_err(failed)?;
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(failed)?.port();
        // The server ends with this process, however that ends.
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
        let process = Ended(command.spawn().map_err(failed)?);
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

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its Unix socket, if it was asked for.
    pub fn unix_path(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The URL of its Unix socket, if it was asked for.
    pub fn unix_url(&self) -> Option<String> {
        self.unix_path().map(|path| format!("redis+unix://{}", path.display()))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

/// A process that ends with this value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The version of the installed server.
fn version() -> Option<String> {
    let output = Command::new("redis-server").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().find_map(|word| word.strip_prefix("v=").map(str::to_owned))
}

/// Receives with a loop that spins on `get_message()`, until none comes for 10 s; prints each message's nanoseconds.
const SUBSCRIBER: &str = "
import redis, sys, time
s = redis.Redis(port=int(sys.argv[1])).pubsub()
s.subscribe('tickpath:one')
print('ready', flush=True)
left = int(sys.argv[2])
end = time.monotonic() + 10
while left and time.monotonic() < end:
    m = s.get_message()
    if m and m['type'] == 'message':
        print(time.monotonic_ns() - int(m['data']), flush=True)
        left -= 1
        end = time.monotonic() + 10
";

/// One process, one message: the connection is made inside the call.
const PUBLISHER: &str = "
import redis, sys, time
r = redis.Redis(port=int(sys.argv[1]))
t = time.monotonic_ns()
r.publish('tickpath:one', str(t))
print(time.monotonic_ns() - t)
";

/// One publish a process from Python: nanoseconds of each publish call, and of each message that came.
pub fn one_publish_per_process(server: &Server, python: &Path, times: u64) -> Result<[Vec<f64>; 2], LabError> {
    let failed = |what: String| LabError::Failed(format!("one publish a process, with {}: {what}", python.display()));
    let io = |e: std::io::Error| failed(e.to_string());
    let port = server.port.to_string();
    let mut command = Command::new(python);
    command.args(["-c", SUBSCRIBER, &port, &times.to_string()]).stdout(Stdio::piped());
    let mut subscriber = Ended(command.spawn().map_err(io)?);
    let output = subscriber.0.stdout.take().expect("piped");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(output));
    let _ready = lines.next();
    let mut publishes: Vec<f64> = Vec::new();
    for _ in 0..times {
        let output = Command::new(python).args(["-c", PUBLISHER, &port]).output().map_err(io)?;
        let took = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>();
        publishes.push(took.map_err(|_| failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))?);
    }
    let messages: Vec<f64> = lines.map_while(|line| line.ok()?.trim().parse().ok()).collect();
    Ok([publishes, messages])
}
