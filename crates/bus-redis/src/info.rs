//! What a server says of itself, and whether it is still the one that it was.

use crate::error::ServerError;
use crate::link::Link;

/// What `INFO` says: a line a field.
pub(crate) struct Info(String);

/// What tells the data of a server from any other's, and from what it held before it was started again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// Another one after each start.
    id: String,
    /// Another one after each promotion, and of whoever it copied its data from.
    history: String,
    /// The history that this one goes on from.
    before: String,
    /// Each write is on the disk before its reply: a start loses none.
    is_durable: bool,
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
        let is_durable = info.field("aof_enabled") == Some("1") && syncs_always(link)?;
        Ok(Some(Self { id, history, before: field("master_replid2").unwrap_or_default(), is_durable }))
    }

    /// Whether all that was acknowledged before is still there. Of one that was started again, or that copied its data from
    /// another server meanwhile, nobody knows.
    pub fn has_kept_all(before: Option<&Self>, now: Option<&Self>) -> bool {
        let (Some(before), Some(now)) = (before, now) else { return false };
        let goes_on = now.history == before.history || now.before == before.history;
        if now.id == before.id { goes_on } else { before.is_durable && now.is_durable }
    }
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
    use super::*;

    #[test]
    fn a_server_has_kept_all_or_nobody_knows() {
        let run = |id: &str, history: &str, before: &str, is_durable| {
            Some(Run { id: id.into(), history: history.into(), before: before.into(), is_durable })
        };
        for (before, now, has_kept_all) in [
            (run("a", "h", "0", false), run("a", "h", "0", false), true),
            // It was promoted.
            (run("a", "h", "0", false), run("a", "i", "h", false), true),
            // It follows somebody else.
            (run("a", "h", "0", true), run("a", "i", "0", true), false),
            // It was started again.
            (run("a", "h", "0", false), run("b", "i", "0", false), false),
            (run("a", "h", "0", true), run("b", "i", "0", true), true),
            (run("a", "h", "0", false), None, false),
        ] {
            assert_eq!(Run::has_kept_all(before.as_ref(), now.as_ref()), has_kept_all, "{before:?} {now:?}");
        }
    }
}
