//! Trials: for each change its base, and the changed side.

use tickpath_clock::Wait;

use super::gain::Gain;
use super::pair::{Flavour, MESSAGE_BYTES, MessagePath, ReceiveMode};
use super::settings::{ExplainSubject, ExplainedClient};
use super::traffic::ScriptTraffic;
use tickpath_lab_result::short_name;
use tickpath_lab_tools::redis::Persistence;
use tickpath_lab_tools::scripts::Library;

/// Environment variable with the URL of a NATS server.
const NATS: &str = "TICKPATH_NATS";

/// One change, and its base.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    pub gain: Gain,
    pub base: TrialSide,
    pub change: TrialSide,
}

/// One of the two sides that take turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TrialSide {
    /// A new process for each message.
    Cold(Flavour),
    /// redis-py, or the package in its place, with open connections.
    Pair(PairSetup),
    /// Our own bus over Redis.
    Bus(ServerPlacement),
    /// Our own bus over the server of this URL, or the log, with a reader that waits in this way.
    Other(String, Wait),
}

/// Use of redis-py, or of the package in its place, and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PairSetup {
    pub placement: ServerPlacement,
    pub library: Library,
    pub interpreter: Interpreter,
    pub flavour: Flavour,
    pub path: MessagePath,
    pub receive: ReceiveMode,
    /// Bytes of a message.
    pub size: usize,
    pub hiredis: bool,
    pub cores: CorePlacement,
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
pub(super) enum ServerPlacement {
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
pub(super) enum CorePlacement {
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
    subject: &ExplainSubject,
    is_scratch: bool,
    traffic: Option<&ScriptTraffic>,
) -> Result<Trial, Option<String>> {
    let usual = if is_scratch { ServerPlacement::Target } else { ServerPlacement::Scratch(Persistence::Rdb) };
    let flavour = match subject {
        ExplainSubject::Bus(url) => return trial_of_url(gain, url),
        ExplainSubject::Client(ExplainedClient::Rust) => return trial_of_bus(gain, usual),
        ExplainSubject::Client(ExplainedClient::RedisPyAsyncio) => Flavour::Asyncio,
        _ => Flavour::Blocking,
    };
    let way = traffic.map_or(MessagePath::Channel, ScriptTraffic::message_path);
    let base = PairSetup {
        placement: ServerPlacement::Target,
        library: Library::RedisPy,
        interpreter: Interpreter::Prepared,
        flavour,
        path: way,
        receive: ReceiveMode::Listen,
        size: MESSAGE_BYTES,
        hiredis: false,
        cores: CorePlacement::Any,
    };
    let scratch = PairSetup { placement: usual, ..base };
    let stored = |persistence| PairSetup { placement: ServerPlacement::Scratch(persistence), ..base };
    let apart = TrialSide::Pair(PairSetup { cores: CorePlacement::Apart, ..base });
    let (base, change) = match gain {
        // The other side of these trials publishes, and does not push.
        Gain::WarmConnection | Gain::Listen | Gain::NoSleep | Gain::Rust | Gain::Nats | Gain::Log
            if way == MessagePath::Queue =>
        {
            return Err(None);
        }
        Gain::WarmConnection => (TrialSide::Cold(flavour), TrialSide::Pair(base)),
        Gain::Listen | Gain::NoSleep if flavour != Flavour::Blocking => return Err(None),
        Gain::Listen => (TrialSide::Pair(PairSetup { receive: ReceiveMode::Spin, ..base }), TrialSide::Pair(base)),
        Gain::NoSleep => (TrialSide::Pair(PairSetup { receive: ReceiveMode::Sleep, ..base }), TrialSide::Pair(base)),
        Gain::Hiredis => (TrialSide::Pair(base), TrialSide::Pair(PairSetup { hiredis: true, ..base })),
        Gain::Uvloop => {
            let asyncio = PairSetup { flavour: Flavour::Asyncio, ..base };
            (TrialSide::Pair(asyncio), TrialSide::Pair(PairSetup { flavour: Flavour::Uvloop, ..base }))
        }
        Gain::UnixSocket => {
            (TrialSide::Pair(scratch), TrialSide::Pair(PairSetup { placement: ServerPlacement::UnixSocket, ..base }))
        }
        Gain::NoPersistence => (TrialSide::Pair(scratch), TrialSide::Pair(stored(Persistence::None))),
        Gain::AofEverySecond => (TrialSide::Pair(scratch), TrialSide::Pair(stored(Persistence::AofEverySecond))),
        Gain::AofAlways => (TrialSide::Pair(scratch), TrialSide::Pair(stored(Persistence::AofAlways))),
        Gain::OneCore => (
            TrialSide::Pair(scratch),
            TrialSide::Pair(PairSetup { placement: ServerPlacement::FirstCore, cores: CorePlacement::One, ..base }),
        ),
        Gain::CoresApart => {
            (TrialSide::Pair(scratch), TrialSide::Pair(PairSetup { cores: CorePlacement::Apart, ..scratch }))
        }
        Gain::ImportTickpath => {
            let with_both = PairSetup { interpreter: Interpreter::WithBoth, ..base };
            let with_both = traffic.map_or(with_both, |traffic| as_observed(with_both, traffic));
            // The package `tickpath` replaces the server by the log.
            let (placement, library) = (ServerPlacement::SharedMemory, Library::Tickpath);
            (TrialSide::Pair(with_both), TrialSide::Pair(PairSetup { placement, library, ..with_both }))
        }
        // Our own processes are pinned, and so is their base.
        Gain::Rust => (apart, TrialSide::Bus(ServerPlacement::Target)),
        // Leaving Redis and leaving Python are separate changes.
        Gain::Nats => (TrialSide::Bus(ServerPlacement::Target), nats()?),
        Gain::Log => (TrialSide::Bus(ServerPlacement::Target), log()),
        Gain::BusyReader => return Err(None),
    };
    Ok(Trial { gain, base, change })
}

/// Returns the setup as scripts were observed to use redis-py.
fn as_observed(setup: PairSetup, traffic: &ScriptTraffic) -> PairSetup {
    let &ScriptTraffic { flavour, receive, size, hiredis, .. } = traffic;
    PairSetup { flavour, receive, size, hiredis, ..setup }
}

/// Returns a trial of our own bus over another server, or over the log.
fn trial_of_url(gain: Gain, url: &str) -> Result<Trial, Option<String>> {
    let base = TrialSide::Other(url.to_owned(), Wait::Block);
    let change = match gain {
        Gain::BusyReader => TrialSide::Other(url.to_owned(), Wait::Busy),
        Gain::Nats if short_name(url) != "nats" => nats()?,
        Gain::Log if short_name(url) != "log" => log(),
        _ => return Err(None),
    };
    Ok(Trial { gain, base, change })
}

fn trial_of_bus(gain: Gain, usual: ServerPlacement) -> Result<Trial, Option<String>> {
    let scratch = TrialSide::Bus(usual);
    let stored = |persistence| TrialSide::Bus(ServerPlacement::Scratch(persistence));
    let (base, change) = match gain {
        Gain::UnixSocket => (scratch, TrialSide::Bus(ServerPlacement::UnixSocket)),
        Gain::NoPersistence => (scratch, stored(Persistence::None)),
        Gain::AofEverySecond => (scratch, stored(Persistence::AofEverySecond)),
        Gain::AofAlways => (scratch, stored(Persistence::AofAlways)),
        Gain::Nats => (TrialSide::Bus(ServerPlacement::Target), nats()?),
        Gain::Log => (TrialSide::Bus(ServerPlacement::Target), log()),
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

fn log() -> TrialSide {
    TrialSide::Other("shm://".to_owned(), Wait::Block)
}

fn nats() -> Result<TrialSide, Option<String>> {
    let url = std::env::var(NATS).map_err(|_| {
        Some(format!("{NATS} is not set; start a server with `scripts/brokers run -- COMMAND`, or name one in it"))
    })?;
    Ok(TrialSide::Other(url, Wait::Block))
}

impl TrialSide {
    pub fn text(&self) -> String {
        match self {
            Self::Cold(flavour) => format!("a new process a message, {}", flavour.text()),
            Self::Pair(setup) => setup.text(),
            Self::Bus(placement) => format!("tickpath bus, blocking, {}", placement.text()),
            Self::Other(url, Wait::Block) => format!("tickpath bus, blocking, {}", short_name(url)),
            Self::Other(url, wait) => format!("tickpath bus, a {wait} reader, {}", short_name(url)),
        }
    }
}

impl PairSetup {
    fn text(&self) -> String {
        let parser = match (self.library, self.hiredis) {
            (Library::Tickpath, _) => None,
            (Library::RedisPy, true) => Some("with hiredis"),
            (Library::RedisPy, false) => Some("without hiredis"),
        };
        let cores = match self.cores {
            CorePlacement::Any => "any core",
            CorePlacement::One => "all on one core",
            CorePlacement::Apart => "publisher and subscriber pinned apart",
        };
        let python = (self.interpreter == Interpreter::WithBoth).then_some("a Python that has both packages");
        let parts = [Some(self.client()), Some(self.waits()), parser, Some(self.placement.text()), Some(cores), python];
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
        match (self.library, self.path, self.receive) {
            (Library::RedisPy, MessagePath::Queue, _) => "rpush and blpop",
            (Library::RedisPy, MessagePath::Channel, receive) => receive.name(),
            (Library::Tickpath, MessagePath::Queue, _) => "a queue, iterated",
            (Library::Tickpath, MessagePath::Channel, ReceiveMode::Listen) => "iterated",
            (Library::Tickpath, MessagePath::Channel, ReceiveMode::Spin) => "spin on poll",
            (Library::Tickpath, MessagePath::Channel, ReceiveMode::Sleep) => "poll, sleep 1 ms",
        }
    }
}

impl ServerPlacement {
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

    fn differences(a: &PairSetup, b: &PairSetup) -> usize {
        let differ = [
            a.placement != b.placement,
            a.library != b.library,
            a.interpreter != b.interpreter,
            a.flavour != b.flavour,
            a.path != b.path,
            a.receive != b.receive,
            a.size != b.size,
            a.hiredis != b.hiredis,
            a.cores != b.cores,
        ];
        differ.into_iter().filter(|differs| *differs).count()
    }

    /// Returns traffic of scripts that wait in this way, and send by this command.
    fn traffic(sends: &str, flavour: Flavour, receive: ReceiveMode) -> ScriptTraffic {
        let (sends, program) = (sends.to_owned(), None);
        ScriptTraffic { sends, flavour, receive, hiredis: true, size: 200, count: 50, per_s: Some(80.0), program }
    }

    #[test]
    fn a_change_differs_from_its_base_in_one_thing() {
        let subjects = [ExplainedClient::RedisPy, ExplainedClient::RedisPyAsyncio, ExplainedClient::Rust]
            .map(ExplainSubject::Client);
        let buses = ["shm://", "nats://h:1", "nats://h:1?jetstream"].map(|url| ExplainSubject::Bus(url.to_owned()));
        for subject in subjects.iter().chain(&buses).chain([&ExplainSubject::OnePublishPerProcess]) {
            for (gain, _) in GAINS {
                for is_scratch in [true, false] {
                    let Ok(trial) = trial(gain, subject, is_scratch, None) else { continue };
                    assert_ne!(trial.base, trial.change, "{gain} of {subject:?}");
                    assert_ne!(trial.base.text(), trial.change.text(), "{gain} of {subject:?}");
                    match (&trial.base, &trial.change) {
                        // The server moves to the core that both clients share.
                        (TrialSide::Pair(a), TrialSide::Pair(b)) if gain == Gain::OneCore => {
                            assert_eq!(differences(a, b), 2)
                        }
                        // The import change replaces the server as well.
                        (TrialSide::Pair(a), TrialSide::Pair(b)) if gain == Gain::ImportTickpath => {
                            assert_eq!(differences(a, b), 2);
                            assert_eq!(
                                (a.placement, b.placement),
                                (ServerPlacement::Target, ServerPlacement::SharedMemory)
                            );
                            assert_eq!((a.library, b.library), (Library::RedisPy, Library::Tickpath));
                        }
                        (TrialSide::Pair(a), TrialSide::Pair(b)) => {
                            assert_eq!(differences(a, b), 1, "{gain} of {subject:?}")
                        }
                        // The Rust change keeps the server, and server changes keep the client.
                        (TrialSide::Pair(a), TrialSide::Bus(placement)) => {
                            assert_eq!((gain, a.placement, a.receive), (Gain::Rust, *placement, ReceiveMode::Listen));
                        }
                        (TrialSide::Pair(_), TrialSide::Other(..)) => {
                            panic!("{gain} of {subject:?} changes client and server")
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    #[test]
    fn the_import_trial_waits_like_the_observed_scripts() {
        let subject = ExplainSubject::Scripts { command: vec!["p.py".to_owned()], companion: None };
        for (sends, flavour, receive, words) in [
            ("publish", Flavour::Blocking, ReceiveMode::Listen, "tickpath, iterated, shared memory, any core"),
            ("publish", Flavour::Blocking, ReceiveMode::Spin, "tickpath, spin on poll, shared memory"),
            ("publish", Flavour::Blocking, ReceiveMode::Sleep, "tickpath, poll, sleep 1 ms, shared memory"),
            ("publish", Flavour::Uvloop, ReceiveMode::Listen, "tickpath on uvloop, iterated, shared memory"),
            ("rpush", Flavour::Asyncio, ReceiveMode::Listen, "tickpath on asyncio, a queue, iterated, shared memory"),
        ] {
            let traffic = traffic(sends, flavour, receive);
            let trial = trial(Gain::ImportTickpath, &subject, true, Some(&traffic)).unwrap();
            let (TrialSide::Pair(base), TrialSide::Pair(change)) = (&trial.base, &trial.change) else {
                panic!("{trial:?}")
            };
            assert_eq!((base.flavour, base.receive, base.size, base.hiredis), (flavour, receive, 200, true));
            assert_eq!((base.path, differences(base, change)), (traffic.message_path(), 2));
            assert!(change.text().starts_with(words), "{}", change.text());
        }
    }

    #[test]
    fn pushing_scripts_are_compared_with_pushes() {
        let subject = ExplainSubject::Scripts { command: vec!["p.py".to_owned()], companion: None };
        let traffic = traffic("lpush", Flavour::Blocking, ReceiveMode::Listen);
        let mut tried = 0;
        for trial in GAINS.iter().filter_map(|(gain, _)| trial(*gain, &subject, true, Some(&traffic)).ok()) {
            let (TrialSide::Pair(base), TrialSide::Pair(change)) = (&trial.base, &trial.change) else {
                panic!("{trial:?}")
            };
            assert_eq!([base.path, change.path], [MessagePath::Queue; 2], "{trial:?}");
            tried += 1;
        }
        assert_eq!(tried, 9);
    }
}
