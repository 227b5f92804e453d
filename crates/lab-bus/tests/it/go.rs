//! Both ends in another language: in Go, over a real server, and in a shell with planted results.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use tickpath_clock::{HostClock, Wait};
use tickpath_lab_bus::pubsub::{ForeignClient, PublisherRole, Settings, SubscriberRole, measure_cold, pairs, run};
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::Run;
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings};

#[test]
fn messages_between_two_go_processes_are_counted_and_stamped() {
    // The lab starts no process of this program.
    let lab = Lab::new(PathBuf::from("/nonexistent"), &()).expect("a lab can be made");
    let clock = HostClock::get().expect("the host has a clock");
    let server =
        ScratchServer::start(lab.folder(), &ServerSettings { unix_socket: true, ..ServerSettings::default() }, &clock);
    let server = server.expect("it starts").expect("redis-server is installed");
    let unix = server.unix_url().expect("it has a socket");
    let go = go_redis(&lab, &[server.url(), unix.clone()]).expect("Go is installed, and the proxy answers");
    for (target, rate, count) in
        [(server.url(), Some(2_000.0), 200), (unix, Some(2_000.0), 1), (server.url(), None, 1_000)]
    {
        let settings = Settings { rate, count, ..settings(&target, Some(go.clone())) };
        let run = run(&lab, &settings).expect("it runs");
        let counts = (run.counts.sent, run.counts.received, run.counts.lost, run.counts.duplicated);
        assert_eq!(counts, (count, count, 0, 0), "{run:?}");
        assert_eq!((run.client.as_str(), run.software.client.as_deref()), ("go-redis", Some("go-redis")));
        if rate.is_some() {
            // Two processes, the same clock: no message arrives before it was sent.
            let hop = &run.hops["one_way"];
            assert_eq!((hop.count, hop.negative, run.hops["publish"].count), (count, 0, count), "{run:?}");
            assert!(run.hops["service"].negative == 0, "{run:?}");
        }
    }
}

#[test]
fn settings_unsupported_by_go_are_refused() {
    let lab = Lab::new(PathBuf::from("/nonexistent"), &()).expect("a lab can be made");
    let streams = "redis://127.0.0.1:1?streams".to_owned();
    let redis = "redis://127.0.0.1:1".to_owned();
    let go = go_redis(&lab, std::slice::from_ref(&redis)).expect("Go is installed, and the proxy answers");
    let base = settings(&redis, Some(go));
    let refused = [
        go_redis(&lab, &[streams]).map(|_| ()),
        run(&lab, &Settings { readers: 2, ..base.clone() }).map(|_| ()),
        run(&lab, &Settings { wait: Wait::Yield, ..base.clone() }).map(|_| ()),
        measure_cold(&lab, &base, 1).map(|_| ()),
    ];
    for refused in refused {
        assert!(matches!(&refused, Err(LabError::Setting(what)) if what.contains("--client go-redis")), "{refused:?}");
    }
}

#[test]
fn an_external_client_runs_and_its_stamps_are_nanoseconds() {
    let lab = Lab::new(PathBuf::from("/nonexistent"), &()).expect("a lab can be made");
    let settings = Settings { rate: None, count: 5, ..settings("shm://", Some(Rc::new(Planted))) };
    let run = run(&lab, &settings).expect("it runs");
    assert_eq!((run.client.as_str(), run.software.client_version.as_deref()), ("planted", Some("1.2.3")));
    assert_eq!((run.counts.sent, run.counts.received, run.counts.lost), (5, 4, 1), "{run:?}");
    assert_eq!((run.elapsed_ns, run.valid), (Some(2_000), false), "{run:?}");
}

/// A client of two shells: the publisher reports five messages sent from 1,000 ns on, the subscriber four received, the
/// last at 3,000 ns.
#[derive(Debug)]
struct Planted;

impl ForeignClient for Planted {
    fn name(&self) -> &'static str {
        "planted"
    }

    fn publisher(&self, _: &Lab<'_>, role: &PublisherRole) -> Result<Child, LabError> {
        let times = r#""first": 1000, "last": 2000, "planned_ns": 0, "late_share": 0, "own_p99_ns": 0"#;
        shell("publisher", &role.out, &format!(r#""sent": 5, "refused": 0, {times}"#))
    }

    fn subscriber(&self, _: &Lab<'_>, role: &SubscriberRole) -> Result<Child, LabError> {
        let faults = r#""reordered": 0, "duplicated": 0, "reconnects": 0"#;
        shell("subscriber", &role.out, &format!(r#""received": 4, "last": 3000, {faults}"#))
    }

    fn describe_client(&self, run: &mut Run) {
        run.software.client_version = Some("1.2.3".to_owned());
    }
}

/// Starts a process without samples, which returns this result at the parent's first command.
fn shell(role: &'static str, out: &Path, result: &str) -> Result<Child, LabError> {
    const SCRIPT: &str = r#": > "$1"; echo '"ready"'; read word; echo "{\"result\": {$2}}"; read word"#;
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).arg(out).arg(result);
    Child::of(command, role)
}

/// Returns the list's go-redis client, made ready.
fn go_redis(lab: &Lab<'_>, targets: &[String]) -> Result<Rc<dyn ForeignClient>, LabError> {
    let pairs = pairs(lab, &["go-redis".to_owned()], targets)?;
    Ok(pairs.into_iter().find_map(|(client, _)| client).expect("it is in the list"))
}

fn settings(target: &str, foreign: Option<Rc<dyn ForeignClient>>) -> Settings {
    Settings { foreign, rate: Some(1_000.0), count: 10, batch: 16, ..Settings::new(target, [0, 0]) }
}
