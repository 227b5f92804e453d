//! Requests of the OMS without an answer. An answer proves that the exchange has its request, and so do the answers to
//! all requests before it.

use std::collections::VecDeque;

use crate::reports::RefusedRequest;

/// Kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Place,
    Cancel,
    Replace,
    Status,
}

/// A request of the OMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingRequest {
    pub(crate) number: u64,
    pub(crate) kind: RequestKind,
    /// The request and its order, as a refusal names them.
    pub(crate) asked: RefusedRequest,
    /// Time of its send in ticks; none while it waits here, and for a status request, which leaves as queries.
    pub(crate) sent: Option<u64>,
    is_answered: bool,
}

/// Requests from the first without an answer on, in the order of their numbers.
#[derive(Default)]
pub(crate) struct PendingRequests {
    list: VecDeque<PendingRequest>,
    /// Number behind the last request.
    next: u64,
}

impl PendingRequest {
    pub(crate) fn new(number: u64, kind: RequestKind, asked: RefusedRequest, sent: Option<u64>) -> Self {
        Self { number, kind, asked, sent, is_answered: false }
    }
}

impl PendingRequests {
    /// Drops all requests: the connection is lost.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    /// Adds a request that was sent, or waits here.
    #[inline]
    pub(crate) fn add(&mut self, request: PendingRequest) {
        self.next = request.number + 1;
        self.list.push_back(request);
    }

    /// Notes the send of a request that waited.
    pub(crate) fn note_sent(&mut self, number: u64, now: u64) {
        if let Some(place) = self.place(number) {
            self.list[place].sent = Some(now);
        }
    }

    /// Notes the answer to a request, and returns the request; none if it was answered before.
    #[inline]
    pub(crate) fn answer(&mut self, number: u64) -> Option<PendingRequest> {
        let place = self.place(number)?;
        let request = &mut self.list[place];
        (!std::mem::replace(&mut request.is_answered, true)).then_some(*request)
    }

    /// Drops the answered requests before the first without an answer. Returns the number below which all are answered,
    /// if it has risen.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<u64> {
        let before = self.list.len();
        while self.list.pop_front_if(|request| request.is_answered).is_some() {}
        (self.list.len() < before).then(|| self.list.front().map_or(self.next, |request| request.number))
    }

    /// Returns whether a request for an order is in flight.
    pub(crate) fn is_in_flight(&self, order: u64) -> bool {
        self.in_flight().any(|request| request.asked.order == order)
    }

    /// Returns the number of the request that is in flight for the longest time, and the time of its send.
    pub(crate) fn oldest_in_flight(&self) -> Option<(u64, u64)> {
        self.in_flight().find_map(|request| Some((request.number, request.sent?)))
    }

    fn in_flight(&self) -> impl Iterator<Item = &PendingRequest> {
        self.list.iter().filter(|request| request.sent.is_some() && !request.is_answered)
    }

    fn place(&self, number: u64) -> Option<usize> {
        self.list.binary_search_by_key(&number, |request| request.number).ok()
    }
}
