//! The C library: the bus, and sessions with an OMS, as functions and opaque handles. `include/tickpath.h` is made of
//! it.
//!
//! ```text
//!   tp_connect(url) ──> tp_bus ── tp_publisher_open ──> tp_publisher ── publish, publish_batch
//!                          ├───── tp_subscriber_open ─> tp_subscriber ─ poll ─> tp_event
//!                          ├───── tp_pusher_open ─────> tp_pusher ───── push, push_batch
//!                          └───── tp_puller_open ─────> tp_puller ───── pull ─> tp_pulled
//!
//!   tp_book_new(symbol) ──────────────────────────────> tp_book ─────── apply, status; is_valid, best, levels
//!   tp_orders_open(config) ───────────────────────────> tp_orders ───── submit, cancel, replace; poll ─> tp_order_event
//! ```
//! Each of these is a handle (`handle.rs`), which lets no panic pass into C and refuses use after a fork. C's arguments
//! go through `argument`, `config` and `request`, and errors through `status`; the other modules call the bus and the
//! client of an OMS, whose events `report` converts for C. Names follow C's conventions, and their doc comments are
//! those of the header. The header is made by cbindgen and committed; a test makes it again. The tests are C and C++
//! programs.
//!
//! # Invariants
//!
//! * A number in the header never changes. A struct begins with its size, and only grows at its end.
//! * Over `shm://`, once warm, publishing, polling and pulling add no allocation and no lock, unless they fail.
#![allow(
    non_camel_case_types,
    clippy::enum_variant_names,
    clippy::missing_safety_doc,
    reason = "names are those of the header, whose head says once what holds for every pointer"
)]

mod argument;
mod config;
mod event_array;
mod handle;
mod report;
mod request;
mod status;
mod tick;

// Their functions appear in the header in this order.
mod bus;

mod topic;

mod queue;

mod clock;

mod orders;

mod book;

pub use argument::{tp_fate, tp_slice};
pub use book::{
    tp_book, tp_book_apply, tp_book_best, tp_book_free, tp_book_is_valid, tp_book_levels, tp_book_lost_messages,
    tp_book_new, tp_book_status, tp_book_validity, tp_depth_level,
};
pub use bus::{tp_bus, tp_bus_close, tp_bus_remove, tp_bus_remove_queue, tp_bus_waiting, tp_connect};
pub use clock::{tp_now, tp_now_ns, tp_ns_between, tp_utc_ns};
pub use config::{
    tp_delivery, tp_policy, tp_publisher_config, tp_queue_config, tp_start, tp_subscriber_config, tp_wait,
};
pub use orders::{
    tp_orders, tp_orders_cancel, tp_orders_close, tp_orders_config, tp_orders_open, tp_orders_poll, tp_orders_replace,
    tp_orders_submit, tp_orders_wait, tp_since,
};
pub use queue::{
    tp_on_pulled, tp_pulled, tp_puller, tp_puller_acknowledge, tp_puller_close, tp_puller_give_back, tp_puller_open,
    tp_puller_pull, tp_puller_wait, tp_pusher, tp_pusher_close, tp_pusher_open, tp_pusher_push, tp_pusher_push_batch,
    tp_pusher_resend,
};
pub use report::{
    tp_exec_type, tp_int128, tp_liquidity, tp_order_event, tp_order_event_type, tp_order_status, tp_request,
};
pub use request::{
    tp_cancel_order, tp_new_order, tp_order_instructions, tp_order_type, tp_position_effect, tp_replace_order,
    tp_self_trade_mode, tp_side, tp_time_in_force, tp_trade_mode,
};
pub use status::{tp_last_error, tp_status};
pub use tick::{
    TP_ALL_SYMBOLS, TP_BOOK_LAST, TP_BOOK_SNAPSHOT, TP_KIND_BOOK_LEVEL, TP_KIND_FEED_STATUS, TP_KIND_TOP_OF_BOOK,
    TP_KIND_TRADE, TP_SCALE, tp_book_level, tp_feed_condition, tp_feed_status, tp_top_of_book, tp_trade,
};
pub use topic::{
    TP_NO_SEQUENCE, TP_NOW, TP_TOKEN_BYTES, tp_event, tp_event_type, tp_on_event, tp_publisher, tp_publisher_close,
    tp_publisher_idle, tp_publisher_open, tp_publisher_publish, tp_publisher_publish_batch, tp_publisher_resend,
    tp_subscriber, tp_subscriber_close, tp_subscriber_open, tp_subscriber_poll, tp_subscriber_publisher,
    tp_subscriber_token, tp_subscriber_wait,
};

/// Version of the interface that this header describes. It grows when something is appended; existing items stay
/// unchanged.
pub const TP_ABI_VERSION: u32 = 3;

/// Returns the version of the loaded library's interface. A program that was built with this header needs
/// TP_ABI_VERSION or higher.
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
    moves::<tp_orders>();
    moves::<tp_book>();
};
