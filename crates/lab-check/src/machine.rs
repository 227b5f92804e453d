//! Lies about the owner of lost time: the host, a process of this machine, or the server.

use std::fmt;

use tickpath_clock::Wait;
use tickpath_lab_bus::pubsub::{Settings, run, run_with};
use tickpath_lab_harness::signals::PauseCycle;
use tickpath_lab_harness::{Child, LabError};
use tickpath_lab_result::Run;

use crate::context::{CheckContext, FaultReport, ms, retry_until_judgeable};
use crate::hog::HogRole;
use crate::limit::CpuQuotaGroup;
use crate::messages::report_text;

/// Number of processes that compete for the CPU of one end of the run.
pub(crate) const HOGS: usize = 3;

/// Messages a second that leave no queue behind a stall, and enough messages for a 99th percentile.
const SLOW_RATE: f64 = 500.0;
const SLOW_COUNT: u64 = 1_500;

/// Length of a stall, and time between two stalls, in nanoseconds.
pub(crate) const PAUSE_NS: u64 = 5_000_000;
pub(crate) const RUN_NS: u64 = 95_000_000;

const ONE_WAY: &str = "one_way";

pub(crate) fn starved_publisher(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    const WORDS: [&str; 3] = ["of its rate", "of sends came late", "publisher did not have its CPU"];
    let hogs = hogs(stage, stage.cpus[0])?;
    let run = run(stage.lab, &busy(stage, "shm://"))?;
    drop(hogs);
    Ok(judge_invalid(&run, format!("{HOGS} hogs on the publisher's CPU"), &WORDS))
}

/// Throttles the run by a container's CPU quota, without any competing process. A user who cannot make a control group
/// plants nothing.
pub(crate) fn quota(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let limit = match CpuQuotaGroup::half_a_cpu() {
        Ok(limit) => limit,
        Err(e) => {
            let planted = format!("left out: no control group can be made here ({e}); run as root");
            return Ok(FaultReport { planted, reported: "-".to_owned(), is_detected: true });
        }
    };
    let run = run(stage.lab, &busy(stage, "shm://"))?;
    drop(limit);
    let is_blamed = run.notes.iter().any(|note| note.contains("took") && note.contains("% of a CPU"));
    let mut finding = judge_invalid(&run, "half a CPU by a quota".to_owned(), &["a CPU quota of 0.5 CPUs"]);
    finding.is_detected &= !is_blamed && run.figures.get("throttled_ns").is_some_and(|ns| *ns > 0.0);
    Ok(finding)
}

/// Judges a run that must be invalid, with a note that contains one of these words.
pub(crate) fn judge_invalid(run: &Run, planted: String, words: &[&str]) -> FaultReport {
    let note_found = run.notes.iter().find(|note| words.iter().any(|word| note.contains(word)));
    FaultReport {
        planted,
        reported: report_text(run, note_found.map_or("no note", |note| note)),
        is_detected: !run.valid && note_found.is_some(),
    }
}

/// Starves the subscriber: its lateness is caused by its own machine, not by the host, as another process had the CPU.
pub(crate) fn starved_subscriber(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let hogs = hogs(stage, stage.cpus[1])?;
    let settings = busy(stage, "shm://");
    let run = retry_until_judgeable(|| run(stage.lab, &settings), is_host_share_known)?;
    drop(hogs);
    let tail = TailPercentile::of(&run, ONE_WAY);
    let is_named = run.notes.iter().any(|note| note.contains("subscriber did not have its CPU"));
    Ok(FaultReport {
        planted: format!("{HOGS} hogs on the subscriber's CPU"),
        reported: report_text(&run, &format!("{tail}{}", if is_named { ", its CPU shared" } else { "" })),
        is_detected: tail.is_not_hosts() && is_named && !run.valid,
    })
}

/// Stops all processes, as if the host had stalled: the time must count as the host's.
pub(crate) fn all_stopped(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let (run, times) = run_with_pauses(stage, |ends, server| vec![ends.0, ends.1, server])?;
    let tail = TailPercentile::of(&run, ONE_WAY);
    Ok(FaultReport {
        planted: format!("all stopped {times} times for {}", ms(Some(PAUSE_NS))),
        reported: tail.to_string(),
        is_detected: tail.is_hosts(),
    })
}

/// Stops only the server: the time must count as the server's.
pub(crate) fn server_stopped(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let (run, times) = run_with_pauses(stage, |_, server| vec![server])?;
    let tail = TailPercentile::of(&run, ONE_WAY);
    Ok(FaultReport {
        planted: format!("the server stopped {times} times for {}", ms(Some(PAUSE_NS))),
        reported: tail.to_string(),
        is_detected: tail.is_not_hosts(),
    })
}

/// Runs while these processes stop repeatedly. The run is repeated if the host became so much worse during it that
/// nothing can be told apart.
fn run_with_pauses(stage: &CheckContext<'_>, who: fn((u32, u32), u32) -> Vec<u32>) -> Result<(Run, u64), LabError> {
    retry_until_judgeable(|| run_once_with_pauses(stage, who), |(run, _)| is_host_share_known(run))
}

fn run_once_with_pauses(
    stage: &CheckContext<'_>,
    who: fn((u32, u32), u32) -> Vec<u32>,
) -> Result<(Run, u64), LabError> {
    let server = stage.server()?;
    let mut stopping = None;
    let settings = Settings { rate: Some(SLOW_RATE), count: SLOW_COUNT, ..busy(stage, &server.url()) };
    let run = run_with(stage.lab, &settings, false, |ends| {
        let who = who((ends.publisher, ends.subscriber), server.pid());
        stopping = Some(PauseCycle::start(&who, PAUSE_NS, RUN_NS)?);
        Ok(())
    })?;
    Ok((run, stopping.map_or(0, PauseCycle::end)))
}

fn is_host_share_known(run: &Run) -> bool {
    TailPercentile::of(run, ONE_WAY).is_host_share_known()
}

/// The 99th percentile of a hop, and its remainder without the host's share.
pub(crate) struct TailPercentile {
    hop: &'static str,
    raw: Option<u64>,
    /// None if the host's share was not separated; the inner value is none without a percentile.
    without_host: Option<Option<u64>>,
}

impl TailPercentile {
    pub fn of(run: &Run, hop: &'static str) -> Self {
        let found = run.hops.get(hop);
        let rest = found.and_then(|found| found.unstalled.as_ref()).map(|rest| rest.p99_ns);
        Self { hop, raw: found.and_then(|found| found.p99_ns), without_host: rest }
    }

    pub fn is_host_share_known(&self) -> bool {
        self.without_host.is_some()
    }

    pub fn has_stall(&self) -> bool {
        self.raw.is_some_and(|raw| raw >= PAUSE_NS / 2)
    }

    /// Returns whether the tail is not the host's: it then stays in both figures.
    pub fn is_not_hosts(&self) -> bool {
        let stays = |rest: u64| self.raw.is_some_and(|raw| rest * 10 >= raw * 9);
        self.has_stall() && self.without_host.flatten().is_some_and(stays)
    }

    /// Returns whether the tail is the host's: it then goes. A message sent shortly before the end of a stall also
    /// waited for its answer, and stays.
    fn is_hosts(&self) -> bool {
        let goes = |rest: u64| self.raw.is_some_and(|raw| rest * 4 <= raw * 3);
        self.has_stall() && self.without_host.flatten().is_some_and(goes)
    }
}

impl fmt::Display for TailPercentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} p99 {}", self.hop, ms(self.raw))?;
        match self.without_host {
            Some(rest) => write!(f, ", {} without the host", ms(rest)),
            None => f.write_str(", its cause unknown"),
        }
    }
}

pub(crate) fn hogs(stage: &CheckContext<'_>, cpu: usize) -> Result<Vec<Child>, LabError> {
    (0..HOGS).map(|_| stage.lab.spawn(&HogRole { cpu })).collect()
}

/// Returns settings with a spinning subscriber, which sees the time that is taken from it.
fn busy(stage: &CheckContext<'_>, target: &str) -> Settings {
    Settings { wait: Wait::Busy, pace: Some(Wait::Block), ..stage.settings(target) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_not_the_hosts_only_if_that_was_reported() {
        let tail = |raw, rest| TailPercentile { hop: ONE_WAY, raw, without_host: rest };
        let raw = Some(PAUSE_NS);
        assert!(tail(raw, Some(raw)).is_not_hosts());
        for rest in [None, Some(None), Some(Some(PAUSE_NS / 2))] {
            assert!(!tail(raw, rest).is_not_hosts(), "{rest:?}");
            assert_eq!(tail(raw, rest).is_hosts(), rest == Some(Some(PAUSE_NS / 2)), "{rest:?}");
        }
        let short = Some(PAUSE_NS / 10);
        assert!(!tail(short, Some(short)).is_not_hosts());
    }
}
