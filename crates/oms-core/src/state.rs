//! The table of (phase, event), and the status derived from a phase and the quantities.

use tickpath_market::OrdStatus;
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::Denial;

/// State of an order, apart from its quantities and its pending requests. Filled is no phase: it follows from the
/// quantities, so that a busted execution needs no transition out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub(crate) enum OrderPhase {
    /// Denied after it waited in the OMS; no venue has received it.
    Denied,
    /// Waits in the OMS for its venue; no venue has received it.
    Queued,
    /// In flight to the venue.
    Sent,
    /// In doubt: sent, and its arrival at the venue is unknown.
    Lost,
    /// Working or filled at the venue.
    Open,
    /// In doubt: at the venue, now or before, with an unknown outcome.
    Unknown,
    /// Expired at the venue.
    Expired,
    /// Canceled at the venue.
    Canceled,
    /// Rejected by the venue.
    Rejected,
    /// Waits in the OMS for its trigger; no venue has received it.
    Armed,
}

/// Event in the life of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderEvent {
    /// Cancel request of a client.
    Cancel,
    /// Replace request of a client.
    Replace,
    /// Return to the queue: the order never left, or is tried again after a rejection.
    Returned,
    /// Departure of an order that waited in the OMS.
    Released,
    /// Denial of an order that waited in the OMS.
    Denied,
    /// Withdrawal of an order that waited in the OMS.
    Withdrawn,
    /// Acceptance, fill or replace report: the venue has the order.
    Working,
    /// The same with the highest venue sequence and no doubt about lost reports, so that it shows the latest state.
    Confirmed,
    /// Rejection of a cancel or a replace.
    Refused,
    /// Expiry of the order.
    Expired,
    /// Cancel of the order, requested or not.
    Canceled,
    /// Rejection of the order.
    Rejected,
    /// Possible loss of the order in flight, or of a request for it.
    RequestLost,
    /// Possible loss of the venue's reports: proof of its arrival does not show later events.
    ReportsLost,
    /// Report that contradicts the known state, without a sequence to order the two.
    Conflict,
}

/// Returns the phase after the event, or the reason to deny the request. An ended order stays ended, and of two ends
/// the one further down the table wins, so that the order of arrival does not matter.
pub(crate) const fn next_phase(phase: OrderPhase, event: OrderEvent) -> Result<OrderPhase, Denial> {
    use OrderEvent as E;
    use OrderPhase as P;
    match (phase, event) {
        (P::Armed | P::Queued | P::Sent | P::Lost | P::Open | P::Unknown, E::Cancel) => Ok(phase),
        (P::Armed | P::Sent | P::Open, E::Replace) => Ok(phase),
        (P::Queued, E::Replace) => Err(Denial::StillQueued),
        (P::Lost | P::Unknown, E::Replace) => Err(Denial::StateUnknown),
        (P::Expired | P::Canceled | P::Rejected, E::Cancel | E::Replace) => Err(Denial::TooLate),
        (P::Denied, E::Cancel | E::Replace) => Err(Denial::UnknownOrder),

        (P::Sent, E::Returned) => Ok(P::Queued),
        // An armed order is released when its trigger fires.
        (P::Armed | P::Queued, E::Released) => Ok(P::Sent),
        (P::Armed | P::Queued, E::Denied) => Ok(P::Denied),
        (P::Armed | P::Queued, E::Withdrawn) => Ok(P::Canceled),
        (P::Armed | P::Queued, E::Returned) => Ok(phase),
        (
            P::Denied | P::Sent | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled | P::Rejected,
            E::Released | E::Denied | E::Withdrawn,
        ) => Ok(phase),
        (P::Denied | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled | P::Rejected, E::Returned) => Ok(phase),

        // A venue's report on an order that never left.
        (P::Armed | P::Queued, E::Working | E::Confirmed | E::Refused | E::Expired | E::Canceled | E::Rejected) => {
            Ok(P::Unknown)
        }

        (P::Sent | P::Lost | P::Open, E::Working | E::Confirmed) => Ok(P::Open),
        (P::Unknown, E::Working) => Ok(P::Unknown),
        (P::Unknown, E::Confirmed) => Ok(P::Open),
        (P::Expired | P::Canceled | P::Rejected, E::Working | E::Confirmed) => Ok(phase),

        (P::Sent | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled | P::Rejected, E::Refused) => Ok(phase),

        (P::Sent | P::Lost | P::Open | P::Unknown | P::Expired, E::Expired) => Ok(P::Expired),
        (P::Canceled | P::Rejected, E::Expired) => Ok(phase),
        (P::Sent | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled, E::Canceled) => Ok(P::Canceled),
        (P::Rejected, E::Canceled) => Ok(P::Rejected),
        (P::Sent | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled | P::Rejected, E::Rejected) => {
            Ok(P::Rejected)
        }

        (P::Sent | P::Lost, E::RequestLost) => Ok(P::Lost),
        (P::Open | P::Unknown, E::RequestLost) => Ok(P::Unknown),
        (P::Sent | P::Lost | P::Open | P::Unknown, E::ReportsLost) => Ok(P::Unknown),
        (P::Armed | P::Queued | P::Expired | P::Canceled | P::Rejected, E::RequestLost | E::ReportsLost) => Ok(phase),
        (
            P::Armed | P::Queued | P::Sent | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled | P::Rejected,
            E::Conflict,
        ) => Ok(P::Unknown),

        (P::Denied, E::Working | E::Confirmed | E::Refused | E::Expired | E::Canceled | E::Rejected) => Ok(P::Denied),
        (P::Denied, E::RequestLost | E::ReportsLost | E::Conflict) => Ok(P::Denied),
    }
}

/// The pending request of an order; a cancel hides a replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingKind {
    Nothing,
    Cancel,
    Replace,
}

/// Returns the status by FIX precedence. Unknown comes first: no other status may hide it.
pub(crate) const fn status(phase: OrderPhase, pending: PendingKind, filled: i64, quantity: i64) -> OrdStatus {
    // An ended order whose fills were all taken back has a total of zero.
    let complete = filled >= quantity;
    match (phase, pending) {
        (OrderPhase::Denied, _) => OrdStatus::Rejected,
        (OrderPhase::Lost | OrderPhase::Unknown, _) => OrdStatus::Unknown,
        // An armed order has no pending requests.
        (OrderPhase::Armed, _) => OrdStatus::Armed,
        (OrderPhase::Queued | OrderPhase::Sent | OrderPhase::Open, PendingKind::Cancel) => OrdStatus::PendingCancel,
        (OrderPhase::Queued | OrderPhase::Sent | OrderPhase::Open, PendingKind::Replace) => OrdStatus::PendingReplace,
        (OrderPhase::Queued | OrderPhase::Sent, PendingKind::Nothing) => OrdStatus::PendingNew,
        (OrderPhase::Open | OrderPhase::Expired | OrderPhase::Canceled | OrderPhase::Rejected, _) if complete => {
            OrdStatus::Filled
        }
        (OrderPhase::Canceled, _) => OrdStatus::Canceled,
        (OrderPhase::Expired, _) => OrdStatus::Expired,
        (OrderPhase::Open, PendingKind::Nothing) if filled > 0 => OrdStatus::PartiallyFilled,
        (OrderPhase::Open, PendingKind::Nothing) => OrdStatus::New,
        (OrderPhase::Rejected, _) => OrdStatus::Rejected,
    }
}

impl OrderPhase {
    /// Returns the phase after an event that is no request of a client, and so cannot be denied.
    pub(crate) fn after(self, event: OrderEvent) -> Self {
        next_phase(self, event).unwrap_or(self)
    }

    /// Returns whether the order may still be filled: its open quantity is exposure.
    pub(crate) const fn is_live(self) -> bool {
        match self {
            Self::Armed | Self::Queued | Self::Sent | Self::Lost | Self::Open | Self::Unknown => true,
            Self::Denied | Self::Expired | Self::Canceled | Self::Rejected => false,
        }
    }

    /// Returns whether the order is in doubt.
    pub(crate) const fn is_unknown(self) -> bool {
        match self {
            Self::Lost | Self::Unknown => true,
            Self::Denied
            | Self::Armed
            | Self::Queued
            | Self::Sent
            | Self::Open
            | Self::Expired
            | Self::Canceled
            | Self::Rejected => false,
        }
    }
}
