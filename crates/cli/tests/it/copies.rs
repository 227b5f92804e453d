//! Drop copies of a running OMS: as a session by the command line, and as a topic on a real broker, over a kill -9.

use std::collections::BTreeMap;
use std::fs;

use tickpath_bus::{Event, Start, Subscriber};
use tickpath_clock::Wait;
use tickpath_market::{ExecutionReport, Kind};
use tickpath_session::CopyTrailer;
use zerocopy::FromBytes;

use crate::desk::Desk;
use crate::logs::{Running, until};
use crate::server::RedisServer;

/// Each report by its place: the place before which nothing is missing, the session, and its number there.
type Heard = BTreeMap<u64, (u64, u16, u64)>;

/// Takes what the topic has; says how many were doubles.
fn hear(topic: &mut dyn Subscriber, heard: &mut Heard) -> usize {
    let mut doubles = 0;
    let mut take = |event: Event<'_>| {
        let Event::Message(message) = event else { return };
        assert_eq!(message.kind, Kind::ExecutionReport.code());
        let (report, rest) = ExecutionReport::read_from_prefix(message.payload).expect("a report comes first");
        let (trailer, _) = CopyTrailer::read_from_prefix(rest).expect("then its trailer");
        assert_eq!(report.account.0, 1);
        let CopyTrailer { place, from, session, session_number, .. } = trailer;
        doubles += usize::from(heard.insert(place, (from, session, session_number)).is_some());
    };
    while topic.poll(64, &mut take).expect("the broker is there") > 0 {}
    doubles
}

#[test]
fn a_topic_has_every_report_at_least_once_whoever_is_killed() {
    let redis = RedisServer::start();
    let desk = Desk::new();
    let url = format!("{}?streams", redis.url());
    let section = format!("[[drop_copy]]\nurl = \"{url}\"\ntopic = \"oms.reports\"\naccounts = [\"1*\"]\n\n[core]\n");
    desk.change("oms.toml", "[core]\n", &section);
    let exchange = desk.exchange();
    let connection = tickpath_bus::connect(&url).expect("it was just started");
    let mut topic = connection.subscriber("oms.reports", Start::Oldest, Wait::Yield).expect("anybody may");
    let mut oms = desk.oms();
    exchange.await_words("serving the OMS");
    let (mut heard, mut doubles) = (Heard::new(), 0);
    for id in 1..=6 {
        let ran = desk.order(&format!("new BTCUSDT buy 1 60000 --session 2 --id {id}"));
        assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
        if id % 2 == 0 {
            // What was said last may be on its way to the broker.
            drop(oms);
            oms = desk.oms();
        }
    }
    // Two reports an order, each with the number that follows the one before.
    until(
        || {
            doubles += hear(topic.as_mut(), &mut heard);
            heard.len() == 12
        },
        || "twelve reports".to_owned(),
    );
    let numbers: Vec<(u16, u64)> = heard.values().map(|&(_, session, number)| (session, number)).collect();
    assert_eq!(numbers, (0..12).map(|number| (2, number)).collect::<Vec<_>>(), "{doubles} doubles");
    drop(oms);
    // A note of where it stood says as much as is published.
    let state = fs::read_dir(desk.path().join("journal/copies"));
    assert!(state.is_err() || state.is_ok_and(|files| files.count() <= 2));
}

#[test]
fn a_drop_copy_prints_what_others_are_told() {
    let desk = Desk::new();
    fs::write(desk.path().join("back.password"), "a good password\n").expect("the folder is ours");
    let add =
        "oms user add --config @/oms.toml --role read --accounts 1 --sessions 40 --password-file @/back.password back";
    let ran = desk.tickpath(add);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let ran = desk.tickpath("drop-copy --config @/oms.toml --user back");
    assert!(ran.code == Some(2) && ran.err.contains("'back' hears nothing of others"), "{}{}", ran.out, ran.err);
    desk.change("users.toml", "sessions = [40]", "sessions = [40]\ndrop_copy = true");
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    let copy = Running::start(&desk.line("drop-copy --config @/oms.toml --user back --all --count 4"));
    copy.await_words("what others are told");
    let ran = desk.order("cancel 7 --session 2");
    assert!(ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    let ran = copy.end();
    let lines: Vec<&str> = ran.out.lines().collect();
    let words = ["pending_new pending_new", "new new", "pending_cancel pending_cancel", "canceled canceled"];
    assert_eq!(lines.len(), words.len(), "{}{}", ran.out, ran.err);
    for (line, words) in lines.iter().zip(words) {
        assert!(line.contains(" session=2 ") && line.contains(words), "{line}");
    }
}
