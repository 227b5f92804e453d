//! `tp_connect`: where topics and queues are.

use std::ffi::c_char;
use std::mem::zeroed;
use std::ptr::null;

use tickpath_bus::Connection;
use tickpath_clock::HostClock;

use crate::argument::{check_pointer, text};
use crate::handle::{Handle, Opened, close, make};
use crate::status::{Failure, tp_status};

/// Where topics and queues live.
pub struct tp_bus(pub(crate) Handle<Bus>);

/// A connection, and the clock that stamps what is published over it.
pub(crate) struct Bus {
    pub connection: Box<dyn Connection>,
    pub clock: HostClock,
}

impl Opened for Bus {
    fn what() -> &'static str {
        "tp_bus"
    }
}

/// Connects to where topics and queues live: shm://, file:///FOLDER, redis://HOST, nats://HOST, amqp://HOST, kafka://HOST;
/// docs/bus.md has them all. The handle goes to `out`, which is null if there is none. A server that goes away would end the
/// process by SIGPIPE: where the URL is neither shm:// nor file:// and the process does as usual with that signal (SIG_DFL),
/// this sets it to SIG_IGN, for the whole process and for good. A handler of the program's own stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_connect(url: *const c_char, out: *mut *mut tp_bus) -> tp_status {
    let connect = || -> Result<tp_bus, Failure> {
        // SAFETY: it is null or text, as the header says.
        let url = unsafe { text("url", url)? };
        let clock = HostClock::get().map_err(|e| Failure::new(tp_status::TP_OTHER, e.to_string()))?;
        let url = tickpath_bus::resolve(url)?;
        if is_served(&url) {
            ignore_broken_pipes();
        }
        Ok(tp_bus(Handle::new(Bus { connection: tickpath_bus::connect(&url)?, clock })))
    };
    // SAFETY: it is null or a place for a handle, as the header says.
    unsafe { make(out, connect) }
}

/// Closes a connection and frees it; a null pointer is none. What it opened stays open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_bus_close(bus: *mut tp_bus) -> tp_status {
    // SAFETY: it is null or was connected, and nobody uses it again, as the header says.
    unsafe { close(bus, |bus| &bus.0) }
}

/// Removes what a topic has left. A topic that does not exist is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_bus_remove(bus: *mut tp_bus, topic: *const c_char) -> tp_status {
    // SAFETY: it is null or was connected, and is not closed, as the header says.
    let bus = unsafe { bus.as_ref() };
    Handle::taking(bus.map(|bus| &bus.0), |bus| {
        // SAFETY: it is null or text, as the header says.
        let topic = unsafe { text("topic", topic)? };
        bus.connection.remove(topic).map_err(Failure::from)
    })
}

/// Removes a queue with all that is in it. A queue that does not exist is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_bus_remove_queue(bus: *mut tp_bus, queue: *const c_char) -> tp_status {
    // SAFETY: it is null or was connected, and is not closed, as the header says.
    let bus = unsafe { bus.as_ref() };
    Handle::taking(bus.map(|bus| &bus.0), |bus| {
        // SAFETY: it is null or text, as the header says.
        let queue = unsafe { text("queue", queue)? };
        bus.connection.remove_queue(queue).map_err(Failure::from)
    })
}

/// How many messages wait in a queue that nobody has taken; TP_UNSUPPORTED where the transport cannot tell. A queue that does
/// not exist holds none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_bus_waiting(bus: *mut tp_bus, queue: *const c_char, waiting: *mut u64) -> tp_status {
    // SAFETY: it is null or was connected, and is not closed, as the header says.
    let bus = unsafe { bus.as_ref() };
    Handle::taking(bus.map(|bus| &bus.0), |bus| {
        // SAFETY: it is null or text, as the header says.
        let queue = unsafe { text("queue", queue)? };
        check_pointer("waiting", waiting)?;
        let Some(count) = bus.connection.waiting(queue)? else {
            let sentence = "this transport cannot tell how many messages wait; ask its server";
            return Err(Failure::new(tp_status::TP_UNSUPPORTED, sentence));
        };
        // SAFETY: it is not null, and a place for a number, as the header says.
        unsafe { waiting.write(count) };
        Ok(())
    })
}

/// Whether a server stands behind a URL.
fn is_served(url: &str) -> bool {
    let is_here = ["shm://", "file://"].iter().any(|scheme| url.starts_with(scheme));
    !is_here && tickpath_bus::transport(url).is_some()
}

/// What every program in Rust does as it begins, and what the transports rely on: a connection that is gone is an error, and
/// not the end of the process.
pub(crate) fn ignore_broken_pipes() {
    // SAFETY: zeros are a value of it: numbers, and a function that is none.
    let mut now: libc::sigaction = unsafe { zeroed() };
    // SAFETY: it changes nothing, and writes where there is a place for it.
    let asked = unsafe { libc::sigaction(libc::SIGPIPE, null(), &raw mut now) };
    if asked == 0 && now.sa_sigaction == libc::SIG_DFL {
        // SAFETY: no function is handed over that could be called.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    }
}
