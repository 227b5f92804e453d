//! The C library: the bus as functions and opaque handles. `include/tickpath.h` is made of it.
//!
//! ```text
//!   tp_connect(url) ──> tp_bus ── tp_publisher_open ──> tp_publisher ── publish, publish_batch
//!                          ├───── tp_subscriber_open ─> tp_subscriber ─ poll ─> tp_event
//!                          ├───── tp_pusher_open ─────> tp_pusher ───── push, push_batch
//!                          └───── tp_puller_open ─────> tp_puller ───── pull ─> tp_pulled
//! ```
//! Each of these is a `Handle`. What C hands over goes through `argument` and `config`, what went wrong
//! through `status`; the rest hands on to the bus. Names are C's, and the sentences over them are the header's.
#![allow(
    non_camel_case_types,
    clippy::enum_variant_names,
    clippy::missing_safety_doc,
    reason = "names are those of the header, whose head says once what holds for every pointer"
)]

mod argument;
mod config;
mod handle;
mod status;

// The header has their functions in this order.
mod bus;

mod topic;

mod queue;

mod clock;

pub use argument::{tp_fate, tp_slice};
pub use bus::{tp_bus, tp_bus_close, tp_bus_remove, tp_bus_remove_queue, tp_bus_waiting, tp_connect};
pub use clock::{tp_now, tp_now_ns, tp_ns_between, tp_utc_ns};
pub use config::{
    tp_delivery, tp_policy, tp_publisher_config, tp_queue_config, tp_start, tp_subscriber_config, tp_wait,
};
pub use queue::{
    tp_on_pulled, tp_pulled, tp_puller, tp_puller_acknowledge, tp_puller_close, tp_puller_give_back, tp_puller_open,
    tp_puller_pull, tp_puller_wait, tp_pusher, tp_pusher_close, tp_pusher_open, tp_pusher_push, tp_pusher_push_batch,
    tp_pusher_resend,
};
pub use status::{tp_last_error, tp_status};
pub use topic::{
    TP_NO_SEQUENCE, TP_NOW, TP_TOKEN_BYTES, tp_event, tp_event_type, tp_on_event, tp_publisher, tp_publisher_close,
    tp_publisher_idle, tp_publisher_open, tp_publisher_publish, tp_publisher_publish_batch, tp_publisher_resend,
    tp_subscriber, tp_subscriber_close, tp_subscriber_open, tp_subscriber_poll, tp_subscriber_publisher,
    tp_subscriber_token, tp_subscriber_wait,
};

/// The version of this interface. It grows when something is appended; what was there stays as it is.
pub const TP_ABI_VERSION: u32 = 1;

/// The version of the library's interface: a program that was built with this header needs `TP_ABI_VERSION` or more.
#[unsafe(no_mangle)]
pub extern "C" fn tp_abi_version() -> u32 {
    TP_ABI_VERSION
}

/// A handle may move to another thread.
const _: () = {
    const fn moves<T: Send>() {}
    moves::<tp_bus>();
    moves::<tp_publisher>();
    moves::<tp_subscriber>();
    moves::<tp_pusher>();
    moves::<tp_puller>();
};
