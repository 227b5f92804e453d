//! Cases of lent messages: they stay unchanged, and a refusal to lend loses nothing.

use tickpath_clock::Wait;

use super::fixture::Fixture;
use super::message::{KIND, ReceivedTally, TestDeadline, next, payload, publish, receive};
use super::scratch::ScratchTopic;
use crate::{LendError, LendOutcome, LentMessage, Policy, StartPosition, Subscriber};

/// Checks for each policy that a topic lends its messages, or refuses with a reason.
pub(super) fn lending(fixture: &Fixture<'_>) {
    let capabilities = fixture.topic("lend").capabilities();
    for &policy in capabilities.policies {
        let topic = fixture.topic(&format!("lend-{policy}"));
        match capabilities.lends.contains(&policy) {
            true => lends(&topic, policy),
            false => refuses(&topic, policy),
        }
    }
    let foreign_policy = capabilities.lends.iter().find(|policy| !capabilities.policies.contains(policy));
    assert_eq!(foreign_policy, None, "a policy that does not exist here lends nothing");
}

/// Checks that lent messages stay unchanged when their subscriber and publisher are gone and another publishes.
fn lends(topic: &ScratchTopic, policy: Policy) {
    const COUNT: u64 = 1_500;
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Adaptive);
    assert!(matches!(subscriber.lend(), Ok(LendOutcome::Nothing)), "nothing is published yet");
    let mut publisher = topic.publisher_by(policy);
    publish(&mut *publisher, 0..COUNT);
    let mut lent = Vec::new();
    for number in 0..COUNT {
        // A subscriber may poll copies between lent messages.
        match number % 10 {
            7 => assert_eq!(next(&mut *subscriber, "in between"), (number, KIND, payload(number))),
            _ => lent.push(next_lent(&mut *subscriber, number)),
        }
    }
    let token = subscriber.resume_token();
    drop((subscriber, publisher));
    publish(&mut *topic.publisher_by(policy), COUNT..COUNT + 10);
    for (number, lent) in &lent {
        assert_eq!((lent.stamp, lent.kind), (*number, KIND));
        assert!(lent.payload() == payload(*number), "message {number} has changed");
        assert!(lent.sequence.is_none_or(|sequence| sequence == *number), "message {number} is {lent:?}");
    }
    if let Some(token) = token {
        let mut behind = topic.subscriber(StartPosition::After(token), Wait::Yield);
        assert_eq!(next_lent(&mut *behind, COUNT).1.stamp, COUNT);
    }
}

fn next_lent(subscriber: &mut dyn Subscriber, number: u64) -> (u64, LentMessage) {
    let deadline = TestDeadline::new();
    loop {
        match subscriber.lend().unwrap_or_else(|e| panic!("message {number}: {e}")) {
            LendOutcome::Message(lent) => return (number, lent),
            LendOutcome::Gap(gap) => panic!("where message {number} is: {gap:?}"),
            LendOutcome::Nothing => subscriber.wait(1_000_000),
        }
        deadline.check("a lent message");
    }
}

/// Checks that a refusal has a reason, and that polling then returns every message.
fn refuses(topic: &ScratchTopic, policy: Policy) {
    let mut publisher = topic.publisher_by(policy);
    let mut subscriber = topic.subscriber(StartPosition::Now, Wait::Adaptive);
    let mut tally = ReceivedTally::from(0, &topic.capabilities());
    for first in [0, 5] {
        publish(&mut *publisher, first..first + 5);
        match subscriber.lend() {
            Err(LendError::Unsupported(why)) => assert!(!why.is_empty(), "{policy}"),
            other => panic!("'{policy}' is not among the policies that lend, and yet lend returned {other:?}"),
        }
        receive(&mut *subscriber, &mut tally, "messages that are not lent", |tally| tally.next() == first + 5);
    }
    assert_eq!((tally.received, tally.missed), (10, 0));
}
