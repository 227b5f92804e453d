//! A server on a thread, whose service echoes and records.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tempfile::TempDir;
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_venue_sim_web::{ConnectionId, WebAnswer, WebRequest, WebSender, WebServer, WebServerConfig, WebService};

/// Bound of each wait.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Length of the body at `/large`.
pub const LARGE: usize = 3 << 20;

/// A call of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Opened(ConnectionId),
    Pong(ConnectionId),
    Closed(ConnectionId),
}

/// A service that answers requests with what it has read, and echoes messages.
pub struct Recorder {
    notices: Sender<Notice>,
    /// Connection to which messages are sent without end.
    flooded: Option<ConnectionId>,
}

impl Recorder {
    pub fn new() -> (Self, Receiver<Notice>) {
        let (notices, receiver) = channel();
        (Self { notices, flooded: None }, receiver)
    }

    fn note(&self, notice: Notice) {
        // The test may have ended.
        let _ = self.notices.send(notice);
    }
}

impl WebService for Recorder {
    fn http(&mut self, request: &WebRequest<'_>) -> WebAnswer {
        let key = request.header("x-key").unwrap_or("none");
        let body = String::from_utf8_lossy(request.body);
        let echo = format!("{} {} {} {key} {body}", request.method, request.path, request.query);
        let mut answer = WebAnswer::json(echo);
        match request.path {
            "/close" => answer.headers.push(("Connection".to_owned(), "close".to_owned())),
            "/large" => answer.body = vec![b'x'; LARGE],
            "/empty" => answer.status = 204,
            "/bad-header" => answer.headers.push(("X-Bad".to_owned(), "1\r\nX-Worse: 2".to_owned())),
            _ => {}
        }
        answer
    }

    fn upgrade(&mut self, id: ConnectionId, request: &WebRequest<'_>) -> Result<(), WebAnswer> {
        if request.path != "/ws" {
            return Err(WebAnswer::status(404, "no such stream"));
        }
        self.note(Notice::Opened(id));
        Ok(())
    }

    fn text(&mut self, id: ConnectionId, text: &str, out: &mut WebSender<'_>) {
        match text {
            "close" => out.close(id, 4001, "enough"),
            "cut" => out.cut(id),
            "ping" => out.ping(id),
            "flood" => self.flooded = Some(id),
            text => out.text(id, text),
        }
    }

    fn binary(&mut self, id: ConnectionId, bytes: &[u8], out: &mut WebSender<'_>) {
        out.binary(id, bytes);
    }

    fn pong(&mut self, id: ConnectionId) {
        self.note(Notice::Pong(id));
    }

    fn closed(&mut self, id: ConnectionId) {
        self.flooded = self.flooded.filter(|&flooded| flooded != id);
        self.note(Notice::Closed(id));
    }

    fn turn(&mut self, out: &mut WebSender<'_>) -> usize {
        let Some(id) = self.flooded else { return 0 };
        out.text(id, &"x".repeat(1 << 18));
        1
    }
}

/// A server on a thread, until it is dropped.
pub struct Running {
    pub port: u16,
    pub notices: Receiver<Notice>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    folder: TempDir,
}

impl Running {
    pub fn start(tls: bool) -> Self {
        Self::start_with(config(tls), |_| {})
    }

    pub fn start_with(config: WebServerConfig, change: impl FnOnce(&mut WebServer)) -> Self {
        let mut server = WebServer::open(&config).expect("a port is free");
        change(&mut server);
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        if let Some(pem) = server.authority_pem() {
            fs::write(folder.path().join("ca.pem"), pem).expect("the folder is ours");
        }
        let (mut service, notices) = Recorder::new();
        let (port, stop) = (server.address().port(), Arc::new(AtomicBool::new(false)));
        let is_stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                server.poll(5, &mut service);
            }
        });
        Self { port, notices, stop, thread: Some(thread), folder }
    }

    /// Returns the file of the authority; it exists with TLS only.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Waits for a call of the service, and drops the calls before it.
    pub fn wait_for(&self, wanted: impl Fn(&Notice) -> bool) -> Notice {
        loop {
            let notice = self.notices.recv_timeout(TIMEOUT).expect("the service is called");
            if wanted(&notice) {
                return notice;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(ended.is_none_or(|ended| ended.is_ok()), "the server has panicked");
        }
    }
}

/// Returns the configuration of a server on a free port.
pub fn config(tls: bool) -> WebServerConfig {
    let listen = "127.0.0.1:0".parse().expect("an address");
    WebServerConfig { listen, tls, max_connections: 64, max_message_bytes: 16 << 20 }
}

/// Bound of a wait for a fact.
pub struct Deadline {
    clock: HostClock,
    began: u64,
}

impl Deadline {
    pub fn start() -> Self {
        let clock = HostClock::get().expect("this host has a clock");
        Self { clock, began: clock.ticks() }
    }

    /// Pauses after a turn without work. Panics if the wait has taken too long.
    pub fn pause(&self, work: usize) {
        let waited = self.clock.ns_between(self.began, self.clock.ticks());
        assert!(waited < TIMEOUT.as_nanos() as i64, "nothing happens");
        if work == 0 {
            sleep_ns(50_000);
        }
    }
}
