//! The output of a command that follows a session. A thread of its own writes it, so that heartbeats leave and a lost
//! connection is made again while standard output, or standard error, takes nothing.
//!
//! ```text
//!   session ── polled while there is room, else kept alive ──> 4 chunks ──> thread ──> standard output
//! ```
//! What waits is bounded: a session that is not polled leaves its reports at the OMS.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use anyhow::anyhow;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::print::{is_closed, say};

/// Chunks that wait to be written, at most. One is what a poll of the session brought.
const MOST_WAITING: usize = 4;

/// What is written.
pub enum Chunk {
    /// Lines, to standard output.
    Lines(String),
    /// A sentence, to standard error.
    Sentence(String),
}

/// Where a follower's output goes.
pub struct Outlet {
    chunks: SyncSender<Chunk>,
    /// Chunks that found no room.
    held: VecDeque<Chunk>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Outlet {
    /// Starts the thread that writes.
    pub fn start() -> anyhow::Result<Self> {
        let (chunks, waiting) = sync_channel(MOST_WAITING);
        let thread = std::thread::Builder::new().name("output".to_owned()).spawn(move || write(&waiting))?;
        Ok(Self { chunks, held: VecDeque::new(), thread })
    }

    /// Takes what is to be written, without waiting for it.
    pub fn put(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        self.held.extend(chunks);
        self.has_room();
    }

    /// True once all that was put has found room: before that nothing more should be put.
    pub fn has_room(&mut self) -> bool {
        while let Some(chunk) = self.held.pop_front() {
            match self.chunks.try_send(chunk) {
                // A thread that has ended takes nothing more.
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                Err(TrySendError::Full(chunk)) => {
                    self.held.push_front(chunk);
                    return false;
                }
            }
        }
        true
    }

    /// True once nothing that is put is read any more: standard output is closed, or cannot be written.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished() || !has_reader()
    }

    /// Waits until all is written, and tells why that failed if it did.
    pub fn finish(self) -> anyhow::Result<()> {
        let Self { chunks, held, thread } = self;
        for chunk in held {
            if chunks.send(chunk).is_err() {
                break;
            }
        }
        drop(chunks);
        thread.join().unwrap_or_else(|_| Err(anyhow!("the thread that writes the output has died; call again")))
    }
}

/// False once the reader of standard output has closed it: a pipe shows that before the next line is written.
pub fn has_reader() -> bool {
    let stdout = std::io::stdout();
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    let is_told = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|told| told > 0);
    !(is_told && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Writes until no chunk comes any more, or standard output is closed.
fn write(waiting: &Receiver<Chunk>) -> anyhow::Result<()> {
    for chunk in waiting {
        match chunk {
            Chunk::Lines(text) => say(&text)?,
            // A closed standard error costs no report.
            Chunk::Sentence(text) => drop(writeln!(std::io::stderr(), "{text}")),
        }
        if is_closed() {
            break;
        }
    }
    Ok(())
}
