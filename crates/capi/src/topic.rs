//! Publishers and subscribers.

use std::ffi::{c_char, c_void};
use std::ptr::null;

use tickpath_bus::message_id::clock_id;
use tickpath_bus::{Gap, Publisher, PublisherState, Subscriber, SubscriptionEvent};
use tickpath_clock::{Clock, HostClock};

use crate::argument::{BatchOutcome, SliceList, bytes, check_kind, check_pointer, put, text, tp_slice};
use crate::bus::{ClockedConnection, tp_bus};
use crate::config::{read_struct, tp_publisher_config, tp_subscriber_config, wait_of};
use crate::handle::{Handle, close, handle_of, handle_type, open};
use crate::status::{CallFailure, tp_status};

/// Value in place of a stamp: the present moment.
pub const TP_NOW: u64 = u64::MAX;

/// Value in place of a sequence number: the transport does not count messages.
pub const TP_NO_SEQUENCE: u64 = u64::MAX;

/// Size of a buffer that holds any token with its terminating zero, in bytes.
pub const TP_TOKEN_BYTES: usize = 512;

/// Publisher of one topic.
pub struct tp_publisher(Handle<ClockedPublisher>);

pub(crate) struct ClockedPublisher {
    publisher: Box<dyn Publisher>,
    clock: HostClock,
    batch: SliceList,
}

handle_type!(tp_publisher holds ClockedPublisher);

/// Subscriber of one topic.
pub struct tp_subscriber(Handle<ClockedSubscriber>);

pub(crate) struct ClockedSubscriber {
    subscriber: Box<dyn Subscriber>,
    /// Identifier of this host's clock, to recognise stamps of other clocks.
    clock: u64,
}

handle_type!(tp_subscriber holds ClockedSubscriber);

/// Type of an event of a subscriber.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_event_type {
    /// A message.
    TP_MESSAGE = 1,
    /// A message of another program: it has only bytes and, on some transports, a sequence number.
    TP_FOREIGN = 2,
    /// Messages that this subscriber will never receive: only `missed` is set.
    TP_GAP = 3,
}

/// Event of a subscriber, valid only while its callback runs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_event {
    /// Type of the event: a tp_event_type. A later version may add types; ignore unknown types.
    pub r#type: u32,
    /// Kind of a message: 16 to 255.
    pub kind: u8,
    /// True if the stamp of a message is of this host's clock; a stamp of another host gives no time here. For a
    /// `file://` topic this is not known, and true: a stamp from before this boot gives no time either.
    pub is_of_clock: bool,
    /// Sequence number in the topic, from 0; TP_NO_SEQUENCE if the transport does not count.
    pub sequence: u64,
    /// Stamp that the publisher gave to a message, in ticks of the publisher's host clock.
    pub stamp: u64,
    /// Bytes of the message. They belong to the library, and may be unaligned.
    pub data: *const c_void,
    /// Number of bytes.
    pub len: usize,
    /// Number of messages lost in a gap; 0 if the number is unknown.
    pub missed: u64,
}

/// Callback that receives each event, with the `user` pointer that was passed to tp_subscriber_poll. It must return: it
/// throws nothing, and neither longjmp nor pthread_exit nor pthread_cancel ends it. It does not fork, and does not use
/// the subscriber that called it.
pub type tp_on_event = Option<unsafe extern "C" fn(event: *const tp_event, user: *mut c_void)>;

/// Opens a topic for publishing, and writes the handle to `out`, or null on an error. `config` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_open(
    bus: *mut tp_bus,
    topic: *const c_char,
    config: *const tp_publisher_config,
    out: *mut *mut tp_publisher,
) -> tp_status {
    let publish = |bus: &mut ClockedConnection| -> Result<tp_publisher, CallFailure> {
        // SAFETY: null or zero-terminated text, as the header requires.
        let topic = unsafe { text("topic", topic)? };
        // SAFETY: null, or as large as its `size` field states, as the header requires.
        let config = unsafe { read_struct(config)? };
        let config = config.topic(bus.connection.capabilities().policies[0])?;
        let publisher = bus.connection.publisher(topic, &config)?;
        Ok(tp_publisher(Handle::new(ClockedPublisher { publisher, clock: bus.clock, batch: SliceList::default() })))
    };
    // SAFETY: `bus` is null or open, and `out` null or a valid place for a handle, as the header requires.
    unsafe { open(bus, out, publish) }
}

/// Publishes one message of `len` bytes, of a kind from 16 to 255; `stamp` is in ticks of the host's clock, or TP_NOW.
/// After an error nothing of the message is published, except after TP_OUTCOME_UNKNOWN, where it may be published now
/// or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_publish(
    publisher: *mut tp_publisher,
    stamp: u64,
    kind: u8,
    data: *const c_void,
    len: usize,
) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(publisher) }, |publishing| {
        check_kind(kind)?;
        // SAFETY: `len` bytes are valid during the call, as the header requires.
        let message = unsafe { bytes(data, len)? };
        let stamp = stamp_of(stamp, publishing.clock);
        publishing.publisher.publish(stamp, kind, message).map_err(CallFailure::from)
    })
}

/// Publishes `count` messages that share one kind and one stamp, as cheaply as the transport can, and writes to `done`
/// the number of first messages that are certainly published: all of them on success. After an error, later messages
/// may be published too: `fates`, which is null or has `count` bytes, receives the tp_fate of each message, for every
/// returned status. Continue with the messages that are TP_FATE_NOT_PUBLISHED; TP_OUTCOME_UNKNOWN means that some are
/// TP_FATE_UNKNOWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_publish_batch(
    publisher: *mut tp_publisher,
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
    Handle::with(unsafe { handle_of(publisher) }, |publishing| {
        check_pointer("done", done)?;
        check_kind(kind)?;
        let ClockedPublisher { publisher, clock, batch } = publishing;
        let stamp = stamp_of(stamp, *clock);
        let publish = |batch: &[&[u8]]| outcome.run(|| publisher.publish_batch(stamp, kind, batch));
        // SAFETY: `count` slices and their bytes are valid during the call, as the header requires.
        let published = unsafe { batch.with(messages, count, publish)? };
        published.map_err(CallFailure::from)
    })
}

/// Resolves the messages that the last call left in doubt, and sends them again if necessary, as the same messages:
/// each subscriber receives them once. Call it directly after that call: the next call that publishes gives them up.
/// TP_OK means that all of them are now published. An error describes only the messages in doubt, not the whole batch;
/// while it is TP_OUTCOME_UNKNOWN, call again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_resend(publisher: *mut tp_publisher) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(publisher) }, |publishing| publishing.publisher.resend().map_err(CallFailure::from))
}

/// Signals that there is nothing to publish now; a program that spins repeats it until there is. A transport may use
/// the time for warm-up of the publish path, which no subscriber sees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_idle(publisher: *mut tp_publisher) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(publisher) }, |publishing| {
        publishing.publisher.idle();
        Ok(())
    })
}

/// Closes a publisher and frees its handle; does nothing for a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_close(publisher: *mut tp_publisher) -> tp_status {
    // SAFETY: null or an open handle that is never used again, as the header requires.
    unsafe { close(publisher) }
}

/// Subscribes to a topic, whether or not it has a publisher yet, and writes the handle to `out`, or null on an error.
/// `config` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_open(
    bus: *mut tp_bus,
    topic: *const c_char,
    config: *const tp_subscriber_config,
    out: *mut *mut tp_subscriber,
) -> tp_status {
    let subscribe = |bus: &mut ClockedConnection| -> Result<tp_subscriber, CallFailure> {
        // SAFETY: null or zero-terminated text, as the header requires.
        let topic = unsafe { text("topic", topic)? };
        // SAFETY: null, or as large as its `size` field states, as the header requires.
        let config = unsafe { read_struct(config)? };
        // SAFETY: its token is null or zero-terminated text, as the header requires.
        let start = unsafe { config.start()? };
        let subscriber = bus.connection.subscriber(topic, start, wait_of(config.wait)?)?;
        let clock = clock_id(bus.clock.calibration());
        Ok(tp_subscriber(Handle::new(ClockedSubscriber { subscriber, clock })))
    };
    // SAFETY: `bus` is null or open, and `out` null or a valid place for a handle, as the header requires.
    unsafe { open(bus, out, subscribe) }
}

/// Passes up to `max` available events to `on_event`, and writes their number to `count`, on every error too. Never
/// waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_poll(
    subscriber: *mut tp_subscriber,
    max: usize,
    on_event: tp_on_event,
    user: *mut c_void,
    count: *mut usize,
) -> tp_status {
    let mut handed = 0;
    // SAFETY: null or an open handle, as the header requires.
    let status = Handle::with(unsafe { handle_of(subscriber) }, |subscribing| {
        check_pointer("count", count)?;
        let Some(on_event) = on_event else { return Err(CallFailure::null("on_event")) };
        let ClockedSubscriber { subscriber, clock } = subscribing;
        let polled = subscriber.poll(max, &mut |event| {
            handed += 1;
            let event = tp_event::of(&event, *clock);
            // SAFETY: the callback accepts the event and returns, as the header requires.
            unsafe { on_event(&event, user) };
        });
        polled.map(|_| ()).map_err(CallFailure::from)
    });
    // SAFETY: `count` is null or a valid place for a number, as the header requires.
    unsafe { put(count, handed) };
    status
}

/// Waits as the subscriber's config states: until an event may be available or, if it sleeps, until `timeout_ns`
/// nanoseconds have passed. It may return early, also because of a signal: poll again, and wait again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_wait(subscriber: *mut tp_subscriber, timeout_ns: u64) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(subscriber) }, |subscribing| {
        subscribing.subscriber.wait(timeout_ns);
        Ok(())
    })
}

/// Writes the present position, as zero-terminated text, into the `size` bytes at `token`; TP_TOKEN_BYTES are always
/// enough. A subscriber that starts with TP_START_AFTER and this token resumes after all events handed over so far. The
/// text is empty if the transport has no history, or nothing is known of the topic yet: start with TP_START_NOW or
/// TP_START_OLDEST then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_token(
    subscriber: *mut tp_subscriber,
    token: *mut c_char,
    size: usize,
) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(subscriber) }, |subscribing| {
        check_pointer("token", token)?;
        let text = subscribing.subscriber.resume_token().map(|token| token.to_string()).unwrap_or_default();
        if text.len() >= size {
            let sentence = format!("a token does not fit in {size} bytes; give it TP_TOKEN_BYTES, {TP_TOKEN_BYTES}");
            return Err(CallFailure::new(tp_status::TP_TOO_LARGE, sentence));
        }
        // SAFETY: `size` bytes are valid, as the header requires, and the text with its zero fits.
        unsafe {
            token.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
            token.add(text.len()).write(0);
        }
        Ok(())
    })
}

/// Writes to `process` the process id of the topic's publisher: 0 if there is no publisher, -1 if the transport cannot
/// determine it, -2 if the publisher runs in another container.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_publisher(subscriber: *mut tp_subscriber, process: *mut i64) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(subscriber) }, |subscribing| {
        check_pointer("process", process)?;
        let publisher = match subscribing.subscriber.publisher_state() {
            PublisherState::Alive(0) => -2,
            PublisherState::Alive(pid) => i64::from(pid),
            PublisherState::Absent => 0,
            PublisherState::Unknown => -1,
        };
        // SAFETY: not null, and a valid place for a number, as the header requires.
        unsafe { process.write(publisher) };
        Ok(())
    })
}

/// Closes a subscriber and frees its handle; does nothing for a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_close(subscriber: *mut tp_subscriber) -> tp_status {
    // SAFETY: null or an open handle that is never used again, as the header requires.
    unsafe { close(subscriber) }
}

impl tp_event {
    #[inline]
    fn of(event: &SubscriptionEvent<'_>, clock: u64) -> Self {
        let none = Self {
            r#type: tp_event_type::TP_GAP as u32,
            kind: 0,
            is_of_clock: false,
            sequence: TP_NO_SEQUENCE,
            stamp: 0,
            data: null(),
            len: 0,
            missed: 0,
        };
        match event {
            SubscriptionEvent::Message(message) => Self {
                r#type: tp_event_type::TP_MESSAGE as u32,
                kind: message.kind,
                is_of_clock: message.is_of_clock(clock),
                sequence: message.sequence.unwrap_or(TP_NO_SEQUENCE),
                stamp: message.stamp,
                data: message.payload.as_ptr().cast(),
                len: message.payload.len(),
                ..none
            },
            SubscriptionEvent::Foreign(foreign) => Self {
                r#type: tp_event_type::TP_FOREIGN as u32,
                sequence: foreign.sequence.unwrap_or(TP_NO_SEQUENCE),
                data: foreign.bytes.as_ptr().cast(),
                len: foreign.bytes.len(),
                ..none
            },
            SubscriptionEvent::Gap(Gap::Missed(missed)) => Self { missed: *missed, ..none },
            SubscriptionEvent::Gap(Gap::Reconnected) => none,
        }
    }
}

/// Returns the stamp of a message: the given one, or the present time for `TP_NOW`.
#[inline(always)]
pub(crate) fn stamp_of(given: u64, clock: HostClock) -> u64 {
    if given == TP_NOW { clock.ticks() } else { given }
}
