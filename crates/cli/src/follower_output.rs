//! The output of a command that follows a session. A thread of its own writes it, so that heartbeats are sent and a
//! lost connection is restored while standard output or standard error is blocked.
//!
//! ```text
//!   session ── polled while there is room, else kept alive ──> 4 chunks ──> thread ──> standard output
//! ```
//! The queue is bounded: while it is full the session is not polled, and its reports stay at the OMS.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use anyhow::anyhow;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use tickpath_cli_terminal::print::{is_closed, print_text};

/// Max chunks that wait to be written. One chunk holds the output of one poll of the session.
const MAX_WAITING_CHUNKS: usize = 4;

pub enum OutputChunk {
    /// Lines for standard output.
    Lines(String),
    /// A sentence for standard error.
    Sentence(String),
}

pub struct FollowerOutput {
    chunks: SyncSender<OutputChunk>,
    /// Chunks that the full channel did not accept.
    overflow: VecDeque<OutputChunk>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl FollowerOutput {
    pub fn start() -> anyhow::Result<Self> {
        let (chunks, waiting) = sync_channel(MAX_WAITING_CHUNKS);
        let thread = std::thread::Builder::new().name("output".to_owned()).spawn(move || write(&waiting))?;
        Ok(Self { chunks, overflow: VecDeque::new(), thread })
    }

    /// Queues chunks for writing, without waiting.
    pub fn queue(&mut self, chunks: impl IntoIterator<Item = OutputChunk>) {
        self.overflow.extend(chunks);
        self.has_room();
    }

    /// Returns true once all queued chunks are in the channel: before that the caller should queue no more.
    pub fn has_room(&mut self) -> bool {
        while let Some(chunk) = self.overflow.pop_front() {
            match self.chunks.try_send(chunk) {
                // A thread that has ended receives nothing more.
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                Err(TrySendError::Full(chunk)) => {
                    self.overflow.push_front(chunk);
                    return false;
                }
            }
        }
        true
    }

    /// Returns true once the output has no reader any more: standard output is closed, or cannot be written.
    pub fn is_closed(&self) -> bool {
        self.thread.is_finished() || !has_reader()
    }

    /// Waits until all is written. Returns the error if writing failed.
    pub fn finish(self) -> anyhow::Result<()> {
        let Self { chunks, overflow, thread } = self;
        // A thread that has ended receives nothing more, and returns its error.
        let _ = overflow.into_iter().try_for_each(|chunk| chunks.send(chunk));
        drop(chunks);
        thread.join().unwrap_or_else(|_| Err(anyhow!("the thread that writes the output has died; call again")))
    }
}

/// Returns false once the reader of standard output has closed it: a pipe shows that before the next line is written.
pub fn has_reader() -> bool {
    let stdout = std::io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let has_events = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0);
    !(has_events && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Writes until the channel is closed, or standard output is closed.
fn write(waiting: &Receiver<OutputChunk>) -> anyhow::Result<()> {
    for chunk in waiting {
        match chunk {
            OutputChunk::Lines(text) => print_text(&text)?,
            // A closed standard error must not stop the reports.
            OutputChunk::Sentence(text) => drop(writeln!(std::io::stderr(), "{text}")),
        }
        if is_closed() {
            break;
        }
    }
    Ok(())
}
