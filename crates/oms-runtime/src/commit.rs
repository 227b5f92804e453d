//! Group commit: a thread makes the journal durable, each time for all records that came during the sync before.
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
use tickpath_log::{Syncer, Tail, Writer};

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
    /// Returns the level with this code. The next level will be `replica`.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Os, Self::Disk].into_iter().find(|level| *level as u8 == code)
    }
}

/// Group commit of a journal.
pub(crate) struct Commit {
    shared: Arc<Shared>,
    by: By,
}

enum By {
    Thread(Option<JoinHandle<()>>),
    /// The holder of a [`CommitByHand`]: a simulation that decides when a sync ends.
    Hand,
}

struct Shared {
    asked: Mutex<Asked>,
    changed: Condvar,
    /// Records below this are durable.
    synced: AtomicU64,
    failed: AtomicBool,
}

/// Wait of the thread before a sync. Clients that received the reports of a batch often send again at once: a sync that
/// starts with the first of their requests leaves out all others, which then wait for two syncs.
struct Pace<C> {
    clock: C,
    gather_ns: u64,
}

/// Records from which on a batch had several senders, nanoseconds from which on a sync is worth a wait, and the divisor
/// of the sync's time that gives the wait.
const MANY: u64 = 8;
const LONG_NS: u64 = 400_000;
const PART: u64 = 8;

impl<C: Clock> Pace<C> {
    fn look(&mut self, records: u64, from: u64) {
        let took = self.clock.ns_between(from, self.clock.ticks()).max(0) as u64;
        self.gather_ns = if records >= MANY && took >= LONG_NS { took / PART } else { 0 };
    }
}

#[derive(Default)]
struct Asked {
    upto: Option<Tail>,
    /// Syncer of the log in which the journal continues.
    next: Option<Syncer>,
    is_over: bool,
    error: Option<io::Error>,
}

/// Handle that makes a journal durable on demand, for simulations.
pub struct CommitByHand {
    shared: Arc<Shared>,
    syncer: Syncer,
}

impl Commit {
    /// Starts the commit thread of this journal.
    pub fn start(journal: &Writer, clock: impl Clock) -> io::Result<Self> {
        let (shared, mut syncer) = (Shared::of(journal), journal.syncer()?);
        let theirs = shared.clone();
        let mut pace = Pace { clock, gather_ns: 0 };
        let work = move || while theirs.commit_next(&mut syncer, &mut pace) {};
        let thread = std::thread::Builder::new().name("oms-commit".into()).spawn(work)?;
        Ok(Self { shared, by: By::Thread(Some(thread)) })
    }

    /// Returns a group commit without a thread, and the handle that commits on demand.
    pub fn by_hand(journal: &Writer) -> io::Result<(Self, CommitByHand)> {
        let (shared, syncer) = (Shared::of(journal), journal.syncer()?);
        Ok((Self { shared: shared.clone(), by: By::Hand }, CommitByHand { shared, syncer }))
    }

    /// Requests a sync of all records up to this place.
    pub fn ask(&self, upto: Tail) {
        self.shared.lock().upto = Some(upto);
        self.shared.changed.notify_one();
    }

    /// Continues in the journal's next log; all records before that log are durable.
    pub fn move_on(&self, journal: &Writer) -> io::Result<()> {
        let syncer = journal.syncer()?;
        let mut asked = self.shared.lock();
        (asked.upto, asked.next) = (None, Some(syncer));
        drop(asked);
        self.shared.has_synced(journal.sequence());
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

impl Drop for Commit {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
        if let By::Thread(thread) = &mut self.by
            && let Some(thread) = thread.take()
        {
            // The thread ends after its current sync; the panic hook has reported a panic.
            let _ = thread.join();
        }
    }
}

impl CommitByHand {
    /// Makes the requested records durable. Returns the commit watermark.
    pub fn commit(&mut self) -> u64 {
        let mut asked = self.shared.lock();
        let upto = asked.take(&mut self.syncer);
        drop(asked);
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

impl Asked {
    /// Takes the pending sync request, and the syncer of its log.
    fn take(&mut self, syncer: &mut Syncer) -> Option<Tail> {
        if let Some(next) = self.next.take() {
            *syncer = next;
        }
        self.upto.take()
    }
}

impl Shared {
    fn of(journal: &Writer) -> Arc<Self> {
        Arc::new(Self {
            asked: Mutex::default(),
            changed: Condvar::new(),
            synced: AtomicU64::new(journal.sequence()),
            failed: AtomicBool::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits for the next sync request and serves it; returns false at the end.
    fn commit_next(&self, syncer: &mut Syncer, pace: &mut Pace<impl Clock>) -> bool {
        let mut asked = self.lock();
        let mut upto = loop {
            if asked.is_over || asked.error.is_some() {
                return false;
            }
            match asked.take(syncer) {
                Some(upto) => break upto,
                None => asked = self.changed.wait(asked).unwrap_or_else(|e| e.into_inner()),
            }
        };
        drop(asked);
        if pace.gather_ns > 0 {
            sleep_ns(pace.gather_ns);
            upto = self.lock().take(syncer).unwrap_or(upto);
        }
        let (before, from) = (self.synced.load(Ordering::Relaxed), pace.clock.ticks());
        self.sync(syncer, upto);
        pace.look(upto.sequence.saturating_sub(before), from);
        true
    }

    fn sync(&self, syncer: &mut Syncer, upto: Tail) {
        if self.failed.load(Ordering::Acquire) {
            return;
        }
        match syncer.sync(upto) {
            Ok(()) => self.has_synced(upto.sequence),
            Err(e) => self.fail(e),
        }
    }

    /// Raises the commit watermark. It never goes back: a sync that began before the journal moved to another log may
    /// end after the move.
    fn has_synced(&self, upto: u64) {
        self.synced.fetch_max(upto, Ordering::Release);
    }

    fn fail(&self, error: io::Error) {
        self.lock().error = Some(error);
        self.failed.store(true, Ordering::Release);
    }
}
