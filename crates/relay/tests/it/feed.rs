//! The carrier of feeds: races, gaps, lost connections, full topics and files of frames.

use std::fs;

use tickpath_bus::{Policy, StartPosition};
use tickpath_clock::Wait;
use tickpath_market::SymbolId;
use tickpath_relay::RelayError;
use tickpath_relay::feed::FeedRelayConfig;

use crate::feed_scene::{Scene, replay, until};
use crate::scripted_feed::ScriptStep;

/// A snapshot, and its messages on the topic.
const SNAPSHOT: &str = "s 1 7 b500:2 a501:3";
const SNAPSHOT_LEVELS: [&str; 3] = ["level 1 7 b500:2 1", "level 1 7 a501:3 2", "valid 1"];

#[test]
fn messages_are_published_in_each_wait_mode_until_the_stop_flag_is_set() {
    for wait in [Wait::Busy, Wait::Yield, Wait::Block, Wait::Adaptive] {
        let mut scene = Scene::with(1, |config| FeedRelayConfig { wait, ..config });
        scene.expect(&["connected 0"]);
        for frame in ["q 1 20 500", "t 1 30 500", SNAPSHOT, "u 1 7 8 b500:0", "u 1 8 9", "q 2 1 70"] {
            scene.scripts[0].push(frame);
        }
        scene.expect(&["quote 1 500", "trade 1 30"]);
        scene.expect(&SNAPSHOT_LEVELS);
        scene.expect(&["level 1 8 b500:0 2", "level 1 9 0:0 2", "quote 2 70"]);
        let totals = scene.stop();
        scene.expect(&["disconnected 0", "gap 1 0 0"]);
        assert_eq!((totals.quotes, totals.trades, totals.book_updates), (2, 1, 3), "{wait}");
        assert_eq!((totals.messages, totals.lost, totals.gaps), (12, 0, 1), "{wait}");
        let connection = totals.connections[0];
        assert_eq!((connection.frames, connection.messages, connection.reconnects()), (6, 6, 0), "{wait}");
        assert_eq!((totals.wire_to_read.count(), totals.read_to_parsed.count()), (6, 6), "{wait}");
        assert_eq!((totals.parsed_to_published.count(), totals.event_to_arrival.count()), (6, 2), "{wait}");
    }
}

#[test]
fn a_message_of_two_connections_is_published_once() {
    let mut scene = Scene::new(2);
    scene.expect(&["connected 0", "connected 1"]);
    scene.scripts[0].push("q 1 20 500");
    scene.expect(&["quote 1 500"]);
    for frame in ["q 1 20 500", "q 1 21 501", "t 1 30 500"] {
        scene.scripts[1].push(frame);
    }
    scene.expect(&["quote 1 501", "trade 1 30"]);
    for frame in ["q 1 21 501", "t 1 30 500", "q 1 22 502"] {
        scene.scripts[0].push(frame);
    }
    scene.expect(&["quote 1 502"]);
    let totals = scene.stop();
    let counts = totals.connections.iter().map(|connection| (connection.messages, connection.won));
    assert_eq!(counts.collect::<Vec<_>>(), [(4, 2), (3, 2), (0, 0)]);
    assert_eq!((totals.quotes, totals.trades), (3, 1));
}

#[test]
fn a_gap_is_published_at_once_and_the_book_is_valid_after_one_snapshot() {
    let mut scene = Scene::new(1);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&["connected 0"]);
    scene.expect(&SNAPSHOT_LEVELS);
    for frame in ["u 1 9 10 b500:4", "u 1 10 11 b500:5", "q 1 20 500"] {
        scene.scripts[0].push(frame);
    }
    // Nothing of the book is published before its snapshot, and other messages are.
    scene.expect(&["gap 1 7 9", "quote 1 500"]);
    until("the request", || !scene.scripts[0].state().requests.is_empty());
    scene.scripts[0].push("s 1 10 b500:4");
    scene.expect(&["level 1 10 b500:4 3", "level 1 11 b500:5 2", "valid 1"]);
    assert_eq!(scene.scripts[0].state().requests, [SymbolId(1)]);
    assert_eq!(scene.stop().gaps, 2, "the end of the carrier is one, too");
}

#[test]
fn books_are_invalid_while_no_connection_is_up() {
    let mut scene = Scene::new(1);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&["connected 0"]);
    scene.expect(&SNAPSHOT_LEVELS);
    scene.scripts[0].push_step(ScriptStep::Lost("the exchange hangs up"));
    scene.expect(&["disconnected 0", "gap 1 0 0", "connected 0"]);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&SNAPSHOT_LEVELS);
    let totals = scene.stop();
    assert_eq!((totals.connections[0].reconnects(), totals.connections[0].attempts), (1, 2));
    let state = scene.scripts[0].state();
    assert_eq!((state.connects, state.requests.len()), (2, 0), "a connect brings snapshots by itself");
    let reports = scene.reports.lock().unwrap().join("\n");
    assert!(reports.contains("the exchange hangs up; connecting again"), "{reports}");
}

#[test]
fn a_book_stays_valid_while_another_connection_is_up() {
    let mut scene = Scene::new(2);
    scene.expect(&["connected 0", "connected 1"]);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&SNAPSHOT_LEVELS);
    scene.scripts[0].push("u 1 7 8 b500:1");
    scene.expect(&["level 1 8 b500:1 2"]);
    scene.scripts[1].push("u 1 7 8 b500:1");
    scene.scripts[1].push("q 1 1 1");
    scene.expect(&["quote 1 1"]);
    scene.scripts[0].push_step(ScriptStep::Lost("closed"));
    scene.expect(&["disconnected 0"]);
    scene.scripts[1].push("u 1 8 9 b500:0");
    let taken = scene.take_until(|taken| taken.len() == 2);
    assert!(taken.contains(&"level 1 9 b500:0 2".to_owned()) && taken.contains(&"connected 0".to_owned()), "{taken:?}");
    assert_eq!(scene.stop().lost, 0);
}

#[test]
fn another_connection_is_asked_for_a_snapshot_when_the_first_one_ends() {
    let mut scene = Scene::new(2);
    scene.expect(&["connected 0", "connected 1"]);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&SNAPSHOT_LEVELS);
    scene.scripts[0].push("u 1 8 9");
    scene.expect(&["gap 1 7 8"]);
    until("the first request", || scene.scripts[0].state().requests.len() == 1);
    scene.scripts[0].push_step(ScriptStep::Lost("closed"));
    until("the second request", || scene.scripts[1].state().requests == [SymbolId(1)]);
    scene.expect(&["disconnected 0"]);
}

#[test]
fn a_spare_connection_takes_over_before_the_announced_end_of_another() {
    let mut scene = Scene::new(1);
    scene.expect(&["connected 0"]);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&SNAPSHOT_LEVELS);
    scene.scripts[0].push("m");
    scene.expect(&["maintenance 0", "connected 1"]);
    // The old connection still carries.
    scene.scripts[1].push(SNAPSHOT);
    scene.scripts[0].push("u 1 7 8 b500:1");
    scene.expect(&["level 1 8 b500:1 2"]);
    scene.scripts[1].push("u 1 7 8 b500:1");
    scene.scripts[1].push("q 1 1 1");
    scene.expect(&["quote 1 1"]);
    scene.scripts[0].push_step(ScriptStep::Lost("closed"));
    scene.expect(&["disconnected 0"]);
    scene.scripts[1].push("u 1 8 9 b500:0");
    scene.expect(&["level 1 9 b500:0 2"]);
    // The first connection is the spare one now.
    scene.scripts[1].push("m");
    scene.expect(&["maintenance 1", "connected 0"]);
    assert_eq!([0, 1].map(|index| scene.scripts[index].state().connects), [2, 1]);
    assert_eq!(scene.stop().gaps, 1, "the end of the carrier alone is one");
}

#[test]
fn connections_whose_ends_are_announced_together_are_replaced_in_turn() {
    let mut scene = Scene::new(2);
    scene.expect(&["connected 0", "connected 1"]);
    scene.scripts[0].push("m");
    scene.expect(&["maintenance 0", "connected 2"]);
    // Its successor is up, so that the first connection can be the successor of the second one.
    scene.scripts[1].push("m");
    scene.expect(&["maintenance 1", "disconnected 0", "connected 0"]);
    scene.scripts[1].push_step(ScriptStep::Lost("closed"));
    scene.expect(&["disconnected 1"]);
    assert_eq!([0, 1, 2].map(|index| scene.scripts[index].state().connects), [2, 1, 1]);
}

#[test]
fn an_ending_connection_that_is_lost_early_is_not_made_again() {
    let mut scene = Scene::new(1);
    scene.expect(&["connected 0"]);
    scene.scripts[0].push("m");
    scene.scripts[0].push_step(ScriptStep::Lost("closed"));
    let taken = scene.take_until(|taken| taken.iter().any(|event| event.starts_with("connected")));
    assert!(taken.contains(&"disconnected 0".to_owned()), "{taken:?}");
    let connects: u64 = scene.scripts.iter().map(|script| script.state().connects).sum();
    assert_eq!(connects, 2, "one connection carries");
}

#[test]
fn events_of_the_feed_are_published_and_bad_frames_are_counted() {
    let mut scene = Scene::with(1, |config| FeedRelayConfig { silence_ns: 1, ..config });
    scene.expect(&["connected 0", "silence"]);
    scene.scripts[0].push_step(ScriptStep::ClockOffset(-5));
    scene.expect(&["offset 0 -5"]);
    // Frames without market data do not end a silence.
    scene.scripts[0].push("nonsense");
    scene.scripts[0].push("q 1 1 1");
    scene.expect(&["quote 1 1", "silence"]);
    let totals = scene.stop();
    let connection = totals.connections[0];
    assert_eq!((connection.bad_frames, connection.frames, connection.clock_offset_ns), (1, 2, Some((-5, 10))));
    let reports = scene.reports.lock().unwrap().join("\n");
    assert!(reports.contains("connection 0: a frame of 8 bytes cannot be read"), "{reports}");
}

#[test]
fn a_number_that_does_not_fit_is_a_gap_of_its_instrument() {
    let mut scene = Scene::new(1);
    scene.expect(&["connected 0"]);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&SNAPSHOT_LEVELS);
    scene.scripts[0].push("q 1 20 500.5");
    scene.expect(&["gap 1 0 0"]);
    until("the request", || scene.scripts[0].state().requests == [SymbolId(1)]);
    // The last quote is known to be out of date until the next one.
    for frame in ["q 1 21 500.5", "q 2 20 500.5", "q 1 22 501", "q 1 23 501.5"] {
        scene.scripts[0].push(frame);
    }
    scene.expect(&["gap 2 0 0", "quote 1 501", "gap 1 0 0"]);
    scene.scripts[0].push("s 1 9 b500:9");
    scene.expect(&["level 1 9 b500:9 3", "valid 1"]);
    let totals = scene.stop();
    assert_eq!((totals.connections[0].bad_frames, totals.gaps), (4, 4));
    assert_eq!(scene.scripts[0].state().requests, [SymbolId(1)], "an instrument without a book has no snapshot");
}

#[test]
fn a_topic_without_a_subscriber_loses_messages_and_reports_them_to_the_next_one() {
    let mut scene = Scene::with(1, |mut config| {
        config.target.policy = Some(Policy::Fail);
        config
    });
    // The gap of all instruments, and the connection.
    scene.await_totals(|totals| totals.lost == 2);
    scene.subscribe(StartPosition::Now);
    scene.expect(&["missed 2"]);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&SNAPSHOT_LEVELS);
    scene.unsubscribe();
    scene.scripts[0].push("u 1 7 8 b500:0");
    scene.await_totals(|totals| totals.lost == 3);
    scene.subscribe(StartPosition::Now);
    scene.expect(&["missed 1", "gap 1 0 0"]);
    until("the request", || scene.scripts[0].state().requests == [SymbolId(1)]);
    scene.scripts[0].push("s 1 9 b500:9");
    scene.expect(&["level 1 9 b500:9 3", "valid 1"]);
    let reports = scene.reports.lock().unwrap().join("\n");
    assert!(reports.contains("'ticks' loses messages"), "{reports}");
}

#[test]
fn a_lost_message_breaks_every_book() {
    let mut scene = Scene::with(1, |mut config| {
        config.target.policy = Some(Policy::Fail);
        config
    });
    scene.await_totals(|totals| totals.lost == 2);
    scene.subscribe(StartPosition::Now);
    scene.expect(&["missed 2"]);
    scene.scripts[0].push(SNAPSHOT);
    scene.expect(&SNAPSHOT_LEVELS);
    scene.scripts[0].push("s 2 7 b500:2");
    scene.expect(&["level 2 7 b500:2 3", "valid 2"]);
    scene.unsubscribe();
    scene.scripts[0].push("q 3 1 1");
    scene.await_totals(|totals| totals.lost == 3);
    scene.subscribe(StartPosition::Now);
    scene.expect(&["missed 1", "gap 1 0 0", "gap 2 0 0"]);
    until("the requests", || scene.scripts[0].state().requests == [SymbolId(1), SymbolId(2)]);
}

#[test]
fn each_message_on_a_full_topic_is_received_or_counted_as_missed() {
    let mut scene = Scene::with(1, |mut config| {
        config.target.policy = Some(Policy::Fail);
        config.target.capacity_bytes = 32_768;
        config
    });
    scene.await_totals(|totals| totals.lost == 2);
    scene.subscribe(StartPosition::Now);
    let quotes = 2_000u64;
    (1..=quotes).for_each(|number| scene.scripts[0].push(&format!("q 1 {number} {number}")));
    scene.await_totals(|totals| totals.connections[0].messages == quotes);
    let count = |taken: &[String]| -> u64 {
        let count = |event: &String| event.strip_prefix("missed ").map_or(1, |missed| missed.parse::<u64>().unwrap());
        taken.iter().map(count).sum()
    };
    // The quotes, the gap of all instruments, and the event of the connection.
    let taken = scene.take_until(|taken| count(taken) > quotes + 1);
    assert_eq!(count(&taken), quotes + 2);
    let totals = scene.stop();
    assert!(totals.lost > 2 && totals.quotes + totals.lost == quotes + 2, "{totals}");
}

#[test]
fn a_file_of_frames_gives_the_same_messages_again() {
    for name in ["frames.txt", "frames.txt.gz"] {
        let mut scene = Scene::with(1, |config| {
            let folder = config.url.strip_prefix("file://").expect("a folder").to_owned();
            FeedRelayConfig { raw: Some(format!("{folder}/{name}").into()), ..config }
        });
        for frame in ["q 1 20 500", SNAPSHOT, "nonsense", "u 1 9 10 b500:4", "s 1 10 b500:1"] {
            scene.scripts[0].push(frame);
        }
        scene.scripts[0].push_step(ScriptStep::Binary("t 1 30 500".to_owned()));
        scene.await_totals(|totals| totals.trades == 1);
        let live_totals = scene.stop();
        assert_eq!((live_totals.raw_frames, live_totals.raw_missing), (6, 0), "{name}");
        let live = scene.take_until(|taken| taken.iter().filter(|event| event.starts_with("gap")).count() == 2);
        let (replayed, totals) = replay(&scene.folder, name, live.len() + 1).expect("the file is good");
        assert_eq!((replayed[0].as_str(), &replayed[1..]), ("gap all 0 0", &live[..]), "{name}");
        assert_eq!((totals.messages, totals.connections[0].bad_frames), (live_totals.messages, 1), "{name}");
    }
}

#[test]
fn a_file_with_reconnects_gives_the_same_books_again() {
    let mut scene = Scene::with(1, |config| {
        let folder = config.url.strip_prefix("file://").expect("a folder").to_owned();
        FeedRelayConfig { raw: Some(format!("{folder}/frames.txt").into()), ..config }
    });
    for (snapshot, update) in [(SNAPSHOT, "u 1 7 8 b500:0"), ("s 1 40 b500:2 a501:3", "u 1 40 41 b500:0")] {
        for frame in [snapshot, "t 1 30 500", update] {
            scene.scripts[0].push(frame);
        }
        scene.scripts[0].push_step(ScriptStep::Lost("closed"));
    }
    let is_third = |taken: &[String]| taken.iter().filter(|event| *event == "connected 0").count() == 3;
    let mut live = scene.take_until(is_third);
    scene.stop();
    live.extend(scene.take_until(|taken| taken.contains(&"disconnected 0".to_owned())));
    let (replayed, _) = replay(&scene.folder, "frames.txt", live.len() + 1).expect("the file is good");
    assert_eq!(replayed[1..], live, "left: replayed, right: live");
}

#[test]
fn a_snapshot_in_a_file_without_connects_begins_a_valid_book_anew() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lines = ["s 1 7 b500:2", "u 1 7 8 b500:0", "s 1 40 b500:3", "u 1 40 41 b500:0"];
    let text: String = (1..).zip(lines).map(|(number, line)| format!("{number} {line}\n")).collect();
    fs::write(folder.path().join("frames"), text).expect("the folder is ours");
    let expected = [
        "gap all 0 0",
        "connected 0",
        "level 1 7 b500:2 3",
        "valid 1",
        "level 1 8 b500:0 2",
        "gap 1 0 0",
        "level 1 40 b500:3 3",
        "valid 1",
        "level 1 41 b500:0 2",
        "disconnected 0",
        "gap 1 0 0",
    ];
    assert_eq!(replay(&folder, "frames", expected.len()).expect("the file is good").0, expected);
}

#[test]
fn each_connection_has_a_file_of_its_own() {
    let mut scene = Scene::with(2, |config| {
        let folder = config.url.strip_prefix("file://").expect("a folder").to_owned();
        FeedRelayConfig { raw: Some(format!("{folder}/frames.txt").into()), ..config }
    });
    scene.expect(&["connected 0", "connected 1"]);
    scene.scripts[0].push("q 1 1 1");
    scene.scripts[1].push("q 2 2 2");
    scene.await_totals(|totals| totals.quotes == 2);
    scene.stop();
    for (file, frame) in [("frames.txt", "q 1 1 1"), ("frames.1.txt", "q 2 2 2")] {
        let text = fs::read_to_string(scene.folder.path().join(file)).expect("it was written");
        let texts: Vec<&str> = text.lines().filter_map(|line| line.split_once(' ')).map(|(_, text)| text).collect();
        assert_eq!(texts, ["#connect", frame], "{file}");
    }
    assert!(!scene.folder.path().join("frames.2.txt").exists(), "a spare connection leaves no file");
}

#[test]
fn a_file_without_a_frame_is_refused_and_an_existing_file_is_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("empty"), "hello\n").expect("the folder is ours");
    let error = replay(&folder, "empty", 0).expect_err("it has no frame");
    assert!(matches!(error, RelayError::NoFrames(_)) && error.is_usage(), "{error}");
    let error = replay(&folder, "missing", 0).expect_err("it does not exist");
    assert!(error.to_string().contains("missing cannot be read"), "{error}");
}

#[test]
fn a_count_of_messages_ends_the_carrier() {
    let mut scene = Scene::with(1, |config| FeedRelayConfig { count: Some(4), ..config });
    for frame in ["q 1 1 1", "q 1 2 2", "q 1 3 3"] {
        scene.scripts[0].push(frame);
    }
    let totals = scene.await_end();
    scene.expect(&["connected 0", "quote 1 1", "quote 1 2", "disconnected 0"]);
    assert_eq!(totals.quotes, 2);
}
