//! Conversion of C's arguments to Rust.
//!
//! These functions trust C that each pointer is valid and its target unchanged during a call. They check the rest: null
//! pointers, text that is not UTF-8, and lengths beyond any memory.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::slice;

use tickpath_bus::wire::FIRST_KIND;
use tickpath_bus::{BatchError, Fate};

use crate::status::{CallFailure, tp_status};

/// Max bytes of any object in memory.
const MAX_BYTES: usize = isize::MAX as usize;

/// Max messages that a batch can list.
const MAX_MESSAGES: usize = MAX_BYTES / size_of::<tp_slice>();

/// Fate of one message of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_fate {
    /// The message is not published, and will not be.
    TP_FATE_NOT_PUBLISHED = 0,
    /// The message is published.
    TP_FATE_PUBLISHED = 1,
    /// In doubt: the message may be published now or later. A resend function resolves it.
    TP_FATE_UNKNOWN = 2,
}

/// Bytes of one message of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_slice {
    /// Address of the bytes; may be null if `len` is 0.
    pub data: *const c_void,
    /// Number of bytes.
    pub len: usize,
}

/// Reads text.
///
/// # Safety
/// `given` is null, or zero-terminated and unchanged for `'a`.
pub unsafe fn text<'a>(what: &str, given: *const c_char) -> Result<&'a str, CallFailure> {
    if given.is_null() {
        return Err(CallFailure::null(what));
    }
    // SAFETY: `given` is not null, and zero-terminated, as the caller guarantees.
    let bytes = unsafe { CStr::from_ptr(given) };
    bytes.to_str().map_err(|_| CallFailure::invalid(format!("{what} is no UTF-8; encode it as UTF-8")))
}

/// Reads the bytes of a message.
///
/// # Safety
/// `data` is null, or valid for `len` bytes that are unchanged for `'a`.
#[inline(always)]
pub unsafe fn bytes<'a>(data: *const c_void, len: usize) -> Result<&'a [u8], CallFailure> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || len > MAX_BYTES {
        return Err(no_bytes(data.is_null(), len));
    }
    // SAFETY: `len` bytes are valid, as the caller guarantees, and within the size limit of memory.
    Ok(unsafe { slice::from_raw_parts(data.cast(), len) })
}

#[cold]
#[inline(never)]
fn no_bytes(is_null: bool, len: usize) -> CallFailure {
    match is_null {
        true => CallFailure::invalid(format!("data is null, and len is {len}; hand over a pointer, or a len of 0")),
        false => CallFailure::new(tp_status::TP_TOO_LARGE, format!("no message has {len} bytes; was len below 0?")),
    }
}

/// Rejects the kinds reserved for the bus.
#[inline(always)]
pub fn check_kind(kind: u8) -> Result<(), CallFailure> {
    if kind >= FIRST_KIND { Ok(()) } else { Err(no_kind(kind)) }
}

#[cold]
#[inline(never)]
fn no_kind(kind: u8) -> CallFailure {
    CallFailure::invalid(format!("the kind {kind} is reserved; use {FIRST_KIND} to 255"))
}

#[inline(always)]
pub fn check_pointer<T>(what: &str, given: *const T) -> Result<(), CallFailure> {
    if given.is_null() { Err(CallFailure::null(what)) } else { Ok(()) }
}

/// Writes a number, a count or an id to the place that C gave, if any.
///
/// # Safety
/// `place` is null, or valid for such a number and not used by others during the call.
#[inline(always)]
pub unsafe fn put<N>(place: *mut N, number: N) {
    if !place.is_null() {
        // SAFETY: `place` is valid for a number, as the caller guarantees.
        unsafe { place.write(number) };
    }
}

/// Output parameters of a batch: the number of messages done, and the fate of each.
pub struct BatchOutcome {
    count: usize,
    done: *mut usize,
    fates: *mut u8,
}

impl BatchOutcome {
    /// Begins with no message published, which is the result if the call fails before sending.
    ///
    /// # Safety
    /// `done` is null or valid for a number; `fates` is null or valid for `count` bytes. Neither is used by others
    /// while this value lives.
    pub unsafe fn unpublished(count: usize, done: *mut usize, fates: *mut u8) -> Self {
        // No batch can have more messages, and the call is refused.
        let fates = if count > MAX_MESSAGES { null_mut() } else { fates };
        let outcome = Self { count, done, fates };
        outcome.put(0, |_| Fate::NotPublished);
        outcome
    }

    /// Runs `act` on the batch and writes the outcome; after a panic every message is in doubt.
    pub fn run(&self, act: impl FnOnce() -> Result<(), BatchError>) -> Result<(), BatchError> {
        self.put(0, |_| Fate::Unknown);
        let ended = act();
        match &ended {
            Ok(()) => self.put(self.count, |_| Fate::Published),
            Err(error) => self.put(error.done, |number| error.fate(number)),
        }
        ended
    }

    fn put(&self, done: usize, fate_of: impl Fn(usize) -> Fate) {
        // SAFETY: `done` is null or a valid place for a number, as guaranteed at construction.
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
            // SAFETY: within the `count` valid bytes, as guaranteed at construction.
            unsafe { self.fates.add(number).write(fate as u8) };
        }
    }
}

/// The list of a batch's messages, whose memory is reused by the next batch.
#[derive(Default)]
pub struct SliceList {
    /// Empty except during a batch.
    messages: Vec<&'static [u8]>,
}

impl SliceList {
    /// Runs `act` on a batch.
    ///
    /// # Safety
    /// `slices` is null, or valid for `count` slices with valid bytes; all are unchanged during the call.
    pub unsafe fn with<R>(
        &mut self,
        slices: *const tp_slice,
        count: usize,
        act: impl FnOnce(&[&[u8]]) -> R,
    ) -> Result<R, CallFailure> {
        if count > 0 && (slices.is_null() || count > MAX_MESSAGES) {
            let sentence = format!(
                "the pointer to {count} slices is null, or the count too high; pass their address, or a count of 0"
            );
            return Err(CallFailure::invalid(sentence));
        }
        let mut listed = Ok(());
        for index in 0..count {
            // SAFETY: within the `count` valid slices.
            let tp_slice { data, len } = unsafe { slices.add(index).read() };
            // SAFETY: the slice's bytes are valid. They may be freed before the list, whose type is `'static`: the
            // list is emptied before this returns, and never read after a panic.
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
