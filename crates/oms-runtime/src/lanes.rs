//! The logs between clients, OMS, venues and operators. The OMS makes them all, and each names its journal, the start
//! that made it, and its one mandatory reader; clients, venues and operators join.

use tickpath_clock::{Calibration, sleep_ns};
use tickpath_log::{
    Config, LogFile, LogMessage, LogOpenError, LogOwner, LogPath, OverflowPolicy, Reader, ReaderStart, Registration,
    Writer, force_remove, mandatory_reader, remove_stale as remove_stale_log,
};
use tickpath_market::VenueId;
use tickpath_oms_journal::{LaneKind, LineId};

use crate::line_config::OmsLineConfig;

/// Location and size of the lanes of one OMS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanesConfig {
    /// Prefix of the lanes' names.
    pub name: String,
    /// Number of client sessions, counted from 0.
    pub sessions: u16,
    /// Numbers of the venues that are reached by lanes.
    pub venues: Vec<VenueId>,
    /// Lines to all other venues.
    pub lines: Vec<OmsLineConfig>,
    /// Bytes of each request lane.
    pub request_bytes: usize,
    /// Bytes of each report log: a client that lags by more loses reports, and receives their number.
    pub report_bytes: usize,
}

/// Event of a lane, a line, or a front end.
#[derive(Debug)]
pub enum InputEvent<'a> {
    /// A message.
    Message(&'a LogMessage<'a>),
    /// Number of messages that are lost.
    Missed(u64),
    /// The lane is damaged, for this reason: no more events follow.
    Damaged(String),
    /// The session's client has connected, or disconnected.
    Login(bool),
    /// A request that the line's venue does not have.
    Returned(&'a LogMessage<'a>),
    /// A line's venue may have lost requests or reports.
    Lost {
        /// Requests or reports, coded as in [`tickpath_oms_core::MessageLoss`].
        what: u8,
        /// Number of messages; zero if it is not known.
        messages: u64,
    },
    /// A line is connected: each request below this number of its lane is proven, in doubt or given back.
    LineUp(u64),
    /// A line is not connected, for this reason.
    LineDown(&'a str),
}

/// A client's ends of its lanes.
pub struct SessionLanes {
    /// Requests to the OMS.
    pub requests: Writer,
    /// Reports from the OMS.
    pub reports: Reader,
}

/// A venue's ends of its lanes.
pub struct VenueLanes {
    /// Requests from the OMS.
    pub requests: Reader,
    /// Reports to the OMS.
    pub reports: Writer,
}

impl LanesConfig {
    /// Returns lanes of a mebibyte each, which stay in a processor's second-level cache.
    pub fn new(name: &str, sessions: u16, venues: &[VenueId]) -> Self {
        let (name, venues, bytes) = (name.to_owned(), venues.to_vec(), 1 << 20);
        Self { name, sessions, venues, lines: Vec::new(), request_bytes: bytes, report_bytes: bytes }
    }

    /// Returns all lanes.
    pub fn kinds(&self) -> impl Iterator<Item = LaneKind> + '_ {
        let sessions = (0..self.sessions).flat_map(|s| [LaneKind::Requests(s), LaneKind::Reports(s)]);
        let venues = self.venues.iter().flat_map(|&v| [LaneKind::VenueRequests(v), LaneKind::VenueReports(v)]);
        let lines = self.lines.iter().map(|line| LaneKind::Line(line.id));
        sessions.chain(venues).chain(lines).chain([LaneKind::Control])
    }

    /// Returns all venues, those with lanes before those with lines.
    pub fn all_venues(&self) -> Vec<VenueId> {
        let mut venues: Vec<VenueId> = self.lines.iter().map(|line| line.id.venue).collect();
        venues.dedup();
        venues.splice(0..0, self.venues.iter().copied());
        venues
    }

    /// Returns a lane's configuration as the OMS makes it, without the owner.
    pub fn lane(&self, kind: LaneKind) -> Result<Config, LogOpenError> {
        let (name, bytes) = match kind {
            LaneKind::Requests(session) => (format!("s{session}.requests"), self.request_bytes),
            LaneKind::Reports(session) => (format!("s{session}.reports"), self.report_bytes),
            LaneKind::VenueRequests(venue) => (format!("v{venue}.requests"), self.request_bytes),
            LaneKind::VenueReports(venue) => (format!("v{venue}.reports"), self.report_bytes),
            LaneKind::Line(LineId { venue, line }) => (format!("v{venue}.line{line}"), self.request_bytes),
            LaneKind::Control => ("control".to_owned(), CONTROL_BYTES),
        };
        // A report log works without its reader; all other lanes are useless without theirs.
        let mandatory = !matches!(kind, LaneKind::Reports(_));
        let policy = if mandatory { OverflowPolicy::Fail } else { OverflowPolicy::Overwrite };
        let path = LogPath::shared_memory(&format!("{}.{name}", self.name))?;
        let topic = Config::topic(path, policy);
        let segment_bytes = (bytes / topic.segments).next_multiple_of(4096).max(4096);
        Ok(Config { segment_bytes, mandatory, ..topic })
    }

    /// Opens the client's ends of a session's lanes, which exist once the OMS has made them.
    pub fn join_session(&self, session: u16, calibration: &Calibration) -> Result<SessionLanes, LogOpenError> {
        let requests = Writer::open_existing(&self.lane(LaneKind::Requests(session))?, calibration)?;
        let reports = self.lane(LaneKind::Reports(session))?;
        let reports = Reader::open(&reports.path, ReaderStart::Oldest, Registration::Registered)?;
        Ok(SessionLanes { requests, reports })
    }

    /// Opens a venue's ends of its lanes, which exist once the OMS has made them. Reading resumes where the venue's
    /// last process stopped.
    pub fn join_venue(&self, venue: VenueId, calibration: &Calibration) -> Result<VenueLanes, LogOpenError> {
        let requests = self.lane(LaneKind::VenueRequests(venue))?;
        let requests = Reader::open(&requests.path, ReaderStart::Cursor, Registration::Mandatory)?;
        let reports = Writer::open_existing(&self.lane(LaneKind::VenueReports(venue))?, calibration)?;
        Ok(VenueLanes { requests, reports })
    }

    /// Opens the operator's end of the control lane: kills, resolutions, questions and ends of days, each as the
    /// journal's record of that kind.
    pub fn join_control(&self, calibration: &Calibration) -> Result<Writer, LogOpenError> {
        Writer::open_existing(&self.lane(LaneKind::Control)?, calibration)
    }

    /// Returns an error if another OMS has these lanes: it reads the control lane, as no client can.
    pub(crate) fn refuse_second_oms(&self) -> Result<(), LogOpenError> {
        let place = self.lane(LaneKind::Control)?.path;
        mandatory_reader(&place).map_or(Ok(()), |pid| Err(LogOpenError::HasReader { place, pid }))
    }

    /// Removes all lanes. Processes that have them open keep their mappings.
    pub fn remove(&self) -> Result<(), LogOpenError> {
        for kind in self.kinds() {
            let place = self.lane(kind)?.path;
            if place.exists() {
                place.remove().map_err(|reason| LogOpenError::Io { place: place.clone(), reason })?;
            }
        }
        Ok(())
    }
}

/// Files of the lanes as they lay when the OMS was ready, to detect their removal.
#[derive(Debug, Default)]
pub(crate) struct LaneFiles {
    files: Vec<(LaneKind, LogFile)>,
    /// Number of checks so far.
    checks: usize,
    is_reported: bool,
}

impl LaneFiles {
    pub fn of(lanes: &LanesConfig) -> Result<Self, LogOpenError> {
        let file = |kind| lanes.lane(kind).map(|lane| (kind, LogFile::at(&lane.path)));
        let files = lanes.kinds().map(file).collect::<Result<_, _>>()?;
        Ok(Self { files, checks: 0, is_reported: false })
    }

    /// Checks one lane, the control lane in every other turn, and all lanes if that lane is gone. Returns, once, the
    /// number of removed lanes and the first of them.
    pub fn check(&mut self) -> Option<(usize, LaneKind)> {
        let control = self.files.len().checked_sub(1).filter(|_| !self.is_reported)?;
        self.checks += 1;
        let index = if self.checks.is_multiple_of(2) { control } else { self.checks / 2 % self.files.len() };
        if !self.files[index].1.is_removed() {
            return None;
        }
        let mut removed = self.files.iter().filter(|(_, file)| file.is_removed()).map(|(kind, _)| *kind);
        let first = removed.next()?;
        let count = 1 + removed.count();
        self.is_reported = true;
        Some((count, first))
    }
}

/// Bytes of the control lane, which carries few messages.
const CONTROL_BYTES: usize = 64 << 10;

/// Max nanoseconds for another process to notice that its OMS has ended, and the pause between two checks.
const LEAVING_NS: u64 = 3_000_000_000;
const PAUSE_NS: u64 = 10_000_000;

/// Removes a stale lane, and waits for its reader to leave: a venue checks only each tenth of a second that its OMS is
/// alive. A reader in this process cannot leave meanwhile and fails at once, and a session's client is evicted.
pub(crate) fn remove_stale(kind: LaneKind, path: &LogPath) -> Result<(), LogOpenError> {
    if kind.is_session_lane() {
        return force_remove(path);
    }
    let mut waited = 0;
    loop {
        match remove_stale_log(path) {
            Err(LogOpenError::HasReader { pid, .. }) if pid != std::process::id() && waited < LEAVING_NS => {
                sleep_ns(PAUSE_NS);
                waited += PAUSE_NS;
            }
            removed => return removed,
        }
    }
}

/// Makes a lane; its owner names the journal, the epoch of the start, and the lane's first number.
pub(crate) fn make_lane(config: Config, owner: LogOwner, calibration: &Calibration) -> Result<Writer, LogOpenError> {
    let config = Config { owner, first_sequence: owner.base, ..config };
    match config.mandatory {
        true => Writer::open(&config, calibration),
        false => Writer::open_untrusted(&config, calibration),
    }
}
