//! Structs that configure an open call. Each begins with its size, so that later versions can append fields; the
//! structs of a session with an OMS are in `orders` and `request`.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::num::NonZeroU32;

use tickpath_bus::wire::FIRST_KIND;
use tickpath_bus::{DeliveryGuarantee, InvalidToken, Policy, QueueConfig, StartPosition, TopicConfig};
use tickpath_clock::Wait;

use crate::argument::text;
use crate::status::CallFailure;

/// Behaviour of a full topic.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_policy {
    /// The default policy of the transport.
    TP_POLICY_USUAL = 0,
    /// The publisher never waits; a slow subscriber receives the number of messages that it missed.
    TP_POLICY_OVERWRITE = 1,
    /// The publish call fails, and the publisher keeps its message and decides.
    TP_POLICY_FAIL = 2,
    /// Nothing is removed.
    TP_POLICY_KEEP = 3,
}

/// Start position of a subscription.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_start {
    /// The next message that is published.
    TP_START_NOW = 0,
    /// The oldest message that the transport still has.
    TP_START_OLDEST = 1,
    /// The message with the config's `sequence`; messages that are already removed are reported as a gap.
    TP_START_SEQUENCE = 2,
    /// The message after the last event that was handed over before tp_subscriber_token gave the config's `token`;
    /// messages that were removed since are reported as a gap.
    TP_START_AFTER = 3,
}

/// Way of waiting.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_wait {
    /// Sleeps until woken: uses no processor, costs some microseconds.
    TP_WAIT_BLOCK = 0,
    /// Polls without a pause: the shortest latency, a whole processor.
    TP_WAIT_BUSY = 1,
    /// Polls, and yields the processor to other threads in between.
    TP_WAIT_YIELD = 2,
    /// Polls as long as a wake-up costs, then sleeps; where messages arrive at a rhythm, it is awake for the next
    /// message.
    TP_WAIT_ADAPTIVE = 3,
}

/// Fate of a message whose puller dies.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_delivery {
    /// The default delivery of the transport.
    TP_DELIVERY_USUAL = 0,
    /// The message is lost.
    TP_DELIVERY_AT_MOST_ONCE = 1,
    /// Another puller receives the message, marked as redelivered.
    TP_DELIVERY_AT_LEAST_ONCE = 2,
}

/// Configuration of a publisher. Zero is the default of every field except `size`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_publisher_config {
    /// sizeof(tp_publisher_config), as in this header.
    pub size: usize,
    /// Behaviour of a full topic: a tp_policy.
    pub policy: u32,
    /// Permissions of the topic's files, as for chmod, if the transport uses files; 0 means 0600.
    pub mode: u32,
    /// Approximate capacity of the topic in bytes; 0 means 1 MiB.
    pub capacity_bytes: usize,
    /// Age in nanoseconds above which messages are removed, with TP_POLICY_OVERWRITE, even if the topic is not full; 0
    /// means no age limit.
    pub max_age_ns: u64,
}

/// Configuration of a subscriber. Zero is the default of every field except `size`: begin with the next message, and
/// sleep while waiting.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_subscriber_config {
    /// sizeof(tp_subscriber_config), as in this header.
    pub size: usize,
    /// Start position: a tp_start.
    pub start: u32,
    /// Way of waiting in tp_subscriber_wait: a tp_wait.
    pub wait: u32,
    /// First sequence number to receive, for TP_START_SEQUENCE.
    pub sequence: u64,
    /// Token from tp_subscriber_token, for TP_START_AFTER; may be null for any other start.
    pub token: *const c_char,
}

/// Configuration of a queue, equal for all its pushers and pullers. Zero is the default of every field except `size`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_queue_config {
    /// sizeof(tp_queue_config), as in this header.
    pub size: usize,
    /// Fate of a message whose puller dies: a tp_delivery.
    pub delivery: u32,
    /// Permissions of the queue's files, as for chmod, if the transport uses files; 0 means 0600.
    pub mode: u32,
    /// Approximate capacity of the queue in bytes, if the transport bounds it; 0 means 16 MiB.
    pub capacity_bytes: usize,
    /// Nanoseconds without a sign of life after which a puller's unacknowledged messages are redelivered, where the
    /// transport cannot detect the death of a puller; 0 means 30 seconds.
    pub silence_ns: u64,
    /// Max deliveries of a message that is never acknowledged, under at least once; the message then moves to the queue
    /// NAME.dead. 0 means that it is redelivered without limit.
    pub most_deliveries: u32,
    /// Kind, 16 to 255, given to messages that other programs pushed, which have no stamp; 0 means that a puller skips
    /// or refuses them.
    pub foreign_kind: u32,
}

/// A struct of the header that begins with its size in bytes.
///
/// # Safety
/// Any bytes are a valid value of the struct, and it has no padding that a later field could occupy.
pub unsafe trait SizedStruct: Copy {
    /// The struct's name in C, for error messages.
    fn c_name() -> &'static str;

    /// The size of the struct's first version. It stays when fields are appended, and is no constant of the trait,
    /// since cbindgen would put that into the header.
    fn first_bytes() -> usize;
}

/// Implements [`SizedStruct`] for a struct of numbers and pointers. Asserts that the first version ends behind the
/// field `$last`, and that the fields' sizes add up to the struct's.
macro_rules! sized_struct {
    ($name:ident: $first_bytes:literal to $last:ident: $type:ty, $sum:expr) => {
        // SAFETY: all fields are numbers or pointers, without padding, as the assertions show.
        unsafe impl crate::config::SizedStruct for $name {
            fn c_name() -> &'static str {
                stringify!($name)
            }

            fn first_bytes() -> usize {
                $first_bytes
            }
        }
        const _: () = assert!($first_bytes == std::mem::offset_of!($name, $last) + size_of::<$type>());
        const _: () = assert!(size_of::<$name>() == $sum);
    };
}

pub(crate) use sized_struct;

sized_struct!(tp_publisher_config: 32 to max_age_ns: u64, 8 + 4 + 4 + 8 + 8);
sized_struct!(tp_subscriber_config: 32 to token: *const c_char, 8 + 4 + 4 + 8 + 8);
sized_struct!(tp_queue_config: 40 to foreign_kind: u32, 8 + 4 + 4 + 8 + 8 + 4 + 4);

/// Copies a struct from C. Fields unknown to the caller's version, and all fields of a null pointer, are zero.
///
/// # Safety
/// `given` is null, or begins with its size and is valid for so many bytes, which are unchanged during the call.
pub unsafe fn read_struct<C: SizedStruct>(given: *const C) -> Result<C, CallFailure> {
    let mut config = MaybeUninit::<C>::zeroed();
    if !given.is_null() {
        // SAFETY: the struct begins with its size, as the caller guarantees.
        let bytes = unsafe { given.cast::<usize>().read_unaligned() };
        check_size(C::c_name(), bytes, C::first_bytes(), size_of::<C>())?;
        // SAFETY: the struct has `bytes` bytes, as the caller guarantees, and they fit: the size was checked.
        unsafe { given.cast::<u8>().copy_to_nonoverlapping(config.as_mut_ptr().cast(), bytes) };
    }
    // SAFETY: any bytes are a valid `SizedStruct`: zeros, and the bytes copied over them.
    Ok(unsafe { config.assume_init() })
}

/// Rejects a size that no version of the struct has.
pub fn check_size(what: &str, bytes: usize, first_bytes: usize, known_bytes: usize) -> Result<(), CallFailure> {
    let wrong = if bytes < first_bytes {
        "which is too small"
    } else if bytes > known_bytes {
        "which is more than this library knows"
    } else if bytes > first_bytes && bytes < known_bytes {
        // A third version will add a third size.
        "which no version has"
    } else {
        return Ok(());
    };
    Err(CallFailure::invalid(format!(
        "the size of this {what} is {bytes} bytes, {wrong}; set its field size to sizeof({what}), and use the header that \
         belongs to the library"
    )))
}

impl tp_publisher_config {
    /// Converts to the bus's configuration, on a transport with this usual policy.
    pub fn topic(&self, usual: Policy) -> Result<TopicConfig, CallFailure> {
        const POLICIES: [(u32, Option<Policy>); 4] = [
            (tp_policy::TP_POLICY_USUAL as u32, None),
            (tp_policy::TP_POLICY_OVERWRITE as u32, Some(Policy::Overwrite)),
            (tp_policy::TP_POLICY_FAIL as u32, Some(Policy::Fail)),
            (tp_policy::TP_POLICY_KEEP as u32, Some(Policy::Keep)),
        ];
        let config = TopicConfig::new(find_value("tp_policy", self.policy, &POLICIES)?.unwrap_or(usual));
        Ok(TopicConfig {
            capacity_bytes: nonzero_or(self.capacity_bytes, config.capacity_bytes),
            max_age_ns: Some(self.max_age_ns).filter(|&age| age > 0),
            mode: nonzero_or(self.mode, config.mode),
            ..config
        })
    }
}

impl tp_subscriber_config {
    /// Converts to the start of a subscription.
    ///
    /// # Safety
    /// The token is null, or zero-terminated and unchanged during the call.
    pub unsafe fn start(&self) -> Result<StartPosition, CallFailure> {
        const STARTS: [(u32, tp_start); 4] = [
            (tp_start::TP_START_NOW as u32, tp_start::TP_START_NOW),
            (tp_start::TP_START_OLDEST as u32, tp_start::TP_START_OLDEST),
            (tp_start::TP_START_SEQUENCE as u32, tp_start::TP_START_SEQUENCE),
            (tp_start::TP_START_AFTER as u32, tp_start::TP_START_AFTER),
        ];
        match find_value("tp_start", self.start, &STARTS)? {
            tp_start::TP_START_NOW => Ok(StartPosition::Now),
            tp_start::TP_START_OLDEST => Ok(StartPosition::Oldest),
            tp_start::TP_START_SEQUENCE => Ok(StartPosition::Sequence(self.sequence)),
            tp_start::TP_START_AFTER => {
                // SAFETY: guaranteed by the caller.
                let token = unsafe { text("token", self.token)? };
                if token.is_empty() {
                    return Err(CallFailure::invalid(
                        "the token is empty: nothing was known of the topic when it was given; start with \
                         TP_START_NOW or TP_START_OLDEST",
                    ));
                }
                let read = token.parse().map(StartPosition::After);
                read.map_err(|e: InvalidToken| CallFailure::invalid(e.to_string()))
            }
        }
    }
}

impl tp_queue_config {
    /// Converts to the bus's configuration, on a transport with this usual delivery.
    pub fn queue(&self, usual: DeliveryGuarantee) -> Result<QueueConfig, CallFailure> {
        const DELIVERIES: [(u32, Option<DeliveryGuarantee>); 3] = [
            (tp_delivery::TP_DELIVERY_USUAL as u32, None),
            (tp_delivery::TP_DELIVERY_AT_MOST_ONCE as u32, Some(DeliveryGuarantee::AtMostOnce)),
            (tp_delivery::TP_DELIVERY_AT_LEAST_ONCE as u32, Some(DeliveryGuarantee::AtLeastOnce)),
        ];
        let config = QueueConfig::new(find_value("tp_delivery", self.delivery, &DELIVERIES)?.unwrap_or(usual));
        let foreign = match u8::try_from(self.foreign_kind) {
            Ok(0) => None,
            Ok(kind) if kind >= FIRST_KIND => Some(kind),
            _ => {
                let sentence = format!("the foreign_kind {} is none; use {FIRST_KIND} to 255, or 0", self.foreign_kind);
                return Err(CallFailure::invalid(sentence));
            }
        };
        Ok(QueueConfig {
            capacity_bytes: nonzero_or(self.capacity_bytes, config.capacity_bytes),
            silence_ns: nonzero_or(self.silence_ns, config.silence_ns),
            foreign,
            max_deliveries: NonZeroU32::new(self.most_deliveries),
            mode: nonzero_or(self.mode, config.mode),
            ..config
        })
    }
}

pub fn wait_of(number: u32) -> Result<Wait, CallFailure> {
    const WAITS: [(u32, Wait); 4] = [
        (tp_wait::TP_WAIT_BLOCK as u32, Wait::Block),
        (tp_wait::TP_WAIT_BUSY as u32, Wait::Busy),
        (tp_wait::TP_WAIT_YIELD as u32, Wait::Yield),
        (tp_wait::TP_WAIT_ADAPTIVE as u32, Wait::Adaptive),
    ];
    find_value("tp_wait", number, &WAITS)
}

/// Finds a value by its number in the header.
pub fn find_value<T: Copy>(what: &str, number: u32, all: &[(u32, T)]) -> Result<T, CallFailure> {
    let found = all.iter().find(|(known, _)| *known == number);
    found.map(|&(_, one)| one).ok_or_else(|| {
        let known: Vec<String> = all.iter().map(|(known, _)| known.to_string()).collect();
        let known = known.join(", ");
        CallFailure::invalid(format!("{number} is no {what}; use one of the header's names, which are {known}"))
    })
}

/// Returns the number, or the usual one for zero.
pub fn nonzero_or<N: Default + PartialEq>(given: N, usual: N) -> N {
    if given == N::default() { usual } else { given }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Second version of a struct, with an appended field.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Second {
        size: usize,
        first: u64,
        appended: u64,
    }

    // SAFETY: all fields are numbers, without padding.
    unsafe impl SizedStruct for Second {
        fn c_name() -> &'static str {
            "second"
        }

        fn first_bytes() -> usize {
            16
        }
    }

    fn read_with(size: usize) -> Result<Second, CallFailure> {
        let given = Second { size, first: 7, appended: 9 };
        // SAFETY: the struct begins with a size, and nothing is read unless it has so many bytes.
        unsafe { read_struct(&raw const given) }
    }

    #[test]
    fn an_appended_field_is_zero_for_an_older_caller() {
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
