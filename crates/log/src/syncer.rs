//! Durability, separate from publishing.

use std::fs::File;
use std::io;

use tickpath_clock::ForkGeneration;

use crate::log_path::DATA;
use crate::mapping::Access;
use crate::progress::{DurableTail, LogTail};
use crate::{LogPublishError, OverflowPolicy, Writer};

/// Handle that makes published messages durable, also from another thread.
pub struct Syncer {
    file: File,
    /// Durable tail; only a `keep` log records it.
    durable: Option<DurableTail>,
    fork_generation: ForkGeneration,
}

impl Syncer {
    /// Returns once all messages before `upto`, a former tail, would survive a loss of power. Fails in a fork.
    pub fn sync(&mut self, upto: LogTail) -> io::Result<()> {
        refuse_fork(self.fork_generation)?;
        self.file.sync_data()?;
        self.durable.as_ref().map_or(Ok(()), |durable| durable.record(&self.file, upto))
    }
}

impl Writer {
    /// Returns the end of the log.
    #[inline]
    pub fn tail(&self) -> LogTail {
        self.appender.tail()
    }

    /// Returns a handle that waits for the disk while this writer continues.
    pub fn syncer(&self) -> io::Result<Syncer> {
        // A file opened anew, and no duplicated descriptor: the kernel reports a failed write once per opened file, and
        // a call through a duplicate would consume the report.
        let (file, durable) = match self.appender.segments.growing_file() {
            Some((file, durable)) => (reopen(file)?, Some(durable.clone())),
            None => (self.path().open_file(DATA, Access::Read)?, None),
        };
        Ok(Syncer { file, durable, fork_generation: self.fork_generation })
    }

    /// Returns once all published messages would survive a loss of power. Fails in a fork.
    pub fn sync(&self) -> io::Result<()> {
        refuse_fork(self.fork_generation)?;
        if self.policy() != OverflowPolicy::Keep && self.path().is_shared_memory() {
            return Ok(());
        }
        match self.appender.segments.growing_file() {
            Some((file, durable)) => {
                file.sync_data()?;
                durable.record(file, self.tail())
            }
            // Any descriptor of the file suffices: mapped pages belong to it, too.
            None => self.path().open_file(DATA, Access::Read)?.sync_all(),
        }
    }
}

/// Rejects a fork: a thread of its parent may have held the lock of the marks, which the fork would wait for for ever.
fn refuse_fork(opened: ForkGeneration) -> io::Result<()> {
    if opened.is_forked() { Err(io::Error::other(LogPublishError::Forked)) } else { Ok(()) }
}

/// Opens the same file once more, even if its name is gone or belongs to another file by now.
fn reopen(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::options().read(true).write(true).open(path)
}
