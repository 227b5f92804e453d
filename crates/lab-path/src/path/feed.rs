//! The feed process of `path`: ticks at their times. If the venue shares its CPU, the feed runs the venue between
//! ticks: two threads that spin on the same CPU would wait for its scheduler, not for each other.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Policy, Publisher, TopicConfig, connect};
use tickpath_clock::{Clock, HostClock, IdleAction, Lateness, Pacer, Wait};
use tickpath_market::replay::{MarketTick, Recording, RecordingCounts, ReplaySpeed};

use crate::trade::{BenchVenue, ExchangeRole};
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_harness::samples::{preallocated_rows, save, save_gaps};
use tickpath_lab_harness::{LabError, Parent, ProcessRole, ThreadConfig};

/// Role of the feed: publishes ticks of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeedRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// A topic in shared memory for processes that need the ticks but are not measured; `None` if `topic` serves them.
    pub mirror: Option<String>,
    /// The ticks that it publishes.
    pub ticks: TickSource,
    /// The venue that this thread runs too.
    pub venue: Option<ExchangeRole>,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// The file of its samples.
    pub out: PathBuf,
}

impl ProcessRole for FeedRole {
    const NAME: &'static str = "feed";

    /// Runs the feed's process. Its first result is its planned duration, the next one reports the end of publishing;
    /// the last one, after the stop command, holds the counts.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let recording = match &self.ticks.file {
            Some(file) => Recording::open(file)?,
            None => Recording::synthetic(self.ticks.seed, SYNTHETIC_TICKS),
        };
        let plan = plan(&recording, &self.ticks)?;
        let config = TopicConfig::new(Policy::Overwrite);
        let open = |url: &str, topic: &str| Ok::<_, LabError>(connect(url)?.publisher(topic, &config)?);
        let mut topic = open(&self.target, &self.topic)?;
        let mut mirror = self.mirror.as_ref().map(|mirror| open("shm://", mirror)).transpose()?;
        let mut venue = self.venue.as_ref().map(|venue| BenchVenue::open(venue, clock)).transpose()?;
        self.thread.apply()?;
        parent.ready();
        let planned_ns = plan.last().map_or(0, |(offset, _)| *offset);
        parent.result(&planned_ns);
        if parent.receive().is_none() {
            return Ok(());
        }
        let stop = parent.stop_flag();
        let wait = self.thread.wait()?;
        let mut pacer = Pacer::new(clock, wait);
        let start = clock.ticks() + clock.calibration().ticks_of_ns(5_000_000);
        let mut rows = preallocated_rows(plan.len());
        let mut lateness = Lateness::default();
        let (mut before, mut broke_off) = (0, None);
        let is_warm = self.thread.warm && wait == Wait::Busy;
        // The tick, and whether it is to be published, are determined before its time, not at its time.
        for &(offset_ns, event) in &plan {
            if stop.load(Ordering::Relaxed) {
                broke_off = Some("the bench was stopped".to_owned());
                break;
            }
            let intended = start + clock.calibration().ticks_of_ns(offset_ns);
            let actual = pacer.until_with_work(intended, |rest| {
                if is_warm {
                    topic.idle();
                }
                let Some(venue) = &mut venue else {
                    rest.perform();
                    return Ok(false);
                };
                venue.poll(rest)
            })?;
            if let Err(why) = publish(topic.as_mut(), intended, &event) {
                broke_off = Some(why.to_string());
                break;
            }
            if let Some(mirror) = &mut mirror {
                publish(mirror.as_mut(), intended, &event)?;
            }
            rows.push([intended, actual]);
            if let Some(venue) = venue.as_mut().filter(|_| rows.len().is_multiple_of(VENUE_EVERY)) {
                venue.poll(IdleAction::Spin)?;
            }
            let allowance_ns = (offset_ns - before).max(10_000);
            before = offset_ns;
            lateness.count(pacer.own_lateness_ns(intended, actual), allowance_ns);
        }
        parent.result(&());
        match &mut venue {
            // After a stop no message announces that the strategy has its answers.
            Some(venue) if stop.load(Ordering::Relaxed) => {
                let end = clock.ticks() + clock.calibration().ticks_of_ns(LAST_ANSWERS_NS);
                while clock.ticks() < end {
                    venue.poll(IdleAction::Yield)?;
                }
            }
            Some(venue) => venue.serve(wait, &stop)?,
            None => while parent.receive().is_some() {},
        }
        save(&self.out, &rows)?;
        save_gaps(&self.out.with_extension("gaps"), &pacer.into_gaps())?;
        let RecordingCounts { skipped_depth, skipped_other, bad, bad_lines, truncated, .. } = recording.counts;
        parent.result(&FeedResult {
            first: start,
            last: rows.last().map_or(start, |row| row[1]),
            planned_ns: if broke_off.is_some() { before } else { planned_ns },
            late_share: lateness.share(),
            reconnects: topic.reconnects(),
            skipped: skipped_depth + skipped_other,
            bad,
            bad_lines,
            truncated,
            broke_off,
        });
        Ok(())
    }
}

/// Source and pace of the ticks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TickSource {
    /// A recording; ticks made from the seed if there is none.
    pub file: Option<PathBuf>,
    /// The seed of made-up ticks.
    pub seed: u64,
    /// Ticks a second; the recording's own times if there is none.
    pub rate: Option<f64>,
    /// The distribution of their intended times at that rate.
    pub arrivals: ArrivalProcess,
    /// The factor by which its own times are sped up.
    pub speed: f64,
    /// The number of ticks to publish; the recording is looped to reach it.
    pub count: u64,
}

/// The number of made-up ticks where no recording is given.
const SYNTHETIC_TICKS: usize = 20_000;

/// Ticks between two turns of the venue, where ticks are so dense that the feed never waits for the next.
const VENUE_EVERY: usize = 16;

/// Time for which the venue still answers after a Ctrl-C.
const LAST_ANSWERS_NS: u64 = 300_000_000;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct FeedResult {
    pub first: u64,
    pub last: u64,
    pub planned_ns: u64,
    pub late_share: f64,
    /// The number of reconnects, where the client reports it.
    pub reconnects: Option<u64>,
    pub skipped: u64,
    pub bad: u64,
    pub bad_lines: Vec<(u64, String)>,
    pub truncated: bool,
    /// The reason for not publishing all ticks.
    pub broke_off: Option<String>,
}

/// Returns each event with its time offset from the start.
fn plan(recording: &Recording, ticks: &TickSource) -> Result<Vec<(u64, MarketTick)>, LabError> {
    let pace = match ticks.rate {
        Some(per_second) => ReplaySpeed::Fixed { per_second },
        None => ReplaySpeed::Scaled(ticks.speed),
    };
    let scheduled = recording.schedule(pace, true)?.map(|(offset, event)| (offset, *event)).take(ticks.count as usize);
    Ok(match (ticks.rate, ticks.arrivals) {
        (Some(rate), chance @ ArrivalProcess::Poisson { .. }) => {
            chance.times_ns(rate).zip(scheduled).map(|(offset, (_, event))| (offset, event)).collect()
        }
        _ => scheduled.collect(),
    })
}

fn publish(topic: &mut dyn Publisher, stamp: u64, event: &MarketTick) -> Result<(), LabError> {
    let published = topic.publish(stamp, event.kind().code(), event.as_bytes());
    published.map_err(|e| LabError::Failed(format!("publishing a tick failed: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_arrivals_change_only_the_times_of_ticks() {
        let recording = Recording::synthetic(1, 50);
        let of = |arrivals| {
            let ticks = TickSource { file: None, seed: 1, rate: Some(1_000.0), arrivals, speed: 1.0, count: 120 };
            plan(&recording, &ticks).expect("a rate is a schedule")
        };
        let bytes =
            |plan: &[(u64, MarketTick)]| plan.iter().map(|(_, event)| event.as_bytes().to_vec()).collect::<Vec<_>>();
        let (steady, chance) = (of(ArrivalProcess::Steady), of(ArrivalProcess::Poisson { seed: 3 }));
        assert_eq!(bytes(&steady), bytes(&chance));
        let times: Vec<u64> = chance.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(times, ArrivalProcess::Poisson { seed: 3 }.times_ns(1_000.0).take(120).collect::<Vec<_>>());
        assert_ne!(times, steady.iter().map(|(offset, _)| *offset).collect::<Vec<_>>());
    }
}
