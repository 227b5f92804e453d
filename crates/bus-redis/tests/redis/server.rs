//! Behaviour that only a server can show: refusing, hanging, crashing, restarting, and other clients on the same
//! channel.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use tickpath_bus_api::conformance::{OwnedEvent, free_port, next_event};
use tickpath_bus_api::{ConnectError, Connection, Gap, Policy, Publisher, StartPosition, Subscriber, TopicConfig};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::Wait;

use crate::redis_server::RedisServer;

const TOPIC: &str = "tickpath:test:ticks";
const KIND: u8 = 16;

#[test]
fn clients_reconnect_to_a_restarted_server() {
    for wait in [Wait::Yield, Wait::Block] {
        let mut server = RedisServer::start(&[]);
        let bus = RedisBus::connect(&server.url()).unwrap();
        let mut subscriber = subscriber(&bus, wait);
        let mut publisher = publisher(&bus);
        publisher.publish(1, KIND, b"before").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));

        server.kill();
        let error = publisher.publish(2, KIND, b"lost").unwrap_err().to_string();
        let remedy = format!("{} refused the connection; start redis-server, or check host and port", server.url());
        assert_eq!(error, remedy);
        for _ in 0..20 {
            assert_eq!(subscriber.poll(8, &mut |event| panic!("{event:?} from a dead server")).unwrap(), 0);
            subscriber.wait(1_000_000);
        }

        server.restart();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
        publisher.publish(3, KIND, b"after").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b"after"));
    }
}

#[test]
fn a_publisher_reconnects_when_the_server_is_back() {
    let mut server = RedisServer::start(&[]);
    let bus = RedisBus::connect(&server.url()).unwrap();
    let mut publisher = publisher(&bus);
    publisher.publish(1, KIND, b"before").unwrap();
    server.kill();
    server.restart();
    let mut subscriber = subscriber(&bus, Wait::Block);
    publisher.publish_batch(2, KIND, &[b"one", b"two"]).unwrap();
    assert_eq!((publisher.reconnects(), subscriber.reconnects()), (Some(1), Some(0)));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"one"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"two"));
}

#[test]
fn a_disconnected_subscriber_reports_a_gap() {
    let server = RedisServer::start(&[]);
    let bus = RedisBus::connect(&server.url()).unwrap();
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut client = server.client();
    let killed = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").query::<i64>(&mut client).unwrap();
    assert_eq!(killed, 1);
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(subscriber.reconnects(), Some(1));
    publisher(&bus).publish(5, KIND, b"again").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(5, b"again"));
}

#[test]
fn foreign_messages_arrive_as_foreign_events() {
    let server = RedisServer::start(&[]);
    let bus = RedisBus::connect(&server.url()).unwrap();
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut client = server.client();
    for foreign in ["", "hello", "{\"price\": 64000.25}", "0123456789abcdef0123456789abcdef"] {
        let received = redis::cmd("PUBLISH").arg(TOPIC).arg(foreign).query::<i64>(&mut client).unwrap();
        assert_eq!(received, 1);
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(None, foreign));
    }
    publisher(&bus).publish(6, KIND, b"ours").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(6, b"ours"));
}

/// Names that are invalid for a topic of this bus.
#[test]
fn a_channel_or_stream_of_any_name_is_read_under_a_topic_name() {
    let server = RedisServer::start(&["--notify-keyspace-events", "KEA"]);
    let mut client = server.client();
    for foreign_name in ["market:BTC/USDT@trade", "a b", "é", "__keyspace@0__:x"] {
        let escaped: String = foreign_name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let bus =
            |way: &str| RedisBus::connect(&format!("{}?{way}name.{TOPIC}={escaped}", server.url())).expect("it runs");
        let mut hears = subscriber(&bus(""), Wait::Block);
        match foreign_name {
            "__keyspace@0__:x" => redis::cmd("SET").arg("x").arg(1).exec(&mut client).expect("set"),
            _ => redis::cmd("PUBLISH").arg(foreign_name).arg("set").exec(&mut client).expect("published"),
        }
        assert_eq!(next_event(&mut *hears), OwnedEvent::foreign(None, "set"), "{foreign_name}");
        let stream = bus("streams&");
        let config = TopicConfig::new(Policy::Keep);
        stream.publisher(TOPIC, &config).expect("it is made").publish(6, KIND, b"ours").expect("published");
        let length: usize = redis::cmd("XLEN").arg(foreign_name).query(&mut client).expect("it is a stream");
        assert_eq!(length, 1);
        let mut reads = stream.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).expect("it is there");
        assert_eq!(next_event(&mut *reads), OwnedEvent::message(6, b"ours"), "{foreign_name}");
        stream.remove_topic(TOPIC).expect("it is there");
        let kept: bool = redis::cmd("EXISTS").arg(foreign_name).query(&mut client).expect("asked");
        assert!(!kept, "{foreign_name}");
    }
    for (option, why) in
        [("name.a/b=x", "'a/b' is no topic name"), ("name.a=%0A", "control characters"), ("name.a=x&name.a=y", "twice")]
    {
        let refused = RedisBus::connect(&format!("{}?{option}", server.url())).expect_err(option).to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn a_login_needs_the_right_password() {
    let server = RedisServer::start(&["--requirepass", "s@cret"]);
    check(&server.url(), &["wants a password", "redis://:PASSWORD@HOST:PORT"]);
    check(&server.url_with(":wrong"), &["refused the user name or the password", "in the URL"]);
    check(&server.url_with("nobody:s%40cret"), &["refused the user name or the password"]);
    for login in [":s%40cret", "default:s%40cret"] {
        let bus = RedisBus::connect(&server.url_with(login)).unwrap();
        let mut subscriber = subscriber(&bus, Wait::Block);
        publisher(&bus).publish(7, KIND, b"let in").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(7, b"let in"));
    }
}

#[test]
fn the_url_selects_the_database_and_channels_span_all() {
    let server = RedisServer::start(&[]);
    let third = RedisBus::connect(&format!("{}/3", server.url())).unwrap();
    let mut subscriber = subscriber(&third, Wait::Block);
    publisher(&RedisBus::connect(&server.url()).unwrap()).publish(8, KIND, b"from 0").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(8, b"from 0"));
    check(&format!("{}/9999", server.url()), &["out of range"]);
}

#[test]
fn a_refused_connection_is_reported() {
    check(&format!("redis://127.0.0.1:{}", free_port()), &["refused the connection", "start redis-server"]);
    // A label of 64 characters is invalid in DNS, so the resolver refuses it without asking the network.
    check(&format!("redis://{}.invalid:6379", "x".repeat(64)), &["cannot be resolved", "check the host"]);
    check(
        "redis+unix:///no/such/redis.sock",
        &["redis+unix:///no/such/redis.sock", "has no socket there", "unixsocket"],
    );
}

#[test]
fn a_unix_socket_of_a_dead_server_is_reported() {
    let mut server = RedisServer::start(&[]);
    let bus = RedisBus::connect(&server.unix_url()).unwrap();
    let mut subscriber = subscriber(&bus, Wait::Block);
    server.kill();
    check(&server.unix_url(), &["refused the connection", "start redis-server"]);
    server.restart();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    publisher(&bus).publish(9, KIND, b"again").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(9, b"again"));
}

#[test]
fn unknown_url_options_are_refused() {
    let server = RedisServer::start(&[]);
    for url in [server.url(), server.unix_url()] {
        for options in ["?", "?stream", "?streams=1", "?streams&lists", "?protocol=resp3"] {
            let error = RedisBus::connect(&format!("{url}{options}")).expect_err("other words are refused");
            assert!(matches!(error, ConnectError::Url(_)), "{error}");
            assert!(error.to_string().contains("?streams"), "{error}");
        }
    }
}

#[test]
fn another_kind_of_server_is_reported() {
    type Answer = fn(TcpStream);
    let cases: [(Answer, &[&str]); 4] = [
        (
            |mut stream| answer(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            &["not as Redis does", "check the port"],
        ),
        (|mut stream| answer(&mut stream, b"+OK POP3 ready\r\n"), &["not as Redis does", "check the port"]),
        (drop, &["connection", "try again"]),
        (|stream| hold(&stream), &["did not answer within 5 s", "check host, port and firewall"]),
    ];
    for (behave, words) in cases {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || behave(listener.accept().unwrap().0));
        check(&url, words);
        server.join().unwrap();
    }
}

/// Sends one answer, then waits until the client disconnects.
fn answer(stream: &mut TcpStream, bytes: &[u8]) {
    let mut question = [0; 64];
    let _ = stream.read(&mut question);
    let _ = stream.write_all(bytes);
    hold(stream);
}

/// Reads until the client disconnects, and sends nothing.
fn hold(mut stream: &TcpStream) {
    let mut bytes = [0; 64];
    while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
}

/// Checks that connecting fails with an error that contains these words.
fn check(url: &str, words: &[&str]) {
    let error = RedisBus::connect(url).err().unwrap_or_else(|| panic!("{url} is connected to")).to_string();
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
    assert!(error.starts_with("redis") && !error.contains("cret"), "{error}");
}

fn publisher(bus: &RedisBus) -> Box<dyn Publisher> {
    bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).unwrap_or_else(|e| panic!("{e}"))
}

fn subscriber(bus: &RedisBus, wait: Wait) -> Box<dyn Subscriber> {
    bus.subscriber(TOPIC, StartPosition::Now, wait).unwrap_or_else(|e| panic!("{e}"))
}
