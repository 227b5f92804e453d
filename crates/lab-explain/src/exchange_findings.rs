//! Findings about calls to exchanges and messages from them, in plain sentences: a pure function of the file.

use super::findings::{MIN_SHARE, WORKLOAD, hook, message_ns, share, stage_ns, stage_sum};
use super::stages::StageGroup;
use tickpath_lab_report::duration;
use tickpath_lab_result::{ResultFile, Run, RunPhase, StageKind};

/// Returns a finding for each method and each subscription: of its further calls, if there are some.
pub(super) fn exchange_findings(result: &ResultFile) -> Vec<String> {
    if result.workload != WORKLOAD {
        return Vec::new();
    }
    let runs = || result.runs.iter().filter(|run| run.valid && run.params.text("call").is_some());
    let has_further = |run: &Run| runs().any(|other| other.phase == RunPhase::Steady && is_same(run, other));
    let leading = runs().filter(|run| run.phase == RunPhase::Steady || !has_further(run));
    let mut sentences: Vec<String> = leading.filter_map(sentence).collect();
    sentences.extend(runs().find_map(hook));
    sentences
}

/// Returns whether two runs are of the same method.
fn is_same(one: &Run, other: &Run) -> bool {
    one.client == other.client && one.target == other.target && one.params.text("call") == other.params.text("call")
}

fn sentence(run: &Run) -> Option<String> {
    let whole = message_ns(run)?;
    let part = |ns: f64| format!("{} ({})", duration(ns), share(ns, whole));
    let python = part(stage_sum(run, |_, group| group == StageGroup::Python));
    let call = run.params.text("call")?;
    let (client, exchange) = (&run.client, &run.target);
    if run.timed_from.as_deref() == Some("read") {
        return Some(format!(
            "A message of {client} {call} ({exchange}) is with the script {} after its read, {python} of them Python.",
            duration(whole)
        ));
    }
    let mut parts =
        vec![format!("{} the exchange and the network", part(stage_ns(run, "answer"))), format!("{python} Python")];
    for (stage, what) in [
        ("connect_exchange", "the connect"),
        ("log_on", "the logon"),
        ("load_markets", "the loading of the markets"),
        ("rate_limit", "the library's own rate limiter"),
    ] {
        let ns = stage_ns(run, stage);
        if ns >= MIN_SHARE * whole {
            parts.push(format!("{} {what}", part(ns)));
        }
    }
    let rest = run.stages.iter().filter(|stage| stage.kind == StageKind::Unexplained).find_map(|stage| stage.p50_ns);
    parts.extend(rest.map(|ns| format!("{} unexplained", part(ns))));
    Some(format!("{client} {call} ({exchange}) takes {}: {}.", duration(whole), parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::stages::{measured, unexplained};
    use super::*;

    fn run(phase: RunPhase, stages: &[(&str, f64)]) -> Run {
        let mut run = Run {
            client: "ccxt".to_owned(),
            target: "okx".to_owned(),
            phase,
            valid: true,
            timed_from: Some("call".to_owned()),
            ..Run::default()
        };
        run.params.set("call", "create_order");
        let kind =
            |name: &str, ns| if name == "unexplained" { unexplained(name, ns).unwrap() } else { measured(name, ns) };
        run.stages = stages.iter().map(|(name, ns)| kind(name, *ns)).collect();
        run.figures.insert("message_ns".to_owned(), stages.iter().map(|(_, ns)| ns).sum());
        run
    }

    fn found(runs: Vec<Run>) -> Vec<String> {
        let mut result = ResultFile::new(WORKLOAD, "tickpath explain", "2026-01-01T00:00:00Z");
        result.runs = runs;
        exchange_findings(&result)
    }

    #[test]
    fn a_call_is_split_into_the_exchange_and_python() {
        let cold = run(RunPhase::Cold, &[("sign", 1e6), ("connect_exchange", 8e6), ("answer", 1e6)]);
        let parts = [("sign", 100e3), ("rate_limit", 300e3), ("answer", 500e3), ("unexplained", 100e3)];
        let further = run(RunPhase::Steady, &parts);
        let expected = "ccxt create_order (okx) takes 1 ms: 500 µs (50 %) the exchange and the network, 100 µs (10 %) \
                        Python, 300 µs (30 %) the library's own rate limiter, 100 µs (10 %) unexplained.";
        assert_eq!(found(vec![cold.clone(), further]), [expected]);
        let alone = found(vec![cold]);
        assert!(alone[0].contains("8 ms (80 %) the connect"), "{alone:?}");
    }

    #[test]
    fn a_message_is_timed_until_the_script_has_it() {
        let mut message = run(RunPhase::Steady, &[("decrypt", 100e3), ("parse_json", 50e3)]);
        message.timed_from = Some("read".to_owned());
        let expected = "A message of ccxt create_order (okx) is with the script 150 µs after its read, 150 µs (100 %) of \
                        them Python.";
        assert_eq!(found(vec![message.clone()]), [expected]);
        message.valid = false;
        assert!(found(vec![message]).is_empty());
    }
}
