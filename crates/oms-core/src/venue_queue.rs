//! Requests that wait for one venue, in the order in which they leave.
//!
//! A venue that is lost in the middle of a busy day leaves as many waiting status requests as it had orders, so no
//! operation scans the whole queue for one order.

use tickpath_market::Request;
use tickpath_oms_slots::QueueItem;

/// The requests that wait for a venue.
pub(crate) type VenueQueue = tickpath_oms_slots::SlotQueue<QueuedRequest>;

/// Request that waits in the OMS for its venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueuedRequest {
    /// Slot of the request's order.
    pub(crate) order: u32,
    pub(crate) session: u16,
    pub(crate) request: Request,
    /// Time from which the request's age counts, in ticks.
    pub(crate) sent: u64,
}

impl QueuedRequest {
    pub(crate) fn id(&self) -> u64 {
        self.request.client_order_id().0
    }

    pub(crate) fn is_status_request(&self) -> bool {
        matches!(self.request, Request::Status(_))
    }
}

impl QueueItem for QueuedRequest {
    fn slot(&self) -> u32 {
        self.order
    }
}
