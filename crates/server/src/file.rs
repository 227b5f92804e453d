//! Whether a file is as it was.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// When a file was last written, and how long it is: who sees another pair reads it again. None if it is not there.
pub(super) fn modified(path: &Path) -> Option<(SystemTime, u64)> {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}
