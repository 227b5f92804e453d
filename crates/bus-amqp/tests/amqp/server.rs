//! Behaviour that needs a real server: refusing, hanging, disconnecting and coming back, and serving other programs at
//! the same place.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tickpath_bus_amqp::{AmqpBus, MAX_BEHIND_BYTES, MAX_PREFETCH, MAX_UNACKNOWLEDGED};
use tickpath_bus_api::conformance::{NetworkProxy, OwnedEvent, ProxyMode, free_port, next_event, pull_stamps};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Fate, Gap, PulledMessage, Puller, QueueConfig, ReceiveError, Subscriber,
    SubscriptionEvent,
};
use tickpath_clock::{Wait, sleep_ns};

use crate::broker::{Broker, Scratch, publish_foreign, publisher, puller, pusher, subscriber};

const KIND: u8 = 16;

/// Payloads of another program.
const FOREIGN: [&str; 4] = ["", "hello", "{\"price\": 64000.25}", "0123456789abcdef0123456789abcdef"];

#[test]
fn a_subscriber_reconnects_and_reports_a_gap() {
    for wait in [Wait::Yield, Wait::Block] {
        let scratch = Scratch::new(&format!("subscriber-{wait}"));
        let (relay, bus) = relayed();
        let mut subscriber = subscriber(&bus, &scratch.name, wait);
        let mut publisher = publisher(&scratch.bus, &scratch.name);
        publisher.publish(1, KIND, b"before").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));

        relay.set(ProxyMode::Refusing);
        relay.cut();
        for _ in 0..20 {
            assert_eq!(subscriber.poll(8, &mut |event| panic!("{event:?} from nowhere")).unwrap(), 0);
            subscriber.wait(10_000_000);
        }
        publisher.publish(2, KIND, b"missed").unwrap();

        relay.set(ProxyMode::Open);
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
        publisher.publish(3, KIND, b"after").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b"after"));
        assert_eq!((publisher.reconnects(), subscriber.reconnects()), (Some(0), Some(1)), "{wait}");
    }
}

#[test]
fn a_publisher_reconnects() {
    let scratch = Scratch::new("publisher");
    let (relay, bus) = relayed();
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let mut publisher = publisher(&bus, &scratch.name);
    publisher.publish(1, KIND, b"before").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));

    relay.cut();
    // The publisher reports the lost connection, whether it finds or causes it.
    if let Err(error) = publisher.publish_batch(2, KIND, &[b"one", b"two"]) {
        assert_eq!(error.error.fate(), Fate::Unknown, "{error}");
        publisher.resend().unwrap_or_else(|e| panic!("{e}"));
        // Messages that surely were not sent are left to the caller.
        if error.fate(1) == Fate::NotPublished {
            publisher.publish(2, KIND, b"two").unwrap();
        }
    }
    assert_eq!(publisher.reconnects(), Some(1));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"one"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"two"));

    relay.set(ProxyMode::Refusing);
    relay.cut();
    let error = publisher.publish(3, KIND, b"lost").unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.starts_with(&format!("amqp://{} ", relay.address())), "{sentence}");
    assert!(sentence.contains("try again") && error.is_transient(), "{sentence}");
    relay.set(ProxyMode::Open);
    publisher.publish(4, KIND, b"after").unwrap();
    assert_eq!(publisher.reconnects(), Some(2));
    // A message in doubt is given up, and is missing; one that was surely not published is not.
    assert_eq!(receive_until(&mut *subscriber, 4), (0, usize::from(error.fate() == Fate::Unknown)));
}

#[test]
fn a_publish_to_a_hanging_broker_times_out() {
    let scratch = Scratch::new("hangs");
    let (relay, bus) = relayed();
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let mut publisher = publisher(&bus, &scratch.name);
    publisher.publish(1, KIND, b"before").unwrap();
    relay.set(ProxyMode::Stalled);
    let error = publisher.publish(2, KIND, b"stuck").unwrap_err();
    assert_eq!(error.fate(), Fate::Unknown, "{error}");
    assert!(error.to_string().contains("did not answer within 5 s"), "{error}");
    relay.set(ProxyMode::Open);
    // The message is on its way, and confirmed when it has arrived.
    publisher.resend().unwrap_or_else(|e| panic!("{e}"));
    publisher.publish(3, KIND, b"after").unwrap();
    for (stamp, payload) in [(1, &b"before"[..]), (2, &b"stuck"[..]), (3, &b"after"[..])] {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, payload));
    }
}

#[test]
fn an_unconfirmed_message_is_resent_under_the_same_id() {
    let scratch = Scratch::new("unanswered");
    let (relay, bus) = relayed();
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let mut publisher = publisher(&bus, &scratch.name);
    relay.set(ProxyMode::Mute);
    std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publisher.publish(1, KIND, b"once"));
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"once"));
        relay.cut();
        let error = publishing.join().unwrap().unwrap_err();
        assert_eq!(error.fate(), Fate::Unknown, "{error}");
    });
    relay.set(ProxyMode::Open);
    publisher.resend().unwrap_or_else(|e| panic!("{e}"));
    publisher.resend().unwrap_or_else(|e| panic!("there is nothing left to send: {e}"));
    publisher.publish(2, KIND, b"next").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"next"), "the second copy is not handed over");
}

#[test]
fn a_queue_may_hold_a_resent_message_twice_under_one_id() {
    let scratch = Scratch::new("unanswered-queue");
    let (relay, bus) = relayed();
    let mut pusher = pusher(&bus, &scratch.name);
    relay.set(ProxyMode::Mute);
    std::thread::scope(|scope| {
        let pushing = scope.spawn(|| pusher.push(1, KIND, b"twice"));
        scratch.until_waiting(1);
        relay.cut();
        let error = pushing.join().unwrap().unwrap_err();
        assert_eq!(error.fate(), Fate::Unknown, "{error}");
    });
    relay.set(ProxyMode::Open);
    pusher.resend().unwrap_or_else(|e| panic!("{e}"));
    scratch.until_waiting(2);
    assert!(!scratch.bus.queue_capabilities().exact_resend);
    let mut puller = puller(&scratch.bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
    let mut origins = Vec::new();
    while origins.len() < 2 {
        puller.pull(2, &mut |pulled| origins.push(pulled.message.id.expect("a broker's message has one"))).unwrap();
        puller.wait(1_000_000);
    }
    assert_eq!(origins[0], origins[1]);
    puller.acknowledge().unwrap();
}

#[test]
fn a_batch_that_fails_in_the_middle_states_the_fate_of_each_message() {
    const WINDOW: usize = 1024;
    let scratch = Scratch::new("batch");
    let (relay, bus) = relayed();
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let mut publisher = publisher(&bus, &scratch.name);
    let payloads: Vec<Vec<u8>> = (0..WINDOW + 500).map(|number| number.to_string().into_bytes()).collect();
    let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    relay.set(ProxyMode::Mute);
    std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publisher.publish_batch(1, KIND, &payloads));
        for payload in &payloads[..WINDOW] {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, payload));
        }
        relay.cut();
        let error = publishing.join().unwrap().unwrap_err();
        assert_eq!((error.done, error.unknown().count(), error.fate(WINDOW)), (0, WINDOW, Fate::NotPublished));
        assert_eq!(error.error.fate(), Fate::Unknown, "{error}");
    });
    relay.set(ProxyMode::Open);
    publisher.resend().unwrap_or_else(|e| panic!("{e}"));
    publisher.publish_batch(2, KIND, &payloads[WINDOW..]).unwrap();
    for payload in &payloads[WINDOW..] {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, payload), "each once, and none is missing");
    }
}

#[test]
fn a_subscriber_far_behind_gets_the_number_of_missed_messages() {
    const LARGE: usize = 1 << 20;
    let behind = MAX_BEHIND_BYTES / LARGE + 6;
    let ahead = usize::from(MAX_PREFETCH);
    let scratch = Scratch::new("behind");
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let mut publisher = publisher(&scratch.bus, &scratch.name);
    publisher.publish_batch(1, KIND, &vec![&b"ahead"[..]; ahead]).unwrap();
    let large = vec![7; LARGE];
    for _ in 0..behind {
        publisher.publish(2, KIND, &large).unwrap();
    }
    publisher.publish(3, KIND, b"last").unwrap();
    let (came, missed) = receive_until(&mut *subscriber, 3);
    assert_eq!(came + missed, ahead + behind, "{came} came, {missed} were missed");
    assert!(missed >= 6, "the broker keeps no more than it was asked to: {missed}");
}

/// Receives until the message with this stamp; returns the numbers of messages before it, and of those reported as
/// missed.
fn receive_until(subscriber: &mut dyn Subscriber, stamp: u64) -> (usize, usize) {
    let (mut came, mut missed, mut is_there) = (0, 0, false);
    for _ in 0..60_000 {
        let polled = subscriber.poll(1, &mut |event| match event {
            SubscriptionEvent::Message(message) if message.stamp == stamp => is_there = true,
            SubscriptionEvent::Message(_) => came += 1,
            SubscriptionEvent::Gap(Gap::Missed(count)) => missed += count as usize,
            other => panic!("{other:?}"),
        });
        if is_there {
            return (came, missed);
        }
        if polled.unwrap() == 0 {
            subscriber.wait(1_000_000);
        }
    }
    panic!("the message {stamp} does not come");
}

#[test]
fn unacknowledged_messages_of_a_disconnected_puller_are_redelivered() {
    let scratch = Scratch::new("puller");
    let (relay, bus) = relayed();
    let mut puller = puller(&bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
    let mut pusher = pusher(&scratch.bus, &scratch.name);
    for number in 0..10 {
        pusher.push(number, KIND, b"message").unwrap();
    }
    assert_eq!(pull_stamps(&mut *puller, 2), [(0, false), (1, false)]);
    puller.acknowledge().unwrap();
    assert_eq!(pull_stamps(&mut *puller, 2), [(2, false), (3, false)]);
    relay.cut();
    // Whether this call finds or causes the lost connection, the broker may lack the acknowledgement.
    check_not_acknowledged(&mut *puller, 2);
    puller.acknowledge().unwrap_or_else(|e| panic!("it is reported once: {e}"));
    let again = pull_stamps(&mut *puller, 8);
    assert_eq!(again.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (2..10).collect::<Vec<_>>());
    assert!(again[0].1 && again[1].1, "{again:?}");
    assert_eq!(puller.reconnects(), Some(1));

    relay.cut();
    // The connection is replaced before any acknowledgement.
    let other = pull_stamps(&mut *puller, 1);
    assert_eq!((other[0], puller.reconnects()), ((2, true), Some(2)));
    check_not_acknowledged(&mut *puller, 8);
    // Messages from the new connection are acknowledged all the same.
    let rest = pull_stamps(&mut *puller, 7);
    assert_eq!(rest.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (3..10).collect::<Vec<_>>());
    puller.acknowledge().unwrap();
    drop(puller);
    scratch.until_waiting(0);
}

#[test]
fn a_disconnected_puller_does_not_hand_over_prefetched_messages() {
    const COUNT: usize = 4;
    let scratch = Scratch::new("elsewhere");
    let (relay, bus) = relayed();
    let mut cut_off = puller(&bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
    let mut pusher = pusher(&scratch.bus, &scratch.name);
    pusher.push_batch(1, KIND, &[&b"message"[..]; COUNT]).unwrap();
    // All messages are sent ahead.
    scratch.until_waiting(0);
    assert_eq!(pull_stamps(&mut *cut_off, 1), [(1, false)]);

    relay.cut();
    let mut other = puller(&scratch.bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
    assert_eq!(pull_stamps(&mut *other, COUNT).len(), COUNT, "the broker gives them to another puller");
    other.acknowledge().unwrap();
    drop(other);
    pusher.push(2, KIND, b"after").unwrap();
    assert_eq!(pull_stamps(&mut *cut_off, 1), [(2, false)], "the others are done with");
    assert_eq!(cut_off.reconnects(), Some(1));
    check_not_acknowledged(&mut *cut_off, 1);
    drop(cut_off);
    scratch.until_waiting(0);
}

/// Checks that acknowledging reports this number of messages as coming again.
fn check_not_acknowledged(puller: &mut dyn Puller, count: usize) {
    match puller.acknowledge() {
        Err(ReceiveError::NotAcknowledged(sentence)) => {
            assert!(sentence.contains(&format!("{count} messages of queue")), "{sentence}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unanswered_acknowledgement_leaves_messages_in_doubt() {
    const COUNT: u64 = 5;
    let scratch = Scratch::new("unanswered-acknowledgement");
    let (relay, bus) = relayed();
    let mut puller = puller(&bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
    let mut pusher = pusher(&scratch.bus, &scratch.name);
    for number in 0..COUNT {
        pusher.push(number, KIND, b"message").unwrap();
    }
    // The broker first sends four messages ahead.
    assert_eq!(pull_stamps(&mut *puller, 2), [(0, false), (1, false)]);
    scratch.until_waiting(1);
    relay.set(ProxyMode::Mute);
    std::thread::scope(|scope| {
        let acknowledging = scope.spawn(|| puller.acknowledge());
        // The broker has received the acknowledgement.
        scratch.until_waiting(0);
        relay.cut();
        match acknowledging.join().unwrap() {
            Err(ReceiveError::NotAcknowledged(sentence)) => {
                assert!(sentence.starts_with("2 messages") && sentence.contains("in doubt"), "{sentence}");
                assert!(sentence.contains("acknowledged, or are redelivered"), "{sentence}");
            }
            other => panic!("{other:?}"),
        }
    });
    relay.set(ProxyMode::Open);
    puller.acknowledge().unwrap_or_else(|e| panic!("it is reported once: {e}"));
    let rest = pull_stamps(&mut *puller, 3);
    assert_eq!(rest.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 3, 4]);
    puller.acknowledge().unwrap();
    drop(puller);
    scratch.until_waiting(0);
}

#[test]
fn a_subscriber_of_a_removed_topic_reconnects_and_reports_a_gap() {
    for wait in [Wait::Yield, Wait::Block] {
        let scratch = Scratch::new(&format!("removed-{wait}"));
        let mut subscriber = subscriber(&scratch.bus, &scratch.name, wait);
        let mut publisher = publisher(&scratch.bus, &scratch.name);
        publisher.publish(1, KIND, b"before").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));

        // Without a publish, the subscriber recreates the exchange.
        scratch.bus.remove_topic(&scratch.name).unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
        publisher.publish(2, KIND, b"between").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"between"));

        // With publishes, the publisher usually recreates it.
        scratch.bus.remove_topic(&scratch.name).unwrap();
        let (mut is_gap_reported, mut receives) = (false, false);
        for stamp in 3..6000 {
            publisher.publish(stamp, KIND, b"after").unwrap();
            let polled = subscriber.poll(64, &mut |event| match event {
                SubscriptionEvent::Gap(_) => is_gap_reported = true,
                SubscriptionEvent::Message(_) => receives = true,
                SubscriptionEvent::Foreign(_) => panic!("{event:?}"),
            });
            polled.unwrap();
            assert!(is_gap_reported || !receives, "a gap is reported before the messages behind it");
            if receives {
                break;
            }
            subscriber.wait(1_000_000);
            sleep_ns(10_000_000);
        }
        assert!(receives, "the subscriber receives nothing");
    }
}

#[test]
fn prefetched_messages_of_a_dropped_puller_wait_again() {
    let scratch = Scratch::new("ahead");
    for delivery in DeliveryGuarantee::ALL {
        let mut puller = puller(&scratch.bus, &scratch.name, delivery);
        pusher(&scratch.bus, &scratch.name).push_batch(1, KIND, &[&b"message"[..]; 20]).unwrap();
        assert_eq!(pull_stamps(&mut *puller, 5).len(), 5);
        puller.acknowledge().unwrap();
        drop(puller);
        scratch.until_waiting(15);
        scratch.bus.remove_queue(&scratch.name).unwrap();
    }
}

#[test]
fn a_puller_with_too_many_unacknowledged_messages_gets_an_error() {
    let most = usize::from(MAX_UNACKNOWLEDGED);
    let scratch = Scratch::new("holds");
    let mut puller = puller(&scratch.bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
    let payloads = vec![&b"message"[..]; most + 100];
    pusher(&scratch.bus, &scratch.name).push_batch(1, KIND, &payloads).unwrap();
    assert_eq!(pull_stamps(&mut *puller, most).len(), most);
    let error = puller.pull(1, &mut |pulled| panic!("{pulled:?}")).unwrap_err().to_string();
    assert!(error.contains("acknowledge them"), "{error}");
    puller.acknowledge().unwrap();
    assert_eq!(pull_stamps(&mut *puller, 100).len(), 100);
}

#[test]
fn a_removed_queue_or_topic_is_reported_or_made_anew() {
    let scratch = Scratch::new("removed");
    let mut pusher = pusher(&scratch.bus, &scratch.name);
    pusher.push(1, KIND, b"before").unwrap();
    scratch.bus.remove_queue(&scratch.name).unwrap();
    let error = pusher.push(2, KIND, b"nowhere").unwrap_err().to_string();
    assert!(error.contains("no such queue") && error.contains("push again"), "{error}");
    pusher.push(3, KIND, b"after").unwrap();
    scratch.until_waiting(1);

    let mut publisher = publisher(&scratch.bus, &scratch.name);
    scratch.bus.remove_topic(&scratch.name).unwrap();
    publisher.publish(4, KIND, b"no subscriber").unwrap();
}

#[test]
fn foreign_messages_on_a_topic_arrive_as_foreign_events() {
    let scratch = Scratch::new("foreign-topic");
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    publish_foreign(&scratch.name, "any key", &FOREIGN);
    for text in FOREIGN {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(None, text));
    }
    publisher(&scratch.bus, &scratch.name).publish(6, KIND, b"ours").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(6, b"ours"));
}

#[test]
fn foreign_messages_in_a_queue_are_skipped_and_removed() {
    let scratch = Scratch::new("foreign-queue");
    for delivery in DeliveryGuarantee::ALL {
        let mut pusher = pusher(&scratch.bus, &scratch.name);
        publish_foreign("", &scratch.name, &FOREIGN);
        pusher.push(6, KIND, b"ours").unwrap();
        publish_foreign("", &scratch.name, &FOREIGN);
        pusher.push(7, KIND, b"ours").unwrap();
        let mut puller = puller(&scratch.bus, &scratch.name, delivery);
        assert_eq!(pull_stamps(&mut *puller, 2), [(6, false), (7, false)], "{delivery}");
        puller.acknowledge().unwrap();
        drop(puller);
        scratch.until_waiting(0);
    }
}

#[test]
fn foreign_messages_in_a_queue_go_to_a_puller_that_accepts_them() {
    let scratch = Scratch::new("adopted");
    let config = QueueConfig { foreign: Some(200), ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };
    let mut puller = scratch.bus.puller(&scratch.name, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    publish_foreign("", &scratch.name, &FOREIGN);
    let mut came = Vec::new();
    while came.len() < FOREIGN.len() {
        let mut take = |pulled: PulledMessage<'_>| {
            assert_eq!((pulled.message.kind, pulled.message.stamp), (200, 0));
            came.push(String::from_utf8(pulled.message.payload.to_vec()).unwrap());
        };
        puller.pull(FOREIGN.len(), &mut take).unwrap();
        puller.wait(1_000_000);
    }
    assert_eq!(came, FOREIGN);
    puller.acknowledge().unwrap();
}

#[test]
fn names_reserved_by_the_broker_are_escaped() {
    let mut scratch = Scratch::new("amq");
    scratch.name = format!("amq.{}", scratch.name);
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    publisher(&scratch.bus, &scratch.name).publish(8, KIND, b"reserved").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(8, b"reserved"));
    pusher(&scratch.bus, &scratch.name).push(9, KIND, b"reserved").unwrap();
    assert_eq!(pull_stamps(&mut *puller(&scratch.bus, &scratch.name, DeliveryGuarantee::AtMostOnce), 1), [(9, false)]);
}

#[test]
fn a_wrong_login_is_refused() {
    let broker = Broker::get();
    let words = ["refused the user name or the password", "check USER:PASSWORD@ in the URL"];
    check(&broker.url_with_login("guest:wr0ng-s%40cret"), &words);
    check(&broker.url_with_login("nobody:wr0ng-s%40cret"), &words);
}

#[test]
fn an_unknown_virtual_host_is_refused() {
    let broker = Broker::get();
    AmqpBus::connect(&broker.url_with_path("/%2F")).unwrap_or_else(|e| panic!("{e}"));
    check(&broker.url_with_path("/no-such-host-of-tickpath"), &["virtual host", "check /VHOST"]);
}

#[test]
fn a_connect_without_a_listening_server_is_refused() {
    check(&format!("amqp://127.0.0.1:{}", free_port()), &["refused the connection", "start rabbitmq-server"]);
    // A label of 64 characters is invalid, so no resolver asks the network.
    check(&format!("amqp://{}.invalid", "x".repeat(64)), &["cannot be resolved", "check the host"]);
}

#[test]
fn a_connect_to_another_programs_port_is_refused() {
    type Answer = fn(TcpStream);
    let cases: [(Answer, &[&str]); 5] = [
        (
            |mut stream| answer(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            &["not as RabbitMQ does", "check the port"],
        ),
        (|mut stream| answer(&mut stream, b"+OK POP3 ready\r\n"), &["not as RabbitMQ does", "check the port"]),
        (|mut stream| answer(&mut stream, b"AMQP\x00\x01\x00\x00"), &["not as RabbitMQ does", "check the port"]),
        (drop, &["connection", "try again"]),
        (|stream| read_until_closed(&stream), &["did not answer within 5 s", "check host, port and firewall"]),
    ];
    for (behave, words) in cases {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("amqp://ann:s%40cret@{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || behave(listener.accept().unwrap().0));
        check(&url, words);
        // The server thread ends when the client's socket is closed, also after a timeout.
        server.join().unwrap();
    }
}

/// Sends one answer, then waits until the peer has closed the connection.
fn answer(stream: &mut TcpStream, bytes: &[u8]) {
    let mut question = [0; 64];
    let _ = stream.read(&mut question);
    let _ = stream.write_all(bytes);
    read_until_closed(stream);
}

/// Reads until the peer has closed the connection, and sends nothing.
fn read_until_closed(mut stream: &TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = [0; 64];
    loop {
        match stream.read(&mut bytes) {
            Ok(1..) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => panic!("a client that gave up keeps its socket"),
            Ok(0) | Err(_) => return,
        }
    }
}

/// Checks that connecting fails, with an error that contains these words.
fn check(url: &str, words: &[&str]) {
    let error = AmqpBus::connect(url).err().unwrap_or_else(|| panic!("{url} is connected to")).to_string();
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
    assert!(error.starts_with("amqp://") && !error.contains("cret"), "{error}");
}

/// Returns a bus behind a relay.
pub fn relayed() -> (NetworkProxy, AmqpBus) {
    let broker = Broker::get();
    let relay = NetworkProxy::to(&broker.address);
    let bus = AmqpBus::connect(&broker.url_at(&relay.address())).unwrap_or_else(|e| panic!("{e}"));
    (relay, bus)
}
