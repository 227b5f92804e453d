//! Scripts as they are: a command that is run again and again, each time as a new process, with a companion beside it.
//!
//! ```text
//!   launcher ── spawns ──> companion (once)                    hook ──> PID.jsonl
//!            ── spawns ──> command (19 times, one by one)      hook ──> PID.jsonl
//! ```
//! Nothing of the scripts is changed: the hook comes with PYTHONPATH, and stamps what redis-py does. The first run is
//! looked at before the others: where it shows nothing, they would not either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::records::Watched;
use tickpath_harness::Child;
use tickpath_harness::{Lab, LabError};
use tickpath_result::median;
use tickpath_scratch::python::Python;

/// What runs the processes.
const LAUNCHER: (&str, &str) = ("launcher.py", include_str!("python/launcher.py"));

/// The hook's files: the first is read by every interpreter whose PYTHONPATH begins with their folder.
const HOOK: [(&str, &str); 4] = [
    ("sitecustomize.py", include_str!("python/hook/sitecustomize.py")),
    ("tickpath_hook.py", include_str!("python/hook/tickpath_hook.py")),
    ("tickpath_rows.py", include_str!("python/hook/tickpath_rows.py")),
    ("tickpath_stamps.py", include_str!("python/hook/tickpath_stamps.py")),
];

/// The launcher's own time beside the runs.
const AROUND_S: f64 = 20.0;

/// What is to be run.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Scripts {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What runs beside it, as one would type it; nothing if there is none.
    pub companion: Option<String>,
    pub repeat: u32,
    /// So many further runs without the hook, which tell what it costs.
    pub plain: u32,
    /// How long a run may take.
    pub timeout_s: f64,
    /// Variables for all of them.
    pub environment: BTreeMap<String, String>,
    /// Whether what they print goes to standard error; else it goes nowhere.
    pub show: bool,
}

/// What the launcher is told.
#[derive(Serialize)]
struct Launch<'a> {
    #[serde(flatten)]
    scripts: &'a Scripts,
    hook: &'a Path,
    records: &'a Path,
}

/// What the launcher tells.
#[derive(Debug, Clone, Default, Deserialize)]
struct Ran {
    runs: Vec<OneRun>,
    problem: Option<String>,
    subscribed: bool,
    hook_ns: f64,
}

/// One process of the command; nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, Deserialize)]
struct OneRun {
    hooked: bool,
    spawned: u64,
    ended: u64,
}

/// What came of the scripts.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// What each process wrote.
    pub watched: Vec<Watched>,
    /// What went wrong, and the remedy; what there is until then stays.
    pub problem: Option<String>,
    /// Whether the companion was seen to be subscribed before the first run.
    pub subscribed: bool,
    /// Runs of the command that came to their end, with the hook.
    pub runs: u64,
    /// What all stamps of one message cost.
    pub hook_message_ns: f64,
    /// What the hook costs a process: with it minus without it, medians; none if it was not tried.
    pub hook_process_ns: Option<f64>,
}

/// Writes the hook's files into the run's folder; gives their folder.
pub(super) fn hook(lab: &Lab<'_>) -> Result<PathBuf, LabError> {
    lab.put("hook", &HOOK)
}

/// Scripts of which the first run is over.
pub(super) struct Started {
    launcher: Child,
    records: tempfile::TempDir,
    /// How long the others may take, in seconds.
    rest_s: f64,
    /// What came of all, if it is over already.
    ended: Option<Ran>,
}

/// Runs the companion, and the command once.
pub(super) fn start(lab: &Lab<'_>, python: &Python, hook: &Path, scripts: &Scripts) -> Result<Started, LabError> {
    let records = tempfile::Builder::new().prefix("records-").tempdir_in(lab.folder());
    let records = records.map_err(|e| LabError::file(lab.folder(), e))?;
    let mut launcher = python.spawn(lab, "launcher", &[LAUNCHER], &())?;
    let launch = Launch { scripts, hook, records: records.path() };
    launcher.tell(&serde_json::to_string(&launch).expect("plain data"))?;
    let ended = launcher.result(scripts.timeout_s + AROUND_S)?;
    let rest_s = f64::from(scripts.repeat + scripts.plain) * scripts.timeout_s + AROUND_S;
    Ok(Started { launcher, records, rest_s, ended })
}

impl Started {
    /// What was seen in the first run; none if it went wrong.
    pub fn first(&self) -> Result<Option<Outcome>, LabError> {
        match self.ended {
            Some(_) => Ok(None),
            None => Outcome::read(self.records.path(), &Ran::default()).map(Some),
        }
    }

    /// Runs the command as often as it is to be run, and reads what the processes wrote.
    pub fn finish(mut self) -> Result<Outcome, LabError> {
        let ran = match self.ended {
            Some(ran) => ran,
            None => {
                self.launcher.tell("go")?;
                self.launcher.result(self.rest_s)?
            }
        };
        Outcome::read(self.records.path(), &ran)
    }
}

impl Ran {
    /// Runs with the hook and without it took turns; only those that had a turn of each kind are compared.
    fn hook_process_ns(&self) -> Option<f64> {
        let took = |hooked: bool| {
            let runs = self.runs.iter().filter(move |run| run.hooked == hooked);
            runs.map(|run| run.ended.saturating_sub(run.spawned) as f64)
        };
        let turns = took(false).count();
        Some(median(took(true).take(turns).collect())? - median(took(false).collect())?)
    }
}

impl Outcome {
    fn read(records: &Path, ran: &Ran) -> Result<Self, LabError> {
        Ok(Self {
            watched: Watched::load_all(records)?,
            problem: ran.problem.as_deref().map(tickpath_result::without_login),
            subscribed: ran.subscribed,
            runs: ran.runs.iter().filter(|run| run.hooked).count() as u64,
            hook_message_ns: ran.hook_ns.max(0.0),
            hook_process_ns: ran.hook_process_ns(),
        })
    }

    /// Why there is nothing to explain, if there is nothing: a sentence with the remedy.
    pub fn emptiness(&self, has_companion: bool) -> Option<String> {
        if self.watched.is_empty() {
            return Some(
                "no process of the command is Python that can be watched; give a Python script that uses redis-py, \
                 started without -I, -E and -S"
                    .to_owned(),
            );
        }
        if self.watched.iter().any(|watched| !watched.sent.is_empty()) {
            return None;
        }
        let uses_redis = |watched: &Watched| watched.process.as_ref().is_some_and(|process| process.import_ended > 0);
        if !self.watched.iter().any(uses_redis) {
            return Some(
                "no process of the command imports redis; give a script that publishes with redis-py, or pushes"
                    .to_owned(),
            );
        }
        let where_else = match has_companion && self.watched.iter().all(|watched| watched.received.is_empty()) {
            true => "the command is what publishes or pushes, --with what receives",
            false => "calls of publish, rpush and lpush are watched, one message each; pipelines and Lua are not",
        };
        Some(format!("no process of the command has published or pushed anything; {where_else}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::{Process, Sent};
    use super::*;

    fn process(import_ended: u64, sends: usize) -> Watched {
        let process = Process { import_ended, ..Process::default() };
        Watched { process: Some(process), sent: vec![Sent::default(); sends], ..Watched::default() }
    }

    #[test]
    fn what_is_missing_is_told_with_its_remedy() {
        for (watched, word) in [
            (vec![], Some("-I, -E and -S")),
            (vec![process(0, 0)], Some("imports redis")),
            (vec![process(5, 0)], Some("published")),
            (vec![process(5, 0), process(5, 1)], None),
        ] {
            let outcome = Outcome { watched, ..Outcome::default() };
            let told = outcome.emptiness(false);
            assert_eq!(told.is_some(), word.is_some(), "{told:?}");
            assert!(told.unwrap_or_default().contains(word.unwrap_or_default()), "{word:?}");
        }
    }

    #[test]
    fn the_hook_costs_a_process_what_turns_with_it_take_more() {
        let run = |hooked: bool, ms: u64| OneRun { hooked, spawned: 1, ended: 1 + ms * 1_000_000 };
        let runs = vec![run(true, 110), run(false, 100), run(true, 112), run(false, 101), run(true, 900)];
        assert_eq!(Ran { runs, ..Ran::default() }.hook_process_ns(), Some(11_000_000.0));
        assert_eq!(Ran { runs: vec![run(true, 5)], ..Ran::default() }.hook_process_ns(), None);
    }
}
