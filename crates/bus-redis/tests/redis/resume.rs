//! Resuming a subscription of a stream: from a resume token, and after the stream or the server has changed.

use tickpath_bus_api::conformance::{OwnedEvent, check_no_event, free_port, next_event, wait_until};
use tickpath_bus_api::{Connection, Gap, Policy, Publisher, ResumeToken, StartPosition, Subscriber, TopicConfig};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::Wait;

use crate::redis_server::RedisServer;

const TOPIC: &str = "tickpath:test:ticks";
const KIND: u8 = 16;

/// An entry of a stream: its id and its fields.
type Entry = (String, Vec<(String, Vec<u8>)>);

#[test]
fn the_lost_tail_of_an_ended_publisher_is_missed_despite_a_successor() {
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let mut subscriber = subscriber(&bus, StartPosition::Now);
    let mut first = publisher(&bus);
    publish(&mut *first, 0..1);
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(0, b""));
    publish(&mut *first, 1..11);
    drop(first);
    server.run_command(&["XTRIM", TOPIC, "MAXLEN", "0"]).unwrap();
    publish(&mut *publisher(&bus), 100..101);
    let (mut received, mut missed, mut is_last) = (1, 0, false);
    while !is_last {
        match next_event(&mut *subscriber) {
            OwnedEvent::Gap(Gap::Missed(more)) => missed += more,
            OwnedEvent::Message { stamp, .. } => {
                is_last = stamp == 100;
                received += u64::from(!is_last);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(missed > 0);
    assert_eq!(received + missed, 11, "{missed} are told as missed, before what follows");
    check_no_event(&mut *subscriber);
}

#[test]
fn a_short_lived_publisher_in_a_trimmed_stream_is_missed() {
    for is_resumed in [false, true] {
        let server = RedisServer::start(&[]);
        let bus = streams(&server);
        let mut stays = publisher(&bus);
        publish(&mut *stays, 0..2);
        server.run_command(&["XTRIM", TOPIC, "MAXLEN", "1"]).unwrap();
        let mut subscriber = subscriber(&bus, StartPosition::Now);
        if is_resumed {
            let token = token(&*subscriber);
            subscriber = self::subscriber(&bus, StartPosition::After(token));
        }
        publish(&mut *stays, 2..3);
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b""));
        // This message answers the read that is in flight.
        publish(&mut *stays, 3..4);
        publish(&mut *publisher(&bus), 10..15);
        server.run_command(&["XTRIM", TOPIC, "MAXLEN", "0"]).unwrap();
        publish(&mut *stays, 4..5);
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b""));
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(5)), "resumed: {is_resumed}");
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(4, b""));
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn a_recreated_stream_is_reported_and_read_from_its_beginning() {
    // Shorter than the old stream, and longer.
    for count in [2, 9] {
        let server = RedisServer::start(&[]);
        let bus = streams(&server);
        let mut subscriber = subscriber(&bus, StartPosition::Now);
        publish(&mut *publisher(&bus), 1..4);
        for stamp in 1..4 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""));
        }
        server.run_command(&["DEL", TOPIC]).unwrap();
        publish(&mut *publisher(&bus), 10..10 + count);
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected), "{count}");
        for stamp in 10..10 + count {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""), "{count}");
        }
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn a_server_that_recovers_its_data_delivers_nothing_twice() {
    let add = |server: &RedisServer, numbers: std::ops::Range<u64>| {
        for number in numbers {
            server.run_command(&["XADD", TOPIC, "*", "m", &number.to_string()]).unwrap();
        }
        server.run_command(&["SAVE"]).unwrap();
        std::fs::read(server.dump()).unwrap()
    };
    let comes_back = |server: &mut RedisServer, data: &[u8]| {
        server.kill();
        std::fs::write(server.dump(), data).unwrap();
        server.restart();
    };
    for by_token in [false, true] {
        let mut server = RedisServer::start(&[]);
        let bus = streams(&server);
        let mut subscriber = subscriber(&bus, StartPosition::Oldest);
        let early = add(&server, 1..7);
        let late = add(&server, 7..11);
        for number in 1..11 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(None, number.to_string()));
        }
        comes_back(&mut server, &early);
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
        let token = by_token.then(|| token(&*subscriber));
        comes_back(&mut server, &late);
        if let Some(token) = token {
            subscriber = self::subscriber(&bus, StartPosition::After(token));
        }
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected), "by a token: {by_token}");
        add(&server, 11..12);
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(None, "11"), "by a token: {by_token}");
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn a_token_resumes_another_subscriber_and_counts_the_gap() {
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let mut publisher = publisher(&bus);
    publish(&mut *publisher, 0..10);
    let mut first = subscriber(&bus, StartPosition::Oldest);
    for stamp in 0..4 {
        assert_eq!(next_event(&mut *first), OwnedEvent::message(stamp, b""));
    }
    let token = token(&*first);
    for _ in 0..2 {
        let mut second = subscriber(&bus, StartPosition::After(token));
        for stamp in 4..10 {
            assert_eq!(next_event(&mut *second), OwnedEvent::message(stamp, b""));
        }
        check_no_event(&mut *second);
    }
    server.run_command(&["XTRIM", TOPIC, "MAXLEN", "3"]).unwrap();
    let mut third = subscriber(&bus, StartPosition::After(token));
    assert_eq!(self::token(&*third), token, "a gap that is not told lies behind it");
    assert_eq!(next_event(&mut *third), OwnedEvent::Gap(Gap::Missed(3)));
    assert_ne!(self::token(&*third), token);
    let mut fourth = subscriber(&bus, StartPosition::After(self::token(&*third)));
    for subscriber in [&mut third, &mut fourth] {
        for stamp in 7..10 {
            assert_eq!(next_event(&mut **subscriber), OwnedEvent::message(stamp, b""));
        }
        check_no_event(&mut **subscriber);
    }
}

#[test]
fn entries_trimmed_before_a_reconnect_are_reported() {
    let mut server = RedisServer::start(&[]);
    let bus = streams(&server);
    publish(&mut *publisher(&bus), 0..10);
    let mut first = subscriber(&bus, StartPosition::Oldest);
    for stamp in 0..4 {
        assert_eq!(next_event(&mut *first), OwnedEvent::message(stamp, b""));
    }
    let mut position = token(&*first);
    drop(first);
    server.run_command(&["SAVE"]).unwrap();
    server.kill();
    server.restart();
    wait_until(|| server.run_command(&["PING"]).is_ok());
    // After a restart the server's history, and so the number of lost unread entries, is unknown; later losses are
    // counted.
    for (left, gap) in [("10", Gap::Reconnected), ("3", Gap::Reconnected), ("1", Gap::Missed(2))] {
        server.run_command(&["XTRIM", TOPIC, "MAXLEN", left]).unwrap();
        let mut next = subscriber(&bus, StartPosition::After(position));
        assert_eq!(next_event(&mut *next), OwnedEvent::Gap(gap), "{left} are left");
        position = token(&*next);
    }
    let mut last = subscriber(&bus, StartPosition::After(position));
    assert_eq!(next_event(&mut *last), OwnedEvent::message(9, b""));
    check_no_event(&mut *last);
}

#[test]
fn a_token_reports_a_removed_or_recreated_topic() {
    for comes_late in [true, false] {
        let server = RedisServer::start(&[]);
        let bus = streams(&server);
        publish(&mut *publisher(&bus), 0..3);
        let mut first = subscriber(&bus, StartPosition::Oldest);
        for stamp in 0..3 {
            assert_eq!(next_event(&mut *first), OwnedEvent::message(stamp, b""));
        }
        let token = token(&*first);
        bus.remove_topic(TOPIC).unwrap();
        let early = comes_late.then(|| subscriber(&bus, StartPosition::After(token)));
        publish(&mut *publisher(&bus), 10..15);
        let mut second = early.unwrap_or_else(|| subscriber(&bus, StartPosition::After(token)));
        assert_eq!(next_event(&mut *second), OwnedEvent::Gap(Gap::Reconnected));
        for stamp in 10..15 {
            assert_eq!(next_event(&mut *second), OwnedEvent::message(stamp, b""));
        }
        check_no_event(&mut *second);
    }
}

#[test]
fn a_token_survives_the_restart_of_a_durable_server_only() {
    for (settings, is_kept) in [(&["--appendonly", "yes", "--appendfsync", "always"][..], true), (&[], false)] {
        let mut server = RedisServer::start(settings);
        let bus = streams(&server);
        let mut publisher = publisher(&bus);
        publish(&mut *publisher, 0..3);
        let mut first = subscriber(&bus, StartPosition::Oldest);
        assert_eq!(next_event(&mut *first), OwnedEvent::message(0, b""));
        let token = token(&*first);
        drop(first);
        server.run_command(&["SAVE"]).unwrap();
        server.kill();
        server.restart();
        let mut second = subscriber(&bus, StartPosition::After(token));
        if !is_kept {
            assert_eq!(next_event(&mut *second), OwnedEvent::Gap(Gap::Reconnected));
        }
        for stamp in 1..3 {
            assert_eq!(next_event(&mut *second), OwnedEvent::message(stamp, b""), "kept: {is_kept}");
        }
        check_no_event(&mut *second);
    }
}

#[test]
fn a_replica_behind_a_token_delivers_nothing_again() {
    let (master, replica) = (RedisServer::start(&["--repl-diskless-sync-delay", "0"]), RedisServer::start(&[]));
    replica.run_command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).unwrap();
    let add = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            master.run_command(&["XADD", TOPIC, "*", "m", &number.to_string()]).unwrap();
        }
    };
    add(0..4);
    wait_until(|| replica.run_command(&["XLEN", TOPIC]) == Ok(redis::Value::Int(4)));
    // The replica follows a port without a server, so it keeps the data that it has.
    replica.run_command(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]).unwrap();
    add(4..10);
    let mut first = subscriber(&streams(&master), StartPosition::Oldest);
    for number in 0..10 {
        assert_eq!(next_event(&mut *first), OwnedEvent::foreign(None, number.to_string()));
    }
    let mut second = subscriber(&streams(&replica), StartPosition::After(token(&*first)));
    assert_eq!(next_event(&mut *second), OwnedEvent::Gap(Gap::Reconnected));
    check_no_event(&mut *second);
    let mut third = subscriber(&streams(&master), StartPosition::After(token(&*first)));
    add(10..11);
    assert_eq!(next_event(&mut *third), OwnedEvent::foreign(None, "10"));
}

#[test]
fn an_older_disk_copy_of_a_durable_server_delivers_nothing_twice() {
    for by_token in [false, true] {
        let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
        let bus = streams(&server);
        let mut publisher = publisher(&bus);
        publish(&mut *publisher, 1..7);
        let log = server.dump().with_file_name("appendonlydir").join("appendonly.aof.1.incr.aof");
        let early = std::fs::metadata(&log).unwrap().len();
        publish(&mut *publisher, 7..11);
        let mut subscriber = subscriber(&bus, StartPosition::Oldest);
        for stamp in 1..11 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""));
        }
        let token = by_token.then(|| token(&*subscriber));
        server.kill();
        std::fs::File::options().write(true).open(&log).unwrap().set_len(early).unwrap();
        server.restart();
        // The server is older once it has loaded the truncated file.
        wait_until(|| server.run_command(&["XLEN", TOPIC]) == Ok(redis::Value::Int(6)));
        if let Some(token) = token {
            subscriber = self::subscriber(&bus, StartPosition::After(token));
        }
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected), "by a token: {by_token}");
        publish(&mut *publisher, 11..13);
        for stamp in 11..13 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""), "by a token: {by_token}");
        }
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn a_stream_recreated_with_the_same_ids_is_detected() {
    for by_token in [false, true] {
        let server = RedisServer::start(&[]);
        let (bus, mut client) = (streams(&server), server.client());
        publish(&mut *publisher(&bus), 0..5);
        let mut subscriber = subscriber(&bus, StartPosition::Oldest);
        for stamp in 0..5 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""));
        }
        let token = token(&*subscriber);
        let others = format!("{TOPIC}:others");
        publish(&mut *bus.publisher(&others, &TopicConfig::new(Policy::Keep)).unwrap(), 10..15);
        let mut entries = |topic: &str| -> Vec<Entry> {
            redis::cmd("XRANGE").arg(topic).arg("-").arg("+").query(&mut client).unwrap()
        };
        let (ids, others) = (entries(TOPIC), entries(&others));
        // The ids are those of the old stream, as if both were written within the same milliseconds.
        let mut anew = redis::pipe();
        anew.atomic().cmd("DEL").arg(TOPIC).ignore();
        for ((id, _), (_, fields)) in ids.iter().zip(&others) {
            anew.cmd("XADD").arg(TOPIC).arg(id).arg(&fields[0].0).arg(&fields[0].1).ignore();
        }
        anew.exec(&mut client).unwrap();
        if by_token {
            subscriber = self::subscriber(&bus, StartPosition::After(token));
        } else {
            server.cut_connections();
        }
        let mut received = Vec::new();
        while received.last() != Some(&OwnedEvent::message(14, b"")) {
            received.push(next_event(&mut *subscriber));
        }
        let gap = received.iter().position(|event| *event == OwnedEvent::Gap(Gap::Reconnected)).expect("it is told");
        let anew: Vec<_> = (10..15).map(|stamp| OwnedEvent::message(stamp, b"")).collect();
        assert_eq!(received[gap + 1..], anew, "by a token: {by_token}");
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn publish_and_subscribe_has_no_token_and_refuses_one() {
    let server = RedisServer::start(&[]);
    let (plain, streams) = (RedisBus::connect(&server.url()).unwrap(), streams(&server));
    assert_eq!(subscriber(&plain, StartPosition::Now).resume_token(), None);
    let token = token(&*subscriber(&streams, StartPosition::Now));
    let refused =
        plain.subscriber(TOPIC, StartPosition::After(token), Wait::Block).err().expect("it keeps nothing").to_string();
    assert!(refused.contains("?streams"), "{refused}");
    let other: ResumeToken = "kafka:1,2,3,4".parse().unwrap();
    let refused =
        streams.subscriber(TOPIC, StartPosition::After(other), Wait::Block).err().expect("it is of Kafka").to_string();
    assert!(refused.contains("is of 'kafka'"), "{refused}");
}

/// Returns the subscriber's token after a round trip through its text form.
fn token(subscriber: &dyn Subscriber) -> ResumeToken {
    subscriber.resume_token().expect("a stream has history").to_string().parse().unwrap()
}

fn streams(server: &RedisServer) -> RedisBus {
    RedisBus::connect(&format!("{}?streams", server.url())).unwrap()
}

fn publisher(bus: &RedisBus) -> Box<dyn Publisher> {
    bus.publisher(TOPIC, &TopicConfig::new(Policy::Keep)).unwrap_or_else(|e| panic!("{e}"))
}

fn subscriber(bus: &RedisBus, start: StartPosition) -> Box<dyn Subscriber> {
    bus.subscriber(TOPIC, start, Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}

fn publish(publisher: &mut dyn Publisher, stamps: std::ops::Range<u64>) {
    for stamp in stamps {
        publisher.publish(stamp, KIND, b"").unwrap_or_else(|e| panic!("{stamp} is not published: {e}"));
    }
}
