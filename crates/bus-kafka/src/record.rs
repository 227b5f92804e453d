//! Messages on their way from the client library to who pulls.

/// A message as it was fetched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetched<'a> {
    /// Where it lies.
    pub partition: i32,
    /// Its place there.
    pub offset: i64,
    /// When it was made, if that is known; UTC, in milliseconds.
    pub made_ms: Option<i64>,
    /// Its bytes.
    pub value: &'a [u8],
}

/// A message that is kept until it is handed over.
pub(crate) struct Record {
    /// Where it lies.
    pub partition: i32,
    /// Its place there.
    pub offset: i64,
    /// When it was made, if that is known; UTC, in milliseconds.
    pub made_ms: Option<i64>,
    /// Its bytes.
    pub value: Vec<u8>,
    /// Another puller may have had it.
    pub redelivered: bool,
}

impl Record {
    /// What it takes, about.
    pub fn bytes(&self) -> usize {
        self.value.len() + size_of::<Self>()
    }
}
