//! The host of the OMS: its process, clock, disk, and lanes in shared memory.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tickpath_clock::{Priority, Wait};
use tickpath_log::{Config as LogConfig, LogPath, Reader, ReaderStart, Registration};
use tickpath_market::VenueId;
use tickpath_oms_core::{Config as CoreConfig, Core, Input, Output};
use tickpath_oms_runtime::front_end::{FrontEndState, OpenFrontEnd};
use tickpath_oms_runtime::layout::Inline;
use tickpath_oms_runtime::{
    Agent, Config, LanesConfig, Layout, ManualCommit, Notice, OmsError, Sequencer, TradingDefinitions, journal,
    snapshot,
};

use crate::clock::{Killed, SimClock};
use crate::disk::{Disk, WriteFate};
use crate::lines::SimLineConfig;
use crate::plan::Dice;
use crate::remote::{RemoteWires, SimFrontEnd};
use crate::roll;
use crate::rule::{BrokenRule, broken};
use crate::silence;
use crate::trading_config::{LANE_SESSIONS, VENUES, trading_config};

const SECOND: u64 = 1_000_000_000;
const SEGMENT_BYTES: usize = 16 << 10;
/// Bytes of each lane: room for some hundred messages.
const LANE_BYTES: usize = 8 * 4096;
/// Starts and syncs between two snapshots.
const SNAPSHOT_EVERY: u64 = 3;
/// Start of the simulated time: in 2026.
const DAWN_NS: u64 = 1_770_000_000 * SECOND;

/// The host.
pub struct Host {
    pub config: Config,
    pub clock: SimClock,
    process: Option<Process>,
    disk: Disk,
    boots: u64,
    is_disk_bad: bool,
    /// Notices that were already counted.
    noticed: u64,
    /// Requests in flight from sessions without lanes, and the next request of each as of the last start.
    pub wires: RemoteWires,
    pub next_request: Vec<u64>,
    /// The lines of a venue that is reached by lines.
    pub terms: Option<SimLineConfig>,
    /// Number of opportunities for a snapshot so far.
    snapshot_turns: u64,
    /// Source of each start's random seed, because a real start draws its own.
    starts: Dice,
    folder: TempDir,
}

/// Findings of a replay of the journal.
pub struct JournalFindings {
    /// Orders in the journal.
    pub orders: BTreeSet<u64>,
    /// Ended days in the journal.
    pub days: u64,
}

struct Process {
    oms: Inline<SimClock, SimFrontEnd>,
    hand: ManualCommit,
}

impl Host {
    pub fn new(seed: u64) -> Self {
        static HOSTS: AtomicU64 = AtomicU64::new(0);
        let name = format!("oms-sim-{}-{seed}-{}", std::process::id(), HOSTS.fetch_add(1, Ordering::Relaxed));
        let folder = memory_folder(&name);
        let clock = SimClock::of_boot(1, 1_000, DAWN_NS);
        let terms = SimLineConfig::of(seed, &clock);
        let config = config(&name, folder.path(), seed, terms.as_ref());
        let disk = Disk::new(config.journal.path.dir().join("data"), SEGMENT_BYTES);
        Self {
            config,
            clock,
            process: None,
            disk,
            boots: 1,
            is_disk_bad: false,
            noticed: 0,
            wires: RemoteWires::default(),
            next_request: Vec::new(),
            terms,
            snapshot_turns: 0,
            starts: Dice::new(seed ^ 0x7374_6172_7473),
            folder,
        }
    }

    /// Starts the OMS; false if it was killed at this reading of its clock.
    pub fn start(&mut self, kill_at: u64) -> Result<bool, OmsError> {
        self.snapshot();
        self.config.seed = Some(self.starts.draw());
        let (clock, config, wires) = (self.clock.of_mortal(), &self.config, self.wires.clone());
        let opened = until_killed(&self.clock, kill_at, || {
            let mut next_request = Vec::new();
            let open = |_: &mut Sequencer<SimClock>, opening: FrontEndState| {
                next_request.clone_from(&opening.next_request);
                Ok(OpenFrontEnd::of(SimFrontEnd::new(wires, clock.clone(), opening)))
            };
            let mut oms = Inline::with_front_end(clock.clone(), config, Some(open), None)?;
            let hand = oms.sequencer().commit_manually()?;
            Ok::<_, OmsError>((Process { oms, hand }, next_request))
        });
        self.disk.observe_sync();
        (self.noticed, self.is_disk_bad) = (0, false);
        match opened {
            Some(started) => {
                let (process, next_request) = started?;
                (self.process, self.next_request) = (Some(process), next_request);
            }
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Runs one turn of the OMS; none if it is down or was killed in the turn.
    pub fn poll(&mut self, kill_at: u64) -> Result<Option<usize>, OmsError> {
        self.with(kill_at, |process| process.oms.poll())
    }

    /// Runs an action outside of the OMS's turns; none if the OMS is down or was killed in it.
    pub fn call<T>(
        &mut self,
        kill_at: u64,
        what: impl FnOnce(&mut Sequencer<SimClock>) -> Result<T, OmsError>,
    ) -> Result<Option<T>, OmsError> {
        self.with(kill_at, |process| what(process.oms.sequencer()))
    }

    /// Completes the disk's pending sync; false if there is none.
    pub fn commit(&mut self) -> bool {
        let Some(process) = &mut self.process else { return false };
        process.hand.commit();
        self.disk.observe_sync();
        self.snapshot();
        true
    }

    /// Makes a snapshot of the present journal from time to time, even if the journal is unreadable.
    fn snapshot(&mut self) {
        self.snapshot_turns += 1;
        if self.snapshot_turns.is_multiple_of(SNAPSHOT_EVERY) {
            let _ = snapshot::make(&self.config.journal.path);
        }
    }

    pub fn fail_disk(&mut self) {
        if let Some(process) = &mut self.process {
            process.hand.fail();
            self.is_disk_bad = true;
        }
    }

    /// Swaps the numbers of the two symbols in the configuration.
    pub fn renumber(&mut self) {
        let [first, second] = &mut self.config.trading.instruments[..] else { panic!("the desk has two symbols") };
        let (first_name, second_name) = (first.name(), second.name());
        (*first, *second) = (first.with_name(second_name), second.with_name(first_name));
    }

    /// Kills the OMS by SIGKILL.
    pub fn kill(&mut self) -> bool {
        self.process.take().is_some()
    }

    pub fn sequencer(&mut self) -> Option<&mut Sequencer<SimClock>> {
        self.process.as_mut().map(|process| process.oms.sequencer())
    }

    /// Returns whether the disk has failed, according to the OMS.
    pub fn has_bad_disk(&self) -> bool {
        self.is_disk_bad
    }

    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Returns the notices to the operator since the last call.
    pub fn new_notices(&mut self) -> Vec<Notice> {
        let Some(process) = &mut self.process else { return Vec::new() };
        let sequencer = process.oms.sequencer();
        let new = sequencer.notice_count() - std::mem::replace(&mut self.noticed, sequencer.notice_count());
        let skipped = sequencer.notices().count().saturating_sub(new as usize);
        sequencer.notices().skip(skipped).cloned().collect()
    }

    /// Cuts the host's power and boots it again; its processes must be gone before.
    pub fn lose_power(&mut self, dice: &mut Dice) -> WriteFate {
        self.process = None;
        let fate = self.disk.lose_power(dice);
        self.config.lanes.remove().expect("the lanes can be removed");
        self.boots += 1;
        // An operator may set back the clock of a machine that was off; stamps restart with each boot.
        let (minutes, is_back) = (dice.below(10) * 60 * SECOND, dice.one_in(3));
        let now = self.clock.utc_ns();
        let utc_ns = if is_back { now - minutes } else { now + minutes };
        self.clock = SimClock::of_boot(self.boots, 1 + dice.below(1_000_000), utc_ns);
        self.terms.iter().for_each(|terms| terms.set_clock(&self.clock));
        fate
    }

    /// Returns the number of the first record of the journal's own log.
    pub fn first_record(&self) -> u64 {
        let log = Reader::open(&self.config.journal.path, ReaderStart::Oldest, Registration::Unregistered);
        log.expect("the OMS has opened its journal").first_sequence()
    }

    /// Kills the OMS, which has just rolled the log that began with this record, and undoes some steps of the roll, as
    /// if the kill had come between two of its file operations. Returns the number of steps undone.
    pub fn undo_roll(&mut self, first: u64, dice: &mut Dice) -> usize {
        self.process = None;
        let undone = roll::undo(self.config.journal.path.dir(), first, dice);
        self.disk.begin_anew();
        self.disk.observe_sync();
        undone
    }

    /// Fills the disk for the end of a day: one of the files that reserve space cannot be made.
    pub fn fill_disk(&self, is_first: bool) {
        let [reports, roll] = self.ballast();
        fs::create_dir(if is_first { reports } else { roll }).expect("a folder can be made");
    }

    /// Frees the disk. Returns the number of reservation files that are left.
    pub fn free_disk(&self) -> usize {
        let ballast = self.ballast();
        ballast.iter().filter(|path| path.is_dir()).for_each(|path| fs::remove_dir(path).expect("it is empty"));
        ballast.iter().filter(|path| path.exists()).count()
    }

    /// Returns the paths of the files that reserve the disk space of a day's end.
    fn ballast(&self) -> [PathBuf; 2] {
        ["ballast.reports", "ballast.roll"].map(|name| self.config.journal.path.dir().join(name))
    }

    /// Replays the journal.
    pub fn journaled(&self) -> Result<JournalFindings, BrokenRule> {
        let mut core = Core::new(CoreConfig::default());
        let (mut orders, mut days) = (BTreeSet::new(), 0);
        let replayed = journal::replay(&self.config.journal.path, &mut core, |input, outputs| {
            days += u64::from(matches!(input, Input::DayEnd(_)));
            orders.extend(outputs.iter().filter_map(|output| match output {
                Output::Report { report, .. } => Some(report.order_id.0),
                Output::Venue { .. } | Output::Denied { .. } | Output::Extension { .. } => None,
            }));
        });
        replayed.map(|_| JournalFindings { orders, days }).or_else(|e| broken("replays agree", e.to_string()))
    }

    pub fn let_disk_lie(&mut self) {
        self.disk.drop_synced_writes();
    }

    /// Copies the lanes in shared memory.
    pub fn copy_lanes(&self) {
        let copies = self.folder.path().join("copies");
        let _ = fs::remove_dir_all(&copies);
        for (lane, copy) in self.lane_folders() {
            if lane.exists() {
                copy_folder(&lane, &copy);
            }
        }
    }

    /// Restores the copies of the lanes; false if there are none.
    pub fn put_lanes_back(&self) -> bool {
        let copied: Vec<_> = self.lane_folders().into_iter().filter(|(_, copy)| copy.exists()).collect();
        copied.iter().for_each(|(lane, copy)| copy_folder(copy, lane));
        !copied.is_empty()
    }

    fn lane_folders(&self) -> Vec<(PathBuf, PathBuf)> {
        let copies = self.folder.path().join("copies");
        let lane = |kind| self.config.lanes.lane(kind).expect("a good name").path.dir().to_owned();
        let both = |lane: PathBuf| (lane.clone(), copies.join(lane.file_name().expect("a lane has a name")));
        self.config.lanes.kinds().map(lane).map(both).collect()
    }

    fn with<T>(
        &mut self,
        kill_at: u64,
        what: impl FnOnce(&mut Process) -> Result<T, OmsError>,
    ) -> Result<Option<T>, OmsError> {
        let Some(process) = &mut self.process else { return Ok(None) };
        let done = until_killed(&self.clock, kill_at, || what(process));
        self.disk.observe_sync();
        match done {
            Some(done) => done.map(Some),
            None => {
                self.process = None;
                Ok(None)
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.process = None;
        // No lane of the simulation stays, however it ended.
        let _ = self.config.lanes.remove();
    }
}

/// Returns the configuration of an OMS on this host.
fn config(name: &str, folder: &Path, seed: u64, terms: Option<&SimLineConfig>) -> Config {
    let journal = LogConfig::journal(LogPath::folder(folder.join("journal")));
    let lined = terms.map(SimLineConfig::venue);
    let venues: Vec<VenueId> = VENUES.into_iter().filter(|venue| Some(*venue) != lined).collect();
    let lines = terms.map(SimLineConfig::configs).unwrap_or_default();
    let lanes = LanesConfig { lines, ..LanesConfig::new(name, LANE_SESSIONS, &venues) };
    Config {
        lanes: LanesConfig { request_bytes: LANE_BYTES, report_bytes: LANE_BYTES, ..lanes },
        journal: LogConfig { segment_bytes: SEGMENT_BYTES, ..journal },
        trading: TradingDefinitions { expectations: silence::watch(seed), ..trading_config(lined) },
        expected_orders: 64,
        layout: Layout::Inline,
        wait: Wait::Yield,
        cpu: None,
        other_cpu: None,
        priority: Priority::Normal,
        snapshot_every: 0,
        warm_up: false,
        history: true,
        seed: Some(seed),
    }
}

/// Makes a folder that is removed on drop; in shared memory if available, so that a sync costs nothing.
fn memory_folder(name: &str) -> TempDir {
    let memory = LogPath::shared_memory(name).expect("a good name").dir().parent().map(Path::to_owned);
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("oms-sim-");
    let folder = match memory.filter(|memory| memory.is_dir()) {
        Some(memory) => builder.tempdir_in(memory),
        None => builder.tempdir(),
    };
    folder.expect("a temporary folder can be made")
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder can be read") {
        let entry = entry.expect("the folder can be read");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a file can be copied");
    }
}

/// Runs `work` until it ends or the clock kills it; other panics propagate.
fn until_killed<T>(clock: &SimClock, kill_at: u64, work: impl FnOnce() -> T) -> Option<T> {
    clock.kill_at(kill_at);
    let done = catch_unwind(AssertUnwindSafe(work));
    clock.kill_at(0);
    match done {
        Ok(done) => Some(done),
        Err(cause) if cause.is::<Killed>() => None,
        Err(cause) => resume_unwind(cause),
    }
}
