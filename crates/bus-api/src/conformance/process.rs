//! Cases in which processes are killed.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};

use super::message::{Deadline, Tally, mix, publish, publish_until_full, receive, stays_quiet};
use super::{Fixture, Topic};
use crate::{Connection, Policy, PublisherState, Start, TopicConfig};

/// What a child writes to its standard output when it is at work.
const READY: &str = "tickpath-child-is-ready";

/// What a child process does until it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Publishes as fast as it can.
    Publisher,
    /// Receives as fast as it can.
    Subscriber,
    /// Subscribes, and never looks.
    Stuck,
    /// Sleeps until something comes.
    Sleeper,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Publisher, Self::Subscriber, Self::Stuck, Self::Sleeper];

    /// A word that a command line can carry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
            Self::Stuck => "stuck",
            Self::Sleeper => "sleeper",
        }
    }

    /// The role with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// What a child process does. It ends by itself after a minute, should nobody kill it.
pub fn run_child(connection: &dyn Connection, role: Role, topic: &str) {
    let wait = if role == Role::Sleeper { Wait::Block } else { Wait::Yield };
    let deadline = Deadline::new();
    if role == Role::Publisher {
        let opened = connection.publisher(topic, &TopicConfig::new(Policy::Overwrite));
        let mut publisher = opened.unwrap_or_else(|e| panic!("no publisher: {e}"));
        let mut number = 0;
        while !deadline.is_over() {
            publish(&mut *publisher, number..number + 1);
            number += 1;
            if number == 1 {
                println!("\n{READY}");
            }
        }
        return;
    }
    let opened = connection.subscriber(topic, Start::Now, wait);
    let mut subscriber = opened.unwrap_or_else(|e| panic!("no subscriber: {e}"));
    println!("\n{READY}");
    while !deadline.is_over() {
        if role == Role::Stuck {
            sleep_ns(10_000_000);
            continue;
        }
        subscriber.poll(64, &mut |_| {}).expect("polled");
        subscriber.wait(1_000_000_000);
    }
}

/// A killed publisher is seen to be gone; the next one goes on, and subscribers go on with it.
pub(super) fn publisher_killed(fixture: &Fixture<'_>) {
    let topic = fixture.topic("publisher-killed");
    let capabilities = topic.capabilities();
    let mut subscriber = topic.subscriber(Start::Now, Wait::Yield);
    let mut tally = Tally::of_many(&capabilities);
    for _round in 0..5 {
        let mut child = start(fixture, Role::Publisher, &topic);
        let enough = tally.received + 500;
        receive(&mut *subscriber, &mut tally, "from a child", |tally| tally.received >= enough);
        if capabilities.publisher_liveness {
            assert_eq!(subscriber.publisher(), PublisherState::Alive(child.process.id()));
        }
        child.kill();
        if capabilities.publisher_liveness {
            assert_eq!(subscriber.publisher(), PublisherState::Absent);
        }
    }
    let mut publisher = topic.publisher(Policy::Overwrite);
    publish(&mut *publisher, 0..10);
    let before = tally.received;
    receive(&mut *subscriber, &mut tally, "after the last child", |tally| tally.received >= before + 10);
}

/// A killed subscriber holds up nobody, not even on a topic that waits for it.
pub(super) fn subscriber_killed(fixture: &Fixture<'_>) {
    let topic = fixture.topic("subscriber-killed");
    let capabilities = topic.capabilities();
    let mut publisher = topic.publisher(Policy::Overwrite);
    let mut subscriber = topic.subscriber(Start::Now, Wait::Yield);
    let mut tally = Tally::from(0, &capabilities);
    for (round, role) in (0..).zip([Role::Subscriber, Role::Stuck, Role::Sleeper]) {
        let mut child = start(fixture, role, &topic);
        publish(&mut *publisher, round * 1000..round * 1000 + 500);
        child.kill();
        publish(&mut *publisher, round * 1000 + 500..round * 1000 + 1000);
        receive(&mut *subscriber, &mut tally, "beside a killed one", |tally| tally.next() == (round + 1) * 1000);
    }
    assert_eq!(tally.received + tally.missed, 3000);
    drop(publisher);
    full_for_a_killed_one(fixture);
}

fn full_for_a_killed_one(fixture: &Fixture<'_>) {
    let topic = fixture.topic("full-killed");
    let Some(mut publisher) = topic.publisher_if_supported(Policy::Fail) else { return };
    let mut subscriber = topic.subscriber(Start::Now, Wait::Yield);
    let mut child = start(fixture, Role::Stuck, &topic);
    let full = publish_until_full(&mut *publisher, 0);
    let mut tally = Tally::from(0, &topic.capabilities());
    receive(&mut *subscriber, &mut tally, "before the kill", |tally| tally.next() == full);
    assert_eq!(publish_until_full(&mut *publisher, full), full, "the stuck one is still in the way");
    child.kill();
    publish(&mut *publisher, full..full + 10);
    receive(&mut *subscriber, &mut tally, "after the kill", |tally| tally.next() == full + 10);
}

/// A sleeper that is killed takes nobody's waking with it.
pub(super) fn sleeper_killed(fixture: &Fixture<'_>) {
    const LONG_NS: u64 = 120_000_000_000;
    let topic = fixture.topic("sleeper-killed");
    let mut publisher = topic.publisher(Policy::Overwrite);
    let mut subscriber = topic.subscriber(Start::Now, Wait::Block);
    let mut tally = Tally::from(0, &topic.capabilities());
    let deadline = Deadline::new();
    for round in 0..5 {
        let mut child = start(fixture, Role::Sleeper, &topic);
        // Time to fall asleep; if it has not, the case checks less.
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
    stays_quiet(&mut *subscriber);
}

/// Whatever a process was doing when it was killed, the next one starts, publishes and receives.
pub(super) fn killed_anywhere(fixture: &Fixture<'_>) {
    let topic = fixture.topic("killed-anywhere");
    let seed = HostClock::get().expect("the host has a clock").ticks();
    println!("seed {seed}");
    for round in 0..20 {
        let role = Role::ALL[(mix(seed ^ round) % 4) as usize];
        let mut child = Running { process: (fixture.spawn)(role, &topic.name) };
        sleep_ns(mix(seed.wrapping_add(round)) % 30_000_000);
        child.kill();
        let mut publisher = topic.publisher(Policy::Overwrite);
        let mut subscriber = topic.subscriber(Start::Now, Wait::Yield);
        let mut tally = Tally::of_many(&topic.capabilities());
        publish(&mut *publisher, 0..3);
        receive(&mut *subscriber, &mut tally, role.name(), |tally| tally.received == 3);
    }
}

/// A child that does not outlive its case.
struct Running {
    process: Child,
}

/// Starts a child and waits until it is at work.
fn start(fixture: &Fixture<'_>, role: Role, topic: &Topic) -> Running {
    let mut process = (fixture.spawn)(role, &topic.name);
    let output = process.stdout.take().expect("the child's standard output is piped");
    let running = Running { process };
    let (sender, ready) = sync_channel(1);
    std::thread::spawn(move || {
        // Read to the end, so that the child never waits for us.
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line.contains(READY) {
                let _ = sender.send(());
            }
        }
    });
    let waited = ready.recv_timeout(Duration::from_secs(60));
    waited.unwrap_or_else(|e| panic!("the {} child did not get to work: {e}", role.name()));
    running
}

impl Running {
    /// Kills it with a signal that it cannot catch, and waits until it is gone.
    fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
