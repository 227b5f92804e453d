//! Guards for mappings of files that an untrusted process may truncate. An access to a missing page raises SIGBUS,
//! which kills the process: without a guard an untrusted process could kill this one.
//!
//! ```text
//!   untrusted process           this one, in a guarded range              the handler
//!   ftruncate(data) ──────────> load ── SIGBUS ─────────────────────────> private zeros over the range,
//!                               the load is retried, and finds zero <──── the range is cut, and counted
//! ```
//!
//! A fault at any other address goes to the previous handler. The handler belongs to the process: it is installed with
//! the first guarded range, and code that installs another handler over it disables the guard.
//!
//! The handler may run at any moment in any thread, so that it does only what is allowed there: atomic words, and
//! system calls. A range that another thread is just releasing or taking shows by its state, which never returns to an
//! earlier value: words that the handler read between two equal states belong together.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;

use tickpath_clock::SetOnce;

use crate::sync::{AtomicU64, Ordering, fence};

/// Max ranges that one process can guard: each log takes two.
const MAX_RANGES: usize = 4096;
/// Low two bits of a range's state; above them, the number of times it was taken.
const STATE: u64 = 3;
const FREE: u64 = 0;
const CHANGING: u64 = 1;
const LIVE: u64 = 2;
const TRUNCATED: u64 = 3;
static RANGES: [GuardedRange; MAX_RANGES] = [const { GuardedRange::new() }; MAX_RANGES];
static FAULTS: AtomicU64 = AtomicU64::new(0);
static PREVIOUS: SetOnce<libc::sigaction> = SetOnce::new();

/// Returns the number of faults on truncated guarded ranges. After a change at least one log is cut: check each.
pub fn faults() -> u64 {
    FAULTS.load(Ordering::Relaxed)
}

/// Trust in other processes that have a file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessTrust {
    /// Trusted programs of this system.
    Trusted,
    /// Untrusted processes: mappings are guarded, and no payload in them is lent.
    Untrusted,
}

/// A range of memory that is guarded until this is dropped.
pub(crate) struct TruncationGuard {
    range: &'static GuardedRange,
}

struct GuardedRange {
    state: AtomicU64,
    base: AtomicU64,
    bytes: AtomicU64,
}

impl TruncationGuard {
    /// Guards a whole mapping. It must be dropped before the mapping is.
    pub fn new(base: NonNull<u8>, bytes: usize) -> io::Result<Self> {
        install()?;
        let range = RANGES.iter().find(|range| range.try_claim());
        let range =
            range.ok_or_else(|| io::Error::other(format!("{MAX_RANGES} mappings are guarded already; close a log")))?;
        range.base.store(base.as_ptr() as u64, Ordering::Relaxed);
        range.bytes.store(bytes as u64, Ordering::Relaxed);
        range.set_state(LIVE);
        Ok(Self { range })
    }

    /// Returns true if the file was truncated under the range.
    pub fn is_truncated(&self) -> bool {
        self.range.state.load(Ordering::Acquire) & STATE == TRUNCATED
    }

    /// Records that the file was truncated, before any access to the missing pages.
    pub fn mark_truncated(&self) {
        self.range.set_state(TRUNCATED);
    }
}

impl Drop for TruncationGuard {
    fn drop(&mut self) {
        self.range.set_state(FREE);
    }
}

impl GuardedRange {
    const fn new() -> Self {
        Self { state: AtomicU64::new(FREE), base: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Takes a free range; returns false if it is not free.
    fn try_claim(&self) -> bool {
        let found = self.state.load(Ordering::Relaxed);
        let taken = (found | STATE) + 1 + CHANGING;
        let is_ours = found & STATE == FREE
            && self.state.compare_exchange(found, taken, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // Pairs with the acquire fence in `covers`: a handler that reads this base or length sees at least this state.
        fence(Ordering::Release);
        is_ours
    }

    /// Changes the state of a range that the caller has.
    fn set_state(&self, to: u64) {
        // Pairs with the acquire of the handler: it sees base and length.
        let _ = self.state.fetch_update(Ordering::Release, Ordering::Relaxed, |state| Some(state & !STATE | to));
    }

    /// Returns the range, if this address lies in it.
    fn covers(&self, address: u64) -> Option<(u64, u64)> {
        let state = self.state.load(Ordering::Acquire);
        if state & STATE < LIVE {
            return None;
        }
        let (base, bytes) = (self.base.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        // A thread that touches a range of its own keeps it from being released; another thread's may change meanwhile.
        let later = self.state.load(Ordering::Relaxed);
        let is_same = later & !STATE == state & !STATE && later & STATE >= LIVE;
        (is_same && address.wrapping_sub(base) < bytes).then_some((base, bytes))
    }

    /// Maps zeros over the range. Returns false if the kernel refuses.
    fn map_zeros(&self, base: u64, bytes: u64) -> bool {
        // SAFETY: the range is a mapping of this process, kept alive by the thread that has just touched it; other
        // reads of it race by design, and zeros are as good as any bytes that an untrusted process may write there.
        let mapped = unsafe {
            libc::mmap(
                base as *mut libc::c_void,
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return false;
        }
        self.set_state(TRUNCATED);
        FAULTS.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Installs the handler, unless it is installed. Threads that come at once all install it, which is harmless: waiting
/// for another thread would block for ever in a fork, which does not have its parent's threads.
fn install() -> io::Result<()> {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if IS_INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    // SAFETY: a `sigaction` is plain numbers, for which zero is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // Read first and set then: at the first fault, the previous handler must be known.
    let previous = set_handler(None)?;
    if previous.sa_sigaction != action.sa_sigaction {
        PREVIOUS.get_or_init(|| previous);
    }
    set_handler(Some(&action))?;
    IS_INSTALLED.store(true, Ordering::Release);
    Ok(())
}

/// Returns the current action for faults, and sets `handler` if there is one.
fn set_handler(handler: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    // SAFETY: as above.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    let new = handler.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `new` is none or a valid action whose handler lives as long as the program; `before` is a valid place.
    match unsafe { libc::sigaction(libc::SIGBUS, new, &mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the thread's own word, which the interrupted code may be about to read.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a valid struct to a handler with SA_SIGINFO. The address counts only for a fault.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr() as u64) };
    let replace =
        |range: &GuardedRange| range.covers(address).is_some_and(|(base, bytes)| range.map_zeros(base, bytes));
    if !(is_fault && RANGES.iter().any(replace)) {
        // Not in a guarded range: the instruction is retried, and faults again under the previous handler.
        if let Some(previous) = PREVIOUS.get() {
            let _ = set_handler(Some(previous));
        }
        if !is_fault {
            // SAFETY: the signal came from a process; it arrives again when this handler returns.
            unsafe { libc::raise(signal) };
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
