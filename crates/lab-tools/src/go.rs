//! Go clients: programs that are built once from sources embedded in this program, and processes that run them.
//!
//! Each client has its own file; `client.go`, and `go.mod` with the pinned go-redis, are shared. Built programs lie in
//! the user's cache, named by their sources and the Go version; no installed file is touched, but Go keeps its own
//! caches. A program speaks the protocol of every client: see `docs/clients.md`.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use tickpath_lab_harness::{Child, LabError, ProgressSink};

use crate::program_cache::{self, FolderError, ProgramFailure};

/// The source files of every program, beside its own file.
const SHARED: [(&str, &str); 4] = [
    ("go.mod", include_str!("go/go.mod")),
    ("go.sum", include_str!("go/go.sum")),
    ("client.go", include_str!("go/client.go")),
    // A function without a body, here Go's own clock, needs an assembly file beside it, even an empty one.
    ("stub.s", ""),
];

/// The library's line in `go.mod`.
const LIBRARY: &str = "github.com/redis/go-redis/v9 v";

/// The oldest supported Go.
const OLDEST: (u32, u32) = (1, 18);

/// Max time for Go to report its version, and to fetch and build.
const QUERY_TIMEOUT_S: u32 = 30;
const BUILD_TIMEOUT_S: u32 = 600;

/// A built program.
#[derive(Debug, Clone)]
pub struct Go {
    /// Its path.
    pub program: PathBuf,
    /// The Go that built it, whose runtime it contains: `go1.26.8`.
    pub runtime: String,
}

/// The reason for which there is no Go program.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// Go is not installed.
    #[error(
        "go is not installed; install it with: apt-get install golang-go   (or leave the Go clients out by --client)"
    )]
    Missing,
    /// Go is too old for the library.
    #[error("{found} is too old; Go clients need {oldest} or later", oldest = format!("go{}.{}", OLDEST.0, OLDEST.1))]
    TooOld {
        /// The reported version.
        found: String,
    },
    /// The module proxy is unreachable.
    #[error(
        "Go's module proxy does not answer ({what}); check the network, name another proxy with GOPROXY, or leave the Go \
         clients out by --client"
    )]
    NoModules {
        /// Go's error message.
        what: String,
    },
    /// Building took too long.
    #[error("the Go client was not built within {0} s; check the network and the disk, and try again")]
    Slow(u32),
    /// Building failed for another reason.
    #[error("the Go client cannot be built ({0}); remedy that, or leave the Go clients out by --client")]
    Failed(String),
    /// The folder of programs cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl From<GoError> for LabError {
    fn from(error: GoError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Go {
    /// Returns the program of this source (a file's name and its text) from the user's cache; builds it if it is
    /// missing, which takes half a minute and a module proxy.
    pub fn prepare(progress: &dyn ProgressSink, source: (&str, &str)) -> Result<Self, GoError> {
        let runtime = runtime()?;
        let mut hasher = DefaultHasher::new();
        (SHARED, source, &runtime).hash(&mut hasher);
        let home = program_cache::cache()?.join(format!("go-{:016x}", hasher.finish()));
        if !home.exists() {
            progress.step("building the Go client, once", 30.0);
            build(source, &home)?;
        }
        Ok(Self { program: program(&home), runtime })
    }

    /// Returns the library's version.
    pub fn library_version() -> &'static str {
        let rest = SHARED[0].1.split(LIBRARY).nth(1);
        rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or("?")
    }

    /// Runs the program as `role`, on a CPU if `cpu` names one, with its settings as JSON. The process ends with the
    /// calling thread, however that thread ends.
    pub fn spawn(&self, role: &'static str, cpu: Option<usize>, settings: &impl Serialize) -> Result<Child, LabError> {
        let json = serde_json::to_string(settings).expect("settings are plain data");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(cpu) = cpu {
            // Pinned before its start: Go creates its threads, and counts its CPUs, at the start.
            command.args(["taskset", "-c", &cpu.to_string()]);
        }
        command.arg(&self.program).arg(role);
        // An environment variable, because every user can read arguments, and a URL may hold a password.
        command.env("TICKPATH_SETTINGS", json).stderr(Stdio::inherit());
        Child::of(command, role)
    }
}

/// Returns the version of the installed Go.
fn runtime() -> Result<String, GoError> {
    let output = run(QUERY_TIMEOUT_S, &["env", "GOVERSION"], |_| ()).map_err(|trouble| match trouble {
        ProgramFailure::Missing => GoError::Missing,
        other => GoError::Failed(other.last_line()),
    })?;
    let found = output.trim().to_owned();
    match version(&found) {
        Some(version) if version < OLDEST => Err(GoError::TooOld { found }),
        _ => Ok(found),
    }
}

/// Returns both numbers of `go1.26.8`; `None` for an unreleased version.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.strip_prefix("go")?.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn build(source: (&str, &str), home: &Path) -> Result<(), GoError> {
    let made = program_cache::create_unfinished(home)?;
    for (name, text) in SHARED.into_iter().chain([source]) {
        let path = made.path().join(name);
        fs::write(&path, text).map_err(|reason| FolderError { path, reason })?;
    }
    let output = program(Path::new("."));
    let arguments = ["build", "-trimpath", "-buildvcs=false", "-o", output.to_str().unwrap_or_default(), "."];
    run(BUILD_TIMEOUT_S, &arguments, |command| _ = command.current_dir(made.path()))
        .map_err(|trouble| build_error(&trouble))?;
    Ok(program_cache::finish(made, home)?)
}

/// Runs the installed Go to its end, with our sources' settings instead of the user's.
fn run(seconds: u32, words: &[&str], configure: impl FnOnce(&mut Command)) -> Result<String, ProgramFailure> {
    let settings = [("GOFLAGS", ""), ("GOWORK", "off"), ("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")];
    let arguments: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    program_cache::run(seconds, "go".as_ref(), &arguments, |command| configure(command.envs(settings)))
}

fn program(home: &Path) -> PathBuf {
    home.join("client")
}

/// Converts the trouble of a build.
fn build_error(trouble: &ProgramFailure) -> GoError {
    const NETWORK: [&str; 4] = ["dial tcp", "i/o timeout", "no such host", "TLS handshake"];
    let what = trouble.last_line();
    match trouble {
        ProgramFailure::Slow => GoError::Slow(BUILD_TIMEOUT_S),
        ProgramFailure::Failed(text) if NETWORK.iter().any(|word| text.contains(word)) => GoError::NoModules { what },
        ProgramFailure::Missing | ProgramFailure::Failed(_) => GoError::Failed(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_go_become_sentences_with_a_remedy() {
        let proxy = "client.go:9:2: github.com/redis/go-redis/v9@v9.14.1: Get \"https://proxy.golang.org/x\": dial tcp: \
                     lookup proxy.golang.org: no such host";
        for (message, remedy) in [
            (proxy, "GOPROXY"),
            ("write /tmp/x: no space left on device", "no space left on device"),
            ("", "without output"),
        ] {
            let sentence = build_error(&ProgramFailure::Failed(message.to_owned())).to_string();
            assert!(sentence.contains(remedy) && sentence.contains("--client"), "{message}: {sentence}");
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (text, found) in [
            ("go1.9", Some((1, 9))),
            ("go1.18beta1", Some((1, 18))),
            ("go1.26.8", Some((1, 26))),
            ("devel go1.27-abc", None),
        ] {
            assert_eq!(version(text), found, "{text}");
        }
        assert!(version("go1.9") < Some(OLDEST) && version("go1.19.8") > Some(OLDEST));
    }

    #[test]
    fn the_library_has_a_version() {
        assert_eq!(Go::library_version().split('.').count(), 3, "{}", Go::library_version());
    }
}
