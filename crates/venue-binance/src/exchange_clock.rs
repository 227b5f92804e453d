//! The exchange's clock, as requests need it: this host's clock and the measured offset.

use tickpath_clock::{Clock, HostClock};

/// Half the precision of the exchange's times.
const HALF_MS_NS: i64 = 500_000;
const MS_NS: u64 = 1_000_000;

/// Clock of the exchange, dated by this host's calibration.
pub(crate) struct ExchangeClock {
    clock: HostClock,
    /// Exchange minus host; none before the first measurement.
    offset_ns: Option<i64>,
}

impl ExchangeClock {
    pub(crate) fn new(clock: HostClock) -> Self {
        Self { clock, offset_ns: None }
    }

    /// Returns the measured offset, exchange minus host, in nanoseconds.
    pub(crate) fn offset_ns(&self) -> Option<i64> {
        self.offset_ns
    }

    /// Notes the exchange's time in an answer, against the middle of its request.
    pub(crate) fn measure(&mut self, server_ms: u64, sent: u64, received: u64) {
        let middle = sent.wrapping_add(received.wrapping_sub(sent) / 2);
        let server_ns = i64::try_from(server_ms.saturating_mul(MS_NS)).unwrap_or(i64::MAX).saturating_add(HALF_MS_NS);
        let host_ns = i64::try_from(self.clock.calibration().utc_ns_of(middle)).unwrap_or(i64::MAX);
        self.offset_ns = Some(server_ns.saturating_sub(host_ns));
    }

    /// Returns the exchange's time at these ticks, in milliseconds since the Unix epoch.
    #[inline]
    pub(crate) fn ms(&self, ticks: u64) -> u64 {
        let host_ns = self.clock.calibration().utc_ns_of(ticks);
        host_ns.saturating_add_signed(self.offset_ns.unwrap_or(0)) / MS_NS
    }

    /// Returns the offset for a message: how far the exchange's clock is ahead.
    pub(crate) fn offset_text(&self) -> String {
        match self.offset_ns {
            Some(offset_ns) => format!("clock offset {:+} ms", offset_ns / 1_000_000),
            None => "clock offset unknown".to_owned(),
        }
    }
}
