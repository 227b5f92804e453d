//! The OMS as a server among hostile clients that flood, fall silent, send nonsense or do not read, and with a damaged
//! history. Well-behaved clients are served meanwhile.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tickpath_clock::HostClock;
use tickpath_market::ExecutionReport;
use tickpath_oms_client::{Client as Remote, ClientEvent, Config as RemoteConfig, Since};
use tickpath_oms_core::{DayEnd, RecordKind};
use tickpath_oms_protocol::{FrameHeader, FrameKind as Word, Query, write_frame};
use tickpath_oms_runtime::{Notice, RequestRate};
use tickpath_oms_server::{ServerConfig, ServerEvent};

use super::raw_client::{PATIENCE, RawClient};
use super::sessions::{OmsFixture, RecordingClient};
use super::*;

const LAYOUTS: [Layout; 2] = [Layout::Inline, Layout::Split];
impl OmsFixture {
    /// Connects a client that resumes from this position.
    fn since(&self, since: Since) -> RecordingClient {
        self.remote("anna", since)
    }

    /// Checks that another session trades undisturbed.
    pub(crate) fn trades(&self, id: u64) {
        let url = format!("unix://{}", self.socket().display());
        let config = RemoteConfig { session: Some(1), ..RemoteConfig::new(url, "anna", "anna's password") };
        let mut client = Remote::connect(config).expect("it gets in");
        client.send(&Request::New(limit(Side::Buy, id, 101, 1))).expect("it is connected");
        let (mut heard, from) = (0, self.clock.ticks());
        while heard < 3 {
            client.wait(1_000_000);
            client.poll(|event| heard += usize::from(matches!(event, ClientEvent::Report { .. }))).expect("it stays");
            assert!(self.clock.ns_between(from, self.clock.ticks()) < 20 * SECOND as i64, "order {id} is not filled");
        }
        client.close();
    }

    fn end_day(&self) {
        let mut boss = self.remote("boss", Since::Now);
        let day = DayEnd::default();
        boss.client.admin_command(RecordKind::DayEnd.code(), day.as_bytes()).expect("it is connected");
        let archive = self.config.journal.path.dir().join("reports/archive");
        let days = || fs::read_dir(&archive).map_or(0, Iterator::count);
        let before = days();
        boss.until("the day ends", |_| days() > before);
        boss.client.close();
    }

    fn history(&self) -> PathBuf {
        self.config.journal.path.dir().join("reports")
    }

    pub(crate) fn event(&self, what: &str, mut is_it: impl FnMut(&ServerEvent) -> bool) {
        let events = &self.running.as_ref().expect("it runs").events;
        loop {
            let event = events.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{what} was not told: {e}"));
            if is_it(&event) {
                return;
            }
        }
    }
}

impl RecordingClient {
    fn connections(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, ClientEvent::Connected(_))).count()
    }
}

fn rests(id: u64) -> NewOrder {
    limit(Side::Buy, id, 95, 1)
}

fn frame(kind: u8, number: u64, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, kind, number, 0, message);
    out
}

#[test]
fn an_invalid_frame_ends_only_its_own_connection() {
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        let order = rests(1);
        let head = |length: u32, fixed: u16| FrameHeader {
            length,
            fixed,
            kind: Kind::NewOrder.code(),
            ..FrameHeader::default()
        };
        let malformed = NewOrder { side: 9, ..order };
        let cases: [(&str, Vec<u8>); 8] = [
            ("not of this protocol", head(u32::MAX, 0).as_bytes().to_vec()),
            ("not of this protocol", head(8, 9).as_bytes().to_vec()),
            ("not of this protocol", b"GET / HTTP/1.1\r\nHost: oms\r\n\r\n".to_vec()),
            ("requests are lost", frame(Kind::NewOrder.code(), 7, order.as_bytes())),
            ("a code in it is unknown", frame(Kind::NewOrder.code(), 0, malformed.as_bytes())),
            ("not one that this user may send", frame(Kind::ExecutionReport.code(), 0, &[0; 104])),
            ("not one that this user may send", frame(Word::Welcome.code(), 0, &[0; 56])),
            ("not one that this user may send", frame(RecordKind::Kill.code(), 0, &[0; 64])),
        ];
        for (id, (why, bytes)) in (10..).zip(cases) {
            let mut raw = RawClient::login(&oms, "anna", 0, 0);
            assert_eq!(raw.welcome.next_request, 0, "nothing of all this was taken");
            raw.stream.write_all(&bytes).expect("it is heard");
            let output = raw.farewell();
            assert!(output.contains(why), "{output}, and not: {why}");
            oms.trades(id);
        }
        // A request that was taken already is dropped, and the later ones are processed.
        let mut raw = RawClient::login(&oms, "anna", 0, 0);
        for (number, id) in [(0, 1), (0, 1), (0, 3), (1, 2)] {
            raw.say(Kind::NewOrder.code(), number, rests(id).as_bytes(), &[]);
        }
        let reports: Vec<u64> = (0..4)
            .map(|_| {
                ExecutionReport::read_from_bytes(&raw.hear().expect("a report").1).expect("whole").client_order_id.0
            })
            .collect();
        assert!(!reports.contains(&3) && reports.iter().filter(|id| **id == 2).count() == 2, "{reports:?}");
    }
}

#[test]
fn a_client_too_old_for_a_refusal_is_disconnected() {
    let oms = OmsFixture::new(Layout::Split);
    let mut boss = oms.remote("boss", Since::Now);
    for version in [4, 1] {
        let mut raw = RawClient::login_at(&oms, "eve", 3, 0, version);
        let before = boss.status().journal_records;
        let request = |number| frame(Kind::NewOrder.code(), number, rests(number + 1).as_bytes());
        raw.stream.write_all(&(0..100).flat_map(request).collect::<Vec<u8>>()).expect("it is heard");
        let output = raw.farewell();
        assert!(output.contains("only reads"), "version {version}: {output}");
        assert!(boss.status().journal_records < before + 50, "each request is in the journal");
    }
}

#[test]
fn half_open_connections_block_no_logon() {
    let oms = OmsFixture::new(Layout::Split);
    let mut open: Vec<UnixStream> = (0..400).map(|_| RawClient::connect(&oms)).collect();
    // A connection that sends its logon byte by byte counts as silent.
    open[399].write_all(&[80]).expect("it is heard");
    oms.trades(1);
    let gone = open[0].read(&mut [0; 1]);
    assert!(matches!(&gone, Ok(0)) || gone.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset), "the oldest go");
    let left = open[399].read(&mut [0; 1]);
    assert!(matches!(left, Ok(0)), "its time is over: {left:?}");
}

#[test]
fn a_flooding_client_waits_for_tokens_and_is_not_timed_out() {
    const ORDERS: u64 = 160;
    for layout in LAYOUTS {
        let mut oms = OmsFixture::new(layout);
        oms.stop();
        oms.config.trading.sessions[0].rate = RequestRate { per_second: 50, burst: 10 };
        oms.start();
        let from = oms.clock.ticks();
        // Half of them over another connection, which has no token bucket of its own.
        for half in [0..ORDERS / 2, ORDERS / 2..ORDERS] {
            let mut raw = RawClient::login(&oms, "anna", 0, 600);
            for number in half.clone() {
                raw.say(Kind::NewOrder.code(), number, rests(number + 1).as_bytes(), &[]);
            }
            oms.trades(1_000 + half.end);
            let mut reports = 0;
            while reports < half.end * 2 {
                let (kind, _, text) = raw.hear().expect("it stays connected");
                assert_ne!(kind, Word::Logout.code(), "{}", String::from_utf8_lossy(&text));
                reports += u64::from(kind == Kind::ExecutionReport.code());
            }
        }
        let took = oms.clock.ns_between(from, oms.clock.ticks());
        assert!(took > 2_700_000_000, "fifty a second, ten at once, took {took} ns for {ORDERS}");
    }
}

#[test]
fn a_client_that_queries_and_never_reads_costs_no_memory() {
    const QUESTIONS: usize = 250_000;
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        let mut raw = RawClient::login(&oms, "eve", 3, 60_000);
        raw.stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a socket");
        let question = frame(Word::Query.code(), 0, Query { what: Query::STATUS, ..Query::default() }.as_bytes());
        let all = question.repeat(QUESTIONS);
        let mut sent = 0;
        let ended = loop {
            match raw.stream.write(&all[sent..]) {
                Ok(bytes) if sent + bytes < all.len() => sent += bytes,
                Ok(_) => break None,
                Err(e) => break Some(e.kind()),
            }
        };
        assert_eq!(ended, Some(ErrorKind::WouldBlock), "the OMS takes all questions of who reads no answers");
        oms.trades(1);
        for _ in 0..sent / question.len() {
            assert_eq!(raw.hear().expect("an answer").0, Word::Answer.code());
        }
    }
}

#[test]
fn a_slow_reader_catches_up_even_over_a_day_end() {
    const ORDERS: u64 = 12_000;
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        let mut raw = RawClient::login(&oms, "anna", 0, 60_000);
        for number in 0..ORDERS {
            raw.say(Kind::NewOrder.code(), number, rests(number + 1).as_bytes(), &[]);
        }
        let mut eve = oms.remote("eve", Since::Now);
        let working = |eve: &mut RecordingClient, orders| while eve.status().working != orders {};
        working(&mut eve, ORDERS);
        oms.trades(1);
        oms.end_day();
        raw.say(Kind::NewOrder.code(), ORDERS, rests(ORDERS + 1).as_bytes(), &[]);
        let (mut next, mut last) = (0, 0);
        while last != ORDERS + 1 {
            let Some(frame) = raw.inbox.next().expect("frames") else {
                let bytes = raw.stream.read(raw.inbox.free_space()).expect("more comes");
                raw.inbox.advance(bytes);
                assert!(bytes > 0, "it stays connected");
                continue;
            };
            if frame.kind == Kind::ExecutionReport.code() {
                assert_eq!(frame.sequence, next, "{layout:?}: each report once, in order");
                let report: ExecutionReport = frame.message();
                (next, last) = (next + 1, report.client_order_id.0);
            }
        }
    }
}

#[test]
fn a_client_ahead_of_the_history_receives_the_day() {
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        let mut client = oms.since(Since::Start);
        client.send(limit(Side::Buy, 1, 101, 1));
        client.await_reports(3);
        let Since::Report { journal, number, last_sum } = client.client.since() else { panic!("it has heard") };
        let all = std::mem::take(&mut client.heard);
        client.client.close();
        assert_eq!(number, 3);
        for (since, first) in [
            (Since::Report { journal, number: 3, last_sum }, 3),
            (Since::Report { journal, number: 2, last_sum: 0 }, 2),
            (Since::Report { journal, number: 3, last_sum: !last_sum }, 0),
            (Since::Report { journal, number: 4, last_sum }, 0),
            (Since::Report { journal, number: u64::MAX - 1, last_sum }, 0),
            (Since::Report { journal: journal ^ 1, number: 3, last_sum }, 0),
        ] {
            let mut client = oms.since(since);
            client.await_reports(3 - first);
            assert!(client.heard == all[first..], "{since:?}");
            client.client.close();
        }
    }
}

#[test]
fn a_logout_frees_the_session() {
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        for _ in 0..50 {
            let client = oms.since(Since::Now);
            assert_eq!(client.client.welcome().session, 0, "{layout:?}");
            client.client.close();
        }
    }
}

#[test]
fn users_change_while_the_oms_runs() {
    let oms = OmsFixture::new(Layout::Split);
    let file = oms.folder.path().join("users.toml");
    let good = fs::read_to_string(&file).expect("it is there");
    let anna = oms.since(Since::Start);
    fs::write(&file, "[[user]\nname =").expect("it is ours");
    oms.event("a broken file", |event| matches!(event, ServerEvent::UsersNotReloaded(_)));
    oms.trades(1);
    fs::write(&file, good.replacen("role", "disabled = true\nrole", 1)).expect("it is ours");
    let url = format!("unix://{}", oms.socket().display());
    let config = RemoteConfig { session: Some(1), ..RemoteConfig::new(url, "anna", "anna's password") };
    oms.event("anna is sent away", |event| {
        matches!(event, ServerEvent::Disconnected { user, why, .. } if user == "anna" && why.contains("rights have changed"))
    });
    assert!(Remote::connect(config.clone()).is_err(), "nor comes in again");
    drop(anna);
    fs::write(&file, &good).expect("it is ours");
    let clock = HostClock::get().expect("this host has a clock");
    let from = clock.ticks();
    while Remote::connect(config.clone()).is_err() {
        assert!(clock.ns_between(from, clock.ticks()) < 20 * SECOND as i64, "anna never comes in again");
    }
}

#[test]
fn a_damaged_history_is_rebuilt_from_the_journal() {
    type Harm = (&'static str, fn(&std::path::Path));
    let harms: [Harm; 8] = [
        ("nothing", |_| {}),
        ("it is yesterday's", |history| {
            for name in ["data", "control"] {
                fs::copy(history.join("../yesterday").join(name), history.join(name)).unwrap();
            }
        }),
        ("it is gone", |history| fs::remove_dir_all(history).unwrap()),
        ("its control is gone", |history| fs::remove_file(history.join("control")).unwrap()),
        ("its data is gone", |history| fs::remove_file(history.join("data")).unwrap()),
        ("it is empty", |history| fs::write(history.join("data"), "").unwrap()),
        ("it is cut", |history| {
            let data = fs::OpenOptions::new().write(true).open(history.join("data")).unwrap();
            data.set_len(data.metadata().unwrap().len() / 2).unwrap();
        }),
        ("it is something else", |history| fs::write(history.join("data"), [0xff; 1 << 16]).unwrap()),
    ];
    for (what, harm) in harms {
        let mut oms = OmsFixture::new(Layout::Inline);
        let mut client = oms.since(Since::Start);
        let yesterday = oms.history().join("../yesterday");
        fs::create_dir_all(&yesterday).unwrap();
        for name in ["data", "control"] {
            fs::copy(oms.history().join(name), yesterday.join(name)).unwrap();
        }
        oms.end_day();
        for id in 1..=2 {
            client.send(limit(Side::Buy, id, 101, 1));
            client.await_reports(3 * id as usize);
        }
        oms.stop();
        harm(&oms.history());
        oms.start();
        // The history is whole without its control file.
        if !["nothing", "its control is gone"].contains(&what) {
            oms.event(what, |event| matches!(event, ServerEvent::Notice(Notice::HistoryLost(_))));
        }
        client.until(what, |client| client.connections() == 2);
        client.send(limit(Side::Buy, 3, 101, 1));
        client.await_reports(9);
        let counts = client.client.counts();
        assert_eq!((counts.gaps, counts.duplicates, client.numbers().len()), (0, 0, 9), "{what}");
        let all = std::mem::take(&mut client.heard);
        client.client.close();
        let mut again = oms.since(Since::Start);
        again.await_reports(9);
        assert!(again.heard == all, "{what}: not the same");
        oms.end_day();
        again.send(limit(Side::Buy, 4, 101, 1));
        again.until(what, |client| client.numbers().last() == Some(&11));
        oms.stop();
        oms.start();
        again.until(what, |client| client.connections() == 2);
        again.send(limit(Side::Buy, 5, 101, 1));
        again.await_reports(15);
        assert_eq!(again.client.counts().gaps, 0, "{what}");
    }
}

#[test]
fn a_history_ahead_of_its_journal_is_rebuilt() {
    // As after a power loss: the journal has lost its tail, the history has not, and the lanes are gone.
    let mut oms = OmsFixture::new(Layout::Inline);
    let mut client = oms.since(Since::Start);
    client.send(rests(1));
    client.await_reports(2);
    oms.stop();
    let journal = oms.config.journal.path.dir().to_owned();
    let kept: Vec<(PathBuf, Vec<u8>)> =
        ["data", "control"].map(|name| journal.join(name)).map(|file| (file.clone(), fs::read(file).unwrap())).into();
    oms.start();
    client.until("it is there again", |client| client.connections() == 2);
    client.send(rests(2));
    client.await_reports(4);
    oms.stop();
    kept.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
    oms.config.lanes.remove().expect("they are ours");
    oms.start();
    let said_again = |event: &ClientEvent| matches!(event, ClientEvent::Resent { from: 0, to: 4 });
    client.until("it is told", |client| client.events.iter().any(said_again));
    client.until("it is said again", |client| client.heard.len() > 6);
    let (before, after) = client.heard.split_at(4);
    assert_eq!(before[..2], after[..2], "what the journal knows");
    let numbers: Vec<u64> = after.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(client.client.counts().duplicates, 0);
}

#[test]
fn a_client_away_at_the_day_end_receives_the_rest_of_the_day() {
    for layout in LAYOUTS {
        let mut oms = OmsFixture::new(layout);
        let mut client = oms.since(Since::Start);
        client.send(rests(1));
        client.await_reports(2);
        let since = client.client.since();
        client.client.close();
        let mut other = oms.since(since);
        other.send(rests(2));
        other.await_reports(2);
        oms.end_day();
        other.client.close();
        for _ in 0..2 {
            let mut client = oms.since(since);
            client.until("the end of the day", |client| client.heard.len() >= 4);
            assert_eq!(client.numbers()[..4], [2, 3, 4, 5], "{layout:?}");
            assert_eq!((client.client.counts().gaps, client.client.counts().duplicates), (0, 0));
            client.client.close();
            // A start finds the archived day again.
            oms.stop();
            oms.start();
        }
    }
}

#[test]
fn a_second_server_on_the_same_socket_is_refused() {
    let oms = OmsFixture::new(Layout::Split);
    let mut other = OmsFixture::new(Layout::Split);
    other.stop();
    let (events, _hear) = std::sync::mpsc::sync_channel(16);
    let server = ServerConfig {
        unix: Some(oms.socket()),
        tcp: None,
        tls: None,
        users: other.folder.path().join("users.toml"),
        heartbeat_ms: 10_000,
        max_sessions: 16,
        keep_days: 1,
        settings: None,
        reload: std::sync::Arc::default(),
        sessions: Vec::new(),
        events,
    };
    let (ticks, never) = (other.ticks(), AtomicBool::new(true));
    let refused = tickpath_oms_server::run(other.clock, &other.config, &server, Some(ticks), &never, || ());
    let refused = refused.map(drop).expect_err("the place is taken");
    assert!(refused.to_string().contains("another server listens on it"), "{refused}");
    oms.trades(1);
}

/// Max connections that never log in, if the system allows that many.
const HALF_OPEN: u64 = 10_000;
/// Number of them that connect at the same time.
const HALF_OPEN_AT_ONCE: usize = 50;

/// Opens a connection that never logs in: silent, with a partial frame, or with another protocol.
fn knock(address: &str, nth: usize) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    let output: &[u8] = [&b""[..], &[40, 0, 0], b"GET / HTTP/1.1\r\n\r\n"][nth % 3];
    let _ = stream.write_all(output);
    stream
}

#[test]
fn ten_thousand_idle_connections_block_no_logon_and_are_logged_rarely() {
    /// Descriptors for the rest of this program.
    const OTHERS: u64 = 1_200;
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limits.maximum.unwrap_or(u64::MAX);
    let raised = rustix::process::Rlimit { current: Some(most.min(HALF_OPEN + OTHERS)), maximum: limits.maximum };
    if limits.current.is_some_and(|now| now < HALF_OPEN + OTHERS) {
        rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).expect("up to the hard limit");
    }
    let now = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let wanted = HALF_OPEN.min(now.saturating_sub(OTHERS)) as usize;
    if (wanted as u64) < HALF_OPEN {
        eprintln!("the hard limit of {most} open files leaves {wanted} connections of {HALF_OPEN}");
    }
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        let tcp = oms.tcp();
        let address = tcp.trim_start_matches("tcp://");
        let mut crowd = Vec::with_capacity(wanted);
        while crowd.len() < wanted {
            // In parallel: under load the kernel may take a tick per connection.
            crowd.extend(std::thread::scope(|scope| {
                let knockers: Vec<_> =
                    (0..HALF_OPEN_AT_ONCE).map(|nth| scope.spawn(move || knock(address, nth))).collect();
                knockers.into_iter().map(|knocker| knocker.join().expect("it listens")).collect::<Vec<_>>()
            }));
            if crowd.len().is_multiple_of(2_500) {
                oms.trades(crowd.len() as u64);
            }
        }
        oms.trades(1);
        // Over the same address that all of them occupy, too.
        let mut remote = oms.remote_at(format!("tcp://{address}"), "anna", Since::Now);
        remote.send(limit(Side::Buy, 2, 101, 1));
        remote.await_reports(3);
        remote.client.close();
        drop(crowd);
        oms.trades(3);
        let events = &oms.running.as_ref().expect("it runs").events;
        let refused = events.try_iter().filter(|event| matches!(event, ServerEvent::Refused { .. })).count();
        assert!(refused < wanted / 2, "{layout:?}: {refused} lines about {wanted} strangers");
    }
}
