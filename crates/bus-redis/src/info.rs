//! Identity of a server and its data, and whether the data is still complete.

use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::server::RedisServerAddress;

/// Answer to `INFO`: one line per field.
pub(crate) struct RedisInfo(String);

/// Identity of a server's data: differs from any other server's, and from the data before a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataIdentity {
    /// Address at which the server was reached.
    address: RedisServerAddress,
    /// Id of the process, new after each start.
    id: String,
    /// Id of the replication history, new after each promotion, and copied from a master.
    history: String,
    /// Position in that history, in bytes.
    offset: i64,
    /// Id of the history that this one continues; zeros if there is none.
    previous_history: String,
    /// First byte of that history that the server never had; -1 if there is none.
    previous_end: i64,
    /// True if the server copies from no other server.
    is_master: bool,
    /// True for a master that has each write on its disk before the reply: a restart loses none.
    is_durable: bool,
}

/// Part of all acknowledged data that a server still has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetainedData {
    /// All: the server never ended, or continues from where another one had come to.
    All,
    /// All that was on its disk, from which it was restarted; an older copy may have been put there.
    Disk,
    Unknown,
}

impl RedisInfo {
    pub fn request(link: &mut RedisConnection) -> ServerResult<Self> {
        link.request(&["INFO"], |items| Ok(Self(String::from_utf8_lossy(items.bulk()?).into_owned())))
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    fn number(&self, name: &str) -> i64 {
        self.field(name).and_then(|value| value.parse().ok()).unwrap_or(-1)
    }
}

impl DataIdentity {
    /// Requests the identity of the connected server; none if the server does not report it.
    pub fn request(link: &mut RedisConnection) -> ServerResult<Option<Self>> {
        let info = match RedisInfo::request(link) {
            Err(RedisServerError::Refused(_)) => return Ok(None),
            info => info?,
        };
        let field = |name| info.field(name).map(str::to_owned);
        let (Some(id), Some(history)) = (field("run_id"), field("master_replid")) else { return Ok(None) };
        let (offset, end) = (info.number("master_repl_offset"), info.number("second_repl_offset"));
        let before = field("master_replid2").unwrap_or_default();
        let is_master = info.field("role") == Some("master");
        let is_durable = is_master && info.field("aof_enabled") == Some("1") && syncs_always(link)?;
        Ok(Some(Self {
            address: link.address().clone(),
            id,
            history,
            offset,
            previous_history: before,
            previous_end: end,
            is_master,
            is_durable,
        }))
    }

    /// Returns whether both are the same process, in which a client id means the same connection.
    pub fn is_same_process(&self, other: &Self) -> bool {
        self.id == other.id
    }

    /// Returns whether all acknowledged data is still there, as far as a server can report.
    pub fn retains_all(before: Option<&Self>, now: Option<&Self>) -> bool {
        Self::retained(before, now) != RetainedData::Unknown
    }

    /// Compares two identities. The result is unknown for a server that restarted without syncing each write, that
    /// copied its data from another server, or that took over.
    pub fn retained(before: Option<&Self>, now: Option<&Self>) -> RetainedData {
        let (Some(before), Some(now)) = (before, now) else { return RetainedData::Unknown };
        match now.id == before.id {
            true if now.continues(before) => RetainedData::All,
            false if now.is_restart_of(before) => RetainedData::Disk,
            _ => RetainedData::Unknown,
        }
    }

    /// Returns whether a process that never ended kept its data: its history is the same, or continues from beyond
    /// `previous_history`.
    fn continues(&self, before: &Self) -> bool {
        let is_same = self.history == before.history && self.offset >= before.offset;
        is_same || self.previous_history == before.history && self.previous_end > before.offset
    }

    /// Returns whether the same server restarted and read everything from its own disk, which begins a new history. A
    /// history that continues another one was copied from a server that may have lacked some data.
    fn is_restart_of(&self, before: &Self) -> bool {
        self.address == before.address && before.is_durable && self.is_durable && !self.is_copied()
    }

    fn is_copied(&self) -> bool {
        self.previous_history.bytes().any(|digit| digit != b'0')
    }

    /// Returns a number for resume tokens that distinguishes this server's data from others'; never 0. The upper half
    /// stands for its history; the lower one for its address if a restart loses nothing, else it is 0.
    pub fn fingerprint(&self) -> u64 {
        u64::from(digest(&self.history)) << 32 | u64::from(self.address_digest())
    }

    /// Compares with a mark of earlier data. A replica has the history of its master, and may lag behind it, so it is
    /// unknown.
    pub fn retained_since(&self, mark: u64) -> RetainedData {
        let own = self.fingerprint();
        if self.is_master && own >> 32 == mark >> 32 {
            RetainedData::All
        } else if self.address_digest() != 0 && own << 32 == mark << 32 {
            RetainedData::Disk
        } else {
            RetainedData::Unknown
        }
    }

    /// Returns a server that syncs each write, for tests of other modules; examples differ in the id alone.
    #[cfg(test)]
    pub fn example(id: &str) -> Self {
        Self {
            address: RedisServerAddress::Tcp { host: "host".to_owned(), port: 1 },
            id: id.to_owned(),
            history: "h".to_owned(),
            offset: 5,
            previous_history: "0000".to_owned(),
            previous_end: -1,
            is_master: true,
            is_durable: true,
        }
    }

    fn address_digest(&self) -> u32 {
        if self.is_durable && !self.is_copied() { digest(&self.address.to_string()) } else { 0 }
    }
}

/// Returns a hash of the text (FNV-1a, folded to 32 bits); never 0.
fn digest(text: &str) -> u32 {
    let mixed = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    ((mixed >> 32) as u32 ^ mixed as u32).max(1)
}

fn syncs_always(link: &mut RedisConnection) -> ServerResult<bool> {
    let answer = link.request(&["CONFIG", "GET", "appendfsync"], |items| match items.array()? {
        2 => {
            let _name = items.bulk()?;
            Ok(items.bulk()? == b"always")
        }
        _ => Ok(false),
    });
    match answer {
        Err(RedisServerError::Refused(_)) => Ok(false),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::RetainedData::{All, Disk, Unknown};
    use super::*;

    const NONE: &str = "0000";

    /// Returns a master on this port.
    fn run(port: u16, id: &str, history: (&str, i64), before: (&str, i64), is_durable: bool) -> DataIdentity {
        DataIdentity {
            address: RedisServerAddress::Tcp { host: "host".to_owned(), port },
            id: id.to_owned(),
            history: history.0.to_owned(),
            offset: history.1,
            previous_history: before.0.to_owned(),
            previous_end: before.1,
            is_master: true,
            is_durable,
        }
    }

    #[test]
    fn two_identities_show_whether_a_server_retained_its_data() {
        let (new, plain, durable) = ((NONE, -1), false, true);
        for (what, before, now, kept) in [
            ("the same", run(1, "a", ("h", 5), new, plain), run(1, "a", ("h", 9), new, plain), All),
            ("it went back", run(1, "a", ("h", 5), new, durable), run(1, "a", ("h", 4), new, durable), Unknown),
            ("promoted", run(1, "a", ("h", 5), new, plain), run(1, "a", ("i", 9), ("h", 6), plain), All),
            ("promoted too early", run(1, "a", ("h", 5), new, plain), run(1, "a", ("i", 9), ("h", 5), plain), Unknown),
            ("it follows another", run(1, "a", ("h", 5), new, durable), run(1, "a", ("i", 9), new, durable), Unknown),
            ("started again", run(1, "a", ("h", 5), new, plain), run(1, "b", ("i", 0), new, plain), Unknown),
            ("the same from disk", run(1, "a", ("h", 5), new, durable), run(1, "b", ("i", 0), new, durable), Disk),
            ("no longer durable", run(1, "a", ("h", 5), new, durable), run(1, "b", ("i", 0), new, plain), Unknown),
            ("another server", run(1, "a", ("h", 5), new, durable), run(2, "b", ("i", 0), new, durable), Unknown),
            ("a failover", run(1, "a", ("h", 5), new, durable), run(2, "b", ("i", 9), ("h", 9), durable), Unknown),
            ("a copy here", run(1, "a", ("h", 5), new, durable), run(1, "b", ("i", 9), ("h", 9), durable), Unknown),
        ] {
            assert_eq!(DataIdentity::retained(Some(&before), Some(&now)), kept, "{what}");
            assert!(
                !DataIdentity::retains_all(Some(&before), None) && !DataIdentity::retains_all(None, Some(&now)),
                "{what}"
            );
        }
    }

    #[test]
    fn a_fingerprint_identifies_data_by_history_or_durable_address() {
        let (new, plain, durable) = ((NONE, -1), false, true);
        let copy = |run| DataIdentity { is_master: false, ..run };
        for (what, before, now, kept) in [
            ("the same", run(1, "a", ("h", 5), new, plain), run(1, "a", ("h", 9), new, plain), All),
            ("its copy", run(1, "a", ("h", 5), new, plain), copy(run(2, "b", ("h", 9), new, plain)), Unknown),
            ("of a copy", copy(run(2, "b", ("h", 5), new, plain)), run(1, "a", ("h", 9), new, plain), All),
            ("started again", run(1, "a", ("h", 5), new, plain), run(1, "b", ("i", 0), new, plain), Unknown),
            ("the same from disk", run(1, "a", ("h", 5), new, durable), run(1, "b", ("i", 0), new, durable), Disk),
            ("no longer durable", run(1, "a", ("h", 5), new, durable), run(1, "b", ("i", 0), new, plain), Unknown),
            ("a failover", run(1, "a", ("h", 5), new, durable), run(2, "b", ("i", 9), ("h", 9), durable), Unknown),
        ] {
            assert_eq!(now.retained_since(before.fingerprint()), kept, "{what}");
            assert_eq!(now.retained_since(0), Unknown, "{what}");
        }
    }
}
