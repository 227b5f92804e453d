//! Drop copies of a running OMS: as a session by the command line, and as a topic on a real broker, over a kill -9.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tickpath_bus::{StartPosition, Subscriber, SubscriptionEvent};
use tickpath_clock::Wait;
use tickpath_market::{ExecutionReport, Kind};
use tickpath_oms_protocol::{CopyTrailer, FrameKind as Word};
use zerocopy::FromBytes;

use crate::desk::Desk;
use crate::logs::{Running, until};
use crate::server::RedisServer;

/// Messages of a subscriber that follows the rules of a drop-copy topic.
#[derive(Default)]
struct ReceivedCopy {
    /// Each report by its place: the session, and its number there.
    reports: BTreeMap<u64, (u16, u64)>,
    /// Places from which on earlier messages no longer counted.
    again: Vec<u64>,
    doubles: usize,
}

/// Receives all messages of the topic.
fn receive_copies(topic: &mut dyn Subscriber, heard: &mut ReceivedCopy) {
    let mut take = |event: SubscriptionEvent<'_>| {
        let SubscriptionEvent::Message(message) = event else { return };
        let ReceivedCopy { reports, again, doubles } = &mut *heard;
        if message.kind == Word::CopyRewind.code() {
            let trailer = CopyTrailer::read_from_bytes(message.payload).expect("a trailer alone");
            reports.split_off(&trailer.place);
            again.push(trailer.place);
            return;
        }
        assert_eq!(message.kind, Kind::ExecutionReport.code());
        let (report, rest) = ExecutionReport::read_from_prefix(message.payload).expect("a report comes first");
        let (trailer, _) = CopyTrailer::read_from_prefix(rest).expect("then its trailer");
        assert_eq!(report.account.0, 1);
        let CopyTrailer { place, from, session, session_number, .. } = trailer;
        let behind = reports.keys().next_back().map_or(from, |last| last + 1);
        assert!(from <= behind, "place {place} is behind {from}, and {behind} is not there");
        *doubles += usize::from(reports.insert(place, (session, session_number)).is_some());
    };
    while topic.poll(64, &mut take).expect("the broker is there") > 0 {}
}

/// Receives until so many reports are there, and checks that there are no more.
fn receive_all(topic: &mut dyn Subscriber, heard: &mut ReceivedCopy, count: usize) {
    until(
        || {
            receive_copies(topic, heard);
            heard.reports.len() == count
        },
        || format!("{count} reports"),
    );
}

/// A drop copy as a topic in files.
struct Files {
    url: String,
    journal: PathBuf,
}

impl Files {
    fn of(desk: &Desk) -> Self {
        let url = desk.line("file://@/topics");
        let section = format!("[[drop_copy]]\nurl = \"{url}\"\ntopic = \"reports\"\naccounts = [\"1*\"]\n\n[core]\n");
        desk.change("oms.toml", "[core]\n", &section);
        Self { url, journal: desk.path().join("journal") }
    }

    /// Subscribes to the topic, once the OMS has made it.
    fn topic(&self) -> Box<dyn Subscriber> {
        let connection = tickpath_bus::connect(&self.url).expect("it is a folder");
        connection.subscriber("reports", StartPosition::Oldest, Wait::Yield).expect("anybody may")
    }

    /// Returns the file with the topic's noted progress.
    fn noted(&self) -> PathBuf {
        let files = fs::read_dir(self.journal.join("copies")).into_iter().flatten().flatten().map(|file| file.path());
        let mut notes = files.filter(|file| file.extension().is_none_or(|kind| kind != "new"));
        notes.next().unwrap_or_default()
    }

    /// Returns the note: the journal, the place, the sum of the report before it, and the place behind the last
    /// message.
    fn note(&self) -> Option<[u64; 4]> {
        let text = fs::read_to_string(self.noted()).ok()?;
        let numbers: Option<Vec<u64>> = text.split_whitespace().map(|number| number.parse().ok()).collect();
        numbers?.try_into().ok()
    }
}

#[test]
fn a_topic_has_every_report_at_least_once_after_any_kill() {
    let redis = RedisServer::start();
    let desk = Desk::new();
    let url = format!("{}?streams", redis.url());
    let section = format!("[[drop_copy]]\nurl = \"{url}\"\ntopic = \"oms.reports\"\naccounts = [\"1*\"]\n\n[core]\n");
    desk.change("oms.toml", "[core]\n", &section);
    let exchange = desk.exchange();
    let connection = tickpath_bus::connect(&url).expect("it was just started");
    let mut topic = connection.subscriber("oms.reports", StartPosition::Oldest, Wait::Yield).expect("anybody may");
    let mut oms = desk.oms();
    exchange.await_words("serving the OMS");
    let mut heard = ReceivedCopy::default();
    for id in 1..=6 {
        let ran = desk.order(&format!("new BTCUSDT buy 1 60000 --session 2 --id {id}"));
        assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
        if id % 2 == 0 {
            // The last message may be in flight to the broker.
            drop(oms);
            oms = desk.oms();
        }
    }
    // Two reports an order, with consecutive numbers.
    receive_all(topic.as_mut(), &mut heard, 12);
    let numbers: Vec<(u16, u64)> = heard.reports.values().copied().collect();
    assert_eq!(numbers, (0..12).map(|number| (2, number)).collect::<Vec<_>>(), "{} doubles", heard.doubles);
    drop(oms);
    // Progress is noted in a file, beside at most a draft of it.
    let state = fs::read_dir(desk.path().join("journal/copies"));
    assert!(state.is_err() || state.is_ok_and(|files| files.count() <= 2));
}

#[test]
fn a_drop_copy_prints_the_reports_of_other_sessions() {
    let desk = Desk::new();
    fs::write(desk.path().join("back.password"), "a good password\n").expect("the folder is ours");
    let add =
        "oms user add --config @/oms.toml --role read --accounts 1 --sessions 40 --password-file @/back.password back";
    let ran = desk.tickpath(add);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let ran = desk.tickpath("drop-copy --config @/oms.toml --user back");
    assert!(ran.code == Some(2) && ran.err.contains("user 'back' has no drop copy"), "{}{}", ran.out, ran.err);
    desk.change("users.toml", "sessions = [40]", "sessions = [40]\ndrop_copy = true");
    let files = Files::of(&desk);
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    // Two copies of one user, and a topic.
    let copies = [0, 1].map(|_| {
        let copy = Running::start(&desk.line("drop-copy --config @/oms.toml --user back --all --count 4"));
        copy.await_words("reports to other sessions");
        copy
    });
    let ran = desk.order("cancel 7 --session 2");
    assert!(ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    for copy in copies {
        let ran = copy.end();
        let lines: Vec<&str> = ran.out.lines().collect();
        let words = ["pending_new pending_new", "new new", "pending_cancel pending_cancel", "canceled canceled"];
        assert_eq!(lines.len(), words.len(), "{}{}", ran.out, ran.err);
        for (line, words) in lines.iter().zip(words) {
            assert!(line.contains(" session=2 ") && line.contains(words), "{line}");
        }
    }
    let (mut topic, mut heard) = (files.topic(), ReceivedCopy::default());
    receive_all(topic.as_mut(), &mut heard, 4);
}

#[test]
fn a_topic_with_another_history_reports_it_and_restarts_with_the_day() {
    let desk = Desk::new();
    let files = Files::of(&desk);
    let exchange = desk.exchange();
    let mut oms = desk.oms();
    exchange.await_words("serving the OMS");
    let (mut topic, mut heard) = (files.topic(), ReceivedCopy::default());
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    receive_all(topic.as_mut(), &mut heard, 2);
    let (day, behind) = (heard.again[0], heard.reports.keys().next_back().expect("there are two") + 1);
    let note = || files.note().filter(|&[_, place, ..]| place == behind);
    until(|| note().is_some(), || format!("a note of {behind}"));
    let [journal, place, sum, from] = note().expect("it was just there");
    // A restart resumes from a place known to be safe; the reports behind may be others after a loss of power.
    drop(oms);
    oms = desk.oms();
    let ran = desk.order("cancel 7 --session 2");
    assert!(ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    receive_all(topic.as_mut(), &mut heard, 4);
    assert_eq!((heard.doubles, &heard.again[..]), (0, &[day, behind][..]));
    assert!(!oms.err().contains("drop copy"), "{}", oms.err());
    // An older note, another history, another journal, and half a note.
    for (note, again, says) in [
        (format!("{journal} {place} {sum} {from}"), behind, false),
        (format!("{journal} {place} {} {from}", sum ^ 1), day, true),
        (format!("{} {place} {sum} {from}", journal ^ 1), day, true),
        (format!("{journal} {place}"), day, false),
    ] {
        drop(oms);
        fs::write(files.noted(), format!("{note}\n")).expect("the folder is ours");
        let before = heard.again.len();
        oms = desk.oms();
        until(
            || {
                receive_copies(topic.as_mut(), &mut heard);
                heard.again.len() > before && heard.reports.len() == 4
            },
            || format!("four reports behind '{note}'"),
        );
        assert_eq!((heard.doubles, &heard.again[before..]), (0, &[again][..]), "{note}");
        assert_eq!(oms.err().contains("the OMS publishes the whole day again"), says, "{}", oms.err());
    }
}

#[test]
fn a_topic_continues_though_its_progress_cannot_be_saved() {
    let desk = Desk::new();
    let files = Files::of(&desk);
    let exchange = desk.exchange();
    drop(desk.oms());
    let _ = fs::remove_dir_all(files.journal.join("copies"));
    fs::write(files.journal.join("copies"), "no folder").expect("the folder is ours");
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let (mut topic, mut heard) = (files.topic(), ReceivedCopy::default());
    for id in 1..=2 {
        let ran = desk.order(&format!("new BTCUSDT buy 1 60000 --session 2 --id {id}"));
        assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
        oms.await_words("the progress cannot be written");
    }
    receive_all(topic.as_mut(), &mut heard, 4);
    // The first OMS may have begun a day, too.
    assert!(heard.doubles == 0 && !heard.again.is_empty(), "{:?}", heard.again);
    assert_eq!(oms.err().matches("the progress cannot be written").count(), 1, "{}", oms.err());
}

#[test]
fn a_topic_publishes_nothing_of_a_history_set_aside_at_the_start() {
    let (desk, other) = (Desk::new(), Desk::new());
    let files = Files::of(&desk);
    let exchange = desk.exchange();
    drop(desk.oms());
    drop(other.oms());
    // As if another host's history had been restored there.
    let reports = |desk: &Desk| desk.path().join("journal/reports");
    fs::remove_dir_all(reports(&desk)).expect("an OMS has made it");
    fs::rename(reports(&other), reports(&desk)).expect("both are of this disk");
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    let (mut topic, mut heard) = (files.topic(), ReceivedCopy::default());
    receive_all(topic.as_mut(), &mut heard, 2);
    assert!(!oms.err().contains("drop copy"), "{}", oms.err());
}

#[test]
fn a_drop_copy_from_another_host_refuses_a_user_without_a_drop_copy() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    // There is no users file there.
    let there = tempfile::tempdir().expect("a temporary folder can be made");
    for file in ["oms.toml", "instruments.csv", "trader.password"] {
        fs::copy(desk.path().join(file), there.path().join(file)).expect("the folder is ours");
    }
    let config = there.path().join("oms.toml");
    let ran = desk.tickpath(&format!("drop-copy --config {} --oms unix://@/oms.sock", config.display()));
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
    assert!(ran.err.contains("'trader' has no drop copy") && ran.err.contains("drop_copy = true"), "{}", ran.err);
}
