//! Output of `log` for a topic in shared memory while its writer and its reader live; and, below, copies of topics.

mod relay;
mod resume;
mod running;

use serde_json::{Value, json};
use tickpath_clock::Calibration;
use tickpath_log::{Config, LogPath, OverflowPolicy, Reader, ReaderStart, Registration, Writer};
use tickpath_market::{Kind, NewOrder, Price, Quantity, Side, TopOfBook};
use zerocopy::IntoBytes;

use crate::program::tickpath;
pub use running::{Running, open_descriptors, set_descriptors, until};

/// A topic with two messages, of which its reader has taken the first.
struct Topic {
    place: LogPath,
    writer: Writer,
    reader: Reader,
    _gone: Gone,
}

/// Removes the topic at the test's end.
struct Gone(LogPath);

impl Topic {
    fn new(name: &str) -> Self {
        let place = LogPath::shared_memory(&format!("{name}-{}", std::process::id())).expect("the name is good");
        let config = Config::topic(place.clone(), OverflowPolicy::Overwrite);
        let mut writer = Writer::open(&config, &Calibration::nanoseconds()).expect("the topic is new");
        let mut reader = Reader::open(&place, ReaderStart::Oldest, Registration::Registered).expect("it was just made");
        let tick = TopOfBook { bid: Price::from_whole(61_800), ..TopOfBook::default() };
        writer.publish(7, Kind::TopOfBook.code(), tick.as_bytes()).expect("an overwrite topic takes all");
        writer.publish(9, 200, b"hello").expect("an overwrite topic takes all");
        assert_eq!(reader.drain(1, |_| {}).expect("the topic is sound"), 1);
        let _gone = Gone(place.clone());
        Self { place, writer, reader, _gone }
    }

    fn publish(&mut self, kind: u8, payload: &[u8]) {
        self.writer.publish(11, kind, payload).expect("an overwrite topic takes all");
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        // The test may have removed it.
        let _ = self.0.remove();
    }
}

#[test]
fn a_topic_is_listed_with_its_writer_and_its_reader() {
    let topic = Topic::new("cli-ls");
    let pid = std::process::id();
    for line in ["log ls".to_owned(), format!("log ls {}", topic.place)] {
        let ran = tickpath(&line);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "tickpath {line}");
        let mut lines = ran.out.lines().skip_while(|line| !line.starts_with(&format!("{}  ", topic.place)));
        let described = lines.next().unwrap_or_else(|| panic!("tickpath {line} does not list the topic: {}", ran.out));
        for word in ["overwrite", "0..2", &format!("writer {pid}")] {
            assert!(described.contains(word), "tickpath {line}: no '{word}' in: {described}");
        }
        let reader = lines.next().unwrap_or_default();
        for word in [format!("reader {pid}"), "at 1".to_owned(), "1 behind".to_owned()] {
            assert!(reader.contains(&word), "tickpath {line}: no '{word}' in: {reader}");
        }
    }
}

#[test]
fn messages_are_printed_one_a_line() {
    let topic = Topic::new("cli-cat");
    let cat = |rest: &str| tickpath(&format!("log cat {}{rest}", topic.place));
    let tick = "0 1970-01-01T00:00:00.000000007Z tick symbol=0 bid=61800 bid_quantity=0 ask=0 ask_quantity=0 \
                event_ns=0 wire_age_ns=0\n";
    let hello = "1 1970-01-01T00:00:00.000000009Z kind_200 68656c6c6f |hello| 5 bytes\n";
    for (rest, wanted) in [
        ("", format!("{tick}{hello}")),
        (" --count 1", tick.to_owned()),
        (" --from 1", hello.to_owned()),
        // The tail is neither a message nor an error.
        (" --from 2", String::new()),
        (" --count 0", String::new()),
    ] {
        let ran = cat(rest);
        assert_eq!((ran.code, ran.err.as_str(), ran.out), (Some(0), "", wanted), "log cat{rest}");
    }
}

#[test]
fn fields_are_printed_by_their_names_and_as_json() {
    let mut topic = Topic::new("cli-fields");
    let order = NewOrder {
        client_order_id: tickpath_market::ClientOrderId(u64::MAX),
        price: "61800.20".parse().expect("a price"),
        quantity: Quantity(1),
        side: Side::Sell.code(),
        order_type: 9,
        time_in_force: 1,
        ..NewOrder::default()
    };
    topic.publish(Kind::NewOrder.code(), order.as_bytes());
    topic.publish(Kind::NewOrder.code(), b"short");
    let long: Vec<u8> = (0..=255).collect();
    topic.publish(200, &long);
    topic.publish(200, b"");
    let text = tickpath(&format!("log cat {} --from 2", topic.place)).out;
    let lines: Vec<&str> = text.lines().collect();
    for (line, words) in [
        (0, &["new_order", "price=61800.2", "quantity=0.00000001", "side=sell", "order_type=9"][..]),
        (0, &["client_order_id=18446744073709551615", "time_in_force=good_till_cancel"]),
        (1, &["kind_32 73686f7274 |short| 5 bytes"]),
        (2, &["kind_200 000102", "3e3f… |", "256 bytes"]),
        (3, &["kind_200 0 bytes"]),
    ] {
        let line = lines.get(line).unwrap_or_else(|| panic!("line {line} of: {text}"));
        words.iter().for_each(|word| assert!(line.contains(word), "no '{word}' in: {line}"));
    }
    let objects = objects(&tickpath(&format!("log cat {} --json --from 2", topic.place)).out);
    assert_eq!(objects.len(), 4);
    assert_eq!(
        (&objects[0]["sequence"], &objects[0]["kind"], &objects[0]["name"]),
        (&json!(2), &json!(32), &json!("new_order"))
    );
    assert_eq!(objects[0]["fields"]["price"], json!("61800.2"));
    assert_eq!(objects[0]["fields"]["client_order_id"], json!(u64::MAX));
    assert_eq!(objects[0]["time"], json!("1970-01-01T00:00:00.000000011Z"));
    assert_eq!(objects[0]["stamp_ticks"], json!(11));
    assert_eq!(objects[2]["payload_hex"].as_str().map(str::len), Some(512), "a payload comes whole");
    assert_eq!(objects[3]["payload_hex"], json!(""));
}

#[test]
fn a_text_payload_is_text_in_json() {
    let mut topic = Topic::new("cli-text");
    for payload in ["{\"price\": \"64000.25\"}\n".as_bytes(), "漲 ▲".as_bytes(), &[0xc3, 0x28], b"a\0b"] {
        topic.publish(200, payload);
    }
    let objects = objects(&tickpath(&format!("log cat {} --json --from 1", topic.place)).out);
    let texts: Vec<Option<&str>> = objects.iter().map(|object| object["payload_text"].as_str()).collect();
    assert_eq!(texts, [Some("hello"), Some("{\"price\": \"64000.25\"}\n"), Some("漲 ▲"), None, None]);
    assert!(objects.iter().all(|object| object["payload_hex"].is_string()), "{objects:?}");
}

#[test]
fn cat_waits_for_a_topic_that_it_follows() {
    let name = format!("cli-follow-{}", std::process::id());
    let cat = Running::start(&format!("log cat shm://{name} --follow --count 1"));
    cat.await_words("does not exist yet; waiting for its first writer");
    let topic = Topic::new("cli-follow");
    let ran = cat.end();
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 1), "{} {}", ran.out, ran.err);
    assert!(ran.out.starts_with("0 1970-01-01") && ran.out.contains("tick symbol=0"), "{}", ran.out);
    let missing = tickpath("log cat shm://cli-follow-never");
    assert!(missing.code == Some(1) && missing.err.contains("does not exist"), "{}", missing.err);
    drop(topic);
}

#[test]
fn a_topic_is_removed_when_no_process_has_it_open() {
    let topic = Topic::new("cli-rm");
    let place = topic.place.clone();
    let rm = format!("log rm {place}");
    let ran = tickpath(&rm);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    assert!(ran.err.contains(&format!("process {}", std::process::id())) && place.exists(), "{}", ran.err);
    drop(topic.writer);
    let ran = tickpath(&rm);
    assert!(ran.code == Some(1) && place.exists(), "its reader has it still: {}", ran.err);
    // Until it is noticed the other reader keeps the log: an unused log would be removed.
    let follower = Running::start(&format!("log cat {place} --follow"));
    let is_seen = || tickpath(&rm).err.contains(&format!("process {}", follower.id()));
    until(is_seen, || "a reader unseen".to_owned());
    drop(topic.reader);
    assert!(is_seen() && place.exists(), "the follower has it still");
    drop(follower);
    let ran = tickpath(&rm);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("removed, with 2 messages") && !place.dir().exists(), "{}", ran.out);
    let ran = tickpath(&rm);
    assert!(ran.code == Some(1) && ran.err.contains("does not exist"), "{}", ran.err);
}

#[test]
fn a_position_behind_the_end_is_an_error() {
    let topic = Topic::new("cli-beyond");
    let ran = tickpath(&format!("log cat {} --from 3", topic.place));
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.contains("has not been written yet") && ran.err.lines().count() == 1, "{}", ran.err);
}

#[test]
fn a_sound_topic_verifies() {
    let topic = Topic::new("cli-verify");
    let ran = tickpath(&format!("log verify {}", topic.place));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("2 messages, 53 bytes, all whole") && !ran.out.contains("journal"), "{}", ran.out);
}

/// One JSON object a line.
fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in: {line}"))).collect()
}
