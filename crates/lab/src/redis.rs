//! A Redis server of our own, and the case of one publish a process.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tickpath_clock::{Clock, HostClock, sleep_ns};

use crate::LabError;
use crate::result::median;

/// A scratch server on a free loopback port, without persistence; it ends with this value.
pub struct Server {
    process: Ended,
    /// Where it listens.
    pub port: u16,
    /// What it says it is.
    pub version: String,
}

/// How long a server may take to listen.
const START_NS: i64 = 10_000_000_000;

impl Server {
    /// Starts one, on a CPU if one is named; none if `redis-server` is not installed.
    pub fn start(folder: &Path, cpu: Option<usize>, clock: &HostClock) -> Result<Option<Self>, LabError> {
        let Some(version) = version() else { return Ok(None) };
        let failed = |e: std::io::Error| {
            LabError::Failed(format!(
                "redis-server does not start ({e}); it is run by setpriv and taskset, which every Linux has"
            ))
        };
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(failed)?.port();
        // The server ends with this process, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(cpu) = cpu {
            command.args(["taskset", "-c", &cpu.to_string()]);
        }
        command.arg("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
        command.arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Ended(command.spawn().map_err(failed)?);
        let mut server = Self { process, port, version };
        let from = clock.ticks();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Ok(Some(status)) = server.process.0.try_wait() {
                return Err(LabError::Failed(format!("redis-server ended at once ({status})")));
            }
            if clock.ns_between(from, clock.ticks()) > START_NS {
                return Err(LabError::Failed("redis-server does not listen within 10 s".to_owned()));
            }
            sleep_ns(1_000_000);
        }
        Ok(Some(server))
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
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

/// Receives with a loop that spins on `get_message()`; prints each message's nanoseconds.
const SUBSCRIBER: &str = "
import redis, sys, time
s = redis.Redis(port=int(sys.argv[1])).pubsub()
s.subscribe('tickpath:one')
print('ready', flush=True)
left = int(sys.argv[2])
end = time.time() + 20
while left and time.time() < end:
    m = s.get_message()
    if m and m['type'] == 'message':
        print(time.time_ns() - int(m['data']), flush=True)
        left -= 1
";

/// One process, one message: the connection is made inside the call.
const PUBLISHER: &str = "
import redis, sys, time
r = redis.Redis(port=int(sys.argv[1]))
t = time.time_ns()
r.publish('tickpath:one', str(t))
print(time.time_ns() - t)
";

/// One publish a process from Python: medians of the publish call and of the message, in nanoseconds; none without
/// python3 and redis-py.
pub fn one_publish_per_process(server: &Server, times: usize) -> Option<(f64, f64)> {
    let has = Command::new("python3").args(["-c", "import redis"]).stderr(Stdio::null()).status().ok()?;
    if !has.success() {
        return None;
    }
    let port = server.port.to_string();
    let mut command = Command::new("python3");
    command.args(["-c", SUBSCRIBER, &port, &times.to_string()]).stdout(Stdio::piped());
    let mut subscriber = Ended(command.spawn().ok()?);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(subscriber.0.stdout.take()?));
    let _ready = lines.next()?;
    let mut publishes = Vec::new();
    for _ in 0..times {
        let output = Command::new("python3").args(["-c", PUBLISHER, &port]).output().ok()?;
        publishes.push(String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().ok()?);
    }
    let messages: Vec<f64> = lines.map_while(|line| line.ok()?.trim().parse().ok()).collect();
    Some((median(publishes)?, median(messages)?))
}
