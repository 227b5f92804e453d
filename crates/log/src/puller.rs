//! A puller of a queue.

use tickpath_clock::{Birthplace, Clock, HostClock, Wait};

use crate::claim::{Claim, Claimant, Claims, Delivery, MAX_PULLERS};
use crate::lock::{self, ByteLock, TryLock};
use crate::place::READER_LOCKS;
use crate::queue::{find_claims, lock_byte};
use crate::reader::walk::Walked;
use crate::sync::{Ordering, fence};
use crate::wake::wake_all;
use crate::{Message, OpenError, Place, ReadError, Reader};

/// Max interval between a sleeping puller's checks for dead pullers that hold messages, in ns.
const LOOK_NS: u64 = 100_000_000;

/// Consumer of a queue, which shares its messages with other pullers in any processes.
///
/// ```
/// use tickpath_log::{Config, Delivery, Place, Puller, Writer, waiting};
/// use tickpath_clock::{Clock, HostClock};
///
/// let clock = HostClock::get()?;
/// let place = Place::shared_memory(&format!("doc-queue-{}", std::process::id()))?;
/// let mut writer = Writer::open_queue(&Config::queue(place.clone()), clock.calibration())?;
/// for order in [b"first", b"other"] {
///     writer.publish(clock.ticks(), 16, order)?;
/// }
/// let mut puller = Puller::open(&place, Delivery::AtLeastOnce)?;
/// let pulled = puller.pull(1, |pulled| {
///     assert_eq!((pulled.message.payload, pulled.redelivered), (&b"first"[..], false));
/// })?;
/// puller.acknowledge();
/// assert_eq!((pulled, waiting(&place)?), (1, 1));
/// writer.remove()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Puller {
    reader: Reader,
    claims: Claims,
    owner: Claimant,
    delivery: Delivery,
    /// Sequence numbers of messages handed over and not finished.
    held: Vec<u64>,
    /// Number of damaged messages set aside, and the last of them until it is reported.
    set_aside: u64,
    untold: Option<ReadError>,
    /// Number of ended pullers when this puller last restarted at the group's cursor.
    fallen: u64,
    clock: HostClock,
    /// Time of the last check for dead pullers, and the interval until the next; ticks.
    looked: u64,
    lasts: u64,
    place: Place,
    born: Birthplace,
    _lock: ByteLock,
}

/// A message as a puller receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulled<'a> {
    /// The message.
    pub message: Message<'a>,
    /// Set if a dead puller may have received the message already.
    pub redelivered: bool,
}

impl Puller {
    /// Joins the pullers of a queue that a writer has created. All of them should ask for the same delivery.
    pub fn open(place: &Place, delivery: Delivery) -> Result<Self, OpenError> {
        let clock = HostClock::get()?;
        let reader = Reader::walking(place)?;
        let claims = find_claims(place)?;
        let (slot, lock) = take_slot(place)?;
        let owner = claims.join(slot, delivery);
        let lasts = clock.calibration().ticks_of_ns(LOOK_NS / 2);
        let mut puller = Self {
            reader,
            claims,
            owner,
            delivery,
            held: Vec::new(),
            set_aside: 0,
            untold: None,
            fallen: 0,
            clock,
            looked: 0,
            lasts,
            place: place.clone(),
            born: Birthplace::here(),
            _lock: lock,
        };
        puller.bury_fallen();
        let damaged = |e: ReadError| OpenError::Damaged { place: place.clone(), what: e.to_string() };
        puller.begin_again().map_err(damaged)?;
        Ok(puller)
    }

    /// Claims up to `limit` messages, and hands each over as soon as it is claimed; returns their number. With
    /// at-most-once delivery they are done when this returns; a payload stays in place only during its hand-over.
    ///
    /// Sets a message with a wrong checksum aside, so that it holds up no other, and reports it as an error once: from
    /// this pull, or from the next if this one has handed over others.
    #[inline]
    pub fn pull(&mut self, limit: usize, mut hand_over: impl FnMut(Pulled<'_>)) -> Result<usize, ReadError> {
        if self.born.is_elsewhere() {
            return Err(ReadError::Forked);
        }
        if let Some(damage) = self.untold.take() {
            return Err(damage);
        }
        if self.others_hold() && self.clock.ticks().wrapping_sub(self.looked) >= self.lasts {
            self.bury_fallen();
        }
        if self.claims.fallen() != self.fallen {
            self.begin_again()?;
        }
        let mut count = 0;
        // Bounded, however fast others push and pull: walks past a whole log at most.
        for _ in 0..self.claims.capacity() {
            if count == limit {
                break;
            }
            match self.reader.walk()? {
                Walked::Frame(at) => {
                    let Some(claim) = self.claims.claim(at.sequence, self.owner) else { continue };
                    let message = match self.reader.claimed(at) {
                        Ok(message) => message,
                        Err(damage) => {
                            self.untold = Some(damage);
                            self.put_aside(at.sequence);
                            break;
                        }
                    };
                    self.held.push(at.sequence);
                    hand_over(Pulled { message, redelivered: claim == Claim::Again });
                    count += 1;
                }
                // Other pullers have finished all messages there.
                Walked::Lapped => self.reader.seek(self.claims.cursor())?,
                Walked::Nothing => break,
            }
        }
        if self.delivery == Delivery::AtMostOnce {
            self.acknowledge();
        }
        match self.untold.take_if(|_| count == 0) {
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
        if self.held.is_empty() || self.born.is_elsewhere() {
            return;
        }
        self.held.iter().for_each(|&sequence| self.claims.finish(sequence));
        self.held.clear();
        self.claims.advance();
    }

    /// Waits once for news, at most `timeout_ns` if it sleeps; the caller then pulls again. Returns every 100 ms while
    /// others hold messages, so that their death is noticed.
    pub fn wait(&mut self, wait: Wait, timeout_ns: u64) {
        if !wait.sleeps() {
            return self.reader.wait(wait, timeout_ns);
        }
        let longest = if self.others_hold() { LOOK_NS } else { u64::MAX };
        self.reader.sleep_unless(timeout_ns.min(longest), || self.claims.fallen() != self.fallen);
    }

    /// As [`Reader::is_removed`].
    pub fn is_removed(&self) -> bool {
        self.reader.is_removed()
    }

    /// Returns true if messages were handed over and not acknowledged.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the location of the queue.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Finishes a message that cannot be handed over.
    #[cold]
    fn put_aside(&mut self, sequence: u64) {
        self.set_aside += 1;
        self.claims.finish(sequence);
        self.claims.advance();
    }

    /// Returns true if a message already walked past is neither done nor held by this puller.
    #[inline(always)]
    fn others_hold(&self) -> bool {
        self.claims.cursor() + (self.held.len() as u64) < self.reader.sequence()
    }

    /// Ends the slots of pullers whose processes have ended.
    #[cold]
    fn bury_fallen(&mut self) {
        // Locks of a queue recreated under the same name say nothing about this queue's pullers.
        let others = self.claims.slots().filter(|&slot| slot != self.owner.slot && !self.reader.is_removed());
        for slot in others {
            if let Ok(TryLock::Ours(_lock)) = lock::try_lock(&self.place, READER_LOCKS, lock_byte(slot), 0o600) {
                self.claims.leave(slot);
            }
        }
        // A puller may have died between its last acknowledgement and the cursor.
        self.claims.advance();
        self.looked = self.clock.ticks();
    }

    /// Restarts at the group's cursor, for messages that ended pullers have left.
    #[cold]
    fn begin_again(&mut self) -> Result<(), ReadError> {
        let fallen = self.claims.fallen();
        self.claims.advance();
        self.reader.seek(self.claims.cursor())?;
        self.fallen = fallen;
        Ok(())
    }
}

impl Drop for Puller {
    fn drop(&mut self) {
        // A forked child's copy is not the puller.
        if self.born.is_elsewhere() {
            return;
        }
        self.claims.leave(self.owner.slot);
        if self.held.is_empty() {
            return;
        }
        // Pairs with the fence of a sleeper between its flag and its last check: at least one sees the other.
        fence(Ordering::SeqCst);
        let sleepers = self.claims.control().sleepers();
        if sleepers.load(Ordering::Relaxed) != 0 {
            wake_all(sleepers);
        }
    }
}

fn take_slot(place: &Place) -> Result<(usize, ByteLock), OpenError> {
    for slot in 0..MAX_PULLERS {
        let tried = lock::try_lock(place, READER_LOCKS, lock_byte(slot), 0o600);
        if let TryLock::Ours(lock) = tried.map_err(|e| OpenError::from_io(place, 0, e))? {
            return Ok((slot, lock));
        }
    }
    Err(OpenError::TooManyPullers(place.clone()))
}
