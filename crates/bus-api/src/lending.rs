//! Messages that are read in place, for as long as the borrower holds them.

use std::fmt;
use std::sync::Arc;

use crate::gap::Gap;

/// A lent message. Its bytes stay unchanged until its last clone is dropped, whatever happens to its subscriber and
/// topic; a forked process may read them too.
#[derive(Clone)]
pub struct LentMessage {
    /// Sequence number in the topic, from 0, where the transport keeps one.
    pub sequence: Option<u64>,
    /// The publisher's stamp, in ticks of the host's clock.
    pub stamp: u64,
    /// Kind of the message; 16 to 255.
    pub kind: u8,
    payload: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

/// Result of asking a subscriber to lend a message.
#[derive(Debug)]
pub enum LendOutcome {
    /// A message.
    Message(LentMessage),
    /// Messages that this subscriber will never see.
    Gap(Gap),
    /// No message is available.
    Nothing,
}

impl LentMessage {
    /// Creates a lent message that holds these bytes.
    pub fn new(sequence: Option<u64>, stamp: u64, kind: u8, payload: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self { sequence, stamp, kind, payload: Arc::new(payload) }
    }

    /// Returns the bytes of the message.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        (*self.payload).as_ref()
    }
}

impl fmt::Debug for LentMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sequence, stamp, kind, .. } = self;
        f.debug_struct("Lent")
            .field("sequence", sequence)
            .field("stamp", stamp)
            .field("kind", kind)
            .field("bytes", &self.payload().len())
            .finish()
    }
}
