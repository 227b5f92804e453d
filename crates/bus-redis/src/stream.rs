//! Streams of the server: ids, entries and extents.
//!
//! Our entries have one field, [`MESSAGE_FIELD`], whose value is a message with its header.

use std::borrow::Cow;
use std::fmt;

use tickpath_bus_api::details::JsonObject;
use tickpath_bus_api::{MessageIdTracker, wire};

use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::resp::{RespError, RespItem, RespReader, UNEXPECTED};

/// Name of the field that holds the message.
pub(crate) const MESSAGE_FIELD: &str = "m";

/// Number of messages in the answer to `XINFO STREAM`: the oldest entry and the newest one.
pub(crate) const EXTENT_MESSAGES: usize = 2;

/// Removes a stream, and rejects any other type of key. Key: stream.
const REMOVE: &str = "
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'stream' then return redis.error_reply('WRONGTYPE it is no stream but a ' .. kind) end
return redis.call('DEL', KEYS[1])";

/// Id of an entry: the millisecond of its arrival, and a number within that millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryId {
    ms: u64,
    number: u64,
}

#[derive(Debug)]
pub(crate) struct StreamEntry<'a> {
    pub id: EntryId,
    /// Value of our field; empty, and so no message, if there is no such field.
    pub bytes: &'a [u8],
    /// All fields of the entry.
    fields: RespReader<'a>,
}

/// Extent of a stream, and its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamExtent {
    /// Oldest entry; none if the stream is empty.
    pub first: Option<EntryId>,
    /// Last entry ever added, even if it was deleted.
    pub last: EntryId,
    pub length: u64,
    /// Number of entries ever added; servers before version 7 do not report it.
    pub added: Option<u64>,
    /// Newest entry that was deleted by its id.
    pub deleted: EntryId,
}

impl StreamExtent {
    /// Returns the number of entries that are gone: the oldest ones, unless later ones were deleted by their ids.
    pub fn trimmed_count(&self) -> Option<u64> {
        self.added.map(|added| added.saturating_sub(self.length))
    }

    pub fn is_trimmed(&self) -> bool {
        self.trimmed_count().is_some_and(|gone| gone > 0)
    }

    /// Returns whether all entries lie after this position.
    pub fn is_all_after(&self, position: EntryId) -> bool {
        self.first.is_none_or(|first| first > position)
    }

    /// Returns whether the count of gone entries shows the loss after this position: no entry is left up to it, or none
    /// after it.
    pub fn shows_loss_after(&self, position: EntryId) -> bool {
        self.last == position || self.is_all_after(position)
    }

    /// Returns the number of entries ever added up to this position; none if the server does not count, or entries lie
    /// on both sides.
    pub fn count_up_to(&self, position: EntryId) -> Option<u64> {
        if self.last == position {
            return self.added;
        }
        self.trimmed_count().filter(|_| self.is_all_after(position))
    }
}

impl EntryId {
    /// Place before every entry.
    pub const START: Self = Self { ms: 0, number: 0 };

    pub fn new(ms: u64, number: u64) -> Self {
        Self { ms, number }
    }

    /// Returns the millisecond of arrival, and the number within that millisecond.
    pub fn numbers(self) -> [u64; 2] {
        [self.ms, self.number]
    }

    pub fn parse(text: &[u8]) -> Result<Self, RespError> {
        let (ms, number) = std::str::from_utf8(text).ok().and_then(|text| text.split_once('-')).ok_or(UNEXPECTED)?;
        let parse = |digits: &str| digits.parse::<u64>().map_err(|_| UNEXPECTED);
        Ok(Self { ms: parse(ms)?, number: parse(number)? })
    }

    pub fn read(items: &mut RespReader<'_>) -> Result<Self, RespError> {
        Self::parse(items.bulk()?)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

impl<'a> StreamEntry<'a> {
    /// Reads an entry; none if it is null.
    pub fn read(items: &mut RespReader<'a>) -> Result<Option<Self>, RespError> {
        match items.item()? {
            Some(RespItem::Array(2)) => {}
            Some(RespItem::Null) => return Ok(None),
            _ => return Err(UNEXPECTED),
        }
        let mut entry = Self { id: EntryId::read(items)?, bytes: &[], fields: items.clone() };
        for _ in 0..items.array()? / 2 {
            let (field, value) = (items.bulk()?, items.bulk()?);
            if field == MESSAGE_FIELD.as_bytes() {
                entry.bytes = value;
            }
        }
        Ok(Some(entry))
    }

    /// Returns the message, or the entry of another program as [`Self::to_json`] does.
    pub fn message_or_json(&self) -> Cow<'a, [u8]> {
        match wire::decode(self.bytes) {
            Some(_) => Cow::Borrowed(self.bytes),
            None => self.to_json().unwrap_or_default(),
        }
    }

    /// Returns the entry of another program: all fields, in order, as a JSON object. A value that is not UTF-8 becomes
    /// `{"base64":"…"}`; a name that is not, or that begins with `base64:` itself, becomes `base64:…`, so no byte is
    /// lost. A single field with the name of ours becomes its value.
    pub fn to_json(&self) -> Result<Cow<'a, [u8]>, RespError> {
        let mut items = self.fields.clone();
        let fields = items.array()? / 2;
        if fields == 1 && items.bulk()? == MESSAGE_FIELD.as_bytes() {
            return items.bulk().map(Cow::Borrowed);
        }
        let mut items = self.fields.clone();
        let _fields = items.array()?;
        let mut object = JsonObject::default();
        for _ in 0..fields {
            object.add(items.bulk()?, items.bulk()?);
        }
        Ok(Cow::Owned(object.into_json().into_bytes()))
    }
}

/// Reads the reply of a command that reads one stream; the reply is null if there are no entries.
pub(crate) fn read_reply(items: &mut RespReader<'_>, each: &mut dyn FnMut(StreamEntry<'_>)) -> Result<(), RespError> {
    if items.array()? == 0 {
        return Ok(());
    }
    if items.array()? != 2 {
        return Err(UNEXPECTED);
    }
    let _key = items.bulk()?;
    read_entries(items, each)
}

pub(crate) fn read_entries(items: &mut RespReader<'_>, each: &mut dyn FnMut(StreamEntry<'_>)) -> Result<(), RespError> {
    for _ in 0..items.array()? {
        if let Some(entry) = StreamEntry::read(items)? {
            each(entry);
        }
    }
    Ok(())
}

/// Requests the extent of a stream; none if the stream does not exist.
pub(crate) fn request_extent(link: &mut RedisConnection, key: &str) -> ServerResult<Option<StreamExtent>> {
    match link.request_messages(EXTENT_MESSAGES, &["XINFO", "STREAM", key], read_extent) {
        Err(RedisServerError::Refused(line)) if line.contains("no such key") => Ok(None),
        known => known.map(Some),
    }
}

/// Requests an entry by its id, and returns whether it was received before, as far as its number shows: a stream that
/// was created again may have the same id. None if there is no such entry.
pub(crate) fn was_received(
    link: &mut RedisConnection,
    key: &str,
    id: EntryId,
    before: &MessageIdTracker,
) -> ServerResult<Option<bool>> {
    let (id, mut is_seen) = (id.to_string(), None);
    link.request_messages(1, &["XRANGE", key, &id, &id], |items| {
        read_entries(items, &mut |entry| {
            let origin = wire::decode(entry.bytes).and_then(|message| message.id);
            is_seen = Some(origin.is_none_or(|origin| before.has_seen(origin)));
        })
    })?;
    Ok(is_seen)
}

pub(crate) fn remove(link: &mut RedisConnection, key: &str) -> ServerResult {
    link.request(&["EVAL", REMOVE, "1", key], |items| items.integer()).map(|_| ())
}

pub(crate) fn read_extent(items: &mut RespReader<'_>) -> Result<StreamExtent, RespError> {
    let (mut first, mut last, mut length, mut added, mut deleted) = (None, None, 0, None, EntryId::START);
    for _ in 0..items.array()? / 2 {
        match items.bulk()? {
            b"length" => length = count(items)?,
            b"entries-added" => added = Some(count(items)?),
            b"max-deleted-entry-id" => deleted = EntryId::read(items)?,
            b"last-generated-id" => last = Some(EntryId::read(items)?),
            b"first-entry" => first = StreamEntry::read(items)?.map(|entry| entry.id),
            _ => {
                items.skip()?;
            }
        }
    }
    Ok(StreamExtent { first, last: last.ok_or(UNEXPECTED)?, length, added, deleted })
}

fn count(items: &mut RespReader<'_>) -> Result<u64, RespError> {
    u64::try_from(items.integer()?).map_err(|_| UNEXPECTED)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::Value;

    use super::*;
    use crate::resp;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entry_ids_round_trip_and_sort_by_arrival(
            a: (u64, u64),
            b: (u64, u64),
        ) {
            let [first, second] = [a, b].map(|(ms, number)| EntryId { ms, number });
            prop_assert_eq!(EntryId::parse(first.to_string().as_bytes()), Ok(first));
            prop_assert_eq!(first.cmp(&second), a.cmp(&b));
            prop_assert!(EntryId::START <= first);
        }
    }

    /// Decodes a field's name and value as a reader of the JSON object does.
    fn back(name: &str, value: &Value) -> (Vec<u8>, Vec<u8>) {
        let decode = |text: &str| STANDARD.decode(text).expect("it is base64");
        let name = name.strip_prefix("base64:").map_or_else(|| name.as_bytes().to_vec(), decode);
        let value = value.as_str().map_or_else(
            || decode(value["base64"].as_str().expect("it is text or base64")),
            |text| text.as_bytes().to_vec(),
        );
        (name, value)
    }

    proptest! {
        #[test]
        fn fields_of_any_bytes_round_trip_through_json(
            name in prop_oneof![".*".prop_map(String::into_bytes), any::<Vec<u8>>(), Just(b"base64:/w==".to_vec())],
            value: Vec<u8>,
        ) {
            let mut reply = b"*2\r\n$3\r\n7-0\r\n*4\r\n$1\r\na\r\n$1\r\nb\r\n".to_vec();
            resp::bulk(&mut reply, &[&name]);
            resp::bulk(&mut reply, &[&value]);
            let entry = StreamEntry::read(&mut RespReader::new(&reply)).unwrap().expect("it is no null");
            let read: serde_json::Map<String, Value> = serde_json::from_slice(&entry.to_json().unwrap()).unwrap();
            prop_assume!(name != b"a");
            let (read_name, read_value) = read.iter().find(|(name, _)| *name != "a").expect("it is there");
            prop_assert_eq!(back(read_name, read_value), (name, value));
        }
    }

    #[test]
    fn a_malformed_entry_id_is_refused() {
        for text in [&b""[..], b"1", b"-", b"1-", b"-1", b"1-x", b"1-2-3", b"18446744073709551616-0", b"\xff-1"] {
            assert_eq!(EntryId::parse(text), Err(UNEXPECTED), "{text:?}");
        }
    }

    #[test]
    fn entries_are_read_with_and_without_our_field() {
        let reply = b"*1\r\n*2\r\n$1\r\nk\r\n*4\r\n\
            *2\r\n$3\r\n7-0\r\n*2\r\n$1\r\nm\r\n$2\r\nhi\r\n\
            *2\r\n$3\r\n7-1\r\n*4\r\n$1\r\nx\r\n$1\r\ny\r\n$1\r\nm\r\n$1\r\n!\r\n\
            *2\r\n$3\r\n8-0\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n\
            $-1\r\n";
        let mut found = Vec::new();
        let mut note = |entry: StreamEntry<'_>| {
            let foreign = String::from_utf8(entry.to_json().unwrap().into_owned()).unwrap();
            found.push(format!("{} {} {foreign}", entry.id, entry.bytes.escape_ascii()));
        };
        read_reply(&mut RespReader::new(reply), &mut note).unwrap();
        assert_eq!(found, ["7-0 hi hi", r#"7-1 ! {"x":"y","m":"!"}"#, r#"8-0  {"x":"y"}"#]);
        for nothing in [&b"*-1\r\n"[..], b"*0\r\n"] {
            read_reply(&mut RespReader::new(nothing), &mut |entry| panic!("{entry:?} from nothing")).unwrap();
        }
    }
}
