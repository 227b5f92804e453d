//! Group commit: a thread makes the journal durable, each time for all records that came during the sync before.
//! Design: `docs/design/group-commit.md`.
//!
//! After a disk failure nothing more becomes durable, and no output waits for the disk. New orders and replaces that
//! had not left are denied and never leave ([`Denial::DiskFailed`]), cancels pass. Clients of [`AckLevel::Disk`]
//! receive their reports all the same, because silence would hide fills and the results of cancels:
//!
//! * The last report of an order that the disk does not have is the order's end. The order never left, whatever becomes
//!   of the journal.
//! * All other reports are of orders that the disk has. A power loss may take the record behind a report; then the
//!   order is in doubt, and its venue is asked.
//!
//! [`Denial::DiskFailed`]: tickpath_oms_core::Denial::DiskFailed

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use tickpath_clock::{Clock, sleep_ns};
use tickpath_log::{LogTail, Syncer, Writer};

/// Durability level: the place that must hold an input before its outputs leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum AckLevel {
    /// The operating system: it survives the end of any process.
    #[default]
    Os = 0,
    /// The disk: it survives the loss of power, as long as the disk is sound.
    Disk = 1,
}

impl AckLevel {
    /// Returns the level with this code; `None` for an unknown code.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Os, Self::Disk].into_iter().find(|level| *level as u8 == code)
    }
}

/// Group commit of a journal.
pub struct GroupCommit {
    shared: Arc<CommitState>,
    driver: CommitDriver,
}

enum CommitDriver {
    Thread(Option<JoinHandle<()>>),
    /// The holder of a [`ManualCommit`]: a simulation that decides when a sync ends.
    Manual,
}

struct CommitState {
    request: Mutex<SyncRequest>,
    changed: Condvar,
    /// Records below this are durable.
    synced: AtomicU64,
    failed: AtomicBool,
}

/// Wait of the thread before a sync. Clients that received the reports of a batch often send again at once: a sync that
/// starts with the first of their requests leaves out all others, which then wait for two syncs.
struct CommitDelay<C> {
    clock: C,
    delay_ns: u64,
}

/// Records from which on a batch had several senders, nanoseconds from which on a sync is worth a wait, and the divisor
/// of the sync's time that gives the wait.
const BATCH_RECORDS: u64 = 8;
const SLOW_SYNC_NS: u64 = 400_000;
const DELAY_DIVISOR: u64 = 8;

impl<C: Clock> CommitDelay<C> {
    fn update(&mut self, records: u64, from: u64) {
        let took = self.clock.ns_between(from, self.clock.ticks()).max(0) as u64;
        self.delay_ns = if records >= BATCH_RECORDS && took >= SLOW_SYNC_NS { took / DELAY_DIVISOR } else { 0 };
    }
}

#[derive(Default)]
struct SyncRequest {
    upto: Option<LogTail>,
    /// Syncer of the log in which the journal continues.
    next: Option<Syncer>,
    is_over: bool,
    error: Option<io::Error>,
}

/// Handle that makes a journal durable on demand, for simulations.
pub struct ManualCommit {
    shared: Arc<CommitState>,
    syncer: Syncer,
}

impl GroupCommit {
    /// Starts the commit thread of this journal.
    pub fn start(journal: &Writer, clock: impl Clock) -> io::Result<Self> {
        let (shared, mut syncer) = (CommitState::of(journal), journal.syncer()?);
        let thread_state = shared.clone();
        let mut delay = CommitDelay { clock, delay_ns: 0 };
        let work = move || while thread_state.commit_next(&mut syncer, &mut delay) {};
        let thread = std::thread::Builder::new().name("oms-commit".into()).spawn(work)?;
        Ok(Self { shared, driver: CommitDriver::Thread(Some(thread)) })
    }

    /// Returns a group commit without a thread, and the handle that commits on demand.
    pub fn manual(journal: &Writer) -> io::Result<(Self, ManualCommit)> {
        let (shared, syncer) = (CommitState::of(journal), journal.syncer()?);
        Ok((Self { shared: shared.clone(), driver: CommitDriver::Manual }, ManualCommit { shared, syncer }))
    }

    /// Requests a sync of all records up to this tail.
    pub fn request_sync(&self, upto: LogTail) {
        self.shared.lock().upto = Some(upto);
        self.shared.changed.notify_one();
    }

    /// Continues in the journal's next log; all records before that log are durable.
    pub fn continue_in(&self, journal: &Writer) -> io::Result<()> {
        let syncer = journal.syncer()?;
        let mut request = self.shared.lock();
        (request.upto, request.next) = (None, Some(syncer));
        drop(request);
        self.shared.raise_watermark(journal.sequence());
        Ok(())
    }

    /// Returns the commit watermark: the records below it are durable.
    #[inline]
    pub fn synced(&self) -> u64 {
        // Pairs with the Release of the sync: records below the watermark are on the disk.
        self.shared.synced.load(Ordering::Acquire)
    }

    /// Returns whether the disk has failed. After a failure nothing more of this journal ever becomes durable, because
    /// the kernel may have dropped the data that it could not write.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// Returns the text of the disk's error; empty without an error.
    pub fn error(&self) -> String {
        self.shared.lock().error.as_ref().map_or_else(String::new, io::Error::to_string)
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
        if let CommitDriver::Thread(thread) = &mut self.driver
            && let Some(thread) = thread.take()
        {
            // The thread ends after its current sync; the panic hook has reported a panic.
            let _ = thread.join();
        }
    }
}

impl ManualCommit {
    /// Makes the requested records durable. Returns the commit watermark.
    pub fn commit(&mut self) -> u64 {
        let mut request = self.shared.lock();
        let upto = request.take_pending(&mut self.syncer);
        drop(request);
        if let Some(upto) = upto {
            self.shared.sync(&mut self.syncer, upto);
        }
        self.shared.synced.load(Ordering::Acquire)
    }

    /// Makes the disk fail.
    pub fn fail(&mut self) {
        self.shared.fail(io::Error::other("the disk failed in a simulation"));
    }
}

impl SyncRequest {
    /// Takes the pending sync request, and the syncer of its log.
    fn take_pending(&mut self, syncer: &mut Syncer) -> Option<LogTail> {
        if let Some(next) = self.next.take() {
            *syncer = next;
        }
        self.upto.take()
    }
}

impl CommitState {
    fn of(journal: &Writer) -> Arc<Self> {
        Arc::new(Self {
            request: Mutex::default(),
            changed: Condvar::new(),
            synced: AtomicU64::new(journal.sequence()),
            failed: AtomicBool::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, SyncRequest> {
        self.request.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits for the next sync request and serves it; returns false at the end.
    fn commit_next(&self, syncer: &mut Syncer, delay: &mut CommitDelay<impl Clock>) -> bool {
        let mut request = self.lock();
        let mut upto = loop {
            if request.is_over || request.error.is_some() {
                return false;
            }
            match request.take_pending(syncer) {
                Some(upto) => break upto,
                None => request = self.changed.wait(request).unwrap_or_else(|e| e.into_inner()),
            }
        };
        drop(request);
        if delay.delay_ns > 0 {
            sleep_ns(delay.delay_ns);
            upto = self.lock().take_pending(syncer).unwrap_or(upto);
        }
        let (before, from) = (self.synced.load(Ordering::Relaxed), delay.clock.ticks());
        self.sync(syncer, upto);
        delay.update(upto.sequence.saturating_sub(before), from);
        true
    }

    fn sync(&self, syncer: &mut Syncer, upto: LogTail) {
        if self.failed.load(Ordering::Acquire) {
            return;
        }
        match syncer.sync(upto) {
            Ok(()) => self.raise_watermark(upto.sequence),
            Err(e) => self.fail(e),
        }
    }

    /// Raises the commit watermark. It never goes back: a sync that began before the journal moved to another log may
    /// end after the move.
    fn raise_watermark(&self, upto: u64) {
        self.synced.fetch_max(upto, Ordering::Release);
    }

    fn fail(&self, error: io::Error) {
        self.lock().error = Some(error);
        self.failed.store(true, Ordering::Release);
    }
}
