//! The peers in Java: processes that speak as `docs/clients.md` says, one class a peer.
//!
//! Their messages are payloads alone, with the stamp at byte 16, as those of every peer here. `make bench-peers`
//! compiles them; a process warms its loops up on a topic of its own before it is ready.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_bus::pubsub::{ForeignClient, PublisherRole, SubscriberRole};
use tickpath_lab_result::Run;

/// The folder of the Maven project.
const HOME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java");

/// What names the versions.
const POM: &str = include_str!("../java/pom.xml");

/// What the folders of runs begin with, in shared memory.
const PLACE: &str = "tickpath-peers-";

/// A peer's two ends for one run, and the folder that is theirs.
#[derive(Debug)]
pub struct Java {
    name: &'static str,
    package: &'static str,
    runtime: String,
    readers: usize,
    place: PathBuf,
}

impl Java {
    /// Ready for a run with so many readers.
    pub fn new(name: &'static str, package: &'static str, runtime: &str, readers: usize) -> Self {
        let place = Path::new("/dev/shm").join(format!("{PLACE}{}", std::process::id()));
        Self { name, package, runtime: runtime.to_owned(), readers, place }
    }

    /// Starts an end, which runs where its role says: it binds its own thread, the others of its machine stay free.
    fn spawn(&self, end: &'static str, role: &impl Serialize) -> Result<Child, LabError> {
        let mut settings = serde_json::to_value(role).expect("roles are plain data");
        settings["place"] = self.place.display().to_string().into();
        settings["readers"] = self.readers.into();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "java", &format!("@{HOME}/jvm.args"), "-cp"]);
        command.arg(format!("{HOME}/target/classes:{HOME}/target/lib/*"));
        command.args(["tickpath.Main", self.name, end]);
        command.env("TICKPATH_SETTINGS", settings.to_string()).stderr(Stdio::inherit());
        Child::of(command, end)
    }
}

impl ForeignClient for Java {
    fn name(&self) -> &'static str {
        self.name
    }

    /// It comes first, and makes the folder.
    fn publisher(&self, _: &Lab<'_>, role: &PublisherRole) -> Result<Child, LabError> {
        let _ = std::fs::remove_dir_all(&self.place);
        std::fs::create_dir_all(&self.place).map_err(|e| LabError::file(&self.place, e))?;
        self.spawn("publisher", role)
    }

    fn subscriber(&self, _: &Lab<'_>, role: &SubscriberRole) -> Result<Child, LabError> {
        self.spawn("subscriber", role)
    }

    fn tell(&self, run: &mut Run) {
        run.software.client = Some(self.name.to_owned());
        run.software.client_version = version(self.package).map(str::to_owned);
        run.software.runtime = Some(self.runtime.clone());
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // A folder that was never made is as good.
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// What Java says that it is; or why the peers in Java cannot run.
pub fn runtime() -> Result<String, String> {
    if !Path::new(HOME).join("target/classes/tickpath/Main.class").is_file() {
        return Err("peers/java is not compiled; `make bench-peers` does that".to_owned());
    }
    let output = Command::new("java").arg("-version").output().map_err(|e| format!("java does not start: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    // openjdk version "17.0.15" 2025-04-15
    said.split('"').nth(1).map(|version| format!("Java {version}")).ok_or_else(|| format!("java says {said}"))
}

/// The version of an artifact.
pub fn version(package: &str) -> Option<&'static str> {
    let (_, rest) = POM.split_once(&format!("<artifactId>{package}</artifactId>"))?;
    rest.split_once("<version>")?.1.split_once('<').map(|(version, _)| version)
}

/// Removes what killed benches left: the name of a folder holds a process id that is gone.
pub fn sweep() {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PLACE));
        if id.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_artifact_has_a_version() {
        for package in ["aeron-all", "chronicle-queue"] {
            assert!(version(package).is_some_and(|version| version.contains('.')), "{package}");
        }
        assert_eq!(version("nobody"), None);
    }
}
