//! What `log` shows of a topic in shared memory while its writer and its reader live.

use tickpath_clock::Calibration;
use tickpath_log::{Config, Place, Policy, Reader, Registration, Start, Writer};
use tickpath_market::{Kind, Price, TopOfBook};
use zerocopy::IntoBytes;

use crate::program::tickpath;

/// A topic with two messages, the first of which its reader has taken.
struct Topic {
    place: Place,
    _writer: Writer,
    _reader: Reader,
}

impl Topic {
    fn new(name: &str) -> Self {
        let place = Place::shared_memory(&format!("{name}-{}", std::process::id())).expect("the name is good");
        let config = Config::topic(place.clone(), Policy::Overwrite);
        let mut writer = Writer::open(&config, &Calibration::nanoseconds()).expect("the topic is new");
        let mut reader = Reader::open(&place, Start::Oldest, Registration::Registered).expect("it was just made");
        let tick = TopOfBook { bid: Price::from_whole(61_800), ..TopOfBook::default() };
        writer.publish(7, Kind::TopOfBook.code(), tick.as_bytes()).expect("an overwrite topic takes all");
        writer.publish(9, 200, b"hello").expect("an overwrite topic takes all");
        assert_eq!(reader.drain(1, |_| {}).expect("the topic is sound"), 1);
        Self { place, _writer: writer, _reader: reader }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // A test that failed may have removed it.
        let _ = self.place.remove();
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
    for (rest, first, lines) in
        [("", "0 7 TopOfBook", 2), (" --count 1", "0 7 TopOfBook", 1), (" --from 1", "1 9 kind 200", 1)]
    {
        let ran = cat(rest);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "log cat{rest}");
        assert_eq!(ran.out.lines().count(), lines, "log cat{rest}: {}", ran.out);
        assert!(ran.out.starts_with(first), "log cat{rest}: {}", ran.out);
    }
    assert!(cat(" --from 1").out.contains("5 bytes: 68656c6c6f"));
    assert_eq!(cat(" --from 2").out, "", "the tail is no message, and no mistake");
    assert_eq!(cat(" --count 0").out, "");
}

#[test]
fn a_message_that_is_not_written_yet_is_a_sentence() {
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
