//! The invariant counter of the processor, and the operating system's clocks.

use crate::clock_source::ClockSource;

/// Returns the processor's counter that runs at one rate in all states and on all cores; `None` without such a counter.
#[cfg(target_arch = "x86_64")]
pub(crate) fn invariant_source() -> Option<ClockSource> {
    use core::arch::x86_64::__cpuid;
    const INVARIANT_TSC: u32 = 1 << 8;
    let is_invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & INVARIANT_TSC != 0;
    is_invariant.then_some(ClockSource::Tsc)
}

/// Returns the virtual counter: the architecture guarantees its rate, and Linux lets programs read it.
#[cfg(target_arch = "aarch64")]
pub(crate) fn invariant_source() -> Option<ClockSource> {
    Some(ClockSource::VirtualCounter)
}

/// Returns `None`: this crate knows no counter of this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn invariant_source() -> Option<ClockSource> {
    None
}

/// Returns the time stamp counter, read after every earlier load has its value: without the fence the processor reads
/// the counter while a polled cache line is still in flight, and latencies come out too short.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: SSE2 and RDTSC are part of x86-64; neither instruction touches memory.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Returns `CNTVCT_EL0`, read after every earlier load has its value: `dmb ishld` orders the loads before the barrier
/// `isb`, which keeps the processor from reading the counter early.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets programs read this register; the barriers and the read change no memory and no flags.
    unsafe {
        core::arch::asm!("dmb ishld", "isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags))
    };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn ticks() -> u64 {
    monotonic_ns()
}

#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    os_clock_ns(libc::CLOCK_MONOTONIC)
}

#[inline]
pub(crate) fn os_clock_ns(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; the clock ids used here exist on every Linux.
    let result = unsafe { libc::clock_gettime(id, &mut time) };
    assert_eq!(result, 0, "clock_gettime({id}) failed");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
