//! The feed process of `path`: ticks at their times. Where it has the venue's CPU too, it is the venue in between: two
//! threads that spin on one CPU would wait for its scheduler, not for each other.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Policy, Publisher, TopicConfig, connect};
use tickpath_clock::{Clock, HostClock, Lateness, Pacer, Rest, Wait};
use tickpath_market::replay::{Event, Pace, Recording, Tally};

use crate::trade::{Exchange, ExchangeRole};
use tickpath_harness::arrivals::Arrivals;
use tickpath_harness::samples::{save, save_gaps, touched_rows};
use tickpath_harness::{LabError, Parent, Role, Thread};

/// Publishes ticks of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeedRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// A topic in shared memory for those who need the ticks but are not measured; none if the first one serves them.
    pub mirror: Option<String>,
    /// What it publishes.
    pub ticks: Ticks,
    /// The venue that this thread is too.
    pub venue: Option<ExchangeRole>,
    /// Where it runs.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

impl Role for FeedRole {
    const NAME: &'static str = "feed";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        feed(self, parent)
    }
}

/// Where ticks come from and how fast.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ticks {
    /// A recording; made up from the seed if there is none.
    pub file: Option<PathBuf>,
    /// What made-up ticks depend on.
    pub seed: u64,
    /// Ticks a second; the recording's own times if there is none.
    pub rate: Option<f64>,
    /// How their intended times lie at that rate.
    pub arrivals: Arrivals,
    /// How much faster than its own times.
    pub speed: f64,
    /// Ticks to publish; the recording is looped for as many.
    pub count: u64,
}

/// Ticks that are made up where no recording is given.
const SYNTHETIC: usize = 20_000;

/// Ticks between two turns of the venue, where they come so fast that nobody waits for the next one.
const VENUE_EVERY: usize = 16;

/// After a Ctrl-C the venue answers for so long.
const LAST_ANSWERS_NS: u64 = 300_000_000;

/// What the feed tells at its end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Fed {
    pub first: u64,
    pub last: u64,
    pub planned_ns: u64,
    pub late_share: f64,
    /// How often its connection was lost and made again, where the client tells.
    pub reconnects: Option<u64>,
    pub skipped: u64,
    pub bad: u64,
    pub bad_lines: Vec<(u64, String)>,
    pub truncated: bool,
    /// Why it did not publish them all.
    pub broke_off: Option<String>,
}

/// The feed's life. Its first result is how long it will publish, the next one that it has; the last one, when it was
/// told to stop, what it did.
fn feed(role: &FeedRole, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let recording = match &role.ticks.file {
        Some(file) => Recording::open(file)?,
        None => Recording::synthetic(role.ticks.seed, SYNTHETIC),
    };
    let plan = plan(&recording, &role.ticks)?;
    let config = TopicConfig::new(Policy::Overwrite);
    let open = |url: &str, topic: &str| Ok::<_, LabError>(connect(url)?.publisher(topic, &config)?);
    let mut topic = open(&role.target, &role.topic)?;
    let mut mirror = role.mirror.as_ref().map(|mirror| open("shm://", mirror)).transpose()?;
    let mut venue = role.venue.as_ref().map(|venue| Exchange::open(venue, clock)).transpose()?;
    role.thread.settle()?;
    parent.ready();
    let planned_ns = plan.last().map_or(0, |(offset, _)| *offset);
    parent.result(&planned_ns);
    if parent.hear().is_none() {
        return Ok(());
    }
    let stop = parent.stop_flag();
    let wait = role.thread.wait()?;
    let mut pacer = Pacer::new(clock, wait);
    let start = clock.ticks() + clock.calibration().ticks_of_ns(5_000_000);
    let mut rows = touched_rows(plan.len());
    let mut lateness = Lateness::default();
    let (mut before, mut broke_off) = (0, None);
    let is_warm = role.thread.warm && wait == Wait::Busy;
    // What can be looked at before a tick's time is not looked at then: the tick, and whether there is to be one.
    for &(offset_ns, event) in &plan {
        if stop.load(Ordering::Relaxed) {
            broke_off = Some("the bench was stopped".to_owned());
            break;
        }
        let intended = start + clock.calibration().ticks_of_ns(offset_ns);
        let actual = pacer.until_beside(intended, |rest| {
            if is_warm {
                topic.idle();
            }
            let Some(venue) = &mut venue else {
                rest.take();
                return Ok(false);
            };
            venue.turn(rest)
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
            venue.turn(Rest::Spin)?;
        }
        let allowance_ns = (offset_ns - before).max(10_000);
        before = offset_ns;
        lateness.count(pacer.own_lateness_ns(intended, actual), allowance_ns);
    }
    parent.result(&());
    match &mut venue {
        // Nobody says any more when the strategy has its answers.
        Some(venue) if stop.load(Ordering::Relaxed) => {
            let end = clock.ticks() + clock.calibration().ticks_of_ns(LAST_ANSWERS_NS);
            while clock.ticks() < end {
                venue.turn(Rest::Yield)?;
            }
        }
        Some(venue) => venue.serve(wait, &stop)?,
        None => while parent.hear().is_some() {},
    }
    save(&role.out, &rows)?;
    save_gaps(&role.out.with_extension("gaps"), &pacer.into_found())?;
    let Tally { skipped_depth, skipped_other, bad, bad_lines, truncated, .. } = recording.tally;
    parent.result(&Fed {
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

/// What is published when, from the start.
fn plan(recording: &Recording, ticks: &Ticks) -> Result<Vec<(u64, Event)>, LabError> {
    let pace = match ticks.rate {
        Some(per_second) => Pace::Fixed { per_second },
        None => Pace::Scaled(ticks.speed),
    };
    let scheduled = recording.schedule(pace, true)?.map(|(offset, event)| (offset, *event)).take(ticks.count as usize);
    Ok(match (ticks.rate, ticks.arrivals) {
        (Some(rate), chance @ Arrivals::Poisson { .. }) => {
            chance.times_ns(rate).zip(scheduled).map(|(offset, (_, event))| (offset, event)).collect()
        }
        _ => scheduled.collect(),
    })
}

fn publish(topic: &mut dyn Publisher, stamp: u64, event: &Event) -> Result<(), LabError> {
    let published = topic.publish(stamp, event.kind().code(), event.as_bytes());
    published.map_err(|e| LabError::Failed(format!("publishing a tick failed: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_moves_the_times_of_ticks_and_not_the_ticks() {
        let recording = Recording::synthetic(1, 50);
        let of = |arrivals| {
            let ticks = Ticks { file: None, seed: 1, rate: Some(1_000.0), arrivals, speed: 1.0, count: 120 };
            plan(&recording, &ticks).expect("a rate is a schedule")
        };
        let bytes = |plan: &[(u64, Event)]| plan.iter().map(|(_, event)| event.as_bytes().to_vec()).collect::<Vec<_>>();
        let (steady, chance) = (of(Arrivals::Steady), of(Arrivals::Poisson { seed: 3 }));
        assert_eq!(bytes(&steady), bytes(&chance));
        let times: Vec<u64> = chance.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(times, Arrivals::Poisson { seed: 3 }.times_ns(1_000.0).take(120).collect::<Vec<_>>());
        assert_ne!(times, steady.iter().map(|(offset, _)| *offset).collect::<Vec<_>>());
    }
}
