//! Cases of publishing and subscribing.

use std::sync::mpsc::sync_channel;

use tickpath_clock::Wait;

use super::fixture::{ConformanceCase, Fixture, GOOD_NAMES, bad_names, cases, check_name_refused, check_unsupported};
use super::lending::lending;
use super::message::{
    KIND, LAST, ReceivedTally, TestDeadline, check_no_event, next, payload, publish, publish_until_full, receive,
};
use super::process::{killed_anywhere, publisher_killed, sleeper_killed, subscriber_killed};
use super::resume::{carried, resume, resume_anew, resume_behind};
use super::scratch::default_topic_config;
use crate::{Capabilities, ConnectError, Gap, Policy, PublishError, PublisherState, StartPosition, SubscriptionEvent};

/// The cases of topics, by name.
pub const CASES: &[(&str, ConformanceCase)] = cases! {
    order, batch, whole_batches, concurrent, slow_subscriber, fan_out, late_join, gone, start_order, no_publisher,
    second_publisher, policy_fail, policy_keep, lending, sizes, kinds, names, waiting, removal, resume, resume_anew,
    resume_behind, carried, publisher_killed, subscriber_killed, sleeper_killed, killed_anywhere,
};

/// Checks that a subscriber that keeps up gets every message once, whole, in the order of publishing.
fn order(fixture: &Fixture<'_>) {
    let topic = fixture.topic("order");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut publisher = topic.publisher();
    let mut tally = ReceivedTally::from(0, &topic.capabilities());
    for first in (0..1500).step_by(30) {
        publish(&mut *publisher, first..first + 30);
        receive(&mut *subscriber, &mut tally, "order", |tally| tally.next() == first + 30);
    }
    assert_eq!((tally.received, tally.missed), (1500, 0));
}

/// Checks that a batch arrives as its messages; if one does not fit, those before it are published and counted.
fn batch(fixture: &Fixture<'_>) {
    let topic = fixture.topic("batch");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut publisher = topic.publisher();
    let mut seen = Vec::new();
    let too_large = vec![0; 1 << 25];
    let short: Vec<Vec<u8>> = (0u8..100).map(|n| vec![n; usize::from(n)]).collect();
    let mut payloads: Vec<&[u8]> = short.iter().map(Vec::as_slice).collect();
    publisher.publish_batch(7, KIND, &payloads).expect("the batch is published");
    publisher.publish_batch(7, KIND, &[]).expect("nothing is published");
    payloads[50] = &too_large;
    let error = publisher.publish_batch(7, KIND, &payloads).expect_err("the message in the middle is too large");
    assert_eq!(error.done, 50, "{error}");
    assert!(matches!(error.error, PublishError::TooLarge { .. }), "{error}");
    let deadline = TestDeadline::new();
    while seen.len() < 150 {
        let polled = subscriber.poll(64, &mut |event| match event {
            SubscriptionEvent::Message(message) => seen.push((message.stamp, message.payload.to_vec())),
            other => panic!("in a batch: {other:?}"),
        });
        polled.expect("polled");
        subscriber.wait(1_000_000);
        deadline.check("batch");
    }
    let expected: Vec<_> = short.iter().chain(&short[..50]).map(|payload| (7u64, payload.clone())).collect();
    assert_eq!(seen, expected);
}

/// Checks that batches that become visible at once do so: a subscriber that finds nothing more has seen all of each.
fn whole_batches(fixture: &Fixture<'_>) {
    const BATCH: u64 = 20;
    const BATCHES: u64 = 2_000;
    let topic = fixture.topic("whole");
    if !topic.capabilities().whole_batches {
        return;
    }
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut publisher = topic.publisher();
    let deadline = TestDeadline::new();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..BATCHES {
                publisher.publish_batch(7, KIND, &[&b"message"[..]; BATCH as usize]).expect("the batch is published");
            }
        });
        let mut seen = 0;
        while seen < BATCH * BATCHES {
            let polled = subscriber.poll(7, &mut |event| match event {
                SubscriptionEvent::Message(_) => seen += 1,
                SubscriptionEvent::Gap(Gap::Missed(missed)) => seen += missed,
                other => panic!("in a batch: {other:?}"),
            });
            if polled.expect("polled") == 0 {
                assert!(seen.is_multiple_of(BATCH), "{seen} messages are seen of batches of {BATCH}");
                subscriber.wait(1_000_000);
            }
            deadline.check("whole batches");
        }
    });
}

/// Checks that with a publisher at full speed no message is torn, and each is received or exactly counted as missed.
fn concurrent(fixture: &Fixture<'_>) {
    const COUNT: u64 = 5_000;
    let topic = fixture.topic("concurrent");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut publisher = topic.publisher();
    let mut tally = ReceivedTally::from(0, &topic.capabilities());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            publish(&mut *publisher, 0..COUNT);
            publisher.publish(COUNT, LAST, &payload(COUNT)).expect("the last message is published");
        });
        receive(&mut *subscriber, &mut tally, "concurrent", |tally| tally.is_last);
    });
    assert_eq!(tally.received + tally.missed, COUNT + 1);
    topic.check_kept(&tally);
}

/// Checks that a subscriber that does not poll for four topics' worth gets the exact number of messages that it missed.
fn slow_subscriber(fixture: &Fixture<'_>) {
    const COUNT: u64 = 2_000;
    let topic = fixture.topic("slow");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut publisher = topic.publisher();
    let mut tally = ReceivedTally::from(0, &topic.capabilities());
    publish(&mut *publisher, 0..10);
    receive(&mut *subscriber, &mut tally, "attached", |tally| tally.next() == 10);
    publish(&mut *publisher, 10..COUNT);
    receive(&mut *subscriber, &mut tally, "slow subscriber", |tally| tally.next() == COUNT);
    assert_eq!(tally.received + tally.missed, COUNT);
    topic.check_kept(&tally);
    check_no_event(&mut *subscriber);
}

/// Checks that subscribers do not disturb each other: each gets everything.
fn fan_out(fixture: &Fixture<'_>) {
    let topic = fixture.topic("fan-out");
    let capabilities = topic.capabilities();
    let mut subscribers: Vec<_> = (0..5)
        .map(|_| (topic.subscriber(StartPosition::Now, Wait::Yield), ReceivedTally::from(0, &capabilities)))
        .collect();
    let mut publisher = topic.publisher();
    for first in (0..500).step_by(50) {
        publish(&mut *publisher, first..first + 50);
        for (subscriber, tally) in &mut subscribers {
            receive(&mut **subscriber, tally, "fan-out", |tally| tally.next() == first + 50);
        }
    }
    assert!(subscribers.iter().all(|(_, tally)| (tally.received, tally.missed) == (500, 0)));
}

/// Checks that a late subscriber starts where it asked to: now, at the oldest message, or at a sequence number.
fn late_join(fixture: &Fixture<'_>) {
    let topic = fixture.topic("late");
    let capabilities = topic.capabilities();
    let mut publisher = topic.publisher();
    publish(&mut *publisher, 0..100);
    let mut now = topic.subscriber(StartPosition::Now, Wait::Yield);
    publish(&mut *publisher, 100..110);
    let mut tally = ReceivedTally::from(100, &capabilities);
    receive(&mut *now, &mut tally, "from now", |tally| tally.next() == 110);
    let open = |start| topic.connection.subscriber(&topic.name, start, Wait::Yield);
    if !capabilities.history {
        check_unsupported(open(StartPosition::Oldest), "oldest");
    }
    if !capabilities.history || !capabilities.sequences {
        check_unsupported(open(StartPosition::Sequence(40)), "40");
    }
    for (start, first) in starts(&capabilities, 40) {
        let mut tally = ReceivedTally::from(first, &capabilities);
        receive(&mut *topic.subscriber(start, Wait::Yield), &mut tally, "from the past", |tally| tally.next() == 110);
        assert_eq!((tally.received, tally.missed), (110 - first, 0), "{start:?}");
    }
    if capabilities.history && capabilities.sequences {
        let future = open(StartPosition::Sequence(1_000_000)).err().expect("a future number is refused");
        assert!(future.to_string().contains("1000000"), "{future}");
    }
}

/// Checks that a subscriber that starts at an overwritten sequence number gets the exact number of lost messages.
fn gone(fixture: &Fixture<'_>) {
    const COUNT: u64 = 1_500;
    let topic = fixture.topic("gone");
    let capabilities = topic.capabilities();
    let is_counted = capabilities.history && capabilities.sequences;
    if !is_counted || !capabilities.policies.contains(&Policy::Overwrite) {
        return;
    }
    publish(&mut *topic.publisher_by(Policy::Overwrite), 0..COUNT);
    let deadline = TestDeadline::new();
    loop {
        let mut subscriber = topic.subscriber(StartPosition::Sequence(0), Wait::Yield);
        let mut tally = ReceivedTally::from(0, &capabilities);
        receive(&mut *subscriber, &mut tally, "from an overwritten number", |tally| tally.next() == COUNT);
        assert_eq!(tally.received + tally.missed, COUNT, "{tally:?}");
        // Some servers remove old messages only later.
        if tally.missed > 0 {
            break;
        }
        deadline.check("a topic that lets nothing go");
    }
}

/// Checks that a subscriber that starts first gets everything, and sees the publisher start and stop.
fn start_order(fixture: &Fixture<'_>) {
    let topic = fixture.topic("start");
    let capabilities = topic.capabilities();
    let state = |known| if capabilities.publisher_liveness { known } else { PublisherState::Unknown };
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    check_no_event(&mut *subscriber);
    assert_eq!(subscriber.publisher_state(), state(PublisherState::Absent));
    let mut publisher = topic.publisher();
    publish(&mut *publisher, 0..10);
    let mut tally = ReceivedTally::from(0, &capabilities);
    receive(&mut *subscriber, &mut tally, "the first messages", |tally| tally.next() == 10);
    assert_eq!(subscriber.publisher_state(), state(PublisherState::Alive(std::process::id())));
    drop(publisher);
    assert_eq!(subscriber.publisher_state(), state(PublisherState::Absent));
    let mut publisher = topic.publisher();
    publish(&mut *publisher, 10..20);
    receive(&mut *subscriber, &mut tally, "after the publisher's restart", |tally| tally.next() == 20);
    assert_eq!((tally.received, tally.missed), (20, 0));
}

/// Checks that a topic without a publisher is no error, reports its publisher as absent, and can be waited for.
fn no_publisher(fixture: &Fixture<'_>) {
    let topic = fixture.topic("no-publisher");
    for wait in [Wait::Busy, Wait::Yield, Wait::Block, Wait::Adaptive] {
        let mut subscriber = topic.subscriber(StartPosition::Now, wait);
        check_no_event(&mut *subscriber);
        let known = topic.capabilities().publisher_liveness;
        assert_eq!(subscriber.publisher_state(), if known { PublisherState::Absent } else { PublisherState::Unknown });
    }
}

/// Checks that a topic has one publisher if the transport requires it; the error of the second names the first.
fn second_publisher(fixture: &Fixture<'_>) {
    let topic = fixture.topic("second");
    let mut first = topic.publisher();
    let second = topic.connection.publisher(&topic.name, &default_topic_config(&*topic.connection));
    if topic.capabilities().single_publisher {
        let error = second.err().expect("a second publisher is refused");
        assert!(matches!(error, ConnectError::HasPublisher(_)), "{error}");
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        drop(first);
        topic.publisher();
        return;
    }
    let mut second = second.expect("a second publisher is welcome");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut tally = ReceivedTally::from(0, &topic.capabilities());
    publish(&mut *first, 0..1);
    receive(&mut *subscriber, &mut tally, "the first publisher", |tally| tally.next() == 1);
    publish(&mut *second, 1..2);
    receive(&mut *subscriber, &mut tally, "the second publisher", |tally| tally.next() == 2);
}

/// Checks that the policy `fail` refuses messages without a subscriber or in a full topic, and loses nothing.
fn policy_fail(fixture: &Fixture<'_>) {
    let topic = fixture.topic("fail");
    let Some(mut publisher) = topic.publisher_if_supported(Policy::Fail) else { return };
    let alone = publisher.publish(0, KIND, &payload(0)).expect_err("there is no subscriber");
    assert!(matches!(alone, PublishError::NoSubscriber), "{alone}");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut tally = ReceivedTally::from(0, &topic.capabilities());
    let mut next = 0;
    for _round in 0..3 {
        next = publish_until_full(&mut *publisher, next);
        let again = publisher.publish(next, KIND, &payload(next)).expect_err("it is still full");
        assert!(matches!(again, PublishError::Full), "{again}");
        receive(&mut *subscriber, &mut tally, "a full topic", |tally| tally.next() == next);
        check_no_event(&mut *subscriber);
    }
    publish(&mut *publisher, next..next + 1);
    receive(&mut *subscriber, &mut tally, "the message that did not fit", |tally| tally.next() == next + 1);
    assert_eq!((tally.received, tally.missed), (next + 1, 0));
    drop(subscriber);
    let alone = publisher.publish(0, KIND, &payload(0)).expect_err("the subscriber has gone");
    assert!(matches!(alone, PublishError::NoSubscriber), "{alone}");
}

/// Checks that under the policy `keep` everything stays for later subscribers, even after the publisher has ended.
fn policy_keep(fixture: &Fixture<'_>) {
    const COUNT: u64 = 1_500;
    let topic = fixture.topic("keep");
    let Some(mut publisher) = topic.publisher_if_supported(Policy::Keep) else { return };
    publish(&mut *publisher, 0..COUNT / 2);
    drop(publisher);
    publish(&mut *topic.publisher_by(Policy::Keep), COUNT / 2..COUNT);
    let capabilities = topic.capabilities();
    assert!(capabilities.history, "a kept topic can be read from its start");
    for (start, first) in starts(&capabilities, COUNT / 2 + 1) {
        let mut tally = ReceivedTally::from(first, &capabilities);
        let mut subscriber = topic.subscriber(start, Wait::Yield);
        receive(&mut *subscriber, &mut tally, "kept messages", |tally| tally.next() == COUNT);
        assert_eq!((tally.received, tally.missed), (COUNT - first, 0), "{start:?}");
    }
}

/// Checks that the empty and the longest payload pass, and that a longer one is refused with the true limit.
fn sizes(fixture: &Fixture<'_>) {
    const FAR_TOO_LARGE: usize = 1 << 25;
    let topic = fixture.topic("sizes");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut publisher = topic.publisher();
    let error = publisher.publish(0, KIND, &vec![0; FAR_TOO_LARGE]).expect_err("far too large");
    let PublishError::TooLarge { bytes: FAR_TOO_LARGE, limit } = error else { panic!("{error}") };
    let max = topic.capabilities().max_payload;
    assert!(limit >= max, "{limit} passes, but {max} is promised");
    let larger = publisher.publish(0, KIND, &vec![0; limit + 1]).expect_err("one more than the limit");
    assert!(matches!(larger, PublishError::TooLarge { .. }), "{larger}");
    for bytes in [0, 1, 7, 8, 9, 63, 64, 65, 4096, max - 1, max, limit] {
        let sent: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
        publisher.publish(bytes as u64, KIND, &sent).expect("it fits");
        let message = next(&mut *subscriber, "sizes");
        assert!(message == (bytes as u64, KIND, sent), "{bytes} bytes arrived as {} bytes", message.2.len());
    }
}

/// Checks that kinds from 16 on arrive as sent, and that lower, reserved kinds are refused.
fn kinds(fixture: &Fixture<'_>) {
    let topic = fixture.topic("kinds");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut publisher = topic.publisher();
    for kind in 0..=u8::MAX {
        let published = publisher.publish(u64::from(kind), kind, &[kind]);
        if kind < 16 {
            let error = published.expect_err("reserved kinds are refused");
            assert!(error.to_string().contains("use 16 to 255"), "{error}");
        } else {
            published.expect("published");
            assert_eq!(next(&mut *subscriber, "kinds"), (u64::from(kind), kind, vec![kind]));
        }
    }
    check_no_event(&mut *subscriber);
}

/// Checks that names that could leave the place, or that another transport could not carry, are refused everywhere.
fn names(fixture: &Fixture<'_>) {
    let connection = (fixture.connect)();
    let config = default_topic_config(&*connection);
    for bad in &bad_names() {
        check_name_refused(connection.publisher(bad, &config).err(), "topic", bad);
        check_name_refused(connection.subscriber(bad, StartPosition::Now, Wait::Yield).err(), "topic", bad);
        check_name_refused(connection.remove_topic(bad).err(), "topic", bad);
    }
    for good in GOOD_NAMES {
        let topic = fixture.topic(good);
        publish(&mut *topic.publisher(), 0..1);
    }
}

/// Checks that each message ends the waiting of a subscriber, however it waits.
fn waiting(fixture: &Fixture<'_>) {
    const COUNT: u64 = 200;
    const LONG_NS: u64 = 120_000_000_000;
    for wait in [Wait::Busy, Wait::Yield, Wait::Block, Wait::Adaptive] {
        let topic = fixture.topic(wait.name());
        let mut publisher = topic.publisher();
        let mut subscriber = topic.subscriber(StartPosition::Now, wait);
        let mut tally = ReceivedTally::from(0, &topic.capabilities());
        let deadline = TestDeadline::new();
        std::thread::scope(|scope| {
            let (ask, asked) = sync_channel(1);
            scope.spawn(move || {
                for number in asked {
                    publish(&mut *publisher, number..number + 1);
                }
            });
            for number in 0..COUNT {
                ask.send(number).expect("the publisher lives");
                while tally.next() == number {
                    subscriber.wait(LONG_NS);
                    subscriber.poll(8, &mut |event| tally.event(event)).expect("polled");
                    // A subscriber that is not woken sleeps beyond this deadline.
                    deadline.check(wait.name());
                }
            }
        });
        assert_eq!((tally.received, tally.missed), (COUNT, 0));
    }
}

/// Checks that a topic can be removed, also twice or if it never existed, and that its name is free then.
fn removal(fixture: &Fixture<'_>) {
    let topic = fixture.topic("removal");
    topic.connection.remove_topic(&topic.name).expect("a missing topic is no error");
    for _ in 0..2 {
        let mut publisher = topic.publisher();
        let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
        publish(&mut *publisher, 0..10);
        let mut tally = ReceivedTally::from(0, &topic.capabilities());
        receive(&mut *subscriber, &mut tally, "a topic anew", |tally| tally.next() == 10);
        drop((publisher, subscriber));
        topic.connection.remove_topic(&topic.name).expect("removed");
    }
    topic.connection.remove_topic(&topic.name).expect("it is gone");
}

/// Returns the past positions at which a subscription can start, each with its first number; `middle` is one of them.
fn starts(capabilities: &Capabilities, middle: u64) -> Vec<(StartPosition, u64)> {
    let all = [(StartPosition::Oldest, 0), (StartPosition::Sequence(0), 0), (StartPosition::Sequence(middle), middle)];
    let possible = match (capabilities.history, capabilities.sequences) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => all.len(),
    };
    all[..possible].to_vec()
}
