//! Group commit: a thread of its own makes the journal durable, for all that came while it did so the last time at once.
//!
//! Once the disk has failed nothing more becomes durable, and there is nothing to wait for. What was held for it is given up:
//! new orders and replaces that had not left are denied and never do ([`Denial::DiskFailed`]), cancels pass. Clients of
//! [`AckLevel::Disk`] are told all the same, because silence would hide fills and what became of cancels:
//!
//! * Of an order that the disk does not have, the last word is that it is over. It never left, whatever becomes of the
//!   journal.
//! * Whatever else they hear is of orders that the disk has. A loss of power may take the word itself; then the order is in
//!   doubt, and its venue is asked.
//!
//! [`Denial::DiskFailed`]: tickpath_orders::Denial::DiskFailed

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use tickpath_clock::{Clock, sleep_ns};
use tickpath_log::{Syncer, Tail, Writer};

/// What must hold an input before its outputs leave.
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
    /// The level with this code. `replica` will be the next one.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Os, Self::Disk].into_iter().find(|level| *level as u8 == code)
    }
}

/// Who makes a journal durable.
pub(crate) struct Commit {
    shared: Arc<Shared>,
    by: By,
}

enum By {
    Thread(Option<JoinHandle<()>>),
    /// Whoever holds this: a simulation that decides when a disk is done.
    Hand,
}

struct Shared {
    asked: Mutex<Asked>,
    changed: Condvar,
    /// Records below this are durable.
    synced: AtomicU64,
    failed: AtomicBool,
}

/// How the thread waits before it syncs. Who was told of a batch often sends again at once: a sync that begins with the
/// first of them leaves out all others, and they wait for two.
struct Pace<C> {
    clock: C,
    gather_ns: u64,
}

/// A batch of so many records had several senders; a sync that takes so long is worth a wait, of a part of it.
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
    /// The journal goes on in another log.
    next: Option<Syncer>,
    is_over: bool,
    error: Option<io::Error>,
}

/// Makes a journal durable when it is told to, for simulations.
pub struct CommitByHand {
    shared: Arc<Shared>,
    syncer: Syncer,
}

impl Commit {
    /// A thread for this journal.
    pub fn start(journal: &Writer, clock: impl Clock) -> io::Result<Self> {
        let (shared, mut syncer) = (Shared::of(journal), journal.syncer()?);
        let theirs = shared.clone();
        let mut pace = Pace { clock, gather_ns: 0 };
        let work = move || while theirs.commit_next(&mut syncer, &mut pace) {};
        let thread = std::thread::Builder::new().name("oms-commit".into()).spawn(work)?;
        Ok(Self { shared, by: By::Thread(Some(thread)) })
    }

    /// Nobody yet: the other half commits when it is told to.
    pub fn by_hand(journal: &Writer) -> io::Result<(Self, CommitByHand)> {
        let (shared, syncer) = (Shared::of(journal), journal.syncer()?);
        Ok((Self { shared: shared.clone(), by: By::Hand }, CommitByHand { shared, syncer }))
    }

    /// Asks for all records up to this place.
    pub fn ask(&self, upto: Tail) {
        self.shared.lock().upto = Some(upto);
        self.shared.changed.notify_one();
    }

    /// The journal goes on in another log; all before that is durable.
    pub fn move_on(&self, journal: &Writer) -> io::Result<()> {
        let syncer = journal.syncer()?;
        let mut asked = self.shared.lock();
        (asked.upto, asked.next) = (None, Some(syncer));
        drop(asked);
        self.shared.has_synced(journal.sequence());
        Ok(())
    }

    /// Records below this are durable.
    #[inline]
    pub fn synced(&self) -> u64 {
        // Pairs with the release of who synced: what is durable is.
        self.shared.synced.load(Ordering::Acquire)
    }

    /// Whether the disk has failed. Once it has, nothing more of this journal ever becomes durable: after an error the
    /// kernel may have thrown away what it could not write.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// What the disk said when it failed.
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
            // It ends after the sync that it is in; a panic there has said what it had to.
            let _ = thread.join();
        }
    }
}

impl CommitByHand {
    /// Makes durable what was asked for. Says up to which record the journal is durable now.
    pub fn commit(&mut self) -> u64 {
        let mut asked = self.shared.lock();
        let upto = asked.take(&mut self.syncer);
        drop(asked);
        if let Some(upto) = upto {
            self.shared.sync(&mut self.syncer, upto);
        }
        self.shared.synced.load(Ordering::Acquire)
    }

    /// The disk fails.
    pub fn fail(&mut self) {
        self.shared.fail(io::Error::other("the disk failed in a simulation"));
    }
}

impl Asked {
    /// What is to be durable next, with a syncer for its log.
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

    /// Waits for what is asked next and makes it durable; false when it is over.
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

    /// Never goes back: a sync that was asked for before the journal went on in another log may end after that.
    fn has_synced(&self, upto: u64) {
        self.synced.fetch_max(upto, Ordering::Release);
    }

    fn fail(&self, error: io::Error) {
        self.lock().error = Some(error);
        self.failed.store(true, Ordering::Release);
    }
}
