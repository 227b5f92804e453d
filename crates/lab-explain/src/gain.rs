//! The changes that can be tried.

use std::fmt;
use std::str::FromStr;

/// Figure that the gains compare.
pub(super) const FIGURE: &str = "one_way.p50_ns";

/// A change to the client, the server or the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gain {
    /// An open connection, instead of one made inside each process's call.
    WarmConnection,
    /// A blocking loop over `listen()`, instead of polling `get_message()`.
    Listen,
    /// A blocking loop over `listen()`, instead of `get_message()` with a millisecond of sleep.
    NoSleep,
    /// The hiredis parser, instead of redis-py's own.
    Hiredis,
    /// uvloop, instead of asyncio's own loop.
    Uvloop,
    /// A Unix socket instead of TCP.
    UnixSocket,
    /// A server without persistence, instead of one that makes snapshots.
    NoPersistence,
    /// An append-only file synchronised every second, instead of snapshots.
    AofEverySecond,
    /// An append-only file synchronised before each reply, instead of snapshots.
    AofAlways,
    /// Publisher, server and subscriber on one core.
    OneCore,
    /// Publisher and subscriber each on a separate core.
    CoresApart,
    /// A reader that polls continuously, instead of one that sleeps.
    BusyReader,
    /// The package `tickpath` instead of redis-py, over shared memory instead of the server, in the same scripts.
    ImportTickpath,
    /// Our own bus instead of redis-py, over the same server.
    Rust,
    /// NATS instead of the server, our own bus over both.
    Nats,
    /// The log in shared memory instead of the server, our own bus over both.
    Log,
}

/// Every change with its name, in the order of trying.
pub const GAINS: [(Gain, &str); 16] = [
    (Gain::WarmConnection, "warm_connection"),
    (Gain::Listen, "listen"),
    (Gain::NoSleep, "no_sleep"),
    (Gain::Hiredis, "hiredis"),
    (Gain::Uvloop, "uvloop"),
    (Gain::UnixSocket, "unix_socket"),
    (Gain::NoPersistence, "no_persistence"),
    (Gain::AofEverySecond, "aof_everysec"),
    (Gain::AofAlways, "aof_always"),
    (Gain::OneCore, "one_core"),
    (Gain::CoresApart, "cores_apart"),
    (Gain::BusyReader, "busy_reader"),
    (Gain::ImportTickpath, "import_tickpath"),
    (Gain::Rust, "rust"),
    (Gain::Nats, "nats"),
    (Gain::Log, "log"),
];

/// A word that names no change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no change that can be tried; use all, none, or of {names}", names = names())]
pub struct ParseGainError(String);

fn names() -> String {
    GAINS.map(|(_, name)| name.replace('_', "-")).join(", ")
}

impl Gain {
    /// Returns the name on the command line and in results.
    pub fn name(self) -> &'static str {
        GAINS.iter().find(|(gain, _)| *gain == self).map_or("", |(_, name)| name)
    }
}

pub(super) fn change_words(name: &str) -> &str {
    match name.parse() {
        Ok(Gain::WarmConnection) => "warm connection",
        Ok(Gain::Listen) => "blocking listen()",
        Ok(Gain::NoSleep) => "no sleep",
        Ok(Gain::UnixSocket) => "a Unix socket",
        Ok(Gain::NoPersistence) => "no persistence",
        Ok(Gain::AofEverySecond) => "AOF every second",
        Ok(Gain::AofAlways) => "AOF each command",
        Ok(Gain::OneCore) => "all on one core",
        Ok(Gain::CoresApart) => "a core each",
        Ok(Gain::BusyReader) => "a spinning reader",
        Ok(Gain::ImportTickpath) => "import tickpath",
        Ok(Gain::Rust) => "Rust, not Python",
        Ok(Gain::Nats) => "NATS, same client",
        Ok(Gain::Log) => "log, same client",
        Ok(Gain::Hiredis | Gain::Uvloop) | Err(_) => name,
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Gain {
    type Err = ParseGainError;

    fn from_str(text: &str) -> Result<Self, ParseGainError> {
        let name = text.replace('-', "_");
        let found = GAINS.iter().find(|(_, known)| *known == name);
        found.map(|(gain, _)| *gain).ok_or_else(|| ParseGainError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_has_a_unique_name() {
        for (gain, name) in GAINS {
            assert_eq!((name.parse(), gain.name()), (Ok(gain), name));
        }
        assert_eq!("unix-socket".parse(), Ok(Gain::UnixSocket));
        let error = "faster".parse::<Gain>().unwrap_err().to_string();
        assert!(error.contains("faster") && error.contains("warm-connection"), "{error}");
    }
}
