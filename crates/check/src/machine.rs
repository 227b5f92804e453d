//! Lies about whose time it was: the host's, a process of this machine, or the server's.

use rustix::process::Pid;
use tickpath_clock::Wait;
use tickpath_harness::{Child, LabError};
use tickpath_lab::pubsub::{Settings, run, run_with};
use tickpath_result::Run;

use crate::hog::HogRole;
use crate::messages::said;
use crate::signals::{Stopping, pid};
use crate::stage::{Stage, Told, ms};

/// Processes that want the same CPU as one end of the run.
const HOGS: usize = 3;

/// Messages a second that leave no queue behind a standstill, and enough of them for a 99th percentile.
const SLOWLY: f64 = 500.0;
const SLOW_COUNT: u64 = 1_500;

/// How long something stands still, and how long it moves between.
const STILL_NS: u64 = 5_000_000;
const MOVING_NS: u64 = 95_000_000;

pub(crate) fn starved_publisher(stage: &Stage<'_>) -> Result<Told, LabError> {
    let hogs = hogs(stage, stage.cpus[0])?;
    let run = run(stage.lab, &busy(stage, "shm://"))?;
    drop(hogs);
    Ok(Told {
        planted: format!("{HOGS} hogs on the publisher's CPU"),
        reported: said(&run, run.notes.first().map_or("no note", |note| note)),
        is_told: !run.valid,
    })
}

/// Who starves is late by its own machine: not by the host, which gave it to somebody else of the same machine.
pub(crate) fn starved_subscriber(stage: &Stage<'_>) -> Result<Told, LabError> {
    let hogs = hogs(stage, stage.cpus[1])?;
    let run = run(stage.lab, &busy(stage, "shm://"))?;
    drop(hogs);
    let (raw, rest) = tails(&run);
    Ok(Told {
        planted: format!("{HOGS} hogs on the subscriber's CPU"),
        reported: reported(raw, rest),
        is_told: is_ours(raw, rest),
    })
}

/// Everybody stands still, as if the host did: that is the host's.
pub(crate) fn all_stopped(stage: &Stage<'_>) -> Result<Told, LabError> {
    let (run, times) = stopped(stage, |ends, server| vec![ends.0, ends.1, server])?;
    let (raw, rest) = tails(&run);
    // What was sent shortly before the end of a standstill waited for its answer as well, and stays.
    let is_hosts = |raw: u64| rest.flatten().is_some_and(|ns| ns * 4 <= raw * 3);
    let is_told = raw.is_some_and(|raw| raw >= STILL_NS / 2 && is_hosts(raw));
    Ok(Told {
        planted: format!("all stopped {times} times for {}", ms(Some(STILL_NS))),
        reported: reported(raw, rest),
        is_told,
    })
}

/// The server alone stands still: that is nobody's but the server's.
pub(crate) fn server_stopped(stage: &Stage<'_>) -> Result<Told, LabError> {
    let (run, times) = stopped(stage, |_, server| vec![server])?;
    let (raw, rest) = tails(&run);
    Ok(Told {
        planted: format!("the server stopped {times} times for {}", ms(Some(STILL_NS))),
        reported: reported(raw, rest),
        is_told: is_ours(raw, rest),
    })
}

/// A run in which they stop. Where the host was so much worse than before the run that nothing can be told apart, it is
/// tried again.
fn stopped(stage: &Stage<'_>, who: fn((Pid, Pid), Pid) -> Vec<Pid>) -> Result<(Run, u64), LabError> {
    const TRIES: u32 = 4;
    let mut tried = stopped_once(stage, who)?;
    for _ in 1..TRIES {
        if tails(&tried.0).1.is_some() {
            break;
        }
        tried = stopped_once(stage, who)?;
    }
    Ok(tried)
}

fn stopped_once(stage: &Stage<'_>, who: fn((Pid, Pid), Pid) -> Vec<Pid>) -> Result<(Run, u64), LabError> {
    let server = stage.server()?;
    let server_pid = pid(server.pid())?;
    let mut stopping = None;
    let settings = Settings { rate: Some(SLOWLY), count: SLOW_COUNT, ..busy(stage, &server.url()) };
    let run = run_with(stage.lab, &settings, false, |ends| {
        let who = who((pid(ends.publisher)?, pid(ends.subscriber)?), server_pid);
        stopping = Some(Stopping::of(who, STILL_NS, MOVING_NS));
        Ok(())
    })?;
    Ok((run, stopping.map_or(0, Stopping::end)))
}

/// The 99th percentile of the way, and what of it is left without the host; no second one where nothing was told apart.
fn tails(run: &Run) -> (Option<u64>, Option<Option<u64>>) {
    let one_way = run.hops.get("one_way");
    (one_way.and_then(|hop| hop.p99_ns), one_way.and_then(|hop| hop.unstalled.as_ref()).map(|rest| rest.p99_ns))
}

/// A tail that is not the host's stays in both figures.
fn is_ours(raw: Option<u64>, rest: Option<Option<u64>>) -> bool {
    let stays = |raw: u64| rest.is_none_or(|ns| ns.is_some_and(|ns| ns * 10 >= raw * 9));
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
