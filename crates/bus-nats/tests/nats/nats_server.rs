//! A NATS server for tests: on loopback, empty, in a separate folder, removed with the test.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tickpath_bus_api::conformance::{NetworkProxy, free_port};
use tickpath_clock::sleep_ns;

/// A running server.
pub struct NatsServer {
    process: Child,
    port: u16,
    settings: Vec<String>,
    /// Declared last, so that the folder is removed after the server has ended.
    dir: TempDir,
}

impl NatsServer {
    /// Starts a server with JetStream on a free port, with further command-line options.
    pub fn start(settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let with_jetstream = ["-js", "-sd", dir.path().to_str().unwrap()];
        let settings = with_jetstream.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        Self::open(settings, dir)
    }

    /// Starts a server without JetStream.
    pub fn start_plain() -> Self {
        Self::open(Vec::new(), tempfile::tempdir().unwrap())
    }

    /// Starts a server with JetStream and this configuration file.
    pub fn start_by(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("nats.conf");
        std::fs::write(&file, config).unwrap();
        let [dir_name, file_name] = [dir.path(), &file].map(|path| path.to_str().unwrap().to_owned());
        Self::open(vec!["-js".to_owned(), "-sd".to_owned(), dir_name, "-c".to_owned(), file_name], dir)
    }

    /// Starts a cluster with JetStream, which has a leader only while most of its servers run.
    pub fn start_cluster<const SERVERS: usize>() -> [Self; SERVERS] {
        let routes: [String; SERVERS] = std::array::from_fn(|_| format!("nats://127.0.0.1:{}", free_port()));
        std::array::from_fn(|at| {
            let others: Vec<&str> = routes.iter().filter(|&route| *route != routes[at]).map(String::as_str).collect();
            Self::start(&[
                "-n",
                &format!("server-{at}"),
                "--cluster_name",
                "tickpath",
                "--cluster",
                &routes[at],
                "--routes",
                &others.join(","),
            ])
        })
    }

    /// Returns the URL without a password.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Returns the URL with this login before the host.
    pub fn url_with(&self, login: &str) -> String {
        format!("nats://{login}@127.0.0.1:{}", self.port)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns a relay to the server.
    pub fn relayed(&self) -> NetworkProxy {
        NetworkProxy::to(&format!("127.0.0.1:{}", self.port))
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Kills the server and waits until its process has ended.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Restarts the server on the same port.
    pub fn restart(&mut self) {
        self.process = launch(self.port, &self.settings);
    }

    /// Copies the server's files; it must be killed before.
    pub fn back_up(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_all(self.dir.path(), copy.path());
        copy
    }

    /// Replaces the server's files by the copy; it must be killed before.
    pub fn restore(&self, copy: &TempDir) {
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
        copy_all(copy.path(), self.dir.path());
    }

    fn open(settings: Vec<String>, dir: TempDir) -> Self {
        let port = free_port();
        let process = launch(port, &settings);
        Self { process, port, settings, dir }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Copies the contents of a folder.
fn copy_all(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().expect("cp is there");
    assert!(copied.success(), "{} is not copied", from.display());
}

fn launch(port: u16, settings: &[String]) -> Child {
    let mut command = Command::new("nats-server");
    // Debian installs servers in folders of root's PATH only.
    command.env("PATH", format!("{}:/usr/local/sbin:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
    command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(settings);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process =
        command.spawn().unwrap_or_else(|e| panic!("install nats-server (apt-get install nats-server): {e}"));
    for _ in 0..6000 {
        let answers = TcpStream::connect(("127.0.0.1", port)).is_ok();
        // Checked after the connection, because another process may have answered.
        if let Some(status) = process.try_wait().unwrap() {
            panic!("nats-server ended with {status}; run it by hand with {settings:?} to see why");
        }
        if answers {
            return process;
        }
        sleep_ns(10_000_000);
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("nats-server does not listen after a minute");
}
