//! Runs of scripts that use an exchange's client: one for the first calls of a method, one for its further calls, and
//! one for the messages of a subscription. A call that made several requests, or that failed, has no stages.

use std::collections::BTreeMap;

use super::account::{fill_stages, set_figure};
use super::call_stages::StagedTime;
use super::command::ScriptOutcome;
use super::pair::hop;
use super::records::{CallStamps, ProcessDescription, ProcessTrace};
use super::stages::PathFacts;
use tickpath_lab_result::{MessageCounts, Run, RunPhase, Software};

/// Client, exchange and method.
type CallName<'a> = [&'a str; 3];

/// Calls of one method in all processes.
#[derive(Default)]
struct MethodCalls<'a> {
    process: Option<&'a ProcessDescription>,
    /// First call of each process.
    firsts: Vec<&'a CallStamps>,
    /// All other calls.
    others: Vec<&'a CallStamps>,
    failed: u64,
    /// Number of calls that made several requests.
    several: u64,
}

/// Returns the runs of all methods and subscriptions, by client, exchange and name.
pub(super) fn exchange_runs(outcome: &ScriptOutcome) -> Vec<Run> {
    let mut runs = Vec::new();
    for (name, method) in methods(&outcome.traces) {
        let cold = method.run(name, RunPhase::Cold, &method.firsts, outcome);
        let mut cold = cold.unwrap_or_else(|| describe(name, RunPhase::Cold, method.process, outcome));
        cold.counts.errors = method.failed;
        cold.counts.sent += method.failed;
        set_figure(&mut cold, "hook_cost_per_message_ns", Some(outcome.hook_call_ns));
        set_figure(&mut cold, "hook_cost_per_process_ns", outcome.hook_process_ns);
        method.judge(name, &mut cold);
        runs.push(cold);
        runs.extend(method.run(name, RunPhase::Steady, &method.others, outcome));
    }
    runs.extend(subscriptions(outcome));
    runs
}

fn methods(traces: &[ProcessTrace]) -> BTreeMap<CallName<'_>, MethodCalls<'_>> {
    let mut methods: BTreeMap<CallName<'_>, MethodCalls<'_>> = BTreeMap::new();
    for trace in traces {
        let mut seen: Vec<CallName<'_>> = Vec::new();
        for call in &trace.called {
            let name = [call.client.as_str(), call.exchange.as_str(), call.name.as_str()];
            let method = methods.entry(name).or_default();
            method.process = method.process.or(trace.process.as_ref());
            if call.failed > 0 {
                method.failed += 1;
            } else if call.requests > 1 {
                method.several += 1;
            } else if seen.contains(&name) {
                method.others.push(call);
            } else {
                seen.push(name);
                method.firsts.push(call);
            }
        }
    }
    methods
}

impl MethodCalls<'_> {
    /// Returns the run of some calls; none without calls.
    fn run(&self, name: CallName<'_>, phase: RunPhase, calls: &[&CallStamps], outcome: &ScriptOutcome) -> Option<Run> {
        let times = calls.iter().filter_map(|call| StagedTime::of_call(&call.stamps, &call.pauses)).collect();
        let breakdown = StagedTime::breakdown(times)?;
        let mut run = describe(name, phase, self.process, outcome);
        fill_stages(&mut run, Some(breakdown), &PathFacts::default());
        let count = calls.len() as u64;
        run.counts = MessageCounts { sent: count, received: count, ..MessageCounts::default() };
        let took = calls.iter().filter_map(|call| Some((*call.stamps.first()?, *call.stamps.last()?)));
        run.hops.insert("round_trip".to_owned(), hop(took.collect()));
        run.notes.push("no intended times: latency counts from the call".to_owned());
        Some(run)
    }

    /// Adds notes on the calls without stages. A method whose calls have all failed has no valid run.
    fn judge(&self, [client, _, name]: CallName<'_>, run: &mut Run) {
        if self.several > 0 {
            let several = self.several;
            run.notes.push(format!("{several} calls of {client} {name} made several requests, and are in no stage"));
        }
        if self.failed > 0 {
            run.notes.push(format!("{} calls of {client} {name} failed, and are in no stage", self.failed));
            run.valid &= run.counts.received > 0;
        }
    }
}

/// Returns a run for each method or callback that hands over messages.
fn subscriptions(outcome: &ScriptOutcome) -> Vec<Run> {
    let mut found: BTreeMap<CallName<'_>, (Option<&ProcessDescription>, u64, Vec<StagedTime>)> = BTreeMap::new();
    for trace in &outcome.traces {
        for message in &trace.arrived {
            let name = [message.client.as_str(), message.exchange.as_str(), message.name.as_str()];
            let (process, received, times) = found.entry(name).or_default();
            *process = process.or(trace.process.as_ref());
            *received += 1;
            times.extend(StagedTime::of_message(&message.stamps));
        }
    }
    let runs = found.into_iter().map(|(name, (process, received, times))| {
        let mut run = describe(name, RunPhase::Steady, process, outcome);
        if times.is_empty() {
            run.refuse("the messages have no stamp of their read");
        }
        fill_stages(&mut run, StagedTime::breakdown(times), &PathFacts::default());
        run.timed_from = Some("read".to_owned());
        run.counts = MessageCounts { received, ..MessageCounts::default() };
        run.notes.push("a message counts from the read of the bytes that complete it".to_owned());
        run
    });
    runs.collect()
}

fn describe(
    [client, exchange, name]: CallName<'_>,
    phase: RunPhase,
    process: Option<&ProcessDescription>,
    outcome: &ScriptOutcome,
) -> Run {
    let mut run =
        Run { target: exchange.to_owned(), client: client.to_owned(), phase, repeat: 1, valid: true, ..Run::default() };
    run.params.set("call", name);
    run.params.set("processes", outcome.runs);
    if let Some(process) = process {
        run.params.set("script", process.program.as_str());
        run.software = Software {
            client: Some(client.to_owned()),
            client_version: version(client, process),
            runtime: Some(process.runtime.clone()),
            ..Software::default()
        };
    }
    for why in outcome.traces.iter().flat_map(|trace| &trace.lacking) {
        if !run.notes.contains(why) {
            run.notes.push(why.clone());
        }
    }
    if let Some(problem) = &outcome.problem {
        run.refuse(problem.as_str());
    }
    run
}

/// Returns the version of a client's package.
fn version(client: &str, process: &ProcessDescription) -> Option<String> {
    let package = if client == "python-okx" { "okx" } else { "ccxt" };
    process.versions.get(package).cloned()
}

#[cfg(test)]
mod tests {
    use super::super::records::ArrivalStamps;
    use super::*;

    fn call(name: &str, failed: u64, requests: u64) -> CallStamps {
        let stamps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map(|stamp| stamp * 1_000);
        let [client, exchange, name] = ["ccxt", "okx", name].map(str::to_owned);
        CallStamps { client, exchange, name, failed, requests, stamps, pauses: [[0; 2]; 4] }
    }

    fn outcome(called: Vec<CallStamps>, arrived: Vec<ArrivalStamps>) -> ScriptOutcome {
        let lacking = vec!["ccxt 1.0 lacks Exchange.sign".to_owned(); 2];
        let process = Some(ProcessDescription::default());
        let trace = ProcessTrace { process, called, arrived, lacking, ..ProcessTrace::default() };
        ScriptOutcome { traces: vec![trace.clone(), trace], runs: 2, ..ScriptOutcome::default() }
    }

    #[test]
    fn the_first_call_of_each_process_is_cold() {
        let calls = vec![call("create_order", 0, 1), call("create_order", 0, 1), call("create_order", 0, 1)];
        let runs = exchange_runs(&outcome(calls, Vec::new()));
        let found: Vec<_> = runs.iter().map(|run| (run.phase, run.counts.received)).collect();
        assert_eq!(found, [(RunPhase::Cold, 2), (RunPhase::Steady, 4)]);
        for run in &runs {
            assert_eq!(run.params.text("call").as_deref(), Some("create_order"));
            assert_eq!(run.hops["round_trip"].count, run.counts.received);
            assert_eq!(run.notes.iter().filter(|note| note.contains("lacks Exchange.sign")).count(), 1);
        }
    }

    #[test]
    fn calls_that_fail_or_make_several_requests_are_counted_without_stages() {
        let calls = vec![call("edit_order", 1, 1), call("edit_order", 0, 3), call("edit_order", 0, 1)];
        let runs = exchange_runs(&outcome(calls, Vec::new()));
        let [run] = &runs[..] else { panic!("{runs:?}") };
        assert_eq!((run.counts.sent, run.counts.received, run.counts.errors), (4, 2, 2));
        for words in ["2 calls of ccxt edit_order failed", "2 calls of ccxt edit_order made several"] {
            assert!(run.notes.iter().any(|note| note.contains(words)), "{:?}", run.notes);
        }
        for (failed, requests, valid) in [(0, 5, true), (1, 1, false)] {
            let runs = exchange_runs(&outcome(vec![call("fetch_markets", failed, requests)], Vec::new()));
            let [run] = &runs[..] else { panic!("{runs:?}") };
            assert_eq!((run.valid, run.stages.len()), (valid, 0), "{run:?}");
        }
    }

    #[test]
    fn messages_are_timed_from_their_read() {
        let [client, exchange, name] = ["ccxt.pro", "okx", "watch_ticker"].map(str::to_owned);
        let message = ArrivalStamps { client, exchange, name, stamps: [1, 3, 5, 7, 9, 11, 13] };
        let runs = exchange_runs(&outcome(Vec::new(), vec![message]));
        let [run] = &runs[..] else { panic!("{runs:?}") };
        assert_eq!((run.timed_from.as_deref(), run.counts.received), (Some("read"), 2));
        assert_eq!(run.figures["message_ns"], 12.0);
    }
}
