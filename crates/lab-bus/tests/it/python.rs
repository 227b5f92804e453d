//! Both ends in Python, by redis-py over a real server; `python/tests` tests both ends by the package `tickpath`.

use std::path::PathBuf;

use tickpath_clock::{HostClock, Wait};
use tickpath_lab_bus::pubsub::{ClientTarget, Settings, measure_cold, pairs, run};
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings};

#[test]
fn messages_between_two_python_processes_are_counted_and_stamped() {
    let lab = lab();
    let clock = HostClock::get().expect("the host has a clock");
    let server =
        ScratchServer::start(lab.folder(), &ServerSettings { unix_socket: true, ..ServerSettings::default() }, &clock);
    let server = server.expect("it starts").expect("redis-server is installed");
    let unix = server.unix_url().expect("it has a socket");
    let ready = asked(&lab, "redis-py", &[&server.url(), &unix]).expect("there is Python, and the index answers");
    let cases = [(&ready[0], Some(2_000.0), 200), (&ready[1], Some(2_000.0), 1), (&ready[0], None, 1_000)];
    for (pair, rate, count) in cases {
        let settings = Settings { rate, count, ..settings(pair) };
        let run = run(&lab, &settings).expect("it runs");
        let counts = (run.counts.sent, run.counts.received, run.counts.lost, run.counts.duplicated);
        assert_eq!(counts, (count, count, 0, 0), "{run:?}");
        assert_eq!((run.client.as_str(), run.software.client.as_deref()), ("redis-py", Some("redis-py")));
        assert!(run.software.client_version.is_some() && run.software.runtime.is_some(), "{run:?}");
        // Both ends reported that no connection was lost.
        assert!(!run.notes.iter().any(|note| note.contains("does not report reconnects")), "{run:?}");
        if rate.is_some() {
            // Two processes, the same clock: no message arrives before it was sent.
            let hop = &run.hops["one_way"];
            assert_eq!((hop.count, hop.negative, run.hops["publish"].count), (count, 0, count), "{run:?}");
            assert_eq!(run.hops["service"].negative, 0, "{run:?}");
            assert!(run.figures["receiver_cpu_per_message_ns"] > 0.0, "{run:?}");
        }
    }
}

#[test]
fn settings_unsupported_by_redis_py_are_refused() {
    let (lab, redis) = (lab(), "redis://127.0.0.1:1");
    let ready = asked(&lab, "redis-py", &[redis]).expect("there is Python, and the index answers");
    let base = settings(&ready[0]);
    let refused = [
        asked(&lab, "redis-py", &["redis://127.0.0.1:1?streams"]).map(|_| ()),
        run(&lab, &Settings { readers: 2, ..base.clone() }).map(|_| ()),
        run(&lab, &Settings { wait: Wait::Yield, ..base.clone() }).map(|_| ()),
        run(&lab, &Settings { arrivals: ArrivalProcess::Poisson { seed: 1 }, ..base.clone() }).map(|_| ()),
        measure_cold(&lab, &base, 1).map(|_| ()),
    ];
    for refused in refused {
        assert!(matches!(&refused, Err(LabError::Setting(what)) if what.contains("--client redis-py")), "{refused:?}");
    }
}

#[test]
fn a_client_beside_others_runs_on_its_own_targets() {
    let (lab, redis, log) = (lab(), "redis://127.0.0.1:1", "shm://");
    let found = asked(&lab, "rust,redis-py", &[log, redis]).expect("there is Python, and the index answers");
    let names =
        |(client, target): &ClientTarget| (client.as_ref().map_or("rust", |client| client.name()), target.clone());
    let expected = [("rust", log), ("rust", redis), ("redis-py", redis)].map(|(name, url)| (name, url.to_owned()));
    assert_eq!(found.iter().map(names).collect::<Vec<_>>(), expected);
    // A single client may not leave a target out, and a client among others needs at least one; the error names the
    // target that no client supports.
    for (clients, targets, reason) in [
        ("redis-py", &[redis, log][..], "redis://HOST:PORT"),
        ("rust,redis-py", &[log], "--client redis-py"),
        ("redis-py,go-redis", &[redis, log], "none of --client redis-py,go-redis has shm://"),
    ] {
        let refused = asked(&lab, clients, targets).map(|_| ());
        assert!(matches!(&refused, Err(LabError::Setting(what)) if what.contains(reason)), "{clients}: {refused:?}");
    }
}

/// Makes a lab that starts no process of this program.
fn lab() -> Lab<'static> {
    Lab::new(PathBuf::from("/nonexistent"), &()).expect("a lab can be made")
}

/// Returns the pairs that a command line requests.
fn asked(lab: &Lab<'_>, clients: &str, targets: &[&str]) -> Result<Vec<ClientTarget>, LabError> {
    let clients: Vec<String> = clients.split(',').map(str::to_owned).collect();
    pairs(lab, &clients, &targets.iter().map(|target| (*target).to_owned()).collect::<Vec<_>>())
}

fn settings((client, target): &ClientTarget) -> Settings {
    Settings { foreign: client.clone(), rate: Some(1_000.0), count: 10, batch: 16, ..Settings::new(target, [0, 0]) }
}
