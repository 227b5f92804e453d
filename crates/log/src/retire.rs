//! Taking a log away under who may still have it open.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::control::MANDATORY;
use crate::guard::Others;
use crate::lock::{self, TryLock};
use crate::place::READER_LOCKS;
use crate::{OpenError, Place, files};

/// Removes a log that is stale, whatever is in its files. A writer of a `fail` log that still has it open is told at its
/// next message that nobody reads it. Refused while the mandatory reader lives; a log that is not there is no error.
pub fn retire(place: &Place) -> Result<(), OpenError> {
    if !place.dir().exists() {
        return Ok(());
    }
    // Held to the end, so that no mandatory reader comes meanwhile.
    let ours = match lock::try_lock(place, READER_LOCKS, MANDATORY as u32, 0o600) {
        Ok(TryLock::Taken(pid)) if names_mandatory(place) => {
            return Err(OpenError::HasReader { place: place.clone(), pid });
        }
        ours => ours.ok(),
    };
    let removed = remove(place);
    drop(ours);
    removed
}

/// The same, whoever reads it, and whatever else lies in its folder: for a log whose files belong to somebody who is not
/// to be asked.
pub fn evict(place: &Place) -> Result<(), OpenError> {
    remove(place).or_else(|refused| {
        set_aside(place).map_err(|e| match refused {
            // The user who made it is the reason, and not that it cannot be renamed.
            OpenError::Distrusted { .. } => refused,
            _ => OpenError::from_io(place, 0, e),
        })
    })
}

fn remove(place: &Place) -> Result<(), OpenError> {
    forget_readers(place);
    match place.remove() {
        // Somebody was just about to open it: what is left of it is no log.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Ok(()),
        removed => removed.map_err(|e| OpenError::from_io(place, 0, e)),
    }
}

/// Gives the folder another name, and removes what can be removed of it: who can write to it may have made folders in
/// it, or taken the right away.
fn set_aside(place: &Place) -> std::io::Result<()> {
    let mut name = place.dir().as_os_str().to_owned();
    name.push(format!(".aside-{}-{}", std::process::id(), ASIDE.fetch_add(1, Ordering::Relaxed)));
    std::fs::rename(place.dir(), &name)?;
    let _ = std::fs::remove_dir_all(&name);
    Ok(())
}

/// Folders that this process has set aside.
static ASIDE: AtomicU64 = AtomicU64::new(0);

fn names_mandatory(place: &Place) -> bool {
    files::open_control(place, Others::Untrusted).is_ok_and(|control| control.names_mandatory())
}

/// Tells a writer that has the log open. Who reads on does so in files that nobody else will find.
fn forget_readers(place: &Place) {
    let Ok(control) = files::open_control(place, Others::Untrusted) else { return };
    let registered: Vec<_> = control.registered().collect();
    registered.iter().for_each(|reader| control.release(reader.slot));
}
