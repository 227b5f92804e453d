//! The clock of the exchange: the host's clock with the drift that is injected.

use tickpath_clock::utc_ns;

/// The clock of the exchange.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExchangeClock {
    /// Lead over the host's clock, in nanoseconds; negative for a lag.
    pub(crate) lead_ns: i64,
}

impl ExchangeClock {
    /// Returns the time, in nanoseconds since the Unix epoch.
    pub(crate) fn now_ns(self) -> u64 {
        utc_ns().saturating_add_signed(self.lead_ns)
    }
}
