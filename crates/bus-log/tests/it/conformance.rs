//! The suites for topics and queues, in shared memory and on a disk.

use tickpath_bus_api::conformance::{CASES, Fixture, QUEUE_CASES};
use tickpath_bus_log::LogBus;

use crate::spawn;

#[test]
fn shared_memory_keeps_the_promises() {
    check("shm://");
}

#[test]
fn a_prefix_keeps_the_promises() {
    check("shm://conformance");
}

#[test]
fn a_folder_keeps_the_promises() {
    let dir = tempfile::tempdir().unwrap();
    check(&format!("file://{}", dir.path().display()));
}

fn check(url: &str) {
    for (name, case) in CASES.iter().chain(QUEUE_CASES) {
        println!("{url}: {name}");
        case(&Fixture {
            connect: &|| Box::new(LogBus::connect(url).expect("connected")),
            topic: format!("test-{}-{name}", std::process::id()),
            spawn: &|role, topic| spawn(role, url, topic),
        });
    }
}
