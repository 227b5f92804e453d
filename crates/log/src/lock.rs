//! Who is alive: record locks, which the kernel drops when a process ends, however it ends.
//!
//! A POSIX record lock belongs to a process and is lost when the process closes *any* descriptor of the file. So each
//! process opens a lock file once and keeps it open; what its own threads hold is written down here, for the kernel
//! sees no conflict between them. A forked child inherits neither the locks nor this record.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

/// Device and inode of a lock file.
type FileId = (u64, u64);

struct Held {
    pid: u32,
    files: HashMap<FileId, LockFile>,
}

struct LockFile {
    file: File,
    bytes: Vec<u32>,
}

static HELD: Mutex<Option<Held>> = Mutex::new(None);

/// One byte of a lock file, ours until dropped.
#[derive(Debug)]
pub(crate) struct RecordLock {
    id: FileId,
    byte: u32,
}

/// What came of trying to lock.
#[derive(Debug)]
pub(crate) enum TryLock {
    Ours(RecordLock),
    /// Held by this process or, with a process id, by another.
    Taken(u32),
}

/// Locks one byte of the file at `path`, which is made with this mode if it is not there.
pub(crate) fn try_lock(path: &Path, byte: u32, mode: u32) -> io::Result<TryLock> {
    loop {
        let tried = try_lock_once(path, byte, mode)?;
        match &tried {
            // Somebody removed the file between our opening and locking it: that lock excludes nobody.
            TryLock::Ours(lock) if file_id(path) != Some(lock.id) => continue,
            _ => return Ok(tried),
        }
    }
}

fn file_id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).map(|m| (m.dev(), m.ino())).ok()
}

fn try_lock_once(path: &Path, byte: u32, mode: u32) -> io::Result<TryLock> {
    with_file(path, mode, |id, entry| {
        if entry.bytes.contains(&byte) {
            return Ok(TryLock::Taken(std::process::id()));
        }
        let mut request = whole_byte(byte, libc::F_WRLCK);
        match control(&entry.file, libc::F_SETLK, &mut request) {
            Ok(()) => {
                entry.bytes.push(byte);
                return Ok(TryLock::Ours(RecordLock { id, byte }));
            }
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {}
            // Open for reading only: its owner lets us no further.
            Err(e) if e.raw_os_error() == Some(libc::EBADF) => return Err(io::Error::from_raw_os_error(libc::EACCES)),
            Err(e) => return Err(e),
        }
        let mut holder = whole_byte(byte, libc::F_WRLCK);
        control(&entry.file, libc::F_GETLK, &mut holder)?;
        Ok(TryLock::Taken(holder.l_pid as u32))
    })
}

/// The process that holds a byte of the file, if one does.
pub(crate) fn holder(path: &Path, byte: u32) -> io::Result<Option<u32>> {
    if !path.exists() {
        return Ok(None);
    }
    with_file(path, 0o600, |_, entry| {
        if entry.bytes.contains(&byte) {
            return Ok(Some(std::process::id()));
        }
        // A read lock is asked after, so that a file we may only read can be asked about too.
        let mut request = whole_byte(byte, libc::F_RDLCK);
        control(&entry.file, libc::F_GETLK, &mut request)?;
        Ok((i32::from(request.l_type) != libc::F_UNLCK).then_some(request.l_pid as u32))
    })
}

impl Drop for RecordLock {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(|e| e.into_inner());
        let Some(held) = held.as_mut().filter(|held| held.pid == std::process::id()) else { return };
        let Entry::Occupied(mut entry) = held.files.entry(self.id) else { return };
        let _ = control(&entry.get().file, libc::F_SETLK, &mut whole_byte(self.byte, libc::F_UNLCK));
        entry.get_mut().bytes.retain(|&b| b != self.byte);
        if entry.get().bytes.is_empty() {
            entry.remove();
        }
    }
}

/// Runs `work` on this process's one descriptor of the file; closes it only if no byte of it is ours.
fn with_file<T>(path: &Path, mode: u32, work: impl FnOnce(FileId, &mut LockFile) -> io::Result<T>) -> io::Result<T> {
    let mut held = HELD.lock().unwrap_or_else(|e| e.into_inner());
    let pid = std::process::id();
    if held.as_ref().is_none_or(|held| held.pid != pid) {
        *held = Some(Held { pid, files: HashMap::new() });
    }
    let files = &mut held.as_mut().expect("just set").files;
    let known = file_id(path).filter(|id| files.contains_key(id));
    let id = match known {
        Some(id) => id,
        None => {
            let file = open(path, mode)?;
            let metadata = file.metadata()?;
            let id = (metadata.dev(), metadata.ino());
            files.insert(id, LockFile { file, bytes: Vec::new() });
            id
        }
    };
    let entry = files.get_mut(&id).expect("found or inserted");
    let result = work(id, entry);
    if entry.bytes.is_empty() {
        files.remove(&id);
    }
    result
}

fn open(path: &Path, mode: u32) -> io::Result<File> {
    let all = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(mode).open(path);
    match all {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => File::open(path),
        other => other,
    }
}

fn whole_byte(byte: u32, kind: i32) -> libc::flock {
    // SAFETY: a `flock` is plain numbers, for which zero is valid.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = kind as libc::c_short;
    request.l_whence = libc::SEEK_SET as libc::c_short;
    request.l_start = libc::off_t::from(byte);
    request.l_len = 1;
    request
}

fn control(file: &File, command: i32, request: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open and `request` is a valid struct for both commands.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(path: &Path, byte: u32) -> bool {
        matches!(try_lock(path, byte, 0o600).unwrap(), TryLock::Taken(pid) if pid == std::process::id())
    }

    #[test]
    fn threads_of_one_process_exclude_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let TryLock::Ours(first) = try_lock(&path, 0, 0o600).unwrap() else { panic!("nobody else locks") };
        assert!(taken(&path, 0));
        let TryLock::Ours(_second) = try_lock(&path, 1, 0o600).unwrap() else { panic!("another byte is free") };
        assert_eq!(holder(&path, 0).unwrap(), Some(std::process::id()));
        drop(first);
        assert_eq!(holder(&path, 0).unwrap(), None);
        assert!(!taken(&path, 0));
    }
}
