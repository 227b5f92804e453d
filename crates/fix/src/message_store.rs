//! The store of a session's sent messages and of the numbers that a restart needs, as a trait, and a bounded one in
//! memory.
//!
//! ```text
//!   MemoryStore: a ring of bytes; a message lies in one piece, and the oldest messages make room for a new one
//!
//!     | 9 ......... | 10 ... | free | 5 ....... | 6 ... | 7 .. | 8 ..... | too short for 9 |
//!     0                      end    front of `messages`
//! ```

use std::collections::VecDeque;

use crate::session::SequenceNumbers;

/// The failure of a store, with its reason and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message store failed: {0}")]
pub struct StoreError(pub String);

/// Store of a session. After an error the session ends its connection, so that no number is used twice.
pub trait MessageStore {
    /// Appends a message before it is sent; numbers rise by 1 until a reset. An empty message marks a number that is never
    /// resent, such as a Logon with its credentials.
    fn append(&mut self, number: u64, message: &[u8]) -> Result<(), StoreError>;

    /// Sets the number that is expected next, after a message was processed.
    fn set_next_in(&mut self, next: u64) -> Result<(), StoreError>;

    /// Passes a stored message to `take`, and returns whether there is one. A gap fill stands for a message that is not
    /// there any more.
    fn read(&mut self, number: u64, take: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError>;

    /// Forgets all messages. The session continues with these numbers.
    fn reset(&mut self, numbers: SequenceNumbers) -> Result<(), StoreError>;
}

/// A store in memory, bounded by a number of messages and of bytes. It allocates only when it is made.
#[derive(Debug)]
pub struct MemoryStore {
    bytes: Box<[u8]>,
    /// Begin of the next message.
    end: usize,
    /// Places of the stored messages, oldest first.
    messages: VecDeque<StoredMessage>,
    max_messages: usize,
    numbers: SequenceNumbers,
}

#[derive(Debug, Clone, Copy)]
struct StoredMessage {
    number: u64,
    begin: usize,
    length: usize,
}

impl MemoryStore {
    /// Makes an empty store. A message that is longer than `max_bytes` is not stored.
    pub fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self {
            bytes: vec![0; max_bytes].into_boxed_slice(),
            end: 0,
            messages: VecDeque::with_capacity(max_messages),
            max_messages,
            numbers: SequenceNumbers::FIRST,
        }
    }

    /// Returns the numbers with which a session continues.
    pub fn numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    /// Removes the messages in the way of the next one. Returns the begin of the room for that message.
    fn make_room(&mut self, length: usize) -> usize {
        if self.end + length > self.bytes.len() {
            while self.messages.front().is_some_and(|oldest| oldest.begin >= self.end) {
                self.messages.pop_front();
            }
            self.end = 0;
        }
        let (begin, end) = (self.end, self.end + length);
        let overlaps = |oldest: &StoredMessage| oldest.begin < end && oldest.begin + oldest.length > begin;
        while self.messages.front().is_some_and(overlaps) {
            self.messages.pop_front();
        }
        begin
    }
}

impl MessageStore for MemoryStore {
    fn append(&mut self, number: u64, message: &[u8]) -> Result<(), StoreError> {
        while self.messages.back().is_some_and(|newest| newest.number >= number) {
            self.messages.pop_back();
        }
        self.numbers.next_out = number + 1;
        let length = message.len();
        if length == 0 || length > self.bytes.len() || self.max_messages == 0 {
            return Ok(());
        }
        if self.messages.len() == self.max_messages {
            self.messages.pop_front();
        }
        let begin = self.make_room(length);
        self.end = begin + length;
        self.bytes[begin..self.end].copy_from_slice(message);
        self.messages.push_back(StoredMessage { number, begin, length });
        Ok(())
    }

    fn set_next_in(&mut self, next: u64) -> Result<(), StoreError> {
        self.numbers.next_in = next;
        Ok(())
    }

    fn read(&mut self, number: u64, take: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let Ok(place) = self.messages.binary_search_by_key(&number, |stored| stored.number) else { return Ok(false) };
        let StoredMessage { begin, length, .. } = self.messages[place];
        take(&self.bytes[begin..begin + length]);
        Ok(true)
    }

    fn reset(&mut self, numbers: SequenceNumbers) -> Result<(), StoreError> {
        self.messages.clear();
        self.end = 0;
        self.numbers = numbers;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn read(store: &mut MemoryStore, number: u64) -> Option<Vec<u8>> {
        let mut found = None;
        let is_there = store.read(number, &mut |message| found = Some(message.to_vec())).unwrap();
        assert_eq!(is_there, found.is_some());
        found
    }

    #[test]
    fn a_message_is_read_by_its_number() {
        let mut store = MemoryStore::new(10, 100);
        store.append(1, b"one").unwrap();
        store.append(2, b"").unwrap();
        store.append(3, b"three").unwrap();
        let found = [1, 2, 3, 4].map(|number| read(&mut store, number));
        assert_eq!(found, [Some(b"one".to_vec()), None, Some(b"three".to_vec()), None]);
        assert_eq!(store.numbers(), SequenceNumbers { next_in: 1, next_out: 4 });
    }

    #[test]
    fn the_oldest_messages_make_room() {
        let mut store = MemoryStore::new(3, 10);
        for (number, message) in [(1, "aaaa"), (2, "bbbb"), (3, "cccc")] {
            store.append(number, message.as_bytes()).unwrap();
        }
        assert_eq!(read(&mut store, 1), None, "message 3 lies where message 1 was");
        assert_eq!(read(&mut store, 2), Some(b"bbbb".to_vec()));
        store.append(4, b"longer than all").unwrap();
        assert_eq!((read(&mut store, 3), read(&mut store, 4)), (Some(b"cccc".to_vec()), None));
        for number in 5..9 {
            store.append(number, b"d").unwrap();
        }
        assert_eq!([5, 6, 7, 8].map(|number| read(&mut store, number).is_some()), [false, true, true, true]);
    }

    #[test]
    fn a_reset_forgets_the_messages() {
        let mut store = MemoryStore::new(10, 100);
        store.append(1, b"old").unwrap();
        store.set_next_in(9).unwrap();
        store.reset(SequenceNumbers { next_in: 2, next_out: 2 }).unwrap();
        assert_eq!(read(&mut store, 1), None);
        assert_eq!(store.numbers(), SequenceNumbers { next_in: 2, next_out: 2 });
    }

    proptest! {
        /// The newest messages are there, unchanged, whatever their lengths.
        #[test]
        fn messages_survive_until_newer_ones_need_their_room(
            lengths in vec(0_usize..40, 1..200),
            max_messages in 0_usize..20,
            max_bytes in 1_usize..100,
        ) {
            let mut store = MemoryStore::new(max_messages, max_bytes);
            let message = |number: usize, length: usize| vec![number as u8; length];
            for (number, &length) in (1..).zip(&lengths) {
                store.append(number as u64, &message(number, length)).unwrap();
                let (mut count, mut bytes) = (0, 0);
                for (back, &length) in (0..number).zip(lengths[..number].iter().rev()) {
                    let found = read(&mut store, (number - back) as u64);
                    let stored = length > 0 && length <= max_bytes;
                    if stored {
                        (count, bytes) = (count + 1, bytes + length);
                    }
                    // A message lies in one piece, so that at least half of the bytes are used.
                    if stored && count <= max_messages && bytes * 2 <= max_bytes {
                        prop_assert!(found.is_some());
                    }
                    if let Some(found) = found {
                        prop_assert_eq!(found, message(number - back, length));
                    }
                }
            }
        }
    }
}
