//! What both queues on lists have in common.

use std::time::Duration;

use crate::error::ServerError;
use crate::link::Link;
use crate::puller::message;

/// A function that tells a message of ours, as `wire::decode` does, for scripts of the server. By its bytes: to cut strings
/// out of each message takes longer.
pub(crate) const OURS: &str = "
local byte = string.byte
local function ours(message)
  local kind, t, i, c, k, p, u, version = byte(message, 9, 16)
  return u == 116 and t == 116 and i == 105 and c == 99 and k == 107 and p == 112 and kind >= 16
    and (version == 49 or version == 50 and #message >= 40)
end
";

/// Refuses a queue whose next message is another program's, before anything is taken from it; and what is no list.
pub(crate) fn check(link: &mut Link, queue: &str, foreign: Option<u8>) -> Result<(), ServerError> {
    let looked = link.ask_for(1, &["LINDEX", queue, "-1"], |items| {
        let next = items.bulk_or_null()?;
        Ok(next.map_or(Ok(()), |bytes| message(bytes, foreign).map(|_| ())))
    });
    looked?
}

/// A time as commands on lists want it, to the millisecond.
pub(crate) fn seconds(timeout: Duration) -> String {
    format!("{:.3}", timeout.as_secs_f64())
}

/// The name of a key next to a queue, in the queue's slot of a cluster.
pub(crate) fn beside(queue: &str, what: &str) -> String {
    format!("{{{queue}}}/{what}")
}
