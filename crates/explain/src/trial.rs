//! What is set against what: for each change the way there is, and the way that it becomes.

use tickpath_clock::Wait;

use super::gain::Gain;
use super::pair::{Flavour, Receive};
use super::settings::{Client, Subject};
use tickpath_result::short_name;
use tickpath_scratch::redis::Persistence;

/// The variable that names a NATS server.
const NATS: &str = "TICKPATH_NATS";

/// One change, and what it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    pub gain: Gain,
    pub base: Side,
    pub change: Side,
}

/// One of the two that take turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Side {
    /// A new process a message.
    Cold(Flavour),
    /// redis-py with connections that are there.
    Pair(Setup),
    /// Our own bus over Redis.
    Bus(Place),
    /// Our own bus over the server of this URL, or the log, with a reader that waits so.
    Other(String, Wait),
}

/// How redis-py is used, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setup {
    pub place: Place,
    pub flavour: Flavour,
    pub receive: Receive,
    pub hiredis: bool,
    pub cores: Cores,
}

/// Which server, and the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The server under test.
    Target,
    /// A scratch server.
    Scratch(Persistence),
    /// The Unix socket of one that makes snapshots.
    UnixSocket,
    /// A scratch server on the first CPU.
    FirstCore,
}

/// Where publisher and subscriber run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cores {
    Any,
    One,
    Apart,
}

/// What a change and its base are: they differ in one thing, the one that the change is called by. Settings of a server
/// are tried on scratch servers, and `ours` says whether the server under test is one, so that all stand against it.
/// Without a sentence where the change is nothing to this client.
pub(super) fn trial(gain: Gain, subject: &Subject, ours: bool) -> Result<Trial, Option<String>> {
    let usual = if ours { Place::Target } else { Place::Scratch(Persistence::Rdb) };
    let flavour = match subject {
        Subject::Bus(url) => return trial_of_url(gain, url),
        Subject::Client(Client::Rust) => return trial_of_bus(gain, usual),
        Subject::Client(Client::RedisPyAsyncio) => Flavour::Asyncio,
        _ => Flavour::Blocking,
    };
    let base = Setup { place: Place::Target, flavour, receive: Receive::Listen, hiredis: false, cores: Cores::Any };
    let scratch = Setup { place: usual, ..base };
    let stored = |persistence| Setup { place: Place::Scratch(persistence), ..base };
    let apart = Side::Pair(Setup { cores: Cores::Apart, ..base });
    let (base, change) = match gain {
        Gain::WarmConnection => (Side::Cold(flavour), Side::Pair(base)),
        Gain::Listen | Gain::NoSleep if flavour != Flavour::Blocking => return Err(None),
        Gain::Listen => (Side::Pair(Setup { receive: Receive::Spin, ..base }), Side::Pair(base)),
        Gain::NoSleep => (Side::Pair(Setup { receive: Receive::Sleep, ..base }), Side::Pair(base)),
        Gain::Hiredis => (Side::Pair(base), Side::Pair(Setup { hiredis: true, ..base })),
        Gain::Uvloop => {
            let asyncio = Setup { flavour: Flavour::Asyncio, ..base };
            (Side::Pair(asyncio), Side::Pair(Setup { flavour: Flavour::Uvloop, ..base }))
        }
        Gain::UnixSocket => (Side::Pair(scratch), Side::Pair(Setup { place: Place::UnixSocket, ..base })),
        Gain::NoPersistence => (Side::Pair(scratch), Side::Pair(stored(Persistence::None))),
        Gain::AofEverySecond => (Side::Pair(scratch), Side::Pair(stored(Persistence::AofEverySecond))),
        Gain::AofAlways => (Side::Pair(scratch), Side::Pair(stored(Persistence::AofAlways))),
        Gain::OneCore => {
            (Side::Pair(scratch), Side::Pair(Setup { place: Place::FirstCore, cores: Cores::One, ..base }))
        }
        Gain::CoresApart => (Side::Pair(scratch), Side::Pair(Setup { cores: Cores::Apart, ..scratch })),
        // Our own processes are pinned: so is what they are compared with.
        Gain::Rust => (apart, Side::Bus(Place::Target)),
        // Who leaves Redis need not leave Python: that is another change.
        Gain::Nats => (Side::Bus(Place::Target), nats()?),
        Gain::Log => (Side::Bus(Place::Target), log()),
        Gain::BusyReader => return Err(None),
    };
    Ok(Trial { gain, base, change })
}

/// Of our own bus over another server, or over the log.
fn trial_of_url(gain: Gain, url: &str) -> Result<Trial, Option<String>> {
    let base = Side::Other(url.to_owned(), Wait::Block);
    let change = match gain {
        Gain::BusyReader => Side::Other(url.to_owned(), Wait::Busy),
        Gain::Nats if short_name(url) != "nats" => nats()?,
        Gain::Log if short_name(url) != "log" => log(),
        _ => return Err(None),
    };
    Ok(Trial { gain, base, change })
}

fn trial_of_bus(gain: Gain, usual: Place) -> Result<Trial, Option<String>> {
    let scratch = Side::Bus(usual);
    let stored = |persistence| Side::Bus(Place::Scratch(persistence));
    let (base, change) = match gain {
        Gain::UnixSocket => (scratch, Side::Bus(Place::UnixSocket)),
        Gain::NoPersistence => (scratch, stored(Persistence::None)),
        Gain::AofEverySecond => (scratch, stored(Persistence::AofEverySecond)),
        Gain::AofAlways => (scratch, stored(Persistence::AofAlways)),
        Gain::Nats => (Side::Bus(Place::Target), nats()?),
        Gain::Log => (Side::Bus(Place::Target), log()),
        Gain::WarmConnection
        | Gain::Listen
        | Gain::NoSleep
        | Gain::Hiredis
        | Gain::Uvloop
        | Gain::OneCore
        | Gain::CoresApart
        | Gain::BusyReader
        | Gain::Rust => return Err(None),
    };
    Ok(Trial { gain, base, change })
}

fn log() -> Side {
    Side::Other("shm://".to_owned(), Wait::Block)
}

fn nats() -> Result<Side, Option<String>> {
    let url = std::env::var(NATS).map_err(|_| {
        Some(format!("{NATS} is not set; start a server with `scripts/brokers run -- COMMAND`, or name one in it"))
    })?;
    Ok(Side::Other(url, Wait::Block))
}

impl Side {
    /// For a reader of the result.
    pub fn text(&self) -> String {
        match self {
            Self::Cold(flavour) => format!("a new process a message, {}", flavour.text()),
            Self::Pair(setup) => setup.text(),
            Self::Bus(place) => format!("tickpath bus, blocking, {}", place.text()),
            Self::Other(url, Wait::Block) => format!("tickpath bus, blocking, {}", short_name(url)),
            Self::Other(url, wait) => format!("tickpath bus, a {wait} reader, {}", short_name(url)),
        }
    }
}

impl Setup {
    fn text(&self) -> String {
        let parser = if self.hiredis { "with hiredis" } else { "without hiredis" };
        let cores = match self.cores {
            Cores::Any => "any core",
            Cores::One => "all on one core",
            Cores::Apart => "publisher and subscriber pinned apart",
        };
        let parts = [self.flavour.text(), self.receive.name(), parser, self.place.text(), cores];
        parts.join(", ")
    }
}

impl Place {
    fn text(self) -> &'static str {
        match self {
            Self::Target => "the server under test",
            Self::Scratch(Persistence::None) => "a server without persistence",
            Self::Scratch(Persistence::Rdb) => "a server with snapshots",
            Self::Scratch(Persistence::AofEverySecond) => "a server with an append-only file, everysec",
            Self::Scratch(Persistence::AofAlways) => "a server with an append-only file, always",
            Self::UnixSocket => "a Unix socket",
            Self::FirstCore => "a server on the same core",
        }
    }
}

impl Flavour {
    fn text(self) -> &'static str {
        match self {
            Self::Blocking => "redis-py",
            Self::Asyncio => "redis-py on asyncio",
            Self::Uvloop => "redis-py on uvloop",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gain::GAINS;
    use super::*;

    /// How many things differ between two setups.
    fn differences(a: &Setup, b: &Setup) -> usize {
        let differ = [
            a.place != b.place,
            a.flavour != b.flavour,
            a.receive != b.receive,
            a.hiredis != b.hiredis,
            a.cores != b.cores,
        ];
        differ.into_iter().filter(|differs| *differs).count()
    }

    #[test]
    fn a_change_differs_from_its_base_in_one_thing() {
        let subjects = [Client::RedisPy, Client::RedisPyAsyncio, Client::Rust].map(Subject::Client);
        let buses = ["shm://", "nats://h:1", "nats://h:1?jetstream"].map(|url| Subject::Bus(url.to_owned()));
        for subject in subjects.iter().chain(&buses).chain([&Subject::OnePublishPerProcess]) {
            for (gain, _) in GAINS {
                for ours in [true, false] {
                    let Ok(trial) = trial(gain, subject, ours) else { continue };
                    assert_ne!(trial.base, trial.change, "{gain} of {subject:?}");
                    assert_ne!(trial.base.text(), trial.change.text(), "{gain} of {subject:?}");
                    match (&trial.base, &trial.change) {
                        // The server takes the core that both clients share.
                        (Side::Pair(a), Side::Pair(b)) if gain == Gain::OneCore => assert_eq!(differences(a, b), 2),
                        (Side::Pair(a), Side::Pair(b)) => assert_eq!(differences(a, b), 1, "{gain} of {subject:?}"),
                        // A language is left for the same server alone, and a server for one that the same client uses.
                        (Side::Pair(a), Side::Bus(place)) => {
                            assert_eq!((gain, a.place, a.receive), (Gain::Rust, *place, Receive::Listen));
                        }
                        (Side::Pair(_), Side::Other(..)) => panic!("{gain} of {subject:?} changes client and server"),
                        _ => {}
                    }
                }
            }
        }
    }
}
