//! A short text in a file, whole whatever happens, and a thread that waits for the disk.
//!
//! A rename puts one file in the place of another at once, whoever is killed meanwhile. But its name may come to the
//! disk before what it holds: after a loss of power the file is empty, or holds zeros. So what is to survive that is on
//! the disk before it has its name. That takes longer than many a topic keeps what comes: it is no work for a carrier.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

/// A thread that writes a file for good, again and again.
pub(crate) struct Saver {
    /// None when it is to end.
    texts: Option<SyncSender<String>>,
    failed: Receiver<io::Error>,
    thread: Option<JoinHandle<()>>,
}

impl Saver {
    /// Starts the thread; it ends with this value, after the text that it is at.
    pub fn start(file: PathBuf) -> io::Result<Self> {
        let (texts, given) = sync_channel::<String>(0);
        let (tell, failed) = channel();
        let work = move || {
            let mut written = given.iter().map(|text| write_for_good(&file, &text));
            if let Some(reason) = written.find_map(Result::err) {
                // Nobody listens who has ended.
                let _ = tell.send(reason);
            }
        };
        let thread = std::thread::Builder::new().name("place".to_owned()).spawn(work)?;
        Ok(Self { texts: Some(texts), failed, thread: Some(thread) })
    }

    /// Has this text written; false if one before it still is. An error is of that one.
    pub fn save(&self, text: String) -> io::Result<bool> {
        let texts = self.texts.as_ref().expect("it has not ended");
        match texts.try_send(text) {
            Ok(()) => Ok(true),
            Err(TrySendError::Full(_)) => Ok(false),
            Err(TrySendError::Disconnected(_)) => Err(self.failed.recv().unwrap_or_else(io::Error::other)),
        }
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        self.texts = None;
        if let Some(thread) = self.thread.take() {
            // What it could not write was told, or is written by who has ended it.
            let _ = thread.join();
        }
    }
}

/// Writes a file whole or not at all, as far as the host lives on.
pub(crate) fn write(file: &Path, text: &str) -> io::Result<()> {
    let (draft, mut out) = make_draft(file)?;
    out.write_all(text.as_bytes())?;
    fs::rename(&draft, file)
}

/// The same, whatever becomes of the host: it is on the disk when this returns.
pub(crate) fn write_for_good(file: &Path, text: &str) -> io::Result<()> {
    let (draft, mut out) = make_draft(file)?;
    out.write_all(text.as_bytes())?;
    out.sync_data()?;
    fs::rename(&draft, file)?;
    // A name is on the disk when its folder is.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Makes a file that is to take the place of another. The leftover of a killed process is removed first, and never followed.
fn make_draft(file: &Path) -> io::Result<(PathBuf, File)> {
    let draft = beside(file, "new");
    match fs::remove_file(&draft) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let out = File::create_new(&draft)?;
    Ok((draft, out))
}

/// A file beside a topic's, which is no topic's: none has a name that begins with a point.
pub(crate) fn beside(file: &Path, what: &str) -> PathBuf {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    file.with_file_name(format!(".{name}.{what}"))
}

#[cfg(test)]
mod tests {
    use tickpath_clock::yield_now;

    use super::*;

    #[test]
    fn a_thread_writes_and_tells_what_it_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ticks");
        let saver = Saver::start(file.clone()).unwrap();
        // It may not have come so far that it takes one.
        while !saver.save("one".to_owned()).unwrap() {
            yield_now();
        }
        drop(saver);
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");

        let saver = Saver::start(folder.path().join("nowhere/ticks")).unwrap();
        let failed = loop {
            if let Err(reason) = saver.save("two".to_owned()) {
                break reason;
            }
            yield_now();
        };
        assert_eq!(failed.kind(), io::ErrorKind::NotFound);
    }
}
