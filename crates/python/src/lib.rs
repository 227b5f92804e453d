//! The package's native module, `tickpath._native`: the bus and a session with an OMS as Python objects. The Python
//! part of the package is in `python/tickpath`, the types are in `_native.pyi`.
//!
//! ```text
//!   connect(url) ──> Bus ──publisher──> Publisher ── publish, publish_batch
//!                     ├───subscribe─> Subscriber ─ for, poll, poll_into ─> TopOfBook | Trade | BookLevel | … | Gap
//!                     │                          └── lend ────────────────> Frame, a message in place | Gap
//!                     ├───subscribe──> MultiSubscriber ── for, poll ───────> (topic, event) of several Subscribers
//!                     ├───pusher ────> Pusher ───── push, push_batch
//!                     └───puller ────> Puller ───── for, pull, acknowledge ─> Pulled
//!   orders(url, user, …) ──> Orders ─ submit, cancel, replace; for, poll ─> Report | ReportDetail | … | Notice
//!   trade(strategy, …) ── the loop of tickpath.run, between a Subscriber and Orders
//!   bridge(url, url) ──> Bridge ───── wait, told, totals ─> Carried
//!   lab.hop(name) ──> Hop ── with, since, between ──> lab.hops(): a result file
//!   OrderBook(symbol) ── apply(event) ──> is_valid, best, bids, asks
//!   recording(url, topic) ──> Recording ── tops_of_book, trades, book_levels, … ──┬─> Table ── __arrow_c_stream__
//!   journal(folder) ────────> Journal ──── requests, reports, denials ────────────┤
//!   blotter(folder) ────────> Blotter ──── orders, fills, positions ──────────────┘
//! ```
//! A bus, the objects opened from it, and `Orders` are each an `ObjectHandle`: it has one user at a time, can be
//! closed, and cannot be used after a fork. A `Bridge` has a thread of its own that never touches Python, and threads
//! may share it. A `PyTable` opens its log for each read. A `PyHop` is not opened: threads share it, and a fork starts
//! with samples of its own. For a task of an event loop a thread waits (`LoopNotifier`).
//!
//! The tests are Python (`python/tests`), run by `scripts/pytest` against the module that Cargo has built. `make book`
//! makes the package's reference page from the stub.
//!
//! # Invariants
//!
//! * This crate has no unchecked code: arrays are filled through a `memoryview`, lent bytes go through the crate
//!   `pyo3_bytes`, and Python's own hook detects a fork.
//! * A view of a lent message holds its bytes itself. The refusal of `close()` informs the user, and no view's safety
//!   depends on it.
//! * A call that may take time releases the interpreter, and checks signals at least every tenth of a second.

mod arguments;
mod blotter;
mod book;
mod book_event;
mod bridge;
mod buffered_event;
mod bus;
mod clock;
mod column;
mod error;
mod event;
mod frame;
mod handle;
mod hop;
mod journal;
mod multi;
mod notifier;
mod order_arguments;
mod order_book;
mod orders;
mod payload;
mod queue;
mod record;
mod recording;
mod report;
mod strategy;
mod subscription;
mod table;
mod text_ids;
mod topic;
mod trigger;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::{
        blotter::{Blotter, open_blotter},
        book_event::{PyBookLevel, PyFeedStatus},
        bridge::{Bridge, PyCarried, start_bridge},
        bus::{PyBus, connect},
        clock::{now, ns_between, stamp_at, utc_ns},
        event::{PyForeign, PyGap, PyMessage, PyTopOfBook, PyTrade},
        frame::PyMessageFrame,
        hop::PyHop,
        journal::{PyJournal, open_journal},
        multi::MultiSubscriber,
        order_book::PyOrderBook,
        orders::{PyOrders, open_orders},
        queue::{PyPulled, PyPuller, PyPusher},
        recording::{PyRecording, open_recording},
        report::{InDoubt, NotTaken, PyDenial, PyNotice, PyReport, PyReportDetail},
        strategy::trade,
        table::PyTable,
        topic::{PyPublisher, PySubscriber},
        trigger::{PyTrigger, when},
    };

    /// Registers the wait for unfinished drops at the end of the program.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let at_exit = wrap_pyfunction!(super::handle::await_closings, module)?;
        module.py().import("atexit")?.call_method1("register", (at_exit,)).map(drop)
    }
}
