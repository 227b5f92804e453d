//! The lanes between an OMS and its venue. The OMS creates them, and recreates them after a loss; the venue joins
//! existing lanes, and detects when they were replaced.
//!
//! ```text
//!   NAME.vN.requests   OMS ──> venue    the venue is its mandatory reader
//!   NAME.vN.reports    venue ──> OMS    the OMS is its mandatory reader, once it has made all lanes
//! ```
//!
//! An OMS that starts may have to replace its lanes, and cannot while the venue reads them. Therefore the venue leaves
//! them when the OMS exits, and joins when the OMS reads its reports again, which is the OMS's last step with the lanes
//! at its start.

use tickpath_clock::Calibration;
use tickpath_log::{
    Config as LogConfig, LogOpenError, LogOwner, LogPath, LogPathError, OverflowPolicy, Reader, ReaderStart,
    Registration, Writer, owner,
};
use tickpath_market::VenueId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LanePaths {
    pub requests: LogPath,
    pub reports: LogPath,
}

pub(crate) struct LaneEnds {
    pub requests: Reader,
    pub reports: Writer,
    pub joined: JoinedLanes,
}

/// Identity of the joined lanes, to detect their replacement.
pub(crate) struct JoinedLanes {
    paths: LanePaths,
    owners: [LogOwner; 2],
    /// Unregistered reader that checks for the lane's writer alone.
    requests: Reader,
}

#[derive(Debug)]
pub(crate) enum LanesUnavailable {
    NoLanes,
    /// The lanes exist, and the OMS is not running.
    NoOms,
    /// Opening the lanes failed with an error that may pass.
    Refused(LogOpenError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneStatus {
    Same,
    OmsExited,
    /// The lanes were removed or replaced.
    Replaced,
}

impl LanePaths {
    /// Returns the paths of the lanes between a venue and the OMS of this name.
    pub fn new(oms: &str, venue: VenueId) -> Result<Self, LogPathError> {
        let path = |what| LogPath::shared_memory(&format!("{oms}.v{}.{what}", venue.0));
        Ok(Self { requests: path("requests")?, reports: path("reports")? })
    }

    /// Joins the lanes, if they exist and the OMS is running.
    pub fn join(&self, calibration: &Calibration) -> Result<LaneEnds, LanesUnavailable> {
        let reports_reader = Reader::open(&self.reports, ReaderStart::Now, Registration::Unregistered)?;
        if !is_read(&reports_reader) {
            return Err(LanesUnavailable::NoOms);
        }
        let config = LogConfig { mandatory: true, ..LogConfig::topic(self.reports.clone(), OverflowPolicy::Fail) };
        let reports = Writer::open_existing(&config, calibration)?;
        // A reader that was killed is marked as away once a writer has joined, so this checks again.
        if !is_read(&reports_reader) {
            return Err(LanesUnavailable::NoOms);
        }
        let requests = Reader::open(&self.requests, ReaderStart::Cursor, Registration::Mandatory)?;
        let watcher = Reader::open(&self.requests, ReaderStart::Now, Registration::Unregistered)?;
        let owners = [requests.owner(), reports.owner()];
        let joined = JoinedLanes { paths: self.clone(), owners, requests: watcher };
        Ok(LaneEnds { requests, reports, joined })
    }
}

impl JoinedLanes {
    /// Checks for the same lanes and a running OMS. Takes some microseconds, because it asks the operating system.
    pub fn check(&self) -> LaneStatus {
        let LanePaths { requests, reports } = &self.paths;
        let is_same = |(path, joined)| owner(path).is_ok_and(|found| found == joined);
        if ![requests, reports].into_iter().zip(self.owners).all(is_same) {
            return LaneStatus::Replaced;
        }
        if self.requests.writer().is_some() { LaneStatus::Same } else { LaneStatus::OmsExited }
    }
}

impl From<LogOpenError> for LanesUnavailable {
    fn from(reason: LogOpenError) -> Self {
        match reason {
            LogOpenError::NotFound(_) => Self::NoLanes,
            reason => Self::Refused(reason),
        }
    }
}

/// Returns whether the mandatory reader of a log is present, as far as its writers know. Only mandatory readers are
/// ever marked as away.
fn is_read(log: &Reader) -> bool {
    log.readers().iter().all(|reader| !reader.away)
}
