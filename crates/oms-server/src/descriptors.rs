//! Open files that a configuration needs, compared with the limit of the process.

use rustix::process::{Resource, getrlimit};

use super::settings::{OmsUser, Settings};

/// Files of the process itself: journal, history, lanes, market data, certificates, and their readers.
const OWN: u64 = 128;
/// Files of a connection, with the logs that its client may be reading meanwhile.
const EACH_CONNECTION: u64 = 4;
/// Max unauthenticated connections; beyond it the busiest origin loses one.
pub(crate) const MAX_UNAUTHENTICATED: usize = 256;
/// Max drop copies of one user: a program that forgets to close them takes no place from others.
pub(crate) const MAX_COPIES_PER_USER: usize = 16;
/// Files of a lane or line to a venue, or of a topic of drop copies.
const EACH_VENUE: u64 = 8;

/// Returns the open files of a server with so many clients and drop copies at once.
pub(crate) fn files_of(connections: usize) -> u64 {
    OWN + MAX_UNAUTHENTICATED as u64 + EACH_CONNECTION * connections as u64
}

impl Settings {
    /// Returns the max open files that an OMS with these settings needs.
    pub fn files_needed(&self) -> u64 {
        let max = self.sessions.max_sessions as usize;
        let sessions: usize = self.users.list.iter().map(|user| user.sessions.len()).sum();
        let has_copy = |user: &&OmsUser| user.drop_copy.is_some();
        let copies = self.users.list.iter().filter(has_copy).count() * MAX_COPIES_PER_USER;
        let lines: usize = self.venues.iter().map(|venue| venue.lines.len().max(1)).sum();
        let others = (lines + self.drop_copies.len()) as u64;
        files_of(sessions.min(max) + copies.min(max)) + EACH_VENUE * others
    }

    /// Returns a sentence for each limit of this process that is too low for these settings.
    pub fn limit_warnings(&self) -> Vec<String> {
        let needed = self.files_needed();
        let limit = getrlimit(Resource::Nofile).current.filter(|&limit| limit < needed);
        let doubt = |limit: u64| {
            format!(
                "the limit is {limit} open files, and this configuration needs up to {needed}: connections would wait for a \
                 free one; set LimitNOFILE={needed} in the systemd unit, or `ulimit -n {needed}`, before the OMS starts"
            )
        };
        limit.map(doubt).into_iter().collect()
    }
}
