//! Configuration of a log.

use std::fmt;

use rustix::process::getegid;

use crate::layout::HEADER_BYTES;
use crate::{LogOpenError, LogOwner, LogPath};

/// Max bytes of a segment, and max segments of a ring.
pub(crate) const MAX_SEGMENT_BYTES: usize = 1 << 30;
pub(crate) const MAX_SEGMENTS: usize = 4096;

/// Behaviour of a full log, chosen by name, never silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// The writer never waits; a reader that is lapped receives the exact number of lost messages.
    Overwrite = 1,
    /// Publishing fails while a registered reader is a whole ring behind, and while there is none. In a queue, it fails
    /// while the oldest message that is not done is a whole ring behind.
    Fail = 2,
    /// Every message stays; the log grows.
    Keep = 3,
}

impl OverflowPolicy {
    pub(crate) fn code(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_code(code: u32) -> Option<Self> {
        [Self::Overwrite, Self::Fail, Self::Keep].into_iter().find(|policy| policy.code() == code)
    }

    /// Returns the policy's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Fail => "fail",
            Self::Keep => "keep",
        }
    }
}

impl fmt::Display for OverflowPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Configuration with which a writer creates its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Location of the log.
    pub path: LogPath,
    /// Behaviour when the log is full.
    pub policy: OverflowPolicy,
    /// Bytes of a segment, a multiple of 4,096. The longest message is a little shorter.
    pub segment_bytes: usize,
    /// Number of segments in the ring, at least 2; ignored by a `keep` log.
    pub segments: usize,
    /// Bytes that a `keep` log allocates and faults in when it is opened.
    pub reserve_bytes: u64,
    /// Sequence number of the first message of a new log; usually 0.
    pub first_sequence: u64,
    /// Permissions of the log's files. If a group may write them, its members are trusted: the effective group of this
    /// process, or the group of [`LogPath::shared_with`].
    pub mode: u32,
    /// Owner of a new log; usually none.
    pub owner: LogOwner,
    /// Set if a new `fail` log names one mandatory reader, without which it counts as unread: that reader's cursor
    /// gates the writer whether or not its process lives, and publishing fails while it is away.
    pub mandatory: bool,
}

impl Config {
    /// Returns the configuration of a bus topic: eight segments of 128 KiB, which stay in a core's second-level cache.
    pub fn topic(path: LogPath, policy: OverflowPolicy) -> Self {
        Self {
            path,
            policy,
            segment_bytes: 128 << 10,
            segments: 8,
            reserve_bytes: 0,
            first_sequence: 0,
            mode: 0o600,
            owner: LogOwner::default(),
            mandatory: false,
        }
    }

    /// Returns the configuration of a queue: eight segments of 2 MiB, whose messages stay until they are done.
    pub fn queue(path: LogPath) -> Self {
        Self { segment_bytes: 2 << 20, ..Self::topic(path, OverflowPolicy::Fail) }
    }

    /// Returns the configuration of a journal: keeps everything, in segments of 16 MiB.
    pub fn journal(path: LogPath) -> Self {
        Self { segment_bytes: 16 << 20, segments: 0, ..Self::topic(path, OverflowPolicy::Keep) }
    }

    /// Returns the same configuration with a path that trusts the group which the mode lets write.
    pub(crate) fn with_group(&self) -> Self {
        let shares = self.mode & 0o020 != 0 && !self.path.is_shared();
        let path = self.path.clone();
        Self { path: if shares { path.shared_with(getegid().as_raw()) } else { path }, ..self.clone() }
    }

    pub(crate) fn check(&self) -> Result<(), LogOpenError> {
        let Self { mode, policy, segment_bytes: bytes, segments, mandatory, .. } = *self;
        let fault = if mode & 0o002 != 0 {
            format!(
                "the mode {mode:04o} lets every user of the host write to the log; use 0600, 0640, or 0660 for a group"
            )
        } else if bytes == 0 || !bytes.is_multiple_of(HEADER_BYTES) || bytes > MAX_SEGMENT_BYTES {
            format!("a segment of {bytes} bytes is not possible; use a multiple of 4096 up to 1 GiB")
        } else if policy != OverflowPolicy::Keep && !(2..=MAX_SEGMENTS).contains(&segments) {
            format!("a ring of {segments} segments is not possible; use 2 to 4096")
        } else if mandatory && policy != OverflowPolicy::Fail {
            format!("a log with the policy '{policy}' waits for no reader, so none can be mandatory; use 'fail'")
        } else {
            return Ok(());
        };
        Err(LogOpenError::Config(fault))
    }
}
