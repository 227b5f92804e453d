//! The sequencer's handling of lane events: messages, lost messages, damaged lanes, and logins.

use tickpath_clock::Clock;
use tickpath_market::VenueId;
use tickpath_oms_core::{Input, LOST_REPORTS, MessageLoss, SessionConnection, VenueConnection};
use tickpath_oms_journal::LaneKind;

use super::Sequencer;
use crate::OmsError;
use crate::lanes::InputEvent;
use crate::notice::Notice;

impl<C: Clock> Sequencer<C> {
    /// Applies an event of a lane, received at `received`.
    #[inline]
    pub(crate) fn handle_event(
        &mut self,
        lane: LaneKind,
        received: u64,
        event: InputEvent<'_>,
    ) -> Result<(), OmsError> {
        match (event, lane) {
            (InputEvent::Message(message), LaneKind::Requests(session)) => {
                self.accept_request_frame(session, received, message)
            }
            (InputEvent::Message(message), LaneKind::VenueReports(venue)) => {
                self.accept_report_frame(venue, received, message)
            }
            (InputEvent::Message(message), LaneKind::Line(line)) => self.line_report(line, received, message),
            (event, LaneKind::Line(line)) => self.line_event(line, event),
            (InputEvent::Message(message), LaneKind::Control) => self.accept_control_frame(received, message),
            (InputEvent::Missed(messages), lane) => self.note_missed(lane, messages),
            (InputEvent::Damaged(why), lane) => self.quarantine(lane, why),
            (InputEvent::Login(up), LaneKind::Requests(session)) => self.note_login(session, up),
            (InputEvent::Message(_) | InputEvent::Login(_), _) => Ok(()),
            // Only lines send these events.
            (
                InputEvent::Returned(_) | InputEvent::Lost { .. } | InputEvent::LineUp(_) | InputEvent::LineDown(_),
                _,
            ) => Ok(()),
        }
    }

    /// Notes that messages of a lane were lost before they were taken. Lost reports put the venue's orders in doubt.
    #[cold]
    pub fn note_missed(&mut self, lane: LaneKind, messages: u64) -> Result<(), OmsError> {
        self.notices.add(Notice::Missed { lane, messages });
        match lane {
            LaneKind::VenueReports(venue) => self.mark_venue_in_doubt(venue, LOST_REPORTS, messages),
            _ => Ok(()),
        }
    }

    /// Notes that a damaged lane is read no more. Without its report lane a venue is down and its orders are in doubt;
    /// without its request lane a session is logged out.
    #[cold]
    pub fn quarantine(&mut self, lane: LaneKind, why: String) -> Result<(), OmsError> {
        self.notices.add(Notice::Quarantined { lane, why });
        match lane {
            LaneKind::VenueReports(venue) => {
                self.note_venue_connection(venue, false)?;
                self.mark_venue_in_doubt(venue, LOST_REPORTS, 0)
            }
            LaneKind::Requests(session) => self.note_login(session, false),
            _ => Ok(()),
        }
    }

    /// Journals that a session's client has connected or disconnected.
    #[cold]
    pub fn note_login(&mut self, session: u16, up: bool) -> Result<(), OmsError> {
        let login = SessionConnection { session, up: u8::from(up), reserved: [0; 5] };
        self.apply_and_release(self.clock.ticks(), &Input::SessionConnection(login))
    }

    /// Puts the open orders of a venue in doubt, because messages to or from it are lost.
    pub(crate) fn mark_venue_in_doubt(&mut self, venue: VenueId, lost: u8, messages: u64) -> Result<(), OmsError> {
        if !self.core.open_orders().any(|order| order.venue == venue) {
            return Ok(());
        }
        let loss = MessageLoss { messages, venue, lost, reserved: [0; 5] };
        self.apply_and_release(self.clock.ticks(), &Input::MessageLoss(loss))?;
        self.notices.add(Notice::Doubt { venue, unknown: self.core.counts().unknown });
        Ok(())
    }

    /// Journals that a venue can be reached, or cannot.
    pub(crate) fn note_venue_connection(&mut self, venue: VenueId, up: bool) -> Result<(), OmsError> {
        self.notices.add(if up { Notice::VenueUp(venue) } else { Notice::VenueDown(venue) });
        let connection = VenueConnection { venue, up: u8::from(up), reserved: [0; 5] };
        self.apply_and_release(self.clock.ticks(), &Input::VenueConnection(connection))
    }
}
