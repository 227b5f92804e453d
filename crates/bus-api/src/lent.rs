//! Messages that stay where they lie, for as long as who was lent them likes.

use std::fmt;
use std::sync::Arc;

use crate::gap::Gap;

/// A message that was lent. Its bytes stay as they are until the last clone of it has gone, whatever becomes of its
/// subscriber and of the topic; a fork may read them too.
#[derive(Clone)]
pub struct Lent {
    /// The topic's count of messages, from 0, where the transport keeps one.
    pub sequence: Option<u64>,
    /// The publisher's stamp, in ticks of the host's clock.
    pub stamp: u64,
    /// What it is; 16 to 255.
    pub kind: u8,
    payload: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

/// What a subscriber finds that is lent messages.
#[derive(Debug)]
pub enum Lending {
    /// A message.
    Message(Lent),
    /// Messages that this subscriber will never see.
    Gap(Gap),
    /// Nothing is there.
    Nothing,
}

impl Lent {
    /// A message of which this holds the bytes.
    pub fn new(sequence: Option<u64>, stamp: u64, kind: u8, payload: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self { sequence, stamp, kind, payload: Arc::new(payload) }
    }

    /// Its bytes.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        (*self.payload).as_ref()
    }
}

impl fmt::Debug for Lent {
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
