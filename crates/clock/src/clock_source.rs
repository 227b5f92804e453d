//! Counters that ticks may come from.

/// The counter that the ticks come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockSource {
    /// The invariant time stamp counter of the processor.
    Tsc = 1,
    /// `CLOCK_MONOTONIC`, one tick a nanosecond: slower to read.
    Os = 2,
    /// A [`crate::SimulatedClock`].
    Simulated = 3,
    /// The virtual counter of an ARM processor, `CNTVCT_EL0`.
    VirtualCounter = 4,
}

impl ClockSource {
    /// Returns the source with this code, if there is one.
    pub fn from_code(code: u32) -> Option<Self> {
        let all = [Self::Tsc, Self::Os, Self::Simulated, Self::VirtualCounter];
        all.into_iter().find(|source| *source as u32 == code)
    }

    /// Returns whether the source is a counter of the processor, which is read without a system call.
    pub fn is_counter(self) -> bool {
        matches!(self, Self::Tsc | Self::VirtualCounter)
    }

    /// Returns the name of the source for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Os => "os",
            Self::Simulated => "simulated",
            Self::VirtualCounter => "cntvct",
        }
    }
}
