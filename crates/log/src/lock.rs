//! Who is alive, and who has what: two locks of the kernel for each byte of a lock file.
//!
//! ```text
//!                            ends with its process,    stays when somebody there     keeps out another copy
//!                            whoever it has forked     closes the file               of this library there
//!   record lock on byte n    yes                       no                            no
//!   mark of n                no, but names it          yes                           yes
//! ```
//!
//! A POSIX record lock belongs to a process, and is gone when that has died. But in one process the kernel sees no conflict,
//! and the lock is lost when the process closes *any* descriptor of the file, as who copies the folder does, or another copy
//! of this library (Python's module beside libtickpath). A mark is a lock of an opened file (`F_OFD_SETLK`), far behind the
//! bytes, at a place that names its process. It stays until it is given back, and another copy in the process, which opens
//! the file for itself, runs into it. But whoever was forked shares it, and may keep it for longer than the process lives.
//! So a byte is held by whom a record lock names, and by whom a mark names, as long as that process lives.
//!
//! The record lock is taken first, so that of processes that come at once only one goes on to mark and to look.
//!
//! What this copy's own threads hold is written down in a table, for an opened file has no conflict with itself. A table
//! belongs to a process. A fork begins with one of its own, and never looks into its parent's: another thread may have had
//! that in hand, and stayed behind.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};

use tickpath_clock::Birthplace;

use crate::Place;
use crate::folder::Folder;
use crate::who::Who;

/// Device and inode of a file.
pub(crate) type FileId = (u64, u64);

/// What this copy of the library holds in one process.
struct Table {
    who: Who,
    born: Birthplace,
    files: Mutex<HashMap<FileId, LockFile>>,
}

/// A lock file, opened once: by closing it a second time the process would lose its record locks.
struct LockFile {
    file: File,
    bytes: Vec<u32>,
}

/// One byte of a lock file, ours until dropped.
pub(crate) struct ByteLock {
    table: &'static Table,
    id: FileId,
    byte: u32,
}

/// What came of trying to lock.
#[derive(Debug)]
pub(crate) enum TryLock {
    Ours(ByteLock),
    /// Held by this process or, with a process id, by another.
    Taken(u32),
}

/// Locks one byte of a file in a log's folder. The file is made with this mode if it is not there.
pub(crate) fn try_lock(place: &Place, file: &str, byte: u32, mode: u32) -> io::Result<TryLock> {
    Table::here().try_lock(place, file, byte, mode)
}

/// The process that holds a byte of the file, if one does.
pub(crate) fn holder(place: &Place, file: &str, byte: u32) -> io::Result<Option<u32>> {
    Table::here().holder(place, file, byte)
}

impl Table {
    /// That of this process.
    fn here() -> &'static Self {
        static HERE: AtomicPtr<Table> = AtomicPtr::new(null_mut());
        loop {
            let found = HERE.load(Ordering::Acquire);
            // SAFETY: it is null, or what was leaked below: nobody frees it. Pairs with the release there.
            if let Some(table) = unsafe { found.as_ref() }.filter(|table| table.is_here()) {
                return table;
            }
            // A parent's stays where it is, with what it has opened: the copies of its locks refer to it.
            let made = Box::into_raw(Box::new(Self::new()));
            if HERE.compare_exchange(found, made, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                // SAFETY: it came from a box just now, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }

    fn new() -> Self {
        Self { who: Who::here(), born: Birthplace::here(), files: Mutex::default() }
    }

    /// False in a fork, also in one of which the C library does not know.
    fn is_here(&self) -> bool {
        !self.born.is_elsewhere() && self.who.pid == std::process::id()
    }

    fn try_lock(&'static self, place: &Place, name: &str, byte: u32, mode: u32) -> io::Result<TryLock> {
        loop {
            let folder = place.open_folder()?;
            let open = || folder.open_or_make(name, mode);
            let tried = self.with_file(&folder, name, open, |id, file| {
                Ok(match file.try_lock(byte, self.who)? {
                    None => TryLock::Ours(ByteLock { table: self, id, byte }),
                    Some(pid) => TryLock::Taken(pid),
                })
            })?;
            match &tried {
                // Somebody removed the file between our opening and locking it: that lock excludes nobody.
                TryLock::Ours(lock) if file_at(place, name).ok() != Some(lock.id) => continue,
                _ => return Ok(tried),
            }
        }
    }

    fn holder(&self, place: &Place, name: &str, byte: u32) -> io::Result<Option<u32>> {
        let ask = |_: FileId, file: &mut LockFile| -> io::Result<Option<u32>> {
            if file.bytes.contains(&byte) {
                return Ok(Some(self.who.pid));
            }
            match file.recorded(byte)? {
                Some(pid) => Ok(Some(pid)),
                None => Ok(file.marked(byte, self.who)?.map(|who| who.pid)),
            }
        };
        let asked =
            place.open_folder().and_then(|folder| self.with_file(&folder, name, || folder.open_lock(name), ask));
        match asked {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            asked => asked,
        }
    }

    /// Runs `work` on this table's one descriptor of the file; closes it only if no byte of it is ours.
    fn with_file<T>(
        &self,
        folder: &Folder,
        name: &str,
        open: impl FnOnce() -> io::Result<File>,
        work: impl FnOnce(FileId, &mut LockFile) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut files = self.files();
        let known = folder.look(name).ok().map(|there| file_id(&there)).filter(|id| files.contains_key(id));
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
    /// Takes a byte; gives the process that has it, if one does.
    fn try_lock(&mut self, byte: u32, us: Who) -> io::Result<Option<u32>> {
        if self.bytes.contains(&byte) {
            return Ok(Some(us.pid));
        }
        if !self.lock(libc::F_SETLK, byte.into())? {
            // None: it was given back just now.
            return Ok(Some(self.recorded(byte)?.unwrap_or(0)));
        }
        match self.mark(byte, us) {
            Ok(true) => {}
            // Another copy of this library in this process: the record lock that we got is its own, and stays.
            Ok(false) => return Ok(Some(us.pid)),
            Err(e) => {
                self.unlock(byte, us);
                return Err(e);
            }
        }
        // In this order, so that nobody who gets the record lock still finds our mark.
        match self.marked(byte, us) {
            Ok(None) => {
                self.bytes.push(byte);
                Ok(None)
            }
            other => {
                self.unlock(byte, us);
                other.map(|who| who.map(|who| who.pid))
            }
        }
    }

    /// Marks a byte. False if another copy of this library in this process has; a read lock there is a stranger's, who keeps us
    /// from marking it, and from nothing else.
    fn mark(&self, byte: u32, us: Who) -> io::Result<bool> {
        if self.lock(libc::F_OFD_SETLK, mark(byte, us))? {
            return Ok(true);
        }
        let mut request = range(libc::F_RDLCK, mark(byte, us), 1);
        control(&self.file, libc::F_OFD_GETLK, &mut request)?;
        Ok(i32::from(request.l_type) == libc::F_UNLCK)
    }

    /// Locks one byte. False if somebody else has it.
    fn lock(&self, command: i32, start: i64) -> io::Result<bool> {
        match control(&self.file, command, &mut range(libc::F_WRLCK, start, 1)) {
            Ok(()) => Ok(true),
            Err(e) => match e.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Ok(false),
                // Open for reading only: its owner lets us no further.
                Some(libc::EBADF) => Err(io::Error::from_raw_os_error(libc::EACCES)),
                // A kernel, or a file system, that knows no locks of opened files. The record locks have to do.
                Some(errno) if command == libc::F_OFD_SETLK && NO_MARKS.contains(&errno) => Ok(true),
                _ => Err(e),
            },
        }
    }

    /// Gives back both locks of a byte. In this order, so that nobody who gets the record lock still finds our mark.
    fn unlock(&self, byte: u32, us: Who) {
        for (command, start) in [(libc::F_OFD_SETLK, mark(byte, us)), (libc::F_SETLK, byte.into())] {
            let _ = control(&self.file, command, &mut range(libc::F_UNLCK, start, 1));
        }
    }

    /// The process whose record lock is on a byte. The kernel does not tell of our own.
    fn recorded(&self, byte: u32) -> io::Result<Option<u32>> {
        // A read lock is asked after, so that a file we may only read can be asked about too.
        let mut request = range(libc::F_RDLCK, byte.into(), 1);
        control(&self.file, libc::F_GETLK, &mut request)?;
        Ok((i32::from(request.l_type) != libc::F_UNLCK).then_some(request.l_pid.max(0) as u32))
    }

    /// A process that has marked a byte, through another opened file, and lives.
    fn marked(&self, byte: u32, us: Who) -> io::Result<Option<Who>> {
        let first = marks(byte);
        let mut unseen = vec![(first, first + (1_i64 << Who::BITS))];
        // A stranger can make more of them than anybody has children.
        for _ in 0..MOST_MARKS {
            let Some((from, to)) = unseen.pop() else { break };
            let mut request = range(libc::F_RDLCK, from, to - from);
            match control(&self.file, libc::F_OFD_GETLK, &mut request) {
                Err(e) if e.raw_os_error().is_some_and(|errno| NO_MARKS.contains(&errno)) => return Ok(None),
                asked => asked?,
            }
            if i32::from(request.l_type) == libc::F_UNLCK {
                continue;
            }
            let start = request.l_start.max(from);
            let who = Who::of((start - first) as u64);
            if who.lives(us) {
                return Ok(Some(who));
            }
            // The kernel tells of one at a time, in no order; a length of zero is a stranger's, up to the end.
            let end = if request.l_len == 0 { to } else { request.l_start.saturating_add(request.l_len) };
            unseen.extend([(from, start), (end, to)].into_iter().filter(|(from, to)| from < to));
        }
        Ok(None)
    }
}

impl ByteLock {
    /// The file that it is on.
    pub fn file(&self) -> FileId {
        self.id
    }
}

impl Drop for ByteLock {
    fn drop(&mut self) {
        // A fork's copy is not the lock. Its parent's mark, which both have, it would take away.
        if !self.table.is_here() {
            return;
        }
        let mut files = self.table.files();
        let Entry::Occupied(mut entry) = files.entry(self.id) else { return };
        entry.get().unlock(self.byte, self.table.who);
        entry.get_mut().bytes.retain(|&byte| byte != self.byte);
        if entry.get().bytes.is_empty() {
            entry.remove();
        }
    }
}

impl fmt::Debug for ByteLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteLock").field("id", &self.id).field("byte", &self.byte).finish()
    }
}

/// Marks of one byte that are looked at.
const MOST_MARKS: usize = 1000;

/// What says that there are no locks of opened files.
const NO_MARKS: [i32; 4] = [libc::EINVAL, libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOLCK];

/// Where marks begin: behind all bytes that are locked for themselves.
const MARKS: i64 = 1 << 62;

/// The first place for marks of a byte.
fn marks(byte: u32) -> i64 {
    // One less than there is room for: the places of the last would end behind all numbers.
    const BYTES: u32 = (1 << (62 - Who::BITS)) - 1;
    assert!(byte < BYTES, "there are marks for {BYTES} bytes, and {byte} is none of them");
    MARKS | i64::from(byte) << Who::BITS
}

/// The place of a process's mark of a byte.
fn mark(byte: u32, who: Who) -> i64 {
    marks(byte) | who.word() as i64
}

pub(crate) fn file_id(file: &Metadata) -> FileId {
    (file.dev(), file.ino())
}

/// The file that has this name now.
pub(crate) fn file_at(place: &Place, name: &str) -> io::Result<FileId> {
    place.open_folder().and_then(|folder| folder.look(name)).map(|there| file_id(&there))
}

/// True if another file has this name now, or none; false where that cannot be found out.
pub(crate) fn is_gone(place: &Place, name: &str, file: FileId) -> bool {
    match file_at(place, name) {
        Ok(found) => found != file,
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

fn range(kind: i32, start: i64, length: i64) -> libc::flock {
    // SAFETY: a `flock` is plain numbers, for which zero is valid.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = kind as libc::c_short;
    request.l_whence = libc::SEEK_SET as libc::c_short;
    request.l_start = start as libc::off_t;
    request.l_len = length as libc::off_t;
    request
}

fn control(file: &File, command: i32, request: &mut libc::flock) -> io::Result<()> {
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

    /// A lock file, and two copies of the library in this process: each has a table of its own, and nothing else of its own
    /// has to do with locks.
    struct Scene {
        place: Place,
        copies: [&'static Table; 2],
        _dir: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let copies = [(); 2].map(|()| &*Box::leak(Box::new(Table::new())));
            Self { place: Place::folder(dir.path()), copies, _dir: dir }
        }

        fn lock(&self, copy: usize, byte: u32) -> Option<ByteLock> {
            match self.copies[copy].try_lock(&self.place, FILE, byte, 0o600).unwrap() {
                TryLock::Ours(lock) => Some(lock),
                TryLock::Taken(pid) => {
                    assert_eq!(pid, std::process::id());
                    None
                }
            }
        }

        fn holders(&self, byte: u32) -> [Option<u32>; 2] {
            self.copies.map(|copy| copy.holder(&self.place, FILE, byte).unwrap())
        }

        fn open(&self) -> File {
            self.place.open_folder().unwrap().open_or_make(FILE, 0o600).unwrap()
        }

        /// The mark of a process on a byte, by an opened file that nobody else has.
        fn marked_by(&self, byte: u32, who: Who) -> File {
            let file = self.open();
            control(&file, libc::F_OFD_SETLK, &mut range(libc::F_WRLCK, mark(byte, who), 1)).unwrap();
            file
        }
    }

    /// One of many that have ended.
    fn dead(number: u64) -> Who {
        // The last process id that there can be.
        Who::of(number << 22 | 0x3f_ffff)
    }

    #[test]
    fn threads_of_one_process_exclude_each_other() {
        let scene = Scene::new();
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
        let scene = Scene::new();
        for (one, other) in [(0, 1), (1, 0)] {
            let first = scene.lock(one, 5).expect("nobody else locks");
            // Again and again: each time the other one closes the file.
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
        let scene = Scene::new();
        let kept = [2, 0, 1].map(|number| scene.marked_by(3, dead(number)));
        assert_eq!(scene.holders(3), [None; 2]);
        drop(scene.lock(0, 3).expect("who has marked it is dead"));
        let living = scene.marked_by(3, Who::here());
        assert_eq!(scene.holders(3), [Some(std::process::id()); 2]);
        assert!(scene.lock(0, 3).is_none());
        assert_eq!(scene.holders(2), [None; 2], "a mark is one byte's");
        assert_eq!(scene.holders(4), [None; 2], "a mark is one byte's");
        drop(living);
        assert!(scene.lock(1, 3).is_some());
        drop(kept);
    }

    #[test]
    fn a_strangers_locks_hold_up_nobody_for_ever() {
        let scene = Scene::new();
        let file = scene.open();
        for number in 0..2 * MOST_MARKS as u64 {
            let place = mark(0, dead(number));
            control(&file, libc::F_OFD_SETLK, &mut range(libc::F_WRLCK, place, 1)).unwrap();
        }
        assert_eq!(scene.holders(0), [None; 2]);
        control(&file, libc::F_OFD_SETLK, &mut range(libc::F_WRLCK, marks(1), 0)).unwrap();
        assert_eq!(scene.holders(1), [None; 2]);
        assert_eq!(scene.holders(510), [None; 2]);
    }
}
