//! Removal of a log that processes may still have open.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::control::{ControlFile, MANDATORY};
use crate::guard::ProcessTrust;
use crate::lock::{self, TryLock};
use crate::log_path::READER_LOCKS;
use crate::{LogOpenError, LogPath, files};

/// Removes a stale log, whatever is in its files; publishes on a `fail` log by a writer that still has it open fail
/// with "no reader". Fails while the mandatory reader lives; a missing log is no error.
pub fn remove_stale(path: &LogPath) -> Result<(), LogOpenError> {
    if !path.dir().exists() {
        return Ok(());
    }
    // Held to the end, so that no mandatory reader registers meanwhile.
    let held = match lock::try_lock(path, READER_LOCKS, MANDATORY as u32, 0o600) {
        Ok(TryLock::HeldBy(pid)) if control(path).is_some_and(|control| control.has_mandatory()) => {
            return Err(LogOpenError::HasReader { place: path.clone(), pid });
        }
        tried => tried.ok(),
    };
    let removed = remove(path);
    drop(held);
    removed
}

/// Removes a log despite its readers and other content of its folder: for files of a user who need not agree.
pub fn force_remove(path: &LogPath) -> Result<(), LogOpenError> {
    remove(path).or_else(|refused| {
        rename_and_remove(path).map_err(|e| match refused {
            // The user who created it is the reason, and not the failed rename.
            LogOpenError::Distrusted { .. } => refused,
            _ => LogOpenError::from_io(path, 0, e),
        })
    })
}

fn remove(path: &LogPath) -> Result<(), LogOpenError> {
    release_readers(path);
    match path.remove() {
        // Another process was about to open it: the remaining files are no log.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Ok(()),
        removed => removed.map_err(|e| LogOpenError::from_io(path, 0, e)),
    }
}

/// Renames the folder, and removes as much of it as possible: another user may have withdrawn permissions in it.
fn rename_and_remove(path: &LogPath) -> std::io::Result<()> {
    let mut name = path.dir().as_os_str().to_owned();
    name.push(format!(".aside-{}-{}", std::process::id(), ASIDE.fetch_add(1, Ordering::Relaxed)));
    std::fs::rename(path.dir(), &name)?;
    let _ = std::fs::remove_dir_all(&name);
    Ok(())
}

static ASIDE: AtomicU64 = AtomicU64::new(0);

fn control(path: &LogPath) -> Option<ControlFile> {
    files::open_control(path, ProcessTrust::Untrusted).ok()
}

/// Reports to a writer of the open log that it has no readers. Registered readers continue on files without a name.
fn release_readers(path: &LogPath) {
    let Some(control) = control(path) else { return };
    let registered: Vec<_> = control.registered().collect();
    registered.iter().for_each(|reader| control.release(reader.slot));
}
