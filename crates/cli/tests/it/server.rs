//! A Redis server for tests: on loopback, empty, in a folder of its own, removed at the test's end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tickpath_bus::conformance::free_port;

use crate::logs::until;

/// A running server.
pub struct RedisServer {
    process: Child,
    port: u16,
    dir: TempDir,
    settings: Vec<String>,
}

impl RedisServer {
    /// Starts a server on a free port.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with these settings.
    pub fn with(settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        let port = free_port();
        let settings: Vec<String> = settings.iter().map(|word| (*word).to_owned()).collect();
        let mut server = Self { process: launch(port, &dir, &settings), port, dir, settings };
        server.await_port();
        server
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        self.url_with("")
    }

    /// Returns the server's URL with a login, which ends with `@`.
    pub fn url_with(&self, login: &str) -> String {
        format!("redis://{login}127.0.0.1:{}", self.port)
    }

    /// Returns the answers to commands, one per line.
    pub fn obey(&self, commands: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream.write_all(format!("{commands}\r\nQUIT\r\n").as_bytes()).expect("the server reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("the server answers");
        text
    }

    /// Publishes bytes on a channel.
    pub fn publish(&self, channel: &str, bytes: &[u8]) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        let head = format!("*3\r\n$7\r\nPUBLISH\r\n${}\r\n{channel}\r\n${}\r\n", channel.len(), bytes.len());
        stream.write_all(&[head.as_bytes(), bytes, b"\r\nQUIT\r\n"].concat()).expect("the server reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("the server answers");
        assert!(text.starts_with(':'), "{text}");
    }

    /// Returns the number of executed calls of a command.
    pub fn calls(&self, command: &str) -> u64 {
        let (text, field) = (self.obey("INFO commandstats"), format!("cmdstat_{command}:calls="));
        let count = text.lines().find_map(|line| line.strip_prefix(&field)?.split(',').next());
        count.map_or(0, |count| count.parse().expect("a count is a number"))
    }

    /// Kills the server, and starts it again on the same port.
    pub fn restart(&mut self) {
        self.stop();
        self.process = launch(self.port, &self.dir, &self.settings);
        self.await_port();
    }

    /// Kills the server and waits for its end.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn await_port(&mut self) {
        let is_open = || TcpStream::connect(("127.0.0.1", self.port)).is_ok();
        until(is_open, || "redis-server to listen".to_owned());
        // Checked after the connection: another server may answer on the port.
        if let Some(status) = self.process.try_wait().expect("the server is ours") {
            panic!("redis-server ended with {status}; run it by hand with {:?} to see why", self.settings);
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn launch(port: u16, dir: &TempDir, settings: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    command.arg(dir.path()).args(settings).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|e| panic!("install redis-server (apt-get install redis-server): {e}"))
}
