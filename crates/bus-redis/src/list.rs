//! Parts shared by both kinds of queues on lists.

use std::time::Duration;

use crate::connection::RedisConnection;
use crate::error::ServerResult;
use crate::puller::decode_message;

/// Lua function that recognizes a message of ours, as `wire::decode` does. Compares bytes, because cutting strings out
/// of each message takes longer.
pub(crate) const IS_MESSAGE_LUA: &str = "
local byte = string.byte
local function ours(message)
  local kind, t, i, c, k, p, u, version = byte(message, 9, 16)
  return u == 116 and t == 116 and i == 105 and c == 99 and k == 107 and p == 112 and kind >= 16
    and (version == 49 or version == 50 and #message >= 40)
end
";

/// Rejects a queue whose next message is foreign, before anything is taken from it, and a key that is no list.
pub(crate) fn check_list(link: &mut RedisConnection, queue: &str, foreign: Option<u8>) -> ServerResult {
    let looked = link.request_messages(1, &["LINDEX", queue, "-1"], |items| {
        let next = items.bulk_or_null()?;
        Ok(next.map_or(Ok(()), |bytes| decode_message(bytes, foreign).map(|_| ())))
    });
    looked?
}

/// Formats a time in seconds, to the millisecond, as list commands take it.
pub(crate) fn format_seconds(timeout: Duration) -> String {
    format!("{:.3}", timeout.as_secs_f64())
}

/// Returns the name of a key beside a queue, in the queue's slot of a cluster.
pub(crate) fn sibling_key(queue: &str, what: &str) -> String {
    format!("{{{queue}}}/{what}")
}
