//! How things are opened: structs that begin with their size, so that later versions can append fields. Those of a session
//! with an OMS are in `orders` and `request`.

use std::ffi::c_char;
use std::mem::{MaybeUninit, offset_of};
use std::num::NonZeroU32;

use tickpath_bus::wire::FIRST_KIND;
use tickpath_bus::{Delivery, NoToken, Policy, QueueConfig, Start, TopicConfig};
use tickpath_clock::Wait;

use crate::argument::text;
use crate::status::Failure;

/// What a full topic does.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_policy {
    /// The transport's usual.
    TP_POLICY_USUAL = 0,
    /// The publisher never waits; a slow subscriber learns how many it missed.
    TP_POLICY_OVERWRITE = 1,
    /// The publisher is told, keeps its message and decides.
    TP_POLICY_FAIL = 2,
    /// Everything stays.
    TP_POLICY_KEEP = 3,
}

/// Where a subscription begins.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_start {
    /// With the next message that is published.
    TP_START_NOW = 0,
    /// With the oldest that the transport still has.
    TP_START_OLDEST = 1,
    /// With the config's sequence; what is gone already is told as a gap.
    TP_START_SEQUENCE = 2,
    /// Behind what the subscriber was handed that gave the config's token; what is gone since is told as a gap.
    TP_START_AFTER = 3,
}

/// How to wait.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_wait {
    /// It sleeps until it is woken: no processor, some microseconds.
    TP_WAIT_BLOCK = 0,
    /// It looks without a pause: the shortest latency, a whole processor.
    TP_WAIT_BUSY = 1,
    /// It looks, and gives the processor to others in between.
    TP_WAIT_YIELD = 2,
    /// It looks as long as a wake-up costs, then sleeps; where messages come at a rhythm, it is awake for the next one.
    TP_WAIT_ADAPTIVE = 3,
}

/// What becomes of a message whose puller dies.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_delivery {
    /// The transport's usual.
    TP_DELIVERY_USUAL = 0,
    /// It is gone.
    TP_DELIVERY_AT_MOST_ONCE = 1,
    /// Another puller gets it, marked as redelivered.
    TP_DELIVERY_AT_LEAST_ONCE = 2,
}

/// How a publisher opens its topic. Zero is the usual.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_publisher_config {
    /// sizeof(tp_publisher_config), as this header has it.
    pub size: usize,
    /// What a full topic does: a tp_policy.
    pub policy: u32,
    /// Permissions of what the topic is made of, where it is made of files, as for chmod; 0 is 0600.
    pub mode: u32,
    /// Bytes that the topic holds before it is full, about; 0 is a mebibyte.
    pub capacity_bytes: usize,
    /// With TP_POLICY_OVERWRITE, messages go also when they are older than so many nanoseconds; 0 is at no age.
    pub max_age_ns: u64,
}

/// How a subscriber opens its topic. Zero is the usual: it begins with the next message, and sleeps while it waits.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_subscriber_config {
    /// sizeof(tp_subscriber_config), as this header has it.
    pub size: usize,
    /// Where it begins: a tp_start.
    pub start: u32,
    /// How it waits: a tp_wait.
    pub wait: u32,
    /// Of TP_START_SEQUENCE, the first sequence number.
    pub sequence: u64,
    /// Of TP_START_AFTER, what tp_subscriber_token gave; else it may be null.
    pub token: *const c_char,
}

/// How a queue is opened; its pushers and pullers must agree. Zero is the usual.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_queue_config {
    /// sizeof(tp_queue_config), as this header has it.
    pub size: usize,
    /// What becomes of a message whose puller dies: a tp_delivery.
    pub delivery: u32,
    /// Permissions of what the queue is made of, where it is made of files, as for chmod; 0 is 0600.
    pub mode: u32,
    /// Bytes that the queue holds before it is full, about, where it has a bound; 0 is 16 MiB.
    pub capacity_bytes: usize,
    /// Where a transport cannot see that a puller has died: what it has not acknowledged comes again after so many
    /// nanoseconds without a sign of life; 0 is 30 seconds.
    pub silence_ns: u64,
    /// At least once: a message that was delivered so often, and never acknowledged, goes to the queue NAME.dead; 0 is that it
    /// comes again for ever.
    pub most_deliveries: u32,
    /// What other programs pushed is handed over as a message of this kind, 16 to 255, and without a stamp; 0 is that a
    /// puller skips or refuses such.
    pub foreign_kind: u32,
}

// What the configs had in their first version. It stays when fields are appended: programs of that header give this size. None
// is a constant of the trait, which cbindgen would put in the header.
const PUBLISHER_FIRST_BYTES: usize = 32;
const SUBSCRIBER_FIRST_BYTES: usize = 32;
const QUEUE_FIRST_BYTES: usize = 40;

/// A struct of the header that begins with its size in bytes.
///
/// # Safety
/// Any bytes are a value of it, and it has no padding, which a field of a later version could lie in.
pub unsafe trait Config: Copy {
    /// What its first version had.
    fn first_bytes() -> usize;
}

// SAFETY: its fields are numbers, and fill it.
unsafe impl Config for tp_publisher_config {
    fn first_bytes() -> usize {
        PUBLISHER_FIRST_BYTES
    }
}
const _: () = assert!(PUBLISHER_FIRST_BYTES == offset_of!(tp_publisher_config, max_age_ns) + size_of::<u64>());
const _: () = assert!(size_of::<tp_publisher_config>() == 8 + 4 + 4 + 8 + 8);
// SAFETY: its fields are numbers and a pointer, and fill it.
unsafe impl Config for tp_subscriber_config {
    fn first_bytes() -> usize {
        SUBSCRIBER_FIRST_BYTES
    }
}
const _: () = assert!(SUBSCRIBER_FIRST_BYTES == offset_of!(tp_subscriber_config, token) + size_of::<*const c_char>());
const _: () = assert!(size_of::<tp_subscriber_config>() == 8 + 4 + 4 + 8 + 8);
// SAFETY: its fields are numbers, and fill it.
unsafe impl Config for tp_queue_config {
    fn first_bytes() -> usize {
        QUEUE_FIRST_BYTES
    }
}
const _: () = assert!(QUEUE_FIRST_BYTES == offset_of!(tp_queue_config, foreign_kind) + size_of::<u32>());
const _: () = assert!(size_of::<tp_queue_config>() == 8 + 4 + 4 + 8 + 8 + 4 + 4);

/// What C configures, or asks for; zeros if it is null, and in the fields that its version did not have.
///
/// # Safety
/// `given` is null, or begins with a size and has so many bytes, which stay as they are during the call.
pub unsafe fn read<C: Config>(what: &str, given: *const C) -> Result<C, Failure> {
    let mut config = MaybeUninit::<C>::zeroed();
    if !given.is_null() {
        // SAFETY: it begins with its size, as the caller promises.
        let bytes = unsafe { given.cast::<usize>().read_unaligned() };
        check_size(what, bytes, C::first_bytes(), size_of::<C>())?;
        // SAFETY: it has so many bytes, as the caller promises, and they fit: that was looked at.
        unsafe { given.cast::<u8>().copy_to_nonoverlapping(config.as_mut_ptr().cast(), bytes) };
    }
    // SAFETY: zeros are a value of it, and so is whatever lies over them now.
    Ok(unsafe { config.assume_init() })
}

/// Refuses a size that no version of a struct has.
pub fn check_size(what: &str, bytes: usize, first_bytes: usize, known_bytes: usize) -> Result<(), Failure> {
    if bytes < first_bytes {
        return Err(Failure::invalid(format!(
            "the size of this {what} is {bytes} bytes, which is too small; set its field size to sizeof({what})"
        )));
    }
    // With a third version there is a third size.
    if bytes > first_bytes && bytes < known_bytes {
        return Err(Failure::invalid(format!(
            "the size of this {what} is {bytes} bytes, which no version has; set its field size to sizeof({what})"
        )));
    }
    if bytes > known_bytes {
        return Err(Failure::invalid(format!(
            "the size of this {what} is {bytes} bytes, and this library knows {known_bytes}: set its field size to \
             sizeof({what}), or, if a later header was used, take the library that belongs to it"
        )));
    }
    Ok(())
}

impl tp_publisher_config {
    /// What the bus takes, on a transport with this usual policy.
    pub fn topic(&self, usual: Policy) -> Result<TopicConfig, Failure> {
        const POLICIES: [(u32, Option<Policy>); 4] = [
            (tp_policy::TP_POLICY_USUAL as u32, None),
            (tp_policy::TP_POLICY_OVERWRITE as u32, Some(Policy::Overwrite)),
            (tp_policy::TP_POLICY_FAIL as u32, Some(Policy::Fail)),
            (tp_policy::TP_POLICY_KEEP as u32, Some(Policy::Keep)),
        ];
        let config = TopicConfig::new(chosen("tp_policy", self.policy, &POLICIES)?.unwrap_or(usual));
        Ok(TopicConfig {
            capacity_bytes: given_or(self.capacity_bytes, config.capacity_bytes),
            max_age_ns: Some(self.max_age_ns).filter(|&age| age > 0),
            mode: given_or(self.mode, config.mode),
            ..config
        })
    }
}

impl tp_subscriber_config {
    /// Where it begins.
    ///
    /// # Safety
    /// Its token is null, or ends with a zero, and stays as it is during the call.
    pub unsafe fn start(&self) -> Result<Start, Failure> {
        const STARTS: [(u32, tp_start); 4] = [
            (tp_start::TP_START_NOW as u32, tp_start::TP_START_NOW),
            (tp_start::TP_START_OLDEST as u32, tp_start::TP_START_OLDEST),
            (tp_start::TP_START_SEQUENCE as u32, tp_start::TP_START_SEQUENCE),
            (tp_start::TP_START_AFTER as u32, tp_start::TP_START_AFTER),
        ];
        match chosen("tp_start", self.start, &STARTS)? {
            tp_start::TP_START_NOW => Ok(Start::Now),
            tp_start::TP_START_OLDEST => Ok(Start::Oldest),
            tp_start::TP_START_SEQUENCE => Ok(Start::Sequence(self.sequence)),
            tp_start::TP_START_AFTER => {
                // SAFETY: as the caller promises.
                let token = unsafe { text("token", self.token)? };
                if token.is_empty() {
                    return Err(Failure::invalid(
                        "the token is empty: nothing was known of the topic when it was given; start with \
                         TP_START_NOW or TP_START_OLDEST",
                    ));
                }
                let read = token.parse().map(Start::After);
                read.map_err(|e: NoToken| Failure::invalid(e.to_string()))
            }
        }
    }
}

impl tp_queue_config {
    /// What the bus takes, on a transport with this usual delivery.
    pub fn queue(&self, usual: Delivery) -> Result<QueueConfig, Failure> {
        const DELIVERIES: [(u32, Option<Delivery>); 3] = [
            (tp_delivery::TP_DELIVERY_USUAL as u32, None),
            (tp_delivery::TP_DELIVERY_AT_MOST_ONCE as u32, Some(Delivery::AtMostOnce)),
            (tp_delivery::TP_DELIVERY_AT_LEAST_ONCE as u32, Some(Delivery::AtLeastOnce)),
        ];
        let config = QueueConfig::new(chosen("tp_delivery", self.delivery, &DELIVERIES)?.unwrap_or(usual));
        let foreign = match u8::try_from(self.foreign_kind) {
            Ok(0) => None,
            Ok(kind) if kind >= FIRST_KIND => Some(kind),
            _ => {
                let sentence = format!("the foreign_kind {} is none; use {FIRST_KIND} to 255, or 0", self.foreign_kind);
                return Err(Failure::invalid(sentence));
            }
        };
        Ok(QueueConfig {
            capacity_bytes: given_or(self.capacity_bytes, config.capacity_bytes),
            silence_ns: given_or(self.silence_ns, config.silence_ns),
            foreign,
            most_deliveries: NonZeroU32::new(self.most_deliveries),
            mode: given_or(self.mode, config.mode),
            ..config
        })
    }
}

/// How to wait, by the number of a [`tp_wait`].
pub fn wait_of(number: u32) -> Result<Wait, Failure> {
    const WAITS: [(u32, Wait); 4] = [
        (tp_wait::TP_WAIT_BLOCK as u32, Wait::Block),
        (tp_wait::TP_WAIT_BUSY as u32, Wait::Busy),
        (tp_wait::TP_WAIT_YIELD as u32, Wait::Yield),
        (tp_wait::TP_WAIT_ADAPTIVE as u32, Wait::Adaptive),
    ];
    chosen("tp_wait", number, &WAITS)
}

/// One of several by its number in the header.
pub fn chosen<T: Copy>(what: &str, number: u32, all: &[(u32, T)]) -> Result<T, Failure> {
    let found = all.iter().find(|(known, _)| *known == number);
    found.map(|&(_, one)| one).ok_or_else(|| {
        let known: Vec<String> = all.iter().map(|(known, _)| known.to_string()).collect();
        let known = known.join(", ");
        Failure::invalid(format!("{number} is no {what}; use one of the header's names, which are {known}"))
    })
}

/// A number, or the usual one if it is zero.
pub fn given_or<N: Default + PartialEq>(given: N, usual: N) -> N {
    if given == N::default() { usual } else { given }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The struct of a second version, which has appended a field.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Second {
        size: usize,
        first: u64,
        appended: u64,
    }

    // SAFETY: its fields are numbers, and fill it.
    unsafe impl Config for Second {
        fn first_bytes() -> usize {
            16
        }
    }

    fn read_with(size: usize) -> Result<Second, Failure> {
        let given = Second { size, first: 7, appended: 9 };
        // SAFETY: it begins with a size, and nothing is read of it unless it has so many bytes.
        unsafe { read("second", &raw const given) }
    }

    #[test]
    fn a_field_that_was_appended_is_zero_for_who_does_not_know_it() {
        let read = read_with(16).expect("the first version's size");
        assert_eq!(read, Second { size: 16, first: 7, appended: 0 });
        let read = read_with(24).expect("the second version's size");
        assert_eq!(read, Second { size: 24, first: 7, appended: 9 });
    }

    #[test]
    fn a_size_that_no_version_has_is_refused() {
        for size in [0, 8, 15, 17, 20, 23, 25, 32, usize::MAX] {
            assert!(read_with(size).is_err(), "{size}");
        }
    }
}
