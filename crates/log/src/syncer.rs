//! Durability, separate from publishing.

use std::fs::File;
use std::io;

use tickpath_clock::Birthplace;

use crate::mapping::Access;
use crate::place::DATA;
use crate::progress::{Firm, Tail};
use crate::{Policy, PublishError, Writer};

/// Handle that makes published messages durable, also from another thread.
pub struct Syncer {
    file: File,
    /// Durable tail; only a growing log records it.
    firm: Option<Firm>,
    born: Birthplace,
}

impl Syncer {
    /// Returns once all messages before `upto`, a former tail of the writer, would survive a loss of power. Fails in a
    /// fork.
    pub fn sync(&mut self, upto: Tail) -> io::Result<()> {
        refuse_fork(self.born)?;
        self.file.sync_data()?;
        self.firm.as_ref().map_or(Ok(()), |firm| firm.note(&self.file, upto))
    }
}

impl Writer {
    /// Returns the end of the log.
    #[inline]
    pub fn tail(&self) -> Tail {
        self.appender().tail()
    }

    /// Returns a handle that waits for the disk while this writer continues.
    pub fn syncer(&self) -> io::Result<Syncer> {
        // A file opened anew, and no duplicated descriptor: the kernel reports a failed write once per opened file, and
        // a call through a duplicate would consume the report.
        match self.appender().segments.growing_file() {
            Some((file, firm)) => Ok(Syncer { file: reopen(file)?, firm: Some(firm.clone()), born: self.born() }),
            None => Ok(Syncer { file: self.open_data()?, firm: None, born: self.born() }),
        }
    }

    /// Returns once all published messages would survive a loss of power. Fails in a fork.
    pub fn sync(&self) -> io::Result<()> {
        refuse_fork(self.born())?;
        if self.policy() != Policy::Keep && self.place().is_shared_memory() {
            return Ok(());
        }
        match self.appender().segments.growing_file() {
            Some((file, firm)) => {
                file.sync_data()?;
                firm.note(file, self.tail())
            }
            // Any descriptor of the file suffices: mapped pages belong to it, too.
            None => self.open_data()?.sync_all(),
        }
    }

    fn open_data(&self) -> io::Result<File> {
        self.place().open_folder()?.open_file(DATA, Access::Read)
    }
}

/// Rejects a fork: it has published nothing, and another thread of its parent may have held the lock of the marks at
/// the fork, so that waiting for the lock would block for ever.
fn refuse_fork(born: Birthplace) -> io::Result<()> {
    if born.is_elsewhere() { Err(io::Error::other(PublishError::Forked)) } else { Ok(()) }
}

/// Opens the same file once more, even if its name is gone or belongs to another file by now.
fn reopen(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::options().read(true).write(true).open(path)
}
