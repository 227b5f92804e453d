//! Guards around a measurement: one at a time on a machine, and a Ctrl-C that leaves nothing behind.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::sync::atomic::Ordering;

use anyhow::Context;
use rustix::process::geteuid;
use signal_hook::{consts::signal::SIGINT, flag};
use tickpath_clock::utc_ns;
use tickpath_lab_harness::interruption;
use tickpath_lab_result::ResultFile;
use tickpath_log::open_own_file;

use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::print_note;

/// The right to measure on this machine; released when it is dropped, or its process ends.
///
/// The right is the lock of a file with the owner's process id, start time and command. Each user has a file of its
/// own: any user may make files in a temporary folder, and could hold the lock of a shared file to block the benches
/// of all others.
pub struct BenchLock {
    _lock: Option<File>,
}

impl BenchLock {
    /// Waits until no other bench of this user runs: two benches at once would disturb each other. If the file cannot
    /// be used, the reason is printed on standard error and the bench measures without the lock.
    ///
    /// From then on the first Ctrl-C ends the processes of a run, which receive the terminal's signal too, and no
    /// other run begins; this process then removes what it made on servers and saves the results so far. A second
    /// Ctrl-C ends it at once.
    pub fn acquire() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("tickpath-bench-{}.lock", geteuid().as_raw()));
        let lock = match open_own_file(&path) {
            Ok(file) => Some(lock_file(file)?),
            Err(reason) => {
                print_note(&format!(
                    "cannot lock {} ({reason}); benches that run at the same time disturb each other's measurements",
                    path.display()
                ));
                None
            }
        };
        flag::register_conditional_shutdown(SIGINT, 130, interruption().clone()).context("cannot listen for Ctrl-C")?;
        flag::register(SIGINT, interruption().clone()).context("cannot listen for Ctrl-C")?;
        Ok(Self { _lock: lock })
    }

    /// Returns whether Ctrl-C was pressed.
    pub fn is_interrupted(&self) -> bool {
        interruption().load(Ordering::Relaxed)
    }

    /// Ends a measurement that is `done` or failed: a partial result is marked as such, shown and saved. A Ctrl-C is
    /// no error.
    pub fn finish(
        self,
        done: anyhow::Result<()>,
        result: &mut ResultFile,
        show: impl FnOnce(&mut ResultFile) -> anyhow::Result<()>,
        verdict: impl FnOnce(&ResultFile) -> CliOutcome,
    ) -> anyhow::Result<CliOutcome> {
        let is_interrupted = self.is_interrupted();
        if let Err(error) = &done {
            mark_partial(result, &if is_interrupted { "interrupted".to_owned() } else { format!("{error:#}") });
        }
        if !result.runs.is_empty() {
            show(result)?;
        }
        match done {
            _ if is_interrupted => Ok(CliOutcome::Interrupted),
            done => done.map(|()| verdict(result)),
        }
    }
}

/// Notes in the result that the bench broke off, and why, unless a run has that note already.
fn mark_partial(result: &mut ResultFile, why: &str) {
    if !result.runs.iter().flat_map(|run| &run.notes).any(|note| note.contains(why)) {
        result.findings.push(format!("the bench broke off after these runs: {why}"));
    }
}

/// Locks the file. A wait for the lock is always printed: nothing else shows why the command is stalled.
fn lock_file(mut file: File) -> anyhow::Result<File> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // The text is for people only: a failure to read it does not matter.
            let _ = file.read_to_string(&mut text);
            let holder = describe_holder(&text);
            print_note(&format!("{holder}; waiting until it ends, because two benches disturb each other"));
            file.lock().context("cannot wait for another bench")?;
        }
        Err(TryLockError::Error(error)) => return Err(error).context("cannot ask whether another bench runs"),
    }
    // A file owned by root cannot be written by other users; its lock works all the same.
    let text = format!("{} {} {}", std::process::id(), utc_ns() / 1_000_000_000, command());
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
    Ok(file)
}

/// Returns the command of this process without its arguments: `tickpath bench queue`.
fn command() -> String {
    let is_word = |word: &String| word.chars().all(|c| c.is_ascii_lowercase());
    let words: Vec<String> = std::env::args().skip(1).take_while(is_word).take(2).collect();
    format!("tickpath {}", words.join(" "))
}

/// Returns a description of the lock's holder from the text in its file: process, start in UTC seconds, command.
fn describe_holder(text: &str) -> String {
    let mut parts = text.splitn(3, ' ');
    let (pid, since, command) = (parts.next(), parts.next().and_then(|since| since.parse::<u64>().ok()), parts.next());
    let process =
        pid.filter(|pid| !pid.is_empty()).map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
    match (since, command) {
        (Some(since), Some(command)) => {
            let seconds = (utc_ns() / 1_000_000_000).saturating_sub(since);
            format!("{process} ({command}) has been measuring on this machine for {seconds} s")
        }
        _ => format!("{process} is measuring on this machine"),
    }
}
