//! A Redis server for tests: on loopback, empty, in a folder of its own, gone with the test.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tickpath_bus_api::conformance::free_port;
use tickpath_clock::sleep_ns;

/// A running server.
pub struct RedisServer {
    process: Child,
    port: u16,
    settings: Vec<String>,
    dir: TempDir,
}

impl RedisServer {
    /// Starts one on a free port, with further settings as on its command line.
    pub fn start(settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let port = free_port();
        let process = launch(port, &settings, &dir);
        Self { process, port, settings, dir }
    }

    /// A sentinel that watches the master on this port under the name `mine`, and needs nobody else to act; with further
    /// lines of its settings.
    pub fn sentinel(master: u16, settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let file = dir.path().join("sentinel.conf");
        let settings = format!(
            "port {port}\nbind 127.0.0.1\nunixsocket {}\nsentinel monitor mine 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds mine 500\nsentinel failover-timeout mine 3000\n{settings}",
            socket(&dir).display()
        );
        std::fs::write(&file, settings).unwrap();
        let process = run(&["--sentinel"], Some(&file), port, &dir);
        Self { process, port, settings: Vec::new(), dir }
    }

    /// Its URL without a password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where it listens on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The file in which it keeps its data when it is told to `SAVE`.
    pub fn dump(&self) -> PathBuf {
        self.dir.path().join("dump.rdb")
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its URL with this in front of the host.
    pub fn url_with(&self, login: &str) -> String {
        format!("redis://{login}@127.0.0.1:{}", self.port)
    }

    /// Its URL by the Unix socket.
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", socket(&self.dir).display())
    }

    /// Somebody else's connection to it.
    pub fn client(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Cuts the connections of all but those that are subscribed to channels; gives how many.
    pub fn cut_connections(&self) -> i64 {
        redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").query(&mut self.client()).unwrap()
    }

    /// What it answers to one command of somebody else, or the word that begins its refusal.
    pub fn says(&self, command: &[&str]) -> Result<redis::Value, String> {
        let (name, arguments) = command.split_first().unwrap();
        let said = redis::cmd(name).arg(arguments).query(&mut self.client());
        said.map_err(|e: redis::RedisError| e.code().unwrap_or_default().to_owned())
    }

    /// How often it has refused a command by this word.
    pub fn refusals(&self, word: &str) -> u64 {
        let said: String = redis::cmd("INFO").arg("errorstats").query(&mut self.client()).unwrap();
        let field = format!("errorstat_{word}:count=");
        said.lines().find_map(|line| line.strip_prefix(&field)).map_or(0, |count| count.trim().parse().unwrap())
    }

    /// How often it was told a command, in all its kinds.
    pub fn calls(&self, command: &str) -> u64 {
        let said: String = redis::cmd("INFO").arg("commandstats").query(&mut self.client()).unwrap();
        let of_command = said.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.strip_prefix(command));
        let calls = of_command.filter_map(|line| line.split_once(":calls=")?.1.split(',').next()?.parse::<u64>().ok());
        calls.sum()
    }

    /// How many keys it has.
    pub fn keys(&self) -> i64 {
        redis::cmd("DBSIZE").query(&mut self.client()).unwrap()
    }

    /// Kills it and waits until it is gone.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again, on the same port.
    pub fn restart(&mut self) {
        self.process = launch(self.port, &self.settings, &self.dir);
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where its Unix socket lies.
fn socket(dir: &TempDir) -> PathBuf {
    dir.path().join("redis.sock")
}

fn launch(port: u16, settings: &[String], dir: &TempDir) -> Child {
    let (port_text, socket, folder) = (port.to_string(), socket(dir), dir.path());
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (socket, folder) = (text(&socket), text(folder));
    let mut words = vec!["--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    words.extend(["--dir", &folder, "--unixsocket", &socket]);
    words.extend(settings.iter().map(String::as_str));
    run(&words, None, port, dir)
}

/// Starts one with these words behind the file of its settings, if there is one; it listens when this returns.
fn run(words: &[&str], file: Option<&std::path::Path>, port: u16, dir: &TempDir) -> Child {
    let mut command = Command::new("redis-server");
    command.args(file).args(words).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process =
        command.spawn().unwrap_or_else(|e| panic!("install redis-server (apt-get install redis-server): {e}"));
    for _ in 0..6000 {
        let answers = TcpStream::connect(("127.0.0.1", port)).is_ok() && UnixStream::connect(socket(dir)).is_ok();
        // Looked at after that: somebody else may answer.
        if let Some(status) = process.try_wait().unwrap() {
            panic!("redis-server ended with {status}; run it by hand with {words:?} to see why");
        }
        if answers {
            return process;
        }
        sleep_ns(10_000_000);
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("redis-server does not listen after a minute");
}
