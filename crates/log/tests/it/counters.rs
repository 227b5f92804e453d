//! Counters in shared memory: counts are read by name, and a file that holds none is rejected.

use std::fs;

use tickpath_log::{Counters, CountersReader, LogOpenError, LogPath};

fn place(test: &str) -> LogPath {
    LogPath::shared_memory(&format!("log-counters-{test}-{}", std::process::id())).expect("a name")
}

fn runs() -> Vec<(String, usize)> {
    vec![("orders".to_owned(), 1), (format!("{:.<56}", "a.name.of.56.bytes"), 3)]
}

fn read(reader: &CountersReader) -> Vec<(String, Vec<u64>)> {
    reader.runs().map(|(name, words)| (name.to_owned(), words)).collect()
}

#[test]
fn counters_are_read_by_their_names() {
    let place = place("named");
    let mut counters = Counters::open(&place, 7, &runs()).expect("there is no other writer");
    let reader = CountersReader::open(&place).expect("they are there");
    assert_eq!((reader.incarnation(), reader.writer(), reader.is_current()), (7, Some(std::process::id()), true));
    counters.add(0, 2);
    counters.add(0, 3);
    counters.set(3, 9);
    let [(first, _), (second, _)] = &runs()[..] else { panic!("two") };
    assert_eq!(read(&reader), [(first.clone(), vec![5]), (second.clone(), vec![0, 0, 9])]);
    assert!(matches!(Counters::open(&place, 8, &runs()), Err(LogOpenError::HasWriter { .. })), "there is one writer");
    drop(counters);
    assert_eq!((reader.writer(), reader.is_current()), (None, false));
    assert_eq!(read(&reader)[0].1, [5], "a reader keeps the counters that it has mapped");
    assert!(matches!(CountersReader::open(&place), Err(LogOpenError::NotFound(_))));
    assert!(!place.dir().exists(), "nothing is left behind");
}

#[test]
fn a_reader_detects_a_restart_of_the_writer() {
    let place = place("again");
    let counters = Counters::open(&place, 1, &runs()).expect("there is no other writer");
    let old = CountersReader::open(&place).expect("they are there");
    drop(counters);
    let mut counters = Counters::open(&place, 2, &runs()).expect("the writer is gone");
    counters.add(0, 1);
    assert!(!old.is_current());
    let new = CountersReader::open(&place).expect("they are there");
    assert_eq!((new.incarnation(), read(&new)[0].1[0], read(&old)[0].1[0]), (2, 1, 0));
}

#[test]
fn invalid_counters_are_refused_and_a_truncation_kills_no_reader() {
    let place = place("hostile");
    let counters = Counters::open(&place, 1, &runs()).expect("there is no other writer");
    let file = place.dir().join("words");
    let whole = fs::read(&file).expect("it can be read");
    let reader = CountersReader::open(&place).expect("they are there");
    // Every word of header and names, with impossible bits, and every length.
    for at in (0..64 + 2 * 64).step_by(8) {
        for wrong in [u64::MAX, 1 << 63, 1 << 40, 0] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
            fs::write(&file, &bytes).expect("it can be written");
            if let Ok(reader) = CountersReader::open(&place) {
                assert!(read(&reader).len() <= 2);
            }
        }
    }
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).expect("it can be written");
        assert!(CountersReader::open(&place).is_err(), "{length} bytes");
    }
    fs::write(&file, []).expect("it can be written");
    assert!(read(&reader).len() == 2, "a reader with a mapping continues");
    drop(counters);
}
