//! Queues on a server whose memory is full: pushing returns an error, and pullers can still empty the queue.

use tickpath_bus_api::conformance::{pull_stamps, wait_until};
use tickpath_bus_api::{Connection, DeliveryGuarantee, PublishError, Puller};
use tickpath_clock::Wait;

use crate::queues::{KIND, QUEUE, RedisQueueFixture, push};
use crate::redis_server::RedisServer;

#[test]
fn a_full_server_refuses_pushers_and_is_emptied_by_pullers() {
    for bench in RedisQueueFixture::all() {
        let (mut pusher, mut early) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..20);
        let mut received = pull_stamps(&mut *early, 5);
        fill(&bench.server);
        let error = pusher.push(20, KIND, b"").expect_err("there is no memory left");
        assert!(matches!(&error, PublishError::Unavailable(_)), "{bench}: {error}");
        assert!(error.to_string().contains("has no memory left"), "{bench}: {error}");
        // A puller that sleeps is woken, too: messages are left.
        early.wait(1_000_000_000);
        let mut late = bench.puller(Wait::Block);
        received.extend(pull_stamps(&mut *early, 8));
        received.extend(pull_stamps(&mut *late, 7));
        for puller in [&mut early, &mut late] {
            puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
            puller.wait(1_000_000);
            assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?} from an empty queue")).unwrap(), 0, "{bench}");
            assert_eq!(puller.reconnects(), Some(0), "{bench}: the server refuses it something");
        }
        received.sort_unstable();
        assert!(received.iter().copied().eq((0..20).map(|stamp| (stamp, false))), "{bench}: {received:?}");
        bench.server.cut_connections();
        for puller in [&mut early, &mut late] {
            wait_for_reconnect(&mut **puller);
        }
        empty(&bench.server);
        push(&mut *pusher, 21..22);
        assert_eq!(pull_stamps(&mut *early, 1), [(21, false)], "{bench}");
    }
}

#[test]
fn pullers_keep_their_messages_over_a_reconnect_to_a_full_server() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..6);
        assert_eq!(pull_stamps(&mut *puller, 3).len(), 3);
        fill(&bench.server);
        bench.server.cut_connections();
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        assert_eq!(pull_stamps(&mut *puller, 3), [(3, false), (4, false), (5, false)], "{bench}");
        drop(puller);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(3), "{bench}");
        let mut next = bench.puller(Wait::Block);
        assert_eq!(pull_stamps(&mut *next, 3), [(3, true), (4, true), (5, true)], "{bench}");
        next.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
    }
}

#[test]
fn a_message_received_in_a_sleep_returns_to_a_full_server() {
    for bench in RedisQueueFixture::all() {
        let (mut pusher, mut first) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..1);
        first.wait(60_000_000_000);
        fill(&bench.server);
        drop(first);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(1), "{bench}");
        let received = pull_stamps(&mut *bench.puller(Wait::Block), 1);
        assert_eq!(received[0].0, 0, "{bench}");
    }
}

#[test]
fn foreign_messages_stay_on_a_full_server() {
    for bench in RedisQueueFixture::all().into_iter().filter(|bench| bench.delivery == DeliveryGuarantee::AtMostOnce) {
        let mut puller = bench.puller(Wait::Block);
        bench.push_foreign("theirs");
        fill(&bench.server);
        puller.wait(1_000_000_000);
        drop(puller);
        let kept = match bench.way {
            "" => bench.server.run_command(&["LLEN", QUEUE]),
            _ => bench.server.run_command(&["XLEN", QUEUE]),
        };
        assert_eq!(kept, Ok(redis::Value::Int(1)), "{bench}");
    }
}

/// Sets the server's memory limit so low that every write is refused.
fn fill(server: &RedisServer) {
    server.run_command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    assert_eq!(server.run_command(&["SET", "more", "x"]), Err("OOM".to_owned()));
}

/// Lifts the server's memory limit.
fn empty(server: &RedisServer) {
    server.run_command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
}

/// Waits until a puller has reconnected; fails if a message arrives meanwhile.
fn wait_for_reconnect(puller: &mut dyn Puller) {
    let before = puller.reconnects();
    wait_until(|| {
        assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?} from an empty queue")).unwrap(), 0);
        puller.wait(1_000_000);
        puller.reconnects() > before
    });
}
