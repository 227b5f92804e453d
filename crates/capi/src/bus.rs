//! `tp_connect`: a bus with its topics and queues.

use std::ffi::c_char;
use std::mem::zeroed;
use std::ptr::null;

use tickpath_bus::Connection;
use tickpath_clock::HostClock;

use crate::argument::{check_pointer, text};
use crate::handle::{Handle, close, create, handle_of, handle_type};
use crate::status::{CallFailure, tp_status};

/// Connection to a transport, with its topics and queues.
pub struct tp_bus(pub(crate) Handle<ClockedConnection>);

/// A connection, and the clock that stamps the messages published over it.
pub(crate) struct ClockedConnection {
    pub connection: Box<dyn Connection>,
    pub clock: HostClock,
}

handle_type!(tp_bus holds ClockedConnection);

/// Connects to the transport that `url` names: shm://, file:///FOLDER, redis://HOST, nats://HOST, amqp://HOST,
/// kafka://HOST; docs/bus.md lists all URLs. Writes the handle to `out`, or null on an error. A lost server connection
/// would end the process by SIGPIPE: unless the URL is shm:// or file://, and if the process has the default action for
/// that signal (SIG_DFL), this call sets it to SIG_IGN, for the whole process and permanently. A handler of the program
/// itself stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_connect(url: *const c_char, out: *mut *mut tp_bus) -> tp_status {
    let connect = || -> Result<tp_bus, CallFailure> {
        // SAFETY: null or zero-terminated text, as the header requires.
        let url = unsafe { text("url", url)? };
        let clock = HostClock::get().map_err(|e| CallFailure::new(tp_status::TP_OTHER, e.to_string()))?;
        let url = tickpath_bus::resolve_url(url)?;
        if is_served(&url) {
            ignore_broken_pipes();
        }
        Ok(tp_bus(Handle::new(ClockedConnection { connection: tickpath_bus::connect(&url)?, clock })))
    };
    // SAFETY: `out` is null or a valid place for a handle, as the header requires.
    unsafe { create(out, connect) }
}

/// Closes a connection and frees its handle; does nothing for a null pointer. Publishers, subscribers, pushers and
/// pullers that it opened stay open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_bus_close(bus: *mut tp_bus) -> tp_status {
    // SAFETY: null or an open handle that is never used again, as the header requires.
    unsafe { close(bus) }
}

/// Removes everything that a topic has left behind. A topic that does not exist is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_bus_remove(bus: *mut tp_bus, topic: *const c_char) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with_exclusive(unsafe { handle_of(bus) }, |bus| {
        // SAFETY: null or zero-terminated text, as the header requires.
        let topic = unsafe { text("topic", topic)? };
        bus.connection.remove_topic(topic).map_err(CallFailure::from)
    })
}

/// Removes a queue with all its messages. A queue that does not exist is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_bus_remove_queue(bus: *mut tp_bus, queue: *const c_char) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with_exclusive(unsafe { handle_of(bus) }, |bus| {
        // SAFETY: null or zero-terminated text, as the header requires.
        let queue = unsafe { text("queue", queue)? };
        bus.connection.remove_queue(queue).map_err(CallFailure::from)
    })
}

/// Writes to `waiting` the number of messages in a queue that no puller has taken; 0 for a queue that does not exist.
/// Returns TP_UNSUPPORTED if the transport does not report this number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_bus_waiting(bus: *mut tp_bus, queue: *const c_char, waiting: *mut u64) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with_exclusive(unsafe { handle_of(bus) }, |bus| {
        // SAFETY: null or zero-terminated text, as the header requires.
        let queue = unsafe { text("queue", queue)? };
        check_pointer("waiting", waiting)?;
        let Some(count) = bus.connection.count_waiting(queue)? else {
            let sentence = "this transport does not count the messages that wait; ask its server";
            return Err(CallFailure::new(tp_status::TP_UNSUPPORTED, sentence));
        };
        // SAFETY: not null, and a valid place for a number, as the header requires.
        unsafe { waiting.write(count) };
        Ok(())
    })
}

/// Reports whether the URL names a server.
fn is_served(url: &str) -> bool {
    let is_local = ["shm://", "file://"].iter().any(|scheme| url.starts_with(scheme));
    !is_local && tickpath_bus::transport_of(url).is_some()
}

/// Ignores SIGPIPE unless the program handles it, as the start of every Rust program does: transports rely on a lost
/// connection being an error, and not the end of the process.
pub(crate) fn ignore_broken_pipes() {
    // SAFETY: zeros are a valid `sigaction`: numbers, and no function.
    let mut now: libc::sigaction = unsafe { zeroed() };
    // SAFETY: the call changes nothing, and writes to a valid place.
    let status = unsafe { libc::sigaction(libc::SIGPIPE, null(), &raw mut now) };
    if status == 0 && now.sa_sigaction == libc::SIG_DFL {
        // SAFETY: `SIG_IGN` installs no function.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    }
}
