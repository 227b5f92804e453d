//! Start position of a reader, and its published cursor.

use tickpath_clock::relax;

use super::slot::Slot;
use super::{Reader, Registration, Start, held, tries};
use crate::control::{MANDATORY, MAX_READERS};
use crate::follow::Step;
use crate::guard::Others;
use crate::lock::{self, TryLock};
use crate::place::READER_LOCKS;
use crate::sync::{Ordering, fence};
use crate::{OpenError, Policy, ReadError, files};

impl Reader {
    /// Freezes the published cursor, which gates the writer: from here on it moves only by [`Self::confirm`].
    pub fn hold_cursor(&mut self) {
        if let Some(slot) = &mut self.slot {
            slot.follows = false;
        }
    }

    /// Confirms all messages before this sequence number as safe elsewhere: they need not be kept for this reader.
    /// Never moves the cursor back, nor beyond the messages read.
    pub fn confirm(&self, sequence: u64) {
        if let Some(slot) = self.slot.as_ref().filter(|slot| !slot.born.is_elsewhere()) {
            let sequence = sequence.min(self.follower.sequence());
            if sequence > slot.cursor() {
                slot.move_to(sequence);
            }
        }
    }

    /// Publishes the cursor, if it follows the reads.
    #[inline(always)]
    pub(super) fn publish_cursor(&self) -> Result<(), ReadError> {
        self.refuse_fork()?;
        if let Some(slot) = self.slot.as_ref().filter(|slot| slot.follows) {
            slot.move_to(self.follower.sequence());
        }
        Ok(())
    }

    /// Rejects a forked child: moving the shared cursor would let messages be recycled that the other process still reads.
    #[inline(always)]
    pub(super) fn refuse_fork(&self) -> Result<(), ReadError> {
        match &self.slot {
            Some(slot) if slot.born.is_elsewhere() => Err(ReadError::Forked),
            _ => Ok(()),
        }
    }

    pub(super) fn register(&mut self, registration: Registration) -> Result<(), OpenError> {
        match registration {
            Registration::Unregistered => Ok(()),
            Registration::Registered => self.take_any_slot(),
            Registration::Mandatory => self.take_mandatory_slot(),
        }
    }

    fn take_any_slot(&mut self) -> Result<(), OpenError> {
        let control = files::open_control(&self.place, self.others)?;
        for number in usize::from(self.shape.mandatory)..MAX_READERS {
            if let TryLock::Ours(lock) = self.try_lock(number)? {
                control.activate(number, self.follower.sequence(), std::process::id());
                self.take(Slot::new(number, control, lock));
                return Ok(());
            }
        }
        Err(OpenError::TooManyReaders(self.place.clone()))
    }

    fn take_mandatory_slot(&mut self) -> Result<(), OpenError> {
        let place = &self.place;
        let control = files::open_control(place, self.others)?;
        if !self.shape.mandatory || !control.names_mandatory() {
            return Err(OpenError::NoMandatory(place.clone()));
        }
        match self.try_lock(MANDATORY)? {
            TryLock::Taken(pid) => Err(OpenError::HasReader { place: place.clone(), pid }),
            TryLock::Ours(lock) => {
                control.welcome_mandatory(std::process::id());
                self.take(Slot::new(MANDATORY, control, lock));
                Ok(())
            }
        }
    }

    fn try_lock(&self, slot: usize) -> Result<TryLock, OpenError> {
        let tried = lock::try_lock(&self.place, READER_LOCKS, slot as u32, 0o600);
        tried.map_err(|e| OpenError::from_io(&self.place, 0, e))
    }

    fn take(&mut self, slot: Slot) {
        self.control = Some(slot.control.clone());
        self.slot = Some(slot);
    }

    /// Moves to the requested start; on a gated log publishes the cursor first, so that the segment is pinned.
    pub(super) fn go_to(&mut self, start: Start) -> Result<(), OpenError> {
        let start = self.resolve(start);
        for _ in 0..tries(self.others) {
            let io = |e| OpenError::from_io(&self.place, 0, e);
            let mut there = held(&self.segments, &self.shape).map_err(io)?;
            let found = match start {
                Start::Oldest | Start::Cursor => 0,
                Start::Now => there.len().saturating_sub(1),
                Start::Sequence(wanted) => there.partition_point(|f| f.sequence() <= wanted).saturating_sub(1),
            };
            if there.is_empty() {
                relax();
                continue;
            }
            self.follower = there.swap_remove(found);
            self.pin(start);
            if self.follower.is_lapped() {
                continue;
            }
            self.follower.set_lending(self.pins() && self.others == Others::Trusted);
            if self.skip_to(start)? {
                if let Some(slot) = &self.slot {
                    slot.move_to(self.follower.sequence());
                }
                return Ok(());
            }
        }
        Err(OpenError::Damaged { place: self.place.clone(), what: "no segment stays long enough to enter".to_owned() })
    }

    /// Replaces [`Start::Cursor`] by the mandatory reader's cursor; other readers have none from before.
    fn resolve(&self, start: Start) -> Start {
        match (&self.slot, start) {
            (Some(slot), Start::Cursor) if slot.is_mandatory() => Start::Sequence(slot.cursor()),
            (_, Start::Cursor) => Start::Oldest,
            (_, start) => start,
        }
    }

    /// Publishes the cursor so that a gated writer must see it, before the generation is checked again.
    fn pin(&self, start: Start) {
        let Some(slot) = &self.slot else { return };
        let first = self.follower.sequence();
        let at = match start {
            Start::Sequence(wanted) if slot.is_mandatory() => wanted.max(first),
            _ => first,
        };
        // The mandatory reader's cursor has gated the writer all the time: a kill here must not lose messages.
        if !slot.is_mandatory() {
            slot.move_to(at);
        } else if at < slot.cursor() {
            slot.move_to(at);
            slot.control.ask_for_a_look();
        }
        fence(Ordering::SeqCst);
    }

    /// Returns true if frames stay until this cursor moves.
    pub(super) fn pins(&self) -> bool {
        match self.shape.policy {
            Policy::Keep => true,
            Policy::Fail => self.slot.is_some(),
            Policy::Overwrite => false,
        }
    }

    /// Steps over messages before the start. Returns false if the reader was lapped meanwhile.
    fn skip_to(&mut self, start: Start) -> Result<bool, OpenError> {
        let wanted = match start {
            Start::Oldest | Start::Cursor => return Ok(true),
            Start::Now => u64::MAX,
            Start::Sequence(wanted) => wanted,
        };
        self.missed = self.follower.sequence().saturating_sub(wanted);
        while self.follower.sequence() < wanted {
            let damaged = |e: ReadError| OpenError::Damaged { place: self.place.clone(), what: e.to_string() };
            match self.follower.step(&mut self.buffer).map_err(damaged)? {
                Step::Frame(_) => {}
                Step::Lapped => return Ok(false),
                // The newest segment ends here only if a writer is just opening the next one.
                Step::Empty | Step::End if start == Start::Now => return Ok(true),
                Step::Empty | Step::End => {
                    let tail = self.follower.sequence();
                    return Err(OpenError::Future { place: self.place.clone(), asked: wanted, tail });
                }
            }
        }
        Ok(true)
    }
}
