//! The logs between clients, OMS, venues and operators. The OMS makes them all, and each names the journal that it
//! belongs to, the start that made it, and its one mandatory reader; the others join.

use tickpath_clock::{Calibration, sleep_ns};
use tickpath_log::{
    Config, LogFile, Message, OpenError, Owner, Place, Policy, Reader, Registration, Start, Writer, evict,
    mandatory_reader, retire,
};
use tickpath_market::VenueId;
use tickpath_oms_journal::{LaneKind, LineId};

use crate::line::LineConfig;

/// Where the lanes of one OMS lie, and how large they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanesConfig {
    /// What the lanes' names begin with.
    pub name: String,
    /// Client sessions, from 0.
    pub sessions: u16,
    /// Venues that come by lanes, each by its number.
    pub venues: Vec<VenueId>,
    /// Lines to all other venues.
    pub lines: Vec<LineConfig>,
    /// Bytes of each request lane.
    pub request_bytes: usize,
    /// Bytes of each report log: a client that lags by more than this learns how many reports it missed.
    pub report_bytes: usize,
}

/// What a lane, a line, or a front brings.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message.
    Message(&'a Message<'a>),
    /// So many messages are gone.
    Missed(u64),
    /// It is damaged: nothing more comes.
    Damaged(String),
    /// Its client has come, or is gone.
    Login(bool),
    /// A line's venue has not got this request.
    Returned(&'a Message<'a>),
    /// A line's venue may have lost something: requests or reports, as a doubt says it, and so many of them if that is known.
    Lost {
        /// As [`tickpath_orders::Doubt`] has it.
        what: u8,
        /// How many; zero if that is not known.
        messages: u64,
    },
    /// A line is connected, and all below this number of its lane was given back.
    LineUp(u64),
    /// A line is not connected, and why.
    LineDown(&'a str),
}

/// A client's ends of its lanes.
pub struct SessionLanes {
    /// To the OMS.
    pub requests: Writer,
    /// From the OMS.
    pub reports: Reader,
}

/// A venue's ends of its lanes.
pub struct VenueLanes {
    /// From the OMS.
    pub requests: Reader,
    /// To the OMS.
    pub reports: Writer,
}

impl LanesConfig {
    /// Lanes of a mebibyte, which stay in a core's second-level cache.
    pub fn new(name: &str, sessions: u16, venues: &[VenueId]) -> Self {
        let (request_bytes, report_bytes) = (1 << 20, 1 << 20);
        Self {
            name: name.to_owned(),
            sessions,
            venues: venues.to_vec(),
            lines: Vec::new(),
            request_bytes,
            report_bytes,
        }
    }

    /// All lanes.
    pub fn kinds(&self) -> impl Iterator<Item = LaneKind> + '_ {
        let sessions = (0..self.sessions).flat_map(|s| [LaneKind::Requests(s), LaneKind::Reports(s)]);
        let venues = self.venues.iter().flat_map(|&v| [LaneKind::VenueRequests(v), LaneKind::VenueReports(v)]);
        let lines = self.lines.iter().map(|line| LaneKind::Line(line.id));
        sessions.chain(venues).chain(lines).chain([LaneKind::Control])
    }

    /// All venues, by lanes or by lines.
    pub fn all_venues(&self) -> Vec<VenueId> {
        let mut venues: Vec<VenueId> = self.lines.iter().map(|line| line.id.venue).collect();
        venues.dedup();
        venues.splice(0..0, self.venues.iter().copied());
        venues
    }

    /// A lane as the OMS makes it, without its owner.
    pub fn lane(&self, kind: LaneKind) -> Result<Config, OpenError> {
        let (what, bytes) = match kind {
            LaneKind::Requests(session) => (format!("s{session}.requests"), self.request_bytes),
            LaneKind::Reports(session) => (format!("s{session}.reports"), self.report_bytes),
            LaneKind::VenueRequests(venue) => (format!("v{venue}.requests"), self.request_bytes),
            LaneKind::VenueReports(venue) => (format!("v{venue}.reports"), self.report_bytes),
            LaneKind::Line(LineId { venue, line }) => (format!("v{venue}.line{line}"), self.request_bytes),
            LaneKind::Control => ("control".to_owned(), CONTROL_BYTES),
        };
        // A report log goes on without its reader; all others are of no use without theirs.
        let mandatory = !matches!(kind, LaneKind::Reports(_));
        let policy = if mandatory { Policy::Fail } else { Policy::Overwrite };
        let place = Place::shared_memory(&format!("{}.{what}", self.name))?;
        let topic = Config::topic(place, policy);
        let segment_bytes = (bytes / topic.segments).next_multiple_of(4096).max(4096);
        Ok(Config { segment_bytes, mandatory, ..topic })
    }

    /// The client's ends of a session's lanes. They are not there before the OMS has made them.
    pub fn join_session(&self, session: u16, calibration: &Calibration) -> Result<SessionLanes, OpenError> {
        let requests = Writer::join(&self.lane(LaneKind::Requests(session))?, calibration)?;
        let reports = self.lane(LaneKind::Reports(session))?;
        let reports = Reader::open(&reports.place, Start::Oldest, Registration::Registered)?;
        Ok(SessionLanes { requests, reports })
    }

    /// A venue's ends of its lanes. They are not there before the OMS has made them. It reads on where its last process
    /// has stopped.
    pub fn join_venue(&self, venue: VenueId, calibration: &Calibration) -> Result<VenueLanes, OpenError> {
        let requests = self.lane(LaneKind::VenueRequests(venue))?;
        let requests = Reader::open(&requests.place, Start::Cursor, Registration::Mandatory)?;
        let reports = Writer::join(&self.lane(LaneKind::VenueReports(venue))?, calibration)?;
        Ok(VenueLanes { requests, reports })
    }

    /// The operator's end of the control lane: kills, resolutions, questions, ends of days, each as the journal's record
    /// of that kind.
    pub fn join_control(&self, calibration: &Calibration) -> Result<Writer, OpenError> {
        Writer::join(&self.lane(LaneKind::Control)?, calibration)
    }

    /// Refuses where another OMS has these lanes: it reads the words of the operator, as no client can.
    pub(crate) fn refuse_another(&self) -> Result<(), OpenError> {
        let place = self.lane(LaneKind::Control)?.place;
        mandatory_reader(&place).map_or(Ok(()), |pid| Err(OpenError::HasReader { place, pid }))
    }

    /// Removes all lanes. Processes that have them open keep what they have.
    pub fn remove(&self) -> Result<(), OpenError> {
        for kind in self.kinds() {
            let place = self.lane(kind)?.place;
            if place.exists() {
                place.remove().map_err(|reason| OpenError::Io { place: place.clone(), reason })?;
            }
        }
        Ok(())
    }
}

/// The lanes' files as they lay when the OMS was ready, to see when they are removed.
#[derive(Debug, Default)]
pub(crate) struct LaneFiles {
    files: Vec<(LaneKind, LogFile)>,
    /// Looks so far.
    looks: usize,
    is_told: bool,
}

impl LaneFiles {
    pub fn of(lanes: &LanesConfig) -> Result<Self, OpenError> {
        let file = |kind| lanes.lane(kind).map(|lane| (kind, LogFile::at(&lane.place)));
        let files = lanes.kinds().map(file).collect::<Result<_, _>>()?;
        Ok(Self { files, looks: 0, is_told: false })
    }

    /// Looks at one lane, the operator's in every other turn, and at all if it is gone. Gives once how many are, and the
    /// first of them.
    pub fn look(&mut self) -> Option<(usize, LaneKind)> {
        let control = self.files.len().checked_sub(1).filter(|_| !self.is_told)?;
        self.looks += 1;
        let place = if self.looks.is_multiple_of(2) { control } else { self.looks / 2 % self.files.len() };
        if !self.files[place].1.is_removed() {
            return None;
        }
        let mut gone = self.files.iter().filter(|(_, file)| file.is_removed()).map(|(kind, _)| *kind);
        let first = gone.next()?;
        let count = 1 + gone.count();
        self.is_told = true;
        Some((count, first))
    }
}

/// Bytes of the control lane: an operator says little.
const CONTROL_BYTES: usize = 64 << 10;

/// How long another process has to see that the OMS which it reads has gone, and the pause between two looks.
const LEAVING_NS: u64 = 3_000_000_000;
const PAUSE_NS: u64 = 10_000_000;

/// Removes a stale lane. Its reader may just be about to leave: a venue looks each tenth of a second whether its OMS is
/// there. A reader of this process cannot leave while we wait. Nobody waits for the client of a session.
pub(crate) fn take_away(kind: LaneKind, place: &Place) -> Result<(), OpenError> {
    if kind.is_of_session() {
        return evict(place);
    }
    let mut waited = 0;
    loop {
        match retire(place) {
            Err(OpenError::HasReader { pid, .. }) if pid != std::process::id() && waited < LEAVING_NS => {
                sleep_ns(PAUSE_NS);
                waited += PAUSE_NS;
            }
            retired => return retired,
        }
    }
}

/// Makes a lane for a journal, by the start with this epoch, beginning with this number.
pub(crate) fn make(config: Config, owner: Owner, calibration: &Calibration) -> Result<Writer, OpenError> {
    let config = Config { owner, first_sequence: owner.base, ..config };
    match config.mandatory {
        true => Writer::open(&config, calibration),
        false => Writer::open_untrusted(&config, calibration),
    }
}
