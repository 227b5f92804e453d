//! Behaviour that needs a real server: refusing, hanging, dying and coming back, and serving other programs on the same
//! subject.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tickpath_bus_api::conformance::{OwnedEvent, free_port, next_event, next_foreign};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Gap, Policy, PublishError, ReceiveError, StartPosition, TopicConfig,
};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::{Wait, sleep_ns};

use crate::helpers::{
    KIND, QUEUE, TOPIC, bus, check_accepted, publisher, pull, puller, pusher, refused, relay_url, subscriber,
};
use crate::nats_server::NatsServer;

#[test]
fn clients_reconnect_to_a_restarted_server() {
    for wait in [Wait::Yield, Wait::Block] {
        let mut server = NatsServer::start(&[]);
        let bus = bus(&server.url());
        let mut subscriber = subscriber(&bus, wait);
        let mut publisher = publisher(&bus);
        publisher.publish(1, KIND, b"before").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));

        server.kill();
        // Bytes accepted by the socket count as published, until the client learns that the connection has ended.
        let failed = (0..60_000).find_map(|_| {
            sleep_ns(1_000_000);
            // A message cut off in the middle is in doubt.
            publisher.publish(2, KIND, b"lost").err().filter(|error| !matches!(error, PublishError::Unknown(_)))
        });
        let error = failed.expect("a dead server takes nothing");
        assert!(matches!(error, PublishError::Unavailable(_)) && error.is_transient(), "{error:?}");
        let error = error.to_string();
        let remedy = format!("{} refused the connection; start nats-server, or check host and port", server.url());
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
    let mut server = NatsServer::start(&[]);
    let bus = bus(&server.url());
    let mut publisher = publisher(&bus);
    publisher.publish(1, KIND, b"before").unwrap();
    server.kill();
    server.restart();
    let mut subscriber = subscriber(&bus, Wait::Block);
    publisher.publish_batch(2, KIND, &[b"one", b"two"]).unwrap();
    assert_eq!(publisher.reconnects(), Some(1));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"one"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"two"));
}

#[test]
fn a_subscriber_reports_a_cut_connection() {
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let mut subscriber = subscriber(&bus(&relay_url(&relay)), Wait::Block);
    let mut publisher = publisher(&bus(&server.url()));
    for round in 0..3 {
        relay.cut_off();
        publisher.publish(round, KIND, b"missed").unwrap();
        relay.heal();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
        publisher.publish(round, KIND, b"after").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(round, b"after"));
        assert_eq!((publisher.reconnects(), subscriber.reconnects()), (Some(0), Some(round + 1)));
    }
}

#[test]
fn a_group_puller_resumes_after_a_cut() {
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let mut puller = puller(&bus(&relay_url(&relay)), DeliveryGuarantee::AtMostOnce);
    // Not through the relay: a push on a connection that is cut may end as unknown.
    let mut pusher = pusher(&bus(&server.url()), DeliveryGuarantee::AtMostOnce);
    pusher.push(1, KIND, b"before").unwrap();
    assert_eq!(pull(&mut *puller), (1, false));
    relay.cut_off();
    relay.heal();
    let mut losses = 0;
    // A core NATS group keeps nothing: push until the puller has reconnected.
    for stamp in 2..60_000 {
        pusher.push(stamp, KIND, b"after").unwrap();
        let mut received = 0;
        puller.wait(1_000_000);
        match puller.pull(1, &mut |pulled| received = pulled.message.stamp) {
            Err(ReceiveError::MessagesLost(sentence)) => {
                assert!(sentence.contains(QUEUE), "{sentence}");
                losses += 1;
            }
            other => _ = other.unwrap(),
        }
        if received > 1 {
            assert_eq!(losses, 1, "a loss is told once, before what comes after it");
            return;
        }
    }
    panic!("the puller did not come back");
}

#[test]
fn foreign_messages_arrive_as_foreign_events_and_queues_skip_them() {
    let server = NatsServer::start(&[]);
    let bus = bus(&server.url());
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut puller = puller(&bus, DeliveryGuarantee::AtMostOnce);
    let foreign = ["", "hello", "{\"price\": 64000.25}", "0123456789abcdef0123456789abcdef"];
    publish_foreign(server.port(), TOPIC, &foreign);
    publish_foreign(server.port(), &format!("queue/{QUEUE}"), &foreign);
    publisher(&bus).publish(6, KIND, b"ours").unwrap();
    for text in foreign {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(None, text));
    }
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(6, b"ours"));
    pusher(&bus, DeliveryGuarantee::AtMostOnce).push(7, KIND, b"ours").unwrap();
    assert_eq!(pull(&mut *puller), (7, false));
}

#[test]
fn a_foreign_subject_is_read_under_a_topic_name_with_headers() {
    let server = NatsServer::start(&[]);
    let connect = |option: &str| NatsBus::connect(&format!("{}?{option}", server.url()));
    let mut hears =
        subscriber(&connect(&format!("name.{TOPIC}=market.BTC/USDT%40trade")).expect("it runs"), Wait::Block);
    let block = "NATS/1.0\r\nSource: a desk\r\nSource: another\r\n\r\n";
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it runs");
    write!(
        stream,
        "CONNECT {{\"verbose\":false,\"headers\":true}}\r\nHPUB market.BTC/USDT@trade {} {}\r\n{block}hello\r\n",
        block.len(),
        block.len() + 5
    )
    .expect("written");
    let details = r#"{"headers":{"Source":["a desk","another"]}}"#;
    assert_eq!(next_foreign(&mut *hears), (b"hello".to_vec(), Some(details.to_owned())));
    for (option, why) in [
        ("name.a=b.*", "no subject of NATS"),
        ("name.a=b..c", "no subject of NATS"),
        ("jetstream&name.a=b", "streams of ours"),
    ] {
        let refused = connect(option).expect_err(option).to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn names_that_subjects_cannot_hold_stay_distinct() {
    let server = NatsServer::start(&[]);
    for query in ["", "?jetstream"] {
        let bus = bus(&format!("{}{query}", server.url()));
        let names = ["a.b", "a..b", "a...b", "a.b.", "a.b..", "queue", "queue..a", "a:b", "a-b"];
        let mut subscribers = Vec::new();
        for name in names {
            let opened = bus.subscriber(name, StartPosition::Now, Wait::Block);
            subscribers.push(opened.unwrap_or_else(|e| panic!("{name}: {e}")));
        }
        for (stamp, name) in (0..).zip(names) {
            let opened = bus.publisher(name, &TopicConfig::new(Policy::Overwrite));
            opened.unwrap_or_else(|e| panic!("{name}: {e}")).publish(stamp, KIND, name.as_bytes()).unwrap();
        }
        for (stamp, (name, subscriber)) in (0..).zip(names.into_iter().zip(&mut subscribers)) {
            let OwnedEvent::Message { stamp: received, payload, .. } = next_event(&mut **subscriber) else {
                panic!("a gap in {name}")
            };
            assert_eq!((received, payload.as_slice()), (stamp, name.as_bytes()));
            assert_eq!(subscriber.poll(8, &mut |event| panic!("{event:?} came to {name}")).unwrap(), 0);
        }
        drop(subscribers);
        names.into_iter().for_each(|name| bus.remove_topic(name).unwrap());
    }
}

#[test]
fn a_login_needs_the_right_password() {
    let server = NatsServer::start(&["--user", "ann", "--pass", "s@cret"]);
    check(&server.url(), &["wants a password", "nats://USER:PASSWORD@HOST:PORT"]);
    check(&server.url_with("ann:wrong"), &["refused the user name or the password", "in the URL"]);
    check(&server.url_with("nobody:s%40cret"), &["refused the user name or the password"]);
    check_accepted(&server.url_with("ann:s%40cret"));
}

#[test]
fn a_login_needs_the_right_token() {
    let server = NatsServer::start(&["--auth", "s@cret"]);
    check(&server.url(), &["wants a password", "nats://TOKEN@HOST:PORT"]);
    check(&server.url_with("wrong"), &["refused the user name or the password", "TOKEN@"]);
    check_accepted(&server.url_with("s%40cret"));
}

#[test]
fn a_refused_connection_is_reported() {
    check(&format!("nats://127.0.0.1:{}", free_port()), &["refused the connection", "start nats-server"]);
    // A label of 64 characters is invalid, so no resolver asks the network.
    check(&format!("nats://{}.invalid:4222", "x".repeat(64)), &["cannot be resolved", "check the host"]);
}

#[test]
fn another_kind_of_server_is_reported() {
    type Answer = fn(TcpStream);
    let cases: [(Answer, &[&str]); 5] = [
        (|stream| answer(&stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"), &["not as NATS does", "check the port"]),
        (|stream| answer(&stream, b"+OK POP3 ready\r\n"), &["not as NATS does", "check the port"]),
        // On a busy host a server may time out a slow login.
        (|stream| answer(&stream, b"INFO {}\r\n-ERR 'Authentication Timeout'\r\n"), &["connection", "try again"]),
        (drop, &["connection", "try again"]),
        (|stream| hold(&stream), &["did not answer within 5 s", "check host, port and firewall"]),
    ];
    for (behave, words) in cases {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        // The client connects more than once.
        std::thread::spawn(move || listener.incoming().for_each(|stream| behave(stream.unwrap())));
        check(&url, words);
    }
}

#[test]
fn a_silent_server_is_an_error_and_no_hang() {
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let mut publisher = publisher(&bus(&format!("{}?jetstream", relay_url(&relay))));
    publisher.publish(1, KIND, b"before").unwrap();
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    relay.lead_to(silent.local_addr().unwrap().port());
    relay.cut_off();
    relay.heal();
    let error = publisher.publish(2, KIND, b"lost").unwrap_err().to_string();
    assert!(error.contains("did not answer within 5 s"), "{error}");
    relay.lead_to(server.port());
    publisher.publish(3, KIND, b"after").unwrap();
}

/// Sends these bytes, then waits until the peer has closed the connection.
fn answer(mut stream: &TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
    hold(stream);
}

/// Reads until the peer has closed the connection, and sends nothing.
fn hold(mut stream: &TcpStream) {
    let mut bytes = [0; 64];
    while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
}

/// Checks that connecting fails, with an error that contains these words.
fn check(url: &str, words: &[&str]) {
    let error = refused(url, words);
    assert!(error.starts_with("nats://") && !error.contains("cret"), "{error}");
}

/// Sends a request to the server's JetStream API, and checks its success.
pub fn ask_jetstream(port: u16, what: &str, json: &str) {
    let answer = answer_of_jetstream(port, what, json, Duration::from_secs(60));
    let answer = answer.expect("the server has not answered");
    assert!(!answer.contains("\"error\""), "{what}: {answer}");
}

/// Returns the answer of the server's JetStream API; none if it does not come in time.
pub fn answer_of_jetstream(port: u16, what: &str, json: &str, patience: Duration) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(patience)).unwrap();
    stream.write_all(b"CONNECT {\"verbose\":false}\r\nSUB answer 1\r\n").ok()?;
    write!(stream, "PUB $JS.API.{what} answer {}\r\n{json}\r\n", json.len()).ok()?;
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("MSG answer"))?;
    lines.next()
}

/// Publishes as another program; returns when the server has received everything.
pub fn publish_foreign(port: u16, subject: &str, payloads: &[&str]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"CONNECT {\"verbose\":false}\r\n").unwrap();
    for payload in payloads {
        write!(stream, "PUB {subject} {}\r\n{payload}\r\n", payload.len()).unwrap();
    }
    stream.write_all(b"PING\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("PONG")), "the server has not answered");
}
