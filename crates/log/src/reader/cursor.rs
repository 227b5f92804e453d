//! Start position of a reader, and its published cursor.

use tickpath_clock::relax;

use super::slot::CursorSlot;
use super::{Reader, ReaderStart, Registration, present_segments, tries};
use crate::control::{MANDATORY, MAX_READERS};
use crate::follow::CursorStep;
use crate::guard::ProcessTrust;
use crate::lock::{self, TryLock};
use crate::log_path::READER_LOCKS;
use crate::sync::{Ordering, fence};
use crate::{LogOpenError, LogReadError, OverflowPolicy, files};

impl Reader {
    /// Freezes the published cursor, which gates the writer: from here on it moves only by [`Self::confirm`].
    pub fn freeze_cursor(&mut self) {
        if let Some(slot) = &mut self.slot {
            slot.follows = false;
        }
    }

    /// Confirms all messages before this sequence number as safe elsewhere: they need not be kept for this reader.
    /// Never moves the cursor back, nor beyond the messages read.
    pub fn confirm(&self, sequence: u64) {
        if let Some(slot) = self.slot.as_ref().filter(|slot| !slot.fork_generation.is_forked()) {
            let sequence = sequence.min(self.cursor.sequence);
            if sequence > slot.cursor() {
                slot.move_to(sequence);
            }
        }
    }

    /// Publishes the cursor, if it follows the reads.
    #[inline(always)]
    pub(super) fn publish_cursor(&self) -> Result<(), LogReadError> {
        self.refuse_fork()?;
        if let Some(slot) = self.slot.as_ref().filter(|slot| slot.follows) {
            slot.move_to(self.cursor.sequence);
        }
        Ok(())
    }

    /// Rejects a forked child: moving the shared cursor would recycle messages that the other process still reads.
    #[inline(always)]
    pub(super) fn refuse_fork(&self) -> Result<(), LogReadError> {
        match &self.slot {
            Some(slot) if slot.fork_generation.is_forked() => Err(LogReadError::Forked),
            _ => Ok(()),
        }
    }

    pub(super) fn register(&mut self, registration: Registration) -> Result<(), LogOpenError> {
        match registration {
            Registration::Unregistered => Ok(()),
            Registration::Registered => self.take_any_slot(),
            Registration::Mandatory => self.take_mandatory_slot(),
        }
    }

    fn take_any_slot(&mut self) -> Result<(), LogOpenError> {
        let control = files::open_control(&self.path, self.trust)?;
        for number in usize::from(self.shape.mandatory)..MAX_READERS {
            if let TryLock::Acquired(lock) = self.try_lock(number)? {
                control.activate(number, self.cursor.sequence, std::process::id());
                self.set_slot(CursorSlot::new(number, control, lock));
                return Ok(());
            }
        }
        Err(LogOpenError::TooManyReaders(self.path.clone()))
    }

    fn take_mandatory_slot(&mut self) -> Result<(), LogOpenError> {
        let path = &self.path;
        let control = files::open_control(path, self.trust)?;
        if !self.shape.mandatory || !control.has_mandatory() {
            return Err(LogOpenError::NoMandatory(path.clone()));
        }
        match self.try_lock(MANDATORY)? {
            TryLock::HeldBy(pid) => Err(LogOpenError::HasReader { place: path.clone(), pid }),
            TryLock::Acquired(lock) => {
                control.set_mandatory_present(std::process::id());
                self.set_slot(CursorSlot::new(MANDATORY, control, lock));
                Ok(())
            }
        }
    }

    fn try_lock(&self, slot: usize) -> Result<TryLock, LogOpenError> {
        let tried = lock::try_lock(&self.path, READER_LOCKS, slot as u32, 0o600);
        tried.map_err(|e| LogOpenError::from_io(&self.path, 0, e))
    }

    fn set_slot(&mut self, slot: CursorSlot) {
        self.control = Some(slot.control.clone());
        self.slot = Some(slot);
    }

    /// Moves to the requested start; on a gated log publishes the cursor first, so that the segment is pinned.
    pub(super) fn go_to(&mut self, start: ReaderStart) -> Result<(), LogOpenError> {
        let start = self.resolve(start);
        for _ in 0..tries(self.trust) {
            let io = |e| LogOpenError::from_io(&self.path, 0, e);
            let mut present = present_segments(&self.segments, &self.shape).map_err(io)?;
            let found = match start {
                ReaderStart::Oldest | ReaderStart::Cursor => 0,
                ReaderStart::Now => present.len().saturating_sub(1),
                ReaderStart::Sequence(wanted) => present.partition_point(|f| f.sequence <= wanted).saturating_sub(1),
            };
            if present.is_empty() {
                relax();
                continue;
            }
            self.cursor = present.swap_remove(found);
            self.pin(start);
            if self.cursor.is_lapped() {
                continue;
            }
            self.cursor.lend = self.pins() && self.trust == ProcessTrust::Trusted;
            if self.skip_to(start)? {
                if let Some(slot) = &self.slot {
                    slot.move_to(self.cursor.sequence);
                }
                return Ok(());
            }
        }
        Err(LogOpenError::damaged(&self.path, "no segment stays long enough to enter"))
    }

    /// Replaces [`ReaderStart::Cursor`] by the mandatory reader's cursor; other readers have none from before.
    fn resolve(&self, start: ReaderStart) -> ReaderStart {
        match (&self.slot, start) {
            (Some(slot), ReaderStart::Cursor) if slot.is_mandatory() => ReaderStart::Sequence(slot.cursor()),
            (_, ReaderStart::Cursor) => ReaderStart::Oldest,
            (_, start) => start,
        }
    }

    /// Publishes the cursor so that a gated writer must see it, before the generation is checked again.
    fn pin(&self, start: ReaderStart) {
        let Some(slot) = &self.slot else { return };
        let first = self.cursor.sequence;
        let at = match start {
            ReaderStart::Sequence(wanted) if slot.is_mandatory() => wanted.max(first),
            _ => first,
        };
        // The mandatory reader's cursor has gated the writer all the time: a kill here must not lose messages.
        if !slot.is_mandatory() {
            slot.move_to(at);
        } else if at < slot.cursor() {
            slot.move_to(at);
            slot.control.request_cursor_check();
        }
        fence(Ordering::SeqCst);
    }

    /// Returns true if frames stay until this cursor moves.
    pub(super) fn pins(&self) -> bool {
        match self.shape.policy {
            OverflowPolicy::Keep => true,
            OverflowPolicy::Fail => self.slot.is_some(),
            OverflowPolicy::Overwrite => false,
        }
    }

    /// Steps over messages before the start. Returns false if the reader was lapped meanwhile.
    fn skip_to(&mut self, start: ReaderStart) -> Result<bool, LogOpenError> {
        let wanted = match start {
            ReaderStart::Oldest | ReaderStart::Cursor => return Ok(true),
            ReaderStart::Now => u64::MAX,
            ReaderStart::Sequence(wanted) => wanted,
        };
        self.missed = self.cursor.sequence.saturating_sub(wanted);
        while self.cursor.sequence < wanted {
            match self.cursor.step(&mut self.buffer).map_err(|e| LogOpenError::damaged(&self.path, e))? {
                CursorStep::Frame(_) => {}
                CursorStep::Lapped => return Ok(false),
                // The newest segment ends here only if a writer is just opening the next one.
                CursorStep::Empty | CursorStep::End if start == ReaderStart::Now => return Ok(true),
                CursorStep::Empty | CursorStep::End => {
                    let tail = self.cursor.sequence;
                    return Err(LogOpenError::BeyondTail { place: self.path.clone(), asked: wanted, tail });
                }
            }
        }
        Ok(true)
    }
}
