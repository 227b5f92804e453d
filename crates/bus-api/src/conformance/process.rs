//! Cases in which publisher or subscriber processes are killed.

use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};

use super::child::RoleProcess;
use super::fixture::Fixture;
use super::message::{ReceivedTally, TestDeadline, check_no_event, next, publish, publish_until_full, receive};
use super::role::ChildRole;
use crate::message_id::mix;
use crate::{Policy, PublisherState, StartPosition};

/// Checks that a killed publisher is detected as gone, and that subscribers continue with the next publisher.
pub(super) fn publisher_killed(fixture: &Fixture<'_>) {
    let topic = fixture.topic("publisher-killed");
    let capabilities = topic.capabilities();
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut tally = ReceivedTally::of_many(&capabilities);
    for _round in 0..5 {
        let mut child = RoleProcess::start(fixture, ChildRole::Publisher, &topic.name);
        let enough = tally.received + 300;
        receive(&mut *subscriber, &mut tally, "from a child", |tally| tally.received >= enough);
        if capabilities.publisher_liveness {
            assert_eq!(subscriber.publisher_state(), PublisherState::Alive(child.pid()));
        }
        child.kill();
        if capabilities.publisher_liveness {
            assert_eq!(subscriber.publisher_state(), PublisherState::Absent);
        }
    }
    let mut publisher = topic.publisher();
    publish(&mut *publisher, 0..10);
    let before = tally.received;
    receive(&mut *subscriber, &mut tally, "after the last child", |tally| tally.received >= before + 10);
    topic.check_kept(&tally);
}

/// Checks that a killed subscriber blocks no publisher, not even on a topic that waits for its subscribers.
pub(super) fn subscriber_killed(fixture: &Fixture<'_>) {
    const HALF: u64 = 250;
    let topic = fixture.topic("subscriber-killed");
    let capabilities = topic.capabilities();
    let mut publisher = topic.publisher();
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut tally = ReceivedTally::from(0, &capabilities);
    for role in [ChildRole::Subscriber, ChildRole::NonPoller, ChildRole::Sleeper] {
        let first = tally.next();
        let mut child = RoleProcess::start(fixture, role, &topic.name);
        publish(&mut *publisher, first..first + HALF);
        child.kill();
        publish(&mut *publisher, first + HALF..first + 2 * HALF);
        receive(&mut *subscriber, &mut tally, "beside a killed one", |tally| tally.next() == first + 2 * HALF);
    }
    assert_eq!(tally.received + tally.missed, 6 * HALF);
    topic.check_kept(&tally);
    drop(publisher);
    check_killed_frees_full_topic(fixture);
}

fn check_killed_frees_full_topic(fixture: &Fixture<'_>) {
    let topic = fixture.topic("full-killed");
    let Some(mut publisher) = topic.publisher_if_supported(Policy::Fail) else { return };
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut child = RoleProcess::start(fixture, ChildRole::NonPoller, &topic.name);
    let full = publish_until_full(&mut *publisher, 0);
    let mut tally = ReceivedTally::from(0, &topic.capabilities());
    receive(&mut *subscriber, &mut tally, "before the kill", |tally| tally.next() == full);
    assert_eq!(publish_until_full(&mut *publisher, full), full, "the child still blocks the publisher");
    child.kill();
    publish(&mut *publisher, full..full + 10);
    receive(&mut *subscriber, &mut tally, "after the kill", |tally| tally.next() == full + 10);
}

/// Checks that a killed sleeping subscriber takes no wake-up away from the others.
pub(super) fn sleeper_killed(fixture: &Fixture<'_>) {
    const LONG_NS: u64 = 120_000_000_000;
    let topic = fixture.topic("sleeper-killed");
    let mut publisher = topic.publisher();
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Block);
    let mut tally = ReceivedTally::from(0, &topic.capabilities());
    let deadline = TestDeadline::new();
    for round in 0..5 {
        let mut child = RoleProcess::start(fixture, ChildRole::Sleeper, &topic.name);
        // Leaves time to fall asleep; if the child is still awake, the case checks less.
        sleep_ns(20_000_000);
        child.kill();
        publisher = std::thread::scope(|scope| {
            let waking = scope.spawn(move || {
                sleep_ns(5_000_000);
                publish(&mut *publisher, round..round + 1);
                publisher
            });
            while tally.next() == round {
                subscriber.wait(LONG_NS);
                subscriber.poll(8, &mut |event| tally.event(event)).expect("polled");
                deadline.check("beside a killed sleeper");
            }
            waking.join().expect("published")
        });
    }
    check_no_event(&mut *subscriber);
}

/// Checks that a process starts, publishes and receives, whatever the previous one was doing when it was killed.
pub(super) fn killed_anywhere(fixture: &Fixture<'_>) {
    /// First number of the case's own publisher, which no killed publisher reaches.
    const OWN: u64 = 1 << 40;
    let topic = fixture.topic("killed-anywhere");
    let seed = HostClock::get().expect("the host has a clock").ticks();
    println!("seed {seed}");
    for round in 0..20 {
        let role = ChildRole::OF_TOPICS[(mix(seed ^ round) % 4) as usize];
        let mut child = RoleProcess::spawn(fixture, role, &topic.name);
        sleep_ns(mix(seed.wrapping_add(round)) % 30_000_000);
        child.kill();
        let mut publisher = topic.publisher();
        let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
        publish(&mut *publisher, OWN..OWN + 3);
        for number in OWN..OWN + 3 {
            // The last messages of the killed publisher may arrive in between, because they used another connection.
            while next(&mut *subscriber, &format!("{role:?}")).0 != number {}
        }
    }
}
