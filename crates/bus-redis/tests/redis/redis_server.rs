//! A Redis server for tests: on loopback, empty, in a temporary folder of its own, removed with the test.

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
    /// Starts a server on a free port, with further command-line settings.
    pub fn start(settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let port = free_port();
        let process = launch(port, &settings, &dir);
        Self { process, port, settings, dir }
    }

    /// Starts a sentinel with a quorum of one, which watches the master on this port under the name `mine`; `settings`
    /// are appended to its configuration file.
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

    /// Returns the server's URL without a password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the TCP port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path of the dump file that `SAVE` writes.
    pub fn dump(&self) -> PathBuf {
        self.dir.path().join("dump.rdb")
    }

    /// Returns the id of the server's process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns the server's URL with these credentials in front of the host.
    pub fn url_with(&self, login: &str) -> String {
        format!("redis://{login}@127.0.0.1:{}", self.port)
    }

    /// Returns the URL of the server's Unix socket.
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", socket(&self.dir).display())
    }

    /// Opens a connection that is independent of the bus.
    pub fn client(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Cuts all connections except those subscribed to channels; returns the number that were cut.
    pub fn cut_connections(&self) -> i64 {
        redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").query(&mut self.client()).unwrap()
    }

    /// Runs one command on a separate connection. Returns the server's answer, or the code of its error.
    pub fn run_command(&self, command: &[&str]) -> Result<redis::Value, String> {
        let (name, arguments) = command.split_first().unwrap();
        let answer = redis::cmd(name).arg(arguments).query(&mut self.client());
        answer.map_err(|e: redis::RedisError| e.code().unwrap_or_default().to_owned())
    }

    /// Returns how often the server refused a command with this error code.
    pub fn refusals(&self, word: &str) -> u64 {
        let answer: String = redis::cmd("INFO").arg("errorstats").query(&mut self.client()).unwrap();
        let field = format!("errorstat_{word}:count=");
        answer.lines().find_map(|line| line.strip_prefix(&field)).map_or(0, |count| count.trim().parse().unwrap())
    }

    /// Returns the number of calls of a command, subcommands included.
    pub fn calls(&self, command: &str) -> u64 {
        let answer: String = redis::cmd("INFO").arg("commandstats").query(&mut self.client()).unwrap();
        let of_command = answer.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.strip_prefix(command));
        let calls = of_command.filter_map(|line| line.split_once(":calls=")?.1.split(',').next()?.parse::<u64>().ok());
        calls.sum()
    }

    /// Returns the number of keys in the database.
    pub fn keys(&self) -> i64 {
        redis::cmd("DBSIZE").query(&mut self.client()).unwrap()
    }

    /// Kills the server and waits until its process has exited.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Restarts the server on the same port.
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

/// The path of the server's Unix socket.
fn socket(dir: &TempDir) -> PathBuf {
    dir.path().join("redis.sock")
}

fn launch(port: u16, settings: &[String], dir: &TempDir) -> Child {
    let (port_text, socket, folder) = (port.to_string(), socket(dir), dir.path());
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (socket, folder) = (text(&socket), text(folder));
    let mut arguments = vec!["--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    arguments.extend(["--dir", &folder, "--unixsocket", &socket]);
    arguments.extend(settings.iter().map(String::as_str));
    run(&arguments, None, port, dir)
}

/// Starts `redis-server` with these arguments after its configuration file, if any; returns when it is listening.
fn run(arguments: &[&str], file: Option<&std::path::Path>, port: u16, dir: &TempDir) -> Child {
    let mut command = Command::new("redis-server");
    command.args(file).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process =
        command.spawn().unwrap_or_else(|e| panic!("install redis-server (apt-get install redis-server): {e}"));
    for _ in 0..6000 {
        let answers = TcpStream::connect(("127.0.0.1", port)).is_ok() && UnixStream::connect(socket(dir)).is_ok();
        // Checked after connecting: another process may have answered on this port.
        if let Some(status) = process.try_wait().unwrap() {
            panic!("redis-server ended with {status}; run it by hand with {arguments:?} to see why");
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
