//! Handles of opened objects, as C holds them: a handle has one user at a time, and cannot be used after a fork.
//!
//! Per call, a handle costs two loads and two stores on cache lines of its own. A handle is no lock: the header
//! requires that one thread at a time uses it. Two misuses are always detected: a callback that uses its own handle,
//! and a second thread on a bus, whose calls are not time-critical.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, Ordering};

use tickpath_log::ForkGeneration;

use crate::status::{CallFailure, tp_status};

const FREE: u8 = 0;
const IN_USE: u8 = 1;
/// A panic has left the object in an unknown state.
const BROKEN: u8 = 2;

/// An object that a handle can hold.
pub trait HandleObject: Send {
    /// The type's name in C, for error messages.
    fn c_name() -> &'static str;
}

/// A handle type of the header.
pub(crate) trait CHandle {
    type Object: HandleObject;

    fn handle(&self) -> &Handle<Self::Object>;
}

/// Connects a handle type of the header with the object that it holds.
macro_rules! handle_type {
    ($name:ident holds $object:ty) => {
        impl crate::handle::HandleObject for $object {
            fn c_name() -> &'static str {
                stringify!($name)
            }
        }

        impl crate::handle::CHandle for $name {
            type Object = $object;

            fn handle(&self) -> &Handle<$object> {
                &self.0
            }
        }
    };
}

pub(crate) use handle_type;

pub struct Handle<T> {
    birthplace: ForkGeneration,
    state: AtomicU8,
    opened: UnsafeCell<T>,
}

impl<T: HandleObject> Handle<T> {
    /// Creates the handle of an object that was just opened.
    pub fn new(opened: T) -> Self {
        Self { birthplace: ForkGeneration::current(), state: AtomicU8::new(FREE), opened: UnsafeCell::new(opened) }
    }

    /// Runs `act` on the object; fails for a null pointer.
    #[inline(always)]
    pub fn with(handle: Option<&Self>, act: impl FnOnce(&mut T) -> Result<(), CallFailure>) -> tp_status {
        let Some(handle) = handle else { return CallFailure::null(T::c_name()).store() };
        if handle.birthplace.is_forked() || handle.state.load(Ordering::Relaxed) != FREE {
            return handle.refuse();
        }
        handle.state.store(IN_USE, Ordering::Relaxed);
        // SAFETY: the state was free, so there is no other user: not this thread, whose stores it sees, and no other
        // thread, since a handle is not `Sync`, which the header requires of C as well.
        unsafe { handle.run(act) }
    }

    /// Runs `act` on the object; detects a second thread with certainty, at the cost of an atomic exchange.
    pub fn with_exclusive(handle: Option<&Self>, act: impl FnOnce(&mut T) -> Result<(), CallFailure>) -> tp_status {
        let Some(handle) = handle else { return CallFailure::null(T::c_name()).store() };
        let take = || handle.state.compare_exchange(FREE, IN_USE, Ordering::Acquire, Ordering::Relaxed);
        if handle.birthplace.is_forked() || take().is_err() {
            return handle.refuse();
        }
        // SAFETY: the exchange found the state free, so that any other caller finds it in use.
        unsafe { handle.run(act) }
    }

    /// Runs `act` and marks the object free again.
    ///
    /// # Safety
    /// The caller has found the state free, and set it to in use.
    #[inline(always)]
    unsafe fn run(&self, act: impl FnOnce(&mut T) -> Result<(), CallFailure>) -> tp_status {
        // SAFETY: the caller has exclusive use.
        let opened = unsafe { &mut *self.opened.get() };
        let ended = catch_unwind(AssertUnwindSafe(|| status_of(act(opened))));
        self.state.store(if ended.is_ok() { FREE } else { BROKEN }, Ordering::Release);
        ended.unwrap_or_else(|panic| panic_status(&*panic))
    }

    /// Returns the reason why the handle cannot be used.
    #[cold]
    #[inline(never)]
    fn refuse(&self) -> tp_status {
        let what = T::c_name();
        let failure = if self.birthplace.is_forked() {
            let sentence = format!("this {what} was opened before the process was forked; open another one here");
            CallFailure::new(tp_status::TP_FORKED, sentence)
        } else if self.state.load(Ordering::Relaxed) == BROKEN {
            CallFailure::new(
                tp_status::TP_PANIC,
                format!("a mistake has broken this {what}; close it, open another one"),
            )
        } else {
            let sentence = format!("this {what} is in use, by the call that runs this callback or by another thread");
            let remedy = "give each thread its own handle, and use this one again when that call has returned";
            CallFailure::new(tp_status::TP_IN_USE, format!("{sentence}; {remedy}"))
        };
        failure.store()
    }
}

/// Returns the handle that C passes; `None` for a null pointer.
///
/// # Safety
/// `given` is null, or open for `'a`.
#[inline(always)]
pub(crate) unsafe fn handle_of<'a, H: CHandle + 'a>(given: *mut H) -> Option<&'a Handle<H::Object>> {
    // SAFETY: null or an open handle, as the caller guarantees.
    let given = unsafe { given.as_ref() };
    given.map(H::handle)
}

/// Creates a handle and writes it to `out`, which is null on an error.
///
/// # Safety
/// `out` is null, or valid for a pointer and not used by others during the call.
pub unsafe fn create<H>(out: *mut *mut H, made: impl FnOnce() -> Result<H, CallFailure>) -> tp_status {
    if out.is_null() {
        return CallFailure::null("out").store();
    }
    // SAFETY: `out` is a valid place for a pointer, as the caller guarantees.
    unsafe { out.write(null_mut()) };
    catch_panics(|| {
        let handle = Box::new(made()?);
        // SAFETY: as above.
        unsafe { out.write(Box::into_raw(handle)) };
        Ok(())
    })
}

/// Creates a handle from the object of another handle, and writes it to `out`, which is null on an error.
///
/// # Safety
/// As for [`create`]; `from` is null or an open handle.
pub(crate) unsafe fn open<P: CHandle, H>(
    from: *mut P,
    out: *mut *mut H,
    made: impl FnOnce(&mut P::Object) -> Result<H, CallFailure>,
) -> tp_status {
    if out.is_null() {
        return CallFailure::null("out").store();
    }
    // SAFETY: `out` is a valid place for a pointer, as the caller guarantees.
    unsafe { out.write(null_mut()) };
    // SAFETY: null or an open handle, as the caller guarantees.
    Handle::with_exclusive(unsafe { handle_of(from) }, |opened| {
        let handle = Box::new(made(opened)?);
        // SAFETY: as above.
        unsafe { out.write(Box::into_raw(handle)) };
        Ok(())
    })
}

/// Closes and frees a handle. In a fork the handle stays, since its threads and locks stayed with the parent.
///
/// # Safety
/// `handle` is null, or was made by [`create`] or [`open`] and is not closed; it is never used again.
pub(crate) unsafe fn close<H: CHandle>(handle: *mut H) -> tp_status {
    // SAFETY: null or an open handle.
    let Some(closing) = (unsafe { handle_of(handle) }) else { return tp_status::TP_OK };
    if closing.birthplace.is_forked() {
        let what = H::Object::c_name();
        let sentence = format!("this {what} was opened before the process was forked; it is the parent's: leave it");
        return CallFailure::new(tp_status::TP_FORKED, sentence).store();
    }
    // A broken handle is closed too; a handle in use is not.
    if closing.state.swap(IN_USE, Ordering::Acquire) == IN_USE {
        return closing.refuse();
    }
    catch_panics(|| {
        // SAFETY: `handle` came from a box, and is closed once and never used again: the state was not in use, and the
        // caller guarantees the rest.
        drop(unsafe { Box::from_raw(handle) });
        Ok(())
    })
}

/// Runs `act` and catches panics, so that none unwinds into C.
pub fn catch_panics(act: impl FnOnce() -> Result<(), CallFailure>) -> tp_status {
    catch_unwind(AssertUnwindSafe(|| status_of(act()))).unwrap_or_else(|panic| panic_status(&*panic))
}

#[inline(always)]
fn status_of(done: Result<(), CallFailure>) -> tp_status {
    done.map_or_else(CallFailure::store, |()| tp_status::TP_OK)
}

#[cold]
#[inline(never)]
fn panic_status(panic: &(dyn Any + Send)) -> tp_status {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason is known");
    let sentence = format!("the library has made a mistake and stopped this call: {text}; please report it");
    CallFailure::new(tp_status::TP_PANIC, sentence).store()
}
