//! What a server says of itself, and whether it is still the one that it was.

use crate::error::ServerError;
use crate::link::Link;
use crate::server::Address;

/// What `INFO` says: a line a field.
pub(crate) struct Info(String);

/// What tells the data of a server from any other's, and from what it held before it was started again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where it was reached.
    address: Address,
    /// Another one after each start.
    id: String,
    /// Another one after each promotion, and of whoever it copied its data from.
    history: String,
    /// How far it had come in that history, in bytes.
    offset: i64,
    /// The history that this one goes on from; zeros if there is none.
    before: String,
    /// The first byte of that history that it never had; -1 if there is none.
    end: i64,
    /// It copies from no other server.
    is_master: bool,
    /// It is a master of which each write is on the disk before its reply: a start loses none.
    is_durable: bool,
}

/// What a server still has of all that was acknowledged before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All: it never ended, or goes on from where one had come to.
    All,
    /// All that lies on its disk, from which it was started again; an older copy may have been put there.
    Disk,
    /// Nobody knows.
    Unknown,
}

impl Info {
    /// Asks for all of it.
    pub fn ask(link: &mut Link) -> Result<Self, ServerError> {
        link.ask(&["INFO"], |items| Ok(Self(String::from_utf8_lossy(items.bulk()?).into_owned())))
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    fn number(&self, name: &str) -> i64 {
        self.field(name).and_then(|value| value.parse().ok()).unwrap_or(-1)
    }
}

impl Run {
    /// The one that answers; none if it does not tell.
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

    /// Whether it is the same process: its connections have the same numbers.
    pub fn is_same_process(&self, other: &Self) -> bool {
        self.id == other.id
    }

    /// Whether all that was acknowledged before is still there, as far as a server can tell.
    pub fn has_kept_all(before: Option<&Self>, now: Option<&Self>) -> bool {
        Self::kept(before, now) != Kept::Unknown
    }

    /// What is still there. Of one that was started again and does not sync each write, of one that copied its data from
    /// another server, and of another one that took over, nobody knows.
    pub fn kept(before: Option<&Self>, now: Option<&Self>) -> Kept {
        let (Some(before), Some(now)) = (before, now) else { return Kept::Unknown };
        match now.id == before.id {
            true if now.goes_on_from(before) => Kept::All,
            false if now.was_started_again(before) => Kept::Disk,
            _ => Kept::Unknown,
        }
    }

    /// Whether one that never ended still has what it had: its history is the same, or went on where it had come to.
    fn goes_on_from(&self, before: &Self) -> bool {
        let is_same = self.history == before.history && self.offset >= before.offset;
        is_same || self.before == before.history && self.end > before.offset
    }

    /// Whether it is the same server, and has read all from its own disk. Such a one begins a history; one whose history goes
    /// on from another has copied its data from a server, which may have lacked some.
    fn was_started_again(&self, before: &Self) -> bool {
        self.address == before.address && before.is_durable && self.is_durable && !self.has_copied()
    }

    fn has_copied(&self) -> bool {
        self.before.bytes().any(|digit| digit != b'0')
    }

    /// A number for a resume token that tells this server's data from others'; never 0. The upper half is its history. The
    /// lower one, where a start loses nothing, is its address, else 0.
    pub fn mark(&self) -> u64 {
        u64::from(digest(&self.history)) << 32 | u64::from(self.place())
    }

    /// What is still there of what had this mark. A replica has the history of its master, and may lag behind it.
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

    /// A server that syncs each write, for tests of others: one whatever its run is called.
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

/// A number that other text has not, but for one in four billions (FNV-1a); never 0.
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

    /// A master on this port.
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
