//! Files as memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::guard::TruncationGuard;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A shared mapping of a part of a file; unmapped when dropped.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    access: Access,
    guard: OnceLock<TruncationGuard>,
}

// SAFETY: the mapping is plain memory of the process; it belongs to no thread.
unsafe impl Send for Mapping {}
// SAFETY: the mapping has no state of its own besides the address and a guard that is set once.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` from `offset`, a multiple of the page size: a shorter file is an error here, not a SIGBUS later.
    pub fn new(file: &File, offset: u64, bytes: usize, access: Access) -> io::Result<Self> {
        let have = file.metadata()?.len();
        if offset + bytes as u64 > have {
            let what = format!("the file ends at byte {have}, before byte {}", offset + bytes as u64);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).expect("mmap never gives the zero page");
        Ok(Self { base, bytes, access, guard: OnceLock::new() })
    }

    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Guards the mapping: from here on a truncated file kills no process.
    pub fn guard(&self) -> io::Result<()> {
        if self.guard.get().is_none() {
            // If another thread was faster, this guard is dropped again.
            let _ = self.guard.set(TruncationGuard::new(self.base, self.bytes)?);
        }
        Ok(())
    }

    pub fn guarded(&self) -> Option<&TruncationGuard> {
        self.guard.get()
    }

    /// Faults in all pages now. Best effort: an old kernel faults them in on first use instead.
    pub fn populate(&self) {
        let advice = match self.access {
            Access::Read => libc::MADV_POPULATE_READ,
            Access::Write => libc::MADV_POPULATE_WRITE,
        };
        // SAFETY: the range is exactly this mapping, and populating changes no byte.
        unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, advice) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // First, so that the handler never maps zeros over a later mapping at this address.
        drop(self.guard.take());
        // SAFETY: the range is exactly this mapping, and every user of it holds an owner that keeps it from dropping.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Allocates a range of a file: a full disk or tmpfs is an error here, not a SIGBUS later.
pub(crate) fn allocate(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open; the call touches no memory of this process.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as libc::off_t, bytes as libc::off_t) } == 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => {}
            e => return Err(e),
        }
    }
}
