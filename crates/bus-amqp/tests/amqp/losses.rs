//! Losses are reported, even where no publisher's sequence numbers show them.

use lapin::ExchangeKind;
use tickpath_bus_amqp::{MAX_BEHIND_BYTES, MAX_PREFETCH};
use tickpath_bus_api::conformance::{OwnedEvent, ProxyMode, check_no_event, next_event, pull_stamps, wait_until};
use tickpath_bus_api::{Connection, DeliveryGuarantee, Gap, Puller, ReceiveError, Subscriber, SubscriptionEvent};
use tickpath_clock::{Clock, HostClock, Wait};

use crate::broker::{
    Scratch, consumers, declare_foreign, publish_fleeting, publish_foreign, publisher, puller, pusher, subscriber,
};
use crate::broker_failure::pull_until_error;
use crate::server::relayed;

const KIND: u8 = 16;

#[test]
fn an_at_most_once_puller_reports_unconfirmed_messages_as_lost() {
    let scratch = Scratch::new("taken");
    let (relay, bus) = relayed();
    pusher(&scratch.bus, &scratch.name).push_batch(1, KIND, &[&b"message"[..]; 3]).unwrap();
    let mut cut_off = puller(&bus, &scratch.name, DeliveryGuarantee::AtMostOnce);
    // All messages are on their way to this puller, and arrive before the answer to its first acknowledgement.
    scratch.until_waiting(0);
    assert_eq!(pull_stamps(&mut *cut_off, 1).len(), 1);

    relay.set(ProxyMode::Mute);
    match cut_off.pull(8, &mut |pulled| panic!("handed over, and perhaps still in the queue: {pulled:?}")) {
        Err(ReceiveError::MessagesLost(sentence)) => {
            assert!(sentence.starts_with("2 messages") && sentence.contains("may be gone"), "{sentence}");
        }
        other => panic!("{other:?}"),
    }
    relay.set(ProxyMode::Open);
    pusher(&scratch.bus, &scratch.name).push(2, KIND, b"after").unwrap();
    assert_eq!(
        pull_stamps(&mut *cut_off, 1),
        [(2, false)],
        "the broker had received it, and the loss is reported once"
    );
    drop(cut_off);
    scratch.until_waiting(0);
}

#[test]
fn a_subscriber_backs_off_while_it_cannot_reconnect() {
    const ERRORS: usize = 4;
    let scratch = Scratch::new("barred");
    let (relay, bus) = relayed();
    let mut barred = subscriber(&bus, &scratch.name, Wait::Block);
    relay.set(ProxyMode::Refusing);
    relay.cut();
    // Another program takes the name for an exchange of another type.
    scratch.bus.remove_topic(&scratch.name).unwrap();
    declare_foreign(&scratch.name, ExchangeKind::Direct);
    relay.set(ProxyMode::Open);

    let clock = HostClock::get().unwrap();
    let (mut errors, mut first) = (0, None);
    wait_until(|| {
        match barred.poll(8, &mut |event| panic!("{event:?} from nowhere")) {
            Ok(_) => barred.wait(1_000_000),
            Err(error) => {
                assert!(error.to_string().contains("has this name already"), "{error}");
                first.get_or_insert_with(|| clock.ticks());
                errors += 1;
            }
        }
        errors == ERRORS
    });
    // The pauses between the attempts are at least 100, 200 and 400 ms.
    let taken_ns = clock.ns_between(first.expect("it was reported"), clock.ticks());
    assert!(taken_ns >= 700_000_000, "{ERRORS} attempts within {taken_ns} ns");

    scratch.bus.remove_topic(&scratch.name).unwrap();
    let mut publisher = publisher(&scratch.bus, &scratch.name);
    let mut is_back = false;
    wait_until(|| {
        match barred.poll(1, &mut |event| is_back |= matches!(event, SubscriptionEvent::Gap(Gap::Reconnected))) {
            Ok(_) => barred.wait(1_000_000),
            Err(error) => assert!(!error.is_transient(), "{error}"),
        }
        is_back
    });
    publisher.publish(1, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *barred), OwnedEvent::message(1, b"after"));
}

#[test]
fn reconnects_back_off_from_a_broker_that_drops_connections() {
    const DROPS: u64 = 4;
    let scratch = Scratch::new("fleeting");
    let (relay, bus) = relayed();
    let (mut subscriber, mut puller) =
        (subscriber(&bus, &scratch.name, Wait::Block), puller(&bus, &scratch.name, DeliveryGuarantee::AtLeastOnce));
    let clock = HostClock::get().unwrap();
    let began = clock.ticks();
    for drops in 1..=DROPS {
        relay.cut();
        wait_until(|| {
            subscriber
                .poll(8, &mut |event| assert!(matches!(event, SubscriptionEvent::Gap(Gap::Reconnected))))
                .unwrap();
            puller.pull(8, &mut |pulled| panic!("{pulled:?} from nowhere")).unwrap();
            [subscriber.reconnects(), puller.reconnects()] == [Some(drops); 2]
        });
    }
    // The pauses after the first one are at least 100, 200 and 400 ms.
    let taken_ns = clock.ns_between(began, clock.ticks());
    assert!(taken_ns >= 700_000_000, "{DROPS} connections within {taken_ns} ns");
    publisher(&scratch.bus, &scratch.name).publish(1, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"after"));
}

#[test]
fn each_puller_reports_a_queue_that_was_removed_and_made_anew() {
    let scratch = Scratch::new("anew");
    let (relay, bus) = relayed();
    let mut pusher = pusher(&scratch.bus, &scratch.name);
    let mut pullers = [(); 2].map(|()| puller(&bus, &scratch.name, DeliveryGuarantee::AtLeastOnce));
    // Only the connection is lost: nothing is reported.
    relay.cut();
    pusher.push(1, KIND, b"before").unwrap();
    wait_until(|| {
        let pull = |puller: &mut Box<dyn Puller>| {
            puller.pull(1, &mut |pulled| assert_eq!(pulled.message.stamp, 1)).unwrap_or_else(|e| panic!("{e}"));
            puller.reconnects()
        };
        pullers.each_mut().map(pull) == [Some(1); 2]
    });

    relay.set(ProxyMode::Refusing);
    relay.cut();
    scratch.bus.remove_queue(&scratch.name).unwrap();
    let error = pusher.push(2, KIND, b"nowhere").unwrap_err();
    assert!(error.to_string().contains("push again"), "{error}");
    pusher.push(3, KIND, b"after").unwrap();
    scratch.until_waiting(1);
    relay.set(ProxyMode::Open);
    for puller in &mut pullers {
        let news = pull_until_error(&mut **puller);
        assert!(
            matches!(&news, ReceiveError::MessagesLost(sentence) if sentence.contains("messages are gone")),
            "{news:?}"
        );
    }
    let [first, second] = pullers;
    drop(first);
    let mut rest = second;
    let after = pull_stamps(&mut *rest, 1);
    assert_eq!(after[0].0, 3, "it is reported once, and pulled from");
}

#[test]
fn a_puller_reports_a_queue_made_anew_during_a_prefetch_change() {
    // The queue is removed after the broker has processed the old consumer's end, or before.
    for (suffix, mode) in [("anew-between", ProxyMode::Mute), ("anew-before", ProxyMode::Stalled)] {
        let scratch = Scratch::new(suffix);
        let (relay, bus) = relayed();
        let mut pusher = pusher(&scratch.bus, &scratch.name);
        let mut puller = puller(&bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
        // The broker first sends four messages ahead. With the last one the puller asks for more.
        pusher.push_batch(1, KIND, &[&b"before"[..]; 4]).unwrap();
        scratch.until_waiting(0);
        assert_eq!(pull_stamps(&mut *puller, 3).len(), 3);
        // The answer to the acknowledgement comes behind the last message.
        puller.acknowledge().unwrap();
        relay.set(mode);
        assert_eq!(pull_stamps(&mut *puller, 1), [(1, false)], "{suffix}");
        if mode == ProxyMode::Mute {
            wait_until(|| consumers(&scratch.name) == 0);
        }
        scratch.bus.remove_queue(&scratch.name).unwrap();
        let error = pusher.push(2, KIND, b"nowhere").unwrap_err();
        assert!(error.to_string().contains("push again"), "{suffix}: {error}");
        pusher.push(3, KIND, b"after").unwrap();
        relay.set(ProxyMode::Open);
        let news = pull_until_error(&mut *puller);
        assert!(
            matches!(&news, ReceiveError::MessagesLost(sentence) if sentence.contains("messages are gone")),
            "{suffix}: {news:?}"
        );
        assert_eq!(pull_stamps(&mut *puller, 1)[0].0, 3, "{suffix}: it is reported once, and pulled from");
    }
}

#[test]
fn each_subscriber_reports_a_topic_that_was_removed_and_made_anew() {
    let scratch = Scratch::new("topic-anew");
    let mut subscribers = [Wait::Yield, Wait::Block].map(|wait| subscriber(&scratch.bus, &scratch.name, wait));
    publisher(&scratch.bus, &scratch.name).publish(1, KIND, b"before").unwrap();
    for subscriber in &mut subscribers {
        assert_eq!(next_event(&mut **subscriber), OwnedEvent::message(1, b"before"));
    }
    // No poll happens meanwhile, and no sequence number of this publisher was seen.
    scratch.bus.remove_topic(&scratch.name).unwrap();
    let mut anew = publisher(&scratch.bus, &scratch.name);
    anew.publish(2, KIND, b"lost").unwrap();
    for subscriber in &mut subscribers {
        assert_eq!(next_event(&mut **subscriber), OwnedEvent::Gap(Gap::Reconnected));
    }
    anew.publish(3, KIND, b"after").unwrap();
    for subscriber in &mut subscribers {
        assert_eq!(next_event(&mut **subscriber), OwnedEvent::message(3, b"after"), "it is reported once");
        check_no_event(&mut **subscriber);
    }
}

/// Size of a message of which the broker keeps only a few.
const LARGE: usize = 1 << 20;

/// Number of large messages of which the broker drops some, whatever came before.
const MANY: usize = MAX_BEHIND_BYTES / LARGE + 6;

/// Reads until the message with this stamp; returns the number of messages between gaps, and the gaps.
fn stretches(subscriber: &mut dyn Subscriber, last: u64) -> (Vec<usize>, Vec<Gap>) {
    let (mut stretches, mut gaps, mut is_over) = (vec![0], Vec::new(), false);
    wait_until(|| {
        let polled = subscriber.poll(16, &mut |event| match event {
            SubscriptionEvent::Message(message) if message.stamp == last => is_over = true,
            SubscriptionEvent::Message(_) | SubscriptionEvent::Foreign(_) => {
                *stretches.last_mut().expect("there is one") += 1
            }
            SubscriptionEvent::Gap(gap) => {
                gaps.push(gap);
                stretches.push(0);
            }
        });
        polled.unwrap_or_else(|e| panic!("{e}"));
        is_over
    });
    (stretches, gaps)
}

/// Returns whether one loss is reported: twice, if its last notice came behind some of the following messages.
fn is_reported(gaps: &[Gap]) -> bool {
    (1..=2).contains(&gaps.len()) && gaps.iter().all(|&gap| gap == Gap::Reconnected)
}

#[test]
fn drops_of_foreign_messages_are_reported_in_their_place() {
    let scratch = Scratch::new("foreign-dropped");
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let (ahead, foreign) = (usize::from(MAX_PREFETCH), "x".repeat(LARGE));
    publish_foreign(&scratch.name, "", &vec!["ahead"; ahead]);
    publish_foreign(&scratch.name, "", &vec![foreign.as_str(); MANY]);
    publisher(&scratch.bus, &scratch.name).publish(9, KIND, b"last").unwrap();
    let (came, gaps) = stretches(&mut *subscriber, 9);
    assert!(is_reported(&gaps), "{gaps:?} between {came:?}");
    assert!((1..=ahead).contains(&came[0]) && (1..MANY).contains(&came[1]), "{came:?}");
    check_no_event(&mut *subscriber);
}

#[test]
fn drops_of_an_ended_publishers_last_messages_are_reported() {
    let scratch = Scratch::new("ended-dropped");
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let (ahead, foreign) = (usize::from(MAX_PREFETCH), "x".repeat(LARGE));
    let mut ended = publisher(&scratch.bus, &scratch.name);
    ended.publish_batch(1, KIND, &vec![&b"ahead"[..]; ahead]).unwrap();
    ended.publish_batch(1, KIND, &[&b"dropped"[..]; 3]).unwrap();
    drop(ended);
    let mut successor = publisher(&scratch.bus, &scratch.name);
    let large = vec![7; LARGE];
    for _ in 0..MANY {
        successor.publish(2, KIND, &large).unwrap();
    }
    successor.publish(9, KIND, b"last").unwrap();
    let (came, gaps) = stretches(&mut *subscriber, 9);
    assert!(is_reported(&gaps), "{gaps:?} between {came:?}");
    assert!((1..=ahead).contains(&came[0]) && (1..MANY).contains(&came[1]), "{came:?}");

    // The subscriber continues: nothing more is reported, and the next loss is.
    successor.publish(3, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b"after"));
    check_no_event(&mut *subscriber);
    publish_foreign(&scratch.name, "", &vec!["ahead"; ahead]);
    publish_foreign(&scratch.name, "", &vec![foreign.as_str(); MANY]);
    successor.publish(10, KIND, b"last").unwrap();
    let (came, gaps) = stretches(&mut *subscriber, 10);
    assert!(is_reported(&gaps), "{gaps:?} between {came:?}");
}

/// Number of digits of a message's number in its payload.
const DIGITS: usize = 8;

/// Size of a message of which the broker keeps as many as it sends ahead.
const HALF: usize = MAX_BEHIND_BYTES / MAX_PREFETCH as usize;

/// Numbered messages of another program, and a subscriber's view of them.
#[derive(Default)]
struct Numbered {
    published: usize,
    /// Number of messages handed over.
    came: usize,
    /// Number of the next message, unless it is lost.
    next: usize,
    /// Whether a gap was reported after the last message.
    is_gap_reported: bool,
    gaps: usize,
    /// Number of places where messages are missing.
    losses: usize,
}

impl Numbered {
    /// Publishes `count` more messages of `bytes` bytes each.
    fn publish(&mut self, topic: &str, count: usize, bytes: usize) {
        let filling = "x".repeat(bytes - DIGITS);
        let numbers = self.published..self.published + count;
        self.published = numbers.end;
        let bodies: Vec<String> = numbers.map(|number| format!("{number:0DIGITS$}{filling}")).collect();
        let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
        publish_foreign(topic, "", &bodies);
    }

    /// Reads, slowly, until `came` messages were handed over.
    fn read(&mut self, subscriber: &mut dyn Subscriber, came: usize) {
        self.read_until(subscriber, |numbered| numbered.came == came);
    }

    /// Reads, slowly, until the last message was handed over.
    fn read_all(&mut self, subscriber: &mut dyn Subscriber) {
        self.read_until(subscriber, |numbered| numbered.next == numbered.published);
    }

    fn read_until(&mut self, subscriber: &mut dyn Subscriber, is_over: impl Fn(&Self) -> bool) {
        wait_until(|| {
            let polled = subscriber.poll(1, &mut |event| self.find(event));
            polled.unwrap_or_else(|e| panic!("{e}"));
            is_over(self)
        });
    }

    /// Checks that each loss is reported behind the message before it, and before the one after it.
    fn find(&mut self, event: SubscriptionEvent<'_>) {
        match event {
            SubscriptionEvent::Foreign(foreign) => {
                let digits = std::str::from_utf8(&foreign.bytes[..DIGITS]).expect("digits");
                let (number, next): (usize, _) = (digits.parse().expect("a number"), self.next);
                assert!(number >= next, "{number} comes where {next} is next");
                assert!(number == next || self.is_gap_reported, "those from {next} on are missing, and {number} comes");
                self.losses += usize::from(number > next);
                (self.came, self.next, self.is_gap_reported) = (self.came + 1, number + 1, false);
            }
            SubscriptionEvent::Gap(Gap::Reconnected) => (self.gaps, self.is_gap_reported) = (self.gaps + 1, true),
            other => panic!("{other:?} from nowhere"),
        }
    }

    /// Checks that this number of losses was reported, each once or twice.
    fn check(&self, losses: usize) {
        let Self { losses: found, gaps, .. } = *self;
        assert_eq!(found, losses, "with {gaps} gaps");
        assert!((losses..=2 * losses).contains(&gaps), "{gaps} gaps for {losses} losses");
    }
}

/// Reads short messages until the broker sends the max number of them ahead.
fn warmed_up(topic: &str, subscriber: &mut dyn Subscriber) -> Numbered {
    let mut numbered = Numbered::default();
    numbered.publish(topic, 8, DIGITS);
    numbered.read(subscriber, 8);
    numbered
}

#[test]
fn consecutive_losses_are_reported_in_place_before_any_poll() {
    let scratch = Scratch::new("dropped-thrice");
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let mut numbered = warmed_up(&scratch.name, &mut *subscriber);
    let ahead = usize::from(MAX_PREFETCH);
    numbered.publish(&scratch.name, ahead, DIGITS);
    // The broker drops some messages, sends others as the subscriber makes room, and drops some behind these; meanwhile
    // short messages are buffered here.
    numbered.publish(&scratch.name, ahead + 12, HALF);
    for came in [48, 88] {
        numbered.read(&mut *subscriber, came);
        numbered.publish(&scratch.name, 60, HALF);
    }
    assert_eq!((numbered.losses, numbered.gaps), (0, 0), "no notice has arrived so far");
    numbered.read_all(&mut *subscriber);
    numbered.check(3);
    check_no_event(&mut *subscriber);
}

#[test]
fn a_loss_is_reported_whose_notice_waited_behind_another() {
    let scratch = Scratch::new("waiting-notice");
    let (relay, bus) = relayed();
    let mut subscriber = subscriber(&bus, &scratch.name, Wait::Block);
    let mut numbered = warmed_up(&scratch.name, &mut *subscriber);
    let ahead = usize::from(MAX_PREFETCH);
    numbered.publish(&scratch.name, ahead, DIGITS);
    // The other messages have arrived by then.
    numbered.read(&mut *subscriber, 28);
    relay.set(ProxyMode::Mute);
    // The notice of the first loss is delayed: later messages are sent behind it, and some are dropped behind these.
    numbered.publish(&scratch.name, ahead + 12, HALF);
    numbered.read(&mut *subscriber, 40);
    numbered.publish(&scratch.name, 60, HALF);
    assert_eq!((numbered.losses, numbered.gaps), (0, 0), "no notice has arrived so far");
    relay.set(ProxyMode::Open);
    numbered.read_all(&mut *subscriber);
    numbered.check(2);
    check_no_event(&mut *subscriber);
}

#[test]
fn expired_messages_are_reported_without_a_successor() {
    let scratch = Scratch::new("expired");
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    // The broker first sends four messages ahead.
    publish_foreign(&scratch.name, "", &["ahead"; 4]);
    publish_fleeting(&scratch.name, &["dropped"; 3]);
    for _ in 0..4 {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(None, "ahead"));
    }
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    publish_foreign(&scratch.name, "", &["after"]);
    let after = match next_event(&mut *subscriber) {
        OwnedEvent::Gap(Gap::Reconnected) => next_event(&mut *subscriber),
        other => other,
    };
    assert_eq!(after, OwnedEvent::foreign(None, "after"), "it is reported twice at most");
}
