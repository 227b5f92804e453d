//! A log: a single-writer, many-reader sequence of frames in shared memory or on a disk.
//!
//! ```text
//!             publish                                  next, drain
//!   Writer ───────────> │seg│seg│seg│ <─────────────── Reader … Reader
//!      ▲                   data                          │
//!      └── gate, wake ── control: cursors, sleepers <────┘
//! ```
//!
//! * [`Writer`] publishes stamped frames; a log has exactly one, and a kernel lock shows when its process has died.
//! * [`Reader`] starts at the next message, at the oldest or at a sequence number, and counts lost messages exactly.
//! * [`OverflowPolicy`] is the behaviour of a full log: `overwrite`, `fail` or `keep`; a `keep` log has no
//!   ring: it grows.
//! * [`Reader::lend`] lends messages of a `keep` log without a copy; their bytes stay in place while they are held.
//! * [`LogPath`] is the location of a log: `shm://name` or `file:///path`.
//! * [`Writer::open_queue`] makes the log a queue, whose messages [`QueuePuller`]s share: each message goes to one
//!   puller.
//! * [`LanePair`] is two rings of bytes between processes that do not trust each other; [`Counters`] are words that one
//!   process updates and any other reads.
//!
//! `docs/log-format.md` draws the bytes. `append.rs` (writing), `follow.rs` (reading) and `claim.rs` (queues) hold the
//! protocol and know neither files nor processes, so that a model checker and an interpreter run it.
//!
//! ```
//! use tickpath_clock::{Clock, HostClock};
//! use tickpath_log::{Config, LogPath, Next, OverflowPolicy, Reader, ReaderStart, Registration, Writer};
//!
//! let clock = HostClock::get()?;
//! let path = LogPath::shared_memory(&format!("doc-{}", std::process::id()))?;
//! let config = Config::topic(path.clone(), OverflowPolicy::Overwrite);
//! let mut writer = Writer::open(&config, clock.calibration())?;
//! let mut reader = Reader::open(&path, ReaderStart::Now, Registration::Registered)?;
//! writer.publish(clock.ticks(), 16, b"a tick")?;
//! let Next::Message(message) = reader.next()? else { panic!("it was published") };
//! assert_eq!(message.payload, b"a tick");
//! writer.remove()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//!
//! * A log has one writer, also beside forks and beside another copy of this library in its process (`lock.rs`).
//!   Several producers are several logs.
//! * A frame's commit word is stored last, and the next one is zeroed before it: stale bytes are never a frame.
//! * A message copied from an `overwrite` log counts only after the generation was checked behind a fence.
//! * A lost message is counted and reported, never skipped in silence.
//! * A batch becomes visible at once and never crosses a segment's end. An unfinished batch is dropped, and is no hole.
//! * A reader maps data read-only; cursors and flags lie in a file of their own. A log may name one mandatory reader,
//!   whose cursor outlives its process; an unregistered reader keeps no log alive.
//! * A folder or file of a log belongs to this user or root, and no other user can write to it, except the members of a
//!   named group. The opened descriptor is checked, never a path (`folder.rs`).
//! * Only messages of `keep` logs are lent beyond the reader's next call: no writer, now or later, writes to them
//!   again. A message that a later boot may still cut is copied (`reader/lent.rs`).
//! * A journal that is cut short or has lost a page is refused with the place. The exception is a page that was never
//!   known to be on the disk, after a loss of power: the journal is cut there, and the writer is notified.
//! * Each side of a [`LanePair`] writes its own memory only, and impossible numbers are reported before they are used.
//! * A message of a queue is recycled only when it is done. A killed puller leaves it free, claimed for the next
//!   puller, or done (`docs/design/queue-claims.md`).

#![cfg_attr(loom, allow(dead_code, unused_imports, reason = "models use the protocol, not the files"))]

mod append;
mod claim;
mod control;
mod error;
mod follow;
mod lane_stream;
mod lanes;
mod layout;
mod progress;
mod segments;
mod sync;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(all(test, not(loom)))]
mod heap_tests;
#[cfg(all(loom, test))]
mod loom;

#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod counters;
#[cfg(not(loom))]
mod files;
#[cfg(not(loom))]
mod folder;
#[cfg(not(loom))]
mod guard;
#[cfg(not(loom))]
mod lane_memory;
#[cfg(not(loom))]
mod lock;
#[cfg(not(loom))]
mod log_file;
#[cfg(not(loom))]
mod log_path;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
mod process;
#[cfg(not(loom))]
mod puller;
#[cfg(not(loom))]
mod queue;
#[cfg(not(loom))]
mod reader;
#[cfg(not(loom))]
mod recover;
#[cfg(not(loom))]
mod region;
#[cfg(loom)]
#[path = "loom/region.rs"]
mod region;
#[cfg(not(loom))]
mod retire;
#[cfg(not(loom))]
mod shared_words;
#[cfg(not(loom))]
mod syncer;
#[cfg(not(loom))]
mod truncation;
#[cfg(not(loom))]
mod warm_up;
#[cfg(not(loom))]
mod writer;

pub use claim::{MAX_PULLERS, QueueDelivery};
pub use control::{MAX_READERS, ReaderInfo};
pub use error::{LogBatchError, LogPublishError, LogReadError};
pub use lane_stream::LaneStream;
pub use lanes::{LaneError, LanePair};
pub use layout::{
    FIRST_KIND, FORMAT_VERSION, FRAME_HEADER_BYTES, HEADER_BYTES, LogOwner, MAX_PAYLOAD_BYTES, SEGMENT_HEADER_BYTES,
};
pub use progress::LogTail;

#[cfg(not(loom))]
pub use {
    config::{Config, OverflowPolicy},
    counters::{Counters, CountersReader},
    error::LogOpenError,
    files::{mandatory_reader, owner, writer},
    folder::{UntrustedPath, check_own_folder, open_own_file},
    guard::faults,
    log_file::LogFile,
    log_path::{LogPath, LogPathError},
    process::ProcessId,
    puller::{ClaimedMessage, QueuePuller},
    queue::queue_backlog,
    reader::lent::{LentFrame, NextLent},
    reader::{LogMessage, Next, Reader, ReaderStart, Registration, sleep_until_any},
    recover::DroppedData,
    retire::{force_remove, remove_stale},
    shared_words::SharedWords,
    syncer::Syncer,
    tickpath_clock::ForkGeneration,
    warm_up::WarmUpLog,
    writer::Writer,
};
