//! Failures of servers, and the state of the messages that were in flight.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use tickpath_bus_api::conformance::{
    OwnedEvent, check_no_event, free_port, next_event, pull_stamps, resume_process, suspend_process, wait_until,
};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Gap, MessageId, Policy, PublishError, Publisher, QueueConfig, StartPosition,
    Subscriber, SubscriptionEvent, TopicConfig,
};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::Wait;

use crate::redis_server::RedisServer;

const TOPIC: &str = "tickpath:test:ticks";
const QUEUE: &str = "tickpath:test:orders";
const KIND: u8 = 16;

#[test]
fn a_server_restored_from_older_data_is_a_gap_without_duplicates() {
    for publishes_first in [false, true] {
        let mut server = RedisServer::start(&[]);
        let bus = bus(&server, "?streams");
        let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Oldest));
        publish(&mut *publisher, 1..7);
        server.run_command(&["SAVE"]).unwrap();
        publish(&mut *publisher, 7..11);
        for stamp in 1..11 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""));
        }
        server.kill();
        server.restart();
        // The server is older once it has loaded the data that it saved.
        wait_until(|| server.run_command(&["XLEN", TOPIC]) == Ok(redis::Value::Int(6)));
        if publishes_first {
            publish(&mut *publisher, 11..13);
        }
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected), "{publishes_first}");
        if !publishes_first {
            publish(&mut *publisher, 11..13);
        }
        for stamp in 11..13 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""), "{publishes_first}");
        }
    }
}

#[test]
fn entries_trimmed_past_a_slow_subscriber_are_counted() {
    const COUNT: u64 = 200;
    for is_ours in [true, false] {
        let server = RedisServer::start(&[]);
        let bus = bus(&server, "?streams");
        let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now));
        let mut add = |number: u64| match is_ours {
            true => publisher.publish(number, KIND, b"").unwrap(),
            false => drop(server.run_command(&["XADD", TOPIC, "*", "n", &number.to_string()]).unwrap()),
        };
        add(0);
        // One entry is read first, so that the subscriber knows which entries arrive here: ours or foreign ones.
        let first = next_event(&mut *subscriber);
        assert!(!matches!(first, OwnedEvent::Gap(_)), "{first:?}");
        (1..COUNT).for_each(&mut add);
        server.run_command(&["XTRIM", TOPIC, "MAXLEN", "5"]).unwrap();
        let (mut received, mut missed) = (1, 0);
        while received + missed < COUNT {
            match next_event(&mut *subscriber) {
                OwnedEvent::Gap(Gap::Missed(more)) => missed += more,
                OwnedEvent::Gap(gap) => panic!("{gap:?}"),
                _ => received += 1,
            }
        }
        assert!(missed >= COUNT - 80, "ours: {is_ours}, {received} came and {missed} were told as missed");
        assert_eq!(received + missed, COUNT, "ours: {is_ours}");
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn a_fast_subscriber_of_a_trimmed_stream_misses_nothing() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server, "?streams");
    let mut subscriber = subscriber(&bus, StartPosition::Now);
    for number in 0..50 {
        server.run_command(&["XADD", TOPIC, "MAXLEN", "1", "*", "n", &number.to_string()]).unwrap();
        let expected = format!("{{\"n\":\"{number}\"}}");
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(None, &expected));
        if number == 25 {
            assert!(server.cut_connections() >= 1);
        }
    }
}

#[test]
fn a_message_in_doubt_at_a_hung_server_arrives_once_after_a_resend() {
    for way in ["", "?streams"] {
        let server = RedisServer::start(&[]);
        let bus = bus(&server, way);
        let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now));
        publish(&mut *publisher, 1..2);
        suspend_process(server.pid());
        let error = publisher.publish(2, KIND, b"").expect_err("nobody answers");
        assert!(matches!(error, PublishError::Unknown(_)), "{error}");
        assert!(error.to_string().contains("it is unknown whether the message has arrived"), "{error}");
        resume_process(server.pid());
        publisher.resend().expect("it answers again");
        publisher.resend().expect("nothing is unknown any more");
        publish(&mut *publisher, 3..4);
        // The stream holds both copies of the second message.
        for stamp in 1..4 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""), "{way}");
        }
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn a_message_given_up_in_doubt_is_reported_as_missed() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let bus = bus(&server, "?streams");
    let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now));
    publish(&mut *publisher, 1..2);
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b""));
    suspend_process(server.pid());
    let error = publisher.publish(2, KIND, b"").expect_err("nobody answers");
    assert!(matches!(error, PublishError::Unknown(_)), "{error}");
    server.kill();
    server.restart();
    publish(&mut *publisher, 3..4);
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(1)));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b""));
}

#[test]
fn a_broken_batch_reports_the_fate_of_each_message() {
    const BATCH: usize = 10;
    let server = RedisServer::start(&[]);
    let direct = bus(&server, "?streams");
    let mut subscriber = subscriber(&direct, StartPosition::Now);
    // An answer to XADD has about 22 bytes, so the connection is cut at about the fifth answer.
    let proxy = cut_after(server.port(), 5 * 22);
    let bus = RedisBus::connect(&format!("redis://127.0.0.1:{proxy}?streams")).unwrap();
    let mut publisher = publisher(&bus);
    let mut broken = None;
    let mut sent = 0;
    while broken.is_none() {
        broken = publisher.publish_batch(sent, KIND, &[b"".as_slice(); BATCH]).err();
        sent += 1;
        assert!(sent < 100, "the connection is cut in the first batches");
    }
    let error = broken.expect("it broke");
    assert!(matches!(error.error, PublishError::Unknown(_)), "{error}");
    assert!(error.unknown().eq(error.done..BATCH), "{error}");
    publisher.resend().expect("a new connection is not cut");
    publish(&mut *publisher, 1000..1001);
    let mut received = Vec::new();
    while received.last() != Some(&1000) {
        let OwnedEvent::Message { stamp, .. } = next_event(&mut *subscriber) else {
            panic!("a gap behind {received:?}")
        };
        received.push(stamp);
    }
    let expected = (0..sent).flat_map(|stamp| [stamp; BATCH]).chain([1000]);
    assert!(received.iter().copied().eq(expected), "{received:?}");
}

#[test]
fn a_partly_refused_batch_reports_each_refusal() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server, "?streams");
    let mut publisher = publisher(&bus);
    publish(&mut *publisher, 1..2);
    // The stream's last id is the highest possible one: every later entry is refused, for ever.
    server.run_command(&["XADD", TOPIC, "18446744073709551615-18446744073709551614", "m", "x"]).unwrap();
    let error = publisher.publish_batch(2, KIND, &[b"a", b"b", b"c"]).expect_err("two are refused");
    assert_eq!((error.done, error.unknown().count()), (1, 0), "{error}");
    assert!(!error.error.is_transient(), "{error}");
}

#[test]
fn a_publisher_is_refused_by_a_demoted_master() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server, "");
    let mut publisher = publisher(&bus);
    publish(&mut *publisher, 1..2);
    server.run_command(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]).unwrap();
    let mut failure = None;
    for stamp in 2..2_000_000 {
        if let Err(error) = publisher.publish(stamp, KIND, b"") {
            failure = Some(error);
            break;
        }
    }
    let error = failure.expect("its role is asked once a second");
    assert!(matches!(&error, PublishError::Unknown(_)), "it may have been published before: {error}");
    assert!(error.to_string().contains("is a replica; use its master"), "{error}");
    let config = TopicConfig::new(Policy::Overwrite);
    let refused = bus.publisher(TOPIC, &config).err().expect("a replica is no place to publish").to_string();
    assert!(refused.contains("is a replica"), "{refused}");
    server.run_command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    publish(&mut *publisher, 3..4);
}

#[test]
fn a_demotion_noticed_late_reuses_no_sequence_number() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server, "");
    let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now));
    publish(&mut *publisher, 1..2);
    server.run_command(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]).unwrap();
    let mut last = 1;
    let error = loop {
        last += 1;
        assert!(last < 2_000_000, "its role is asked once a second");
        if let Err(error) = publisher.publish(last, KIND, b"") {
            break error;
        }
        assert_eq!(
            next_event(&mut *subscriber),
            OwnedEvent::message(last - 1, b""),
            "who is subscribed there hears it"
        );
    };
    assert!(matches!(&error, PublishError::Unknown(_)), "{error}");
    server.run_command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    publisher.resend().expect("it is a master again");
    publish(&mut *publisher, last + 1..last + 2);
    for stamp in last - 1..last + 2 {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""));
    }
    check_no_event(&mut *subscriber);
}

#[test]
fn a_resend_that_is_refused_permanently_explains_the_giving_up() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server, "?streams");
    let mut publisher = publisher(&bus);
    publish(&mut *publisher, 1..2);
    suspend_process(server.pid());
    let error = publisher.publish(2, KIND, b"").expect_err("nobody answers");
    assert!(matches!(error, PublishError::Unknown(_)), "{error}");
    resume_process(server.pid());
    server.run_command(&["ACL", "SETUSER", "default", "-xadd"]).unwrap();
    for _ in 0..2 {
        let error = publisher.resend().expect_err("it has no right to");
        assert!(matches!(error.error, PublishError::Other(_)), "{error}");
        assert!(error.to_string().contains("may be published or not, and is not sent again"), "{error}");
        assert_eq!((error.done, error.unknown().count()), (0, 1), "{error}");
    }
    server.run_command(&["ACL", "SETUSER", "default", "+xadd"]).unwrap();
    publish(&mut *publisher, 3..4);
    publisher.resend().expect("nothing is unknown any more");
}

#[test]
fn a_forwarded_message_keeps_its_id_and_takes_no_number() {
    for way in ["", "?streams"] {
        let server = RedisServer::start(&[]);
        let bus = bus(&server, way);
        let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now));
        let far = |number| MessageId { clock: 7, publisher: 9, sequence: number };
        publish(&mut *publisher, 1..2);
        publisher.publish_with_id(far(0), 2, KIND, b"").unwrap();
        suspend_process(server.pid());
        assert!(matches!(publisher.publish_with_id(far(1), 3, KIND, b""), Err(PublishError::Unknown(_))), "{way}");
        resume_process(server.pid());
        publisher.resend().expect("it answers again");
        publish(&mut *publisher, 4..5);
        publisher.publish_with_id(far(4), 5, KIND, b"").unwrap();
        // The stream holds both copies of the third message.
        for stamp in 1..5 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""), "{way}");
        }
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(2)), "{way}");
        let mut origin = None;
        wait_until(|| {
            let polled = subscriber.poll(1, &mut |event| match event {
                SubscriptionEvent::Message(message) => origin = message.id,
                other => panic!("{other:?}"),
            });
            polled.unwrap();
            origin.is_some()
        });
        assert_eq!(origin, Some(far(4)), "{way}");
    }
}

#[test]
fn a_message_pushed_twice_has_one_message_id() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server, "");
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let mut pusher = bus.pusher(QUEUE, &config).unwrap_or_else(|e| panic!("{e}"));
    suspend_process(server.pid());
    assert!(matches!(pusher.push(1, KIND, b""), Err(PublishError::Unknown(_))));
    resume_process(server.pid());
    pusher.resend().expect("it answers again");
    assert!(!bus.queue_capabilities().exact_resend);
    let mut puller = bus.puller(QUEUE, &config, Wait::Yield).unwrap_or_else(|e| panic!("{e}"));
    let mut origins = Vec::new();
    while origins.len() < 2 {
        puller.pull(8, &mut |pulled| origins.push(pulled.message.id.expect("ours"))).unwrap();
    }
    assert_eq!(origins[0], origins[1]);
}

#[test]
fn too_many_clients_are_waited_out_and_a_missing_right_is_reported() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server, "?streams");
    let mut subscriber = subscriber(&bus, StartPosition::Now);
    let mut held = server.client();
    redis::cmd("CONFIG").arg("SET").arg("maxclients").arg("2").exec(&mut held).unwrap();
    let full = bus.publisher(TOPIC, &TopicConfig::new(Policy::Keep)).err().expect("it takes two").to_string();
    assert!(full.contains("maxclients"), "{full}");
    redis::cmd("CLIENT").arg("KILL").arg("SKIPME").arg("yes").arg("TYPE").arg("normal").exec(&mut held).unwrap();
    let mut other = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    other.write_all(b"PING\r\n").unwrap();
    for _ in 0..30 {
        subscriber.poll(8, &mut |event| assert!(matches!(event, SubscriptionEvent::Gap(_)))).expect("it is waited for");
        subscriber.wait(10_000_000);
    }
    drop(other);
    redis::cmd("CONFIG").arg("SET").arg("maxclients").arg("100").exec(&mut held).unwrap();
    let mut publisher = publisher(&bus);
    while subscriber.reconnects() == Some(0) {
        subscriber.poll(8, &mut |event| assert!(matches!(event, SubscriptionEvent::Gap(_)))).unwrap();
        subscriber.wait(10_000_000);
    }
    publish(&mut *publisher, 1..2);
    loop {
        match next_event(&mut *subscriber) {
            OwnedEvent::Gap(_) => {}
            other => break assert_eq!(other, OwnedEvent::message(1, b"")),
        }
    }
    server.run_command(&["ACL", "SETUSER", "default", "-xadd"]).unwrap();
    let denied = publisher.publish(2, KIND, b"").expect_err("it has no right to");
    assert!(!denied.is_transient() && denied.to_string().contains("NOPERM"), "{denied}");
}

#[test]
fn a_server_that_refuses_after_accepting_is_not_flooded() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server, "?streams");
    let mut subscriber = subscriber(&bus, StartPosition::Now);
    server.run_command(&["ACL", "SETUSER", "default", "-xread"]).unwrap();
    server.cut_connections();
    let (mut polls, mut refusals) = (0_u64, 0_u64);
    while refusals < 4 {
        polls += 1;
        refusals +=
            u64::from(subscriber.poll(8, &mut |event| assert!(matches!(event, SubscriptionEvent::Gap(_)))).is_err());
    }
    // Each pause between two refusals takes more polls than that, on any host.
    assert!(polls > 1000, "{polls} polls");
    server.run_command(&["ACL", "SETUSER", "default", "+xread"]).unwrap();
    publish(&mut *publisher(&bus), 1..2);
    let mut received = false;
    wait_until(|| {
        // One refusal may still be pending.
        let _ = subscriber.poll(8, &mut |event| received |= matches!(event, SubscriptionEvent::Message(_)));
        received
    });
}

#[test]
fn the_first_master_of_several_servers_is_used() {
    let (replica, master) = (RedisServer::start(&[]), RedisServer::start(&[]));
    replica.run_command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).unwrap();
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}", free_port(), replica.port(), master.port());
    for way in ["", "?streams"] {
        let bus = RedisBus::connect(&format!("{url}{way}")).unwrap();
        let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now));
        publish(&mut *publisher, 1..2);
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b""), "{way}");
        let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
        let mut pusher = bus.pusher(QUEUE, &config).unwrap_or_else(|e| panic!("{e}"));
        pusher.push(1, KIND, b"").unwrap();
        let mut puller = bus.puller(QUEUE, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(pull_stamps(&mut *puller, 1), [(1, false)]);
        puller.acknowledge().unwrap();
        bus.remove_queue(QUEUE).unwrap();
    }
}

#[test]
fn a_subscriber_waits_for_one_of_several_servers_to_return() {
    let (mut first, second) = (RedisServer::start(&[]), RedisServer::start(&["--requirepass", "s@cret"]));
    let bus = RedisBus::connect(&format!("redis://127.0.0.1:{},127.0.0.1:{}", first.port(), second.port())).unwrap();
    let mut subscriber = subscriber(&bus, StartPosition::Now);
    first.kill();
    for _ in 0..50 {
        let polled = subscriber.poll(8, &mut |event| panic!("{event:?} from nobody"));
        assert_eq!(polled.expect("the other one lets nobody in, and is not the only one"), 0);
        subscriber.wait(10_000_000);
    }
    let error = bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).err().expect("neither takes it").to_string();
    assert!(error.contains("wants a password"), "the last one says what to do: {error}");
    first.restart();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
}

#[test]
fn sentinels_name_the_master_before_and_after_a_failover() {
    let mut master = RedisServer::start(&[]);
    let replica = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
    replica.run_command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).unwrap();
    wait_until(|| format!("{:?}", replica.run_command(&["INFO", "replication"])).contains("master_link_status:up"));
    let sentinel = RedisServer::sentinel(master.port(), "");
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{}?streams&sentinel=mine", free_port(), sentinel.port());
    wait_until(|| {
        format!("{:?}", sentinel.run_command(&["SENTINEL", "REPLICAS", "mine"])).contains(&replica.port().to_string())
    });
    let bus = RedisBus::connect(&url).unwrap();
    let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now));
    publish(&mut *publisher, 1..2);
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b""));
    master.kill();
    // Until the sentinel promotes the replica every message is refused, and none is lost silently.
    wait_until(|| match publisher.publish(2, KIND, b"") {
        Ok(()) => true,
        Err(error) => {
            assert!(matches!(error, PublishError::Unavailable(_)), "{error}");
            false
        }
    });
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b""));
    let other = RedisBus::connect(&url.replace("mine", "other")).expect_err("there is no such master").to_string();
    assert!(other.contains("knows no master 'other'"), "{other}");
}

/// A proxy that cuts the publisher's connection once, after so many bytes of answers; later connections are left whole.
fn cut_after(port: u16, bytes: usize) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let here = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        // `connect` opens the first connection, the publisher the second.
        for (count, incoming) in listener.incoming().enumerate().take(8) {
            let (near, far) = (incoming.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
            // The answer to PING precedes the first batch.
            let limit = if count == 1 { bytes + "+PONG\r\n".len() } else { usize::MAX };
            let (mut near_too, mut far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            std::thread::spawn(move || copy(near, far, usize::MAX));
            std::thread::spawn(move || {
                copy(far_too.try_clone().unwrap(), near_too.try_clone().unwrap(), limit);
                let _ = (near_too.flush(), near_too.shutdown(Shutdown::Both));
                let _ = (far_too.flush(), far_too.shutdown(Shutdown::Both));
            });
        }
    });
    here
}

fn copy(mut from: TcpStream, mut to: TcpStream, limit: usize) {
    let (mut left, mut room) = (limit, [0; 4096]);
    while left > 0 {
        match from.read(&mut room) {
            Ok(0) => return,
            Ok(read) => {
                let passed = read.min(left);
                if to.write_all(&room[..passed]).is_err() {
                    return;
                }
                left -= passed;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn bus(server: &RedisServer, way: &str) -> RedisBus {
    RedisBus::connect(&format!("{}{way}", server.url())).unwrap()
}

fn publisher(bus: &RedisBus) -> Box<dyn Publisher> {
    let policy = bus.capabilities().policies[0];
    bus.publisher(TOPIC, &TopicConfig::new(policy)).unwrap_or_else(|e| panic!("{e}"))
}

fn subscriber(bus: &RedisBus, start: StartPosition) -> Box<dyn Subscriber> {
    bus.subscriber(TOPIC, start, Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}

fn publish(publisher: &mut dyn Publisher, stamps: std::ops::Range<u64>) {
    for stamp in stamps {
        publisher.publish(stamp, KIND, b"").unwrap_or_else(|e| panic!("{stamp} is not published: {e}"));
    }
}
