//! Waiting for the disk, apart from writing.

use std::fs::File;
use std::io;

use tickpath_clock::Birthplace;

use crate::mapping::Access;
use crate::place::DATA;
use crate::progress::{Firm, Tail};
use crate::{Policy, PublishError, Writer};

/// Makes what was published durable, in a thread of its own if need be.
pub struct Syncer {
    file: File,
    /// Only a log that grows tells how far it is on the disk.
    firm: Option<Firm>,
    born: Birthplace,
}

impl Syncer {
    /// Returns when all before `upto`, a tail that the writer has had, would survive a loss of power. Refused in a fork.
    pub fn sync(&mut self, upto: Tail) -> io::Result<()> {
        refuse_fork(self.born)?;
        self.file.sync_data()?;
        self.firm.as_ref().map_or(Ok(()), |firm| firm.note(&self.file, upto))
    }
}

impl Writer {
    /// Where the log ends.
    #[inline]
    pub fn tail(&self) -> Tail {
        self.appender().tail()
    }

    /// Who waits for the disk while this writer goes on.
    pub fn syncer(&self) -> io::Result<Syncer> {
        // A file of its own, and no copy of a descriptor: the kernel tells each opened file once that a write failed, and
        // whoever asks through a copy would take that word from the other.
        match self.appender().segments.growing_file() {
            Some((file, firm)) => Ok(Syncer { file: reopen(file)?, firm: Some(firm.clone()), born: self.born() }),
            None => Ok(Syncer { file: self.open_data()?, firm: None, born: self.born() }),
        }
    }

    /// Returns when all that was published would survive a loss of power. Refused in a fork.
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
            // Any descriptor of the file does: mapped pages belong to it, too.
            None => self.open_data()?.sync_all(),
        }
    }

    fn open_data(&self) -> io::Result<File> {
        self.place().open_folder()?.open_file(DATA, Access::Read)
    }
}

/// A fork has nothing published, and another thread of its parent may have had the marks in hand as it was forked: who waits
/// for them there waits for ever.
fn refuse_fork(born: Birthplace) -> io::Result<()> {
    if born.is_elsewhere() { Err(io::Error::other(PublishError::Forked)) } else { Ok(()) }
}

/// Opens the same file once more, also if its name is gone or somebody else's by now.
fn reopen(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::options().read(true).write(true).open(path)
}
