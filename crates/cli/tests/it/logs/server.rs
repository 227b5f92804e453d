//! A Redis server for tests: on loopback, empty, in a folder of its own, gone with the test.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::running::until;

/// A running server.
pub struct RedisServer {
    process: Child,
    port: u16,
    dir: TempDir,
}

impl RedisServer {
    /// Starts one on a free port.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
        let port = free.expect("loopback has a free port").port();
        let server = Self { process: launch(port, &dir), port, dir };
        server.await_port();
        server
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills it, and starts it again on the same port.
    pub fn restart(&mut self) {
        self.stop();
        self.process = launch(self.port, &self.dir);
        self.await_port();
    }

    /// Kills it and waits until it is gone.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn await_port(&self) {
        let is_open = || TcpStream::connect(("127.0.0.1", self.port)).is_ok();
        until(is_open, || "redis-server to listen".to_owned());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn launch(port: u16, dir: &TempDir) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    command.arg(dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|e| panic!("install redis-server (apt-get install redis-server): {e}"))
}
