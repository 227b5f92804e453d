//! Cases of resuming after another subscriber, and of messages that pass a bridge.

use tickpath_clock::Wait;

use super::fixture::Fixture;
use super::message::{KIND, TestDeadline, check_no_event, payload, publish};
use super::owned_event::OwnedEvent;
use super::scratch::ScratchTopic;
use crate::{
    Gap, MessageId, Policy, Publisher, ResumeToken, StartPosition, Subscriber, SubscriptionEvent, TopicConfig,
};

/// Checks that a subscriber that starts after a token gets exactly the messages behind it, wherever it was taken.
pub(super) fn resume(fixture: &Fixture<'_>) {
    let topic = fixture.topic("resume");
    if !topic.capabilities().history {
        let alone = topic.subscriber(StartPosition::Now, Wait::Yield);
        assert_eq!(alone.resume_token(), None, "there is no history to resume in");
        return;
    }
    let mut publisher = topic.publisher();
    publish(&mut *publisher, 0..100);
    let mut first = topic.subscriber(StartPosition::Oldest, Wait::Yield);
    let (mut tokens, mut count) = (Vec::new(), 0);
    while count < 60 {
        tokens.push((token(&*first), count));
        let events = collect(&mut *first, 7);
        assert_eq!(events, numbers(count..count + 7));
        count += 7;
    }
    drop(first);
    publish(&mut *publisher, 100..120);
    for (token, count) in tokens {
        // Parses the token again, as if read from a file.
        let token: ResumeToken = token.to_string().parse().expect("a token is read as it was written");
        let mut second = topic.subscriber(StartPosition::After(token), Wait::Yield);
        let events = collect(&mut *second, 120 - count as usize);
        assert_eq!(events, numbers(count..120), "behind {token}");
        check_no_event(&mut *second);
        let at_end = self::token(&*second);
        drop(second);
        let mut third = topic.subscriber(StartPosition::After(at_end), Wait::Yield);
        check_no_event(&mut *third);
    }
    let mut now = topic.subscriber(StartPosition::Now, Wait::Yield);
    let now_token = token(&*now);
    publish(&mut *publisher, 120..130);
    let mut behind = topic.subscriber(StartPosition::After(now_token), Wait::Yield);
    assert_eq!(collect(&mut *now, 10), numbers(120..130));
    assert_eq!(collect(&mut *behind, 10), numbers(120..130));
}

/// Checks that after a token of a topic that was removed and created again, everything is new, and a loss is reported.
pub(super) fn resume_anew(fixture: &Fixture<'_>) {
    let topic = fixture.topic("anew");
    if !topic.capabilities().history {
        return;
    }
    let mut publisher = topic.publisher();
    publish(&mut *publisher, 0..20);
    let mut first = topic.subscriber(StartPosition::Oldest, Wait::Yield);
    collect(&mut *first, 5);
    let token = token(&*first);
    drop((first, publisher));
    topic.connection.remove_topic(&topic.name).expect("removed");
    publish(&mut *topic.publisher(), 100..110);
    let mut second = topic.subscriber(StartPosition::After(token), Wait::Yield);
    let events = collect(&mut *second, 11);
    assert_eq!(events[0], OwnedEvent::Gap(Gap::Reconnected), "{events:?}");
    assert_eq!(events[1..], numbers(100..110));
    check_no_event(&mut *second);
}

/// Checks that after a token the exact number of messages overwritten since is reported, where messages are counted.
pub(super) fn resume_behind(fixture: &Fixture<'_>) {
    const COUNT: u64 = 1_500;
    let topic = fixture.topic("behind");
    let capabilities = topic.capabilities();
    if !capabilities.history || !capabilities.sequences || !capabilities.policies.contains(&Policy::Overwrite) {
        return;
    }
    let config = TopicConfig { capacity_bytes: 256 << 10, ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = topic.connection.publisher(&topic.name, &config).expect("opened");
    publish(&mut *publisher, 0..20);
    let mut first = topic.subscriber(StartPosition::Oldest, Wait::Yield);
    assert_eq!(collect(&mut *first, 10), numbers(0..10));
    let token = token(&*first);
    drop(first);
    publish(&mut *publisher, 20..COUNT);
    let mut second = topic.subscriber(StartPosition::After(token), Wait::Yield);
    let (mut next, deadline) = (10, TestDeadline::new());
    while next < COUNT {
        match &collect(&mut *second, 1)[0] {
            OwnedEvent::Gap(Gap::Missed(missed)) => next += missed,
            OwnedEvent::Message { stamp, .. } => {
                assert_eq!(*stamp, next, "a missing message was not reported");
                next += 1;
            }
            other => panic!("{other:?}"),
        }
        deadline.check("behind");
    }
    assert_eq!(next, COUNT);
}

/// Checks that a carried message keeps its id, duplicates are dropped, and gaps and published losses arrive.
pub(super) fn carried(fixture: &Fixture<'_>) {
    let topic = fixture.topic("carried");
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Yield);
    let mut publisher = topic.publisher();
    let id = |number| MessageId { clock: 1, publisher: 2, sequence: number };
    for number in [5, 6, 6, 5, 7] {
        publisher.publish_with_id(id(number), number, KIND, &payload(number)).expect("carried");
    }
    let is_kept = is_id_kept(&topic, &mut *subscriber, &mut *publisher);
    if is_kept {
        publisher.publish_with_id(id(10), 10, KIND, &payload(10)).expect("carried");
        assert_eq!(collect(&mut *subscriber, 2), [vec![OwnedEvent::Gap(Gap::Missed(2))], numbers(10..11)].concat());
        // Some servers drop duplicates themselves.
        assert!(matches!(subscriber.duplicates(), Some(0 | 2)), "{:?} duplicates", subscriber.duplicates());
        assert_eq!(subscriber.out_of_order(), Some(0));
        for number in [9, 9, 11] {
            publisher.publish_with_id(id(number), number, KIND, &payload(number)).expect("carried");
        }
        assert_eq!(collect(&mut *subscriber, 1), numbers(11..12), "a message reported as missed is not delivered");
        assert!(matches!(subscriber.duplicates(), Some(0 | 3)), "{:?} duplicates", subscriber.duplicates());
        assert_eq!(subscriber.out_of_order(), Some(1));
    }
    for gap in [Gap::Missed(3), Gap::Reconnected] {
        publisher.publish_gap(0, gap).expect("published");
        assert_eq!(collect(&mut *subscriber, 1), [OwnedEvent::Gap(gap)]);
    }
    if is_kept {
        // The missing numbers are part of the loss that was reported.
        publisher.publish_with_id(id(14), 14, KIND, &payload(14)).expect("carried");
        assert_eq!(collect(&mut *subscriber, 1), numbers(14..15));
    }
    publish(&mut *publisher, 20..22);
    assert_eq!(collect(&mut *subscriber, 2), numbers(20..22), "its own numbers are as if nothing had been carried");
    check_no_event(&mut *subscriber);
}

/// Takes the messages carried as 5, 6, 6, 5, 7 and one own message; returns true if no duplicate arrived.
fn is_id_kept(topic: &ScratchTopic, subscriber: &mut dyn Subscriber, publisher: &mut dyn Publisher) -> bool {
    publish(publisher, 8..9);
    let events = collect(subscriber, 4);
    if events == [numbers(5..8), numbers(8..9)].concat() {
        return true;
    }
    assert!(topic.capabilities().single_publisher, "a broker's messages keep their origin: {events:?}");
    assert_eq!(events, [5, 6, 6, 5].map(|number| numbers(number..number + 1)).concat());
    assert_eq!(collect(subscriber, 2), numbers(7..9));
    false
}

fn token(subscriber: &dyn Subscriber) -> ResumeToken {
    subscriber.resume_token().expect("there is history, and the topic is known")
}

fn numbers(numbers: std::ops::Range<u64>) -> Vec<OwnedEvent> {
    numbers.map(|number| OwnedEvent::message(number, &payload(number))).collect()
}

fn uncounted(event: SubscriptionEvent<'_>) -> OwnedEvent {
    match OwnedEvent::of(event) {
        OwnedEvent::Message { stamp, payload, .. } => OwnedEvent::message(stamp, &payload),
        other => other,
    }
}

/// Returns the next events, without sequence numbers.
fn collect(subscriber: &mut dyn Subscriber, count: usize) -> Vec<OwnedEvent> {
    let mut events = Vec::new();
    let deadline = TestDeadline::new();
    while events.len() < count {
        let polled = subscriber.poll(count - events.len(), &mut |event| events.push(uncounted(event)));
        if polled.expect("polled") == 0 {
            subscriber.wait(1_000_000);
        }
        assert!(!deadline.is_over(), "only {} of {count} events arrived", events.len());
    }
    events
}
