//! Workloads of Redis, against a real server and with the usual clients.

use std::path::PathBuf;

use tickpath_lab_harness::Lab;
use tickpath_lab_redis::clients::{SetGetClient, Settings, run};
use tickpath_lab_result::ResultFile;

#[test]
fn clients_in_go_get_what_they_set() {
    // The lab starts no process of this program.
    let lab = Lab::new(PathBuf::from("/nonexistent"), &()).expect("a lab can be made");
    let mut result = ResultFile::new("clients", "", "");
    let settings = Settings {
        target: None,
        clients: SetGetClient::all().filter(|client| client.library == "go-redis").collect(),
        all_needed: true,
        rtts_ms: Vec::new(),
        count: 50,
        repeat: 1,
        seconds: 1.0,
        cpus: [0, 0],
        proxy_cpu: None,
    };
    run(&lab, &settings, &mut result).expect("it runs");
    // Over TCP and over a Unix socket: a single worker, a hundred workers with four pairs each, and a pipeline.
    let pairs: Vec<u64> = result.runs.iter().map(|run| run.counts.received).collect();
    assert_eq!(pairs, [50, 400, 50, 50, 400, 50]);
    for run in &result.runs {
        assert!(run.valid, "{run:?}");
        assert_eq!((run.counts.errors, run.hops["round_trip"].count), (0, run.counts.sent), "{run:?}");
        assert!(run.software.runtime.as_ref().is_some_and(|runtime| runtime.starts_with("go1.")), "{run:?}");
    }
}
