//! Messages between the client library and the puller's caller.

/// A fetched message, borrowed from the client library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchedRecord<'a> {
    pub partition: i32,
    pub offset: i64,
    /// Timestamp, if known; UTC, in milliseconds.
    pub made_ms: Option<i64>,
    pub value: &'a [u8],
}

/// A message that is kept until it is handed over.
pub(crate) struct BufferedRecord {
    pub partition: i32,
    pub offset: i64,
    /// Timestamp, if known; UTC, in milliseconds.
    pub made_ms: Option<i64>,
    pub value: Vec<u8>,
    /// Another puller may have had the message.
    pub redelivered: bool,
}

impl BufferedRecord {
    /// Returns the approximate memory use, in bytes.
    pub fn bytes(&self) -> usize {
        self.value.len() + size_of::<Self>()
    }
}
