//! Findings of a result in plain sentences: a pure function of the file.

use super::gain::FIGURE;
use super::stages::{PollTiming, StageGroup, stage_definition};
use tickpath_lab_report::{count, duration};
use tickpath_lab_result::{Comparison, ResultFile, Run, RunPhase, StageKind};

/// Workload name in these results.
pub const WORKLOAD: &str = "explain";

/// Min share of the whole for a part to get a sentence.
pub(super) const MIN_SHARE: f64 = 0.1;

/// Share of the whole from which on the connection is the main finding.
const MAIN_SHARE: f64 = 0.3;

/// Min ratio for a gain to get a sentence.
const MIN_CLEAR_GAIN: f64 = 1.2;

/// Max step of a clock as a share of a message's time; a coarser clock hides the measured time.
const MAX_STEP_SHARE: f64 = 0.05;

/// Returns the findings of a result, the most important first.
pub(super) fn findings(result: &ResultFile) -> Vec<String> {
    if result.workload != WORKLOAD {
        return Vec::new();
    }
    let cold = explained_run(result, RunPhase::Cold);
    let steady = explained_run(result, RunPhase::Steady);
    let Some(leading) = cold.or(steady) else { return Vec::new() };
    let mut sentences = Vec::new();
    sentences.extend(cold.iter().flat_map(|run| connect(run)));
    sentences.extend(python(leading));
    sentences.extend(server(leading));
    sentences.extend(cpu_wait(leading));
    sentences.extend(before_call(leading));
    sentences.extend(cold.zip(steady).and_then(|(cold, steady)| warm_connection(result, cold, steady)));
    sentences.extend(steady.filter(|_| cold.is_some()).into_iter().flat_map(python));
    sentences.extend(after_pause(result, steady));
    sentences.extend(polling(result, leading));
    sentences.extend(clock(leading));
    sentences.extend(persistence(result, leading));
    sentences.extend(import(result));
    sentences.extend(clear_gains(result, leading));
    sentences.extend(remainder(leading));
    sentences.extend(hook(leading));
    sentences
}

/// Min relevant gain: a smaller one is not worth changing a path for, however certain it is.
const MIN_GAIN: f64 = 0.05;

/// Returns a change's gain in words: the speed-up, with its interval over the rounds.
pub(super) fn gain(comparison: &Comparison) -> Option<String> {
    let ratio = comparison.ratio?;
    let (low, high) = (comparison.low?, comparison.high?);
    Some(if (low..=high).contains(&1.0) || (ratio - 1.0).abs() < MIN_GAIN {
        format!("no gain seen, at most {} times ({} to {})", times(high), times(low), times(high))
    } else if ratio >= 1.0 {
        format!("{} times faster ({} to {})", times(ratio), times(low), times(high))
    } else {
        format!("{} times slower ({} to {})", times(1.0 / ratio), times(1.0 / high), times(1.0 / low))
    })
}

/// Returns the name of the change that a comparison is about.
pub(super) fn change(comparison: &Comparison) -> Option<&str> {
    comparison.name.strip_prefix("gain_").filter(|_| comparison.figure == FIGURE)
}

fn tried_change<'a>(result: &'a ResultFile, name: &str) -> Option<&'a Comparison> {
    result.comparisons.iter().find(|found| change(found) == Some(name))
}

/// Returns the first valid run of a phase that has stages, and is not about calls to an exchange.
fn explained_run(result: &ResultFile, phase: RunPhase) -> Option<&Run> {
    let is_it = |run: &&Run| run.valid && run.phase == phase && !run.stages.is_empty();
    result.runs.iter().filter(is_it).find(|run| run.params.text("call").is_none())
}

pub(super) fn message_ns(run: &Run) -> Option<f64> {
    run.figures.get("message_ns").copied().filter(|ns| *ns > 0.0)
}

/// Returns the sum of the stages selected by name and group.
pub(super) fn stage_sum(run: &Run, wanted: impl Fn(&str, StageGroup) -> bool) -> f64 {
    let parts = run.stages.iter().filter_map(|stage| Some((stage_definition(&stage.name)?, stage.p50_ns?)));
    parts.filter(|(part, _)| wanted(part.name, part.group)).map(|(_, ns)| ns).sum()
}

pub(super) fn stage_ns(run: &Run, name: &str) -> f64 {
    stage_sum(run, |found, _| found == name)
}

/// Describes a connection made inside the call, between its stamped start and end: its parts are estimates.
fn connect(run: &Run) -> Vec<String> {
    let Some((whole, connect)) = message_ns(run).zip(run.figures.get("connect_ns").copied()) else { return Vec::new() };
    if connect < MAIN_SHARE * whole {
        return Vec::new();
    }
    let mut sentences = vec![format!("Of {}, {} is the connect, not the publish.", duration(whole), duration(connect))];
    let lookup = stage_ns(run, "connect_lookup");
    if lookup >= MIN_SHARE * whole {
        sentences.push(format!(
            "{} of the connect is the resolution of the server's name: on its first use Python loads modules for that.",
            duration(lookup)
        ));
    }
    if let Some(commands) = run.figures.get("connect_commands").filter(|commands| **commands >= 1.0) {
        sentences.push(format!(
            "The handshake of this redis-py is {commands:.0} commands, each a round trip, before the first {}.",
            sends(run)
        ));
    }
    sentences
}

/// Returns the command that sends the run's messages.
fn sends(run: &Run) -> String {
    run.params.text("sends").unwrap_or_else(|| "PUBLISH".to_owned())
}

/// Returns the words for a message of the run's phase.
fn message(run: &Run) -> &'static str {
    match run.phase {
        RunPhase::Cold => "a cold message",
        RunPhase::Idle => "a message after a pause",
        RunPhase::Steady => "a message of a stream",
    }
}

fn python(run: &Run) -> Option<String> {
    let whole = message_ns(run)?;
    let parts = run.stages.iter().filter(|stage| {
        stage_definition(&stage.name)
            .is_some_and(|part| part.group == StageGroup::Python || part.name == "connect_client")
    });
    let [min, max] = parts.fold([0.0, 0.0], |[min, max], stage| {
        let ns = stage.p50_ns.unwrap_or(0.0);
        let bounds = stage.bounds_ns.unwrap_or([ns, ns]);
        [min + bounds[0], max + bounds[1]]
    });
    let server = stage_ns(run, "server");
    let is_python = run.client.starts_with("redis-py");
    (is_python && max > 0.0).then(|| {
        let phase = message(run);
        let server = match server > 0.0 {
            true => format!("; the server's own work, as it reports, is {}", share(server, whole)),
            false => String::new(),
        };
        let (min, max) = (share(min, whole), share(max, whole));
        let python = if min == max { min } else { format!("{min} to {max}") };
        format!("Python is {python} of {phase}{server}.")
    })
}

/// Describes the part that no client can avoid, and the rest above it.
fn server(run: &Run) -> Option<String> {
    let whole = message_ns(run)?;
    let [sockets, network] = [stage_ns(run, "send") + stage_ns(run, "kernel_and_wake_up"), stage_ns(run, "network")];
    let above = stage_ns(run, "server_and_clients");
    let far = if network > 0.0 { format!(", and {} the network", duration(network)) } else { String::new() };
    (above > 0.0).then(|| {
        format!(
            "Of {}, {} is what bare sockets need through a thread that only copies{far}; what is left, {} ({}), is the \
             server and both clients.",
            duration(whole),
            duration(sockets),
            duration(above),
            share(above, whole)
        )
    })
}

/// Describes a publisher that waited for a processor.
fn cpu_wait(run: &Run) -> Option<String> {
    let (whole, waited) = (message_ns(run)?, stage_ns(run, "waiting_for_a_cpu"));
    let why = if spins(run) { ": the subscriber that spins has one" } else { "" };
    (waited >= MIN_SHARE * whole)
        .then(|| format!("For {} the publisher only waited for a processor{why}.", duration(waited)))
}

/// Describes the cost of a process before its first call.
fn before_call(run: &Run) -> Option<String> {
    let before = stage_sum(run, |_, group| group == StageGroup::Before);
    let import = stage_ns(run, "import_redis");
    (before > 0.0).then(|| {
        format!(
            "Before its call each process took {}, {} of them to import redis: a process that stays pays that once.",
            duration(before),
            duration(import)
        )
    })
}

/// Compares the cold message with one over an open connection. The two did not take turns: only a tried change has a
/// ratio.
fn warm_connection(result: &ResultFile, cold: &Run, steady: &Run) -> Option<String> {
    let (cold, steady) = (message_ns(cold)?, message_ns(steady)?);
    let in_turn = tried_change(result, "warm_connection").and_then(gain);
    let in_turn = in_turn.map_or(String::new(), |gain| format!("; a warm connection, in turn with a cold one: {gain}"));
    (cold > steady).then(|| {
        format!(
            "A cold message takes {}, one over a connection that is there {}{in_turn}.",
            duration(cold),
            duration(steady)
        )
    })
}

/// Describes the first message after the longest pause.
fn after_pause(result: &ResultFile, steady: Option<&Run>) -> Option<String> {
    let idle = result.runs.iter().filter(|run| run.valid && run.phase == RunPhase::Idle && !run.stages.is_empty());
    let longest = idle.max_by_key(|run| run.params.whole("idle_ns"))?;
    let (slow, fast) = (message_ns(longest)?, message_ns(steady?)?);
    (slow > MIN_CLEAR_GAIN * fast).then(|| {
        format!(
            "The first message after {} of silence takes {}, one of a stream {}.",
            duration(longest.params.whole("idle_ns").unwrap_or_default() as f64),
            duration(slow),
            duration(fast)
        )
    })
}

/// Returns whether the subscriber polls, and its pause between polls if it sleeps; none if it blocks.
fn poll_pause(run: &Run) -> Option<Option<f64>> {
    run.figures.get("empty_polls_per_message").filter(|polls| **polls >= 1.0)?;
    let figure = |name: &str| run.figures.get(name).copied().unwrap_or(0.0);
    let polls = PollTiming { turn_ns: figure("spin_turn_ns"), pause_ns: figure("reader_pause_ns") };
    Some(polls.is_pausing().then_some(polls.pause_ns))
}

fn spins(run: &Run) -> bool {
    poll_pause(run) == Some(None)
}

/// Describes a polling subscriber, and its gain from blocking: the ratio measured for the same kind of polling.
fn polling(result: &ResultFile, run: &Run) -> Option<String> {
    let polls = count(run.figures.get("empty_polls_per_message").copied().unwrap_or(0.0) as u64);
    let Some(pause_ns) = poll_pause(run)? else {
        let cpu = run.figures.get("subscriber_cpu_percent");
        let cpu = cpu.map_or(String::new(), |percent| format!(" and {percent:.0} % of a processor"));
        let instead = tried_change(result, "listen")
            .and_then(gain)
            .map(|gain| format!("; a blocking listen instead, which sleeps between messages: {gain}"));
        let instead = instead.unwrap_or_default();
        return Some(format!("The subscriber spins: {polls} empty get_message calls a message{cpu}{instead}."));
    };
    let instead = tried_change(result, "no_sleep").and_then(gain).map_or_else(
        || "; a blocking listen waits without that".to_owned(),
        |gain| format!("; a blocking listen instead of get_message with 1 ms of sleep: {gain}"),
    );
    Some(format!(
        "The subscriber asks with get_message and pauses {} before it asks again, {polls} times a message: a message \
         waits about {} for that{instead}.",
        duration(pause_ns),
        duration(stage_ns(run, "sleep_turn"))
    ))
}

/// Describes a clock of the script that is too coarse.
fn clock(run: &Run) -> Option<String> {
    let step = run.figures.get("payload_clock_step_ns")?;
    let whole = message_ns(run)?;
    (*step >= MAX_STEP_SHARE * whole).then(|| {
        let own = run.figures.get("message_by_payload_clock_ns");
        let own = own.map_or(String::new(), |ns| format!(" ({} by that clock)", duration(*ns)));
        format!("Your clock ticks in {}: it cannot resolve {}{own}.", duration(*step), duration(whole))
    })
}

/// Describes the gain without persistence, the most frequent question.
fn persistence(result: &ResultFile, run: &Run) -> Option<String> {
    let gain = tried_change(result, "no_persistence").and_then(gain)?;
    let publishes = sends(run) == "PUBLISH";
    Some(format!("Without persistence: {gain}{}.", if publishes { "; PUBLISH itself writes no key" } else { "" }))
}

/// Describes the gain of another import; if it was not measured, the reason and the remedy.
fn import(result: &ResultFile) -> Option<String> {
    let found = tried_change(result, "import_tickpath")?;
    let effect = gain(found).unwrap_or_else(|| match &found.note {
        Some(why) => format!("not measured: {why}"),
        None => "not measured".to_owned(),
    });
    Some(format!(
        "`import tickpath` in place of redis-py, the same script over shared memory, both ends on this host: {effect}. \
         docs/redis-py.md has the lines that change, and tickpath.bridge keeps the broker for everybody else."
    ))
}

/// Lists the clear gains, the largest first, without changes that are in use already or do not apply.
fn clear_gains(result: &ResultFile, run: &Run) -> Option<String> {
    let has_hiredis = run.software.client_version.as_ref().is_some_and(|version| version.contains("with hiredis"));
    let is_news = |name: &str| match name {
        "hiredis" => !has_hiredis,
        "listen" => spins(run),
        "no_sleep" => poll_pause(run).flatten().is_some(),
        _ => true,
    };
    let clear =
        |found: &&Comparison| change(found).is_some_and(is_news) && found.low.is_some_and(|low| low >= MIN_CLEAR_GAIN);
    let mut found: Vec<&Comparison> = result.comparisons.iter().filter(clear).collect();
    found.sort_by(|a, b| b.ratio.unwrap_or(0.0).total_cmp(&a.ratio.unwrap_or(0.0)));
    let gains: Vec<String> = found
        .into_iter()
        .filter_map(|found| Some(format!("{} ({} times)", change(found)?.replace('_', " "), times(found.ratio?))))
        .collect();
    (!gains.is_empty()).then(|| format!("What gains most: {}.", gains.join(", ")))
}

/// Describes the unexplained remainder of the whole, or the excess over it.
fn remainder(run: &Run) -> Option<String> {
    let whole = message_ns(run)?;
    let sum = run.figures.get("stages_sum_percent").copied().unwrap_or(0.0);
    if sum.round() > 100.0 {
        return Some(format!(
            "The parts of {} come to {sum:.0} % of it: some were measured elsewhere, and what remains is not known.",
            message(run)
        ));
    }
    let left = run.stages.iter().filter(|stage| stage.kind == StageKind::Unexplained).filter_map(|stage| stage.p50_ns);
    let left = left.fold(0.0, |sum, ns| sum + ns);
    Some(format!("What remains unexplained of {}: {}.", message(run), share(left, whole)))
}

/// Describes the cost of the stamps.
pub(super) fn hook(run: &Run) -> Option<String> {
    let message = run.figures.get("hook_cost_per_message_ns")?;
    let process = run.figures.get("hook_cost_per_process_ns").filter(|ns| **ns > 0.0);
    let process = process.map_or(String::new(), |ns| format!(", and {} a process", duration(*ns)));
    Some(format!("The stamps themselves cost {} a message{process}.", duration(*message)))
}

/// Formats a part as a percentage of the whole.
pub(super) fn share(part: f64, whole: f64) -> String {
    let percent = 100.0 * part / whole;
    if percent < 1.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Formats a ratio with two digits.
fn times(ratio: f64) -> String {
    // Near one the second decimal is significant.
    if ratio < 0.95 || (ratio - 1.0).abs() < 0.1 {
        format!("{ratio:.2}")
    } else if ratio < 9.95 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::stages::{bounded, measured, unexplained};
    use super::*;

    fn run(phase: RunPhase, stages: &[(&str, f64)], figures: &[(&str, f64)]) -> Run {
        let is_within = |name: &str| stage_definition(name).unwrap().group != StageGroup::Before;
        let whole: f64 = stages.iter().filter(|(name, _)| is_within(name)).map(|(_, ns)| ns).sum();
        let stage = |name: &str, ns: f64| match name {
            "unexplained" | "server_and_clients" => unexplained(name, ns).unwrap(),
            "connect_client" => bounded(name, ns, 0.0, ns),
            "server" => bounded(name, ns, 0.0, 1e6),
            _ => measured(name, ns),
        };
        let mut run = Run { phase, client: "redis-py".to_owned(), valid: true, ..Run::default() };
        run.stages = stages.iter().map(|(name, ns)| stage(name, *ns)).collect();
        run.figures = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        run.figures.insert("message_ns".to_owned(), whole);
        run
    }

    fn cold() -> Run {
        run(
            RunPhase::Cold,
            &[
                ("interpreter_start", 30e6),
                ("import_redis", 120e6),
                ("connect_lookup", 1e6),
                ("connect_round_trips", 1.7e6),
                ("connect_client", 2e6),
                ("waiting_for_a_cpu", 0.6e6),
                ("client", 0.4e6),
                ("server", 6e3),
                ("unexplained", 0.194e6),
            ],
            &[
                ("connect_commands", 4.0),
                // Less than its parts, one of which was estimated elsewhere.
                ("connect_ns", 4.2e6),
                ("empty_polls_per_message", 1_900.0),
                ("spin_turn_ns", 10_000.0),
                ("reader_pause_ns", 400.0),
                ("subscriber_cpu_percent", 97.0),
                ("payload_clock_step_ns", 1e6),
                ("hook_cost_per_message_ns", 8_000.0),
            ],
        )
    }

    fn file(runs: Vec<Run>, gains: &[(&str, f64, f64, f64)]) -> ResultFile {
        let mut result = ResultFile::new("explain", "tickpath explain", "2026-01-01T00:00:00Z");
        result.runs = runs;
        let comparison = |(name, ratio, low, high): &(&str, f64, f64, f64)| {
            Comparison::new(&format!("gain_{name}"), FIGURE, *ratio, 1.0, Some((*low, *high)))
        };
        result.comparisons = gains.iter().map(comparison).collect();
        result
    }

    /// Checks that a result's findings contain the words in `there`, and none in `absent`.
    fn check(result: &ResultFile, present: &[&str], absent: &[&str]) {
        let sentences = findings(result).join("\n");
        for words in present {
            assert!(sentences.contains(words), "'{words}' is missing in:\n{sentences}");
        }
        for words in absent {
            assert!(!sentences.contains(words), "'{words}' is in:\n{sentences}");
        }
    }

    #[test]
    fn the_published_questions_are_answered() {
        let result = file(vec![cold()], &[("no_persistence", 1.02, 0.9, 1.1), ("listen", 1.11, 1.05, 1.2)]);
        check(
            &result,
            &[
                "Of 5.9 ms, 4.2 ms is the connect, not the publish.",
                "1 ms of the connect is the resolution",
                "4 commands, each a round trip",
                "Python is 7 % to 41 % of a cold message; the server's own work, as it reports, is 0.1 %.",
                "For 600 µs the publisher only waited",
                "each process took 150 ms, 120 ms of them to import redis",
                "Without persistence: no gain seen, at most 1.1 times (0.90 to 1.1); PUBLISH itself writes no key.",
                "1\u{202f}900 empty get_message calls a message and 97 % of a processor",
                "a blocking listen instead, which sleeps between messages: 1.1 times faster",
                "Your clock ticks in 1 ms",
                "What remains unexplained of a cold message: 3 %.",
                "The stamps themselves cost 8 µs a message.",
            ],
            &["What gains most"],
        );
    }

    #[test]
    fn the_import_change_is_reported_with_its_gain_or_remedy() {
        let steady = run(RunPhase::Steady, &[("client", 100e3)], &[]);
        let page = "docs/redis-py.md has the lines that change, and tickpath.bridge keeps the broker";
        let begin = "`import tickpath` in place of redis-py, the same script over shared memory";
        let measured = file(vec![steady.clone()], &[("import_tickpath", 12.0, 11.0, 13.0)]);
        let most = "What gains most: import tickpath (12 times).";
        check(&measured, &[begin, "12 times faster (11 to 13).", page, most], &["not measured"]);
        let mut lacking = file(vec![steady], &[("import_tickpath", 12.0, 11.0, 13.0)]);
        let note = Some("python3 cannot import the package; run pip install it".to_owned());
        let [line] = &mut lacking.comparisons[..] else { panic!("one line") };
        *line = Comparison { name: line.name.clone(), figure: FIGURE.to_owned(), note, ..Comparison::default() };
        check(&lacking, &[begin, ": not measured: python3 cannot", "pip install it.", page], &["times", "What gains"]);
    }

    #[test]
    fn pushes_are_named_by_their_command() {
        let mut pushed = cold();
        pushed.params.set("sends", "RPUSH");
        let result = file(vec![pushed], &[("no_persistence", 1.3, 1.2, 1.4)]);
        check(&result, &["the first RPUSH.", "Without persistence: 1.3 times faster (1.2 to 1.4)."], &["PUBLISH"]);
    }

    #[test]
    fn findings_need_figures_in_the_file() {
        check(&file(vec![], &[]), &[], &["unexplained"]);
        let steady = run(RunPhase::Steady, &[("client", 30e3), ("parse", 20e3), ("kernel_and_wake_up", 50e3)], &[]);
        check(
            &file(vec![steady], &[]),
            &["Python is 50 % of a message of a stream.", "unexplained of a message of a stream: 0.0 %"],
            &["connect", "spins", "clock", "ersistence", "stamps", "import", "come to"],
        );
    }

    #[test]
    fn changes_in_use_and_invalid_runs_yield_no_gain() {
        let gains = [("hiredis", 2.0, 1.9, 2.1), ("no_sleep", 4.0, 3.0, 5.0), ("log", 9.0, 8.0, 9.9)];
        let mut steady = run(RunPhase::Steady, &[("client", 100e3)], &[]);
        check(
            &file(vec![steady.clone()], &gains),
            &["What gains most: log (9.0 times), hiredis (2.0 times)."],
            &["sleep"],
        );
        steady.software.client_version = Some("8.1.0 with hiredis 3.5.0".to_owned());
        check(&file(vec![steady.clone()], &gains), &["What gains most: log (9.0 times)."], &["hiredis"]);
        steady.valid = false;
        check(&file(vec![steady], &gains), &[], &["Python", "unexplained"]);
    }

    #[test]
    fn the_time_above_bare_sockets_is_reported() {
        let parts = [("send", 10e3), ("kernel_and_wake_up", 30e3), ("network", 250e3), ("server_and_clients", 60e3)];
        let rust = |parts| Run { client: "rust".to_owned(), ..run(RunPhase::Steady, parts, &[]) };
        check(
            &file(vec![rust(&parts)], &[]),
            &["Of 350 µs, 40 µs is what bare sockets need", ", and 250 µs the network; what is left, 60 µs (17 %), is"],
            &["Python"],
        );
        check(&file(vec![rust(&parts[..2])], &[]), &[], &["bare sockets"]);
    }

    #[test]
    fn a_sum_above_the_whole_is_reported_uncut() {
        let mut steady = run(RunPhase::Steady, &[("client", 100e3), ("parse", 1e3)], &[("stages_sum_percent", 101.2)]);
        steady.figures.insert("message_ns".to_owned(), 100e3);
        check(&file(vec![steady], &[]), &["The parts of a message of a stream come to 101 % of it"], &["0.0 %"]);
    }

    #[test]
    fn a_polling_subscriber_gets_the_ratio_of_its_kind() {
        let gains = [("listen", 0.4, 0.3, 0.5), ("no_sleep", 2.6, 2.1, 3.0)];
        let parts = [("client", 300e3), ("sleep_turn", 600e3)];
        let figures = [("empty_polls_per_message", 93.0), ("spin_turn_ns", 1.2e6), ("reader_pause_ns", 1.1e6)];
        let sleeps = run(RunPhase::Steady, &parts, &figures);
        check(
            &file(vec![sleeps.clone()], &gains),
            &[
                "asks with get_message and pauses 1.1 ms before it asks again, 93 times a message",
                "a message waits about 600 µs for that",
                "instead of get_message with 1 ms of sleep: 2.6 times faster (2.1 to 3.0).",
                "What gains most: no sleep (2.6 times).",
            ],
            &["spins", "2.5 times"],
        );
        check(&file(vec![sleeps], &[]), &["a blocking listen waits without that."], &["spins"]);
        // A spinning subscriber gets the ratio of spinning, and no finding about a pause.
        check(
            &file(vec![cold()], &gains),
            &["The subscriber spins", "between messages: 2.5 times slower (2.0 to 3.3)"],
            &["pauses", "no sleep"],
        );
    }

    #[test]
    fn phases_are_compared_with_each_other() {
        let steady = run(RunPhase::Steady, &[("client", 100e3)], &[]);
        let mut idle = run(RunPhase::Idle, &[("client", 320e3)], &[]);
        idle.params.set("idle_ns", 1_000_000_000u64);
        let result = file(vec![cold(), idle, steady], &[("warm_connection", 59.0, 50.0, 70.0)]);
        check(
            &result,
            &[
                "A cold message takes 5.9 ms, one over a connection that is there 100 µs; a warm connection, in turn \
                 with a cold one: 59 times faster (50 to 70).",
                "after 1 s of silence takes 320 µs, one of a stream 100 µs.",
                "What gains most: warm connection (59 times).",
            ],
            &["times less", "times as long"],
        );
        let apart = file(result.runs.clone(), &[]);
        check(&apart, &["one over a connection that is there 100 µs."], &["times"]);
    }

    #[test]
    fn a_gain_is_reported_only_if_its_interval_excludes_one() {
        for (ratio, low, high, words) in [
            (1.5, 1.2, 1.8, "1.5 times faster (1.2 to 1.8)"),
            (1.1, 0.9, 1.2, "no gain seen, at most 1.2 times (0.90 to 1.2)"),
            (0.5, 0.4, 0.7, "2.0 times slower (1.4 to 2.5)"),
        ] {
            let result = file(vec![], &[("hiredis", ratio, low, high)]);
            assert_eq!(gain(&result.comparisons[0]).as_deref(), Some(words));
            assert_eq!(change(&result.comparisons[0]), Some("hiredis"));
        }
    }
}
