//! What a run leaves on a server: nothing.

use tickpath_bus::connect;

/// Removes a topic at the end, however the run ends.
pub(crate) struct Removed<'a> {
    pub target: &'a str,
    pub topic: &'a str,
}

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        // A server that has gone keeps what it has; the run's own error says so.
        let _ = connect(self.target).map(|connection| connection.remove(self.topic));
    }
}
