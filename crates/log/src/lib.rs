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
//! * [`OverflowPolicy`] is the behaviour of a full log: `overwrite`, `fail` or `keep`.
//! * [`Reader::lend`] lends messages of a `keep` log without a copy; their bytes stay in place while they are held.
//! * [`LogPath`] is the location of a log: `shm://name` or `file:///path`.
//! * [`Writer::open_queue`] makes the log a queue, whose messages [`QueuePuller`]s share: each message goes to one puller.
//!
//! `docs/log-format.md` draws the bytes. Memory ordering of the writer is in `append.rs`, the fences of readers that
//! pair with it in `follow.rs`, and the claim of a queue's message in `claim.rs`; those three modules hold the whole
//! protocol and know neither files nor processes.
//!
//! ```
//! use tickpath_log::{Config, Next, Place, Policy, Reader, Registration, Start, Writer};
//! use tickpath_clock::{Clock, HostClock};
//!
//! let clock = HostClock::get()?;
//! let place = Place::shared_memory(&format!("doc-{}", std::process::id()))?;
//! let config = Config::topic(place.clone(), Policy::Overwrite);
//! let mut writer = Writer::open(&config, clock.calibration())?;
//! let mut reader = Reader::open(&place, Start::Now, Registration::Registered)?;
//! writer.publish(clock.ticks(), 16, b"a tick")?;
//! let Next::Message(message) = reader.next()? else { panic!("it was published") };
//! assert_eq!(message.payload, b"a tick");
//! writer.remove()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod region;
mod segments;
mod sync;

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
mod retire;
#[cfg(not(loom))]
mod shared_words;
#[cfg(not(loom))]
mod syncer;
#[cfg(not(loom))]
mod truncation;
#[cfg(not(loom))]
mod wake;
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
#[cfg(not(loom))]
pub use tickpath_clock::ForkGeneration;

pub use progress::LogTail;

#[cfg(not(loom))]
pub use {
    config::{Config, OverflowPolicy, ParseOverflowPolicyError},
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
    warm_up::WarmUpLog,
    writer::Writer,
};
