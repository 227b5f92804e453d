//! A side thread that builds and touches the core's memory before the core needs it. Design:
//! `docs/design/journal-memory.md`.

use std::sync::mpsc::{Receiver, sync_channel};

use tickpath_oms_core::SparePage;

/// Receiver of pages that the side thread has made ready.
pub(crate) struct PageMaker {
    ready: Receiver<SparePage>,
}

impl PageMaker {
    /// Starts the thread; it keeps one page ready and ends with this value.
    pub fn start() -> std::io::Result<Self> {
        let (made, ready) = sync_channel(1);
        let work = move || while made.send(SparePage::new()).is_ok() {};
        std::thread::Builder::new().name("oms-pages".into()).spawn(work)?;
        Ok(Self { ready })
    }

    /// Returns a page, if one is ready; otherwise the core makes its own.
    pub fn take(&self) -> Option<SparePage> {
        self.ready.try_recv().ok()
    }
}
