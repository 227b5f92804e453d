//! A short text file that is whole at any time, and a thread that waits for the disk.
//!
//! A rename replaces one file by another at once, even if a process is killed. But the name may reach the disk before
//! the content: after a loss of power the file is empty, or holds zeros. A file that must survive that is on the disk
//! before it gets its name, for which no carrier waits: it takes longer than many a topic keeps its messages.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

/// A thread that writes a file to the disk, again and again.
pub(crate) struct FileSaver {
    /// None when the thread is to end.
    texts: Option<SyncSender<String>>,
    failed: Receiver<io::Error>,
    thread: Option<JoinHandle<()>>,
}

impl FileSaver {
    /// Starts the thread; it ends when this value is dropped, after its current text.
    pub fn start(file: PathBuf) -> io::Result<Self> {
        let (texts, received) = sync_channel::<String>(0);
        let (report, failed) = channel();
        let work = move || {
            let mut written = received.iter().map(|text| write_durably(&file, &text));
            if let Some(reason) = written.find_map(Result::err) {
                // The receiver is gone if the saver was dropped.
                let _ = report.send(reason);
            }
        };
        let thread = std::thread::Builder::new().name("saved-position".to_owned()).spawn(work)?;
        Ok(Self { texts: Some(texts), failed, thread: Some(thread) })
    }

    /// Starts writing this text; returns false if an earlier one is still being written. An error is that of the
    /// earlier text.
    pub fn save(&self, text: String) -> io::Result<bool> {
        let texts = self.texts.as_ref().expect("it has not ended");
        match texts.try_send(text) {
            Ok(()) => Ok(true),
            Err(TrySendError::Full(_)) => Ok(false),
            Err(TrySendError::Disconnected(_)) => Err(self.failed.recv().unwrap_or_else(io::Error::other)),
        }
    }
}

impl Drop for FileSaver {
    fn drop(&mut self) {
        self.texts = None;
        if let Some(thread) = self.thread.take() {
            // A failed text was reported, or is written again by the owner of the saver.
            let _ = thread.join();
        }
    }
}

/// Writes a file whole or not at all, as long as the host keeps running.
pub(crate) fn write(file: &Path, text: &str) -> io::Result<()> {
    let (draft, _) = write_draft(file, text)?;
    fs::rename(&draft, file)
}

/// Writes a file whole or not at all, even if the host fails: it is on the disk when this returns.
pub(crate) fn write_durably(file: &Path, text: &str) -> io::Result<()> {
    let (draft, out) = write_draft(file, text)?;
    out.sync_data()?;
    fs::rename(&draft, file)?;
    // A name is on the disk once its folder is.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Writes a file that is to replace another. The leftover of a killed process is removed first, and never followed.
fn write_draft(file: &Path, text: &str) -> io::Result<(PathBuf, File)> {
    let draft = sibling_path(file, "new");
    remove_if_exists(&draft)?;
    let mut out = File::create_new(&draft)?;
    out.write_all(text.as_bytes())?;
    Ok((draft, out))
}

pub(crate) fn remove_if_exists(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(reason) if reason.kind() != io::ErrorKind::NotFound => Err(reason),
        _ => Ok(()),
    }
}

/// Returns the path of a file beside a topic's file. It belongs to no topic, because no topic name begins with a point.
pub(crate) fn sibling_path(file: &Path, suffix: &str) -> PathBuf {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    file.with_file_name(format!(".{name}.{suffix}"))
}

#[cfg(test)]
mod tests {
    use tickpath_clock::yield_now;

    use super::*;

    #[test]
    fn the_saver_writes_a_text_and_reports_a_failed_write() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ticks");
        let saver = FileSaver::start(file.clone()).unwrap();
        // The thread may not be ready for a text yet.
        while !saver.save("one".to_owned()).unwrap() {
            yield_now();
        }
        drop(saver);
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");

        let saver = FileSaver::start(folder.path().join("nowhere/ticks")).unwrap();
        let failed = loop {
            if let Err(reason) = saver.save("two".to_owned()) {
                break reason;
            }
            yield_now();
        };
        assert_eq!(failed.kind(), io::ErrorKind::NotFound);
    }
}
