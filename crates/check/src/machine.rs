//! Lies about whose time it was: the host's, a process of this machine, or the server's.

use tickpath_clock::Wait;
use tickpath_harness::signals::Stopping;
use tickpath_harness::{Child, LabError};
use tickpath_lab::pubsub::{Settings, run, run_with};
use tickpath_result::Run;

use crate::hog::HogRole;
use crate::messages::said;
use crate::stage::{Finding, Stage, judgeable, ms};

/// Processes that want the same CPU as one end of the run.
const HOGS: usize = 3;

/// Messages a second that leave no queue behind a standstill, and enough of them for a 99th percentile.
const SLOWLY: f64 = 500.0;
const SLOW_COUNT: u64 = 1_500;

/// How long something stands still, and how long it moves between.
const STILL_NS: u64 = 5_000_000;
const MOVING_NS: u64 = 95_000_000;

pub(crate) fn starved_publisher(stage: &Stage<'_>) -> Result<Finding, LabError> {
    const WORDS: [&str; 3] = ["of its rate", "of sends came late", "publisher did not have its CPU"];
    let hogs = hogs(stage, stage.cpus[0])?;
    let run = run(stage.lab, &busy(stage, "shm://"))?;
    drop(hogs);
    let told = run.notes.iter().find(|note| WORDS.iter().any(|word| note.contains(word)));
    Ok(Finding {
        planted: format!("{HOGS} hogs on the publisher's CPU"),
        reported: said(&run, told.map_or("no note", |note| note)),
        is_told: !run.valid && told.is_some(),
    })
}

/// Who starves is late by its own machine: not by the host, which gave it to somebody else of the same machine.
pub(crate) fn starved_subscriber(stage: &Stage<'_>) -> Result<Finding, LabError> {
    let hogs = hogs(stage, stage.cpus[1])?;
    let settings = busy(stage, "shm://");
    let run = judgeable(|| run(stage.lab, &settings), is_told_apart)?;
    drop(hogs);
    let (raw, rest) = tails(&run);
    let is_named = run.notes.iter().any(|note| note.contains("subscriber did not have its CPU"));
    Ok(Finding {
        planted: format!("{HOGS} hogs on the subscriber's CPU"),
        reported: said(&run, &format!("{}{}", reported(raw, rest), if is_named { ", its CPU shared" } else { "" })),
        is_told: is_ours(raw, rest) && is_named && !run.valid,
    })
}

/// Everybody stands still, as if the host did: that is the host's.
pub(crate) fn all_stopped(stage: &Stage<'_>) -> Result<Finding, LabError> {
    let (run, times) = stopped(stage, |ends, server| vec![ends.0, ends.1, server])?;
    let (raw, rest) = tails(&run);
    // What was sent shortly before the end of a standstill waited for its answer as well, and stays.
    let is_hosts = |raw: u64| rest.flatten().is_some_and(|ns| ns * 4 <= raw * 3);
    let is_told = raw.is_some_and(|raw| raw >= STILL_NS / 2 && is_hosts(raw));
    Ok(Finding {
        planted: format!("all stopped {times} times for {}", ms(Some(STILL_NS))),
        reported: reported(raw, rest),
        is_told,
    })
}

/// The server alone stands still: that is nobody's but the server's.
pub(crate) fn server_stopped(stage: &Stage<'_>) -> Result<Finding, LabError> {
    let (run, times) = stopped(stage, |_, server| vec![server])?;
    let (raw, rest) = tails(&run);
    Ok(Finding {
        planted: format!("the server stopped {times} times for {}", ms(Some(STILL_NS))),
        reported: reported(raw, rest),
        is_told: is_ours(raw, rest),
    })
}

/// A run in which they stop. Where the host was so much worse than before the run that nothing can be told apart, it is
/// tried again.
fn stopped(stage: &Stage<'_>, who: fn((u32, u32), u32) -> Vec<u32>) -> Result<(Run, u64), LabError> {
    judgeable(|| stopped_once(stage, who), |(run, _)| is_told_apart(run))
}

fn stopped_once(stage: &Stage<'_>, who: fn((u32, u32), u32) -> Vec<u32>) -> Result<(Run, u64), LabError> {
    let server = stage.server()?;
    let mut stopping = None;
    let settings = Settings { rate: Some(SLOWLY), count: SLOW_COUNT, ..busy(stage, &server.url()) };
    let run = run_with(stage.lab, &settings, false, |ends| {
        let who = who((ends.publisher, ends.subscriber), server.pid());
        stopping = Some(Stopping::of(&who, STILL_NS, MOVING_NS)?);
        Ok(())
    })?;
    Ok((run, stopping.map_or(0, Stopping::end)))
}

/// The 99th percentile of the way, and what of it is left without the host; no second one where nothing was told apart.
fn tails(run: &Run) -> (Option<u64>, Option<Option<u64>>) {
    let one_way = run.hops.get("one_way");
    (one_way.and_then(|hop| hop.p99_ns), one_way.and_then(|hop| hop.unstalled.as_ref()).map(|rest| rest.p99_ns))
}

fn is_told_apart(run: &Run) -> bool {
    tails(run).1.is_some()
}

/// A tail that is not the host's stays in both figures. Where nothing was told apart, nothing was told.
fn is_ours(raw: Option<u64>, rest: Option<Option<u64>>) -> bool {
    let stays = |raw: u64| rest.flatten().is_some_and(|ns| ns * 10 >= raw * 9);
    raw.is_some_and(|raw| raw >= STILL_NS / 2 && stays(raw))
}

fn reported(raw: Option<u64>, rest: Option<Option<u64>>) -> String {
    let rest = rest.map_or_else(|| ", whose is not told".to_owned(), |rest| format!(", {} without the host", ms(rest)));
    format!("one_way p99 {}{rest}", ms(raw))
}

fn hogs(stage: &Stage<'_>, cpu: usize) -> Result<Vec<Child>, LabError> {
    (0..HOGS).map(|_| stage.lab.spawn(&HogRole { cpu })).collect()
}

/// The subscriber spins, so that it sees what is taken from it.
fn busy(stage: &Stage<'_>, target: &str) -> Settings {
    Settings { wait: Wait::Busy, pace: Some(Wait::Block), ..stage.settings(target) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_not_the_hosts_only_if_that_was_told() {
        let raw = Some(STILL_NS);
        assert!(is_ours(raw, Some(raw)));
        for rest in [None, Some(None), Some(Some(STILL_NS / 2))] {
            assert!(!is_ours(raw, rest), "{rest:?}");
        }
        assert!(!is_ours(Some(STILL_NS / 10), Some(Some(STILL_NS / 10))));
    }
}
