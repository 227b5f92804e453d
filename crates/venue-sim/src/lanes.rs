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
    Config as LogConfig, OpenError, Owner, Place, PlaceError, Policy, Reader, Registration, Start, Writer, owner,
};
use tickpath_market::VenueId;

/// Places of a venue's lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LanePlaces {
    pub requests: Place,
    pub reports: Place,
}

/// Venue's ends of its lanes.
pub(crate) struct Lanes {
    pub requests: Reader,
    pub reports: Writer,
    pub joined: Joined,
}

/// Identity of the joined lanes, to detect their replacement.
pub(crate) struct Joined {
    places: LanePlaces,
    owners: [Owner; 2],
    /// Unregistered reader that checks for the lane's writer alone.
    requests: Reader,
}

/// Reason why no lanes can be joined.
#[derive(Debug)]
pub(crate) enum Absent {
    /// The OMS has not created the lanes.
    Lanes,
    /// The lanes exist, and the OMS is not running.
    Oms,
    /// Opening the lanes failed with an error that may pass.
    Refused(OpenError),
}

/// State of the joined lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The lanes and the OMS are still the same.
    Same,
    /// The OMS has exited.
    OmsGone,
    /// The lanes were removed or replaced.
    Other,
}

impl LanePlaces {
    /// Returns the places of the lanes between a venue and the OMS of this name.
    pub fn new(oms: &str, venue: VenueId) -> Result<Self, PlaceError> {
        let place = |what| Place::shared_memory(&format!("{oms}.v{}.{what}", venue.0));
        Ok(Self { requests: place("requests")?, reports: place("reports")? })
    }

    /// Joins the lanes, if they exist and the OMS is running.
    pub fn join(&self, calibration: &Calibration) -> Result<Lanes, Absent> {
        let look = Reader::open(&self.reports, Start::Now, Registration::Unregistered).map_err(Absent::of)?;
        if !is_read(&look) {
            return Err(Absent::Oms);
        }
        let config = LogConfig { mandatory: true, ..LogConfig::topic(self.reports.clone(), Policy::Fail) };
        let reports = Writer::join(&config, calibration).map_err(Absent::of)?;
        // A reader that was killed is marked as away once a writer has joined, so this checks again.
        if !is_read(&look) {
            return Err(Absent::Oms);
        }
        let requests = Reader::open(&self.requests, Start::Cursor, Registration::Mandatory).map_err(Absent::of)?;
        let looks = Reader::open(&self.requests, Start::Now, Registration::Unregistered).map_err(Absent::of)?;
        let joined = Joined { places: self.clone(), owners: [requests.owner(), reports.owner()], requests: looks };
        Ok(Lanes { requests, reports, joined })
    }
}

impl Joined {
    /// Checks for the same lanes and a running OMS. Takes some microseconds, because it asks the operating system.
    pub fn look(&self) -> Found {
        let LanePlaces { requests, reports } = &self.places;
        let is_same = |(place, joined)| owner(place).is_ok_and(|found| found == joined);
        if ![requests, reports].into_iter().zip(self.owners).all(is_same) {
            return Found::Other;
        }
        if self.requests.writer().is_some() { Found::Same } else { Found::OmsGone }
    }
}

impl Absent {
    fn of(reason: OpenError) -> Self {
        match reason {
            OpenError::NotFound(_) => Self::Lanes,
            reason => Self::Refused(reason),
        }
    }
}

/// Returns whether the mandatory reader of a log is present, as far as its writers know. Only mandatory readers are
/// ever marked as away.
fn is_read(log: &Reader) -> bool {
    log.readers().iter().all(|reader| !reader.away)
}
