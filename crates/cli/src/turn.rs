//! Around a measurement: one at a time on a machine, and a Ctrl-C that leaves nothing behind.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Context;
use signal_hook::{consts::signal::SIGINT, flag};
use tickpath_harness::interruption;
use tickpath_result::{ResultFile, Run};

use crate::outcome::Outcome;
use crate::print::note;

/// The file whose lock is the turn. It says who has it.
const FILE: &str = "tickpath-bench.lock";

/// The right to measure on this machine; given back when it is dropped, or its process ends.
pub struct Turn {
    _lock: Option<File>,
}

impl Turn {
    /// Waits until nobody else measures: two at once would measure each other.
    ///
    /// From then on the first Ctrl-C ends the processes of a run, whom the terminal tells too, and no other run begins; this
    /// one then removes what it made on servers and saves what there is. The second one ends it at once.
    pub fn take(quiet: bool) -> anyhow::Result<Self> {
        // Who may not even read the file of another user goes without.
        let lock = file(&std::env::temp_dir().join(FILE)).map(|file| wait(file, quiet)).transpose()?;
        flag::register_conditional_shutdown(SIGINT, 130, interruption().clone()).context("cannot listen for Ctrl-C")?;
        flag::register(SIGINT, interruption().clone()).context("cannot listen for Ctrl-C")?;
        Ok(Self { _lock: lock })
    }

    /// Whether there was a Ctrl-C.
    pub fn is_interrupted(&self) -> bool {
        interruption().load(Ordering::Relaxed)
    }

    /// Ends a measurement that is `done` or broke off: what there is of a result says so, and is shown and saved. A Ctrl-C
    /// is no error.
    pub fn end(
        self,
        done: anyhow::Result<()>,
        result: &mut ResultFile,
        show: impl FnOnce(&mut ResultFile) -> anyhow::Result<()>,
        verdict: impl FnOnce(&ResultFile) -> Outcome,
    ) -> anyhow::Result<Outcome> {
        let is_interrupted = done.is_err() && self.is_interrupted();
        if let Err(error) = &done {
            mark(result, &if is_interrupted { "interrupted".to_owned() } else { format!("{error:#}") });
        }
        if !result.runs.is_empty() {
            show(result)?;
        }
        match done {
            Err(_) if is_interrupted => Ok(Outcome::Interrupted),
            done => done.map(|()| verdict(result)),
        }
    }
}

/// Says in the result that the bench broke off, and why, unless a run says so already.
fn mark(result: &mut ResultFile, why: &str) {
    let is_told = result.runs.iter().flat_map(|run| &run.notes).any(|note| note.contains(why));
    if let Some(last) = result.runs.last().filter(|_| !is_told) {
        let (target, client, repeat) = (last.target.clone(), last.client.clone(), last.repeat);
        let notes = vec![format!("the bench broke off after the run before: {why}")];
        result.runs.push(Run { target, client, repeat, notes, ..Run::default() });
    }
}

fn file(path: &Path) -> Option<File> {
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    opened.or_else(|_| File::open(path)).ok()
}

fn wait(mut file: File, quiet: bool) -> anyhow::Result<File> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut who = String::new();
            // The words are for people: without them it waits all the same.
            let _ = file.read_to_string(&mut who);
            if !quiet {
                note(&format!(
                    "process {} measures on this machine; waiting for its end, for two would measure each other",
                    who.trim()
                ));
            }
            file.lock().context("cannot wait for another bench")?;
        }
        Err(TryLockError::Error(error)) => return Err(error).context("cannot ask whether another bench runs"),
    }
    // Another user's file cannot be written; its lock is the same.
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
    Ok(file)
}
