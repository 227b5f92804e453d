//! Programs that run to their end, and the folder in the user's cache that keeps their output.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prefix of unfinished folders; the maker's process id follows.
const UNFINISHED: &str = "making-";

/// The error of the cache's folder.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}; set XDG_CACHE_HOME to a folder that you may write to")]
pub struct FolderError {
    /// The folder.
    pub path: PathBuf,
    /// The operating system's error.
    pub reason: io::Error,
}

/// Returns the cache's folder: in the user's cache, or without one a folder of the user's in the temporary folder.
pub(crate) fn cache() -> Result<PathBuf, FolderError> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let usual = usual.map(|folder| folder.join("tickpath"));
    match usual.filter(|folder| fs::create_dir_all(folder).is_ok()) {
        Some(folder) => Ok(folder),
        None => temporary_cache(),
    }
}

/// Returns the temporary cache, which must be the user's own: another user could create it first and plant programs.
fn temporary_cache() -> Result<PathBuf, FolderError> {
    let everybodys = std::env::temp_dir();
    let own_file = tempfile::tempfile().and_then(|file| file.metadata());
    let me = own_file.map_err(|reason| FolderError { path: everybodys.clone(), reason })?.uid();
    let path = everybodys.join(format!("tickpath.{me}"));
    let made = match DirBuilder::new().mode(0o700).create(&path) {
        Err(reason) if reason.kind() != io::ErrorKind::AlreadyExists => Err(reason),
        _ => fs::symlink_metadata(&path),
    };
    match made {
        Ok(found) if found.is_dir() && found.uid() == me => Ok(path),
        Ok(_) => Err(FolderError { path, reason: io::Error::other("it belongs to another user") }),
        Err(reason) => Err(FolderError { path, reason }),
    }
}

/// Makes a folder that becomes `home` when it is complete. Unfinished folders of killed processes beside it are
/// removed.
pub(crate) fn create_unfinished(home: &Path) -> Result<tempfile::TempDir, FolderError> {
    let folder = home.parent().expect("it lies in the cache");
    remove_unfinished(folder);
    let prefix = format!("{UNFINISHED}{}-", std::process::id());
    let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(folder);
    made.map_err(|reason| FolderError { path: folder.to_owned(), reason })
}

/// Renames a complete folder to `home`. If two processes finish at the same moment, both use the winner's.
pub(crate) fn finish(made: tempfile::TempDir, home: &Path) -> Result<(), FolderError> {
    match fs::rename(made.path(), home) {
        Err(reason) if !home.exists() => Err(FolderError { path: home.to_owned(), reason }),
        _ => Ok(()),
    }
}

/// Removes unfinished folders of killed processes.
fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED)?.split('-').next());
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Another process may be removing it too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The reason for a program's failure.
#[derive(Debug)]
pub(crate) enum ProgramFailure {
    /// The program is missing.
    Missing,
    /// The program did not end in time.
    Slow,
    /// The program failed, with this output.
    Failed(String),
}

impl ProgramFailure {
    /// Returns the last line of its output.
    pub(crate) fn last_line(&self) -> String {
        match self {
            Self::Missing => "there is no such program".to_owned(),
            Self::Slow => "it does not end".to_owned(),
            Self::Failed(text) => text.trim().lines().last().unwrap_or("it failed without output").to_owned(),
        }
    }
}

/// Runs a program to its end, limited in time and by this process's life; returns its output. `place` sets its folder
/// and environment.
pub(crate) fn run(
    seconds: u32,
    program: &Path,
    arguments: &[&OsStr],
    configure: impl FnOnce(&mut Command),
) -> Result<String, ProgramFailure> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "timeout", "-k", "2", &seconds.to_string()]).arg(program).args(arguments);
    command.stdin(Stdio::null());
    configure(&mut command);
    let needs = |e| ProgramFailure::Failed(format!("setpriv does not run ({e}); it is a part of util-linux"));
    let output = command.output().map_err(needs)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        Some(0) => Ok(text(&output.stdout)),
        // Exit codes of `timeout`: too late, and not executable.
        Some(124 | 137) => Err(ProgramFailure::Slow),
        Some(126 | 127) => Err(ProgramFailure::Missing),
        _ => Err(ProgramFailure::Failed(text(&output.stdout) + &text(&output.stderr))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hanging_program_is_killed_and_a_missing_one_reported() {
        let slow = run(1, "sleep".as_ref(), &[OsStr::new("600")], |_| ());
        assert!(matches!(slow, Err(ProgramFailure::Slow)), "{slow:?}");
        let missing = run(10, "/nonexistent".as_ref(), &[], |_| ());
        assert!(matches!(missing, Err(ProgramFailure::Missing)), "{missing:?}");
    }
}
