//! Both ends in Go, over a real server.

use std::path::PathBuf;

use tickpath_clock::{HostClock, Wait};
use tickpath_harness::{Lab, LabError, Progress};
use tickpath_lab::pubsub::{Settings, cold, go_redis, run};
use tickpath_scratch::redis::{Server, ServerSettings};

struct Silent;

impl Progress for Silent {
    fn step(&self, _what: &str, _seconds: f64) {}
}

#[test]
fn messages_between_two_go_processes_are_counted_and_stamped() {
    // No process of this program is needed.
    let lab = Lab::new(PathBuf::from("/nonexistent"), &Silent).expect("a lab can be made");
    let clock = HostClock::get().expect("the host has a clock");
    let server =
        Server::start(lab.folder(), &ServerSettings { unix_socket: true, ..ServerSettings::default() }, &clock);
    let server = server.expect("it starts").expect("redis-server is installed");
    let unix = server.unix_url().expect("it has a socket");
    let go = go_redis::prepare(&lab, &[server.url(), unix.clone()]).expect("Go is installed, and the proxy answers");
    for (target, rate, count) in
        [(server.url(), Some(2_000.0), 200), (unix, Some(2_000.0), 1), (server.url(), None, 1_000)]
    {
        let settings = Settings { rate, count, ..settings(&target, Some(go.clone())) };
        let run = run(&lab, &settings).expect("it runs");
        let counts = (run.counts.sent, run.counts.received, run.counts.lost, run.counts.duplicated);
        assert_eq!(counts, (count, count, 0, 0), "{run:?}");
        assert_eq!((run.client.as_str(), run.software.client.as_deref()), ("go-redis", Some("go-redis")));
        if rate.is_some() {
            // Two processes, one clock: no message comes before it was sent.
            let hop = &run.hops["one_way"];
            assert_eq!((hop.count, hop.negative, run.hops["publish"].count), (count, 0, count), "{run:?}");
            assert!(run.hops["service"].negative == 0, "{run:?}");
        }
    }
}

#[test]
fn what_go_does_not_do_is_refused() {
    let lab = Lab::new(PathBuf::from("/nonexistent"), &Silent).expect("a lab can be made");
    let streams = "redis://127.0.0.1:1?streams".to_owned();
    let redis = "redis://127.0.0.1:1".to_owned();
    let go = go_redis::prepare(&lab, std::slice::from_ref(&redis)).expect("Go is installed, and the proxy answers");
    let base = settings(&redis, Some(go));
    let refused = [
        go_redis::prepare(&lab, &[streams]).map(|_| ()),
        run(&lab, &Settings { readers: 2, ..base.clone() }).map(|_| ()),
        run(&lab, &Settings { wait: Wait::Yield, ..base.clone() }).map(|_| ()),
        cold(&lab, &base, 1).map(|_| ()),
    ];
    for refused in refused {
        assert!(matches!(&refused, Err(LabError::Setting(what)) if what.contains("--client go-redis")), "{refused:?}");
    }
}

fn settings(target: &str, go: Option<tickpath_scratch::go::Go>) -> Settings {
    Settings { go, rate: Some(1_000.0), count: 10, batch: 16, ..Settings::new(target, [0, 0]) }
}
