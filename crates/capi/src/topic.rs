//! Publishing and subscribing.

use std::ffi::{c_char, c_void};
use std::ptr::null;

use tickpath_bus::origin::clock_of;
use tickpath_bus::{Event, Gap, Publisher, PublisherState, Subscriber};
use tickpath_clock::{Clock, HostClock};

use crate::argument::{Batch, Told, bytes, check_kind, check_pointer, put, text, tp_slice};
use crate::bus::{Bus, tp_bus};
use crate::config::{read, tp_publisher_config, tp_subscriber_config, wait_of};
use crate::handle::{Handle, Opened, close, open};
use crate::status::{Failure, tp_status};

/// In place of a stamp: this moment.
pub const TP_NOW: u64 = u64::MAX;

/// In place of a sequence number: the transport counts none.
pub const TP_NO_SEQUENCE: u64 = u64::MAX;

/// Bytes that hold any token, with the zero behind it.
pub const TP_TOKEN_BYTES: usize = 512;

/// Publishes one topic.
pub struct tp_publisher(Handle<Publishing>);

struct Publishing {
    publisher: Box<dyn Publisher>,
    clock: HostClock,
    batch: Batch,
}

impl Opened for Publishing {
    fn what() -> &'static str {
        "tp_publisher"
    }
}

/// Receives one topic.
pub struct tp_subscriber(Handle<Subscribing>);

struct Subscribing {
    subscriber: Box<dyn Subscriber>,
    /// What tells the clock of this host from any other.
    clock: u64,
}

impl Opened for Subscribing {
    fn what() -> &'static str {
        "tp_subscriber"
    }
}

/// What a subscriber finds.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_event_type {
    /// A message.
    TP_MESSAGE = 1,
    /// What another program published: it has bytes, perhaps a sequence number, and nothing else.
    TP_FOREIGN = 2,
    /// Messages that this subscriber will never see: it has missed, and nothing else.
    TP_GAP = 3,
}

/// What a subscriber finds, for as long as its callback runs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_event {
    /// What it is: a tp_event_type. A later version may know others, which are to be passed over.
    pub r#type: u32,
    /// Of a message, what kind it is: 16 to 255.
    pub kind: u8,
    /// Of a message, whether its stamp is of this host's clock: of another host's it tells no time here. Of a `file://` topic
    /// that is not known, and true: a stamp of before this boot tells no time either.
    pub is_of_clock: bool,
    /// The topic's count of messages, from 0; TP_NO_SEQUENCE where there is none.
    pub sequence: u64,
    /// Of a message, the publisher's stamp, in ticks of its host's clock.
    pub stamp: u64,
    /// Its bytes.
    pub data: *const c_void,
    /// How many.
    pub len: usize,
    /// Of a gap, how many messages; 0 where nobody knows.
    pub missed: u64,
}

/// What a subscriber hands events to, with what tp_subscriber_poll was given as `user`. It returns: it throws nothing, and neither
/// longjmp nor pthread_exit nor pthread_cancel ends it. It does not fork, and does not use the subscriber that called it.
pub type tp_on_event = Option<unsafe extern "C" fn(event: *const tp_event, user: *mut c_void)>;

/// Opens a topic for publishing. The handle goes to `out`, which is null if there is none; `config` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_open(
    bus: *mut tp_bus,
    topic: *const c_char,
    config: *const tp_publisher_config,
    out: *mut *mut tp_publisher,
) -> tp_status {
    let publish = |bus: &mut Bus| -> Result<tp_publisher, Failure> {
        // SAFETY: it is null or text, as the header says.
        let topic = unsafe { text("topic", topic)? };
        // SAFETY: it is null or as large as its size says, as the header says.
        let config = unsafe { read("tp_publisher_config", config)? };
        let config = config.topic(bus.connection.capabilities().policies[0])?;
        let publisher = bus.connection.publisher(topic, &config)?;
        Ok(tp_publisher(Handle::new(Publishing { publisher, clock: bus.clock, batch: Batch::default() })))
    };
    // SAFETY: it is null or was connected, and is not closed, as the header says.
    let bus = unsafe { bus.as_ref() };
    // SAFETY: it is null or a place for a handle, as the header says.
    unsafe { open(bus.map(|bus| &bus.0), out, publish) }
}

/// Publishes one message of `len` bytes and a kind of 16 to 255, stamped so, or TP_NOW. On an error nothing of it is published,
/// but for TP_OUTCOME_UNKNOWN, behind which it may be, or be so later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_publish(
    publisher: *mut tp_publisher,
    stamp: u64,
    kind: u8,
    data: *const c_void,
    len: usize,
) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let publisher = unsafe { publisher.as_ref() };
    Handle::using(publisher.map(|publisher| &publisher.0), |publishing| {
        check_kind(kind)?;
        // SAFETY: so many bytes are there during the call, as the header says.
        let message = unsafe { bytes(data, len)? };
        let stamp = stamp_of(stamp, publishing.clock);
        publishing.publisher.publish(stamp, kind, message).map_err(Failure::from)
    })
}

/// Publishes `count` messages of one kind and one stamp, as cheaply as the transport can. `done` is how many of the first ones
/// are surely published: on success all. Behind an error messages after those may be published too: `fates`, which may be null, or
/// has `count` bytes, says of each message what became of it, a tp_fate, whatever the call returns. Go on from those that are
/// TP_FATE_NOT_PUBLISHED. TP_OUTCOME_UNKNOWN says that there are some that may be published, TP_FATE_UNKNOWN.
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
    // SAFETY: they are null, or a place for a count and so many bytes, as the header says.
    let told = unsafe { Told::nothing(count, done, fates) };
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let publisher = unsafe { publisher.as_ref() };
    Handle::using(publisher.map(|publisher| &publisher.0), |publishing| {
        check_pointer("done", done)?;
        check_kind(kind)?;
        let Publishing { publisher, clock, batch } = publishing;
        let stamp = stamp_of(stamp, *clock);
        let publish = |batch: &[&[u8]]| told.outcome(|| publisher.publish_batch(stamp, kind, batch));
        // SAFETY: so many slices are there, with their bytes, during the call, as the header says.
        let published = unsafe { batch.with(messages, count, publish)? };
        published.map_err(Failure::from)
    })
}

/// Finds out what has become of what the last call left unknown, and sends it again if need be, as the same messages: each
/// subscriber gets them once. It is for that moment: the next call that publishes gives them up. TP_OK says that all of them
/// are published now. On an error what it says is of those that were unknown, and not of the whole batch; while it is
/// TP_OUTCOME_UNKNOWN, call it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_resend(publisher: *mut tp_publisher) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let publisher = unsafe { publisher.as_ref() };
    Handle::using(publisher.map(|publisher| &publisher.0), |publishing| {
        publishing.publisher.resend().map_err(Failure::from)
    })
}

/// Says that there is nothing to publish now, again and again while the caller spins until there is: a transport may use the
/// time to keep the next message's way warm. Nobody sees anything of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_idle(publisher: *mut tp_publisher) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let publisher = unsafe { publisher.as_ref() };
    Handle::using(publisher.map(|publisher| &publisher.0), |publishing| {
        publishing.publisher.idle();
        Ok(())
    })
}

/// Closes a publisher and frees it; a null pointer is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_publisher_close(publisher: *mut tp_publisher) -> tp_status {
    // SAFETY: it is null or was opened, and nobody uses it again, as the header says.
    unsafe { close(publisher, |publisher| &publisher.0) }
}

/// Subscribes to a topic, whether or not somebody publishes it yet. The handle goes to `out`, which is null if there is none;
/// `config` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_open(
    bus: *mut tp_bus,
    topic: *const c_char,
    config: *const tp_subscriber_config,
    out: *mut *mut tp_subscriber,
) -> tp_status {
    let subscribe = |bus: &mut Bus| -> Result<tp_subscriber, Failure> {
        // SAFETY: it is null or text, as the header says.
        let topic = unsafe { text("topic", topic)? };
        // SAFETY: it is null or as large as its size says, as the header says.
        let config = unsafe { read("tp_subscriber_config", config)? };
        // SAFETY: its token is null or text, as the header says.
        let start = unsafe { config.start()? };
        let subscriber = bus.connection.subscriber(topic, start, wait_of(config.wait)?)?;
        let clock = clock_of(bus.clock.calibration());
        Ok(tp_subscriber(Handle::new(Subscribing { subscriber, clock })))
    };
    // SAFETY: it is null or was connected, and is not closed, as the header says.
    let bus = unsafe { bus.as_ref() };
    // SAFETY: it is null or a place for a handle, as the header says.
    unsafe { open(bus.map(|bus| &bus.0), out, subscribe) }
}

/// Hands up to `max` events that are there to `on_event`; `count` is how many, on every error too. It never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_poll(
    subscriber: *mut tp_subscriber,
    max: usize,
    on_event: tp_on_event,
    user: *mut c_void,
    count: *mut usize,
) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let subscriber = unsafe { subscriber.as_ref() };
    let mut handed = 0;
    let status = Handle::using(subscriber.map(|subscriber| &subscriber.0), |subscribing| {
        check_pointer("count", count)?;
        let Some(on_event) = on_event else { return Err(Failure::null("on_event")) };
        let Subscribing { subscriber, clock } = subscribing;
        let polled = subscriber.poll(max, &mut |event| {
            handed += 1;
            let event = tp_event::of(&event, *clock);
            // SAFETY: it takes such an event, and returns, as the header says.
            unsafe { on_event(&event, user) };
        });
        polled.map(|_| ()).map_err(Failure::from)
    });
    // SAFETY: it is null or a place for a count, as the header says.
    unsafe { put(count, handed) };
    status
}

/// Passes the time as the subscriber was opened to: until something may be there, or, where it sleeps, until `timeout_ns`
/// nanoseconds are over. It may return early, also by a signal: poll again, and wait again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_wait(subscriber: *mut tp_subscriber, timeout_ns: u64) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let subscriber = unsafe { subscriber.as_ref() };
    Handle::using(subscriber.map(|subscriber| &subscriber.0), |subscribing| {
        subscribing.subscriber.wait(timeout_ns);
        Ok(())
    })
}

/// Where it stands, as text with a zero behind it, into `size` bytes at `token`, of which TP_TOKEN_BYTES are enough: a
/// subscriber that starts TP_START_AFTER it goes on behind all that was handed over. Empty where there is no history, or
/// nothing is known of the topic yet: then there is nothing to go on behind, and TP_START_NOW or TP_START_OLDEST is to be
/// chosen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_token(
    subscriber: *mut tp_subscriber,
    token: *mut c_char,
    size: usize,
) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let subscriber = unsafe { subscriber.as_ref() };
    Handle::using(subscriber.map(|subscriber| &subscriber.0), |subscribing| {
        check_pointer("token", token)?;
        let text = subscribing.subscriber.token().map(|token| token.to_string()).unwrap_or_default();
        if text.len() >= size {
            let sentence = format!("a token does not fit in {size} bytes; give it TP_TOKEN_BYTES, {TP_TOKEN_BYTES}");
            return Err(Failure::new(tp_status::TP_TOO_LARGE, sentence));
        }
        // SAFETY: `size` bytes are there, as the header says, and the text and its zero are no more.
        unsafe {
            token.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
            token.add(text.len()).write(0);
        }
        Ok(())
    })
}

/// The process that publishes the topic: 0 if there is none, -1 where the transport cannot know, -2 if it is in another
/// container.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_publisher(subscriber: *mut tp_subscriber, process: *mut i64) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let subscriber = unsafe { subscriber.as_ref() };
    Handle::using(subscriber.map(|subscriber| &subscriber.0), |subscribing| {
        check_pointer("process", process)?;
        let publisher = match subscribing.subscriber.publisher() {
            PublisherState::Alive(0) => -2,
            PublisherState::Alive(pid) => i64::from(pid),
            PublisherState::Absent => 0,
            PublisherState::Unknown => -1,
        };
        // SAFETY: it is not null, and a place for a number, as the header says.
        unsafe { process.write(publisher) };
        Ok(())
    })
}

/// Closes a subscriber and frees it; a null pointer is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_subscriber_close(subscriber: *mut tp_subscriber) -> tp_status {
    // SAFETY: it is null or was opened, and nobody uses it again, as the header says.
    unsafe { close(subscriber, |subscriber| &subscriber.0) }
}

impl tp_event {
    #[inline]
    fn of(event: &Event<'_>, clock: u64) -> Self {
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
            Event::Message(message) => Self {
                r#type: tp_event_type::TP_MESSAGE as u32,
                kind: message.kind,
                is_of_clock: message.is_of_clock(clock),
                sequence: message.sequence.unwrap_or(TP_NO_SEQUENCE),
                stamp: message.stamp,
                data: message.payload.as_ptr().cast(),
                len: message.payload.len(),
                ..none
            },
            Event::Foreign(foreign) => Self {
                r#type: tp_event_type::TP_FOREIGN as u32,
                sequence: foreign.sequence.unwrap_or(TP_NO_SEQUENCE),
                data: foreign.bytes.as_ptr().cast(),
                len: foreign.bytes.len(),
                ..none
            },
            Event::Gap(Gap::Missed(missed)) => Self { missed: *missed, ..none },
            Event::Gap(Gap::Reconnected) => none,
        }
    }
}

/// The stamp that a message gets.
#[inline(always)]
pub(crate) fn stamp_of(given: u64, clock: HostClock) -> u64 {
    if given == TP_NOW { clock.ticks() } else { given }
}
