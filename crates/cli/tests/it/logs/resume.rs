//! `--resume`: a bridge or a recorder that is killed at any moment and restarted skips no message and carries none
//! twice.

use std::fs;
use std::path::Path;

use tempfile::tempdir;
use tickpath_bus::{self as bus, Publisher, Subscriber, SubscriptionEvent, TopicConfig, connect};
use tickpath_clock::{Wait, sleep_ns};

use super::running::{Running, until};
use crate::program::tickpath;
use crate::server::RedisServer;

/// Number of messages that a test carries.
const COUNT: u64 = 4_000;

/// Number of kills meanwhile.
const KILLS: u64 = 8;

#[test]
fn a_killed_bridge_resumes_between_logs() {
    let folder = tempdir().expect("a temporary folder can be made");
    let url = |name: &str| format!("file://{}/{name}", text(folder.path()));
    carry_with_kills(&url("here"), &url("there"), folder.path(), "log bridge {from} {to} --policy keep");
}

#[test]
fn a_killed_bridge_resumes_from_a_log_to_a_broker() {
    let (server, folder) = (RedisServer::start(), tempdir().expect("a temporary folder can be made"));
    let here = format!("file://{}/here", text(folder.path()));
    carry_with_kills(&here, &format!("{}?streams", server.url()), folder.path(), "log bridge {from} {to}");
}

#[test]
fn a_killed_bridge_resumes_from_a_broker_to_a_log() {
    let (server, folder) = (RedisServer::start(), tempdir().expect("a temporary folder can be made"));
    let there = format!("file://{}/there", text(folder.path()));
    let line = "log bridge {from} {to} --policy keep";
    carry_with_kills(&format!("{}?streams", server.url()), &there, folder.path(), line);
}

/// Publishes numbers while a bridge of this command line is killed and restarted, and checks that each arrived once.
fn carry_with_kills(from: &str, to: &str, folder: &Path, line: &str) {
    let places = folder.join("places");
    let line = line.replace("{from}", from).replace("{to}", to);
    let line = format!("{line} --topic ticks --start oldest --resume {}", text(&places));
    let mut publisher = publisher(from);
    let mut subscriber =
        connect(to).expect("connected").subscriber("ticks", start_of_all(to), Wait::Block).expect("open");
    for kill in 0..=KILLS {
        let bridge = Running::start(&line);
        bridge.await_words("carrying 'ticks'");
        publish(&mut *publisher, COUNT * kill / (KILLS + 1)..COUNT * (kill + 1) / (KILLS + 1));
        if kill == KILLS {
            receive_all(&mut *subscriber);
            assert_eq!(bridge.interrupt().code, Some(0));
            break;
        }
        // In the other rounds the bridge is killed where it is; and once more as it resumes, before it has carried
        // anything.
        drop(bridge);
        let again = Running::start(&line);
        again.await_words("carrying 'ticks'");
        assert!(matches!(again.interrupt().code, Some(0 | 1)));
    }
    let bridge = Running::start(&line);
    bridge.await_words("carrying 'ticks'");
    publish(&mut *publisher, COUNT..COUNT + 1);
    assert_eq!(next(&mut *subscriber), COUNT, "it goes on where it was stopped");
    assert_eq!(bridge.interrupt().code, Some(0));
}

#[test]
fn a_killed_recorder_resumes() {
    let folder = tempdir().expect("a temporary folder can be made");
    let url = format!("file://{}", text(folder.path()));
    let (places, recording) = (folder.path().join("places"), folder.path().join("recording"));
    let line =
        format!("log record {url} ticks {} --append --start oldest --resume {}", text(&recording), text(&places));
    let mut publisher = publisher(&url);
    for kill in 0..=KILLS {
        let recorder = Running::start(&line);
        recorder.await_words("recording 'ticks'");
        publish(&mut *publisher, COUNT * kill / (KILLS + 1)..COUNT * (kill + 1) / (KILLS + 1));
        if kill == KILLS {
            let mut subscriber = connect(&url)
                .expect("connected")
                .subscriber("recording", bus::StartPosition::Oldest, Wait::Block)
                .expect("open");
            receive_all(&mut *subscriber);
            assert_eq!(recorder.interrupt().code, Some(0));
            for _ in 0..10 {
                assert_eq!(subscriber.poll(1, &mut |event| panic!("twice: {event:?}")).expect("polled"), 0);
            }
        }
    }
}

/// A ring that another program has filled while the bridge was away, and a ring that the bridge has filled itself.
#[test]
fn overwritten_messages_of_a_ring_hide_no_later_message() {
    let folder = tempdir().expect("a temporary folder can be made");
    let root = text(folder.path());
    let (here, there) = (format!("file://{root}/here"), format!("file://{root}/there"));
    // Room for some four thousand messages.
    let config = TopicConfig { capacity_bytes: 256 << 10, ..TopicConfig::new(bus::Policy::Overwrite) };
    let line = format!("log bridge {here} {there} --topic ticks --start oldest --policy overwrite --capacity 262144");
    let line = format!("{line} --resume {root}/places");
    let subscriber = |start| connect(&there).expect("connected").subscriber("ticks", start, Wait::Block).expect("open");
    let mut source = publisher(&here);
    publish(&mut *source, 0..10);
    let mut copy = subscriber(bus::StartPosition::Oldest);
    let bridge = Running::start(&line);
    (0..10).for_each(|number| assert_eq!(next(&mut *copy), number));
    assert_eq!(bridge.interrupt().code, Some(0));

    let other = connect(&there).expect("connected").publisher("ticks", &config);
    publish(&mut *other.expect("nobody else publishes"), 100_000..106_000);
    let mut copy = subscriber(bus::StartPosition::Now);
    publish(&mut *source, 10..3_000);
    let bridge = Running::start(&line);
    (10..3_000).for_each(|number| assert_eq!(next(&mut *copy), number));
    let ran = bridge.interrupt();
    let words = "'ticks' has lost messages after the saved position, and the remaining ones cannot be compared";
    assert!(ran.code == Some(0) && ran.err.contains(words), "{:?} {}", ran.code, ran.err);

    // As if the bridge had been killed before it could save its place.
    let file = folder.path().join("places/ticks");
    let place = fs::read(&file).expect("it was kept");
    publish(&mut *source, 3_000..10_000);
    let log = tickpath_log::LogPath::folder(folder.path().join("there/ticks"));
    let end = || {
        let unseen = tickpath_log::Registration::Unregistered;
        tickpath_log::Reader::open(&log, tickpath_log::ReaderStart::Now, unseen).expect("it is there").sequence()
    };
    let before = end();
    let bridge = Running::start(&line);
    until(|| end() == before + 7_000, || "seven thousand messages".to_owned());
    assert_eq!(bridge.interrupt().code, Some(0));
    fs::write(&file, place).expect("it is ours");
    let mut copy = subscriber(bus::StartPosition::Now);
    publish(&mut *source, 10_000..10_001);
    let bridge = Running::start(&line);
    assert_eq!(next(&mut *copy), 10_000, "what was carried is not carried again");
    let ran = bridge.interrupt();
    assert!(ran.code == Some(0) && !ran.err.contains("cannot be compared"), "{:?} {}", ran.code, ran.err);
}

#[test]
fn a_process_killed_before_its_topic_exists_skips_no_message_of_the_topic() {
    let folder = tempdir().expect("a temporary folder can be made");
    let root = text(folder.path());
    let (here, there) = (format!("file://{root}/here"), format!("file://{root}/there"));
    let lines = [
        format!("log bridge {here} {there} --topic ticks --policy keep --resume {root}/places"),
        format!("log record {here} ticks {root}/there/recording --append --resume {root}/others"),
    ];
    for line in &lines {
        let first = Running::start(line);
        first.await_words("'ticks' of");
        drop(first);
    }
    publish(&mut *publisher(&here), 0..10);
    for (line, copy) in lines.iter().zip(["ticks", "recording"]) {
        let again = Running::start(line);
        let mut subscriber = connect(&there)
            .expect("connected")
            .subscriber(copy, bus::StartPosition::Oldest, Wait::Block)
            .expect("open");
        for number in 0..10 {
            assert_eq!(next(&mut *subscriber), number, "{line}");
        }
        assert_eq!(again.interrupt().code, Some(0));
    }
}

#[test]
fn lost_messages_are_noted_in_the_recording() {
    let folder = tempdir().expect("a temporary folder can be made");
    let url = format!("file://{}", text(folder.path()));
    let (places, recording) = (folder.path().join("places"), folder.path().join("recording"));
    let line =
        format!("log record {url} ticks {} --append --start oldest --resume {}", text(&recording), text(&places));
    publish(&mut *publisher(&url), 0..10);
    assert_eq!(tickpath(&format!("{line} --count 10")).code, Some(0));
    // As if the disk had lost the whole recording.
    fs::remove_dir_all(&recording).expect("it is ours");
    publish(&mut *publisher(&url), 10..12);
    let ran = tickpath(&format!("{line} --count 2"));
    assert!(ran.code == Some(0) && ran.err.contains("10 messages were missed"), "{}", ran.err);
}

#[test]
fn a_target_that_cannot_be_resumed_is_refused() {
    let (server, folder) = (RedisServer::start(), tempdir().expect("a temporary folder can be made"));
    let (url, places) = (format!("file://{}", text(folder.path())), folder.path().join("places"));
    let ran = tickpath(&format!("log bridge {} {url} --topic ticks --resume {}", server.url(), text(&places)));
    assert!(ran.code == Some(2) && ran.err.contains("leave out --resume"), "{:?} {}", ran.code, ran.err);
    assert!(!places.exists(), "nothing was made");
    for bytes in [&b""[..], b"nonsense\n", b"log:1,2,3,4 5 6\n", &[0xff, 0]] {
        fs::create_dir_all(&places).expect("the folder is ours");
        fs::write(places.join("here=there"), bytes).expect("the folder is ours");
        let ran = tickpath(&format!("log bridge {url} {url} --topic here=there --resume {}", text(&places)));
        let words = "holds no saved position; remove it";
        assert!(ran.code == Some(2) && ran.err.contains(words), "{:?} {}", ran.code, ran.err);
    }
    let ends = |from: &str, to: &str| format!("{url}/{from}\n{url}/{to}\n");
    fs::write(places.join("here=there"), format!("log:1,2,3,4\n{}", ends("here", "elsewhere"))).expect("it is ours");
    let ran = tickpath(&format!("log bridge {url} {url} --topic here=there --resume {}", text(&places)));
    let words = format!("the position of another topic, from {url}/here to {url}/elsewhere");
    assert!(ran.code == Some(2) && ran.err.contains(&words), "{:?} {}", ran.code, ran.err);
    fs::write(places.join("here=there"), format!("kafka:1,2,3,4\n{}", ends("here", "there"))).expect("it is ours");
    let ran = tickpath(&format!("log bridge {url} {url} --topic here=there --resume {}", text(&places)));
    assert!(ran.code == Some(1) && ran.err.contains("is of 'kafka'"), "{:?} {}", ran.code, ran.err);
    fs::remove_file(places.join("here=there")).expect("it is ours");
    let line = format!("log bridge {url} {url} --topic here=there --resume {}", text(&places));
    let first = Running::start(&line);
    first.await_words("carrying 'here'");
    let ran = tickpath(&line.replace("bridge", "bridge --policy keep"));
    assert!(ran.code == Some(2) && ran.err.contains("is in use by another call"), "{:?} {}", ran.code, ran.err);
    drop(first);
    let file = folder.path().join("file");
    fs::write(&file, "").expect("the folder is ours");
    let ran = tickpath(&format!("log bridge {url} {url} --topic here=there --resume {}", text(&file)));
    assert!(
        ran.code == Some(1) && ran.err.contains("name a folder that only you may write to"),
        "{:?} {}",
        ran.code,
        ran.err
    );
}

fn publisher(url: &str) -> Box<dyn Publisher> {
    let connection = connect(url).expect("connected");
    let config = TopicConfig::new(bus::Policy::Keep);
    connection.publisher("ticks", &config).expect("opened")
}

/// Returns a start from the first message on, wherever there is history.
fn start_of_all(url: &str) -> bus::StartPosition {
    let is_kept = connect(url).expect("connected").capabilities().history;
    if is_kept { bus::StartPosition::Oldest } else { bus::StartPosition::Now }
}

fn publish(publisher: &mut dyn Publisher, numbers: std::ops::Range<u64>) {
    for number in numbers {
        publisher.publish(number, 40, &number.to_le_bytes()).expect("published");
        if number % 100 == 0 {
            // The bridge must be killed while it carries, and not before it has any messages.
            sleep_ns(1_000_000);
        }
    }
}

/// Receives all numbers, each once, in order, and no loss.
fn receive_all(subscriber: &mut dyn Subscriber) {
    for number in 0..COUNT {
        assert_eq!(next(subscriber), number);
    }
}

/// Receives the next number.
fn next(subscriber: &mut dyn Subscriber) -> u64 {
    let mut number = None;
    until(
        || {
            // A duplicate that is dropped takes a poll, too.
            for _ in 0..1_000 {
                let polled = subscriber.poll(1, &mut |event| match event {
                    SubscriptionEvent::Message(message) => {
                        number = Some(u64::from_le_bytes(message.payload.try_into().expect("a number")));
                    }
                    other => panic!("{other:?}"),
                });
                if polled.expect("polled") == 1 {
                    return true;
                }
            }
            subscriber.wait(1_000_000);
            false
        },
        || "the next number".to_owned(),
    );
    number.expect("it came")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}
