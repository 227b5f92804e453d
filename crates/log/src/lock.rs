//! Liveness and exclusion: two kernel locks for each byte of a lock file.
//!
//! ```text
//!                            ends with its process,    stays when its process    excludes another copy of this
//!                            despite its forks         closes the file           library in the same process
//!   record lock on byte n    yes                       no                        no
//!   mark of n                may outlive it; the       yes                       yes
//!                            offset names the process
//! ```
//!
//! A POSIX record lock belongs to a process and ends with it. But the kernel sees no conflict inside one process, and
//! drops the lock when the process closes *any* descriptor of the file, as code that copies the folder does, or another
//! copy of this library (Python's module beside libtickpath). A mark is a lock of an open file (`F_OFD_SETLK`), far
//! behind the bytes, at an offset that encodes its process. A mark stays until released, and conflicts with another
//! copy in the process, which opens the file itself. But a forked child shares the mark and may keep it longer than the
//! process lives. A byte is held while a process named by its record lock or its mark lives.
//!
//! The record lock is taken first, so that of several competing processes only one proceeds to mark and to check marks.
//!
//! A table records the bytes held by this copy's own threads, because an open file has no conflict with itself. A
//! forked child starts with a fresh table: a thread of the parent may have held the table's mutex at the fork.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};

use tickpath_clock::ForkGeneration;

use crate::folder::CheckedFolder;
use crate::log_path::WRITER_LOCK;
use crate::process::ProcessIdentity;
use crate::{LogOpenError, LogPath};

/// Device and inode of a file.
pub(crate) type FileId = (u64, u64);

/// Table of the locks that this copy of the library holds in one process.
struct LockTable {
    identity: ProcessIdentity,
    fork_generation: ForkGeneration,
    files: Mutex<HashMap<FileId, LockFile>>,
}

/// A lock file, opened once: closing a second descriptor would drop the process's record locks.
struct LockFile {
    file: File,
    bytes: Vec<u32>,
}

/// Lock on one byte of a lock file, held until dropped.
pub(crate) struct ByteLock {
    table: &'static LockTable,
    pub id: FileId,
    byte: u32,
}

pub(crate) enum TryLock {
    Acquired(ByteLock),
    /// Held by another copy or thread of this process, or by another process; 0 if its id is unknown.
    HeldBy(u32),
}

/// Locks one byte of a file in a log's folder. Creates a missing file with this mode.
pub(crate) fn try_lock(path: &LogPath, file: &str, byte: u32, mode: u32) -> io::Result<TryLock> {
    LockTable::current().try_lock(path, file, byte, mode)
}

/// Takes the lock that excludes a second writer of a log.
pub(crate) fn writer_lock(path: &LogPath, mode: u32) -> Result<ByteLock, LogOpenError> {
    match try_lock(path, WRITER_LOCK, 0, mode) {
        Ok(TryLock::Acquired(lock)) => Ok(lock),
        Ok(TryLock::HeldBy(pid)) => Err(LogOpenError::HasWriter { place: path.clone(), pid }),
        Err(e) => Err(LogOpenError::from_io(path, 0, e)),
    }
}

/// Returns the process that holds a byte of the file, if one does.
pub(crate) fn holder(path: &LogPath, file: &str, byte: u32) -> io::Result<Option<u32>> {
    LockTable::current().holder(path, file, byte)
}

impl LockTable {
    fn current() -> &'static Self {
        static CURRENT: AtomicPtr<LockTable> = AtomicPtr::new(null_mut());
        loop {
            let found = CURRENT.load(Ordering::Acquire);
            // SAFETY: null, or leaked below and never freed. Pairs with the release there.
            if let Some(table) = unsafe { found.as_ref() }.filter(|table| table.is_current()) {
                return table;
            }
            // A parent's table stays allocated, with its open files: the fork's copies of its locks refer to it.
            let made = Box::into_raw(Box::new(Self::new()));
            if CURRENT.compare_exchange(found, made, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                // SAFETY: allocated from a box just above, and never shared.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }

    fn new() -> Self {
        let (identity, fork_generation) = (ProcessIdentity::current(), ForkGeneration::current());
        Self { identity, fork_generation, files: Mutex::default() }
    }

    /// Returns false in a fork, also one made without the C library's knowledge.
    fn is_current(&self) -> bool {
        !self.fork_generation.is_forked() && self.identity.pid == std::process::id()
    }

    fn try_lock(&'static self, path: &LogPath, name: &str, byte: u32, mode: u32) -> io::Result<TryLock> {
        loop {
            let folder = path.open_folder()?;
            let open = || folder.open_or_create(name, mode);
            let tried = self.with_file(&folder, name, open, |id, file| {
                Ok(match file.try_lock(byte, self.identity)? {
                    None => TryLock::Acquired(ByteLock { table: self, id, byte }),
                    Some(pid) => TryLock::HeldBy(pid),
                })
            })?;
            match &tried {
                // The file was removed between open and lock: the lock excludes no process.
                TryLock::Acquired(lock) if file_at(path, name).ok() != Some(lock.id) => continue,
                _ => return Ok(tried),
            }
        }
    }

    fn holder(&self, path: &LogPath, name: &str, byte: u32) -> io::Result<Option<u32>> {
        let ask = |_: FileId, file: &mut LockFile| -> io::Result<Option<u32>> {
            if file.bytes.contains(&byte) {
                return Ok(Some(self.identity.pid));
            }
            match file.record_holder(byte)? {
                Some(pid) => Ok(Some(pid)),
                None => Ok(file.mark_holder(byte, self.identity)?.map(|process| process.pid)),
            }
        };
        let asked = path.open_folder().and_then(|folder| self.with_file(&folder, name, || folder.open_lock(name), ask));
        match asked {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            asked => asked,
        }
    }

    /// Runs `work` on this table's only descriptor of the file; closes it only if the table holds no byte of it.
    fn with_file<T>(
        &self,
        folder: &CheckedFolder,
        name: &str,
        open: impl FnOnce() -> io::Result<File>,
        work: impl FnOnce(FileId, &mut LockFile) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut files = self.files();
        let known = folder.metadata(name).ok().map(|metadata| file_id(&metadata)).filter(|id| files.contains_key(id));
        let id = match known {
            Some(id) => id,
            None => {
                let file = open()?;
                let id = file_id(&file.metadata()?);
                files.insert(id, LockFile { file, bytes: Vec::new() });
                id
            }
        };
        let file = files.get_mut(&id).expect("found or inserted");
        let result = work(id, file);
        if file.bytes.is_empty() {
            files.remove(&id);
        }
        result
    }

    fn files(&self) -> MutexGuard<'_, HashMap<FileId, LockFile>> {
        self.files.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl LockFile {
    /// Takes a byte; returns the process that holds it, if one does.
    fn try_lock(&mut self, byte: u32, us: ProcessIdentity) -> io::Result<Option<u32>> {
        if self.bytes.contains(&byte) {
            return Ok(Some(us.pid));
        }
        if !self.lock(libc::F_SETLK, byte.into())? {
            // 0: the lock was released just now.
            return Ok(Some(self.record_holder(byte)?.unwrap_or(0)));
        }
        match self.place_mark(byte, us) {
            Ok(true) => {}
            // Another copy of this library in this process: the record lock obtained is the process's, so it stays.
            Ok(false) => return Ok(Some(us.pid)),
            Err(e) => {
                self.unlock(byte, us);
                return Err(e);
            }
        }
        // Marked and checked under the record lock, so that its next owner never finds a mark of this attempt.
        match self.mark_holder(byte, us) {
            Ok(None) => {
                self.bytes.push(byte);
                Ok(None)
            }
            other => {
                self.unlock(byte, us);
                other.map(|process| process.map(|process| process.pid))
            }
        }
    }

    /// Marks a byte; returns false if another copy of this library in this process has marked it. Returns true, without
    /// a mark, if only a read lock of another user stands there.
    fn place_mark(&self, byte: u32, us: ProcessIdentity) -> io::Result<bool> {
        if self.lock(libc::F_OFD_SETLK, mark_offset(byte, us))? {
            return Ok(true);
        }
        let mut request = lock_request(libc::F_RDLCK, mark_offset(byte, us), 1);
        fcntl_lock(&self.file, libc::F_OFD_GETLK, &mut request)?;
        Ok(i32::from(request.l_type) == libc::F_UNLCK)
    }

    /// Locks one byte. Returns false if another process, or another open file for marks, holds it.
    fn lock(&self, command: i32, start: i64) -> io::Result<bool> {
        match fcntl_lock(&self.file, command, &mut lock_request(libc::F_WRLCK, start, 1)) {
            Ok(()) => Ok(true),
            Err(e) => match e.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Ok(false),
                // Open for reading only: the file's owner permits no more.
                Some(libc::EBADF) => Err(io::Error::from_raw_os_error(libc::EACCES)),
                // A kernel or file system without locks of open files: the record locks must suffice.
                Some(errno) if command == libc::F_OFD_SETLK && OFD_UNSUPPORTED.contains(&errno) => Ok(true),
                _ => Err(e),
            },
        }
    }

    /// Releases both locks of a byte, the mark first: the record lock's next owner never finds this process's mark.
    fn unlock(&self, byte: u32, us: ProcessIdentity) {
        for (command, start) in [(libc::F_OFD_SETLK, mark_offset(byte, us)), (libc::F_SETLK, byte.into())] {
            let _ = fcntl_lock(&self.file, command, &mut lock_request(libc::F_UNLCK, start, 1));
        }
    }

    /// Returns the process whose record lock is on a byte. The kernel does not report this process's own locks.
    fn record_holder(&self, byte: u32) -> io::Result<Option<u32>> {
        // Asks with a read lock, which a file open for reading only permits.
        let mut request = lock_request(libc::F_RDLCK, byte.into(), 1);
        fcntl_lock(&self.file, libc::F_GETLK, &mut request)?;
        Ok((i32::from(request.l_type) != libc::F_UNLCK).then_some(request.l_pid.max(0) as u32))
    }

    /// Returns a live process that has marked a byte through another open file.
    fn mark_holder(&self, byte: u32, us: ProcessIdentity) -> io::Result<Option<ProcessIdentity>> {
        let first = first_mark_of(byte);
        let mut unseen = vec![(first, first + (1_i64 << ProcessIdentity::BITS))];
        // Bounded, because an untrusted user can create any number of marks.
        for _ in 0..MAX_MARKS {
            let Some((from, to)) = unseen.pop() else { break };
            let mut request = lock_request(libc::F_RDLCK, from, to - from);
            match fcntl_lock(&self.file, libc::F_OFD_GETLK, &mut request) {
                Err(e) if e.raw_os_error().is_some_and(|errno| OFD_UNSUPPORTED.contains(&errno)) => return Ok(None),
                asked => asked?,
            }
            if i32::from(request.l_type) == libc::F_UNLCK {
                continue;
            }
            let start = request.l_start.max(from);
            let process = ProcessIdentity::from_word((start - first) as u64);
            if process.is_alive(us) {
                return Ok(Some(process));
            }
            // The kernel reports one lock at a time, in no order; an untrusted lock may have no end.
            let end = if request.l_len == 0 { to } else { request.l_start.saturating_add(request.l_len) };
            unseen.extend([(from, start), (end, to)].into_iter().filter(|(from, to)| from < to));
        }
        Ok(None)
    }
}

impl Drop for ByteLock {
    fn drop(&mut self) {
        // A fork's copy is not the lock: dropping it would release the parent's mark, which both share.
        if !self.table.is_current() {
            return;
        }
        let mut files = self.table.files();
        let Entry::Occupied(mut entry) = files.entry(self.id) else { return };
        entry.get().unlock(self.byte, self.table.identity);
        entry.get_mut().bytes.retain(|&byte| byte != self.byte);
        if entry.get().bytes.is_empty() {
            entry.remove();
        }
    }
}

/// Max marks of one byte that are checked.
const MAX_MARKS: usize = 1000;
/// Error codes of a kernel or file system without locks of open files.
const OFD_UNSUPPORTED: [i32; 4] = [libc::EINVAL, libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOLCK];
/// Offset of the first mark, behind all lockable bytes.
const FIRST_MARK: i64 = 1 << 62;

/// Returns the first offset for marks of a byte.
fn first_mark_of(byte: u32) -> i64 {
    // One less than there is room for: the marks of the last byte would end beyond the largest offset.
    const BYTES: u32 = (1 << (62 - ProcessIdentity::BITS)) - 1;
    assert!(byte < BYTES, "there are marks for {BYTES} bytes, and {byte} is none of them");
    FIRST_MARK | i64::from(byte) << ProcessIdentity::BITS
}

fn mark_offset(byte: u32, process: ProcessIdentity) -> i64 {
    first_mark_of(byte) | process.word() as i64
}

pub(crate) fn file_id(file: &Metadata) -> FileId {
    (file.dev(), file.ino())
}

/// Returns the id of the file that has this name now.
pub(crate) fn file_at(path: &LogPath, name: &str) -> io::Result<FileId> {
    path.open_folder().and_then(|folder| folder.metadata(name)).map(|metadata| file_id(&metadata))
}

/// Returns true if the name now belongs to another file or to none; false where the check fails.
pub(crate) fn is_replaced(path: &LogPath, name: &str, file: FileId) -> bool {
    match file_at(path, name) {
        Ok(found) => found != file,
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

fn lock_request(kind: i32, start: i64, length: i64) -> libc::flock {
    // SAFETY: a `flock` is plain numbers, for which zero is valid.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = kind as libc::c_short;
    request.l_whence = libc::SEEK_SET as libc::c_short;
    request.l_start = start as libc::off_t;
    request.l_len = length as libc::off_t;
    request
}

fn fcntl_lock(file: &File, command: i32, request: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open and `request` is a valid struct for these commands.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "lock";

    /// A lock file, and two copies of the library in this process: a copy's only state of locks is its table.
    struct LockFixture {
        path: LogPath,
        copies: [&'static LockTable; 2],
        _dir: tempfile::TempDir,
    }

    impl LockFixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let copies = [(); 2].map(|()| &*Box::leak(Box::new(LockTable::new())));
            Self { path: LogPath::folder(dir.path()), copies, _dir: dir }
        }

        fn lock(&self, copy: usize, byte: u32) -> Option<ByteLock> {
            match self.copies[copy].try_lock(&self.path, FILE, byte, 0o600).unwrap() {
                TryLock::Acquired(lock) => Some(lock),
                TryLock::HeldBy(pid) => {
                    assert_eq!(pid, std::process::id());
                    None
                }
            }
        }

        fn holders(&self, byte: u32) -> [Option<u32>; 2] {
            self.copies.map(|copy| copy.holder(&self.path, FILE, byte).unwrap())
        }

        fn open(&self) -> File {
            self.path.open_folder().unwrap().open_or_create(FILE, 0o600).unwrap()
        }

        /// Marks a byte as a process would, through an open file of its own.
        fn marked_by(&self, byte: u32, process: ProcessIdentity) -> File {
            let file = self.open();
            fcntl_lock(&file, libc::F_OFD_SETLK, &mut lock_request(libc::F_WRLCK, mark_offset(byte, process), 1))
                .unwrap();
            file
        }
    }

    /// Returns one of many processes that have ended.
    fn dead(number: u64) -> ProcessIdentity {
        // The largest possible process id.
        ProcessIdentity::from_word(number << 22 | 0x3f_ffff)
    }

    #[test]
    fn threads_of_one_process_exclude_each_other() {
        let scene = LockFixture::new();
        let first = scene.lock(0, 0).expect("nobody else locks");
        assert!(scene.lock(0, 0).is_none());
        let _second = scene.lock(0, 1).expect("another byte is free");
        assert_eq!(scene.holders(0)[0], Some(std::process::id()));
        drop(first);
        assert_eq!(scene.holders(0)[0], None);
        assert!(scene.lock(0, 0).is_some());
    }

    #[test]
    fn two_copies_in_one_process_exclude_each_other() {
        let scene = LockFixture::new();
        for (one, other) in [(0, 1), (1, 0)] {
            let first = scene.lock(one, 5).expect("nobody else locks");
            // Repeatedly: each time the other copy closes the file.
            for _ in 0..3 {
                assert!(scene.lock(other, 5).is_none());
                assert_eq!(scene.holders(5), [Some(std::process::id()); 2]);
            }
            let second = scene.lock(other, 6).expect("another byte is free");
            assert!(scene.lock(one, 6).is_none());
            drop(second);
            assert!(scene.lock(other, 5).is_none() && scene.lock(one, 5).is_none());
            drop(first);
            assert_eq!(scene.holders(5), [None; 2]);
        }
    }

    #[test]
    fn a_mark_holds_a_byte_while_its_process_lives() {
        let scene = LockFixture::new();
        let kept = [2, 0, 1].map(|number| scene.marked_by(3, dead(number)));
        assert_eq!(scene.holders(3), [None; 2]);
        drop(scene.lock(0, 3).expect("its holder is dead"));
        let living = scene.marked_by(3, ProcessIdentity::current());
        assert_eq!(scene.holders(3), [Some(std::process::id()); 2]);
        assert!(scene.lock(0, 3).is_none());
        assert_eq!(scene.holders(2), [None; 2], "a mark is one byte's");
        assert_eq!(scene.holders(4), [None; 2], "a mark is one byte's");
        drop(living);
        assert!(scene.lock(1, 3).is_some());
        drop(kept);
    }

    #[test]
    fn a_strangers_locks_block_no_process_for_ever() {
        let scene = LockFixture::new();
        let file = scene.open();
        for number in 0..2 * MAX_MARKS as u64 {
            let offset = mark_offset(0, dead(number));
            fcntl_lock(&file, libc::F_OFD_SETLK, &mut lock_request(libc::F_WRLCK, offset, 1)).unwrap();
        }
        assert_eq!(scene.holders(0), [None; 2]);
        fcntl_lock(&file, libc::F_OFD_SETLK, &mut lock_request(libc::F_WRLCK, first_mark_of(1), 0)).unwrap();
        assert_eq!(scene.holders(1), [None; 2]);
        assert_eq!(scene.holders(510), [None; 2]);
    }
}
