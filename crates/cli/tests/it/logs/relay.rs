//! `log record`, `replay` and `bridge`: messages arrive unchanged, losses are reported, and bad calls lose nothing.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tempfile::tempdir;
use tickpath_bus::conformance::check_no_event;
use tickpath_bus::{self as bus, Gap, MessageId, Publisher, Subscriber, SubscriptionEvent, TopicConfig, connect, wire};
use tickpath_clock::{Calibration, Clock, HostClock, Wait};
use tickpath_log::{Config, LogPath, Next, OverflowPolicy, Reader, ReaderStart, Registration, Writer};

use super::objects;
use super::running::{Running, until};
use crate::program::{Ran, tickpath};
use crate::server::RedisServer;

/// A message as it is compared: stamp, kind, payload.
type Carried = (u64, u8, Vec<u8>);

const MS: u64 = 1_000_000;

#[test]
fn recorded_messages_are_replayed_unchanged() {
    let folder = tempdir().expect("a temporary folder can be made");
    let at = |name: &str| text(&folder.path().join(name)).to_owned();
    // All kinds, and sizes around the limits of lines, frames and segments.
    let sizes = [0, 1, 7, 8, 9, 63, 64, 65, 4_000, 60_000];
    let messages: Vec<Carried> = (16..=255)
        .map(|kind: u8| (u64::from(kind) * MS, kind, vec![kind; sizes[usize::from(kind) % sizes.len()]]))
        .collect();
    keep(&folder.path().join("topic"), &messages);

    let url = format!("file://{}", text(folder.path()));
    let count = messages.len();
    let ran = tickpath(&format!("log record {url} topic {} --start oldest --count {count}", at("recording")));
    check(&ran, 0, &format!("recorded: {count} messages"), "recording 'topic'");
    assert!(ran.out.contains(" 0 gaps, from ") && !ran.err.contains("does not exist yet"), "{}{}", ran.out, ran.err);
    assert_eq!(held(&folder.path().join("recording")), messages);

    let to = |topic: &str| format!("{url} {topic} --policy keep --keep-stamps --speed max");
    let ran = tickpath(&format!("log replay file://{} {}", at("recording"), to("again")));
    check(&ran, 0, &format!("replayed: {count} messages"), "replaying");
    assert_eq!(held(&folder.path().join("again")), messages);

    let ran = tickpath(&format!("log replay {} {} --start 230 --count 7", at("recording"), to("again")));
    check(&ran, 0, "replayed: 7 messages", "replaying");
    assert_eq!(held(&folder.path().join("again"))[count..], messages[230..237], "a topic that is there goes on");

    let ran = tickpath(&format!("log replay {} {} --loop --count 500", at("recording"), to("loop")));
    check(&ran, 0, "replayed: 500 messages", "replaying");
    let looped = held(&folder.path().join("loop"));
    assert_eq!(looped.len(), 500);
    assert!(looped.iter().zip(messages.iter().cycle()).all(|(one, other)| one == other), "round after round");
}

#[test]
fn a_replay_keeps_the_intervals_of_another_clock() {
    let offsets = [0, 3 * MS, 3 * MS, 10 * MS, 4 * MS, 30 * MS];
    let messages: Vec<Carried> = offsets.iter().map(|ns| (5_000 * MS + ns, 40, ns.to_le_bytes().to_vec())).collect();
    // A stamp that goes back gets the previous time.
    let own = [0, 3 * MS, 3 * MS, 10 * MS, 10 * MS, 30 * MS];
    let clock = HostClock::get().expect("the host has a clock");
    let tick_ns = 1_000_000_000 / clock.calibration().ticks_per_second + 1;
    for (pace, wanted) in [
        ("", own),
        (" --speed 2", own.map(|ns| ns / 2)),
        (" --speed 0.5", own.map(|ns| ns * 2)),
        (" --rate 500", [0, 2 * MS, 4 * MS, 6 * MS, 8 * MS, 10 * MS]),
    ] {
        let folder = tempdir().expect("a temporary folder can be made");
        keep(&folder.path().join("recording"), &messages);
        let (from, url) =
            (text(&folder.path().join("recording")).to_owned(), format!("file://{}", text(folder.path())));
        let ran = tickpath(&format!("log replay {from} {url} again --policy keep{pace}"));
        check(&ran, 0, "replayed: 6 messages", "replaying");
        let again = held(&folder.path().join("again"));
        assert_eq!(again.len(), messages.len(), "log replay{pace}");
        for ((stamp, _, payload), (wanted, message)) in again.iter().zip(wanted.iter().zip(&messages)) {
            assert_eq!(payload, &message.2, "log replay{pace}");
            let ns = clock.ns_between(again[0].0, *stamp) as u64;
            assert!(ns.abs_diff(*wanted) <= 2 * tick_ns, "log replay{pace}: {ns} ns instead of {wanted}");
        }
    }
}

#[test]
fn losses_are_reported_and_stay_in_the_recording() {
    let topic = Shared::new("lost");
    let config =
        Config { segment_bytes: 4_096, segments: 2, ..Config::topic(topic.place("ticks"), OverflowPolicy::Overwrite) };
    let clock = HostClock::get().expect("the host has a clock");
    let mut writer = Writer::open(&config, clock.calibration()).expect("the topic is new");
    for n in 0..500u64 {
        writer.publish(clock.ticks(), 40, &n.to_le_bytes()).expect("it overwrites");
    }
    let folder = tempdir().expect("a temporary folder can be made");
    let recording = folder.path().join("recording");
    let path = text(&recording).to_owned();

    let ran = tickpath(&format!("log record {} ticks {path} --start 0 --count 3", topic.url));
    check(&ran, 0, "recorded: 3 messages, 24 bytes, 1 gap (", "messages were missed");
    let records = held(&recording);
    let first = u64::from_le_bytes(records[1].2[..].try_into().expect("a number"));
    assert!(first > 0 && ran.out.contains(&format!("({first} messages missed)")), "{first}: {}", ran.out);

    let lines = tickpath(&format!("log cat {path}")).out;
    assert!(
        lines.lines().next().is_some_and(|line| line.contains(&format!("-- {first} messages were missed"))),
        "{lines}"
    );
    let objects = objects(&tickpath(&format!("log cat {path} --json")).out);
    assert_eq!((&objects[0]["name"], &objects[0]["fields"]), (&json!("gap"), &json!({ "missed": first })));

    let url = format!("file://{}", text(folder.path()));
    let ran = tickpath(&format!("log replay {path} {url} again --policy keep --speed max"));
    check(&ran, 0, "replayed: 3 messages, 24 bytes, 1 gap (", &format!("{first} messages were missed"));
    assert_eq!(held(&folder.path().join("again")).len(), 3, "a loss is no message");
}

#[test]
fn ctrl_c_ends_a_recording_with_its_totals() {
    let topic = Shared::new("stop");
    let folder = tempdir().expect("a temporary folder can be made");
    let recording = folder.path().join("recording");
    let running = Running::start(&format!("log record {} ticks file://{}", topic.url, text(&recording)));
    running.await_words("recording 'ticks'");
    running.await_words(&format!("{} does not exist yet; waiting for its first writer", topic.place("ticks")));
    let mut publisher = publisher(&topic.url, "ticks");
    (1..=3).for_each(|stamp| publisher.publish(stamp, 40, b"1234").expect("it overwrites"));
    until(|| held(&recording).len() == 3, || "three messages in the recording".to_owned());
    let ran = running.interrupt();
    check(&ran, 0, "recorded: 3 messages, 12 bytes, 0 gaps, from ", "recording 'ticks'");
    assert_eq!(tickpath(&format!("log verify {}", text(&recording))).code, Some(0));
}

#[test]
fn a_recording_is_appended_to_only_with_the_option() {
    let folder = tempdir().expect("a temporary folder can be made");
    let at = |name: &str| text(&folder.path().join(name)).to_owned();
    keep(&folder.path().join("topic"), &[(1, 40, b"one".to_vec()), (2, 41, b"two".to_vec())]);
    let url = format!("file://{}", text(folder.path()));
    let record = |rest: &str| tickpath(&format!("log record {url} topic {rest} --start oldest --count 2"));
    check(&record(&at("recording")), 0, "recorded: 2 messages", "recording");
    check(&record(&at("recording")), 2, "", "holds a log already");
    check(&record(&at("topic")), 2, "", "holds a log already");
    check(&record(&format!("{} --append", at("topic"))), 2, "", "would never end");
    assert_eq!(held(&folder.path().join("recording")).len(), 2, "a refusal changes nothing");
    check(&record(&format!("{} --append", at("recording"))), 0, "recorded: 2 messages", "recording");
    let stamps: Vec<u64> = held(&folder.path().join("recording")).iter().map(|message| message.0).collect();
    assert_eq!(stamps, [1, 2, 1, 2]);

    let journal = Config::journal(LogPath::folder(folder.path().join("journal")));
    drop(Writer::open(&journal, &Calibration::nanoseconds()).expect("the folder is ours"));
    check(&record(&format!("{} --append", at("journal"))), 2, "", "no recording");
    fs::create_dir(at("other")).expect("the folder is ours");
    fs::write(folder.path().join("other").join("letter"), b"dear").expect("the folder is ours");
    check(&record(&at("other")), 2, "", "holds other files");
    check(&record(&at("other/letter")), 1, "", "other/letter cannot be written (Not a directory");
    assert_eq!(fs::read_dir(at("other")).expect("it is still there").count(), 1);
}

#[test]
fn a_replay_waits_for_room_in_a_full_topic() {
    let topic = Shared::new("full");
    let folder = tempdir().expect("a temporary folder can be made");
    let messages: Vec<Carried> = (0..2_000).map(|n: u64| (n, 40, vec![n as u8; 100])).collect();
    keep(&folder.path().join("recording"), &messages);
    let path = text(&folder.path().join("recording")).to_owned();
    let to = format!("{} ticks --policy fail --capacity 32768 --speed max --keep-stamps", topic.url);
    let running = Running::start(&format!("log replay {path} {to}"));
    running.await_words("has no subscriber");
    let mut subscriber = subscriber(&topic.url, "ticks", bus::StartPosition::Oldest);
    assert_eq!(receive(subscriber.as_mut(), messages.len()), messages);
    let ran = running.end();
    check(&ran, 0, "replayed: 2000 messages, 200000 bytes, 0 gaps", "has no subscriber");
    assert!(!ran.out.contains(" 0 refused"), "a small topic was full at times: {}", ran.out);
}

#[test]
fn a_bridge_killed_at_its_first_messages_recognizes_them() {
    let topic = Shared::new("first");
    let folder = tempdir().expect("a temporary folder can be made");
    let messages: Vec<Carried> = (0..60).map(|n: u64| (n, 40, vec![n as u8; 1_000])).collect();
    keep(&folder.path().join("ticks"), &messages);
    let (url, places) = (format!("file://{}", text(folder.path())), folder.path().join("places"));
    let line = format!("log bridge {url} {} --topic ticks --start oldest --policy fail", topic.url);
    let line = format!("{line} --capacity 32768 --resume {}", text(&places));
    let first = Running::start(&line);
    first.await_words("has no subscriber");
    let mut subscriber = subscriber(&topic.url, "ticks", bus::StartPosition::Oldest);
    // The topic is full before the bridge has published the messages of its first read.
    let place = topic.place("ticks");
    let there = || Reader::open(&place, ReaderStart::Now, Registration::Unregistered).expect("it is there").sequence();
    until(|| there() > 10, || "messages in the topic".to_owned());
    drop(first);
    let again = Running::start(&line);
    assert_eq!(receive(subscriber.as_mut(), messages.len()), messages);
    check_no_event(subscriber.as_mut());
    assert_eq!(again.interrupt().code, Some(0));
}

#[test]
fn a_bridge_carries_both_ways_and_reports_a_lost_connection() {
    let mut server = RedisServer::start();
    let topic = Shared::new("bridge");
    let (redis, local) = (server.url(), topic.url.clone());
    let inward = Running::start(&format!("log bridge {redis} {local} --topic ticks=here --topic trades"));
    let outward = Running::start(&format!("log bridge {local} {redis} --topic orders --wait yield"));
    inward.await_words("carrying 'trades'");
    outward.await_words("carrying 'orders'");
    outward.await_words(&format!("{} does not exist yet", topic.place("orders")));
    assert!(!inward.err().contains("does not exist yet"), "a broker does not tell: {}", inward.err());

    let (mut here, mut trades) = (
        subscriber(&local, "here", bus::StartPosition::Oldest),
        subscriber(&local, "trades", bus::StartPosition::Oldest),
    );
    let mut orders = subscriber(&redis, "orders", bus::StartPosition::Now);
    let sent = |kind: u8| -> Vec<Carried> { (0..100).map(|n: u64| (n, kind, n.to_le_bytes().to_vec())).collect() };
    publish(publisher(&redis, "ticks").as_mut(), &sent(40));
    publish(publisher(&redis, "trades").as_mut(), &sent(41));
    publish(publisher(&local, "orders").as_mut(), &sent(42));
    assert_eq!(receive(here.as_mut(), 100), sent(40));
    assert_eq!(receive(trades.as_mut(), 100), sent(41));
    assert_eq!(receive(orders.as_mut(), 100), sent(42));
    check(&outward.interrupt(), 0, "orders -> orders: 100 messages, 800 bytes, 0 gaps", "carrying");

    server.restart();
    inward.await_words("'ticks': the connection was lost");
    assert_eq!(loss(here.as_mut()), Gap::Reconnected, "the loss is carried, too");
    publish(publisher(&redis, "ticks").as_mut(), &sent(43));
    assert_eq!(receive(here.as_mut(), 100), sent(43));
    let ran = inward.interrupt();
    check(&ran, 0, "ticks -> here: 200 messages, 1600 bytes, 1 gap (of an unknown number", "carrying 'ticks'");
    assert!(ran.out.contains("trades -> trades: 100 messages"), "{}", ran.out);
}

#[test]
fn messages_in_a_cycle_of_bridges_arrive_once() {
    let servers = [RedisServer::start(), RedisServer::start()];
    let urls = servers.each_ref().map(|server| format!("{}?streams", server.url()));
    let mut heard = urls.each_ref().map(|url| subscriber(url, "ticks", bus::StartPosition::Now));
    let bridges = [(0, 1), (1, 0)].map(|(from, to)| {
        let bridge = Running::start(&format!("log bridge {} {} --topic ticks", urls[from], urls[to]));
        bridge.await_words("carrying 'ticks'");
        bridge
    });
    let mut publisher = publisher(&urls[0], "ticks");
    for round in 0..3 {
        let message = vec![(round, 40, b"round".to_vec())];
        publish(publisher.as_mut(), &message);
        publisher.publish_gap(0, Gap::Missed(7)).expect("published");
        for heard in &mut heard {
            assert_eq!(receive(heard.as_mut(), 1), message);
            assert_eq!(loss(heard.as_mut()), Gap::Missed(7));
        }
    }
    heard.iter_mut().for_each(|heard| check_no_event(heard.as_mut()));
    for bridge in bridges {
        // Messages also travel back once, and end there.
        check(&bridge.interrupt(), 0, "ticks -> ticks: 3 messages, 15 bytes, 3 gaps (21 messages missed)", "carrying");
    }
}

#[test]
fn messages_of_other_programs_are_bridged_and_recorded_whole() {
    let server = RedisServer::start();
    let topic = Shared::new("foreign");
    let folder = tempdir().expect("a temporary folder can be made");
    let recording = folder.path().join("recording");
    let redis = server.url();
    let bridge = Running::start(&format!("log bridge {redis} {} --topic ticks", topic.url));
    let record = Running::start(&format!("log record {redis} ticks {} --foreign-kind 77", text(&recording)));
    bridge.await_words("carrying 'ticks'");
    record.await_words("recording 'ticks'");
    let clock = HostClock::get().expect("the host has a clock");
    let began = clock.ticks();
    server.obey("PUBLISH ticks first\r\nPUBLISH ticks 64000.25");
    publish(publisher(&redis, "ticks").as_mut(), &[(5, 40, b"ours".to_vec())]);
    let mut here = subscriber(&topic.url, "ticks", bus::StartPosition::Oldest);
    let carried = receive(here.as_mut(), 3);
    until(|| held(&recording).len() == 3, || "three messages in the recording".to_owned());
    let ended = clock.ticks();
    for (messages, kind) in [(carried, 128), (held(&recording), 77)] {
        let told: Vec<(u8, &[u8])> = messages.iter().map(|(_, kind, payload)| (*kind, payload.as_slice())).collect();
        assert_eq!(told, [(kind, &b"first"[..]), (kind, b"64000.25"), (40, b"ours")]);
        assert!(
            messages[..2].iter().all(|(stamp, ..)| (began..=ended).contains(stamp)),
            "{began} {ended} {messages:?}"
        );
        assert_eq!(messages[2].0, 5, "what has a stamp keeps it");
    }
    let told = "'ticks' has messages of other programs: their bytes are carried, as kind";
    check(&bridge.interrupt(), 0, "ticks -> ticks: 3 messages (2 of other programs), 17 bytes, 0 gaps", told);
    check(&record.interrupt(), 0, "recorded: 3 messages (2 of other programs), 17 bytes, 0 gaps", told);
}

#[test]
fn messages_with_stamps_of_another_host_get_their_time_of_arrival() {
    let server = RedisServer::start();
    let topic = Shared::new("elsewhere");
    let folder = tempdir().expect("a temporary folder can be made");
    let recording = folder.path().join("recording");
    let redis = server.url();
    // The URL is in a file, where other users cannot read it among the arguments.
    let place = folder.path().join("place");
    fs::write(&place, format!("{redis}\n")).expect("the folder is ours");
    let bridge = Running::start(&format!("log bridge @{} {} --topic ticks", text(&place), topic.url));
    let record = Running::start(&format!("log record {redis} ticks {}", text(&recording)));
    bridge.await_words("carrying 'ticks'");
    record.await_words("recording 'ticks'");
    let clock = HostClock::get().expect("the host has a clock");
    let began = clock.ticks();
    publish(publisher(&redis, "ticks").as_mut(), &[(began, 40, b"here".to_vec())]);
    // The other program's clock has counted for 89 days, and is not this host's.
    let origin = MessageId { clock: 1, publisher: 2, sequence: 3 };
    server.publish("ticks", &wire::encode(u64::MAX / 4, 41, origin, b"there"));
    let carried = receive(subscriber(&topic.url, "ticks", bus::StartPosition::Oldest).as_mut(), 2);
    until(|| held(&recording).len() == 2, || "two messages in the recording".to_owned());
    let ended = clock.ticks();
    for messages in [carried, held(&recording)] {
        assert_eq!((messages[0].0, messages[1].1), (began, 41), "{messages:?}");
        assert!((began..=ended).contains(&messages[1].0), "{began} {ended} {messages:?}");
    }
    let told = "'ticks' has messages of another host, or from before this host's last start";
    check(&bridge.interrupt(), 0, "ticks -> ticks: 2 messages (1 of other hosts), 9 bytes, 0 gaps", told);
    check(&record.interrupt(), 0, "recorded: 2 messages (1 of other hosts), 9 bytes, 0 gaps", told);
}

#[test]
fn a_permanent_refusal_of_a_broker_ends_a_bridge() {
    let server = RedisServer::start();
    let topic = Shared::new("final");
    server.obey("SET ticks mine");
    let bridge = Running::start(&format!("log bridge {} {}?streams --topic ticks", topic.url, server.url()));
    bridge.await_words("carrying 'ticks'");
    publish(publisher(&topic.url, "ticks").as_mut(), &[(1, 40, b"one".to_vec())]);
    let ran = bridge.end();
    check(&ran, 1, "", "'ticks' accepts no messages");
    assert!(ran.err.contains("WRONGTYPE"), "{}", ran.err);
}

#[test]
fn a_bridge_reports_the_messages_that_its_target_already_has() {
    let (here, there) = (Shared::new("new"), Shared::new("leftover"));
    let bridge = |words: &str| {
        let bridge = Running::start(&format!("log bridge {} {} --topic ticks", here.url, there.url));
        bridge.await_words("carrying 'ticks'");
        assert_eq!(bridge.err().contains("exists already"), !words.is_empty(), "{}", bridge.err());
        assert!(bridge.err().contains(words), "{}", bridge.err());
        bridge
    };
    let mut source = publisher(&here.url, "ticks");
    let first = bridge("");
    publish(source.as_mut(), &[(1, 40, b"one".to_vec()), (2, 40, b"two".to_vec())]);
    assert_eq!(receive(subscriber(&there.url, "ticks", bus::StartPosition::Oldest).as_mut(), 2).len(), 2);
    first.interrupt();
    let again = format!("after its 2 messages; to start anew, first run: tickpath log rm {}", there.place("ticks"));
    bridge(&again).interrupt();
}

#[test]
fn a_bridge_waits_for_a_broker_that_accepts_nothing() {
    let mut server = RedisServer::start();
    let topic = Shared::new("outage");
    let redis = format!("{}?streams", server.url());
    let bridge = Running::start(&format!("log bridge {} {redis} --topic ticks", topic.url));
    bridge.await_words("carrying 'ticks'");
    server.stop();
    let mut source = publisher(&topic.url, "ticks");
    let sent: Vec<Carried> = (0..10).map(|n: u64| (n, 40, n.to_le_bytes().to_vec())).collect();
    publish(source.as_mut(), &sent);
    bridge.await_words("accepts no messages at present, trying again");
    server.restart();
    bridge.await_words("accepts messages again");
    let mut stream = subscriber(&redis, "ticks", bus::StartPosition::Oldest);
    assert_eq!(receive(stream.as_mut(), 10), sent);
    check(&bridge.interrupt(), 0, "ticks -> ticks: 10 messages, 80 bytes, 0 gaps", "trying again");
}

#[test]
fn impossible_arguments_are_refused() {
    let folder = tempdir().expect("a temporary folder can be made");
    let dir = text(folder.path()).to_owned();
    let topic = Shared::new("refused");
    let _held = publisher(&topic.url, "ticks");
    keep(&folder.path().join("recording"), &[(1, 40, b"one".to_vec())]);
    drop(Writer::open(&small_keep(&folder.path().join("empty")), &Calibration::nanoseconds()).expect("it is new"));
    let (shm, own) = (&topic.url, topic.place("ticks"));
    let server = RedisServer::start();
    let redis = server.url();
    let named = redis.replace("127.0.0.1", "localhost");
    for (line, code, word) in [
        (format!("log record {shm} ticks shm://recording"), 2, "shared memory"),
        (format!("log record tcp://x ticks {dir}/new"), 2, "names no transport"),
        (format!("log record {shm} a/b {dir}/new"), 2, "no topic name"),
        (format!("log record redis://127.0.0.1:1 ticks {dir}/new"), 1, "127.0.0.1:1"),
        (format!("log record env:TICKPATH_TEST_NOT_SET ticks {dir}/new"), 2, "'TICKPATH_TEST_NOT_SET' cannot be used"),
        (format!("log record @/no/such/file ticks {dir}/new"), 2, "/no/such/file cannot be read"),
        (format!("log record redis://h?password=x ticks {dir}/new"), 2, "and not the password"),
        (format!("log record rediss://h:1?ca=/no/such/file ticks {dir}/new"), 2, "/no/such/file"),
        (format!("log record {shm} ticks /proc/tickpath-new"), 1, "file:///proc/tickpath-new cannot be made ("),
        (format!("log bridge {shm} file:///proc/tickpath-new --topic ticks"), 1, "tickpath-new/ticks cannot be made"),
        (format!("log record {shm} ticks {dir}/new --start soon"), 2, "now, oldest or a sequence number"),
        (format!("log record {shm} ticks {dir}/new --count 0"), 2, "not in 1.."),
        // An obstacle to a log, or to making it, is reported for that log.
        (format!("log record {shm} ticks {dir}/empty/data/new"), 1, "data/new cannot be written (Not a directory"),
        (format!("log record {shm} ticks /proc/nowhere/new"), 1, "file:///proc/nowhere/new cannot be made ("),
        (format!("log replay {dir}/recording file:///proc/nowhere new"), 1, "/proc/nowhere/new cannot be made ("),
        (format!("log bridge {shm} file:///proc/nowhere --topic new"), 1, "/proc/nowhere/new cannot be made ("),
        (format!("log bridge {shm} file://{dir}/empty/data --topic new"), 1, "data/new cannot be made (Not a dir"),
        (format!("log replay {dir}/missing {shm} other"), 1, "does not exist"),
        (format!("log replay tcp://x {shm} other"), 2, "neither shm://NAME nor file:///PATH"),
        (format!("log replay {own} {shm} other"), 2, "no recording but a topic"),
        (format!("log replay {dir}/empty {shm} other"), 1, "holds no message"),
        (format!("log replay {dir}/recording {shm} other --start 2"), 1, "has not been written yet"),
        (format!("log replay {dir}/recording {shm} ticks"), 1, "already has a writer"),
        (format!("log replay {dir}/recording file://{dir} recording --policy keep"), 2, "would never end"),
        (format!("log replay {dir}/recording {shm} other --speed 2 --rate 3"), 2, "cannot be used with"),
        (format!("log replay {dir}/recording {shm} other --policy drop"), 2, "overwrite, fail or keep"),
        (format!("log bridge {shm} {shm}"), 2, "--topic"),
        (format!("log bridge {shm} {shm} --topic ="), 2, "NAME=NAME2"),
        (format!("log bridge {shm} {shm} --topic ticks"), 2, "would never end"),
        (format!("log bridge {shm} {shm} --topic a=b --topic b=a"), 2, "would never end"),
        (format!("log bridge {shm} tcp://x --topic ticks"), 2, "names no transport"),
        (format!("log bridge {shm} {redis} --topic a=z --topic b=z"), 2, "two topics would be published as 'z'"),
        // A server has many names, and a channel of Redis is the same in all databases.
        (format!("log bridge {redis} {redis}/3 --topic ticks"), 2, "would never end"),
        (format!("log bridge {redis} {named} --topic ticks"), 2, "would never end"),
    ] {
        let ran = tickpath(&line);
        let sentence = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "tickpath {line}: {sentence}");
        assert!(sentence.contains(word), "tickpath {line}: no word of '{word}' in: {sentence}");
        assert!(!sentence.contains("panicked"), "tickpath {line}: {sentence}");
    }
    assert!(!folder.path().join("new").exists(), "a call that is refused makes nothing");
    let ran = tickpath(&format!("log cat {shm}"));
    check(&ran, 1, "", &format!("'{shm}' is no log; name one of the logs in that place: {own}"));
}

/// Checks the exit code, and for words on standard output and on standard error.
fn check(ran: &Ran, code: i32, out: &str, err: &str) {
    assert_eq!(ran.code, Some(code), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains(out), "no '{out}' on standard output: {}", ran.out);
    assert!(ran.err.contains(err), "no '{err}' on standard error: {}", ran.err);
}

/// Topics in shared memory with unique names, removed at the test's end.
struct Shared {
    url: String,
    prefix: String,
}

impl Shared {
    fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("cli-{name}-{}-{number}", std::process::id());
        Self { url: format!("shm://{prefix}"), prefix }
    }

    fn place(&self, topic: &str) -> LogPath {
        LogPath::shared_memory(&format!("{}.{topic}", self.prefix)).expect("the name is good")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let names = LogPath::all_in_shared_memory().unwrap_or_default();
        for name in names.iter().filter(|name| name.starts_with(&format!("{}.", self.prefix))) {
            let _ = LogPath::shared_memory(name).map(|place| place.remove());
        }
    }
}

/// Makes a log on the disk that keeps these messages, stamped by a clock that is not the host's.
fn keep(dir: &Path, messages: &[Carried]) {
    let mut log = Writer::open(&small_keep(dir), &Calibration::nanoseconds()).expect("the folder is ours");
    for (stamp, kind, payload) in messages {
        log.publish(*stamp, *kind, payload).expect("it keeps all");
    }
}

fn small_keep(dir: &Path) -> Config {
    Config { segment_bytes: 128 << 10, ..Config::journal(LogPath::folder(dir)) }
}

/// Returns the messages of a log; empty if it does not exist yet.
fn held(dir: &Path) -> Vec<Carried> {
    let mut messages = Vec::new();
    let opened = Reader::open(&LogPath::folder(dir), ReaderStart::Oldest, Registration::Unregistered);
    let Ok(mut log) = opened else { return messages };
    while let Next::Message(message) = log.next().expect("it is sound") {
        messages.push((message.stamp, message.kind, message.payload.to_vec()));
    }
    messages
}

fn publisher(url: &str, topic: &str) -> Box<dyn Publisher> {
    let connection = connect(url).expect("the bus is there");
    let usual = connection.capabilities().policies[0];
    connection.publisher(topic, &TopicConfig::new(usual)).expect("nobody else publishes")
}

fn subscriber(url: &str, topic: &str, start: bus::StartPosition) -> Box<dyn Subscriber> {
    connect(url).expect("the bus is there").subscriber(topic, start, Wait::Block).expect("the topic can be subscribed")
}

fn publish(publisher: &mut dyn Publisher, messages: &[Carried]) {
    for (stamp, kind, payload) in messages {
        publisher.publish(*stamp, *kind, payload).expect("the bus takes it");
    }
}

/// Returns the next reported loss.
fn loss(subscriber: &mut dyn Subscriber) -> Gap {
    let mut loss = None;
    let mut look = || {
        let polled = subscriber.poll(1, &mut |event| match event {
            SubscriptionEvent::Gap(gap) => loss = Some(gap),
            other => panic!("no loss: {other:?}"),
        });
        polled.expect("it can be received") == 1
    };
    until(&mut look, || "a loss".to_owned());
    loss.expect("it was told")
}

/// Receives so many messages.
fn receive(subscriber: &mut dyn Subscriber, count: usize) -> Vec<Carried> {
    let mut messages: Vec<Carried> = Vec::new();
    let mut look = || {
        let polled = subscriber.poll(count - messages.len(), &mut |event| match event {
            SubscriptionEvent::Message(message) => {
                messages.push((message.stamp, message.kind, message.payload.to_vec()))
            }
            other => panic!("a loss, or somebody else: {other:?}"),
        });
        polled.expect("it can be received");
        messages.len() == count
    };
    until(&mut look, || format!("{count} messages"));
    messages
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain text")
}
