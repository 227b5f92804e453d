//! Properties that only a log can show: its files, and tokens after a disk has lost data.

use std::fs::{self, File, OpenOptions, Permissions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tickpath_bus_api::conformance::{ChildRole, spawn};
use tickpath_bus_api::{
    ConnectError, Connection, Gap, LendError, LendOutcome, Policy, Publisher, PublisherState, StartPosition,
    Subscriber, SubscriptionEvent, TopicConfig,
};
use tickpath_bus_log::{LogBus, absent_log_path, list_logs};
use tickpath_clock::{Calibration, Clock, HostClock, Wait, sleep_ns};
use tickpath_log::{Config, Writer};

const TOPIC: &str = "ticks";
const KIND: u8 = 16;

#[test]
fn another_format_version_is_refused() {
    let place = TopicFolder::with_a_topic();
    let data = OpenOptions::new().write(true).open(place.file("data")).unwrap();
    data.write_all_at(&99u32.to_le_bytes(), 8).unwrap();
    place.check_refusals(&["format version 99", "remove it"]);
}

/// A disk that lost the end of a topic or was restored from a backup, and a publisher that reuses the sequence numbers.
#[test]
fn a_subscriber_detects_reused_sequence_numbers_after_a_token() {
    let place = TopicFolder::empty();
    let config = TopicConfig::new(Policy::Keep);
    let publish = |stamps: std::ops::Range<u64>| {
        let mut publisher = place.bus.publisher(TOPIC, &config).expect("nobody else publishes");
        let clock = HostClock::get().expect("the host has a clock");
        stamps.for_each(|stamp| publisher.publish(clock.ticks(), KIND, &stamp.to_le_bytes()).expect("it keeps all"));
    };
    publish(0..90);
    let data = place.dir.path().join(TOPIC).join("data");
    let before = fs::read(&data).expect("it is ours");
    publish(90..100);
    let mut first = place.bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Yield).expect("it is there");
    assert_eq!(numbers(&mut *first, 100), (0..100).collect::<Vec<_>>());
    let token = first.resume_token().expect("a log has a history");
    drop(first);
    let again = |token| {
        let mut subscriber =
            place.bus.subscriber(TOPIC, StartPosition::After(token), Wait::Yield).expect("it is there");
        let mut gap = None;
        subscriber.poll(1, &mut |event| gap = Some(matches!(event, SubscriptionEvent::Gap(_)))).expect("polled");
        (subscriber, gap)
    };
    let (idle, gap) = again(token);
    assert_eq!(gap, None, "nothing has changed");
    // A subscriber that has received nothing keeps the token that it was opened with.
    let token = idle.resume_token().expect("a log has a history");
    drop(idle);
    // Written in place, so that the file stays the same.
    File::options().write(true).open(&data).expect("it is ours").write_all_at(&before, 0).expect("written");
    publish(200..205);
    let (mut short, gap) = again(token);
    assert_eq!(gap, Some(true), "it is shorter than it was");
    assert_eq!(numbers(&mut *short, 5), [200, 201, 202, 203, 204]);
    publish(205..220);
    let (mut long, gap) = again(token);
    assert_eq!(gap, Some(true), "another message is where the last one was");
    assert_eq!(numbers(&mut *long, 20), (200..220).collect::<Vec<_>>());
}

/// A disk that lost the end of a topic, and a host whose clock was set back before its restart.
#[test]
fn new_messages_are_found_after_a_clock_was_set_back() {
    let place = TopicFolder::empty();
    let clock = HostClock::get().expect("the host has a clock");
    let mut set_back = *clock.calibration();
    set_back.boot_id = [7; 16];
    set_back.utc_ns -= 3_600_000_000_000;
    let topic = tickpath_log::LogPath::folder(place.dir.path().join(TOPIC));
    let config = Config { segment_bytes: 1 << 20, ..Config::topic(topic, tickpath_log::OverflowPolicy::Keep) };
    let publish = |calibration: &Calibration, numbers: Range<u64>| {
        let mut writer = Writer::open(&config, calibration).expect("nobody else publishes");
        numbers
            .for_each(|number| _ = writer.publish(clock.ticks(), KIND, &number.to_le_bytes()).expect("it keeps all"));
    };
    publish(clock.calibration(), 0..90);
    let data = place.file("data");
    let before = fs::read(&data).expect("it is ours");
    publish(clock.calibration(), 90..100);
    let mut first = place.bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Yield).expect("it is there");
    assert_eq!(numbers(&mut *first, 100), (0..100).collect::<Vec<_>>());
    let token = first.resume_token().expect("a log has a history");
    drop(first);
    File::options().write(true).open(&data).expect("it is ours").write_all_at(&before, 0).expect("written");
    publish(&set_back, 200..205);
    let mut again = place.bus.subscriber(TOPIC, StartPosition::After(token), Wait::Yield).expect("it is there");
    let mut is_told = false;
    again.poll(1, &mut |event| is_told = matches!(event, SubscriptionEvent::Gap(_))).expect("polled");
    assert!(is_told, "it is shorter than it was");
    assert_eq!(numbers(&mut *again, 5), (200..205).collect::<Vec<_>>());
}

/// A subscriber that carries messages on has a token to save before the first message arrives.
#[test]
fn a_bridge_has_a_token_before_the_first_message_arrives() {
    let place = TopicFolder::empty();
    let mut publisher = place.bus.publisher(TOPIC, &TopicConfig::new(Policy::Keep)).expect("nobody else publishes");
    let clock = HostClock::get().expect("the host has a clock");
    let mut publish =
        |number: u64| publisher.publish(clock.ticks(), KIND, &number.to_le_bytes()).expect("it keeps all");
    (0..10).for_each(&mut publish);
    let mut first = place.bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Yield).expect("it is there");
    assert_eq!(numbers(&mut *first, 10), (0..10).collect::<Vec<_>>());
    let token = first.resume_token().expect("a log has a history");
    first.enable_bridge_mode();
    assert_eq!(first.resume_token(), Some(token), "what it was handed before");
    for start in [StartPosition::Now, StartPosition::Sequence(10), StartPosition::After(token)] {
        let mut carrier = place.bus.subscriber(TOPIC, start, Wait::Yield).expect("it is there");
        carrier.enable_bridge_mode();
        assert_eq!(carrier.resume_token(), Some(token), "{start:?}");
    }
    publish(10);
    assert_eq!(numbers(&mut *first, 1), [10]);
    let now = place.bus.subscriber(TOPIC, StartPosition::Now, Wait::Yield).map(|mut now| {
        now.enable_bridge_mode();
        now.resume_token()
    });
    assert_eq!(first.resume_token(), now.expect("it is there"), "what it carried last");
}

/// Polls `count` messages, and returns the numbers in their payloads.
fn numbers(subscriber: &mut dyn Subscriber, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let polled = subscriber.poll(count - numbers.len(), &mut |event| match event {
            SubscriptionEvent::Message(message) => {
                numbers.push(u64::from_le_bytes(message.payload.try_into().expect("a number")));
            }
            other => panic!("{other:?}"),
        });
        assert!(polled.expect("polled") > 0, "only {} of {count} messages came", numbers.len());
    }
    numbers
}

/// Publishers and subscribers that spend idle time on warm-up: no message appears, no file is added, none is lost.
#[test]
fn a_warm_up_leaves_no_message_and_no_file() {
    for policy in Policy::ALL {
        let place = TopicFolder::empty();
        let mut publisher = place.bus.publisher(TOPIC, &TopicConfig::new(policy)).expect("the topic is new");
        let mut subscriber = place.bus.subscriber(TOPIC, StartPosition::Now, Wait::Busy).expect("the topic is there");
        let files = || fs::read_dir(place.dir.path().join(TOPIC)).expect("a folder").count();
        let (before, mut seen) = (files(), Vec::new());
        for stamp in 0..20 {
            for _ in 0..2_000 {
                publisher.idle();
                subscriber.wait(1);
                let polled = subscriber.poll(9, &mut |event| panic!("nothing was published, and there is {event:?}"));
                assert_eq!(polled.expect("polled"), 0);
            }
            subscriber.set_warm_up(stamp % 3 != 0);
            publisher.publish(stamp, KIND, &vec![7; stamp as usize * 300]).expect("there is room");
            let polled = subscriber.poll(9, &mut |event| match event {
                SubscriptionEvent::Message(m) => seen.push((m.sequence, m.stamp, m.kind, m.payload.len() as u64)),
                other => panic!("{other:?} where a message is"),
            });
            assert_eq!(polled.expect("polled"), 1);
        }
        assert_eq!(seen, (0..20).map(|n| (Some(n), n, KIND, n * 300)).collect::<Vec<_>>());
        assert_eq!(files(), before);
    }
}

/// A gap is no message when messages are lent; a subscriber that carries messages on gets copies, each with its origin.
#[test]
fn a_subscriber_that_is_lent_messages_gets_gaps() {
    let place = TopicFolder::empty();
    let mut publisher = place.bus.publisher(TOPIC, &TopicConfig::new(Policy::Keep)).expect("the topic is new");
    let mut subscriber = place.bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Yield).expect("the topic is there");
    publisher.publish_gap(1, Gap::Missed(3)).expect("it keeps all");
    publisher.publish(2, KIND, b"behind it").expect("it keeps all");
    assert!(matches!(subscriber.lend(), Ok(LendOutcome::Gap(Gap::Missed(3)))));
    let Ok(LendOutcome::Message(lent)) = subscriber.lend() else { panic!("it was published") };
    assert_eq!((lent.sequence, lent.stamp, lent.payload()), (Some(1), 2, &b"behind it"[..]));
    assert!(matches!(subscriber.lend(), Ok(LendOutcome::Nothing)));
    subscriber.enable_bridge_mode();
    assert!(matches!(subscriber.lend(), Err(LendError::Unsupported(_))));
}

#[test]
fn a_file_that_is_no_log_is_refused() {
    for bytes in [&b""[..], b"TICKLOG", &[0; 8192], b"a text file that lies where a log should lie\n"] {
        let place = TopicFolder::with_a_topic();
        fs::write(place.file("data"), bytes).unwrap();
        place.check_refusals(&["damaged or no log", "remove it"]);
    }
}

#[test]
fn a_truncated_log_is_refused() {
    for bytes in [100, 4096, 8192, 500_000] {
        let place = TopicFolder::with_a_topic();
        OpenOptions::new().write(true).open(place.file("data")).unwrap().set_len(bytes).unwrap();
        place.check_refusals(&["cut short", "remove it"]);
    }
}

#[test]
fn a_changed_header_is_refused() {
    for at in [12, 16, 20, 24, 28, 40, 60] {
        let place = TopicFolder::with_a_topic();
        let data = OpenOptions::new().read(true).write(true).open(place.file("data")).unwrap();
        let mut byte = [0];
        data.read_exact_at(&mut byte, at).unwrap();
        data.write_all_at(&[byte[0] ^ 0x55], at).unwrap();
        place.check_refusals(&["damaged or no log", "remove it"]);
    }
}

#[test]
fn another_geometry_is_refused() {
    let place = TopicFolder::with_a_topic();
    let config = TopicConfig::new(Policy::Overwrite);
    for other in [
        TopicConfig { capacity_bytes: 2 << 20, ..config },
        TopicConfig { policy: Policy::Fail, ..config },
        TopicConfig { policy: Policy::Keep, ..config },
    ] {
        let error = place.bus.publisher(TOPIC, &other).err().expect("it exists with other parameters").to_string();
        assert!(error.contains("exists with policy overwrite, 8 segments of 131072 bytes"), "{error}");
        assert!(error.contains("use the same, or remove it first"), "{error}");
    }
    place.publisher();
}

#[test]
fn files_are_private_unless_the_mode_shares_them() {
    for mode in [0o600, 0o640] {
        let place = TopicFolder::empty();
        let config = TopicConfig { mode, ..TopicConfig::new(Policy::Overwrite) };
        let _publisher = place.bus.publisher(TOPIC, &config).unwrap();
        for file in ["data", "control", "writer.lock"] {
            let found = fs::metadata(place.file(file)).unwrap().permissions().mode() & 0o777;
            assert_eq!(found & !mode, 0, "{file} has {found:o}, which is more than {mode:o}");
            assert_eq!(found & 0o600, 0o600, "{file} has {found:o}");
        }
    }
}

#[test]
fn a_topic_without_permission_is_refused() {
    let place = TopicFolder::with_a_topic();
    let data = place.file("data");
    fs::set_permissions(&data, Permissions::from_mode(0o000)).unwrap();
    if File::open(&data).is_ok() {
        // Root may read a file without permissions, so there is no refusal to check, only the mode bits.
        assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0);
        return;
    }
    place.check_refusals(&["no permission for", "its owner decides"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_the_reason() {
    let place = TopicFolder::empty();
    let letter = place.dir.path().join("letter");
    fs::write(&letter, b"dear").unwrap();
    for folder in [letter.as_path(), Path::new("/proc/tickpath-no-folder")] {
        let bus = LogBus::connect(&format!("file://{}", folder.display())).unwrap();
        let refused = bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).err().expect("there is no folder");
        let sentence = refused.to_string();
        assert!(sentence.starts_with(&format!("file://{}/{TOPIC} cannot be made (", folder.display())), "{sentence}");
        assert!(sentence.contains("os error") && sentence.contains("name a folder that"), "{sentence}");
    }
    assert_eq!(fs::read(&letter).unwrap(), b"dear");
}

#[test]
fn the_error_of_a_second_writer_names_the_first_process() {
    let place = TopicFolder::empty();
    let mut child = spawn(ChildRole::Publisher, &place.url, TOPIC);
    let mut subscriber = place.subscriber().unwrap_or_else(|e| panic!("{e}"));
    // Opening a publisher before the child does would make the test's publisher the first.
    wait_until("a child that publishes", || {
        subscriber.poll(1000, &mut |_| {}).unwrap();
        subscriber.publisher_state() == PublisherState::Alive(child.id())
    });
    let refusal = place.bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).err();
    child.kill().unwrap();
    child.wait().unwrap();
    let Some(ConnectError::HasPublisher(sentence)) = refusal else { panic!("not refused: {refusal:?}") };
    assert!(sentence.contains(&format!("process {};", child.id())), "{sentence}");
    place.publisher();
}

#[test]
fn messages_of_a_killed_publisher_stay_in_the_same_files() {
    let seed = HostClock::get().unwrap().ticks();
    println!("seed {seed}");
    let place = TopicFolder::empty();
    for round in 0..50u64 {
        let mut child = spawn(ChildRole::Publisher, &place.url, TOPIC);
        sleep_ns((seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % 20_000_000);
        child.kill().unwrap();
        child.wait().unwrap();
        let mut publisher = place.publisher();
        publisher.publish(round, KIND, b"the next publisher").unwrap();
        let (count, last) = place.read_all();
        assert!(count > 0, "round {round}");
        assert_eq!(last, (round, b"the next publisher".to_vec()), "round {round}");
        drop(publisher);
        let mut files: Vec<_> = fs::read_dir(place.dir.path().join(TOPIC)).unwrap().collect::<Result<_, _>>().unwrap();
        files.sort_by_key(fs::DirEntry::file_name);
        let names: Vec<_> = files.iter().map(|file| file.file_name().into_string().unwrap()).collect();
        assert_eq!(names, ["control", "data", "readers.lock", "writer.lock"], "round {round}");
    }
}

#[test]
fn a_topic_lies_where_its_url_says() {
    for (url, topic, dir) in [
        ("shm://", "ticks", "/dev/shm/tickpath.ticks"),
        ("shm://lab", "ticks", "/dev/shm/tickpath.lab.ticks"),
        ("file:///var/lib/x", "ticks", "/var/lib/x/ticks"),
    ] {
        let place = LogBus::connect(url).unwrap().topic_path(topic).unwrap();
        assert_eq!(place.dir(), Path::new(dir), "{url}");
    }
}

#[test]
fn existing_and_absent_logs_of_a_folder_are_listed() {
    let place = TopicFolder::empty();
    let folder = tickpath_log::LogPath::folder(place.dir.path());
    assert!(list_logs(&folder).is_empty());
    let topic = absent_log_path(&place.url, TOPIC).expect("nobody has made it yet");
    place.publisher();
    assert_eq!(absent_log_path(&place.url, TOPIC), None);
    assert_eq!(list_logs(&folder), [topic]);
    assert_eq!(absent_log_path("redis://h:1", TOPIC), None, "it is no log");
}

#[test]
fn bad_urls_are_refused() {
    for (url, words) in [
        ("shm://a b", "is no topic name"),
        ("shm://../x", "is no topic name"),
        ("file://relative", "is no absolute path"),
        ("file:///", "is no absolute path"),
        ("tcp://host", "is neither shm://NAME nor file:///PATH"),
    ] {
        let error = LogBus::connect(url).err().unwrap_or_else(|| panic!("{url} is taken")).to_string();
        assert!(error.contains(words), "{url}: {error}");
    }
}

/// A folder with at most one topic.
struct TopicFolder {
    dir: TempDir,
    url: String,
    bus: LogBus,
}

impl TopicFolder {
    fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file://{}", dir.path().display());
        let bus = LogBus::connect(&url).unwrap();
        Self { dir, url, bus }
    }

    fn with_a_topic() -> Self {
        let place = Self::empty();
        place.publisher().publish(1, KIND, b"a message").unwrap();
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(TOPIC).join(name)
    }

    fn publisher(&self) -> Box<dyn Publisher> {
        self.bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).unwrap_or_else(|e| panic!("{e}"))
    }

    fn subscriber(&self) -> Result<Box<dyn Subscriber>, ConnectError> {
        self.bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Yield)
    }

    /// Reads the topic to its end; returns the number of messages, and the last stamp and payload.
    fn read_all(&self) -> (u64, (u64, Vec<u8>)) {
        let mut subscriber = self.subscriber().unwrap_or_else(|e| panic!("{e}"));
        let (mut count, mut last) = (0, (0, Vec::new()));
        let mut keep = |event: SubscriptionEvent<'_>| match event {
            SubscriptionEvent::Message(message) => {
                count += 1;
                last = (message.stamp, message.payload.to_vec());
            }
            other => panic!("nobody publishes, and yet there is: {other:?}"),
        };
        while subscriber.poll(1000, &mut keep).unwrap() > 0 {}
        (count, last)
    }

    /// Checks that publisher and subscriber are refused with an error that contains these words.
    fn check_refusals(&self, words: &[&str]) {
        let publisher = self.bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).err();
        for refusal in [publisher, self.subscriber().err()] {
            let sentence = refusal.expect("refused").to_string();
            for word in words {
                assert!(sentence.contains(word), "'{word}' is not in: {sentence}");
            }
        }
    }
}

/// Waits until the condition holds; fails after a minute.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        sleep_ns(10_000_000);
    }
    panic!("{what}: still waiting after a minute");
}
