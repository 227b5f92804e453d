//! Mappings of files that somebody else may cut short. Whoever touches what is gone then gets a SIGBUS, which ends the
//! process: a stranger would end ours.
//!
//! ```text
//!   stranger                    we, in a guarded range                    the handler
//!   ftruncate(data) ──────────> load ── SIGBUS ─────────────────────────> zeros of our own over the range,
//!                               the load is made again, and finds zero <── the range is cut, and counted
//! ```
//!
//! A fault in any other place goes to who handled it before. The handler is the process's: it is installed when the
//! first range is guarded, and whoever installs another one over it takes the guard away.
//!
//! The handler may run at any moment in any thread, so that it does only what is allowed there: atomic words, and system
//! calls. A range that is just being given back or taken by another thread shows by its state, which never returns to
//! an earlier value: what the handler read between two equal ones belongs together.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;

use tickpath_clock::SetOnce;

use crate::sync::{AtomicU64, Ordering, fence};

/// Ranges that one process can guard: each log takes two.
const MOST: usize = 4096;

/// The low two bits of a range's state; above them, how often it was taken.
const STATE: u64 = 3;
const FREE: u64 = 0;
const CHANGING: u64 = 1;
const LIVE: u64 = 2;
const CUT: u64 = 3;

static RANGES: [Range; MOST] = [const { Range::new() }; MOST];
static FAULTS: AtomicU64 = AtomicU64::new(0);
static PREVIOUS: SetOnce<libc::sigaction> = SetOnce::new();

/// How often, in this process, a guarded log was found to be cut short. A change says that one of them is: ask each.
pub fn faults() -> u64 {
    FAULTS.load(Ordering::Relaxed)
}

/// Who else has a file?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// Programs of ours.
    Trusted,
    /// Strangers: its mappings are guarded, and nothing in them is lent.
    Untrusted,
}

/// A range of memory that is guarded until this is dropped.
pub(crate) struct Guard {
    range: &'static Range,
}

struct Range {
    state: AtomicU64,
    base: AtomicU64,
    bytes: AtomicU64,
}

impl Guard {
    /// Guards a whole mapping. It must be dropped before the mapping is.
    pub fn new(base: NonNull<u8>, bytes: usize) -> io::Result<Self> {
        install()?;
        let range = RANGES.iter().find(|range| range.take());
        let range =
            range.ok_or_else(|| io::Error::other(format!("{MOST} mappings are guarded already; close a log")))?;
        range.base.store(base.as_ptr() as u64, Ordering::Relaxed);
        range.bytes.store(bytes as u64, Ordering::Relaxed);
        range.turn(LIVE);
        Ok(Self { range })
    }

    /// True if the file was cut short under the range.
    pub fn is_cut(&self) -> bool {
        self.range.state.load(Ordering::Acquire) & STATE == CUT
    }

    /// Notes that the file was cut short, though nobody has touched what is gone.
    pub fn cut(&self) {
        self.range.turn(CUT);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.range.turn(FREE);
    }
}

impl Range {
    const fn new() -> Self {
        Self { state: AtomicU64::new(FREE), base: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Makes a free range ours.
    fn take(&self) -> bool {
        let found = self.state.load(Ordering::Relaxed);
        let taken = (found | STATE) + 1 + CHANGING;
        let is_ours = found & STATE == FREE
            && self.state.compare_exchange(found, taken, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // Pairs with the acquire fence in `covers`: who reads our base or length sees at least this state.
        fence(Ordering::Release);
        is_ours
    }

    /// Goes over to another of the states of who has it.
    fn turn(&self, to: u64) {
        // Pairs with the acquire of the handler: it sees base and length.
        let _ = self.state.fetch_update(Ordering::Release, Ordering::Relaxed, |state| Some(state & !STATE | to));
    }

    /// The range, if this address lies in it.
    fn covers(&self, address: u64) -> Option<(u64, u64)> {
        let state = self.state.load(Ordering::Acquire);
        if state & STATE < LIVE {
            return None;
        }
        let (base, bytes) = (self.base.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        // Whoever touches a range of its own keeps it from being given back; another thread's may change as we look.
        let later = self.state.load(Ordering::Relaxed);
        let is_same = later & !STATE == state & !STATE && later & STATE >= LIVE;
        (is_same && address.wrapping_sub(base) < bytes).then_some((base, bytes))
    }

    /// Puts zeros in the place of what is gone. False if the kernel does not.
    fn replace(&self, base: u64, bytes: u64) -> bool {
        // SAFETY: the range is a mapping of ours, which the thread that has just touched it keeps alive; what others
        // read from it races by design, and zeros are as good as any bytes that a stranger may write there.
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
        self.turn(CUT);
        FAULTS.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Puts the handler in place, if it is not. Threads that come at once all do so, which is as good as once: who would wait for
/// another one would wait for ever in a fork, whose parent's threads stayed behind.
fn install() -> io::Result<()> {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if IS_INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    // SAFETY: a `sigaction` is plain numbers, for which zero is valid.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
    ours.sa_sigaction = handler as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // Asked first and set then: at the first fault, it must be known who handled it before.
    let previous = set_handler(None)?;
    if previous.sa_sigaction != ours.sa_sigaction {
        PREVIOUS.get_or_make(|| previous);
    }
    set_handler(Some(&ours))?;
    IS_INSTALLED.store(true, Ordering::Release);
    Ok(())
}

/// Gives who handles faults now, and sets another one if there is one.
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
    // SAFETY: the thread's own word, which whoever was interrupted may be about to read.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel hands a valid struct to a handler with SA_SIGINFO. The address counts only of a fault.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr() as u64) };
    let replace = |range: &Range| range.covers(address).is_some_and(|(base, bytes)| range.replace(base, bytes));
    if !(is_fault && RANGES.iter().any(replace)) {
        // Not ours: the instruction is tried again, and faults as if we had never been here.
        if let Some(previous) = PREVIOUS.get() {
            let _ = set_handler(Some(previous));
        }
        if !is_fault {
            // SAFETY: the signal came from a process; it comes again when this handler returns.
            unsafe { libc::raise(signal) };
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
