//! The time stamp counter and the operating system's clocks.

/// Returns true if the processor's time stamp counter runs at one rate in all states and on all cores.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_invariant_tsc() -> bool {
    use core::arch::x86_64::__cpuid;
    const INVARIANT_TSC: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & INVARIANT_TSC != 0
}

/// Returns false: only x86-64 has this counter.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn has_invariant_tsc() -> bool {
    false
}

/// Returns the time stamp counter, read after every earlier load has its value: without the fence the processor reads
/// the counter while a polled cache line is still in flight, and latencies come out too short.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn tsc() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: SSE2 and RDTSC are part of x86-64; neither instruction touches memory.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn tsc() -> u64 {
    monotonic_ns()
}

/// Returns the nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    os_clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the nanoseconds of an operating system clock.
#[inline]
pub(crate) fn os_clock_ns(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; the clock ids used here exist on every Linux.
    let result = unsafe { libc::clock_gettime(id, &mut time) };
    assert_eq!(result, 0, "clock_gettime({id}) failed");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
