//! Runs of unchanged scripts: the user's, and our copies of the published ones, one publish per process.
//!
//! The first call of a process is cold, with its connection made inside; its later calls are steady. There are no
//! intended times: latency counts from the call. A push to a list and its pop count as a message too.

use std::collections::BTreeSet;

use super::account::{fill_connect, fill_payload_clock, fill_stages, fill_waiting, set_figure};
use super::bench::ExplainBench;
use super::command::{self, ScriptCommand, ScriptOutcome};
use super::exchange_runs::exchange_runs;
use super::pair::{Flavour, MessagePath, ReceiveMode, hop};
use super::records::{
    MatchedMessages, MessageStamps, ProcessDescription, ProcessTrace, ReceiveStamps, SendStamps, busiest_subscriber,
    match_messages,
};
use super::server::{ExplainedServer, PUBLISH};
use super::settings::ExplainedClient;
use super::stages::{PathFacts, PollTiming, before, breakdown, breakdown_of_calls};
use super::traffic::ScriptTraffic;
use tickpath_bus::url::redact_logins;
use tickpath_lab_harness::{LabError, StabilityCheck};
use tickpath_lab_result::{MessageCounts, ResultFile, Run, RunPhase, Software, median};

/// Max number of runs of a command without the hook.
const MAX_PLAIN_RUNS: u32 = 5;

/// Number of runs of our copies, as in the published experiment.
pub(super) const PUBLISHED_RUNS: u32 = 19;

/// Approximate duration of one run in seconds, for estimates only.
const RUN_S: f64 = 0.25;

/// Approximate wait of a subscriber between two runs.
const BETWEEN_RUNS_NS: u64 = 100_000_000;

/// Our copies of the published scripts.
const PUBLISHER: (&str, &str) = ("publish.py", include_str!("python/one_publish.py"));
const SUBSCRIBER: (&str, &str) = ("subscribe.py", include_str!("python/subscribe.py"));

/// Returns the approximate duration of a command's runs in seconds, including those without the hook.
pub(super) fn estimate(repeat: u32) -> f64 {
    seconds(repeat + repeat.min(MAX_PLAIN_RUNS))
}

/// Returns the approximate duration of this number of runs, in seconds.
pub(super) fn seconds(runs: u32) -> f64 {
    f64::from(runs) * RUN_S + 1.0
}

pub(super) fn explain_user_scripts(
    bench: &mut ExplainBench<'_>,
    command: &[String],
    companion: Option<&str>,
    result: &mut ResultFile,
) -> Result<(), LabError> {
    let settings = bench.settings;
    let scripts = ScriptCommand {
        command: command.to_vec(),
        companion: companion.map(str::to_owned),
        repeat: settings.repeat,
        plain: settings.repeat.min(MAX_PLAIN_RUNS),
        timeout_s: settings.timeout_s,
        // Python's launcher sets its own value, which must not reach the scripts.
        environment: std::env::var("PYTHONSAFEPATH").map(|v| ("PYTHONSAFEPATH".to_owned(), v)).into_iter().collect(),
        show: true,
    };
    let about = |run: &mut Run| {
        run.params.set("command", redact_logins(&command.join(" ")));
        if let Some(companion) = companion {
            run.params.set("companion", redact_logins(companion));
        }
    };
    bench.traffic = explain(bench, &scripts, about, result)?;
    Ok(())
}

/// Explains the published case: one publish per process, 19 times, to a subscriber that spins on get_message.
pub(super) fn explain_published_case(bench: &mut ExplainBench<'_>, result: &mut ResultFile) -> Result<(), LabError> {
    let repeat = bench.settings.repeat;
    let scripts = own_scripts(bench, Flavour::Blocking, ReceiveMode::Spin, repeat)?;
    let about = |run: &mut Run| {
        run.params.set("case", "one-publish-per-process");
        run.params.set("receive", ReceiveMode::Spin.name());
        run.notes.push(
            "as published: redis-py without hiredis, one publish a process through a lazy connection, to a subscriber \
             that spins on get_message()"
                .to_owned(),
        );
    };
    explain(bench, &scripts, about, result).map(|_| ())
}

/// Runs the cold phase of our own clients: a new process for each message, to a subscriber in a blocking loop.
pub(super) fn explain_cold(
    bench: &mut ExplainBench<'_>,
    flavour: Flavour,
    result: &mut ResultFile,
) -> Result<(), LabError> {
    let scripts = own_scripts(bench, flavour, ReceiveMode::Listen, PUBLISHED_RUNS)?;
    let about = |run: &mut Run| {
        run.params.set("receive", ReceiveMode::Listen.name());
        run.notes.push("a new process for each message; redis-py without hiredis".to_owned());
    };
    explain(bench, &scripts, about, result).map(|_| ())
}

/// Runs scripts, fills their runs into the result, and returns their traffic.
fn explain(
    bench: &mut ExplainBench<'_>,
    scripts: &ScriptCommand,
    about: impl Fn(&mut Run),
    result: &mut ResultFile,
) -> Result<Option<ScriptTraffic>, LabError> {
    let around = StabilityCheck::begin(bench.lab, bench.settings.cpus)?;
    let first = result.runs.len();
    let done = observe(bench, scripts).and_then(|sight| sight.fill_result(bench, scripts, about, result));
    let ended = around.end(bench.lab, &mut result.runs[first..]);
    let traffic = done?;
    ended.map(|()| traffic)
}

/// Returns the median time of `times` cold messages, from the call until the script has the message.
pub(super) fn cold_message_ns(bench: &mut ExplainBench<'_>, flavour: Flavour, times: u32) -> Result<f64, LabError> {
    let scripts = ScriptCommand { plain: 0, ..own_scripts(bench, flavour, ReceiveMode::Listen, times)? };
    let sight = observe(bench, &scripts)?;
    if let Some(problem) = sight.outcome.problem {
        return Err(LabError::Failed(problem));
    }
    let sent = sight.outcome.traces.iter().flat_map(|watched| &watched.sent);
    let received =
        busiest_subscriber(&sight.outcome.traces).map(|watched| watched.received.clone()).unwrap_or_default();
    let took = match_messages(sent, &received).journeys.into_iter();
    let took = took.map(|journey| journey.received.handed.saturating_sub(journey.sent.called) as f64);
    Ok(median(took.collect()).unwrap_or(f64::NAN))
}

/// Returns our copies of the scripts, against the server under test.
fn own_scripts(
    bench: &ExplainBench<'_>,
    flavour: Flavour,
    receive: ReceiveMode,
    repeat: u32,
) -> Result<ScriptCommand, LabError> {
    let folder = bench.lab.write_files("scripts", &[PUBLISHER, SUBSCRIBER])?;
    let path = |name: &str| folder.join(name).display().to_string();
    let program = bench.python().program.display().to_string();
    let (publish, subscribe) = match (flavour, receive) {
        (Flavour::Blocking, ReceiveMode::Spin) => ("blocking", "spin"),
        (Flavour::Blocking, _) => ("blocking", "listen"),
        (Flavour::Asyncio | Flavour::Uvloop, _) => ("asyncio", "asyncio"),
    };
    let url = bench.target.as_ref().map(ExplainedServer::python_url).unwrap_or_default();
    let environment = [
        ("TICKPATH_EXPLAIN_URL", url),
        ("TICKPATH_EXPLAIN_CHANNEL", bench.channel("cold")),
        ("TICKPATH_EXPLAIN_PARSER", "python".to_owned()),
    ];
    Ok(ScriptCommand {
        command: vec![program.clone(), path(PUBLISHER.0), publish.to_owned()],
        companion: Some(format!("{} {} {subscribe}", quoted(&program), quoted(&path(SUBSCRIBER.0)))),
        repeat,
        plain: repeat.min(MAX_PLAIN_RUNS),
        timeout_s: bench.settings.timeout_s,
        environment: environment.map(|(name, value)| (name.to_owned(), value)).into(),
        show: false,
    })
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

struct ScriptObservation {
    outcome: ScriptOutcome,
    /// Server time of a PUBLISH, or a push, meanwhile.
    server_ns: Option<f64>,
}

fn observe(bench: &mut ExplainBench<'_>, scripts: &ScriptCommand) -> Result<ScriptObservation, LabError> {
    let runs = scripts.repeat + scripts.plain;
    bench.lab.step(&format!("explain: a new process {runs} times"), seconds(runs))?;
    let started = command::start(bench.lab, bench.python(), &bench.hook, scripts)?;
    let mut sends = PUBLISH.to_owned();
    if let Some(first) = started.first()? {
        if let Some(why) = first.missing_traffic(scripts.companion.is_some()) {
            return Err(LabError::Failed(why));
        }
        adopt_server(bench, &first);
        sends = ScriptTraffic::of(&first.traces).map_or(sends, |traffic| traffic.sends);
    }
    let began = bench.target.as_mut().and_then(|target| target.command_stats(&sends));
    let outcome = started.finish()?;
    let ended = bench.target.as_mut().and_then(|target| target.command_stats(&sends));
    let server_ns = began.zip(ended).and_then(|(began, ended)| ended.since(began));
    Ok(ScriptObservation { outcome, server_ns })
}

/// Adopts the server that the scripts connect to, if none was named and it accepts our connection.
fn adopt_server(bench: &mut ExplainBench<'_>, first: &ScriptOutcome) {
    let processes = first.traces.iter().filter_map(|watched| watched.process.as_ref());
    let urls: BTreeSet<&str> = processes.filter_map(|process| process.server.as_deref()).collect();
    if let (None, [url]) = (&bench.target, &Vec::from_iter(urls)[..]) {
        // The server's part stays unexplained without a connection.
        bench.target = ExplainedServer::named(bench.lab, url).ok();
    }
}

impl ScriptObservation {
    /// Fills the result with a run for the first calls and one for the others.
    fn fill_result(
        self,
        bench: &mut ExplainBench<'_>,
        scripts: &ScriptCommand,
        about: impl Fn(&mut Run),
        result: &mut ResultFile,
    ) -> Result<Option<ScriptTraffic>, LabError> {
        let Self { outcome, server_ns } = self;
        if let Some(why) = outcome.missing_traffic(scripts.companion.is_some()) {
            return Err(LabError::Failed(outcome.problem.unwrap_or(why)));
        }
        for mut run in exchange_runs(&outcome) {
            about(&mut run);
            result.runs.push(run);
        }
        let Some(traffic) = ScriptTraffic::of(&outcome.traces) else {
            return outcome.problem.map_or(Ok(None), |problem| Err(LabError::Failed(problem)));
        };
        let pushes = Some(&traffic).filter(|traffic| traffic.message_path() == MessagePath::Queue);
        let story = ScriptTrace::of(&outcome);
        let polls = story.subscriber.and_then(|subscriber| PollTiming::of(&subscriber.received));
        // Without the floor more stays unexplained, but the runs are kept.
        let floor = bench.path_facts(polls.is_some(), BETWEEN_RUNS_NS);
        let why = floor.as_ref().err().map(ToString::to_string);
        let between = PathFacts { server_ns, polls, ..floor.unwrap_or_default() };
        // The bare sockets were measured with a channel, not with a list.
        let between = if pushes.is_some() { PathFacts { wire_ns: None, ..between } } else { between };
        let runs = [Some(story.cold(&between, &outcome)), story.steady(&between)];
        for run in runs.into_iter().flatten() {
            let mut run = bench.describe(run);
            about(&mut run);
            if let Some(traffic) = pushes {
                rename_pushes(&mut run, &traffic.sends);
            }
            run.notes.extend(why.clone());
            judge(&mut run, &outcome, scripts);
            result.runs.push(run);
        }
        outcome.problem.map_or(Ok(Some(traffic)), |problem| Err(LabError::Failed(problem)))
    }
}

/// Rows of the processes, as calls and messages.
struct ScriptTrace<'a> {
    subscriber: Option<&'a ProcessTrace>,
    /// First call of each process, with the process.
    firsts: Vec<(&'a ProcessDescription, SendStamps)>,
    /// All other calls.
    others: Vec<SendStamps>,
    matched: MatchedMessages,
}

impl<'a> ScriptTrace<'a> {
    fn of(outcome: &'a ScriptOutcome) -> Self {
        let subscriber = busiest_subscriber(&outcome.traces);
        let (mut firsts, mut others) = (Vec::new(), Vec::new());
        for watched in &outcome.traces {
            let (Some(process), Some((first, rest))) = (&watched.process, watched.sent.split_first()) else { continue };
            firsts.push((process, *first));
            others.extend_from_slice(rest);
        }
        let sent = outcome.traces.iter().flat_map(|watched| &watched.sent);
        let matched = subscriber.map(|subscriber| match_messages(sent, &subscriber.received)).unwrap_or_default();
        Self { subscriber, firsts, others, matched }
    }

    fn cold(&self, between: &PathFacts, outcome: &ScriptOutcome) -> Run {
        let calls: Vec<SendStamps> = self.firsts.iter().map(|(_, sent)| *sent).collect();
        let mut run = self.run(RunPhase::Cold, &calls, between);
        let processes: Vec<(&ProcessDescription, u64)> =
            self.firsts.iter().map(|(process, sent)| (*process, sent.called)).collect();
        let mut stages = before(&processes);
        stages.append(&mut run.stages);
        run.stages = stages;
        let took = calls.iter().map(|sent| sent.returned.saturating_sub(sent.called) as f64);
        set_figure(&mut run, "publish_one_process_ns", median(took.collect()));
        if self.subscriber.is_some() {
            let message = run.figures.get("message_ns").copied();
            set_figure(&mut run, "message_one_process_ns", message);
        }
        fill_connect(&mut run, &calls, self.subscriber);
        set_figure(&mut run, "hook_cost_per_message_ns", Some(outcome.hook_message_ns));
        set_figure(&mut run, "hook_cost_per_process_ns", outcome.hook_process_ns);
        run.params.set("processes", outcome.runs);
        if self.matched.foreign > 0 {
            run.notes.push(format!(
                "{} further messages came to the subscriber: of the runs without stamps, or from others",
                self.matched.foreign
            ));
        }
        run
    }

    /// Returns the steady run; none if each process published once.
    fn steady(&self, between: &PathFacts) -> Option<Run> {
        (!self.others.is_empty()).then(|| self.run(RunPhase::Steady, &self.others, between))
    }

    fn run(&self, phase: RunPhase, calls: &[SendStamps], between: &PathFacts) -> Run {
        let wanted: BTreeSet<u64> = calls.iter().map(|sent| sent.called).collect();
        let journeys = self.matched.journeys.iter().filter(|journey| wanted.contains(&journey.sent.called));
        let journeys: Vec<MessageStamps> = journeys.copied().collect();
        let mut run = Run { phase, ..Run::default() };
        self.name_client(&mut run);
        let (sent, received) = (calls.len() as u64, journeys.len() as u64);
        let lost = if self.subscriber.is_some() { sent.saturating_sub(received) } else { 0 };
        run.counts = MessageCounts { sent, received, lost, ..MessageCounts::default() };
        run.hops.insert("publish".to_owned(), hop(calls.iter().map(|sent| (sent.called, sent.returned)).collect()));
        let Some(subscriber) = self.subscriber else {
            let alone: Vec<MessageStamps> =
                calls.iter().map(|sent| MessageStamps { sent: *sent, received: ReceiveStamps::default() }).collect();
            fill_stages(&mut run, breakdown_of_calls(&alone, between), between);
            run.notes.push(
                "no process that receives was watched: the stages end with the reply; name it with --with".to_owned(),
            );
            return run;
        };
        let arrivals = journeys.iter().map(|journey| (journey.sent.called, journey.received.handed));
        run.hops.insert("one_way".to_owned(), hop(arrivals.collect()));
        fill_stages(&mut run, breakdown(&journeys, between), between);
        let received: Vec<ReceiveStamps> = journeys.iter().map(|journey| journey.received).collect();
        fill_waiting(&mut run, &received, subscriber.cpu_percent());
        if let Some(process) = &subscriber.process {
            fill_payload_clock(&mut run, &journeys, process.utc_offset);
        }
        run
    }

    /// Names the publishers' client and software in the run.
    fn name_client(&self, run: &mut Run) {
        let is_asyncio = self.matched.journeys.iter().any(|journey| journey.received.resumed > 0);
        run.client =
            if is_asyncio { ExplainedClient::RedisPyAsyncio } else { ExplainedClient::RedisPy }.name().to_owned();
        let Some((process, _)) = self.firsts.first() else { return };
        run.target = process.server.clone().unwrap_or_else(|| "redis://".to_owned());
        let version = |name: &str| process.versions.get(name);
        run.software = Software {
            client: Some("redis-py".to_owned()),
            client_version: version("redis").map(|redis| match version("hiredis") {
                Some(hiredis) => format!("{redis} with hiredis {hiredis}"),
                None => format!("{redis} without hiredis"),
            }),
            runtime: Some(process.runtime.clone()),
            ..Software::default()
        };
        run.params.set("script", process.program.as_str());
    }
}

/// Renames the call and the server's time for a command that pushes.
fn rename_pushes(run: &mut Run, sends: &str) {
    run.params.set("sends", sends.to_uppercase());
    if let Some(hop) = run.hops.remove("publish") {
        run.hops.insert("push".to_owned(), hop);
    }
    if let Some(ns) = run.figures.remove("server_publish_ns") {
        run.figures.insert("server_push_ns".to_owned(), ns);
    }
}

/// Adds notes for readers, and the broken rules of honest measuring.
fn judge(run: &mut Run, outcome: &ScriptOutcome, scripts: &ScriptCommand) {
    run.notes.push("no intended times: latency counts from the call".to_owned());
    if !outcome.subscribed && scripts.companion.is_some() {
        run.notes.push("the companion did not subscribe before the first run".to_owned());
    }
    if let Some(problem) = &outcome.problem {
        run.refuse(problem.as_str());
    }
    if outcome.subscribed && run.counts.received == 0 {
        run.counts.lost = run.counts.sent;
    }
    if run.counts.lost > 0 {
        run.refuse(format!(
            "{} messages were sent and not received; start the receiver earlier, or look why it missed them",
            run.counts.lost
        ));
    }
}
