//! Unchanged scripts: a command that is run repeatedly, each time as a new process, with a companion beside it.
//!
//! ```text
//!   launcher ── spawns ──> companion (once)                    hook ──> PID.jsonl
//!            ── spawns ──> command (19 times, one by one)      hook ──> PID.jsonl
//! ```
//! The scripts are unchanged: the hook is loaded by PYTHONPATH, and stamps the calls of the client library. The first run is checked
//! before the others: if it shows nothing, they would not either.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::records::{ProcessDescription, ProcessTrace};
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::median;
use tickpath_lab_tools::python::Python;

/// Program that runs the processes.
const LAUNCHER: (&str, &str) = ("launcher.py", include_str!("python/launcher.py"));

/// Files of the hook: every interpreter whose PYTHONPATH begins with their folder loads the first one.
pub(super) const HOOK: [(&str, &str); 8] = [
    ("sitecustomize.py", include_str!("python/hook/sitecustomize.py")),
    ("tickpath_hook.py", include_str!("python/hook/tickpath_hook.py")),
    ("tickpath_rows.py", include_str!("python/hook/tickpath_rows.py")),
    ("tickpath_stamps.py", include_str!("python/hook/tickpath_stamps.py")),
    ("tickpath_calls.py", include_str!("python/hook/tickpath_calls.py")),
    ("tickpath_sockets.py", include_str!("python/hook/tickpath_sockets.py")),
    ("tickpath_ccxt.py", include_str!("python/hook/tickpath_ccxt.py")),
    ("tickpath_okx.py", include_str!("python/hook/tickpath_okx.py")),
];

/// Extra time of the launcher beside the runs, in seconds.
const LAUNCHER_S: f64 = 20.0;

/// Scripts to be run.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ScriptCommand {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Shell command of the companion; none if there is none.
    pub companion: Option<String>,
    pub repeat: u32,
    /// Number of further runs without the hook, which show its cost.
    pub plain: u32,
    /// Timeout of a run, in seconds.
    pub timeout_s: f64,
    pub environment: BTreeMap<String, String>,
    /// Whether their output goes to standard error; otherwise it is discarded.
    pub show: bool,
}

#[derive(Serialize)]
struct LauncherSettings<'a> {
    #[serde(flatten)]
    scripts: &'a ScriptCommand,
    hook: &'a Path,
    records: &'a Path,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct LauncherReport {
    runs: Vec<LaunchedRun>,
    problem: Option<String>,
    subscribed: bool,
    hook_ns: f64,
    call_ns: f64,
}

/// One process of the command; nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, Deserialize)]
struct LaunchedRun {
    hooked: bool,
    spawned: u64,
    ended: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ScriptOutcome {
    pub traces: Vec<ProcessTrace>,
    /// Failure and remedy, if any; rows until then stay.
    pub problem: Option<String>,
    /// Whether the companion was subscribed before the first run.
    pub subscribed: bool,
    /// Number of completed runs with the hook.
    pub runs: u64,
    /// Cost of all stamps of one message, in nanoseconds.
    pub hook_message_ns: f64,
    /// Cost of all stamps of one call to an exchange, in nanoseconds.
    pub hook_call_ns: f64,
    /// Cost of the hook per process, as the difference of medians with and without it; none if it was not measured.
    pub hook_process_ns: Option<f64>,
}

/// Scripts whose first run is over.
pub(super) struct StartedScripts {
    launcher: Child,
    records: tempfile::TempDir,
    /// Timeout of the other runs, in seconds.
    remaining_s: f64,
    /// The launcher's report, if it has ended already.
    ended: Option<LauncherReport>,
}

/// Starts the companion, and runs the command once.
pub(super) fn start(
    lab: &Lab<'_>,
    python: &Python,
    hook: &Path,
    scripts: &ScriptCommand,
) -> Result<StartedScripts, LabError> {
    let records = tempfile::Builder::new().prefix("records-").tempdir_in(lab.folder());
    let records = records.map_err(|e| LabError::file(lab.folder(), e))?;
    let mut launcher = python.spawn(lab, "launcher", &[LAUNCHER], &())?;
    let launch = LauncherSettings { scripts, hook, records: records.path() };
    launcher.send(&serde_json::to_string(&launch).expect("plain data"))?;
    let ended = launcher.result(scripts.timeout_s + LAUNCHER_S)?;
    let rest_s = f64::from(scripts.repeat + scripts.plain) * scripts.timeout_s + LAUNCHER_S;
    Ok(StartedScripts { launcher, records, remaining_s: rest_s, ended })
}

impl StartedScripts {
    /// Returns the outcome of the first run; none if it failed.
    pub fn first(&self) -> Result<Option<ScriptOutcome>, LabError> {
        match self.ended {
            Some(_) => Ok(None),
            None => ScriptOutcome::read(self.records.path(), &LauncherReport::default()).map(Some),
        }
    }

    /// Runs the command for the remaining times, and reads the rows of all processes.
    pub fn finish(mut self) -> Result<ScriptOutcome, LabError> {
        let ran = match self.ended {
            Some(ran) => ran,
            None => {
                self.launcher.send("go")?;
                self.launcher.result(self.remaining_s)?
            }
        };
        ScriptOutcome::read(self.records.path(), &ran)
    }
}

impl LauncherReport {
    /// Returns the hook's cost per process. Runs with and without it took turns; only complete turns are compared.
    fn hook_process_ns(&self) -> Option<f64> {
        let took = |hooked: bool| {
            let runs = self.runs.iter().filter(move |run| run.hooked == hooked);
            runs.map(|run| run.ended.saturating_sub(run.spawned) as f64)
        };
        let turns = took(false).count();
        Some(median(took(true).take(turns).collect())? - median(took(false).collect())?)
    }
}

impl ScriptOutcome {
    fn read(records: &Path, ran: &LauncherReport) -> Result<Self, LabError> {
        Ok(Self {
            traces: ProcessTrace::load_all(records)?,
            problem: ran.problem.as_deref().map(tickpath_bus::url::redact_logins),
            subscribed: ran.subscribed,
            runs: ran.runs.iter().filter(|run| run.hooked).count() as u64,
            hook_message_ns: ran.hook_ns.max(0.0),
            hook_call_ns: ran.call_ns.max(0.0),
            hook_process_ns: ran.hook_process_ns(),
        })
    }

    /// Returns a sentence with the remedy if there is nothing to explain.
    pub fn missing_traffic(&self, has_companion: bool) -> Option<String> {
        if self.traces.is_empty() {
            return Some(
                "no process of the command is Python that can be watched; give a Python script that uses redis-py, \
                 ccxt or python-okx, started without -I, -E and -S"
                    .to_owned(),
            );
        }
        let has_calls = |watched: &ProcessTrace| !watched.called.is_empty() || !watched.arrived.is_empty();
        if self.traces.iter().any(|watched| !watched.sent.is_empty() || has_calls(watched)) {
            return None;
        }
        let uses = |library: fn(&ProcessDescription) -> bool| {
            self.traces.iter().filter_map(|watched| watched.process.as_ref()).any(library)
        };
        if uses(|process| process.uses_exchange) {
            let lacking = self.traces.iter().flat_map(|watched| &watched.lacking).next();
            let lacking = lacking.map_or(String::new(), |why| format!("; {why}"));
            return Some(format!(
                "no process of the command has called an exchange, or received a message of one; give a script that \
                 places orders or watches the market{lacking}"
            ));
        }
        if !uses(|process| process.import_ended > 0) {
            return Some(
                "no process of the command imports redis, ccxt or okx; give a script that publishes with redis-py, or \
                 pushes, or one that trades with ccxt or python-okx"
                    .to_owned(),
            );
        }
        let where_else = match has_companion && self.traces.iter().all(|watched| watched.received.is_empty()) {
            true => "the command is what publishes or pushes, --with what receives",
            false => "calls of publish, rpush and lpush are watched, one message each; pipelines and Lua are not",
        };
        Some(format!("no process of the command has published or pushed anything; {where_else}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::{CallStamps, SendStamps};
    use super::*;

    fn process(import_ended: u64, sends: usize) -> ProcessTrace {
        let process = ProcessDescription { import_ended, ..ProcessDescription::default() };
        ProcessTrace { process: Some(process), sent: vec![SendStamps::default(); sends], ..ProcessTrace::default() }
    }

    #[test]
    fn missing_traffic_is_reported_with_a_remedy() {
        let trades = |called: Vec<CallStamps>| {
            let process = Some(ProcessDescription { uses_exchange: true, ..ProcessDescription::default() });
            let lacking = vec!["ccxt 1.0 lacks Exchange.sign".to_owned()];
            ProcessTrace { process, called, lacking, ..ProcessTrace::default() }
        };
        let [client, exchange, name] = ["ccxt", "okx", "create_order"].map(str::to_owned);
        let call = CallStamps { client, exchange, name, failed: 0, requests: 1, stamps: [1; 12], pauses: [[0; 2]; 4] };
        for (watched, word) in [
            (vec![], Some("-I, -E and -S")),
            (vec![process(0, 0)], Some("imports redis, ccxt or okx")),
            (vec![process(5, 0)], Some("published")),
            (vec![process(5, 0), process(5, 1)], None),
            (vec![trades(Vec::new())], Some("called an exchange")),
            (vec![trades(Vec::new())], Some("lacks Exchange.sign")),
            (vec![process(0, 0), trades(vec![call])], None),
        ] {
            let outcome = ScriptOutcome { traces: watched, ..ScriptOutcome::default() };
            let sentence = outcome.missing_traffic(false);
            assert_eq!(sentence.is_some(), word.is_some(), "{sentence:?}");
            assert!(sentence.unwrap_or_default().contains(word.unwrap_or_default()), "{word:?}");
        }
    }

    #[test]
    fn the_hook_cost_is_the_difference_of_alternating_runs() {
        let run = |hooked: bool, ms: u64| LaunchedRun { hooked, spawned: 1, ended: 1 + ms * 1_000_000 };
        let runs = vec![run(true, 110), run(false, 100), run(true, 112), run(false, 101), run(true, 900)];
        assert_eq!(LauncherReport { runs, ..LauncherReport::default() }.hook_process_ns(), Some(11_000_000.0));
        assert_eq!(LauncherReport { runs: vec![run(true, 5)], ..LauncherReport::default() }.hook_process_ns(), None);
    }
}
