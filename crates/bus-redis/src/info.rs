//! Identity of a server and its data, and whether the data is still complete.

use crate::error::ServerError;
use crate::link::Link;
use crate::server::Address;

/// Answer to `INFO`: one line per field.
pub(crate) struct Info(String);

/// Identity of a server's data: differs from any other server's, and from the data before a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// Address at which the server was reached.
    address: Address,
    /// Id of the process, new after each start.
    id: String,
    /// Id of the replication history, new after each promotion, and copied from a master.
    history: String,
    /// Position in that history, in bytes.
    offset: i64,
    /// Id of the history that this one continues; zeros if there is none.
    before: String,
    /// First byte of that history that the server never had; -1 if there is none.
    end: i64,
    /// True if the server copies from no other server.
    is_master: bool,
    /// True for a master that has each write on its disk before the reply: a restart loses none.
    is_durable: bool,
}

/// Part of all acknowledged data that a server still has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All: the server never ended, or continues from where another one had come to.
    All,
    /// All that was on its disk, from which it was restarted; an older copy may have been put there.
    Disk,
    /// Unknown.
    Unknown,
}

impl Info {
    /// Requests all fields.
    pub fn ask(link: &mut Link) -> Result<Self, ServerError> {
        link.ask(&["INFO"], |items| Ok(Self(String::from_utf8_lossy(items.bulk()?).into_owned())))
    }

    /// Returns the value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    fn number(&self, name: &str) -> i64 {
        self.field(name).and_then(|value| value.parse().ok()).unwrap_or(-1)
    }
}

impl Run {
    /// Requests the identity of the connected server; none if the server does not report it.
    pub fn ask(link: &mut Link) -> Result<Option<Self>, ServerError> {
        let info = match Info::ask(link) {
            Err(ServerError::Refused(_)) => return Ok(None),
            info => info?,
        };
        let field = |name| info.field(name).map(str::to_owned);
        let (Some(id), Some(history)) = (field("run_id"), field("master_replid")) else { return Ok(None) };
        let (offset, end) = (info.number("master_repl_offset"), info.number("second_repl_offset"));
        let before = field("master_replid2").unwrap_or_default();
        let is_master = info.field("role") == Some("master");
        let is_durable = is_master && info.field("aof_enabled") == Some("1") && syncs_always(link)?;
        Ok(Some(Self { address: link.address().clone(), id, history, offset, before, end, is_master, is_durable }))
    }

    /// Returns whether both are the same process, in which a client id means the same connection.
    pub fn is_same_process(&self, other: &Self) -> bool {
        self.id == other.id
    }

    /// Returns whether all acknowledged data is still there, as far as a server can report.
    pub fn has_kept_all(before: Option<&Self>, now: Option<&Self>) -> bool {
        Self::kept(before, now) != Kept::Unknown
    }

    /// Compares two identities. The result is unknown for a server that restarted without syncing each write, that
    /// copied its data from another server, or that took over.
    pub fn kept(before: Option<&Self>, now: Option<&Self>) -> Kept {
        let (Some(before), Some(now)) = (before, now) else { return Kept::Unknown };
        match now.id == before.id {
            true if now.goes_on_from(before) => Kept::All,
            false if now.was_started_again(before) => Kept::Disk,
            _ => Kept::Unknown,
        }
    }

    /// Returns whether a process that never ended kept its data: its history is the same, or continues from beyond
    /// `before`.
    fn goes_on_from(&self, before: &Self) -> bool {
        let is_same = self.history == before.history && self.offset >= before.offset;
        is_same || self.before == before.history && self.end > before.offset
    }

    /// Returns whether the same server restarted and read everything from its own disk, which begins a new history. A
    /// history that continues another one was copied from a server that may have lacked some data.
    fn was_started_again(&self, before: &Self) -> bool {
        self.address == before.address && before.is_durable && self.is_durable && !self.has_copied()
    }

    fn has_copied(&self) -> bool {
        self.before.bytes().any(|digit| digit != b'0')
    }

    /// Returns a number for resume tokens that distinguishes this server's data from others'; never 0. The upper half
    /// stands for its history; the lower one for its address if a restart loses nothing, else it is 0.
    pub fn mark(&self) -> u64 {
        u64::from(digest(&self.history)) << 32 | u64::from(self.place())
    }

    /// Compares with a mark of earlier data. A replica has the history of its master, and may lag behind it, so it is
    /// unknown.
    pub fn kept_of(&self, mark: u64) -> Kept {
        let own = self.mark();
        if self.is_master && own >> 32 == mark >> 32 {
            Kept::All
        } else if self.place() != 0 && own << 32 == mark << 32 {
            Kept::Disk
        } else {
            Kept::Unknown
        }
    }

    /// Returns a server that syncs each write, for tests of other modules; examples differ in the id alone.
    #[cfg(test)]
    pub fn example(id: &str) -> Self {
        Self {
            address: Address::Tcp { host: "host".to_owned(), port: 1 },
            id: id.to_owned(),
            history: "h".to_owned(),
            offset: 5,
            before: "0000".to_owned(),
            end: -1,
            is_master: true,
            is_durable: true,
        }
    }

    fn place(&self) -> u32 {
        if self.is_durable && !self.has_copied() { digest(&self.address.to_string()) } else { 0 }
    }
}

/// Returns a hash of the text (FNV-1a, folded to 32 bits); never 0.
fn digest(text: &str) -> u32 {
    let mixed = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    ((mixed >> 32) as u32 ^ mixed as u32).max(1)
}

fn syncs_always(link: &mut Link) -> Result<bool, ServerError> {
    let told = link.ask(&["CONFIG", "GET", "appendfsync"], |items| match items.array()? {
        2 => {
            let _name = items.bulk()?;
            Ok(items.bulk()? == b"always")
        }
        _ => Ok(false),
    });
    match told {
        Err(ServerError::Refused(_)) => Ok(false),
        told => told,
    }
}

#[cfg(test)]
mod tests {
    use super::Kept::{All, Disk, Unknown};
    use super::*;

    const NONE: &str = "0000";

    /// Returns a master on this port.
    fn run(port: u16, id: &str, history: (&str, i64), before: (&str, i64), is_durable: bool) -> Run {
        Run {
            address: Address::Tcp { host: "host".to_owned(), port },
            id: id.to_owned(),
            history: history.0.to_owned(),
            offset: history.1,
            before: before.0.to_owned(),
            end: before.1,
            is_master: true,
            is_durable,
        }
    }

    #[test]
    fn a_server_has_kept_all_or_nobody_knows() {
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
            assert_eq!(Run::kept(Some(&before), Some(&now)), kept, "{what}");
            assert!(!Run::has_kept_all(Some(&before), None) && !Run::has_kept_all(None, Some(&now)), "{what}");
        }
    }

    #[test]
    fn a_mark_tells_a_server_by_its_history_or_where_nothing_is_lost_by_its_place() {
        let (new, plain, durable) = ((NONE, -1), false, true);
        let copy = |run| Run { is_master: false, ..run };
        for (what, before, now, kept) in [
            ("the same", run(1, "a", ("h", 5), new, plain), run(1, "a", ("h", 9), new, plain), All),
            ("its copy", run(1, "a", ("h", 5), new, plain), copy(run(2, "b", ("h", 9), new, plain)), Unknown),
            ("of a copy", copy(run(2, "b", ("h", 5), new, plain)), run(1, "a", ("h", 9), new, plain), All),
            ("started again", run(1, "a", ("h", 5), new, plain), run(1, "b", ("i", 0), new, plain), Unknown),
            ("the same from disk", run(1, "a", ("h", 5), new, durable), run(1, "b", ("i", 0), new, durable), Disk),
            ("no longer durable", run(1, "a", ("h", 5), new, durable), run(1, "b", ("i", 0), new, plain), Unknown),
            ("a failover", run(1, "a", ("h", 5), new, durable), run(2, "b", ("i", 9), ("h", 9), durable), Unknown),
        ] {
            assert_eq!(now.kept_of(before.mark()), kept, "{what}");
            assert_eq!(now.kept_of(0), Unknown, "{what}");
        }
    }
}
