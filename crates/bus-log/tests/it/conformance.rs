//! The conformance suite for topics and queues, in shared memory and on a disk.

use tickpath_bus_api::conformance::{CASES, QUEUE_CASES, check};

use crate::connect;

#[test]
fn shared_memory_keeps_the_promises() {
    check_all("shm://");
}

#[test]
fn a_prefix_keeps_the_promises() {
    check_all("shm://conformance");
}

#[test]
fn a_folder_keeps_the_promises() {
    let dir = tempfile::tempdir().unwrap();
    check_all(&format!("file://{}", dir.path().display()));
}
fn check_all(url: &str) {
    check(url, "topic", CASES, connect);
    check(url, "queue", QUEUE_CASES, connect);
}
