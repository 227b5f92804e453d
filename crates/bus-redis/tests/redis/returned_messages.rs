//! Single messages that pullers give back, and dead letters: messages that were delivered too often.

use std::num::NonZeroU32;

use tickpath_bus_api::conformance::{pull_stamps, wait_until};
use tickpath_bus_api::{
    ConnectError, Connection, DeliveryGuarantee, MessageId, Puller, QueueConfig, ReceiveError, dead_letter_queue,
};
use tickpath_clock::Wait;

use crate::queues::{KIND, QUEUE, RedisQueueFixture, check_empty, next_error, push};

#[test]
fn only_the_returned_message_is_redelivered() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
        push(&mut *pusher, 0..4);
        let received = pull(&mut *puller, 4);
        assert!(
            received.iter().all(|one| !one.redelivered && one.deliveries == bench.counted(1)),
            "{bench}: {received:?}"
        );
        give_back(&mut *puller, received[1].tag);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(1), "{bench}");
        let mut other = bench.puller(Wait::Block);
        let again = pull(&mut *other, 1);
        assert_eq!((again[0].stamp, again[0].redelivered), (1, true), "{bench}");
        assert_eq!(again[0].deliveries, bench.counted(2), "{bench}");
        // The message that was given back is not among those acknowledged here.
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        give_back(&mut *other, again[0].tag);
        let third = pull(&mut *puller, 1);
        assert_eq!((third[0].stamp, third[0].deliveries), (1, bench.counted(3)), "{bench}");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        check_empty(&mut *puller);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0), "{bench}");
    }
}

#[test]
fn a_sleeping_puller_gets_a_message_that_another_returns() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut puller, mut sleeper) = (bench.puller(Wait::Yield), bench.puller(Wait::Block));
        push(&mut *bench.pusher(), 0..1);
        let received = pull(&mut *puller, 1);
        let again = std::thread::scope(|scope| {
            let sleeping = scope.spawn(|| {
                let mut again = Vec::new();
                wait_until(|| {
                    sleeper.wait(60_000_000_000);
                    let pulled = sleeper.pull(8, &mut |pulled| again.push((pulled.message.stamp, pulled.redelivered)));
                    pulled.expect("the sleeper goes on") > 0
                });
                again
            });
            give_back(&mut *puller, received[0].tag);
            sleeping.join().unwrap()
        });
        assert_eq!(again, [(0, true)], "{bench}");
    }
}

#[test]
fn messages_can_be_returned_in_any_order() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
        push(&mut *pusher, 0..5);
        let received = pull(&mut *puller, 5);
        for at in [2, 0, 4, 1] {
            give_back(&mut *puller, received[at].tag);
        }
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        let mut again = pull_stamps(&mut *puller, 4);
        again.sort_unstable();
        assert_eq!(again, [(0, true), (1, true), (2, true), (4, true)], "{bench}");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        check_empty(&mut *puller);
    }
}

#[test]
fn an_unknown_tag_is_not_returned() {
    for bench in RedisQueueFixture::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
        push(&mut *pusher, 0..2);
        let received = pull(&mut *puller, 2);
        if bench.delivery == DeliveryGuarantee::AtMostOnce {
            assert_eq!(received[0].tag, 0, "{bench}");
            let refused = puller.give_back(received[0].tag).expect_err("it is gone");
            assert!(matches!(refused, ReceiveError::Other(_)) && refused.to_string().contains("at-least-once"));
            continue;
        }
        assert!(received[0].tag != 0 && received[0].tag != received[1].tag, "{bench}: {received:?}");
        give_back(&mut *puller, received[0].tag);
        refuses(&mut *puller, received[0].tag);
        refuses(&mut *puller, received[1].tag + 1000);
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        refuses(&mut *puller, received[1].tag);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(1), "{bench}");
    }
}

#[test]
fn a_message_claimed_by_another_puller_is_not_returned() {
    for bench in RedisQueueFixture::at_least_once() {
        let hasty = QueueConfig { silence_ns: 200_000_000, ..bench.config() };
        let (mut pusher, mut silent) = (bench.pusher(), bench.puller_with(&hasty, Wait::Yield));
        push(&mut *pusher, 0..2);
        let received = pull(&mut *silent, 2);
        let mut other = bench.puller_with(&hasty, Wait::Yield);
        assert_eq!(pull_stamps(&mut *other, 2), [(0, true), (1, true)], "{bench}");
        refuses(&mut *silent, received[0].tag);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0), "{bench}");
        let error = silent.acknowledge().expect_err("the second one is the other one's").to_string();
        assert!(error.contains("1 messages"), "{bench}: {error}");
        other.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
    }
}

#[test]
fn a_message_is_returned_over_a_new_connection() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
        push(&mut *pusher, 0..3);
        let received = pull(&mut *puller, 3);
        bench.server.cut_connections();
        give_back(&mut *puller, received[1].tag);
        assert_eq!(puller.reconnects(), Some(1), "{bench}");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        assert_eq!(pull_stamps(&mut *puller, 1), [(1, true)], "{bench}");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0), "{bench}");
    }
}

#[test]
fn an_over_delivered_message_moves_whole_to_the_dead_letters_once() {
    let bench = RedisQueueFixture::streams();
    let limited = config(&bench, 3);
    let mut pusher = bench.pusher();
    push(&mut *pusher, 7..8);
    let mut first = None;
    for delivery in 1..=3 {
        // One delivery is given back, the others end with the puller: both count.
        let mut puller = bench.puller_with(&limited, Wait::Block);
        let received = pull(&mut *puller, 1);
        assert_eq!((received[0].stamp, received[0].deliveries), (7, Some(delivery)));
        if delivery == 2 {
            give_back(&mut *puller, received[0].tag);
        }
        assert_eq!(*first.get_or_insert(received[0].origin), received[0].origin);
    }
    push(&mut *pusher, 8..9);
    let mut puller = bench.puller_with(&limited, Wait::Block);
    assert_eq!(pull_stamps(&mut *puller, 1), [(8, false)]);
    puller.acknowledge().unwrap();
    // A puller finds the dead letter when it looks for messages that others gave back.
    wait_until(|| {
        assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?}, once more")).unwrap(), 0);
        bench.bus.count_waiting(&dead_letter_queue(QUEUE)).unwrap() == Some(1)
    });
    assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0));
    assert_eq!(bench.server.run_command(&["XLEN", QUEUE]), Ok(redis::Value::Int(0)));
    check_empty(&mut *puller);
    let dead = bench.bus.puller(&dead_letter_queue(QUEUE), &bench.config(), Wait::Block);
    let mut dead = dead.unwrap_or_else(|e| panic!("{e}"));
    let received = pull(&mut *dead, 1);
    assert_eq!((received[0].stamp, received[0].redelivered, Some(received[0].origin)), (7, false, first));
    assert_eq!((received[0].kind, received[0].payload.as_slice()), (KIND, &b"payload"[..]));
    dead.acknowledge().unwrap();
    check_empty(&mut *dead);
}

#[test]
fn a_dead_letter_is_not_acknowledged() {
    let bench = RedisQueueFixture::streams();
    let once = QueueConfig { silence_ns: 200_000_000, ..config(&bench, 1) };
    let (mut silent, mut other) = (bench.puller_with(&once, Wait::Yield), bench.puller_with(&once, Wait::Block));
    push(&mut *bench.pusher(), 0..1);
    assert_eq!(pull_stamps(&mut *silent, 1), [(0, false)]);
    wait_until(|| {
        assert_eq!(other.pull(8, &mut |pulled| panic!("{pulled:?}, once more")).unwrap(), 0);
        other.wait(10_000_000);
        bench.bus.count_waiting(&dead_letter_queue(QUEUE)).unwrap() == Some(1)
    });
    let error = silent.acknowledge().expect_err("it comes again, as a dead letter");
    assert!(matches!(&error, ReceiveError::NotAcknowledged(sentence) if sentence.contains("1 messages")), "{error}");
    silent.acknowledge().expect("it is told once");
}

#[test]
fn a_full_server_moves_dead_letters() {
    let bench = RedisQueueFixture::streams();
    let mut puller = bench.puller_with(&config(&bench, 1), Wait::Yield);
    push(&mut *bench.pusher(), 0..1);
    let received = pull(&mut *puller, 1);
    bench.server.run_command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    give_back(&mut *puller, received[0].tag);
    check_empty(&mut *puller);
    assert_eq!(bench.bus.count_waiting(&dead_letter_queue(QUEUE)).unwrap(), Some(1));
}

#[test]
fn a_message_never_handed_over_is_no_dead_letter() {
    let bench = RedisQueueFixture::streams();
    let once = config(&bench, 1);
    let mut sleeper = bench.puller_with(&once, Wait::Block);
    push(&mut *bench.pusher(), 0..1);
    sleeper.wait(60_000_000_000);
    drop(sleeper);
    let mut puller = bench.puller_with(&once, Wait::Block);
    let received = pull(&mut *puller, 1);
    assert_eq!((received[0].stamp, received[0].deliveries), (0, Some(1)));
    puller.acknowledge().unwrap();
    assert_eq!(bench.bus.count_waiting(&dead_letter_queue(QUEUE)).unwrap(), Some(0));
}

#[test]
fn a_refused_foreign_message_is_no_dead_letter() {
    let bench = RedisQueueFixture::streams();
    let once = QueueConfig { silence_ns: 20_000_000, ..config(&bench, 1) };
    let mut puller = bench.puller_with(&once, Wait::Block);
    bench.push_foreign("theirs");
    for _ in 0..4 {
        assert!(next_error(&mut *puller).to_string().contains("what another program has pushed"));
    }
    assert_eq!(bench.server.run_command(&["XLEN", QUEUE]), Ok(redis::Value::Int(1)));
    assert_eq!(bench.bus.count_waiting(&dead_letter_queue(QUEUE)).unwrap(), Some(0));
}

#[test]
fn a_dead_letter_key_of_another_type_is_reported_without_loss() {
    let bench = RedisQueueFixture::streams();
    let once = config(&bench, 1);
    let mut puller = bench.puller_with(&once, Wait::Yield);
    push(&mut *bench.pusher(), 0..1);
    let received = pull(&mut *puller, 1);
    let dead = dead_letter_queue(QUEUE);
    bench.server.run_command(&["SET", &dead, "mine"]).unwrap();
    give_back(&mut *puller, received[0].tag);
    let error = next_error(&mut *puller).to_string();
    assert!(error.contains("WRONGTYPE the queue of dead letters"), "{error}");
    assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(1));
    bench.server.run_command(&["DEL", &dead]).unwrap();
    wait_until(|| {
        assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?}, once more")).unwrap(), 0);
        bench.bus.count_waiting(&dead).unwrap() == Some(1)
    });
}

#[test]
fn lists_refuse_a_delivery_limit() {
    for bench in RedisQueueFixture::all() {
        let limited = config(&bench, 3);
        let opened = bench.bus.puller(QUEUE, &limited, Wait::Block).map(drop);
        if bench.bus.queue_capabilities().counts_deliveries && bench.delivery == DeliveryGuarantee::AtLeastOnce {
            opened.unwrap_or_else(|e| panic!("{bench}: {e}"));
        } else {
            assert!(matches!(opened, Err(ConnectError::Unsupported { .. })), "{bench}");
        }
    }
}

/// A message that arrived.
#[derive(Debug)]
struct PulledCopy {
    stamp: u64,
    kind: u8,
    payload: Vec<u8>,
    origin: Option<MessageId>,
    redelivered: bool,
    deliveries: Option<u32>,
    tag: u64,
}

impl RedisQueueFixture {
    /// Returns the bench of streams with at-least-once delivery.
    fn streams() -> Self {
        let found = Self::at_least_once().into_iter().find(|bench| !bench.way.is_empty());
        found.expect("there are streams")
    }

    /// Returns the delivery count to expect: none where the way does not count deliveries.
    fn counted(&self, deliveries: u32) -> Option<u32> {
        self.bus.queue_capabilities().counts_deliveries.then_some(deliveries)
    }
}

/// Returns the bench's configuration with a limit of deliveries.
fn config(bench: &RedisQueueFixture, most: u32) -> QueueConfig {
    QueueConfig { max_deliveries: NonZeroU32::new(most), ..bench.config() }
}

/// Pulls the next `count` messages.
fn pull(puller: &mut dyn Puller, count: usize) -> Vec<PulledCopy> {
    let mut received: Vec<PulledCopy> = Vec::new();
    wait_until(|| {
        let pulled = puller.pull(count - received.len(), &mut |pulled| {
            let message = pulled.message;
            received.push(PulledCopy {
                stamp: message.stamp,
                kind: message.kind,
                payload: message.payload.to_vec(),
                origin: message.id,
                redelivered: pulled.redelivered,
                deliveries: pulled.deliveries,
                tag: pulled.tag,
            });
        });
        pulled.expect("the puller goes on");
        received.len() == count
    });
    received
}

fn give_back(puller: &mut dyn Puller, tag: u64) {
    puller.give_back(tag).unwrap_or_else(|e| panic!("the message {tag} is not taken back: {e}"));
}

fn refuses(puller: &mut dyn Puller, tag: u64) {
    let refused = puller.give_back(tag).expect_err("it is not this puller's to give");
    assert!(matches!(refused, ReceiveError::NotAcknowledged(_)), "{refused}");
}
