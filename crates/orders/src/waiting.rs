//! Requests that wait here for one venue, in the order in which they leave.
//!
//! A venue that was lost in the middle of a busy day leaves as many questions here as it had orders, so nothing looks
//! through the whole queue for one order.

use tickpath_market::Request;
use tickpath_slots::Queued;

/// The requests that wait for a venue.
pub(crate) type Queue = tickpath_slots::Queue<Waiting>;

/// A request that waits here for its venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Slot of its order.
    pub(crate) order: u32,
    pub(crate) session: u16,
    pub(crate) request: Request,
    /// When its client sent it, in ticks.
    pub(crate) sent: u64,
}

impl Waiting {
    /// The id of the request at the venue.
    pub(crate) fn id(&self) -> u64 {
        self.request.client_order_id().0
    }

    /// Whether it asks how its order stands.
    pub(crate) fn is_question(&self) -> bool {
        matches!(self.request, Request::Status(_))
    }
}

impl Queued for Waiting {
    fn slot(&self) -> u32 {
        self.order
    }
}
