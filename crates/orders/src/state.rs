//! The table of (phase, event), and the status that follows from a phase and the quantities.

use tickpath_market::OrdStatus;
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::Denial;

/// Where an order stands, apart from its quantities and from its requests on their way. Filled is no phase: it
/// follows from the quantities, so that an execution that is taken back needs no way out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub(crate) enum Phase {
    /// It waited here and was refused before it could leave; no venue has heard of it.
    Denied,
    /// It waits here for its venue; no venue has heard of it.
    Queued,
    /// On its way to the venue.
    Sent,
    /// On its way, and nobody can tell whether it arrived.
    Lost,
    /// The venue has it.
    Open,
    /// The venue has or had it; what became of it cannot be told.
    Unknown,
    /// Expired at the venue.
    Expired,
    /// Canceled at the venue.
    Canceled,
    /// Refused by the venue.
    Rejected,
    /// It waits here for its trigger; no venue has heard of it.
    Armed,
}

/// What can happen to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The client asks for a cancel.
    Cancel,
    /// The client asks for a replace.
    Replace,
    /// It never left, or is tried again after it was refused, and waits here.
    Returned,
    /// What waited here leaves.
    Released,
    /// What waited here is refused.
    Denied,
    /// What waited here is taken back.
    Withdrawn,
    /// An acceptance, a fill, a replaced: the venue has the order.
    Working,
    /// The same with the highest venue sequence so far, and no doubt about lost reports: it is the last word.
    Confirmed,
    /// A cancel or a replace was refused.
    Refused,
    /// The order expired.
    Expired,
    /// The order was canceled, on request or not.
    Canceled,
    /// The order was refused.
    Rejected,
    /// It may be lost on its way, or what was asked of it.
    Lost,
    /// What the venue said of it may be lost: that it arrived says nothing of what came after.
    Missed,
    /// The report contradicts what is known, and no sequence tells which came first.
    Conflict,
}

/// The phase after the event, or why the request is denied. An ended order stays ended, and of two ends the one
/// further down wins, so that the order of arrival does not matter.
pub(crate) const fn step(phase: Phase, event: Event) -> Result<Phase, Denial> {
    use Event as E;
    use Phase as P;
    match (phase, event) {
        (P::Armed | P::Queued | P::Sent | P::Lost | P::Open | P::Unknown, E::Cancel) => Ok(phase),
        (P::Armed | P::Sent | P::Open, E::Replace) => Ok(phase),
        (P::Queued, E::Replace) => Err(Denial::StillQueued),
        (P::Lost | P::Unknown, E::Replace) => Err(Denial::StateUnknown),
        (P::Expired | P::Canceled | P::Rejected, E::Cancel | E::Replace) => Err(Denial::TooLate),
        (P::Denied, E::Cancel | E::Replace) => Err(Denial::UnknownOrder),

        (P::Sent, E::Returned) => Ok(P::Queued),
        // What is armed is released when it fires.
        (P::Armed | P::Queued, E::Released) => Ok(P::Sent),
        (P::Armed | P::Queued, E::Denied) => Ok(P::Denied),
        (P::Armed | P::Queued, E::Withdrawn) => Ok(P::Canceled),
        (P::Armed | P::Queued, E::Returned) => Ok(phase),
        (
            P::Denied | P::Sent | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled | P::Rejected,
            E::Released | E::Denied | E::Withdrawn,
        ) => Ok(phase),
        (P::Denied | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled | P::Rejected, E::Returned) => Ok(phase),

        // A venue that speaks of what never left.
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

        (P::Sent | P::Lost, E::Lost) => Ok(P::Lost),
        (P::Open | P::Unknown, E::Lost) => Ok(P::Unknown),
        (P::Sent | P::Lost | P::Open | P::Unknown, E::Missed) => Ok(P::Unknown),
        (P::Armed | P::Queued | P::Expired | P::Canceled | P::Rejected, E::Lost | E::Missed) => Ok(phase),
        (
            P::Armed | P::Queued | P::Sent | P::Lost | P::Open | P::Unknown | P::Expired | P::Canceled | P::Rejected,
            E::Conflict,
        ) => Ok(P::Unknown),

        (P::Denied, E::Working | E::Confirmed | E::Refused | E::Expired | E::Canceled | E::Rejected) => Ok(P::Denied),
        (P::Denied, E::Lost | E::Missed | E::Conflict) => Ok(P::Denied),
    }
}

/// Which request of an order is on its way to the venue; a cancel hides a replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    /// None.
    Nothing,
    /// A cancel.
    Cancel,
    /// A replace.
    Replace,
}

/// The status by FIX precedence. Unknown stands above all: nothing may hide it.
pub(crate) const fn status(phase: Phase, pending: Pending, filled: i64, quantity: i64) -> OrdStatus {
    // An order that all fills were taken back of, and that works no more, has a total of zero.
    let complete = filled >= quantity;
    match (phase, pending) {
        (Phase::Denied, _) => OrdStatus::Rejected,
        (Phase::Lost | Phase::Unknown, _) => OrdStatus::Unknown,
        // Nothing of it is ever on its way.
        (Phase::Armed, _) => OrdStatus::Armed,
        (Phase::Queued | Phase::Sent | Phase::Open, Pending::Cancel) => OrdStatus::PendingCancel,
        (Phase::Queued | Phase::Sent | Phase::Open, Pending::Replace) => OrdStatus::PendingReplace,
        (Phase::Queued | Phase::Sent, Pending::Nothing) => OrdStatus::PendingNew,
        (Phase::Open | Phase::Expired | Phase::Canceled | Phase::Rejected, _) if complete => OrdStatus::Filled,
        (Phase::Canceled, _) => OrdStatus::Canceled,
        (Phase::Expired, _) => OrdStatus::Expired,
        (Phase::Open, Pending::Nothing) if filled > 0 => OrdStatus::PartiallyFilled,
        (Phase::Open, Pending::Nothing) => OrdStatus::New,
        (Phase::Rejected, _) => OrdStatus::Rejected,
    }
}

impl Phase {
    /// Whether the order may still be filled: what is open of it is exposure.
    pub(crate) const fn is_live(self) -> bool {
        match self {
            Self::Armed | Self::Queued | Self::Sent | Self::Lost | Self::Open | Self::Unknown => true,
            Self::Denied | Self::Expired | Self::Canceled | Self::Rejected => false,
        }
    }

    /// Whether it cannot be told where the order stands.
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
