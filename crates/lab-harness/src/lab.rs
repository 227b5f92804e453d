//! Context that all workloads share: the program to spawn, a folder, the clock, names, and the progress.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use tickpath_bus::ServerDescription;
use tickpath_clock::HostClock;
use tickpath_lab_result::Software;

use crate::LabError;
use crate::child::Child;
use crate::interruption::interruption;
use crate::role::ProcessRole;

/// Server settings that decide which data reaches the server's disk, kept in the result.
const DURABILITY_SETTINGS: [&str; 2] = ["save", "appendonly"];

/// Receiver of a bench's progress.
pub trait ProgressSink {
    /// Reports the start of a step: its name, and its approximate duration in seconds.
    fn step(&self, what: &str, seconds: f64);

    /// Reports all steps together once they are known: the number of runs, and their approximate duration in seconds.
    fn plan(&self, _runs: usize, _seconds: f64) {}
}

/// Shows no progress.
impl ProgressSink for () {
    fn step(&self, _what: &str, _seconds: f64) {}
}

/// Context that all workloads share: the program to spawn, a folder of the run, the clock, names.
pub struct Lab<'a> {
    /// Path of this program.
    pub program: PathBuf,
    /// Clock of the host.
    pub clock: HostClock,
    /// Folder for samples and journals, removed at the end.
    folder: tempfile::TempDir,
    /// Prefix of the names of this run's topics.
    pub name: String,
    /// Receiver of the progress.
    pub progress: &'a dyn ProgressSink,
    /// Whether roles are threads of this process, for measurements between threads.
    pub in_threads: bool,
    /// Whether spinning threads run the warm-up for the next message.
    pub runs_warm_up: bool,
    /// Facts of the servers asked so far, by URL.
    servers: Mutex<BTreeMap<String, ServerDescription>>,
}

impl<'a> Lab<'a> {
    /// Creates a lab that spawns `program` for its roles. Removes the remains of killed benches first.
    pub fn new(program: PathBuf, progress: &'a dyn ProgressSink) -> Result<Self, LabError> {
        remove_leftovers();
        let prefix = format!("tickpath-{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir();
        let folder = folder.map_err(|e| LabError::file(&std::env::temp_dir(), e))?;
        // The folder's random suffix makes the name unique: benches on two hosts or in two containers may share a
        // process id and a server.
        let own = folder.path().file_name().and_then(|name| name.to_str()?.rsplit('-').next()).unwrap_or_default();
        let name = format!("lab-{}.{own}", std::process::id());
        let (clock, servers) = (HostClock::get()?, Mutex::default());
        Ok(Self { program, clock, folder, name, progress, in_threads: false, runs_warm_up: true, servers })
    }

    /// Returns the run's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes files, each a name and its text, into a folder of the run. Returns the folder.
    pub fn write_files(&self, folder: &str, files: &[(&str, &str)]) -> Result<PathBuf, LabError> {
        let folder = self.folder().join(folder);
        std::fs::create_dir_all(&folder).map_err(|e| LabError::file(&folder, e))?;
        for (name, text) in files {
            let path = folder.join(name);
            // Keeps an existing file, because a process of the run may be reading it.
            if !path.exists() {
                std::fs::write(&path, text).map_err(|e| LabError::file(&path, e))?;
            }
        }
        Ok(folder)
    }

    /// Returns the facts of a URL's server, which is asked once; empty facts if it cannot be reached.
    pub fn about(&self, url: &str) -> ServerDescription {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = || tickpath_bus::connect(url).map(|connection| connection.server_description()).unwrap_or_default();
        servers.entry(url.to_owned()).or_insert_with(ask).clone()
    }

    /// Returns the software of a run: the server of a URL, and our own bus as its client.
    pub fn software(&self, url: &str) -> Software {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let server = software(self.about(url));
        Software { client: Some("tickpath".to_owned()), client_version: Some(version), ..server }
    }

    /// Reports the start of a step to [`ProgressSink::step`]. Returns an error after a Ctrl-C instead.
    pub fn step(&self, what: &str, seconds: f64) -> Result<(), LabError> {
        if interruption().load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        self.progress.step(what, seconds);
        Ok(())
    }

    /// Spawns a process for a role, or a thread if roles are threads.
    pub fn spawn<R: ProcessRole>(&self, role: &R) -> Result<Child, LabError> {
        if self.in_threads { Child::thread(role) } else { Child::spawn(&self.program, role) }
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        remove_topics(|name| name.starts_with(&format!("{}.", self.name)));
    }
}

/// Converts the facts of a server, as far as it reports them.
fn software(about: ServerDescription) -> Software {
    let mut software = Software { server: about.server, server_version: about.version, ..Software::default() };
    for (name, value) in about.settings {
        if let (true, Ok(value)) = (DURABILITY_SETTINGS.contains(&name), value) {
            software.server_settings.set(name, value);
        }
    }
    software
}

/// Removes the remains of killed benches in shared memory and in the temporary folder, whose names hold the id of an
/// ended process.
fn remove_leftovers() {
    remove_topics(|name| name.strip_prefix("lab-").is_some_and(|rest| is_orphaned(rest, '.')));
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix("tickpath-"));
        if rest.is_some_and(|rest| is_orphaned(rest, '-')) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_orphaned(rest: &str, end: char) -> bool {
    let pid = rest.split(end).next().and_then(|pid| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// Removes the topics and shared words with names that `which` selects.
pub fn remove_topics(which: impl Fn(&str) -> bool) {
    for words in tickpath_log::SharedWords::all().unwrap_or_default().iter().filter(|words| which(words)) {
        let _ = tickpath_log::SharedWords::remove(words);
    }
    let Ok(topics) = tickpath_log::LogPath::all_in_shared_memory() else { return };
    for topic in topics.iter().filter(|topic| which(topic)) {
        if let Ok(path) = tickpath_log::LogPath::shared_memory(topic) {
            let _ = path.remove();
        }
    }
}
