//! Topics on streams: lost connections, lost streams, and foreign entries and keys.

use tickpath_bus_api::conformance::{OwnedEvent, check_no_event, next_event, wait_until};
use tickpath_bus_api::{Connection, Gap, Policy, Publisher, StartPosition, Subscriber, TopicConfig};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::{Wait, sleep_ns};

use crate::redis_server::RedisServer;

const TOPIC: &str = "tickpath:test:ticks";
const KIND: u8 = 16;

/// Settings with which a killed server still has all its data after a restart.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[test]
fn a_stream_resumes_after_a_lost_connection_without_a_gap() {
    for wait in [Wait::Yield, Wait::Block] {
        let server = RedisServer::start(&[]);
        let bus = streams(&server);
        let mut publisher = publisher(&bus);
        publisher.publish(0, KIND, b"").unwrap();
        let mut subscriber = subscriber(&bus, StartPosition::Oldest, wait);
        for stamp in 0..40 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""));
            if stamp % 10 == 5 {
                assert!(server.cut_connections() >= 2, "a publisher and a subscriber");
            }
            publisher.publish(stamp + 1, KIND, b"").unwrap();
        }
        assert_eq!((publisher.reconnects(), subscriber.reconnects()), (Some(4), Some(4)), "{wait}");
    }
}

#[test]
fn a_lost_stream_is_reported_and_read_from_its_beginning() {
    for wait in [Wait::Yield, Wait::Block] {
        let mut server = RedisServer::start(&[]);
        let bus = streams(&server);
        let mut publisher = publisher(&bus);
        let mut subscriber = subscriber(&bus, StartPosition::Now, wait);
        publisher.publish(1, KIND, b"before").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));
        server.kill();
        server.restart();
        publisher.publish_batch(2, KIND, &[b"after", b"that"]).unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"after"));
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"that"));
    }
}

#[test]
fn a_stream_retained_over_a_restart_resumes_without_a_gap() {
    let mut server = RedisServer::start(&DURABLE);
    let bus = streams(&server);
    let mut publisher = publisher(&bus);
    let mut subscriber = subscriber(&bus, StartPosition::Now, Wait::Block);
    publisher.publish(1, KIND, b"before").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));
    server.kill();
    let error = publisher.publish(2, KIND, b"lost").unwrap_err().to_string();
    assert!(error.contains("refused the connection; start redis-server"), "{error}");
    for _ in 0..20 {
        assert_eq!(subscriber.poll(8, &mut |event| panic!("{event:?} from a dead server")).unwrap(), 0);
        subscriber.wait(1_000_000);
    }
    server.restart();
    publisher.publish(3, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b"after"));
}

#[test]
fn a_subscriber_without_a_known_entry_reports_a_gap() {
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let mut subscriber = subscriber(&bus, StartPosition::Now, Wait::Block);
    assert!(server.cut_connections() >= 1, "a subscriber");
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    publisher(&bus).publish(1, KIND, b"first").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"first"));
}

#[test]
fn foreign_entries_arrive_as_foreign_events() {
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let mut subscriber = subscriber(&bus, StartPosition::Now, Wait::Block);
    let mut client = server.client();
    let several = &["symbol", "BTC\"USDT", "price", "64000.25"];
    for (fields, expected) in [
        (&["price", "64000.25"][..], r#"{"price":"64000.25"}"#),
        (&["m", "hello"], "hello"),
        (&["m", ""], ""),
        (several, r#"{"symbol":"BTC\"USDT","price":"64000.25"}"#),
        (&["bid", "1", "bid", "2"], r#"{"bid":"1","bid":"2"}"#),
        (&["a", "1", "m", "2"], r#"{"a":"1","m":"2"}"#),
    ] {
        redis::cmd("XADD").arg(TOPIC).arg("*").arg(fields).query::<String>(&mut client).unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(None, expected));
    }
    publisher(&bus).publish(4, KIND, b"ours").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(4, b"ours"));
}

#[test]
fn an_overwriting_topic_stays_small_and_counts_what_slow_readers_miss() {
    const COUNT: u64 = 5000;
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let config = TopicConfig { capacity_bytes: 64 << 10, ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = bus.publisher(TOPIC, &config).unwrap_or_else(|e| panic!("{e}"));
    let mut subscriber = subscriber(&bus, StartPosition::Now, Wait::Block);
    (0..COUNT).for_each(|stamp| publisher.publish(stamp, KIND, &[7; 100]).unwrap());
    let Ok(redis::Value::Int(length)) = server.run_command(&["XLEN", TOPIC]) else { panic!("it is a stream") };
    // A message has 140 bytes with its header. The count may exceed the limit by a node of the stream, and by what was
    // added since the last trim.
    let max_entries = (64 << 10) / 140;
    assert!((max_entries..max_entries + 200).contains(&length), "{length} entries");
    let (mut received, mut missed) = (0, 0);
    while received + missed < COUNT {
        match next_event(&mut *subscriber) {
            OwnedEvent::Gap(Gap::Missed(more)) => missed += more,
            OwnedEvent::Gap(gap) => panic!("{gap:?}"),
            _ => received += 1,
        }
    }
    assert_eq!(received + missed, COUNT);
    assert!(missed > 3000, "{missed} are told as missed");
    check_no_event(&mut *subscriber);
}

#[test]
fn entries_beyond_the_max_age_are_removed() {
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let config = TopicConfig { max_age_ns: Some(100_000_000), ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = bus.publisher(TOPIC, &config).unwrap_or_else(|e| panic!("{e}"));
    (0..10).for_each(|_| publisher.publish(1, KIND, b"").unwrap());
    wait_until(|| {
        publisher.publish(2, KIND, b"").unwrap();
        next_event(&mut *subscriber(&bus, StartPosition::Oldest, Wait::Block)) == OwnedEvent::message(2, b"")
    });
    let keeping = TopicConfig { policy: Policy::Keep, ..config };
    let refused = bus.publisher(TOPIC, &keeping).err().expect("it keeps everything").to_string();
    assert!(refused.contains("by their age"), "{refused}");
}

#[test]
fn a_key_that_is_no_stream_is_left_alone() {
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let mut client = server.client();
    redis::cmd("SET").arg(TOPIC).arg("mine").exec(&mut client).unwrap();
    let refusals = [
        bus.subscriber(TOPIC, StartPosition::Now, Wait::Block).err().expect("a string is no stream").to_string(),
        publisher(&bus).publish(5, KIND, b"").unwrap_err().to_string(),
        bus.remove_topic(TOPIC).unwrap_err().to_string(),
    ];
    for refusal in refusals {
        assert!(refusal.starts_with(&server.url()) && refusal.contains("WRONGTYPE"), "{refusal}");
        assert!(refusal.contains("use another name"), "{refusal}");
    }
    assert_eq!(redis::cmd("GET").arg(TOPIC).query::<String>(&mut client).unwrap(), "mine");
}

#[test]
fn a_burst_trimmed_whole_is_reported_though_nothing_follows() {
    // With a stream that exists, and with a stream that does not.
    for is_there in [true, false] {
        let server = RedisServer::start(&[]);
        let bus = streams(&server);
        let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now, Wait::Block));
        if is_there {
            publisher.publish(1, KIND, b"").unwrap();
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b""));
        }
        add_and_trim(&server);
        let gap = if counts(&server) { Gap::Missed(BURST) } else { Gap::Reconnected };
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(gap), "it was there: {is_there}");
        publisher.publish(2, KIND, b"").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b""), "it was there: {is_there}");
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn a_burst_trimmed_whole_between_two_requests_is_reported() {
    for wait in [Wait::Yield, Wait::Block] {
        let server = RedisServer::start(&[]);
        let bus = streams(&server);
        let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now, wait));
        publisher.publish(1, KIND, b"").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b""));
        // This message answers the read that is in flight.
        publisher.publish(2, KIND, b"").unwrap();
        add_and_trim(&server);
        publisher.publish(3, KIND, b"").unwrap();
        if !counts(&server) {
            return;
        }
        let mut received: Vec<OwnedEvent> = (0..3).map(|_| next_event(&mut *subscriber)).collect();
        let gap_index =
            received.iter().position(|event| matches!(event, OwnedEvent::Gap(_))).expect("the loss is told");
        assert_eq!(received.remove(gap_index), OwnedEvent::Gap(Gap::Missed(BURST)), "{wait}");
        assert_eq!(received, [2, 3].map(|stamp| OwnedEvent::message(stamp, b"")), "{wait}");
        check_no_event(&mut *subscriber);
    }
}

#[test]
fn a_subscriber_without_losses_requests_no_count() {
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now, Wait::Block));
    publisher.publish(0, KIND, b"").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(0, b""));
    let (looks, counts, mut stamp) = (server.calls("xlen"), server.calls("xinfo"), 0);
    wait_until(|| {
        stamp += 1;
        publisher.publish(stamp, KIND, b"").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""));
        server.calls("xlen") >= looks + 3
    });
    assert_eq!(server.calls("xinfo"), counts);
}

#[test]
fn a_subscriber_that_polls_rarely_finds_its_messages_at_once() {
    let server = RedisServer::start(&[]);
    let bus = streams(&server);
    let (mut publisher, mut subscriber) = (publisher(&bus), subscriber(&bus, StartPosition::Now, Wait::Yield));
    publisher.publish(0, KIND, b"").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(0, b""));
    check_no_event(&mut *subscriber);
    // The subscriber notices late that its read has timed out.
    sleep_ns(2_500_000_000);
    check_no_event(&mut *subscriber);
    // The next read has no timeout.
    sleep_ns(1_500_000_000);
    publisher.publish(1, KIND, b"").unwrap();
    wait_until(|| format!("{:?}", server.run_command(&["INFO", "clients"])).contains("blocked_clients:0"));
    let mut received = 0;
    assert_eq!(subscriber.poll(8, &mut |_event| received += 1).unwrap(), 1);
    assert_eq!(received, 1);
}

/// The number of entries that another program adds and trims in one step, together with all entries before them.
const BURST: u64 = 5;

fn add_and_trim(server: &RedisServer) {
    let script = "for number = 1, tonumber(ARGV[1]) do redis.call('XADD', KEYS[1], '*', 'n', number) end \
                  return redis.call('XTRIM', KEYS[1], 'MAXLEN', 0)";
    server.run_command(&["EVAL", script, "1", TOPIC, &BURST.to_string()]).unwrap();
}

/// Reports whether the server counts all entries ever added to a stream.
fn counts(server: &RedisServer) -> bool {
    format!("{:?}", server.run_command(&["XINFO", "STREAM", TOPIC])).contains("entries-added")
}

fn streams(server: &RedisServer) -> RedisBus {
    RedisBus::connect(&format!("{}?streams", server.url())).unwrap()
}

fn publisher(bus: &RedisBus) -> Box<dyn Publisher> {
    bus.publisher(TOPIC, &TopicConfig::new(Policy::Keep)).unwrap_or_else(|e| panic!("{e}"))
}

fn subscriber(bus: &RedisBus, start: StartPosition, wait: Wait) -> Box<dyn Subscriber> {
    bus.subscriber(TOPIC, start, wait).unwrap_or_else(|e| panic!("{e}"))
}
