//! The processes of a run: spawned, told to go, asked for their result, ended with the run.
//!
//! A child is this same program with the hidden command `child`, and its role as JSON in the environment. It says one line of JSON when it
//! is ready and one for each result; it is told `go`, `stop` or more by lines on its standard input, and stops when
//! that closes, so that nothing outlives a killed bench.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tickpath_clock::HostClock;

use crate::role::Role;
use crate::{LabError, servers};
use tickpath_result::Software;

/// How long a child may take to get ready, or to end after it was told to.
const ANSWER_SECONDS: u64 = 60;

/// Where a child finds its role. Not an argument: those everybody can read, and a URL may hold a password.
pub(crate) const ROLE: &str = "TICKPATH_ROLE";

/// Where a bench says how far it is.
pub trait Progress {
    /// A step begins: what it is, and about how long it takes.
    fn step(&self, what: &str, seconds: f64);
}

/// What all workloads share: the program to spawn, a folder of the run, the clock, names.
pub struct Lab<'a> {
    /// This program.
    pub program: PathBuf,
    /// The host's clock.
    pub clock: HostClock,
    /// A folder for samples and journals; removed at the end.
    folder: tempfile::TempDir,
    /// What the names of this run's topics begin with.
    pub name: String,
    /// How far it is.
    pub progress: &'a dyn Progress,
    /// What the servers are that were asked already, by URL.
    servers: Mutex<BTreeMap<String, Software>>,
}

impl<'a> Lab<'a> {
    /// A lab that spawns `program` for its roles.
    pub fn new(program: PathBuf, progress: &'a dyn Progress) -> Result<Self, LabError> {
        sweep();
        let prefix = format!("tickpath-{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir();
        let folder = folder.map_err(|e| LabError::file(&std::env::temp_dir(), e))?;
        // Two hosts, or two containers, may have the same process id and bench one server.
        let own = folder.path().file_name().and_then(|name| name.to_str()?.rsplit('-').next()).unwrap_or_default();
        let name = format!("lab-{}.{own}", std::process::id());
        Ok(Self { program, clock: HostClock::get()?, folder, name, progress, servers: Mutex::default() })
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server of a URL, asked once, and our own bus before it.
    pub(crate) fn software(&self, url: &str) -> Software {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.entry(url.to_owned()).or_insert_with(|| servers::software(url)).clone();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Software { client: Some("tickpath".to_owned()), client_version: Some(version), ..server }
    }

    /// Spawns a process for a role.
    pub fn spawn(&self, role: &Role) -> Result<Child, LabError> {
        Child::spawn(&self.program, role)
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        remove_topics(|name| name.starts_with(&format!("{}.", self.name)));
    }
}

/// Removes what killed benches left in shared memory and in the temporary folder: their names hold a process id that is
/// gone.
fn sweep() {
    remove_topics(|name| name.strip_prefix("lab-").is_some_and(|rest| is_of_the_dead(rest, '.')));
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix("tickpath-"));
        if rest.is_some_and(|rest| is_of_the_dead(rest, '-')) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_of_the_dead(rest: &str, end: char) -> bool {
    let pid = rest.split(end).next().and_then(|pid| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// Removes these topics of shared memory.
pub(crate) fn remove_topics(which: impl Fn(&str) -> bool) {
    let Ok(topics) = tickpath_log::Place::all_in_shared_memory() else { return };
    for topic in topics.iter().filter(|topic| which(topic)) {
        if let Ok(place) = tickpath_log::Place::shared_memory(topic) {
            let _ = place.remove();
        }
    }
}

/// A spawned process.
pub struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    role: &'static str,
}

/// What a child says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said<T> {
    Ready,
    Result(T),
    Error(String),
}

impl Child {
    fn spawn(program: &Path, role: &Role) -> Result<Self, LabError> {
        let json = serde_json::to_string(role).expect("roles are plain data");
        let mut command = Command::new(program);
        command.arg("child").arg(std::process::id().to_string()).env(ROLE, json).stderr(Stdio::inherit());
        Self::of(command, role.name())
    }

    /// Spawns any program that speaks as our own children do; `role` is what it is called in errors.
    pub(crate) fn of(mut command: Command, role: &'static str) -> Result<Self, LabError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let program = Path::new(command.get_program()).to_owned();
        let mut process = command.spawn().map_err(|e| LabError::file(&program, e))?;
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().expect("piped"));
        let (said, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        let mut child = Self { process, stdin, lines, role };
        match child.hear::<()>(ANSWER_SECONDS)? {
            Said::Ready => Ok(child),
            Said::Result(()) => Err(child.failed("it gave a result before it was ready".to_owned())),
            Said::Error(what) => Err(child.failed(what)),
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Says one line to it.
    pub fn tell(&mut self, line: &str) -> Result<(), LabError> {
        let result = self.stdin.as_mut().map_or(Ok(()), |stdin| writeln!(stdin, "{line}"));
        result.map_err(|e| self.failed(e.to_string()))
    }

    /// Its next result, waited for at most `seconds`.
    pub fn result<T: DeserializeOwned>(&mut self, seconds: f64) -> Result<T, LabError> {
        match self.hear(seconds as u64 + ANSWER_SECONDS)? {
            Said::Result(result) => Ok(result),
            Said::Ready => Err(self.failed("it said 'ready' twice".to_owned())),
            Said::Error(what) => Err(self.failed(what)),
        }
    }

    /// Tells it to stop, and gives its last result.
    pub fn stop<T: DeserializeOwned>(mut self) -> Result<T, LabError> {
        drop(self.stdin.take());
        self.result(0.0)
    }

    /// Kills it, wherever it is in its work.
    pub(crate) fn kill(mut self) {
        // One that has ended is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn hear<T: DeserializeOwned>(&mut self, seconds: u64) -> Result<Said<T>, LabError> {
        match self.lines.recv_timeout(Duration::from_secs(seconds)) {
            Ok(line) => serde_json::from_str(&line).map_err(|e| self.failed(format!("it said '{line}' ({e})"))),
            Err(RecvTimeoutError::Timeout) => Err(LabError::Silent { role: self.role.to_owned(), seconds }),
            Err(RecvTimeoutError::Disconnected) => {
                let ended = self.process.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
                Err(self.failed(format!("it ended without a word ({ended})")))
            }
        }
    }

    fn failed(&self, what: String) -> LabError {
        LabError::Child { role: self.role.to_owned(), what }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It may have ended by itself; a killed child is reaped either way.
        if !matches!(self.process.try_wait(), Ok(Some(_))) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// What a parent has said within some time.
pub(crate) enum Heard {
    Line(String),
    Nothing,
    /// It is gone, or wants this process to stop.
    Gone,
}

/// The child's side: what its parent says, and saying things to it.
pub struct Parent {
    lines: Receiver<String>,
    stop: Arc<AtomicBool>,
}

impl Parent {
    /// Listens on standard input; `stop` is set when that ends.
    pub fn listen() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (said, lines) = channel();
        let ended = stop.clone();
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    break;
                }
            }
            ended.store(true, Ordering::Release);
        });
        Self { lines, stop }
    }

    /// Set when the parent wants this process to stop, or is gone.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// The parent's next line; none when it is gone.
    pub fn hear(&self) -> Option<String> {
        self.lines.recv().ok()
    }

    /// The parent's next line, waited for at most so long.
    pub(crate) fn hear_within(&self, ns: u64) -> Heard {
        match self.lines.recv_timeout(Duration::from_nanos(ns)) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::Gone,
        }
    }

    /// True if the parent has said a line since, or is gone.
    pub fn has_spoken(&self) -> bool {
        !matches!(self.lines.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }

    /// Says that this process is ready.
    pub fn ready(&self) {
        say(&Said::<()>::Ready);
    }

    /// Gives a result.
    pub fn result(&self, result: &impl Serialize) {
        say(&Said::Result(result));
    }

    /// Says why there will be none.
    pub fn error(&self, what: &str) {
        say(&Said::<()>::Error(what.to_owned()));
    }
}

fn say<T: Serialize>(said: &Said<T>) {
    let line = serde_json::to_string(said).expect("plain data");
    let mut out = std::io::stdout().lock();
    // A parent that is gone needs no answer.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
