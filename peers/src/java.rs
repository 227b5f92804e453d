//! The peers in Java: processes that follow the protocol of `docs/clients.md`, one class per peer.
//!
//! As with every peer here, a message is its payload alone, with the stamp at byte 16. `make bench-peers` compiles the
//! classes; a process warms up its loops on a topic of its own before it is ready.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use tickpath_lab_bus::pubsub::{ForeignClient, PublisherRole, SubscriberRole};
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::Run;

/// Folder of the Maven project.
const PROJECT_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java");

/// Maven's project file, which names the versions.
const POM: &str = include_str!("../java/pom.xml");

/// Prefix of the runs' folders in shared memory.
const FOLDER_PREFIX: &str = "tickpath-peers-";

/// The two ends of a peer for one run, and the folder of that run.
#[derive(Debug)]
pub struct JavaPeer {
    name: &'static str,
    package: &'static str,
    runtime: String,
    readers: usize,
    folder: PathBuf,
}

impl JavaPeer {
    /// Prepares a peer for a run with this number of readers.
    pub fn new(name: &'static str, package: &'static str, runtime: &str, readers: usize) -> Self {
        let folder = Path::new("/dev/shm").join(format!("{FOLDER_PREFIX}{}", std::process::id()));
        Self { name, package, runtime: runtime.to_owned(), readers, folder }
    }

    /// Starts an end, which pins its own thread to the CPU of its role, but not the other threads of the virtual
    /// machine.
    fn spawn(&self, end: &'static str, role: &impl Serialize) -> Result<Child, LabError> {
        let mut settings = serde_json::to_value(role).expect("roles are plain data");
        settings["folder"] = self.folder.display().to_string().into();
        settings["readers"] = self.readers.into();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "java", &format!("@{PROJECT_FOLDER}/jvm.args"), "-cp"]);
        command.arg(format!("{PROJECT_FOLDER}/target/classes:{PROJECT_FOLDER}/target/lib/*"));
        command.args(["tickpath.Main", self.name, end]);
        command.env("TICKPATH_SETTINGS", settings.to_string()).stderr(Stdio::inherit());
        Child::of(command, end)
    }
}

impl ForeignClient for JavaPeer {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Starts the publisher, which is started first and so gets an empty folder.
    fn publisher(&self, _: &Lab<'_>, role: &PublisherRole) -> Result<Child, LabError> {
        let _ = std::fs::remove_dir_all(&self.folder);
        std::fs::create_dir_all(&self.folder).map_err(|e| LabError::file(&self.folder, e))?;
        self.spawn("publisher", role)
    }

    fn subscriber(&self, _: &Lab<'_>, role: &SubscriberRole) -> Result<Child, LabError> {
        self.spawn("subscriber", role)
    }

    fn describe_client(&self, run: &mut Run) {
        run.software.client = Some(self.name.to_owned());
        run.software.client_version = artifact_version(self.package).map(str::to_owned);
        run.software.runtime = Some(self.runtime.clone());
    }
}

impl Drop for JavaPeer {
    fn drop(&mut self) {
        // A folder that was never created is no error.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the name and version of the Java runtime, or why the peers in Java cannot run.
pub fn find_runtime() -> Result<String, String> {
    if !Path::new(PROJECT_FOLDER).join("target/classes/tickpath/Main.class").is_file() {
        return Err("peers/java is not compiled; run `make bench-peers`, which compiles it".to_owned());
    }
    let output = Command::new("java").arg("-version").output();
    let output = output.map_err(|e| format!("java does not start ({e}); install a Java runtime"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    // openjdk version "17.0.15" 2025-04-15
    let version = text.split('"').nth(1).map(|version| format!("Java {version}"));
    version.ok_or_else(|| format!("`java -version` prints no version but '{text}'; install another Java runtime"))
}

/// Returns the version of an artifact in Maven's project file.
pub fn artifact_version(package: &str) -> Option<&'static str> {
    let (_, rest) = POM.split_once(&format!("<artifactId>{package}</artifactId>"))?;
    rest.split_once("<version>")?.1.split_once('<').map(|(version, _)| version)
}

/// Removes the folders of killed benches, whose names contain the id of an ended process.
pub fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(FOLDER_PREFIX));
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
            assert!(artifact_version(package).is_some_and(|version| version.contains('.')), "{package}");
        }
        assert_eq!(artifact_version("no-such-artifact"), None);
    }
}
