//! Release: an output leaves once its input is as durable as its session asks, and its lane has room.
//!
//! ```text
//!   input ─> journal ─> core ─> outputs ──┬── os, lane clear ──────────────> lane
//!                                         ├── disk ─> held, in order ─sync─> lane
//!                                         └── lane full, or no reader ─────> ReturnedRequest: waits in the core
//! ```
//!
//! For a venue with lines, publishing first chooses a line; if no line accepts the request, it is returned. Held
//! outputs stay in order for each lane, and a request behind a returned request of its venue is returned, too: a venue
//! must not receive a cancel before its order.

use tickpath_clock::Clock;
use tickpath_log::{LogPublishError, Writer};
use tickpath_market::VenueId;
use tickpath_oms_core::{Departure, DetailRecord, Output, Outputs};
use tickpath_oms_journal::commit::AckLevel;
use tickpath_oms_journal::meter::OmsMeter;

use crate::OmsError;
use crate::front_end_reports::{FrontEndReports, SessionMessage};
use crate::lines::OutputProgress;
use crate::outbound::{Outbound, PendingOutput};
use crate::session_durability::SessionDurability;
use crate::venue_outputs::VenueOutputs;

/// Outbound logs of venues and sessions, and the outputs held in front of them.
#[derive(Default)]
pub(crate) struct OutputRelease {
    pub venues: VenueOutputs,
    /// Report logs of the sessions with lanes, by session.
    pub sessions: Vec<Outbound>,
    /// Reports to the sessions without lanes.
    pub front_end: FrontEndReports,
    pub durability: SessionDurability,
    /// Number of reports to sessions so far, held ones included.
    pub reports: u64,
    /// Number of held outputs.
    held: usize,
    /// Requests that a lane has just refused.
    returned: Vec<ReturnedRequest>,
    /// Departure of the last request, which the record of the next request carries.
    pub departure: Departure,
}

/// Request that its venue's lane has just refused.
#[derive(Clone, Copy)]
pub(crate) struct ReturnedRequest {
    pub venue: VenueId,
    /// T1 of the input, in ticks.
    pub stamp: u64,
    pub output: Output,
    /// Whether the lane has a reader.
    pub has_reader: bool,
}

impl OutputRelease {
    /// Returns the number of held outputs.
    #[inline]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns whether requests were returned that the journal does not hold as returned yet.
    #[inline]
    pub fn has_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// Returns whether the outputs of the input at this journal sequence may still wait for the disk.
    pub fn may_be_held(&self, sequence: u64) -> bool {
        self.held > 0 && sequence >= self.durability.synced()
    }

    /// Returns whether a session was ever sent a report: its lane and the history number them from the first report on.
    pub fn has_reports(&self, session: u16) -> bool {
        let index = usize::from(session);
        let in_lane = self.sessions.get(index).and_then(Outbound::log).map_or(0, Writer::sequence);
        let in_history = self.front_end.next_numbers().map_or(0, |next| next.of(session).report);
        in_lane > 0 || in_history > 0
    }

    /// Releases the requests among the outputs of the record `sequence`; `stamp` is T1.
    #[inline]
    pub fn release_to_venues(&mut self, outputs: &Outputs, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        let waits_for_disk = self.durability.waits_for_disk();
        let Self { venues, durability, held, returned, departure, .. } = self;
        for output in outputs.iter() {
            let Output::Venue { venue, session, .. } = output else { continue };
            let needs_disk = waits_for_disk && durability.is_disk_session(*session);
            match venues.log_mut(*venue) {
                Some(log) if !needs_disk && log.is_clear() && returned.is_empty() => match log.publish(stamp, output) {
                    Ok(progress) => departure.handed_over |= progress == OutputProgress::HandedOver,
                    Err(e @ (LogPublishError::Full | LogPublishError::NoReader)) => {
                        let has_reader = matches!(e, LogPublishError::Full);
                        return_request(returned, departure, *venue, stamp, *output, has_reader);
                    }
                    Err(e) => return Err(OmsError::Lane(e)),
                },
                // A request behind held outputs is held; behind a returned request of its venue it is returned.
                Some(log) if returned.iter().all(|other| other.venue != *venue) => {
                    departure.queued = true;
                    log.hold(PendingOutput { sequence, stamp, needs_disk, output: *output });
                    *held += 1;
                }
                // A venue without lanes counts as always down.
                log => return_request(returned, departure, *venue, stamp, *output, log.is_some()),
            }
        }
        Ok(())
    }

    /// Releases the reports and denials among the outputs of the record `sequence`.
    #[inline]
    pub fn release_to_sessions(
        &mut self,
        outputs: &Outputs,
        sequence: u64,
        stamp: u64,
        meter: &mut Option<OmsMeter>,
    ) -> Result<(), OmsError> {
        let waits_for_disk = self.durability.waits_for_disk();
        let Self { sessions, front_end, durability, held, reports, .. } = self;
        for output in outputs.iter() {
            let (Output::Report { session, .. } | Output::Denied { session, .. } | Output::Extension { session, .. }) =
                output
            else {
                continue;
            };
            *reports += u64::from(matches!(output, Output::Report { .. }));
            if let Some(meter) = meter {
                meter.count_output(output);
            }
            let needs_disk = waits_for_disk && durability.is_disk_session(*session);
            match sessions.get_mut(usize::from(*session)) {
                Some(log) if log.is_clear() && !needs_disk => {
                    log.publish(stamp, output).map_err(OmsError::Lane)?;
                }
                Some(log) => {
                    log.hold(PendingOutput { sequence, stamp, needs_disk, output: *output });
                    *held += 1;
                }
                // A disk-level session's report waits behind its held reports; other sessions pass.
                None if needs_disk || (!front_end.is_clear() && durability.is_disk_session(*session)) => {
                    let output = SessionMessage::Report(*output);
                    *held += front_end.hold(PendingOutput { sequence, stamp, needs_disk, output });
                }
                None => front_end.publish(stamp, output)?,
            }
        }
        Ok(())
    }

    /// Returns whether a session is sent the details of its reports: lanes of its own carry reports only.
    pub fn sends_details_to(&self, session: u16) -> bool {
        self.sessions.get(usize::from(session)).is_none() && self.front_end.next_numbers().is_some()
    }

    /// Releases the detail of the record `sequence`, behind its report.
    #[cold]
    pub fn release_detail(&mut self, record: &DetailRecord, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        let Some(session) = record.session.checked_sub(1) else { return Ok(()) };
        let is_disk_session = self.durability.is_disk_session(session);
        let needs_disk = is_disk_session && self.durability.waits_for_disk();
        if needs_disk || (is_disk_session && !self.front_end.is_clear()) {
            let output = SessionMessage::Detail(*record);
            self.held += self.front_end.hold(PendingOutput { sequence, stamp, needs_disk, output });
            return Ok(());
        }
        Ok(self.front_end.publish_detail(stamp, record)?)
    }

    /// Returns the values that every output reads, to keep their memory warm.
    #[inline]
    pub fn prefetch(&self, session: u16) -> (Option<AckLevel>, u64, usize, usize) {
        (self.durability.level(session), self.departure.at, self.held, self.returned.len())
    }

    /// Publishes a request to its venue. A request that the lane does not take is returned.
    #[inline]
    pub fn publish_request(&mut self, venue: VenueId, stamp: u64, output: Output) -> Result<(), OmsError> {
        let is_behind = self.has_returned() && self.returned.iter().any(|other| other.venue == venue);
        let Some(log) = self.venues.log_mut(venue) else { return Ok(()) };
        let sent = if is_behind { Err(LogPublishError::Full) } else { log.publish(stamp, &output) };
        match sent {
            Ok(_) => Ok(()),
            Err(e @ (LogPublishError::Full | LogPublishError::NoReader)) => {
                let has_reader = matches!(e, LogPublishError::Full);
                return_request(&mut self.returned, &mut self.departure, venue, stamp, output, has_reader);
                Ok(())
            }
            Err(e) => Err(OmsError::Lane(e)),
        }
    }

    /// Publishes an output that a start finds missing in its lane.
    pub fn publish_missing(&mut self, now: u64, output: Output) -> Result<(), OmsError> {
        match output {
            Output::Venue { venue, .. } => self.publish_request(venue, now, output),
            Output::Report { session, .. } | Output::Denied { session, .. } | Output::Extension { session, .. } => {
                match self.sessions.get_mut(usize::from(session)) {
                    Some(log) => log.publish(now, &output).map(drop).map_err(OmsError::Lane),
                    None => self.front_end.publish(now, &output).map_err(OmsError::from),
                }
            }
        }
    }

    /// Releases the held requests that are durable by now.
    pub fn release_held_requests(&mut self, synced: u64) -> Result<(), OmsError> {
        for venue in self.venues.numbers() {
            while let Some(held) = self.venues.log_mut(venue).and_then(|log| log.next_releasable(synced, false)) {
                self.held -= 1;
                self.publish_request(venue, held.stamp, held.output)?;
            }
        }
        Ok(())
    }

    /// Releases the held reports and denials that are durable by now.
    pub fn release_held_reports(&mut self, synced: u64, clock: &impl Clock) -> Result<(), OmsError> {
        let disk_failed = self.durability.disk_failed;
        for log in &mut self.sessions {
            while let Some(held) = log.next_releasable(synced, disk_failed) {
                self.held -= 1;
                log.publish(clock.ticks(), &held.output).map_err(OmsError::Lane)?;
            }
        }
        self.held -= self.front_end.release_held(synced, disk_failed, clock)?;
        Ok(())
    }

    /// Removes and returns the returned requests, with the held requests behind them.
    pub fn take_returned(&mut self) -> Vec<ReturnedRequest> {
        for index in 0..self.returned.len() {
            let ReturnedRequest { venue, has_reader, .. } = self.returned[index];
            self.return_held(venue, has_reader);
        }
        std::mem::take(&mut self.returned)
    }

    /// Moves all held requests to `returned`: each is journaled as unsent and checked again before it may leave.
    pub fn return_all_held(&mut self) {
        for venue in self.venues.numbers() {
            self.return_held(venue, true);
        }
    }

    fn return_held(&mut self, venue: VenueId, has_reader: bool) {
        let Some(log) = self.venues.log_mut(venue) else { return };
        let held = log.take_held();
        self.held -= held.len();
        let request = |PendingOutput { stamp, output, .. }| ReturnedRequest { venue, stamp, output, has_reader };
        self.returned.extend(held.into_iter().map(request));
    }
}

/// Adds a request that its venue's lane has refused to `returned`.
#[inline]
fn return_request(
    returned: &mut Vec<ReturnedRequest>,
    departure: &mut Departure,
    venue: VenueId,
    stamp: u64,
    output: Output,
    has_reader: bool,
) {
    departure.queued = true;
    returned.push(ReturnedRequest { venue, stamp, output, has_reader });
}
