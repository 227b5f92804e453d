//! Python clients: an interpreter with the usual packages, and processes that run a script in it.
//!
//! The packages are pinned, each file by its hash, and lie in a virtual environment of their own, which is made once
//! and kept in the user's cache; no installed file is touched. `TICKPATH_PYTHON` names another interpreter, with the
//! packages in it. Our own package is in no index: a user who measures it has installed it. A script is a file in the
//! run's folder, and speaks the protocol of our own children: `"ready"`, then `{"result": …}` or `{"error": …}`, a line
//! each.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use tickpath_lab_harness::{Child, Lab, LabError, ProgressSink};

use crate::program_cache::{self, FolderError, ProgramFailure, cache};

/// The packages and their versions.
const PACKAGES: [(&str, &str); 3] = [("redis", "8.1.0"), ("hiredis", "3.5.0"), ("uvloop", "0.23.0")];

/// The packages in pip's format, with their dependencies, and with the hashes of all permitted files.
const REQUIREMENTS: &str = include_str!("python/requirements.txt");

/// The file that lists an environment's packages.
const REQUIREMENTS_FILE: &str = "requirements.txt";

/// The names of the packages.
const NAMES: [&str; 3] = [PACKAGES[0].0, PACKAGES[1].0, PACKAGES[2].0];

const TICKPATH_PACKAGE: &str = "tickpath";

/// The oldest Python that the packages support.
const OLDEST: (u32, u32) = (3, 10);

/// The variable that names another interpreter.
const VARIABLE: &str = "TICKPATH_PYTHON";

/// Max time for an interpreter to report its facts, to make an environment, and to fetch packages into it.
const QUERY_TIMEOUT_S: u32 = 30;
const VENV_TIMEOUT_S: u32 = 120;
const FETCH_TIMEOUT_S: u32 = 240;

/// An interpreter with the packages.
#[derive(Debug, Clone)]
pub struct Python {
    /// Its path.
    pub program: PathBuf,
    /// The interpreter's name and version: `CPython 3.11.7`.
    pub runtime: String,
    versions: BTreeMap<String, String>,
    /// Whether the environment is ours, so that it has to exclude the user's packages.
    is_own_environment: bool,
}

/// The reason for which there is no Python to run clients in.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    /// Python is not installed.
    #[error(
        "python3 is not installed; install it with: apt-get install python3 python3-venv   (or name an interpreter \
         that has {pins} with TICKPATH_PYTHON=PATH)",
        pins = pins()
    )]
    NoInterpreter,
    /// Python is too old for the packages.
    #[error(
        "python3 is Python {major}.{minor}, and the clients need {oldest} or later; name a newer one with \
         TICKPATH_PYTHON=PATH",
        oldest = format!("{}.{}", OLDEST.0, OLDEST.1)
    )]
    TooOld {
        /// The major version.
        major: u32,
        /// The minor version.
        minor: u32,
    },
    /// The interpreter lacks the module for environments.
    #[error(
        "python3 cannot make virtual environments; install what it needs with: apt-get install python3-venv   (or name \
         an interpreter that has {pins} with TICKPATH_PYTHON=PATH)",
        pins = pins()
    )]
    NoVenv,
    /// The program is not a Python interpreter.
    #[error("{program} does not run as Python 3 ({what}); name an interpreter with TICKPATH_PYTHON=PATH")]
    NoPython {
        /// The program.
        program: String,
        /// The error of running it.
        what: String,
    },
    /// The interpreter of `TICKPATH_PYTHON` lacks packages.
    #[error(
        "{program}, which TICKPATH_PYTHON names, has no {package}; run: {program} -m pip install {pins}",
        pins = pins()
    )]
    NoPackage {
        /// The interpreter.
        program: String,
        /// The first missing package.
        package: String,
    },
    /// The interpreter lacks our own package.
    #[error(
        "{program} cannot import the package tickpath ({what}); run {program} -m pip install . in a checkout of Tickpath, \
         or name an interpreter that has it with TICKPATH_PYTHON=PATH"
    )]
    NoTickpath {
        /// The interpreter.
        program: String,
        /// The interpreter's error.
        what: String,
    },
    /// The interpreter has our own package, and lacks redis-py, to which it is compared.
    #[error(
        "{program} has the package tickpath and cannot import redis ({what}), and one interpreter is to have both; run \
         {program} -m pip install {redis}, or name an interpreter that has them with TICKPATH_PYTHON=PATH",
        redis = format!("{}=={}", PACKAGES[0].0, PACKAGES[0].1)
    )]
    NoRedisBeside {
        /// The interpreter.
        program: String,
        /// The interpreter's error.
        what: String,
    },
    /// The interpreter lacks a package that a user has to install.
    #[error(
        "{program} cannot import the package {package} ({what}); run {program} -m pip install {package}, or name an \
         interpreter that has it with TICKPATH_PYTHON=PATH"
    )]
    NoUserPackage {
        /// The interpreter.
        program: String,
        /// The first missing package.
        package: String,
        /// The interpreter's error.
        what: String,
    },
    /// The package index is unreachable.
    #[error(
        "the package index does not answer, or has nothing; check the network, name another index with PIP_INDEX_URL, \
         or an interpreter that has {pins} with TICKPATH_PYTHON=PATH",
        pins = pins()
    )]
    NoIndex,
    /// The index has no such package for this interpreter.
    #[error(
        "the package index has no build for this interpreter and machine ({what}); name an interpreter that has {pins} \
         with TICKPATH_PYTHON=PATH",
        pins = pins()
    )]
    NoBuild {
        /// Pip's error.
        what: String,
    },
    /// The index has other files than the pinned ones.
    #[error(
        "the package index gives a file that has not the hash by which it is pinned, and nothing is installed; check which \
         index PIP_INDEX_URL and pip's settings name, or name an interpreter that has {pins} with TICKPATH_PYTHON=PATH",
        pins = pins()
    )]
    OtherFile,
    /// Making the environment took too long.
    #[error("the Python environment was not made within {0} s; check the network and the disk, and try again")]
    Slow(u32),
    /// Making the environment failed for another reason.
    #[error(
        "the Python environment cannot be made ({0}); remedy that, or name an interpreter with TICKPATH_PYTHON=PATH"
    )]
    Failed(String),
    /// The folder of environments cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A complete environment was damaged later.
    #[error("the Python environment {path} is damaged ({what}); remove it, and the next run makes it again")]
    Damaged {
        /// The environment's path.
        path: PathBuf,
        /// The part that fails.
        what: String,
    },
}

impl From<PythonError> for LabError {
    fn from(error: PythonError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Python {
    /// Returns the interpreter that `TICKPATH_PYTHON` names, or the environment of the user's cache; makes the
    /// environment if it is missing, which takes several seconds and a package index.
    pub fn prepare(progress: &dyn ProgressSink) -> Result<Self, LabError> {
        match std::env::var_os(VARIABLE).filter(|program| !program.is_empty()) {
            Some(program) => Ok(Self::named(program.into())?),
            None => Ok(Self::cached(progress)?),
        }
    }

    /// Returns the interpreter that has the package `tickpath`: the interpreter that `TICKPATH_PYTHON` names, else the
    /// one beside this program, as in a virtual environment, else that of `PATH`.
    pub fn with_tickpath() -> Result<Self, LabError> {
        Ok(Self::require_tickpath(tickpath_interpreter(None))?)
    }

    /// Returns an interpreter in which a script can import redis-py and the package `tickpath`: the interpreter that
    /// `TICKPATH_PYTHON` names, else the script's, if it is known, else the choice of [`Self::with_tickpath`].
    pub fn with_both(of_script: Option<&Path>) -> Result<Self, LabError> {
        Ok(Self::require_both(tickpath_interpreter(of_script))?)
    }

    /// Returns the interpreter of [`Self::with_tickpath`]'s choice, in which a script can import these packages, which a
    /// user has installed.
    pub fn with_packages(packages: &[&str]) -> Result<Self, LabError> {
        let program = tickpath_interpreter(None);
        let name = program.display().to_string();
        let facts = query_facts(&program, false, packages)
            .map_err(|trouble| PythonError::NoPython { program: name.clone(), what: trouble.last_line() })?;
        if let Some((package, what)) = facts.lacking.iter().next() {
            let (package, what) = (package.clone(), what.clone());
            return Err(PythonError::NoUserPackage { program: name, package, what }.into());
        }
        Ok(Self { program, runtime: facts.runtime, versions: facts.versions, is_own_environment: false })
    }

    /// Returns the version of a package, where it reports its version.
    pub fn version_of(&self, package: &str) -> Option<&str> {
        self.versions.get(package).map(String::as_str)
    }

    /// Runs a script with its settings as JSON, as a child with the name `role` in errors: the first of these files,
    /// each a name and its text; the others are modules that it imports. The child ends with the calling thread,
    /// however that thread ends, at no cost in time for the script.
    pub fn spawn(
        &self,
        lab: &Lab<'_>,
        role: &'static str,
        script: &[(&str, &str)],
        settings: &impl Serialize,
    ) -> Result<Child, LabError> {
        let json = serde_json::to_string(settings).expect("settings are plain data");
        let folder = lab.write_files("python", script)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&self.program);
        if self.is_own_environment {
            command.arg("-I");
        }
        command.args(script.first().map(|(name, _)| folder.join(name)));
        // An environment variable, because every user can read arguments, and a URL may hold a password.
        command.env("TICKPATH_SETTINGS", json);
        // A file redis.py in the working folder must not shadow the package.
        command.env("PYTHONSAFEPATH", "1").stderr(Stdio::inherit());
        Child::of(command, role)
    }

    fn require_tickpath(program: PathBuf) -> Result<Self, PythonError> {
        let lacks = |what| PythonError::NoTickpath { program: program.display().to_string(), what };
        let no_python = |what| PythonError::NoPython { program: program.display().to_string(), what };
        let facts =
            query_facts(&program, false, &[TICKPATH_PACKAGE]).map_err(|trouble| no_python(trouble.last_line()))?;
        match facts.lacking.get(TICKPATH_PACKAGE) {
            Some(what) => Err(lacks(what.clone())),
            None => Ok(Self { program, runtime: facts.runtime, versions: facts.versions, is_own_environment: false }),
        }
    }

    fn require_both(program: PathBuf) -> Result<Self, PythonError> {
        let python = Self::require_tickpath(program)?;
        let lacks = |what| PythonError::NoRedisBeside { program: python.program.display().to_string(), what };
        let facts = query_facts(&python.program, false, &NAMES).map_err(|trouble| lacks(trouble.last_line()))?;
        if let Some(what) = facts.lacking.get(NAMES[0]) {
            return Err(lacks(what.clone()));
        }
        let versions = facts.versions.into_iter().chain(python.versions).collect();
        Ok(Self { program: python.program, runtime: python.runtime, versions, is_own_environment: false })
    }

    fn named(program: PathBuf) -> Result<Self, PythonError> {
        let name = program.display().to_string();
        let facts = query_facts(&program, false, &NAMES)
            .map_err(|trouble| PythonError::NoPython { program: name.clone(), what: trouble.last_line() })?;
        let lacking = PACKAGES.iter().find(|(package, _)| !facts.versions.contains_key(*package));
        match lacking {
            Some((package, _)) => Err(PythonError::NoPackage { program: name, package: (*package).to_owned() }),
            None => Ok(Self { program, runtime: facts.runtime, versions: facts.versions, is_own_environment: false }),
        }
    }

    fn cached(progress: &dyn ProgressSink) -> Result<Self, PythonError> {
        let base = query_facts("python3".as_ref(), false, &NAMES).map_err(|trouble| match trouble {
            ProgramFailure::Missing => PythonError::NoInterpreter,
            other => PythonError::Failed(other.last_line()),
        })?;
        let home = cache()?.join(base.key());
        if !home.exists() {
            progress.step("making the Python environment, once", 20.0);
            make_environment(&base, &home)?;
        }
        Self::open(&home)
    }

    /// Opens a complete environment: it was renamed to `home` only when complete.
    fn open(home: &Path) -> Result<Self, PythonError> {
        let program = interpreter(home);
        let damaged = |what: String| PythonError::Damaged { path: home.to_owned(), what };
        let facts = query_facts(&program, true, &NAMES).map_err(|trouble| damaged(trouble.last_line()))?;
        match PACKAGES.iter().find(|(package, pin)| facts.versions.get(*package).is_none_or(|found| found != pin)) {
            Some((package, pin)) => Err(damaged(format!("it has no {package} {pin}"))),
            None => Ok(Self { program, runtime: facts.runtime, versions: facts.versions, is_own_environment: true }),
        }
    }
}

/// Returns the interpreter that should have our own package: the named interpreter, else a script's, else the one
/// beside this program, else that of `PATH`.
fn tickpath_interpreter(of_script: Option<&Path>) -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|program| !program.is_empty()).map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("python3")).filter(|program| program.exists());
    named.or_else(|| of_script.map(Path::to_owned)).or_else(beside).unwrap_or_else(|| "python3".into())
}

/// Script that prints an interpreter's facts: its version, and for each package in its arguments the version, or the
/// import error. A package that is not installed, but only on the path, may have no version.
const FACTS: &str = r#"
import importlib, importlib.util, json, platform, sys

versions, lacking = {}, {}
for name in sys.argv[1:]:
    try:
        package = importlib.import_module(name)
    except ImportError as error:
        lacking[name] = str(error)
        continue
    try:
        versions[name] = package.__version__
    except ImportError:
        pass

print(json.dumps({
    "executable": sys.executable,
    "version": sys.version_info[:2],
    "build": sys.version,
    "runtime": platform.python_implementation() + " " + platform.python_version(),
    "makes_environments": all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")),
    "versions": versions,
    "lacking": lacking,
}))
"#;

#[derive(Debug, Deserialize)]
struct InterpreterFacts {
    executable: PathBuf,
    version: (u32, u32),
    build: String,
    runtime: String,
    makes_environments: bool,
    versions: BTreeMap<String, String>,
    lacking: BTreeMap<String, String>,
}

impl InterpreterFacts {
    /// Returns the name of its environment, which depends on the interpreter and the packages.
    fn key(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (PACKAGES, REQUIREMENTS, &self.build, &self.executable).hash(&mut hasher);
        format!("python-{:016x}", hasher.finish())
    }
}

fn query_facts(program: &Path, isolated: bool, packages: &[&str]) -> Result<InterpreterFacts, ProgramFailure> {
    let mut arguments: Vec<&OsStr> = Vec::new();
    arguments.extend(isolated.then_some(OsStr::new("-I")));
    arguments.extend(["-c", FACTS].map(OsStr::new));
    arguments.extend(packages.iter().map(OsStr::new));
    let output = run(QUERY_TIMEOUT_S, program, &arguments)?;
    // A user's own start-up files may have printed earlier lines.
    let last = output.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|e| ProgramFailure::Failed(format!("unexpected output '{last}' ({e})")))
}

/// Makes an environment under another name, and renames it when it is complete. If two processes finish at the same
/// moment, both use the winner's.
fn make_environment(base: &InterpreterFacts, home: &Path) -> Result<(), PythonError> {
    if base.version < OLDEST {
        let (major, minor) = base.version;
        return Err(PythonError::TooOld { major, minor });
    }
    if !base.makes_environments {
        return Err(PythonError::NoVenv);
    }
    let made = program_cache::create_unfinished(home)?;
    let venv = [OsStr::new("-m"), OsStr::new("venv"), made.path().as_os_str()];
    run(VENV_TIMEOUT_S, &base.executable, &venv).map_err(|trouble| environment_error(&trouble, VENV_TIMEOUT_S))?;
    let pinned = made.path().join(REQUIREMENTS_FILE);
    fs::write(&pinned, REQUIREMENTS).map_err(|reason| FolderError { path: pinned.clone(), reason })?;
    let options = ["-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"];
    let limits = ["--only-binary=:all:", "--timeout=15", "--retries=3", "--require-hashes", "--requirement"];
    let shared = options.iter().chain(&limits).map(OsStr::new);
    let fetch: Vec<&OsStr> = shared.chain([pinned.as_os_str()]).collect();
    run(FETCH_TIMEOUT_S, &interpreter(made.path()), &fetch)
        .map_err(|trouble| environment_error(&trouble, FETCH_TIMEOUT_S))?;
    Ok(program_cache::finish(made, home)?)
}

fn run(seconds: u32, program: &Path, arguments: &[&OsStr]) -> Result<String, ProgramFailure> {
    program_cache::run(seconds, program, arguments, |command| _ = command.env("PYTHONSAFEPATH", "1"))
}

fn interpreter(home: &Path) -> PathBuf {
    home.join("bin").join("python")
}

/// Converts the trouble of making an environment.
fn environment_error(trouble: &ProgramFailure, seconds: u32) -> PythonError {
    let what = trouble.last_line();
    match trouble {
        ProgramFailure::Slow => PythonError::Slow(seconds),
        // Pip's messages for a file with another hash, for an index that does not answer, and for an empty index.
        ProgramFailure::Failed(text) if text.contains("DO NOT MATCH THE HASHES") => PythonError::OtherFile,
        ProgramFailure::Failed(text) if text.contains("(from versions: none)") => PythonError::NoIndex,
        ProgramFailure::Failed(text) if text.contains("No matching distribution") => PythonError::NoBuild { what },
        ProgramFailure::Missing | ProgramFailure::Failed(_) => PythonError::Failed(what),
    }
}

/// Returns the packages in pip's format.
fn pins() -> String {
    PACKAGES.map(|(package, version)| format!("{package}=={version}")).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_pip_become_sentences_with_a_remedy() {
        for (message, remedy) in [
            ("ERROR: Could not find a version that satisfies redis (from versions: none)", "PIP_INDEX_URL"),
            ("(from versions: 1.0, 2.0)\nERROR: No matching distribution found for uvloop", "no build for this"),
            (
                "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    redis==1 from x",
                "not the hash by which it is pinned",
            ),
            ("ERROR: [Errno 28] No space left on device", "No space left on device"),
            ("", "without output"),
        ] {
            let sentence = environment_error(&ProgramFailure::Failed(message.to_owned()), 1).to_string();
            assert!(sentence.contains(remedy), "{message}: {sentence}");
            assert!(sentence.contains("TICKPATH_PYTHON"), "{message}: {sentence}");
        }
    }

    #[test]
    fn packages_are_fetched_by_their_hashes_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (record, cache) = (folder.path().join("record"), folder.path().join("cache"));
        fs::create_dir(&cache).unwrap();
        // A program that makes an environment whose interpreter records its arguments.
        let pip = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\n", record.display());
        let venv = folder.path().join("venv");
        let text = format!(
            "#!/bin/sh\nmkdir -p \"$3/bin\"\ncat > \"$3/bin/python\" <<'END'\n{pip}END\nchmod 755 \"$3/bin/python\"\n"
        );
        write_program(&venv, &text);
        let facts = InterpreterFacts {
            executable: venv,
            version: OLDEST,
            build: String::new(),
            runtime: String::new(),
            makes_environments: true,
            versions: BTreeMap::new(),
            lacking: BTreeMap::new(),
        };
        let home = cache.join("python");
        make_environment(&facts, &home).unwrap();
        let record_text = fs::read_to_string(record).unwrap();
        let args: Vec<&str> = record_text.lines().collect();
        assert_eq!(args[..4], ["-I", "-m", "pip", "install"]);
        assert!(args.contains(&"--require-hashes"), "{args:?}");
        assert!(!args.iter().any(|word| word.contains("==")), "nothing but the file says what is wanted: {args:?}");
        assert_eq!(args[args.len() - 2], "--requirement");
        assert!(args[args.len() - 1].ends_with(REQUIREMENTS_FILE), "{args:?}");
        assert_eq!(fs::read_to_string(home.join(REQUIREMENTS_FILE)).unwrap(), REQUIREMENTS);
    }

    #[test]
    fn each_package_is_pinned_with_hashes() {
        let lines = REQUIREMENTS.replace("\\\n", " ");
        let pinned: Vec<&str> = lines.lines().filter(|line| !line.starts_with('#')).collect();
        for line in &pinned {
            let hashes: Vec<&str> =
                line.split_whitespace().filter_map(|word| word.strip_prefix("--hash=sha256:")).collect();
            let is_hash = |hash: &&str| hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
            assert!(line.contains("==") && !hashes.is_empty() && hashes.iter().all(is_hash), "{line}");
        }
        for (package, version) in PACKAGES {
            let pin = format!("{package}=={version} ");
            assert!(pinned.iter().any(|line| line.starts_with(&pin)), "{pin}");
        }
    }

    #[test]
    fn a_missing_package_is_named_with_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let packages = folder.path().join("packages");
        for (name, lacks, remedy) in [
            ("tickpath", "cannot import the package tickpath (No module named 'tickpath'); run", "-m pip install ."),
            ("redis", "has the package tickpath and cannot import redis (No", "-m pip install redis=="),
        ] {
            let program = stand_in(&folder.path().join(name), &packages);
            let error = Python::require_both(program.clone()).unwrap_err().to_string();
            for words in [lacks, remedy, "TICKPATH_PYTHON", &program.display().to_string()] {
                assert!(error.contains(words), "'{words}' is not in: {error}");
            }
            put_package(&packages, name);
        }
        let found = Python::require_both(stand_in(&folder.path().join("both"), &packages)).unwrap();
        let versions = ["tickpath", "redis", "hiredis"].map(|name| found.version_of(name));
        assert_eq!(versions, [Some("1.2"), Some("1.2"), None]);
    }

    /// Makes an interpreter that sees only the packages of this folder.
    fn stand_in(program: &Path, packages: &Path) -> PathBuf {
        let text = format!("#!/bin/sh\nPYTHONPATH='{}' exec python3 -S \"$@\"\n", packages.display());
        write_program(program, &text);
        program.to_owned()
    }

    fn write_program(program: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(program, text).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn put_package(packages: &Path, name: &str) {
        std::fs::create_dir_all(packages).unwrap();
        std::fs::write(packages.join(format!("{name}.py")), "__version__ = '1.2'\n").unwrap();
    }

    #[test]
    fn the_command_line_shows_neither_source_nor_settings() {
        const SCRIPT: [(&str, &str); 2] = [
            (
                "ends.py",
                "import json, os, sys\n\
                 sys.path.append(os.path.dirname(__file__))\n\
                 from middle import settings, shown\n\
                 print('\"ready\"', flush=True)\n\
                 print(json.dumps({'result': [settings, shown()]}), flush=True)\n",
            ),
            (
                "middle.py",
                "import json, os\n\
                 settings = json.loads(os.environ.pop('TICKPATH_SETTINGS'))\n\
                 def shown():\n    return open('/proc/self/cmdline').read().split('\\0')[:-1]\n",
            ),
        ];
        let lab = Lab::new(PathBuf::from("/nonexistent"), &()).unwrap();
        let python = Python {
            program: "python3".into(),
            runtime: String::new(),
            versions: BTreeMap::new(),
            is_own_environment: true,
        };
        for _again in 0..2 {
            let mut child = python.spawn(&lab, "script", &SCRIPT, &"redis://ann:secret@host").unwrap();
            let (settings, shown): (String, Vec<String>) = child.result(30.0).unwrap();
            assert_eq!(settings, "redis://ann:secret@host");
            let script = lab.folder().join("python").join("ends.py").display().to_string();
            // A launcher may prefix the interpreter's whole path.
            assert_eq!(shown[1..], ["-I".to_owned(), script]);
        }
    }
}
