//! A puller of a queue.

use tickpath_clock::{Clock, ForkGeneration, HostClock, Wait};

use crate::claim::{Claim, ClaimOwner, ClaimTable, MAX_PULLERS, QueueDelivery};
use crate::lock::{self, ByteLock, TryLock};
use crate::log_path::READER_LOCKS;
use crate::queue::{open_existing_claims, puller_lock_byte};
use crate::reader::walk::WalkStep;
use crate::sync::{Ordering, fence};
use crate::{LogMessage, LogOpenError, LogPath, LogReadError, Reader};

/// Max interval between a sleeping puller's checks for dead pullers that hold messages, in ns.
const DEAD_PULLER_CHECK_NS: u64 = 100_000_000;

/// Consumer of a queue, which shares its messages with other pullers in any processes.
///
/// ```
/// use tickpath_clock::{Clock, HostClock};
/// use tickpath_log::{Config, LogPath, QueueDelivery, QueuePuller, Writer, queue_backlog};
///
/// let clock = HostClock::get()?;
/// let path = LogPath::shared_memory(&format!("doc-queue-{}", std::process::id()))?;
/// let mut writer = Writer::open_queue(&Config::queue(path.clone()), clock.calibration())?;
/// for order in [b"first", b"other"] {
///     writer.publish(clock.ticks(), 16, order)?;
/// }
/// let mut puller = QueuePuller::open(&path, QueueDelivery::AtLeastOnce)?;
/// let pulled = puller.pull(1, |pulled| {
///     assert_eq!((pulled.message.payload, pulled.redelivered), (&b"first"[..], false));
/// })?;
/// puller.acknowledge();
/// assert_eq!((pulled, queue_backlog(&path)?), (1, 1));
/// writer.remove()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct QueuePuller {
    reader: Reader,
    claims: ClaimTable,
    owner: ClaimOwner,
    delivery: QueueDelivery,
    /// Sequence numbers of messages handed over and not finished.
    unacknowledged: Vec<u64>,
    /// Number of damaged messages set aside, and the last of them until it is reported.
    set_aside: u64,
    pending_damage: Option<LogReadError>,
    /// Requests to search again that this puller has followed by a restart at the group's cursor.
    rescan_count: u64,
    clock: HostClock,
    /// Time of the last check for dead pullers, and the interval until the next; ticks.
    last_check: u64,
    check_interval: u64,
    path: LogPath,
    fork_generation: ForkGeneration,
    _lock: ByteLock,
}

/// A message as a puller receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedMessage<'a> {
    /// The message.
    pub message: LogMessage<'a>,
    /// Set if a dead puller may have received the message already.
    pub redelivered: bool,
}

impl QueuePuller {
    /// Joins the pullers of a queue that a writer has created. All of them should ask for the same delivery.
    pub fn open(path: &LogPath, delivery: QueueDelivery) -> Result<Self, LogOpenError> {
        let clock = HostClock::get()?;
        let reader = Reader::open_for_puller(path)?;
        let claims = open_existing_claims(path)?;
        let (slot, lock) = take_slot(path)?;
        let owner = claims.join(slot, delivery);
        let mut puller = Self {
            reader,
            claims,
            owner,
            delivery,
            unacknowledged: Vec::new(),
            set_aside: 0,
            pending_damage: None,
            rescan_count: 0,
            check_interval: clock.calibration().ticks_of_ns(DEAD_PULLER_CHECK_NS / 2),
            clock,
            last_check: 0,
            path: path.clone(),
            fork_generation: ForkGeneration::current(),
            _lock: lock,
        };
        puller.free_dead_pullers();
        puller.restart_at_cursor().map_err(|e| LogOpenError::damaged(path, e))?;
        Ok(puller)
    }

    /// Claims up to `limit` messages, and hands each over as soon as it is claimed; returns their number. With
    /// at-most-once delivery they are done when this returns; a payload stays in place only during its hand-over.
    ///
    /// Sets a message with a wrong checksum aside, so that it holds up no other, and reports it as an error once: from
    /// this pull, or from the next if this one has handed over others.
    #[inline]
    pub fn pull(&mut self, limit: usize, mut hand_over: impl FnMut(ClaimedMessage<'_>)) -> Result<usize, LogReadError> {
        if self.fork_generation.is_forked() {
            return Err(LogReadError::Forked);
        }
        if let Some(damage) = self.pending_damage.take() {
            return Err(damage);
        }
        if self.others_hold() && self.clock.ticks().wrapping_sub(self.last_check) >= self.check_interval {
            self.free_dead_pullers();
        }
        if self.claims.rescan_count() != self.rescan_count {
            self.restart_at_cursor()?;
        }
        let mut count = 0;
        // Bounded, however fast others push and pull: walks past a whole log at most.
        for _ in 0..self.claims.capacity() {
            if count == limit {
                break;
            }
            match self.reader.walk()? {
                WalkStep::Frame(at) => {
                    let Some(claim) = self.claims.claim(at.sequence, self.owner) else { continue };
                    let message = match self.reader.claimed(at) {
                        Ok(message) => message,
                        Err(damage) => {
                            self.pending_damage = Some(damage);
                            self.skip_damaged(at.sequence);
                            break;
                        }
                    };
                    self.unacknowledged.push(at.sequence);
                    hand_over(ClaimedMessage { message, redelivered: claim == Claim::Redelivered });
                    count += 1;
                }
                // Other pullers have finished all messages there.
                WalkStep::Lapped => self.reader.seek(self.claims.cursor())?,
                WalkStep::Nothing => break,
            }
        }
        if self.delivery == QueueDelivery::AtMostOnce {
            self.acknowledge();
        }
        match self.pending_damage.take_if(|_| count == 0) {
            Some(damage) => Err(damage),
            None => Ok(count),
        }
    }

    /// Returns the number of messages that this puller has set aside: damaged, and delivered to no puller.
    pub fn set_aside(&self) -> u64 {
        self.set_aside
    }

    /// Marks all messages handed over so far as done; they are never delivered again.
    #[inline]
    pub fn acknowledge(&mut self) {
        if self.unacknowledged.is_empty() || self.fork_generation.is_forked() {
            return;
        }
        self.unacknowledged.iter().for_each(|&sequence| self.claims.finish(sequence));
        self.unacknowledged.clear();
        self.claims.advance();
    }

    /// Waits once for news, at most `timeout_ns`, or 100 ms while others hold messages; the caller then pulls again.
    pub fn wait(&mut self, wait: Wait, timeout_ns: u64) {
        if !wait.sleeps() {
            return self.reader.wait(wait, timeout_ns);
        }
        let longest = if self.others_hold() { DEAD_PULLER_CHECK_NS } else { u64::MAX };
        self.reader.sleep_unless(timeout_ns.min(longest), || self.claims.rescan_count() != self.rescan_count);
    }

    /// As [`Reader::is_removed`].
    pub fn is_removed(&self) -> bool {
        self.reader.is_removed()
    }

    /// Returns true if messages were handed over and not acknowledged.
    pub fn has_unacknowledged(&self) -> bool {
        !self.unacknowledged.is_empty()
    }

    /// Returns the location of the queue.
    pub fn path(&self) -> &LogPath {
        &self.path
    }

    /// Finishes a message that cannot be handed over.
    #[cold]
    fn skip_damaged(&mut self, sequence: u64) {
        self.set_aside += 1;
        self.claims.finish(sequence);
        self.claims.advance();
    }

    /// Returns true if a message already walked past is neither done nor held by this puller.
    #[inline(always)]
    fn others_hold(&self) -> bool {
        self.claims.cursor() + (self.unacknowledged.len() as u64) < self.reader.sequence()
    }

    /// Ends the slots of pullers whose processes have ended.
    #[cold]
    fn free_dead_pullers(&mut self) {
        // Locks of a queue recreated under the same name are unrelated to this queue's pullers.
        let others = self.claims.slots().filter(|&slot| slot != self.owner.slot && !self.reader.is_removed());
        for slot in others {
            if let Ok(TryLock::Acquired(_lock)) =
                lock::try_lock(&self.path, READER_LOCKS, puller_lock_byte(slot), 0o600)
            {
                self.claims.leave(slot);
            }
        }
        // A puller may have died between its last acknowledgement and the cursor.
        self.claims.advance();
        self.last_check = self.clock.ticks();
    }

    /// Restarts at the group's cursor, for messages that ended pullers have left.
    #[cold]
    fn restart_at_cursor(&mut self) -> Result<(), LogReadError> {
        let rescan_count = self.claims.rescan_count();
        self.claims.advance();
        self.reader.seek(self.claims.cursor())?;
        self.rescan_count = rescan_count;
        Ok(())
    }
}

impl Drop for QueuePuller {
    fn drop(&mut self) {
        // A forked child's copy is not the puller.
        if self.fork_generation.is_forked() {
            return;
        }
        self.claims.leave(self.owner.slot);
        if self.unacknowledged.is_empty() {
            return;
        }
        // Pairs with the fence of a sleeper between its flag and its last check: at least one sees the other.
        fence(Ordering::SeqCst);
        self.claims.control.wake_sleepers();
    }
}

fn take_slot(path: &LogPath) -> Result<(usize, ByteLock), LogOpenError> {
    for slot in 0..MAX_PULLERS {
        let tried = lock::try_lock(path, READER_LOCKS, puller_lock_byte(slot), 0o600);
        if let TryLock::Acquired(lock) = tried.map_err(|e| LogOpenError::from_io(path, 0, e))? {
            return Ok((slot, lock));
        }
    }
    Err(LogOpenError::TooManyPullers(path.clone()))
}
