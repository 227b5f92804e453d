//! Messages of several files, in the order of their receive times.
//!
//! Each file is read by a thread of its own, which waits while the messages that it has sent are not taken: memory does
//! not grow with the files. Of messages with one time, those of the file that was named first come first.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use tickpath_market::SymbolId;
use tickpath_recordings::{ImportCounts, MarketFile, MarketFileError, MarketMessage};

use crate::RelayError;

/// Messages that a thread sends together.
const BATCH_MESSAGES: usize = 1 << 10;
/// Batches that a thread is ahead.
const BATCHES_AHEAD: usize = 4;

/// Taker of the merged messages.
pub(crate) trait TakeMerged {
    /// Returns the number of an instrument, of which a message follows.
    fn number(&mut self, name: &str) -> SymbolId;

    /// Takes a message with its receive time, in nanoseconds since the Unix epoch.
    fn take(&mut self, utc_ns: u64, message: MarketMessage) -> Result<(), RelayError>;
}

/// Reads files to their ends, and returns the counts of each.
pub(crate) fn merge(files: Vec<MarketFile>, taker: &mut impl TakeMerged) -> Result<Vec<ImportCounts>, RelayError> {
    thread::scope(|scope| {
        let begin = |file: MarketFile| {
            let (sender, batches) = sync_channel(BATCHES_AHEAD);
            let thread = scope.spawn(move || send_batches(file, &sender));
            FileStream {
                batches,
                thread: Some(thread),
                messages: Vec::new().into_iter(),
                numbers: Vec::new(),
                counts: None,
            }
        };
        let mut streams: Vec<FileStream<'_>> = files.into_iter().map(begin).collect();
        let mut next = Vec::new();
        for stream in &mut streams {
            next.push(stream.next(taker)?);
        }
        while let Some((first, mut utc_ns, mut message)) = earliest(&next) {
            next[first] = None;
            // Another file is looked at again only when its next message is the earliest.
            let limit = earliest(&next).map_or((u64::MAX, usize::MAX), |(other, other_ns, _)| (other_ns, other));
            loop {
                taker.take(utc_ns, message)?;
                match streams[first].next(taker)? {
                    Some((following_ns, following)) if (following_ns, first) < limit => {
                        (utc_ns, message) = (following_ns, following);
                    }
                    following => {
                        next[first] = following;
                        break;
                    }
                }
            }
        }
        Ok(streams.into_iter().filter_map(|stream| stream.counts).collect())
    })
}

/// Returns the file whose next message has the earliest time, with that message.
fn earliest(next: &[Option<(u64, MarketMessage)>]) -> Option<(usize, u64, MarketMessage)> {
    let pending =
        next.iter().enumerate().filter_map(|(file, pending)| pending.map(|(ns, message)| (file, ns, message)));
    pending.min_by_key(|&(file, utc_ns, _)| (utc_ns, file))
}

/// Messages of a file in its order, and the names that they are the first to have.
#[derive(Default)]
struct MessageBatch {
    messages: Vec<(u64, MarketMessage)>,
    names: Vec<String>,
}

/// Receiving end of a file's thread.
struct FileStream<'scope> {
    batches: Receiver<MessageBatch>,
    /// The thread that reads the file, until it has ended.
    thread: Option<ScopedJoinHandle<'scope, Result<ImportCounts, MarketFileError>>>,
    messages: std::vec::IntoIter<(u64, MarketMessage)>,
    /// Numbers in the recording of the file's instruments.
    numbers: Vec<SymbolId>,
    /// Counts of the file, once it has ended.
    counts: Option<ImportCounts>,
}

impl FileStream<'_> {
    /// Returns the next message of the file, with its instrument's number in the recording.
    fn next(&mut self, taker: &mut impl TakeMerged) -> Result<Option<(u64, MarketMessage)>, RelayError> {
        loop {
            if let Some((utc_ns, mut message)) = self.messages.next() {
                message.set_symbol(self.numbers[message.symbol().0 as usize]);
                return Ok(Some((utc_ns, message)));
            }
            let Ok(batch) = self.batches.recv() else {
                self.join()?;
                return Ok(None);
            };
            self.numbers.extend(batch.names.iter().map(|name| taker.number(name)));
            self.messages = batch.messages.into_iter();
        }
    }

    /// Takes the result of the thread, which has ended.
    fn join(&mut self) -> Result<(), RelayError> {
        if let Some(thread) = self.thread.take() {
            let read = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.counts = Some(read?);
        }
        Ok(())
    }
}

/// Reads a file, and sends its messages until nothing takes them any more.
fn send_batches(file: MarketFile, sender: &SyncSender<MessageBatch>) -> Result<ImportCounts, MarketFileError> {
    let (mut batch, mut known) = (MessageBatch::default(), 0);
    let counts = file.read(&mut |utc_ns, name, message| {
        if message.symbol().0 == known {
            batch.names.push(name.to_owned());
            known += 1;
        }
        batch.messages.push((utc_ns, message));
        if batch.messages.len() < BATCH_MESSAGES {
            return ControlFlow::Continue(());
        }
        match sender.send(std::mem::take(&mut batch)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    // Nothing takes the rest if the import has failed, which is reported there.
    let _ = sender.send(batch);
    Ok(counts)
}
