//! A subscriber that never polls, under load: the unread data in its process is bounded.

use tickpath_clock::{Clock, HostClock, sleep_ns};

use super::child::{BusConnector, RoleProcess};
use super::fixture::Fixture;
use super::role::ChildRole;
use super::scratch::default_topic_config;

/// Messages per batch, and bytes per message: one batch per millisecond is 50,000 messages per second.
const BATCH: usize = 50;
const BYTES: usize = 1_000;
const PAUSE_NS: u64 = 1_000_000;
/// Max growth of the process, in bytes: 64 MiB unread, and as much for the client library and the allocator.
const MAX_GROWTH_BYTES: u64 = 128 << 20;

/// Publishes for 3 s, or a minute with `TICKPATH_SOAK`, and measures the growth of a subscriber that never polls.
pub fn check_bounded_memory(url: &str, connect: BusConnector) {
    let connecting = || connect(url).unwrap_or_else(|e| panic!("{url}: {e}"));
    let fixture = Fixture {
        connect: &connecting,
        topic: format!("tickpath:test-{}-behind", std::process::id()),
        spawn: &|role, name| super::child::spawn(role, url, name),
    };
    let seconds = if std::env::var_os("TICKPATH_SOAK").is_some() { 60 } else { 3 };
    let clock = HostClock::get().expect("the host has a clock");
    let connection = connecting();
    let opened = connection.publisher(&fixture.topic, &default_topic_config(&*connection));
    let mut publisher = opened.unwrap_or_else(|e| panic!("{url}: {e}"));
    let child = RoleProcess::start(&fixture, ChildRole::NonPoller, &fixture.topic);
    let before = resident_bytes(child.pid());
    let (began, mut max, mut sent) = (clock.ticks(), 0, 0u64);
    let payload = [7; BYTES];
    while clock.ns_between(began, clock.ticks()) < seconds * 1_000_000_000 {
        let published = publisher.publish_batch(sent, 16, &[payload.as_slice(); BATCH]);
        published.unwrap_or_else(|e| panic!("{url}: {e}"));
        sent += BATCH as u64;
        max = max.max(resident_bytes(child.pid()));
        sleep_ns(PAUSE_NS);
    }
    let grown = max.saturating_sub(before);
    println!("{url}: {sent} messages of {BYTES} bytes, and the subscriber that never polled grew by {grown} bytes");
    assert!(grown <= MAX_GROWTH_BYTES, "{url}: the subscriber grew by {grown} bytes after {sent} messages");
    drop(child);
    connection.remove_topic(&fixture.topic).unwrap_or_else(|e| panic!("{url}: {e}"));
}

/// Returns the resident memory of a process, in bytes.
fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the child lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux reports it");
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kib << 10
}
