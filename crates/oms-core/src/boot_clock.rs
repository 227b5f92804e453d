//! Clock of the last boot: the rate and the start of the host's ticks.

use tickpath_oms_records::Boot;

/// Conversion of ticks since the last start of the OMS to nanoseconds and to the time of the day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BootClock {
    pub(crate) boot_id: [u8; 16],
    /// Tick at which the OMS started.
    pub(crate) started: u64,
    /// Time of that start, in nanoseconds since the Unix epoch.
    pub(crate) utc_ns: u64,
    pub(crate) rate: TickRate,
}

/// Nanoseconds per tick, in units of 2⁻³²: converts with a product and a shift instead of a division.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickRate(pub(crate) u64);

impl BootClock {
    /// Applies a start of the OMS; returns whether the host has booted since the last start, so that earlier ticks
    /// cannot be compared with later ones.
    pub(crate) fn start(&mut self, boot: &Boot, tick: u64) -> bool {
        (self.rate, self.started, self.utc_ns) = (TickRate::of(boot.ticks_per_second), tick, boot.utc_ns);
        std::mem::replace(&mut self.boot_id, boot.boot_id) != boot.boot_id
    }

    #[inline]
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        self.rate.ns(ticks)
    }

    /// Returns the time at a tick of this boot, in nanoseconds since the Unix epoch.
    pub(crate) fn utc_ns_at(&self, tick: u64) -> u64 {
        self.utc_ns.saturating_add(self.ns(tick.saturating_sub(self.started)))
    }

    /// Returns the second of the UTC day at a tick of this boot.
    pub(crate) fn second_of_day(&self, tick: u64) -> u32 {
        (self.utc_ns_at(tick) / 1_000_000_000 % 86_400) as u32
    }
}

impl Default for BootClock {
    /// Returns the clock before the first start, whose ticks count as nanoseconds.
    fn default() -> Self {
        Self { boot_id: [0; 16], started: 0, utc_ns: 0, rate: TickRate::of(1_000_000_000) }
    }
}

impl TickRate {
    /// Converts a clock's frequency in ticks per second.
    fn of(ticks_per_second: u64) -> Self {
        Self(((1_000_000_000_u128 << 32) / u128::from(ticks_per_second.max(1))).min(u64::MAX.into()) as u64)
    }

    #[inline]
    fn ns(self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.0)) >> 32).unwrap_or(u64::MAX)
    }
}
