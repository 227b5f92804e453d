//! What C holds of something that is opened: it has one user at a time, and is of no use behind a fork.
//!
//! On the way to the bus a handle costs two loads and two stores of lines that are its own. It is no lock: that one thread
//! at a time uses it is the header's condition. What it does see for sure is a callback that uses the handle it was called
//! by, which would be a second user on the same thread; and of a bus, where no call is in a hurry, a second thread.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, Ordering};

use tickpath_log::Birthplace;

use crate::status::{Failure, tp_status};

/// Nobody uses it.
const FREE: u8 = 0;
/// A call is under way.
const IN_USE: u8 = 1;
/// A panic has left it as nobody knows.
const BROKEN: u8 = 2;

/// What a handle can hold.
pub trait Opened: Send {
    /// What C calls it, for sentences.
    fn what() -> &'static str;
}

/// Something that is opened.
pub struct Handle<T> {
    born: Birthplace,
    state: AtomicU8,
    opened: UnsafeCell<T>,
}

impl<T: Opened> Handle<T> {
    /// Of what was opened just now.
    pub fn new(opened: T) -> Self {
        Self { born: Birthplace::here(), state: AtomicU8::new(FREE), opened: UnsafeCell::new(opened) }
    }

    /// Uses what it holds; none is a null pointer.
    #[inline(always)]
    pub fn using(handle: Option<&Self>, act: impl FnOnce(&mut T) -> Result<(), Failure>) -> tp_status {
        let Some(handle) = handle else { return Failure::null(T::what()).tell() };
        if handle.born.is_elsewhere() || handle.state.load(Ordering::Relaxed) != FREE {
            return handle.refuse();
        }
        handle.state.store(IN_USE, Ordering::Relaxed);
        // SAFETY: its state was free, so nobody uses it: not this thread, whose stores it sees, and no other, because a
        // handle is not `Sync`; that condition the header hands on to C.
        unsafe { handle.run(act) }
    }

    /// The same where two threads at once are seen for certain, at the price of an exchange.
    pub fn taking(handle: Option<&Self>, act: impl FnOnce(&mut T) -> Result<(), Failure>) -> tp_status {
        let Some(handle) = handle else { return Failure::null(T::what()).tell() };
        let take = || handle.state.compare_exchange(FREE, IN_USE, Ordering::Acquire, Ordering::Relaxed);
        if handle.born.is_elsewhere() || take().is_err() {
            return handle.refuse();
        }
        // SAFETY: its state was free, and whoever else takes it finds that it is not any more.
        unsafe { handle.run(act) }
    }

    /// Uses what it holds, and says that nobody does any more.
    ///
    /// # Safety
    /// The caller has found its state free, and made it in use.
    #[inline(always)]
    unsafe fn run(&self, act: impl FnOnce(&mut T) -> Result<(), Failure>) -> tp_status {
        // SAFETY: nobody else uses it, as the caller promises.
        let opened = unsafe { &mut *self.opened.get() };
        let ended = catch_unwind(AssertUnwindSafe(|| status_of(act(opened))));
        self.state.store(if ended.is_ok() { FREE } else { BROKEN }, Ordering::Release);
        ended.unwrap_or_else(|panic| panicked(&*panic))
    }

    /// Why it is of no use.
    #[cold]
    #[inline(never)]
    fn refuse(&self) -> tp_status {
        let what = T::what();
        let failure = if self.born.is_elsewhere() {
            let sentence = format!("this {what} was opened before the process was forked; open another one here");
            Failure::new(tp_status::TP_FORKED, sentence)
        } else if self.state.load(Ordering::Relaxed) == BROKEN {
            Failure::new(tp_status::TP_PANIC, format!("a mistake has broken this {what}; close it, open another one"))
        } else {
            let sentence = format!("this {what} is in use, by the call that runs this callback or by another thread");
            let remedy = "give each thread its own handle, and go on with this one when that call has returned";
            Failure::new(tp_status::TP_IN_USE, format!("{sentence}; {remedy}"))
        };
        failure.tell()
    }
}

/// Makes a handle, and puts it where C says: a null pointer first, which stays if nothing comes of it.
///
/// # Safety
/// `out` is null, or a place for a pointer that is nobody else's during the call.
pub unsafe fn make<H>(out: *mut *mut H, made: impl FnOnce() -> Result<H, Failure>) -> tp_status {
    if out.is_null() {
        return Failure::null("out").tell();
    }
    // SAFETY: it is a place for a pointer, as the caller promises.
    unsafe { out.write(null_mut()) };
    guarded(|| {
        let handle = Box::new(made()?);
        // SAFETY: as above.
        unsafe { out.write(Box::into_raw(handle)) };
        Ok(())
    })
}

/// The same with what another handle holds.
///
/// # Safety
/// As of [`make`].
pub unsafe fn open<T: Opened, H>(
    from: Option<&Handle<T>>,
    out: *mut *mut H,
    made: impl FnOnce(&mut T) -> Result<H, Failure>,
) -> tp_status {
    if out.is_null() {
        return Failure::null("out").tell();
    }
    // SAFETY: it is a place for a pointer, as the caller promises.
    unsafe { out.write(null_mut()) };
    Handle::taking(from, |opened| {
        let handle = Box::new(made(opened)?);
        // SAFETY: as above.
        unsafe { out.write(Box::into_raw(handle)) };
        Ok(())
    })
}

/// Closes a handle and frees it. In a fork it stays: its threads and its locks stayed with the parent.
///
/// # Safety
/// `handle` is null, or was made by [`make`] or [`open`] and is not closed; nobody uses it again.
pub unsafe fn close<T: Opened, H>(handle: *mut H, inner: fn(&H) -> &Handle<T>) -> tp_status {
    // SAFETY: it is null, or a handle that is not closed.
    let Some(closing) = (unsafe { handle.as_ref() }).map(inner) else { return tp_status::TP_OK };
    if closing.born.is_elsewhere() {
        let what = T::what();
        let sentence = format!("this {what} was opened before the process was forked; it is the parent's: leave it");
        return Failure::new(tp_status::TP_FORKED, sentence).tell();
    }
    // What is broken is closed too. What is in use stays so.
    if closing.state.swap(IN_USE, Ordering::Acquire) == IN_USE {
        return closing.refuse();
    }
    guarded(|| {
        // SAFETY: it came from a box, is closed once, and nobody uses it: its state says so, and who calls.
        drop(unsafe { Box::from_raw(handle) });
        Ok(())
    })
}

/// Does what may panic, so that no panic goes on into C.
pub fn guarded(act: impl FnOnce() -> Result<(), Failure>) -> tp_status {
    catch_unwind(AssertUnwindSafe(|| status_of(act()))).unwrap_or_else(|panic| panicked(&*panic))
}

#[inline(always)]
fn status_of(done: Result<(), Failure>) -> tp_status {
    done.map_or_else(Failure::tell, |()| tp_status::TP_OK)
}

#[cold]
#[inline(never)]
fn panicked(panic: &(dyn Any + Send)) -> tp_status {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why");
    let sentence = format!("the library has made a mistake and stopped this call: {said}; please report it");
    Failure::new(tp_status::TP_PANIC, sentence).tell()
}
