//! Source of the ids of orders and requests.

use tickpath_market::OrderId;

/// The epoch of the last start and the highest journal sequence of a request, which rule out that an id repeats.
#[derive(Debug, Default)]
pub(crate) struct IdSource {
    /// Epoch of the last start; zero before the first.
    pub(crate) epoch: u64,
    pub(crate) last_request: u64,
}

impl IdSource {
    /// Begins the epoch of a start; returns false if its ids would repeat those of an earlier epoch.
    pub(crate) fn begin_epoch(&mut self, epoch: u64) -> bool {
        let is_new = epoch > self.epoch && OrderId::new(epoch, 0).epoch() == epoch;
        if is_new {
            self.epoch = epoch;
        }
        is_new
    }

    /// Returns the id of the input at this journal sequence.
    #[inline]
    pub(crate) fn id(&self, sequence: u64) -> u64 {
        OrderId::new(self.epoch, sequence).0
    }

    /// Returns whether a request at this journal sequence gets an id that no earlier request of the epoch has.
    #[inline]
    pub(crate) fn is_free(&self, sequence: u64) -> bool {
        sequence > self.last_request && fits_id(sequence)
    }

    #[inline]
    pub(crate) fn note_request(&mut self, sequence: u64) {
        self.last_request = self.last_request.max(sequence);
    }
}

pub(crate) fn fits_id(sequence: u64) -> bool {
    sequence >> OrderId::SEQUENCE_BITS == 0
}
