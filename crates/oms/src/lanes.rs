//! The logs between clients, OMS and venue.

use tickpath_clock::Calibration;
use tickpath_log::{Config, Message, Next, OpenError, Place, Policy, Reader, Registration, Start, Writer};

/// Where the lanes of one OMS lie, and how large they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanesConfig {
    /// What the lanes' names begin with.
    pub name: String,
    /// Client sessions, from 0.
    pub sessions: u16,
    /// Bytes of each request lane.
    pub request_bytes: usize,
    /// Bytes of each report log: a client that lags by more than this learns how many reports it missed.
    pub report_bytes: usize,
}

impl LanesConfig {
    /// Lanes of a mebibyte, which stay in a core's second-level cache.
    pub fn new(name: &str, sessions: u16) -> Self {
        Self { name: name.to_owned(), sessions, request_bytes: 1 << 20, report_bytes: 1 << 20 }
    }

    /// Requests of a client session: written by the client.
    pub fn requests(&self, session: u16) -> Result<Config, OpenError> {
        self.lane(&format!("s{session}.requests"), Policy::Fail, self.request_bytes)
    }

    /// Reports to a client session: written by the OMS. A slow client never stops it.
    pub fn reports(&self, session: u16) -> Result<Config, OpenError> {
        self.lane(&format!("s{session}.reports"), Policy::Overwrite, self.report_bytes)
    }

    /// Requests to the venue: written by the OMS.
    pub fn venue_requests(&self) -> Result<Config, OpenError> {
        self.lane("venue.requests", Policy::Fail, self.request_bytes)
    }

    /// Reports of the venue: written by the venue, which waits for the OMS.
    pub fn venue_reports(&self) -> Result<Config, OpenError> {
        self.lane("venue.reports", Policy::Fail, self.report_bytes)
    }

    fn lane(&self, what: &str, policy: Policy, bytes: usize) -> Result<Config, OpenError> {
        let place = Place::shared_memory(&format!("{}.{what}", self.name))?;
        let topic = Config::topic(place, policy);
        let segment_bytes = (bytes / topic.segments).next_multiple_of(4096).max(4096);
        Ok(Config { segment_bytes, ..topic })
    }

    /// Removes all lanes. Processes that have them open keep what they have.
    pub fn remove(&self) -> Result<(), OpenError> {
        let mut lanes = vec![self.venue_requests()?, self.venue_reports()?];
        for session in 0..self.sessions {
            lanes.push(self.requests(session)?);
            lanes.push(self.reports(session)?);
        }
        for lane in lanes.iter().filter(|lane| lane.place.exists()) {
            lane.place.remove().map_err(|reason| OpenError::Io { place: lane.place.clone(), reason })?;
        }
        Ok(())
    }
}

/// A registered reader of a lane that somebody else writes, or will. The lane is made here if it is not there, so that
/// it does not matter who starts first.
pub fn attach(lane: &Config, calibration: &Calibration) -> Result<Reader, OpenError> {
    if !lane.place.exists() {
        match Writer::open(lane, calibration) {
            // Its writer came first after all.
            Ok(_) | Err(OpenError::HasWriter { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    Reader::open(&lane.place, Start::Oldest, Registration::Registered)
}

/// Moves a reader behind the message that the journal took last, as `is_ours` tells. Without one it stays: what
/// it has was never taken.
pub(crate) fn skip_taken(
    lane: &mut Reader,
    mut is_ours: impl FnMut(&Message<'_>) -> bool,
) -> Result<(), crate::OmsError> {
    let mut look = Reader::open(lane.place(), Start::Oldest, Registration::Unregistered)?;
    let mut behind = None;
    // The first that matches: a message that came twice is taken twice rather than what lies between lost.
    while let (None, Next::Message(message)) = (behind, look.next()?) {
        behind = is_ours(&message).then_some(message.sequence + 1);
    }
    while behind.is_some_and(|behind| lane.sequence() < behind) {
        if lane.next()? == Next::Empty {
            break;
        }
    }
    Ok(())
}
