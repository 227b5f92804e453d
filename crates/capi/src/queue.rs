//! Pushers and pullers.

use std::ffi::{c_char, c_void};

use tickpath_bus::message_id::clock_id;
use tickpath_bus::{PulledMessage, Puller, Pusher};
use tickpath_clock::{Clock, HostClock};

use crate::argument::{BatchOutcome, SliceList, bytes, check_kind, check_pointer, put, text, tp_slice};
use crate::bus::{ClockedConnection, tp_bus};
use crate::config::{read_struct, tp_queue_config, wait_of};
use crate::handle::{Handle, close, handle_of, handle_type, open};
use crate::status::{CallFailure, tp_status};
use crate::topic::{TP_NO_SEQUENCE, stamp_of};

/// Pusher of one queue.
pub struct tp_pusher(Handle<ClockedPusher>);

pub(crate) struct ClockedPusher {
    pusher: Box<dyn Pusher>,
    clock: HostClock,
    batch: SliceList,
}

handle_type!(tp_pusher holds ClockedPusher);

/// Puller of one queue.
pub struct tp_puller(Handle<ClockedPuller>);

pub(crate) struct ClockedPuller {
    puller: Box<dyn Puller>,
    /// Identifier of this host's clock, to recognise stamps of other clocks.
    clock: u64,
}

handle_type!(tp_puller holds ClockedPuller);

/// Message of a queue, valid only while its callback runs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_pulled {
    /// Sequence number in the queue, from 0; TP_NO_SEQUENCE if the transport does not count.
    pub sequence: u64,
    /// Stamp that the pusher gave, in ticks of the pusher's host clock; 0 for a message of another program.
    pub stamp: u64,
    /// Bytes of the message. They belong to the library, and may be unaligned.
    pub data: *const c_void,
    /// Number of bytes.
    pub len: usize,
    /// Tag for tp_puller_give_back, valid for this puller; 0 if the transport takes no message back.
    pub tag: u64,
    /// Number of deliveries, this delivery included; 0 if the transport does not count them.
    pub deliveries: u32,
    /// Kind of the message: 16 to 255.
    pub kind: u8,
    /// True if a puller may have received the message before.
    pub redelivered: bool,
    /// True if the stamp is of this host's clock; a stamp of another host gives no time here, and false also marks a
    /// stamp of 0. For a `file://` queue this is not known, and true: a stamp from before this boot gives no time
    /// either.
    pub is_of_clock: bool,
}

/// Callback that receives each message, with the `user` pointer that was passed to tp_puller_pull. It must return: it
/// throws nothing, and neither longjmp nor pthread_exit nor pthread_cancel ends it. It does not fork, and does not use
/// the puller that called it.
pub type tp_on_pulled = Option<unsafe extern "C" fn(pulled: *const tp_pulled, user: *mut c_void)>;

/// Opens a queue for pushing, creates it if it does not exist, and writes the handle to `out`, or null on an error.
/// `config` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_open(
    bus: *mut tp_bus,
    queue: *const c_char,
    config: *const tp_queue_config,
    out: *mut *mut tp_pusher,
) -> tp_status {
    let push = |bus: &mut ClockedConnection| -> Result<tp_pusher, CallFailure> {
        // SAFETY: null or zero-terminated text, as the header requires.
        let queue = unsafe { text("queue", queue)? };
        // SAFETY: null, or as large as its `size` field states, as the header requires.
        let config = unsafe { read_struct(config)? };
        let config = config.queue(bus.connection.queue_capabilities().deliveries[0])?;
        let pusher = bus.connection.pusher(queue, &config)?;
        Ok(tp_pusher(Handle::new(ClockedPusher { pusher, clock: bus.clock, batch: SliceList::default() })))
    };
    // SAFETY: `bus` is null or open, and `out` null or a valid place for a handle, as the header requires.
    unsafe { open(bus, out, push) }
}

/// Pushes one message of `len` bytes, of a kind from 16 to 255, and returns when the queue has it; `stamp` is in ticks
/// of the host's clock, or TP_NOW. After an error nothing of the message is pushed, except after TP_OUTCOME_UNKNOWN,
/// where it may be pushed now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_push(
    pusher: *mut tp_pusher,
    stamp: u64,
    kind: u8,
    data: *const c_void,
    len: usize,
) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(pusher) }, |pushing| {
        check_kind(kind)?;
        // SAFETY: `len` bytes are valid during the call, as the header requires.
        let message = unsafe { bytes(data, len)? };
        let stamp = stamp_of(stamp, pushing.clock);
        pushing.pusher.push(stamp, kind, message).map_err(CallFailure::from)
    })
}

/// Pushes `count` messages that share one kind and one stamp, in one pipeline, confirmed together, and writes to `done`
/// the number of first messages that are certainly pushed: all of them on success. After an error, later messages may
/// be pushed too: `fates`, which is null or has `count` bytes, receives the tp_fate of each message, for every returned
/// status. Continue with the messages that are TP_FATE_NOT_PUBLISHED; TP_OUTCOME_UNKNOWN means that some are
/// TP_FATE_UNKNOWN.
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
    // SAFETY: `done` and `fates` are null, or valid for a number and `count` bytes, as the header requires.
    let outcome = unsafe { BatchOutcome::unpublished(count, done, fates) };
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(pusher) }, |pushing| {
        check_pointer("done", done)?;
        check_kind(kind)?;
        let ClockedPusher { pusher, clock, batch } = pushing;
        let stamp = stamp_of(stamp, *clock);
        let push = |batch: &[&[u8]]| outcome.run(|| pusher.push_batch(stamp, kind, batch));
        // SAFETY: `count` slices and their bytes are valid during the call, as the header requires.
        let pushed = unsafe { batch.with(messages, count, push)? };
        pushed.map_err(CallFailure::from)
    })
}

/// Resolves the messages that the last call left in doubt, and sends them again if necessary; where the transport does
/// not drop the second copy, a message may be in the queue twice. Call it directly after that call: the next call that
/// pushes gives them up. TP_OK means that all of them are now pushed. An error describes only the messages in doubt,
/// not the whole batch; while it is TP_OUTCOME_UNKNOWN, call again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_resend(pusher: *mut tp_pusher) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(pusher) }, |pushing| pushing.pusher.resend().map_err(CallFailure::from))
}

/// Closes a pusher and frees its handle; does nothing for a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_pusher_close(pusher: *mut tp_pusher) -> tp_status {
    // SAFETY: null or an open handle that is never used again, as the header requires.
    unsafe { close(pusher) }
}

/// Opens a queue for pulling, whether or not anything was pushed yet, and writes the handle to `out`, or null on an
/// error. `wait` is a tp_wait; `config` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_open(
    bus: *mut tp_bus,
    queue: *const c_char,
    config: *const tp_queue_config,
    wait: u32,
    out: *mut *mut tp_puller,
) -> tp_status {
    let pull = |bus: &mut ClockedConnection| -> Result<tp_puller, CallFailure> {
        // SAFETY: null or zero-terminated text, as the header requires.
        let queue = unsafe { text("queue", queue)? };
        // SAFETY: null, or as large as its `size` field states, as the header requires.
        let config = unsafe { read_struct(config)? };
        let config = config.queue(bus.connection.queue_capabilities().deliveries[0])?;
        let puller = bus.connection.puller(queue, &config, wait_of(wait)?)?;
        let clock = clock_id(bus.clock.calibration());
        Ok(tp_puller(Handle::new(ClockedPuller { puller, clock })))
    };
    // SAFETY: `bus` is null or open, and `out` null or a valid place for a handle, as the header requires.
    unsafe { open(bus, out, pull) }
}

/// Passes up to `max` available messages to `on_pulled`, and writes their number to `count`, on every error too. Never
/// waits for a message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_pull(
    puller: *mut tp_puller,
    max: usize,
    on_pulled: tp_on_pulled,
    user: *mut c_void,
    count: *mut usize,
) -> tp_status {
    let mut handed = 0;
    // SAFETY: null or an open handle, as the header requires.
    let status = Handle::with(unsafe { handle_of(puller) }, |pulling| {
        check_pointer("count", count)?;
        let Some(on_pulled) = on_pulled else { return Err(CallFailure::null("on_pulled")) };
        let ClockedPuller { puller, clock } = pulling;
        let pulled = puller.pull(max, &mut |pulled| {
            handed += 1;
            let pulled = tp_pulled::of(&pulled, *clock);
            // SAFETY: the callback accepts the message and returns, as the header requires.
            unsafe { on_pulled(&pulled, user) };
        });
        pulled.map(|_| ()).map_err(CallFailure::from)
    });
    // SAFETY: `count` is null or a valid place for a number, as the header requires.
    unsafe { put(count, handed) };
    status
}

/// Acknowledges all messages handed over so far, so that none is redelivered; TP_NOT_ACKNOWLEDGED reports exceptions.
/// Does nothing under at most once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_acknowledge(puller: *mut tp_puller) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(puller) }, |pulling| pulling.puller.acknowledge().map_err(CallFailure::from))
}

/// Gives one unacknowledged message back at once, by its `tag`; it is redelivered, marked, to any puller. Fails if the
/// transport takes no message back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_give_back(puller: *mut tp_puller, tag: u64) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(puller) }, |pulling| pulling.puller.give_back(tag).map_err(CallFailure::from))
}

/// Waits as the puller was opened to: until a message may be available or, if it sleeps, until `timeout_ns` nanoseconds
/// have passed. It may return early, also because of a signal: pull again, and wait again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_wait(puller: *mut tp_puller, timeout_ns: u64) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(puller) }, |pulling| {
        pulling.puller.wait(timeout_ns);
        Ok(())
    })
}

/// Closes a puller and frees its handle; unacknowledged messages are redelivered. Does nothing for a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_puller_close(puller: *mut tp_puller) -> tp_status {
    // SAFETY: null or an open handle that is never used again, as the header requires.
    unsafe { close(puller) }
}

impl tp_pulled {
    #[inline]
    fn of(pulled: &PulledMessage<'_>, clock: u64) -> Self {
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
