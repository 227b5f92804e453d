//! What all workloads share: the program to spawn, a folder, the clock, names, and how far it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use tickpath_bus::About;
use tickpath_clock::HostClock;
use tickpath_result::Software;

use crate::LabError;
use crate::child::Child;
use crate::interruption::interruption;
use crate::role::Role;

/// Settings of a server that decide what reaches its disk.
const KEPT: [&str; 2] = ["save", "appendonly"];

/// Where a bench says how far it is.
pub trait Progress {
    /// A step begins: what it is, and about how long it takes.
    fn step(&self, what: &str, seconds: f64);

    /// All steps together, once they are known: so many runs, and about how long.
    fn plan(&self, _runs: usize, _seconds: f64) {}
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
    /// Whether roles are threads of this process, for what is between threads alone.
    pub in_threads: bool,
    /// Whether threads that spin keep the next message's way warm.
    pub warm: bool,
    /// What the servers said of themselves that were asked already, by URL.
    servers: Mutex<BTreeMap<String, About>>,
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
        let (clock, servers) = (HostClock::get()?, Mutex::default());
        Ok(Self { program, clock, folder, name, progress, in_threads: false, warm: true, servers })
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes files, each a name and its text, into a folder of the run; gives the folder.
    pub fn put(&self, folder: &str, files: &[(&str, &str)]) -> Result<PathBuf, LabError> {
        let folder = self.folder().join(folder);
        std::fs::create_dir_all(&folder).map_err(|e| LabError::file(&folder, e))?;
        for (name, text) in files {
            let path = folder.join(name);
            // A process of the run may be reading what is there.
            if !path.exists() {
                std::fs::write(&path, text).map_err(|e| LabError::file(&path, e))?;
            }
        }
        Ok(folder)
    }

    /// What the server of a URL says of itself, asked once; nothing of one that cannot be reached.
    pub fn about(&self, url: &str) -> About {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = || tickpath_bus::connect(url).map(|connection| connection.about()).unwrap_or_default();
        servers.entry(url.to_owned()).or_insert_with(ask).clone()
    }

    /// The server of a URL, and our own bus before it.
    pub fn software(&self, url: &str) -> Software {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let server = software(self.about(url));
        Software { client: Some("tickpath".to_owned()), client_version: Some(version), ..server }
    }

    /// A step begins, as [`Progress::step`] has it; none does after a Ctrl-C.
    pub fn step(&self, what: &str, seconds: f64) -> Result<(), LabError> {
        if interruption().load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        self.progress.step(what, seconds);
        Ok(())
    }

    /// Spawns a process for a role, or, where roles are threads, a thread.
    pub fn spawn<R: Role>(&self, role: &R) -> Result<Child, LabError> {
        if self.in_threads { Child::thread(role) } else { Child::spawn(&self.program, role) }
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        remove_topics(|name| name.starts_with(&format!("{}.", self.name)));
    }
}

/// What answers, as far as it tells.
fn software(about: About) -> Software {
    let mut software = Software { server: about.server, server_version: about.version, ..Software::default() };
    for (name, value) in about.settings {
        if let (true, Ok(value)) = (KEPT.contains(&name), value) {
            software.server_settings.set(name, value);
        }
    }
    software
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

/// Removes these topics of shared memory, and bare words of such names.
pub fn remove_topics(which: impl Fn(&str) -> bool) {
    for words in tickpath_log::SharedWords::all().unwrap_or_default().iter().filter(|words| which(words)) {
        let _ = tickpath_log::SharedWords::remove(words);
    }
    let Ok(topics) = tickpath_log::Place::all_in_shared_memory() else { return };
    for topic in topics.iter().filter(|topic| which(topic)) {
        if let Ok(place) = tickpath_log::Place::shared_memory(topic) {
            let _ = place.remove();
        }
    }
}
