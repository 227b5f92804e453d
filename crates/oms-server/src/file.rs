//! Change detection for a file, and the decoys' key, which is drawn once.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::OFlags;
use tickpath_oms_protocol::Decoys;
use zeroize::Zeroizing;

pub(super) const DECOY_KEY_FILE: &str = "decoys.key";

type DecoyKey = Zeroizing<[u8; Decoys::KEY_BYTES]>;

/// Reads the key of the decoys. Where there is none, draws a key and keeps it in a file that only this user can read.
pub(super) fn load_or_create_key(path: &Path) -> io::Result<DecoyKey> {
    match OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path) {
        Ok(mut file) => {
            let mut key = DecoyKey::default();
            file.read_exact(&mut key[..]).map(|()| key)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let key = Decoys::draw_key();
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(&key[..]).inspect_err(|_| drop(fs::remove_file(path)))?;
            Ok(key)
        }
        Err(e) => Err(e),
    }
}

/// Returns a file's modification time and length: another pair means that it must be read again. None if it is missing.
pub(super) fn file_stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}
