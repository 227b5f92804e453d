//! Work beside inputs: the times of its checks, snapshots of the core, and spare pages for the core
//! (`docs/design/journal-memory.md`).

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use tickpath_clock::Clock;
use tickpath_oms_core::SparePage;
use tickpath_oms_journal::snapshot::SnapshotMaker;

use crate::OmsError;
use crate::config::Config;
use crate::lanes::LaneFiles;

/// Idle turns between two reads of the clock.
const CLOCK_EVERY: u32 = 16;

/// Nanoseconds between two liveness checks of the venues.
const VENUES_NS: u64 = 20_000_000;

/// Venue checks between two checks that the market's topic still exists.
const TICKS_EVERY: u32 = 50;

/// Busy turns between two checks of disk and venues.
const CHECK_EVERY: u32 = 256;

/// State of the work beside inputs, and the threads that do a part of it.
pub(crate) struct Housekeeping {
    busy_turns: u32,
    idle_turns: u32,
    /// Time of the last liveness check of the venues, in ticks.
    venues_checked: u64,
    /// Venue checks since the last check that the market's topic exists.
    venue_checks: u32,
    pub lane_files: LaneFiles,
    pages: Option<Receiver<SparePage>>,
    snapshots: Option<SnapshotMaker>,
    /// Record number at which the next snapshot is due.
    next_snapshot: u64,
}

impl Default for Housekeeping {
    /// Returns the work of a sequencer without side threads, and without files to watch.
    fn default() -> Self {
        Self {
            busy_turns: 0,
            idle_turns: 0,
            venues_checked: 0,
            venue_checks: 0,
            lane_files: LaneFiles::default(),
            pages: None,
            snapshots: None,
            next_snapshot: u64::MAX,
        }
    }
}

impl Housekeeping {
    /// Starts the threads of this configuration behind the record `next`, and watches the lanes' files. A simulation,
    /// which has a seed, has neither spare pages nor lanes that others remove.
    pub fn start(config: &Config, next: u64) -> Result<Self, OmsError> {
        let mut started = Self::default();
        if config.seed.is_none() {
            started.pages = Some(make_pages().map_err(OmsError::Thread)?);
            started.lane_files = LaneFiles::of(&config.lanes)?;
        }
        if config.snapshot_every > 0 {
            // The thread avoids the core's processor.
            let maker = SnapshotMaker::start(&config.journal.path, config.snapshot_every, config.other_cpu);
            started.snapshots = Some(maker.map_err(OmsError::Thread)?);
            started.next_snapshot = next + config.snapshot_every;
        }
        Ok(started)
    }

    /// Counts a turn, and returns whether it has time for all checks. A busy turn has time now and then.
    #[inline]
    pub fn is_check_turn(&mut self, is_idle: bool) -> bool {
        self.busy_turns = self.busy_turns.wrapping_add(1);
        is_idle || self.busy_turns.is_multiple_of(CHECK_EVERY)
    }

    /// Counts a turn with checks, and returns whether it is time to check the venues. Few turns read the clock, because
    /// that costs as much as a turn and would delay an order that arrives meanwhile.
    pub fn is_venue_check_due(&mut self, clock: &impl Clock) -> bool {
        self.idle_turns = self.idle_turns.wrapping_add(1);
        if !self.idle_turns.is_multiple_of(CLOCK_EVERY) {
            return false;
        }
        let now = clock.ticks();
        let is_due = now.wrapping_sub(self.venues_checked) > clock.calibration().ticks_of_ns(VENUES_NS);
        if is_due {
            self.venues_checked = now;
            self.venue_checks += 1;
        }
        is_due
    }

    /// Returns true about once a second.
    #[inline]
    pub fn is_ticks_check_due(&mut self) -> bool {
        let is_due = self.venue_checks >= TICKS_EVERY;
        if is_due {
            self.venue_checks = 0;
        }
        is_due
    }

    /// Returns whether a snapshot of the core behind this record is due.
    #[inline]
    pub fn is_snapshot_due(&self, record: u64) -> bool {
        record >= self.next_snapshot
    }

    /// Requests a snapshot of the core behind this record.
    #[cold]
    pub fn request_snapshot(&mut self, record: u64) {
        if let Some(snapshots) = &self.snapshots {
            self.next_snapshot = snapshots.request(record);
        }
    }

    /// Returns the reason why the last snapshot failed, once.
    pub fn snapshot_failure(&self) -> Option<String> {
        self.snapshots.as_ref().and_then(SnapshotMaker::take_failure)
    }

    /// Returns a spare page, if one is ready.
    #[inline]
    pub fn take_page(&self) -> Option<SparePage> {
        self.pages.as_ref()?.try_recv().ok()
    }
}

/// Starts a thread that builds and touches the core's memory before the core needs it: one page is always ready.
fn make_pages() -> io::Result<Receiver<SparePage>> {
    let (made, ready) = sync_channel(1);
    let work = move || while made.send(SparePage::new()).is_ok() {};
    thread::Builder::new().name("oms-pages".into()).spawn(work)?;
    Ok(ready)
}
