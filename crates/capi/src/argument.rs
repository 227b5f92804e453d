//! What C hands over, as Rust's.
//!
//! All these take C's word that what a pointer points to is there and stays as it is while a call lasts. What can be looked
//! at is: null, text that is none, lengths that no memory has.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::slice;

use tickpath_bus::wire::FIRST_KIND;
use tickpath_bus::{BatchError, Fate};

use crate::status::{Failure, tp_status};

/// The most bytes that anything in memory has.
const MOST_BYTES: usize = isize::MAX as usize;

/// The most messages that a batch can list.
const MOST_MESSAGES: usize = MOST_BYTES / size_of::<tp_slice>();

/// What became of one message of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_fate {
    /// It is not published, and will not be.
    TP_FATE_NOT_PUBLISHED = 0,
    /// It is published.
    TP_FATE_PUBLISHED = 1,
    /// Nobody knows: it may be published, or be so later. Resend finds out.
    TP_FATE_UNKNOWN = 2,
}

/// Some bytes: one message of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_slice {
    /// Where they are; may be null if there are none.
    pub data: *const c_void,
    /// How many.
    pub len: usize,
}

/// Text.
///
/// # Safety
/// `given` is null, or ends with a zero, and stays as it is for `'a`.
pub unsafe fn text<'a>(what: &str, given: *const c_char) -> Result<&'a str, Failure> {
    if given.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: it is not null, and ends with a zero, as the caller promises.
    let bytes = unsafe { CStr::from_ptr(given) };
    bytes.to_str().map_err(|_| Failure::invalid(format!("{what} is no UTF-8; write it so")))
}

/// Bytes of a message.
///
/// # Safety
/// `data` is null, or has `len` bytes, which stay as they are for `'a`.
#[inline(always)]
pub unsafe fn bytes<'a>(data: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || len > MOST_BYTES {
        return Err(no_bytes(data.is_null(), len));
    }
    // SAFETY: so many bytes are there, as the caller promises, and no more than memory can have.
    Ok(unsafe { slice::from_raw_parts(data.cast(), len) })
}

#[cold]
#[inline(never)]
fn no_bytes(is_null: bool, len: usize) -> Failure {
    match is_null {
        true => Failure::invalid(format!("data is null, and len is {len}; hand over a pointer, or a len of 0")),
        false => Failure::new(tp_status::TP_TOO_LARGE, format!("no message has {len} bytes; was len below 0?")),
    }
}

/// Refuses the kinds that are the bus's own.
#[inline(always)]
pub fn check_kind(kind: u8) -> Result<(), Failure> {
    if kind >= FIRST_KIND { Ok(()) } else { Err(no_kind(kind)) }
}

#[cold]
#[inline(never)]
fn no_kind(kind: u8) -> Failure {
    Failure::invalid(format!("the kind {kind} is not ours to give; use {FIRST_KIND} to 255"))
}

/// Refuses a null pointer.
#[inline(always)]
pub fn check_pointer<T>(what: &str, given: *const T) -> Result<(), Failure> {
    if given.is_null() { Err(Failure::null(what)) } else { Ok(()) }
}

/// Says a number, a count or an id, where C has a place for it.
///
/// # Safety
/// `place` is null, or a place for such a number that is nobody else's during the call.
#[inline(always)]
pub unsafe fn put<N>(place: *mut N, number: N) {
    if !place.is_null() {
        // SAFETY: it is a place for a number, as the caller promises.
        unsafe { place.write(number) };
    }
}

/// Where C is told what became of a batch.
pub struct Told {
    count: usize,
    done: *mut usize,
    fates: *mut u8,
}

impl Told {
    /// Of so many messages, of which none is published yet: that is what is told if the call goes no further.
    ///
    /// # Safety
    /// `done` is null, or a place for a number; `fates` is null, or `count` bytes; both are nobody else's as long as this is
    /// there.
    pub unsafe fn nothing(count: usize, done: *mut usize, fates: *mut u8) -> Self {
        // No batch has more, and such a call is refused.
        let fates = if count > MOST_MESSAGES { null_mut() } else { fates };
        let told = Self { count, done, fates };
        told.put(0, |_| Fate::NotPublished);
        told
    }

    /// Does something with the batch, and tells what became of it; behind a panic nobody knows.
    pub fn outcome(&self, act: impl FnOnce() -> Result<(), BatchError>) -> Result<(), BatchError> {
        self.put(0, |_| Fate::Unknown);
        let ended = act();
        match &ended {
            Ok(()) => self.put(self.count, |_| Fate::Published),
            Err(error) => self.put(error.done, |number| error.fate(number)),
        }
        ended
    }

    fn put(&self, done: usize, fate_of: impl Fn(usize) -> Fate) {
        // SAFETY: it is null or a place for a number, as who made this promised.
        unsafe { put(self.done, done) };
        if self.fates.is_null() {
            return;
        }
        for number in 0..self.count {
            let fate = match fate_of(number) {
                Fate::NotPublished => tp_fate::TP_FATE_NOT_PUBLISHED,
                Fate::Published => tp_fate::TP_FATE_PUBLISHED,
                Fate::Unknown => tp_fate::TP_FATE_UNKNOWN,
            };
            // SAFETY: it is one of the `count` bytes that are there, as who made this promised.
            unsafe { self.fates.add(number).write(fate as u8) };
        }
    }
}

/// The list of a batch's messages, whose memory is that of the batch before.
#[derive(Default)]
pub struct Batch {
    /// Empty but while a batch is under way.
    messages: Vec<&'static [u8]>,
}

impl Batch {
    /// Does something with a batch.
    ///
    /// # Safety
    /// `slices` is null, or has `count` slices, each of whose bytes are there; all stay as they are during the call.
    pub unsafe fn with<R>(
        &mut self,
        slices: *const tp_slice,
        count: usize,
        act: impl FnOnce(&[&[u8]]) -> R,
    ) -> Result<R, Failure> {
        if count > 0 && (slices.is_null() || count > MOST_MESSAGES) {
            let sentence = format!("no {count} slices are there; hand over where they are, or a count of 0");
            return Err(Failure::invalid(sentence));
        }
        let mut listed = Ok(());
        for at in 0..count {
            // SAFETY: it is one of the `count` that are there.
            let tp_slice { data, len } = unsafe { slices.add(at).read() };
            // SAFETY: its bytes are there. They need not live as long as the list's type says: it is emptied before this
            // returns, and nobody looks at it behind a panic.
            match unsafe { bytes(data, len) } {
                Ok(message) => self.messages.push(message),
                Err(failure) => {
                    listed = Err(failure);
                    break;
                }
            }
        }
        let done = listed.map(|()| act(&self.messages));
        self.messages.clear();
        done
    }
}
