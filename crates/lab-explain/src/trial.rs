//! Trials: for each change its base, and the changed side.

use tickpath_clock::Wait;

use super::gain::Gain;
use super::pair::{Flavour, MESSAGE_BYTES, Receive, Way};
use super::settings::{Client, Subject};
use super::traffic::Traffic;
use tickpath_lab_result::short_name;
use tickpath_lab_tools::redis::Persistence;
use tickpath_lab_tools::scripts::Library;

/// Environment variable with the URL of a NATS server.
const NATS: &str = "TICKPATH_NATS";

/// One change, and its base.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    pub gain: Gain,
    pub base: Side,
    pub change: Side,
}

/// One of the two sides that take turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Side {
    /// A new process for each message.
    Cold(Flavour),
    /// redis-py, or the package in its place, with open connections.
    Pair(Setup),
    /// Our own bus over Redis.
    Bus(Place),
    /// Our own bus over the server of this URL, or the log, with a reader that waits in this way.
    Other(String, Wait),
}

/// Use of redis-py, or of the package in its place, and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setup {
    pub place: Place,
    pub library: Library,
    pub interpreter: Interpreter,
    pub flavour: Flavour,
    pub way: Way,
    pub receive: Receive,
    /// Bytes of a message.
    pub size: usize,
    pub hiredis: bool,
    pub cores: Cores,
}

/// Python of both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interpreter {
    /// The prepared Python with redis-py.
    Prepared,
    /// The Python that has the package `tickpath` beside redis-py.
    WithBoth,
}

/// Server, and the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The server under test.
    Target,
    /// A scratch server.
    Scratch(Persistence),
    /// The Unix socket of a scratch server that makes snapshots.
    UnixSocket,
    /// A scratch server on the first CPU.
    FirstCore,
    /// No server: a log in shared memory.
    SharedMemory,
}

/// Cores of publisher and subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cores {
    Any,
    One,
    Apart,
}

/// Returns a change and its base, which differ only in what names the change. Server settings are tried on scratch
/// servers, and `ours` says whether the server under test is a scratch server, so that all share one base. Observed
/// traffic decides between push and publish, and sets the import trial; an error without a sentence means that the
/// change does not apply to this client.
pub(super) fn trial(
    gain: Gain,
    subject: &Subject,
    ours: bool,
    traffic: Option<&Traffic>,
) -> Result<Trial, Option<String>> {
    let usual = if ours { Place::Target } else { Place::Scratch(Persistence::Rdb) };
    let flavour = match subject {
        Subject::Bus(url) => return trial_of_url(gain, url),
        Subject::Client(Client::Rust) => return trial_of_bus(gain, usual),
        Subject::Client(Client::RedisPyAsyncio) => Flavour::Asyncio,
        _ => Flavour::Blocking,
    };
    let way = traffic.map_or(Way::Channel, Traffic::way);
    let base = Setup {
        place: Place::Target,
        library: Library::RedisPy,
        interpreter: Interpreter::Prepared,
        flavour,
        way,
        receive: Receive::Listen,
        size: MESSAGE_BYTES,
        hiredis: false,
        cores: Cores::Any,
    };
    let scratch = Setup { place: usual, ..base };
    let stored = |persistence| Setup { place: Place::Scratch(persistence), ..base };
    let apart = Side::Pair(Setup { cores: Cores::Apart, ..base });
    let (base, change) = match gain {
        // The other side of these trials publishes, and does not push.
        Gain::WarmConnection | Gain::Listen | Gain::NoSleep | Gain::Rust | Gain::Nats | Gain::Log
            if way == Way::Queue =>
        {
            return Err(None);
        }
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
        Gain::ImportTickpath => {
            let theirs = Setup { interpreter: Interpreter::WithBoth, ..base };
            let theirs = traffic.map_or(theirs, |traffic| as_seen(theirs, traffic));
            (Side::Pair(theirs), Side::Pair(over_the_log(theirs)))
        }
        // Our own processes are pinned, and so is their base.
        Gain::Rust => (apart, Side::Bus(Place::Target)),
        // Leaving Redis and leaving Python are separate changes.
        Gain::Nats => (Side::Bus(Place::Target), nats()?),
        Gain::Log => (Side::Bus(Place::Target), log()),
        Gain::BusyReader => return Err(None),
    };
    Ok(Trial { gain, base, change })
}

/// Returns the setup as scripts were observed to use redis-py.
fn as_seen(setup: Setup, traffic: &Traffic) -> Setup {
    let &Traffic { flavour, receive, size, hiredis, .. } = traffic;
    Setup { flavour, receive, size, hiredis, ..setup }
}

/// Returns the same setup with the package `tickpath`, which replaces the server by the log.
fn over_the_log(setup: Setup) -> Setup {
    Setup { place: Place::SharedMemory, library: Library::Tickpath, ..setup }
}

/// Returns a trial of our own bus over another server, or over the log.
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
        | Gain::ImportTickpath
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
    /// Returns the words for a reader of the result.
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
        let parser = match (self.library, self.hiredis) {
            (Library::Tickpath, _) => None,
            (Library::RedisPy, true) => Some("with hiredis"),
            (Library::RedisPy, false) => Some("without hiredis"),
        };
        let cores = match self.cores {
            Cores::Any => "any core",
            Cores::One => "all on one core",
            Cores::Apart => "publisher and subscriber pinned apart",
        };
        let python = (self.interpreter == Interpreter::WithBoth).then_some("a Python that has both packages");
        let parts = [Some(self.client()), Some(self.waits()), parser, Some(self.place.text()), Some(cores), python];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn client(&self) -> &'static str {
        match (self.library, self.flavour) {
            (Library::RedisPy, flavour) => flavour.text(),
            (Library::Tickpath, Flavour::Blocking) => "tickpath",
            (Library::Tickpath, Flavour::Asyncio) => "tickpath on asyncio",
            (Library::Tickpath, Flavour::Uvloop) => "tickpath on uvloop",
        }
    }

    fn waits(&self) -> &'static str {
        match (self.library, self.way, self.receive) {
            (Library::RedisPy, Way::Queue, _) => "rpush and blpop",
            (Library::RedisPy, Way::Channel, receive) => receive.name(),
            (Library::Tickpath, Way::Queue, _) => "a queue, iterated",
            (Library::Tickpath, Way::Channel, Receive::Listen) => "iterated",
            (Library::Tickpath, Way::Channel, Receive::Spin) => "spin on poll",
            (Library::Tickpath, Way::Channel, Receive::Sleep) => "poll, sleep 1 ms",
        }
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
            Self::SharedMemory => "shared memory",
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

    /// Returns the number of differences between two setups.
    fn differences(a: &Setup, b: &Setup) -> usize {
        let differ = [
            a.place != b.place,
            a.library != b.library,
            a.interpreter != b.interpreter,
            a.flavour != b.flavour,
            a.way != b.way,
            a.receive != b.receive,
            a.size != b.size,
            a.hiredis != b.hiredis,
            a.cores != b.cores,
        ];
        differ.into_iter().filter(|differs| *differs).count()
    }

    /// Returns traffic of scripts that wait in this way, and send by this command.
    fn traffic(sends: &str, flavour: Flavour, receive: Receive) -> Traffic {
        let (sends, program) = (sends.to_owned(), None);
        Traffic { sends, flavour, receive, hiredis: true, size: 200, count: 50, per_s: Some(80.0), program }
    }

    #[test]
    fn a_change_differs_from_its_base_in_one_thing() {
        let subjects = [Client::RedisPy, Client::RedisPyAsyncio, Client::Rust].map(Subject::Client);
        let buses = ["shm://", "nats://h:1", "nats://h:1?jetstream"].map(|url| Subject::Bus(url.to_owned()));
        for subject in subjects.iter().chain(&buses).chain([&Subject::OnePublishPerProcess]) {
            for (gain, _) in GAINS {
                for ours in [true, false] {
                    let Ok(trial) = trial(gain, subject, ours, None) else { continue };
                    assert_ne!(trial.base, trial.change, "{gain} of {subject:?}");
                    assert_ne!(trial.base.text(), trial.change.text(), "{gain} of {subject:?}");
                    match (&trial.base, &trial.change) {
                        // The server moves to the core that both clients share.
                        (Side::Pair(a), Side::Pair(b)) if gain == Gain::OneCore => assert_eq!(differences(a, b), 2),
                        // The import change replaces the server as well.
                        (Side::Pair(a), Side::Pair(b)) if gain == Gain::ImportTickpath => {
                            assert_eq!(differences(a, b), 2);
                            assert_eq!((a.place, b.place), (Place::Target, Place::SharedMemory));
                            assert_eq!((a.library, b.library), (Library::RedisPy, Library::Tickpath));
                        }
                        (Side::Pair(a), Side::Pair(b)) => assert_eq!(differences(a, b), 1, "{gain} of {subject:?}"),
                        // The Rust change keeps the server, and server changes keep the client.
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

    #[test]
    fn an_import_is_changed_in_scripts_that_wait_as_those_that_were_seen() {
        let subject = Subject::Scripts { command: vec!["p.py".to_owned()], companion: None };
        for (sends, flavour, receive, words) in [
            ("publish", Flavour::Blocking, Receive::Listen, "tickpath, iterated, shared memory, any core"),
            ("publish", Flavour::Blocking, Receive::Spin, "tickpath, spin on poll, shared memory"),
            ("publish", Flavour::Blocking, Receive::Sleep, "tickpath, poll, sleep 1 ms, shared memory"),
            ("publish", Flavour::Uvloop, Receive::Listen, "tickpath on uvloop, iterated, shared memory"),
            ("rpush", Flavour::Asyncio, Receive::Listen, "tickpath on asyncio, a queue, iterated, shared memory"),
        ] {
            let traffic = traffic(sends, flavour, receive);
            let trial = trial(Gain::ImportTickpath, &subject, true, Some(&traffic)).unwrap();
            let (Side::Pair(base), Side::Pair(change)) = (&trial.base, &trial.change) else { panic!("{trial:?}") };
            assert_eq!((base.flavour, base.receive, base.size, base.hiredis), (flavour, receive, 200, true));
            assert_eq!((base.way, differences(base, change)), (traffic.way(), 2));
            assert!(change.text().starts_with(words), "{}", change.text());
        }
    }

    #[test]
    fn scripts_that_push_are_compared_with_what_pushes() {
        let subject = Subject::Scripts { command: vec!["p.py".to_owned()], companion: None };
        let traffic = traffic("lpush", Flavour::Blocking, Receive::Listen);
        let mut tried = 0;
        for trial in GAINS.iter().filter_map(|(gain, _)| trial(*gain, &subject, true, Some(&traffic)).ok()) {
            let (Side::Pair(base), Side::Pair(change)) = (&trial.base, &trial.change) else { panic!("{trial:?}") };
            assert_eq!([base.way, change.way], [Way::Queue; 2], "{trial:?}");
            tried += 1;
        }
        assert_eq!(tried, 9);
    }
}
