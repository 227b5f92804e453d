//! Requests of a connection that OKX has not answered, and the number below which it has answered all.

use std::collections::VecDeque;

use tickpath_market::{AccountId, SymbolId};

/// Kind of a request about an order. OKX limits the rate of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderOperation {
    Place = 0,
    Amend = 1,
    Cancel = 2,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentRequest {
    pub number: u64,
    pub operation: OrderOperation,
    /// Id of the request, which for a new order is that of the order.
    pub id: u64,
    pub order: u64,
    pub symbol: SymbolId,
    pub account: AccountId,
    /// Code of the side; zero if the request has none.
    pub side: u8,
    /// Time in ticks.
    pub at: u64,
}

/// Requests of a connection in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct OutstandingRequests {
    list: VecDeque<(SentRequest, bool)>,
    /// Number behind the last request.
    next: u64,
    /// The last acknowledged number; that of the first request before any is acknowledged.
    acknowledged: Option<u64>,
}

impl OutstandingRequests {
    /// Forgets the requests of the last connection.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a request that was sent.
    #[inline]
    pub fn add(&mut self, request: SentRequest) {
        self.add_settled(request.number);
        self.list.push_back((request, false));
    }

    /// Counts a request that needs no answer of OKX's gateway.
    #[inline]
    pub fn add_settled(&mut self, number: u64) {
        self.next = number + 1;
        self.acknowledged.get_or_insert(number);
    }

    /// Returns the request with this number, once.
    pub fn settle(&mut self, number: u64) -> Option<SentRequest> {
        let index = self.list.binary_search_by_key(&number, |(request, _)| request.number).ok()?;
        let (request, is_answered) = self.list.get_mut(index)?;
        if std::mem::replace(is_answered, true) { None } else { Some(*request) }
    }

    /// Returns whether OKX has not answered the request with this number.
    pub fn is_outstanding(&self, number: u64) -> bool {
        let found = self.list.binary_search_by_key(&number, |(request, _)| request.number);
        found.is_ok_and(|index| !self.list[index].1)
    }

    /// Returns the number below which all requests are settled, if it has risen.
    pub fn take_acknowledged(&mut self) -> Option<u64> {
        while self.list.pop_front_if(|(_, is_answered)| *is_answered).is_some() {}
        let settled = self.list.front().map_or(self.next, |(request, _)| request.number);
        // Nothing is known of the requests of an earlier connection.
        let acknowledged = self.acknowledged.as_mut().filter(|acknowledged| settled > **acknowledged)?;
        *acknowledged = settled;
        Some(settled)
    }

    /// Returns the oldest request without an answer, if [`Self::take_acknowledged`] was called since the last answer.
    #[inline]
    pub fn oldest(&self) -> Option<&SentRequest> {
        self.list.front().map(|(request, _)| request)
    }

    /// Returns whether OKX has answered all.
    pub fn is_empty(&self) -> bool {
        self.list.iter().all(|(_, is_answered)| *is_answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64) -> SentRequest {
        let (symbol, account) = (SymbolId(1), AccountId(1));
        SentRequest { number, operation: OrderOperation::Place, id: 1, order: 1, symbol, account, side: 1, at: 0 }
    }

    #[test]
    fn answers_in_any_order_acknowledge_what_is_below_the_lowest_unanswered_request() {
        let mut outstanding = OutstandingRequests::default();
        [3, 4, 9].into_iter().for_each(|number| outstanding.add(request(number)));
        assert_eq!(outstanding.take_acknowledged(), None, "nothing is known of earlier requests");
        assert_eq!(outstanding.settle(9), Some(request(9)));
        assert_eq!((outstanding.settle(9), outstanding.settle(5)), (None, None), "once, and only what was sent");
        assert_eq!(outstanding.take_acknowledged(), None);
        outstanding.settle(3);
        assert_eq!(outstanding.take_acknowledged(), Some(4));
        assert_eq!(outstanding.oldest(), Some(&request(4)));
        outstanding.settle(4);
        outstanding.add_settled(20);
        assert_eq!(outstanding.take_acknowledged(), Some(21));
        assert!(outstanding.is_empty() && outstanding.oldest().is_none());
    }
}
