//! Pushing and pulling.

use std::ffi::{c_char, c_void};

use tickpath_bus::origin::clock_of;
use tickpath_bus::{Pulled, Puller, Pusher};
use tickpath_clock::{Clock, HostClock};

use crate::argument::{Batch, Told, bytes, check_kind, check_pointer, put, text, tp_slice};
use crate::bus::{Bus, tp_bus};
use crate::config::{read, tp_queue_config, wait_of};
use crate::handle::{Handle, Opened, close, open};
use crate::status::{Failure, tp_status};
use crate::topic::{TP_NO_SEQUENCE, stamp_of};

/// Pushes to one queue.
pub struct tp_pusher(Handle<Pushing>);

struct Pushing {
    pusher: Box<dyn Pusher>,
    clock: HostClock,
    batch: Batch,
}

impl Opened for Pushing {
    fn what() -> &'static str {
        "tp_pusher"
    }
}

/// Pulls from one queue.
pub struct tp_puller(Handle<Pulling>);

struct Pulling {
    puller: Box<dyn Puller>,
    /// What tells the clock of this host from any other.
    clock: u64,
}

impl Opened for Pulling {
    fn what() -> &'static str {
        "tp_puller"
    }
}

/// A message of a queue, for as long as its callback runs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_pulled {
    /// The queue's count of messages, from 0; TP_NO_SEQUENCE where there is none.
    pub sequence: u64,
    /// The pusher's stamp, in ticks of its host's clock; 0 of what another program pushed.
    pub stamp: u64,
    /// Its bytes.
    pub data: *const c_void,
    /// How many.
    pub len: usize,
    /// Names it to this puller, for tp_puller_give_back; 0 where nothing can be given back.
    pub tag: u64,
    /// How often it was delivered, this time included; 0 where that is not counted.
    pub deliveries: u32,
    /// What kind it is: 16 to 255.
    pub kind: u8,
    /// A puller may have had it already.
    pub redelivered: bool,
    /// Whether its stamp is of this host's clock: of another host's it tells no time here, and a stamp of 0 is none. Of a
    /// `file://` queue that is not known, and true: a stamp of before this boot tells no time either.
    pub is_of_clock: bool,
}

/// What a puller hands messages to, with what tp_puller_pull was given as `user`. It returns: it throws nothing, and neither
/// longjmp nor pthread_exit nor pthread_cancel ends it. It does not fork, and does not use the puller that called it.
pub type tp_on_pulled = Option<unsafe extern "C" fn(pulled: *const tp_pulled, user: *mut c_void)>;

/// Opens a queue for pushing, and makes it if it is not there. The handle goes to `out`, which is null if there is none;
/// `config` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_open(
    bus: *mut tp_bus,
    queue: *const c_char,
    config: *const tp_queue_config,
    out: *mut *mut tp_pusher,
) -> tp_status {
    let push = |bus: &mut Bus| -> Result<tp_pusher, Failure> {
        // SAFETY: it is null or text, as the header says.
        let queue = unsafe { text("queue", queue)? };
        // SAFETY: it is null or as large as its size says, as the header says.
        let config = unsafe { read("tp_queue_config", config)? };
        let config = config.queue(bus.connection.queue_capabilities().deliveries[0])?;
        let pusher = bus.connection.pusher(queue, &config)?;
        Ok(tp_pusher(Handle::new(Pushing { pusher, clock: bus.clock, batch: Batch::default() })))
    };
    // SAFETY: it is null or was connected, and is not closed, as the header says.
    let bus = unsafe { bus.as_ref() };
    // SAFETY: it is null or a place for a handle, as the header says.
    unsafe { open(bus.map(|bus| &bus.0), out, push) }
}

/// Pushes one message of `len` bytes and a kind of 16 to 255, stamped so, or TP_NOW; returns when the queue has it. On an error
/// nothing of it is pushed, but for TP_OUTCOME_UNKNOWN, behind which it may be, or be so later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_push(
    pusher: *mut tp_pusher,
    stamp: u64,
    kind: u8,
    data: *const c_void,
    len: usize,
) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let pusher = unsafe { pusher.as_ref() };
    Handle::using(pusher.map(|pusher| &pusher.0), |pushing| {
        check_kind(kind)?;
        // SAFETY: so many bytes are there during the call, as the header says.
        let message = unsafe { bytes(data, len)? };
        let stamp = stamp_of(stamp, pushing.clock);
        pushing.pusher.push(stamp, kind, message).map_err(Failure::from)
    })
}

/// Pushes `count` messages of one kind and one stamp, in one pipeline, confirmed together. `done` is how many of the first ones
/// are surely pushed: on success all. Behind an error messages after those may be pushed too: `fates`, which may be null, or
/// has `count` bytes, says of each message what became of it, a tp_fate, whatever the call returns. Go on from those that are
/// TP_FATE_NOT_PUBLISHED. TP_OUTCOME_UNKNOWN says that there are some that may be pushed, TP_FATE_UNKNOWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_push_batch(
    pusher: *mut tp_pusher,
    stamp: u64,
    kind: u8,
    messages: *const tp_slice,
    count: usize,
    done: *mut usize,
    fates: *mut u8,
) -> tp_status {
    // SAFETY: they are null, or a place for a count and so many bytes, as the header says.
    let told = unsafe { Told::nothing(count, done, fates) };
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let pusher = unsafe { pusher.as_ref() };
    Handle::using(pusher.map(|pusher| &pusher.0), |pushing| {
        check_pointer("done", done)?;
        check_kind(kind)?;
        let Pushing { pusher, clock, batch } = pushing;
        let stamp = stamp_of(stamp, *clock);
        let push = |batch: &[&[u8]]| told.outcome(|| pusher.push_batch(stamp, kind, batch));
        // SAFETY: so many slices are there, with their bytes, during the call, as the header says.
        let pushed = unsafe { batch.with(messages, count, push)? };
        pushed.map_err(Failure::from)
    })
}

/// Finds out what has become of what the last call left unknown, and sends it again if need be. Where the transport does not
/// drop the second copy, a message may lie in the queue twice. It is for that moment: the next call that pushes gives them up.
/// TP_OK says that all of them are pushed now. On an error what it says is of those that were unknown, and not of the whole
/// batch; while it is TP_OUTCOME_UNKNOWN, call it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_resend(pusher: *mut tp_pusher) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let pusher = unsafe { pusher.as_ref() };
    Handle::using(pusher.map(|pusher| &pusher.0), |pushing| pushing.pusher.resend().map_err(Failure::from))
}

/// Closes a pusher and frees it; a null pointer is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_close(pusher: *mut tp_pusher) -> tp_status {
    // SAFETY: it is null or was opened, and nobody uses it again, as the header says.
    unsafe { close(pusher, |pusher| &pusher.0) }
}

/// Opens a queue for pulling, whether or not somebody has pushed yet; `wait` is a tp_wait. The handle goes to `out`, which is
/// null if there is none; `config` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_open(
    bus: *mut tp_bus,
    queue: *const c_char,
    config: *const tp_queue_config,
    wait: u32,
    out: *mut *mut tp_puller,
) -> tp_status {
    let pull = |bus: &mut Bus| -> Result<tp_puller, Failure> {
        // SAFETY: it is null or text, as the header says.
        let queue = unsafe { text("queue", queue)? };
        // SAFETY: it is null or as large as its size says, as the header says.
        let config = unsafe { read("tp_queue_config", config)? };
        let config = config.queue(bus.connection.queue_capabilities().deliveries[0])?;
        let puller = bus.connection.puller(queue, &config, wait_of(wait)?)?;
        let clock = clock_of(bus.clock.calibration());
        Ok(tp_puller(Handle::new(Pulling { puller, clock })))
    };
    // SAFETY: it is null or was connected, and is not closed, as the header says.
    let bus = unsafe { bus.as_ref() };
    // SAFETY: it is null or a place for a handle, as the header says.
    unsafe { open(bus.map(|bus| &bus.0), out, pull) }
}

/// Takes up to `max` messages that are there, and hands them to `on_pulled`; `count` is how many, on every error too. It never
/// waits for one to come.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_pull(
    puller: *mut tp_puller,
    max: usize,
    on_pulled: tp_on_pulled,
    user: *mut c_void,
    count: *mut usize,
) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let puller = unsafe { puller.as_ref() };
    let mut handed = 0;
    let status = Handle::using(puller.map(|puller| &puller.0), |pulling| {
        check_pointer("count", count)?;
        let Some(on_pulled) = on_pulled else { return Err(Failure::null("on_pulled")) };
        let Pulling { puller, clock } = pulling;
        let pulled = puller.pull(max, &mut |pulled| {
            handed += 1;
            let pulled = tp_pulled::of(&pulled, *clock);
            // SAFETY: it takes such a message, and returns, as the header says.
            unsafe { on_pulled(&pulled, user) };
        });
        pulled.map(|_| ()).map_err(Failure::from)
    });
    // SAFETY: it is null or a place for a count, as the header says.
    unsafe { put(count, handed) };
    status
}

/// Everything that was handed over so far is done with, and never comes again; of what comes again all the same
/// TP_NOT_ACKNOWLEDGED tells. At most once, it does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_acknowledge(puller: *mut tp_puller) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let puller = unsafe { puller.as_ref() };
    Handle::using(puller.map(|puller| &puller.0), |pulling| pulling.puller.acknowledge().map_err(Failure::from))
}

/// One message that was handed over and is not acknowledged goes back by its tag, at once, and comes again, marked, to any
/// puller. Where the transport takes none back, that is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_give_back(puller: *mut tp_puller, tag: u64) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let puller = unsafe { puller.as_ref() };
    Handle::using(puller.map(|puller| &puller.0), |pulling| pulling.puller.give_back(tag).map_err(Failure::from))
}

/// Passes the time as the puller was opened to: until something may be there, or, where it sleeps, until `timeout_ns`
/// nanoseconds are over. It may return early, also by a signal: pull again, and wait again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_wait(puller: *mut tp_puller, timeout_ns: u64) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let puller = unsafe { puller.as_ref() };
    Handle::using(puller.map(|puller| &puller.0), |pulling| {
        pulling.puller.wait(timeout_ns);
        Ok(())
    })
}

/// Closes a puller and frees it; what is not acknowledged comes again. A null pointer is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_close(puller: *mut tp_puller) -> tp_status {
    // SAFETY: it is null or was opened, and nobody uses it again, as the header says.
    unsafe { close(puller, |puller| &puller.0) }
}

impl tp_pulled {
    #[inline]
    fn of(pulled: &Pulled<'_>, clock: u64) -> Self {
        let message = &pulled.message;
        Self {
            sequence: message.sequence.unwrap_or(TP_NO_SEQUENCE),
            stamp: message.stamp,
            data: message.payload.as_ptr().cast(),
            len: message.payload.len(),
            tag: pulled.tag,
            deliveries: pulled.deliveries.unwrap_or(0),
            kind: message.kind,
            redelivered: pulled.redelivered,
            is_of_clock: message.stamp != 0 && message.is_of_clock(clock),
        }
    }
}
