//! Go clients: programs that are built once from sources that this program holds, and processes that run them.
//!
//! A client brings its own file; `client.go`, and `go.mod` with the pinned go-redis, are shared. What was built lies in
//! the user's cache, named by its sources and the Go that built it; nothing that is installed is touched, but Go keeps its
//! own caches. A program speaks as every client does: see `docs/clients.md`.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use tickpath_harness::{Child, LabError, Progress};

use crate::kept::{self, FolderError, Trouble};

/// What every program is made of, beside its own file.
const SHARED: [(&str, &str); 4] = [
    ("go.mod", include_str!("go/go.mod")),
    ("go.sum", include_str!("go/go.sum")),
    ("client.go", include_str!("go/client.go")),
    // A function without a body, the clock of Go itself, needs a file of assembly beside it, an empty one.
    ("stub.s", ""),
];

/// The library, as `go.mod` names it.
const LIBRARY: &str = "github.com/redis/go-redis/v9 v";

/// The oldest Go that it is built with.
const OLDEST: (u32, u32) = (1, 18);

/// How long Go may take to say what it is, and to fetch and build.
const ASK_SECONDS: u32 = 30;
const BUILD_SECONDS: u32 = 600;

/// A built program.
#[derive(Debug, Clone)]
pub struct Go {
    /// Its path.
    pub program: PathBuf,
    /// What built it, and is a part of it: `go1.26.8`.
    pub runtime: String,
}

/// Why there is no Go program.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// No Go at all.
    #[error(
        "go is not installed; install it with: apt-get install golang-go   (or leave the Go clients out by --client)"
    )]
    Missing,
    /// A Go that the library is not built with.
    #[error("{found} is too old; Go clients need {oldest} or later", oldest = format!("go{}.{}", OLDEST.0, OLDEST.1))]
    TooOld {
        /// What it says it is.
        found: String,
    },
    /// Nowhere to get the library from.
    #[error(
        "Go's module proxy does not answer ({what}); check the network, name another proxy with GOPROXY, or leave the Go \
         clients out by --client"
    )]
    NoModules {
        /// What Go says.
        what: String,
    },
    /// Building took too long.
    #[error("the Go client was not built within {0} s; check the network and the disk, and try again")]
    Slow(u32),
    /// Building failed otherwise.
    #[error("the Go client cannot be built ({0}); remedy that, or leave the Go clients out by --client")]
    Failed(String),
    /// The folder of programs.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl From<GoError> for LabError {
    fn from(error: GoError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Go {
    /// The program of this source, a file's name and its text, from the user's cache; it is built if it is not there, which
    /// takes half a minute and a module proxy.
    pub fn prepare(progress: &dyn Progress, source: (&str, &str)) -> Result<Self, GoError> {
        let runtime = runtime()?;
        let mut hasher = DefaultHasher::new();
        (SHARED, source, &runtime).hash(&mut hasher);
        let home = kept::cache()?.join(format!("go-{:016x}", hasher.finish()));
        if !home.exists() {
            progress.step("building the Go client, once", 30.0);
            build(source, &home)?;
        }
        Ok(Self { program: program(&home), runtime })
    }

    /// The library's version.
    pub fn library_version() -> &'static str {
        let rest = SHARED[0].1.split(LIBRARY).nth(1);
        rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or("?")
    }

    /// Runs it as `role`, on a CPU if one is given, with its settings as JSON. It ends with the thread that calls this,
    /// however that ends.
    pub fn spawn(&self, role: &'static str, cpu: Option<usize>, settings: &impl Serialize) -> Result<Child, LabError> {
        let json = serde_json::to_string(settings).expect("settings are plain data");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(cpu) = cpu {
            // Before it begins: Go makes its threads, and counts its processors, at the start.
            command.args(["taskset", "-c", &cpu.to_string()]);
        }
        command.arg(&self.program).arg(role);
        // Not an argument: those everybody can read, and a URL may hold a password.
        command.env("TICKPATH_SETTINGS", json).stderr(Stdio::inherit());
        Child::of(command, role)
    }
}

/// What the Go that is installed says it is.
fn runtime() -> Result<String, GoError> {
    let said = run(ASK_SECONDS, &["env", "GOVERSION"], |_| ()).map_err(|trouble| match trouble {
        Trouble::Missing => GoError::Missing,
        other => GoError::Failed(other.last_words()),
    })?;
    let found = said.trim().to_owned();
    match version(&found) {
        Some(version) if version < OLDEST => Err(GoError::TooOld { found }),
        _ => Ok(found),
    }
}

/// Both numbers of `go1.26.8`; none of a version that is not released.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.strip_prefix("go")?.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn build(source: (&str, &str), home: &Path) -> Result<(), GoError> {
    let made = kept::unfinished(home)?;
    for (name, text) in SHARED.into_iter().chain([source]) {
        let path = made.path().join(name);
        fs::write(&path, text).map_err(|reason| FolderError { path, reason })?;
    }
    let output = program(Path::new("."));
    let words = ["build", "-trimpath", "-buildvcs=false", "-o", output.to_str().unwrap_or_default(), "."];
    run(BUILD_SECONDS, &words, |command| _ = command.current_dir(made.path()))
        .map_err(|trouble| of_building(&trouble))?;
    Ok(kept::finish(made, home)?)
}

/// Runs Go to its end: the one that is installed, and as our sources say, whatever is set for others.
fn run(seconds: u32, words: &[&str], place: impl FnOnce(&mut Command)) -> Result<String, Trouble> {
    let settings = [("GOFLAGS", ""), ("GOWORK", "off"), ("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")];
    let arguments: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    kept::run(seconds, "go".as_ref(), &arguments, |command| place(command.envs(settings)))
}

/// Where the program lies in its folder.
fn program(home: &Path) -> PathBuf {
    home.join("client")
}

/// What trouble means where a program is built.
fn of_building(trouble: &Trouble) -> GoError {
    const NETWORK: [&str; 4] = ["dial tcp", "i/o timeout", "no such host", "TLS handshake"];
    let what = trouble.last_words();
    match trouble {
        Trouble::Slow => GoError::Slow(BUILD_SECONDS),
        Trouble::Said(text) if NETWORK.iter().any(|word| text.contains(word)) => GoError::NoModules { what },
        Trouble::Missing | Trouble::Said(_) => GoError::Failed(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_says_becomes_a_sentence_with_a_remedy() {
        let proxy = "client.go:9:2: github.com/redis/go-redis/v9@v9.14.1: Get \"https://proxy.golang.org/x\": dial tcp: \
                     lookup proxy.golang.org: no such host";
        for (said, remedy) in [
            (proxy, "GOPROXY"),
            ("write /tmp/x: no space left on device", "no space left on device"),
            ("", "without a word"),
        ] {
            let sentence = of_building(&Trouble::Said(said.to_owned())).to_string();
            assert!(sentence.contains(remedy) && sentence.contains("--client"), "{said}: {sentence}");
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
