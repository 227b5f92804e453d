//! Lanes, market and journal of a venue, one set a test, with the actions of the OMS and the feed.

use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tickpath_clock::{Clock, SimulatedClock};
use tickpath_log::{
    Config as LogConfig, LogOwner, LogPath, LogPublishError, Next, OverflowPolicy, Reader, ReaderStart, Registration,
    Writer,
};
use tickpath_market::{ExecutionReport, Kind, VenueId};
use tickpath_venue_sim::{Config, EngineConfig, InjectedFaults, RecoverError, VenueEngine};
use zerocopy::{FromBytes, IntoBytes};

use crate::random_commands::{Command, SYMBOLS};

/// Time before the first step, in ticks.
pub const MORNING: u64 = 1_000;

/// A frame of a log: stamp, kind and payload.
pub type Frame = (u64, u8, Vec<u8>);

/// An event at a venue.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Command(Command),
    /// Bytes on the request lane that are no request.
    Garbage,
}

pub struct World {
    pub clock: SimulatedClock,
    pub config: EngineConfig,
    /// The OMS's ends of the lanes; without the reader, the lane takes no reports.
    pub requests: Writer,
    pub reports: Option<Reader>,
    /// Starting point of the venue's reader of requests.
    pub start: ReaderStart,
    feed: Writer,
    /// Prefix of the lanes' names.
    name: String,
    _folder: TempDir,
}

impl World {
    pub fn new() -> Self {
        Self::with(InjectedFaults::default())
    }

    /// Makes a venue with injected faults.
    pub fn with(faults: InjectedFaults) -> Self {
        static WORLDS: AtomicU64 = AtomicU64::new(0);
        let name = format!("venue-test-{}-{}", std::process::id(), WORLDS.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let clock = SimulatedClock::at(MORNING);
        let journal =
            LogConfig { segment_bytes: 64 << 10, ..LogConfig::journal(LogPath::folder(folder.path().join("journal"))) };
        let venue = Config { venue: VenueId(3), symbols: SYMBOLS, expected_orders: 16 };
        let feed =
            Writer::open(&LogConfig::topic(path(&name, "market"), OverflowPolicy::Overwrite), clock.calibration());
        let requests = make(&lane(&name, "requests", 1), &clock);
        drop(make(&lane(&name, "reports", 1), &clock));
        let mut world = Self {
            clock,
            config: EngineConfig { venue, journal, quotes: Vec::new(), faults },
            requests,
            reports: None,
            start: ReaderStart::Oldest,
            feed: feed.expect("the topic is new"),
            name,
            _folder: folder,
        };
        world.attach_oms();
        world
    }

    /// Attaches the OMS's reader of reports.
    pub fn attach_oms(&mut self) {
        let reader = Reader::open(&self.path("reports"), ReaderStart::Cursor, Registration::Mandatory);
        self.reports = Some(reader.expect("the lane is there, and nobody else reads it"));
    }

    /// Removes both lanes and makes those of the next incarnation of the OMS.
    pub fn lose_lanes(&mut self, incarnation: u64) {
        self.reports = None;
        self.path("reports").remove().expect("the lane is there");
        self.path("requests").remove().expect("the lane is there");
        drop(make(&lane(&self.name, "reports", incarnation), &self.clock));
        self.requests = make(&lane(&self.name, "requests", incarnation), &self.clock);
        self.attach_oms();
    }

    pub fn open(&self) -> VenueEngine<SimulatedClock> {
        self.try_open().unwrap_or_else(|e| panic!("the line does not open: {e}"))
    }

    /// Opens the venue on these lanes, without ticks.
    pub fn open_without_ticks(&self) -> VenueEngine<SimulatedClock> {
        let requests = Reader::open(&self.path("requests"), self.start, Registration::Mandatory);
        let requests = requests.expect("the lane is there, and nobody else reads it");
        let line = VenueEngine::open(self.clock.clone(), &self.config, requests, self.join_reports(), None);
        line.unwrap_or_else(|e| panic!("the line does not open: {e}"))
    }

    /// Opens the venue's line, with ticks from the oldest on.
    pub fn try_open(&self) -> Result<VenueEngine<SimulatedClock>, RecoverError> {
        let requests = Reader::open(&self.path("requests"), self.start, Registration::Mandatory)?;
        let market = Reader::open(&self.path("market"), ReaderStart::Oldest, Registration::Registered)?;
        VenueEngine::open(self.clock.clone(), &self.config, requests, self.join_reports(), Some(market))
    }

    /// Joins the venue's end of the report lane.
    pub fn join_reports(&self) -> Writer {
        let joined = Writer::open_existing(&lane(&self.name, "reports", 1), self.clock.calibration());
        joined.expect("the lane is there, and nobody else writes it")
    }

    /// Publishes the message of a step on a lane or the topic.
    pub fn feed(&mut self, step: &Step, stamp: u64) {
        match step {
            Step::Garbage => self.ask(stamp, 40, b"no request"),
            Step::Command(Command::Request(request)) => self.ask(stamp, request.kind().code(), request.as_bytes()),
            Step::Command(Command::Tick(tick)) => {
                let published = self.feed.publish(stamp, Kind::TopOfBook.code(), tick.as_bytes());
                published.expect("an overwrite topic takes all");
            }
            Step::Command(Command::Bust(_) | Command::Correct(..) | Command::EndOfDay) => {}
        }
    }

    /// Sends a request of the OMS, which sends only to a running venue. Without a venue, the request counts as sent to
    /// a venue that was killed before it read it.
    fn ask(&mut self, stamp: u64, kind: u8, payload: &[u8]) {
        if let Err(LogPublishError::NoReader) = self.requests.publish(stamp, kind, payload) {
            let venue = Reader::open(&self.path("requests"), ReaderStart::Cursor, Registration::Mandatory);
            let published = self.requests.publish(stamp, kind, payload);
            published.expect("the lane has room");
            drop(venue);
        }
    }

    /// Returns all reports in the lane.
    pub fn reports(&self) -> Vec<ExecutionReport> {
        let read = |(_, _, payload): Frame| ExecutionReport::read_from_bytes(&payload).expect("a report");
        self.frames("reports").into_iter().map(read).collect()
    }

    /// Returns all frames of a log.
    pub fn frames(&self, name: &str) -> Vec<Frame> {
        let path = if name == "journal" { self.config.journal.path.clone() } else { self.path(name) };
        let mut reader = Reader::open(&path, ReaderStart::Oldest, Registration::Unregistered).expect("it is whole");
        let mut frames = Vec::new();
        while let Next::Message(message) = reader.next().expect("it is whole") {
            frames.push((message.stamp, message.kind, message.payload.to_vec()));
        }
        frames
    }

    fn path(&self, name: &str) -> LogPath {
        path(&self.name, name)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A failed test may have left only some of the lanes.
        for name in ["requests", "reports", "market"] {
            let _ = self.path(name).remove();
        }
    }
}

/// Applies the operator's action of a step.
pub fn operate(line: &mut VenueEngine<SimulatedClock>, step: &Step) {
    // A fill that cannot be changed in this run cannot be changed in any.
    let _ = match *step {
        Step::Command(Command::Bust(fill)) => line.bust(fill),
        Step::Command(Command::Correct(fill, price, quantity)) => line.correct(fill, price, quantity),
        Step::Command(Command::EndOfDay) => line.end_of_day().map_err(Into::into),
        Step::Command(Command::Request(_) | Command::Tick(_)) | Step::Garbage => Ok(()),
    };
}

/// Polls until the line is idle.
pub fn settle(line: &mut VenueEngine<SimulatedClock>) {
    while line.poll().expect("the line goes on") > 0 {}
}

fn make(config: &LogConfig, clock: &SimulatedClock) -> Writer {
    Writer::open(config, clock.calibration()).expect("the lane is new")
}

fn lane(world: &str, name: &str, incarnation: u64) -> LogConfig {
    LogConfig {
        owner: LogOwner { journal: 7, incarnation, base: 0 },
        mandatory: true,
        segment_bytes: 16 << 10,
        ..LogConfig::topic(path(world, name), OverflowPolicy::Fail)
    }
}

fn path(world: &str, name: &str) -> LogPath {
    LogPath::shared_memory(&format!("{world}.{name}")).expect("the name is good")
}
