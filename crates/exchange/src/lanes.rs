//! The lanes between an OMS and its venue. The OMS makes them, and makes them anew when it has lost them; the venue joins
//! what is there, and says when it is not the same any more.
//!
//! ```text
//!   NAME.vN.requests   OMS ──> venue    the venue is its mandatory reader
//!   NAME.vN.reports    venue ──> OMS    the OMS is its mandatory reader, from when it is done making lanes
//! ```
//!
//! An OMS that starts may have to replace its lanes, which it cannot while the venue reads them. So the venue reads only
//! while the OMS is there: it leaves when the OMS has gone, and comes when the OMS reads its reports again, which is the
//! last that it does with the lanes when it starts.

use tickpath_clock::Calibration;
use tickpath_log::{
    Config as LogConfig, OpenError, Owner, Place, PlaceError, Policy, Reader, Registration, Start, Writer, owner,
};
use tickpath_market::VenueId;

/// Where the lanes of a venue lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LanePlaces {
    pub requests: Place,
    pub reports: Place,
}

/// The venue's ends of its lanes.
pub(crate) struct Lanes {
    pub requests: Reader,
    pub reports: Writer,
    pub joined: Joined,
}

/// Lanes that were joined, to tell whether they are still the same.
pub(crate) struct Joined {
    places: LanePlaces,
    owners: [Owner; 2],
    /// Looks only, at who writes.
    requests: Reader,
}

/// Why there are no lanes to join.
#[derive(Debug)]
pub(crate) enum Absent {
    /// The OMS has not made them.
    Lanes,
    /// They are there, and the OMS is not.
    Oms,
    /// Something is in the way, which may pass.
    Refused(OpenError),
}

/// What became of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// All is as it was.
    Same,
    /// The OMS has gone.
    OmsGone,
    /// They were taken away, or there are others in their place.
    Other,
}

impl LanePlaces {
    /// The lanes of a venue and the OMS of this name.
    pub fn new(oms: &str, venue: VenueId) -> Result<Self, PlaceError> {
        let place = |what| Place::shared_memory(&format!("{oms}.v{}.{what}", venue.0));
        Ok(Self { requests: place("requests")?, reports: place("reports")? })
    }

    /// Joins the lanes, if they are there and the OMS is.
    pub fn join(&self, calibration: &Calibration) -> Result<Lanes, Absent> {
        let look = Reader::open(&self.reports, Start::Now, Registration::Unregistered).map_err(Absent::of)?;
        if !is_read(&look) {
            return Err(Absent::Oms);
        }
        let config = LogConfig { mandatory: true, ..LogConfig::topic(self.reports.clone(), Policy::Fail) };
        let reports = Writer::join(&config, calibration).map_err(Absent::of)?;
        // Whoever was killed is away as soon as a writer has looked.
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
    /// Whether they are still the same lanes of an OMS that is there. Asks the operating system, some microseconds.
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

/// Whether the mandatory reader of a log is there, as far as its writers know: no other is ever away.
fn is_read(log: &Reader) -> bool {
    log.readers().iter().all(|reader| !reader.away)
}
