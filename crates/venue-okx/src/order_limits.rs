//! OKX's rate limits of orders. A request beyond them would be refused, and a refused cancel is worse than a late one.

use tickpath_clock::Calibration;

use crate::outstanding::OrderOperation;
use crate::request_window::RequestWindow;

/// Requests of a kind for one instrument.
const MAX_OF_INSTRUMENT: usize = 60;
/// New orders and amendments of a sub-account.
const MAX_OF_ACCOUNT: usize = 1_000;

/// Rates of the requests of a line. Cancels have limits of their own.
#[derive(Debug)]
pub(crate) struct OrderLimits {
    account: RequestWindow,
    /// Windows of each instrument, by the kind of request.
    instruments: Vec<[RequestWindow; 3]>,
}

impl OrderLimits {
    /// Makes the limits for so many instruments.
    pub fn new(instruments: usize, calibration: &Calibration) -> Self {
        let windows = || std::array::from_fn(|_| RequestWindow::new(MAX_OF_INSTRUMENT, calibration));
        let account = RequestWindow::new(MAX_OF_ACCOUNT, calibration);
        Self { account, instruments: (0..instruments).map(|_| windows()).collect() }
    }

    /// Returns whether a request may leave at this time.
    #[inline]
    pub fn has_room(&self, operation: OrderOperation, instrument: usize, now: u64) -> bool {
        let is_counted = operation != OrderOperation::Cancel;
        self.instruments[instrument][operation as usize].has_room(now) && (!is_counted || self.account.has_room(now))
    }

    /// Counts a request that leaves at this time.
    #[inline]
    pub fn count_request(&mut self, operation: OrderOperation, instrument: usize, now: u64) {
        self.instruments[instrument][operation as usize].count_request(now);
        if operation != OrderOperation::Cancel {
            self.account.count_request(now);
        }
    }
}
